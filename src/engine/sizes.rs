//! How much the engine holds at a moment.

use super::Engine;
use crate::discover::{Discovery, DiscoverySizes};

/// How much an engine holds at a moment: what can be checked against bounds, and shown as gauges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Sizes {
    /// Effects that wait to be taken.
    pub effects: usize,
    /// Bytes of frames among these effects.
    pub effect_bytes: usize,
    /// Events that came and are not settled yet: being checked, committed, or waiting for it.
    pub pipeline_events: usize,
    /// Bytes of these events.
    pub pipeline_bytes: usize,
    /// Ids remembered of events that are not settled yet, and in a dry run of those that were counted.
    pub pipeline_ids: usize,
    /// Ids remembered by histories: of answers under way, of seconds that overflow a page, wanted, missing, to publish.
    pub history_ids: usize,
    /// Events that others brought, on their way to relays that are to have them.
    pub outbox_events: usize,
    /// Ids remembered of events that are not wanted.
    pub refused_ids: usize,
    /// What discovery holds.
    pub discovery: DiscoverySizes,
    /// Relays, connected or not.
    pub relays: usize,
    /// Histories under way.
    pub histories: usize,
    /// Interests that wait for room among the histories.
    pub histories_waiting: usize,
    /// Subscriptions open at all relays, reconciliations among them.
    pub subscriptions: usize,
    /// Gaps on record.
    pub gaps: usize,
    /// Moments at which a relay is due.
    pub deadlines: usize,
    /// Item sets held for histories to compare with.
    pub item_sets: usize,
    /// Questions to the store whose answers have not come; checks and commits are none.
    pub store_questions: usize,
}

impl Engine {
    /// How much is held at this moment. It costs a look at every history and effect, not at every event.
    pub fn sizes(&self) -> Sizes {
        let mut sizes = Sizes {
            effects: self.out.len(),
            effect_bytes: self.out.iter().map(super::Effect::frame_bytes).sum(),
            pipeline_events: self.pipeline.events(),
            pipeline_bytes: self.pipeline.bytes(),
            pipeline_ids: self.pipeline.ids(),
            refused_ids: self.refused.len(),
            discovery: self.discovery.as_ref().map(Discovery::sizes).unwrap_or_default(),
            relays: self.relays.len(),
            deadlines: self.deadlines.len(),
            item_sets: self.items.sets(),
            store_questions: self.pending.len() + self.items.loads(),
            ..Sizes::default()
        };
        self.relays.iter().for_each(|relay| relay.add_sizes(&mut sizes));
        sizes
    }
}
