//! Sockets, and the runtime as a whole.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;

use super::{Clock, MaybeSend, MaybeSync};
use crate::ingest::{Verdict, Verified};
use crate::peer::TlsTerms;
use crate::protocol::{Event, RelayUrl};
use crate::store::Store;

/// Whom to connect to, and within which bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dial {
    /// The relay.
    pub url: RelayUrl,
    /// The largest frame taken from it, in bytes; a larger one ends the connection.
    pub frame_bytes_max: usize,
    /// Connect to public addresses only, whatever the name resolves to at the moment: not to this machine, nor to a
    /// private or link-local network.
    pub public_only: bool,
    /// What is asked of the encryption; `None` for what the URL and known authorities ask.
    pub tls: Option<Arc<TlsTerms>>,
}

/// Why no connection came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectError {
    /// The name could not be resolved.
    Dns(String),
    /// Only public addresses are to be connected to, and the host has none.
    Private(String),
    /// Nobody listens there, or the network refused.
    Refused(String),
    /// Encryption is required, and the URL has none.
    Unencrypted(String),
    /// Certificate or TLS failure.
    Tls(String),
    /// The relay's certificate is for another host.
    HostName(String),
    /// The relay's certificate is not valid at this time: expired, or not valid yet.
    Expired(String),
    /// The relay has another key than those pinned for it.
    Pin(String),
    /// It is no WebSocket server, or it declined the upgrade.
    Handshake(String),
    /// The server of this URL does not let web pages read what it answers (CORS). Told only of information documents.
    Withheld(String),
    /// No answer in time.
    TimedOut,
    /// Anything else that the system reports.
    Io(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(detail) => write!(f, "cannot resolve the host name: {detail}"),
            Self::Private(host) => write!(f, "{host} has no public address, and others are not connected to"),
            Self::Refused(detail) => write!(f, "connection refused: {detail}"),
            Self::Tls(detail) => write!(f, "TLS failed: {detail}"),
            Self::Unencrypted(url) => write!(f, "encryption is required, and {url} has none: it must be wss://"),
            Self::HostName(detail) => write!(f, "the certificate is for another host: {detail}"),
            Self::Expired(detail) => write!(f, "the certificate is not valid now: {detail}"),
            Self::Pin(detail) => write!(f, "pinned key not found: {detail}"),
            Self::Handshake(detail) => write!(f, "WebSocket handshake failed: {detail}"),
            Self::Withheld(url) => write!(f, "{url} does not let web pages read its answers (CORS)"),
            Self::TimedOut => f.write_str("connecting timed out"),
            Self::Io(detail) => write!(f, "connection failed: {detail}"),
        }
    }
}

impl std::error::Error for ConnectError {}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// The relay closed it, with its code and words if it gave any.
    Remote(String),
    /// The link broke.
    Io(String),
    /// We are done with the relay.
    Done,
    /// A frame was larger than allowed.
    FrameTooLarge,
    /// A text frame was not UTF-8.
    InvalidUtf8,
    /// A frame's JSON was nested deeper than any message is.
    TooDeep,
    /// The relay broke the WebSocket protocol, or sent compressed frames though none were agreed on.
    Protocol(String),
    /// More was to be sent than the relay took.
    Backlogged,
    /// The relay sent more than was asked of it, by far.
    Flood,
    /// Nothing came, not even an answer to a probe.
    Silent,
    /// The relay asked for less traffic.
    RateLimited,
    /// The relay's information document names another key than is expected, or none, or cannot be had.
    Identity(String),
    /// The relay did not accept our authentication (NIP-42), in these words.
    AuthRefused(String),
    /// How the relay proves itself, or who we are, has changed: everything begins anew.
    Renewed,
    /// No connection came about.
    Connect(ConnectError),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Remote(detail) if detail.is_empty() => f.write_str("closed by the relay"),
            Self::Remote(detail) => write!(f, "closed by the relay: {detail}"),
            Self::Io(detail) => write!(f, "connection lost: {detail}"),
            Self::Done => f.write_str("done"),
            Self::FrameTooLarge => f.write_str("frame larger than allowed"),
            Self::InvalidUtf8 => f.write_str("frame is not UTF-8"),
            Self::TooDeep => f.write_str("frame nested too deep"),
            Self::Protocol(detail) => write!(f, "WebSocket protocol broken: {detail}"),
            Self::Backlogged => f.write_str("relay reads too slowly"),
            Self::Flood => f.write_str("relay sends far more than was asked"),
            Self::Silent => f.write_str("relay has gone silent"),
            Self::RateLimited => f.write_str("rate limited"),
            Self::Identity(detail) => write!(f, "not who it should be: {detail}"),
            Self::AuthRefused(words) => write!(f, "authentication refused: {words}"),
            Self::Renewed => f.write_str("the terms have changed"),
            Self::Connect(error) => error.fmt(f),
        }
    }
}

/// Kinds of failure of a link, by stable names for operators and their programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The host name has no address.
    DnsFailed,
    /// Only private addresses, which are not connected to.
    PrivateAddress,
    /// Nobody listens there.
    ConnectionRefused,
    /// Encryption is required, and the URL has none.
    TlsRequired,
    /// The certificate is vouched for by nobody known, or TLS failed.
    TlsFailed,
    /// The certificate is for another host.
    WrongHostName,
    /// The certificate is not valid at this time.
    CertificateExpired,
    /// The relay's key is not a pinned one.
    WrongPin,
    /// No WebSocket server.
    HandshakeFailed,
    /// No answer in time, or silence.
    TimedOut,
    /// The link broke, or the relay closed it.
    ConnectionLost,
    /// The relay sends what no relay may.
    ProtocolBroken,
    /// The relay asked for less traffic.
    RateLimited,
    /// The relay is not who it should be.
    WrongIdentity,
    /// The relay did not accept our authentication.
    AuthRefused,
}

impl ConnectError {
    /// What kind of failure this is.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Dns(_) => FailureKind::DnsFailed,
            Self::Private(_) => FailureKind::PrivateAddress,
            Self::Refused(_) => FailureKind::ConnectionRefused,
            Self::Unencrypted(_) => FailureKind::TlsRequired,
            Self::Tls(_) => FailureKind::TlsFailed,
            Self::HostName(_) => FailureKind::WrongHostName,
            Self::Expired(_) => FailureKind::CertificateExpired,
            Self::Pin(_) => FailureKind::WrongPin,
            Self::Handshake(_) | Self::Withheld(_) => FailureKind::HandshakeFailed,
            Self::TimedOut => FailureKind::TimedOut,
            Self::Io(_) => FailureKind::ConnectionLost,
        }
    }
}

impl CloseReason {
    /// What kind of failure this is; `None` if it is none.
    pub fn kind(&self) -> Option<FailureKind> {
        Some(match self {
            Self::Done | Self::Renewed => return None,
            Self::Remote(_) | Self::Io(_) | Self::Backlogged => FailureKind::ConnectionLost,
            Self::FrameTooLarge | Self::InvalidUtf8 | Self::TooDeep | Self::Protocol(_) | Self::Flood => {
                FailureKind::ProtocolBroken
            }
            Self::Silent => FailureKind::TimedOut,
            Self::RateLimited => FailureKind::RateLimited,
            Self::Identity(_) => FailureKind::WrongIdentity,
            Self::AuthRefused(_) => FailureKind::AuthRefused,
            Self::Connect(error) => error.kind(),
        })
    }
}

/// One text frame, known to be UTF-8. Cheap to clone; parts of it can be referred to without copying.
#[derive(Debug, Clone)]
pub struct Frame(Text);

/// The proof that the bytes are UTF-8 stays with whoever checked them, so that nobody has to check again.
#[derive(Debug, Clone)]
enum Text {
    Checked(Bytes),
    #[cfg(feature = "native")]
    Socket(tokio_tungstenite::tungstenite::Utf8Bytes),
}

impl Frame {
    /// Checks that `bytes` are UTF-8.
    ///
    /// # Errors
    /// They are not; they are given back.
    pub fn new(bytes: Bytes) -> Result<Self, Bytes> {
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Self(Text::Checked(bytes))),
            Err(_) => Err(bytes),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Checked(bytes) => std::str::from_utf8(bytes).expect("checked when the frame was made"),
            #[cfg(feature = "native")]
            Text::Socket(text) => text.as_str(),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        match &self.0 {
            Text::Checked(bytes) => bytes,
            #[cfg(feature = "native")]
            Text::Socket(text) => text.as_ref(),
        }
    }

    /// The length in bytes.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Is the frame empty?
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Frame {}

impl From<String> for Frame {
    fn from(text: String) -> Self {
        Self(Text::Checked(text.into()))
    }
}

/// What the socket has checked already: neither a copy nor a second check.
#[cfg(feature = "native")]
impl From<tokio_tungstenite::tungstenite::Utf8Bytes> for Frame {
    fn from(text: tokio_tungstenite::tungstenite::Utf8Bytes) -> Self {
        Self(Text::Socket(text))
    }
}

/// The frame was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendError {
    /// The queue is full: the relay reads too slowly.
    Full,
    /// The connection has ended.
    Closed,
}

/// The sending half of a connection.
pub trait FrameSender: MaybeSend + 'static {
    /// Queues `frame` without waiting.
    ///
    /// # Errors
    /// The queue, bounded in bytes, is full, or the connection has ended.
    fn try_send(&mut self, frame: String) -> Result<(), SendError>;

    /// Stops (`false`) or resumes (`true`) reading from the socket, so that the relay is slowed down. Where sockets
    /// cannot do that, nothing happens.
    fn set_reading(&mut self, reading: bool);

    /// Ends the connection soon, without waiting.
    fn close(&mut self);
}

/// The receiving half of a connection.
pub trait FrameReceiver: MaybeSend + 'static {
    /// Waits for a frame, then appends it and those that are there already, up to a bound of the receiver's own, to
    /// `frames`.
    ///
    /// # Errors
    /// The connection has ended, and why. Frames appended before that are valid.
    fn receive(&mut self, frames: &mut Vec<Frame>) -> impl Future<Output = Result<(), CloseReason>> + MaybeSend;
}

/// Makes connections.
pub trait Connector: MaybeSend + MaybeSync + 'static {
    /// The sending half.
    type Sender: FrameSender;
    /// The receiving half.
    type Receiver: FrameReceiver;

    /// Connects. The driver drops the future when the engine gives up on it, which must free the socket at once.
    ///
    /// # Errors
    /// Why not.
    fn connect(
        &self,
        dial: &Dial,
    ) -> impl Future<Output = Result<(Self::Sender, Self::Receiver), ConnectError>> + MaybeSend;

    /// Fetches the relay information document (NIP-11) as text, bounded in size and time by the connector.
    ///
    /// # Errors
    /// Why not.
    fn relay_info(&self, dial: &Dial) -> impl Future<Output = Result<String, ConnectError>> + MaybeSend;
}

/// No signature could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignError {
    /// No key was configured.
    NoKey,
    /// The signer declined or failed.
    Declined(String),
}

/// Everything that the driver needs.
pub trait Runtime: MaybeSend + MaybeSync + 'static {
    /// The clock.
    type Clock: Clock;
    /// The sockets.
    type Connector: Connector;
    /// The store.
    type Store: Store;

    /// The clock.
    fn clock(&self) -> &Self::Clock;

    /// The sockets.
    fn connector(&self) -> &Self::Connector;

    /// The store.
    fn store(&self) -> &Self::Store;

    /// Runs `task` to its end, beside everything else.
    fn spawn(&self, task: impl Future<Output = ()> + MaybeSend + 'static);

    /// Checks ids and signatures, off the driver's thread where there are threads. One verdict an event, in order.
    fn verify(&self, events: Vec<Event>) -> impl Future<Output = Vec<Verdict>> + MaybeSend;

    /// Signs the answer to a NIP-42 challenge of `relay`.
    ///
    /// # Errors
    /// There is no key, or the signer declined.
    fn sign_auth(
        &self,
        relay: &RelayUrl,
        challenge: &str,
    ) -> impl Future<Output = Result<Verified<Event>, SignError>> + MaybeSend;
}
