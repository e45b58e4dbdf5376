//! What a relay's certificate is held to, beside or instead of what certificate authorities say.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
    client::VerifierBuilderError,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::peer::{Pin, PinError, PinScope, TlsTerms, Verify};

/// The pin of a certificate's key.
///
/// # Errors
/// `certificate` is no DER-encoded X.509 certificate of version 3.
pub fn pin_of(certificate: &CertificateDer<'_>) -> Result<Pin, PinError> {
    let parsed = ParsedCertificate::try_from(certificate).map_err(|error| PinError { reason: error.to_string() })?;
    Ok(Pin::of_key(&parsed.subject_public_key_info()))
}

/// The relay has proven itself by a key that is not pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PinMismatch {
    found: Pin,
}

impl fmt::Display for PinMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the relay's key has the pin {}, which is not among those configured", self.found)
    }
}

impl std::error::Error for PinMismatch {}

impl PinMismatch {
    /// The mismatch, if that is what is wrong with a certificate.
    pub(super) fn of(error: &CertificateError) -> Option<Self> {
        match error {
            CertificateError::Other(OtherError(inner)) => inner.downcast_ref().copied(),
            _ => None,
        }
    }
}

/// Checks certificates by the terms of one relay: host name and dates in any case, known authorities and pins as they
/// say.
#[derive(Debug)]
pub(super) struct TermsVerifier {
    terms: Arc<TlsTerms>,
    roots: Arc<RootCertStore>,
    authorities: Arc<WebPkiServerVerifier>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl TermsVerifier {
    pub(super) fn new(
        terms: Arc<TlsTerms>,
        roots: Arc<RootCertStore>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let algorithms = provider.signature_verification_algorithms;
        let authorities = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider).build()?;
        Ok(Self { terms, roots, authorities, algorithms })
    }

    /// Does the way from the end entity to an authority lead by a pinned one?
    fn is_issued_by_pinned(
        &self,
        end_entity: &ParsedCertificate<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> bool {
        // Only what is pinned is trusted here, so every way that is found ends at a pinned key.
        let mut pinned = RootCertStore::empty();
        let sent = others.iter().filter(|other| pin_of(other).is_ok_and(|pin| self.terms.pins.contains(&pin)));
        pinned.add_parsable_certificates(sent.map(|certificate| certificate.clone().into_owned()));
        let known = self.roots.roots.iter();
        let is_pinned = |key: &[u8]| self.terms.pins.contains(&Pin::of_key(&sequence(key)));
        pinned.roots.extend(known.filter(|anchor| is_pinned(&anchor.subject_public_key_info)).cloned());
        !pinned.is_empty()
            && verify_server_cert_signed_by_trust_anchor(end_entity, &pinned, others, now, self.algorithms.all).is_ok()
    }
}

impl ServerCertVerifier for TermsVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        verify_server_name(&parsed, server_name)?;
        check_dates(end_entity, now)?;
        if self.terms.verify == Verify::Full {
            self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        }
        let found = Pin::of_key(&parsed.subject_public_key_info());
        let is_pinned = match (self.terms.verify, self.terms.pin_scope) {
            // Nothing is pinned: then authorities are enough.
            (Verify::Full, _) if self.terms.pins.is_empty() => true,
            _ if self.terms.pins.contains(&found) => true,
            (_, PinScope::Chain) => self.is_issued_by_pinned(&parsed, intermediates, now),
            (_, PinScope::EndEntity) => false,
        };
        match is_pinned {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::Other(OtherError(Arc::new(PinMismatch { found }))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Is the certificate valid at this time? Who trusts a key without asking an authority still has to look.
fn check_dates(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), CertificateError> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let validity = parsed.validity();
    let (not_before, not_after) = (unix_time(validity.not_before), unix_time(validity.not_after));
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before });
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after });
    }
    Ok(())
}

/// The same moment; what is dated before 1970 is as if dated then.
fn unix_time(time: ASN1Time) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(time.timestamp().try_into().unwrap_or_default()))
}

/// A DER SEQUENCE of this content: trust anchors hold their keys without the head.
fn sequence(content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let mut der = vec![0x30];
    match length {
        [] => der.push(0),
        [short] if *short < 0x80 => der.push(*short),
        long => {
            der.push(0x80 | long.len() as u8);
            der.extend_from_slice(long);
        }
    }
    der.extend_from_slice(content);
    der
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_as_der_has_them() {
        for (length, head) in
            [(0, &[0x30, 0][..]), (127, &[0x30, 127]), (128, &[0x30, 0x81, 128]), (294, &[0x30, 0x82, 1, 38])]
        {
            assert!(sequence(&vec![7; length]).starts_with(head), "{length}");
        }
    }
}
