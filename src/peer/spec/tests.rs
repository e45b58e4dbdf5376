use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::peer::Rule;

const KEY: &str = "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4";
const PIN: &str = "sha256/rHH8tQB1jOfXbwXxBPjqW6dmzP5dSxnZ6EWJFQ1kWWA=";

/// The smallest specification, with `more` fields in front.
fn minimal(more: &str) -> String {
    format!(
        r#"{{{more}"id":"a","url":"wss://a.example","auth_pubkey":"{KEY}","filters":[{{"kinds":[5000]}}],
            "tls":{{"pins":[{{"type":"spki_sha256","value":"{PIN}"}}]}}}}"#
    )
}

/// The mistakes of a specification, each as its place and the words.
fn mistakes(json: &str) -> Vec<(String, String)> {
    let mistakes = PeerSpec::parse(json).expect_err(json);
    mistakes.0.into_iter().map(|mistake| (mistake.path, mistake.reason)).collect()
}

fn places(json: &str) -> Vec<String> {
    mistakes(json).into_iter().map(|(path, _)| path).collect()
}

#[test]
fn what_is_left_out_is_as_usual() {
    let spec = PeerSpec::parse(&minimal("")).unwrap();
    assert!(spec.enabled);
    assert_eq!(spec.auth_pubkey_field, IdentityField::OwnKey);
    assert_eq!((spec.direction, spec.mode, spec.overlap_secs), (Direction::Down, SyncMode::Auto, 300));
    assert_eq!((spec.auth, spec.metadata.as_str()), (PeerAuth::Nip42, "{}"));
    let tls = TlsTerms { pins: [PIN.parse().unwrap()].into(), ..TlsTerms::default() };
    assert_eq!((&*spec.tls, tls.mode), (&tls, TlsMode::Required));
    assert!(!PeerSpec::parse(&minimal(r#""enabled?":false,"#)).unwrap().enabled);
}

#[test]
fn the_engine_is_told_the_same() {
    let spec = PeerSpec::parse(&minimal(r#""mode":"req_stream","direction":"both","auth":{"type":"none"},"#)).unwrap();
    let Peering { terms, filters, options } = spec.peering();
    assert_eq!((&*terms.id, terms.principal, terms.overlap_secs), ("a", spec.auth_pubkey, 300));
    assert!(!terms.authenticates && options.live && options.trusted);
    assert_eq!((options.direction, options.method), (Direction::Both, Some(Method::Req)));
    assert_eq!(filters, spec.filters);
}

#[test]
fn all_mistakes_are_told_at_once_each_with_its_place_and_what_to_write() {
    let json = r##"{
        "id": "a b", "url": "https://a.example", "enabled": "yes", "enabled?": true, "auth_pubkey": "npub1x",
        "auth_pubkey_field": "own", "direction": "sideways", "mode": ":req_stream",
        "filters": [{"kinds": [5000], "limit": 10}, {"since": 5, "until": 4}, {"kinds": ["x"], "#r": [], "text": 1}, 7],
        "overlap_window_seconds": -1, "auth": {"type": "basic", "user": "x"},
        "tls": {"mode": "maybe", "hostname": "a b", "verify": "all", "pin_scope": 1, "sni": true,
                "pins": [{"type": "sha1", "value": "x"}, {"type": "spki_sha256", "value": "x"}, {"value": "x"}, 1]},
        "metadata": [], "color": "red"
    }"##;
    let mistakes = mistakes(json);
    let places: Vec<&str> = mistakes.iter().map(|(path, _)| path.as_str()).collect();
    let expected = [
        "id",
        "url",
        "enabled",
        "auth_pubkey",
        "auth_pubkey_field",
        "direction",
        "mode",
        "filters[0].limit",
        "filters[1]",
        "filters[2].#r",
        "filters[2].kinds",
        "filters[2].text",
        "filters[3]",
        "overlap_window_seconds",
        "auth.type",
        "auth.user",
        "tls.mode",
        "tls.hostname",
        "tls.pins[0].type",
        "tls.pins[1].value",
        "tls.pins[2].type",
        "tls.pins[3]",
        "tls.pin_scope",
        "tls.verify",
        "tls.sni",
        "metadata",
        "color",
    ];
    assert_eq!(places, expected);
    for (path, reason) in &mistakes {
        let says_what_to_do =
            ["write ", "leave ", "known are", "selects nothing"].iter().any(|words| reason.contains(words));
        assert!(says_what_to_do, "{path}: {reason}");
    }
}

#[test]
fn what_must_be_there_is_asked_for() {
    assert_eq!(places("{}"), ["id", "url", "auth_pubkey", "filters", "tls"]);
    for (json, place) in [("", ""), ("[]", ""), ("null", ""), ("{\"id\":", ""), (&minimal(r#""id":"b","#), "id")] {
        assert_eq!(places(json), [place], "{json}");
    }
    let both = minimal(r#""enabled":true,"enabled?":true,"#);
    assert_eq!(places(&both), ["enabled?"]);
}

#[test]
fn names_can_be_seen() {
    for id in ["a", "tribes-primary", "größe.2", &"x".repeat(64), "東京", "a/b:c"] {
        PeerSpec::parse(&minimal("").replace(r#""id":"a""#, &format!("\"id\":\"{id}\""))).unwrap();
    }
    for id in ["", " ", "a b", "\\n", "\\u0000", "\\u202e", "\\u200b", &"x".repeat(65)] {
        let json = minimal("").replace(r#""id":"a""#, &format!("\"id\":\"{id}\""));
        assert_eq!(places(&json), ["id"], "{id}");
    }
}

#[test]
fn a_secret_key_is_never_repeated() {
    let secret = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
    let with = |field: &str| minimal(&format!("\"{field}\":\"{secret}\","));
    for field in ["auth_pubkey_field", "direction", "tls", "auth", "metadata"] {
        let told = PeerSpec::parse(&with(field)).unwrap_err().to_string();
        assert!(!told.contains("nsec1vl"), "{field}: {told}");
    }
    let told = PeerSpec::parse(&minimal("").replace(KEY, secret)).unwrap_err().to_string();
    assert!(told.contains("secret key") && !told.contains("nsec1vl"), "{told}");
}

#[test]
fn pins_are_needed_where_encryption_is() {
    let without =
        |tls: &str| minimal("").replace(&format!(r#"{{"pins":[{{"type":"spki_sha256","value":"{PIN}"}}]}}"#), tls);
    assert_eq!(places(&without("{}")), ["tls.pins"]);
    assert_eq!(places(&without(r#"{"mode":"required","pins":[]}"#)), ["tls.pins"]);
    assert_eq!(places(&without(r#"{"mode":"disabled","verify":"pin"}"#)), ["tls.verify"]);
    assert!(PeerSpec::parse(&without(r#"{"mode":"disabled"}"#)).is_ok());
}

#[test]
fn what_is_hardly_meant_is_said() {
    let rules = |protected: &[&str]| {
        let rule = format!(r#"{{"principal":"{KEY}","capability":"sync_write","match":{{"kinds":[5000]}}}}"#);
        let protected = protected.iter().map(|json| serde_json::from_str::<Filter>(json).unwrap());
        AccessRules::new(protected, [Rule::parse(&rule).unwrap()])
    };
    let guarded = rules(&[r#"{"kinds":[5000]}"#]);
    let spec = PeerSpec::parse(&minimal("")).unwrap();
    assert_eq!(spec.warnings(&guarded), [""; 0]);
    let open = spec.warnings(&rules(&[]));
    assert!(open.len() == 1 && open[0].contains("nothing protects"), "{open:?}");
    let partly = spec.warnings(&rules(&[r##"{"kinds":[5000],"#r":["a"]}"##]));
    assert!(partly.len() == 1 && partly[0].contains("only partly protected"), "{partly:?}");
    let both = PeerSpec::parse(&minimal(r#""direction":"both","#)).unwrap().warnings(&guarded);
    assert!(both.len() == 1 && both[0].contains("sync_read is not granted"), "{both:?}");
    let downgraded = PeerSpec::parse(&minimal("").replace("wss:", "ws:")).unwrap();
    let told = downgraded.warnings(&guarded);
    assert!(downgraded.is_downgraded() && told.len() == 1 && told[0].contains("it is not connected to"), "{told:?}");
}

fn key() -> impl Strategy<Value = PublicKey> {
    any::<[u8; 32]>().prop_map(PublicKey::from_byte_array)
}

fn filter() -> impl Strategy<Value = Arc<Filter>> {
    let tag = option::of(btree_set("[a-z\"\\\\é]{0,9}", 1..3));
    (btree_set(any::<u16>(), 1..4), option::of(btree_set(key(), 1..3)), tag, option::of(0u32..9), option::of(9u32..))
        .prop_map(|(kinds, authors, tag, since, until)| {
            let mut filter = Filter::new().kinds(kinds.into_iter().map(nostr::event::Kind::from_u16));
            filter.authors = authors;
            if let Some(tag) = tag {
                let letter = nostr::filter::SingleLetterTag::LOWERCASE_R;
                filter = filter.custom_tags(letter, tag);
            }
            filter.since = since.map(|secs| u64::from(secs).into());
            filter.until = until.map(|secs| u64::from(secs).into());
            Arc::new(filter)
        })
}

fn tls() -> impl Strategy<Value = TlsTerms> {
    let pins = btree_set(any::<[u8; 8]>().prop_map(|bytes| Pin::of_key(&bytes)), 1..4);
    let scope = prop_oneof![Just(PinScope::EndEntity), Just(PinScope::Chain)];
    let hostname = option::of("[a-z]{1,9}\\.example|192\\.0\\.2\\.7|2001:db8::1");
    (any::<bool>(), hostname, pins, scope, any::<bool>()).prop_map(|(required, hostname, pins, pin_scope, full)| {
        TlsTerms {
            mode: if required { TlsMode::Required } else { TlsMode::Disabled },
            hostname,
            pins,
            pin_scope,
            verify: if full { Verify::Full } else { Verify::Pin },
        }
    })
}

fn spec() -> impl Strategy<Value = PeerSpec> {
    let names =
        ("[a-zA-Z0-9é._/-]{1,64}", "wss?://[a-z]{1,9}\\.example(:[1-9][0-9]{1,3})?(/[a-z]{1,5})?", any::<bool>());
    let directions = prop_oneof![Just(Direction::Down), Just(Direction::Up), Just(Direction::Both)];
    let modes = prop_oneof![Just(SyncMode::Auto), Just(SyncMode::ReqStream), Just(SyncMode::Negentropy)];
    let auth = prop_oneof![Just(PeerAuth::Nip42), Just(PeerAuth::None)];
    let field = prop_oneof![Just(IdentityField::OwnKey), Just(IdentityField::AdministratorKey)];
    let metadata = prop_oneof![
        Just("{}".to_owned()),
        (any::<f64>(), any::<u64>()).prop_map(|(x, n)| format!("{{ \"x\": [{x:?}, {n}{n}],\n\t\"é\":null }}"))
    ];
    let metadata = metadata.prop_filter("it is JSON", |json| serde_json::from_str::<serde_json::Value>(json).is_ok());
    (names, key(), field, directions, modes, vec(filter(), 1..4), 0..=PeerSpec::OVERLAP_SECS_MAX, auth, tls(), metadata)
        .prop_map(|((id, url, enabled), auth_pubkey, field, direction, mode, filters, overlap, auth, tls, metadata)| {
            PeerSpec {
                id,
                url: RelayUrl::parse(&url).unwrap(),
                enabled,
                auth_pubkey,
                auth_pubkey_field: field,
                direction,
                mode,
                filters,
                overlap_secs: overlap,
                auth,
                tls: Arc::new(tls),
                metadata: Metadata(RawValue::from_string(metadata).unwrap()),
            }
        })
}

#[test]
fn metadata_that_cannot_be_told_again_is_refused() {
    let spec = |metadata: &str| {
        let json = format!(
            r#"{{"id":"a","url":"wss://a.example","auth_pubkey":"{0}","filters":[{{"kinds":[1]}}],
                "tls":{{"pins":[{{"type":"spki_sha256","value":"{0}"}}]}},"metadata":{metadata}}}"#,
            "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4"
        );
        PeerSpec::parse(&json)
    };
    let nested = |depth: usize| format!("{{\"x\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    for (metadata, words) in [
        (r#"{"x":1e999}"#.to_owned(), "out of range"),
        (nested(PeerSpec::METADATA_DEPTH_MAX + 1), "too deeply"),
        (nested(1_000), "recursion"),
        ("[]".to_owned(), "no object"),
    ] {
        let mistakes = spec(&metadata).unwrap_err().0;
        let mistake = mistakes.iter().find(|mistake| mistake.path == "metadata").expect("it is named");
        assert!(mistake.reason.contains(words), "{mistake}");
    }
    let spec = spec(&nested(PeerSpec::METADATA_DEPTH_MAX)).unwrap();
    assert!(serde_json::to_value(&spec).is_ok());
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was(spec in spec()) {
        let json = serde_json::to_string(&spec).unwrap();
        prop_assert_eq!(PeerSpec::parse(&json), Ok(spec.clone()), "{}", json);
        let pretty = serde_json::to_string_pretty(&spec).unwrap();
        let read: PeerSpec = serde_json::from_str(&pretty).unwrap();
        prop_assert_eq!(read, spec);
    }

    /// Whatever somebody sends, there is an answer.
    #[test]
    fn nothing_makes_it_panic(json in "[\\[\\]{}\":,a-z0-9 \\\\é]{0,64}") {
        let _ = PeerSpec::parse(&json);
    }
}
