//! The daemon itself: store, identity, hook, HTTP, logs.

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
    keys.key("key_file", key_file, "A file with the secret key, as nsec1… or 64 hexadecimal digits.");
}

pub(super) fn hook(settings: &mut HookSettings, walker: &mut dyn Walker) {
    let HookSettings { command, url, batch, timeout, kinds, concurrent_max } = settings;
    let about = "Events that arrive for a repository are handed on, to a command or a URL, so that a git server fetches \
                 the data that belongs to them. Every delivery is made at least once, a crash in between included.";
    let mut keys = Section::begin(walker, "hook", about);
    keys.key_like(
        "command",
        command,
        "[\"fetch-git-data\", \"--quiet\"]",
        "A program and its arguments. It gets JSON on its standard input.",
    );
    keys.key("url", url, "A URL to which JSON is posted.");
    keys.duration_or_zero("batch", batch, "Events of one repository are gathered so long before they are handed on.");
    keys.duration("timeout", timeout, "A delivery that takes longer is given up, and made again later.");
    keys.key("kinds", kinds, "The kinds of events that are handed on.");
    keys.count("concurrent_max", concurrent_max, "Deliveries under way at once.");
}

pub(super) fn http(settings: &mut HttpSettings, walker: &mut dyn Walker) {
    let HttpSettings { listen, metrics_prefix } = settings;
    let about = "/metrics for Prometheus, /healthz, /readyz, and /status for `relaysync status`.";
    let mut keys = Section::begin(walker, "http", about);
    keys.key_like(
        "listen",
        listen,
        "\"127.0.0.1:9090\"",
        "The address to listen on. Whoever reaches it can read all of that.",
    );
    keys.key(
        "metrics_prefix",
        metrics_prefix,
        "How the names of metrics begin. With \"ngit_sync\", dashboards made for ngit-grasp work as they are.",
    );
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
    let DaemonSettings { drain_max, store_retry_base, store_retry_max, held_page_events, held_page_bytes } = settings;
    let mut keys = Section::begin(walker, "daemon", "The daemon as a whole.");
    keys.duration("drain_max", drain_max, "On SIGTERM, what has arrived is committed within this time.");
    keys.duration(
        "store_retry_base",
        store_retry_base,
        "After a failure of the store, syncing begins anew after so long; the wait doubles with each further failure.",
    );
    keys.duration("store_retry_max", store_retry_max, "The longest such wait.");
    keys.count("held_page_events", held_page_events, "At the start, held events are read so many at a time.");
    keys.bytes("held_page_bytes", held_page_bytes, "The same in bytes, at most.");
}
