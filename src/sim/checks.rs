//! What must hold whenever an engine has handled something: checked by the world, not by the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::acceptance::{Acceptance, Versions};
use super::honest::at_once;
use super::links::Link;
use super::node::EngineId;
use super::tamper::Info;
use super::world::World;
use crate::engine::{Config, ConnId, Effect, Input};
use crate::peer::{Capability, View};
use crate::plan::Interest;
use crate::protocol::filter::matches;
use crate::protocol::{RelayMessage, RelayUrl};
use crate::relay::Refusal;
use crate::runtime::{CloseReason, Instant};
use crate::serve::ClientId;
use crate::store::{Batch, Coverage, Store};

/// Effects of one input, and bytes to be sent in them.
const EFFECTS_MAX: usize = 2_000;
const EFFECT_BYTES_MAX: usize = 8 << 20;

/// Times that the same request may be asked on one connection within [`REPEAT_WITHIN`].
const REPEATS_MAX: u32 = 12;
const REPEAT_WITHIN: Duration = Duration::from_secs(300);

/// How many inputs are handled from one look at sizes to the next.
const SIZES_EVERY: u64 = 16;

/// Ticks of one engine at one moment.
const TICKS_AT_ONCE_MAX: u32 = 100;

/// How long a relay that asked for less traffic must be left alone: the window of the usual limits.
const COOLDOWN: Duration = Duration::from_secs(60);

/// What is remembered of what an engine does to one relay.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The last attempt at a connection, unless the engine gave it up of its own accord.
    attempted: Option<(ConnId, Instant)>,
    cooldown_until: Option<Instant>,
    /// Subscriptions open on its connection.
    open: BTreeSet<String>,
    /// Subscriptions that the relay says it allows; known to the engine.
    pub stated_max: Option<u64>,
    /// How often requests were asked lately on this connection.
    asked: BTreeMap<String, Asked>,
    /// Its absences.
    pub link: Link,
}

/// How often one request was asked.
#[derive(Debug)]
struct Asked {
    since: Instant,
    last: Instant,
    times: u32,
}

impl Watch {
    /// A crashed engine remembers nothing, and may try at once.
    pub(super) fn handle_crash(&mut self) {
        *self = Self::default();
    }

    /// Something has happened that may make anything be asked for again.
    pub(super) fn forget_requests(&mut self) {
        self.asked.clear();
    }

    /// The engine may try at once, whatever its backoff was.
    pub(super) fn forget_attempt(&mut self) {
        self.attempted = None;
    }

    fn handle_connect(&mut self, relay: &RelayUrl, conn: ConnId, now: Instant, config: &Config) {
        if let Some((_, before)) = self.attempted.replace((conn, now)) {
            let wait = now - before;
            assert!(wait >= config.backoff_floor, "{relay} is tried again after {wait:?}");
        }
        assert!(self.cooldown_until.is_none_or(|until| until <= now), "connects while the relay wants rest");
        self.open.clear();
        self.asked.clear();
    }

    fn handle_send(&mut self, frame: &str, now: Instant, stall: Duration) {
        let (kind, rest) = split(frame);
        self.link.handle_request(frame, now);
        match kind {
            "REQ" => {
                let (name, filters) = split(rest);
                self.open.insert(name.to_owned());
                self.check_room();
                self.check_repetition(filters, now, stall);
            }
            "NEG-OPEN" => {
                let (filter, _message) = split(rest).1.rsplit_once(',').unwrap_or_default();
                self.check_repetition(filter, now, stall);
            }
            "CLOSE" => {
                self.open.remove(split(rest).0);
                return;
            }
            "EVENT" => {}
            _ => return,
        }
        assert!(self.cooldown_until.is_none_or(|until| until <= now), "asks while the relay wants rest: {frame}");
    }

    fn check_room(&self) {
        if let Some(most) = self.stated_max {
            assert!(self.open.len() as u64 <= most.max(1), "{} subscriptions open, {most} allowed", self.open.len());
        }
    }

    /// A page advances or splits, and nothing is asked for ever.
    fn check_repetition(&mut self, request: &str, now: Instant, stall: Duration) {
        let asked = self.asked.entry(request.to_owned()).or_insert(Asked { since: now, last: now, times: 0 });
        if now - asked.since > REPEAT_WITHIN {
            *asked = Asked { since: now, last: now, times: 0 };
        }
        // Who waited for an answer in vain before is no loop: a relay that answers nothing is asked rarely enough by that.
        let has_waited = now - std::mem::replace(&mut asked.last, now) >= stall;
        asked.times += u32::from(!has_waited);
        let Asked { since, times, .. } = *asked;
        let is_live = || request.contains("\"limit\":0");
        assert!(times <= REPEATS_MAX || is_live(), "asked {times} times in {:?}: {request}", now - since);
    }

    /// What the relay sent reaches the engine.
    pub(super) fn handle_frame(&mut self, frame: &str, now: Instant) {
        if !frame.starts_with("[\"CLOSED\"") && !frame.starts_with("[\"NOTICE\"") && !frame.starts_with("[\"OK\"") {
            return;
        }
        let wants_rest = |words: &str| Refusal::read(words) == Refusal::RateLimited;
        match RelayMessage::parse(frame) {
            // What is not open is refused in vain.
            Ok(RelayMessage::Closed { subscription, reason })
                if self.open.remove(&*subscription) && wants_rest(&reason) =>
            {
                self.rest(now);
            }
            Ok(RelayMessage::Notice { text }) if Refusal::read_notice(&text) == Refusal::RateLimited => self.rest(now),
            _ => {}
        }
    }

    /// The relay closed the connection with these words.
    pub(super) fn handle_close(&mut self, words: &str, now: Instant) {
        self.open.clear();
        if Refusal::read(words) == Refusal::RateLimited {
            self.rest(now);
        }
    }

    fn rest(&mut self, now: Instant) {
        self.cooldown_until = Some(now + COOLDOWN);
    }
}

/// The first element of what is left of a JSON array, without quotes, and what follows it.
fn split(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(',').unwrap_or((text, ""));
    (first.trim_matches(['[', ']', '"']), rest)
}

impl World {
    /// An engine is about to learn what an honest relay states of its limits: from then on it must keep to them.
    pub(super) fn note_info(&mut self, engine: EngineId, input: &Input) {
        if let Input::RelayInfo { conn, result: Ok(_) } = input
            && let Some(relay) = self.nodes[engine.0].conns.get(conn).map(|open| open.relay.clone())
            && let Some(remote) = self.relays.get(&relay)
            && remote.info == Info::True
            && remote.is_honest_now()
            // What a relay states that is not who it should be counts for nothing.
            && self.peering(engine, &relay).is_none_or(|peering| {
                Some(peering.terms.principal) == remote.honest().config().identity
            })
        {
            let most = remote.honest().config().subscriptions_max as u64;
            self.nodes[engine.0].watches.entry(relay).or_default().stated_max = Some(most);
        }
    }

    /// A relay that nothing ever stood before has no reason to complain of what it gets. Only that it does not reconcile,
    /// nobody can know before asking.
    pub(super) fn check_complaint(&self, client: ClientId, frame: &str) {
        if !frame.starts_with("[\"NOTICE\"") && !frame.starts_with("[\"CLOSED\"") {
            return;
        }
        let Some(wire) = self.wires.get(&client) else { return };
        let remote = &self.relays[&wire.relay];
        if !remote.is_untampered {
            return;
        }
        let complains = match RelayMessage::parse(frame) {
            Ok(RelayMessage::Notice { text }) => {
                remote.honest().config().negentropy || Refusal::read_notice(&text) != Refusal::NoNegentropy
            }
            Ok(RelayMessage::Closed { reason, .. }) => reason.starts_with("invalid:"),
            _ => false,
        };
        assert!(!complains, "{}, an honest relay, complains: {frame}", wire.relay);
    }

    /// Checks the effects of one input, before they are carried out.
    pub(super) fn check_effects<'e>(&mut self, engine: EngineId, effects: impl ExactSizeIterator<Item = &'e Effect>) {
        assert!(effects.len() <= EFFECTS_MAX, "{} effects at once", effects.len());
        let now = self.instant;
        let mut bytes = 0;
        for effect in effects {
            match effect {
                Effect::Connect { conn, dial } => {
                    let node = &mut self.nodes[engine.0];
                    let watch = node.watches.entry(dial.url.clone()).or_default();
                    watch.handle_connect(&dial.url, *conn, now, &node.config);
                }
                Effect::Send { conn, frame } => {
                    self.check_disclosure(engine, *conn, frame);
                    bytes += frame.len();
                    let node = &mut self.nodes[engine.0];
                    if let Some(open) = node.conns.get(conn) {
                        node.watches.entry(open.relay.clone()).or_default().handle_send(frame, now, node.config.stall);
                    }
                }
                Effect::Close { conn, reason: CloseReason::Done | CloseReason::Renewed } => {
                    for watch in self.nodes[engine.0].watches.values_mut() {
                        watch.attempted.take_if(|(attempted, _)| attempted == conn);
                    }
                }
                Effect::Commit { batch, .. } => {
                    self.check_batch(engine, batch);
                    self.check_heirs(engine, batch);
                    self.check_bringers(engine, batch);
                }
                Effect::LoadItems { view, .. } | Effect::CheckKnown { view, .. } => self.check_view(engine, view),
                Effect::Sign { conn, .. } => self.check_proven(engine, *conn, "a challenge is answered"),
                _ => {}
            }
        }
        assert!(bytes <= EFFECT_BYTES_MAX, "{bytes} bytes to be sent at once");
    }

    /// What an engine holds stays within what its configuration allows. That is looked at now and then: it costs a look at
    /// every history.
    pub(super) fn check_sizes(&self, engine: EngineId) {
        let node = &self.nodes[engine.0];
        if !node.handles.is_multiple_of(SIZES_EVERY) {
            return;
        }
        let (config, sizes) = (&node.config, node.sizes());
        let relays = sizes.relays;
        // It stops reading when there is too much; one more frame may have come before.
        let pipeline_bytes = relays * (config.ingest_bytes_max + config.frame_bytes_max);
        // Reconciliations have no part in the number of subscriptions.
        let subscriptions = relays * (config.subscriptions_max + config.histories_active_max);
        // Each history asks for one set, one look-up and one load at a time; those that were dropped may be answered yet.
        let store_questions = relays * config.histories_active_max * 3 * 2;
        assert!(
            sizes.pipeline_bytes <= pipeline_bytes
                && sizes.subscriptions <= subscriptions
                && sizes.store_questions <= store_questions
                && sizes.deadlines <= relays
                && sizes.effects == 0,
            "too much is held: {sizes:?}"
        );
        self.check_discovery_sizes(engine, &sizes);
    }

    /// Everything that is to be stored satisfies something that is, or was, wanted. That it is genuine, its type says.
    fn check_batch(&self, engine: EngineId, batch: &Batch) {
        let filters = &self.nodes[engine.0].filters;
        for event in &batch.events {
            if self.nodes[engine.0].config.discovery.is_some() {
                self.check_accepted(engine, event);
                continue;
            }
            let is_wanted = filters.values().any(|filter| matches(filter, event));
            assert!(is_wanted, "{} is stored and not wanted", event.id);
        }
    }

    pub(super) fn check_tick(&mut self, engine: EngineId) {
        let (at, times) = &mut self.nodes[engine.0].ticks;
        if *at != self.instant {
            (*at, *times) = (self.instant, 0);
        }
        *times += 1;
        assert!(
            *times <= TICKS_AT_ONCE_MAX,
            "ticked for ever at one moment: {:?}",
            self.nodes[engine.0].engine.deadline()
        );
    }

    /// Everything that the relay held when it was asked, and that a mark covers, is held here, or known to be gone.
    pub(super) fn check_mark(&mut self, engine: EngineId, mark: &Coverage) {
        let now_secs = self.now().unix_secs;
        for proof in &mark.windows {
            let Some(remote) = self.relays.get(&mark.relay).filter(|remote| remote.is_checked) else { return };
            let node = &mut self.nodes[engine.0];
            let packed = mark.packed.as_deref();
            let Some(filter) = node.filters.get(&mark.filter).or(packed).cloned() else { return };
            if !node.is_new_proof(mark, proof) {
                continue;
            }
            let asked_at_secs = node.world_secs(proof.asked_at_secs);
            if asked_at_secs <= self.rights_changed_secs(engine, &mark.relay) {
                continue;
            }
            let items = remote.honest().items(&filter, proof.window, now_secs);
            let before = |id: &[u8; 32]| remote.honest().got_at_secs.get(id).is_none_or(|at| *at < asked_at_secs);
            let ids: Vec<[u8; 32]> = items.items().iter().map(|item| item.id).filter(before).collect();
            let node = &self.nodes[engine.0];
            let is_discovered = node.config.discovery.is_some() && !node.wishes.contains_key(&mark.relay);
            let ids = self.missing(engine, ids);
            let ids = self.gettable(engine, &mark.relay, ids, true);
            let missing = match is_discovered && !ids.is_empty() {
                true => self.needed(engine, &mark.relay, ids, asked_at_secs),
                false => ids,
            };
            if let Some(id) = missing.first() {
                let got_at = self.relays[&mark.relay].honest().got_at_secs.get(id);
                panic!(
                    "a mark of {} claims {} as of {asked_at_secs} ({:?}) without having {} of it, as {} of {got_at:?}",
                    mark.relay,
                    proof.window,
                    proof.method,
                    missing.len(),
                    crate::protocol::hex::encode(id),
                );
            }
        }
    }

    /// Those of these ids that the engine's store does not hold, nor knows to be gone.
    fn missing(&self, engine: EngineId, ids: Vec<[u8; 32]>) -> Vec<[u8; 32]> {
        let known = at_once(self.nodes[engine.0].store.known(ids.clone(), &View::all()))
            .expect("the store in memory does not fail");
        ids.into_iter().zip(known).filter(|(_, known)| !known).map(|(id, _)| id).collect()
    }

    /// What an engine is to have of a relay, is held by the relay now, and is not held by the engine.
    pub fn lacks(&self, engine: EngineId, relay: &RelayUrl) -> Vec<[u8; 32]> {
        let node = &self.nodes[engine.0];
        let Some(wish) = self.wanted_relays(engine).remove(relay).filter(|(_, options)| options.direction.is_down())
        else {
            return Vec::new();
        };
        let wish = self.permitted(engine, relay, wish, Capability::SyncWrite);
        let missing = self.missing(engine, self.selected(relay, &wish).into_iter().collect());
        let missing = self.gettable(engine, relay, missing, false);
        match &node.config.discovery {
            Some(config) if !missing.is_empty() && !wish.1.trusted => {
                let held = node.events(self.now().unix_secs);
                self.wanted_of(engine, relay, missing, &Acceptance::new(config, &held, Versions::Newest))
            }
            _ => missing,
        }
    }

    /// What an engine is told to bring to a relay, it holds, and the relay does not.
    pub fn owes(&self, engine: EngineId, relay: &RelayUrl) -> Vec<[u8; 32]> {
        let now_secs = self.now().unix_secs;
        let node = &self.nodes[engine.0];
        let Some(wish) = node.told().remove(relay) else { return Vec::new() };
        let (interests, options) = self.permitted(engine, relay, wish, Capability::SyncRead);
        if !options.direction.is_up() {
            return Vec::new();
        }
        let mut ids = BTreeSet::new();
        for pack in interests.iter().flat_map(Interest::packs) {
            let items = at_once(node.store.held_items(&pack.filter(), pack.window(), &View::all(), now_secs));
            ids.extend(items.expect("the store in memory does not fail").items().iter().map(|item| item.id));
        }
        let ids: Vec<[u8; 32]> = ids.into_iter().collect();
        let ids = self.givable(engine, relay, ids);
        let known = at_once(self.relays[relay].honest().store().known(ids.clone(), &View::all()));
        let known = known.expect("the store in memory does not fail");
        ids.into_iter().zip(known).filter(|(_, known)| !known).map(|(id, _)| id).collect()
    }
}
