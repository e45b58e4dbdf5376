//! Sockets to relays.

use crate::native::SocketConfig;
use crate::native::settings::keys::{Section, Walker};

pub(super) fn sockets(config: &mut SocketConfig, walker: &mut dyn Walker) {
    let SocketConfig {
        // The engine bounds these: see `Settings::sockets`.
        connect_timeout: _,
        frame_bytes_max: _,
        address_stagger,
        outbound_bytes_max,
        write_timeout,
        close_timeout,
        read_buffer_bytes,
        receive_frames_max,
        receive_bytes_max,
        info_bytes_max,
        info_timeout,
        nodelay,
        keepalive_idle,
        keepalive_interval,
        ca_file,
        tls_terms_max,
    } = config;
    let about = "Connections to relays. The defaults suit nearly everybody.";
    let mut keys = Section::begin(walker, "sockets", about);
    keys.key_like(
        "ca_file",
        ca_file,
        "\"/etc/relaysync/ca.pem\"",
        "PEM file with certificate authorities that are trusted besides the usual ones.",
    );
    keys.duration(
        "address_stagger",
        address_stagger,
        "One address of a host is tried so long before the next is tried beside it.",
    );
    keys.bytes("outbound_bytes_max", outbound_bytes_max, "What may wait to be sent on one connection.");
    keys.duration("write_timeout", write_timeout, "A relay may take nothing of what waits for so long.");
    keys.duration("close_timeout", close_timeout, "Time to send what is left and say goodbye.");
    keys.bytes("read_buffer_bytes", read_buffer_bytes, "Read from a socket at once, at most.");
    keys.count("receive_frames_max", receive_frames_max, "Frames handed over at once, at most.");
    keys.bytes("receive_bytes_max", receive_bytes_max, "After so much, no more frames are handed over at once.");
    keys.bytes("info_bytes_max", info_bytes_max, "The largest relay information document (NIP-11).");
    keys.duration("info_timeout", info_timeout, "Time to fetch it.");
    keys.key("nodelay", nodelay, "Send small frames at once (TCP_NODELAY).");
    keys.duration("keepalive_idle", keepalive_idle, "After so long without traffic the system probes a connection.");
    keys.duration("keepalive_interval", keepalive_interval, "Time between two such probes.");
    keys.count("tls_terms_max", tls_terms_max, "Distinct terms of peers that TLS is kept set up for.");
}
