//! A relay that holds what a client may not see, beside a twin that has never had it: whatever a hostile client does, it
//! hears the same from both, byte for byte.

use negentropy::{Id, Negentropy, NegentropyStorageVector};
use relaysync::peer::{AccessRules, Capability, View};
use relaysync::protocol::message::client;
use relaysync::protocol::{Event, RelayMessage, hex};
use relaysync::serve::{ServeConfig, ServeInput};
use relaysync::store::Store;

use crate::access::{READER, STRANGER, authenticate, filter, guarded, rule, rules, secret, set_access};
use crate::events::{NOW_SECS, note};
use crate::world::{ALICE, BOB, World, at_once};

/// Two relays that are told the same.
struct Twins {
    holder: World,
    other: World,
    hidden: Vec<Event>,
    heard: usize,
}

impl Twins {
    /// Both hold some notes, one also what is hidden.
    fn new(config: &ServeConfig, open: &[Event], hidden: &[Event]) -> Self {
        let all: Vec<Event> = open.iter().chain(hidden).cloned().collect();
        let (holder, other) = (World::with(config.clone(), &all), World::with(config.clone(), open));
        Self { holder, other, hidden: hidden.to_vec(), heard: 0 }
    }

    fn say(&mut self, frame: impl Into<String>) -> Vec<String> {
        let frame = frame.into();
        let (one, other) = (self.holder.say(ALICE, frame.clone()), self.other.say(ALICE, frame.clone()));
        assert_eq!(one, other, "to {frame}");
        for event in self.hidden.iter().filter(|event| !frame.contains(&event.id.to_hex())) {
            assert!(one.iter().all(|answer| !answer.contains(&event.id.to_hex())), "{frame}: {one:?}");
        }
        self.heard += one.len();
        one
    }

    fn both(&mut self, mut act: impl FnMut(&mut World)) {
        act(&mut self.holder);
        act(&mut self.other);
        let heard = self.holder.heard(ALICE);
        assert_eq!(heard, self.other.heard(ALICE));
        self.heard += heard.len();
    }
}

/// Notes and secrets in turns, several to a second; the secrets are the newest and the oldest, too.
fn events() -> (Vec<Event>, Vec<Event>) {
    let open =
        (0..60).map(|n| note(100 + n / 4).content(format!("note {n}")).tag("r", ["x", "z"][n as usize % 2]).sign());
    let hidden = (0..70).map(|n| secret(98 + n / 4, ["x", "y"][n as usize % 2]).content(format!("secret {n}")).sign());
    (open.collect(), hidden.collect())
}

/// Filters of every form that does not name what is protected, and some that do.
fn filters(hidden: &[Event]) -> Vec<String> {
    let author = hidden[0].pubkey.to_hex();
    let ids =
        |events: &[Event]| events.iter().map(|it| format!("\"{}\"", it.id.to_hex())).collect::<Vec<_>>().join(",");
    let mut forms: Vec<String> = [
        "{}",
        r#"{"kinds":[1]}"#,
        r#"{"kinds":[1,7]}"#,
        r#"{"kinds":[5000]}"#,
        r#"{"kinds":[1,5000]}"#,
        r##"{"kinds":[5000],"#r":["x"]}"##,
        r##"{"kinds":[5000],"#r":["y"],"limit":1}"##,
        r#"{"kinds":[5000],"limit":0}"#,
        r#"{"kinds":[5000],"since":100,"until":100}"#,
        r##"{"#r":["x"]}"##,
        r##"{"#r":["y"]}"##,
        r##"{"#r":["x","y","z"],"limit":3}"##,
        r#"{"limit":1}"#,
        r#"{"limit":0}"#,
        r#"{"limit":60}"#,
        r#"{"limit":61}"#,
        r#"{"kinds":[]}"#,
        r#"{"since":98,"until":99}"#,
        r#"{"since":115}"#,
        r#"{"since":116,"limit":1}"#,
        r#"{"since":103,"until":103}"#,
        r#"{"until":99,"limit":1}"#,
    ]
    .map(Into::into)
    .into();
    forms.push(format!(r#"{{"authors":["{author}"]}}"#));
    forms.push(format!(r#"{{"authors":["{author}"],"limit":7}}"#));
    forms.push(format!(r#"{{"authors":["{author}"],"kinds":[5000]}}"#));
    forms.push(format!(r#"{{"ids":[{}]}}"#, ids(&hidden[..1])));
    forms.push(format!(r#"{{"ids":[{}],"limit":1}}"#, ids(&hidden[..5])));
    forms.push(format!(r#"{{"ids":[{}],"kinds":[5000]}}"#, ids(&hidden[..5])));
    forms
}

fn first_message(events: &[Event]) -> Vec<u8> {
    let mut storage = NegentropyStorageVector::new();
    for event in events {
        storage.insert(event.created_at_secs(), Id::from_byte_array(event.id.to_bytes())).unwrap();
    }
    storage.seal().unwrap();
    Negentropy::borrowed(&storage, 0).unwrap().initiate().unwrap()
}

/// Everything that can be asked, about everything.
fn pry(twins: &mut Twins, open: &[Event], hidden: &[Event]) {
    let forms = filters(hidden);
    for (place, form) in forms.iter().enumerate() {
        twins.say(format!(r#"["REQ","a",{form}]"#));
        twins.say(format!(r#"["REQ","b",{form},{}]"#, forms[(place + 7) % forms.len()]));
        twins.say(format!(r#"["COUNT","c",{form}]"#));
        twins.say(format!(r#"["COUNT","c",{form},{}]"#, forms[(place + 3) % forms.len()]));
        // Who knows of an event, or guesses its id, must not learn from fingerprints whether the relay has it.
        for known in [&[][..], open, hidden, &hidden[..1], &[open, hidden].concat()] {
            let opened = twins.say(client::neg_open("n", &filter(form), &first_message(known)));
            if let Ok(RelayMessage::NegMsg { message, .. }) = RelayMessage::parse(&opened[0]) {
                assert!(hex::decode(&message).is_some());
                twins.say(client::neg_msg("n", &first_message(&hidden[..2])));
            }
        }
    }
    for event in &hidden[..3] {
        twins.say(client::event(event.json_str()));
    }
}

fn pry_in_all_ways(rules: AccessRules, keys: &[u8], hidden: impl Fn(&Event) -> bool) {
    let (open, secrets) = events();
    let (hidden, shown) = secrets.into_iter().partition::<Vec<Event>, _>(hidden);
    let open: Vec<Event> = open.into_iter().chain(shown).collect();
    let configs = [
        guarded(rules.clone()),
        ServeConfig { page_events_max: 10, page_events_default: 5, ..guarded(rules.clone()) },
        ServeConfig { negentropy_records_max: 62, read_bytes_max: 1, item_sets_max: 0, ..guarded(rules.clone()) },
    ];
    for config in configs {
        let mut twins = Twins::new(&config, &open, &hidden);
        for author in keys {
            twins.both(|world| authenticate(world, ALICE, *author));
        }
        pry(&mut twins, &open, &hidden);
        let replies = twins.heard;
        assert!(replies > 300, "{replies}");

        // Live: subscriptions of every form are open while hidden events come, and notes between them.
        for (place, form) in filters(&hidden).iter().enumerate() {
            twins.say(format!(r#"["REQ","live {place}",{form}]"#));
        }
        let late = note(300).content("late").sign();
        for number in 0..3 {
            let news = secret(200 + number, "y").content("news").verified();
            twins.holder.input(ServeInput::Accepted { events: [news].into() });
            assert_eq!(twins.holder.heard(ALICE), [""; 0]);
        }
        twins.both(|world| assert!(world.ok(BOB, &late).0));
        assert!(twins.heard > replies, "{replies}");
    }
}

#[test]
fn a_client_without_a_key_learns_nothing() {
    pry_in_all_ways(rules(), &[], |_| true);
}

#[test]
fn a_client_whose_keys_have_no_rule_learns_nothing() {
    pry_in_all_ways(rules(), &[STRANGER, STRANGER + 1], |_| true);
}

#[test]
fn a_client_who_may_read_a_part_learns_nothing_of_the_rest() {
    let is_about_y = |event: &Event| event.tags.iter().any(|tag| tag.content() == Some("y"));
    pry_in_all_ways(rules(), &[STRANGER, READER], is_about_y);
}

#[test]
fn it_is_so_however_events_are_protected() {
    let rules = [
        AccessRules::new([filter(r##"{"kinds":[5000],"#r":["x","y"]}"##)], []),
        AccessRules::new([filter(r#"{"kinds":[5000,5001]}"#), filter(r##"{"#r":["y"]}"##)], []),
        AccessRules::new(
            [filter(r#"{"kinds":[5000]}"#)],
            [rule(STRANGER, Capability::SyncWrite, "{}"), rule(READER, Capability::SyncRead, "{}")],
        ),
    ];
    for rules in rules {
        // Of the third, writing is tried elsewhere: its words tell nothing, but the twin would hold what was written.
        let keys: &[u8] = if rules.rules().is_empty() { &[STRANGER] } else { &[] };
        pry_in_all_ways(rules, keys, |_| true);
    }
}

/// A client that was a reader and is no more hears, from then on, what one hears who never was.
#[test]
fn after_a_rule_was_taken_back_nothing_more_is_learnt() {
    let (open, hidden) = events();
    let everything = AccessRules::new([filter(r#"{"kinds":[5000]}"#)], [rule(READER, Capability::SyncRead, "{}")]);
    let mut twins = Twins::new(&guarded(everything), &open, &hidden);
    twins.both(|world| authenticate(world, ALICE, READER));
    for world in [&mut twins.holder, &mut twins.other] {
        for (place, form) in filters(&hidden).iter().enumerate() {
            world.say(ALICE, format!(r#"["REQ","{place}",{form}]"#));
            world.say(ALICE, client::neg_open(&place.to_string(), &filter(form), &first_message(&open)));
        }
        world.heard(ALICE);
    }
    twins.both(|world| set_access(world, AccessRules::new([filter(r#"{"kinds":[5000]}"#)], [])));
    for place in 0..filters(&hidden).len() {
        twins.say(client::neg_msg(&place.to_string(), &first_message(&open)));
    }
    pry(&mut twins, &open, &hidden);
    twins.both(|world| assert!(world.ok(BOB, &note(NOW_SECS).sign()).0));
}

/// Somebody who may write but not read publishes what is held, what was replaced, deleted, and what is new.
#[test]
fn a_writer_does_not_learn_what_others_have_written() {
    let version = |at: u64| note(at).kind(30_500).tag("d", "a").sign();
    let held = note(50).kind(5_000).sign();
    let deleted = note(51).kind(5_000).sign();
    let deletion = note(60).kind(5).tag("e", &deleted.id.to_hex()).sign();
    let writes = rule(STRANGER, Capability::SyncWrite, "{}");
    let rules = AccessRules::new([filter(r#"{"kinds":[5000,30500]}"#)], [writes]);
    let hidden = [held.clone(), deleted.clone(), version(20)];
    let mut twins = Twins::new(&guarded(rules), std::slice::from_ref(&deletion), &hidden);
    twins.both(|world| authenticate(world, ALICE, STRANGER));
    for event in [held, deleted, version(10), version(20), version(30), note(52).kind(5_000).sign()] {
        assert_eq!(twins.say(client::event(event.json_str())), [format!(r#"["OK","{}",true,""]"#, event.id.to_hex())]);
    }
    assert_eq!(at_once(twins.other.store.known(vec![version(30).id.to_bytes()], &View::all())), Ok(vec![true]));
}
