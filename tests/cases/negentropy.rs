//! Set reconciliation (NIP-77): refusals, caps, codecs that misbehave.

use std::time::Duration;

use relaysync::engine::{Config, GapReason};
use relaysync::protocol::message::relay;
use relaysync::protocol::{ClientMessage, Filter, Window};
use relaysync::serve::ServeConfig;
use relaysync::sim::{
    Infinite, Missing, NOW_SECS, NegRefusal, NegentropyRefused, PageCap, Remote, Seen, ShortCodec, Turn, World, note,
    plain_relay,
};
use relaysync::store::Method;

use crate::support::{LIVE, Play, STALL, daemon, history, ids, one_shot, play};

/// How relays in the wild say that they do not reconcile.
const NOTICES: [&str; 10] = [
    "negentropy disabled",
    "ERROR: bad msg: negentropy disabled",
    "bad msg: unknown message type",
    "ERROR: unknown message type NEG-OPEN",
    "could not parse command",
    "too many concurrent NEG requests",
    "invalid: unknown cmd",
    "unrecognized command",
    "Error: failed to parse message",
    "unsupported message",
];

/// Reported as hoytech/strfry#124: sync hung for ever on a relay without NIP-77.
#[test]
fn every_refusal_by_notice_falls_back_to_paging_at_once() {
    for text in NOTICES {
        let events = history(60);
        let played = Play::holding(&events[..5]).with(Remote::with(&events).tamper(NegentropyRefused::notice(text)));
        played.is_equal().within(Duration::from_secs(2));
        assert_eq!(played.report.fallbacks["negentropy"], text);
        assert_eq!(played.report.methods, [Method::Req]);
    }
}

/// Reported as nostrability/nostrability#265: NIP-77 advertised, then refused or met with silence.
#[test]
fn every_other_refusal_falls_back_within_the_stall_time() {
    let refusals = [
        NegRefusal::Silence,
        NegRefusal::Closed("unsupported: negentropy".into()),
        NegRefusal::Closed(String::new()),
        NegRefusal::NegErr("blocked: you are not on the list".into()),
        NegRefusal::NegErr("closed: no".into()),
        NegRefusal::NegErr("PROTOCOL-ERROR".into()),
        NegRefusal::NegErr("rate-limited: too many sessions".into()),
        NegRefusal::Notice("something that no one has ever heard of".into()),
    ];
    for refusal in refusals {
        let events = history(60);
        let played = Play::holding(&events[..5])
            .with(Remote::with(&events).tamper(NegentropyRefused(refusal.clone())).with_info());
        played.is_equal().within(STALL + Duration::from_secs(2));
        assert!(!played.report.fallbacks["negentropy"].is_empty(), "{refusal:?}");
        assert_eq!(played.asked("NEG-OPEN"), 1, "{refusal:?}");
    }
}

/// Reported as vitorpamplona/amethyst#3747: chatter reset the watchdog.
#[test]
fn chatter_does_not_feed_the_watchdog() {
    let events = history(20);
    let mut chatters = 0_u64;
    let chatter = Seen(move |_, frame: String, turn: &mut relaysync::sim::Turn| {
        if frame.starts_with("[\"NEG-") {
            while chatters < 100 {
                chatters += 1;
                turn.say_later(r#"["NOTICE","still thinking"]"#, Duration::from_secs(chatters));
            }
            return None;
        }
        Some(frame)
    });
    Play::holding(&events[..5])
        .with(Remote::with(&events).tamper(chatter))
        .is_equal()
        .within(STALL + Duration::from_secs(2));
}

/// The same for pages: nothing but an answer to the request is progress, whatever else the relay says.
#[test]
fn no_chatter_feeds_the_watchdog_of_a_page() {
    let stray = note(NOW_SECS).content("stray").sign();
    let lines = [
        r#"["NOTICE","still thinking"]"#.to_owned(),
        r#"["EOSE","another"]"#.to_owned(),
        relay::event("another", stray.json_str()),
        r#"["COUNT","s1",{"count":7}]"#.to_owned(),
        r#"["OK","00",true,""]"#.to_owned(),
    ];
    for line in lines {
        let chatty = line.clone();
        let chatter = Seen(move |_, frame: String, turn: &mut Turn| {
            if frame.starts_with("[\"REQ\"") {
                (1..30).for_each(|secs| turn.say_later(chatty.clone(), Duration::from_secs(secs)));
                return None;
            }
            Some(frame)
        });
        let played = play(Remote::with(&history(20)).tamper(chatter));
        played.has_gaps(&[(Window::ALL, GapReason::Stalled)]).within(STALL * 5);
    }
}

/// Reported as hoytech/strfry#165: frames beyond the relay's maximum.
#[test]
fn frames_stay_below_the_usual_and_the_stated_maximum() {
    let events = history(6_000);
    let held: Vec<_> = events.iter().step_by(2).cloned().collect();
    for frame_bytes_max in [128 * 1024, 32 * 1024] {
        let config = ServeConfig { frame_bytes_max, ..plain_relay() };
        let played = Play::holding(&held).with(Remote::configured(config, &events).with_info());
        played.is_equal();
        let longest = played.world.relay(&played.relay).heard.iter().map(|(_, frame)| frame.len()).max();
        assert!(longest <= Some(frame_bytes_max), "{longest:?}");
        assert_eq!(played.report.counters.connections, 1, "{:?}", played.report.last_error);
    }
}

/// Reported as vitorpamplona/amethyst#3871: NEG-OPEN over the record cap fails as a whole.
#[test]
fn a_stated_record_cap_sizes_the_windows() {
    let events = history(3_000);
    let held: Vec<_> = events.iter().step_by(3).cloned().collect();
    let config = ServeConfig { negentropy_records_max: 500, ..plain_relay() };
    let played = Play::holding(&held).with(Remote::configured(config, &events));
    played.is_equal();
    assert_eq!(played.report.methods, [Method::Negentropy], "{:?}", played.report.fallbacks);
    assert!(played.asked("NEG-OPEN") < 120, "{}", played.asked("NEG-OPEN"));
}

#[test]
fn an_unstated_record_cap_halves_the_windows() {
    let events = history(2_000);
    let config = ServeConfig { negentropy_records_max: 300, ..plain_relay() };
    let hide = Seen(|_, frame: String, _: &mut relaysync::sim::Turn| {
        Some(match frame.starts_with("[\"NEG-ERR\"") {
            true => {
                r#"["NEG-ERR","#.to_owned()
                    + frame.split(',').nth(1).unwrap_or("")
                    + r#","blocked: too many query results"]"#
            }
            false => frame,
        })
    });
    let played = Play::holding(&events[..100]).with(Remote::configured(config, &events).tamper(hide));
    played.is_equal();
    assert_eq!(played.report.methods, [Method::Negentropy]);
    assert!(played.asked("NEG-OPEN") < 200, "{}", played.asked("NEG-OPEN"));
}

/// Reported as vitorpamplona/amethyst#3480: a refusal for another reason led to a storm of ever smaller windows.
#[test]
fn only_refusals_of_the_size_split_a_window() {
    for words in ["blocked: too many requests", "blocked: spam", "rate-limited: too many NEG-OPENs"] {
        let events = history(50);
        let refused = NegentropyRefused(NegRefusal::NegErr(words.into()));
        let played = Play::holding(&events[..10]).with(Remote::with(&events).tamper(refused));
        played.is_equal();
        assert_eq!(played.asked("NEG-OPEN"), 1, "{words}");
    }
}

#[test]
fn a_relay_that_calls_every_set_too_large_is_paged_after_a_bounded_number_of_windows() {
    let events = history(50);
    let refused = NegentropyRefused(NegRefusal::NegErr("blocked: too many query results".into()));
    let played = Play::holding(&events[..10]).with(Remote::with(&events).tamper(refused));
    played.is_equal();
    assert!(played.asked("NEG-OPEN") <= 64, "{}", played.asked("NEG-OPEN"));
}

/// The local items used to be empty, so that everything was downloaded again.
#[test]
fn a_second_sync_of_equal_sets_downloads_nothing() {
    let events = history(800);
    let played = Play::holding(&events).with(Remote::with(&events));
    played.is_equal();
    assert_eq!((played.report.counters.received, played.asked("REQ")), (0, 0));
    assert_eq!(played.asked("NEG-OPEN"), 1);
}

#[test]
fn a_codec_that_ends_early_is_asked_again_and_then_paged() {
    let events = history(400);
    let items = events.iter().map(|event| relaysync::protocol::Item::of(event));
    let played = Play::holding(&events[..3]).with(Remote::with(&events).tamper(ShortCodec::new(items)).unchecked());
    played.is_equal();
}

#[test]
fn endless_rounds_are_given_up() {
    let events = history(100);
    let config = Config { negentropy_rounds_max: 50, ..one_shot() };
    let played = Play::holding(&events[..30]).config(config).with(Remote::with(&events).tamper(Infinite::default()));
    played.is_equal().within(STALL * 2);
}

#[test]
fn ids_that_never_come_are_asked_for_twice_and_reported() {
    let events = history(50);
    let missing = ids(&events[20..23]);
    let remote = Remote::with(&events).tamper(Missing(missing.clone())).unchecked();
    let played = Play::holding(&events[..10]).with(remote);
    played.has_gaps(&[(Window::ALL, GapReason::NotDelivered { events: 3 })]);
    assert_eq!(played.world.held(played.engine).len(), 47);
    let asked = played.filters_asked();
    for id in missing {
        let times =
            asked.iter().filter(|filter| filter.ids.iter().flatten().any(|asked| asked.to_bytes() == id)).count();
        assert_eq!(times, 2);
    }
}

#[test]
fn more_ids_than_a_page_holds_are_asked_for_in_smaller_numbers() {
    for cap in [100, 20, 5] {
        let events = history(300);
        let played = Play::holding(&events[..1]).with(Remote::with(&events).tamper(PageCap(cap)));
        played.is_equal();
        assert_eq!(played.report.methods, [Method::Negentropy]);
    }
}

/// A verdict on a relay is not for life.
#[test]
fn a_refusal_is_forgotten_at_the_next_full_pass() {
    let events = history(30);
    let mut world = World::new();
    let relay = world.add_relay(
        "wss://relay.example",
        Remote::with(&events).tamper(NegentropyRefused::notice("negentropy disabled")),
    );
    let engine = world.add_engine(daemon());
    world.give(engine, &events[..5]);
    world.sync_with(engine, &relay, [Filter::new()], LIVE);
    let settled = |world: &World| world.node(engine).reports()[0].complete;
    assert!(world.run_until(Duration::from_secs(60), settled), "{}", world.trace());
    assert_eq!(world.relay(&relay).heard_of("NEG-OPEN").len(), 1);
    // A short absence: the verdict holds.
    world.cut(&relay, "restart");
    world.run(Duration::from_secs(60));
    assert_eq!(world.relay(&relay).heard_of("NEG-OPEN").len(), 1);
    // A long one: it is tried again, and this time it works.
    world.relay_mut(&relay).mend();
    world.relay_mut(&relay).connects = relaysync::sim::Connects::Hangs;
    world.cut(&relay, "restart");
    world.run(Duration::from_secs(1_000));
    world.relay_mut(&relay).connects = relaysync::sim::Connects::Always;
    let again = |world: &World| world.relay(&relay).heard_of("NEG-OPEN").len() == 2;
    assert!(world.run_until(Duration::from_secs(8_000), again), "{}", world.trace());
    assert!(world.run_until(Duration::from_secs(60), settled), "{}", world.trace());
    assert!(world.node(engine).reports()[0].methods.contains(&Method::Negentropy));
}

/// Reported as vitorpamplona/amethyst#3884: a window with nothing in it was walked again every cycle.
#[test]
fn an_empty_result_is_coverage_too() {
    let filter = Filter::new().kind(7_777.into());
    let played = Play::default().filters([filter.clone()]).with(Remote::with(&history(20)));
    assert!(played.report.complete);
    let coverage = played.world.node(played.engine).coverage();
    assert_eq!(coverage.len(), 1);
    assert_eq!(coverage[0].windows.len(), 1);
    assert_eq!(coverage[0].windows[0].window, Window::ALL);
    // The next run within a quarter of an hour asks for what may have come since, and for nothing else.
    let (mut world, engine, relay) = (played.world, played.engine, played.relay);
    let asked = world.relay(&relay).heard_of("REQ").len();
    world.restart(engine);
    world.run(Duration::from_secs(60));
    world.sync_with(engine, &relay, [filter], relaysync::engine::RelayOptions::default());
    assert!(world.finish(engine)[0].complete);
    let filters = crate::support::filters_asked(&world, &relay);
    assert!(filters[asked..].iter().all(|filter| filter.since.is_some()), "{:?}", &filters[asked..]);
}

#[test]
fn forcing_a_method_that_the_relay_refuses_is_a_gap() {
    let events = history(10);
    let played = Play::by(Method::Negentropy)
        .with(Remote::with(&events).tamper(NegentropyRefused::notice("negentropy disabled")));
    played.has_gaps(&[(Window::ALL, GapReason::Refused("negentropy disabled".into()))]);
}

#[test]
fn a_filter_is_exactly_one_object_in_neg_open() {
    let events = history(10);
    let played = Play::holding(&events[..5]).with(Remote::with(&events));
    assert!(played.asked("NEG-OPEN") > 0);
    for frame in played.world.relay(&played.relay).heard_of("NEG-OPEN") {
        assert!(matches!(ClientMessage::parse(frame), Ok(ClientMessage::NegOpen { .. })), "{frame}");
    }
}

/// A relay that goes on without waiting for our answers would make us remember whatever it names.
#[test]
fn messages_out_of_turn_end_the_reconciliation() {
    let events = history(60);
    let hasty = Seen(|_, frame: String, turn: &mut Turn| match ClientMessage::parse(&frame) {
        Ok(ClientMessage::NegOpen { subscription, .. }) => {
            for n in 0..100_u8 {
                // Version 1; up to second 5 it has these ids (mode 2); above, a fingerprint (mode 1) that fits nothing.
                let mut message = vec![0x61, 6, 0, 2, 100];
                message.extend((0..100_u8).flat_map(|m| [[n; 16], [m; 16]].concat()));
                message.extend([0, 0, 1]);
                message.extend([n; 16]);
                turn.say(relay::neg_msg(&subscription, &message));
            }
            None
        }
        _ => Some(frame),
    });
    let config = Config { ids_waiting_max: 50, ..one_shot() };
    let played = Play::holding(&events[..5]).config(config).with(Remote::with(&events).tamper(hasty));
    played.holds_all();
    assert!(played.report.counters.rounds < 10, "{}", played.report.counters.rounds);
    let not_delivered = GapReason::NotDelivered { events: 100 * (played.report.counters.rounds as usize - 1) };
    played.has_gaps(&[(Window::ALL, not_delivered)]);
}
