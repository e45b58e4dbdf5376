//! What a view hides is not there for who asks through it; and who brought what is there for nobody but audits.

use std::sync::Arc;

use relaysync::peer::View;
use relaysync::protocol::{Window, hex};
use relaysync::store::{Batch, Outcome, Query, RequestContext, Store};

use super::{NONE, create};
use crate::Harness;
use crate::events::*;

fn view(hidden: &[&str], shown: &[&str]) -> View {
    let filters = |texts: &[&str]| texts.iter().map(|json| filter(json)).collect();
    View::new(filters(hidden), filters(shown))
}

/// The ids that a query selects through a view, in order, as numbers.
async fn seen(store: &impl Store, json: &str, view: &View) -> Vec<u32> {
    let page = store.query(Query { view: view.clone(), ..question(json) }).await.unwrap();
    assert_eq!(page.next, None);
    page.records.iter().map(|record| number(&record.id)).collect()
}

/// Pages, counts and sets of what is held must be of one mind. Newest first.
async fn seen_by_all<H: Harness>(harness: &H, json: &str, view: &View) -> Vec<u32> {
    let store = harness.store();
    let found = seen(store, json, view).await;
    assert_eq!(store.count(vec![filter(json)], view, NOW_SECS).await.unwrap(), found.len() as u64, "{json}");
    let set = store.held_items(&filter(json), Window::ALL, view, NOW_SECS).await.unwrap();
    let oldest_first: Vec<u32> = set.items().iter().map(|item| number(&item.id)).collect();
    assert_eq!(oldest_first, found.iter().rev().copied().collect::<Vec<u32>>(), "{json}");
    found
}

pub(crate) async fn what_a_view_hides_is_not_there<H: Harness>() {
    let harness = create::<H>().await;
    let drafts = [
        draft(1, 10),
        draft(2, 20).kind(7).tag("t", "a"),
        draft(3, 30).kind(7).tag("t", "b"),
        draft(4, 40).kind(7).tag("t", "a").tag("t", "b").by(2),
        draft(5, 50).by(2),
    ];
    commit(harness.store(), &drafts).await;
    let two = hex::encode(&author_of(2));
    let by_two = format!(r#"{{"authors":["{two}"]}}"#);
    for (hidden, shown, filter, expected) in [
        (r#"{"kinds":[7]}"#, "", "{}", vec![5, 1]),
        (r#"{"kinds":[7]}"#, "", r#"{"kinds":[7]}"#, vec![]),
        (r#"{"kinds":[7]}"#, "", r#"{"kinds":[1]}"#, vec![5, 1]),
        (r#"{"kinds":[7]}"#, r##"{"#t":["a"]}"##, "{}", vec![5, 4, 2, 1]),
        (r#"{"kinds":[7]}"#, r##"{"#t":["a"]}"##, r##"{"#t":["b"]}"##, vec![4]),
        (r##"{"kinds":[7],"#t":["a"]}"##, "", "{}", vec![5, 3, 1]),
        (r##"{"kinds":[7],"#t":["a"]}"##, "", r##"{"#t":["b"]}"##, vec![3]),
        (r##"{"kinds":[7],"#t":["a"]}"##, r##"{"#t":["b"]}"##, "{}", vec![5, 4, 3, 1]),
        (&by_two, "", "{}", vec![3, 2, 1]),
        (&by_two, "", r#"{"kinds":[7]}"#, vec![3, 2]),
        (&by_two, r#"{"kinds":[1]}"#, "{}", vec![5, 3, 2, 1]),
        (&by_two, "", r#"{"since":40}"#, vec![]),
        ("{}", "", "{}", vec![]),
        ("{}", &by_two, "{}", vec![5, 4]),
        (r#"{"kinds":[]}"#, "", "{}", vec![5, 4, 3, 2, 1]),
    ] {
        let shown: Vec<&str> = Some(shown).filter(|shown| !shown.is_empty()).into_iter().collect();
        let found = seen_by_all(&harness, filter, &view(&[hidden], &shown)).await;
        assert_eq!(found, expected, "{filter} where {hidden} is hidden but for {shown:?}");
    }
    let by_id = format!(r#"{{"ids":["{}","{}"]}}"#, hex::encode(&id_of(1)), hex::encode(&id_of(2)));
    assert_eq!(seen_by_all(&harness, &by_id, &view(&[r#"{"kinds":[7]}"#], &[])).await, [1]);
}

pub(crate) async fn pages_are_as_full_as_if_hidden_events_were_not_there<H: Harness>() {
    let (with, without) = (create::<H>().await, create::<H>().await);
    let mixed = |n: u32| match n % 7 {
        0 => draft(n, u64::from(n / 9)),
        1 => draft(n, u64::from(n / 9)).kind(7).tag("t", "b"),
        _ => draft(n, u64::from(n / 9)).kind(7).tag("t", "a"),
    };
    let all: Vec<Draft> = (0..700).map(mixed).collect();
    let open: Vec<Draft> = all.iter().filter(|it| !it.tags.iter().any(|tag| tag[1] == "a")).cloned().collect();
    commit(with.store(), &all).await;
    commit(without.store(), &open).await;
    let hidden = view(&[r##"{"kinds":[7],"#t":["a"]}"##], &[]);
    for (limit, bytes_max) in [(1, usize::MAX), (10, usize::MAX), (1000, 3_000), (200, usize::MAX), (1000, 1)] {
        for json in ["{}", r#"{"kinds":[7]}"#, r##"{"#t":["a","b"]}"##, r#"{"limit":3}"#] {
            let mut query = Query { limit, bytes_max, view: hidden.clone(), ..question(json) };
            loop {
                let page = with.store().query(query.clone()).await.unwrap();
                let twin = Query { view: View::all(), ..query.clone() };
                assert_eq!(page, without.store().query(twin).await.unwrap(), "{json}, {limit} and {bytes_max} bytes");
                query.after = page.next;
                if page.next.is_none() {
                    break;
                }
            }
        }
    }
}

pub(crate) async fn what_is_gone_and_may_have_been_hidden_is_not_among_the_items<H: Harness>() {
    let harness = create::<H>().await;
    let deletion = draft(5, 50).kind(5).tag("e", &hex::encode(&id_of(3))).tag("e", &hex::encode(&id_of(4)));
    let drafts = [draft(1, 10).tag("t", "a"), draft(2, 20).kind(7), draft(3, 30).tag("t", "b"), draft(4, 40).kind(7)];
    commit(harness.store(), &drafts).await;
    commit(harness.store(), &[deletion]).await;
    for (hidden, shown, filter_of, expected) in [
        (r#"{"kinds":[7]}"#, None, "{}", vec![1, 3, 5]),
        (r#"{"kinds":[7]}"#, Some(r#"{"kinds":[7]}"#), "{}", vec![1, 2, 3, 4, 5]),
        // Gone: whether it had the tag is not known.
        (r##"{"kinds":[1],"#t":["a"]}"##, None, "{}", vec![2, 4, 5]),
        (r##"{"kinds":[1],"#t":["a"]}"##, Some(r##"{"#t":["a"]}"##), "{}", vec![1, 2, 4, 5]),
        (r##"{"#t":["a"]}"##, None, "{}", vec![2, 5]),
        (r##"{"#t":["a"]}"##, Some(r#"{"kinds":[7]}"#), "{}", vec![2, 4, 5]),
        (r##"{"#t":["a"]}"##, None, r##"{"#t":["a"]}"##, vec![]),
        (r##"{"#t":["a"]}"##, None, r#"{"kinds":[1]}"#, vec![]),
    ] {
        let through = view(&[hidden], &shown.into_iter().collect::<Vec<&str>>());
        let set = harness.store().items(&filter(filter_of), Window::ALL, &through).await.unwrap();
        let found: Vec<u32> = set.items().iter().map(|item| number(&item.id)).collect();
        assert_eq!(found, expected, "{filter_of} where {hidden} is hidden but for {shown:?}");
    }
}

pub(crate) async fn who_brought_an_event_is_kept_as_long_as_the_event<H: Harness>() {
    let harness = create::<H>().await;
    let context = |peer: &str, at_secs| RequestContext { peer: Arc::from(peer), at_secs };
    let bring = |drafts: &[Draft], contexts: &[(u32, RequestContext)]| Batch {
        contexts: contexts.iter().map(|(id, context)| (id_of(*id), context.clone())).collect(),
        ..batch(drafts)
    };
    let (one, two) = (context("one", 1), context("two", 2));
    let drafts: Vec<Draft> = (1..=6).map(|n| draft(n, u64::from(n))).collect();
    let first = [(1, one.clone()), (2, one.clone()), (3, two.clone()), (5, two.clone())];
    let store = harness.store();
    assert_eq!(store.commit(bring(&drafts[..5], &first)).await.unwrap(), [Outcome::Stored; 5]);
    // A duplicate keeps who brought it first; what nobody brings has nobody.
    let again = [(1, two.clone()), (4, two.clone()), (6, one.clone())];
    store.commit(bring(&drafts, &again)).await.unwrap();
    let ids = || (1..=7).map(id_of).collect::<Vec<[u8; 32]>>();
    let kept = vec![Some(one.clone()), Some(one.clone()), Some(two.clone()), None, Some(two.clone()), Some(one), None];
    assert_eq!(store.contexts(ids()).await.unwrap(), kept);
    let harness = harness.reopen().await;
    assert_eq!(harness.store().contexts(ids()).await.unwrap(), kept);
    let deletion = draft(9, 90).kind(5).tag("e", &hex::encode(&id_of(2)));
    commit(harness.store(), &[deletion]).await;
    assert_eq!(harness.store().contexts(vec![id_of(2), id_of(9)]).await.unwrap(), [None, None]);
    assert_eq!(harness.store().contexts(Vec::new()).await.unwrap(), []);
    assert_eq!(seen(harness.store(), r#"{"ids":[]}"#, &View::all()).await, NONE);
}

pub(crate) async fn the_last_event_is_found_behind_thousands_that_are_hidden<H: Harness>() {
    let harness = create::<H>().await;
    let secret = |n: u32| draft(n, u64::from(n)).kind(7).tag("t", "a");
    let drafts: Vec<Draft> = (10..10_000).map(secret).collect();
    commit(harness.store(), &drafts).await;
    commit(harness.store(), &[draft(1, 1), draft(2, 2).kind(7).tag("t", "b"), secret(3)]).await;
    let hidden = view(&[r##"{"kinds":[7],"#t":["a"]}"##], &[]);
    assert_eq!(seen_by_all(&harness, "{}", &hidden).await, [2, 1]);
    assert_eq!(seen_by_all(&harness, r#"{"kinds":[7]}"#, &hidden).await, [2]);
    let query = Query { limit: 1, view: hidden, ..question("{}") };
    let page = harness.store().query(query).await.unwrap();
    assert_eq!((number(&page.records[0].id), page.records.len(), page.next.is_some()), (2, 1, true));
}
