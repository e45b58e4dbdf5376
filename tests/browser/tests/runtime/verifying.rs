//! Ids and signatures.

use relaysync::browser::verify;
use relaysync::ingest::{Invalid, Verdict};
use relaysync::protocol::Event;
use relaysync::runtime::Runtime;
use wasm_bindgen_test::wasm_bindgen_test;

use super::events::generate;
use super::runtime;

fn pack(event: &Event) -> Vec<u8> {
    [&event.id.as_bytes()[..], &event.pubkey.as_bytes()[..], &event.sig.as_bytes()[..]].concat()
}

fn altered(event: &Event, from: &str, to: &str) -> Event {
    let json = event.json_str().replacen(from, to, 1);
    assert_ne!(json, event.json_str());
    Event::parse(json.into()).expect("it is one still")
}

#[wasm_bindgen_test]
async fn one_verdict_an_event_in_order() {
    let mut events = generate(4, 700, 0);
    let date = events[3].created_at_secs();
    events[3] = altered(&events[3], &format!("\"created_at\":{date}"), "\"created_at\":7");
    let signature = events[500].sig.to_string();
    let forged = format!("{}{}", &signature[..127], if signature.ends_with('0') { '1' } else { '0' });
    events[500] = altered(&events[500], &signature, &forged);
    let verdicts = runtime().verify(events).await;
    assert_eq!(verdicts.len(), 700);
    for (place, verdict) in verdicts.iter().enumerate() {
        match place {
            3 => assert_eq!(*verdict, Verdict::Invalid(Invalid::Id)),
            500 => assert_eq!(*verdict, Verdict::Invalid(Invalid::Signature)),
            _ => assert!(matches!(verdict, Verdict::Valid(_)), "{place}"),
        }
    }
}

#[wasm_bindgen_test]
fn a_worker_says_which_of_a_batch_are_genuine() {
    let events = generate(5, 40, 0);
    let mut batch: Vec<u8> = events.iter().flat_map(pack).collect();
    batch[7 * 128 + 100] ^= 1;
    let mut expected = vec![1; 40];
    expected[7] = 0;
    assert_eq!(verify(&batch), expected);
    batch.extend_from_slice(&[1, 2, 3]);
    expected.push(0);
    assert_eq!(verify(&batch), expected);
    assert!(verify(&[]).is_empty());
}
