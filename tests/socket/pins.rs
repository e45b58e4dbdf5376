//! Pinned keys. The fault that this is about: any certificate of the chain that a relay sent could satisfy a pin.

use std::collections::{BTreeMap, BTreeSet};

use rcgen::{CertificateParams, KeyPair};
use relaysync::native::{ConfigError, NativeConnector, Pins, SocketConfig, pin_of};
use relaysync::peer::{Pin, PinScope};
use relaysync::protocol::RelayUrl;
use relaysync::runtime::{ConnectError, Connector};
use rustls::pki_types::CertificateDer;

use super::peer::*;
use super::tls::{Authority, serve};

fn pin(certificate: &CertificateDer<'_>) -> Pin {
    pin_of(certificate).unwrap()
}

fn pins(keys: impl IntoIterator<Item = Pin>) -> Pins {
    Pins { keys: BTreeSet::from_iter(keys), ..Pins::default() }
}

/// A connector that trusts `authority`, if there is one.
fn connector(address: &str, pins: Pins, authority: Option<&Authority>) -> (RelayUrl, NativeConnector) {
    let url: RelayUrl = format!("wss://{address}").parse().unwrap();
    let ca_file = authority.map(|authority| authority.file.path().to_owned());
    let pins = BTreeMap::from([(url.clone(), pins)]);
    (url, NativeConnector::new(SocketConfig { ca_file, pins, ..SocketConfig::default() }).unwrap())
}

/// Connects to a relay with `chain`.
async fn connect(
    chain: &[CertificateDer<'static>],
    key: &KeyPair,
    pins: Pins,
    authority: Option<&Authority>,
) -> Result<(), ConnectError> {
    let address = serve(chain.to_vec(), key).await;
    let (url, connector) = connector(&address, pins, authority);
    let mut dial = dial(&address);
    dial.url = url;
    within(connector.connect(&dial)).await.map(|_| ())
}

#[track_caller]
fn is_mismatch(result: &Result<(), ConnectError>, found: Pin) {
    let named = matches!(result, Err(error @ ConnectError::Pin(_)) if error.to_string().contains(&found.to_string()));
    assert!(named, "{result:?} does not name {found}");
}

#[tokio::test]
async fn the_pinned_key_of_the_relay_is_accepted_and_another_refused_by_name() {
    let authority = Authority::new();
    let (leaf, key) = authority.issue("localhost");
    let (other, _) = authority.issue("localhost");
    let chain = [leaf.clone()];
    assert_eq!(connect(&chain, &key, pins([pin(&leaf)]), Some(&authority)).await, Ok(()));
    is_mismatch(&connect(&chain, &key, pins([pin(&other)]), Some(&authority)).await, pin(&leaf));
    // A right pin is not enough where authorities count, too.
    let unknown = connect(&chain, &key, pins([pin(&leaf)]), None).await;
    assert!(matches!(unknown, Err(ConnectError::Tls(_))), "{unknown:?}");
    let (elsewhere, key) = authority.issue("relay.example");
    let named = connect(std::slice::from_ref(&elsewhere), &key, pins([pin(&elsewhere)]), Some(&authority)).await;
    assert!(matches!(named, Err(ConnectError::Tls(_))), "{named:?}");
}

#[tokio::test]
async fn the_key_of_an_authority_counts_only_if_the_operator_says_so() {
    let authority = Authority::new();
    let (leaf, key) = authority.issue("localhost");
    let root = authority.certificate();
    for chain in [vec![leaf.clone(), root.clone()], vec![leaf.clone()]] {
        let by_root = pins([pin(&root)]);
        is_mismatch(&connect(&chain, &key, by_root.clone(), Some(&authority)).await, pin(&leaf));
        let by_chain = Pins { scope: PinScope::Chain, ..by_root };
        assert_eq!(connect(&chain, &key, by_chain, Some(&authority)).await, Ok(()), "{} sent", chain.len());
    }
}

/// A relay may send along whatever certificates it likes.
#[tokio::test]
async fn a_pinned_authority_that_did_not_issue_the_certificate_does_not_count() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (leaf, key) = authority.issue("localhost");
    let chain = [leaf.clone(), stranger.certificate()];
    for alone in [false, true] {
        let by_stranger = Pins { scope: PinScope::Chain, alone, ..pins([pin(&stranger.certificate())]) };
        is_mismatch(&connect(&chain, &key, by_stranger, Some(&authority)).await, pin(&leaf));
    }
}

#[tokio::test]
async fn two_pins_bridge_the_change_of_a_key() {
    let authority = Authority::new();
    let ((old, old_key), (new, new_key)) = (authority.issue("localhost"), authority.issue("localhost"));
    let both = pins([pin(&old), pin(&new)]);
    for (leaf, key) in [(old, old_key), (new, new_key)] {
        assert_eq!(connect(&[leaf], &key, both.clone(), Some(&authority)).await, Ok(()));
    }
}

#[tokio::test]
async fn a_certificate_that_its_owner_signed_is_accepted_by_its_pin_alone() {
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["anything.example".into()]).unwrap().self_signed(&key).unwrap();
    let chain = [leaf.der().clone()];
    let alone = Pins { alone: true, ..pins([pin(leaf.der())]) };
    assert_eq!(connect(&chain, &key, alone.clone(), None).await, Ok(()));
    let checked = connect(&chain, &key, Pins { alone: false, ..alone.clone() }, None).await;
    assert!(matches!(checked, Err(ConnectError::Tls(_))), "{checked:?}");
    let impostor = KeyPair::generate().unwrap();
    let forged = CertificateParams::new(vec!["anything.example".into()]).unwrap().self_signed(&impostor).unwrap();
    is_mismatch(&connect(&[forged.der().clone()], &impostor, alone, None).await, pin(forged.der()));
    // An authority of one's own that is pinned needs no place among the known ones either.
    let authority = Authority::new();
    let (leaf, key) = authority.issue("localhost");
    let own = Pins { alone: true, scope: PinScope::Chain, ..pins([pin(&authority.certificate())]) };
    assert_eq!(connect(&[leaf, authority.certificate()], &key, own, None).await, Ok(()));
}

#[tokio::test]
async fn the_request_for_relay_information_is_held_to_the_pins_too() {
    let authority = Authority::new();
    let (leaf, key) = authority.issue("localhost");
    let (other, _) = authority.issue("localhost");
    for (pinned, accepted) in [(&leaf, true), (&other, false)] {
        let address = serve(vec![leaf.clone()], &key).await;
        let (url, connector) = connector(&address, pins([pin(pinned)]), Some(&authority));
        let mut dial = dial(&address);
        dial.url = url;
        let result = within(connector.relay_info(&dial)).await;
        assert_eq!(result.is_ok(), accepted, "{result:?}");
        assert!(accepted || matches!(result, Err(ConnectError::Pin(_))), "{result:?}");
    }
}

#[tokio::test]
async fn pins_that_could_never_be_checked_are_an_error() {
    let authority = Authority::new();
    let fault = |url: &str, pins: Pins| -> ConfigError {
        let pins = BTreeMap::from([(url.parse().unwrap(), pins)]);
        let Err(error) = NativeConnector::new(SocketConfig { pins, ..SocketConfig::default() }) else {
            panic!("accepted")
        };
        error
    };
    let plain = fault("ws://relay.example", pins([pin(&authority.certificate())]));
    assert!(plain.to_string().contains("not encrypted"), "{plain}");
    let none = fault("wss://relay.example", pins([]));
    assert!(none.to_string().contains("there are none"), "{none}");
}
