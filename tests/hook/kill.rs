//! What is held is handed on at least once, whatever happens to the process.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relaysync::native::SocketConfig;
use relaysync::native::hook::{Delivery, Hook, HookConfig, HookTarget};
use relaysync::native::store::{NativeStore, NativeStoreConfig};
use relaysync::peer::View;
use relaysync::store::{Query, Store};

use crate::events::{Draft, commit, number, question};
use crate::world::{patch, state};

const CHILD: &str = "RELAYSYNC_TEST_HOOK_TO_KILL";
const KILLS: u32 = 25;
const REPOSITORIES: u32 = 7;
const BATCH: u32 = 20;

/// Batch number `n`: patches for some repositories, and a state that supersedes the last.
fn numbered(n: u32) -> Vec<Draft> {
    let mut drafts: Vec<Draft> =
        (1..BATCH).map(|i| n * BATCH + i).map(|id| patch(id, &format!("r{}", id % REPOSITORIES))).collect();
    drafts.push(state(n * BATCH, 1, "r0"));
    drafts
}

async fn open(folder: &Path) -> (Arc<NativeStore>, Hook<NativeStore>) {
    let store = Arc::new(NativeStore::open(folder.join("store"), NativeStoreConfig::default()).unwrap());
    let file = std::fs::File::options().create(true).append(true).open(folder.join("delivered")).unwrap();
    let file = Arc::new(Mutex::new(file));
    let deliver = move |delivery: Delivery| {
        let identifier = &delivery.repository.identifier;
        let lines: String = delivery.ids.iter().map(|id| format!("{identifier} {}\n", number(id))).collect();
        file.lock().unwrap().write_all(lines.as_bytes()).unwrap();
        async { Ok(()) }
    };
    let config =
        HookConfig { batch: Duration::from_millis(3), ..HookConfig::new(HookTarget::Callback(Arc::new(deliver))) };
    let hook = Hook::open(folder.join("outbox"), config, SocketConfig::default(), store.clone()).await;
    (store, hook.expect("the outbox opens after a kill"))
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(future)
}

/// Not a test of its own: what the child process of the test below does. Anywhere else it has nothing to do.
#[test]
fn child_that_commits_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    block_on(async {
        let (store, hook) = open(Path::new(&folder)).await;
        let begun =
            store.count(vec![relaysync::protocol::Filter::new()], &View::all(), 0).await.unwrap() as u32 / (BATCH - 1);
        for n in begun.saturating_sub(1).. {
            commit(&hook.store(), &numbered(n)).await;
            println!("\ncommitted {n}");
            std::io::stdout().flush().unwrap();
        }
    });
}

#[test]
fn what_is_held_was_handed_on_whenever_the_process_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..KILLS {
        run_and_kill(folder.path(), round);
    }
    let held = block_on(async {
        let (store, hook) = open(folder.path()).await;
        let settled = async {
            while hook.counters().repositories_waiting > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), settled).await.expect("all is delivered");
        hook.shutdown().await;
        held(&store).await
    });
    assert!(held.len() > (KILLS * BATCH) as usize, "the children committed {} events", held.len());
    let delivered = std::fs::read_to_string(folder.path().join("delivered")).unwrap();
    let delivered: BTreeSet<&str> = delivered.lines().collect();
    let missing: Vec<&String> = held.iter().filter(|line| !delivered.contains(line.as_str())).collect();
    assert_eq!(missing, [] as [&String; 0], "of {}", held.len());
}

/// Everything that is held, as it must have been delivered.
async fn held(store: &NativeStore) -> BTreeSet<String> {
    let (mut held, mut after) = (BTreeSet::new(), None);
    loop {
        let page = store.query(Query { after, ..question("{}") }).await.unwrap();
        for record in &page.records {
            let event: serde_json::Value = serde_json::from_slice(&record.json).unwrap();
            let tag = event["tags"][0][1].as_str().unwrap();
            let identifier = tag.rsplit(':').next().unwrap();
            held.insert(format!("{identifier} {}", number(&record.id)));
        }
        after = page.next;
        if after.is_none() {
            return held;
        }
    }
}

/// Lets a child commit until it has reported some batches, and kills it a little later.
fn run_and_kill(folder: &Path, round: u32) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kill::child_that_commits_until_it_is_killed", "--nocapture"]);
    command.env(CHILD, folder).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut reports = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .filter(|line| line.starts_with("committed "));
    for _ in 0..round % 4 {
        reports.next();
    }
    // Not for luck: a kill is to come at a moment anywhere inside what is going on.
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(Duration::from_micros(u64::from(round * 7919 % 20_000)));
    child.kill().unwrap();
    child.wait().unwrap();
}
