//! What needs no relay: adding, watching, lines.

use std::collections::BTreeSet;

use relaysync::job::{Added, JobError, Jobs};
use relaysync::protocol::{Event, hex};
use relaysync::store::{MemoryStore, Outcome};

use crate::events::{note, notes};
use crate::world::*;

#[tokio::test]
async fn what_is_added_has_an_outcome_each() {
    let jobs = jobs(MemoryStore::default());
    let event = note(1).sign();
    let forged = Event::parse(event.json_str().replace("\"created_at\":1", "\"created_at\":2").into()).unwrap();
    let ephemeral = note(1).kind(20_000).sign();
    let added = jobs.add(vec![event.clone(), forged, event, ephemeral]).await.unwrap();
    let words: Vec<&str> = added.iter().map(|added| added.word()).collect();
    assert_eq!(words, ["stored", "invalid", "duplicate", "ephemeral"]);
    assert_eq!(added[1].reason(), Some("the id is not the hash of the event"));
    assert_eq!(added[0], Added::Committed(Outcome::Stored));
}

#[tokio::test]
async fn a_watch_gives_out_what_is_stored_by_whatever_way() {
    let store = MemoryStore::default();
    let jobs = jobs(store.clone());
    let events = notes(1..=6);
    put(&store, &events[..2]).await;
    let from = jobs.watch("new", vec![all_notes()], None).await.unwrap();
    assert_eq!(jobs.watch("all", vec![all_notes().limit(1)], Some(0)).await, Ok(0));
    assert_eq!(from, 2);
    jobs.add(events[2..4].to_vec()).await.unwrap();
    jobs.add(vec![note(9).kind(7).sign()]).await.unwrap();
    // By another way, of which only the store knows.
    put(&store, &events[4..]).await;
    jobs.store_changed();
    assert_eq!(take(&jobs, "new", 4).await, ids(&events[2..]));
    assert_eq!(take(&jobs, "all", 6).await, ids(&events));
    let waiting = jobs.take("new", 1, 1);
    let (taken, ended) = tokio::join!(patiently(waiting), async {
        tokio::task::yield_now().await;
        jobs.unwatch("new")
    });
    assert_eq!((taken, ended), (Ok(None), Ok(())));
    assert_eq!(jobs.unwatch("new"), Err(JobError::Unknown("new".into())));
}

#[tokio::test]
async fn who_stops_waiting_loses_nothing() {
    let jobs = jobs(MemoryStore::default());
    jobs.watch("watch", vec![all_notes()], None).await.unwrap();
    let (events, mut seen) = (notes(1..=50), BTreeSet::new());
    for event in &events {
        let mut waiting = Box::pin(jobs.take("watch", 1, 1));
        if let Some(taken) = futures_util::future::poll_immediate(&mut waiting).await {
            seen.extend(taken.unwrap().unwrap().records.into_iter().map(|record| hex::encode(&record.id)));
        }
        drop(waiting);
        jobs.add(vec![event.clone()]).await.unwrap();
    }
    seen.extend(take(&jobs, "watch", 50 - seen.len()).await);
    assert_eq!(seen, ids(&events));
}

#[tokio::test]
async fn what_is_exported_can_be_imported() {
    let events = notes(1..=250);
    let from = jobs(MemoryStore::default());
    from.add(events.clone()).await.unwrap();
    let to = jobs(MemoryStore::default());
    let (mut next, mut parts) = (Some(0), 0);
    while let Some(after) = next {
        let exported = from.export(Some(after), 10_000).await.unwrap();
        let imported = to.import(&exported.text).await.unwrap();
        assert_eq!((imported.stored, imported.malformed, imported.invalid), (imported.lines, 0, 0));
        (next, parts) = (exported.next, parts + 1);
    }
    assert!(parts > 5, "by parts of 10 kB");
    assert_eq!(copies(&to).await, copies(&from).await);
    let mut text = from.export(None, usize::MAX).await.unwrap().text;
    let forged = note(300).sign().json_str().replace("\"created_at\":300", "\"created_at\":7");
    text.push_str(&format!("\n{{\"id\":1}}\n{forged}\n"));
    let again = to.import(&text).await.unwrap();
    assert_eq!((again.lines, again.duplicate, again.stored), (252, 250, 0));
    assert_eq!((again.malformed, again.invalid), (1, 1));
    assert!(again.first_error.unwrap().starts_with("line 252: "), "the empty line counts");
    let nothing = jobs(MemoryStore::default()).export(None, 100).await.unwrap();
    assert_eq!((nothing.text.as_str(), nothing.next), ("", None));
}

async fn copies(jobs: &TestJobs) -> String {
    Jobs::export(jobs, None, usize::MAX).await.unwrap().text
}
