//! WebSocket connections to relays.
//!
//! The halves share nothing but an outbound buffer: the receiver reads the socket and hands over what is there, the
//! sender writes frames into the buffer, and one task moves the buffer to the socket. Pongs go into the same buffer.

mod handshake;
mod outbound;
mod receiver;
mod sender;
mod writer;

use std::sync::Arc;

pub use self::receiver::NativeReceiver;
pub use self::sender::NativeSender;
use super::config::{ConfigError, SocketConfig};
use super::http;
use super::link::Link;
use super::tls::Tls;
use crate::runtime::{ConnectError, Connector, Dial};

/// What relays are told about us.
pub(super) const USER_AGENT: &str = concat!("relaysync/", env!("CARGO_PKG_VERSION"));

/// Connects to relays by TCP, TLS and WebSocket. Cheap to clone. Needs a tokio runtime.
#[derive(Clone)]
pub struct NativeConnector {
    config: Arc<SocketConfig>,
    tls: Tls,
}

impl NativeConnector {
    /// Loads the trusted certificate authorities, the rest happens at each connection.
    ///
    /// # Errors
    /// The configured certificates cannot be read.
    pub fn new(config: SocketConfig) -> Result<Self, ConfigError> {
        let tls = Tls::new(&config)?;
        Ok(Self { config: Arc::new(config), tls })
    }

    /// The one way to a relay, for whatever is asked of it.
    async fn open(&self, dial: &Dial) -> Result<Link, ConnectError> {
        Link::open(&dial.url, dial.public_only, dial.tls.as_ref(), &self.config, &self.tls).await
    }

    async fn connect_unbounded(&self, dial: &Dial) -> Result<(NativeSender, NativeReceiver), ConnectError> {
        let link = self.open(dial).await?;
        let frame_bytes_max = dial.frame_bytes_max.min(self.config.frame_bytes_max);
        let (socket, write_half, outbound) = handshake::upgrade(link, &dial.url, frame_bytes_max, &self.config).await?;
        tokio::spawn(writer::run(write_half, Arc::clone(&outbound), Arc::clone(&self.config)));
        let receiver = NativeReceiver::new(socket, Arc::clone(&outbound), Arc::clone(&self.config));
        Ok((NativeSender::new(outbound), receiver))
    }
}

impl Connector for NativeConnector {
    type Sender = NativeSender;
    type Receiver = NativeReceiver;

    async fn connect(&self, dial: &Dial) -> Result<(NativeSender, NativeReceiver), ConnectError> {
        let connecting = self.connect_unbounded(dial);
        tokio::time::timeout(self.config.connect_timeout, connecting).await.unwrap_or(Err(ConnectError::TimedOut))
    }

    async fn relay_info(&self, dial: &Dial) -> Result<String, ConnectError> {
        let fetching = async {
            let link = self.open(dial).await?;
            http::relay_info(link, &dial.url, &self.config).await
        };
        tokio::time::timeout(self.config.info_timeout, fetching).await.unwrap_or(Err(ConnectError::TimedOut))
    }
}
