//! A stop while a connection is being opened. Reported as privkeyio/wisp#140: a TLS connect could not be interrupted, and
//! the shutdown hung.

use std::net::{Ipv4Addr, SocketAddr, TcpStream as BlockingStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_channel::mpsc;
use relaysync::drive::drive;
use relaysync::engine::{Command, Config, GapReason, Notice, Phase, RelayOptions, RelayReport};
use relaysync::native::{NativeRuntime, SocketConfig};
use relaysync::plan::Interest;
use relaysync::protocol::Filter;
use relaysync::store::MemoryStore;
use socket2::{Domain, Socket, Type};

use super::peer::*;

/// Syncs with `url` until that is being connected to, then stops; gives the time that this took, and the report.
async fn stop_while_connecting(url: &str) -> (Duration, RelayReport) {
    let runtime = NativeRuntime::new(MemoryStore::default(), SocketConfig::default(), None).unwrap();
    let config = Config { progress_interval: Duration::from_millis(100), ..Config::one_shot() };
    let (mut commands, inbox) = mpsc::channel(4);
    let interests = [Interest::Opaque(Arc::new(Filter::new()))].into();
    let (relay, options) = (url.parse().unwrap(), RelayOptions::default());
    commands.try_send(Command::SetInterests { relay, interests, options }).unwrap();
    let mut stopped_at = None;
    let reports = drive(Arc::new(runtime), config, 1, inbox, |notice| {
        if let Notice::Progress(reports) = notice
            && stopped_at.is_none()
        {
            assert_eq!(reports[0].phase, Phase::Connecting);
            commands.try_send(Command::Stop).unwrap();
            stopped_at = Some(Instant::now());
        }
    });
    let reports = within(reports).await.unwrap();
    (stopped_at.expect("it was stopped").elapsed(), reports.into_iter().next().unwrap())
}

#[track_caller]
fn has_stopped((took, report): (Duration, RelayReport)) {
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(matches!(report.gaps[..], [ref gap] if gap.reason == GapReason::Stopped), "{report:?}");
}

#[tokio::test]
async fn during_a_tls_handshake_or_an_upgrade() {
    for scheme in ["wss", "ws"] {
        let address = listen(hold).await;
        has_stopped(stop_while_connecting(&format!("{scheme}://{address}")).await);
    }
}

/// A port whose queue of connections is full: further ones are neither accepted nor refused.
#[tokio::test]
async fn during_a_tcp_connect() {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    while let Ok(socket) = BlockingStream::connect_timeout(&address, Duration::from_millis(300)) {
        queued.push(socket);
        assert!(queued.len() < 100, "the queue never fills");
    }
    has_stopped(stop_while_connecting(&format!("ws://{address}")).await);
}
