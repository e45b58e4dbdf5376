//! What is asked for after a connection was lost, and what is not.

use std::time::Duration;

use relaysync::protocol::{Event, Filter, RelayUrl};
use relaysync::serve::ServeConfig;
use relaysync::sim::{Connects, LateChallenge, NegentropyRefused, PageCap, Remote, note, plain_relay};

use crate::support::{Daemon, daemon, filters_asked, history};

/// The filters of the histories among these requests: live ones have a limit of zero.
fn histories(filters: &[Filter]) -> Vec<&Filter> {
    filters.iter().filter(|filter| filter.limit != Some(0)).collect()
}

/// Elapsed seconds used to be passed as an absolute `since`, which asks for everything since 1970.
#[test]
fn a_quick_reconnect_asks_from_the_last_proven_moment_less_the_overlap() {
    let overlap = daemon().overlap_secs;
    for quiet_secs in [0, 1, 200, 800] {
        let mut daemon = Daemon::new(Remote::with(&history(50)));
        daemon.secs(5_000);
        let last = daemon.publish_now();
        daemon.secs(quiet_secs.max(1));
        let cut_at = daemon.world.now().unix_secs;
        let asked = filters_asked(&daemon.world, &daemon.relay).len();
        daemon.world.cut(&daemon.relay, "");
        daemon.secs(60);
        let filters = filters_asked(&daemon.world, &daemon.relay);
        let after = histories(&filters[asked..]);
        assert!(!after.is_empty());
        // What the relay sent last, or its answer to a probe, is the last that is proven.
        let proven = last.created_at_secs()..=cut_at;
        for filter in after {
            let since = filter.since.map_or(0, |at| at.as_secs());
            assert!(proven.contains(&(since + overlap)), "after {quiet_secs} s: since {since}, {proven:?}");
        }
        daemon.is_equal();
    }
}

/// The quarter of an hour used to be counted from the connect, so that every blip of an old link was a full pass.
#[test]
fn a_blip_of_a_link_that_was_up_for_days_is_no_full_pass() {
    for held in [0, 900] {
        let remote = Remote::with(&history(900)).tamper(PageCap(50));
        let mut daemon = match held {
            0 => Daemon::new(remote.tamper(NegentropyRefused::notice("negentropy disabled"))),
            _ => Daemon::new(remote),
        };
        for hours in [20, 40, 60] {
            daemon.secs(20 * 3600 - 600);
            daemon.publish_now();
            daemon.secs(300);
            let before = daemon.world.relay(&daemon.relay).heard.len();
            let received = daemon.report().counters.received;
            daemon.world.relay_mut(&daemon.relay).connects = Connects::Hangs;
            daemon.world.cut(&daemon.relay, "");
            daemon.secs(2);
            daemon.world.relay_mut(&daemon.relay).connects = Connects::Always;
            daemon.publish_now();
            daemon.secs(60);
            daemon.is_equal();
            let frames: Vec<_> = daemon.world.relay(&daemon.relay).heard[before..].to_vec();
            let sent = |kind: &str| frames.iter().filter(|(_, frame)| frame.starts_with(kind)).count();
            assert!(sent("[\"REQ\"") <= 4, "after {hours} h: {frames:?}");
            assert_eq!(sent("[\"NEG-OPEN\""), 0, "after {hours} h: {frames:?}");
            let again = daemon.report().counters.received - received;
            assert!(again <= 4, "after {hours} h: {again} events came again");
            daemon.secs(238);
        }
    }
}

const KINDS: std::ops::Range<u16> = 1_000..1_012;

fn by_kind() -> impl Iterator<Item = Filter> {
    KINDS.map(|kind| Filter::new().kind(kind.into()))
}

/// One event of each kind, dated now, to the relay.
fn publish_each(daemon: &mut Daemon, content: &str) {
    let now_secs = daemon.world.now().unix_secs;
    let events: Vec<Event> = KINDS.map(|kind| note(now_secs).kind(kind).content(content).sign()).collect();
    daemon.world.publish(&daemon.relay.clone(), &events);
}

/// Some subscriptions used to be rebuilt live only after a reconnect: what came in the gap was never fetched.
#[test]
fn what_came_in_the_gap_of_a_reconnect_is_fetched_for_every_interest() {
    for away_secs in [5, 240, 1_500] {
        let mut daemon = Daemon::wanting(by_kind(), Remote::with(&[]), None);
        publish_each(&mut daemon, "before");
        daemon.secs(2_000);
        for round in 0..3 {
            daemon.world.relay_mut(&daemon.relay).connects = Connects::Hangs;
            daemon.world.cut(&daemon.relay, "");
            daemon.secs(away_secs / 2);
            publish_each(&mut daemon, &format!("missed {round}"));
            daemon.secs(away_secs / 2);
            daemon.world.relay_mut(&daemon.relay).connects = Connects::Always;
            let relay = daemon.relay.clone();
            let attempts = daemon.world.relay(&relay).attempts.len();
            let tried = |world: &relaysync::sim::World| world.relay(&relay).attempts.len() > attempts;
            assert!(daemon.world.run_until(Duration::from_secs(3_600), tried));
            daemon.secs(20);
            daemon.is_equal();
            publish_each(&mut daemon, &format!("live {round}"));
            daemon.secs(1);
            daemon.is_equal();
            daemon.secs(400);
        }
    }
}

/// Reported as nostr-dev-kit/ndk#83: a reconnected relay served its subscriptions no more. Here it also asks again who
/// we are.
#[test]
fn subscriptions_are_live_again_after_every_reconnect_with_authentication() {
    for late in [false, true] {
        let own = RelayUrl::parse("wss://relay.example").expect("a relay URL");
        let config = ServeConfig { auth_required: true, urls: vec![own], ..plain_relay() };
        let remote = Remote::configured(config, &[]);
        let remote = if late { remote.tamper(LateChallenge::default()) } else { remote };
        let mut daemon = Daemon::wanting(by_kind(), remote, Some(7));
        for round in 0..5 {
            publish_each(&mut daemon, &format!("live {round}"));
            daemon.secs(1);
            daemon.is_equal();
            daemon.world.cut(&daemon.relay, "");
            publish_each(&mut daemon, &format!("missed {round}"));
            daemon.secs(300);
            daemon.is_equal();
        }
        assert_eq!(daemon.report().counters.connections, 6);
    }
}

/// An event dated in the future used to pin the cursor there: nothing before it was asked for any more.
#[test]
fn an_event_of_the_future_pins_neither_since_nor_coverage() {
    let overlap = daemon().overlap_secs;
    for in_history in [true, false] {
        let future = |n: u64| note(1_700_000_000 + 30 * 86_400 + n).content(format!("future {n}")).sign();
        let held = if in_history { vec![future(0)] } else { vec![] };
        let mut daemon = Daemon::new(Remote::with(&[history(20), held].concat()));
        daemon.secs(1_000);
        daemon.world.publish(&daemon.relay, &[future(1)]);
        daemon.secs(100);
        for _ in 0..2 {
            let asked = filters_asked(&daemon.world, &daemon.relay).len();
            let cut_at = daemon.world.now().unix_secs;
            daemon.world.cut(&daemon.relay, "");
            daemon.publish_now();
            daemon.secs(60);
            daemon.is_equal();
            let filters = filters_asked(&daemon.world, &daemon.relay);
            let latest = histories(&filters[asked..]).iter().filter_map(|filter| filter.since).max();
            assert!(latest.is_some_and(|since| since.as_secs() + overlap <= cut_at), "{latest:?}, cut at {cut_at}");
        }
        let now_secs = daemon.world.now().unix_secs;
        let coverage = daemon.world.node(daemon.engine).coverage();
        assert!(!coverage.is_empty());
        let proofs = coverage.iter().flat_map(|mark| &mark.windows);
        assert!(proofs.clone().all(|proof| proof.asked_at_secs <= now_secs), "{coverage:?}");
        // After a restart, too, what is dated now is found.
        daemon.world.restart(daemon.engine);
        daemon.publish_now();
        daemon.world.sync_with(daemon.engine, &daemon.relay.clone(), [Filter::new()], crate::support::LIVE);
        daemon.secs(60);
        daemon.is_equal();
    }
}

/// What a relay gets in the gap of a short absence with an old date is found by the next full pass only. Until then no
/// mark may claim it, however many reconnects follow: the world looks at every mark.
#[test]
fn what_is_dated_back_in_a_gap_is_never_claimed() {
    let mut daemon = Daemon::new(Remote::with(&history(20)));
    for round in 0..4 {
        daemon.world.relay_mut(&daemon.relay).connects = Connects::Hangs;
        daemon.world.cut(&daemon.relay, "");
        daemon.secs(30);
        let dated_back = note(1_699_000_000 + round).content(format!("dated back {round}")).sign();
        daemon.world.publish(&daemon.relay, &[dated_back]);
        daemon.world.relay_mut(&daemon.relay).connects = Connects::Always;
        daemon.secs(3_000);
        daemon.publish_now();
        daemon.secs(10);
    }
    assert!(daemon.report().relied_on_secs.is_some_and(|secs| secs < 1_700_000_100), "{:?}", daemon.report());
    daemon.world.relay_mut(&daemon.relay).connects = Connects::Hangs;
    daemon.world.cut(&daemon.relay, "");
    daemon.secs(2_000);
    daemon.world.relay_mut(&daemon.relay).connects = Connects::Always;
    daemon.secs(3_700);
    daemon.is_equal();
}
