//! Scenarios of proactive sync that have to do with time: absences, the daily pass, the batch window.

use std::slice::from_ref;
use std::time::Duration;

use relaysync::engine::Command;
use relaysync::protocol::Event;
use relaysync::runtime::{ConnectError, Instant};
use relaysync::sim::{Connects, NOW_SECS, Remote, note};

use super::packs::{begun, comment_of, whole};
use super::support::{Discovering, OURS, address, config, url};
use crate::support::filters_asked;

/// Announcements, five forms of the repository, three of its issues.
const PACKS: usize = 9;

/// Requests for all of something: by comparison, or by pages.
fn whole_passes(daemon: &Discovering, name: &str) -> usize {
    let compared = daemon.world.relay(&url(name)).heard_of("NEG-OPEN").len();
    compared + whole(&filters_asked(&daemon.world, &url(name))).len()
}

/// When the relay was first asked for something that names this event.
fn asked_at(daemon: &Discovering, name: &str, event: &Event) -> Option<Instant> {
    let mut heard = daemon.world.relay(&url(name)).heard.iter();
    heard.find(|(_, frame)| frame.starts_with("[\"REQ\"") && frame.contains(&event.id.to_hex())).map(|(at, _)| *at)
}

/// Scenario 2. The moment from which on is asked used to be a number of seconds, in 1970.
#[test]
fn a_quick_reconnect_asks_since_the_last_proven_moment() {
    let (mut daemon, ..) = begun(config(), 3);
    daemon.secs(4_000);
    let asked = filters_asked(&daemon.world, &url("second")).len();
    let cut_at_secs = daemon.world.now().unix_secs;
    daemon.world.cut(&url("second"), "");
    daemon.secs(60);
    let asked = filters_asked(&daemon.world, &url("second")).split_off(asked);
    let since: Vec<u64> = asked.iter().filter_map(|filter| filter.since).map(|since| since.as_secs()).collect();
    assert!(since.len() >= PACKS, "{asked:?}");
    // The last answer may be that to a probe.
    assert!(
        since.iter().all(|since| (cut_at_secs - 500..cut_at_secs).contains(since)),
        "{since:?}, cut at {cut_at_secs}"
    );
}

/// Scenario 3: after more than a quarter of an hour, everything is fetched anew in all layers.
#[test]
fn after_a_long_absence_every_layer_is_fetched_anew() {
    let (mut daemon, _, issues) = begun(config(), 3);
    daemon.secs(4_000);
    let before = whole_passes(&daemon, "second");
    daemon.world.relay_mut(&url("second")).connects = Connects::Hangs;
    daemon.world.cut(&url("second"), "");
    daemon.secs(1_200);
    let dated_back = note(NOW_SECS - 900_000).by(5).kind(1111).tag("E", &issues[1].id.to_hex()).sign();
    daemon.world.publish(&url("second"), from_ref(&dated_back));
    daemon.world.relay_mut(&url("second")).connects = Connects::Always;
    daemon.world.command(daemon.engine, Command::Wake);
    daemon.secs(60);
    assert!(daemon.holds(&dated_back), "{}", daemon.world.trace());
    assert!(whole_passes(&daemon, "second") >= before + PACKS, "{before}: {}", daemon.world.trace());
    assert_eq!(daemon.report("second").unwrap().counters.connections, 2);
}

/// Scenario 5: a full pass each 23 to 25 hours, over the standing connection. Equal sets are not downloaded again.
#[test]
fn each_day_every_layer_is_fetched_anew_without_a_reconnect() {
    let (mut daemon, ..) = begun(config(), 3);
    let before = whole_passes(&daemon, "second");
    daemon.secs(22 * 3_600);
    assert_eq!(whole_passes(&daemon, "second"), before);
    let received = daemon.report("second").unwrap().counters.received;
    daemon.secs(4 * 3_600);
    let report = daemon.report("second").unwrap();
    assert!(whole_passes(&daemon, "second") >= before + PACKS, "{before}: {}", daemon.world.trace());
    assert_eq!((report.counters.connections, report.counters.received), (1, received));
    assert!(report.complete);
}

/// Scenario 6: what is discovered is collected for five seconds from the first change on, and more changes do not begin
/// the window again.
#[test]
fn the_batch_window_begins_with_the_first_change_and_does_not_begin_again() {
    let (mut daemon, ours, _) = begun(config(), 1);
    let publish = |daemon: &mut Discovering, number: u64| {
        let at = daemon.world.now().unix_secs;
        let issue = note(at).by(4).kind(1621).tag("a", &address(&ours)).content(format!("{number}")).sign();
        daemon.world.publish(&url("second"), from_ref(&issue));
        issue
    };
    let began = daemon.world.now().instant;
    let first: Vec<Event> = (0..4)
        .map(|number| {
            let issue = publish(&mut daemon, number);
            daemon.world.run(Duration::from_millis(1_200));
            issue
        })
        .collect();
    daemon.world.run(Duration::from_millis(1_200));
    let second = publish(&mut daemon, 9);
    daemon.secs(10);
    let asked = |event| asked_at(&daemon, "second", event).expect("it is asked for") - began;
    let window = Duration::from_secs(5)..Duration::from_millis(5_500);
    assert!(
        first.iter().all(|issue| window.contains(&asked(issue))),
        "{:?}",
        first.iter().map(asked).collect::<Vec<_>>()
    );
    let later = asked(&second);
    assert!((Duration::from_millis(11_000)..Duration::from_millis(11_700)).contains(&later), "{later:?}");
    // All of the first batch goes into one filter.
    let together = |frame: &&str| first.iter().all(|issue| frame.contains(&issue.id.to_hex()));
    assert!(daemon.world.relay(&url("second")).heard_of("REQ").iter().any(together));
}

/// A relay found later takes part like any other, and one that nobody can reach holds up nothing.
#[test]
fn a_relay_that_cannot_be_reached_holds_up_nothing() {
    let (mut daemon, _, issues) = begun(config(), 1);
    let refused = Connects::Refused(ConnectError::Refused("nobody listens".into()));
    let listed = ["relays", OURS, "wss://second.example", "wss://nowhere.example", "wss://late.example"];
    let more = note(NOW_SECS - 50).by(2).kind(30_617).tag("d", "ours").tags(&listed.map(str::to_owned));
    let comment = comment_of(&issues[0], &daemon);
    daemon.world.add_relay(url("nowhere").as_str(), Remote::with(&[]).connecting(refused));
    daemon.world.add_relay(url("late").as_str(), Remote::with(from_ref(&comment)));
    daemon.world.publish(&url("first"), &[more.sign()]);
    daemon.secs(20);
    assert!(daemon.holds(&comment), "{}", daemon.world.trace());
}
