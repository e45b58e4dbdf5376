//! NEG-OPEN, NEG-MSG, NEG-CLOSE (NIP-77), as the answering side.

use std::sync::Arc;

use negentropy::Negentropy;

use super::client::{Session, SessionState};
use super::io::{ClientId, ServeEffect, Ticket, WorkFault};
use super::item_sets::{Found, Waiter};
use super::server::{Job, Server};
use crate::protocol::message::relay;
use crate::protocol::{Filter, ItemSet, ItemView, Window, hex};
use crate::runtime::Now;

/// Answers one reconciliation message: the work of [`ServeEffect::Reconcile`]. About 10 ns an item of the view.
///
/// # Errors
/// The message is none, in words.
pub fn reconcile(view: ItemView, message: &[u8], frame_bytes_max: usize) -> Result<Vec<u8>, WorkFault> {
    let answer = |view| Negentropy::owned(view, frame_bytes_max as u64)?.reconcile(message);
    answer(view).map_err(|error: negentropy::Error| WorkFault(error.to_string()))
}

/// Below this the negentropy crate refuses to work.
const FRAME_BYTES_MIN: usize = 4096;

impl Server {
    pub(super) fn neg_open(&mut self, id: ClientId, name: &str, filter: Filter, message: &str, now: Now) {
        if !self.config.negentropy {
            return self.neg_unknown(id);
        }
        // Opening an id again closes the old session, whatever comes of the new one.
        self.clients.get_mut(&id).and_then(|client| client.sessions.remove(name));
        let message = match (self.neg_objection(id, name, &filter), hex::decode(message)) {
            (Some(reason), _) => return self.neg_refuse(id, name, &reason, None),
            (None, None) => return self.neg_refuse(id, name, "invalid: the message is not hexadecimal", None),
            (None, Some(message)) => message,
        };
        let view = match self.views(id, std::slice::from_ref(&filter)) {
            Ok(views) => views.at(0),
            Err(reason) => return self.neg_refuse(id, name, reason, None),
        };
        self.counters.negentropy += 1;
        let window = Window::of(&filter);
        let bare = Filter { since: None, until: None, limit: None, ..filter };
        let serial = self.serial();
        let state = SessionState::Loading { message };
        let heard_at = now.instant;
        let session = Session { serial, filter: bare.clone(), window, view: view.clone(), state, heard_at };
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.sessions.insert(name.to_owned(), session);
        let sweep_at = now.instant + self.sweep_every();
        self.sweep_at.get_or_insert(sweep_at);

        let waiter = Waiter { client: id, session: name.to_owned(), serial };
        match self.sets.request(&bare, window, &view, waiter.clone(), &mut self.tickets, now.instant) {
            Found::Set(set) => self.begin(&waiter, &set),
            Found::Awaited => {}
            Found::Read(ticket) => {
                self.counters.item_sets_read += 1;
                let now_secs = now.unix_secs;
                self.out.effects.push_back(ServeEffect::Items { ticket, filter: bare, window, view, now_secs });
            }
        }
    }

    fn neg_objection(&mut self, id: ClientId, name: &str, filter: &Filter) -> Option<String> {
        if let Some(reason) = self.objection(id, name) {
            return Some(reason);
        }
        if filter.search.is_some() {
            return Some("unsupported: search (NIP-50) is not supported".into());
        }
        let max = self.config.negentropy_sessions_max;
        let open = self.clients.get(&id)?.sessions.len();
        (open >= max).then(|| format!("rate-limited: too many concurrent NEG requests, at most {max}"))
    }

    pub(super) fn items_read(&mut self, ticket: Ticket, items: Result<Arc<ItemSet>, WorkFault>, now: Now) {
        if let Err(fault) = &items {
            self.fault("listing items", fault);
        }
        let (waiters, set) = self.sets.loaded(ticket, items.ok(), now.instant);
        for waiter in waiters {
            match &set {
                Some(set) => self.begin(&waiter, set),
                None if self.is_open(&waiter) => {
                    let reason = "error: the events cannot be listed at the moment";
                    self.neg_refuse(waiter.client, &waiter.session, reason, None);
                }
                None => {}
            }
        }
    }

    fn is_open(&self, waiter: &Waiter) -> bool {
        let session = self.clients.get(&waiter.client).and_then(|client| client.sessions.get(&waiter.session));
        session.is_some_and(|session| session.serial == waiter.serial)
    }

    /// Answers the first message of a session, whose set has come.
    fn begin(&mut self, waiter: &Waiter, set: &Arc<ItemSet>) {
        if !self.is_open(waiter) {
            return;
        }
        let Some(client) = self.clients.get_mut(&waiter.client) else { return };
        let Some(session) = client.sessions.get_mut(&waiter.session) else { return };
        let view = ItemView::new(set.clone(), session.window);
        let max = self.config.negentropy_records_max;
        if view.len() > max {
            let reason = format!("blocked: too many query results: {}, at most {max}", view.len());
            return self.neg_refuse(waiter.client, &waiter.session, &reason, Some(max as u64));
        }
        let SessionState::Loading { message } = &mut session.state else { return };
        let message = std::mem::take(message);
        session.state = SessionState::Answering { view: view.clone() };
        self.answer(waiter.client, &waiter.session, waiter.serial, view, message);
    }

    fn answer(&mut self, client: ClientId, session: &str, serial: u64, view: ItemView, message: Vec<u8>) {
        let ticket = self.tickets.issue();
        self.jobs.insert(ticket, Job::Answer { client, session: session.to_owned(), serial });
        let frame_bytes_max = self.config.negentropy_frame_bytes_max.max(FRAME_BYTES_MIN);
        self.out.effects.push_back(ServeEffect::Reconcile { ticket, view, message, frame_bytes_max });
    }

    pub(super) fn neg_msg(&mut self, id: ClientId, name: &str, message: &str, now: Now) {
        if !self.config.negentropy {
            return self.neg_unknown(id);
        }
        let session = self.clients.get_mut(&id).and_then(|client| client.sessions.get_mut(name));
        let Some(session) = session else {
            return self.neg_refuse(id, name, "closed: no such reconciliation is open", None);
        };
        session.heard_at = now.instant;
        let SessionState::Listening { view } = &session.state else {
            return self.neg_refuse(id, name, "invalid: the last message is still being answered", None);
        };
        let (view, serial) = (view.clone(), session.serial);
        let Some(message) = hex::decode(message) else {
            return self.neg_refuse(id, name, "invalid: the message is not hexadecimal", None);
        };
        session.state = SessionState::Answering { view: view.clone() };
        self.answer(id, name, serial, view, message);
    }

    pub(super) fn reconciled(&mut self, ticket: Ticket, answer: Result<Vec<u8>, WorkFault>) {
        let Some(Job::Answer { client: id, session: name, serial }) = self.jobs.remove(&ticket) else { return };
        let Some(client) = self.clients.get_mut(&id) else { return };
        let Some(session) = client.sessions.get_mut(&name).filter(|session| session.serial == serial) else { return };
        match (answer, &session.state) {
            (Ok(message), SessionState::Answering { view }) => {
                session.state = SessionState::Listening { view: view.clone() };
                client.send(&mut self.out, relay::neg_msg(&name, &message));
            }
            (Err(fault), _) => self.neg_refuse(id, &name, &format!("invalid: {fault}"), None),
            (Ok(_), _) => {}
        }
    }

    pub(super) fn close_idle_sessions(&mut self, now: Now) {
        let idle_max = self.config.negentropy_idle_max;
        let mut idle = Vec::new();
        let mut is_any_left = false;
        for (id, client) in &self.clients {
            for (name, session) in &client.sessions {
                match now.instant.since(session.heard_at) >= idle_max {
                    true => idle.push((*id, name.clone())),
                    false => is_any_left = true,
                }
            }
        }
        for (id, name) in idle {
            self.neg_refuse(id, &name, "closed: nothing was heard for too long", None);
        }
        if is_any_left {
            self.sweep_at = Some(now.instant + self.sweep_every());
        }
    }

    /// Ends the session, if there is one, with an error.
    fn neg_refuse(&mut self, id: ClientId, name: &str, reason: &str, records_max: Option<u64>) {
        self.counters.negentropy_refused += 1;
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.sessions.remove(name);
        client.send(&mut self.out, relay::neg_err(name, reason, records_max));
    }

    fn neg_unknown(&mut self, id: ClientId) {
        self.counters.negentropy_refused += 1;
        if let Some(client) = self.clients.get_mut(&id) {
            client.send(&mut self.out, relay::notice("ERROR: bad msg: negentropy disabled"));
        }
    }
}
