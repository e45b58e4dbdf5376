//! What the parts of the daemon do when something goes wrong between them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_channel::mpsc;
use futures_util::StreamExt;
use tempfile::TempDir;

use super::disk::Disk;
use super::hooked::Hooked;
use super::shared::Shared;
use super::{court, engine, reload, steward};
use crate::discover::Accept;
use crate::engine::Command;
use crate::ingest::Verified;
use crate::native::admin::Stage;
use crate::native::control::Control;
use crate::native::feed::{FedStore, FeedBounds};
use crate::native::hook::{HookConfig, HookTarget};
use crate::native::serve::docket;
use crate::native::settings::Settings;
use crate::native::{NativeClock, NativeRuntime, SocketConfig};
use crate::protocol::{Event, Filter};
use crate::store::{Batch, Store};

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(30);

async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("within the bound")
}

async fn until(mut is_so: impl FnMut() -> bool) {
    patiently(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// A batch of one event that nobody will check.
fn batch(number: u8) -> Batch {
    let json = format!(
        r#"{{"id":"{0}","pubkey":"{0}","created_at":{number},"kind":1,"tags":[],"content":"","sig":"{0}{0}"}}"#,
        format!("{number:02x}").repeat(32)
    );
    let event = Verified::trust(Event::parse(json.into()).unwrap());
    Batch { events: vec![event], ..Batch::default() }
}

/// What a daemon has of its own, without the tasks.
struct World {
    directory: TempDir,
    shared: Arc<Shared>,
    hooked: Arc<Hooked>,
}

impl World {
    async fn new(change: impl FnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.store.path = directory.path().join("events.db");
        change(&mut settings);
        let disk = Arc::new(Disk::open(settings.store.path.clone(), settings.store()).await.unwrap());
        let hooked = Arc::new(Hooked::new(disk.clone()));
        let control = Control::open(settings.control()).await.unwrap();
        let shared = Arc::new(Shared::new(settings, NativeClock::new(), disk, control));
        Self { directory, shared, hooked }
    }

    /// An engine that is kept running.
    fn keep(&self) -> tokio::task::JoinHandle<()> {
        let ours = FedStore::new(self.hooked.clone(), false);
        let runtime = NativeRuntime::new(ours, SocketConfig::default(), None).unwrap();
        tokio::spawn(engine::keep(self.shared.clone(), Arc::new(runtime)))
    }
}

#[tokio::test]
async fn rules_that_change_while_the_index_is_rebuilt_reach_the_engine() {
    let world = World::new(|_| {}).await;
    let shared = &world.shared;
    // As if an engine had been built by the rules of the beginning.
    *shared.rules.lock().await = shared.settings().discover();
    let (commands, mut inbox) = mpsc::channel(0);
    let begin = async {
        let mut commands = commands;
        engine::begin(shared, &mut commands).await
    };
    let rest = async {
        assert!(matches!(inbox.next().await, Some(Command::Accepted { .. })), "what is held comes first");
        let mut changed = Settings::clone(&shared.settings());
        changed.discovery.config.accept = Accept::All;
        let reloaded = reload::reload(shared, &world.hooked, None, &changed).await;
        assert_eq!(reloaded.changed, ["discovery.accept"]);
        while let Some(command) = inbox.next().await {
            match command {
                Command::Accepted { .. } | Command::AllHeld => assert!(shared.link.borrow().is_none()),
                Command::Discover(config) => return assert_eq!(config.accept, Accept::All),
                other => panic!("{other:?}"),
            }
        }
        panic!("it heard nothing of the new rules");
    };
    let (begun, ()) = patiently(async { tokio::join!(begin, rest) }).await;
    begun.unwrap();
    assert!(shared.link.borrow().is_some());
}

/// What is protected is so at once, however much there is to be read.
#[tokio::test]
async fn what_the_control_plane_says_while_the_index_is_rebuilt_reaches_the_engine_at_once() {
    let world = World::new(|_| {}).await;
    let shared = &world.shared;
    let (commands, mut inbox) = mpsc::channel(0);
    *shared.told.lock().await = steward::Told::new(commands.clone(), &shared.control.desired());
    let steward = tokio::spawn(steward::attend(shared.clone(), None, shared.control.attach()));
    let begin = async {
        let mut commands = commands;
        engine::begin(shared, &mut commands).await
    };
    let rest = async {
        assert!(matches!(inbox.next().await, Some(Command::Accepted { .. })), "what is held comes first");
        shared.control.access().protect(crate::protocol::Filter::new().kind(5000.into())).await.unwrap();
        // The steward waits for the engine to take it.
        until(|| shared.told.try_lock().is_err()).await;
        let mut was_told = false;
        while let Some(command) = inbox.next().await {
            match command {
                Command::Accepted { .. } => assert!(shared.link.borrow().is_none()),
                Command::SetAccess(access) => was_told = access.protected().len() == 1,
                Command::AllHeld => return assert!(was_told),
                Command::Discover(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    let begun = patiently(async {
        tokio::select! {
            begun = begin => begun,
            () = rest => Ok(()),
        }
    });
    begun.await.unwrap();
    steward.abort();
}

#[tokio::test]
async fn a_commit_of_any_writer_that_fails_has_the_store_opened_again() {
    let world = World::new(|settings| settings.daemon.store_retry_base = Duration::from_millis(5)).await;
    let (shared, engine) = (&world.shared, world.keep());
    until(|| shared.link.borrow().is_some()).await;
    shared.disk.close().await;
    world.hooked.commit(batch(1)).await.unwrap_err();
    until(|| shared.news().engine.restarts == 1 && shared.link.borrow().is_some()).await;
    world.hooked.commit(batch(1)).await.unwrap();
    assert_eq!((shared.news().store, shared.news().index), (Stage::Ready, Stage::Ready));
    shared.stop();
    patiently(engine).await.unwrap();
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_is_tried_less_and_less_often() {
    let world = World::new(|settings| {
        settings.daemon.store_retry_base = Duration::from_millis(1);
        settings.daemon.store_retry_max = Duration::from_millis(8);
    })
    .await;
    let (shared, engine) = (&world.shared, world.keep());
    until(|| shared.link.borrow().is_some()).await;
    let (file, kept) = (shared.disk.file(), world.directory.path().join("kept"));
    std::fs::rename(&file, &kept).unwrap();
    std::fs::write(&file, "no store").unwrap();
    shared.disk.close().await;
    world.hooked.commit(batch(1)).await.unwrap_err();
    let waits = |words: &str| matches!(shared.news().store, Stage::Pending(why) if why.contains(words));
    until(|| waits("again in 0.008 s")).await;
    std::fs::remove_file(&file).unwrap();
    std::fs::rename(&kept, &file).unwrap();
    until(|| shared.link.borrow().is_some()).await;
    assert_eq!(shared.news().engine.restarts, 1);
    shared.stop();
    patiently(engine).await.unwrap();
}

#[tokio::test]
async fn an_engine_that_has_missed_too_much_makes_way_for_a_new_one() {
    let world = World::new(|_| {}).await;
    let (shared, engine) = (&world.shared, world.keep());
    until(|| shared.link.borrow().is_some()).await;
    let first = shared.linked().await;

    let theirs = FedStore::new(world.hooked.clone(), true);
    let no_room = FeedBounds { events_max: 0, bytes_max: 0, missed_ids_max: 0 };
    let (_judge, docket) = docket(theirs.feed().subscribe(no_room));
    let court = tokio::spawn(court::hold(shared.clone(), docket, None));
    theirs.commit(batch(1)).await.unwrap();
    until(|| first.is_closed()).await;
    let second = patiently(shared.linked()).await;
    assert!(!second.is_closed());
    assert_eq!(shared.news().engine.restarts, 0, "the store has not failed");
    court.abort();
    shared.stop();
    patiently(engine).await.unwrap();
}

/// What is protected has no part in discovery, so the index is rebuilt.
#[tokio::test]
async fn an_engine_makes_way_for_a_new_one_once_other_events_are_protected() {
    let world = World::new(|settings| settings.discovery.enabled = true).await;
    let (shared, engine) = (&world.shared, world.keep());
    until(|| shared.link.borrow().is_some()).await;
    let first = shared.linked().await;
    let steward = tokio::spawn(steward::attend(shared.clone(), None, shared.control.attach()));
    shared.control.access().protect(Filter::new().kind(30_617.into())).await.unwrap();
    until(|| first.is_closed()).await;
    assert!(!patiently(shared.linked()).await.is_closed());
    steward.abort();
    shared.stop();
    patiently(engine).await.unwrap();
}

#[tokio::test]
async fn a_hook_that_cannot_begin_leaves_the_former_one_in_its_place() {
    let world = World::new(|_| {}).await;
    let hook = |argv: &[&str]| {
        let argv = argv.iter().map(|&argument| argument.to_owned()).collect();
        Some(HookConfig::new(HookTarget::Command(argv)))
    };
    world.hooked.set(hook(&[]), SocketConfig::default()).await.unwrap_err();
    assert!(world.hooked.is_off().await);
    world.hooked.set(hook(&["true"]), SocketConfig::default()).await.unwrap();
    world.hooked.set(hook(&[]), SocketConfig::default()).await.unwrap_err();
    assert!(!world.hooked.is_off().await, "commits still go by the outbox");
    world.hooked.set(None, SocketConfig::default()).await.unwrap();
    assert!(world.hooked.is_off().await);
}

#[tokio::test]
async fn a_hook_that_could_not_begin_is_tried_again_with_the_next_reload() {
    let world = World::new(|_| {}).await;
    let outbox = world.directory.path().join("events.db.outbox");
    std::fs::create_dir(&outbox).unwrap();
    let mut settings = Settings::clone(&world.shared.settings());
    settings.hook.command = vec!["true".to_owned()];
    for _ in 0..2 {
        let reloaded = reload::reload(&world.shared, &world.hooked, None, &settings).await;
        assert_eq!((reloaded.changed.len(), reloaded.faults.len()), (0, 1), "{reloaded:?}");
    }
    std::fs::remove_dir(&outbox).unwrap();
    let reloaded = reload::reload(&world.shared, &world.hooked, None, &settings).await;
    assert_eq!((&reloaded.changed[..], &reloaded.faults[..]), (&["hook.command".to_owned()][..], &[][..]));
    assert!(!world.hooked.is_off().await);
}
