//! What changes while the daemon runs.

use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use relaysync::discover::Accept;
use relaysync::native::{NativeConnector, SocketConfig, pin_of};
use relaysync::peer::{Pin, TlsTerms, Verify};
use relaysync::protocol::RelayUrl;
use relaysync::runtime::{Connector, Dial};

use crate::world::{Client, SERVICE, announcement, embedded, holds, patiently, relay, settings, start};

#[tokio::test]
async fn rules_and_bootstrap_relays_change_at_once_and_the_rest_with_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, stranger) = (announcement(1, "ours", &[SERVICE]), announcement(2, "other", &["wss://a.example"]));
    let (first, second) = (relay(from_ref(&ours)).await, relay(from_ref(&stranger)).await);
    let settings = embedded(directory.path(), &[first.url()]);
    let daemon = start(settings.clone()).await;
    let url = daemon.relay_url().unwrap();
    holds(&url, &[&ours]).await;

    let mut changed = settings.clone();
    changed.discovery.config.accept = Accept::All;
    changed.discovery.config.bootstrap.push(second.url());
    changed.relay.service.clients_max = 7;
    changed.discovery.enabled = false;
    let reloaded = daemon.reload(&changed).await;
    assert_eq!(reloaded.changed, ["discovery.bootstrap", "discovery.accept"]);
    assert_eq!(reloaded.waiting, ["discovery.enabled", "relay_limits.clients_max"]);
    holds(&url, &[&ours, &stranger]).await;

    let again = daemon.reload(&changed).await;
    assert!(again.changed.is_empty());
    assert_eq!(again.waiting, reloaded.waiting, "they still wait");

    changed.discovery.config.block_authors.insert([9; 32]);
    changed.discovery.config.accept = Accept::Listed;
    daemon.reload(&changed).await;
    let third = announcement(3, "third", &["wss://a.example"]);
    let words = Client::connect(&url).await.publish(&third).await;
    assert!(words.starts_with("blocked: "), "{words}");
    assert!(daemon.shutdown().await);
}

/// Writes a certificate that its owner has signed, and its key; gives its pin.
fn certificate(directory: &Path) -> Pin {
    let key = KeyPair::generate().unwrap();
    let signed = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(directory.join("cert.pem"), signed.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), key.serialize_pem()).unwrap();
    pin_of(signed.der()).unwrap()
}

async fn proves_itself_by(url: &RelayUrl, pin: Pin) -> bool {
    let terms = TlsTerms { pins: [pin].into(), verify: Verify::Pin, ..TlsTerms::default() };
    let dial = Dial { url: url.clone(), frame_bytes_max: 1 << 20, public_only: false, tls: Some(Arc::new(terms)) };
    let connector = NativeConnector::new(SocketConfig::default()).unwrap();
    patiently(connector.relay_info(&dial)).await.is_ok()
}

#[tokio::test]
async fn the_certificate_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let first = certificate(path);
    let lines = format!(
        "[relay]\nurls = ['{SERVICE}']\nlisten = '127.0.0.1:0'\ntls_cert_file = '{0}/cert.pem'\ntls_key_file = '{0}/key.pem'\n",
        path.display()
    );
    let mut settings = settings(path, &lines);
    settings.discovery.enabled = false;
    let daemon = start(settings.clone()).await;
    let url = daemon.relay_url().unwrap();
    assert!(url.as_str().starts_with("wss://") && proves_itself_by(&url, first).await);
    let second = certificate(path);
    assert_eq!(daemon.reload(&settings).await, Default::default());
    assert!(proves_itself_by(&url, second).await && !proves_itself_by(&url, first).await);

    std::fs::write(path.join("key.pem"), "").unwrap();
    let reloaded = daemon.reload(&settings).await;
    assert!(reloaded.faults.len() == 1 && reloaded.faults[0].contains("key.pem"), "{reloaded:?}");
    assert!(proves_itself_by(&url, second).await);

    let mut without = settings.clone();
    (without.relay.tls_cert_file, without.relay.tls_key_file) = (None, None);
    let reloaded = daemon.reload(&without).await;
    assert_eq!(reloaded.waiting, ["relay.tls_cert_file", "relay.tls_key_file"]);
    assert!(reloaded.faults.is_empty() && proves_itself_by(&url, second).await, "{reloaded:?}");
    assert!(daemon.shutdown().await);
}
