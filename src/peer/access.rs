//! Who may read and write which protected events.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::View;
use crate::protocol::filter::matches;
use crate::protocol::{Filter, PublicKey};

/// What a rule allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// To read: to be answered, to be sent what is new, and to be published to.
    SyncRead,
    /// To write: to publish here, and to be fetched from.
    SyncWrite,
}

/// One rule: who may do what with which protected events.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Rule {
    /// The authenticated key that is granted this.
    pub principal: PublicKey,
    /// What it may do.
    pub capability: Capability,
    /// With which events: `kinds`, `authors` and tags of a filter.
    #[serde(rename = "match")]
    pub events: Filter,
}

/// Which events are protected, and the rules that say who may read and write them. What is not protected is free to
/// all; of what is, nobody has anything unless a rule says so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessRules {
    protected: Arc<[Filter]>,
    rules: BTreeSet<Rule>,
}

impl AccessRules {
    /// Whatever satisfies one of `protected` is, and `rules` hold.
    pub fn new(protected: impl IntoIterator<Item = Filter>, rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { protected: protected.into_iter().collect(), rules: rules.into_iter().collect() }
    }

    /// Is nothing protected, so that nobody is kept from anything?
    pub fn is_open(&self) -> bool {
        self.protected.is_empty()
    }

    /// Is this event protected?
    pub fn protects(&self, event: &nostr::event::Event) -> bool {
        self.protected.iter().any(|filter| matches(filter, event))
    }

    /// May whoever has authenticated as `keys` do this with this event?
    pub fn allows<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k PublicKey>,
        capability: Capability,
        event: &nostr::event::Event,
    ) -> bool {
        if !self.protects(event) {
            return true;
        }
        let keys: Vec<&PublicKey> = keys.into_iter().collect();
        let is_about = |rule: &&Rule| rule.capability == capability && keys.contains(&&rule.principal);
        self.rules.iter().filter(is_about).any(|rule| matches(&rule.events, event))
    }

    /// What whoever has authenticated as `keys` may see.
    pub fn view<'k>(&self, keys: impl IntoIterator<Item = &'k PublicKey>) -> View {
        if self.is_open() {
            return View::all();
        }
        let keys: Vec<&PublicKey> = keys.into_iter().collect();
        let is_about = |rule: &&Rule| rule.capability == Capability::SyncRead && keys.contains(&&rule.principal);
        let shown = self.rules.iter().filter(is_about).map(|rule| rule.events.clone()).collect();
        View::new(self.protected.clone(), shown)
    }
}
