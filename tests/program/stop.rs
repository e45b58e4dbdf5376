//! Ctrl-C while a relay does not answer. Reported as privkeyio/wisp#140: a TLS connect could not be interrupted, and the
//! shutdown hung.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tokio_tungstenite::tungstenite;

use super::call::start;

/// How long the program may take to reach the peer. Long: the machine may be busy.
const REACHED_WITHIN: Duration = Duration::from_secs(20);
/// How long it may take to end.
const ENDED_WITHIN: Duration = Duration::from_secs(2);

/// Serves connections by `script`; gives the port, and hears when the peer is silent on purpose.
fn peer(script: impl Fn(usize, TcpStream, Sender<()>) + Send + Sync + Copy + 'static) -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (silent, is_silent) = channel();
    std::thread::spawn(move || {
        for (number, socket) in listener.incoming().map_while(Result::ok).enumerate() {
            let silent = silent.clone();
            std::thread::spawn(move || script(number, socket, silent));
        }
    });
    (port, is_silent)
}

/// Takes what the program sends, and answers nothing until it is gone.
fn say_nothing(_number: usize, mut socket: TcpStream, silent: Sender<()>) {
    let mut sink = [0; 4096];
    while matches!(socket.read(&mut sink), Ok(1..)) {
        // Only the first who says so is waited for.
        let _ = silent.send(());
    }
}

/// Is a relay as far as the upgrade goes; says nothing to requests, nor to the one for its information.
fn accept_and_say_nothing(number: usize, socket: TcpStream, silent: Sender<()>) {
    if number > 0 {
        return say_nothing(number, socket, silent);
    }
    let mut socket = tungstenite::accept(socket).unwrap();
    while socket.read().is_ok() {}
}

/// Interrupts a sync with a peer once that is silent.
fn interrupt(scheme: &str, script: impl Fn(usize, TcpStream, Sender<()>) + Send + Sync + Copy + 'static) {
    for (signal, arguments) in [("INT", &[][..]), ("TERM", &["--live"])] {
        let directory = tempfile::tempdir().unwrap();
        let (port, is_silent) = peer(script);
        let url = format!("{scheme}://127.0.0.1:{port}");
        let mut child = start(directory.path(), &[&["sync", &url], arguments].concat());
        is_silent.recv_timeout(REACHED_WITHIN).expect("the program connects");
        let kill = std::process::Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let signalled = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if signalled.elapsed() > ENDED_WITHIN {
                child.kill().unwrap();
                panic!("{scheme}: SIG{signal} did not end it: {:?}", child.wait_with_output());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let stdout = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        assert!(stdout.contains("stopped before the end"), "{stdout}");
    }
}

#[test]
fn a_tls_handshake_that_is_never_answered() {
    interrupt("wss", say_nothing);
}

#[test]
fn an_upgrade_that_is_never_answered() {
    interrupt("ws", say_nothing);
}

#[test]
fn requests_and_one_for_the_relay_information_that_are_never_answered() {
    interrupt("ws", accept_and_say_nothing);
}
