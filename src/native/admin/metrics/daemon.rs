//! Metrics of the daemon's other parts.

use super::{Kind, Page};
use crate::engine::Sizes;
use crate::native::admin::report::{DaemonReport, DiscoveryReport, FeedReport, ServiceReport, StoreReport};
use crate::serve::Counters;

/// One line of a table: a name, its help, its value.
type Row = (&'static str, &'static str, u64);

pub(super) fn write(page: &mut Page<'_>, report: &DaemonReport) {
    let help = "Always 1; the version is the label.";
    page.family("build_info", Kind::Gauge, help).sample(&[("version", &report.version)], 1);
    page.gauge("start_time_seconds", "When the daemon started, in seconds since 1970.", report.started_at_secs);
    page.counter("engine_restarts_total", "Engines built anew after the store had failed.", report.engine.restarts);
    let is_ready = report.readiness.faults().next().is_none();
    page.gauge("ready", "Are the store, the index and the relay service ready?", u64::from(is_ready));
    gauges(page, &engine(&report.engine.sizes));
    write_store(page, &report.store);
    write_feed(page, &report.feed);
    if let Some(discovery) = &report.discovery {
        write_discovery(page, discovery);
    }
    if let Some(service) = &report.service {
        write_service(page, service);
    }
    let mut bounds = page.family("bound_hits_total", Kind::Counter, "How often a bound has bitten, by its name.");
    for (bound, hits) in &report.bounds {
        bounds.sample(&[("bound", bound)], *hits);
    }
}

fn gauges(page: &mut Page<'_>, rows: &[Row]) {
    for (name, help, value) in rows {
        page.gauge(name, help, *value);
    }
}

fn counters(page: &mut Page<'_>, rows: &[Row]) {
    for (name, help, value) in rows {
        page.counter(name, help, *value);
    }
}

fn engine(sizes: &Sizes) -> [Row; 12] {
    [
        ("engine_effects", "Effects that wait to be taken.", sizes.effects as u64),
        ("engine_effect_bytes", "Bytes of frames among these.", sizes.effect_bytes as u64),
        ("engine_pipeline_events", "Events that came and are not settled yet.", sizes.pipeline_events as u64),
        ("engine_pipeline_bytes", "Bytes of these events.", sizes.pipeline_bytes as u64),
        ("engine_pipeline_ids", "Ids remembered of events not settled yet.", sizes.pipeline_ids as u64),
        ("engine_history_ids", "Ids remembered by histories.", sizes.history_ids as u64),
        ("engine_histories", "Histories under way.", sizes.histories as u64),
        ("engine_histories_waiting", "Interests that wait for room among these.", sizes.histories_waiting as u64),
        ("engine_subscriptions", "Subscriptions open at all relays.", sizes.subscriptions as u64),
        ("engine_deadlines", "Moments at which a relay is due.", sizes.deadlines as u64),
        ("engine_item_sets", "Item sets held to compare with.", sizes.item_sets as u64),
        ("engine_store_questions", "Questions to the store without an answer yet.", sizes.store_questions as u64),
    ]
}

fn write_store(page: &mut Page<'_>, store: &StoreReport) {
    page.gauge("store_file_bytes", "The size of the store's file.", store.file_bytes);
    if let Some(events) = store.events {
        page.gauge("store_events", "Events held.", events);
    }
    let mut commits = page.family("store_commits_total", Kind::Counter, "Commits, by whichever writer.");
    commits.sample(&[("result", "success")], store.commits);
    commits.sample(&[("result", "failure")], store.commits_failed);
}

fn write_feed(page: &mut Page<'_>, feed: &FeedReport) {
    page.counter("feed_events_total", "Newly stored events that were passed on.", feed.events);
    page.gauge("feed_queued_events", "Newly stored events that wait for a reader.", feed.queued);
    page.counter("feed_lags_total", "Times that a reader fell behind and read the store again.", feed.lags);
}

fn write_discovery(page: &mut Page<'_>, found: &DiscoveryReport) {
    gauges(
        page,
        &[
            ("discovery_repositories", "Repositories accepted.", found.repositories),
            ("discovery_roots", "Root events of these.", found.roots),
            ("discovery_relays", "Relays that these name.", found.relays),
        ],
    );
    counters(
        page,
        &[
            ("discovery_observed_total", "Accepted events looked at.", found.observed),
            ("discovery_batches_total", "Batches of changes handed to the plan.", found.batches),
        ],
    );
    let mut judged = page.family("discovery_judged_total", Kind::Counter, "Events judged, by the judgement.");
    judged.sample(&[("result", "wanted")], found.wanted);
    judged.sample(&[("result", "unwanted")], found.unwanted);
}

fn write_service(page: &mut Page<'_>, service: &ServiceReport) {
    let seen = &service.counters;
    page.gauge("service_clients_connected", "Clients connected to the relay service.", service.clients_connected);
    counters(
        page,
        &[
            ("service_clients_total", "Connections of clients.", seen.clients),
            ("service_clients_cut_total", "Connections ended for the client's behaviour.", seen.clients_cut),
            ("service_frames_total", "Frames of clients.", seen.frames),
            ("service_frames_malformed_total", "Frames of clients that were no message.", seen.frames_malformed),
            (
                "service_readings_paused_total",
                "Times that a client was not read, as its events waited.",
                seen.readings_paused,
            ),
            ("service_pages_capped_total", "Filters that the page cap cut short.", seen.pages_capped),
            ("service_item_sets_read_total", "Item sets read from the store.", seen.item_sets_read),
            ("service_faults_total", "Pieces of work that failed for no fault of the client.", seen.faults),
        ],
    );
    let mut events = page.family("service_events_total", Kind::Counter, "Events of clients, by what became of them.");
    for (result, value) in [("received", seen.events), ("stored", seen.events_stored), ("refused", seen.events_refused)]
    {
        events.sample(&[("result", result)], value);
    }
    write_requests(page, seen);
}

fn write_requests(page: &mut Page<'_>, seen: &Counters) {
    let mut requests = page.family("service_requests_total", Kind::Counter, "Requests of clients, by the answer.");
    for (kind, accepted, refused) in [
        ("req", seen.requests, seen.requests_refused),
        ("count", seen.counts, seen.counts_refused),
        ("auth", seen.auths, seen.auths_refused),
        ("negentropy", seen.negentropy, seen.negentropy_refused),
    ] {
        requests.sample(&[("kind", kind), ("result", "accepted")], accepted);
        requests.sample(&[("kind", kind), ("result", "refused")], refused);
    }
}
