//! What is refused, and who is cut, because a limit is reached.

use super::io::{ClientId, Cut};
use super::publishing::claimed_id;
use super::server::Server;
use crate::protocol::message::{ClientMessage, relay};
use crate::runtime::Now;

const TOO_MANY_EVENTS: &str = "rate-limited: too many events, slow down";
const TOO_MANY_REQUESTS: &str = "rate-limited: too many requests, slow down";
const TOO_MANY_BYTES: &str = "rate-limited: too many bytes, slow down";

impl Server {
    /// Charges a frame to the client's rates; why it is refused, if they do not suffice.
    pub(super) fn rate_objection(
        &mut self,
        id: ClientId,
        message: Option<&ClientMessage<'_>>,
        frame_bytes: usize,
        now: Now,
    ) -> Option<&'static str> {
        let (config, counters) = (&self.config, &mut self.counters);
        let rates = &mut self.clients.get_mut(&id)?.rates;
        if let Some(ClientMessage::Close { .. } | ClientMessage::NegClose { .. }) = message {
            return None; // They make less work.
        }
        if !rates.bytes.take(frame_bytes as u64, config.bytes_per_minute_max, now.instant) {
            counters.frames_rate_limited += 1;
            return Some(TOO_MANY_BYTES);
        }
        match message? {
            ClientMessage::Event { .. } => {
                let is_over = !rates.events.take(1, config.events_per_minute_max, now.instant);
                counters.events_rate_limited += u64::from(is_over);
                is_over.then_some(TOO_MANY_EVENTS)
            }
            ClientMessage::Req { .. } | ClientMessage::Count { .. } | ClientMessage::NegOpen { .. } => {
                let is_over = !rates.requests.take(1, config.requests_per_minute_max, now.instant);
                counters.requests_rate_limited += u64::from(is_over);
                is_over.then_some(TOO_MANY_REQUESTS)
            }
            _ => None,
        }
    }

    /// Refuses a message (`None`: what is none), in the way that its kind calls for.
    pub(super) fn refuse_message(&mut self, id: ClientId, message: Option<ClientMessage<'_>>, reason: &str) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let answer = match message {
            Some(ClientMessage::Event { json }) => {
                self.counters.events += 1;
                return self.refuse(id, &claimed_id(json), reason);
            }
            Some(ClientMessage::Auth { json }) => relay::ok(&claimed_id(json), false, reason),
            Some(ClientMessage::Req { subscription, .. }) => {
                client.unsubscribe(&mut self.out, &subscription);
                relay::closed(&subscription, reason)
            }
            Some(ClientMessage::Count { subscription, .. }) => relay::closed(&subscription, reason),
            Some(ClientMessage::NegOpen { subscription, .. } | ClientMessage::NegMsg { subscription, .. })
                if self.config.negentropy =>
            {
                client.sessions.remove(&*subscription);
                relay::neg_err(&subscription, reason, None)
            }
            _ => relay::notice(reason),
        };
        client.send(&mut self.out, answer);
    }

    /// Ends the connections of clients for which more waits than may; for all together, first of those with the most.
    pub(super) fn cut_slow_readers(&mut self) {
        while let Some(client) = self.out.overflowed.pop_first() {
            self.cut(client, Cut::SlowReader);
        }
        while self.out.total_bytes > self.config.outbound_total_bytes_max {
            let Some((&slowest, _)) = self.clients.iter().max_by_key(|(_, client)| client.outbound_bytes) else {
                return;
            };
            self.counters.clients_cut_for_all += 1;
            self.cut(slowest, Cut::SlowReader);
        }
    }
}
