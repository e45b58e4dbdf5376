//! CPU of the receiving path, from the socket to whole frames: frames of 600 bytes from another process.
//!
//! Prints nanoseconds of CPU a frame, beside what reading the same bytes and doing nothing with them costs. CPU of the
//! process is what the system counts, both of the program and of the system on its behalf.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use relaysync::native::{NativeConnector, SocketConfig};
use relaysync::protocol::RelayUrl;
use relaysync::runtime::{CloseReason, Connector, Dial, FrameReceiver};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

const FRAMES: usize = 400_000;
const FRAME_BYTES: usize = 600;
const WRITE_BYTES: usize = 64 << 10;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("relay") => relay(),
        _ => measure(),
    }
}

fn measure() {
    let raw = cpu_of(|| {
        let (_relay, address) = start();
        let mut socket = TcpStream::connect(address).unwrap();
        socket.write_all(b"GET / HTTP/1.1\r\nSec-WebSocket-Key: x\r\n\r\n").unwrap();
        let mut buffer = vec![0; 128 << 10];
        while socket.read(&mut buffer).unwrap() > 0 {}
    });
    let frames = cpu_of(|| tokio::runtime::Runtime::new().unwrap().block_on(receive()));
    println!("{raw:.0} ns of CPU a frame for reading the bytes alone, {frames:.0} ns for frames: {:.2}", frames / raw);
}

async fn receive() {
    let (_relay, address) = start();
    let connector = NativeConnector::new(SocketConfig::default()).unwrap();
    let dial = Dial {
        url: RelayUrl::parse(&format!("ws://{address}")).unwrap(),
        frame_bytes_max: 1 << 20,
        public_only: false,
        tls: None,
    };
    let (_sender, mut receiver) = connector.connect(&dial).await.unwrap();
    let (mut total, mut frames) = (0, Vec::new());
    let reason = loop {
        let result = receiver.receive(&mut frames).await;
        total += frames.len();
        frames.clear();
        if let Err(reason) = result {
            break reason;
        }
    };
    assert_eq!((total, reason), (FRAMES, CloseReason::Remote("1000".into())));
}

fn start() -> (Child, String) {
    let program = std::env::current_exe().unwrap();
    let mut relay = Command::new(program).arg("relay").stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(relay.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (relay, address.trim().to_owned())
}

/// Sends the frames to whoever comes first, then ends.
fn relay() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    let (mut socket, _) = listener.accept().unwrap();
    let mut key = String::new();
    for line in BufReader::new(socket.try_clone().unwrap()).lines() {
        let line = line.unwrap();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("Sec-WebSocket-Key: ") {
            key = value.to_owned();
        }
    }
    let accept = derive_accept_key(key.as_bytes());
    let mut bytes = format!(
        "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    )
    .into_bytes();
    let mut frame = vec![0x81, 126];
    frame.extend_from_slice(&(FRAME_BYTES as u16).to_be_bytes());
    frame.resize(frame.len() + FRAME_BYTES, b'x');
    for _ in 0..FRAMES {
        bytes.extend_from_slice(&frame);
        if bytes.len() >= WRITE_BYTES {
            socket.write_all(&bytes).unwrap();
            bytes.clear();
        }
    }
    bytes.extend_from_slice(&[0x88, 2, 0x03, 0xe8]);
    socket.write_all(&bytes).unwrap();
}

/// Nanoseconds of CPU a frame that `work` takes in this process.
fn cpu_of(work: impl FnOnce()) -> f64 {
    let before = cpu_ticks();
    work();
    // The system counts in hundredths of a second.
    (cpu_ticks() - before) as f64 * 1e7 / FRAMES as f64
}

/// User and system time of this process, all threads.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("a Linux system");
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}
