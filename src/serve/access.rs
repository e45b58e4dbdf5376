//! What clients may not read: who asks for it by name is refused, all else is answered as if it were not held. And what
//! becomes of what is under way when the rules change.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::client::{Client, Outbox};
use super::counters::Counters;
use super::io::ClientId;
use super::server::Server;
use crate::peer::{AccessRules, FilterVerdict, View};
use crate::protocol::message::relay;
use crate::protocol::{Filter, PublicKey};
use crate::runtime::Now;

/// What a client is told whose answer would have to be of two kinds: [`Refusal::Changed`](crate::relay::Refusal::Changed)
/// reads it.
pub(super) const CHANGED: &str = "error: the access rules have changed, ask again";

/// What some filters of a client are answered through: each by its own view. Without any, all see everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Views(Vec<View>);

/// Filters that ask for protected events by name.
#[derive(Debug)]
pub(super) struct Refused;

impl Views {
    /// The views through which whoever has authenticated as `keys` sees what `filters` select.
    pub(super) fn of(rules: &AccessRules, keys: &BTreeSet<PublicKey>, filters: &[Filter]) -> Result<Self, Refused> {
        if rules.is_open() {
            return Ok(Self::default());
        }
        let view = |filter| match rules.verdict(keys, filter) {
            FilterVerdict::Whole => Ok(View::all()),
            FilterVerdict::Veiled(view) => Ok(view),
            FilterVerdict::Refused => Err(Refused),
        };
        let views = filters.iter().map(view).collect::<Result<Vec<View>, Refused>>()?;
        Ok(if views.iter().all(View::is_all) { Self::default() } else { Self(views) })
    }

    /// The view for the filter with this number.
    pub(super) fn at(&self, number: usize) -> View {
        self.0.get(number).cloned().unwrap_or_default()
    }

    /// One view for all of the filters together.
    pub(super) fn together(&self) -> View {
        // Where a filter sees everything, it selects nothing that the others' view hides.
        self.0.iter().find(|view| !view.is_all()).cloned().unwrap_or_default()
    }
}

impl Refused {
    /// The reason in the words of NIP-01 and NIP-42; who has not authenticated is asked to.
    pub(super) fn reason(&self, client: &mut Client, out: &mut Outbox) -> &'static str {
        if client.keys.is_empty() {
            client.challenge(out);
            return "auth-required: the filter asks for protected events, authenticate first (NIP-42)";
        }
        "restricted: the filter asks for protected events that your key may not read"
    }
}

impl Server {
    /// The views for some filters of a client, or why they are refused.
    pub(super) fn views(&mut self, id: ClientId, filters: &[Filter]) -> Result<Views, &'static str> {
        let Some(client) = self.clients.get_mut(&id) else { return Ok(Views::default()) };
        Views::of(&self.config.access, &client.keys, filters).map_err(|refused| {
            self.counters.reads_forbidden += 1;
            refused.reason(client, &mut self.out)
        })
    }

    /// Other rules hold from now on: nothing that was read under the old ones is sent any more, and who may do more is
    /// told by another challenge, so that it asks again.
    pub(super) fn access(&mut self, rules: Arc<AccessRules>, now: Now) {
        let older = std::mem::replace(&mut self.config.access, rules);
        let rules = self.config.access.clone();
        if rules == older {
            return;
        }
        self.access_changes += 1;
        let changes = rules.changes_since(&older);
        let mut waiting = Vec::new();
        for (id, client) in &mut self.clients {
            if self.config.challenges_early && !rules.is_open() {
                // As for those that connect from now on.
                client.challenge(&mut self.out);
            }
            if changes.spare(&*client.keys) {
                continue;
            }
            if client.judge_again(&rules, &mut self.out, &mut self.counters) {
                waiting.push(*id);
            }
            if client.keys.iter().any(|key| changes.has_gained(key)) {
                let challenge = relay::auth(&client.challenge);
                client.send(&mut self.out, challenge);
            }
        }
        for id in waiting {
            self.take_turns(id, now);
        }
    }
}

impl Client {
    /// Ends what may not go on as it has begun under these rules. Says whether subscriptions were ended, so that others may
    /// have their turn to read.
    fn judge_again(&mut self, rules: &AccessRules, out: &mut Outbox, counters: &mut Counters) -> bool {
        let mut ended = Vec::new();
        for (name, subscription) in &self.subscriptions {
            match Views::of(rules, &self.keys, &subscription.filters) {
                Err(refused) => ended.push((name.clone(), Some(refused))),
                // What is live is judged event by event.
                Ok(views) if subscription.stored.as_ref().is_some_and(|it| *it.views() != views) => {
                    ended.push((name.clone(), None));
                }
                Ok(_) => {}
            }
        }
        let is_any_ended = !ended.is_empty();
        for (name, refused) in ended {
            counters.reads_forbidden += u64::from(refused.is_some());
            self.unsubscribe(out, &name);
            let reason = refused.map_or(CHANGED, |refused| refused.reason(self, out));
            self.send(out, relay::closed(&name, reason));
        }
        let judge = |filter: &Filter| Views::of(rules, &self.keys, std::slice::from_ref(filter));
        let mut ended = Vec::new();
        for (name, session) in &self.sessions {
            match judge(&session.filter) {
                Err(refused) => ended.push((name.clone(), Some(refused))),
                Ok(views) if views.at(0) != session.view => ended.push((name.clone(), None)),
                Ok(_) => {}
            }
        }
        for (name, refused) in ended {
            counters.reads_forbidden += u64::from(refused.is_some());
            counters.negentropy_refused += 1;
            self.sessions.remove(&name);
            let reason = refused.map_or(CHANGED, |refused| refused.reason(self, out));
            self.send(out, relay::neg_err(&name, reason, None));
        }
        is_any_ended
    }
}
