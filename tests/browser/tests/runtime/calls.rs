//! What JavaScript sees.

use js_sys::{Function, JSON, Promise, Reflect};
use relaysync::browser::Core;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::wasm_bindgen_test;

use super::events::generate;
use super::host;

fn value(json: &str) -> JsValue {
    JSON::parse(json).expect("tests write JSON")
}

async fn settle(promise: Promise) -> Result<String, String> {
    let text = |value: JsValue| String::from(JSON::stringify(&value).expect("it is plain"));
    JsFuture::from(promise).await.map(text).map_err(text)
}

#[wasm_bindgen_test]
async fn options_that_are_unknown_or_wrong_are_named() {
    for (options, word) in [
        (r#"{"storage":"memory"}"#, "name"),
        (r#"{"name":"x","storage":"tape"}"#, "tape"),
        (r#"{"name":"x","storage":"memory","colour":1}"#, "colour"),
        (r#"{"name":"x","storage":"memory","log":"loud"}"#, "loud"),
        ("7", "options"),
    ] {
        let error = settle(Core::open(value(options), host())).await.expect_err(options);
        assert!(error.contains("invalid-argument") && error.contains(word), "{options}: {error}");
    }
}

/// Calls a core that JavaScript has.
async fn call(core: &JsValue, request: &str) -> Result<String, String> {
    let call: Function = Reflect::get(core, &"call".into()).expect("it is a core").unchecked_into();
    let answer = call.call1(core, &value(request)).expect("it gives a promise");
    settle(answer.unchecked_into()).await
}

async fn opened() -> JsValue {
    let options = value(r#"{"name":"x","storage":"memory"}"#);
    JsFuture::from(Core::open(options, host())).await.expect("nothing is wrong with it")
}

#[wasm_bindgen_test]
async fn requests_that_are_unknown_or_wrong_are_named() {
    let core = opened().await;
    for (request, word) in [
        (r#"{"method":"fly"}"#, "fly"),
        (r#"{}"#, "method"),
        (r#"{"method":"count","filters":[{"kind":[1]}]}"#, "filters[0]"),
        (r#"{"method":"count","filters":[]}"#, "filters"),
        (r#"{"method":"count","filters":[{"kinds":[1]}],"more":1}"#, "more"),
        (r#"{"method":"query","filters":[{"kinds":[1]}],"limit":-1}"#, "limit"),
        (r#"{"method":"event","id":"00"}"#, "id"),
        (r#"{"method":"add","events":"nonsense"}"#, "events"),
        (r#"{"method":"job","id":"a","filters":[{"kinds":[1]}],"relays":["http://x.example"]}"#, "http://x.example"),
        (
            r#"{"method":"job","id":"a","filters":[{"kinds":[1]}],"relays":["ws://x.example"],"direction":"in"}"#,
            "direction",
        ),
        (r#"{"method":"job","id":"a","filters":[{"kinds":[1]}],"relays":[]}"#, "relay"),
    ] {
        let error = call(&core, request).await.expect_err(request);
        assert!(error.contains("\"invalid-argument\"") && error.contains(word), "{request}: {error}");
    }
    let error = call(&core, r#"{"method":"progress","id":"nobody"}"#).await.expect_err("there is none");
    assert!(error.contains("\"unknown-job\""), "{error}");
}

#[wasm_bindgen_test]
async fn what_is_added_is_found_and_given_out_until_it_is_closed() {
    let core = opened().await;
    let events = generate(6, 3, 0);
    let (first, id) = (events[0].json_str(), events[0].id.to_string());
    let texts = events.iter().map(|event| event.json_str()).collect::<Vec<_>>().join(",");
    let add = format!(r#"{{"method":"add","events":{}}}"#, quoted(&format!("[{texts},{{}}]")));
    assert_eq!(
        call(&core, r#"{"method":"watch","id":"w","filters":[{"since":0}]}"#).await.expect("it begins"),
        r#"{"cursor":0}"#
    );
    let added = call(&core, &add).await.expect("it is in memory");
    assert!(added.contains(r#"["stored","stored","stored","invalid"]"#) && added.contains("\"3\":"), "{added}");
    assert_eq!(call(&core, r#"{"method":"count","filters":[{"since":0}]}"#).await.expect("it is in memory"), "3");
    let found = call(&core, &format!(r#"{{"method":"event","id":"{id}"}}"#)).await.expect("it is in memory");
    assert_eq!(found, quoted(first));
    let taken = call(&core, r#"{"method":"take","id":"w","eventsMax":10}"#).await.expect("there are some");
    assert!(taken.contains(r#""from":[null,null,null],"live":[false,false,false],"cursor":3"#), "{taken}");
    let exported = call(&core, r#"{"method":"export","bytesMax":1000000}"#).await.expect("it is in memory");
    assert!(exported.contains(&quoted(first)[1..20]) && exported.contains(r#""next":null"#), "{exported}");
    assert_eq!(call(&core, r#"{"method":"close"}"#).await.expect("it ends"), "{}");
    for method in ["count", "take"] {
        let error = call(&core, &format!(r#"{{"method":"{method}"}}"#)).await.expect_err("it is closed");
        assert!(error.contains("\"closed\""), "{error}");
    }
}

fn quoted(text: &str) -> String {
    JSON::stringify(&text.into()).expect("it is text").into()
}
