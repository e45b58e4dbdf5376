//! Direction up and both.

use std::time::Duration;

use relaysync::engine::{Config, Direction, GapReason, RelayOptions};
use relaysync::protocol::{Filter, Window};
use relaysync::sim::{NOW_SECS, NegentropyRefused, NoOk, PageCap, Remote, World, note};

use crate::support::{Play, STALL, history, one_shot};

#[test]
fn up_and_both_bring_both_sides_to_the_same_set() {
    let events = history(400);
    let refused = || NegentropyRefused::notice("negentropy disabled");
    for (held, there) in [(0..400, 0..0), (100..400, 0..200), (0..100, 300..400), (0..0, 0..400), (50..60, 50..60)] {
        for paged in [false, true] {
            let remote = Remote::with(&events[there.clone()]);
            let remote = if paged { remote.tamper(refused()).tamper(PageCap(70)) } else { remote };
            let played = Play::towards(Direction::Both, &events[held.clone()]).with(remote);
            played.is_equal();
            let lacking = held.clone().filter(|n| !there.contains(n)).count();
            assert_eq!(played.asked("EVENT"), lacking, "{held:?} {there:?} {paged}");
            assert_eq!(played.report.counters.published as usize, lacking);

            let remote = Remote::with(&events[there.clone()]);
            let remote = if paged { remote.tamper(refused()).tamper(PageCap(70)) } else { remote };
            let played = Play::towards(Direction::Up, &events[held.clone()]).with(remote);
            assert!(played.report.complete, "{:?}", played.report);
            assert_eq!(played.asked("EVENT"), lacking);
            assert_eq!(played.world.held(played.engine).len(), held.len(), "nothing comes down");
        }
    }
}

#[test]
fn a_reconciliation_that_is_refused_half_way_publishes_nothing_twice() {
    let events = history(600);
    let mut opened = 0;
    let refuse_second = relaysync::sim::Seen(move |_, frame: String, turn: &mut relaysync::sim::Turn| {
        if frame.starts_with("[\"NEG-OPEN\"") {
            opened += 1;
            if opened > 2 {
                turn.say(r#"["NOTICE","negentropy disabled"]"#);
                return None;
            }
        }
        Some(frame)
    });
    let config = Config { negentropy_window_items: 100, ..one_shot() };
    let played = Play::towards(Direction::Both, &events[..500])
        .config(config)
        .with(Remote::with(&events[300..]).tamper(refuse_second));
    played.is_equal();
    assert_eq!(played.asked("EVENT"), 300);
}

#[test]
fn refused_events_are_a_gap_in_the_relays_words() {
    let events = history(10);
    let no = NoOk { words: Some("blocked: not here".into()), times: 3 };
    let played = Play::towards(Direction::Up, &events).with(Remote::with(&[]).tamper(no));
    played.has_gaps(&[(Window::ALL, GapReason::NotAccepted { events: 3, reason: "blocked: not here".into() })]);
    assert_eq!((played.report.counters.published, played.report.counters.refused), (7, 3));
}

#[test]
fn what_the_relay_has_already_or_in_a_newer_version_is_no_gap() {
    for words in ["duplicate: already have it", "replaced: have newer event"] {
        let no = NoOk { words: Some(words.into()), times: 3 };
        let played = Play::towards(Direction::Up, &history(10)).with(Remote::with(&[]).tamper(no));
        assert!(played.report.complete, "{words}: {:?}", played.report.gaps);
    }
}

#[test]
fn a_rate_limited_ok_is_waited_for() {
    let no = NoOk { words: Some("rate-limited: slow down".into()), times: 40 };
    let played = Play::towards(Direction::Up, &history(100)).with(Remote::with(&[]).tamper(no));
    played.is_equal();
    assert!(played.took >= Duration::from_secs(60));
}

#[test]
fn a_relay_that_answers_every_event_with_a_rate_limit_is_given_up() {
    let no = NoOk { words: Some("rate-limited: slow down".into()), times: usize::MAX };
    let played = Play::towards(Direction::Up, &history(100)).with(Remote::with(&[]).tamper(no));
    assert!(!played.report.complete);
    played.within(Duration::from_secs(600));
}

#[test]
fn events_without_an_ok_are_sent_twice_and_reported() {
    let no = NoOk { words: None, times: 5 };
    Play::towards(Direction::Up, &history(5)).with(Remote::with(&[]).tamper(no)).is_equal();
    let no = NoOk { words: None, times: usize::MAX };
    let played = Play::towards(Direction::Up, &history(5)).with(Remote::with(&[]).tamper(no));
    played.has_gaps(&[(Window::ALL, GapReason::Unacknowledged { events: 5 })]);
    played.within(STALL * 3);
    assert_eq!(played.asked("EVENT"), 10);
}

#[test]
fn a_relay_that_takes_its_time_over_each_event_is_not_given_up() {
    let mut taken = 0_u64;
    let slow = relaysync::sim::Seen(move |_, frame: String, turn: &mut relaysync::sim::Turn| {
        if frame.starts_with("[\"OK\"") {
            taken += 1;
            turn.say_later(frame, Duration::from_secs(taken));
            return None;
        }
        Some(frame)
    });
    let played = Play::towards(Direction::Up, &history(60)).with(Remote::with(&[]).tamper(slow));
    played.is_equal();
    assert_eq!(played.asked("EVENT"), 60);
}

#[test]
fn what_one_relay_brings_reaches_the_others() {
    let events = history(90);
    let mut world = World::new();
    let relays: Vec<_> = (0..3)
        .map(|n| world.add_relay(&format!("wss://r{n}.example"), Remote::with(&events[30 * n..30 * (n + 1)])))
        .collect();
    let engine = world.add_engine(one_shot());
    let both = RelayOptions { direction: Direction::Both, ..RelayOptions::default() };
    relays.iter().for_each(|relay| world.sync_with(engine, relay, [Filter::new()], both));
    let reports = world.finish(engine);
    assert!(reports.iter().all(|report| report.complete), "{reports:#?}");
    assert!(relays.iter().all(|relay| world.held_by(relay).len() == 90));
    // And nothing came back to where it came from.
    let sent: usize = relays.iter().map(|relay| world.relay(relay).heard_of("EVENT").len()).sum();
    assert_eq!(sent, 180);
}

#[test]
fn a_full_second_is_compared_too() {
    let burst: Vec<_> = (0..300).map(|n| note(NOW_SECS - 9).content(format!("{n}")).sign()).collect();
    let config = relaysync::serve::ServeConfig { page_events_max: 100, ..relaysync::sim::plain_relay() };
    let options = RelayOptions {
        direction: Direction::Both,
        method: Some(relaysync::store::Method::Req),
        live: false,
        trusted: false,
    };
    let play = Play { options, held: burst[200..].to_vec(), ..Play::default() };
    let played = play.with(Remote::configured(config, &burst[..250]));
    assert_eq!(played.world.held_by(&played.relay).len(), 300);
}

#[test]
fn a_dry_run_publishes_nothing() {
    let events = history(20);
    let config = Config { dry_run: true, ..one_shot() };
    let played = Play::towards(Direction::Both, &events[..15]).config(config).with(Remote::with(&events[10..]));
    assert!(played.report.complete);
    assert_eq!((played.report.counters.would_publish, played.report.counters.would_store), (10, 5));
    assert_eq!(played.asked("EVENT"), 0);
}

/// A store learns that something has expired (NIP-40) only with its next commit, and what goes up commits nothing.
#[test]
fn what_has_expired_meanwhile_is_not_offered() {
    let expires = (NOW_SECS + 100).to_string();
    let brief = note(NOW_SECS - 50).tag("expiration", &expires).content("brief").sign();
    let mut world = World::new();
    let relay = world.add_relay("wss://relay.example", Remote::with(&[]));
    let engine = world.add_engine(one_shot());
    world.give(engine, &[brief, note(NOW_SECS - 40).sign()]);
    world.run(Duration::from_secs(200));
    let options = RelayOptions { direction: Direction::Up, ..RelayOptions::default() };
    world.sync_with(engine, &relay, [Filter::new()], options);
    let report = world.finish(engine).remove(0);
    assert!(report.complete, "{report:#?}");
    assert_eq!((report.counters.published, report.counters.refused), (1, 0));
}
