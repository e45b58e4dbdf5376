//! Events for tests, and short ways to use a store. Ids and signatures are made up: a store does not check them.

use relaysync::ingest::Verified;
use relaysync::peer::View;
use relaysync::protocol::{Event, Filter, Window, filter::parse_strict, hex};
use relaysync::store::{Batch, Outcome, Query, Store};

pub(crate) const NOW_SECS: u64 = 1_700_000_000;

/// An event to be made.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) id: [u8; 32],
    pub(crate) author: [u8; 32],
    pub(crate) created_at: u64,
    pub(crate) kind: u16,
    pub(crate) tags: Vec<Vec<String>>,
    pub(crate) content: String,
}

/// An event of author 1 and kind 1.
pub(crate) fn draft(id: u32, created_at: u64) -> Draft {
    Draft { id: id_of(id), author: author_of(1), created_at, kind: 1, tags: Vec::new(), content: format!("event {id}") }
}

pub(crate) fn id_of(number: u32) -> [u8; 32] {
    let mut id = [0; 32];
    id[..4].copy_from_slice(&number.to_be_bytes());
    id[31] = 1;
    id
}

pub(crate) fn author_of(number: u8) -> [u8; 32] {
    let mut author = [number; 32];
    author[0] = 0xA0;
    author
}

impl Draft {
    pub(crate) fn by(self, author: u8) -> Self {
        Self { author: author_of(author), ..self }
    }

    pub(crate) fn kind(self, kind: u16) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn tag(mut self, name: &str, value: &str) -> Self {
        self.tags.push(vec![name.into(), value.into()]);
        self
    }

    pub(crate) fn json(&self) -> String {
        // A space more than needed: the bytes must come back as they came.
        format!(
            r#"{{"id":"{}", "pubkey":"{}","created_at":{},"kind":{},"tags":{},"content":{},"sig":"{}"}}"#,
            hex::encode(&self.id),
            hex::encode(&self.author),
            self.created_at,
            self.kind,
            serde_json::to_string(&self.tags).unwrap(),
            serde_json::to_string(&self.content).unwrap(),
            "5".repeat(128),
        )
    }

    pub(crate) fn event(&self) -> Verified<Event> {
        Verified::trust(Event::parse(self.json().into()).unwrap())
    }
}

pub(crate) fn batch(drafts: &[Draft]) -> Batch {
    Batch { events: drafts.iter().map(Draft::event).collect(), now_secs: NOW_SECS, ..Batch::default() }
}

pub(crate) async fn commit(store: &impl Store, drafts: &[Draft]) -> Vec<Outcome> {
    store.commit(batch(drafts)).await.unwrap()
}

pub(crate) fn filter(json: &str) -> Filter {
    serde_json::from_str(json).unwrap_or_else(|_| parse_strict(json).unwrap())
}

pub(crate) fn question(json: &str) -> Query {
    Query {
        filter: filter(json),
        after: None,
        limit: 1000,
        bytes_max: usize::MAX,
        now_secs: NOW_SECS,
        view: View::all(),
    }
}

/// The ids that a query selects, in order, as numbers.
pub(crate) async fn select(store: &impl Store, json: &str) -> Vec<u32> {
    let page = store.query(question(json)).await.unwrap();
    assert_eq!(page.next, None);
    page.records.iter().map(|record| number(&record.id)).collect()
}

pub(crate) async fn count(store: &impl Store, filters: &[&str]) -> u64 {
    store.count(filters.iter().map(|json| filter(json)).collect(), &View::all(), NOW_SECS).await.unwrap()
}

/// The ids of an item set, oldest first, as numbers.
pub(crate) async fn items(store: &impl Store, json: &str, since: u64, until: u64) -> Vec<u32> {
    let set = store.items(&filter(json), Window { since, until }, &View::all()).await.unwrap();
    set.items().iter().map(|item| number(&item.id)).collect()
}

pub(crate) async fn known(store: &impl Store, ids: &[u32]) -> Vec<bool> {
    store.known(ids.iter().copied().map(id_of).collect(), &View::all()).await.unwrap()
}

pub(crate) fn number(id: &[u8; 32]) -> u32 {
    u32::from_be_bytes(id[..4].try_into().unwrap())
}
