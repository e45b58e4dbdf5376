//! Plays a seed of the swarm for JavaScript. No imports, and no memory to be freed: results are texts at a place that
//! stays valid until the next call.

use std::panic;
use std::sync::{Mutex, Once, PoisonError};

use relaysync::sim::swarm::{Options, run};

/// What the last call had to say.
static TEXT: Mutex<String> = Mutex::new(String::new());

/// Plays a seed. Gives 1 if it passed, and the text is `SEED HASH` then; 0 if not, and it is the failure. A panic ends
/// in a trap; the text is its message.
#[expect(unsafe_code, reason = "an export needs a name, and nothing else here has this one")]
#[unsafe(no_mangle)]
pub extern "C" fn play(seed: u64) -> u32 {
    tell_panics();
    let result = run(seed, &Options::default());
    let passed = result.is_ok();
    set_text(match result {
        Ok(summary) => format!("{} {:016x}", summary.seed, summary.trace_hash),
        Err(failure) => failure.to_string(),
    });
    passed.into()
}

/// Where the text is, which is UTF-8: its address in the upper 32 bits, its length in bytes in the lower.
#[expect(unsafe_code, reason = "an export needs a name, and nothing else here has this one")]
#[unsafe(no_mangle)]
pub extern "C" fn text() -> u64 {
    let text = TEXT.lock().unwrap_or_else(PoisonError::into_inner);
    ((text.as_ptr().addr() as u64) << 32) | text.len() as u64
}

fn set_text(text: String) {
    *TEXT.lock().unwrap_or_else(PoisonError::into_inner) = text;
}

fn tell_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| panic::set_hook(Box::new(|info| set_text(info.to_string()))));
}
