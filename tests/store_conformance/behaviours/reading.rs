//! What is stored is found, by every filter, in order, page by page, and after a reopen.

use relaysync::peer::View;
use relaysync::protocol::{FilterKey, RelayUrl, Window, hex};
use relaysync::store::{Batch, Coverage, Cursor, Method, Outcome, Proof, Query, Snapshot, Store};

use super::{NONE, create};
use crate::Harness;
use crate::events::*;

pub(crate) async fn an_empty_batch_changes_nothing<H: Harness>() {
    let harness = create::<H>().await;
    assert_eq!(harness.store().commit(Batch::default()).await.unwrap().len(), 0);
    assert_eq!(harness.store().load().await.unwrap(), Snapshot::default());
    assert_eq!(select(harness.store(), "{}").await, NONE);
    assert_eq!(items(harness.store(), "{}", 0, u64::MAX).await, NONE);
    assert_eq!(harness.store().known(Vec::new(), &View::all()).await.unwrap().len(), 0);
}

pub(crate) async fn what_is_stored_is_read_back_byte_for_byte<H: Harness>() {
    let harness = create::<H>().await;
    let mut odd = draft(1, 10);
    odd.content = "\u{0}\u{1F600}\"\\/ \u{2028} ünïcode".into();
    assert_eq!(commit(harness.store(), std::slice::from_ref(&odd)).await, [Outcome::Stored]);
    let page = harness.store().query(question("{}")).await.unwrap();
    assert_eq!(page.records[0].json, odd.json());
    assert_eq!((page.records[0].id, page.records[0].created_at), (odd.id, 10));
    let events = harness.store().events(vec![odd.id]).await.unwrap();
    assert_eq!(events[0].as_ref(), Some(&page.records[0]));
}

pub(crate) async fn a_second_commit_of_an_event_is_a_duplicate<H: Harness>() {
    let harness = create::<H>().await;
    let drafts = [draft(1, 10), draft(2, 20)];
    assert_eq!(commit(harness.store(), &drafts).await, [Outcome::Stored; 2]);
    assert_eq!(commit(harness.store(), &drafts).await, [Outcome::Duplicate; 2]);
    assert_eq!(select(harness.store(), "{}").await, [2, 1]);
}

pub(crate) async fn an_event_twice_in_a_batch_is_stored_once<H: Harness>() {
    let harness = create::<H>().await;
    let drafts = [draft(1, 10), draft(1, 10)];
    assert_eq!(commit(harness.store(), &drafts).await, [Outcome::Stored, Outcome::Duplicate]);
    assert_eq!(count(harness.store(), &["{}"]).await, 1);
}

pub(crate) async fn answers_come_newest_first_and_ties_by_lowest_id<H: Harness>() {
    let harness = create::<H>().await;
    commit(harness.store(), &[draft(5, 20), draft(9, 30), draft(3, 20)]).await;
    commit(harness.store(), &[draft(4, 20), draft(1, 10)]).await;
    let order = [9, 3, 4, 5, 1];
    assert_eq!(select(harness.store(), "{}").await, order);
    assert_eq!(select(harness.store(), r#"{"kinds":[1,2]}"#).await, order);
    let author = hex::encode(&author_of(1));
    assert_eq!(select(harness.store(), &format!(r#"{{"authors":["{author}"]}}"#)).await, order);
    assert_eq!(items(harness.store(), "{}", 0, u64::MAX).await, [1, 3, 4, 5, 9]);
}

pub(crate) async fn cursors_lead_through_everything_once<H: Harness>() {
    let harness = create::<H>().await;
    // Many in one second, and pages that end inside it.
    let drafts: Vec<Draft> = (0..500).map(|n| draft(n, 100 + u64::from(n / 90))).collect();
    for part in drafts.chunks(37) {
        commit(harness.store(), part).await;
    }
    let expected = select(harness.store(), "{}").await;
    assert_eq!(expected.len(), 500);
    for limit in [1, 7, 64, 499, 500] {
        let mut query = Query { limit, ..question("{}") };
        let mut seen = Vec::new();
        loop {
            let page = harness.store().query(query.clone()).await.unwrap();
            assert!(page.records.len() == limit || page.next.is_none());
            seen.extend(page.records.iter().map(|record| number(&record.id)));
            query.after = page.next;
            if page.next.is_none() {
                break;
            }
        }
        assert_eq!(seen, expected, "pages of {limit}");
    }
}

pub(crate) async fn a_page_ends_by_bytes_but_has_one_event<H: Harness>() {
    let harness = create::<H>().await;
    let drafts = [draft(1, 10), draft(2, 20), draft(3, 30)];
    commit(harness.store(), &drafts).await;
    let page = harness.store().query(Query { bytes_max: 1, ..question("{}") }).await.unwrap();
    assert_eq!(page.records.len(), 1);
    assert_eq!(page.next, Some(Cursor { created_at: 30, id: id_of(3) }));
    let bytes_max = drafts[2].json().len() + 1;
    let page = harness.store().query(Query { bytes_max, ..question("{}") }).await.unwrap();
    assert_eq!(page.records.len(), 2);
}

pub(crate) async fn the_limit_of_the_filter_counts<H: Harness>() {
    let harness = create::<H>().await;
    commit(harness.store(), &[draft(1, 10), draft(2, 20), draft(3, 30)]).await;
    assert_eq!(select(harness.store(), r#"{"limit":2}"#).await, [3, 2]);
    assert_eq!(select(harness.store(), r#"{"limit":0}"#).await, NONE);
    let page = harness.store().query(Query { limit: 0, ..question("{}") }).await.unwrap();
    assert!(page.records.is_empty() && page.next.is_none());
    assert_eq!(count(harness.store(), &[r#"{"limit":1}"#]).await, 3);
    assert_eq!(items(harness.store(), r#"{"limit":1}"#, 0, u64::MAX).await, [1, 2, 3]);
}

pub(crate) async fn since_and_until_are_inclusive<H: Harness>() {
    let harness = create::<H>().await;
    commit(harness.store(), &[draft(1, 10), draft(2, 20), draft(3, 30), draft(4, 40)]).await;
    assert_eq!(select(harness.store(), r#"{"since":20,"until":30}"#).await, [3, 2]);
    assert_eq!(select(harness.store(), r#"{"kinds":[1],"since":20,"until":30}"#).await, [3, 2]);
    assert_eq!(select(harness.store(), r#"{"since":31,"until":30}"#).await, NONE);
    assert_eq!(items(harness.store(), r#"{"since":20}"#, 0, 30).await, [2, 3]);
    assert_eq!(items(harness.store(), r#"{"until":5}"#, 10, 30).await, NONE);
    assert_eq!(count(harness.store(), &[r#"{"since":20,"until":20}"#]).await, 1);
}

pub(crate) async fn extreme_dates_are_kept_in_order<H: Harness>() {
    let harness = create::<H>().await;
    let far = NOW_SECS * 10;
    commit(harness.store(), &[draft(1, 0), draft(2, u64::MAX), draft(3, far), draft(4, 1)]).await;
    assert_eq!(select(harness.store(), "{}").await, [2, 3, 4, 1]);
    assert_eq!(select(harness.store(), r#"{"until":0}"#).await, [1]);
    assert_eq!(select(harness.store(), &format!(r#"{{"since":{}}}"#, u64::MAX)).await, [2]);
    assert_eq!(items(harness.store(), "{}", 0, 0).await, [1]);
    assert_eq!(items(harness.store(), "{}", u64::MAX, u64::MAX).await, [2]);
    let after = Some(Cursor { created_at: 0, id: [255; 32] });
    assert!(harness.store().query(Query { after, ..question("{}") }).await.unwrap().records.is_empty());
}

pub(crate) async fn every_filter_field_selects<H: Harness>() {
    let harness = create::<H>().await;
    let drafts = [draft(1, 10), draft(2, 20).kind(7), draft(3, 30).by(2), draft(4, 40).by(2).kind(7)];
    commit(harness.store(), &drafts).await;
    let (one, two) = (hex::encode(&author_of(1)), hex::encode(&author_of(2)));
    let ids = format!(r#""{}","{}""#, hex::encode(&id_of(1)), hex::encode(&id_of(4)));
    for (json, expected) in [
        (r#"{"kinds":[7]}"#.to_owned(), vec![4, 2]),
        (r#"{"kinds":[7,1]}"#.to_owned(), vec![4, 3, 2, 1]),
        (r#"{"kinds":[2]}"#.to_owned(), vec![]),
        (format!(r#"{{"authors":["{two}"]}}"#), vec![4, 3]),
        (format!(r#"{{"authors":["{one}","{two}"],"kinds":[1]}}"#), vec![3, 1]),
        (format!(r#"{{"authors":["{one}"],"kinds":[7],"until":19}}"#), vec![]),
        (format!(r#"{{"ids":[{ids}]}}"#), vec![4, 1]),
        (format!(r#"{{"ids":[{ids}],"kinds":[1]}}"#), vec![1]),
        (format!(r#"{{"ids":[{ids}],"authors":["{two}"]}}"#), vec![4]),
        (format!(r#"{{"ids":[{ids}],"since":20}}"#), vec![4]),
    ] {
        assert_eq!(select(harness.store(), &json).await, expected, "{json}");
        assert_eq!(count(harness.store(), &[&json]).await, expected.len() as u64, "{json}");
        let oldest_first: Vec<u32> = expected.iter().rev().copied().collect();
        assert_eq!(items(harness.store(), &json, 0, u64::MAX).await, oldest_first, "{json}");
    }
}

pub(crate) async fn tag_filters_select_by_name_and_value<H: Harness>() {
    let harness = create::<H>().await;
    let drafts = [
        draft(1, 10).tag("t", "a").tag("t", "b").tag("t", "a"),
        draft(2, 20).tag("T", "a"),
        draft(3, 30).by(2).tag("t", "b").tag("p", "a"),
        draft(4, 40).kind(7).tag("t", "").tag("title", "a"),
        draft(5, 50).tag("p", "a"),
    ];
    commit(harness.store(), &drafts).await;
    let two = hex::encode(&author_of(2));
    for (json, expected) in [
        (r##"{"#t":["a"]}"##.to_owned(), vec![1]),
        (r##"{"#T":["a"]}"##.to_owned(), vec![2]),
        (r##"{"#t":["a","b"]}"##.to_owned(), vec![3, 1]),
        (r##"{"#t":["b"],"#p":["a"]}"##.to_owned(), vec![3]),
        (r##"{"#t":[""]}"##.to_owned(), vec![4]),
        (r##"{"#t":["a","b",""],"kinds":[7]}"##.to_owned(), vec![4]),
        (r##"{"#t":["A"]}"##.to_owned(), vec![]),
        (format!(r##"{{"#t":["b"],"authors":["{two}"]}}"##), vec![3]),
    ] {
        assert_eq!(select(harness.store(), &json).await, expected, "{json}");
        assert_eq!(count(harness.store(), &[&json]).await, expected.len() as u64, "{json}");
        let oldest_first: Vec<u32> = expected.iter().rev().copied().collect();
        assert_eq!(items(harness.store(), &json, 0, u64::MAX).await, oldest_first, "{json}");
    }
}

pub(crate) async fn huge_tags_and_values_are_found<H: Harness>() {
    let harness = create::<H>().await;
    let value = "v".repeat(100_000);
    let mut many = draft(2, 20);
    for n in 0..5000 {
        many = many.tag("p", &format!("value {n}"));
    }
    let mut big = draft(3, 30);
    big.content = "x".repeat(1_000_000);
    commit(harness.store(), &[draft(1, 10).tag("d", &value), many, big, draft(4, 40)]).await;
    assert_eq!(select(harness.store(), &format!(r##"{{"#d":["{value}"]}}"##)).await, [1]);
    assert_eq!(select(harness.store(), r##"{"#p":["value 4999"]}"##).await, [2]);
    let every: Vec<String> = (0..5000).map(|n| format!(r#""value {n}""#)).collect();
    assert_eq!(select(harness.store(), &format!(r##"{{"#p":[{}]}}"##, every.join(","))).await, [2]);
    assert_eq!(select(harness.store(), "{}").await, [4, 3, 2, 1]);
}

pub(crate) async fn an_empty_list_selects_nothing<H: Harness>() {
    let harness = create::<H>().await;
    commit(harness.store(), &[draft(1, 10).tag("t", "a")]).await;
    for json in [r#"{"ids":[]}"#, r#"{"authors":[]}"#, r#"{"kinds":[]}"#, r##"{"#t":[]}"##] {
        assert_eq!(select(harness.store(), json).await, NONE, "{json}");
        assert_eq!(count(harness.store(), &[json]).await, 0, "{json}");
        assert_eq!(items(harness.store(), json, 0, u64::MAX).await, NONE, "{json}");
    }
    assert_eq!(count(harness.store(), &[]).await, 0);
}

pub(crate) async fn counts_of_several_filters_count_an_event_once<H: Harness>() {
    let harness = create::<H>().await;
    commit(harness.store(), &[draft(1, 10), draft(2, 20).kind(7), draft(3, 30).by(2)]).await;
    let one = format!(r#"{{"authors":["{}"]}}"#, hex::encode(&author_of(1)));
    assert_eq!(count(harness.store(), &[r#"{"kinds":[1]}"#, &one]).await, 3);
    assert_eq!(count(harness.store(), &[r#"{"kinds":[7]}"#, r#"{"kinds":[7]}"#]).await, 1);
    assert_eq!(count(harness.store(), &["{}", r#"{"kinds":[7]}"#]).await, 3);
}

pub(crate) async fn events_come_in_the_order_of_the_ids<H: Harness>() {
    let harness = create::<H>().await;
    commit(harness.store(), &[draft(1, 10), draft(2, 20)]).await;
    let mut other_half = id_of(1);
    other_half[31] = 77;
    let events = harness.store().events(vec![id_of(2), id_of(9), id_of(1), id_of(2), other_half]).await.unwrap();
    let numbers: Vec<Option<u32>> = events.iter().map(|event| event.as_ref().map(|event| number(&event.id))).collect();
    assert_eq!(numbers, [Some(2), None, Some(1), Some(2), None]);
    assert_eq!(harness.store().known(vec![id_of(1), other_half], &View::all()).await.unwrap(), [true, false]);
}

pub(crate) async fn coverage_is_replaced_and_loaded<H: Harness>() {
    let harness = create::<H>().await;
    let mark = |relay: &str, kinds: &str, until| Coverage {
        relay: RelayUrl::parse(relay).unwrap(),
        filter: FilterKey::of(&filter(kinds)),
        packed: (relay == "wss://b.example").then(|| Box::new(filter(r##"{"#e":["x"]}"##))),
        rules: until,
        windows: vec![Proof::new(Window { since: 0, until }, Method::Req, until + 1)],
    };
    let marks = [mark("wss://a.example", "{}", 1), mark("wss://b.example", "{}", 2)];
    let coverage = marks.to_vec();
    harness
        .store()
        .commit(Batch { events: vec![draft(1, 1).event()], coverage, now_secs: 1, ..Batch::default() })
        .await
        .unwrap();
    let coverage = vec![mark("wss://b.example", "{}", 9), mark("wss://a.example", r#"{"kinds":[1]}"#, 5)];
    harness.store().commit(Batch { coverage: coverage.clone(), ..Batch::default() }).await.unwrap();
    let harness = harness.reopen().await;
    let mut expected = vec![marks[0].clone(), coverage[0].clone(), coverage[1].clone()];
    expected.sort_by_key(|mark| (mark.relay.clone(), mark.filter.clone()));
    assert_eq!(harness.store().load().await.unwrap().coverage, expected);
    let nothing = Coverage { windows: Vec::new(), ..coverage[0].clone() };
    harness.store().commit(Batch { coverage: vec![nothing], ..Batch::default() }).await.unwrap();
    expected.retain(|mark| *mark != coverage[0]);
    assert_eq!(harness.reopen().await.store().load().await.unwrap().coverage, expected);
}

pub(crate) async fn everything_outlives_a_reopen<H: Harness>() {
    let mut harness = create::<H>().await;
    for round in 0..20 {
        let drafts: Vec<Draft> = (0..50).map(|n| draft(round * 50 + n, u64::from(n)).tag("t", "x")).collect();
        commit(harness.store(), &drafts).await;
        commit(harness.store(), &[draft(10_000 + round, u64::from(round)).kind(0)]).await;
        harness = harness.reopen().await;
        assert_eq!(commit(harness.store(), &drafts).await, vec![Outcome::Duplicate; 50]);
        assert_eq!(count(harness.store(), &["{}"]).await, u64::from(round) * 50 + 51);
    }
    assert_eq!(select(harness.store(), r#"{"kinds":[0]}"#).await, [10_019]);
    assert_eq!(items(harness.store(), r#"{"kinds":[0]}"#, 0, u64::MAX).await.len(), 20);
    assert_eq!(count(harness.store(), &[r##"{"#t":["x"]}"##]).await, 1000);
    let again = commit(harness.store(), &[draft(10_000, 0).kind(0)]).await;
    assert_eq!(again, [Outcome::Superseded]);
}
