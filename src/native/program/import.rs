//! `relaysync import`.
//!
//! Three stages with bounded queues between them: a thread reads lines, the blocking pool parses and verifies on all
//! cores, a task commits. So memory does not grow with the file, and no stage waits for another without need.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures_util::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::arguments::StoreArguments;
use super::lines::{LINE_BYTES_MAX, Line, Lines};
use super::{Exit, Failure, numbers, store};
use crate::ingest::{Verified, verify};
use crate::native::clock::unix_secs;
use crate::peer::View;
use crate::protocol::{Event, lines};
use crate::store::{Batch, Outcome, Store};

/// Batches of lines that wait to be checked, at most.
const LINE_BATCHES_MAX: usize = 8;
/// Batches of lines that are being checked at a time, at most.
const CHECKS_MAX: usize = 16;
/// Events of one commit; the last batch of lines may exceed it.
const COMMIT_EVENTS_MIN: usize = 2_000;
/// Bytes of events of one commit; the last batch of lines may exceed it.
const COMMIT_BYTES_MIN: usize = 4 << 20;
/// Events wait no longer than this for others to be committed with, while none come.
const COMMIT_IDLE: Duration = Duration::from_millis(300);
/// Faulty lines that are shown, the first ones.
const FAULTS_SHOWN_MAX: usize = 10;
/// How often the progress line is drawn anew.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Read events from stdin, JSON, one a line, check them and store them.
///
/// Lines that are no genuine event are reported with their numbers, and the rest is imported; the exit status is 3 then.
#[derive(Debug, Clone, Args)]
pub(super) struct ImportArguments {
    #[command(flatten)]
    store: StoreArguments,
    /// Do not check ids and signatures: for files that you wrote yourself.
    #[arg(long)]
    no_verify: bool,
}

pub(super) async fn run(arguments: ImportArguments) -> Result<Exit, Failure> {
    let store = Arc::new(store::open(&arguments.store.path).await?);
    let summary = import(store, !arguments.no_verify, || io::stdin().lock()).await?;
    summary.print();
    Ok(if summary.faults() == 0 { Exit::Complete } else { Exit::Partial })
}

async fn import<S, R>(
    store: Arc<S>,
    verified: bool,
    open: impl FnOnce() -> R + Send + 'static,
) -> Result<Summary, Failure>
where
    S: Store,
    R: io::Read,
{
    let (lines_in, lines_out) = mpsc::channel(LINE_BATCHES_MAX);
    // Not on the blocking pool: whoever types into the terminal would hold up the end of the program.
    std::thread::spawn(move || read_lines(open(), &lines_in));
    let (batches_in, batches_out) = mpsc::channel(1);
    let committing = tokio::spawn(commit_all(Arc::clone(&store), batches_out));

    let mut summary = Summary::default();
    let batches = stream::unfold(lines_out, |mut lines| async { lines.recv().await.map(|batch| (batch, lines)) });
    let checks = batches.map(|lines| async { check(&*store, lines?, verified).await }).buffered(CHECKS_MAX);
    let mut checks = std::pin::pin!(checks);
    let mut pending = Pending::default();
    loop {
        let next = match timeout(COMMIT_IDLE, checks.next()).await {
            Ok(Some(checked)) => {
                let mut checked = checked?;
                pending.append(&mut checked.events);
                summary.add(checked);
                Next::More
            }
            Ok(None) => Next::End,
            Err(_) => Next::Idle,
        };
        // Once the committer has failed it takes nothing more; it says why below.
        if pending.is_due(&next) && batches_in.send(pending.take()).await.is_err() || matches!(next, Next::End) {
            break;
        }
    }
    drop(batches_in);
    summary.outcomes = committing.await.map_err(Failure::new)??;
    Ok(summary)
}

/// Checked events that wait to be committed.
#[derive(Default)]
struct Pending {
    events: Vec<Verified<Event>>,
    bytes: usize,
}

/// What the checks came to.
enum Next {
    More,
    Idle,
    End,
}

impl Pending {
    fn append(&mut self, events: &mut Vec<Verified<Event>>) {
        self.bytes += events.iter().map(|event| event.json().len()).sum::<usize>();
        self.events.append(events);
    }

    fn is_due(&self, next: &Next) -> bool {
        match next {
            Next::More => self.events.len() >= COMMIT_EVENTS_MIN || self.bytes >= COMMIT_BYTES_MIN,
            Next::Idle | Next::End => !self.events.is_empty(),
        }
    }

    fn take(&mut self) -> Vec<Verified<Event>> {
        std::mem::take(self).events
    }
}

fn read_lines(input: impl io::Read, batches: &mpsc::Sender<Result<Vec<Line>, Failure>>) {
    let mut lines = Lines::new(input);
    loop {
        let batch = lines.next_batch().map_err(|error| Failure::new(format!("cannot read stdin: {error}")));
        let over = batch.as_ref().map_or(true, Vec::is_empty);
        // At the end, and when nobody takes more, there is nothing left to do.
        if batch.as_ref().is_ok_and(Vec::is_empty) || batches.blocking_send(batch).is_err() || over {
            return;
        }
    }
}

/// Commits each batch; gives the number of events of each outcome.
async fn commit_all<S: Store>(
    store: Arc<S>,
    mut batches: mpsc::Receiver<Vec<Verified<Event>>>,
) -> Result<BTreeMap<Outcome, u64>, Failure> {
    let progress = ProgressBar::new_spinner().with_style(style());
    progress.enable_steady_tick(PROGRESS_INTERVAL);
    let mut outcomes = BTreeMap::new();
    while let Some(events) = batches.recv().await {
        let count = events.len();
        let batch = Batch { events, now_secs: unix_secs(), ..Batch::default() };
        for outcome in store.commit(batch).await.map_err(Failure::new)? {
            *outcomes.entry(outcome).or_insert(0) += 1;
        }
        progress.inc(count as u64);
        tracing::debug!("committed {count} events");
    }
    progress.finish_and_clear();
    Ok(outcomes)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {human_pos} events, {per_sec}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// What became of a batch of lines.
#[derive(Debug, Default)]
struct Checked {
    lines: u64,
    events: Vec<Verified<Event>>,
    /// Events that the store knows already: their signatures were not checked again.
    known: u64,
    faults: Vec<Fault>,
}

/// A line that is no genuine event.
#[derive(Debug)]
struct Fault {
    line: u64,
    reason: String,
}

async fn check<S: Store>(store: &S, lines: Vec<Line>, verified: bool) -> Result<Checked, Failure> {
    let mut checked = Checked { lines: lines.len() as u64, ..Checked::default() };
    let (mut events, faults) = on_pool(move || parse_all(lines)).await?;
    checked.faults = faults;
    if !verified {
        checked.events = events.into_iter().map(|(_, event)| Verified::trust(event)).collect();
        return Ok(checked);
    }
    let ids = events.iter().map(|(_, event)| event.id.to_bytes()).collect();
    let mut known = store.known(ids, &View::all()).await.map_err(Failure::new)?.into_iter();
    events.retain(|_| !known.next().unwrap_or(false));
    checked.known = checked.lines - checked.faults.len() as u64 - events.len() as u64;
    let (events, faults) = on_pool(move || verify_all(events)).await?;
    checked.events = events;
    checked.faults.extend(faults);
    checked.faults.sort_by_key(|fault| fault.line);
    Ok(checked)
}

fn parse_all(lines: Vec<Line>) -> (Vec<(u64, Event)>, Vec<Fault>) {
    let (mut events, mut faults) = (Vec::with_capacity(lines.len()), Vec::new());
    for Line { number: line, text } in lines {
        match text.map(|text| lines::parse(&text)) {
            Some(Ok(event)) => events.push((line, event)),
            Some(Err(reason)) => faults.push(Fault { line, reason }),
            None => faults.push(Fault { line, reason: format!("longer than {LINE_BYTES_MAX} bytes") }),
        }
    }
    (events, faults)
}

fn verify_all(events: Vec<(u64, Event)>) -> (Vec<Verified<Event>>, Vec<Fault>) {
    let (mut genuine, mut faults) = (Vec::with_capacity(events.len()), Vec::new());
    for (line, event) in events {
        let reason = match verify(event) {
            Ok(event) => {
                genuine.push(event);
                continue;
            }
            Err(why) => why.reason(),
        };
        faults.push(Fault { line, reason: reason.into() });
    }
    (genuine, faults)
}

async fn on_pool<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work).await.map_err(Failure::new)
}

/// What became of all lines.
#[derive(Debug, Default)]
struct Summary {
    lines: u64,
    known: u64,
    outcomes: BTreeMap<Outcome, u64>,
    faults_shown: Vec<Fault>,
    faults_more: u64,
}

impl Summary {
    fn add(&mut self, checked: Checked) {
        self.lines += checked.lines;
        self.known += checked.known;
        for fault in checked.faults {
            if self.faults_shown.len() < FAULTS_SHOWN_MAX {
                self.faults_shown.push(fault);
            } else {
                self.faults_more += 1;
            }
        }
    }

    fn faults(&self) -> u64 {
        self.faults_shown.len() as u64 + self.faults_more
    }

    fn print(&self) {
        for fault in &self.faults_shown {
            eprintln!("line {}: {}", fault.line, fault.reason);
        }
        if self.faults_more > 0 {
            eprintln!("and {}", numbers::counted(self.faults_more, "more faulty line"));
        }
        eprintln!("{self}");
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "read {}", numbers::counted(self.lines, "line"))?;
        let mut outcomes = self.outcomes.clone();
        *outcomes.entry(Outcome::Stored).or_default() += 0;
        if self.known > 0 {
            *outcomes.entry(Outcome::Duplicate).or_default() += self.known;
        }
        for (outcome, events) in &outcomes {
            write!(f, ", {} {}", numbers::count(*events), word(*outcome))?;
        }
        match self.faults() {
            0 => Ok(()),
            faults => write!(f, ", {} faulty", numbers::count(faults)),
        }
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Stored => "stored",
        Outcome::Duplicate => "known already",
        Outcome::Superseded => "superseded by newer versions",
        Outcome::Deleted => "deleted by their authors",
        Outcome::Vanished => "of authors who asked to vanish",
        Outcome::Expired => "expired",
        Outcome::Pruned => "older than what there is room for",
        Outcome::Ephemeral => "ephemeral, which are not stored",
    }
}
