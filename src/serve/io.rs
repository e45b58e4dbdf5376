//! What goes into a [`Server`](super::Server) and what comes out of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::ingest::{Verdict, Verified};
use crate::peer::{AccessRules, View};
use crate::protocol::{Event, Filter, ItemSet, ItemView, PublicKey, Window};
use crate::runtime::Frame;
use crate::store::{Batch, Outcome, Page, Query};

/// One connection of a client. Whoever runs the server gives it out, and never the same one twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// Ties the result of a piece of work to the effect that asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Gives out tickets.
#[derive(Debug, Default)]
pub struct Tickets(u64);

impl Tickets {
    /// A ticket that was not given out before.
    pub fn issue(&mut self) -> Ticket {
        self.0 += 1;
        Ticket(self.0)
    }
}

/// A piece of work failed, in words for the operator's log. Clients only learn that it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkFault(pub String);

impl fmt::Display for WorkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WorkFault {}

/// What happened.
#[derive(Debug)]
pub enum ServeInput {
    /// The relay is known by another key from now on.
    Renewed,
    /// These access rules hold from now on, for what is under way, too.
    Access(Arc<AccessRules>),
    /// These are the keys of configured peers from now on, and the names that are noted with what they publish.
    Peers(Arc<BTreeMap<PublicKey, Arc<str>>>),
    /// A client has connected.
    Opened {
        /// The connection.
        client: ClientId,
        /// The NIP-42 challenge for it: unpredictable, at most 64 characters.
        challenge: String,
    },
    /// A client's connection has ended. Not for those that [`ServeEffect::Close`] ended.
    Closed {
        /// The connection.
        client: ClientId,
    },
    /// A client has sent a frame.
    Frame {
        /// The connection.
        client: ClientId,
        /// The frame.
        frame: Frame,
    },
    /// Frames of [`ServeEffect::Send`] have left for the client.
    Written {
        /// The connection.
        client: ClientId,
        /// The sum of their lengths in bytes.
        bytes: usize,
    },
    /// The result of [`ServeEffect::Query`].
    Queried {
        /// The ticket of the effect.
        ticket: Ticket,
        /// The page.
        page: Result<Page, WorkFault>,
    },
    /// The result of [`ServeEffect::Count`].
    Counted {
        /// The ticket of the effect.
        ticket: Ticket,
        /// How many events.
        count: Result<u64, WorkFault>,
    },
    /// The result of [`ServeEffect::Items`].
    Items {
        /// The ticket of the effect.
        ticket: Ticket,
        /// The items.
        items: Result<Arc<ItemSet>, WorkFault>,
    },
    /// The result of [`ServeEffect::Reconcile`].
    Reconciled {
        /// The ticket of the effect.
        ticket: Ticket,
        /// The answer, or why the message was none.
        answer: Result<Vec<u8>, WorkFault>,
    },
    /// The result of [`ServeEffect::Verify`].
    Verified {
        /// The ticket of the effect.
        ticket: Ticket,
        /// One verdict an event, in order.
        verdicts: Result<Vec<Verdict>, WorkFault>,
    },
    /// The result of [`ServeEffect::Judge`].
    Judged {
        /// The ticket of the effect.
        ticket: Ticket,
        /// One an event, in order: why it is not wanted, as OK is to say it, or `None` if it is.
        objections: Result<Vec<Option<String>>, WorkFault>,
    },
    /// The result of [`ServeEffect::Commit`].
    Committed {
        /// The ticket of the effect.
        ticket: Ticket,
        /// One outcome an event, in order.
        outcomes: Result<Vec<Outcome>, WorkFault>,
    },
    /// Somebody else has put events into the same store, or has accepted ephemeral ones: subscribers want them.
    Accepted {
        /// The events.
        events: Arc<[Verified<Event>]>,
    },
    /// How far the commits of somebody else to the same store have come. To be handed in before the result of a read
    /// that may show something of a commit that is not over, so that subscribers get it once.
    Elsewhere {
        /// Commits begun so far.
        begun: u64,
        /// Those of them that are over, and of which all that they stored was handed in as [`ServeInput::Accepted`].
        over: u64,
    },
    /// Somebody else has put events into the same store that cannot be handed in. Subscriptions are closed, so that
    /// clients know to ask again.
    Missed,
    /// The [deadline](super::Server::deadline) has come.
    Tick,
}

/// What is to be done. Every effect with a ticket is answered by exactly one input with that ticket.
#[derive(Debug)]
pub enum ServeEffect {
    /// Send a text frame, and report it [written](ServeInput::Written).
    Send {
        /// The connection.
        client: ClientId,
        /// The frame.
        frame: String,
    },
    /// End a connection, after what was sent before as far as the client takes it. The server has forgotten it.
    Close {
        /// The connection.
        client: ClientId,
        /// Why.
        reason: Cut,
    },
    /// Stop (`false`) or resume (`true`) reading from a client's socket, so that it is slowed down.
    SetReading {
        /// The connection.
        client: ClientId,
        /// Whether to read.
        reading: bool,
    },
    /// Read one page: [`Store::query`](crate::store::Store::query).
    Query {
        /// The ticket.
        ticket: Ticket,
        /// The question.
        query: Query,
    },
    /// Count: [`Store::count`](crate::store::Store::count).
    Count {
        /// The ticket.
        ticket: Ticket,
        /// What to count.
        filters: Vec<Filter>,
        /// What the client may see.
        view: View,
        /// Wall time, in seconds since 1970.
        now_secs: u64,
    },
    /// List the items that are held: [`Store::held_items`](crate::store::Store::held_items).
    Items {
        /// The ticket.
        ticket: Ticket,
        /// The filter, without window and limit.
        filter: Filter,
        /// The window.
        window: Window,
        /// What the client may see.
        view: View,
        /// Wall time, in seconds since 1970.
        now_secs: u64,
    },
    /// Answer a reconciliation message: [`reconcile`](super::reconcile).
    Reconcile {
        /// The ticket.
        ticket: Ticket,
        /// Our side.
        view: ItemView,
        /// The client's message.
        message: Vec<u8>,
        /// The largest answer, in bytes.
        frame_bytes_max: usize,
    },
    /// Check ids and signatures.
    Verify {
        /// The ticket.
        ticket: Ticket,
        /// The events.
        events: Vec<Event>,
    },
    /// Say whether events are wanted ([`ServeConfig::judged`](super::ServeConfig::judged)). They are to take effect in
    /// this order: one to which there is no objection counts as held when those behind it are judged.
    Judge {
        /// The ticket.
        ticket: Ticket,
        /// The events.
        events: Vec<Verified<Event>>,
    },
    /// Commit: [`Store::commit`](crate::store::Store::commit).
    Commit {
        /// The ticket.
        ticket: Ticket,
        /// The batch.
        batch: Batch,
    },
}

/// Why a client's connection is ended by the relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// It takes what it asked for too slowly.
    SlowReader,
    /// It sent a frame larger than allowed.
    FrameTooLarge,
    /// It sent text that is not UTF-8.
    InvalidUtf8,
    /// It sent something that is not text.
    NotText,
    /// It broke the WebSocket protocol.
    Protocol(String),
    /// It tried to authenticate too often.
    AuthAttempts,
    /// The relay is known by another key, which clients that have authenticated are to look at.
    Renewed,
    /// The relay shuts down.
    Shutdown,
}

impl Cut {
    /// The WebSocket close code (RFC 6455, 7.4.1).
    pub fn code(&self) -> u16 {
        match self {
            Self::Shutdown | Self::Renewed => 1001,
            Self::Protocol(_) => 1002,
            Self::NotText => 1003,
            Self::InvalidUtf8 => 1007,
            Self::SlowReader | Self::AuthAttempts => 1008,
            Self::FrameTooLarge => 1009,
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SlowReader => f.write_str("client reads too slowly"),
            Self::FrameTooLarge => f.write_str("frame larger than allowed"),
            Self::InvalidUtf8 => f.write_str("frame is not UTF-8"),
            Self::NotText => f.write_str("frame is not text"),
            Self::Protocol(detail) => write!(f, "WebSocket protocol broken: {detail}"),
            Self::AuthAttempts => f.write_str("too many AUTH messages"),
            Self::Renewed => f.write_str("the relay's key has changed, connect again"),
            Self::Shutdown => f.write_str("relay shuts down"),
        }
    }
}
