//! Faults of set reconciliation (NIP-77).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Tamper, Turn};
use crate::protocol::message::relay;
use crate::protocol::{ClientMessage, Item, ItemSet, ItemView, Window, hex};
use crate::serve::{ClientId, reconcile};

/// In what form a relay refuses to reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NegRefusal {
    /// A NOTICE, which names no subscription.
    Notice(String),
    /// A CLOSED.
    Closed(String),
    /// A NEG-ERR.
    NegErr(String),
    /// Nothing at all.
    Silence,
}

impl NegRefusal {
    /// Refuses the session of this name.
    pub(super) fn say(&self, name: &str, turn: &mut Turn) {
        match self {
            Self::Notice(text) => turn.say(relay::notice(text)),
            Self::Closed(text) => turn.say(relay::closed(name, text)),
            Self::NegErr(text) => turn.say(relay::neg_err(name, text, None)),
            Self::Silence => {}
        }
    }
}

/// A relay that does not reconcile.
#[derive(Debug, Clone)]
pub struct NegentropyRefused(pub NegRefusal);

impl NegentropyRefused {
    /// By a NOTICE with this text.
    pub fn notice(text: &str) -> Self {
        Self(NegRefusal::Notice(text.to_owned()))
    }
}

impl Tamper for NegentropyRefused {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        match ClientMessage::parse(&frame) {
            Ok(ClientMessage::NegOpen { subscription, .. }) => {
                self.0.say(&subscription, turn);
                None
            }
            Ok(ClientMessage::NegMsg { .. } | ClientMessage::NegClose { .. }) => None,
            _ => Some(frame),
        }
    }
}

/// Answers every reconciliation message in such a way that there is always a difference left.
#[derive(Debug, Clone, Default)]
pub struct Infinite {
    answers: u8,
}

impl Tamper for Infinite {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        let subscription = match ClientMessage::parse(&frame) {
            Ok(ClientMessage::NegOpen { subscription, .. } | ClientMessage::NegMsg { subscription, .. }) => {
                subscription.into_owned()
            }
            _ => return Some(frame),
        };
        self.answers = self.answers.wrapping_add(1);
        // Version 1; one range, up to infinity; a fingerprint (mode 1) that fits nothing.
        let mut message = vec![0x61, 0, 0, 1];
        message.extend([self.answers; 16]);
        turn.say(relay::neg_msg(&subscription, &message));
        None
    }
}

/// A codec that ends a session early with items missing: each session shows half of what is left of a set.
#[derive(Debug, Clone)]
pub struct ShortCodec {
    items: Vec<Item>,
    sessions: usize,
    views: BTreeMap<(ClientId, String), ItemView>,
}

impl ShortCodec {
    /// Over all items of the relay.
    pub fn new(items: impl IntoIterator<Item = Item>) -> Self {
        Self { items: items.into_iter().collect(), sessions: 0, views: BTreeMap::new() }
    }

    fn open(&mut self) -> ItemView {
        self.sessions += 1;
        let step = 1 << self.sessions.min(30);
        let shown = self.items.iter().enumerate().filter(|(index, _)| index % step != step - 1).map(|(_, item)| *item);
        ItemView::new(Arc::new(shown.collect::<ItemSet>()), Window::ALL)
    }
}

impl Tamper for ShortCodec {
    fn handle_client(&mut self, frame: String, turn: &mut Turn) -> Option<String> {
        let (subscription, message) = match ClientMessage::parse(&frame) {
            Ok(ClientMessage::NegOpen { subscription, message, .. }) => {
                let view = self.open();
                self.views.insert((turn.client, subscription.clone().into_owned()), view);
                (subscription.into_owned(), message.into_owned())
            }
            Ok(ClientMessage::NegMsg { subscription, message }) => (subscription.into_owned(), message.into_owned()),
            _ => return Some(frame),
        };
        let view = self.views.get(&(turn.client, subscription.clone()))?.clone();
        let message = hex::decode(&message)?;
        match reconcile(view, &message, 60_000) {
            Ok(answer) => turn.say(relay::neg_msg(&subscription, &answer)),
            Err(fault) => turn.say(relay::neg_err(&subscription, &fault.0, None)),
        }
        None
    }
}
