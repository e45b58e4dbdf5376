//! The control plane: what is protected, who governs, and bounds.

use crate::native::control::ControlBounds;
use crate::native::rpc::RpcConfig;
use crate::native::settings::keys::{Section, Walker};
use crate::native::settings::{AccessSettings, ControlSettings};

pub(super) fn access(settings: &mut AccessSettings, walker: &mut dyn Walker) {
    let AccessSettings { protected } = settings;
    let about = "What is protected: it is for those only to whom a rule grants it (relaysync access grant), for clients \
                 and for peers alike. Everything else is free to all.";
    let mut keys = Section::begin(walker, "access", about);
    let about = "Events that satisfy one of these are protected. Name replaceable kinds by kind and author, not by tags \
                 alone, and kind 5 with what it may delete: else who publishes a version or an event that is free may learn \
                 that a protected one has replaced or deleted it.";
    keys.match_filters("protected", protected, about);
}

pub(super) fn control(settings: &mut ControlSettings, walker: &mut dyn Walker) {
    let ControlSettings { socket, admins, bounds, rpc } = settings;
    let ControlBounds {
        peers_max,
        spec_bytes_max,
        rules_max,
        protected_max,
        match_bytes_max,
        previous_keys_max,
        file_bytes_max,
        lock_wait,
        marks_interval,
        report_age_max,
        orders_max,
    } = bounds;
    let RpcConfig {
        urls,
        body_bytes_max,
        body_time_max,
        auth_age_max,
        auth_ahead_max,
        auth_ids_max,
        calls_per_minute_max,
        refusals_per_minute_max,
        calls_max,
        socket_connections_max,
        socket_time_max,
    } = rpc;
    let about = "Who may govern the daemon while it runs: its identity, peers and access rules. What it is told is kept in \
                 files beside the store.";
    let mut keys = Section::begin(walker, "control", about);
    keys.key_like(
        "socket",
        socket,
        "\"/run/relaysync/control.socket\"",
        "A unix socket for commands on this machine, for the owner of the process alone; without this, beside the store.",
    );
    keys.key("admins", admins, "The public keys of those who may govern over HTTP (NIP-98).");
    keys.key("urls", urls, "URLs under which they reach the daemon, beside relay.urls and the addresses listened on.");
    keys.count("peers_max", peers_max, "Peers.");
    keys.bytes("spec_bytes_max", spec_bytes_max, "A peer as it is configured, in JSON.");
    keys.count("rules_max", rules_max, "Access rules.");
    keys.count("protected_max", protected_max, "Filters that protect, beside access.protected.");
    keys.bytes("match_bytes_max", match_bytes_max, "Such a filter, or that of a rule, in JSON.");
    keys.count("previous_keys_max", previous_keys_max, "Former public keys that are remembered, ours and each peer's.");
    keys.bytes_from(4096, "file_bytes_max", file_bytes_max, "The largest of the files beside the store.");
    keys.duration_or_zero(
        "lock_wait",
        lock_wait,
        "Another process that has the files, as a command has for a moment, is waited for so long.",
    );
    keys.duration("marks_interval", marks_interval, "What happened last at peers is written down at most so often.");
    keys.duration(
        "report_age_max",
        report_age_max,
        "Health does not go by what was heard of a peer longer ago than this; more than sync.progress_interval.",
    );
    keys.count("orders_max", orders_max, "Orders, like that to sync at once, that wait.");
    keys.bytes("body_bytes_max", body_bytes_max, "The size of a call.");
    keys.duration("body_time_max", body_time_max, "All of a call must have come within this time.");
    keys.duration("auth_age_max", auth_age_max, "The signature of a call may be so old.");
    keys.duration_or_zero(
        "auth_ahead_max",
        auth_ahead_max,
        "And it may be dated ahead of our clock by this. As long after a restart, calls have to wait.",
    );
    keys.count("auth_ids_max", auth_ids_max, "Signatures that are remembered, so that none is taken twice.");
    keys.count("calls_per_minute_max", calls_per_minute_max, "Calls over HTTP in a minute.");
    keys.count(
        "refusals_per_minute_max",
        refusals_per_minute_max,
        "Calls over HTTP in a minute that are refused with a reason, and signatures that are checked in vain.",
    );
    keys.count("calls_max", calls_max, "Calls that are carried out at once.");
    keys.count("socket_connections_max", socket_connections_max, "Connections open at once to the socket.");
    keys.duration("socket_time_max", socket_time_max, "A connection to the socket lasts no longer than this.");
}
