//! Waiting for something to have happened, without a runtime: a count that grows, and those that wait for it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Counts what has happened. Whoever reads the count, looks, and then waits for the count to grow misses nothing.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Mutex<Rung>,
}

#[derive(Debug, Default)]
struct Rung {
    count: u64,
    waiting: BTreeMap<u64, Waker>,
    last_waiter: u64,
}

impl Bell {
    /// Something has happened.
    pub(super) fn ring(&self) {
        let woken = {
            let mut rung = self.lock();
            rung.count += 1;
            std::mem::take(&mut rung.waiting)
        };
        woken.into_values().for_each(Waker::wake);
    }

    /// How much has happened so far.
    pub(super) fn count(&self) -> u64 {
        self.lock().count
    }

    /// Ends once more than `seen` has happened; gives the count.
    pub(super) fn past(&self, seen: u64) -> Past<'_> {
        Past { bell: self, seen, waiter: None }
    }

    fn lock(&self) -> MutexGuard<'_, Rung> {
        // Whoever panicked while holding it left a count and some wakers: all that can be is that one is woken in vain.
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Bell::past`].
#[derive(Debug)]
pub(super) struct Past<'b> {
    bell: &'b Bell,
    seen: u64,
    waiter: Option<u64>,
}

impl Future for Past<'_> {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        let mut rung = self.bell.lock();
        if rung.count > self.seen {
            return Poll::Ready(rung.count);
        }
        let waiter = self.waiter.unwrap_or_else(|| {
            rung.last_waiter += 1;
            rung.last_waiter
        });
        rung.waiting.insert(waiter, context.waker().clone());
        drop(rung);
        self.waiter = Some(waiter);
        Poll::Pending
    }
}

impl Drop for Past<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter {
            self.bell.lock().waiting.remove(&waiter);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn what_has_happened_meanwhile_is_not_waited_for() {
        let bell = Bell::default();
        let seen = bell.count();
        bell.ring();
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(pin!(bell.past(seen)).poll(&mut context), Poll::Ready(1));
        let mut waiting = pin!(bell.past(1));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert_eq!(bell.lock().waiting.len(), 1);
        bell.ring();
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(2));
    }

    #[test]
    fn who_waits_no_more_is_forgotten() {
        let bell = Bell::default();
        {
            let mut waiting = Box::pin(bell.past(0));
            assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert!(bell.lock().waiting.is_empty());
    }
}
