//! Set reconciliation (NIP-77), window by window.
//!
//! A window is one negentropy session: opened with what is held of it, answered until both sides agree. Ids that the
//! relay has and we lack go to the download at once; a window that needed any is reconciled again when they are here,
//! since some relays end a session early with items missing. Only when nothing is missing is a window proven.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use negentropy::{Id, Negentropy};

use super::form;
use crate::protocol::{Filter, Item, ItemSet, ItemView, Window};

/// The state of reconciling one history.
pub struct Reconcile {
    set: Arc<ItemSet>,
    windows: VecDeque<Window>,
    windows_opened: usize,
    session: Option<Session>,
}

struct Session {
    window: Window,
    protocol: Negentropy<'static, ItemView>,
    /// Sent when the window is (re)opened.
    state: State,
    rounds: u32,
    pass: u32,
    /// What this pass found missing here and has not brought yet.
    needed: BTreeSet<[u8; 32]>,
    /// How many events this pass has brought.
    brought: usize,
    /// What all passes have brought, to be counted as held.
    arrived: Vec<Item>,
    /// Of these, the ids of what is not genuine.
    forged: BTreeSet<[u8; 32]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// To be opened.
    Ready,
    /// Opened, or a message sent: the relay is to answer.
    Asking,
    /// Both sides agree on the differences; what was needed is being downloaded.
    Settling,
}

/// What an answer leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this; go on.
    Reply(Vec<u8>),
    /// The session is over: close it. The window waits for what it needs.
    Agreed,
    /// The relay's message makes no sense, or there is no end to them.
    Failed(String),
}

/// What a finished window leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowEnd {
    /// Nothing is missing.
    Proven(Window),
    /// It is reconciled once more.
    Again,
    /// Differences remain after the last pass.
    Unsettled(Window, usize),
}

impl Reconcile {
    /// Reconciles `set`, what is held, over `window`, in windows of at most `items_max` held items. The newest window
    /// is open upwards if `window` is.
    pub fn new(set: Arc<ItemSet>, window: Window, items_max: usize) -> Self {
        let windows = cut(&set, window, items_max.max(1));
        Self { set, windows: windows.into(), windows_opened: 0, session: None }
    }

    /// The filter and first message of the next session, if one is to be opened now.
    pub fn poll_ask(&mut self, filter: &Filter, frame_bytes_max: u64) -> Option<(Filter, Vec<u8>)> {
        if self.session.is_none() {
            let window = self.windows.pop_front()?;
            self.windows_opened += 1;
            self.session = Some(Session::new(ItemView::new(self.set.clone(), window), window, frame_bytes_max)?);
        }
        let session = self.session.as_mut().filter(|session| session.state == State::Ready)?;
        session.state = State::Asking;
        session.rounds = 1;
        let message = session.protocol.initiate().ok()?;
        Some((session.window.apply(filter), message))
    }

    /// Ids that are remembered, beside the set.
    pub fn ids(&self) -> usize {
        self.session.as_ref().map_or(0, |session| session.needed.len() + session.arrived.len())
    }

    /// Does a session wait for the relay?
    pub fn is_asking(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.state == State::Asking)
    }

    /// Does a window wait for its downloads?
    pub fn is_settling(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.state == State::Settling)
    }

    /// A message of the relay. Ids that are missing here go to `need`, ids that are missing there to `have`.
    pub fn handle_message(
        &mut self,
        message: &[u8],
        rounds_max: u32,
        need: &mut Vec<[u8; 32]>,
        have: &mut Vec<[u8; 32]>,
    ) -> Step {
        let Some(session) = self.session.as_mut().filter(|session| session.state == State::Asking) else {
            return Step::Failed("a message without a session".into());
        };
        session.rounds += 1;
        if session.rounds > rounds_max {
            return Step::Failed(format!("no end after {rounds_max} rounds"));
        }
        if let [version] = message
            && *version != PROTOCOL_VERSION
        {
            return Step::Failed(format!("the relay speaks negentropy version {version:#x} only"));
        }
        if !form::is_whole(message) {
            return Step::Failed("a negentropy message that breaks off".into());
        }
        let (mut have_ids, mut need_ids): (Vec<Id>, Vec<Id>) = (Vec::new(), Vec::new());
        match session.protocol.reconcile_with_ids(message, &mut have_ids, &mut need_ids) {
            Ok(reply) => {
                // They come out of a hash set: in an order that is another one in each process.
                need_ids.sort_unstable();
                need.extend(need_ids.iter().map(|id| **id).filter(|id| session.needed.insert(*id)));
                have.extend(have_ids.iter().map(|id| **id));
                match reply {
                    Some(reply) => Step::Reply(reply),
                    None => {
                        session.state = State::Settling;
                        Step::Agreed
                    }
                }
            }
            Err(error) => Step::Failed(format!("malformed negentropy message: {error}")),
        }
    }

    /// An event that this window needed has come.
    pub fn handle_arrival(&mut self, item: Item) {
        if let Some(session) = &mut self.session
            && session.needed.remove(&item.id)
        {
            session.arrived.push(item);
            session.brought += 1;
        }
    }

    /// What came as an event that this window needed is not genuine: it is not held, and counts as what did not come.
    pub fn handle_invalid(&mut self, id: [u8; 32]) {
        if let Some(session) = &mut self.session {
            session.forged.insert(id);
        }
    }

    /// The downloads of the window are through. What was offered and did not come is reported elsewhere.
    pub fn handle_settled(&mut self, passes_max: u32, frame_bytes_max: u64) -> Option<WindowEnd> {
        let session = self.session.take_if(|session| session.state == State::Settling)?;
        if session.brought == 0 {
            return Some(WindowEnd::Proven(session.window));
        }
        if session.pass >= passes_max {
            return Some(WindowEnd::Unsettled(session.window, session.brought));
        }
        let pass = session.pass + 1;
        self.session = Some(self.again(session, frame_bytes_max)?);
        self.session.as_mut()?.pass = pass;
        Some(WindowEnd::Again)
    }

    /// A new session over the same window, that counts as held what the old one has brought.
    fn again(&self, old: Session, frame_bytes_max: u64) -> Option<Session> {
        let held = ItemView::new(self.set.clone(), old.window);
        let arrived: Vec<Item> = old.arrived.into_iter().filter(|item| !old.forged.contains(&item.id)).collect();
        let all: ItemSet = held.items().iter().copied().chain(arrived.iter().copied()).collect();
        let session = Session::new(ItemView::new(Arc::new(all), Window::ALL), old.window, frame_bytes_max)?;
        Some(Session { pass: old.pass, arrived, ..session })
    }

    /// The session was lost with the connection: the window is opened again.
    pub fn reset(&mut self, frame_bytes_max: u64) {
        if let Some(old) = self.session.take_if(|session| session.state != State::Settling) {
            let (needed, brought) = (old.needed.clone(), old.brought);
            self.session = self.again(old, frame_bytes_max).map(|session| Session { needed, brought, ..session });
        }
    }

    /// The relay takes no set of this size: smaller windows, by its stated cap or by halves. False if the window
    /// cannot be split any further, or there are too many windows by now.
    pub fn split(&mut self, records_max: Option<u64>, windows_max: usize, now_secs: u64) -> bool {
        let Some(session) = self.session.take() else { return false };
        let window = session.window;
        let held = self.set.range(window).len();
        let stated = records_max.and_then(|most| usize::try_from(most).ok()).filter(|most| *most > 0);
        let mut parts = match stated {
            // The relay's set may be larger than ours: stay well below its cap.
            Some(most) if held / 2 >= most => cut(&self.set, window, (most / 2).max(1)),
            _ => halves(&self.set, window, now_secs),
        };
        if parts.len() < 2 || self.windows_opened + self.windows.len() + parts.len() > windows_max {
            self.windows.push_front(window);
            return false;
        }
        while let Some(part) = parts.pop() {
            self.windows.push_front(part);
        }
        true
    }

    /// What is not proven yet, newest first. Nothing more is asked for.
    pub fn give_up(&mut self) -> Vec<Window> {
        let current = self.session.take().map(|session| session.window);
        current.into_iter().chain(std::mem::take(&mut self.windows)).collect()
    }

    /// Are all windows through?
    pub fn is_done(&self) -> bool {
        self.session.is_none() && self.windows.is_empty()
    }
}

/// Negentropy protocol version 1.
const PROTOCOL_VERSION: u8 = 0x61;

impl Session {
    fn new(view: ItemView, window: Window, frame_bytes_max: u64) -> Option<Self> {
        let protocol = Negentropy::owned(view, frame_bytes_max).ok()?;
        Some(Self {
            window,
            protocol,
            state: State::Ready,
            rounds: 0,
            pass: 1,
            needed: BTreeSet::new(),
            brought: 0,
            arrived: Vec::new(),
            forged: BTreeSet::new(),
        })
    }
}

impl std::fmt::Debug for Reconcile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconcile")
            .field("windows", &self.windows)
            .field("opened", &self.windows_opened)
            .finish_non_exhaustive()
    }
}

/// `window` in parts of at most `items_max` held items, newest first. A part never ends inside a second.
fn cut(set: &ItemSet, window: Window, items_max: usize) -> Vec<Window> {
    let range = set.range(window);
    let items = &set.items()[range];
    let (mut parts, mut until, mut end) = (Vec::new(), window.until, items.len());
    while end > items_max {
        // The lowest second from which on all items fit; a second with more items than fit stays one part.
        let fits = items[end - items_max - 1].created_at.saturating_add(1);
        let since = fits.min(items[end - 1].created_at);
        let begin = items.partition_point(|item| item.created_at < since);
        if begin == 0 {
            break;
        }
        parts.push(Window { since, until });
        (until, end) = (since - 1, begin);
    }
    parts.push(Window { since: window.since, until });
    parts
}

/// `window` in two: where half of what is held lies on each side, or, with little to go by, in the middle of time.
fn halves(set: &ItemSet, window: Window, now_secs: u64) -> Vec<Window> {
    let items = &set.items()[set.range(window)];
    let top = window.until.min(now_secs.max(window.since));
    let by_items =
        items.get(items.len() / 2).map(|item| item.created_at).filter(|since| *since > window.since && *since <= top);
    let since = match by_items.filter(|_| items.len() > 64) {
        Some(since) => since,
        None => window.since + (top - window.since) / 2 + 1,
    };
    // What lies above `top` is not cut any further: there is no end to the future.
    if since <= window.since || since > top {
        return vec![window];
    }
    vec![Window { since, until: window.until }, Window { since: window.since, until: since - 1 }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(times: impl IntoIterator<Item = u64>) -> Arc<ItemSet> {
        Arc::new(
            times
                .into_iter()
                .enumerate()
                .map(|(n, created_at)| {
                    let mut id = [0; 32];
                    id[..8].copy_from_slice(&(n as u64).to_be_bytes());
                    Item { created_at, id }
                })
                .collect(),
        )
    }

    fn covers(parts: &[Window], window: Window) {
        assert_eq!(parts[0].until, window.until);
        assert_eq!(parts.last().unwrap().since, window.since);
        assert!(parts.windows(2).all(|pair| pair[0].since == pair[1].until + 1), "{parts:?}");
    }

    #[test]
    fn windows_cover_all_and_never_cut_a_second() {
        let held = set((0..1000).map(|n| 1000 + n / 50));
        let parts = cut(&held, Window::ALL, 120);
        covers(&parts, Window::ALL);
        assert!(parts.len() >= 8);
        assert!(parts.iter().all(|part| held.range(*part).len() < 120 + 50));
        covers(&cut(&set([5; 100]), Window::ALL, 10), Window::ALL);
    }

    #[test]
    fn a_refused_set_is_halved_down_to_a_second() {
        let mut reconcile = Reconcile::new(set([]), Window { since: 0, until: 8 }, 100);
        let mut splits = 0;
        while reconcile.poll_ask(&Filter::new(), 4096).is_some() && reconcile.split(None, 4096, 8) {
            splits += 1;
        }
        assert!((3..=5).contains(&splits), "{splits}");
        assert_eq!(reconcile.windows[0].until - reconcile.windows[0].since, 0);
    }
}
