//! Metrics of the relay service.

use super::daemon::{counters, labelled};
use super::{Kind, Page};
use crate::native::admin::report::ServiceReport;
use crate::serve::Counters;

/// All of the counters, each by its name: one that is new is not forgotten here.
pub(super) fn write(page: &mut Page<'_>, service: &ServiceReport) {
    let ServiceReport { clients_connected, counters: seen } = service;
    let Counters {
        clients,
        clients_turned_away,
        clients_cut,
        frames,
        frames_malformed,
        readings_paused,
        events,
        events_stored,
        events_refused,
        events_unwanted,
        events_unjudged,
        events_rate_limited,
        requests,
        requests_refused,
        reads_forbidden,
        writes_forbidden,
        subscriptions_missed,
        requests_rate_limited,
        frames_rate_limited,
        clients_cut_for_all,
        pages_capped,
        counts,
        counts_refused,
        auths,
        auths_refused,
        negentropy,
        negentropy_refused,
        item_sets_read,
        faults,
    } = *seen;
    page.gauge("service_clients_connected", "Clients connected to the relay service.", *clients_connected);
    counters(
        page,
        &[
            ("service_clients_total", "Connections of clients.", clients),
            ("service_clients_turned_away_total", "Connections not taken: there are too many.", clients_turned_away),
            ("service_clients_cut_total", "Connections ended for the client's behaviour.", clients_cut),
            ("service_clients_cut_for_all_total", "Connections ended as too much waited.", clients_cut_for_all),
            ("service_frames_total", "Frames of clients.", frames),
            ("service_frames_malformed_total", "Frames of clients that were no message.", frames_malformed),
            ("service_readings_paused_total", "Times that a client was not read: its events waited.", readings_paused),
            ("service_pages_capped_total", "Filters that the page cap cut short.", pages_capped),
            ("service_subscriptions_missed_total", "Subscriptions closed as they missed news.", subscriptions_missed),
            ("service_reads_forbidden_total", "Requests for protected events refused or ended.", reads_forbidden),
            ("service_item_sets_read_total", "Item sets read from the store.", item_sets_read),
            ("service_faults_total", "Pieces of work that failed for no fault of the client.", faults),
        ],
    );
    let outcomes = [("received", events), ("stored", events_stored), ("refused", events_refused)];
    labelled(page, ("service_events_total", "result"), "Events of clients, by what became of them.", &outcomes);
    let reasons = [
        ("unwanted", events_unwanted),
        ("unjudged", events_unjudged),
        ("rate_limited", events_rate_limited),
        ("forbidden", writes_forbidden),
    ];
    let help = "Events of clients that were refused for these reasons, among all that were.";
    labelled(page, ("service_events_refused_total", "reason"), help, &reasons);
    let limited = [("event", events_rate_limited), ("request", requests_rate_limited), ("frame", frames_rate_limited)];
    let help = "What clients sent above their rates.";
    labelled(page, ("service_rate_limited_total", "what"), help, &limited);
    let mut answered = page.family("service_requests_total", Kind::Counter, "Requests of clients, by the answer.");
    for (kind, accepted, refused) in [
        ("req", requests, requests_refused),
        ("count", counts, counts_refused),
        ("auth", auths, auths_refused),
        ("negentropy", negentropy, negentropy_refused),
    ] {
        answered.sample(&[("kind", kind), ("result", "accepted")], accepted);
        answered.sample(&[("kind", kind), ("result", "refused")], refused);
    }
}
