//! What a commit has reported is there, whatever happens to the process afterwards.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use relaysync::native::store::{NativeStore, NativeStoreConfig};
use relaysync::store::{Batch, Coverage, Method, Outcome, Proof, Store};

use crate::block_on;
use crate::events::*;

const CHILD: &str = "RELAYSYNC_TEST_STORE_TO_FILL";
const BATCH: u32 = 150;
const KILLS: u32 = 20;
/// Kills while a store is made, 40 µs later each time.
const ROUNDS: u64 = 250;

fn open(path: &Path) -> NativeStore {
    NativeStore::open(path, NativeStoreConfig::default()).expect("the store opens after a kill")
}

/// Batch number `n`: ordinary events, one version of a replaceable event that supersedes the last batch's, and a
/// coverage mark that says how far it goes.
fn numbered(n: u32) -> Batch {
    let mut drafts: Vec<Draft> = (0..BATCH - 1).map(|i| draft(n * BATCH + i, u64::from(n)).tag("t", "x")).collect();
    drafts.push(draft(n * BATCH + BATCH - 1, u64::from(n)).kind(0));
    let window = relaysync::protocol::Window { since: 0, until: u64::from(n) };
    let mark = Coverage {
        relay: relaysync::protocol::RelayUrl::parse("wss://a.example").expect("a URL"),
        filter: relaysync::protocol::FilterKey::of(&filter("{}")),
        packed: None,
        rules: 0,
        windows: vec![Proof::new(window, Method::Req, 0)],
    };
    Batch { coverage: vec![mark], ..batch(&drafts) }
}

/// Not a test of its own: what the child process of the test below does. Anywhere else it has nothing to do.
#[test]
fn child_that_fills_a_store_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let store = open(Path::new(&path));
    block_on(async {
        let begun = store.load().await.unwrap().coverage.first().map_or(0, |mark| mark.windows[0].window.until + 1);
        for n in begun as u32.. {
            let outcomes = store.commit(numbered(n)).await.unwrap();
            assert_eq!(outcomes, [Outcome::Stored; BATCH as usize]);
            println!("\ncommitted {n}");
            std::io::stdout().flush().unwrap();
        }
    });
}

#[test]
fn a_reported_batch_outlives_a_kill_and_another_is_whole_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let mut last_reported = None;
    for round in 0..KILLS {
        last_reported = fill_and_kill(folder.path(), round).or(last_reported);
        block_on(check(folder.path(), last_reported));
    }
    assert!(last_reported.is_some_and(|n| n > KILLS), "the children committed {last_reported:?}");
}

/// A file that is not whole is no store to the next process, and a person would have to find that out.
#[test]
fn a_store_killed_while_it_is_made_opens_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = 0;
    for round in 0..ROUNDS {
        let path = folder.path().join(round.to_string());
        let mut child = child(&path).stdout(Stdio::null()).spawn().unwrap();
        wait(Duration::from_micros(round * 40));
        child.kill().unwrap();
        child.wait().unwrap();
        made += u64::from(path.exists());
        open(&path);
    }
    assert!(
        made > 0 && made < ROUNDS,
        "{made} of {ROUNDS} stores were there in time: the kills do not fall where they should"
    );
}

/// Lets a child commit until it has reported some batches, and kills it a little later.
fn fill_and_kill(path: &Path, round: u32) -> Option<u32> {
    let mut child = child(path).stdout(Stdio::piped()).spawn().unwrap();
    let mut reports = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("committed ").and_then(|n| n.parse().ok()));
    let mut last = None;
    for _ in 0..round % 5 * 2 {
        last = reports.next().or(last);
    }
    wait(Duration::from_micros(u64::from(round * 7919 % 20_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    reports.last().or(last)
}

fn child(path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kill::child_that_fills_a_store_until_it_is_killed", "--nocapture"]);
    command.env(CHILD, path).stderr(Stdio::null());
    command
}

/// Not for luck: a kill is to come at a moment anywhere inside what is going on.
fn wait(time: Duration) {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(time);
}

async fn check(path: &Path, last_reported: Option<u32>) {
    let store = open(path);
    let coverage = store.load().await.unwrap().coverage;
    let batches = coverage.first().map_or(0, |mark| mark.windows[0].window.until as u32 + 1);
    assert!(batches >= last_reported.map_or(0, |n| n + 1), "{last_reported:?} was reported, {batches} are there");
    let events = batches * (BATCH - 1) + batches.min(1);
    assert_eq!(count(&store, &["{}"]).await, u64::from(events));
    assert_eq!(count(&store, &[r##"{"#t":["x"]}"##]).await, u64::from(batches * (BATCH - 1)));
    assert_eq!(items(&store, "{}", 0, u64::MAX).await, (0..batches * BATCH).collect::<Vec<u32>>());
    let ids = (0..batches * BATCH).map(id_of).collect();
    assert_eq!(store.events(ids).await.unwrap().iter().flatten().count() as u32, events);
}
