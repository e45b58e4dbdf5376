//! `relaysync peer`: the relays that we sync with by name.

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::caller::Caller;
use super::put::PutArguments;
use super::table::table;
use super::{ControlArguments, Shown, param, read};
use crate::native::program::status::words;
use crate::native::program::{Exit, Failure};
use crate::peer::{Health, HealthStatus, PeerSpec, PeerState, PeerStats, SyncStats, Tally, WorkerState, rfc3339};
use crate::protocol::EventId;
use crate::store::RequestContext;

/// Sync with relays that are known by name, prove who they are, and may read and write what they are granted.
///
/// `peer health` ends with status 0 if all is well, with 3 if something is wrong or not known yet.
#[derive(Debug, Clone, Args)]
pub(in crate::native::program) struct PeerArguments {
    #[command(flatten)]
    control: ControlArguments,
    #[command(subcommand)]
    command: PeerCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum PeerCommand {
    Put(Box<PutArguments>),
    /// Show a peer: as it is configured, and what it is at.
    Get(Named),
    /// Show all peers.
    List,
    /// Do not sync with a peer any more, and forget it. What it has brought stays.
    Remove(Named),
    /// Sync with a peer from now on.
    Start(Named),
    /// Do not sync with a peer until it is started.
    Stop(Named),
    /// Look at all of a peer again, at once.
    Sync(Named),
    /// Show what was counted at a peer, or at all together.
    Stats {
        /// The peer's name; all together without.
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Is sync working, and if not, why?
    Health,
    /// Which peer has brought an event?
    Origin {
        /// The event's id, in 64 hexadecimal digits.
        #[arg(value_name = "EVENT_ID", value_parser = event_id)]
        event: EventId,
    },
}

impl PeerCommand {
    /// Does it show how things are?
    const fn is_about_now(&self) -> bool {
        matches!(self, Self::Get(_) | Self::List | Self::Stats { .. } | Self::Health)
    }
}

#[derive(Debug, Clone, Args)]
struct Named {
    /// The peer's name.
    #[arg(value_name = "ID")]
    id: String,
}

/// A peer, as it comes back.
#[derive(Deserialize)]
struct Peer {
    spec: PeerSpec,
    runtime: PeerState,
    warnings: Vec<String>,
}

fn event_id(text: &str) -> Result<EventId, String> {
    EventId::parse(text).map_err(|_| "write the id of an event, in 64 hexadecimal digits".to_owned())
}

pub(in crate::native::program) async fn run(arguments: PeerArguments) -> Result<Exit, Failure> {
    let PeerArguments { control, command } = arguments;
    // Before anything is opened: what is wrong with the call is wrong wherever it goes.
    let spec = match &command {
        PeerCommand::Put(put) => Some(put.spec()?),
        _ => None,
    };
    let caller = Caller::find(&control).await?;
    let shown = call(&caller, &command, spec.as_ref()).await;
    if shown.is_ok() && command.is_about_now() && !caller.is_running() {
        eprintln!("no daemon runs, so nothing is synced at the moment");
    }
    caller.close().await?;
    shown?.print(control.json)
}

async fn call(caller: &Caller, command: &PeerCommand, spec: Option<&PeerSpec>) -> Result<Shown, Failure> {
    let by_name = async |method: &str, id: &str| caller.call(method, vec![param(id)?]).await;
    match command {
        PeerCommand::Put(_) => {
            let result = caller.call("putpeer", vec![param(&spec)?]).await?;
            one(result, "is configured")
        }
        PeerCommand::Get(Named { id }) => {
            let result = by_name("getpeer", id).await?;
            let text = details(&read(&result)?);
            Ok(Shown::new(result, text))
        }
        PeerCommand::List => list(caller.call("listpeers", Vec::new()).await?),
        PeerCommand::Remove(Named { id }) => {
            let result = by_name("removepeer", id).await?;
            let was_there = result["changed"] == json!(true);
            let text = if was_there { format!("{id} is removed\n") } else { format!("there was no peer {id}\n") };
            Ok(Shown::new(result, text))
        }
        PeerCommand::Start(Named { id }) => one(by_name("startpeer", id).await?, "is synced with"),
        PeerCommand::Stop(Named { id }) => one(by_name("stoppeer", id).await?, "is stopped"),
        PeerCommand::Sync(Named { id }) => {
            Ok(Shown::new(by_name("syncpeer", id).await?, format!("{id} is looked at again\n")))
        }
        PeerCommand::Stats { id: Some(id) } => one_tally(by_name("peerstats", id).await?),
        PeerCommand::Stats { id: None } => all_tallies(caller.call("syncstats", Vec::new()).await?),
        PeerCommand::Health => health(caller.call("synchealth", Vec::new()).await?),
        PeerCommand::Origin { event } => origin(caller.brought(*event).await?),
    }
}

/// What was done to a peer; warnings go beside.
fn one(result: Value, done: &str) -> Result<Shown, Failure> {
    let peer: Peer = read(&result)?;
    for warning in &peer.warnings {
        eprintln!("warning: {}", words(warning));
    }
    let text = format!("{} {done}\n", peer.spec.id);
    Ok(Shown::new(result, text))
}

fn state(runtime: &PeerState) -> &'static str {
    match (runtime.state, runtime.connected) {
        (WorkerState::Stopped, _) => "stopped",
        (WorkerState::Starting, _) => "waiting",
        (WorkerState::Running, true) => "connected",
        (WorkerState::Running, false) => "disconnected",
    }
}

fn list(result: Value) -> Result<Shown, Failure> {
    let peers: Vec<Peer> = read(&result)?;
    if peers.is_empty() {
        return Ok(Shown::new(result, "there are no peers; `relaysync peer put` adds one\n"));
    }
    let text = table(peers.iter().map(|Peer { spec, runtime, .. }| {
        let error = runtime.last_error.clone().filter(|_| !runtime.connected).unwrap_or_default();
        [spec.id.clone(), state(runtime).to_owned(), name_of(&spec.direction), spec.url.to_string(), error]
    }));
    Ok(Shown::new(result, text))
}

/// A word, as it is written in JSON.
fn name_of(word: &impl serde::Serialize) -> String {
    json!(word).as_str().unwrap_or_default().to_owned()
}

fn details(peer: &Peer) -> String {
    let Peer { spec, runtime, warnings } = peer;
    let row = |name: &str, value: String| [name.to_owned(), value];
    let moment = |name: &str, secs: Option<u64>| secs.map(|secs| row(name, rfc3339::format(secs)));
    let mut rows = vec![
        row("id", spec.id.clone()),
        row("url", spec.url.to_string()),
        row("key", spec.auth_pubkey.to_hex()),
        row("state", state(runtime).to_owned()),
        row("direction", name_of(&spec.direction)),
        row("mode", name_of(&spec.mode)),
    ];
    rows.extend(spec.filters.iter().map(|filter| row("filter", json!(**filter).to_string())));
    rows.push(row("tls", format!("{}, verify {}", name_of(&spec.tls.mode), name_of(&spec.tls.verify))));
    rows.extend(spec.tls.hostname.iter().map(|name| row("tls hostname", name.clone())));
    rows.extend(spec.tls.pins.iter().map(|pin| row("pin", pin.to_string())));
    rows.extend(moment("connected", runtime.last_connected_secs));
    rows.extend(moment("disconnected", runtime.last_disconnected_secs));
    rows.extend(moment("sync begun", runtime.last_sync_started_secs));
    rows.extend(moment("sync completed", runtime.last_sync_completed_secs));
    rows.extend(moment("last event", runtime.last_event_received_secs));
    rows.extend(runtime.last_error.iter().map(|error| row("last error", error.clone())));
    rows.extend(warnings.iter().map(|warning| row("warning", warning.clone())));
    table(rows)
}

fn counts(tally: &Tally) -> Vec<[String; 2]> {
    let Tally {
        events_received,
        events_accepted,
        events_duplicate,
        events_rejected,
        events_published,
        events_refused,
        query_runs,
        subscription_restarts,
        reconnects,
    } = *tally;
    [
        ("events received", events_received),
        ("events accepted", events_accepted),
        ("events held already", events_duplicate),
        ("events rejected", events_rejected),
        ("events published", events_published),
        ("events refused by it", events_refused),
        ("passes", query_runs),
        ("subscriptions restarted", subscription_restarts),
        ("reconnects", reconnects),
    ]
    .map(|(name, number)| [name.to_owned(), number.to_string()])
    .into()
}

fn one_tally(result: Value) -> Result<Shown, Failure> {
    let stats: PeerStats = read(&result)?;
    let mut rows = counts(&stats.tally);
    rows.extend(stats.last_remote_eose_secs.map(|secs| ["last EOSE".to_owned(), rfc3339::format(secs)]));
    rows.extend(stats.last_error.map(|error| ["last error".to_owned(), error]));
    Ok(Shown::new(result, table(rows)))
}

fn all_tallies(result: Value) -> Result<Shown, Failure> {
    let stats: SyncStats = read(&result)?;
    let SyncStats { servers_total, servers_enabled, servers_running, servers_connected, tally } = stats;
    let peers = [
        ("peers", servers_total),
        ("peers enabled", servers_enabled),
        ("peers worked on", servers_running),
        ("peers connected", servers_connected),
    ];
    let peers = peers.map(|(name, number)| [name.to_owned(), number.to_string()]);
    Ok(Shown::new(result, table(peers.into_iter().chain(counts(&tally)))))
}

fn health(result: Value) -> Result<Shown, Failure> {
    let health: Health = read(&result)?;
    let word = match health.status {
        HealthStatus::Ok => "ok",
        HealthStatus::Degraded => "degraded",
        HealthStatus::Failing => "failing",
        HealthStatus::Idle => "idle: no peer is enabled",
    };
    let mut text = format!("{word}, {} of {} peers connected\n", health.servers_connected, health.servers_total);
    let failing = health.servers_failing.iter();
    let failing = failing.map(|peer| [peer.id.clone(), name_of(&peer.reason), peer.detail.clone()]);
    let pending =
        health.servers_pending.iter().map(|peer| [peer.id.clone(), "waiting".to_owned(), peer.detail.clone()]);
    text.push_str(&table(failing.chain(pending)));
    let is_well = matches!(health.status, HealthStatus::Ok | HealthStatus::Idle);
    Ok(Shown { exit: if is_well { Exit::Complete } else { Exit::Partial }, ..Shown::new(result, text) })
}

fn origin(result: Value) -> Result<Shown, Failure> {
    let context: Option<RequestContext> = read(&result)?;
    let text = match context {
        Some(RequestContext { peer, at_secs }) => format!("{}  {}\n", words(&peer), rfc3339::format(at_secs)),
        None => "no peer has brought it\n".to_owned(),
    };
    Ok(Shown::new(result, text))
}
