//! `relaysync sync`: running it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_channel::mpsc;
use futures_util::SinkExt;
use tokio::sync::Notify;

use super::progress::{Phase, ProgressView, RelayProgress};
use super::report::{GapReport, RelayReport, Report};
use super::sync::{Direction, MethodChoice, SyncArguments};
use super::{Exit, Failure, interrupted, key, store};
use crate::drive::drive;
use crate::engine::{self, Command, Config, GapReason, Notice, RelayOptions};
use crate::native::{NativeRuntime, SocketConfig};
use crate::plan::Interest;
use crate::protocol::{Filter, FilterKey, Window};
use crate::runtime::{Clock, Now, Runtime};
use crate::store::Method;

/// How long a stop may take: what has arrived is committed, connections are closed. Together with the time that the
/// program gives to what still runs then, less than 2 s.
const STOP_TIMEOUT: Duration = Duration::from_millis(1300);

/// Syncs, shows how far it is, and prints the closing report.
pub(super) async fn run(arguments: SyncArguments) -> Result<Exit, Failure> {
    let keys = arguments.key.as_deref().map(key::read).transpose()?;
    let job = Job::new(&arguments)?;
    let store = store::open(&arguments.store.path).await?;
    let runtime = Arc::new(NativeRuntime::new(store, SocketConfig::default(), keys).map_err(Failure::new)?);
    let report = if arguments.json { job.run(runtime, |_, _| {}).await? } else { job.run_shown(runtime).await? };
    let text = if arguments.json { report.to_json() + "\n" } else { report.to_text() };
    print(&text)?;
    Ok(report.exit())
}

/// Prints on stdout.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        // Who asked does not read any further: the exit status still tells.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::new(format!("cannot write the report: {error}"))),
    }
}

/// What is to be synced, and how.
pub(super) struct Job {
    config: Config,
    options: RelayOptions,
    relays: Vec<crate::protocol::RelayUrl>,
    filters: Vec<Filter>,
    timeout: Option<Duration>,
}

impl Job {
    fn new(arguments: &SyncArguments) -> Result<Self, Failure> {
        let options = RelayOptions {
            direction: match arguments.direction {
                Direction::Down => engine::Direction::Down,
                Direction::Up => engine::Direction::Up,
                Direction::Both => engine::Direction::Both,
            },
            method: match arguments.method {
                MethodChoice::Auto => None,
                MethodChoice::Negentropy => Some(Method::Negentropy),
                MethodChoice::Req => Some(Method::Req),
            },
            live: arguments.live,
            trusted: false,
        };
        let config = Config { dry_run: arguments.dry_run, ..Config::one_shot() };
        // Who stays wants relays that went away to be tried again, and everything to be looked at again.
        let live = Config { one_shot: false, attempts_max: u32::MAX, ..config.clone() };
        Ok(Self {
            config: if arguments.live { live } else { config },
            options,
            relays: arguments.relays.clone(),
            filters: arguments.filters.clone().into_unlimited_filters()?,
            timeout: arguments.timeout.map(Duration::from_secs),
        })
    }

    /// A job with these filters and relays, and defaults for the rest.
    #[cfg(test)]
    fn of(relays: Vec<crate::protocol::RelayUrl>, filters: Vec<Filter>) -> Self {
        Self { config: Config::one_shot(), options: RelayOptions::default(), relays, filters, timeout: None }
    }

    /// The same as [`Job::run`], with the progress on stderr.
    pub(super) async fn run_shown<R: Runtime>(self, runtime: Arc<R>) -> Result<Report, Failure> {
        let mut view = ProgressView::new();
        let report = self.run(runtime, |progress, now| {
            progress.iter().for_each(|relay| view.update(&progress_of(relay), now.instant));
        });
        let report = report.await;
        view.finish();
        report
    }

    /// Runs to the end, to the time limit, or until the operator ends it.
    pub(super) async fn run<R: Runtime>(
        self,
        runtime: Arc<R>,
        mut show: impl FnMut(&[engine::RelayReport], Now),
    ) -> Result<Report, Failure> {
        let begun = runtime.clock().now();
        let (mut commands, inbox) = mpsc::channel(1);
        let notified = runtime.clone();
        let seed = u64::from(std::process::id()) ^ (begun.unix_secs << 20);
        let store_failed = Notify::new();
        let engine = drive(runtime.clone(), self.config.clone(), seed, inbox, |notice| match notice {
            Notice::Progress(reports) => show(reports, notified.clock().now()),
            Notice::StoreFailed(error) => {
                tracing::error!("{error}");
                store_failed.notify_one();
            }
            _ => {}
        });
        let mut engine = std::pin::pin!(engine);
        let control = async {
            for relay in &self.relays {
                let interests = self.filters.iter().cloned().map(|filter| Interest::Opaque(Arc::new(filter))).collect();
                let command = Command::SetInterests { relay: relay.clone(), interests, options: self.options };
                commands.send(command).await.map_err(Failure::new)?;
            }
            tokio::select! {
                ended = self.wait_for_end() => ended?,
                // Nothing more can come of it, and nobody would begin it anew.
                () = store_failed.notified() => {}
            }
            commands.send(Command::Stop).await.map_err(Failure::new)?;
            tokio::time::sleep(STOP_TIMEOUT).await;
            Err::<std::convert::Infallible, _>(Failure::new(
                "the store does not finish what it was given; what it has committed is kept",
            ))
        };
        let reports = tokio::select! {
            result = &mut engine => result.map_err(Failure::new)?,
            failed = control => match failed { Err(failure) => return Err(failure), Ok(never) => match never {} },
        };
        let elapsed = runtime.clock().now().instant - begun.instant;
        Ok(Report::new(self.relay_reports(&reports), elapsed.as_secs_f64()))
    }

    async fn wait_for_end(&self) -> Result<(), Failure> {
        let timeout = async {
            match self.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            signal = interrupted() => tracing::warn!("{}: stopping", signal?),
            () = timeout => tracing::warn!("the time is up: stopping"),
        }
        Ok(())
    }

    fn relay_reports(&self, reports: &[engine::RelayReport]) -> Vec<RelayReport> {
        let names: BTreeMap<FilterKey, String> = self
            .filters
            .iter()
            .map(|filter| (FilterKey::of(filter), serde_json::to_string(filter).unwrap_or_default()))
            .collect();
        reports.iter().map(|report| relay_report(report, &names)).collect()
    }
}

fn relay_report(report: &engine::RelayReport, names: &BTreeMap<FilterKey, String>) -> RelayReport {
    let counters = &report.counters;
    let gap = |gap: &engine::Gap| GapReport {
        filter: names.get(&gap.filter).cloned().unwrap_or_else(|| gap.filter.0.clone()),
        since: (gap.window.since > 0).then_some(gap.window.since),
        until: (gap.window.until < Window::OPEN).then_some(gap.window.until),
        reason: gap.reason.to_string(),
    };
    let failed = |gap: &&engine::Gap| match gap.reason {
        GapReason::Unreachable(_) => counters.connections == 0,
        GapReason::Store(_) => true,
        _ => false,
    };
    RelayReport {
        relay: report.relay.clone(),
        method: report.methods.first().copied(),
        relied_on_secs: report.relied_on_secs,
        fallback: report.fallbacks.get("negentropy").cloned(),
        received: counters.received,
        stored: counters.stored,
        duplicate: counters.duplicate,
        invalid: counters.invalid,
        rejected: counters.unwanted,
        published: counters.published,
        refused: counters.refused,
        pages: counters.pages,
        rounds: counters.rounds,
        would_store: counters.would_store,
        would_publish: counters.would_publish,
        bytes_in: counters.bytes_in,
        bytes_out: counters.bytes_out,
        health: report.health,
        live_refused: report.live_refused.clone(),
        complete: report.complete,
        gaps: report.gaps.iter().map(gap).collect(),
        error: report.gaps.iter().find(failed).map(|gap| gap.reason.to_string()),
    }
}

/// How far a relay is, as the view shows it.
fn progress_of(report: &engine::RelayReport) -> RelayProgress {
    let counters = &report.counters;
    let phase = match report.phase {
        engine::Phase::Waiting => {
            Phase::Waiting(report.last_error.clone().unwrap_or_else(|| "the next attempt".to_owned()))
        }
        engine::Phase::Connecting => Phase::Connecting,
        engine::Phase::Syncing if counters.published > 0 => Phase::Publishing,
        engine::Phase::Syncing if counters.received == 0 && counters.rounds > 0 => Phase::Reconciling,
        engine::Phase::Syncing => Phase::Fetching,
        engine::Phase::Cooldown => Phase::Waiting("the relay limits how much it is asked".to_owned()),
        engine::Phase::Live => Phase::Live,
        engine::Phase::Polling => {
            Phase::Waiting("the relay does not send what is new as it comes; it is asked again later".to_owned())
        }
        engine::Phase::Done if report.complete => Phase::Ended("complete".to_owned()),
        engine::Phase::Done => Phase::Ended("ended with gaps".to_owned()),
    };
    RelayProgress {
        relay: report.relay.clone(),
        phase,
        events: counters.received,
        published: counters.published,
        rounds: counters.rounds,
        pages: counters.pages,
        bytes_in: counters.bytes_in,
        bytes_out: counters.bytes_out,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::ingest::Verified;
    use crate::native::serve::RelayService;
    use crate::peer::View;
    use crate::protocol::{Event, ItemSet};
    use crate::sample::{SampleConfig, SampleKinds, generate};
    use crate::serve::ServeConfig;
    use crate::store::tables::Damaged;
    use crate::store::{
        Arrivals, Batch, MemoryStore, Outcome, Page, Query, Record, RequestContext, Sequence, Snapshot, Store,
    };

    const EVENTS: usize = 50;

    /// What becomes of commits.
    #[derive(Clone, Copy)]
    enum Commits {
        Take(Duration),
        Hang,
        Fail,
    }

    /// A store whose commits take their time, or for ever, or fail.
    struct OddStore {
        inner: MemoryStore,
        commits: Commits,
        commit_has_begun: AtomicBool,
    }

    impl OddStore {
        fn new(commits: Commits) -> Self {
            Self { inner: MemoryStore::default(), commits, commit_has_begun: AtomicBool::default() }
        }
    }

    type Fallible<T> = Result<T, <MemoryStore as Store>::Error>;

    impl Store for OddStore {
        type Error = <MemoryStore as Store>::Error;

        async fn load(&self) -> Fallible<Snapshot> {
            self.inner.load().await
        }

        async fn commit(&self, batch: Batch) -> Fallible<Vec<Outcome>> {
            self.commit_has_begun.store(true, Ordering::Relaxed);
            match self.commits {
                Commits::Take(duration) => tokio::time::sleep(duration).await,
                Commits::Hang => std::future::pending().await,
                Commits::Fail => return Err(Damaged { what: "everything".to_owned() }),
            }
            self.inner.commit(batch).await
        }

        async fn known(&self, ids: Vec<[u8; 32]>, view: &View) -> Fallible<Vec<bool>> {
            self.inner.known(ids, view).await
        }

        async fn items(&self, filter: &Filter, window: Window, view: &View) -> Fallible<Arc<ItemSet>> {
            self.inner.items(filter, window, view).await
        }

        async fn events(&self, ids: Vec<[u8; 32]>) -> Fallible<Vec<Option<Record>>> {
            self.inner.events(ids).await
        }

        async fn query(&self, query: Query) -> Fallible<Page> {
            self.inner.query(query).await
        }

        async fn count(&self, filters: Vec<Filter>, view: &View, now_secs: u64) -> Fallible<u64> {
            self.inner.count(filters, view, now_secs).await
        }

        async fn contexts(&self, ids: Vec<[u8; 32]>) -> Fallible<Vec<Option<RequestContext>>> {
            self.inner.contexts(ids).await
        }

        async fn arrivals(&self, after: Sequence, limit: usize, bytes_max: usize) -> Fallible<Arrivals> {
            self.inner.arrivals(after, limit, bytes_max).await
        }

        async fn last_arrival(&self) -> Fallible<Sequence> {
            self.inner.last_arrival().await
        }
    }

    fn events() -> Vec<Event> {
        generate(&SampleConfig { events: EVENTS, kinds: SampleKinds::Regular, ..SampleConfig::default() })
    }

    async fn put(store: &MemoryStore, events: &[Event]) {
        let events = events.iter().cloned().map(Verified::trust).collect();
        store.commit(Batch { events, ..Batch::default() }).await.unwrap();
    }

    async fn serve(store: &Arc<MemoryStore>) -> RelayService {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        RelayService::bind(listen, ServeConfig::default(), store.clone()).await.unwrap()
    }

    fn over<S: Store>(store: S) -> Arc<NativeRuntime<S>> {
        Arc::new(NativeRuntime::new(store, SocketConfig::default(), None).unwrap())
    }

    /// `sync RELAY --live`.
    fn staying(relay: &RelayService) -> Job {
        #[derive(clap::Parser)]
        struct Harness {
            #[command(flatten)]
            sync: SyncArguments,
        }
        let harness = <Harness as clap::Parser>::parse_from(["sync", relay.url().as_str(), "--live"]);
        Job { timeout: Some(Duration::from_secs(60)), ..Job::new(&harness.sync).unwrap() }
    }

    /// Syncs until a commit is under way, then ends by the time limit. What came of it, how long the end took, and what
    /// is held.
    async fn stop_during_commit(commits: Commits) -> (Result<Report, Failure>, Duration, usize) {
        let theirs = Arc::new(MemoryStore::default());
        put(&theirs, &events()).await;
        let relay = serve(&theirs).await;
        for timeout in [300, 3_000, 30_000].map(Duration::from_millis) {
            let runtime = over(OddStore::new(commits));
            let mut job = Job::of(vec![relay.url()], vec![Filter::new()]);
            job.timeout = Some(timeout);
            let clock = runtime.clock();
            let begun = clock.now().instant;
            let result = job.run(runtime.clone(), |_, _| {}).await;
            let took = clock.now().instant - begun;
            // A busy machine may not have come so far yet.
            if runtime.store().commit_has_begun.load(Ordering::Relaxed) {
                let held = runtime.store().count(vec![Filter::new()], &View::all(), 0).await.unwrap();
                return (result, took.saturating_sub(timeout), held as usize);
            }
        }
        panic!("no commit was begun");
    }

    /// Reported as privkeyio/wisp#140: a shutdown hung. Here it is the store that does not come to an end.
    #[tokio::test]
    async fn a_stop_waits_for_a_commit_but_not_for_ever() {
        let (result, took, held) = stop_during_commit(Commits::Take(Duration::from_millis(700))).await;
        let report = result.unwrap_or_else(|failure| panic!("{failure:?}"));
        assert_eq!((report.relays[0].stored, held), (EVENTS as u64, EVENTS), "what had come is committed");
        assert!(took < STOP_TIMEOUT, "{took:?}");

        let (result, took, held) = stop_during_commit(Commits::Hang).await;
        assert!(result.is_err_and(|failure| failure.to_string().contains("the store does not finish")));
        assert_eq!(held, 0);
        assert!(took + super::super::SHUTDOWN_TIMEOUT < Duration::from_secs(2), "{took:?}");
    }

    /// Who stays used to make one pass and no other: what no live subscription brings never came.
    #[tokio::test]
    async fn who_stays_looks_at_everything_again_from_time_to_time() {
        let (events, theirs) = (events(), Arc::new(MemoryStore::default()));
        put(&theirs, &events[1..]).await;
        let relay = serve(&theirs).await;
        let mut job = staying(&relay);
        (job.config.full_pass_min, job.config.full_pass_max) = (Duration::from_millis(300), Duration::from_millis(400));
        let ours = over(MemoryStore::default());
        let hold = async |count: usize| {
            while ours.store().count(vec![Filter::new()], &View::all(), 0).await.unwrap() != count as u64 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            ended = job.run(ours.clone(), |_, _| {}) => panic!("not all of it came: {ended:?}"),
            () = async {
                hold(EVENTS - 1).await;
                // Behind the back of the relay service, which tells nobody.
                put(&theirs, &events[..1]).await;
                hold(EVENTS).await;
            } => {}
        }
    }

    #[tokio::test]
    async fn who_stays_ends_when_the_store_fails() {
        let theirs = Arc::new(MemoryStore::default());
        put(&theirs, &events()).await;
        let relay = serve(&theirs).await;
        let began = tokio::time::Instant::now();
        let report = staying(&relay).run(over(OddStore::new(Commits::Fail)), |_, _| {}).await;
        let report = report.unwrap_or_else(|failure| panic!("{failure:?}"));
        assert!(began.elapsed() < Duration::from_secs(30), "not by the time limit");
        assert!(report.relays[0].error.as_ref().is_some_and(|error| error.contains("the store failed")), "{report:?}");
    }
}
