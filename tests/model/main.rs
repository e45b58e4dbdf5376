//! Property tests: the machines against naive models of what they stand for.

mod access;
mod crawl;
mod discover;
mod pipeline;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use relaysync::engine::{Config, Direction, RelayOptions};
use relaysync::fetch::Reconcile;
use relaysync::plan::windows_to_fetch;
use relaysync::protocol::{ClientMessage, Event, Filter, Item, ItemSet, ItemView, RelayMessage, RelayUrl, Window};
use relaysync::serve::{ServeConfig, reconcile};
use relaysync::sim::{NOW_SECS, NegentropyRefused, PageCap, Remote, Shuffled, World, note};
use relaysync::store::{Method, Proof};

/// Signed events cost time: one supply for all cases. Number `n` is dated `n % 16` seconds after [`FIRST_SECS`].
const SUPPLY: usize = 16 * 48;
const FIRST_SECS: u64 = NOW_SECS - 10_000;

pub(crate) fn supply() -> &'static [Event] {
    static EVENTS: OnceLock<Vec<Event>> = OnceLock::new();
    EVENTS.get_or_init(|| {
        let event = |n: usize| note(FIRST_SECS + (n % 16) as u64).kind(1_000 + (n % 5) as u16).content(n.to_string());
        (0..SUPPLY).map(|n| event(n).sign()).collect()
    })
}

/// How many events each of 16 seconds has: few in most, many in some.
fn seconds() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(prop_oneof![3 => 0_usize..4, 1 => 20_usize..48], 16)
}

fn events_of(seconds: &[usize]) -> Vec<Event> {
    let of = |(second, count): (usize, &usize)| (0..*count).map(move |n| supply()[n * 16 + second].clone());
    seconds.iter().enumerate().flat_map(of).collect()
}

/// Cases that once failed are kept in this folder.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let persistence = FileFailurePersistence::Direct("tests/model/regressions.txt");
    ProptestConfig { cases, failure_persistence: Some(Box::new(persistence)), ..ProptestConfig::default() }
}

pub(crate) fn quiet() -> Config {
    Config { progress_interval: Duration::ZERO, ..Config::one_shot() }
}

proptest! {
    #![proptest_config(config(120))]

    /// Everything is fetched, or a gap covers what is missing: never a false "complete".
    #[test]
    fn paging_fetches_everything_or_says_what_is_missing(
        seconds in seconds(),
        cap in prop_oneof![20_usize..60, 60_usize..500],
        order in proptest::option::of(any::<u64>()),
        kinds in any::<bool>(),
        page_events in prop_oneof![Just(500_usize), 20_usize..100],
    ) {
        let events = events_of(&seconds);
        let remote = Remote::with(&events).tamper(NegentropyRefused::notice("negentropy disabled")).tamper(PageCap(cap));
        let remote = match order {
            Some(seed) => remote.tamper(Shuffled::by(seed)),
            None => remote,
        };
        let mut world = World::new();
        let relay = world.add_relay("wss://relay.example", remote);
        let engine = world.add_engine(Config { page_events, ..quiet() });
        let filter = if kinds { Filter::new().kinds((1_000..1_005_u16).map(Into::into)) } else { Filter::new() };
        world.sync_with(engine, &relay, [filter], RelayOptions::default());
        let report = world.finish(engine).remove(0);
        let held = world.held(engine);
        let missing: Vec<Item> = world.held_by(&relay).items().iter().filter(|item| !held.contains(item)).copied().collect();
        for item in &missing {
            let covered = report.gaps.iter().any(|gap| gap.window.contains(item.created_at));
            prop_assert!(covered, "{item:?} is missing without a gap: {:?}", report.gaps);
        }
        prop_assert_eq!(report.complete, report.gaps.is_empty());
        prop_assert!(missing.is_empty() || !report.complete);
        // A second that fits well into a page is never in a gap.
        for gap in &report.gaps {
            prop_assert_eq!(gap.window.since, gap.window.until);
            let count = seconds[(gap.window.since - FIRST_SECS) as usize];
            prop_assert!(count >= cap.min(page_events).min(events.len()), "{count} in {:?}: {:?}", gap, world.relay(&relay).heard_of("REQ"));
        }
        let most = 20 + events.len() * 4 / cap.min(page_events) + 80 * report.gaps.len() + 80 * seconds.iter().filter(|count| **count >= cap.min(page_events)).count();
        prop_assert!(world.relay(&relay).heard_of("REQ").len() <= most, "{} requests", world.relay(&relay).heard_of("REQ").len());
    }

    /// Any two sets become equal, whichever way events go, through windows, caps and splits.
    #[test]
    fn reconciliation_makes_both_sides_equal(
        here in proptest::collection::vec(any::<bool>(), SUPPLY / 4),
        there in proptest::collection::vec(any::<bool>(), SUPPLY / 4),
        window_items in 10_usize..400,
        records_max in prop_oneof![Just(1_000_000_usize), 30_usize..300],
    ) {
        let pick = |which: &[bool]| -> Vec<Event> {
            supply().iter().zip(which).filter(|(_, picked)| **picked).map(|(event, _)| event.clone()).collect()
        };
        let mut world = World::new();
        let config = ServeConfig { negentropy_records_max: records_max, ..ServeConfig::default() };
        let relay = world.add_relay("wss://relay.example", Remote::configured(config, &pick(&there)));
        let engine = world.add_engine(Config { negentropy_window_items: window_items, ..quiet() });
        world.give(engine, &pick(&here));
        let both = RelayOptions { direction: Direction::Both, ..RelayOptions::default() };
        world.sync_with(engine, &relay, [Filter::new()], both);
        let report = world.finish(engine).remove(0);
        prop_assert!(report.complete, "{:?}", report.gaps);
        prop_assert_eq!(world.held(engine), world.held_by(&relay));
        prop_assert_eq!(world.held(engine).len(), here.iter().zip(&there).filter(|(here, there)| **here || **there).count());
    }
}

/// A small item set from times: ids are numbered.
fn items(times: &[u64]) -> ItemSet {
    let item = |(number, created_at): (usize, &u64)| {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&(number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
        Item { created_at: *created_at, id }
    };
    times.iter().enumerate().map(item).collect()
}

fn window() -> impl Strategy<Value = Window> {
    (0_u64..60, 0_u64..60, any::<bool>())
        .prop_map(|(since, length, open)| Window { since, until: if open { Window::OPEN } else { since + length } })
}

proptest! {
    #![proptest_config(config(512))]

    /// Windows are disjoint, newest first, cover all, and refusals of the size end in bounded splits.
    #[test]
    fn reconciliation_windows_cover_all_of_time_once(
        times in proptest::collection::vec(0_u64..100, 0..200),
        items_max in 1_usize..80,
        refusals in proptest::collection::vec((any::<bool>(), proptest::option::of(1_u64..50)), 0..40),
        whole in window(),
    ) {
        let set = Arc::new(items(&times));
        let mut reconciler = Reconcile::new(set.clone(), whole, items_max);
        let mut refusals = refusals.into_iter();
        let mut proven: Vec<Window> = Vec::new();
        let mut opened = 0;
        while let Some((filter, message)) = reconciler.poll_ask(&Filter::new(), 60_000) {
            opened += 1;
            prop_assert!(opened < 1_000);
            let window = Window::of(&filter);
            if let Some((true, stated)) = refusals.next()
                && reconciler.split(stated, 512, 100)
            {
                continue;
            } else if !reconciler.is_asking() {
                // Too small to be split: given back as it was.
                proven.extend(reconciler.give_up());
                break;
            }
            let view = ItemView::new(set.clone(), window);
            let answer = reconcile(view, &message, 60_000).expect("a genuine message");
            let (mut need, mut have) = (Vec::new(), Vec::new());
            reconciler.handle_message(&answer, 10, &mut need, &mut have);
            prop_assert!(need.is_empty() && have.is_empty());
            reconciler.handle_settled(3, 60_000);
            proven.push(window);
        }
        prop_assert!(reconciler.is_done());
        prop_assert_eq!(proven.first().map(|window| window.until), Some(whole.until));
        prop_assert_eq!(proven.last().map(|window| window.since), Some(whole.since));
        prop_assert!(proven.windows(2).all(|pair| pair[0].since == pair[1].until + 1), "{proven:?}");
    }

    #[test]
    fn what_is_left_to_fetch_is_what_no_valid_proof_covers(
        wanted in window(),
        proofs in proptest::collection::vec((window(), 0_u64..2_000), 0..6),
        now in 0_u64..2_000,
    ) {
        let proofs: Vec<Proof> = proofs
            .into_iter()
            .map(|(window, asked_at_secs)| Proof::new(window, Method::Req, asked_at_secs))
            .collect();
        let todo = windows_to_fetch(wanted, &proofs, now, Duration::from_secs(900), 10);
        let covered = |second: u64| {
            proofs.iter().any(|proof| {
                let valid = proof.asked_at_secs <= now && now - proof.asked_at_secs <= 900;
                valid && proof.window.contains(second) && second + 10 < proof.asked_at_secs
            })
        };
        for second in (0..200).chain(1_990..2_010).chain([Window::OPEN - 1, Window::OPEN]) {
            let left = todo.windows.iter().filter(|window| window.contains(second)).count();
            let due = wanted.contains(second) && !(second < Window::OPEN - 10 && covered(second));
            prop_assert_eq!(left, usize::from(due), "second {} in {:?}", second, todo.windows);
        }
        prop_assert!(todo.windows.windows(2).all(|pair| pair[0].since > pair[1].until));
        prop_assert!(todo.windows.iter().all(|window| !window.is_empty()));
    }

    #[test]
    fn item_sets_behave_like_sets(
        times in proptest::collection::vec(0_u64..50, 0..80),
        more in proptest::collection::vec(0_u64..50, 0..80),
        window in window(),
    ) {
        let (set, other) = (items(&times), items(&more));
        let model: BTreeSet<Item> = set.items().iter().copied().collect();
        prop_assert!(set.items().is_sorted());
        prop_assert_eq!(set.len(), model.len());
        let inside: Vec<Item> = model.iter().filter(|item| window.contains(item.created_at)).copied().collect();
        prop_assert_eq!(&set.items()[set.range(window)], &inside[..]);
        let view = ItemView::new(Arc::new(items(&times)), window);
        prop_assert_eq!(view.items(), &inside[..]);
        let union = set.union(other.items().iter().copied());
        let both: BTreeSet<Item> = model.iter().chain(other.items()).copied().collect();
        prop_assert!(union.items().iter().eq(both.iter()));
        prop_assert!(other.items().iter().all(|item| set.contains(item) == model.contains(item)));
    }

    #[test]
    fn relay_urls_are_normal_after_one_pass(
        tls in any::<bool>(),
        host in "[a-zA-Z][a-zA-Z0-9]{0,8}(\\.[a-zA-Z]{2,5}){0,2}\\.{0,2}",
        port in proptest::option::of(1_u16..),
        path in "(/[a-zA-Z0-9._~%-]{0,6}){0,3}",
        query in "(\\?[a-z_]{0,6}=[a-zA-Z0-9]{0,4}(&utm_[a-z]{1,4}=x)?)?",
    ) {
        let scheme = if tls { "wss" } else { "ws" };
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        let text = format!("{scheme}://{host}{port}{path}{query}");
        if let Ok(url) = RelayUrl::parse(&text) {
            let again = RelayUrl::parse(url.as_str());
            prop_assert_eq!(again.as_ref().map(RelayUrl::as_str), Ok(url.as_str()), "{}", text);
            prop_assert!(!url.as_str().ends_with('/') || url.as_str().contains('?'), "{}", url);
            prop_assert_eq!(url.host(), url.host().to_lowercase());
            prop_assert!(!url.host().ends_with('.'));
            let shouted = format!("{scheme}://{}{port}{path}{query}", host.to_uppercase());
            prop_assert_eq!(RelayUrl::parse(&shouted), Ok(url));
        }
    }

    #[test]
    fn relay_urls_of_any_text_do_not_panic(text in "\\PC{0,40}") {
        for text in [text.clone(), format!("wss://{text}"), format!("ws://x.example/{text}")] {
            if let Ok(url) = RelayUrl::parse(&text) {
                let _ = (url.host(), url.port(), url.is_tls());
                prop_assert_eq!(RelayUrl::parse(url.as_str()), Ok(url));
            }
        }
    }

    #[test]
    fn messages_of_any_text_do_not_panic(text in any::<String>(), json in json_text()) {
        for text in [&text, &json] {
            let _ = RelayMessage::parse(text);
            let _ = ClientMessage::parse(text);
        }
        let _ = Event::parse(json.clone().into());
    }

    #[test]
    fn events_of_any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Event::parse(bytes.clone().into());
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = RelayMessage::parse(&text);
        }
    }
}

/// JSON of the shape of messages, of the wrong types as often as not.
fn json_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("EVENT"),
        Just("EOSE"),
        Just("OK"),
        Just("CLOSED"),
        Just("NOTICE"),
        Just("AUTH"),
        Just("COUNT"),
        Just("REQ"),
        Just("NEG-OPEN"),
        Just("NEG-MSG"),
        Just("NEG-ERR"),
        Just("NEG-CLOSE"),
        Just("s1"),
        Just("id"),
        Just("tags"),
    ];
    let leaf = prop_oneof![
        word.prop_map(|word| format!("\"{word}\"")),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap_or_default()),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(|all| format!("[{}]", all.join(","))),
            proptest::collection::vec(inner, 0..4).prop_map(|all| {
                let fields: Vec<String> =
                    all.iter().enumerate().map(|(n, value)| format!("\"f{n}\":{value}")).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

#[test]
fn truncated_and_altered_frames_do_not_panic() {
    let event = supply()[0].json_str();
    let frames = [
        format!(r#"["EVENT","s1",{event}]"#),
        r#"["EOSE","s1",["finish"]]"#.to_owned(),
        format!(r#"["OK","{}",true,"duplicate: \u00e9"]"#, "ab".repeat(32)),
        r#"["CLOSED","s1","auth-required: x"]"#.to_owned(),
        r#"["NEG-ERR","s1","blocked: too many",500]"#.to_owned(),
        r#"["COUNT","s1",{"count":7}]"#.to_owned(),
        r#"["REQ","s1",{"kinds":[1],"limit":5},{"ids":[]}]"#.to_owned(),
        r#"["NEG-OPEN","s1",{"since":1},"6100"]"#.to_owned(),
    ];
    for frame in &frames {
        for end in (0..=frame.len()).filter(|end| frame.is_char_boundary(*end)) {
            let _ = RelayMessage::parse(&frame[..end]);
            let _ = ClientMessage::parse(&frame[..end]);
            for byte in ["\"", "[", "}", "\\", "0", "\u{7f}"] {
                let altered = format!("{}{byte}{}", &frame[..end], &frame[end..]);
                let _ = RelayMessage::parse(&altered);
                let _ = ClientMessage::parse(&altered);
            }
        }
    }
}
