//! REQ and COUNT.

use std::collections::BTreeSet;

use super::access::CHANGED;
use super::client::{InFlight, Subscription};
use super::io::{ClientId, ServeEffect, Ticket, WorkFault};
use super::merge::Merge;
use super::server::{Job, Server};
use crate::protocol::Filter;
use crate::protocol::message::{EoseHint, relay};
use crate::runtime::Now;
use crate::store::Page;

impl Server {
    pub(super) fn req(&mut self, id: ClientId, subscription: &str, filters: Vec<Filter>, now: Now) {
        let views = match self.req_objection(id, subscription, &filters) {
            Some(reason) => Err(reason),
            None => self.views(id, &filters).map_err(Into::into),
        };
        let views = match views {
            Ok(views) => views,
            Err(reason) => return self.refuse_req(id, subscription, &reason),
        };
        self.counters.requests += 1;
        let serial = self.serial();
        let stored = Some(Merge::new(&filters, views, &self.config));
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.unsubscribe(&mut self.out, subscription);
        let (sent, held, in_flight) = (BTreeSet::new(), Vec::new(), InFlight::default());
        let fresh = Subscription { serial, filters, stored, sent, in_flight, held };
        client.subscriptions.insert(subscription.to_owned(), fresh);
        self.proceed(id, subscription, now);
    }

    fn refuse_req(&mut self, id: ClientId, subscription: &str, reason: &str) {
        self.counters.requests_refused += 1;
        let Some(client) = self.clients.get_mut(&id) else { return };
        // A REQ that is refused leaves nothing of an older one with its id.
        client.unsubscribe(&mut self.out, subscription);
        client.send(&mut self.out, relay::closed(subscription, reason));
    }

    fn req_objection(&mut self, id: ClientId, subscription: &str, filters: &[Filter]) -> Option<String> {
        if let Some(reason) = self.objection(id, subscription).or_else(|| self.filters_objection(filters)) {
            return Some(reason);
        }
        let open = &self.clients.get(&id)?.subscriptions;
        let max = self.config.subscriptions_max;
        (open.len() >= max && !open.contains_key(subscription))
            .then(|| format!("rate-limited: too many open subscriptions, at most {max}"))
    }

    fn filters_objection(&self, filters: &[Filter]) -> Option<String> {
        let max = self.config.filters_max;
        if filters.len() > max {
            return Some(format!("invalid: too many filters, at most {max}"));
        }
        // To ignore the words would be to send everything.
        let searches = filters.iter().any(|filter| filter.search.is_some());
        searches.then(|| "unsupported: search (NIP-50) is not supported".into())
    }

    /// Sends what stored events of a subscription are at hand, then EOSE or has it wait for its turn to read more.
    fn proceed(&mut self, id: ClientId, name: &str, now: Now) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let Some(mut subscription) = client.subscriptions.remove(name) else { return };
        if let Some(mut stored) = subscription.stored.take() {
            while let Some(record) = stored.pop() {
                subscription.sent.insert(record.id);
                client.send(&mut self.out, relay::event(name, &String::from_utf8_lossy(&record.json)));
            }
            if stored.is_over() {
                self.counters.pages_capped += stored.capped() as u64;
                let hint = if self.config.eose_hints { stored.hint() } else { EoseHint::None };
                client.send(&mut self.out, relay::eose(name, hint));
                client.release_held(&mut self.out, &mut subscription);
                let (begun, over) = self.elsewhere;
                let elsewhere = (begun > over).then_some(begun);
                let in_flight = InFlight { here: self.intake.is_committing(), elsewhere };
                subscription.land(|state| *state = in_flight);
            } else {
                if !stored.is_waiting() {
                    client.turns.push_back((name.to_owned(), subscription.serial));
                }
                subscription.stored = Some(stored);
            }
        }
        client.subscriptions.insert(name.to_owned(), subscription);
        self.take_turns(id, now);
    }

    /// Reads for the subscriptions whose turn it is, as long as the client takes what was read before.
    pub(super) fn take_turns(&mut self, id: ClientId, now: Now) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let reads_max = self.config.reads_max.max(1);
        let is_crowded = self.out.total_bytes > self.config.outbound_total_bytes_max / 2;
        let pause_bytes = if is_crowded { 0 } else { self.config.outbound_pause_bytes };
        while client.reads < reads_max && client.outbound_bytes <= pause_bytes {
            let Some((name, serial)) = client.next_turn(reads_max) else { return };
            let current = client.subscriptions.get_mut(&name);
            let Some(stored) = current.and_then(|subscription| subscription.stored.as_mut()) else { continue };
            for (stream, query) in stored.asks(reads_max - client.reads, now.unix_secs) {
                let ticket = self.tickets.issue();
                let subscription = name.clone();
                self.jobs.insert(ticket, Job::Read { client: id, subscription, serial, stream });
                client.reads += 1;
                self.out.effects.push_back(ServeEffect::Query { ticket, query });
            }
        }
    }

    pub(super) fn queried(&mut self, ticket: Ticket, page: Result<Page, WorkFault>, now: Now) {
        let Some(Job::Read { client: id, subscription: name, serial, stream }) = self.jobs.remove(&ticket) else {
            return;
        };
        if let Err(fault) = &page {
            self.fault("reading events", fault);
        }
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.reads = client.reads.saturating_sub(1);
        let current = client.subscriptions.get_mut(&name).filter(|subscription| subscription.serial == serial);
        match (current.and_then(|subscription| subscription.stored.as_mut()), page) {
            (None, _) => self.take_turns(id, now),
            (Some(stored), Ok(page)) => {
                stored.answer(stream, page);
                self.proceed(id, &name, now);
            }
            (Some(_), Err(_)) => {
                client.unsubscribe(&mut self.out, &name);
                client.send(&mut self.out, relay::closed(&name, "error: the events cannot be read at the moment"));
                self.take_turns(id, now);
            }
        }
    }

    pub(super) fn count(&mut self, id: ClientId, subscription: &str, filters: Vec<Filter>, now: Now) {
        let views = match self.count_objection(id, subscription, &filters) {
            Some(reason) => Err(reason),
            None => self.views(id, &filters).map_err(Into::into),
        };
        let Some(client) = self.clients.get_mut(&id) else { return };
        let view = match views {
            Ok(views) => views.together(),
            Err(reason) => {
                self.counters.counts_refused += 1;
                return client.send(&mut self.out, relay::closed(subscription, &reason));
            }
        };
        self.counters.counts += 1;
        client.counts += 1;
        let ticket = self.tickets.issue();
        let (subscription, access_changes) = (subscription.to_owned(), self.access_changes);
        self.jobs.insert(ticket, Job::Count { client: id, subscription, access_changes });
        self.out.effects.push_back(ServeEffect::Count { ticket, filters, view, now_secs: now.unix_secs });
    }

    fn count_objection(&mut self, id: ClientId, subscription: &str, filters: &[Filter]) -> Option<String> {
        if let Some(reason) = self.objection(id, subscription).or_else(|| self.filters_objection(filters)) {
            return Some(reason);
        }
        let max = self.config.counts_max;
        let in_flight = self.clients.get(&id)?.counts;
        (in_flight >= max).then(|| format!("rate-limited: too many COUNTs at once, at most {max}"))
    }

    pub(super) fn counted(&mut self, ticket: Ticket, count: Result<u64, WorkFault>) {
        let Some(Job::Count { client, subscription, access_changes }) = self.jobs.remove(&ticket) else { return };
        let answer = match count {
            _ if access_changes != self.access_changes => relay::closed(&subscription, CHANGED),
            Ok(count) => relay::count(&subscription, count),
            Err(fault) => {
                self.fault("counting events", &fault);
                relay::closed(&subscription, "error: the events cannot be counted at the moment")
            }
        };
        let Some(client) = self.clients.get_mut(&client) else { return };
        client.counts = client.counts.saturating_sub(1);
        client.send(&mut self.out, answer);
    }
}
