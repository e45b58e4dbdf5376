//! The way of the control plane to the engine and to the relay service: what is to be gone by is brought to both as soon
//! as it is on disk, and to each new engine as soon as it is built. And back: what happened at peers is written
//! down from time to time.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::held::tell;
use super::shared::{Commands, Shared};
use crate::engine::Command;
use crate::native::control::{Desired, Order};
use crate::native::serve::RelayService;
use crate::peer::{AccessRules, Peering};
use crate::protocol::{PublicKey, RelayUrl};
use crate::store::Store;

/// What an engine was told of the control plane, and the way to it.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// From the moment at which it is built until it has ended, whether others may talk to it yet, or still, or not: rules
    /// hold for it all that time.
    commands: Option<Commands>,
    access: Arc<AccessRules>,
    identity: Option<PublicKey>,
    peers: BTreeMap<RelayUrl, Peering>,
}

impl Told {
    /// What an engine knows that was built just now: of no peer.
    pub(super) fn new(commands: Commands, desired: &Desired) -> Self {
        Self {
            commands: Some(commands),
            access: desired.access.clone(),
            identity: identity(desired),
            peers: BTreeMap::new(),
        }
    }
}

fn identity(desired: &Desired) -> Option<PublicKey> {
    desired.identity.as_ref().map(|identity| identity.pubkey)
}

/// Tells the engine, if there is one, what it goes by from now on, as far as it does not know it: by `told`. Rules come
/// before the peers that they are about. Where other events are protected than before, discovery has to do with others:
/// then a new engine is to read all that is held.
///
/// # Errors
/// There is no engine any more.
pub(super) async fn bring(shared: &Shared, told: &mut Told) -> Result<(), String> {
    let Some(mut commands) = told.commands.clone() else { return Ok(()) };
    let (desired, commands) = (shared.control.desired(), &mut commands);
    if told.access != desired.access {
        tell(commands, Command::SetAccess(desired.access.clone())).await?;
        let before = std::mem::replace(&mut told.access, desired.access.clone());
        if shared.settings().discovery.enabled && before.protected() != desired.access.protected() {
            shared.outdate();
        }
    }
    if told.identity != identity(&desired) {
        tell(commands, Command::Renew).await?;
        told.identity = identity(&desired);
    }
    let peers: BTreeMap<RelayUrl, Peering> = desired.peerings().collect();
    let gone: Vec<RelayUrl> = told.peers.keys().filter(|relay| !peers.contains_key(*relay)).cloned().collect();
    for relay in gone {
        tell(commands, Command::SetPeer { relay: relay.clone(), peering: None }).await?;
        shared.control.outdate(&relay);
        told.peers.remove(&relay);
    }
    for (relay, peering) in peers {
        if told.peers.get(&relay) != Some(&peering) {
            let boxed = Some(Box::new(peering.clone()));
            tell(commands, Command::SetPeer { relay: relay.clone(), peering: boxed }).await?;
            shared.control.outdate(&relay);
            told.peers.insert(relay, peering);
        }
    }
    Ok(())
}

/// Brings changes, carries out orders and writes down what happened, for as long as it is polled. None of it waits for
/// another: the store, which orders may have to wait for, is not to hold up a rule.
pub(super) async fn attend(shared: Arc<Shared>, service: Option<Arc<RelayService>>, orders: mpsc::Receiver<Order>) {
    tokio::join!(bring_changes(&shared, service.as_deref()), carry_out(&shared, orders), save_marks(&shared));
}

async fn bring_changes(shared: &Shared, service: Option<&RelayService>) {
    let mut desired = shared.control.watch();
    let mut served = Served::default();
    // Whoever changes something has the other end, and so have we.
    while desired.changed().await.is_ok() {
        let desired = desired.borrow_and_update().clone();
        // Clients first: the engine may take its time.
        if let Some(service) = service {
            serve(service, &desired, &mut served).await;
        }
        lead(shared).await;
    }
}

async fn save_marks(shared: &Shared) {
    let mut ticks = interval(shared.settings().control.bounds.marks_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = shared.control.save_marks().await {
            tracing::warn!("what happened last at peers is not written down: {error}");
        }
    }
}

/// What the relay service was told; `None` if that is not known.
#[derive(Debug, Default)]
struct Served {
    identity: Option<Option<PublicKey>>,
    access: Option<Arc<AccessRules>>,
    peers: Option<Arc<BTreeMap<PublicKey, Arc<str>>>>,
}

/// Tells the relay service.
async fn serve(service: &RelayService, desired: &Desired, served: &mut Served) {
    let own_key = Some(identity(desired));
    if served.identity != own_key && service.set_identity(identity(desired)).await {
        served.identity = own_key;
    }
    if served.access.as_ref() != Some(&desired.access) && service.set_access(desired.access.clone()).await {
        served.access = Some(desired.access.clone());
    }
    let peers = Some(Arc::new(desired.peer_keys()));
    if served.peers != peers
        && let Some(keys) = &peers
        && service.set_peers(keys.clone()).await
    {
        served.peers = peers;
    }
}

/// Tells the engine that runs.
async fn lead(shared: &Shared) {
    let mut told = shared.told.lock().await;
    if let Err(error) = bring(shared, &mut told).await {
        tracing::debug!("what has changed waits for the next engine: {error}");
    }
}

async fn carry_out(shared: &Shared, mut orders: mpsc::Receiver<Order>) {
    while let Some(order) = orders.recv().await {
        // Whoever has asked need not wait for the answer any more.
        match order {
            Order::SyncNow { relay, done } => drop(done.send(sync_now(shared, relay).await)),
            Order::Brought { id, answer } => {
                let contexts = shared.disk.contexts(vec![id]).await;
                let context = contexts.map(|mut contexts| contexts.pop().flatten()).map_err(|error| error.to_string());
                drop(answer.send(context));
            }
        }
    }
}

async fn sync_now(shared: &Shared, relay: RelayUrl) -> Result<(), String> {
    let commands = shared.told.lock().await.commands.clone();
    let mut commands = commands.ok_or("nothing is synced at the moment, as the store is opened again; try again")?;
    tell(&mut commands, Command::SyncNow { relay }).await
}
