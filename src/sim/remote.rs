//! A relay as an engine meets it: an honest one, behind whatever tampers with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::honest::{Honest, Said, plain_relay};
use super::tamper::{Info, Tamper, Turn};
use super::wire::NetFaults;
use crate::peer::AccessRules;
use crate::protocol::{Event, ItemSet, RelayUrl, Window};
use crate::runtime::{ConnectError, Instant, Now};
use crate::serve::{ClientId, ServeConfig};

/// What becomes of connection attempts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Connects {
    /// They succeed.
    #[default]
    Always,
    /// They fail.
    Refused(ConnectError),
    /// Nothing comes of them, not even a failure.
    Hangs,
}

/// A relay and its faults.
#[derive(Debug)]
pub struct Remote {
    honest: Honest,
    tampers: Vec<Box<dyn Tamper>>,
    /// No tamper ever stood before it.
    pub(super) is_untampered: bool,
    clients: BTreeSet<ClientId>,
    /// What becomes of connection attempts.
    pub connects: Connects,
    /// What becomes of requests for its relay information document.
    pub info: Info,
    /// What coverage marks say of it is checked against what it holds. Off for relays that do not deliver what they
    /// hold, and do not even show it.
    pub is_checked: bool,
    /// What the network between it and the engines does.
    pub network: NetFaults,
    /// Every connection attempt.
    pub attempts: Vec<Instant>,
    /// Is a record kept of what clients send?
    pub is_recorded: bool,
    /// Every frame that clients sent, as they sent it.
    pub heard: Vec<(Instant, String)>,
    /// When its access rules changed last, in seconds since 1970.
    pub(super) access_changed_secs: u64,
    /// Faults that took effect, by kind.
    pub injected: BTreeMap<&'static str, u64>,
}

/// A frame, or the end, on its way to a client, after a delay.
pub(super) type Delivery = (ClientId, Said, Duration);

impl Remote {
    /// An honest, empty relay.
    pub fn new(config: ServeConfig) -> Self {
        Self {
            honest: Honest::new(config),
            tampers: Vec::new(),
            is_untampered: true,
            clients: BTreeSet::new(),
            connects: Connects::Always,
            info: Info::Missing,
            is_checked: true,
            network: NetFaults::default(),
            attempts: Vec::new(),
            is_recorded: true,
            heard: Vec::new(),
            access_changed_secs: 0,
            injected: BTreeMap::new(),
        }
    }

    /// A relay that holds these events, and has held them for long.
    pub fn with(events: &[Event]) -> Self {
        Self::configured(plain_relay(), events)
    }

    /// The same, with a configuration of its own.
    pub fn configured(config: ServeConfig, events: &[Event]) -> Self {
        let mut remote = Self::new(config);
        remote.honest.publish(events, Now::default());
        remote
    }

    /// Behind one more fault. The one added last stands nearest to the clients.
    #[must_use]
    pub fn tamper(self, tamper: impl Tamper + 'static) -> Self {
        self.tamper_boxed(Box::new(tamper))
    }

    /// The same, for one that is drawn.
    #[must_use]
    pub fn tamper_boxed(mut self, tamper: Box<dyn Tamper>) -> Self {
        self.tampers.push(tamper);
        self.is_untampered = false;
        self
    }

    /// See [`Remote::connects`].
    #[must_use]
    pub fn connecting(self, connects: Connects) -> Self {
        Self { connects, ..self }
    }

    /// See [`Remote::is_checked`].
    #[must_use]
    pub fn unchecked(self) -> Self {
        Self { is_checked: false, ..self }
    }

    /// Gives out its relay information document.
    #[must_use]
    pub fn with_info(self) -> Self {
        Self { info: Info::True, ..self }
    }

    /// All faults are mended from now on.
    pub fn mend(&mut self) {
        self.tampers.clear();
        self.connects = Connects::Always;
        self.network = NetFaults::default();
        self.info = Info::True;
    }

    /// Does it behave now, whatever it did before?
    pub(super) fn is_honest_now(&self) -> bool {
        self.tampers.is_empty()
    }

    /// What it answers to a request for its relay information document: `None` for nothing at all.
    pub(super) fn relay_info(&self) -> Option<Result<String, ConnectError>> {
        match &self.info {
            Info::Missing => Some(Err(ConnectError::Handshake("404".into()))),
            Info::True => Some(Ok(self.honest.info())),
            Info::Text(text) => Some(Ok(text.clone())),
            Info::Silent => None,
        }
    }

    /// The relay behind the faults.
    pub fn honest(&self) -> &Honest {
        &self.honest
    }

    /// Everything that it holds.
    pub fn held(&self, now_secs: u64) -> Arc<ItemSet> {
        self.honest.items(&crate::protocol::Filter::new(), Window::ALL, now_secs)
    }

    /// Frames heard that begin with `["KIND"`.
    pub fn heard_of(&self, kind: &str) -> Vec<&str> {
        let start = format!("[\"{kind}\"");
        self.heard.iter().map(|(_, frame)| frame.as_str()).filter(|frame| frame.starts_with(&start)).collect()
    }

    pub(super) fn publish(&mut self, events: &[Event], now: Now) -> Vec<Delivery> {
        let said = self.honest.publish(events, now);
        self.send(said, now)
    }

    pub(super) fn open(&mut self, client: ClientId, now: Now) -> Vec<Delivery> {
        self.clients.insert(client);
        for tamper in &mut self.tampers {
            tamper.handle_open(client);
        }
        let said = self.honest.open(client, now);
        self.send(said, now)
    }

    pub(super) fn close(&mut self, client: ClientId, now: Now) {
        if self.clients.remove(&client) {
            self.honest.close(client, now);
        }
    }

    pub(super) fn close_all(&mut self, now: Now) -> Vec<ClientId> {
        let clients = std::mem::take(&mut self.clients);
        clients.iter().for_each(|client| self.honest.close(*client, now));
        clients.into_iter().collect()
    }

    pub(super) fn say_to_all(&self, frame: &str) -> Vec<Delivery> {
        self.clients.iter().map(|client| (*client, Said::Frame(frame.to_owned()), Duration::ZERO)).collect()
    }

    /// A frame of a client passes the tampers from the outside in.
    pub(super) fn receive(&mut self, client: ClientId, frame: String, now: Now) -> Vec<Delivery> {
        if !self.clients.contains(&client) {
            return Vec::new();
        }
        if self.is_recorded {
            self.heard.push((now.instant, frame.clone()));
        }
        let mut out = Vec::new();
        let mut passed = Some(frame);
        for index in (0..self.tampers.len()).rev() {
            let Some(frame) = passed.take() else { break };
            let mut turn = Turn::new(client, now);
            passed = self.tampers[index].handle_client(frame, &mut turn);
            let (said, injected) = turn.into_parts();
            count(&mut self.injected, injected);
            // An answer of its own is, to the tampers further out, a frame of the relay.
            out.extend(self.outward(index + 1, said, now));
        }
        if let Some(frame) = passed {
            let said = self.honest.receive(client, frame, now);
            out.extend(self.send(said, now));
        }
        out
    }

    pub(super) fn set_access(&mut self, rules: Arc<AccessRules>, now: Now) -> Vec<Delivery> {
        self.access_changed_secs = now.unix_secs;
        let said = self.honest.set_access(rules, now);
        self.send(said, now)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.honest.deadline()
    }

    pub(super) fn tick(&mut self, now: Now) -> Vec<Delivery> {
        let said = self.honest.tick(now);
        self.send(said, now)
    }

    fn send(&mut self, said: Vec<(ClientId, Said)>, now: Now) -> Vec<Delivery> {
        self.outward(0, said.into_iter().map(|(client, said)| (client, said, Duration::ZERO)).collect(), now)
    }

    /// Frames of the relay pass the tampers from the inside out, from `first` on.
    fn outward(&mut self, first: usize, mut said: Vec<Delivery>, now: Now) -> Vec<Delivery> {
        for tamper in self.tampers.iter_mut().skip(first) {
            let mut next = Vec::with_capacity(said.len());
            for (client, said, delay) in said {
                match said {
                    Said::Frame(frame) => {
                        let mut turn = Turn::new(client, now);
                        tamper.handle_relay(frame, &mut turn);
                        let (said, injected) = turn.into_parts();
                        count(&mut self.injected, injected);
                        next.extend(said.into_iter().map(|(client, said, more)| (client, said, delay + more)));
                    }
                    close => next.push((client, close, delay)),
                }
            }
            said = next;
        }
        for (client, ..) in said.iter().filter(|(_, said, _)| matches!(said, Said::Close(_))) {
            if self.clients.remove(client) {
                self.honest.close(*client, now);
            }
        }
        said
    }
}

fn count(injected: &mut BTreeMap<&'static str, u64>, kinds: Vec<&'static str>) {
    for kind in kinds {
        *injected.entry(kind).or_default() += 1;
    }
}

/// A relay's address, for tests.
pub(super) fn relay_url(text: &str) -> RelayUrl {
    RelayUrl::parse(text).expect("the test gives a relay URL")
}
