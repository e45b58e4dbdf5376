//! The terms of peers: pinned keys, host name, dates, encryption. The fault that this began with: any certificate of the
//! chain that a relay sent could satisfy a pin.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use relaysync::native::{NativeConnector, SocketConfig, pin_of};
use relaysync::peer::{Pin, PinScope, TlsMode, TlsTerms, Verify};
use relaysync::runtime::{ConnectError, Connector, Dial};
use rustls::pki_types::CertificateDer;

use super::peer::*;
use super::tls::{Authority, serve};

fn pin(certificate: &CertificateDer<'_>) -> Pin {
    pin_of(certificate).unwrap()
}

fn pins(pins: impl IntoIterator<Item = Pin>) -> TlsTerms {
    TlsTerms { pins: pins.into_iter().collect(), ..TlsTerms::default() }
}

/// By the pins, without an authority.
fn alone(keys: impl IntoIterator<Item = Pin>) -> TlsTerms {
    TlsTerms { verify: Verify::Pin, ..pins(keys) }
}

/// A connector that trusts `authority`, if there is one.
fn connector(authority: Option<&Authority>) -> NativeConnector {
    let ca_file = authority.map(|authority| authority.file.path().to_owned());
    NativeConnector::new(SocketConfig { ca_file, tls_terms_max: 1, ..SocketConfig::default() }).unwrap()
}

fn dial_on(terms: &TlsTerms, address: &str) -> Dial {
    let url = format!("wss://{address}").parse().unwrap();
    Dial { url, tls: Some(Arc::new(terms.clone())), ..dial(address) }
}

/// Connects to a relay with `chain`, by WebSocket and for its information: both go the same way.
async fn connect(
    chain: &[CertificateDer<'static>],
    key: &KeyPair,
    terms: &TlsTerms,
    authority: Option<&Authority>,
) -> Result<(), ConnectError> {
    let connector = connector(authority);
    let address = serve(chain.to_vec(), key).await;
    let socket = within(connector.connect(&dial_on(terms, &address))).await.map(|_| ());
    let address = serve(chain.to_vec(), key).await;
    let info = within(connector.relay_info(&dial_on(terms, &address))).await.map(|_| ());
    assert_eq!(info, socket);
    socket
}

#[track_caller]
fn is_mismatch(result: &Result<(), ConnectError>, found: Pin) {
    let named = matches!(result, Err(error @ ConnectError::Pin(_)) if error.to_string().contains(&found.to_string()));
    assert!(named, "{result:?} does not name {found}");
}

/// A certificate that its owner signed, and its key.
fn own(name: &str, change: impl FnOnce(&mut CertificateParams)) -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.into()]).unwrap();
    change(&mut params);
    (params.self_signed(&key).unwrap().der().clone(), key)
}

/// What is different about a certificate.
type Change = fn(&mut CertificateParams);

fn expired(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2001, 1, 1);
    params.not_after = date_time_ymd(2002, 1, 1);
}

fn early(params: &mut CertificateParams) {
    params.not_before = date_time_ymd(2999, 1, 1);
    params.not_after = date_time_ymd(3000, 1, 1);
}

#[tokio::test]
async fn the_pinned_key_of_the_relay_is_accepted_and_another_refused_by_name() {
    let authority = Authority::new();
    let (leaf, key) = authority.issue("localhost");
    let (other, _) = authority.issue("localhost");
    let chain = [leaf.clone()];
    assert_eq!(connect(&chain, &key, &pins([pin(&leaf)]), Some(&authority)).await, Ok(()));
    is_mismatch(&connect(&chain, &key, &pins([pin(&other)]), Some(&authority)).await, pin(&leaf));
    // A right pin is not enough where authorities count, too.
    let unknown = connect(&chain, &key, &pins([pin(&leaf)]), None).await;
    assert!(matches!(unknown, Err(ConnectError::Tls(_))), "{unknown:?}");
}

#[tokio::test]
async fn the_key_of_an_authority_counts_only_if_the_operator_says_so() {
    let authority = Authority::new();
    let (leaf, key) = authority.issue("localhost");
    let root = authority.certificate();
    for chain in [vec![leaf.clone(), root.clone()], vec![leaf.clone()]] {
        let by_root = pins([pin(&root)]);
        is_mismatch(&connect(&chain, &key, &by_root, Some(&authority)).await, pin(&leaf));
        let by_chain = TlsTerms { pin_scope: PinScope::Chain, ..by_root };
        assert_eq!(connect(&chain, &key, &by_chain, Some(&authority)).await, Ok(()), "{} sent", chain.len());
    }
}

/// A relay may send along whatever certificates it likes.
#[tokio::test]
async fn a_pinned_authority_that_did_not_issue_the_certificate_does_not_count() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (leaf, key) = authority.issue("localhost");
    let chain = [leaf.clone(), stranger.certificate()];
    for verify in [Verify::Full, Verify::Pin] {
        let by_stranger = TlsTerms { pin_scope: PinScope::Chain, verify, ..pins([pin(&stranger.certificate())]) };
        is_mismatch(&connect(&chain, &key, &by_stranger, Some(&authority)).await, pin(&leaf));
    }
}

#[tokio::test]
async fn two_pins_bridge_the_change_of_a_key() {
    let authority = Authority::new();
    let ((old, old_key), (new, new_key)) = (authority.issue("localhost"), authority.issue("localhost"));
    let both = pins([pin(&old), pin(&new)]);
    for (leaf, key) in [(old, old_key), (new, new_key)] {
        assert_eq!(connect(&[leaf], &key, &both, Some(&authority)).await, Ok(()));
    }
}

#[tokio::test]
async fn a_certificate_that_its_owner_signed_is_accepted_by_its_pin_alone() {
    let (leaf, key) = own("localhost", |_| {});
    let chain = [leaf.clone()];
    assert_eq!(connect(&chain, &key, &alone([pin(&leaf)]), None).await, Ok(()));
    let checked = connect(&chain, &key, &pins([pin(&leaf)]), None).await;
    assert!(matches!(checked, Err(ConnectError::Tls(_))), "{checked:?}");
    let (forged, impostor) = own("localhost", |_| {});
    is_mismatch(&connect(std::slice::from_ref(&forged), &impostor, &alone([pin(&leaf)]), None).await, pin(&forged));
    let none = connect(&chain, &key, &alone([]), None).await;
    assert!(matches!(none, Err(ConnectError::Pin(_))), "{none:?}");
    // An authority of one's own that is pinned needs no place among the known ones either.
    let authority = Authority::new();
    let (leaf, key) = authority.issue("localhost");
    let by_own = TlsTerms { pin_scope: PinScope::Chain, ..alone([pin(&authority.certificate())]) };
    assert_eq!(connect(&[leaf, authority.certificate()], &key, &by_own, None).await, Ok(()));
}

/// Whoever vouches for it: a certificate is for one host, and for its time.
#[tokio::test]
async fn the_host_name_and_the_dates_count_whoever_vouches() {
    let authority = Authority::new();
    let others: [(&str, Change); 3] = [("relay.example", |_| {}), ("localhost", expired), ("localhost", early)];
    for (name, change) in others {
        let (issued, issued_key) = authority.issue_like(name, change);
        let (signed, signed_key) = own(name, change);
        let by_chain = TlsTerms { pin_scope: PinScope::Chain, ..alone([pin(&authority.certificate())]) };
        let attempts = [
            (&issued, &issued_key, pins([])),
            (&issued, &issued_key, pins([pin(&issued)])),
            (&issued, &issued_key, alone([pin(&issued)])),
            (&issued, &issued_key, by_chain),
            (&signed, &signed_key, alone([pin(&signed)])),
        ];
        for (leaf, key, terms) in attempts {
            let chain = [leaf.clone(), authority.certificate()];
            let result = connect(&chain, key, &terms, Some(&authority)).await;
            let is_right = match name {
                "localhost" => matches!(result, Err(ConnectError::Expired(_))),
                _ => matches!(&result, Err(ConnectError::HostName(words)) if words.contains("localhost")),
            };
            assert!(is_right, "{name}: {terms:?}: {result:?}");
        }
    }
}

/// What an anchor of trust says of its own dates does not count (RFC 5280, 6.1.1 d).
#[tokio::test]
async fn an_authority_that_is_trusted_by_configuration_does_not_expire() {
    let authority = Authority::like(expired);
    let (leaf, key) = authority.issue("localhost");
    let result = connect(&[leaf.clone(), authority.certificate()], &key, &pins([pin(&leaf)]), Some(&authority)).await;
    assert_eq!(result, Ok(()));
    let chain = TlsTerms { pin_scope: PinScope::Chain, ..alone([pin(&authority.certificate())]) };
    assert_eq!(connect(&[leaf, authority.certificate()], &key, &chain, None).await, Ok(()));
}

#[tokio::test]
async fn another_host_name_may_be_asked_for() {
    let authority = Authority::new();
    let (leaf, key) = authority.issue("relay.example");
    let named = TlsTerms { hostname: Some("relay.example".into()), ..pins([pin(&leaf)]) };
    assert_eq!(connect(std::slice::from_ref(&leaf), &key, &named, Some(&authority)).await, Ok(()));
    for hostname in ["other.example", "no host name"] {
        let other = TlsTerms { hostname: Some(hostname.into()), ..named.clone() };
        let result = connect(std::slice::from_ref(&leaf), &key, &other, Some(&authority)).await;
        assert!(matches!(&result, Err(ConnectError::HostName(words)) if words.contains(hostname)), "{result:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_where_encryption_is_required_and_there_is_none() {
    // Nobody can listen there: an attempt would be refused, or the name not be found.
    let connector = connector(None);
    for address in ["127.0.0.1:1", "no-such-host.invalid"] {
        let mut dial = Dial { tls: Some(Arc::default()), ..dial(address) };
        let socket = within(connector.connect(&dial)).await.map(|_| ());
        let info = within(connector.relay_info(&dial)).await.map(|_| ());
        assert!(matches!(&socket, Err(ConnectError::Unencrypted(url)) if url.contains(address)), "{socket:?}");
        assert_eq!(info, socket);
        dial.tls = Some(Arc::new(TlsTerms { mode: TlsMode::Disabled, ..TlsTerms::default() }));
        let tried = within(connector.connect(&dial)).await.map(|_| ());
        assert!(!matches!(tried, Ok(()) | Err(ConnectError::Unencrypted(_))), "{tried:?}");
    }
}

/// A session that was begun under other terms, or an hour ago, proves nothing now.
#[tokio::test]
async fn every_connection_is_checked_by_the_terms_it_is_made_on() {
    let authority = Authority::new();
    let (leaf, key) = authority.issue("localhost");
    let (other, _) = authority.issue("localhost");
    let connector = connector(Some(&authority));
    for (pinned, accepted) in [(&leaf, true), (&other, false), (&leaf, true), (&leaf, true), (&other, false)] {
        let address = serve(vec![leaf.clone()], &key).await;
        let result = within(connector.relay_info(&dial_on(&pins([pin(pinned)]), &address))).await;
        assert_eq!(result.is_ok(), accepted, "{result:?}");
    }
}
