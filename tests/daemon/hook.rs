//! The git data hook, as the daemon runs it.

use std::path::Path;
use std::time::Duration;

use relaysync::native::settings::Settings;

use crate::world::{Client, SERVICE, announcement, embedded, of_repository, patiently, start};

/// Each delivery becomes a line of this file.
fn hooked(directory: &Path, file: &str) -> Settings {
    let mut settings = embedded(directory, &[]);
    let script = format!("cat >> {0} && echo >> {0}", directory.join(file).display());
    settings.hook.command = vec!["sh".to_owned(), "-c".to_owned(), script];
    settings.hook.config.batch = Duration::from_millis(20);
    settings
}

async fn told(directory: &Path, file: &str, words: &str) {
    let path = directory.join(file);
    patiently(async {
        while !std::fs::read_to_string(&path).is_ok_and(|text| text.contains(words)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_arrives_is_handed_on_and_a_reload_changes_to_whom() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = start(hooked(directory.path(), "first")).await;
    let mut client = Client::connect(&daemon.relay_url().unwrap()).await;
    let ours = announcement(1, "ours", &[SERVICE]);
    assert_eq!(client.publish(&ours).await, "");
    told(directory.path(), "first", &ours.id.to_hex()).await;
    let counted = |report: &std::sync::Arc<relaysync::native::admin::DaemonReport>| {
        report.hook.as_ref().is_some_and(|hook| hook.delivered == 1)
    };
    assert!(patiently(daemon.reports().wait_for(counted)).await.is_ok());

    let reloaded = daemon.reload(&hooked(directory.path(), "second")).await;
    assert_eq!((&reloaded.changed[..], &reloaded.waiting[..]), (&["hook.command".to_owned()][..], &[][..]));
    assert_eq!(reloaded.faults, [""; 0]);
    let issue = of_repository(&ours, "ours", 1621).sign();
    assert_eq!(client.publish(&issue).await, "");
    told(directory.path(), "second", &issue.id.to_hex()).await;

    let off = daemon.reload(&embedded(directory.path(), &[])).await;
    assert_eq!(off.changed, ["hook.command", "hook.batch"]);
    assert!(patiently(daemon.reports().wait_for(|report| report.hook.is_none())).await.is_ok());
    assert_eq!(client.publish(&of_repository(&ours, "ours", 1617).sign()).await, "");
    assert!(daemon.shutdown().await);
}
