//! More events in one second than a page holds. Reported as nostr-protocol/nips#2407.

use relaysync::engine::{Config, GapReason};
use relaysync::protocol::{Event, Filter, Window};
use relaysync::serve::ServeConfig;
use relaysync::sim::{Direction, NOW_SECS, NegentropyRefused, PageCap, Remote, Seen, Turn, note, plain_relay};

use crate::support::{Play, one_shot, play};

const SECOND: u64 = NOW_SECS - 1_000;

/// 700 events in one second, of 16 kinds by 5 authors, and some before and after it.
fn burst() -> Vec<Event> {
    let inside = (0..700_u16).map(|n| {
        note(SECOND)
            .kind(1_000 + n % 16)
            .by((n % 5 + 1) as u8)
            .tag("t", &format!("t{}", n % 32))
            .content(n.to_string())
            .sign()
    });
    let around = (0..20_u16)
        .map(|n| note(SECOND - 500 + 50 * u64::from(n) + 1).kind(1_000).content(format!("around {n}")).sign());
    inside.chain(around).collect()
}

fn without_negentropy(remote: Remote) -> Remote {
    remote.tamper(NegentropyRefused::notice("negentropy disabled"))
}

#[test]
fn a_higher_limit_comes_first() {
    let played = play(Remote::with(&burst()));
    played.is_equal();
    assert_eq!(played.asked("NEG-OPEN"), 0);
    assert!(played.filters_asked().iter().any(|filter| filter.limit > Some(500)));
}

#[test]
fn then_the_second_is_reconciled() {
    for cap in [500, 300, 100] {
        let config = ServeConfig { page_events_max: cap, ..plain_relay() };
        let played = play(Remote::configured(config, &burst()));
        played.is_equal();
        assert!(played.asked("NEG-OPEN") > 0);
    }
}

#[test]
fn then_the_filter_is_split_by_what_it_lists() {
    let by_kind = Filter::new().kinds((1_000..1_016).map(Into::into));
    let by_author = Filter::new().authors(burst().iter().map(|event| event.pubkey));
    let by_tag = Filter::new().hashtags((0..32).map(|n| format!("t{n}")));
    for (filter, cap) in [(by_kind, 100), (by_author, 300), (by_tag.clone(), 100)] {
        let tagged = filter == by_tag;
        let played = Play::default()
            .filters([filter.clone()])
            .with(without_negentropy(Remote::with(&burst())).tamper(PageCap(cap)));
        assert!(played.report.complete, "{filter:?}: {:?}", played.report.gaps);
        assert_eq!(played.world.held(played.engine).len(), if tagged { 700 } else { 720 });
    }
}

#[test]
fn then_it_is_a_gap_for_that_second_only() {
    let played = play(without_negentropy(Remote::with(&burst())).tamper(PageCap(300)));
    let held = played.world.held(played.engine);
    let received = held.items().iter().filter(|item| item.created_at == SECOND).count();
    assert!(received >= 300);
    assert_eq!(held.len() - received, 20, "nothing outside of the second is lost");
    played.has_gaps(&[(Window { since: SECOND, until: SECOND }, GapReason::SecondOverflow { received })]);
}

#[test]
fn a_relay_with_nothing_but_one_full_second_is_no_exception() {
    let events: Vec<Event> = burst().into_iter().filter(|event| event.created_at_secs() == SECOND).collect();
    for cap in [500, 100] {
        let played = play(without_negentropy(Remote::with(&events)).tamper(PageCap(cap)));
        assert!(!played.report.complete, "cap {cap}: {} held", played.world.held(played.engine).len());
        let config = ServeConfig { page_events_max: cap, ..plain_relay() };
        play(Remote::configured(config, &events)).is_equal();
    }
    // Nor is a filter for that very second.
    let filter = Filter::new().since(SECOND.into()).until(SECOND.into());
    let played =
        Play::default().filters([filter]).with(without_negentropy(Remote::with(&burst())).tamper(PageCap(100)));
    assert!(!played.report.complete);
}

#[test]
fn the_work_spent_on_one_second_is_bounded() {
    let filter = Filter::new().kinds((1_000..1_016).map(Into::into));
    let config = Config { split_requests_max: 3, ..one_shot() };
    let remote = without_negentropy(Remote::with(&burst())).tamper(PageCap(100));
    let played = Play::default().config(config).filters([filter]).with(remote);
    assert!(matches!(played.report.gaps[..], [ref gap] if gap.window == Window { since: SECOND, until: SECOND }));
}

/// NIP-67: "finish" below a second that fills a page says nothing of that second.
#[test]
fn a_hint_below_a_full_second_does_not_end_it() {
    for (page_events, below) in [(20, 0), (100, 5), (500, 2)] {
        let mut events: Vec<Event> =
            (0..33).map(|n| note(NOW_SECS - 100).content(format!("burst {n}")).sign()).collect();
        events.extend((0..below).map(|n| note(NOW_SECS - 200 - n).content(format!("below {n}")).sign()));
        let config = ServeConfig { page_events_max: 20, eose_hints: true, ..plain_relay() };
        let engine = Config { page_events, ..one_shot() };
        Play::default().config(engine).with(Remote::configured(config, &events)).is_equal();
    }
}

/// An answer without the events that are known to be in a second proves nothing of it.
#[test]
fn an_answer_to_something_else_does_not_prove_a_second() {
    let mut events: Vec<Event> = (0..60).map(|n| note(SECOND).content(format!("burst {n}")).sign()).collect();
    events.extend((0..30).map(|n| note(SECOND + 10 + n).content(format!("newer {n}")).sign()));
    let deaf = Seen(|direction, frame: String, _: &mut Turn| {
        let is_raised = direction == Direction::Up && frame.contains("\"limit\":5000");
        Some(if is_raised { frame.replace(&format!("\"until\":{SECOND},"), "") } else { frame })
    });
    let played = play(without_negentropy(Remote::with(&events).tamper(PageCap(20))).tamper(deaf));
    let second = Window { since: SECOND, until: SECOND };
    played.has_gaps(&[(second, GapReason::SecondOverflow { received: 20 })]);
}

/// What is published while a page is on its way comes beside it, and does not show that the relay gives more at once.
#[test]
fn news_beside_a_page_does_not_pass_for_a_larger_page() {
    let events: Vec<Event> = (0..40).map(|n| note(SECOND).content(format!("burst {n}")).sign()).collect();
    let mut pages = 0;
    let busy = Seen(move |direction, frame: String, turn: &mut Turn| {
        if direction == Direction::Down && frame.starts_with("[\"EOSE\"") {
            pages += 1;
            let name = frame.split('"').nth(3).unwrap_or_default().to_owned();
            for n in (0..3).take_while(|_| pages == 1) {
                let news = note(NOW_SECS).content(format!("news {n}")).sign();
                turn.say(format!(r#"["EVENT","{name}",{}]"#, news.json_str()));
            }
        }
        Some(frame)
    });
    let played = play(without_negentropy(Remote::with(&events).tamper(PageCap(20))).tamper(busy));
    let second = Window { since: SECOND, until: SECOND };
    played.has_gaps(&[(second, GapReason::SecondOverflow { received: 20 })]);
}
