//! The three layers: announcements, what refers to repositories, what refers to their issues and patches.

use std::slice::from_ref;

use relaysync::sim::{NOW_SECS, Remote, note};

use super::support::{Discovering, OURS, address, announcement, config};

#[test]
fn from_one_relay_the_others_are_found_and_every_layer_fills() {
    let ours = announcement("ours", &[OURS, "wss://second.example"]);
    let other = announcement("other", &["wss://third.example"]);
    let (a, at) = (address(&ours), NOW_SECS - 4_000);
    let state = note(at).by(2).kind(30618).tag("d", "ours").sign();
    let stranger = note(at).by(3).kind(30618).tag("d", "ours").sign();
    let issue = note(at).by(4).kind(1621).tag("a", &a).sign();
    let comment = note(at + 1).by(5).kind(1111).tag("E", &issue.id.to_hex()).sign();
    let reply = note(at + 2).by(5).kind(1).tag("e", &issue.id.to_hex()).sign();
    let quote = note(at + 3).by(6).kind(1).tag("q", &issue.id.to_hex()).sign();
    let discussion = note(at + 4).by(6).kind(1111).tag("A", &a).sign();
    let mention = note(at + 5).by(6).kind(1).tag("q", &a).sign();
    let noise = note(at + 6).by(6).sign();
    let foreign = note(at + 7).by(6).kind(1621).tag("a", &address(&other)).sign();
    let first = [ours.clone(), other.clone(), stranger.clone()];
    let second = [&state, &issue, &comment, &reply, &quote, &discussion, &mention, &noise, &foreign].map(Clone::clone);
    let mut daemon = Discovering::new(
        config(),
        [
            ("first", Remote::with(&first)),
            ("second", Remote::with(&second)),
            ("third", Remote::with(std::slice::from_ref(&foreign))),
        ],
    );
    daemon.secs(60);
    daemon.holds_exactly(&[&ours, &state, &issue, &comment, &reply, &quote, &discussion, &mention]);
    assert!(daemon.report("third").is_none(), "it is listed by a repository that is not ours");
    for name in ["first", "second"] {
        let report = daemon.report(name).expect("it was found");
        assert!(report.complete, "{report:#?}\n{}", daemon.world.trace());
    }
    let late = note(NOW_SECS + 60).by(7).kind(1111).tag("E", &issue.id.to_hex()).sign();
    daemon.world.publish(&super::support::url("second"), from_ref(&late));
    daemon.secs(2);
    assert!(daemon.holds(&late), "{}", daemon.world.trace());
}
