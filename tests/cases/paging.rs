//! Paging by `until` (NIP-01).

use std::time::Duration;

use relaysync::engine::GapReason;
use relaysync::protocol::filter::matches;
use relaysync::protocol::message::{EoseHint, relay};
use relaysync::protocol::{ClientMessage, Event, Filter, Window};
use relaysync::sim::{
    Altered, Direction, Eose, EoseFault, Ignores, LimitZero, NOW_SECS, NegentropyRefused, PageCap, Remote, Seen,
    Shuffled, Turn, note, notes,
};
use relaysync::store::Method;

use crate::support::{Play, STALL, history, ids, one_shot, play};

fn without_negentropy(remote: Remote) -> Remote {
    remote.tamper(NegentropyRefused::notice("negentropy disabled"))
}

/// Reported as nostr-protocol/nips#2317: a cap of 300 below the 500 asked for lost events silently.
#[test]
fn caps_are_learned_and_nothing_is_lost() {
    for cap in [1, 2, 20, 99, 100, 300, 499, 500] {
        let events = history(if cap < 20 { 60 } else { 1_300 });
        let played = play(without_negentropy(Remote::with(&events)).tamper(PageCap(cap)));
        played.holds_all();
        // Every second has one event, and one event is all that a cap of 1 gives: nothing can be proven by it.
        assert_eq!(played.report.complete, cap > 1, "cap {cap}: {:?}", played.report.gaps);
    }
}

/// Reported as vitorpamplona/amethyst#3889: a relay ignores `until <= 0`, and paging never ends.
#[test]
fn a_relay_that_ignores_until_zero_does_not_make_it_endless() {
    for first in [0, 1, 2, 1_000] {
        let events = notes([first, first, 5_000, 6_000, NOW_SECS]);
        let played = play(without_negentropy(Remote::with(&events)).tamper(Ignores::UntilZero));
        played.holds_all();
        assert!(played.asked("REQ") < 10);
        // What that relay has of second 0 cannot be asked for, and is asked for only if the history reaches so far.
        let second_0 = (Window { since: 0, until: 0 }, GapReason::UntilIgnored);
        let gaps: Vec<_> = played.report.gaps.iter().map(|gap| (gap.window, gap.reason.clone())).collect();
        assert_eq!(gaps, if first < 2 { vec![second_0] } else { vec![] }, "first {first}");
    }
}

#[test]
fn a_relay_that_ignores_until_gives_a_gap_below_what_it_gave() {
    let events = history(900);
    let played = play(without_negentropy(Remote::with(&events)).tamper(Ignores::Until).unchecked());
    assert_eq!(played.world.held(played.engine).len(), 500);
    let oldest = NOW_SECS - 5_000;
    played.has_gaps(&[(Window { since: 0, until: oldest }, GapReason::UntilIgnored)]);
}

/// Reported as vitorpamplona/amethyst#3489: `until = oldest − 1` dropped events at page boundaries.
#[test]
fn nothing_is_lost_where_a_page_ends_inside_a_second() {
    // Three events a second, pages of ten: nearly every page ends inside a second.
    let events = notes((0..300).map(|n| NOW_SECS - 100 + n / 3));
    for cap in [4, 7, 10, 11] {
        play(without_negentropy(Remote::with(&events)).tamper(PageCap(cap))).is_equal();
    }
}

/// Reported as nbd-wtf/nostr-tools#523: invalid events broke the counting of pages.
#[test]
fn invalid_events_move_the_cursor_and_are_counted() {
    let events = history(300);
    let forged = ids(&events[100..200]);
    let relay = without_negentropy(Remote::with(&events)).tamper(Altered::signatures(forged)).tamper(PageCap(50));
    let played = play(relay.unchecked());
    // Pages overlap by a second: what was forged is looked at once more, as it might be genuine this time.
    assert!((100..=106).contains(&played.report.counters.invalid), "{:?}", played.report.counters);
    assert_eq!(played.world.held(played.engine).len(), 200);
    assert!(played.report.complete, "{:?}", played.report.gaps);
}

/// Reported as Spl0itable/nosflare#7: `["EOSE"]` without an id.
#[test]
fn an_eose_without_an_id_is_counted_and_the_stall_timer_ends_the_page() {
    let events = history(30);
    let played = play(without_negentropy(Remote::with(&events)).tamper(Eose::new(EoseFault::WithoutId)));
    assert_eq!(played.world.held(played.engine).len(), 30);
    assert!(played.report.counters.stray_eose > 0);
    assert!(!played.report.complete);
    played.within(STALL * 8);
}

/// NIP-67: a relay that says that there is more, and gives nothing more, has not said that this was all.
#[test]
fn a_hint_of_more_is_never_completeness() {
    let more = Seen(|direction, frame: String, turn: &mut Turn| {
        if direction == Direction::Down && frame.starts_with("[\"EOSE\"") {
            turn.say(frame.replace("\"]", "\",[\"more\"]]"));
            return None;
        }
        Some(frame)
    });
    let played = play(without_negentropy(Remote::with(&history(30))).tamper(more));
    assert_eq!(played.world.held(played.engine).len(), 30);
    assert!(!played.report.complete);
}

/// Reported as nbd-wtf/nostr-tools#222 and #514: a timeout was reported as EOSE.
#[test]
fn a_timeout_is_a_gap_and_never_completeness() {
    let events = history(30);
    let played = play(without_negentropy(Remote::with(&events)).tamper(Eose::new(EoseFault::Lost)));
    assert_eq!(played.world.held(played.engine).len(), 30);
    assert!(!played.report.complete);
    assert!(played.report.gaps.iter().all(|gap| gap.reason == GapReason::Stalled), "{:?}", played.report.gaps);
    assert_eq!(played.report.gaps.first().map(|gap| gap.window.until), Some(Window::OPEN));
    assert_eq!(played.report.gaps.last().map(|gap| gap.window.since), Some(0));
    played.within(STALL * 8);
}

#[test]
fn an_eose_that_comes_twice_changes_nothing() {
    let played = play(without_negentropy(Remote::with(&history(700))).tamper(Eose::new(EoseFault::Twice)));
    played.is_equal();
    assert!(played.report.counters.stray_eose > 0);
}

#[test]
fn an_early_eose_never_leads_to_a_false_complete() {
    for events_before in [1, 3, 20] {
        let events = history(60);
        let played = play(without_negentropy(Remote::with(&events)).tamper(Eose::new(EoseFault::Early(events_before))));
        let all = played.world.held(played.engine).len() == 60;
        assert!(all || !played.report.complete, "after {events_before}: {:?}", played.report);
    }
}

#[test]
fn the_order_within_a_page_does_not_matter() {
    let events = history(1_200);
    play(without_negentropy(Remote::with(&events)).tamper(Shuffled::oldest_first())).is_equal();
    for seed in 0..4 {
        play(without_negentropy(Remote::with(&events)).tamper(PageCap(100)).tamper(Shuffled::by(seed))).is_equal();
    }
}

/// A relay passes a new event on to the subscriptions that it satisfies, whatever their state: also within a page.
#[test]
fn an_old_event_that_arrives_within_a_page_skips_nothing() {
    let events = history(1_200);
    let old = note(NOW_SECS - 50_000).content("dated back").sign();
    for (position, cap) in [(1, 500), (250, 500), (499, 500), (70, 100)] {
        let (event, mut sent) = (old.clone(), 0);
        let arriving = Seen(move |direction, frame: String, turn: &mut Turn| {
            if direction == Direction::Down && frame.starts_with("[\"EVENT\",\"s1\"") {
                sent += 1;
                if sent == position {
                    turn.say(relay::event("s1", event.json_str()));
                }
            }
            Some(frame)
        });
        let events: Vec<Event> = events.iter().chain([&old]).cloned().collect();
        play(without_negentropy(Remote::with(&events)).tamper(PageCap(cap)).tamper(arriving)).is_equal();
    }
}

/// A relay that gives the oldest events first, and so many of these as `limit` says.
#[test]
fn a_relay_that_gives_the_oldest_events_of_all_is_never_complete() {
    for count in [900, 500] {
        let events = history(count);
        let oldest: Vec<Event> = events.iter().take(500).cloned().collect();
        let answers = Seen(move |direction, frame: String, turn: &mut Turn| match ClientMessage::parse(&frame) {
            Ok(ClientMessage::Req { subscription, filters }) if direction == Direction::Up => {
                let wanted = oldest.iter().filter(|event| matches(&filters[0], event));
                wanted.for_each(|event| turn.say(relay::event(&subscription, event.json_str())));
                if filters[0].since.is_some_and(|since| since.as_secs() > NOW_SECS - 10 * count + 4_990) && count > 500
                {
                    turn.say(relay::event(&subscription, note(NOW_SECS - 1).sign().json_str()));
                }
                turn.say(relay::eose(&subscription, EoseHint::None));
                None
            }
            _ => Some(frame),
        });
        let played = play(without_negentropy(Remote::with(&events)).tamper(answers).unchecked());
        assert_eq!(played.report.complete, count == 500, "{:?}", played.report);
    }
}

#[test]
fn events_of_the_future_are_fetched_and_the_coverage_does_not_reach_beyond_now() {
    let events = notes([NOW_SECS - 5, NOW_SECS + 86_400, NOW_SECS + 1_000_000]);
    let played = play(without_negentropy(Remote::with(&events)));
    played.is_equal();
    let (mut world, engine, relay) = (played.world, played.engine, played.relay);
    world.restart(engine);
    world.publish(&relay, &[note(NOW_SECS - 4).content("late").sign()]);
    world.sync(engine, &relay);
    assert!(world.finish(engine)[0].complete);
    assert_eq!(world.held(engine).len(), 4);
}

#[test]
fn filters_with_windows_fetch_their_windows() {
    let events = history(100);
    let (since, until) = (NOW_SECS - 500, NOW_SECS - 200);
    let filter = Filter::new().since(since.into()).until(until.into());
    for remote in [Remote::with(&events), without_negentropy(Remote::with(&events)).tamper(PageCap(7))] {
        let played = Play::holding(&events[60..63]).filters([filter.clone()]).with(remote);
        assert!(played.report.complete, "{:?}", played.report);
        let inside = |at: u64| (since..=until).contains(&at);
        let expected = events.iter().filter(|event| inside(event.created_at_secs())).count();
        let held = played.world.held(played.engine);
        assert_eq!(held.items().iter().filter(|item| inside(item.created_at)).count(), expected);
    }
}

#[test]
fn a_filter_that_selects_nothing_is_complete_at_once() {
    let nothing = Filter::new().since(10.into()).until(5.into());
    let played = Play::default().filters([nothing]).with(Remote::with(&history(10)));
    assert!(played.report.complete);
    assert_eq!(played.report.counters.received, 0);
}

#[test]
fn many_filters_are_fetched_side_by_side() {
    let events: Vec<_> = (0..40_u16).map(|kind| note(NOW_SECS - u64::from(kind)).kind(1_000 + kind).sign()).collect();
    let filters = (0..40_u16).map(|kind| Filter::new().kind((1_000 + kind).into()));
    Play::default().filters(filters).with(Remote::with(&events)).is_equal();
}

#[test]
fn paging_is_used_where_nothing_is_held_and_never_touches_limit_zero() {
    let played = play(Remote::with(&history(40)).tamper(LimitZero::Silent));
    played.is_equal().within(Duration::from_secs(2));
    assert_eq!(played.report.methods, [Method::Req]);
}

#[test]
fn a_dry_run_stores_nothing() {
    let events = history(40);
    let config = relaysync::engine::Config { dry_run: true, ..one_shot() };
    for held in [0, 10] {
        let played = Play::holding(&events[..held]).config(config.clone()).with(Remote::with(&events));
        assert!(played.report.complete, "{:?}", played.report);
        assert_eq!(played.world.held(played.engine).len(), held);
        assert_eq!(played.report.counters.would_store, 40 - held as u64);
        assert!(played.world.node(played.engine).commits.iter().all(|events| *events == 0));
        assert!(played.world.node(played.engine).coverage().is_empty());
    }
}

/// Seen in the wild: EOSE before the stored events. The relay says twice that it has nothing, then sends everything.
#[test]
fn events_after_eose_are_taken_but_the_relay_has_proven_nothing() {
    let events = notes((0..60).map(|n| NOW_SECS - 100_000 + 10 * n));
    let hasty = Seen(|_, frame: String, turn: &mut Turn| {
        if let Some(name) = frame.strip_prefix("[\"REQ\",\"").and_then(|rest| rest.split('"').next()) {
            turn.say(relay::eose(name, EoseHint::None));
        }
        Some(frame)
    });
    let played = play(without_negentropy(Remote::with(&events)).tamper(hasty));
    assert!(!played.report.complete, "{:?}", played.report);
    assert!(played.report.gaps.iter().all(|gap| gap.reason == GapReason::EarlyEose));
    assert!(!played.world.held(played.engine).is_empty());
}

/// A relay that makes up another event of the same second each time brings something new for ever, and nothing older.
#[test]
fn a_relay_that_makes_events_up_does_not_hold_a_page_at_its_second() {
    let events = notes((0..50).map(|_| NOW_SECS - 100));
    let mut made_up = 0_u64;
    let forger = Seen(move |direction, frame: String, turn: &mut Turn| {
        let is_page = direction == Direction::Down && frame.starts_with("[\"EOSE\"");
        if let Some(name) = frame.split('"').nth(3).filter(|_| is_page) {
            made_up += 1;
            let event = note(NOW_SECS - 100).content(format!("made up {made_up}")).sign();
            turn.say(format!(r#"["EVENT","{name}",{}]"#, event.json_str().replace("made up", "altered")));
        }
        Some(frame)
    });
    let played = play(without_negentropy(Remote::with(&events).tamper(PageCap(20))).tamper(forger));
    assert!(played.asked("REQ") < 90, "{}", played.asked("REQ"));
    assert!(!played.report.complete);
}

/// A relay that ignores `until` answers a filter that ends in the past with what is newer, and looks empty.
#[test]
fn a_relay_that_ignores_until_is_not_empty_below_the_end_of_a_filter() {
    let events = history(300);
    let filter = Filter::new().until((NOW_SECS - 2_000).into());
    let relay = without_negentropy(Remote::with(&events)).tamper(PageCap(50)).tamper(Ignores::Until);
    let played = Play::default().filters([filter]).with(relay);
    played.has_gaps(&[(Window { since: 0, until: NOW_SECS - 2_000 }, GapReason::UntilIgnored)]);
}
