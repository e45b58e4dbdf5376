//! Commands: what they get, how they end, and that nothing of them is left.

use std::path::Path;
use std::time::Duration;

use relaysync::native::hook::HookTarget;

use crate::events::id_of;
use crate::world::*;

fn shell(script: &str) -> HookTarget {
    HookTarget::Command(["sh", "-c", script].map(str::to_owned).into())
}

#[tokio::test]
async fn a_command_gets_json_and_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let script = format!("{{ cat; echo; echo \"$RELAYSYNC_REPOSITORY\"; }} > {}", out.display());
    let world = World::new(shell(&script), |_| {}).await;
    world.commit(&[patch(7, "x y'\"")]).await;
    world.settled().await;
    let out = std::fs::read_to_string(out).unwrap();
    let (json, repository) = out.split_once('\n').unwrap();
    assert_eq!(repository.trim_end(), address(1, "x y'\"").to_string());
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["events"][0], relaysync::protocol::hex::encode(&id_of(7)));
    assert_eq!(json["repository"], repository.trim_end());
}

#[tokio::test]
async fn a_status_other_than_0_is_a_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("flag");
    let script = format!("yes complaint | head -c 100000 >&2; test -e {0} || {{ touch {0}; exit 3; }}", flag.display());
    let world = World::new(shell(&script), |_| {}).await;
    world.commit(&[patch(1, "x")]).await;
    world.settled().await;
    assert_eq!((world.counters().failed, world.counters().delivered), (1, 1));
}

#[tokio::test]
async fn a_command_that_is_not_there_is_tried_again() {
    let world = World::new(HookTarget::Command(vec!["/nonexistent/program".into()]), |_| {}).await;
    world.commit(&[patch(1, "x\0y")]).await;
    world.until("it is tried again", |counters| counters.failed >= 2).await;
}

/// A command that does not read much news, with more of it than fits into a pipe.
#[tokio::test]
async fn a_command_that_reads_nothing_may_end_well() {
    let world = World::new(shell("exit 0"), |config| {
        config.ids_per_repository_max = 5_000;
        config.batch = Duration::from_millis(200);
    })
    .await;
    world.commit(&(1..3_000).map(|id| patch(id, "x")).collect::<Vec<_>>()).await;
    world.settled().await;
    assert_eq!((world.counters().failed, world.counters().delivered), (0, 1));
}

#[tokio::test]
async fn what_takes_too_long_is_killed_with_all_that_it_has_started() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!("sleep 1000 & echo $$ $! >> {0}; wait", pids.display());
    let world = World::new(shell(&script), |config| {
        config.timeout = Duration::from_millis(300);
        config.retry_base = Duration::from_secs(100);
        config.retry_max = Duration::from_secs(100);
    })
    .await;
    world.commit(&[patch(1, "x")]).await;
    world.until("it is cut", |counters| counters.timed_out == 1).await;
    let pids = std::fs::read_to_string(pids).unwrap();
    let pids: Vec<&str> = pids.split_whitespace().collect();
    assert_eq!(pids.len(), 2, "{pids:?}");
    let gone = async {
        while pids.iter().any(|pid| is_running(pid)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("all of them are gone");
}

/// Like `git fetch &`: what goes on by itself holds up nothing, and is left alone.
#[tokio::test]
async fn what_a_command_leaves_running_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pid_file = folder.path().join("pid");
    let script = format!("sleep 60 & echo $! > {}", pid_file.display());
    let world = World::new(shell(&script), |_| {}).await;
    world.commit(&[patch(1, "x")]).await;
    world.settled().await;
    assert_eq!((world.counters().failed, world.counters().delivered), (0, 1));
    let pid = std::fs::read_to_string(pid_file).unwrap();
    assert!(is_running(pid.trim()));
    assert!(std::process::Command::new("kill").arg(pid.trim()).status().unwrap().success());
}

/// One that has ended and was not waited for yet does not run.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.rsplit(") ").next().unwrap_or_default().starts_with('Z'))
}
