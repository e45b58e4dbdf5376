//! A server of raw bytes, and how the tests dial it.

use std::future::Future;
use std::time::Duration;

use relaysync::native::{NativeConnector, NativeReceiver, NativeSender, SocketConfig};
use relaysync::protocol::RelayUrl;
use relaysync::runtime::{CloseReason, ConnectError, Connector, Dial, Frame, FrameReceiver};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Nothing on loopback takes longer, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) const TEXT: u8 = 0x1;
pub(crate) const BINARY: u8 = 0x2;
pub(crate) const CLOSE: u8 = 0x8;
pub(crate) const PING: u8 = 0x9;
pub(crate) const PONG: u8 = 0xA;
pub(crate) const FIN: u8 = 0x80;
pub(crate) const RSV1: u8 = 0x40;

/// Serves one connection with `script`; gives the address, `127.0.0.1:port`.
pub(crate) async fn listen<F>(script: impl FnOnce(TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        script(socket).await;
    });
    address
}

/// Serves one WebSocket connection: `script` begins after the upgrade.
pub(crate) async fn relay<F>(script: impl FnOnce(TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send,
{
    listen(|mut socket| async move {
        accept(&mut socket).await;
        script(socket).await;
    })
    .await
}

/// Answers the upgrade request.
pub(crate) async fn accept(socket: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) {
    let head = read_head(socket).await;
    answer_upgrade(socket, &head).await;
}

/// Answers the upgrade request with this head.
pub(crate) async fn answer_upgrade(socket: &mut (impl AsyncWriteExt + Unpin), head: &str) {
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key");
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    socket.write_all(answer.as_bytes()).await.unwrap();
}

/// Reads up to the empty line that ends a request's head.
pub(crate) async fn read_head(socket: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// A server's frame: `first` has the flags and the opcode.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = header(first, payload.len() as u64);
    bytes.extend_from_slice(payload);
    bytes
}

/// A frame's head without its payload.
pub(crate) fn header(first: u8, length: u64) -> Vec<u8> {
    let mut bytes = vec![first];
    match length {
        0..=125 => bytes.push(length as u8),
        126..=0xFFFF => {
            bytes.push(126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            bytes.push(127);
            bytes.extend_from_slice(&length.to_be_bytes());
        }
    }
    bytes
}

/// Reads one frame of the client; gives its first byte and its unmasked payload.
pub(crate) async fn read_frame(socket: &mut (impl AsyncReadExt + Unpin)) -> std::io::Result<(u8, Vec<u8>)> {
    let first = socket.read_u8().await?;
    let second = socket.read_u8().await?;
    assert!(second & 0x80 != 0, "a client masks its frames");
    let length = match second & 0x7F {
        126 => u64::from(socket.read_u16().await?),
        127 => socket.read_u64().await?,
        short => u64::from(short),
    };
    let mut mask = [0; 4];
    socket.read_exact(&mut mask).await?;
    let mut payload = vec![0; length as usize];
    socket.read_exact(&mut payload).await?;
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok((first, payload))
}

/// How to dial `address` without TLS.
pub(crate) fn dial(address: &str) -> Dial {
    Dial {
        url: RelayUrl::parse(&format!("ws://{address}")).unwrap(),
        frame_bytes_max: 1 << 20,
        public_only: false,
        tls: None,
    }
}

pub(crate) async fn connect_with(
    address: &str,
    config: SocketConfig,
) -> Result<(NativeSender, NativeReceiver), ConnectError> {
    let connector = NativeConnector::new(config).unwrap();
    within(connector.connect(&dial(address))).await
}

pub(crate) async fn connect(address: &str) -> (NativeSender, NativeReceiver) {
    connect_with(address, SocketConfig::default()).await.expect("a connection")
}

/// The future's result, or a failed test after [`PATIENCE`].
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

/// Everything received until the connection ended, and why it did.
pub(crate) async fn drain(receiver: &mut NativeReceiver) -> (Vec<String>, CloseReason) {
    let mut frames: Vec<Frame> = Vec::new();
    let reason = within(async {
        loop {
            if let Err(reason) = receiver.receive(&mut frames).await {
                break reason;
            }
        }
    })
    .await;
    (frames.iter().map(|frame| frame.as_str().to_owned()).collect(), reason)
}

/// Keeps the connection open until the client has closed it.
pub(crate) async fn hold(mut socket: TcpStream) {
    let mut sink = [0; 4096];
    while !matches!(socket.read(&mut sink).await, Ok(0) | Err(_)) {}
}
