//! What goes into the engine and what comes out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::{Bringer, Brought, Origin, PublishAnswer, RelayOptions, RelayReport, Sizes, Standing};
use crate::discover::{DiscoverConfig, DiscoveryCounters, DiscoverySizes};
use crate::ingest::{Verdict, Verified};
use crate::peer::{AccessRules, Peering, View};
use crate::plan::Interest;
use crate::protocol::{Event, Filter, FilterKey, ItemSet, RelayUrl, Window};
use crate::runtime::{CloseReason, ConnectError, Dial, Frame, SignError};
use crate::store::{Batch, Coverage, Outcome, Record};

/// One attempt at a connection. Never used again: what arrives late for an old one is dropped by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// One piece of work that was handed out; its result comes back under the same ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What the embedder wants.
#[derive(Debug, Clone)]
pub enum Command {
    /// From now on these are all interests in this relay; the relay is registered if it is new.
    SetInterests {
        /// The relay.
        relay: RelayUrl,
        /// The interests; none to be done with the relay.
        interests: BTreeSet<Interest>,
        /// How to sync it.
        options: RelayOptions,
    },
    /// Something more, or less, is wanted of a relay; it is registered if it is new.
    ChangeInterests {
        /// The relay.
        relay: RelayUrl,
        /// What is wanted beside what was.
        added: Vec<Interest>,
        /// What is not wanted any more.
        removed: Vec<Interest>,
        /// How to sync it.
        options: RelayOptions,
    },
    /// From now on this relay is a peer on these terms, or is none any more. What discovery wants of it stays as it is. A
    /// connection that was made on other terms ends, and is made anew at once.
    SetPeer {
        /// The relay.
        relay: RelayUrl,
        /// The terms, and what is synced; `None` for a relay like any other.
        peering: Option<Box<Peering>>,
    },
    /// These rules hold from now on, for everything that is under way, too. Discovery has no part in what is protected. What
    /// followed from events that are protected only now is asked for no more: the index begins anew, and waits for what is
    /// held ([`Command::Accepted`], [`Command::AllHeld`]). It is to be told of what is no longer protected, too.
    SetAccess(Arc<AccessRules>),
    /// We are somebody else from now on: relays that know who we are (NIP-42) are connected to anew, at once.
    Renew,
    /// All of a relay is looked at again, whatever was proven, and at once, if it rests after a failure.
    SyncNow {
        /// The relay.
        relay: RelayUrl,
    },
    /// Relays are to be discovered by this from now on: see [`discover`](crate::discover). What was accepted is kept.
    Discover(Box<DiscoverConfig>),
    /// Events that are held now and that no relay of ours has brought. The store has them already.
    Accepted {
        /// The events, genuine.
        events: Vec<Event>,
        /// Where they come from.
        origin: Origin,
        /// Who has brought some of them: they are not published to who has brought them.
        brought: BTreeMap<[u8; 32], Bringer>,
    },
    /// All that was held has been told of by [`Command::Accepted`]: discovery may begin, where it
    /// [waits](super::Config::awaits_held) for that.
    AllHeld,
    /// Are these genuine events wanted? [`Notice::Judged`] has the answer. Those that are count as on their way into the
    /// store.
    Judge {
        /// For the answer.
        ticket: u64,
        /// The events.
        events: Vec<Event>,
    },
    /// The machine slept, the network came back, or somebody looks at what is held: every connection is probed, and
    /// relays that wait to be tried again may be tried at once. A sleep by which a deadline was missed, by more than
    /// [`Config::suspend_gap`](super::Config::suspend_gap), the engine notices by itself.
    Wake,
    /// This event is to be published to a relay, whatever else is wanted of it: [`Notice::Published`] has the answer. It
    /// is not stored here.
    Publish {
        /// For the answer.
        ticket: u64,
        /// The relay; it is registered if it is new.
        relay: RelayUrl,
        /// The event, genuine.
        event: Box<Event>,
        /// An answer is given by then.
        timeout: Duration,
    },
    /// What is proven of this filter, of those that are wanted? [`Notice::Proven`] has the answer.
    Prove {
        /// For the answer.
        ticket: u64,
        /// The filter.
        filter: FilterKey,
    },
    /// Commit what has arrived, close all connections, then announce [`Notice::Stopped`].
    Stop,
}

impl Command {
    /// Does it say who is trusted with what?
    pub(super) fn is_about_trust(&self) -> bool {
        matches!(self, Self::SetPeer { .. } | Self::SetAccess(_) | Self::Renew)
    }
}

/// What happens to the engine.
#[derive(Debug)]
pub enum Input {
    /// A deadline has passed.
    Tick,
    /// The embedder wants something.
    Command(Command),
    /// The connection is open.
    Connected {
        /// Which.
        conn: ConnId,
    },
    /// Frames have arrived, in this order.
    Frames {
        /// Where.
        conn: ConnId,
        /// The frames.
        frames: Vec<Frame>,
    },
    /// The connection has ended, or did not come about.
    Disconnected {
        /// Which.
        conn: ConnId,
        /// Why.
        reason: CloseReason,
    },
    /// The answer to [`Effect::FetchInfo`].
    RelayInfo {
        /// For which connection.
        conn: ConnId,
        /// The document's text.
        result: Result<String, ConnectError>,
    },
    /// The answer to [`Effect::Verify`]: one verdict an event, in order, or the store's error.
    Verified {
        /// Which.
        ticket: Ticket,
        /// The verdicts.
        result: Result<Vec<Verdict>, String>,
    },
    /// The answer to [`Effect::Commit`]: one outcome an event, in order, or the store's error.
    Committed {
        /// Which.
        ticket: Ticket,
        /// The outcomes.
        result: Result<Vec<Outcome>, String>,
    },
    /// The answer to [`Effect::LoadItems`].
    Items {
        /// Which.
        ticket: Ticket,
        /// The set, or the store's error.
        result: Result<Arc<ItemSet>, String>,
    },
    /// The answer to [`Effect::CheckKnown`].
    Known {
        /// Which.
        ticket: Ticket,
        /// For each id whether it is held or remembered as gone, or the store's error.
        result: Result<Vec<bool>, String>,
    },
    /// The answer to [`Effect::LoadEvents`].
    Events {
        /// Which.
        ticket: Ticket,
        /// The events that are held, or the store's error.
        result: Result<Vec<Option<Record>>, String>,
    },
    /// The answer to [`Effect::Sign`].
    Signed {
        /// Where.
        conn: ConnId,
        /// The signed event (NIP-42).
        result: Result<Verified<Event>, SignError>,
    },
}

/// What the engine wants done. None of it blocks the engine; results come back as [`Input`].
#[derive(Debug)]
pub enum Effect {
    /// Connect; answer with [`Input::Connected`] or [`Input::Disconnected`].
    Connect {
        /// The new connection's id.
        conn: ConnId,
        /// Whom to connect to.
        dial: Dial,
    },
    /// Send a frame.
    Send {
        /// Where.
        conn: ConnId,
        /// The frame.
        frame: String,
    },
    /// Stop or resume reading from the relay.
    SetReading {
        /// Where.
        conn: ConnId,
        /// Read?
        reading: bool,
    },
    /// Close the connection, or give up connecting. Nothing more is expected of it.
    Close {
        /// Which.
        conn: ConnId,
        /// Why.
        reason: CloseReason,
    },
    /// Fetch the relay information document (NIP-11).
    FetchInfo {
        /// For the answer: the connection that it is fetched for.
        conn: ConnId,
        /// Whose.
        dial: Dial,
    },
    /// Check ids and signatures of these events.
    Verify {
        /// For the answer.
        ticket: Ticket,
        /// The events.
        events: Vec<Event>,
        /// Find out first which of them are known, and check only the others.
        look_up: bool,
    },
    /// Commit a batch.
    Commit {
        /// For the answer.
        ticket: Ticket,
        /// The batch.
        batch: Batch,
    },
    /// Load the items of a filter.
    LoadItems {
        /// For the answer.
        ticket: Ticket,
        /// The filter.
        filter: Arc<Filter>,
        /// The window.
        window: Window,
        /// What the relay may learn of.
        view: View,
    },
    /// Find out which of these ids are known.
    CheckKnown {
        /// For the answer.
        ticket: Ticket,
        /// The ids.
        ids: Vec<[u8; 32]>,
        /// What the relay may learn of: it sees which ids are not asked for.
        view: View,
    },
    /// Load events for publishing.
    LoadEvents {
        /// For the answer.
        ticket: Ticket,
        /// The ids.
        ids: Vec<[u8; 32]>,
    },
    /// Sign the answer to a challenge (NIP-42).
    Sign {
        /// For the answer.
        conn: ConnId,
        /// The relay.
        relay: RelayUrl,
        /// The challenge.
        challenge: String,
    },
    /// Tell the embedder.
    Notify(Notice),
}

impl Effect {
    /// The bytes of its frame; 0 if it is none.
    pub fn frame_bytes(&self) -> usize {
        match self {
            Self::Send { frame, .. } => frame.len(),
            _ => 0,
        }
    }
}

/// What the embedder is told.
#[derive(Debug, Clone)]
pub enum Notice {
    /// How far things are.
    Progress(Vec<RelayReport>),
    /// How much is held, and what discovery has seen: with each [`Notice::Progress`].
    Holdings(Box<Holdings>),
    /// The answer to [`Command::Judge`].
    Judged {
        /// Of the question.
        ticket: u64,
        /// For each event what speaks against it, in the words of an OK answer (NIP-01).
        objections: Vec<Option<String>>,
    },
    /// A relay stands otherwise than before. Only with [`Config::tells_standings`](super::Config::tells_standings), like the
    /// next two.
    Standing(Box<Standing>),
    /// These events are about to be stored, if they are not held already.
    Storing(Vec<Brought>),
    /// Of the last of those, these are held now that were not before.
    Stored(Vec<Brought>),
    /// The answer to [`Command::Publish`].
    Published {
        /// Of the command.
        ticket: u64,
        /// The relay.
        relay: RelayUrl,
        /// What it said.
        answer: PublishAnswer,
    },
    /// The answer to [`Command::Prove`].
    Proven {
        /// Of the question.
        ticket: u64,
        /// As of this moment, for each relay of which the filter is fetched.
        marks: Vec<Coverage>,
    },
    /// A one-shot job has ended at all relays.
    Finished(Vec<RelayReport>),
    /// The answer to [`Command::Stop`]: everything that arrived is committed, all connections are closed.
    Stopped(Vec<RelayReport>),
    /// The store failed; nothing more is fetched.
    StoreFailed(String),
}

/// How much an engine holds at a moment, and what its discovery has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holdings {
    /// The engine.
    pub sizes: Sizes,
    /// Discovery, if relays are discovered: how much it holds, and what it has counted.
    pub discovery: Option<(DiscoverySizes, DiscoveryCounters)>,
}
