//! The driver beside a relay that never stops talking. Tasks run whenever the clock is looked at, so that the inbox is never
//! found empty: whatever waits behind it would wait for ever.

use std::future::{Future, poll_fn, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_channel::mpsc;
use relaysync::drive::drive;
use relaysync::engine::{Command, Config, RelayReport};
use relaysync::ingest::{Verdict, Verified};
use relaysync::plan::Interest;
use relaysync::protocol::{Event, Filter, RelayUrl};
use relaysync::runtime::{
    Clock, CloseReason, ConnectError, Connector, Dial, Frame, FrameReceiver, FrameSender, Instant, Now, Runtime,
    SendError, SignError,
};
use relaysync::store::MemoryStore;

use crate::support::{LIVE, daemon};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// So many frames come before the command is given, and so many more must not be needed for it.
const FRAMES_BEFORE: u64 = 20_000;
const FRAMES_AFTER: u64 = 200;

/// How long each look at the clock takes.
const LOOK: Duration = Duration::from_millis(1);

/// A runtime with one relay, which talks without end of what nobody asked for.
struct Chatter {
    looks: AtomicU64,
    tasks: Arc<Mutex<Vec<Task>>>,
    store: MemoryStore,
    frames: Arc<AtomicU64>,
    sent: Arc<Mutex<Vec<String>>>,
    commands: mpsc::Sender<Command>,
}

impl Chatter {
    /// Polls each task once.
    fn run_tasks(&self) {
        let tasks = std::mem::take(&mut *self.tasks.lock().expect("no panic"));
        let mut context = Context::from_waker(Waker::noop());
        let left =
            tasks.into_iter().filter_map(|mut task| task.as_mut().poll(&mut context).is_pending().then_some(task));
        let left: Vec<Task> = left.collect();
        self.tasks.lock().expect("no panic").extend(left);
    }
}

impl Clock for Chatter {
    fn now(&self) -> Now {
        self.run_tasks();
        let looks = u32::try_from(self.looks.fetch_add(1, Ordering::Relaxed)).expect("a test ends");
        Now { instant: Instant::ZERO + LOOK * looks, unix_secs: 1_700_000_000 }
    }

    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send {
        poll_fn(move |_| if self.now().instant >= at { Poll::Ready(()) } else { Poll::Pending })
    }
}

impl Connector for Chatter {
    type Sender = Ear;
    type Receiver = Mouth;

    fn connect(&self, _: &Dial) -> impl Future<Output = Result<(Ear, Mouth), ConnectError>> + Send {
        let mouth = Mouth { frames: self.frames.clone(), commands: self.commands.clone() };
        ready(Ok((Ear(self.sent.clone()), mouth)))
    }

    fn relay_info(&self, _: &Dial) -> impl Future<Output = Result<String, ConnectError>> + Send {
        ready(Err(ConnectError::TimedOut))
    }
}

impl Runtime for Chatter {
    type Clock = Self;
    type Connector = Self;
    type Store = MemoryStore;

    fn clock(&self) -> &Self {
        self
    }

    fn connector(&self) -> &Self {
        self
    }

    fn store(&self) -> &MemoryStore {
        &self.store
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().expect("no panic").push(Box::pin(task));
    }

    fn verify(&self, _: Vec<Event>) -> impl Future<Output = Vec<Verdict>> + Send {
        ready(Vec::new())
    }

    fn sign_auth(&self, _: &RelayUrl, _: &str) -> impl Future<Output = Result<Verified<Event>, SignError>> + Send {
        ready(Err(SignError::NoKey))
    }
}

/// Hears what is sent to the relay.
struct Ear(Arc<Mutex<Vec<String>>>);

impl FrameSender for Ear {
    fn try_send(&mut self, frame: String) -> Result<(), SendError> {
        self.0.lock().expect("no panic").push(frame);
        Ok(())
    }

    fn set_reading(&mut self, _: bool) {}

    fn close(&mut self) {}
}

/// Talks, and gives the command when it has said enough.
struct Mouth {
    frames: Arc<AtomicU64>,
    commands: mpsc::Sender<Command>,
}

impl FrameReceiver for Mouth {
    fn receive(&mut self, frames: &mut Vec<Frame>) -> impl Future<Output = Result<(), CloseReason>> + Send {
        frames.push(r#"["COUNT","nobody",{"count":1}]"#.to_owned().into());
        let said = self.frames.fetch_add(1, Ordering::Relaxed);
        assert!(said < FRAMES_BEFORE + FRAMES_AFTER, "the command is not carried out");
        if said == FRAMES_BEFORE {
            self.commands.try_send(Command::Stop).expect("there is room");
        }
        ready(Ok(()))
    }
}

/// Drives an engine beside such a relay until it is stopped.
fn drive_beside_chatter(config: Config) -> (Vec<RelayReport>, Vec<String>) {
    let (mut commands, taken) = mpsc::channel(4);
    let (relay, options) = (RelayUrl::parse("wss://relay.example").expect("a relay URL"), LIVE);
    let interests = [Interest::Opaque(Arc::new(Filter::new()))].into();
    commands.try_send(Command::SetInterests { relay, interests, options }).expect("there is room");
    let chatter = Arc::new(Chatter {
        looks: AtomicU64::new(0),
        tasks: Arc::default(),
        store: MemoryStore::default(),
        frames: Arc::default(),
        sent: Arc::default(),
        commands,
    });
    let mut driven = Box::pin(drive(chatter.clone(), config, 7, taken, |_| {}));
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        if let Poll::Ready(result) = driven.as_mut().poll(&mut context) {
            let sent = chatter.sent.lock().expect("no panic").clone();
            return (result.expect("the store in memory can be read"), sent);
        }
        chatter.run_tasks();
    }
    panic!("it never ends");
}

#[test]
fn a_relay_that_never_stops_talking_keeps_no_command_waiting() {
    let (reports, _) = drive_beside_chatter(daemon());
    assert_eq!(reports.len(), 1);
}

/// What has stalled is seen to have, however many frames of no use come meanwhile.
#[test]
fn nor_a_deadline() {
    let (_, sent) = drive_beside_chatter(Config { stall: Duration::from_secs(2), ..daemon() });
    let pages = sent.iter().filter(|frame| frame.starts_with("[\"REQ\"") && !frame.contains("\"limit\":0"));
    assert!(pages.count() > 1, "{sent:?}");
}
