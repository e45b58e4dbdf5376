//! Plays a seed so that no panic in it goes beyond it, or is printed by the thread that had it.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

use super::{Outcome, Play};
use crate::sim::swarm::{Failure, Options};

thread_local! {
    /// `Some` while this thread plays a seed: where it panicked and what it said, once it has.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Plays a seed. Most panics have become failures before they come here, with faults and a trace, but without the
/// place, which only the hook is told.
pub(super) fn play(play: Play, seed: u64, options: &Options) -> Outcome {
    keep_panics();
    PANIC.set(Some(String::new()));
    // All that the work could leave half done is dropped with it: a seed makes its own world.
    let played = panic::catch_unwind(AssertUnwindSafe(|| play(seed, options)));
    let said = PANIC.take().unwrap_or_default();
    match played {
        Ok(Err(failure)) if !said.is_empty() => Err(Box::new(Failure { why: said, ..*failure })),
        Ok(outcome) => outcome,
        Err(_) => Err(Box::new(Failure { seed, why: said, faults: Vec::new(), trace: Vec::new() })),
    }
}

fn keep_panics() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !keep(info) {
                usual(info);
            }
        }));
    });
}

/// Keeps what a panic says if this thread plays a seed.
fn keep(info: &PanicHookInfo<'_>) -> bool {
    PANIC.with_borrow_mut(|said| {
        let Some(said) = said else { return false };
        let place = info.location().map(|place| format!("{place}: ")).unwrap_or_default();
        *said = place + info.payload_as_str().unwrap_or("a panic without words");
        true
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fake, summary};
    use super::play;
    use crate::sim::swarm::{Failure, Options};

    #[test]
    fn a_panic_is_a_failure_of_the_seed_with_its_place() {
        let failure = play(fake, 3, &Options::default()).unwrap_err();
        assert!(failure.why.starts_with("src/native/swarm/mod.rs:"), "{failure}");
        assert!(failure.why.ends_with(": seed 3 is not to my liking"), "{failure}");
        assert_eq!(play(fake, 2, &Options::default()).as_ref(), Ok(&summary(2)));
    }

    #[test]
    fn a_failure_keeps_what_it_has_and_gets_the_place_of_its_panic() {
        let plain = play(fake, 1, &Options::default());
        assert_eq!(plain, fake(1, &Options::default()));
        let of_a_panic = play(
            |seed, options| {
                let panic = std::panic::catch_unwind(|| panic!("too late")).unwrap_err();
                let why = panic.downcast_ref::<&str>().unwrap().to_string();
                fake(seed, options).map_err(|failure| Box::new(Failure { why, ..*failure }))
            },
            1,
            &Options::default(),
        );
        let (of_a_panic, plain) = (of_a_panic.unwrap_err(), plain.unwrap_err());
        assert!(of_a_panic.why.starts_with("src/native/swarm/guard.rs:") && of_a_panic.why.ends_with(": too late"));
        assert_eq!((of_a_panic.faults, of_a_panic.trace), (plain.faults, plain.trace));
    }
}
