//! TLS with an authority of our own: trusted when configured, for the right host, and only then.

use std::io::ErrorKind;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use relaysync::native::{NativeConnector, SocketConfig};
use relaysync::runtime::{ConnectError, Connector};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::peer::*;

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// Its certificate as PEM.
    pub(crate) file: tempfile::NamedTempFile,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::like(|_| {})
    }

    /// One whose certificate is changed before it is signed.
    pub(crate) fn like(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        change(&mut params);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), issuer.pem()).unwrap();
        Self { issuer, file }
    }

    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// A certificate for `name`, and its key.
    pub(crate) fn issue(&self, name: &str) -> (CertificateDer<'static>, KeyPair) {
        self.issue_like(name, |_| {})
    }

    /// The same, changed before it is signed.
    pub(crate) fn issue_like(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> (CertificateDer<'static>, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.into()]).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.der().clone(), key)
    }

    /// A relay whose certificate is for `name`.
    async fn relay(&self, name: &str) -> String {
        let (certificate, key) = self.issue(name);
        serve(vec![certificate], &key).await
    }

    async fn connect(&self, address: &str, trusted: bool) -> Result<Vec<String>, ConnectError> {
        let ca_file = trusted.then(|| self.file.path().to_owned());
        let connector = NativeConnector::new(SocketConfig { ca_file, ..SocketConfig::default() }).unwrap();
        let mut dial = dial(address);
        dial.url = format!("wss://{address}").parse().unwrap();
        let (mut sender, mut receiver) = within(connector.connect(&dial)).await?;
        relaysync::runtime::FrameSender::try_send(&mut sender, "[\"echo\"]".into()).unwrap();
        Ok(drain(&mut receiver).await.0)
    }
}

/// A relay with these certificates: sends one frame and repeats one, or answers a request for its information.
pub(crate) async fn serve(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> String {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let server = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let address = listen(move |socket| async move {
        // A client that does not trust us ends the handshake.
        let Ok(mut socket) = acceptor.accept(socket).await else { return };
        // One that is satisfied already does not wait for the end.
        if let Err(error) = answer(&mut socket).await {
            assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
        }
    })
    .await;
    address.replace("127.0.0.1", "localhost")
}

async fn answer(socket: &mut TlsStream<TcpStream>) -> std::io::Result<()> {
    let head = read_head(socket).await;
    if head.contains("application/nostr+json") {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await?;
    } else {
        answer_upgrade(socket, &head).await;
        socket.write_all(&frame(FIN | TEXT, b"[\"NOTICE\",\"secret\"]")).await?;
        let Ok((_, payload)) = read_frame(socket).await else { return Ok(()) };
        socket.write_all(&frame(FIN | TEXT, &payload)).await?;
    }
    socket.shutdown().await
}

#[tokio::test]
async fn an_authority_of_the_configuration_is_trusted() {
    let authority = Authority::new();
    let address = authority.relay("localhost").await;
    let frames = authority.connect(&address, true).await.unwrap();
    assert_eq!(frames, ["[\"NOTICE\",\"secret\"]", "[\"echo\"]"]);
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let authority = Authority::new();
    let address = authority.relay("localhost").await;
    let error = authority.connect(&address, false).await.unwrap_err();
    assert!(matches!(&error, ConnectError::Tls(detail) if detail.contains("UnknownIssuer")), "{error:?}");
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let authority = Authority::new();
    let address = authority.relay("relay.example").await;
    let error = authority.connect(&address, true).await.unwrap_err();
    assert!(matches!(&error, ConnectError::HostName(detail) if detail.contains("localhost")), "{error:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_named() {
    let address = listen(|mut socket| async move {
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        hold(socket).await;
    })
    .await;
    let error = Authority::new().connect(&address, true).await.unwrap_err();
    assert!(matches!(error, ConnectError::Tls(_)), "{error:?}");
}

/// The versions that a client offers (RFC 8446, 4.2.1), by its first record.
fn offered_versions(hello: &[u8]) -> Vec<u16> {
    let mut rest = hello;
    let mut take = |bytes: usize| {
        let (taken, left) = rest.split_at(bytes);
        rest = left;
        taken.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
    };
    // Heads of record and message, version, random; then session, cipher suites and compression, each with its length.
    take(5 + 4 + 2 + 32);
    for length_bytes in [1, 2, 1] {
        let length = take(length_bytes);
        take(length);
    }
    let mut extensions = take(2);
    while extensions > 0 {
        let (kind, length) = (take(2), take(2));
        extensions -= 4 + length;
        if kind == 43 {
            let listed = take(1) / 2;
            return (0..listed).map(|_| take(2) as u16).collect();
        }
        take(length);
    }
    Vec::new()
}

#[tokio::test]
async fn only_tls_1_2_and_1_3_are_spoken() {
    // A server hello of TLS 1.1: head of the record, head of the message, version, random, no session, a cipher suite.
    let mut old = vec![22, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2];
    old.extend([7; 32]);
    old.extend([0, 0, 0x2f, 0]);
    let (hellos, mut hello) = tokio::sync::mpsc::unbounded_channel();
    let address = listen(move |mut socket| async move {
        let mut record = vec![0; 5];
        socket.read_exact(&mut record).await.unwrap();
        let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
        record.resize(5 + length, 0);
        socket.read_exact(&mut record[5..]).await.unwrap();
        hellos.send(record).unwrap();
        socket.write_all(&old).await.unwrap();
        hold(socket).await;
    })
    .await;
    let error = Authority::new().connect(&address, true).await.unwrap_err();
    assert!(matches!(error, ConnectError::Tls(_)), "{error:?}");
    let mut versions = offered_versions(&hello.recv().await.unwrap());
    versions.sort_unstable();
    assert_eq!(versions, [0x0303, 0x0304]);
}

#[tokio::test]
async fn a_file_without_certificates_is_an_error() {
    for (contents, word) in [(Some("nothing"), "no certificate"), (None, "No such file")] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        if let Some(contents) = contents {
            std::fs::write(&path, contents).unwrap();
        }
        let config = SocketConfig { ca_file: Some(path), ..SocketConfig::default() };
        let Err(error) = NativeConnector::new(config) else { panic!("accepted") };
        assert!(error.to_string().contains(word), "{error}");
    }
}
