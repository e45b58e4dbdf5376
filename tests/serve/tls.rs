//! The relay service by `wss`, for our own client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use relaysync::native::serve::{RelayService, ServiceConfig, TlsFiles};
use relaysync::native::{NativeConnector, NativeReceiver, NativeSender, SocketConfig, pin_of};
use relaysync::peer::{Pin, TlsTerms, Verify};
use relaysync::protocol::message::client;
use relaysync::protocol::{RelayInfo, RelayUrl};
use relaysync::runtime::{CloseReason, ConnectError, Connector, Dial, Frame, FrameReceiver, FrameSender};
use relaysync::serve::ServeConfig;
use relaysync::store::MemoryStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{ANY_PORT, http, patiently, service_with};
use crate::events::notes;
use crate::world::{ids, story};

/// A certificate that its owner has signed, and its key, in files.
struct Certificate {
    directory: tempfile::TempDir,
    pin: Pin,
}

impl Certificate {
    fn new() -> Self {
        let certificate = Self { directory: tempfile::tempdir().unwrap(), pin: Pin::of_key(b"") };
        let pin = certificate.renew();
        Self { pin, ..certificate }
    }

    /// Writes another one to the same files; gives its pin.
    fn renew(&self) -> Pin {
        let key = KeyPair::generate().unwrap();
        let signed = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap().self_signed(&key).unwrap();
        let TlsFiles { cert_file, key_file } = self.files();
        std::fs::write(cert_file, signed.pem()).unwrap();
        std::fs::write(key_file, key.serialize_pem()).unwrap();
        pin_of(signed.der()).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn files(&self) -> TlsFiles {
        TlsFiles { cert_file: self.path("cert.pem"), key_file: self.path("key.pem") }
    }

    fn config(&self) -> ServiceConfig {
        ServiceConfig { tls: Some(self.files()), ..ServiceConfig::default() }
    }
}

fn dial(url: &RelayUrl, pin: Pin) -> Dial {
    let terms = TlsTerms { pins: [pin].into(), verify: Verify::Pin, ..TlsTerms::default() };
    Dial { url: url.clone(), frame_bytes_max: 1 << 20, public_only: false, tls: Some(Arc::new(terms)) }
}

fn connector() -> NativeConnector {
    NativeConnector::new(SocketConfig::default()).unwrap()
}

async fn connect(url: &RelayUrl, pin: Pin) -> Result<(NativeSender, NativeReceiver), ConnectError> {
    patiently(connector().connect(&dial(url, pin))).await
}

/// Frames up to the first that begins so.
async fn hear_until(receiver: &mut NativeReceiver, beginning: &str) -> Vec<String> {
    let mut frames: Vec<Frame> = Vec::new();
    while !frames.last().is_some_and(|frame| frame.as_str().starts_with(beginning)) {
        patiently(receiver.receive(&mut frames)).await.unwrap();
    }
    frames.iter().map(|frame| frame.as_str().to_owned()).collect()
}

#[tokio::test]
async fn events_and_information_come_by_wss() {
    let certificate = Certificate::new();
    let events = notes(1..=300);
    let service = service_with(certificate.config(), &events).await;
    let url = service.url();
    assert!(url.as_str().starts_with("wss://127.0.0.1:"), "{url}");
    let (mut sender, mut receiver) = connect(&url, certificate.pin).await.unwrap();
    sender.try_send(r#"["REQ","page",{"limit":1000}]"#.into()).unwrap();
    let mut page = story(&hear_until(&mut receiver, "[\"EOSE\"").await);
    assert_eq!(page.pop().as_deref(), Some("EOSE"));
    assert_eq!(page, ids(events.iter().rev()));
    let event = notes([1_000]).remove(0);
    sender.try_send(client::event(event.json_str())).unwrap();
    let answers = hear_until(&mut receiver, "[\"OK\"").await;
    assert!(answers.last().unwrap().contains(",true,"), "{answers:?}");

    let info = patiently(connector().relay_info(&dial(&url, certificate.pin))).await.unwrap();
    assert_eq!(RelayInfo::parse(&info), Some(ServeConfig::default().relay_info()));

    service.shutdown().await;
    let end = patiently(async {
        loop {
            if let Err(reason) = receiver.receive(&mut Vec::new()).await {
                return reason;
            }
        }
    });
    let end = end.await;
    assert!(matches!(&end, CloseReason::Remote(words) if words.contains("1001")), "{end:?}");
}

#[tokio::test]
async fn who_comes_without_encryption_is_told_and_who_is_silent_is_not_waited_for() {
    let certificate = Certificate::new();
    let config = ServiceConfig { handshake_max: Duration::from_millis(200), handshakes_max: 1, ..certificate.config() };
    let service = service_with(config, &[]).await;
    let (head, body) = http(&service, "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(head.starts_with("http/1.1 400") && body.contains("wss://"), "{head} {body}");
    let plain: RelayUrl = service.url().as_str().replace("wss://", "ws://").parse().unwrap();
    let error = patiently(connector().connect(&Dial { tls: None, ..dial(&plain, certificate.pin) })).await.map(|_| ());
    assert!(matches!(&error, Err(ConnectError::Handshake(words)) if words.contains("400")), "{error:?}");
    for beginning in [&b""[..], &[22, 3, 1, 2]] {
        let mut socket = TcpStream::connect(service.local_addr()).await.unwrap();
        socket.write_all(beginning).await.unwrap();
        let mut answer = Vec::new();
        // Cut off, with or without a word of the system about it.
        let ended = patiently(socket.read_to_end(&mut answer)).await;
        assert!(answer.is_empty() || ended.is_err(), "{answer:?}");
    }
    service.shutdown().await;
}

#[tokio::test]
async fn more_handshakes_than_may_be_under_way_wait_for_their_turn() {
    let certificate = Certificate::new();
    let service = service_with(ServiceConfig { handshakes_max: 1, ..certificate.config() }, &[]).await;
    let url = service.url();
    let all = futures_util::future::join_all((0..20).map(|_| connect(&url, certificate.pin))).await;
    assert!(all.iter().all(Result::is_ok));
    service.shutdown().await;
}

#[tokio::test]
async fn a_certificate_is_changed_for_those_that_come_and_nobody_else() {
    let certificate = Certificate::new();
    let service = service_with(certificate.config(), &[]).await;
    let url = service.url();
    let (mut sender, mut receiver) = connect(&url, certificate.pin).await.unwrap();

    let renewed = certificate.renew();
    connect(&url, certificate.pin).await.expect("nothing was read again yet");
    assert_eq!(service.set_tls(&certificate.files()), Ok(true));
    let old = connect(&url, certificate.pin).await.map(|_| ());
    assert!(matches!(old, Err(ConnectError::Pin(_))), "{old:?}");
    connect(&url, renewed).await.expect("the new key is pinned");

    std::fs::write(certificate.path("key.pem"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let error = service.set_tls(&certificate.files()).unwrap_err();
    assert!(error.to_string().contains("key.pem"), "{error}");
    connect(&url, renewed).await.expect("nothing has changed");

    sender.try_send(r#"["COUNT","c",{}]"#.into()).unwrap();
    assert_eq!(hear_until(&mut receiver, "[\"COUNT\"").await, [r#"["COUNT","c",{"count":0}]"#]);
    service.shutdown().await;

    let plain = service_with(ServeConfig::default(), &[]).await;
    assert_eq!(plain.set_tls(&certificate.files()), Ok(false));
    plain.shutdown().await;
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let certificate = Certificate::new();
    let TlsFiles { cert_file, key_file } = certificate.files();
    let bind = async |cert_file: &Path, key_file: &Path| {
        let tls = Some(TlsFiles { cert_file: cert_file.to_owned(), key_file: key_file.to_owned() });
        let config = ServiceConfig { tls, ..ServiceConfig::default() };
        RelayService::bind(ANY_PORT, config, Arc::<MemoryStore>::default()).await.map(|_: RelayService| ())
    };
    let empty = certificate.path("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    let other = certificate.path("other.pem");
    std::fs::write(&other, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let none = certificate.path("none.pem");
    for (cert_file, key_file, words) in [
        (&none, &key_file, &["certificate file", "none.pem", "No such file"][..]),
        (&cert_file, &none, &["key file", "none.pem", "No such file"]),
        (&empty, &key_file, &["certificate file", "empty.pem", "no certificate in it"]),
        (&key_file, &key_file, &["certificate file", "key.pem", "no certificate in it"]),
        (&cert_file, &empty, &["key file", "empty.pem", "no key in it"]),
        (&cert_file, &other, &["cert.pem", "other.pem"]),
    ] {
        let error = bind(cert_file, key_file).await.unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    }
}
