//! From a URL to a byte stream: name look-up, TCP over all addresses of the host, TLS.
//!
//! Everything here is a plain future: dropping it frees the sockets at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

use super::config::SocketConfig;
use super::link::Link;
use super::tls::Tls;
use crate::discover::is_private_address;
use crate::peer::{TlsMode, TlsTerms};
use crate::protocol::RelayUrl;
use crate::runtime::ConnectError;

impl Link {
    /// Connects to the host and port of `url`; with `public_only` not to private addresses of it. `terms`: what is asked
    /// of the encryption, beside what the URL and known authorities ask.
    pub(super) async fn open(
        url: &RelayUrl,
        public_only: bool,
        terms: Option<&Arc<TlsTerms>>,
        config: &SocketConfig,
        tls: &Tls,
    ) -> Result<Self, ConnectError> {
        if !url.is_tls() && terms.is_some_and(|terms| terms.mode == TlsMode::Required) {
            return Err(ConnectError::Unencrypted(url.to_string()));
        }
        let host = url.host();
        let mut addresses = look_up(&host, url.port()).await?;
        if public_only {
            // What the name resolves to is looked at where it is used: the next look-up may say something else.
            addresses.retain(|address| !is_private_address(address.ip()));
            if addresses.is_empty() {
                return Err(ConnectError::Private(host));
            }
        }
        let tcp = race(addresses, config).await?;
        prepare(&tcp, config).map_err(|error| connect_error(&error))?;
        if !url.is_tls() {
            return Ok(Self::Plain(tcp));
        }
        Ok(Self::Encrypted(Box::new(tls.connect(&host, terms, tcp).await?.into())))
    }
}

/// All addresses of `host`, IPv6 and IPv4 by turns, so that one broken family costs one stagger and no more.
async fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| ConnectError::Dns(error.to_string()))?;
    let (six, four): (Vec<_>, Vec<_>) = found.partition(SocketAddr::is_ipv6);
    let mut addresses = Vec::with_capacity(six.len() + four.len());
    let (mut six, mut four) = (six.into_iter(), four.into_iter());
    loop {
        let before = addresses.len();
        addresses.extend(six.next());
        addresses.extend(four.next());
        if addresses.len() == before {
            break;
        }
    }
    if addresses.is_empty() { Err(ConnectError::Dns(format!("{host} has no address"))) } else { Ok(addresses) }
}

/// The first address that answers. The next one is tried as soon as one fails, or beside those that are silent.
async fn race(addresses: Vec<SocketAddr>, config: &SocketConfig) -> Result<TcpStream, ConnectError> {
    let mut waiting = addresses.into_iter();
    let mut tried = FuturesUnordered::new();
    let mut failure = ConnectError::TimedOut;
    loop {
        if let Some(address) = waiting.next() {
            tried.push(TcpStream::connect(address));
        } else if tried.is_empty() {
            return Err(failure);
        }
        let stagger = async {
            match waiting.len() {
                0 => std::future::pending().await,
                _ => tokio::time::sleep(config.address_stagger).await,
            }
        };
        tokio::select! {
            Some(result) = tried.next() => match result {
                Ok(tcp) => return Ok(tcp),
                Err(error) => failure = connect_error(&error),
            },
            () = stagger => {}
        }
    }
}

fn prepare(tcp: &TcpStream, config: &SocketConfig) -> io::Result<()> {
    tcp.set_nodelay(config.nodelay)?;
    let keepalive = TcpKeepalive::new().with_time(config.keepalive_idle).with_interval(config.keepalive_interval);
    SockRef::from(tcp).set_tcp_keepalive(&keepalive)
}

/// What the system said, in our words.
pub(super) fn connect_error(error: &io::Error) -> ConnectError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            ConnectError::Refused(error.to_string())
        }
        io::ErrorKind::TimedOut => ConnectError::TimedOut,
        _ => ConnectError::Io(error.to_string()),
    }
}
