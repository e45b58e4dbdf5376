//! Whom to trust: the system's certificate authorities, else Mozilla's, and those of a file; and for some relays, pinned
//! keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::config::{ConfigError, SocketConfig};
use super::pins::{PinMismatch, PinVerifier, Pins};
use crate::protocol::RelayUrl;
use crate::runtime::ConnectError;

/// Encrypts connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Tls {
    connector: TlsConnector,
    /// For relays with pins. Each has its own, so that no session that was begun without the check is resumed.
    pinned: Arc<BTreeMap<RelayUrl, TlsConnector>>,
}

impl Tls {
    /// Loads the trusted authorities.
    pub(super) fn new(config: &SocketConfig) -> Result<Self, ConfigError> {
        let roots = Arc::new(roots(config)?);
        let pinned = config.pins.iter().map(|(relay, pins)| Ok((relay.clone(), pinned(relay, pins, &roots)?)));
        let pinned = Arc::new(pinned.collect::<Result<_, ConfigError>>()?);
        let plain = client().map_err(fault)?.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(plain)), pinned })
    }

    /// Encrypts `tcp` and checks that the other side is the host of `url`, and has the key that is pinned for it.
    pub(super) async fn connect(&self, url: &RelayUrl, tcp: TcpStream) -> Result<TlsStream<TcpStream>, ConnectError> {
        let name = ServerName::try_from(url.host()).map_err(|error| ConnectError::Tls(error.to_string()))?;
        let connector = self.pinned.get(url).unwrap_or(&self.connector);
        connector.connect(name, tcp).await.map_err(|error| match PinMismatch::of(&error) {
            Some(mismatch) => ConnectError::Pin(mismatch.to_string()),
            None => ConnectError::Tls(error.to_string()),
        })
    }
}

fn client() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

fn pinned(relay: &RelayUrl, pins: &Pins, roots: &Arc<RootCertStore>) -> Result<TlsConnector, ConfigError> {
    let no_use = |reason: &str| ConfigError { reason: format!("the pins of {relay} are of no use: {reason}") };
    if !relay.is_tls() {
        return Err(no_use("the connection is not encrypted"));
    }
    if pins.keys.is_empty() {
        return Err(no_use("there are none, so no key would ever do"));
    }
    let builder = client().map_err(fault)?;
    let verifier = PinVerifier::new(pins.clone(), roots.clone(), builder.crypto_provider().clone()).map_err(fault)?;
    let config = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn fault(error: impl std::fmt::Display) -> ConfigError {
    ConfigError { reason: format!("TLS cannot be set up: {error}") }
}

fn roots(config: &SocketConfig) -> Result<RootCertStore, ConfigError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::debug!("system certificates: {error}");
    }
    roots.add_parsable_certificates(system.certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let Some(path) = &config.ca_file else { return Ok(roots) };
    let fault = |error: &dyn std::fmt::Display| ConfigError {
        reason: format!("certificate authorities of {} cannot be read: {error}", path.display()),
    };
    let mut added = 0;
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| fault(&error))? {
        roots.add(certificate.map_err(|error| fault(&error))?).map_err(|error| fault(&error))?;
        added += 1;
    }
    if added == 0 {
        return Err(fault(&"it has no certificate"));
    }
    Ok(roots)
}
