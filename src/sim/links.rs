//! What a short absence costs: a relay that was followed and complete, and is away for less than a quarter of an hour, is
//! not fetched whole again.

use std::time::Duration;

use super::node::{EngineId, Wish};
use super::world::World;
use crate::engine::{Config, Direction, Phase, RelayOptions};
use crate::protocol::{ClientMessage, Filter, RelayUrl};
use crate::runtime::Instant;

/// How long a link must have stood for its absence to be looked at, and how long its absence may be.
const QUARTER: Duration = Duration::from_secs(15 * 60);

/// For how long after the engine was begun with no full pass is due.
const NO_FULL_PASS: Duration = Duration::from_secs(22 * 3600);

/// For how long after a reconnect its requests are looked at.
const LOOKED_AT: Duration = Duration::from_secs(60);

/// The link of one engine to one relay, as far as its absences are concerned.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// When the connection was opened, if nothing has disturbed the engine since, and the relay was plain then: where the
    /// answer to a subscription is lost, nobody knows that it is served.
    opened_at: Option<Instant>,
    /// When it broke, on both clocks, after all was well.
    broke_at: Option<(Instant, u64)>,
    /// Until when, after a short absence, no request may reach back further than to this, in seconds since 1970.
    short: Option<(Instant, u64)>,
}

impl Link {
    /// Something has happened that may make anything be fetched again.
    pub(super) fn disturb(&mut self) {
        *self = Self::default();
    }

    fn handle_open(&mut self, now: Instant, is_plain: bool, config: &Config, overlap_secs: u64) {
        self.opened_at = is_plain.then_some(now);
        // What was followed is proven by answers, and those to probes may be as old as that.
        let is_short = |at: Instant| now - at + config.probe_after + config.stall < QUARTER;
        self.short = self.broke_at.take().filter(|(at, _)| is_short(*at)).map(|(_, secs)| {
            let reach = QUARTER.as_secs() + overlap_secs;
            (now + LOOKED_AT, secs.saturating_sub(reach))
        });
    }

    /// Looks at a request of the engine.
    pub(super) fn handle_request(&self, frame: &str, now: Instant) {
        let Some((_, reach)) = self.short.filter(|(until, _)| now <= *until) else { return };
        let filters = match ClientMessage::parse(frame) {
            Ok(ClientMessage::Req { filters, .. }) => filters,
            Ok(ClientMessage::NegOpen { filter, .. }) => vec![*filter],
            _ => return,
        };
        let is_history = |filter: &&Filter| filter.ids.is_none() && filter.limit != Some(0);
        for filter in filters.iter().filter(is_history) {
            let is_short = filter.since.is_some_and(|since| since.as_secs() >= reach);
            assert!(is_short, "fetched whole after a short absence: {frame}");
        }
    }
}

impl World {
    /// A connection has come about.
    pub(super) fn note_open(&mut self, engine: EngineId, relay: &RelayUrl) {
        let (now, is_plain) = (self.instant, self.is_plain(relay));
        let node = &mut self.nodes[engine.0];
        let of_peer = node.peers.peerings.get(relay).map(|peering| peering.terms.overlap_secs);
        let overlap_secs = of_peer.unwrap_or(node.config.overlap_secs);
        node.watches.entry(relay.clone()).or_default().link.handle_open(now, is_plain, &node.config, overlap_secs);
    }

    /// Is nothing wrong with a relay, nor with the way to it?
    fn is_plain(&self, relay: &RelayUrl) -> bool {
        let remote = &self.relays[relay];
        remote.is_honest_now() && !remote.network.is_faulty()
    }

    /// A connection is about to be known as broken. Was all well, and nothing special on the engine's side?
    pub(super) fn note_break(&mut self, engine: EngineId, relay: &RelayUrl) {
        let (now, secs) = (self.instant, self.now().unix_secs);
        let node = &self.nodes[engine.0];
        let is_plain = self.is_plain(relay);
        let is_steady = node.life == 0 && node.offsets.is_empty() && now - node.began_at < NO_FULL_PASS;
        let is_plainly_followed = |(_, options): &Wish| {
            *options == RelayOptions { direction: Direction::Down, method: None, live: true, trusted: false }
        };
        let is_followed = match node.told().get(relay) {
            Some(wish) => is_plainly_followed(wish),
            None => self.is_settled && self.wanted_relays(engine).get(relay).is_some_and(is_plainly_followed),
        };
        let was_well = || {
            let mut reports = node.reports().into_iter().filter(|report| report.relay == *relay);
            reports
                .next()
                .is_some_and(|report| report.complete && report.gaps.is_empty() && report.phase == Phase::Live)
        };
        let link = node.watches.get(relay).map(|watch| &watch.link);
        let has_stood = link.and_then(|link| link.opened_at).is_some_and(|at| now - at > QUARTER);
        // Who is known to the relay as somebody else, or may have more of it, is to ask for all of it again.
        let stood = link.and_then(|link| link.opened_at).map_or(0, |at| (now - at).as_secs());
        let is_as_it_was = secs.saturating_sub(stood) > self.rights_changed_secs(engine, relay);
        // So is who is a peer of a relay with access rules: it may be let see more when it is back.
        let config = self.relays[relay].honest().config();
        let is_asked = node.peers.peerings.contains_key(relay) && (config.auth_required || !config.access.is_open());
        let is_looked_at = !is_asked && has_stood && is_as_it_was && is_plain && is_steady && is_followed && was_well();
        let link = &mut self.nodes[engine.0].watches.entry(relay.clone()).or_default().link;
        link.disturb();
        link.broke_at = is_looked_at.then_some((now, secs));
    }
}
