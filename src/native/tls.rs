//! Whom to trust: the system's certificate authorities, else Mozilla's, and those of a file; for some relays on terms of
//! their own.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, ConfigBuilder, Error, RootCertStore, WantsVerifier};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::config::{ConfigError, SocketConfig};
use super::pins::{PinMismatch, TermsVerifier};
use crate::peer::{TlsTerms, Verify};
use crate::runtime::ConnectError;

/// Encrypts connections. Cheap to clone.
#[derive(Clone)]
pub(super) struct Tls {
    /// For relays without terms.
    usual: TlsConnector,
    roots: Arc<RootCertStore>,
    /// For those with terms, as far as they were met: at most `terms_max`.
    by_terms: Arc<Mutex<BTreeMap<Arc<TlsTerms>, TlsConnector>>>,
    terms_max: usize,
}

impl Tls {
    /// Loads the trusted authorities.
    pub(super) fn new(config: &SocketConfig) -> Result<Self, ConfigError> {
        let roots = Arc::new(roots(config)?);
        let usual = client().map_err(fault)?.with_root_certificates(roots.clone()).with_no_client_auth();
        let usual = TlsConnector::from(Arc::new(usual));
        Ok(Self { usual, roots, by_terms: Arc::default(), terms_max: config.tls_terms_max })
    }

    /// Encrypts `tcp` and checks that the other side is `host`, or the one that `terms` name, and keeps to them.
    pub(super) async fn connect(
        &self,
        host: &str,
        terms: Option<&Arc<TlsTerms>>,
        tcp: TcpStream,
    ) -> Result<TlsStream<TcpStream>, ConnectError> {
        let host = terms.and_then(|terms| terms.hostname.as_deref()).unwrap_or(host);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| ConnectError::HostName(format!("{host:?} is none: {error}")))?;
        let connector = terms.map_or_else(|| Ok(self.usual.clone()), |terms| self.on_terms(terms))?;
        connector.connect(name, tcp).await.map_err(|error| connect_error(&error))
    }

    /// What was set up for these terms, once for all connections.
    fn on_terms(&self, terms: &Arc<TlsTerms>) -> Result<TlsConnector, ConnectError> {
        // Nothing panics while this is held.
        let mut by_terms = self.by_terms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connector) = by_terms.get(terms) {
            return Ok(connector.clone());
        }
        let connector = set_up(terms, self.roots.clone())?;
        while by_terms.len() >= self.terms_max.max(1) {
            by_terms.pop_first();
        }
        by_terms.insert(terms.clone(), connector.clone());
        Ok(connector)
    }
}

fn client() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // These are TLS 1.2 and 1.3.
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}

fn set_up(terms: &Arc<TlsTerms>, roots: Arc<RootCertStore>) -> Result<TlsConnector, ConnectError> {
    if terms.verify == Verify::Pin && terms.pins.is_empty() {
        return Err(ConnectError::Pin("none is configured, and nobody else is to vouch for the relay".into()));
    }
    let fault = |error: &dyn std::fmt::Display| ConnectError::Tls(format!("it cannot be set up: {error}"));
    let builder = client().map_err(|error| fault(&error))?;
    let provider = builder.crypto_provider().clone();
    let verifier = TermsVerifier::new(terms.clone(), roots, provider).map_err(|error| fault(&error))?;
    let mut config = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    // A session that is resumed is not checked again, and certificates expire.
    config.resumption = Resumption::disabled();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Why a handshake failed.
fn connect_error(error: &io::Error) -> ConnectError {
    let Some(Error::InvalidCertificate(fault)) = error.get_ref().and_then(|error| error.downcast_ref()) else {
        return ConnectError::Tls(error.to_string());
    };
    match fault {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ConnectError::HostName(fault.to_string())
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => ConnectError::Expired(fault.to_string()),
        fault => match PinMismatch::of(fault) {
            Some(mismatch) => ConnectError::Pin(mismatch.to_string()),
            None => ConnectError::Tls(error.to_string()),
        },
    }
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
