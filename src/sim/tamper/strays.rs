//! Events that nobody asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Chance, Tamper, Turn, event_of, name_of, req_of};
use crate::protocol::filter::matches;
use crate::protocol::message::relay;
use crate::protocol::{Event, Filter};
use crate::serve::ClientId;

/// What kind of events nobody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stray {
    /// A copy of an event goes to another subscription of the client too, whose answer is over or which it does not
    /// match.
    OtherSubscription,
    /// An event goes to another subscription of the client, and not to its own.
    Moved,
    /// A copy of an event goes to a subscription that was never opened.
    NeverOpened,
    /// Some other event that does not match the filter.
    NoMatch,
    /// An honest event dated in the future.
    Future,
    /// An honest event dated at zero, behind the first event of an answer.
    Zero,
}

impl Stray {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OtherSubscription => "event of another subscription",
            Self::Moved => "event to the wrong subscription",
            Self::NeverOpened => "event of no subscription",
            Self::NoMatch => "event that does not match",
            Self::Future => "event of the future unasked",
            Self::Zero => "event of 1970 unasked",
        }
    }
}

/// A subscription, as far as it is known here.
#[derive(Debug, Clone)]
struct Open {
    filters: Vec<Filter>,
    events: u64,
    is_over: bool,
}

/// A relay that sends what nobody asked for.
#[derive(Debug, Clone)]
pub struct Strays {
    stray: Stray,
    pool: Arc<[Event]>,
    chance: Chance,
    open: BTreeMap<(ClientId, String), Open>,
}

/// How far from now an event is of the future, in seconds.
const FUTURE_SECS: u64 = 60;

/// Events of the pool that are looked at for one that suits.
const LOOKS: u32 = 16;

impl Strays {
    /// Sends such events out of `pool`, so often.
    pub fn new(stray: Stray, pool: Arc<[Event]>, chance: Chance) -> Self {
        Self { stray, pool, chance, open: BTreeMap::new() }
    }

    fn find_in_pool(&mut self, suits: impl Fn(&Event) -> bool) -> Option<Event> {
        let pool = self.pool.clone();
        let start = usize::try_from(self.chance.below(pool.len() as u64)).ok()?;
        pool.iter().cycle().skip(start).take(pool.len()).find(|event| suits(event)).cloned()
    }

    /// Another subscription of the client; for copies of an event, one that does not expect it.
    fn another(&mut self, client: ClientId, name: &str, event: &Event, is_copy: bool) -> Option<String> {
        let open: Vec<&String> = self
            .open
            .iter()
            .filter(|((of, other), open)| {
                let expected = !open.is_over && open.filters.iter().any(|filter| matches(filter, event));
                *of == client && other != name && !(is_copy && expected)
            })
            .map(|((_, other), _)| other)
            .collect();
        self.chance.pick(&open).map(|name| (*name).clone())
    }

    /// The frame that nobody asked for, beside `frame` of the subscription `name`.
    fn stray(&mut self, frame: &str, name: &str, turn: &Turn) -> Option<String> {
        let (client, now_secs) = (turn.client, turn.now.unix_secs);
        match self.stray {
            Stray::OtherSubscription | Stray::Moved => {
                let (_, event) = event_of(frame)?;
                let other = self.another(client, name, &event, self.stray == Stray::OtherSubscription)?;
                Some(relay::event(&other, event.json_str()))
            }
            Stray::NeverOpened => {
                let other = self.chance.words(&["s987654321", "", "nobody", "s", "s-1", "s18446744073709551616"]);
                event_of(frame).map(|(_, event)| relay::event(other, event.json_str()))
            }
            Stray::NoMatch => {
                let filters = self.open.get(&(client, name.to_owned()))?.filters.clone();
                let pool = self.pool.clone();
                let other = (0..LOOKS)
                    .filter_map(|_| self.chance.pick(&pool))
                    .find(|event| filters.iter().all(|filter| !matches(filter, event)))?;
                Some(relay::event(name, other.json_str()))
            }
            Stray::Future => {
                let event = self.find_in_pool(|event| event.created_at_secs() > now_secs + FUTURE_SECS)?;
                Some(relay::event(name, event.json_str()))
            }
            Stray::Zero => {
                let event = self.find_in_pool(|event| event.created_at_secs() == 0)?;
                Some(relay::event(name, event.json_str()))
            }
        }
    }
}

impl Tamper for Strays {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        if let Some((name, filters)) = req_of(&frame) {
            self.open.insert((turn.client, name), Open { filters, events: 0, is_over: false });
        }
        Some(frame)
    }

    fn handle_relay(&mut self, frame: String, turn: &mut Turn) {
        if let Some(open) = name_of(&frame, "EOSE").and_then(|name| self.open.get_mut(&(turn.client, name.to_owned())))
        {
            open.is_over = true;
            return turn.say(frame);
        }
        let Some(name) = name_of(&frame, "EVENT").map(str::to_owned) else { return turn.say(frame) };
        let Some(open) = self.open.get_mut(&(turn.client, name.clone())) else { return turn.say(frame) };
        open.events += 1;
        // As the last event of a page, one of 1970 would pass for its end: nobody could tell.
        let suits = self.stray != Stray::Zero || open.events == 1;
        let stray = match suits && self.chance.hits() {
            true => self.stray(&frame, &name, turn),
            false => None,
        };
        if self.stray != Stray::Moved || stray.is_none() {
            turn.say(frame);
        }
        if let Some(stray) = stray {
            turn.inject(self.stray.name());
            turn.say(stray);
        }
    }
}
