//! Metrics of the daemon's other parts.

use super::{Kind, Page, service};
use crate::discover::DiscoveryCounters;
use crate::engine::Sizes;
use crate::native::admin::report::{DaemonReport, DiscoveryReport, FeedReport, StoreReport};
use crate::native::hook;

/// One line of a table: a name, its help, its value.
pub(super) type Row = (&'static str, &'static str, u64);

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
        service::write(page, service);
    }
    if let Some(hook) = &report.hook {
        write_hook(page, hook);
    }
    write_bounds(page, report);
}

fn write_bounds(page: &mut Page<'_>, report: &DaemonReport) {
    let mut bounds = page.family("bound_hits_total", Kind::Counter, "How often a bound has bitten, by its name.");
    for (bound, hits) in &report.bounds {
        bounds.sample(&[("bound", bound)], *hits);
    }
    if let Some(found) = &report.discovery {
        for (bound, hits) in discovery_bounds(&found.counters) {
            bounds.sample(&[("bound", bound)], hits);
        }
    }
}

/// The bounds of discovery, by the names that they have in the configuration.
fn discovery_bounds(found: &DiscoveryCounters) -> [(&'static str, u64); 14] {
    [
        ("relays_per_repository_max", found.relay_urls_skipped),
        ("relay_urls_max", found.relay_urls_refused),
        ("relays_max", found.relays_refused),
        ("maintainers_per_repository_max", found.maintainers_skipped),
        ("repositories_max", found.repositories_refused),
        ("dormant_repositories_max", found.dormant_refused),
        ("identifier_bytes_max", found.identifiers_too_long),
        ("roots_max", found.roots_refused),
        ("roots_per_repository_max", found.roots_refused_by_repository),
        ("repositories_per_root_max", found.root_repositories_skipped),
        ("orphans_max", found.orphans_dropped),
        ("references_max", found.references_dropped + found.references_skipped),
        ("promises_max", found.promises_dropped),
        ("tombstones_max", found.tombstones_dropped),
    ]
}

fn gauges(page: &mut Page<'_>, rows: &[Row]) {
    for (name, help, value) in rows {
        page.gauge(name, help, *value);
    }
}

pub(super) fn counters(page: &mut Page<'_>, rows: &[Row]) {
    for (name, help, value) in rows {
        page.counter(name, help, *value);
    }
}

fn engine(sizes: &Sizes) -> [Row; 14] {
    [
        ("engine_effects", "Effects that wait to be taken.", sizes.effects as u64),
        ("engine_effect_bytes", "Bytes of frames among these.", sizes.effect_bytes as u64),
        ("engine_pipeline_events", "Events that came and are not settled yet.", sizes.pipeline_events as u64),
        ("engine_pipeline_bytes", "Bytes of these events.", sizes.pipeline_bytes as u64),
        ("engine_pipeline_ids", "Ids remembered of events not settled yet.", sizes.pipeline_ids as u64),
        ("engine_history_ids", "Ids remembered by histories.", sizes.history_ids as u64),
        ("engine_outbox_events", "Events on their way to other relays.", sizes.outbox_events as u64),
        ("engine_refused_ids", "Ids remembered of events that are not wanted.", sizes.refused_ids as u64),
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
    let commits = [("success", store.commits), ("failure", store.commits_failed)];
    labelled(page, ("store_commits_total", "result"), "Commits, by whichever writer.", &commits);
}

fn write_feed(page: &mut Page<'_>, feed: &FeedReport) {
    page.counter("feed_events_total", "Newly stored events that were passed on.", feed.events);
    page.gauge("feed_queued_events", "Newly stored events that wait for a reader.", feed.queued);
    page.counter("feed_lags_total", "Times that a reader fell behind and read the store again.", feed.lags);
}

fn write_discovery(page: &mut Page<'_>, found: &DiscoveryReport) {
    let DiscoveryReport { sizes, counters: seen } = found;
    gauges(
        page,
        &[
            ("discovery_repositories", "Repositories accepted.", sizes.repositories as u64),
            ("discovery_dormant_repositories", "Announcements not accepted.", sizes.dormant_repositories as u64),
            ("discovery_roots", "Issues, patches and pull requests.", sizes.roots as u64),
            ("discovery_orphans", "Of them, those that wait for an announcement.", sizes.orphans as u64),
            ("discovery_relays", "Relays that are targets.", sizes.relays as u64),
            ("discovery_relays_waiting", "Relays that wait for room among these.", sizes.relays_waiting as u64),
            ("discovery_relay_urls", "Relay URLs remembered.", sizes.relay_urls as u64),
            ("discovery_references", "Ids and addresses referred to.", sizes.references as u64),
            ("discovery_promises", "Events judged wanted and not stored yet.", sizes.promises as u64),
            ("discovery_changes", "Changes that wait for the next batch.", sizes.changes as u64),
        ],
    );
    let help = "Events looked at, repeated ones too.";
    let observed = [("announcement", seen.announcements), ("root", seen.roots), ("request", seen.requests)];
    counters(page, &[("discovery_batches_total", "Batches of changes handed to the plan.", seen.batches)]);
    labelled(page, ("discovery_observed_total", "kind"), help, &observed);
    let help = "Repositories that were accepted, and that ceased to be.";
    let changes = [("accepted", seen.repositories_accepted), ("left", seen.repositories_left)];
    labelled(page, ("discovery_repositories_total", "change"), help, &changes);
    let changes = [("added", seen.interests_added), ("removed", seen.interests_removed)];
    labelled(page, ("discovery_interests_total", "change"), "Interests handed to the plan.", &changes);
    let judged = [
        ("wanted", seen.wanted),
        ("blocked", seen.objections_blocked),
        ("not_accepted", seen.objections_not_accepted),
        ("unrelated", seen.objections_unrelated),
        ("invalid", seen.objections_invalid),
        ("full", seen.objections_full),
    ];
    labelled(page, ("discovery_judged_total", "result"), "Events judged, by the judgement.", &judged);
    let urls = [("invalid", seen.relay_urls_invalid), ("private", seen.relays_private)];
    labelled(page, ("discovery_odd_relay_urls_total", "oddity"), "Relay URLs that were not taken at once.", &urls);
}

fn write_hook(page: &mut Page<'_>, hook: &hook::Counters) {
    gauges(
        page,
        &[
            ("hook_repositories_waiting", "Repositories with news to deliver.", hook.repositories_waiting),
            ("hook_ids_waiting", "Events to deliver.", hook.ids_waiting),
            ("hook_running", "Deliveries under way.", hook.running),
        ],
    );
    counters(
        page,
        &[
            ("hook_events_total", "Events to be handed on, once a repository.", hook.events),
            ("hook_timeouts_total", "Deliveries that took too long; they have failed, too.", hook.timed_out),
            ("hook_states_resolved_total", "States handed on for repositories of others.", hook.states_resolved),
            ("hook_ids_unlisted_total", "Events not listed, as there were too many.", hook.ids_unlisted),
            ("hook_repositories_refused_total", "Events not handed on: too many wait.", hook.repositories_refused),
            ("hook_addresses_skipped_total", "Addresses passed over: too long or too many.", hook.addresses_skipped),
            ("hook_outbox_failures_total", "Writes to the outbox that failed.", hook.outbox_failures),
        ],
    );
    let results = [("taken", hook.delivered), ("failed", hook.failed), ("needless", hook.gone)];
    labelled(page, ("hook_deliveries_total", "result"), "Deliveries, by what came of them.", &results);
}

/// A counter with one label: its name, then the label's.
pub(super) fn labelled(page: &mut Page<'_>, (name, label): (&str, &str), help: &str, values: &[(&str, u64)]) {
    let mut family = page.family(name, Kind::Counter, help);
    for (part, value) in values {
        family.sample(&[(label, part)], *value);
    }
}
