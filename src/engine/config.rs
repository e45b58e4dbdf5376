//! Every bound, timeout and default of the engine, named, with its unit.

use std::sync::Arc;
use std::time::Duration;

use super::Planted;
use crate::discover::DiscoverConfig;
use crate::peer::AccessRules;
use crate::store::Method;

/// What an engine does and within which bounds. [`Config::default`] is for a daemon, [`Config::one_shot`] for a job
/// that ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Stop at a relay once its interests are met or given up, and for good. Off: stay, and try again for ever.
    pub one_shot: bool,
    /// Which events are protected, and who may read and write them; until [`Command::SetAccess`](super::Command::SetAccess)
    /// says otherwise.
    pub access: Arc<AccessRules>,
    /// How relays are discovered from the repositories that events announce; `None` for not at all.
    pub discovery: Option<DiscoverConfig>,
    /// No relay is discovered before [`Command::AllHeld`](super::Command::AllHeld): else those that are known first are
    /// asked by what is known until then, and what they bring is judged by it.
    pub awaits_held: bool,
    /// Announcements, states and lists remembered that are not wanted, about 200 bytes each, so that they are not
    /// downloaded again before they are wanted.
    pub refused_ids_max: usize,
    /// Relays remembered for each of these, to be asked again once it is wanted.
    pub refused_relays_max: usize,
    /// Compare only: no event is downloaded for keeping, stored or published.
    pub dry_run: bool,
    /// Events that a dry run remembers, 32 bytes each, in order to count once what relays send twice.
    pub dry_run_ids_max: usize,

    /// Relays kept on record, whether anything is wanted of them or not; beyond it, one that nothing is wanted of is
    /// forgotten for each that is new.
    pub relays_kept_max: usize,
    /// Connection attempts, to whatever relays, that may be made at once; each further one waits for `connect_spacing`.
    pub connects_at_once_max: usize,
    /// The time between connection attempts to whatever relays, in the long run.
    pub connect_spacing: Duration,
    /// A connection attempt is given up after this.
    pub connect_timeout: Duration,
    /// A peer's information document (NIP-11), by which it proves who it is, is awaited this long once it is connected.
    pub identity_timeout: Duration,
    /// A peer that we authenticate to is asked nothing before its challenge, or for this long: it may show less to those that
    /// it does not know.
    pub challenge_wait: Duration,
    /// How often, within `live_retry`, all is asked of a peer again at once because it has accepted
    /// our authentication once more, as it may show more since then. Beyond it, that is left to the next look at gaps.
    pub auth_renewals_max: u32,
    /// Attempts in a row that brought nothing useful, before a one-shot job gives a relay up.
    pub attempts_max: u32,
    /// The backoff after the first failure; it doubles with each further one.
    pub backoff_base: Duration,
    /// The longest backoff.
    pub backoff_max: Duration,
    /// The shortest wait before a relay is tried again, whatever the jitter says.
    pub backoff_floor: Duration,
    /// Failures for this long make a relay dead.
    pub dead_after: Duration,
    /// How often a dead relay is tried.
    pub dead_retry: Duration,
    /// Rest after a relay asked for less traffic: 60 s is the usual limit, 5 s are reserve.
    pub rate_limit_cooldown: Duration,
    /// A relay that recovered counts as healthy after this.
    pub stable_after: Duration,

    /// A request without progress for this long has stalled.
    pub stall: Duration,
    /// A connection on which nothing has come for this long is probed, and cut if no frame comes within `stall` of it.
    pub probe_after: Duration,
    /// A moment that is handled this much later than it was due shows that the machine slept: see [`Command::Wake`].
    ///
    /// [`Command::Wake`]: super::Command::Wake
    pub suspend_gap: Duration,
    /// Stalls of one history before what is left of it becomes a gap.
    pub stalls_max: u32,
    /// A disconnect of up to this length is followed by a quick reconnect: only what may have been missed is fetched. By its
    /// own filters, a peer that asks who we are is looked at whole all the same.
    pub quick_reconnect_max: Duration,
    /// The shortest time from one full pass over a live relay to the next: everything is fetched again, whatever was
    /// proven before. Some of what a relay gets with an old date is never sent to live subscriptions.
    pub full_pass_min: Duration,
    /// The longest time from one full pass to the next; the moment is random between the two.
    pub full_pass_max: Duration,
    /// Filters with gaps are looked at again after this, unless the job is one-shot. It doubles with each further time, up
    /// to `full_pass_min`.
    pub gap_retry_base: Duration,
    /// Where a relay does not serve what is new live, it is asked for that this often, and whether it does by now.
    pub live_retry: Duration,
    /// How long what was proven counts when what is new is asked for every `live_retry`. What the relay got since then
    /// with an older date is found by a full pass.
    pub live_retry_proofs: Duration,
    /// How far before the last proven moment a quick reconnect begins, in seconds.
    pub overlap_secs: u64,
    /// A wall clock that goes back by more than this, in seconds, was wrong before: all that it dated is fetched anew.
    pub clock_set_back_secs: u64,

    /// Events asked for in a page, unless the relay is known to give less.
    pub page_events: usize,
    /// Events asked for when one second fills a page.
    pub page_events_raised: usize,
    /// Events of one answer, or of one second, that are remembered while more of them come: beyond it the answer is cut
    /// off, and what it has not proven is a gap. Some relays ignore `limit`, and a hostile one finds no end.
    pub answer_events_max: usize,
    /// Pages in a row that may bring something new of one second and nothing older, before that second counts as one that
    /// overflows a page. Who makes events up always has some more.
    pub page_stays_max: u32,
    /// Requests spent on splitting the filter for one second that overflows a page.
    pub split_requests_max: u32,
    /// Ids asked for in one request.
    pub ids_per_request: usize,
    /// Requests by id in flight at one relay.
    pub ids_in_flight_max: usize,
    /// Subscriptions open at one relay, until it states or shows another limit.
    pub subscriptions_max: usize,
    /// Repositories or roots named in one filter.
    pub values_per_filter_max: usize,
    /// Filters in one live subscription, until the relay states or shows that it takes fewer.
    pub filters_per_request_max: usize,
    /// The filters of one live subscription, in bytes, unless the relay states that it takes less.
    pub request_bytes_max: usize,
    /// Filters followed live at one relay, beyond which small ones are put together.
    pub live_filters_max: usize,
    /// Histories under way at one relay; further ones wait.
    pub histories_active_max: usize,

    /// The largest negentropy message sent, in bytes before hexadecimal (NIP-77).
    pub negentropy_frame_bytes_max: u64,
    /// Local items a reconciliation window is begun with, at most.
    pub negentropy_window_items: usize,
    /// Windows one history may be split into: by reconciliation before it is paged instead, by paging (where a relay
    /// gives events in no order) before the rest is a gap.
    pub negentropy_windows_max: usize,
    /// Rounds of one window before it is given up as endless.
    pub negentropy_rounds_max: u32,
    /// How often a window is reconciled again after a download, to see that nothing was withheld.
    pub negentropy_passes_max: u32,

    /// Events sent and not yet acknowledged, at one relay.
    pub publish_in_flight_max: usize,

    /// Events that wait for one relay's answer to [`Command::Publish`](super::Command::Publish).
    pub posts_max: usize,
    /// How long a connection is kept after the last of those answers, if nothing else is wanted of the relay.
    pub post_linger: Duration,
    /// Events that wait to be passed on to one relay; beyond it they are left to the next pass over its filters.
    pub outbox_events_max: usize,

    /// The largest frame taken from a relay, in bytes. strfry answers NEG-OPEN with up to 1 MB.
    pub frame_bytes_max: usize,
    /// Words of a relay that are kept, in bytes of each text: why it refuses, closes, complains, and whom it says it is.
    /// A challenge (NIP-42) that is longer is none.
    pub words_bytes_max: usize,
    /// Bytes that nobody asked for, since the last useful frame, before a relay is cut off as flooding.
    pub unsolicited_bytes_max: usize,
    /// Bytes of events of one relay that wait for their check; beyond it the relay is not read.
    pub ingest_bytes_max: usize,
    /// Events checked in one call.
    pub verify_events_max: usize,
    /// Checks under way at a time: two a core keep all cores busy.
    pub verify_in_flight_max: usize,
    /// Events that a commit waits for, unless `commit_delay` passes first.
    pub commit_events_min: usize,
    /// Events in one commit, at most.
    pub commit_events_max: usize,
    /// The longest that an event waits for a commit to fill.
    pub commit_delay: Duration,

    /// How often a request is asked again after the relay accepted our authentication and still refuses for want of it.
    pub auth_futile_max: u32,
    /// Refusals of one history's pages that are followed by another try.
    pub refusals_max: u32,
    /// Requests of one history that are made anew because the relay says that its rules have changed meanwhile.
    pub changes_max: u32,
    /// How often an event offered by the relay is asked for by id before it is reported as not delivered.
    pub ids_attempts_max: u8,
    /// Ids found lacking and not asked for yet, beyond which a reconciliation pauses.
    pub ids_waiting_max: usize,
    /// An answer of fewer events was not cut by a cap, unless shown otherwise; stated caps below it are not believed.
    pub page_cap_plausible_min: usize,
    /// How often an event is sent before its OK is given up.
    pub publish_attempts_max: u8,
    /// Events loaded for publishing in one go.
    pub publish_load_events: usize,
    /// Further passes over relays that are published to, after other relays brought new events.
    pub publish_passes_max: u32,
    /// How old a shared item set may be when another history begins with it. Being stale costs a comparison of what is
    /// new, no more: what a set lacks but the store has is found out before any download.
    pub items_age_max: Duration,
    /// Inputs that wait for the engine in the driver's inbox, beside one for each task.
    pub inbox_inputs: usize,
    /// Inputs handled in a row before a deadline that has passed is seen to, however many more wait.
    pub inputs_before_tick_max: u32,

    /// Pages remembered after their EOSE, to know stored events that come late.
    pub ended_pages_kept: usize,

    /// Each change of how a relay stands is announced, and who brings what is stored: [`Notice::Standing`], [`Notice::Storing`],
    /// [`Notice::Stored`].
    ///
    /// [`Notice::Standing`]: super::Notice::Standing
    /// [`Notice::Storing`]: super::Notice::Storing
    /// [`Notice::Stored`]: super::Notice::Stored
    pub tells_standings: bool,
    /// Gaps kept for a relay; further ones are merged into the last.
    pub gaps_max: usize,
    /// How often progress is announced while something is under way; zero for never.
    pub progress_interval: Duration,

    /// A fault put in on purpose, to see that tests catch it.
    #[cfg(feature = "testing")]
    pub planted: Option<Planted>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            one_shot: false,
            access: Arc::default(),
            discovery: None,
            awaits_held: false,
            refused_ids_max: 100_000,
            refused_relays_max: 8,
            dry_run: false,
            dry_run_ids_max: 1_000_000,
            relays_kept_max: 5_000,
            connects_at_once_max: 16,
            connect_spacing: Duration::from_millis(100),
            connect_timeout: Duration::from_secs(10),
            identity_timeout: Duration::from_secs(10),
            challenge_wait: Duration::from_millis(300),
            auth_renewals_max: 4,
            attempts_max: u32::MAX,
            backoff_base: Duration::from_secs(5),
            backoff_max: Duration::from_secs(3600),
            backoff_floor: Duration::from_millis(500),
            dead_after: Duration::from_secs(24 * 3600),
            dead_retry: Duration::from_secs(24 * 3600),
            rate_limit_cooldown: Duration::from_secs(65),
            stable_after: Duration::from_secs(300),
            stall: Duration::from_secs(15),
            probe_after: Duration::from_secs(60),
            suspend_gap: Duration::from_secs(30),
            stalls_max: 3,
            quick_reconnect_max: Duration::from_secs(15 * 60),
            full_pass_min: Duration::from_secs(23 * 3600),
            full_pass_max: Duration::from_secs(25 * 3600),
            gap_retry_base: Duration::from_secs(10 * 60),
            live_retry: Duration::from_secs(10 * 60),
            live_retry_proofs: Duration::from_secs(24 * 3600),
            overlap_secs: 300,
            clock_set_back_secs: 5,
            page_events: 500,
            page_events_raised: 5_000,
            answer_events_max: 250_000,
            page_stays_max: 4,
            split_requests_max: 64,
            ids_per_request: 256,
            ids_in_flight_max: 4,
            subscriptions_max: 16,
            values_per_filter_max: 100,
            filters_per_request_max: 10,
            request_bytes_max: 60_000,
            live_filters_max: 70,
            histories_active_max: 4,
            negentropy_frame_bytes_max: 60_000,
            negentropy_window_items: 250_000,
            negentropy_windows_max: 4_096,
            negentropy_rounds_max: 20_000,
            negentropy_passes_max: 3,
            publish_in_flight_max: 64,
            posts_max: 1_000,
            post_linger: Duration::from_secs(30),
            outbox_events_max: 10_000,
            frame_bytes_max: 4 << 20,
            words_bytes_max: 1 << 10,
            unsolicited_bytes_max: 16 << 20,
            ingest_bytes_max: 4 << 20,
            verify_events_max: 128,
            verify_in_flight_max: 4,
            commit_events_min: 2_048,
            commit_events_max: 8_192,
            commit_delay: Duration::from_millis(100),
            auth_futile_max: 2,
            refusals_max: 1,
            changes_max: 8,
            ids_attempts_max: 2,
            ids_waiting_max: 8_192,
            page_cap_plausible_min: 20,
            publish_attempts_max: 2,
            publish_load_events: 64,
            publish_passes_max: 3,
            items_age_max: Duration::from_secs(30),
            inbox_inputs: 16,
            inputs_before_tick_max: 16,
            ended_pages_kept: 32,
            tells_standings: false,
            gaps_max: 64,
            progress_interval: Duration::ZERO,
            #[cfg(feature = "testing")]
            planted: None,
        }
    }
}

impl Config {
    /// For a job that ends: relays are given up after three attempts that follow each other quickly, and progress is
    /// announced four times a second.
    pub fn one_shot() -> Self {
        Self {
            one_shot: true,
            attempts_max: 3,
            backoff_base: Duration::from_secs(1),
            progress_interval: Duration::from_millis(250),
            ..Self::default()
        }
    }

    /// The fault put in on purpose: none, without feature `testing`.
    pub(crate) fn planted(&self) -> Option<Planted> {
        #[cfg(feature = "testing")]
        return self.planted;
        #[cfg(not(feature = "testing"))]
        None
    }

    /// Is this fault put in? Never, without feature `testing`.
    pub(crate) fn plants(&self, fault: Planted) -> bool {
        self.planted() == Some(fault)
    }
}

/// Which way events go between the store and a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the relay into the store.
    #[default]
    Down,
    /// From the store to the relay.
    Up,
    /// Both.
    Both,
}

impl Direction {
    /// Are events fetched?
    pub fn is_down(self) -> bool {
        self != Self::Up
    }

    /// Are events published?
    pub fn is_up(self) -> bool {
        self != Self::Down
    }

    /// The direction of what goes down, or up, or both; `None` for neither.
    pub fn of(is_down: bool, is_up: bool) -> Option<Self> {
        match (is_down, is_up) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Down),
            (false, true) => Some(Self::Up),
            (false, false) => None,
        }
    }
}

/// How one relay is to be synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RelayOptions {
    /// Which way events go.
    pub direction: Direction,
    /// The method of histories; `None` decides by what is held and what the relay can do.
    pub method: Option<Method>,
    /// Stay subscribed to what is new.
    pub live: bool,
    /// Whatever the relay sends for its filters is wanted, whether discovery knows of a reason or not.
    pub trusted: bool,
}
