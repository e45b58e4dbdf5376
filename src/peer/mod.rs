//! Configured peers: relays that are known by name, prove who they are, and may read and write what rules grant them.
//!
//! - [`AccessRules`] say which events are protected, and who may read and write which of them. The relay service and the
//!   engine both go by them: a peer that events are fetched from *writes* here, one that they are published to *reads*.
//! - [`Terms`] say how a relay proves itself: by encryption, pinned keys ([`TlsTerms`]) and the key that its relay
//!   information document (NIP-11) names. Nothing is asked of it, and nothing taken, before it has.
//! - A [`PeerSpec`] is what an operator says of a peer. [`PeerState`], [`PeerStats`] and [`Health`] are what is said of it
//!   in return: made from what the engine reports of the relay, and from what was known of it before.
//! - A [`View`] is what a reader may see of what is held; stores leave the rest out as if it were not there.
//!
//! Which peer has brought an event is kept ([`RequestContext`](crate::store::RequestContext)) for audit and statistics.
//! Nothing depends on it.

mod access;
mod fields;
mod filter;
mod health;
mod mistake;
mod pin;
pub mod rfc3339;
mod rule;
mod spec;
mod state;
mod stats;
pub(crate) mod subset;
mod terms;
mod view;
mod words;

pub use access::{AccessChanges, AccessRules, Audience, Capability, FilterVerdict, MatchError, Rule, check_match};
#[cfg(feature = "native")]
pub(crate) use fields::public_key;
pub use health::{Denial, FailingPeer, FailureReason, Health, HealthStatus, Heard, PeerVerdict, PendingPeer};
pub use mistake::{SpecMistake, SpecMistakes};
pub use pin::{Pin, PinError, PinScope};
pub use spec::{Metadata, PeerAuth, PeerSpec, SyncMode};
pub use state::{Glimpse, LastError, PeerMarks, PeerState, WorkerState};
pub use stats::{PeerStats, SyncStats, Tally};
pub use subset::COVER_VALUES_MAX;
pub use terms::{IdentityField, Peering, Terms, TlsMode, TlsTerms, Verify};
pub use view::View;
pub use words::WORDS_CHARS_MAX;
