//! AUTH (NIP-42).

use std::sync::Arc;

use super::config::ServeConfig;
use super::io::{ClientId, Cut};
use super::publishing::claimed_id;
use super::server::Server;
use crate::ingest;
use crate::protocol::message::{event_of_frame, relay};
use crate::protocol::{Event, RelayUrl};
use crate::runtime::{Frame, Now};

/// The kind of an AUTH event.
pub(super) const KIND: u16 = 22_242;

impl Server {
    pub(super) fn auth(&mut self, id: ClientId, frame: &Frame, json: &str, now: Now) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.auth_attempts += 1;
        if client.auth_attempts > self.config.auth_attempts_max {
            return self.cut(id, Cut::AuthAttempts);
        }
        let event = event_of_frame(frame.bytes(), json).map_err(|error| format!("invalid: {error}"));
        // Checked here and now, so that what the client sends right behind it counts as authenticated.
        let checked = event.and_then(|event| match objection(&event, &client.challenge, &self.config, now) {
            Some(reason) => Err(reason.to_owned()),
            None => ingest::verify(event).map_err(|_| "invalid: the id or signature is wrong".to_owned()),
        });
        let answer = match checked {
            Ok(event) => {
                self.counters.auths += 1;
                Arc::make_mut(&mut client.keys).insert(event.pubkey);
                relay::ok(&event.id.to_hex(), true, "")
            }
            Err(reason) => {
                self.counters.auths_refused += 1;
                relay::ok(&claimed_id(json), false, &reason)
            }
        };
        client.send(&mut self.out, answer);
    }
}

fn objection(event: &Event, challenge: &str, config: &ServeConfig, now: Now) -> Option<&'static str> {
    let tag = |name: &str| event.tags.iter().find(|tag| tag.kind() == name).and_then(|tag| tag.content());
    if event.kind_number() != KIND {
        return Some("invalid: an AUTH event has kind 22242");
    }
    if tag("challenge") != Some(challenge) {
        return Some("invalid: the challenge is another");
    }
    if event.created_at_secs().abs_diff(now.unix_secs) > config.auth_age_max.as_secs() {
        return Some("invalid: the time is too far off");
    }
    // By host only: what stands before us may change scheme, port and path.
    let host = tag("relay").and_then(|url| RelayUrl::parse(url).ok()).map(|url| url.host());
    let is_ours = host.is_some_and(|host| config.urls.iter().any(|url| url.host() == host));
    (!is_ours).then_some("invalid: the relay tag names another relay")
}
