//! Calls to a daemon, as its settings say.

use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use relaysync::native::daemon::Daemon;
use relaysync::native::settings::{Settings, Sources, load};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::world::{ADMIN, Answer, Call, STRANGER, Signature, body, public_key};

/// Settings of a daemon that is reached by `wss`, and that `admin` may govern.
fn settings(directory: &Path, admin: &str) -> Settings {
    let text = format!(
        "[store]\npath = '{0}/events.db'\n[control]\nadmins = ['{1}']\nurls = ['https://admin.example/']\n\
         [relay]\nlisten = '127.0.0.1:0'\nurls = ['wss://relay.example']\n\
         tls_cert_file = '{0}/cert.pem'\ntls_key_file = '{0}/key.pem'\n\
         [http]\nlisten = '127.0.0.1:0'\n[discovery]\nenabled = false\n",
        directory.display(),
        public_key(admin).to_hex(),
    );
    let sources = Sources { file: Some(("test.toml".to_owned(), text)), ..Sources::default() };
    load(&sources).unwrap_or_else(|mistakes| panic!("{mistakes}")).settings
}

/// A certificate that its owner has signed, in files.
fn certificate(directory: &Path) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let signed = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(directory.join("cert.pem"), signed.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), key.serialize_pem()).unwrap();
    signed.der().clone()
}

/// Sends `call` to the relay, by TLS.
async fn over_tls(call: &Call, daemon: &Daemon, certificate: &CertificateDer<'static>) -> Answer {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let url = daemon.relay_url().unwrap();
    let socket = TcpStream::connect((url.host(), url.port())).await.unwrap();
    let name = ServerName::try_from(url.host()).unwrap();
    call.over(TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap()).await
}

#[tokio::test]
async fn settings_say_who_governs_and_where() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let certificate = certificate(directory);
    let daemon = Daemon::start(settings(directory, ADMIN), None).await.unwrap();
    let (admin, relay) = (daemon.admin_addr().unwrap(), daemon.relay_url().unwrap());
    let text = body("getidentity", json!([]));
    let us = daemon.control().identity().get().unwrap().pubkey.to_hex();
    for url in [format!("http://{admin}/"), "https://admin.example".to_owned()] {
        let answer = Call::new(&text).signed(&Signature::of(&url, &text)).send(admin).await;
        assert_eq!(answer.result()["pubkey"], us, "{url}");
    }
    for url in [relay.to_string(), relay.as_str().replace("wss", "https"), "wss://relay.example".to_owned()] {
        let signature = Signature::of(&url, &text).with("at", "the relay");
        let answer = over_tls(&Call::new(&text).signed(&signature), &daemon, &certificate).await;
        assert_eq!(answer.result()["pubkey"], us, "{url}");
    }
    let plain = Signature::of(&relay.as_str().replace("wss", "http"), &text);
    over_tls(&Call::new(&text).signed(&plain), &daemon, &certificate).await.is_refused(401, "not where");

    // Another one governs from now on.
    assert_eq!(daemon.reload(&settings(directory, STRANGER)).await.changed, ["control.admins"]);
    let signature = Signature::of(&format!("http://{admin}/"), &text).with("after", "the reload");
    Call::new(&text).signed(&signature).send(admin).await.is_refused(403, "may not govern");
    let signature = Signature { secret: STRANGER, ..signature };
    Call::new(&text).signed(&signature).send(admin).await.result();
    assert!(daemon.shutdown().await);
    assert!(!directory.join("events.db.socket").exists());
}
