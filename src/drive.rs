//! The one async interpreter of the engine's effects. It runs the same under tokio and in a browser.
//!
//! It awaits in one place, for one of: something that happened, a command, the engine's deadline. Everything else is
//! a task of its own that reports back through the inbox, so nothing that is slow holds up anything else. The inbox is
//! bounded: a connection whose frames are not taken is not read any further.

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;

use futures_channel::{mpsc, oneshot};
use futures_util::future::{Either, select};
use futures_util::{FutureExt, SinkExt, StreamExt};

use crate::engine::{Command, Config, ConnId, Effect, Engine, Input, Notice, RelayReport, Ticket};
use crate::ingest::Verdict;
use crate::peer::View;
use crate::protocol::Event;
use crate::runtime::{Clock, CloseReason, Connector, Dial, FrameReceiver, FrameSender, Now, Runtime, SendError};
use crate::store::Store;

/// The driver could not begin.
#[derive(Debug)]
pub struct DriveError<E> {
    /// What the store said.
    pub store: E,
}

impl<E: std::fmt::Display> std::fmt::Display for DriveError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot read the store: {}", self.store)
    }
}

impl<E: std::error::Error + 'static> std::error::Error for DriveError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.store)
    }
}

/// Runs an engine until a one-shot job has finished or [`Command::Stop`] is carried out, and gives back the reports.
/// `notify` hears of everything on the way; it must not block. When the senders of `commands` are gone, the engine
/// goes on.
///
/// # Errors
/// The store cannot be read at the start. Later failures of the store are gaps in the reports.
pub async fn drive<R: Runtime>(
    runtime: Arc<R>,
    config: Config,
    seed: u64,
    commands: mpsc::Receiver<Command>,
    mut notify: impl FnMut(&Notice),
) -> Result<Vec<RelayReport>, DriveError<<R::Store as Store>::Error>> {
    let inputs_before_tick_max = config.inputs_before_tick_max;
    let snapshot = runtime.store().load().await.map_err(|store| DriveError { store })?;
    let (sender, mut inbox) = mpsc::channel(config.inbox_inputs);
    let mut engine = Engine::new(config, snapshot, seed, runtime.clock().now());
    let mut driver =
        Driver { runtime: runtime.clone(), inbox: sender, connections: BTreeMap::new(), at_hand: VecDeque::new() };
    let mut commands = commands.fuse();
    let mut since_tick: u32 = 0;
    loop {
        while let Some(effect) = engine.poll_effect() {
            if let Some(reports) = driver.perform(effect, &mut notify) {
                return Ok(reports);
            }
        }
        let input = match driver.at_hand.pop_front() {
            Some(input) => input,
            None if since_tick >= inputs_before_tick_max && is_due(&engine, runtime.clock().now()) => Input::Tick,
            None => match next_incoming(&runtime, &engine, &mut inbox, &mut commands).await {
                Incoming::Input(input) => {
                    if let Input::Disconnected { conn, .. } = &input {
                        driver.close(*conn);
                    }
                    input
                }
                Incoming::Opened(conn, sender) => match driver.open(conn, sender) {
                    Some(input) => input,
                    None => continue,
                },
            },
        };
        since_tick = if matches!(input, Input::Tick) { 0 } else { since_tick.saturating_add(1) };
        engine.handle(input, runtime.clock().now());
    }
}

/// Has the engine's deadline passed? Who has much to say must not keep it waiting.
fn is_due(engine: &Engine, now: Now) -> bool {
    engine.deadline().is_some_and(|(at, _)| at <= now.instant)
}

type Sender<R> = <<R as Runtime>::Connector as Connector>::Sender;

#[allow(clippy::large_enum_variant, reason = "nearly every value is the large one; on 32 bits it is not so large")]
enum Incoming<S> {
    Input(Input),
    Opened(ConnId, S),
}

/// The one place where the driver waits. Commands come first: the inbox may be full of what relays send, again and again.
async fn next_incoming<R: Runtime>(
    runtime: &Arc<R>,
    engine: &Engine,
    inbox: &mut mpsc::Receiver<Incoming<Sender<R>>>,
    commands: &mut futures_util::stream::Fuse<mpsc::Receiver<Command>>,
) -> Incoming<Sender<R>> {
    let tick = match engine.deadline() {
        Some((at, _)) => Either::Left(runtime.clock().sleep_until(at)),
        None => Either::Right(std::future::pending()),
    };
    let command = async {
        match commands.next().await {
            Some(command) => Input::Command(command),
            None => std::future::pending().await,
        }
    };
    let (command, tick) = (pin!(command), pin!(tick));
    match select(command, select(inbox.next(), tick)).await {
        Either::Left((input, _)) => Incoming::Input(input),
        Either::Right((Either::Left((Some(incoming), _)), _)) => incoming,
        // The driver itself holds a sender, so the inbox never ends.
        Either::Right((Either::Left((None, _)) | Either::Right(_), _)) => Incoming::Input(Input::Tick),
    }
}

struct Connection<S> {
    sender: Option<S>,
    /// Dropping it ends the connection's task, whatever it is waiting for.
    _alive: oneshot::Sender<()>,
}

struct Driver<R: Runtime> {
    runtime: Arc<R>,
    inbox: mpsc::Sender<Incoming<Sender<R>>>,
    connections: BTreeMap<ConnId, Connection<Sender<R>>>,
    /// Inputs that arose while effects were carried out.
    at_hand: VecDeque<Input>,
}

impl<R: Runtime> Driver<R> {
    /// A connection is open; if it was given up meanwhile, it is closed again.
    fn open(&mut self, conn: ConnId, mut sender: Sender<R>) -> Option<Input> {
        match self.connections.get_mut(&conn) {
            Some(connection) => {
                connection.sender = Some(sender);
                Some(Input::Connected { conn })
            }
            None => {
                sender.close();
                None
            }
        }
    }

    fn perform(&mut self, effect: Effect, notify: &mut impl FnMut(&Notice)) -> Option<Vec<RelayReport>> {
        match effect {
            Effect::Connect { conn, dial } => self.connect(conn, dial),
            Effect::Send { conn, frame } => self.send(conn, frame),
            Effect::SetReading { conn, reading } => {
                if let Some(sender) = self.connections.get_mut(&conn).and_then(|connection| connection.sender.as_mut())
                {
                    sender.set_reading(reading);
                }
            }
            Effect::Close { conn, reason } => {
                tracing::debug!(?conn, %reason, "closing");
                self.close(conn);
            }
            Effect::FetchInfo { conn, dial } => self.report(move |runtime| async move {
                Input::RelayInfo { conn, result: runtime.connector().relay_info(&dial).await }
            }),
            Effect::Verify { ticket, events, look_up: true } => {
                self.report(move |runtime| verify_unknown(runtime, ticket, events))
            }
            Effect::Verify { ticket, events, look_up: false } => self.report(move |runtime| async move {
                Input::Verified { ticket, result: Ok(runtime.verify(events).await) }
            }),
            Effect::Commit { ticket, batch } => self.report(move |runtime| async move {
                Input::Committed {
                    ticket,
                    result: runtime.store().commit(batch).await.map_err(|error| error.to_string()),
                }
            }),
            Effect::LoadItems { ticket, filter, window, view } => self.report(move |runtime| async move {
                Input::Items {
                    ticket,
                    result: runtime.store().items(&filter, window, &view).await.map_err(|error| error.to_string()),
                }
            }),
            Effect::CheckKnown { ticket, ids, view } => self.report(move |runtime| async move {
                let known = runtime.store().known(ids, &view).await;
                Input::Known { ticket, result: known.map_err(|error| error.to_string()) }
            }),
            Effect::LoadEvents { ticket, ids } => self.report(move |runtime| async move {
                Input::Events { ticket, result: runtime.store().events(ids).await.map_err(|error| error.to_string()) }
            }),
            Effect::Sign { conn, relay, challenge } => self.report(move |runtime| async move {
                Input::Signed { conn, result: runtime.sign_auth(&relay, &challenge).await }
            }),
            Effect::Notify(notice) => {
                notify(&notice);
                if let Notice::Finished(reports) | Notice::Stopped(reports) = notice {
                    return Some(reports);
                }
            }
        }
        None
    }

    /// Runs a piece of work beside everything else; its result is an input.
    fn report<F>(&self, work: impl FnOnce(Arc<R>) -> F)
    where
        F: Future<Output = Input> + crate::runtime::MaybeSend + 'static,
    {
        let mut inbox = self.inbox.clone();
        let work = work(self.runtime.clone());
        self.runtime.spawn(async move {
            let input = work.await;
            // The driver is gone when it has ended: then nobody wants to know.
            let _ = inbox.send(Incoming::Input(input)).await;
        });
    }

    fn connect(&mut self, conn: ConnId, dial: Dial) {
        let (alive, cancelled) = oneshot::channel();
        self.connections.insert(conn, Connection { sender: None, _alive: alive });
        let (runtime, inbox) = (self.runtime.clone(), self.inbox.clone());
        self.runtime.spawn(async move {
            let serve = pin!(serve_connection::<R>(runtime, conn, dial, inbox).fuse());
            select(serve, cancelled).await;
        });
    }

    fn send(&mut self, conn: ConnId, frame: String) {
        let Some(sender) = self.connections.get_mut(&conn).and_then(|connection| connection.sender.as_mut()) else {
            return;
        };
        match sender.try_send(frame) {
            Ok(()) => {}
            Err(SendError::Full) => {
                self.close(conn);
                self.at_hand.push_back(Input::Disconnected { conn, reason: CloseReason::Backlogged });
            }
            // The receiving half tells why.
            Err(SendError::Closed) => {}
        }
    }

    fn close(&mut self, conn: ConnId) {
        if let Some(mut connection) = self.connections.remove(&conn)
            && let Some(sender) = &mut connection.sender
        {
            sender.close();
        }
    }
}

/// Connects and hands over what arrives, until the connection ends.
async fn serve_connection<R: Runtime>(
    runtime: Arc<R>,
    conn: ConnId,
    dial: Dial,
    mut inbox: mpsc::Sender<Incoming<Sender<R>>>,
) {
    let reason = match runtime.connector().connect(&dial).await {
        Ok((sender, mut receiver)) => {
            if inbox.send(Incoming::Opened(conn, sender)).await.is_err() {
                return;
            }
            loop {
                let mut frames = Vec::new();
                let ended = receiver.receive(&mut frames).await.err();
                if !frames.is_empty() && inbox.send(Incoming::Input(Input::Frames { conn, frames })).await.is_err() {
                    return;
                }
                if let Some(reason) = ended {
                    break reason;
                }
            }
        }
        Err(error) => CloseReason::Connect(error),
    };
    // As above: a driver that has ended does not want to know.
    let _ = inbox.send(Incoming::Input(Input::Disconnected { conn, reason })).await;
}

/// Drops what the store knows, and checks the rest. What is known costs no signature.
async fn verify_unknown<R: Runtime>(runtime: Arc<R>, ticket: Ticket, events: Vec<Event>) -> Input {
    let ids = events.iter().map(|event| event.id.to_bytes()).collect();
    let known = match runtime.store().known(ids, &View::all()).await {
        Ok(known) => known,
        Err(error) => return Input::Verified { ticket, result: Err(error.to_string()) },
    };
    let unknown: Vec<Event> =
        events.into_iter().zip(&known).filter(|(_, known)| !**known).map(|(event, _)| event).collect();
    let mut checked = if unknown.is_empty() { Vec::new() } else { runtime.verify(unknown).await }.into_iter();
    let verdict = |known| if known { Some(Verdict::Known) } else { checked.next() };
    let verdicts = known.into_iter().map_while(verdict).collect();
    Input::Verified { ticket, result: Ok(verdicts) }
}
