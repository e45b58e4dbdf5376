use super::*;
use crate::engine::Gap;
use crate::protocol::{FilterKey, RelayUrl, Window};

const KEY: &str = "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4";

fn spec(id: &str, enabled: bool) -> PeerSpec {
    let json = format!(
        r#"{{"id":"{id}","url":"wss://{id}.example","enabled":{enabled},"auth_pubkey":"{KEY}","filters":[{{"kinds":[1]}}],
            "tls":{{"pins":[{{"type":"spki_sha256","value":"sha256/rHH8tQB1jOfXbwXxBPjqW6dmzP5dSxnZ6EWJFQ1kWWA="}}]}}}}"#
    );
    PeerSpec::parse(&json).unwrap()
}

/// A relay that is connected and live.
fn live(id: &str) -> RelayReport {
    RelayReport::live(&format!("wss://{id}.example"))
}

fn with(change: impl FnOnce(&mut RelayReport)) -> RelayReport {
    let mut report = live("a");
    change(&mut report);
    report
}

fn gap(reason: GapReason) -> Gap {
    Gap { filter: FilterKey::of(&spec("a", true).filters[0]), window: Window::ALL, reason }
}

fn heard(report: Option<&RelayReport>) -> Heard<'_> {
    report.map_or(Heard::Nothing, Heard::Report)
}

/// The verdict in a word: that of JSON, or what else it is.
fn word(report: Option<&RelayReport>) -> String {
    match PeerVerdict::of(&spec("a", true), heard(report)) {
        PeerVerdict::Working => "working".to_owned(),
        PeerVerdict::Pending(_) => "pending".to_owned(),
        PeerVerdict::Failing { reason, detail } => {
            assert!(detail.contains("; "), "it says what to do: {detail}");
            reason.to_string()
        }
    }
}

#[test]
fn each_state_of_a_link_has_its_word() {
    let refused = |reason: GapReason| with(|report| report.gaps.push(gap(reason)));
    let words = || "restricted: not you".to_owned();
    for (report, expected) in [
        (live("a"), "working"),
        (with(|report| report.phase = Phase::Syncing), "working"),
        (with(|report| report.phase = Phase::Polling), "working"),
        (with(|report| report.counters.invalid = 1_000), "working"),
        (refused(GapReason::Stalled), "working"),
        (refused(GapReason::NotAccepted { events: 1, reason: "invalid: too old".to_owned() }), "working"),
        (with(|report| (report.phase, report.connected) = (Phase::Waiting, false)), "pending"),
        (with(|report| (report.phase, report.connected) = (Phase::Connecting, false)), "pending"),
        (with(|report| report.phase = Phase::Cooldown), "pending"),
        (with(|report| report.auth_refused = Some(words())), "auth_refused"),
        (with(|report| report.denied = vec!["kinds 5000 downwards".to_owned()]), "access_denied"),
        (refused(GapReason::Refused(words())), "access_denied"),
        (refused(GapReason::AuthRequired(words())), "access_denied"),
        (refused(GapReason::Refused("rate-limited: slow down".to_owned())), "rate_limited"),
        (refused(GapReason::NotAccepted { events: 1, reason: "auth-required: who?".to_owned() }), "access_denied"),
        (refused(GapReason::NotAccepted { events: 1, reason: words() }), "access_denied"),
    ] {
        assert_eq!(word(Some(&report)), expected, "{report:?}");
    }
    assert_eq!(word(None), "pending");
    let verdict = PeerVerdict::of(&spec("a", true), Heard::TooLongAgo);
    assert!(matches!(verdict, PeerVerdict::Pending(why) if why.contains("too long")));
}

#[test]
fn rejected_events_are_no_ill_health_and_a_refusal_is_not_always_a_denial() {
    let rejected = |words: &str| {
        let reason = GapReason::NotAccepted { events: 1, reason: words.to_owned() };
        word(Some(&with(|report| report.gaps.push(gap(reason)))))
    };
    for words in [
        "blocked: deleted by its author",
        "blocked: event marked as protected",
        "restricted: a protected event (NIP-70) is taken from its author only",
        "auth-required: this event may only be published by its author",
        "invalid: restricted tags",
        "pow: 20 bits needed",
    ] {
        assert_eq!(rejected(words), "working", "{words}");
    }
    assert_eq!(rejected("restricted: this event is protected here, and your key may not write it"), "access_denied");

    let refused = |words: &str| word(Some(&with(|report| report.gaps.push(gap(GapReason::Refused(words.to_owned()))))));
    for words in ["error: too many filters", "unsupported: filter", "invalid: bad filter", "", "no"] {
        assert_eq!(refused(words), "refused", "{words}");
    }
    for words in ["restricted: members only", "ERROR: Restricted: members only", "blocked: you", "auth-required: who?"]
    {
        assert_eq!(refused(words), "access_denied", "{words}");
    }
}

#[test]
fn what_discovery_lacks_of_the_same_relay_is_not_the_peers_ill_health() {
    let reason = GapReason::Refused("restricted: not you".to_owned());
    let filter = FilterKey("00".to_owned());
    let report = with(|report| report.gaps.push(Gap { filter, window: Window::ALL, reason }));
    assert_eq!(word(Some(&report)), "working");
}

#[test]
fn the_words_of_relays_are_cut_and_those_of_rules_not_told() {
    let endless = "restricted: ".repeat(1 << 16);
    let report = with(|report| report.gaps.push(gap(GapReason::Refused(endless))));
    let health = Health::of([(&spec("a", true), Heard::Report(&report))]);
    assert!(health.servers_failing[0].detail.len() < 1_000);
    let report = with(|report| report.denied = vec![KEY.to_owned(), KEY.to_owned()]);
    let health = Health::of([(&spec("a", true), Heard::Report(&report))]);
    let detail = &health.servers_failing[0].detail;
    assert!(detail.contains("2 filters") && !detail.contains(KEY), "{detail}");
}

#[test]
fn each_failure_has_its_own_code() {
    use FailureKind::*;
    for (kind, code) in [
        (DnsFailed, "dns_failed"),
        (PrivateAddress, "private_address"),
        (ConnectionRefused, "connection_refused"),
        (TlsRequired, "tls_required"),
        (TlsFailed, "tls_failed"),
        (WrongHostName, "wrong_host_name"),
        (CertificateExpired, "certificate_expired"),
        (WrongPin, "wrong_pin"),
        (HandshakeFailed, "handshake_failed"),
        (TimedOut, "timed_out"),
        (ConnectionLost, "connection_lost"),
        (ProtocolBroken, "protocol_broken"),
        (RateLimited, "rate_limited"),
        (WrongIdentity, "wrong_identity"),
        (AuthRefused, "auth_refused"),
    ] {
        let mut report = with(|report| (report.failures, report.failure, report.connected) = (1, Some(kind), false));
        assert_eq!(word(Some(&report)), code);
        // A connection alone proves nothing.
        report.connected = true;
        assert_eq!(word(Some(&report)), code);
        // What was overcome is no failure any more.
        report.failures = 0;
        assert_eq!(word(Some(&report)), "working");
    }
}

#[test]
fn a_url_without_encryption_fails_before_anything_is_tried() {
    let mut spec = spec("a", true);
    spec.url = RelayUrl::parse("ws://a.example").unwrap();
    let health = Health::of([(&spec, Heard::Nothing)]);
    assert_eq!(health.status, HealthStatus::Failing);
    assert_eq!(health.servers_failing[0].reason.to_string(), "tls_required");
}

#[test]
fn sync_works_only_if_it_does_with_every_peer_that_is_enabled() {
    let peers = [spec("a", true), spec("b", true), spec("c", false)];
    let down = |id: &str| RelayReport {
        failures: 3,
        failure: Some(FailureKind::ConnectionRefused),
        last_error: Some("connection refused: nobody there".to_owned()),
        connected: false,
        phase: Phase::Waiting,
        ..live(id)
    };
    let health =
        |a: Option<&RelayReport>, b: Option<&RelayReport>| Health::of(peers.iter().zip([a, b, None].map(heard)));
    let (a, b) = (live("a"), live("b"));

    let both = health(Some(&a), Some(&b));
    assert!(both.is_working() && both.servers_failing.is_empty() && both.servers_pending.is_empty());
    assert_eq!((both.servers_total, both.servers_connected), (3, 2));
    assert_eq!(health(Some(&a), None).status, HealthStatus::Degraded, "it has not begun with b");
    assert_eq!(health(Some(&a), Some(&down("b"))).status, HealthStatus::Degraded);
    assert_eq!(health(None, Some(&down("b"))).status, HealthStatus::Degraded, "nothing is known to be wrong with a");
    assert_eq!(health(Some(&down("a")), Some(&down("b"))).status, HealthStatus::Failing);
    assert_eq!(Health::of([(&peers[2], Heard::Nothing)]).status, HealthStatus::Idle);
    assert_eq!(Health::of([]).status, HealthStatus::Idle);

    let json = serde_json::to_value(health(Some(&a), Some(&down("b")))).unwrap();
    assert_eq!(json["status"], "degraded");
    assert_eq!((&json["servers_total"], &json["servers_connected"]), (&3.into(), &1.into()));
    assert_eq!(json["servers_failing"][0]["id"], "b");
    assert_eq!(json["servers_failing"][0]["reason"], "connection_refused");
    let read: Health = serde_json::from_value(json).unwrap();
    assert_eq!(read.servers_failing[0].reason, FailureReason::Link(FailureKind::ConnectionRefused));
}
