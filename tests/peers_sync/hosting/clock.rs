//! The native runtime with a clock that can be put forward.

use std::time::Duration;

use relaysync::ingest::{Verdict, Verified};
use relaysync::native::store::NativeStore;
use relaysync::native::{NativeClock, NativeConnector, NativeRuntime};
use relaysync::protocol::{Event, RelayUrl};
use relaysync::runtime::{Clock, Instant, Now, Runtime, SignError};
use tokio::sync::watch;

/// The machine's clock, put forward by what the test wants.
pub(super) struct ShiftedClock {
    machine: NativeClock,
    shift: watch::Sender<Duration>,
}

impl ShiftedClock {
    fn new() -> Self {
        Self { machine: NativeClock::new(), shift: watch::Sender::new(Duration::ZERO) }
    }

    /// Both clocks jump. Whoever sleeps notices.
    pub(super) fn put_forward(&self, by: Duration) {
        self.shift.send_modify(|shift| *shift += by);
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Now {
        let (now, shift) = (self.machine.now(), *self.shift.borrow());
        Now { instant: now.instant + shift, unix_secs: now.unix_secs + shift.as_secs() }
    }

    async fn sleep_until(&self, at: Instant) {
        let mut shift = self.shift.subscribe();
        loop {
            let by = *shift.borrow_and_update();
            let here = Instant::from_origin(at.since_origin().saturating_sub(by));
            tokio::select! {
                () = self.machine.sleep_until(here) => return,
                changed = shift.changed() => changed.expect("the clock is there"),
            }
        }
    }
}

/// The native runtime, with that clock.
pub(super) struct ShiftedRuntime {
    native: NativeRuntime<NativeStore>,
    clock: ShiftedClock,
}

impl ShiftedRuntime {
    pub(super) fn new(native: NativeRuntime<NativeStore>) -> Self {
        Self { native, clock: ShiftedClock::new() }
    }
}

impl Runtime for ShiftedRuntime {
    type Clock = ShiftedClock;
    type Connector = NativeConnector;
    type Store = NativeStore;

    fn clock(&self) -> &ShiftedClock {
        &self.clock
    }

    fn connector(&self) -> &NativeConnector {
        self.native.connector()
    }

    fn store(&self) -> &NativeStore {
        self.native.store()
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.native.spawn(task);
    }

    async fn verify(&self, events: Vec<Event>) -> Vec<Verdict> {
        self.native.verify(events).await
    }

    async fn sign_auth(&self, relay: &RelayUrl, challenge: &str) -> Result<Verified<Event>, SignError> {
        self.native.sign_auth(relay, challenge).await
    }
}
