//! Generated events, and which of them a store has.

use std::collections::BTreeSet;

use relaysync::peer::View;
use relaysync::protocol::{Event, Filter, Window};
use relaysync::sample::{Burst, Sample, SampleConfig, SampleKinds};
use relaysync::store::Store;

/// The ids of some events.
pub(crate) type Ids = BTreeSet<[u8; 32]>;

/// Events that a store keeps all of, with `burst` of them in one second.
pub(crate) fn generate(seed: u64, events: usize, burst: usize) -> Vec<Event> {
    let burst = (burst > 0).then_some(Burst { second: 1_715_000_000, events: burst });
    Sample::new(&SampleConfig { seed, events, burst, kinds: SampleKinds::Regular, ..SampleConfig::default() }).collect()
}

/// Their ids.
pub(crate) fn ids(events: &[Event]) -> Ids {
    events.iter().map(|event| event.id.to_bytes()).collect()
}

/// The ids of all that a store holds.
pub(crate) async fn held(store: &impl Store) -> Ids {
    let items = store.held_items(&Filter::new(), Window::ALL, &View::all(), 0).await.expect("it is in memory");
    items.items().iter().map(|item| item.id).collect()
}
