//! Whom to trust: the system's certificate authorities, else Mozilla's, and those of a file.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::config::{ConfigError, SocketConfig};
use crate::runtime::ConnectError;

/// Encrypts connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Tls {
    connector: TlsConnector,
}

impl Tls {
    /// Loads the trusted authorities.
    pub(super) fn new(config: &SocketConfig) -> Result<Self, ConfigError> {
        let fault = |reason: String| ConfigError { reason };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| fault(format!("TLS cannot be set up: {error}")))?
            .with_root_certificates(roots(config)?)
            .with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(tls)) })
    }

    /// Encrypts `tcp` and checks that the other side is `host`.
    pub(super) async fn connect(&self, host: &str, tcp: TcpStream) -> Result<TlsStream<TcpStream>, ConnectError> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| ConnectError::Tls(error.to_string()))?;
        self.connector.connect(name, tcp).await.map_err(|error| ConnectError::Tls(error.to_string()))
    }
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
