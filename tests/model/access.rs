//! Access rules against what they mean: in a universe that is small enough to be walked from end to end, and large
//! enough to have an event for every way in which conditions can be met or missed.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use relaysync::peer::{AccessRules, Audience, Capability, FilterVerdict, Rule, check_match};
use relaysync::protocol::filter::{is_void, matches};
use relaysync::protocol::{Event, Filter, PublicKey, hex};

use crate::config;

/// No filter names the last of these.
const KINDS: [u16; 3] = [5_000, 5_001, 9];
const AUTHORS: [u8; 3] = [1, 2, 9];
const VALUES: [&str; 3] = ["x", "y", "z"];
const PRINCIPALS: u8 = 3;

fn key(number: u8) -> PublicKey {
    PublicKey::from_byte_array([number; 32])
}

/// All events: of each kind and author, with each set of `t` and of `r` tags.
fn universe() -> &'static [Event] {
    static EVENTS: OnceLock<Vec<Event>> = OnceLock::new();
    EVENTS.get_or_init(|| {
        let tag_sets = || (0..64_usize).map(|set| (set % 8, set / 8));
        let of = |kind| AUTHORS.into_iter().flat_map(move |author| tag_sets().map(move |tags| (kind, author, tags)));
        KINDS.into_iter().flat_map(of).enumerate().map(|(number, it)| event(number, it)).collect()
    })
}

fn event(number: usize, (kind, author, (t, r)): (u16, u8, (usize, usize))) -> Event {
    let tags_of = |name: &str, set: usize| {
        let values = VALUES.iter().enumerate().filter(move |(place, _)| set >> place & 1 == 1);
        values.map(|(_, value)| format!(r#"["{name}","{value}"]"#)).collect::<Vec<String>>()
    };
    let tags = [tags_of("t", t), tags_of("r", r)].concat().join(",");
    let (id, author) = (format!("{number:064x}"), hex::encode(&[author; 32]));
    let json = format!(
        r#"{{"id":"{id}","pubkey":"{author}","created_at":{},"kind":{kind},"tags":[{tags}],"content":"","sig":"{}"}}"#,
        number % 4,
        "5".repeat(128)
    );
    Event::parse(json.into()).unwrap()
}

fn some_of<T: Clone + Ord + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = BTreeSet<T>> {
    btree_set(proptest::sample::select(values), 1..=values.len())
}

/// A filter that a rule can have.
fn a_match() -> impl Strategy<Value = Filter> {
    let tags = || option::weighted(0.4, some_of(&VALUES[..2]));
    (option::weighted(0.7, some_of(&KINDS[..2])), option::weighted(0.4, some_of(&AUTHORS[..2])), tags(), tags())
        .prop_map(|(kinds, authors, t, r)| {
            let mut filter = Filter::new();
            filter.kinds = kinds.map(|kinds| kinds.into_iter().map(Into::into).collect());
            filter.authors = authors.map(|authors| authors.into_iter().map(key).collect());
            let mut json = serde_json::to_value(filter).unwrap();
            for (name, values) in [("#t", t), ("#r", r)] {
                if let Some(values) = values {
                    json[name] = serde_json::to_value(values).unwrap();
                }
            }
            serde_json::from_value(json).unwrap()
        })
}

/// A filter that a client may send.
fn a_filter() -> impl Strategy<Value = Filter> {
    let window = option::weighted(0.2, (0_u64..4, 0_u64..4));
    let ids = option::weighted(0.2, btree_set(0..universe().len(), 0..4));
    (a_match(), window, ids, any::<bool>(), 0..20).prop_map(|(filter, window, ids, limited, empty)| Filter {
        since: window.map(|(since, _)| since.into()),
        until: window.map(|(_, until)| until.into()),
        ids: ids.map(|ids| ids.into_iter().map(|number| universe()[number].id).collect()),
        limit: limited.then_some(1),
        kinds: if empty == 0 { Some(BTreeSet::new()) } else { filter.kinds.clone() },
        ..filter
    })
}

fn a_rule() -> impl Strategy<Value = Rule> {
    let capability = prop_oneof![3 => Just(Capability::SyncRead), 1 => Just(Capability::SyncWrite)];
    (0..PRINCIPALS, capability, a_match()).prop_map(|(principal, capability, events)| {
        let principal = key(100 + principal);
        Rule { principal, capability, events }
    })
}

fn some_rules() -> impl Strategy<Value = AccessRules> {
    (vec(a_match(), 0..4), vec(a_rule(), 0..9)).prop_map(|(protected, rules)| AccessRules::new(protected, rules))
}

fn some_keys() -> impl Strategy<Value = BTreeSet<PublicKey>> {
    btree_set((0..PRINCIPALS).prop_map(|number| key(100 + number)), 0..3)
}

fn is_protected(rules: &AccessRules, event: &Event) -> bool {
    rules.protected().iter().any(|filter| matches(filter, event))
}

fn is_granted(rules: &AccessRules, keys: &BTreeSet<PublicKey>, capability: Capability, event: &Event) -> bool {
    let suits = |rule: &&Rule| rule.capability == capability && keys.contains(&rule.principal);
    rules.rules().iter().filter(suits).any(|rule| matches(&rule.events, event))
}

fn selected(filter: &Filter) -> impl Iterator<Item = &'static Event> {
    universe().iter().filter(|event| matches(filter, event))
}

proptest! {
    #![proptest_config(config(3_000))]

    /// Whether rules cover a filter is told from conditions alone, and it is as if each event had been looked at: never
    /// more, and for filters without ids and window never less.
    #[test]
    fn rules_cover_a_filter_just_if_they_allow_all_that_it_selects(
        rules in some_rules(),
        keys in some_keys(),
        filter in a_filter(),
        capability in prop_oneof![Just(Capability::SyncRead), Just(Capability::SyncWrite)],
    ) {
        let mut protected = selected(&filter).filter(|event| is_protected(&rules, event));
        let is_allowed = protected.all(|event| is_granted(&rules, &keys, capability, event));
        let is_covered = rules.covers(&keys, capability, &filter);
        prop_assert!(is_allowed || !is_covered, "not all is allowed, but {filter:?} is covered");
        if filter.ids.is_none() && filter.since.is_none() {
            prop_assert_eq!(is_covered, is_allowed);
        }
    }

    /// A filter names what is protected just if, for one of its kinds, it selects nothing else.
    #[test]
    fn a_filter_names_what_is_protected_as_a_whole(rules in some_rules(), filter in a_filter()) {
        let narrowed: Vec<Filter> = match &filter.kinds {
            None => vec![filter.clone()],
            Some(kinds) => kinds.iter().map(|kind| Filter { kinds: Some([*kind].into()), ..filter.clone() }).collect(),
        };
        let is_whole = |narrowed: &Filter| {
            !is_void(narrowed) && selected(narrowed).all(|event| is_protected(&rules, event))
        };
        let (names, all) = (rules.names(&filter), rules.protects_all(&filter));
        prop_assert!(!names || narrowed.iter().any(is_whole));
        prop_assert!(!all || is_whole(&filter));
        prop_assert!(rules.may_protect(&filter) || !selected(&filter).any(|event| is_protected(&rules, event)));
        if filter.ids.is_none() && filter.since.is_none() {
            prop_assert_eq!(names, narrowed.iter().any(is_whole));
            prop_assert_eq!(all, is_whole(&filter));
        }
    }

    /// Every way to ask about an event says the same.
    #[test]
    fn views_audiences_and_verdicts_show_what_is_allowed(
        rules in some_rules(),
        keys in some_keys(),
        filter in a_filter(),
    ) {
        let view = rules.view(&keys);
        let verdict = rules.verdict(&keys, &filter);
        for event in universe() {
            let is_shown =
                !is_protected(&rules, event) || is_granted(&rules, &keys, Capability::SyncRead, event);
            prop_assert_eq!(rules.protects(event), is_protected(&rules, event));
            prop_assert_eq!(rules.allows(&keys, Capability::SyncRead, event), is_shown);
            prop_assert_eq!(view.shows(event), is_shown);
            prop_assert_eq!(Audience::of(&rules, event).is_none_or(|mut audience| audience.has(&keys)), is_shown);
            match &verdict {
                FilterVerdict::Whole => prop_assert!(is_shown || !matches(&filter, event)),
                FilterVerdict::Veiled(through) => prop_assert_eq!(through.shows(event), is_shown),
                FilterVerdict::Refused => prop_assert!(rules.names(&filter)),
            }
        }
    }

    /// What is granted, revoked, moved, protected and freed one by one is the same as if it had been there at once, down
    /// to its digest; and the changes say who has gained and lost.
    #[test]
    fn rules_that_were_changed_are_like_new(
        older in some_rules(),
        grants in vec(a_rule(), 0..4),
        revoked in vec(any::<prop::sample::Index>(), 0..4),
        protected in vec(a_match(), 0..3),
        freed in vec(any::<prop::sample::Index>(), 0..3),
        moves in any::<bool>(),
    ) {
        let mut rules = older.clone();
        for rule in grants {
            let is_new = !rules.rules().contains(&rule);
            prop_assert_eq!(rules.grant(rule).unwrap(), is_new);
        }
        for index in revoked.iter().filter(|_| !older.rules().is_empty()) {
            let rule = index.get(&Vec::from_iter(older.rules())).to_owned().clone();
            let was_there = rules.rules().contains(&rule);
            prop_assert_eq!(rules.revoke(&rule), was_there);
        }
        for filter in protected {
            let is_new = !rules.protected().contains(&filter);
            prop_assert_eq!(rules.protect(filter).unwrap(), is_new);
        }
        for index in freed.iter().filter(|_| !older.is_open()) {
            let filter = index.get(older.protected());
            let was_there = rules.protected().contains(filter);
            prop_assert_eq!(rules.unprotect(filter), was_there);
        }
        if moves {
            let count = rules.rules_of(key(100)).count();
            prop_assert_eq!(rules.move_rules(key(100), key(101)), count);
            prop_assert_eq!(rules.rules_of(key(100)).count(), 0);
        }
        let backwards = |filters: &[Filter]| filters.iter().rev().cloned().collect::<Vec<Filter>>();
        let fresh = AccessRules::new(backwards(rules.protected()), rules.rules().iter().rev().cloned());
        prop_assert_eq!(&fresh, &rules);
        for principal in [None, Some(key(100)), Some(key(101))] {
            prop_assert_eq!(fresh.digest(principal), rules.digest(principal));
            let writes = |rules: &AccessRules| -> BTreeSet<Rule> {
                let own = rules.rules().iter().filter(|rule| Some(rule.principal) == principal);
                own.filter(|rule| rule.capability == Capability::SyncWrite).cloned().collect()
            };
            let are_alike = rules.protected() == older.protected() && writes(&rules) == writes(&older);
            let same_effect = are_alike || rules.is_open() && older.is_open();
            prop_assert_eq!(rules.digest(principal) == older.digest(principal), same_effect);
        }

        let changes = rules.changes_since(&older);
        for number in 0..PRINCIPALS {
            let keys = [key(100 + number)].into();
            let may = |rules: &AccessRules, event: &&Event, capability| {
                !is_protected(rules, event) || is_granted(rules, &keys, capability, event)
            };
            for capability in [Capability::SyncRead, Capability::SyncWrite] {
                let gained = universe().iter().any(|it| may(&rules, &it, capability) && !may(&older, &it, capability));
                let lost = universe().iter().any(|it| may(&older, &it, capability) && !may(&rules, &it, capability));
                prop_assert!(!gained || changes.has_gained(&key(100 + number)));
                prop_assert!(!lost || changes.has_lost(&key(100 + number)));
            }
        }
    }
}

#[test]
fn a_rule_says_which_events_by_kinds_authors_and_tags_only() {
    let rule = |events: &str| {
        let json = format!(r#"{{"principal":"{}","capability":"sync_read","match":{events}}}"#, "01".repeat(32));
        serde_json::from_str::<Rule>(&json).map_err(|error| error.to_string())
    };
    let good = r##"{"kinds":[5000],"#r":["tribes.accounts.user"]}"##;
    assert_eq!(rule(good).unwrap().events, serde_json::from_str(good).unwrap());
    assert_eq!(
        serde_json::from_str::<Rule>(&serde_json::to_string(&rule(good).unwrap()).unwrap()).unwrap(),
        rule(good).unwrap()
    );
    for (events, word) in [
        (r#"{"since":1}"#, "since"),
        (r#"{"until":1}"#, "until"),
        (r#"{"limit":1}"#, "limit"),
        (r#"{"search":"x"}"#, "search"),
        (r#"{"ids":["0101010101010101010101010101010101010101010101010101010101010101"]}"#, "ids"),
        (r#"{"kinds":[]}"#, "empty list"),
        (r##"{"#namespace":["x"]}"##, "unknown field"),
        (r#"{"kind":[1]}"#, "unknown field"),
    ] {
        let refusal = rule(events).unwrap_err();
        assert!(refusal.contains(word), "{events}: {refusal}");
    }
    let mut rules = AccessRules::default();
    let error = rules.protect(Filter::new().limit(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid match: \"limit\" has no place in it; it says which events by kinds, authors and tags"
    );
    assert!(check_match(&Filter { kinds: Some(BTreeSet::new()), ..Filter::new() }).is_err());
    assert!(rules.is_open() && rules.digest(Some(key(1))) == 0);
}

/// A relay's rules are the same after a restart, and to its peers.
#[test]
fn the_digest_stays_what_it_is() {
    let protected: Filter = serde_json::from_str(r#"{"kinds":[5000]}"#).unwrap();
    let rule = Rule { principal: key(1), capability: Capability::SyncWrite, events: protected.clone() };
    assert_eq!(AccessRules::new([protected], [rule]).digest(Some(key(1))), 15_747_179_569_939_616_812);
}

/// As many rules as there are authors, one for each: still told within the bound; with many more it is not covered.
#[test]
fn a_filter_is_split_by_its_values_up_to_a_bound() {
    let rules_of = |count: u16| {
        let kinds = |range: std::ops::Range<u16>| Filter::new().kinds(range.map(Into::into));
        let rule = |kind| Rule { principal: key(1), capability: Capability::SyncRead, events: kinds(kind..kind + 1) };
        (AccessRules::new([Filter::new()], (0..count).map(rule)), kinds(0..count))
    };
    let (rules, filter) = rules_of(200);
    assert!(rules.covers(&[key(1)], Capability::SyncRead, &filter));
    assert!(!rules.covers(&[key(2)], Capability::SyncRead, &filter));
    let (rules, filter) = rules_of(2_000);
    assert!(!rules.covers(&[key(1)], Capability::SyncRead, &filter));
}
