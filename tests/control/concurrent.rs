//! Many at once, in one process and in two.

use std::process::{Command, Stdio};

use relaysync::native::control::FileFault;

use crate::support::{config, fault, key, open, patiently, rule, spec};

const CHILD: &str = "RELAYSYNC_TEST_CONTROL_TO_SHARE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_changed_at_the_same_time_is_there_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..24 {
        let control = control.clone();
        tasks.spawn(async move {
            let id = format!("p{number:02}");
            control.peers().put(spec(&id, number)).await.unwrap();
            control.access().grant(rule(number, 5000)).await.unwrap();
            if number % 3 == 0 {
                control.peers().stop(&id).await.unwrap();
            }
            if number % 4 == 0 {
                control.access().revoke(rule(number, 5000)).await.unwrap();
            }
            if number == 7 {
                control.identity().ensure().await.unwrap();
            }
        });
    }
    patiently(tasks.join_all()).await;
    drop(control);
    let control = open(folder.path()).await;
    let peers = control.peers().list();
    assert_eq!(peers.len(), 24);
    for (number, info) in (0..24).zip(&peers) {
        assert_eq!((info.spec.auth_pubkey, info.spec.enabled), (key(number), number % 3 != 0));
    }
    assert_eq!(control.access().list().len(), 18);
    assert!(control.identity().get().is_some());
}

#[tokio::test]
async fn who_has_asked_may_go_before_it_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    for number in 0..20 {
        let access = control.access();
        let put = access.grant(rule(number, 1));
        // Polled once, then dropped: it is under way, or not begun.
        let _ = futures_util::future::poll_immediate(std::pin::pin!(put)).await;
    }
    control.access().grant(rule(99, 1)).await.unwrap();
    // What is under way yet is not taken any more.
    control.close().await.unwrap();
    let seen = control.access().list();
    assert_eq!(open(folder.path()).await.access().list(), seen);
}

/// Not a test of its own: another process. Anywhere else it has nothing to do.
#[tokio::test]
async fn child_that_wants_the_files_of_another() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let (path, what) = fault(config(folder.as_ref())).await;
    assert!(path.to_str().unwrap().ends_with(".control.lock") && matches!(what, FileFault::Locked), "{what:?}");
    println!("\nlocked out");
}

#[tokio::test]
async fn one_process_has_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let control = open(folder.path()).await;
    assert!(matches!(fault(config(folder.path())).await.1, FileFault::Locked), "not even the same one twice");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "concurrent::child_that_wants_the_files_of_another", "--nocapture"]);
    let child = command.env(CHILD, folder.path()).stderr(Stdio::inherit()).output().unwrap();
    assert!(String::from_utf8_lossy(&child.stdout).contains("\nlocked out"), "{child:?}");
    control.close().await.unwrap();
    drop(open(folder.path()).await);
    let refused = control.access().grant(rule(1, 1)).await.unwrap_err().to_string();
    assert!(refused.contains("ended"), "{refused}");
}
