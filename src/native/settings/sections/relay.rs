//! Our own relay.

use crate::native::serve::ServiceConfig;
use crate::native::settings::RelaySettings;
use crate::native::settings::keys::{Section, Walker};
use crate::serve::ServeConfig;

pub(super) fn relay(settings: &mut RelaySettings, walker: &mut dyn Walker) {
    let RelaySettings { urls, listen, tls_cert_file, tls_key_file, beside, beside_filter, service } = settings;
    let serve = &mut service.serve;
    let about = "Our own relay: embedded (listen), beside us (beside), or none; then this is a copy and no more.";
    let mut keys = Section::begin(walker, "relay", about);
    keys.key("urls", urls, "The URLs under which others know our service: in announcements, and to authenticate.");
    keys.key("listen", listen, "Embedded: be a relay, on this address.");
    keys.key_like(
        "tls_cert_file",
        tls_cert_file,
        "\"/etc/relaysync/cert.pem\"",
        "Embedded: be reached by wss, with this certificate and those behind it, in PEM. Read again with SIGHUP.",
    );
    keys.key_like("tls_key_file", tls_key_file, "\"/etc/relaysync/key.pem\"", "The certificate's key, in PEM.");
    keys.key_like(
        "beside",
        beside,
        "\"ws://127.0.0.1:7777\"",
        "Beside: a relay that runs already. What it has is taken, what it lacks is published to it.",
    );
    keys.key("beside_filter", beside_filter, "What is kept in step with the relay beside us; without it, everything.");
    keys.key("name", &mut serve.name, "The embedded relay's name, as clients show it.");
    keys.key_like(
        "description",
        &mut serve.description,
        "\"The issues and patches of our repositories\"",
        "A sentence about it.",
    );
    keys.hex_key("pubkey", &mut serve.pubkey, "Its administrator's public key.");
    keys.key("auth_required", &mut serve.auth_required, "Serve authenticated clients only (NIP-42).");
    keys.key(
        "challenges_early",
        &mut serve.challenges_early,
        "While events are protected, ask clients who they are before they ask.",
    );
    keys.key("negentropy", &mut serve.negentropy, "Answer set reconciliation (NIP-77).");
    keys.key("eose_hints", &mut serve.eose_hints, "Say in EOSE whether there is more (NIP-67).");
}

pub(super) fn limits(config: &mut ServiceConfig, walker: &mut dyn Walker) {
    let ServiceConfig {
        serve,
        // Stands in [relay].
        tls: _,
        handshakes_max,
        handshake_max,
        clients_max,
        clients_per_address_max,
        connects_per_address_per_minute_max,
        bounds_loopback,
        addresses_max,
        turned_away_max,
        request_max,
        request_bytes_max,
        accept_retry,
        frames_at_once_max,
        read_buffer_bytes,
        arrivals_max,
        store_reads_max,
        judge_max,
        close_max,
        shutdown_max,
    } = config;
    let about = "Bounds of the embedded relay. The defaults suit nearly everybody.";
    let mut keys = Section::begin(walker, "relay_limits", about);
    keys.count("clients_max", clients_max, "Connections open at once.");
    keys.count("clients_per_address_max", clients_per_address_max, "Of them, from one address.");
    keys.count(
        "connects_per_address_per_minute_max",
        connects_per_address_per_minute_max,
        "Connections that one address may open in a minute.",
    );
    keys.key(
        "bounds_loopback",
        bounds_loopback,
        "Both hold for this machine, too. Not where a proxy in front has the connections of all clients.",
    );
    keys.count("addresses_max", addresses_max, "Addresses remembered for both.");
    keys.count("turned_away_max", turned_away_max, "Connections being turned away; others are dropped without a word.");
    serve_limits(serve, &mut keys);
    keys.count("handshakes_max", handshakes_max, "TLS handshakes under way at once; other connections wait.");
    keys.duration("handshake_max", handshake_max, "A connection must be encrypted within this time.");
    keys.duration("request_max", request_max, "A connection must have sent its HTTP request within this time.");
    keys.bytes_from(8192, "request_bytes_max", request_bytes_max, "The head of an HTTP request.");
    keys.duration("accept_retry", accept_retry, "The wait after the system could not accept a connection.");
    keys.count("frames_at_once_max", frames_at_once_max, "Frames of one client before others have their turn.");
    keys.bytes("read_buffer_bytes", read_buffer_bytes, "Read from a client's socket at once, at most.");
    keys.count("arrivals_max", arrivals_max, "Turns of frames that wait; beyond that, clients do.");
    keys.count("store_reads_max", store_reads_max, "Reads of the store under way for all clients.");
    keys.duration("judge_max", judge_max, "Whether events are wanted must be known within this time.");
    keys.duration("close_max", close_max, "Time for the goodbye to a client.");
    keys.duration("shutdown_max", shutdown_max, "Time for the goodbye to all, and for storing what they sent.");
}

fn serve_limits(config: &mut ServeConfig, keys: &mut Section<'_>) {
    let ServeConfig {
        // These are told by the control plane.
        access: _,
        peers: _,
        identity: _,
        // These stand in [relay].
        name: _,
        description: _,
        pubkey: _,
        urls: _,
        auth_required: _,
        challenges_early: _,
        negentropy: _,
        eose_hints: _,
        // Whether discovery decides what is wanted.
        judged: _,
        auth_age_max,
        auth_attempts_max,
        events_per_minute_max,
        requests_per_minute_max,
        bytes_per_minute_max,
        outbound_total_bytes_max,
        pending_total_bytes_max,
        frame_bytes_max,
        subscription_id_chars_max,
        subscriptions_max,
        filters_max,
        page_events_max,
        page_events_default,
        read_bytes_max,
        reads_max,
        counts_max,
        outbound_bytes_max,
        outbound_pause_bytes,
        pending_bytes_max,
        batch_events_max,
        negentropy_sessions_max,
        negentropy_records_max,
        negentropy_frame_bytes_max,
        negentropy_idle_max,
        item_sets_max,
        item_sets_records_max,
        item_set_age_max,
    } = config;
    keys.duration("auth_age_max", auth_age_max, "The time of an AUTH event may be off by this, either way.");
    keys.count("auth_attempts_max", auth_attempts_max, "AUTH messages a connection.");
    keys.count("events_per_minute_max", events_per_minute_max, "Events that a client may publish in a minute.");
    keys.count("requests_per_minute_max", requests_per_minute_max, "Requests of a client in a minute.");
    keys.bytes("bytes_per_minute_max", bytes_per_minute_max, "What a client may send in a minute.");
    keys.bytes("frame_bytes_max", frame_bytes_max, "The largest frame taken from a client.");
    keys.count("subscription_id_chars_max", subscription_id_chars_max, "Characters of a subscription id.");
    keys.count("subscriptions_max", subscriptions_max, "Open subscriptions a client.");
    keys.count("filters_max", filters_max, "Filters a subscription.");
    keys.count("page_events_max", page_events_max, "Stored events a filter, at most.");
    keys.count("page_events_default", page_events_default, "Stored events for a filter without limit.");
    keys.bytes("read_bytes_max", read_bytes_max, "Stored events read at a time.");
    keys.count("reads_max", reads_max, "Reads of the store under way for one client.");
    keys.count("counts_max", counts_max, "COUNTs under way for one client.");
    keys.bytes("outbound_bytes_max", outbound_bytes_max, "A client for which more waits is cut.");
    keys.bytes("outbound_total_bytes_max", outbound_total_bytes_max, "The same for all; those with the most are cut.");
    keys.bytes("outbound_pause_bytes", outbound_pause_bytes, "While more waits for a client, nothing is read for it.");
    keys.bytes("pending_bytes_max", pending_bytes_max, "While more of a client waits to be stored, it is not read.");
    keys.bytes("pending_total_bytes_max", pending_total_bytes_max, "The same for all clients together.");
    keys.count("batch_events_max", batch_events_max, "Events checked, and events stored, at a time.");
    keys.count("negentropy_sessions_max", negentropy_sessions_max, "Open reconciliations a client.");
    keys.count("negentropy_records_max", negentropy_records_max, "Events of one reconciliation.");
    keys.bytes_from(
        4096,
        "negentropy_frame_bytes_max",
        negentropy_frame_bytes_max,
        "The largest reconciliation message sent, before it is written as hexadecimal.",
    );
    keys.duration(
        "negentropy_idle_max",
        negentropy_idle_max,
        "A reconciliation ends when the client is silent so long.",
    );
    keys.count("item_sets_max", item_sets_max, "Sets of items kept for further reconciliations.");
    keys.count("item_sets_records_max", item_sets_records_max, "Items in all of them, 40 bytes each.");
    keys.duration("item_set_age_max", item_set_age_max, "A set is read anew once it is so old.");
}
