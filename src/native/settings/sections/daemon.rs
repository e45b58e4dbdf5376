//! The daemon itself: store, identity, hook, HTTP, logs.

use crate::native::admin::AdminConfig;
use crate::native::feed::FeedBounds;
use crate::native::hook::HookConfig;
use crate::native::settings::keys::{Section, Walker};
use crate::native::settings::{
    DaemonSettings, HookSettings, HttpSettings, IdentitySettings, LogSettings, StoreSettings,
};

pub(super) fn store(settings: &mut StoreSettings, walker: &mut dyn Walker) {
    let StoreSettings { path, cache_bytes_max } = settings;
    let mut keys = Section::begin(walker, "store", "Where the events are held.");
    keys.key("path", path, "A file, or a directory to have it in. One process uses it at a time.");
    keys.bytes("cache_bytes_max", cache_bytes_max, "So much of the file is cached in memory.");
}

pub(super) fn identity(settings: &mut IdentitySettings, walker: &mut dyn Walker) {
    let IdentitySettings { key_file } = settings;
    let mut keys = Section::begin(walker, "identity", "Who we are, for relays that ask (NIP-42).");
    keys.key("key_file", key_file, "A file with the secret key, as nsec1… or 64 hexadecimal digits. Without, one is generated and kept beside the store.");
}

pub(super) fn hook(settings: &mut HookSettings, walker: &mut dyn Walker) {
    let HookSettings { command, url, config } = settings;
    let HookConfig {
        // The command or the URL.
        target: _,
        kinds,
        batch,
        timeout,
        retry_base,
        retry_max,
        concurrent_max,
        repositories_max,
        ids_max,
        ids_per_repository_max,
        repositories_per_event_max,
        address_bytes_max,
        announcements_max,
        output_bytes_max,
        output_grace,
        shutdown_max,
        cache_bytes_max,
    } = config;
    let about = "Events that arrive for a repository are handed on, to a command or a URL, so that a git server fetches \
                 the data that belongs to them. Every delivery is made at least once, a crash in between included.";
    let mut keys = Section::begin(walker, "hook", about);
    keys.key_like(
        "command",
        command,
        "[\"fetch-git-data\", \"--quiet\"]",
        "A program and its arguments. It gets {\"repository\":…,\"events\":[…],\"complete\":…} on its standard input.",
    );
    keys.key("url", url, "A URL to which the same JSON is posted.");
    keys.key("kinds", kinds, "The kinds of events that are handed on.");
    keys.duration_or_zero("batch", batch, "Events of one repository are gathered so long before they are handed on.");
    keys.duration("timeout", timeout, "A delivery that takes longer is given up, and made again later.");
    keys.duration("retry_base", retry_base, "The wait after a failure; it doubles with each further one.");
    keys.duration("retry_max", retry_max, "The longest such wait.");
    keys.count("concurrent_max", concurrent_max, "Deliveries under way at once.");
    keys.count("repositories_max", repositories_max, "Repositories that wait for delivery.");
    keys.count(
        "ids_max",
        ids_max,
        "Events that wait for delivery. Beyond that, a repository is handed on without them.",
    );
    keys.count("ids_per_repository_max", ids_per_repository_max, "Of them, those of one repository.");
    keys.count("repositories_per_event_max", repositories_per_event_max, "Repositories that one event is news of.");
    keys.bytes("address_bytes_max", address_bytes_max, "The longest address of a repository.");
    keys.count("announcements_max", announcements_max, "Announcements looked through for the maintainers of a state.");
    keys.bytes("output_bytes_max", output_bytes_max, "So much of a command's output is kept for the log.");
    keys.duration("output_grace", output_grace, "Output of what a command left running is awaited so long.");
    keys.duration("shutdown_max", shutdown_max, "At the end, deliveries under way are awaited so long.");
    keys.bytes("cache_bytes_max", cache_bytes_max, "So much of the file of deliveries is cached in memory.");
}

pub(super) fn http(settings: &mut HttpSettings, walker: &mut dyn Walker) {
    let HttpSettings { listen, admin } = settings;
    let AdminConfig {
        prefix,
        relays_named_max,
        connections_max,
        request_bytes_max,
        connection_time_max,
        accept_retry,
        report_age_max,
        engine_silence_max,
    } = admin;
    let about = "/metrics for Prometheus, /healthz, /readyz, and /status for `relaysync status`.";
    let mut keys = Section::begin(walker, "http", about);
    keys.key_like(
        "listen",
        listen,
        "\"127.0.0.1:9464\"",
        "The address to listen on. Whoever reaches it can read all of that.",
    );
    keys.key(
        "metrics_prefix",
        prefix,
        "How the names of metrics begin. With \"ngit_sync\", dashboards made for ngit-grasp work as they are.",
    );
    keys.count("relays_named_max", relays_named_max, "Relays with metrics of their own; others are taken together.");
    keys.count("connections_max", connections_max, "Connections open at once.");
    keys.bytes_from(8192, "request_bytes_max", request_bytes_max, "The head of a request.");
    keys.duration("connection_time_max", connection_time_max, "A connection lasts no longer than this.");
    keys.duration("accept_retry", accept_retry, "The wait after the system could not accept a connection.");
    keys.duration("report_age_max", report_age_max, "A daemon that reports nothing for so long is not alive.");
    keys.duration("engine_silence_max", engine_silence_max, "An engine that stands still for so long is not alive.");
}

pub(super) fn log(settings: &mut LogSettings, walker: &mut dyn Walker) {
    let LogSettings { filter, format } = settings;
    let mut keys = Section::begin(walker, "log", "Logs, on standard error.");
    keys.key(
        "filter",
        filter,
        "error, warn, info, debug or trace, or such levels by part of the program, as for RUST_LOG, which overrides it.",
    );
    keys.key("format", format, "Lines for people, or JSON objects.");
}

pub(super) fn daemon(settings: &mut DaemonSettings, walker: &mut dyn Walker) {
    let DaemonSettings {
        drain_max,
        store_retry_base,
        store_retry_max,
        held_page_events,
        held_page_bytes,
        feed,
        commands_max,
        summary_interval,
    } = settings;
    let FeedBounds { events_max, bytes_max, missed_ids_max } = feed;
    let mut keys = Section::begin(walker, "daemon", "The daemon as a whole.");
    keys.duration("drain_max", drain_max, "On SIGTERM, what has arrived is committed within this time.");
    keys.duration(
        "store_retry_base",
        store_retry_base,
        "After a failure of the store, syncing begins anew after so long; the wait doubles with each further failure.",
    );
    keys.duration("store_retry_max", store_retry_max, "The longest such wait.");
    keys.duration("summary_interval", summary_interval, "How often the log sums up how things are.");
    keys.count("held_page_events", held_page_events, "At the start, held events are read so many at a time.");
    keys.bytes("held_page_bytes", held_page_bytes, "The same in bytes, at most.");
    keys.count("feed_events_max", events_max, "Stored events that may wait for each part that is told of them.");
    keys.bytes("feed_bytes_max", bytes_max, "The same in bytes. What finds no room is read from the store later.");
    keys.count(
        "feed_missed_ids_max",
        missed_ids_max,
        "Events of which only the id is kept then; beyond, all are read anew.",
    );
    keys.count("commands_max", commands_max, "Commands that may wait for the engine.");
}
