//! Encryption of the service's connections.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::ServiceConfig;
use crate::native::link::Link;

/// By what the service proves itself to clients. Both files are in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Its certificate, and those that lead from it to an authority.
    pub cert_file: PathBuf,
    /// The certificate's key.
    pub key_file: PathBuf,
}

/// The files cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFilesError {
    /// Which, and why not.
    pub reason: String,
}

impl fmt::Display for TlsFilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for TlsFilesError {}

/// The first byte of whoever begins with TLS: a record of the handshake.
const HANDSHAKE_RECORD: u8 = 22;

impl TlsFiles {
    /// Reads them, and sees that they belong together.
    pub(super) fn read(&self) -> Result<Arc<ServerConfig>, TlsFilesError> {
        let chain = self.chain().map_err(|error| fault("certificate", &self.cert_file, &error))?;
        let key = PrivateKeyDer::from_pem_file(&self.key_file).map_err(|error| fault("key", &self.key_file, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // These are TLS 1.2 and 1.3.
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| {
            let (cert_file, key_file) = (self.cert_file.display(), self.key_file.display());
            TlsFilesError { reason: format!("the certificate {cert_file} and the key {key_file} do not do: {error}") }
        })?;
        config.alpn_protocols.push(b"http/1.1".to_vec());
        Ok(Arc::new(config))
    }

    fn chain(&self) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
        let chain = CertificateDer::pem_file_iter(&self.cert_file)?.collect::<Result<Vec<_>, _>>()?;
        if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) }
    }
}

fn fault(what: &str, path: &Path, error: &pem::Error) -> TlsFilesError {
    let reason = match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("there is no {what} in it, in PEM"),
        error => error.to_string(),
    };
    TlsFilesError { reason: format!("the {what} file {}: {reason}", path.display()) }
}

/// Encrypts connections, if that is configured, and bounds what that costs.
#[derive(Debug)]
pub(super) struct Encryption {
    config: Option<watch::Receiver<Arc<ServerConfig>>>,
    /// One for each handshake that may be under way.
    handshakes: Semaphore,
    handshake_max: Duration,
}

impl Encryption {
    pub(super) fn new(config: Option<watch::Receiver<Arc<ServerConfig>>>, service: &ServiceConfig) -> Self {
        let handshakes = Semaphore::new(service.handshakes_max.clamp(1, Semaphore::MAX_PERMITS));
        Self { config, handshakes, handshake_max: service.handshake_max }
    }

    pub(super) const fn is_on(&self) -> bool {
        self.config.is_some()
    }

    /// Encrypts `socket`. Whoever speaks without encryption where there is to be one is given back as it came, so that
    /// it can be told.
    pub(super) async fn welcome(&self, socket: TcpStream) -> io::Result<Link> {
        let Some(config) = &self.config else { return Ok(Link::Plain(socket)) };
        let config = config.borrow().clone();
        let shaking = async {
            let mut first = [0];
            socket.peek(&mut first).await?;
            if first != [HANDSHAKE_RECORD] {
                return Ok(Link::Plain(socket));
            }
            // Nobody closes the semaphore.
            let _turn = self.handshakes.acquire().await.map_err(io::Error::other)?;
            let encrypted = TlsAcceptor::from(config).accept(socket).await?;
            Ok(Link::Encrypted(Box::new(encrypted.into())))
        };
        timeout(self.handshake_max, shaking).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}
