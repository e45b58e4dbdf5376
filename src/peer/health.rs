//! Is sync working? And if not, why, and what is to be done?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::PeerSpec;
use super::words::cut;
use crate::engine::{Gap, GapReason, Phase, RelayReport};
use crate::protocol::FilterKey;
use crate::relay::Refusal;
use crate::runtime::FailureKind;

/// Is sync working? It speaks of links: what was rejected of what they brought is counted elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// In a word.
    pub status: HealthStatus,
    /// Peers.
    pub servers_total: u64,
    /// Of them, connected.
    pub servers_connected: u64,
    /// Those with which it is not working, and why.
    pub servers_failing: Vec<FailingPeer>,
    /// Those with which it is not working yet, though nothing is known to be wrong.
    pub servers_pending: Vec<PendingPeer>,
}

/// Is sync working, in a word?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    /// Yes, with every peer that is enabled: it is connected and authenticated where asked, and what is wanted of it was
    /// asked for, or is being asked for.
    Ok,
    /// Not with all of them, or not yet.
    Degraded,
    /// With none of them, and something is wrong with each.
    Failing,
    /// No peer is enabled.
    Idle,
}

/// A peer with which sync is not working.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingPeer {
    /// Its name.
    pub id: String,
    /// Why, for programs.
    pub reason: FailureReason,
    /// Why, and what to do, for people.
    pub detail: String,
}

/// A peer with which sync is not working yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingPeer {
    /// Its name.
    pub id: String,
    /// What is waited for.
    pub detail: String,
}

/// Why sync is not working. In JSON one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FailureReason {
    /// The link has failed.
    Link(FailureKind),
    /// Nothing is wrong with the link, but what is wanted is not to be had.
    Denial(Denial),
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // serde writes units of enums by their names.
        self.serialize(f)
    }
}

impl FailureReason {
    /// Access rules, ours or the peer's, keep what is wanted from being synced.
    pub const ACCESS_DENIED: Self = Self::Denial(Denial::AccessDenied);
    /// The peer does not do what it is asked for, and not for want of rights.
    pub const REFUSED: Self = Self::Denial(Denial::Refused);
}

/// Why what is wanted is not to be had of a peer that is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denial {
    /// Access rules, ours or the peer's, keep what is wanted from being synced.
    AccessDenied,
    /// The peer does not do what it is asked for, and not for want of rights: it cannot, or does not want to.
    Refused,
}

/// What is known of a peer's relay.
#[derive(Debug, Clone, Copy)]
pub enum Heard<'r> {
    /// Nothing yet, or nothing since the peer was changed.
    Nothing,
    /// Nothing for so long that what was heard last may not be so any more.
    TooLongAgo,
    /// This, not long ago.
    Report(&'r RelayReport),
}

impl<'r> Heard<'r> {
    /// What was heard, if that may be so yet.
    pub fn report(self) -> Option<&'r RelayReport> {
        match self {
            Self::Report(report) => Some(report),
            Self::Nothing | Self::TooLongAgo => None,
        }
    }
}

/// How it stands with one peer that is enabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerVerdict {
    /// Sync is working.
    Working,
    /// Not yet: this is waited for.
    Pending(String),
    /// It is not.
    Failing {
        /// Why.
        reason: FailureReason,
        /// Why, and what to do.
        detail: String,
    },
}

impl PeerVerdict {
    /// How it stands with the peer `spec`, by what was heard of it.
    pub fn of(spec: &PeerSpec, heard: Heard<'_>) -> Self {
        if spec.is_downgraded() {
            return Self::link(FailureKind::TlsRequired, &format!("{} is not encrypted", spec.url));
        }
        let report = match heard {
            Heard::Report(report) => report,
            Heard::Nothing => return Self::Pending("syncing has not begun yet".to_owned()),
            Heard::TooLongAgo => return Self::Pending("nothing was heard of it for too long".to_owned()),
        };
        if let Some(words) = &report.auth_refused {
            return Self::link(FailureKind::AuthRefused, words);
        }
        if report.failures > 0
            && let Some(kind) = report.failure
        {
            return Self::link(kind, report.last_error.as_deref().unwrap_or("the link has failed"));
        }
        if let Some(verdict) = denial(spec, report) {
            return verdict;
        }
        match report.phase {
            _ if !report.connected => Self::Pending("it is not connected yet".to_owned()),
            Phase::Waiting | Phase::Connecting => Self::Pending("it is not connected yet".to_owned()),
            Phase::Cooldown => Self::Pending("the relay wants rest".to_owned()),
            Phase::Syncing | Phase::Live | Phase::Polling | Phase::Done => Self::Working,
        }
    }

    fn link(kind: FailureKind, words: &str) -> Self {
        Self::Failing { reason: FailureReason::Link(kind), detail: format!("{}; {}", cut(words), advice(kind)) }
    }
}

/// What keeps the link from being of use: our access rules, or the words in which the relay refuses. What is lacking of
/// anything but the peer's own filters, as discovery may want it of the same relay, does not count.
fn denial(spec: &PeerSpec, report: &RelayReport) -> Option<PeerVerdict> {
    if !report.denied.is_empty() {
        // Which filters they are, and whose, is for those only who may govern.
        let (count, id) = (report.denied.len(), &spec.id);
        let filters = if count == 1 { "filter or direction" } else { "filters and directions" };
        let detail = format!(
            "our access rules do not allow {count} {filters}; `relaysync peer get {id}` says which, and `relaysync \
             access grant` grants them"
        );
        return Some(PeerVerdict::Failing { reason: FailureReason::ACCESS_DENIED, detail });
    }
    let mut keys = None;
    let mut is_ours = |gap: &Gap| {
        let keys: &Vec<FilterKey> =
            keys.get_or_insert_with(|| spec.filters.iter().map(|filter| FilterKey::of(filter)).collect());
        keys.contains(&gap.filter)
    };
    report.gaps.iter().find_map(|gap| refusal(&gap.reason).filter(|_| is_ours(gap)))
}

/// What a gap says of the link, if it says something. Events that were rejected one by one are no ill health, unless for
/// want of rights.
fn refusal(reason: &GapReason) -> Option<PeerVerdict> {
    match reason {
        GapReason::Refused(words) if is_for_want_of_rest(words) => {
            Some(PeerVerdict::link(FailureKind::RateLimited, words))
        }
        GapReason::Refused(words) if is_for_want_of_rights(words) || says(words, "blocked:") => {
            Some(denied_there(words))
        }
        GapReason::Refused(words) => Some(refused_there(words)),
        GapReason::AuthRequired(words) => Some(denied_there(words)),
        GapReason::NotAccepted { reason, .. } if is_for_want_of_rights(reason) => Some(denied_there(reason)),
        _ => None,
    }
}

fn denied_there(words: &str) -> PeerVerdict {
    let detail = format!(
        "the relay refuses ({}); its operator must grant it to our key (`relaysync identity show`)",
        told(words)
    );
    PeerVerdict::Failing { reason: FailureReason::ACCESS_DENIED, detail }
}

fn refused_there(words: &str) -> PeerVerdict {
    let detail = format!("the relay refuses ({}); check filters and mode, or ask its operator", told(words));
    PeerVerdict::Failing { reason: FailureReason::REFUSED, detail }
}

fn told(words: &str) -> String {
    if words.is_empty() { "without a word".to_owned() } else { cut(words) }
}

/// Does a relay refuse because too much is asked of it?
fn is_for_want_of_rest(words: &str) -> bool {
    matches!(Refusal::read(words), Refusal::RateLimited | Refusal::TooManySubscriptions)
}

/// Does a relay refuse because we may not read or write what it is about? A protected event in the sense of NIP-70 is
/// taken from its author only, whatever is granted to anybody.
fn is_for_want_of_rights(words: &str) -> bool {
    let is_about_authors = || ["nip-70", "nip70", "published by", "its author"].iter().any(|part| says(words, part));
    (Refusal::read(words) == Refusal::AuthRequired || says(words, "restricted:")) && !is_about_authors()
}

/// Are these words among a relay's, in letters of any size?
fn says(words: &str, part: &str) -> bool {
    cut(words).to_ascii_lowercase().contains(part)
}

/// What an operator can do about a failure.
fn advice(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::DnsFailed => "check the host name in url, and the name service of this machine",
        FailureKind::PrivateAddress => "only public addresses are connected to: check url",
        FailureKind::ConnectionRefused => "check that the relay runs, and host and port in url",
        FailureKind::TlsRequired => "write wss:// in url, or \"disabled\" in tls.mode",
        FailureKind::TlsFailed => {
            "check the relay's certificate; if its owner has signed it, write \"pin\" in tls.verify, with its pin"
        }
        FailureKind::WrongHostName => "check url, or write the name that the certificate is for in tls.hostname",
        FailureKind::CertificateExpired => "the relay needs a new certificate; check the clock of this machine, too",
        FailureKind::WrongPin => {
            "if the relay has a new key, ask its operator for the new pin and add it to tls.pins; else somebody is in \
             between"
        }
        FailureKind::HandshakeFailed => "check that url is that of a relay, its path included",
        FailureKind::TimedOut => "check that the relay runs, and that no firewall is in between",
        FailureKind::ConnectionLost => "it is tried again by itself; if it stays so, ask the relay's operator",
        FailureKind::ProtocolBroken => "check that url is that of a relay; if it is, its operator should know",
        FailureKind::RateLimited => "it is tried again by itself; ask the relay's operator for more",
        FailureKind::WrongIdentity => {
            "check auth_pubkey and auth_pubkey_field; if the relay has a new key, grant it what the old one had"
        }
        FailureKind::AuthRefused => "the relay's operator must let our key in: tell it by `relaysync identity show`",
    }
}

impl Health {
    /// Of all peers, each with what was heard of it.
    pub fn of<'p>(peers: impl IntoIterator<Item = (&'p PeerSpec, Heard<'p>)>) -> Self {
        let (mut total, mut enabled, mut connected) = (0, 0, 0);
        let (mut failing, mut pending) = (Vec::new(), Vec::new());
        for (spec, heard) in peers {
            total += 1;
            if !spec.enabled {
                continue;
            }
            enabled += 1;
            connected += u64::from(heard.report().is_some_and(|report| report.connected));
            let id = spec.id.clone();
            match PeerVerdict::of(spec, heard) {
                PeerVerdict::Working => {}
                PeerVerdict::Pending(detail) => pending.push(PendingPeer { id, detail }),
                PeerVerdict::Failing { reason, detail } => failing.push(FailingPeer { id, reason, detail }),
            }
        }
        let status = match enabled {
            0 => HealthStatus::Idle,
            _ if failing.is_empty() && pending.is_empty() => HealthStatus::Ok,
            enabled if failing.len() == enabled => HealthStatus::Failing,
            _ => HealthStatus::Degraded,
        };
        Self {
            status,
            servers_total: total,
            servers_connected: connected,
            servers_failing: failing,
            servers_pending: pending,
        }
    }

    /// Is sync working with every peer that is enabled?
    pub fn is_working(&self) -> bool {
        self.status == HealthStatus::Ok
    }
}

#[cfg(test)]
mod tests;
