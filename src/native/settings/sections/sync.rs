//! The engine.

use crate::engine::Config;
use crate::native::settings::keys::{Section, Walker};

/// Both sections of the engine's configuration.
pub(super) fn sync(config: &mut Config, walker: &mut dyn Walker) {
    intervals(config, walker);
    limits(config, walker);
}

fn intervals(config: &mut Config, walker: &mut dyn Walker) {
    let about = "When relays are connected to, asked, rested and looked at again.";
    let mut keys = Section::begin(walker, "sync", about);
    keys.duration(
        "backoff_base",
        &mut config.backoff_base,
        "The wait after the first failure of a relay. It doubles with each further one, and chance makes it shorter.",
    );
    keys.duration("backoff_max", &mut config.backoff_max, "The longest such wait.");
    keys.duration("backoff_floor", &mut config.backoff_floor, "The shortest such wait, whatever chance says.");
    keys.duration("dead_after", &mut config.dead_after, "Failures for this long make a relay dead.");
    keys.duration("dead_retry", &mut config.dead_retry, "A dead relay is tried this often.");
    keys.duration(
        "rate_limit_cooldown",
        &mut config.rate_limit_cooldown,
        "Rest after a relay asked for less traffic. Most count by the minute.",
    );
    keys.duration("stable_after", &mut config.stable_after, "A relay that recovered counts as healthy after this.");
    keys.count("connects_at_once_max", &mut config.connects_at_once_max, "Connections attempted at once.");
    keys.duration_or_zero("connect_spacing", &mut config.connect_spacing, "The time between further attempts.");
    keys.duration("connect_timeout", &mut config.connect_timeout, "A connection attempt is given up after this.");
    keys.duration("identity_timeout", &mut config.identity_timeout, "A peer is to prove within this who it is.");
    keys.duration_or_zero("challenge_wait", &mut config.challenge_wait, "A peer's challenge is awaited this long.");
    keys.duration("stall", &mut config.stall, "A request without progress for this long has stalled.");
    keys.duration("probe_after", &mut config.probe_after, "A connection that is silent for this long is probed.");
    keys.duration(
        "suspend_gap",
        &mut config.suspend_gap,
        "A moment that is this late shows that the machine slept; then all connections are probed.",
    );
    keys.duration(
        "quick_reconnect_max",
        &mut config.quick_reconnect_max,
        "After an absence of up to this length, only what may have been missed is fetched.",
    );
    keys.seconds("overlap", &mut config.overlap_secs, "So far before the last proven moment that begins.");
    keys.duration("full_pass_min", &mut config.full_pass_min, "Everything is compared anew after at least this time,");
    keys.duration("full_pass_max", &mut config.full_pass_max, "and at most this; chance picks a moment between.");
    keys.duration(
        "gap_retry_base",
        &mut config.gap_retry_base,
        "What has gaps is looked at again after this, then less often.",
    );
    keys.duration(
        "live_retry",
        &mut config.live_retry,
        "A relay that does not send what is new as it comes is asked for it this often.",
    );
    keys.duration(
        "live_retry_proofs",
        &mut config.live_retry_proofs,
        "What was proven counts so long when that is done.",
    );
    keys.seconds(
        "clock_set_back",
        &mut config.clock_set_back_secs,
        "A clock that goes back by more was wrong before, and what it dated is fetched anew.",
    );
    keys.duration(
        "progress_interval",
        &mut config.progress_interval,
        "Metrics and status are brought up to date this often.",
    );
}

fn limits(config: &mut Config, walker: &mut dyn Walker) {
    let Config {
        // This is told by the control plane.
        access: _,
        // These are for embedders that run jobs.
        posts_max: _,
        post_linger: _,
        tells_standings: _,
        // These stand in [sync].
        backoff_base: _,
        backoff_max: _,
        backoff_floor: _,
        dead_after: _,
        dead_retry: _,
        rate_limit_cooldown: _,
        stable_after: _,
        connects_at_once_max: _,
        connect_spacing: _,
        connect_timeout: _,
        identity_timeout: _,
        challenge_wait: _,
        stall: _,
        probe_after: _,
        suspend_gap: _,
        quick_reconnect_max: _,
        overlap_secs: _,
        full_pass_min: _,
        full_pass_max: _,
        gap_retry_base: _,
        live_retry: _,
        live_retry_proofs: _,
        clock_set_back_secs: _,
        progress_interval: _,
        // It has sections of its own.
        discovery: _,
        awaits_held: _,
        // Only jobs that end know these.
        one_shot: _,
        dry_run: _,
        dry_run_ids_max: _,
        attempts_max: _,
        #[cfg(feature = "testing")]
            planted: _,
        stalls_max,
        page_events,
        page_events_raised,
        answer_events_max,
        page_stays_max,
        split_requests_max,
        ids_per_request,
        ids_in_flight_max,
        refused_ids_max,
        relays_kept_max,
        refused_relays_max,
        values_per_filter_max,
        filters_per_request_max,
        request_bytes_max,
        live_filters_max,
        outbox_events_max,
        subscriptions_max,
        histories_active_max,
        negentropy_frame_bytes_max,
        negentropy_window_items,
        negentropy_windows_max,
        negentropy_rounds_max,
        negentropy_passes_max,
        publish_in_flight_max,
        frame_bytes_max,
        words_bytes_max,
        unsolicited_bytes_max,
        ingest_bytes_max,
        verify_events_max,
        verify_in_flight_max,
        commit_events_min,
        commit_events_max,
        commit_delay,
        auth_futile_max,
        auth_renewals_max,
        refusals_max,
        changes_max,
        ids_attempts_max,
        ids_waiting_max,
        page_cap_plausible_min,
        publish_attempts_max,
        publish_load_events,
        publish_passes_max,
        items_age_max,
        inbox_inputs,
        inputs_before_tick_max,
        ended_pages_kept,
        gaps_max,
    } = config;
    let about = "Bounds of syncing. The defaults suit nearly everybody.";
    let mut keys = Section::begin(walker, "sync_limits", about);
    keys.count(
        "subscriptions_max",
        subscriptions_max,
        "Subscriptions open at one relay, until it shows another limit.",
    );
    keys.count("relays_kept_max", relays_kept_max, "Relays on record; beyond, those that nothing is wanted of go.");
    keys.count("histories_active_max", histories_active_max, "Filters whose past is fetched at one relay at once.");
    keys.count(
        "live_filters_max",
        live_filters_max,
        "Filters followed at one relay, beyond which small ones are joined.",
    );
    keys.count(
        "values_per_filter_max",
        values_per_filter_max,
        "Repositories, or issues and patches, named in one filter.",
    );
    keys.count(
        "filters_per_request_max",
        filters_per_request_max,
        "Filters in one subscription, unless a relay takes less.",
    );
    keys.bytes("request_bytes_max", request_bytes_max, "The same in bytes.");
    keys.count("page_events", page_events, "Events asked for in a page, unless the relay is known to give less.");
    keys.count("page_events_raised", page_events_raised, "Events asked for when one second fills a page.");
    keys.count("answer_events_max", answer_events_max, "Events of one answer before it is cut off.");
    keys.count(
        "page_stays_max",
        page_stays_max,
        "Pages in a row that may bring something new of one second, and nothing older.",
    );
    keys.count("split_requests_max", split_requests_max, "Requests spent on one second that overflows a page.");
    keys.count("page_cap_plausible_min", page_cap_plausible_min, "A smaller page was not cut, unless shown otherwise.");
    keys.count("stalls_max", stalls_max, "Stalls of one history before what is left of it is a gap.");
    keys.count_from(0, "refusals_max", refusals_max, "Refusals of pages that are followed by another try.");
    keys.count_from(0, "changes_max", changes_max, "Requests made anew as a relay says that its rules have changed.");
    keys.count_from(0, "auth_futile_max", auth_futile_max, "Requests made again although authenticating did not help.");
    keys.count_from(
        0,
        "auth_renewals_max",
        auth_renewals_max,
        "Times that a peer is asked anew at once as it has accepted us once more.",
    );
    keys.count("ids_per_request", ids_per_request, "Ids asked for in one request.");
    keys.count("ids_in_flight_max", ids_in_flight_max, "Requests by id under way at one relay.");
    keys.count(
        "ids_attempts_max",
        ids_attempts_max,
        "Tries to get an offered event before it counts as not delivered.",
    );
    keys.count("ids_waiting_max", ids_waiting_max, "Ids found lacking beyond which a reconciliation pauses.");
    keys.bytes_from(
        4096,
        "negentropy_frame_bytes_max",
        negentropy_frame_bytes_max,
        "The largest reconciliation message (NIP-77) sent, before it is written as hexadecimal.",
    );
    keys.count("negentropy_window_items", negentropy_window_items, "Events held in one window of a reconciliation.");
    keys.count("negentropy_windows_max", negentropy_windows_max, "Windows that one history is split into.");
    keys.count("negentropy_rounds_max", negentropy_rounds_max, "Rounds of one window before it is given up.");
    keys.count("negentropy_passes_max", negentropy_passes_max, "Comparisons of one window until nothing is lacking.");
    keys.count("publish_in_flight_max", publish_in_flight_max, "Events sent to one relay and not acknowledged yet.");
    keys.count("publish_attempts_max", publish_attempts_max, "Times that an event is sent before its OK is given up.");
    keys.count("publish_load_events", publish_load_events, "Events read for publishing in one go.");
    keys.count_from(0, "publish_passes_max", publish_passes_max, "Further looks at what a relay lacks.");
    keys.count("outbox_events_max", outbox_events_max, "Events that wait to be passed on to one relay at once.");
    keys.count_from(0, "refused_ids_max", refused_ids_max, "Events remembered that are not wanted, 200 bytes each.");
    keys.count("refused_relays_max", refused_relays_max, "Relays remembered for each of them, to be asked again.");
    keys.bytes("frame_bytes_max", frame_bytes_max, "The largest frame taken from a relay.");
    keys.bytes("words_bytes_max", words_bytes_max, "What is kept of the words of a relay, of each text.");
    keys.bytes("unsolicited_bytes_max", unsolicited_bytes_max, "What a relay may send that nobody asked for.");
    keys.bytes("ingest_bytes_max", ingest_bytes_max, "While more of one relay waits to be checked, it is not read.");
    keys.count("verify_events_max", verify_events_max, "Events checked in one go.");
    keys.count("verify_in_flight_max", verify_in_flight_max, "Checks under way at once.");
    keys.count("commit_events_min", commit_events_min, "A commit waits for so many events,");
    keys.duration_or_zero("commit_delay", commit_delay, "but no longer than this.");
    keys.count("commit_events_max", commit_events_max, "Events in one commit, at most.");
    keys.duration_or_zero("items_age_max", items_age_max, "The age up to which a list of what is held is shared.");
    keys.count("inbox_inputs", inbox_inputs, "What may wait for the engine.");
    keys.count("inputs_before_tick_max", inputs_before_tick_max, "Inputs in a row before a deadline is seen to.");
    keys.count_from(0, "ended_pages_kept", ended_pages_kept, "Ended pages remembered, for events that come late.");
    keys.count("gaps_max", gaps_max, "Gaps listed of one relay.");
}
