//! Reports for tests.

use super::report::{DaemonReport, DiscoveryReport, PeerReport, PeersReport, Readiness, ServiceReport, Stage};
use crate::discover::DiscoverySizes;
use crate::engine::{Counters, Gap, GapReason, Phase, RelayReport};
use crate::native::hook;
use crate::peer::{Health, Heard, PeerMarks, PeerSpec, PeerState, PeerStats, SyncStats, Tally};
use crate::protocol::{FilterKey, Window};
use crate::runtime::{FailureKind, Instant};
use crate::store::Method;

/// A relay that is connected, live and complete.
pub(crate) fn relay(url: &str) -> RelayReport {
    let counters =
        Counters { received: 12_350, stored: 12_345, connections: 1, bytes_in: 7_000_000, ..Counters::default() };
    RelayReport { methods: vec![Method::Negentropy], counters, ..RelayReport::live(url) }
}

/// A gap that is about all of time.
pub(crate) fn gap(reason: GapReason) -> Gap {
    Gap { filter: FilterKey("00112233445566778899aabbccddeeff".to_owned()), window: Window::ALL, reason }
}

/// A daemon that is ready, with `relays`, two days and three hours after its start.
pub(crate) fn daemon(relays: Vec<RelayReport>) -> DaemonReport {
    let sizes = DiscoverySizes { repositories: 200, roots: 20_000, relays: 8, ..DiscoverySizes::default() };
    DaemonReport {
        version: "1.2.3".to_owned(),
        made_at_secs: 1_700_000_000 + 2 * 86_400 + 3 * 3_600 + 240,
        readiness: Readiness { store: Stage::Ready, index: Stage::Ready, service: Stage::Ready },
        relays,
        discovery: Some(DiscoveryReport { sizes, ..DiscoveryReport::default() }),
        hook: Some(hook::Counters::default()),
        service: Some(ServiceReport { clients_connected: 3, ..ServiceReport::default() }),
        bounds: [("feed_events_max".to_owned(), 3)].into(),
        ..DaemonReport::starting(1_700_000_000, Instant::ZERO)
    }
}

/// Two configured peers of a daemon: one that works, and one that has another key than is pinned.
pub(crate) fn peers() -> PeersReport {
    let spec = |id: &str| {
        let json = format!(
            r#"{{"id":"{id}","url":"wss://{id}.example","auth_pubkey":"{0}","filters":[{{"kinds":[5000]}}],
                "tls":{{"pins":[{{"type":"spki_sha256","value":"{0}"}}]}}}}"#,
            "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4"
        );
        PeerSpec::parse(&json).unwrap()
    };
    let (works, fails) = (spec("tribes-primary"), spec("tribes-secondary"));
    let failing = RelayReport {
        phase: Phase::Waiting,
        connected: false,
        failures: 2,
        failure: Some(FailureKind::WrongPin),
        last_error: Some("pinned key not found".to_owned()),
        counters: Counters::default(),
        ..relay(fails.url.as_str())
    };
    let pairs = [(works.clone(), relay(works.url.as_str())), (fails, failing)];
    let health = Health::of(pairs.iter().map(|(spec, report)| (spec, Heard::Report(report))));
    let peers: Vec<PeerReport> = pairs
        .iter()
        .map(|(spec, report)| {
            let runtime = PeerState::new(&spec.id, true, Some(report), &PeerMarks::default());
            let tally = Tally::of(&report.counters);
            let stats = PeerStats { server_id: spec.id.clone(), tally, ..PeerStats::default() };
            PeerReport { relay: spec.url.clone(), runtime, stats }
        })
        .collect();
    let stats = SyncStats::of(peers.iter().map(|peer| (&peer.runtime, peer.stats.tally)));
    PeersReport { health, stats, peers }
}
