//! The store itself: questions, commits, and what is told of its condition.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_channel::mpsc;
use futures_util::lock::Mutex as AsyncMutex;

use super::backing::{Backing, BackingError, EPOCH, Write};
use super::cache::Cache;
use super::content::{Content, Loaded, View};
use super::layout::{self, META, SegmentName};
use super::restore::{self, Restored};
use super::segment::Segment;
use super::step::{Draft, Step, in_memory};
use super::{PackedConfig, PackedError, PackedFault};
use crate::peer;
use crate::protocol::{Filter, ItemSet, Window};
use crate::store::entry::Sequence;
use crate::store::tables::Damaged;
use crate::store::{Arrivals, Batch, Outcome, Page, Query, Record, RequestContext, Snapshot, Store, rules, select};

/// Who opens a store tries so often, while others open it at the same time.
const OPEN_TRIES: usize = 5;
/// So many changes of condition wait for each listener.
const CONDITIONS_WAITING_MAX: usize = 16;
const KIND_DELETION: u16 = 5;

/// A store of few, large records: see [the module](super). Clones share it.
#[derive(Debug)]
pub struct PackedStore<B> {
    inner: Arc<Inner<B>>,
}

impl<B> Clone for PackedStore<B> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

#[derive(Debug)]
struct Inner<B> {
    backing: B,
    name: Arc<str>,
    config: PackedConfig,
    epoch: u64,
    state: Mutex<State>,
    /// Held by the one who commits.
    writer: AsyncMutex<Writer>,
}

#[derive(Debug)]
struct State {
    content: Content,
    cache: Cache,
    condition: Condition,
    listeners: Vec<mpsc::Sender<Condition>>,
}

#[derive(Debug, Default)]
struct Writer {
    /// A write was begun, and what became of it is not known.
    is_stale: bool,
    is_deposed: bool,
}

/// How a store does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Condition {
    /// The last commit succeeded.
    #[default]
    Good,
    /// The last commit found no space.
    Full(String),
    /// It was opened elsewhere since.
    Deposed,
    /// The last commit failed, for the reason given.
    Failed(String),
}

impl Condition {
    fn after(commit: &Result<Vec<Outcome>, PackedFault>) -> Self {
        match commit {
            Ok(_) => Self::Good,
            Err(PackedFault::Quota(detail)) => Self::Full(detail.clone()),
            Err(PackedFault::Deposed) => Self::Deposed,
            Err(fault) => Self::Failed(fault.to_string()),
        }
    }
}

/// What a store takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Events that are held.
    pub events: u64,
    /// Events that are remembered as gone.
    pub gone: u64,
    /// The size of segments and index, in bytes.
    pub bytes: u64,
    /// The part of it that the index takes, in memory, too.
    pub index_bytes: u64,
    /// See [`PackedConfig::bytes_max`].
    pub bytes_max: Option<u64>,
    /// How many segments there are.
    pub segments: u64,
    /// What is dated no later than this, in seconds since 1970, was pruned.
    pub floor_secs: Option<u64>,
}

impl<B: Backing> PackedStore<B> {
    /// Opens the store in `backing`, which becomes one if it is empty. Whoever had it open has it no more.
    ///
    /// # Errors
    /// It cannot be read and written, is damaged, is another program's or has a newer format.
    pub async fn open(backing: B, config: PackedConfig) -> Result<Self, PackedError> {
        let name: Arc<str> = backing.name().into();
        let opened = open(&backing, &config).await;
        let (content, epoch) = opened.map_err(|fault| PackedError { name: name.clone(), fault })?;
        let cache = Cache::new(config.cache_bytes_max);
        let state = State { content, cache, condition: Condition::Good, listeners: Vec::new() };
        let (state, writer) = (Mutex::new(state), AsyncMutex::default());
        Ok(Self { inner: Arc::new(Inner { backing, name, config, epoch, state, writer }) })
    }

    /// What it is kept in.
    pub fn backing(&self) -> &B {
        &self.inner.backing
    }

    /// How it does.
    pub fn condition(&self) -> Condition {
        self.inner.state().condition.clone()
    }

    /// Every change of its condition from now on. Who does not listen misses what is more than a few changes.
    pub fn conditions(&self) -> mpsc::Receiver<Condition> {
        let (sender, receiver) = mpsc::channel(CONDITIONS_WAITING_MAX);
        self.inner.state().listeners.push(sender);
        receiver
    }

    /// What it takes.
    pub fn usage(&self) -> Usage {
        let state = self.inner.state();
        let content = &state.content;
        let rows: u64 = content.runs.iter().map(|run| run.rows() as u64).sum();
        let held: u64 = content.segments.values().map(|name| u64::from(name.bodies) - name.dead(&content.fates)).sum();
        Usage {
            events: held,
            gone: rows.saturating_sub(held),
            bytes: content.bytes(),
            index_bytes: content.runs_bytes(),
            bytes_max: self.inner.config.bytes_max,
            segments: content.segments.len() as u64,
            floor_secs: content.meta.floor_secs,
        }
    }

    async fn ask<R>(&self, ask: impl Fn(&View<'_>) -> Result<R, Damaged>) -> Result<R, PackedError> {
        let result = self.inner.ask(ask, true).await;
        if let Err(PackedFault::Deposed) = &result {
            self.inner.note(Condition::Deposed);
        }
        result.map_err(|fault| PackedError { name: self.inner.name.clone(), fault })
    }
}

async fn open<B: Backing>(backing: &B, config: &PackedConfig) -> Result<(Content, u64), PackedFault> {
    let mut tries = 0;
    loop {
        let mut restored = restore::restore(backing.load().await?)?;
        let mut write = Write { epoch: restored.epoch, ..Write::default() };
        if restored.has_lost_runs {
            rebuild(backing, config, &mut restored, &mut write).await?;
        }
        write.deletes.append(&mut restored.useless);
        // Zero is for none.
        let epoch = restored.epoch.checked_add(1).unwrap_or(1);
        write.puts.push((layout::index(EPOCH.to_owned()), Bytes::copy_from_slice(&epoch.to_le_bytes())));
        write.puts.push(layout::put_json(META.to_owned(), &restored.content.meta));
        match backing.write(write).await {
            Ok(()) => return Ok((restored.content, epoch)),
            // Somebody else opens it at the same moment.
            Err(BackingError::Deposed) if tries < OPEN_TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes again what runs that are lost knew.
async fn rebuild<B: Backing>(
    backing: &B,
    config: &PackedConfig,
    restored: &mut Restored,
    write: &mut Write,
) -> Result<(), PackedFault> {
    let content = &mut restored.content;
    let mut segments = Loaded::new();
    let names: Vec<SegmentName> = content.segments.values().copied().collect();
    for names in parts(&names, config.read_bytes_max) {
        for (name, segment) in read(backing, names).await? {
            let lost = || PackedFault::Damaged(format!("segment {} is missing", name.text()));
            segments.insert(name.text(), segment.ok_or_else(lost)?);
        }
    }
    let segments: Vec<Segment> = segments.into_values().collect();
    content.meta.next_run += 1;
    if let Some(made) = restore::rebuilt(content, &segments, content.meta.next_run, &config.store)? {
        write.puts.push((layout::index(layout::run_name(made.run.number)), made.record));
        content.runs.push(Arc::new(made.run));
    }
    Ok(())
}

/// Parts of up to so many bytes, or of one segment.
fn parts(names: &[SegmentName], bytes_max: usize) -> impl Iterator<Item = &[SegmentName]> {
    let mut rest = names;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |name: &&SegmentName| {
            bytes += name.bytes as usize;
            bytes <= bytes_max
        };
        let count = rest.iter().take_while(fits).count().max(1).min(rest.len());
        let (part, others) = rest.split_at(count);
        rest = others;
        (!part.is_empty()).then_some(part)
    })
}

async fn read<B: Backing>(
    backing: &B,
    names: &[SegmentName],
) -> Result<Vec<(SegmentName, Option<Segment>)>, PackedFault> {
    let records = backing.read(names.iter().map(SegmentName::text).collect()).await?;
    let segments = names.iter().zip(records).map(|(name, record)| {
        let segment = record.map(|bytes| Segment::open(name, &bytes)).transpose();
        segment.map(|segment| (*name, segment)).map_err(PackedFault::from)
    });
    segments.collect()
}

impl<B: Backing> Inner<B> {
    // Changes are worked out first and then applied, so a panic elsewhere leaves the state whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks until nothing that the answer needs is missing in memory. Who commits must not refresh.
    async fn ask<R>(
        &self,
        ask: impl Fn(&View<'_>) -> Result<R, Damaged>,
        mut may_refresh: bool,
    ) -> Result<R, PackedFault> {
        let mut loaded = Loaded::new();
        loop {
            let missing = match self.attempt(&ask, &loaded) {
                Ok(result) => return result,
                Err(missing) => missing,
            };
            let part = parts(&missing, self.config.read_bytes_max).next().unwrap_or_default();
            for (name, segment) in read(&self.backing, part).await? {
                match segment {
                    Some(segment) => {
                        self.state().cache.insert(name.text(), segment.clone());
                        loaded.insert(name.text(), segment);
                    }
                    // It was packed anew since.
                    None if !self.has(&name) => {}
                    // By a commit of which is not known what became, or by whoever opened the store since.
                    None if may_refresh => {
                        may_refresh = false;
                        self.reload(&mut *self.writer.lock().await).await?;
                    }
                    None => return Err(PackedFault::Damaged(format!("segment {} is missing", name.text()))),
                }
            }
        }
    }

    fn has(&self, name: &SegmentName) -> bool {
        self.state().content.segments.get(&name.first) == Some(name)
    }

    /// The answer, or what must be loaded for it.
    fn attempt<R>(
        &self,
        ask: impl Fn(&View<'_>) -> Result<R, Damaged>,
        loaded: &Loaded,
    ) -> Result<Result<R, PackedFault>, Vec<SegmentName>> {
        let mut guard = self.state();
        let state = &mut *guard;
        let view = View::new(&state.content, &state.cache, loaded);
        let answer = ask(&view);
        let (used, missing) = (view.used.into_inner(), view.missing.into_inner());
        used.iter().for_each(|name| state.cache.touch(name));
        match missing.is_empty() {
            true => Ok(answer.map_err(PackedFault::from)),
            false => Err(missing.into_values().collect()),
        }
    }

    /// Reads everything again, if it is not known what is written.
    async fn refresh(&self, writer: &mut Writer) -> Result<(), PackedFault> {
        if writer.is_stale { self.reload(writer).await } else { Ok(()) }
    }

    /// Reads everything again.
    async fn reload(&self, writer: &mut Writer) -> Result<(), PackedFault> {
        let restored = restore::restore(self.backing.load().await?)?;
        if restored.epoch != self.epoch {
            writer.is_deposed = true;
            return Err(PackedFault::Deposed);
        }
        if restored.has_lost_runs {
            return Err(PackedFault::Damaged("a run of the index: open the store again".to_owned()));
        }
        // Nothing of it counts as swept: what was written unnoticed may have expired by a clock that went back since.
        self.state().content = restored.content;
        writer.is_stale = false;
        Ok(())
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, PackedFault> {
        let mut writer = self.writer.lock().await;
        if writer.is_deposed {
            return Err(PackedFault::Deposed);
        }
        self.refresh(&mut writer).await?;
        match self.work_out(batch).await {
            Ok((outcomes, None)) => Ok(outcomes),
            Ok((outcomes, Some(step))) => self.write(&mut writer, step).await.map(|()| outcomes),
            Err(fault) => {
                // What is missing may have been packed anew by whoever opened the store since.
                if matches!(fault, PackedFault::Damaged(_)) {
                    self.reload(&mut writer).await?;
                }
                Err(fault)
            }
        }
    }

    /// What is to be written, if anything is.
    async fn work_out(&self, batch: Batch) -> Result<(Vec<Outcome>, Option<Step>), PackedFault> {
        let mut draft = self.draft(batch).await?;
        let outcomes = draft.take_outcomes();
        let step = if draft.is_empty() { None } else { Some(self.step(draft).await?) };
        Ok((outcomes, step))
    }

    async fn draft(&self, batch: Batch) -> Result<Draft, PackedFault> {
        // Only deletion requests ask for bodies, and may have to ask again.
        if batch.events.iter().any(|event| event.kind_number() == KIND_DELETION) {
            let again = || Batch {
                events: batch.events.clone(),
                contexts: batch.contexts.clone(),
                coverage: batch.coverage.clone(),
                now_secs: batch.now_secs,
            };
            let changes = self.ask(|view| rules::apply(view, again(), &self.config.store), false).await?;
            return Ok(Draft::new(&self.state().content, changes, &self.config));
        }
        let (state, loaded) = (self.state(), Loaded::new());
        let changes = rules::apply(&View::new(&state.content, &state.cache, &loaded), batch, &self.config.store)?;
        Ok(Draft::new(&state.content, changes, &self.config))
    }

    async fn step(&self, draft: Draft) -> Result<Step, PackedFault> {
        let (mut loaded, missing) = in_memory(draft.needs(), &self.state().cache);
        let names: Vec<SegmentName> = draft.needs().filter(|name| missing.contains(&name.text())).copied().collect();
        for part in parts(&names, self.config.read_bytes_max) {
            let found = read(&self.backing, part).await?.into_iter();
            loaded.extend(found.filter_map(|(name, segment)| Some((name.text(), segment?))));
        }
        Ok(draft.step(&self.state().content, &loaded, &self.config, self.epoch)?)
    }

    async fn write(&self, writer: &mut Writer, step: Step) -> Result<(), PackedFault> {
        // It stays so if this is dropped before it has an answer.
        writer.is_stale = true;
        let mut result = self.backing.write(step.write.clone()).await;
        if let Err(BackingError::Lost(reason)) = &result {
            tracing::warn!("store {}: {reason}; trying again", self.name);
            self.refresh(writer).await?;
            if self.state().content.meta.commits == step.meta.commits {
                return Ok(());
            }
            writer.is_stale = true;
            result = self.backing.write(step.write.clone()).await;
        }
        writer.is_stale = matches!(result, Err(BackingError::Lost(_) | BackingError::Failed(_)));
        writer.is_deposed = matches!(result, Err(BackingError::Deposed));
        result?;
        let state = &mut *self.state();
        step.apply(&mut state.content, &mut state.cache);
        Ok(())
    }

    /// Tells those who listen.
    fn note(&self, condition: Condition) {
        let mut state = self.state();
        if state.condition != condition {
            state.condition = condition.clone();
            // One that is full is behind, and still told of the next; one that is gone is no more.
            state.listeners.retain_mut(|listener| match listener.try_send(condition.clone()) {
                Ok(()) => true,
                Err(error) => error.is_full(),
            });
        }
    }
}

impl<B: Backing> Store for PackedStore<B> {
    type Error = PackedError;

    async fn load(&self) -> Result<Snapshot, PackedError> {
        Ok(Snapshot { coverage: self.inner.state().content.coverage.values().cloned().collect() })
    }

    async fn commit(&self, batch: Batch) -> Result<Vec<Outcome>, PackedError> {
        let result = self.inner.commit(batch).await;
        self.inner.note(Condition::after(&result));
        result.map_err(|fault| PackedError { name: self.inner.name.clone(), fault })
    }

    async fn known(&self, ids: Vec<[u8; 32]>, view: &peer::View) -> Result<Vec<bool>, PackedError> {
        self.ask(|tables| select::known(tables, &ids, view)).await
    }

    async fn items(&self, filter: &Filter, window: Window, view: &peer::View) -> Result<Arc<ItemSet>, PackedError> {
        self.ask(|tables| select::items(tables, filter, window, view).map(Arc::new)).await
    }

    async fn held_items(
        &self,
        filter: &Filter,
        window: Window,
        view: &peer::View,
        now_secs: u64,
    ) -> Result<Arc<ItemSet>, PackedError> {
        self.ask(|tables| select::held_items(tables, filter, window, view, now_secs).map(Arc::new)).await
    }

    async fn events(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<Record>>, PackedError> {
        self.ask(|tables| select::events(tables, &ids)).await
    }

    async fn query(&self, query: Query) -> Result<Page, PackedError> {
        self.ask(|tables| select::page(tables, &query)).await
    }

    async fn count(&self, filters: Vec<Filter>, view: &peer::View, now_secs: u64) -> Result<u64, PackedError> {
        self.ask(|tables| select::count(tables, &filters, view, now_secs)).await
    }

    async fn contexts(&self, ids: Vec<[u8; 32]>) -> Result<Vec<Option<RequestContext>>, PackedError> {
        self.ask(|tables| select::contexts(tables, &ids)).await
    }

    async fn arrivals(&self, after: Sequence, limit: usize, bytes_max: usize) -> Result<Arrivals, PackedError> {
        self.ask(|tables| select::arrivals(tables, after, limit, bytes_max)).await
    }

    async fn last_arrival(&self) -> Result<Sequence, PackedError> {
        Ok(select::last_arrival(&View::new(&self.inner.state().content, &Cache::new(0), &Loaded::new())))
    }

    fn floor_secs(&self) -> Option<u64> {
        self.inner.state().content.meta.floor_secs
    }
}
