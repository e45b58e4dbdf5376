//! What stands between the daemon and a relay: it lets everything pass, slows it down, holds it up, or lets nobody in.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::Fault;
use crate::chance::Chance;

/// A slow relay passes on so much at a time.
const SLOW_BYTES: usize = 4096;
/// The time between.
const SLOW_INTERVAL: Duration = Duration::from_millis(100);

/// For how long relays are well and ill in turn, from and to, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) well: [u64; 2],
    pub(crate) ill: [u64; 2],
}

/// How a relay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    Slow,
    /// Connections stay, and nothing passes.
    Silent,
    /// Connections end, and no new ones come about.
    Closed,
}

/// The gate of one relay.
pub(crate) struct Gate {
    addr: SocketAddr,
    mode: watch::Sender<Mode>,
    troubled: watch::Sender<bool>,
}

impl Gate {
    /// A gate on a free port, open, before what listens at `target`. `number` decides its troubles.
    pub(crate) async fn before(target: SocketAddr, number: usize, pace: Pace) -> Result<Self, Fault> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let addr = listener.local_addr()?;
        let (mode, troubled) = (watch::Sender::new(Mode::Open), watch::Sender::new(false));
        tokio::spawn(keep(listener, addr, target, mode.subscribe()));
        tokio::spawn(trouble(Chance::new(number as u64 + 1), pace, mode.clone(), troubled.subscribe()));
        Ok(Self { addr, mode, troubled })
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// From now on it has its troubles; or it is open, and stays so.
    pub(crate) fn set_troubled(&self, troubled: bool) {
        self.troubled.send_replace(troubled);
        if !troubled {
            self.mode.send_replace(Mode::Open);
        }
    }
}

/// Well and ill in turn while that is wanted.
async fn trouble(mut chance: Chance, pace: Pace, mode: watch::Sender<Mode>, mut troubled: watch::Receiver<bool>) {
    while troubled.wait_for(|troubled| *troubled).await.is_ok() {
        let well = Duration::from_secs(chance.within(pace.well));
        let ill = Duration::from_secs(chance.within(pace.ill));
        let how = [Mode::Slow, Mode::Silent, Mode::Closed, Mode::Closed][chance.below(4)];
        let turn = async {
            tokio::time::sleep(well).await;
            mode.send_replace(how);
            tokio::time::sleep(ill).await;
            mode.send_replace(Mode::Open);
        };
        tokio::select! {
            () = turn => {}
            _ = troubled.wait_for(|troubled| !*troubled) => {}
        }
    }
}

/// Listens unless it is closed.
async fn keep(listener: TcpListener, addr: SocketAddr, target: SocketAddr, mut mode: watch::Receiver<Mode>) {
    let mut open = Some(listener);
    loop {
        let Some(listener) = open.take() else {
            if mode.wait_for(|mode| *mode != Mode::Closed).await.is_err() {
                return;
            }
            match TcpListener::bind(addr).await {
                Ok(listener) => open = Some(listener),
                Err(error) => {
                    eprintln!("{addr} cannot be listened on again: {error}");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
            continue;
        };
        let for_connections = mode.clone();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((client, _)) => drop(tokio::spawn(pass(client, target, for_connections.clone()))),
                    Err(error) => eprintln!("{addr}: {error}"),
                },
                closed = mode.wait_for(|mode| *mode == Mode::Closed) => match closed {
                    Ok(_) => break,
                    Err(_) => return,
                },
            }
        }
    }
}

/// One connection, until either side or the gate ends it.
async fn pass(client: TcpStream, target: SocketAddr, mut mode: watch::Receiver<Mode>) {
    let Ok(relay) = TcpStream::connect(target).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_relay, to_relay) = relay.into_split();
    let (up, down) = (pump(from_client, to_relay, mode.clone()), pump(from_relay, to_client, mode.clone()));
    tokio::select! {
        _ = up => {}
        _ = down => {}
        _ = mode.wait_for(|mode| *mode == Mode::Closed) => {}
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut mode: watch::Receiver<Mode>) -> Result<(), Fault> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        mode.wait_for(|mode| *mode != Mode::Silent).await?;
        let is_slow = *mode.borrow() == Mode::Slow;
        let most = if is_slow { SLOW_BYTES } else { bytes.len() };
        let count = from.read(&mut bytes[..most]).await?;
        if count == 0 {
            return Ok(());
        }
        if is_slow {
            tokio::time::sleep(SLOW_INTERVAL).await;
        }
        to.write_all(&bytes[..count]).await?;
    }
}
