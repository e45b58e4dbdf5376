//! When the faults have stopped: everything wanted arrives, and silence follows.

use std::time::Duration;

use super::peers;
use super::setup::Setup;
use crate::engine::{Gap, GapReason, Phase, Sizes};
use crate::protocol::RelayUrl;
use crate::runtime::ConnectError;
use crate::sim::node::Wish;
use crate::sim::{Connects, EngineId, Remote, World};
use crate::store::Method;

/// Within this everything must be there, for each engine that an event may take on its way from relay to relay: the
/// daily pass may be needed to fetch it, the next one to offer it to others, and a relay that was dead for a day is tried
/// once a day.
const WITHIN: Duration = Duration::from_secs(60 * 3600);

/// How often a job that ends is begun again, as by a timer of the operator's.
const JOB_EVERY: Duration = Duration::from_secs(600);

/// How long a network is watched for silence, and how often that is tried.
const WATCHED: Duration = Duration::from_secs(600);
const WATCHES: u32 = 3;

/// Whatever is begun then comes to its end within this.
const THROUGH_WITHIN: Duration = Duration::from_secs(60);

/// How long all links stand before they break: longer than any absence that costs little.
const BLIP_AFTER: Duration = Duration::from_secs(16 * 60);

/// How long is looked at what follows when all links break.
const BLIP: Duration = Duration::from_secs(120);

/// How long links are down while relays grant more, and within what they are back, and all is fetched.
const SHORT: Duration = Duration::from_secs(20);
const BACK_WITHIN: Duration = Duration::from_secs(300);

/// Frames that an engine may send for each filter that is polled, while the network is watched.
const POLL_FRAMES: u64 = 16;

/// Frames that an engine may send a relay while there is nothing to do: a probe and its end, every minute.
const IDLE_FRAMES_A_MINUTE: u64 = 4;

impl Setup {
    /// All faults stop.
    pub(super) fn mend(&mut self) {
        for url in &self.relays {
            self.world.relay_mut(url).mend();
        }
        for engine in &self.engines {
            let node = self.world.node_mut(*engine);
            node.disk = Default::default();
            node.late_max = Duration::ZERO;
            node.lateness = Duration::ZERO;
            node.crash_in = None;
            self.world.set_wall_offset(*engine, 0);
        }
    }

    /// Waits until everything is there. How long did it take?
    pub(super) fn converge(&mut self) -> Duration {
        let began = self.world.now().instant;
        let mut wait = Duration::from_secs(2);
        let mut job_at = began;
        while !self.is_whole() {
            let waited = self.world.now().instant - began;
            let within = WITHIN * self.engines.len() as u32;
            assert!(waited < within, "not everything has arrived within {waited:?}: {}", self.what_lacks());
            if self.world.now().instant >= job_at {
                job_at = self.world.now().instant + JOB_EVERY;
                self.begin_jobs();
            }
            self.world.run(wait);
            // A look at everything costs more than hours in which nothing happens.
            wait = (wait * 3 / 2).min(Duration::from_secs(60) + waited / 20);
        }
        self.world.now().instant - began
    }

    fn is_whole(&self) -> bool {
        self.engines.iter().all(|engine| is_whole(&self.world, *engine))
    }

    fn what_lacks(&self) -> String {
        let mut lacks = String::new();
        for engine in &self.engines {
            let node = self.world.node(*engine);
            if !node.is_up() || node.config.one_shot && node.ended.is_none() {
                lacks.push_str(&format!("{engine} is at work; "));
            }
            for report in node.reports() {
                if !self.world.relays.contains_key(&report.relay) {
                    continue;
                }
                let (lacks_ids, owes_ids) =
                    (self.world.lacks(*engine, &report.relay), self.world.owes(*engine, &report.relay));
                let (lacking, owed) = (lacks_ids.len(), owes_ids.len());
                if lacking + owed > 0 || !report.complete || !report.gaps.is_empty() {
                    let says =
                        format!("{:?}, {:?}, {:?}, {:?}", report.phase, report.gaps, report.denied, report.last_error);
                    let first = lacks_ids.iter().chain(&owes_ids).next().map(|id| crate::protocol::hex::encode(id));
                    lacks.push_str(&format!(
                        "{engine} {}: lacks {lacking}, owes {owed} ({}), {says}; ",
                        report.relay,
                        first.unwrap_or_default()
                    ));
                }
            }
        }
        lacks
    }

    /// Jobs that have ended and not brought everything are begun again.
    fn begin_jobs(&mut self) {
        for engine in self.engines.clone() {
            let node = self.world.node(engine);
            if node.config.one_shot && node.ended.is_some() && !is_whole(&self.world, engine) {
                self.world.restart(engine);
                self.world.tell_wishes(engine);
            }
        }
    }

    /// Watches the network: there is nothing more to be said.
    pub(super) fn expect_silence(&mut self) {
        let mut said = 0;
        for _ in 0..WATCHES {
            let before = self.world.frames_up;
            self.world.run(WATCHED);
            said = self.world.frames_up - before;
            let links = (self.engines.len() * self.relays.len()) as u64;
            let idle = links * IDLE_FRAMES_A_MINUTE * WATCHED.as_secs() / 60;
            let is_silent = said <= idle + self.polled_filters() * POLL_FRAMES;
            // What is polled or probed may be under way just now.
            let engines = self.engines.clone();
            let is_through = |world: &World| engines.iter().all(|engine| pending_of(world, *engine).is_none());
            if is_silent && self.world.run_until(THROUGH_WITHIN, is_through) {
                return;
            }
        }
        panic!(
            "{said} frames sent in {WATCHED:?} although everything is there; pending: {:?}",
            pending(&self.world, &self.engines)
        );
    }

    /// Filters that engines that discover or have peers ask for again and again, as relays do not serve them live.
    fn polled_filters(&self) -> u64 {
        let is_polling = |engine: &&EngineId| {
            let node = self.world.node(**engine);
            node.config.discovery.is_some() || node.peers.is_watched
        };
        let polled = self.engines.iter().filter(is_polling).flat_map(|engine| {
            let (reports, wanted) = (self.world.node(*engine).reports(), self.world.wanted_relays(*engine));
            let polls = reports.into_iter().filter(|report| report.phase == Phase::Polling);
            polls
                .filter_map(|report| wanted.get(&report.relay).map(|(interests, _)| interests.clone()))
                .collect::<Vec<_>>()
        });
        polled.flatten().map(|interest| interest.packs().len() as u64).sum()
    }

    /// All links break for a moment, after they have stood for a while: what that may cost is checked by the world.
    pub(super) fn blip(&mut self) {
        self.world.is_settled = true;
        self.world.run(BLIP_AFTER);
        for url in &self.relays {
            self.world.cut(url, "");
        }
        self.world.run(BLIP);
        self.grant_apart();
    }

    /// While no link stands, relays grant all that they protect, and tell nobody: peers are to have it afterwards.
    fn grant_apart(&mut self) {
        for url in self.relays.clone() {
            let Some(rules) = peers::opened(&self.world.relay(&url).honest().config().access) else { continue };
            self.world.relay_mut(&url).connects = Connects::Refused(ConnectError::TimedOut);
            self.world.cut(&url, "");
            self.world.run(SHORT);
            self.world.set_relay_access(&url, rules);
            self.world.relay_mut(&url).connects = Connects::Always;
            let back_secs = self.world.now().unix_secs;
            self.world.run(BACK_WITHIN);
            for engine in &self.engines {
                let is_peer = self.world.peering(*engine, &url).is_some();
                let reports = self.world.node(*engine).reports();
                let claims = reports.iter().any(|report| report.relay == url && report.complete && report.connected);
                // What others bring it meanwhile comes live, or with the next poll.
                let got_at_secs = &self.world.relay(&url).honest().got_at_secs;
                let had = |id: &[u8; 32]| got_at_secs.get(id).is_none_or(|at| *at < back_secs);
                let lacks = || self.world.lacks(*engine, &url).into_iter().filter(|id| had(id)).count();
                assert!(!is_peer || !claims || lacks() == 0, "{engine} lacks {} of {url}, granted apart", lacks());
            }
        }
    }
}

/// What engines hold that are not through with something.
fn pending(world: &World, engines: &[EngineId]) -> Vec<Sizes> {
    engines.iter().filter_map(|engine| pending_of(world, *engine)).collect()
}

fn pending_of(world: &World, engine: EngineId) -> Option<Sizes> {
    let node = world.node(engine);
    let sizes = node.sizes();
    // What waits for a relay that is listed somewhere and does not exist waits for ever.
    let is_in_vain = node.reports().iter().any(|report| !world.relays.contains_key(&report.relay));
    let waiting = if is_in_vain { 0 } else { sizes.histories_waiting };
    let work = sizes.pipeline_events + sizes.pipeline_ids + sizes.store_questions;
    let histories = sizes.histories + waiting + sizes.history_ids;
    (work + histories + sizes.discovery.changes + sizes.outbox_events > 0).then_some(sizes)
}

/// Gaps that remain though everything is there. What the relay knows to be taken back by its author it does not take
/// from us. And where it gives its events by pages only, nothing proves that a second that fills its largest page has
/// no more: an engine that has all of it cannot know.
fn is_inherent(reason: &GapReason, relay: &Remote, method: Option<Method>) -> bool {
    match reason {
        GapReason::NotAccepted { reason, .. } => reason.starts_with("blocked: "),
        GapReason::SecondOverflow { .. } => !relay.honest().config().negentropy || method == Some(Method::Req),
        _ => false,
    }
}

/// Has an engine everything that it wants, and does it say so?
fn is_whole(world: &World, engine: EngineId) -> bool {
    let node = world.node(engine);
    let is_idle = node.told().is_empty();
    if !node.is_up() || node.config.one_shot && node.ended.is_none() && !is_idle {
        return false;
    }
    let (wanted, reports) = (world.wanted_relays(engine), node.reports());
    let is_well = |(url, (_, options)): (&RelayUrl, &Wish)| {
        let Some(report) = reports.iter().find(|report| report.relay == *url) else { return false };
        let relay = world.relay(url);
        let is_settled = matches!(report.phase, Phase::Live | Phase::Polling | Phase::Done);
        let is_denied = world.is_denied(engine, url);
        let is_true = report.complete == (report.gaps.is_empty() && !is_denied);
        let is_inherent =
            |gap: &Gap| is_inherent(&gap.reason, relay, options.method) || world.is_refused(engine, url, gap);
        is_settled && is_true && report.denied.is_empty() != is_denied && report.gaps.iter().all(is_inherent)
    };
    wanted.iter().all(is_well)
        && wanted.keys().all(|url| world.lacks(engine, url).is_empty() && world.owes(engine, url).is_empty())
}
