//! Clock and timers.

use std::time::Duration;

use relaysync::browser::BrowserClock;
use relaysync::runtime::Clock;
use wasm_bindgen_test::wasm_bindgen_test;

#[wasm_bindgen_test]
async fn sleeps_until_the_moment_and_not_shorter() {
    let clock = BrowserClock::new();
    for _ in 0..20 {
        let at = clock.now().instant + Duration::from_micros(2_300);
        clock.sleep_until(at).await;
        assert!(clock.now().instant >= at);
        clock.sleep_until(at).await;
    }
    assert!(clock.now().unix_secs > 1_700_000_000);
}
