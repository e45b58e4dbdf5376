//! One relay's connection: its state, its open subscriptions, its authentication.

use std::collections::{BTreeMap, VecDeque};

use crate::engine::{ConnId, HistoryId};
use crate::protocol::PublicKey;
use crate::runtime::{Instant, Now};

/// What a subscription is for. A history's events go to the machine named here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// New events as they come.
    Live,
    /// One page of a history.
    Page,
    /// One part of a second that overflows a page.
    Split,
    /// Events by id.
    Ids,
    /// A reconciliation.
    Negentropy,
    /// To see whether the relay is still there. No history's.
    Probe,
}

/// One open subscription.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// Whose it is.
    pub history: HistoryId,
    /// What it is for.
    pub purpose: Purpose,
    /// When it was opened, in wall time: seconds since 1970.
    pub opened_secs: u64,
    /// When it was opened.
    pub opened_at: Instant,
    /// When it was sent last: under the same id again, it replaces itself (NIP-01).
    pub sent_at: Instant,
    /// The same in wall time, in seconds since 1970.
    pub sent_secs: u64,
    /// How often it was sent and not answered yet.
    pub unanswered: u32,
    /// It was sent again to see whether the relay is still there, and that is not known yet.
    pub probes: bool,
    /// When it last made progress: a wanted event or a negentropy message. Nothing else counts.
    pub progress_at: Instant,
    /// Has the relay answered it at all?
    pub answered: bool,
}

/// The state of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// No socket, none wanted or not yet.
    Down,
    /// A connection attempt is under way.
    Connecting {
        /// The attempt.
        conn: ConnId,
        /// When it is given up.
        give_up_at: Instant,
    },
    /// The socket is open, and the relay has yet to prove who it is: until then nothing is said to it, and nothing taken.
    Proving {
        /// The connection.
        conn: ConnId,
        /// When it is given up.
        give_up_at: Instant,
    },
    /// The socket is open, and the relay is who it should be.
    Up {
        /// The connection.
        conn: ConnId,
    },
}

/// Authentication of one connection (NIP-42).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Auth {
    /// The relay has sent a challenge: who asks has some that may do more than others.
    pub was_asked: bool,
    /// The challenge that came last and is not answered yet; it may be replaced at any time.
    pub challenge: Option<String>,
    /// The event sent in answer, whose OK is awaited.
    pub awaiting: Option<String>,
    /// The challenge whose answer is being signed.
    pub signing: Option<String>,
    /// Who that event is by.
    pub key: Option<PublicKey>,
    /// The relay said yes.
    pub accepted: bool,
    /// The relay has answered a request before it said yes.
    pub answered_before: bool,
    /// The relay has refused a request for want of authentication since it last said yes.
    pub demanded: bool,
    /// The relay, or our signer, said no.
    pub refused: Option<String>,
    /// How often requests were refused although we were authenticated, since the relay last served one.
    pub futile: u32,
}

/// One relay's connection.
#[derive(Debug)]
pub struct Session {
    /// The state of the link.
    pub link: Link,
    /// Authentication.
    pub auth: Auth,
    /// When the connection was opened.
    pub connected_at: Instant,
    /// When the last frame came, of whatever kind; before the first one, when the connection was opened.
    pub last_frame_at: Instant,
    /// When the newest request that the relay has answered was sent.
    served: Option<(Instant, u64)>,
    /// When it was last probed.
    pub probed_at: Instant,
    /// A probe is due, however lately the last frame came.
    pub probe_due: bool,
    /// Bytes that nobody asked for, since the last useful frame.
    pub unsolicited_bytes: usize,
    /// Is the socket being read?
    pub reading: bool,
    /// Pages that an EOSE has ended lately, and whose they were.
    ended: VecDeque<(u64, HistoryId)>,
    subscriptions: BTreeMap<u64, Subscription>,
    next_subscription: u64,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            link: Link::Down,
            auth: Auth::default(),
            connected_at: Instant::ZERO,
            last_frame_at: Instant::ZERO,
            served: None,
            probed_at: Instant::ZERO,
            probe_due: false,
            unsolicited_bytes: 0,
            reading: true,
            ended: VecDeque::new(),
            subscriptions: BTreeMap::new(),
            next_subscription: 0,
        }
    }
}

impl Session {
    /// The connection, if it is open and anything may be said on it.
    pub fn conn(&self) -> Option<ConnId> {
        match self.link {
            Link::Up { conn } => Some(conn),
            _ => None,
        }
    }

    /// The connection, open or being opened.
    pub fn any_conn(&self) -> Option<ConnId> {
        match self.link {
            Link::Down => None,
            Link::Connecting { conn, .. } | Link::Proving { conn, .. } | Link::Up { conn } => Some(conn),
        }
    }

    /// Everything that belonged to the last connection is gone. Gives back what was open.
    pub fn reset(&mut self) -> BTreeMap<u64, Subscription> {
        let open = std::mem::take(&mut self.subscriptions);
        // Numbers are never used twice, not even on another connection.
        *self = Self { next_subscription: self.next_subscription, ..Self::default() };
        open
    }

    /// The number that the next subscription will have.
    pub fn next_id(&self) -> u64 {
        self.next_subscription + 1
    }

    /// Takes a new subscription in.
    pub fn open(&mut self, history: HistoryId, purpose: Purpose, now: Now) -> u64 {
        self.next_subscription += 1;
        let subscription = Subscription {
            history,
            purpose,
            opened_at: now.instant,
            opened_secs: now.unix_secs,
            sent_at: now.instant,
            sent_secs: now.unix_secs,
            unanswered: 1,
            probes: false,
            progress_at: now.instant,
            answered: false,
        };
        self.subscriptions.insert(self.next_subscription, subscription);
        self.next_subscription
    }

    /// An EOSE has ended this page. The last `kept` of them are remembered.
    pub fn note_ended(&mut self, id: u64, history: HistoryId, kept: usize) {
        self.ended.push_back((id, history));
        while self.ended.len() > kept {
            self.ended.pop_front();
        }
    }

    /// Whose page this was, if an EOSE has ended it lately.
    pub fn ended(&self, id: u64) -> Option<HistoryId> {
        self.ended.iter().find(|(ended, _)| *ended == id).map(|(_, history)| *history)
    }

    /// Forgets a subscription.
    pub fn close(&mut self, id: u64) -> Option<Subscription> {
        self.subscriptions.remove(&id)
    }

    /// A subscription that is open.
    pub fn subscription(&self, id: u64) -> Option<&Subscription> {
        self.subscriptions.get(&id)
    }

    /// A subscription that is open, to be changed.
    pub fn subscription_mut(&mut self, id: u64) -> Option<&mut Subscription> {
        self.subscriptions.get_mut(&id)
    }

    /// The connection is open, and the relay is who it should be.
    pub fn handle_connected(&mut self, conn: ConnId, now: Now) {
        self.link = Link::Up { conn };
        self.connected_at = now.instant;
        self.last_frame_at = now.instant;
    }

    /// An open subscription is sent again, in its own place, to see whether the relay is still there.
    pub fn note_sent_as_probe(&mut self, id: u64, now: Now) {
        if let Some(open) = self.subscriptions.get_mut(&id) {
            (open.sent_at, open.sent_secs, open.progress_at) = (now.instant, now.unix_secs, now.instant);
            open.unanswered += 1;
            open.probes = true;
        }
    }

    /// The relay has answered a request, be it by refusing it: it was there when that was sent, and what it had to say on
    /// other subscriptions before it got the request has come by now. Of several sendings, the last answer is meant.
    pub fn note_served(&mut self, id: u64) {
        let Some(open) = self.subscriptions.get_mut(&id) else { return };
        open.unanswered = open.unanswered.saturating_sub(1);
        open.probes &= open.unanswered > 0;
        if open.unanswered == 0 && self.served.is_none_or(|(at, _)| at <= open.sent_at) {
            self.served = Some((open.sent_at, open.sent_secs));
        }
    }

    /// When it last answered a request, or was asked to show that it is there, or was connected.
    pub fn shown_alive_at(&self) -> Instant {
        self.served.map_or(self.connected_at, |(at, _)| at).max(self.probed_at)
    }

    /// Up to when, in seconds since 1970, everything that the relay had to say on open subscriptions has certainly come:
    /// when the last request that it answered was sent. A frame proves nothing of the kind, since it may have lain in
    /// a buffer while the machine slept. The monotonic clock may have stood still meanwhile, and the wall clock may have
    /// been set: the earlier of the two counts.
    pub fn served_until_secs(&self, now: Now) -> Option<u64> {
        let (at, secs) = self.served?;
        Some(now.unix_secs.saturating_sub((now.instant - at).as_secs()).min(secs))
    }

    /// The relay was not read for a while: what it may have sent meanwhile is no silence of its requests.
    pub fn excuse_silence(&mut self, now: Instant) {
        self.subscriptions.values_mut().for_each(|subscription| subscription.progress_at = now);
    }

    /// All open subscriptions.
    pub fn subscriptions(&self) -> impl Iterator<Item = (u64, &Subscription)> {
        self.subscriptions.iter().map(|(id, subscription)| (*id, subscription))
    }

    /// The subscription that is to show whether the relay is still there, if that is awaited.
    pub fn probe(&self) -> Option<(u64, &Subscription)> {
        self.subscriptions().find(|(_, open)| open.purpose == Purpose::Probe || open.probes)
    }

    /// Open REQ subscriptions; negentropy ids are a namespace of their own.
    pub fn open_reqs(&self) -> usize {
        self.subscriptions.values().filter(|subscription| subscription.purpose != Purpose::Negentropy).count()
    }

    /// The newest subscription without any answer that satisfies `which`: whom a NOTICE without an id most likely means. It
    /// cannot mean what is sent only `now`.
    pub fn newest_unanswered(&self, now: Instant, which: impl Fn(Purpose) -> bool) -> Option<u64> {
        self.subscriptions
            .iter()
            .rev()
            .find(|(_, open)| !open.answered && open.sent_at < now && which(open.purpose))
            .map(|(id, _)| *id)
    }
}

/// The name of subscription `id` on the wire: short, and far below the 64 characters of NIP-01.
pub fn wire_name(id: u64) -> String {
    format!("s{id}")
}

/// The subscription that `name` is on the wire, if it has our form.
pub fn parse_wire_name(name: &str) -> Option<u64> {
    name.strip_prefix('s').and_then(|digits| digits.parse().ok())
}
