//! Certificates of daemons, in files.

use std::path::PathBuf;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use relaysync::native::pin_of;
use relaysync::peer::Pin;

/// A certificate that its owner has signed for `localhost`, and its key, as PEM files in a directory of their own.
pub(crate) struct Certificate {
    directory: tempfile::TempDir,
}

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dates {
    Now,
    Past,
}

impl Certificate {
    pub(crate) fn new(dates: Dates) -> (Self, Pin) {
        let certificate = Self { directory: tempfile::tempdir().unwrap() };
        let pin = certificate.renew(dates);
        (certificate, pin)
    }

    /// Puts another one, with another key, in its place; gives the pin.
    pub(crate) fn renew(&self, dates: Dates) -> Pin {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        if dates == Dates::Past {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let signed = params.self_signed(&key).unwrap();
        std::fs::write(self.cert_file(), signed.pem()).unwrap();
        std::fs::write(self.key_file(), key.serialize_pem()).unwrap();
        pin_of(signed.der()).unwrap()
    }

    pub(crate) fn cert_file(&self) -> PathBuf {
        self.directory.path().join("cert.pem")
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.directory.path().join("key.pem")
    }
}
