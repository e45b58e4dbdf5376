//! The task that owns the server.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::connection::{Arrival, Outgoing};
use super::elsewhere::Elsewhere;
use super::work::Work;
use super::{Request, ServiceConfig, Standing, stopped};
use crate::native::NativeClock;
use crate::runtime::Clock;
use crate::serve::{ClientId, Cut, ServeEffect, ServeInput, Server};
use crate::store::Store;

/// The server, the lines to its clients, and the work beside it.
#[derive(Debug)]
pub(super) struct Hub<S> {
    server: Server,
    lines: BTreeMap<ClientId, Line>,
    work: Work<S>,
    elsewhere: Elsewhere<S>,
    drain_max: Duration,
    clock: NativeClock,
}

/// The way to the task of one connection.
#[derive(Debug)]
pub(super) struct Line {
    /// Bounded in bytes by the server.
    pub(super) outgoing: mpsc::UnboundedSender<Outgoing>,
    pub(super) reading: watch::Sender<bool>,
}

/// Reports and turns of frames taken before effects are carried out.
const INPUTS_AT_ONCE_MAX: usize = 64;

impl<S: Store> Hub<S> {
    pub(super) fn new(config: &ServiceConfig, work: Work<S>, elsewhere: Elsewhere<S>) -> Self {
        Self {
            server: Server::new(config.serve.clone()),
            lines: BTreeMap::new(),
            work,
            elsewhere,
            drain_max: config.shutdown_max / 2,
            clock: NativeClock::new(),
        }
    }

    pub(super) async fn run(
        mut self,
        mut arrivals: mpsc::Receiver<Arrival>,
        mut reports: mpsc::UnboundedReceiver<ServeInput>,
        mut requests: mpsc::Receiver<Request>,
        mut is_stopping: watch::Receiver<bool>,
    ) {
        let (mut arrived, mut reported) = (Vec::new(), Vec::new());
        let mut was_fed = false;
        loop {
            let (deadline, clock) = (self.server.deadline(), self.clock.clone());
            let tick = async {
                match deadline {
                    Some((at, _)) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            // After news from elsewhere, which may come without end, clients have their turn.
            let may_feed = !was_fed || (reports.is_empty() && arrivals.is_empty());
            was_fed = false;
            tokio::select! {
                biased;
                () = stopped(&mut is_stopping) => break,
                Some(request) = requests.recv() => self.request(request),
                news = self.elsewhere.next(), if may_feed => {
                    was_fed = true;
                    news.into_iter().for_each(|input| self.handle(input));
                }
                _ = reports.recv_many(&mut reported, INPUTS_AT_ONCE_MAX) => {
                    self.note_commits();
                    reported.drain(..).for_each(|report| self.handle(report));
                }
                _ = arrivals.recv_many(&mut arrived, INPUTS_AT_ONCE_MAX) => {
                    arrived.drain(..).for_each(|arrival| self.arrive(arrival));
                }
                () = tick => self.handle(ServeInput::Tick),
            }
            self.note_commits();
            self.carry_out();
        }
        self.drain(&mut reports).await;
        self.server.close_all(&Cut::Shutdown);
        self.carry_out();
    }

    /// Waits, within its bound, until what was received is stored and answered.
    async fn drain(&mut self, reports: &mut mpsc::UnboundedReceiver<ServeInput>) {
        let drain_max = self.drain_max;
        let drained = async {
            while !self.server.is_settled() {
                let Some(report) = reports.recv().await else { return };
                self.handle(report);
                self.carry_out();
            }
        };
        if timeout(drain_max, drained).await.is_err() {
            tracing::warn!("events that were received last may not have been stored");
        }
    }

    fn note_commits(&mut self) {
        if let Some(commits) = self.elsewhere.commits() {
            self.handle(commits);
        }
    }

    fn handle(&mut self, input: ServeInput) {
        let now = self.clock.now();
        self.server.handle(input, now);
    }

    fn request(&mut self, request: Request) {
        match request {
            // Nobody waits for the numbers any more: then they are not sent.
            Request::Standing(sender) => drop(sender.send(self.standing())),
            Request::Access(rules, done) => {
                self.handle(ServeInput::Access(rules));
                if done.send(()).is_err() {
                    tracing::trace!("nobody waits for the access rules any more, they hold all the same");
                }
            }
            Request::Peers(peers) => self.handle(ServeInput::Peers(peers)),
            Request::Renewed => self.handle(ServeInput::Renewed),
            Request::Accepted(events) => self.handle(ServeInput::Accepted { events: events.into() }),
        }
    }

    fn standing(&self) -> Standing {
        Standing { clients_connected: self.lines.len() as u64, counters: self.server.counters() }
    }

    fn arrive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Opened { client, challenge, line } => {
                self.lines.insert(client, line);
                self.handle(ServeInput::Opened { client, challenge });
            }
            Arrival::Frames { client, frames } => {
                let now = self.clock.now();
                for frame in frames {
                    self.server.handle(ServeInput::Frame { client, frame }, now);
                }
            }
            Arrival::Closed { client } => {
                self.lines.remove(&client);
                self.handle(ServeInput::Closed { client });
            }
        }
    }

    /// Carries out all effects; what goes to one client goes at once.
    fn carry_out(&mut self) {
        let mut frames: BTreeMap<ClientId, Vec<String>> = BTreeMap::new();
        while let Some(effect) = self.server.poll_effect() {
            match self.work.start(effect) {
                Some(ServeEffect::Send { client, frame }) => frames.entry(client).or_default().push(frame),
                Some(ServeEffect::SetReading { client, reading }) => {
                    if let Some(line) = self.lines.get(&client) {
                        line.reading.send_replace(reading);
                    }
                }
                Some(ServeEffect::Close { client, reason }) => {
                    tracing::debug!("client {} is cut: {reason}", client.0);
                    self.pass_on(client, frames.remove(&client).map(Outgoing::Frames));
                    self.pass_on(client, Some(Outgoing::Close(reason)));
                    self.lines.remove(&client);
                }
                _ => {}
            }
        }
        for (client, frames) in frames {
            self.pass_on(client, Some(Outgoing::Frames(frames)));
        }
    }

    fn pass_on(&self, client: ClientId, outgoing: Option<Outgoing>) {
        let (Some(line), Some(outgoing)) = (self.lines.get(&client), outgoing) else { return };
        if line.outgoing.send(outgoing).is_err() {
            // Its task has ended; that it has is on the way to us as `Arrival::Closed`.
            tracing::trace!("client {} is gone", client.0);
        }
    }
}
