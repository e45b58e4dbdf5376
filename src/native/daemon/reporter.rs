//! What the daemon says of itself, made anew every two seconds or so.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::hooked::Hooked;
use super::journal::Journal;
use super::shared::Shared;
use crate::engine::RelayReport;
use crate::native::admin::{DaemonReport, FeedReport, Readiness, ServiceReport, Stage, StoreReport};
use crate::native::feed::Feed;
use crate::native::serve::{RelayService, Standing};
use crate::runtime::Clock;

/// Makes reports, and hands them to the admin server and the log.
pub(super) struct Reporter {
    shared: Arc<Shared>,
    hooked: Arc<Hooked>,
    service: Option<Arc<RelayService>>,
    /// Of each writer.
    feeds: Vec<Feed>,
    reports: watch::Sender<Arc<DaemonReport>>,
    journal: Journal,
}

impl Reporter {
    pub(super) fn new(
        shared: Arc<Shared>,
        hooked: Arc<Hooked>,
        service: Option<Arc<RelayService>>,
        feeds: Vec<Feed>,
    ) -> Self {
        let now = shared.clock.now();
        let reports = watch::Sender::new(Arc::new(DaemonReport::starting(now.unix_secs, now.instant)));
        Self { shared, hooked, service, feeds, reports, journal: Journal::default() }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<DaemonReport>> {
        self.reports.subscribe()
    }

    pub(super) async fn run(mut self) {
        let settings = self.shared.settings();
        let mut ticks = interval(settings.sync.progress_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let report = self.report().await;
            self.journal.note(&report, settings.daemon.summary_interval);
            self.reports.send_replace(Arc::new(report));
        }
    }

    async fn report(&self) -> DaemonReport {
        let now = self.shared.clock.now();
        let news = self.shared.news();
        let started_at_secs = self.reports.borrow().started_at_secs;
        let service = match &self.service {
            Some(service) => {
                let Standing { clients_connected, counters } = service.standing().await;
                Some(ServiceReport { clients_connected, counters })
            }
            None => None,
        };
        let report = DaemonReport {
            made_at_secs: now.unix_secs,
            readiness: Readiness {
                store: news.store,
                index: news.index,
                service: if service.is_some() { Stage::Ready } else { Stage::Off },
            },
            engine: news.engine,
            relays: news.relays,
            peers: self.shared.control.peers().report(),
            discovery: news.discovery,
            service,
            hook: self.hooked.counters().await,
            store: self.store().await,
            feed: self.feed(),
            ..DaemonReport::starting(started_at_secs, now.instant)
        };
        DaemonReport { bounds: bounds(&report), ..report }
    }

    fn feed(&self) -> FeedReport {
        self.feeds.iter().map(Feed::counters).fold(FeedReport::default(), |sum, feed| FeedReport {
            events: sum.events + feed.events,
            queued: sum.queued + feed.queued,
            lags: sum.lags + feed.lags,
        })
    }

    async fn store(&self) -> StoreReport {
        let disk = &self.shared.disk;
        let file = disk.file();
        let metadata = tokio::task::spawn_blocking(move || std::fs::metadata(file)).await;
        // A file that cannot be looked at shows as empty; whoever writes to it will say why.
        let file_bytes = metadata.ok().and_then(Result::ok).map_or(0, |metadata| metadata.len());
        StoreReport { file_bytes, commits: disk.commits(), commits_failed: disk.commits_failed() }
    }
}

/// How often each bound has bitten, by the setting that changes it; those of discovery are counted there.
fn bounds(report: &DaemonReport) -> BTreeMap<String, u64> {
    let at_all_relays = |hits: fn(&RelayReport) -> u64| report.relays.iter().map(hits).sum();
    let mut bounds = vec![
        ("outbox_events_max", at_all_relays(|relay| relay.counters.outbox_overflows)),
        ("live_filters_max", at_all_relays(|relay| relay.counters.consolidations)),
        ("gaps_max", at_all_relays(|relay| relay.gaps_dropped)),
        ("feed_events_max", report.feed.lags),
    ];
    if let Some(service) = &report.service {
        let seen = &service.counters;
        bounds.extend([
            ("page_events_max", seen.pages_capped),
            ("pending_bytes_max", seen.readings_paused),
            ("clients_max", seen.clients_turned_away),
            ("outbound_total_bytes_max", seen.clients_cut_for_all),
            ("events_per_minute_max", seen.events_rate_limited),
            ("requests_per_minute_max", seen.requests_rate_limited),
            ("bytes_per_minute_max", seen.frames_rate_limited),
        ]);
    }
    bounds.into_iter().map(|(setting, hits)| (setting.to_owned(), hits)).collect()
}
