//! The peers.

use serde::Serialize;
use tokio::sync::oneshot;

use super::board::Sight;
use super::state::{Peer, State, remember};
use super::{Control, ControlError, Desired, Desk, Order};
use crate::native::admin::{PeerReport, PeersReport};
use crate::peer::{Health, PeerSpec, PeerState, PeerStats, SyncStats};
use crate::protocol::{EventId, PublicKey, RelayUrl};
use crate::store::RequestContext;

/// The peers: relays that are known by name, prove who they are, and are synced with.
///
/// ```
/// # tokio_test(async {
/// # let folder = tempfile::tempdir().unwrap();
/// use relaysync::native::control::{Control, ControlConfig};
/// use relaysync::peer::{HealthStatus, PeerSpec};
///
/// let control = Control::open(ControlConfig::beside(folder.path().join("events.db"))).await.unwrap();
/// let peers = control.peers();
/// let spec = PeerSpec::parse(
///     r#"{
///         "id": "tribes-primary",
///         "url": "wss://relay-a.example/relay",
///         "auth_pubkey": "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4",
///         "filters": [{"kinds": [5000]}],
///         "tls": {"pins": [{"type": "spki_sha256", "value": "sha256/rHH8tQB1jOfXbwXxBPjqW6dmzP5dSxnZ6EWJFQ1kWWA="}]}
///     }"#,
/// )
/// .unwrap();
/// let info = peers.put(spec).await.unwrap();
/// println!("{}: {:?}", info.runtime.server_id, info.warnings);
///
/// peers.stop("tribes-primary").await.unwrap();
/// assert_eq!(peers.health().status, HealthStatus::Idle, "no peer is enabled");
/// assert!(peers.remove("tribes-primary").await.unwrap());
/// # });
/// # fn tokio_test(test: impl Future<Output = ()>) {
/// #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Peers {
    pub(super) control: Control,
}

/// A peer: as it is configured, and what it is at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeerInfo {
    /// As it is configured.
    pub spec: PeerSpec,
    /// The keys that it has had before, the last one first.
    pub previous_auth_pubkeys: Vec<PublicKey>,
    /// What it is at.
    pub runtime: PeerState,
    /// What is allowed, but hardly meant.
    pub warnings: Vec<String>,
}

impl Peers {
    /// Adds a peer, or replaces the one of this name.
    ///
    /// # Errors
    /// Another peer has this URL, there are too many, or it could not be kept.
    pub async fn put(&self, spec: PeerSpec) -> Result<PeerInfo, ControlError> {
        let (id, url) = (spec.id.clone(), spec.url.clone());
        let (name, control) = (id.clone(), self.control.clone());
        self.control
            .with_desk(move |desk| {
                if put(desk, spec)? {
                    control.board().begin(&name, &url);
                }
                Ok(())
            })
            .await?;
        self.get(&id)
    }

    /// One peer.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn get(&self, id: &str) -> Result<PeerInfo, ControlError> {
        let desired = self.control.desired();
        let peer = desired.state.peer(id).ok_or_else(|| ControlError::UnknownPeer(id.to_owned()))?;
        Ok(self.info(&desired, peer))
    }

    /// All peers, in the order of their names.
    pub fn list(&self) -> Vec<PeerInfo> {
        let desired = self.control.desired();
        desired.state.peers.iter().map(|peer| self.info(&desired, peer)).collect()
    }

    /// Removes a peer. What it has brought stays. `false` if there was none of this name.
    ///
    /// # Errors
    /// It could not be kept.
    pub async fn remove(&self, id: &str) -> Result<bool, ControlError> {
        let id = id.to_owned();
        let control = self.control.clone();
        self.control
            .with_desk(move |desk| {
                let mut state = State::clone(&desk.state);
                let Ok(at) = state.place(&id) else { return Ok(false) };
                state.peers.remove(at);
                desk.write(state)?;
                control.board().forget(&id);
                Ok(true)
            })
            .await
    }

    /// Syncs with a peer from now on.
    ///
    /// # Errors
    /// There is none of this name, or it could not be kept.
    pub async fn start(&self, id: &str) -> Result<PeerInfo, ControlError> {
        self.enable(id, true).await
    }

    /// Does not sync with a peer any more, until it is started.
    ///
    /// # Errors
    /// There is none of this name, or it could not be kept.
    pub async fn stop(&self, id: &str) -> Result<PeerInfo, ControlError> {
        self.enable(id, false).await
    }

    /// Looks at all of a peer again, at once, whatever was proven, and even if it rests after a failure.
    ///
    /// # Errors
    /// There is none of this name, it is not enabled, or no daemon runs.
    pub async fn sync_now(&self, id: &str) -> Result<(), ControlError> {
        let spec = self.get(id)?.spec;
        if !spec.enabled {
            let reason = format!("the peer {id:?} is stopped; start it first (`relaysync peer start {id}`)");
            return Err(ControlError::Refused(reason));
        }
        let (done, answer) = oneshot::channel();
        self.control.order(Order::SyncNow { relay: spec.url, done }).await?;
        answer.await.map_err(|_| ControlError::Stopped)?.map_err(ControlError::Refused)
    }

    /// What was counted at a peer.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn stats(&self, id: &str) -> Result<PeerStats, ControlError> {
        let desired = self.control.desired();
        let peer = desired.state.peer(id).ok_or_else(|| ControlError::UnknownPeer(id.to_owned()))?;
        Ok(stats(&peer.spec, &self.control.sight(id)))
    }

    /// What was counted at all peers.
    pub fn all_stats(&self) -> SyncStats {
        sum(&self.sights(&self.control.desired()))
    }

    /// All of it in one; `None` if there are no peers.
    pub fn report(&self) -> Option<PeersReport> {
        let desired = self.control.desired();
        let sights = self.sights(&desired);
        let report = |(spec, sight): &(&PeerSpec, Sight)| PeerReport {
            relay: spec.url.clone(),
            runtime: runtime(spec, sight),
            stats: stats(spec, sight),
        };
        let peers: Vec<PeerReport> = sights.iter().map(report).collect();
        (!peers.is_empty()).then(|| PeersReport { health: health(&sights), stats: sum(&sights), peers })
    }

    /// Is sync working, and if not, why?
    pub fn health(&self) -> Health {
        health(&self.sights(&self.control.desired()))
    }

    /// Which peer has brought an event, if one has.
    ///
    /// # Errors
    /// No daemon runs, or its store cannot be read.
    pub async fn brought(&self, id: EventId) -> Result<Option<RequestContext>, ControlError> {
        let (answer, answered) = oneshot::channel();
        self.control.order(Order::Brought { id: id.to_bytes(), answer }).await?;
        answered.await.map_err(|_| ControlError::Stopped)?.map_err(ControlError::Refused)
    }

    async fn enable(&self, id: &str, enabled: bool) -> Result<PeerInfo, ControlError> {
        let name = id.to_owned();
        let control = self.control.clone();
        self.control
            .with_desk(move |desk| {
                let mut state = State::clone(&desk.state);
                let Some(peer) = state.peer_mut(&name) else { return Err(ControlError::UnknownPeer(name)) };
                let is_change = peer.spec.enabled != enabled;
                peer.spec.enabled = enabled;
                let url = peer.spec.url.clone();
                if desk.write_if(is_change, state)? {
                    control.board().begin(&name, &url);
                }
                Ok(())
            })
            .await?;
        self.get(id)
    }

    /// The rules may take their time: meanwhile the engine can be heard.
    fn info(&self, desired: &Desired, peer: &Peer) -> PeerInfo {
        let Peer { spec, previous } = peer;
        PeerInfo {
            spec: spec.clone(),
            previous_auth_pubkeys: previous.clone(),
            runtime: runtime(spec, &self.control.sight(&spec.id)),
            warnings: spec.warnings(&desired.access),
        }
    }

    /// All peers, and what is seen of them, at one moment.
    fn sights<'d>(&self, desired: &'d Desired) -> Vec<(&'d PeerSpec, Sight)> {
        let (board, age_max) = (self.control.board(), self.control.inner.bounds.report_age_max);
        desired.state.peers.iter().map(|peer| (&peer.spec, board.sight(&peer.spec.id, age_max))).collect()
    }
}

fn runtime(spec: &PeerSpec, sight: &Sight) -> PeerState {
    PeerState::new(&spec.id, spec.enabled, sight.heard().report(), &sight.marks)
}

fn stats(spec: &PeerSpec, sight: &Sight) -> PeerStats {
    PeerStats {
        server_id: spec.id.clone(),
        tally: sight.tally,
        last_remote_eose_secs: sight.marks.moments.eose_secs,
        last_error: sight.marks.last_error.as_ref().map(|error| error.text.clone()),
    }
}

fn sum(sights: &[(&PeerSpec, Sight)]) -> SyncStats {
    let states: Vec<_> = sights.iter().map(|(spec, sight)| (runtime(spec, sight), sight.tally)).collect();
    SyncStats::of(states.iter().map(|(state, tally)| (state, *tally)))
}

fn health(sights: &[(&PeerSpec, Sight)]) -> Health {
    Health::of(sights.iter().map(|(spec, sight)| (*spec, sight.heard())))
}

fn put(desk: &mut Desk, spec: PeerSpec) -> Result<bool, ControlError> {
    let bytes = serde_json::to_vec(&spec).map_or(usize::MAX, |json| json.len());
    desk.check_count("bytes of this peer's specification", bytes, desk.bounds.spec_bytes_max)?;
    refuse_second(&desk.state, &spec.id, &spec.url)?;
    let mut state = State::clone(&desk.state);
    match state.place(&spec.id) {
        Ok(at) => {
            let Peer { spec: old, previous } = &mut state.peers[at];
            if *old == spec {
                return Ok(false);
            }
            let former = (old.auth_pubkey != spec.auth_pubkey).then_some(old.auth_pubkey);
            remember(previous, former, spec.auth_pubkey, desk.bounds.previous_keys_max);
            *old = spec;
        }
        Err(at) => {
            desk.check_count("peers", state.peers.len() + 1, desk.bounds.peers_max)?;
            state.peers.insert(at, Peer { spec, previous: Vec::new() });
        }
    }
    desk.write_if(true, state)
}

/// One relay is one peer.
fn refuse_second(state: &State, id: &str, url: &RelayUrl) -> Result<(), ControlError> {
    match state.peers.iter().find(|peer| peer.spec.url == *url && peer.spec.id != id) {
        None => Ok(()),
        Some(other) => Err(ControlError::Refused(format!(
            "{url} is the peer {:?} already; change that one, or remove it first",
            other.spec.id
        ))),
    }
}
