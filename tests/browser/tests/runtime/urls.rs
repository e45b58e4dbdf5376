//! The browser's parser makes of relay URLs what the native one does.

use relaysync::protocol::RelayUrl;
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test]
fn spellings_are_normalised_as_natively() {
    for (spelling, normal) in [
        ("wss://x.example", "wss://x.example"),
        ("  wss://X.Example/ ", "wss://x.example"),
        ("wss://x.example:443", "wss://x.example"),
        ("wss://x.example.", "wss://x.example"),
        ("wss://x.example./?utm_source=a#b", "wss://x.example"),
        ("ws://127.0.0.1:80/a/", "ws://127.0.0.1/a"),
        ("wss://x.example:8443/a/b//?ref=z&k=1&l=a b", "wss://x.example:8443/a/b?k=1&l=a+b"),
        ("wss://x.example?k=1", "wss://x.example/?k=1"),
        ("ws://[::1]:7777", "ws://[::1]:7777"),
        ("wss://bücher.example/ü", "wss://xn--bcher-kva.example/%C3%BC"),
    ] {
        assert_eq!(RelayUrl::parse(spelling).expect("it is one").as_str(), normal, "{spelling}");
    }
}

#[wasm_bindgen_test]
fn what_is_no_relay_url_is_refused() {
    for text in ["", "x.example", "http://x.example", "wss://", "wss://u:p@x.example", "ws://."] {
        assert!(RelayUrl::parse(text).is_err(), "{text}");
    }
}
