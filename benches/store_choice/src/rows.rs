//! Databases used as they want to be used: one row an index entry, in one sorted table; one row an event.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use fjall::PersistMode;
use heed::types::Bytes as Blob;
use redb::{ReadableDatabase, TableDefinition};
use relaysync::protocol::{Filter, Window};
use relaysync::store::entry::{ENTRY_BYTES, Entry, Range, Sequence};
use relaysync::store::tables::{Body, Damaged, Tables};
use relaysync::store::{Batch, Outcome, StoreConfig, rules, select};

use crate::Candidate;

type Bodies = BTreeMap<Sequence, Vec<u8>>;

/// What is asked of a database.
pub(crate) trait Database {
    /// Writes sorted entries and bodies, durably; removes bodies.
    fn write(&self, entries: &[Entry], bodies: &Bodies, gone: &[Sequence]);
    fn scan(&self, range: &Range, each: &mut dyn FnMut(&Entry) -> ControlFlow<()>);
    fn body(&self, sequence: Sequence) -> Option<Vec<u8>>;
}

pub(crate) struct Rows<D> {
    database: D,
    // Kept in memory for all rows alike; no candidate is measured by it.
    fates: BTreeMap<Sequence, Outcome>,
    next_sequence: Sequence,
}

impl<D> Rows<D> {
    pub(crate) fn new(database: D) -> Self {
        Self { database, fates: BTreeMap::new(), next_sequence: 0 }
    }
}

impl<D: Database> Candidate for Rows<D> {
    fn commit(&mut self, batch: Batch) {
        let changes = rules::apply(self, batch, &StoreConfig::default()).expect("it reads");
        let mut entries = changes.entries;
        entries.extend(changes.points);
        entries.sort_unstable();
        entries.dedup();
        let live = changes.held.iter().filter(|(sequence, _)| !changes.fates.contains_key(sequence));
        let bodies = live.map(|(n, event)| (*n, [event.pubkey.as_bytes(), &event.json()[..]].concat())).collect();
        let gone: Vec<Sequence> = changes.fates.keys().copied().filter(|n| *n < self.next_sequence).collect();
        self.database.write(&entries, &bodies, &gone);
        self.fates.extend(changes.fates);
        self.next_sequence = changes.next_sequence;
    }

    fn items(&self, filter: &Filter) -> usize {
        select::items(self, filter, Window::ALL).expect("it reads").len()
    }
}

impl<D: Database> Tables for Rows<D> {
    type Error = Damaged;

    fn scan(&self, range: &Range, each: &mut dyn FnMut(&Entry) -> ControlFlow<()>) -> Result<(), Damaged> {
        self.database.scan(range, each);
        Ok(())
    }

    fn estimate(&self, _: &Range) -> Result<usize, Damaged> {
        Ok(1)
    }

    fn fate(&self, sequence: Sequence) -> Option<Outcome> {
        self.fates.get(&sequence).copied()
    }

    fn body(&self, sequence: Sequence) -> Result<Option<Body>, Damaged> {
        let body = |bytes: Vec<u8>| {
            let (author, json) = bytes.split_first_chunk().expect("an author");
            Body { author: *author, json: json.to_vec().into() }
        };
        Ok(self.database.body(sequence).map(body))
    }

    fn next_sequence(&self) -> Sequence {
        self.next_sequence
    }

    fn swept_secs(&self) -> u64 {
        u64::MAX
    }
}

fn entry(bytes: &[u8]) -> Entry {
    Entry::from_bytes(bytes.try_into().expect("64 bytes")).expect("an entry")
}

pub(crate) struct Redb(redb::Database);

const ENTRIES: TableDefinition<&[u8; ENTRY_BYTES], ()> = TableDefinition::new("entries");
const BODIES: TableDefinition<u64, &[u8]> = TableDefinition::new("bodies");

impl Redb {
    pub(crate) fn open(folder: &Path) -> Self {
        let database =
            redb::Database::builder().set_cache_size(64 << 20).create(folder.join("redb")).expect("it opens");
        let this = Self(database);
        this.write(&[], &Bodies::new(), &[]);
        this
    }
}

impl Database for Redb {
    fn write(&self, entries: &[Entry], bodies: &Bodies, gone: &[Sequence]) {
        let transaction = self.0.begin_write().expect("it begins");
        let mut table = transaction.open_table(ENTRIES).expect("a table");
        for entry in entries {
            table.insert(entry.as_bytes(), ()).expect("it inserts");
        }
        drop(table);
        let mut table = transaction.open_table(BODIES).expect("a table");
        for (sequence, body) in bodies {
            table.insert(sequence, body.as_slice()).expect("it inserts");
        }
        for sequence in gone {
            table.remove(sequence).expect("it removes");
        }
        drop(table);
        transaction.commit().expect("it commits");
    }

    fn scan(&self, range: &Range, each: &mut dyn FnMut(&Entry) -> ControlFlow<()>) {
        if range.is_empty() {
            return;
        }
        let table = self.0.begin_read().expect("it begins").open_table(ENTRIES).expect("a table");
        let bounds = range.first.as_bytes()..=range.last.as_bytes();
        for row in table.range::<&[u8; ENTRY_BYTES]>(bounds).expect("it reads") {
            if each(&entry(row.expect("it reads").0.value())).is_break() {
                return;
            }
        }
    }

    fn body(&self, sequence: Sequence) -> Option<Vec<u8>> {
        let table = self.0.begin_read().expect("it begins").open_table(BODIES).expect("a table");
        table.get(sequence).expect("it reads").map(|body| body.value().to_vec())
    }
}

pub(crate) struct Fjall {
    database: fjall::Database,
    entries: fjall::Keyspace,
    bodies: fjall::Keyspace,
}

impl Fjall {
    pub(crate) fn open(folder: &Path) -> Self {
        let builder = fjall::Database::builder(folder).cache_size(32 << 20);
        let database = builder.open().expect("it opens");
        let keyspace = |name| database.keyspace(name, fjall::KeyspaceCreateOptions::default).expect("a keyspace");
        Self { entries: keyspace("entries"), bodies: keyspace("bodies"), database }
    }
}

impl Database for Fjall {
    fn write(&self, entries: &[Entry], bodies: &Bodies, gone: &[Sequence]) {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        entries.iter().for_each(|entry| batch.insert(&self.entries, entry.as_bytes(), b""));
        bodies.iter().for_each(|(sequence, body)| batch.insert(&self.bodies, sequence.to_be_bytes(), body.as_slice()));
        gone.iter().for_each(|sequence| batch.remove(&self.bodies, sequence.to_be_bytes()));
        batch.commit().expect("it commits");
    }

    fn scan(&self, range: &Range, each: &mut dyn FnMut(&Entry) -> ControlFlow<()>) {
        if range.is_empty() {
            return;
        }
        for row in self.entries.range(*range.first.as_bytes()..=*range.last.as_bytes()) {
            if each(&entry(&row.key().expect("it reads"))).is_break() {
                return;
            }
        }
    }

    fn body(&self, sequence: Sequence) -> Option<Vec<u8>> {
        self.bodies.get(sequence.to_be_bytes()).expect("it reads").map(|body| body.to_vec())
    }
}

pub(crate) struct Lmdb {
    env: heed::Env,
    entries: heed::Database<'static, Blob, Blob>,
    bodies: heed::Database<'static, Blob, Blob>,
}

impl Lmdb {
    pub(crate) fn open(folder: &Path) -> Self {
        let mut options = heed::EnvOpenOptions::new();
        options.map_size(16 << 30).max_dbs(2);
        // SAFETY: the folder is this process's own, and opened once.
        let env = unsafe { options.open(folder) }.expect("it opens");
        let (entries, bodies) = env
            .create_databases_and_commit(env.write_txn().expect("it begins"), |opener, transaction| {
                let entries = opener.create_database::<Blob, Blob>(transaction, Some("entries"))?;
                let bodies = opener.create_database::<Blob, Blob>(transaction, Some("bodies"))?;
                Ok::<_, heed::Error>(heed::CommitOrAbort::<_, ()>::Commit((entries, bodies)))
            })
            .expect("databases")
            .unwrap_commit();
        Self { env, entries, bodies }
    }
}

impl Database for Lmdb {
    fn write(&self, entries: &[Entry], bodies: &Bodies, gone: &[Sequence]) {
        let mut transaction = self.env.write_txn().expect("it begins");
        for entry in entries {
            self.entries.put(&mut transaction, entry.as_bytes(), b"").expect("it inserts");
        }
        for (sequence, body) in bodies {
            let flags = heed::PutFlags::APPEND;
            let key = sequence.to_be_bytes();
            self.bodies.put_with_flags(&mut transaction, flags, &key, body).expect("it inserts");
        }
        for sequence in gone {
            self.bodies.delete(&mut transaction, &sequence.to_be_bytes()).expect("it removes");
        }
        transaction.commit().expect("it commits");
    }

    fn scan(&self, range: &Range, each: &mut dyn FnMut(&Entry) -> ControlFlow<()>) {
        if range.is_empty() {
            return;
        }
        let transaction = self.env.read_txn().expect("it begins");
        let (first, last) = (&range.first.as_bytes()[..], &range.last.as_bytes()[..]);
        let bounds = (std::ops::Bound::Included(first), std::ops::Bound::Included(last));
        for row in self.entries.range(&transaction, &bounds).expect("it reads") {
            if each(&entry(row.expect("it reads").0)).is_break() {
                return;
            }
        }
    }

    fn body(&self, sequence: Sequence) -> Option<Vec<u8>> {
        let transaction = self.env.read_txn().expect("it begins");
        self.bodies.get(&transaction, &sequence.to_be_bytes()).expect("it reads").map(<[u8]>::to_vec)
    }
}
