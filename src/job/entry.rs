//! One job on record, and how it stands by what its engine has said last.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::lock::Mutex;

use super::reading::Reading;
use super::runner::{Purpose, Runner, RunnerId, Way};
use super::{Counts, JobGap, JobReport, JobSpec, JobsConfig, RelayStanding, What};
use crate::discover::{Accept, DiscoverConfig};
use crate::engine::{Config, Direction, GapReason, Phase, RelayReport, Standing};
use crate::plan::Interest;
use crate::protocol::{Filter, FilterKey, RelayUrl, Window};
use crate::relay::HealthState;
use crate::store::packed;

/// A job, or a watch, which has no relays.
pub(super) struct Entry {
    /// What it is to do; `None` for a watch.
    pub(super) spec: Option<JobSpec>,
    filters: Vec<(FilterKey, Arc<Filter>)>,
    /// Where its reader is.
    pub(super) reading: Arc<Mutex<Reading>>,
    /// Whose engine works for it, once it has begun.
    pub(super) runner: Option<RunnerId>,
    /// Its time is up.
    pub(super) is_overdue: bool,
    /// It was not over when everything was closed.
    pub(super) is_cut: bool,
    /// It is over, and all that was for it was given out.
    pub(super) is_drained: bool,
    /// Its last report, once it is over.
    pub(super) end: Option<JobReport>,
}

/// What a report is made from.
#[derive(Clone, Copy)]
pub(super) struct Standpoint<'s> {
    pub(super) runner: Option<&'s Runner>,
    /// See [`JobsConfig::failures_max`].
    pub(super) failures_max: u32,
    /// Nothing more will come of what is under way.
    pub(super) is_over: bool,
    /// See [`Store::floor_secs`](crate::store::Store::floor_secs).
    pub(super) floor_secs: Option<u64>,
}

impl Entry {
    pub(super) fn new(spec: Option<JobSpec>, reading: Reading) -> Self {
        let filters = match &spec {
            Some(JobSpec { what: What::Filters(filters), .. }) => filters.as_slice(),
            _ => &[],
        };
        let filters = filters.iter().map(|filter| (FilterKey::of(filter), Arc::new(filter.clone())));
        Self {
            filters: filters.collect(),
            spec,
            reading: Arc::new(Mutex::new(reading)),
            runner: None,
            is_overdue: false,
            is_cut: false,
            is_drained: false,
            end: None,
        }
    }

    /// Is it one of those that share engines?
    pub(super) fn way(&self) -> Option<Way> {
        let spec = self.spec.as_ref().filter(|spec| spec.live)?;
        let is_of_filters = matches!(spec.what, What::Filters(_));
        is_of_filters.then_some(Way { direction: spec.direction, method: spec.method })
    }

    /// What is wanted of each of its relays.
    pub(super) fn interests(&self) -> Vec<Interest> {
        let interests: BTreeSet<Interest> =
            self.filters.iter().map(|(_, filter)| Interest::Opaque(filter.clone())).collect();
        interests.into_iter().collect()
    }

    /// The relays that it names.
    pub(super) fn relays(&self) -> &[RelayUrl] {
        self.spec.as_ref().map_or(&[], |spec| &spec.relays)
    }

    /// The runner that it is to have, if it has one for itself.
    pub(super) fn runner_of_its_own(&self, id: &str, config: &JobsConfig) -> Option<Runner> {
        let spec = self.spec.as_ref()?;
        let base = if spec.live { &config.live } else { &config.once };
        let way = Way { direction: spec.direction, method: spec.method };
        let purpose = Purpose::Job(id.to_owned());
        Some(match discovery_of(spec, config) {
            Some(discovery) => {
                let config = Config { discovery: Some(discovery), awaits_held: true, ..base.clone() };
                Runner::new(purpose, config, Way { direction: Direction::Down, ..way }.options(spec.live))
            }
            None => {
                let mut runner = Runner::new(purpose, base.clone(), way.options(spec.live));
                runner.want(&spec.relays, &self.interests());
                runner
            }
        })
    }

    /// How it stands.
    pub(super) fn report(&self, at: Standpoint<'_>) -> JobReport {
        if let Some(report) = &self.end {
            return report.clone();
        }
        let named = self.relays().iter();
        let is_of_filters = !self.filters.is_empty();
        let found = at.runner.filter(|_| !is_of_filters).into_iter().flat_map(|runner| runner.standings.keys());
        let relays: BTreeSet<&RelayUrl> = named.chain(found).collect();
        let standing = |relay: &RelayUrl| at.runner.and_then(|runner| runner.standings.get(relay));
        let relays = relays.into_iter().map(|relay| match is_of_filters {
            true => self.standing_by_filters(relay, standing(relay), at),
            false => self.standing_by_discovery(relay, standing(relay), at),
        });
        let error = at.runner.and_then(|runner| runner.failure.clone());
        JobReport::over(relays.collect(), at.is_over, error)
    }

    fn standing_by_filters(&self, relay: &RelayUrl, last: Option<&Standing>, at: Standpoint<'_>) -> RelayStanding {
        let mut standing = blank(relay, last.map(|last| &last.report));
        for (key, filter) in &self.filters {
            let own = last.and_then(|last| last.filters.iter().find(|own| own.filter == *key));
            let is_settled = own.is_some_and(|own| own.settled);
            let filter = Some(filter.clone());
            for gap in own.into_iter().flat_map(|own| &own.gaps) {
                standing.gaps.push(JobGap::new(filter.clone(), gap.window, &gap.reason));
            }
            standing.gaps_dropped += own.map_or(0, |own| own.gaps_dropped);
            standing.complete &= own.is_some_and(crate::engine::FilterStanding::is_complete);
            let window = filter.as_deref().map_or(Window::ALL, Window::of);
            let followed_secs = own.and_then(|own| own.followed_secs);
            self.judge(&mut standing, is_settled.then_some(followed_secs), (filter, window), last, at);
        }
        standing.complete &= standing.settled && standing.gaps.is_empty();
        standing
    }

    fn standing_by_discovery(&self, relay: &RelayUrl, last: Option<&Standing>, at: Standpoint<'_>) -> RelayStanding {
        let mut standing = blank(relay, last.map(|last| &last.report));
        let gaps = last.into_iter().flat_map(|last| &last.report.gaps);
        standing.gaps.extend(gaps.map(|gap| JobGap::new(None, gap.window, &gap.reason)));
        standing.gaps_dropped = last.map_or(0, |last| last.report.gaps_dropped);
        let is_settled = last.is_some_and(|last| last.settled);
        let followed_secs = last.and_then(|last| last.followed_secs);
        self.judge(&mut standing, is_settled.then_some(followed_secs), (None, Window::ALL), last, at);
        standing.complete = is_settled && standing.settled && standing.gaps.is_empty();
        standing.complete &= last.is_some_and(|last| last.report.complete);
        standing
    }

    /// Is this to be followed at a relay that it is not connected to? Whoever ends a job ends its connection, which is no lack.
    fn is_adrift(&self, last: &Standing, at: Standpoint<'_>) -> bool {
        let is_live = self.spec.as_ref().is_some_and(|spec| spec.live);
        is_live && !last.report.connected && !at.runner.is_some_and(|runner| runner.has_left(&last.report.relay))
    }

    /// Adds what speaks against something being settled, and against it being complete where it is: then `settled` says up to
    /// when it was followed, if that is known.
    fn judge(
        &self,
        standing: &mut RelayStanding,
        settled: Option<Option<u64>>,
        (filter, window): (Option<Arc<Filter>>, Window),
        last: Option<&Standing>,
        at: Standpoint<'_>,
    ) {
        let (is_over, is_settled) = (at.is_over || self.is_overdue, settled.is_some());
        if let Some(window) = at.floor_secs.and_then(|floor| pruned_of(filter.as_deref(), window, floor)) {
            standing.gaps.push(JobGap::new(filter.clone(), window, &GapReason::Pruned));
        }
        if let Some((followed_secs, last)) = settled.zip(last.filter(|last| self.is_adrift(last, at))) {
            let since = followed_secs.or(last.report.moments.disconnected_secs).unwrap_or_default();
            let missed = Window { since, until: Window::OPEN }.intersect(&window);
            // What such a filter lacks is dated back, and may be of any date.
            let missed = if missed.is_empty() { window } else { missed };
            let reason = GapReason::Disconnected(last.report.last_error.clone().unwrap_or_default());
            standing.gaps.push(JobGap::new(filter.clone(), missed, &reason));
        }
        if let Some(words) = at.runner.and_then(|runner| runner.failure.clone()) {
            standing.settled &= is_over;
            let reason = GapReason::Store(words);
            if !is_settled {
                standing.gaps.push(JobGap::new(filter, window, &reason));
            }
        } else if !is_settled {
            match lack(last.map(|last| &last.report), at.failures_max, is_over) {
                Some(reason) => standing.gaps.push(JobGap::new(filter, window, &reason)),
                None => standing.settled = false,
            }
        }
    }
}

/// The part of a window that is not held for want of room: nothing of that is proven, whatever relays were asked for.
pub(super) fn pruned_of(filter: Option<&Filter>, window: Window, floor_secs: u64) -> Option<Window> {
    let pruned = Window { since: 0, until: floor_secs }.intersect(&window);
    let is_spared = filter.is_some_and(|filter| {
        filter.kinds.as_ref().is_some_and(|kinds| kinds.iter().all(|kind| packed::is_spared(kind.as_u16())))
    });
    (!pruned.is_empty() && !is_spared).then_some(pruned)
}

/// Why nothing more is awaited of what is not fetched, if nothing is.
fn lack(report: Option<&RelayReport>, failures_max: u32, is_over: bool) -> Option<GapReason> {
    let failing = report.filter(|report| report.failures >= failures_max && !report.connected);
    if let Some(report) = failing {
        let words = report.last_error.clone().unwrap_or_default();
        return Some(match report.counters.connections {
            0 => GapReason::Unreachable(words),
            _ => GapReason::ConnectionLost(words),
        });
    }
    is_over.then_some(GapReason::Stopped)
}

/// A relay of which nothing is said yet.
fn blank(relay: &RelayUrl, report: Option<&RelayReport>) -> RelayStanding {
    RelayStanding {
        url: relay.clone(),
        settled: true,
        complete: true,
        phase: report.map_or(Phase::Waiting, |report| report.phase),
        health: report.map_or(HealthState::Disconnected, |report| report.health),
        connected: report.is_some_and(|report| report.connected),
        methods: report.map(|report| report.methods.clone()).unwrap_or_default(),
        gaps: Vec::new(),
        gaps_dropped: 0,
        failure: report.and_then(|report| report.failure),
        message: report.and_then(|report| report.last_error.clone()),
        counts: report.map(|report| Counts::of(&report.counters)).unwrap_or_default(),
    }
}

/// What is to be discovered, if that is what the job is for.
pub(super) fn discovery_of(spec: &JobSpec, config: &JobsConfig) -> Option<DiscoverConfig> {
    let What::Repos { addresses, authors } = &spec.what else { return None };
    Some(DiscoverConfig {
        accept: Accept::Allowed,
        allow_authors: authors.clone(),
        allow_repositories: addresses.clone(),
        bootstrap: spec.relays.clone(),
        ..config.discovery.clone()
    })
}
