//! What becomes of an event: the NIP rules, written once for all stores.
//!
//! In this order: ephemeral kinds are not stored; an id that is held or gone stays what it is; what its author asked
//! to vanish (NIP-62) or deleted (NIP-09) and what has expired (NIP-40) is refused; of a replaceable or addressable
//! event the newest version stays, of equal times the one with the lowest id (NIP-01). A refused or removed event is
//! gone: entries without a body remember it.
//!
//! Requests (kinds 5 and 62) are kept and passed on; no request removes one. A request acts while it is held.

use std::ops::ControlFlow;

use super::entry::{Entry, Index, Key, Range, Rank, SEQUENCE_MAX, Sequence};
use super::tables::{Changes, Damaged, Tables};
use super::{Batch, Outcome, StoreConfig};
use crate::ingest::Verified;
use crate::protocol::{Event, RelayUrl, Window, hex};

const KIND_DELETION: u16 = 5;
const KIND_VANISH: u16 = 62;
/// A message whose author is a key for once (NIP-59): it goes with its recipient.
const KIND_GIFT_WRAP: u16 = 1_059;
const ALL_RELAYS: &str = "ALL_RELAYS";

/// Works out what `batch` changes in `tables`.
///
/// # Errors
/// The tables cannot be read, or have no number left for an event.
pub fn apply<T: Tables>(tables: &T, batch: Batch, config: &StoreConfig) -> Result<Changes, T::Error> {
    let changes = Changes {
        next_sequence: tables.next_sequence(),
        swept_secs: tables.swept_secs(),
        coverage: batch.coverage,
        ..Changes::default()
    };
    let mut desk = Desk { tables, config, now_secs: batch.now_secs, changes };
    desk.sweep()?;
    for event in batch.events {
        let context = batch.contexts.get(event.id.as_bytes());
        let outcome = desk.take(event)?;
        if let (Outcome::Stored, Some(context)) = (outcome, context) {
            desk.changes.note_context(desk.changes.next_sequence - 1, context.clone());
        }
        desk.changes.outcomes.push(outcome);
    }
    Ok(desk.changes)
}

/// A kind that is replaced, with its `d` tag where it has one.
pub(crate) fn address_of(event: &Event) -> Option<&str> {
    match event.kind_number() {
        0 | 3 | 10_000..20_000 => Some(""),
        30_000..40_000 => {
            let mut identifiers = event.tags.iter().filter(|tag| tag.kind() == "d");
            Some(identifiers.next().and_then(|tag| tag.content()).unwrap_or_default())
        }
        _ => None,
    }
}

fn is_request(kind: u16) -> bool {
    matches!(kind, KIND_DELETION | KIND_VANISH)
}

/// The batch being worked through: the tables, and over them what it has changed so far.
struct Desk<'a, T> {
    tables: &'a T,
    config: &'a StoreConfig,
    now_secs: u64,
    changes: Changes,
}

impl<T: Tables> Desk<'_, T> {
    fn take(&mut self, event: Verified<Event>) -> Result<Outcome, T::Error> {
        let kind = event.kind_number();
        if (20_000..30_000).contains(&kind) {
            return Ok(Outcome::Ephemeral);
        }
        if let Some(known) = self.find_id(event.id.as_bytes())? {
            return Ok(self.fate(known.sequence()).unwrap_or(Outcome::Duplicate));
        }
        let address = address_of(&event).map(str::to_owned);
        let current = match &address {
            Some(identifier) => self.first_held(&Key::address(event.pubkey.as_bytes(), kind, identifier))?,
            None => None,
        };
        let sequence = self.changes.next_sequence;
        if sequence > SEQUENCE_MAX {
            return Err(Damaged { what: "no sequence number is left for another event".into() }.into());
        }
        self.changes.next_sequence += 1;
        let rank = Rank::new(event.created_at_secs(), event.id.as_bytes(), sequence, kind);
        let expires = event.expires_at_secs();
        let expired = expires.is_some_and(|secs| secs <= self.now_secs).then_some(Outcome::Expired);
        let superseded = current.filter(|current| *current < rank).map(|_| Outcome::Superseded);
        if let Some(refusal) = self.revoked(&event, address.as_deref(), &rank)?.or(expired).or(superseded) {
            self.remember(&event, &rank);
            self.changes.fates.insert(sequence, refusal);
            return Ok(refusal);
        }
        if let Some(current) = current {
            self.remove(current.sequence(), Outcome::Superseded);
        }
        self.remember(&event, &rank);
        if let Some(secs) = expires {
            self.changes.entries.push(Entry::new(&Key::expiry(secs), &rank));
            self.changes.swept_secs = self.changes.swept_secs.min(secs.saturating_sub(1));
        }
        self.hold(&event, address.as_deref(), &rank)?;
        self.changes.held.insert(sequence, event);
        Ok(Outcome::Stored)
    }

    /// Has its author taken the event back?
    fn revoked(&self, event: &Event, address: Option<&str>, rank: &Rank) -> Result<Option<Outcome>, T::Error> {
        let (author, kind, at) = (event.pubkey.as_bytes(), rank.kind(), rank.created_at());
        if !is_request(kind) {
            if self.first_held(&Key::vanished(author))?.is_some_and(|request| request.created_at() >= at) {
                return Ok(Some(Outcome::Vanished));
            }
            if kind == KIND_GIFT_WRAP && self.is_for_vanished(event, at)? {
                return Ok(Some(Outcome::Vanished));
            }
            if self.first_held(&Key::deleted_id(author, event.id.as_bytes()))?.is_some() {
                return Ok(Some(Outcome::Deleted));
            }
        }
        if let Some(identifier) = address {
            let request = self.first_held(&Key::deleted_address(author, kind, identifier))?;
            if request.is_some_and(|request| request.created_at() >= at) {
                return Ok(Some(Outcome::Deleted));
            }
        }
        Ok(None)
    }

    /// Is the event addressed to somebody who has asked to vanish since?
    fn is_for_vanished(&self, event: &Event, at: u64) -> Result<bool, T::Error> {
        for recipient in event.tags.iter().filter(|tag| tag.kind() == "p").filter_map(|tag| tag.content()) {
            let Some(recipient) = hex::decode(recipient).and_then(|bytes| bytes.try_into().ok()) else { continue };
            if self.first_held(&Key::vanished(&recipient))?.is_some_and(|request| request.created_at() >= at) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The entries by which an event is known, held or gone.
    fn remember(&mut self, event: &Event, rank: &Rank) {
        let author = event.pubkey.as_bytes();
        let keys = [Key::time(), Key::kind(rank.kind()), Key::author(author), Key::author_kind(author, rank.kind())];
        self.changes.points.insert(Entry::new(&Key::id(event.id.as_bytes()), rank));
        self.changes.entries.extend(keys.iter().map(|key| Entry::new(key, rank)));
    }

    /// The entries that only a held event has, and what it does to others.
    fn hold(&mut self, event: &Event, address: Option<&str>, rank: &Rank) -> Result<(), T::Error> {
        let author = event.pubkey.as_bytes();
        if let Some(identifier) = address {
            self.point(&Key::address(author, rank.kind(), identifier), rank);
        }
        for tag in event.tags.iter() {
            if let (Some(name), Some(value)) = (tag.single_letter_tag(), tag.content()) {
                self.changes.entries.push(Entry::new(&Key::tag(name.as_byte(), value), rank));
            }
        }
        match rank.kind() {
            KIND_DELETION => self.delete(event, rank),
            KIND_VANISH if self.concerns_us(event) => self.vanish(author, rank),
            _ => Ok(()),
        }
    }

    fn point(&mut self, key: &Key, rank: &Rank) {
        self.changes.points.insert(Entry::new(key, rank));
    }

    fn delete(&mut self, request: &Event, rank: &Rank) -> Result<(), T::Error> {
        let author = request.pubkey.as_bytes();
        for tag in request.tags.iter() {
            match (tag.kind(), tag.content()) {
                ("e", Some(value)) => {
                    let Some(id) = hex::decode(value).and_then(|bytes| bytes.try_into().ok()) else { continue };
                    self.point(&Key::deleted_id(author, &id), rank);
                    self.delete_id(author, &id)?;
                }
                ("a", Some(value)) => {
                    let Some((kind, identifier)) = own_address(value, author) else { continue };
                    self.point(&Key::deleted_address(author, kind, identifier), rank);
                    let current = self.first_held(&Key::address(author, kind, identifier))?;
                    if let Some(target) = current.filter(|target| target.created_at() <= rank.created_at()) {
                        self.remove(target.sequence(), Outcome::Deleted);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn delete_id(&mut self, author: &[u8; 32], id: &[u8; 32]) -> Result<(), T::Error> {
        let Some(target) = self.find_id(id)? else { return Ok(()) };
        let removable = !is_request(target.kind()) && self.fate(target.sequence()).is_none();
        if removable && self.author_of(target.sequence())? == Some(*author) {
            self.remove(target.sequence(), Outcome::Deleted);
        }
        Ok(())
    }

    fn concerns_us(&self, request: &Event) -> bool {
        let mut relays = request.tags.iter().filter(|tag| tag.kind() == "relay").filter_map(|tag| tag.content());
        relays.any(|relay| {
            relay == ALL_RELAYS || RelayUrl::parse(relay).is_ok_and(|url| self.config.own_urls.contains(&url))
        })
    }

    fn vanish(&mut self, author: &[u8; 32], request: &Rank) -> Result<(), T::Error> {
        self.point(&Key::vanished(author), request);
        let window = Window { since: 0, until: request.created_at() };
        let own = self.those_of(&Range::of(&Key::author(author), window), |kind| !is_request(kind))?;
        let to_it = Range::of(&Key::tag(b'p', &hex::encode(author)), window);
        let wraps = self.those_of(&to_it, |kind| kind == KIND_GIFT_WRAP)?;
        for target in own.into_iter().chain(wraps) {
            self.remove(target, Outcome::Vanished);
        }
        Ok(())
    }

    /// The events of a range, those of this batch among them, that are of a suitable kind.
    fn those_of(&self, range: &Range, suits: impl Fn(u16) -> bool) -> Result<Vec<Sequence>, T::Error> {
        let mut found = Vec::new();
        let mut collect = |entry: &Entry| {
            let rank = entry.rank();
            found.extend(suits(rank.kind()).then(|| rank.sequence()));
            ControlFlow::Continue(())
        };
        self.tables.scan(range, &mut collect)?;
        for entry in self.changes.entries.iter().filter(|entry| range.first <= **entry && **entry <= range.last) {
            let _ = collect(entry);
        }
        Ok(found)
    }

    /// What has expired by now is gone from here on.
    fn sweep(&mut self) -> Result<(), T::Error> {
        if self.now_secs <= self.changes.swept_secs {
            return Ok(());
        }
        let mut expired = Vec::new();
        self.tables.scan(&Range::expired(self.changes.swept_secs, self.now_secs), &mut |entry| {
            expired.push(entry.rank().sequence());
            ControlFlow::Continue(())
        })?;
        for sequence in expired {
            self.remove(sequence, Outcome::Expired);
        }
        self.changes.swept_secs = self.now_secs;
        Ok(())
    }

    /// The first reason stays.
    fn remove(&mut self, sequence: Sequence, reason: Outcome) {
        if self.fate(sequence).is_none() {
            self.changes.fates.insert(sequence, reason);
        }
    }

    fn fate(&self, sequence: Sequence) -> Option<Outcome> {
        self.changes.fates.get(&sequence).copied().or_else(|| self.tables.fate(sequence))
    }

    fn author_of(&self, sequence: Sequence) -> Result<Option<[u8; 32]>, T::Error> {
        match self.changes.held.get(&sequence) {
            Some(event) => Ok(Some(event.pubkey.to_bytes())),
            None => Ok(self.tables.body(sequence)?.map(|body| body.author)),
        }
    }

    fn find_id(&self, id: &[u8; 32]) -> Result<Option<Rank>, T::Error> {
        self.first(&Key::id(id), |rank| rank.id() == *id)
    }

    fn first_held(&self, key: &Key) -> Result<Option<Rank>, T::Error> {
        self.first(key, |rank| self.fate(rank.sequence()).is_none())
    }

    fn first(&self, key: &Key, suits: impl Fn(&Rank) -> bool) -> Result<Option<Rank>, T::Error> {
        debug_assert!(key.index() <= Index::Vanished, "only these are looked up in the batch itself");
        let range = Range::all(key);
        let mut points = self.changes.points.range(range.first..=range.last).map(Entry::rank);
        let mut best = points.find(|rank| suits(rank));
        self.tables.scan(&range, &mut |entry| {
            let rank = entry.rank();
            if !suits(&rank) {
                return ControlFlow::Continue(());
            }
            best = Some(best.map_or(rank, |other| other.min(rank)));
            ControlFlow::Break(())
        })?;
        Ok(best)
    }
}

/// Kind and `d` of an `a` tag's value, if it is a replaced kind of this author. The `d` may contain colons.
fn own_address<'v>(value: &'v str, author: &[u8; 32]) -> Option<(u16, &'v str)> {
    let mut parts = value.splitn(3, ':');
    let kind: u16 = parts.next()?.parse().ok()?;
    let owner = hex::decode(parts.next()?)?;
    let identifier = parts.next().unwrap_or_default();
    let replaced = match kind {
        0 | 3 | 10_000..20_000 => identifier.is_empty(),
        30_000..40_000 => true,
        _ => false,
    };
    (replaced && owner == author).then_some((kind, identifier))
}
