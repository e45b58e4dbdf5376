//! Where events are protected, nothing that follows from them is asked for or told.

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use relaysync::engine::{Command, Config, Effect, Engine, Input, Notice, Origin};
use relaysync::peer::AccessRules;
use relaysync::protocol::filter::parse_strict;
use relaysync::protocol::{Event, RelayUrl};
use relaysync::runtime::{Instant, Now};
use relaysync::sim::{NOW_SECS, Remote, note};
use relaysync::store::Snapshot;

use super::support::{Discovering, OURS, address, announcement, config, url};

/// Announcements of author 2 are protected, as [`announcement`] makes them.
fn rules() -> Arc<AccessRules> {
    let author = announcement("x", &[]).pubkey.to_hex();
    let protected = parse_strict(&format!(r#"{{"kinds":[30617],"authors":["{author}"]}}"#)).unwrap();
    Arc::new(AccessRules::new([protected], []))
}

fn hidden() -> Event {
    announcement("hidden", &[OURS, "wss://second.example"])
}

/// A comment on it.
fn about(announcement: &Event) -> Event {
    note(NOW_SECS - 10).by(6).kind(1111).tag("A", &address(announcement)).sign()
}

/// An engine, and what it says within a minute after a command.
struct Bare(Engine, Now);

impl Bare {
    fn new(access: Arc<AccessRules>) -> Self {
        let now = Now { instant: Instant::ZERO, unix_secs: NOW_SECS };
        Self(Engine::new(Config { access, ..config() }, Snapshot::default(), 7, now), now)
    }

    /// The relays that it wants to connect to, and what it objects to.
    fn tell(&mut self, command: Command) -> (Vec<RelayUrl>, Vec<Option<String>>) {
        let (mut dialled, mut objected) = (Vec::new(), Vec::new());
        let mut input = Input::Command(command);
        for _ in 0..60 {
            self.0.handle(input, self.1);
            while let Some(effect) = self.0.poll_effect() {
                match effect {
                    Effect::Connect { dial, .. } => dialled.push(dial.url.clone()),
                    Effect::Notify(Notice::Judged { objections, .. }) => objected.extend(objections),
                    _ => {}
                }
            }
            self.1.instant = self.1.instant + Duration::from_secs(1);
            input = Input::Tick;
        }
        (dialled, objected)
    }

    fn hold(&mut self, event: Event) -> Vec<RelayUrl> {
        self.tell(Command::Accepted { events: vec![event], origin: Origin::Held, brought: Default::default() }).0
    }

    fn objections(&mut self, events: Vec<Event>) -> Vec<bool> {
        let objected = self.tell(Command::Judge { ticket: 1, events }).1;
        objected.iter().map(Option::is_some).collect()
    }
}

#[test]
fn what_is_protected_is_neither_observed_nor_judged_nor_promised() {
    let mut engine = Bare::new(Arc::default());
    assert!(engine.hold(hidden()).contains(&url("second")), "it would be asked for");
    assert_eq!(engine.objections(vec![about(&hidden())]), [false]);

    let mut engine = Bare::new(rules());
    assert!(!engine.hold(hidden()).contains(&url("second")));
    // Whatever the rules let in may come; it makes nothing else wanted.
    let foreign = announcement("foreign", &[]);
    assert_eq!(engine.objections(vec![hidden(), foreign, about(&hidden())]), [false, false, true]);
    assert_eq!(engine.objections(vec![about(&hidden())]), [true]);
}

#[test]
fn what_becomes_protected_is_forgotten_until_all_that_is_held_is_told_again() {
    let mut engine = Bare::new(Arc::default());
    engine.hold(hidden());
    engine.tell(Command::SetAccess(rules()));
    assert_eq!(engine.objections(vec![about(&hidden())]), [true]);
    let free = note(NOW_SECS)
        .by(3)
        .kind(30617)
        .tag("d", "free")
        .tags(&["relays", OURS, "wss://third.example"].map(str::to_owned))
        .sign();
    assert_eq!(engine.hold(free), [], "not before all is told");
    assert!(engine.tell(Command::AllHeld).0.contains(&url("third")));
}

#[test]
fn relays_are_asked_no_more_for_what_becomes_protected() {
    let relays = [("first", Remote::with(from_ref(&hidden()))), ("second", Remote::with(&[about(&hidden())]))];
    let mut daemon = Discovering::new(config(), relays);
    daemon.secs(60);
    daemon.holds_exactly(&[&hidden(), &about(&hidden())]);
    daemon.world.set_access(daemon.engine, rules());
    daemon.secs(5);
    let heard = daemon.world.relay(&url("second")).heard.len();
    daemon.world.command(
        daemon.engine,
        Command::Accepted { events: vec![hidden()], origin: Origin::Held, brought: Default::default() },
    );
    daemon.world.command(daemon.engine, Command::AllHeld);
    daemon.secs(120);
    assert_eq!(daemon.world.relay(&url("second")).heard.len(), heard, "{}", daemon.world.trace());
    assert!(daemon.report("second").is_none_or(|report| report.complete));
}
