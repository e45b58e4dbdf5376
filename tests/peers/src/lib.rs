//! What both programs need: databases filled from and written to files of events, one a line as JSON.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use nostr::{Event, Filter, JsonUtil};
use nostr_database::{MemoryDatabase, MemoryDatabaseOptions, NostrDatabase};

/// What ends a program: text for standard error.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// A database that keeps everything, in memory. (By default it keeps ids only, and drops the oldest of many.)
pub fn memory_database() -> Arc<dyn NostrDatabase> {
    Arc::new(MemoryDatabase::with_opts(MemoryDatabaseOptions { events: true, max_events: None }))
}

/// Saves the events of `path` in their order, without checking signatures. Tells how many the database took.
pub async fn load(database: &dyn NostrDatabase, path: &Path) -> Result<usize, Fault> {
    let mut taken = 0;
    for line in BufReader::new(File::open(path)?).lines() {
        let event = Event::from_json(line?)?;
        taken += usize::from(database.save_event(&event).await?.is_success());
    }
    Ok(taken)
}

/// Writes all events to `path`, whole or not at all. Tells how many.
pub async fn dump(database: &dyn NostrDatabase, path: &Path) -> Result<usize, Fault> {
    let events = database.query(Filter::new()).await?;
    let unfinished = path.with_extension("part");
    let mut file = BufWriter::new(File::create(&unfinished)?);
    for event in events.iter() {
        writeln!(file, "{}", event.as_json())?;
    }
    file.into_inner()?.sync_all()?;
    std::fs::rename(unfinished, path)?;
    Ok(events.len())
}
