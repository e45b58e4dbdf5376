//! Plays a seed so that a panic in it becomes a [`Failure`] with a trace.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use super::{Outcome, Play};
use crate::sim::swarm::{Failure, Options};

/// Lines of the trace that a failure keeps, the last ones.
const TRACE_LINES_MAX: usize = 200;

thread_local! {
    /// `Some` while this thread plays a seed: what its panic said, once there is one.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    /// The last lines that a seed has told.
    static RECENT: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
}

/// Plays a seed. After a panic it is played again, for the trace that the panic took with it.
pub(super) fn play(play: Play, seed: u64, options: &Options) -> Outcome {
    match caught(|| play(seed, options)) {
        Ok(outcome) => outcome,
        Err(mut why) => {
            let again = caught(|| play(seed, &Options { tell: Some(remember), ..*options }));
            let trace = RECENT.take().into();
            if again.as_ref().err() != Some(&why) {
                why.push_str("; played again it did not, so the seed does not decide everything");
            }
            Err(Box::new(Failure { seed, why, faults: Vec::new(), trace }))
        }
    }
}

/// Gives what a panic said, which is then printed nowhere else.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !note(info) {
                usual(info);
            }
        }));
    });
    PANIC.set(Some(String::new()));
    // All that the work could leave half done is dropped with it: a seed makes its own world.
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    let said = PANIC.take().unwrap_or_default();
    result.map_err(|_| said)
}

/// Keeps what a panic says if this thread plays a seed.
fn note(info: &PanicHookInfo<'_>) -> bool {
    PANIC.with_borrow_mut(|said| {
        let Some(said) = said else { return false };
        let place = info.location().map(|place| format!(" at {place}")).unwrap_or_default();
        *said = format!("it panicked{place}: {}", info.payload_as_str().unwrap_or("no message"));
        true
    })
}

fn remember(line: &str) {
    RECENT.with_borrow_mut(|lines| {
        if lines.len() == TRACE_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::tests::{fake, summary};
    use super::play;
    use crate::sim::swarm::Options;

    #[test]
    fn a_panic_is_a_failure_with_its_message_and_the_last_lines() {
        let failure = play(fake, 3, &Options::default()).unwrap_err();
        assert!(failure.why.starts_with("it panicked at src/native/swarm/mod.rs:"), "{failure}");
        assert!(failure.why.ends_with(": seed 3 is not to my liking"), "{failure}");
        assert_eq!((failure.seed, failure.trace.len()), (3, 200));
        assert_eq!(
            (failure.trace[0].as_str(), failure.trace[199].as_str()),
            ("step 100 of seed 3", "step 299 of seed 3")
        );
        assert_eq!(play(fake, 2, &Options::default()).as_ref(), Ok(&summary(2)));
    }

    #[test]
    fn a_panic_that_does_not_come_again_is_told_as_such() {
        thread_local!(static PLAYED: Cell<bool> = const { Cell::new(false) });
        let once = |seed, _: &Options| if PLAYED.replace(true) { Ok(summary(seed)) } else { panic!("once") };
        let failure = play(once, 4, &Options::default()).unwrap_err();
        assert!(failure.why.contains(": once; played again it did not"), "{failure}");
    }
}
