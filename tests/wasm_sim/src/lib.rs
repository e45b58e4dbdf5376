//! Plays a seed of the swarm for JavaScript. No imports, and no memory to be freed: results are texts at a place that
//! stays valid until the next call.

use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use relaysync::sim::swarm::{Options, run};

/// What the last call had to say.
static TEXT: Mutex<String> = Mutex::new(String::new());

/// Plays a seed. Gives 1 if it passed, and the text ends with `SEED HASH` then; 0 if not, and it ends with the failure.
/// A panic ends in a trap, and the text with its message. Before that, if `traced` is not 0, comes all that happened.
#[expect(unsafe_code, reason = "an export needs a name, and nothing else here has this one")]
#[unsafe(no_mangle)]
pub extern "C" fn play(seed: u64, traced: u32) -> u32 {
    tell_panics();
    lock().clear();
    let options = Options { tell: (traced != 0).then_some(push_line), ..Options::default() };
    let result = run(seed, &options);
    push_line(&match &result {
        Ok(summary) => format!("{} {:016x}", summary.seed, summary.trace_hash),
        Err(failure) => failure.to_string(),
    });
    result.is_ok().into()
}

/// Where the text is, which is UTF-8: its address in the upper 32 bits, its length in bytes in the lower.
#[expect(unsafe_code, reason = "an export needs a name, and nothing else here has this one")]
#[unsafe(no_mangle)]
pub extern "C" fn text() -> u64 {
    let text = lock();
    ((text.as_ptr().addr() as u64) << 32) | text.len() as u64
}

fn push_line(line: &str) {
    let mut text = lock();
    text.push_str(line);
    text.push('\n');
}

fn tell_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| panic::set_hook(Box::new(|info| push_line(&info.to_string()))));
}

fn lock() -> MutexGuard<'static, String> {
    TEXT.lock().unwrap_or_else(PoisonError::into_inner)
}
