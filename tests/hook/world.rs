//! A store with a hook, and what the hook is told.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use relaysync::native::SocketConfig;
use relaysync::native::hook::{Counters, Delivery, Hook, HookConfig, HookStore, HookTarget};
use relaysync::protocol::Address;
use relaysync::store::{MemoryStore, Outcome};
use tokio::sync::mpsc;

use crate::events::{Draft, author_of, commit, draft, number};

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the hook was told: repositories as `author/identifier`, ids as numbers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) repository: String,
    pub(crate) ids: Vec<u32>,
    pub(crate) complete: bool,
}

pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) held: Arc<MemoryStore>,
    hook: Hook<MemoryStore>,
    pub(crate) store: HookStore<MemoryStore>,
}

impl World {
    /// A hook that behaves as `change` says, over an empty store and outbox.
    pub(crate) async fn new(target: HookTarget, change: impl FnOnce(&mut HookConfig)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::over(folder, Arc::default(), target, change).await
    }

    async fn over(
        folder: tempfile::TempDir,
        held: Arc<MemoryStore>,
        target: HookTarget,
        change: impl FnOnce(&mut HookConfig),
    ) -> Self {
        let mut config = HookConfig {
            batch: Duration::from_millis(20),
            retry_base: Duration::from_millis(20),
            retry_max: Duration::from_millis(50),
            ..HookConfig::new(target)
        };
        change(&mut config);
        let outbox = folder.path().join("outbox");
        let hook = Hook::open(outbox, config, SocketConfig::default(), held.clone()).await.unwrap();
        let store = hook.store();
        Self { folder, held, hook, store }
    }

    /// Ends the hook, and begins another with the same outbox and store.
    pub(crate) async fn restart(self, target: HookTarget) -> Self {
        let Self { folder, held, hook, store } = self;
        drop(store);
        hook.shutdown().await;
        Self::over(folder, held, target, |_| {}).await
    }

    pub(crate) async fn commit(&self, drafts: &[Draft]) -> Vec<Outcome> {
        commit(&self.store, drafts).await
    }

    pub(crate) fn counters(&self) -> Counters {
        self.hook.counters()
    }

    /// Waits until `is_so` holds of the counters.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Counters) -> bool) {
        let waiting = async {
            while !is_so(&self.counters()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(waited.is_ok(), "{what}: {:?}", self.counters());
    }

    /// Waits until nothing is left to be delivered.
    pub(crate) async fn settled(&self) {
        self.until("all is delivered", |counters| (counters.repositories_waiting, counters.running) == (0, 0)).await;
    }
}

/// A callback that answers as `answer` says, and what it is told.
pub(crate) fn callback<T>(
    answer: impl Fn(&Told) -> T + Send + Sync + 'static,
) -> (HookTarget, mpsc::UnboundedReceiver<Told>)
where
    T: Future<Output = Result<(), String>> + Send + 'static,
{
    let (sender, receiver) = mpsc::unbounded_channel();
    let target = move |delivery: Delivery| {
        let told = Told {
            repository: name_of(&delivery.repository),
            ids: delivery.ids.iter().map(number).collect(),
            complete: delivery.complete,
        };
        let answer = answer(&told);
        // A test that has ended listens no more.
        let _ = sender.send(told);
        answer
    };
    (HookTarget::Callback(Arc::new(target)), receiver)
}

/// A callback that takes everything.
pub(crate) fn taker() -> (HookTarget, mpsc::UnboundedReceiver<Told>) {
    callback(|_| async { Ok(()) })
}

/// The next thing that a callback is told.
pub(crate) async fn next(told: &mut mpsc::UnboundedReceiver<Told>) -> Told {
    tokio::time::timeout(PATIENCE, told.recv()).await.expect("the hook is told in time").expect("the hook lives")
}

/// Everything that was told so far, by repository.
pub(crate) fn all(told: &mut mpsc::UnboundedReceiver<Told>) -> BTreeMap<String, BTreeSet<u32>> {
    let mut all: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    while let Ok(told) = told.try_recv() {
        all.entry(told.repository).or_default().extend(told.ids);
    }
    all
}

pub(crate) fn address(author: u8, identifier: &str) -> Address {
    Address::repository(author_of(author), identifier)
}

fn name_of(address: &Address) -> String {
    format!("{}/{}", address.author[1], address.identifier)
}

/// An announcement of a repository.
pub(crate) fn announcement(id: u32, author: u8, identifier: &str) -> Draft {
    draft(id, 100 + u64::from(id)).by(author).kind(30617).tag("d", identifier)
}

/// A state of a repository.
pub(crate) fn state(id: u32, author: u8, identifier: &str) -> Draft {
    draft(id, 100 + u64::from(id)).by(author).kind(30618).tag("d", identifier)
}

/// A patch for a repository of author 1.
pub(crate) fn patch(id: u32, identifier: &str) -> Draft {
    draft(id, 100).by(9).kind(1617).tag("a", &address(1, identifier).to_string())
}
