//! A client of a daemon's relay: an application that writes and reads there, or a stranger.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use relaysync::native::{NativeClock, NativeConnector, NativeReceiver, NativeSender, SocketConfig};
use relaysync::peer::{Pin, TlsTerms, Verify};
use relaysync::protocol::{Event, RelayUrl};
use relaysync::runtime::{Clock, CloseReason, ConnectError, Connector, Dial, FrameReceiver, FrameSender};
use serde_json::Value;

use crate::events::note;

/// Nothing here takes longer, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("within the bound")
}

/// Waits until `is_so`.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("not within the bound: {what}"));
}

pub(crate) struct Client {
    sender: NativeSender,
    receiver: NativeReceiver,
    heard: VecDeque<Value>,
    /// What the relay gives to be signed, once it has.
    challenge: Option<String>,
}

impl Client {
    pub(crate) async fn connect(url: &RelayUrl, pin: Pin) -> Self {
        Self::try_connect(url, pin).await.unwrap()
    }

    pub(crate) async fn try_connect(url: &RelayUrl, pin: Pin) -> Result<Self, ConnectError> {
        let terms = TlsTerms { pins: [pin].into(), verify: Verify::Pin, ..TlsTerms::default() };
        let dial = Dial { url: url.clone(), frame_bytes_max: 1 << 20, public_only: false, tls: Some(Arc::new(terms)) };
        let connector = NativeConnector::new(SocketConfig::default()).unwrap();
        let (sender, receiver) = patiently(connector.connect(&dial)).await?;
        Ok(Self { sender, receiver, heard: VecDeque::new(), challenge: None })
    }

    pub(crate) fn say(&mut self, frame: impl Into<String>) {
        // Who has gone hears nothing, and says so when listened to.
        let _ = self.sender.try_send(frame.into());
    }

    pub(crate) async fn hear(&mut self) -> Value {
        self.try_hear().await.unwrap()
    }

    async fn try_hear(&mut self) -> Result<Value, CloseReason> {
        while self.heard.is_empty() {
            let mut frames = Vec::new();
            let received = patiently(self.receiver.receive(&mut frames)).await;
            if frames.is_empty() {
                received?;
            }
            self.heard.extend(frames.iter().map(|frame| serde_json::from_str(frame.as_str()).unwrap()));
        }
        let heard = self.heard.pop_front().expect("it is not empty");
        if heard[0] == "AUTH" {
            self.challenge = heard[1].as_str().map(str::to_owned);
        }
        Ok(heard)
    }

    /// Publishes an event to a relay that may die meanwhile: has it taken it?
    pub(crate) async fn try_publish(&mut self, event: &Event) -> bool {
        if self.sender.try_send(format!("[\"EVENT\",{}]", event.json_str())).is_err() {
            return false;
        }
        while let Ok(answer) = self.try_hear().await {
            if answer[0] == "OK" && answer[1] == event.id.to_hex() {
                assert_eq!(answer[2], true, "{answer}");
                return true;
            }
        }
        false
    }

    /// Hears on until it is told something of this kind.
    async fn hear_of(&mut self, kind: &str) -> Value {
        loop {
            let answer = self.hear().await;
            if answer[0] == kind {
                return answer;
            }
        }
    }

    /// Authenticates as `author` of the tests' events, once it is asked to, for which it asks for what is protected.
    pub(crate) async fn authenticate(&mut self, author: u8) {
        self.try_authenticate(author).await.unwrap();
    }

    pub(crate) async fn try_authenticate(&mut self, author: u8) -> Result<(), CloseReason> {
        self.say(r#"["REQ","auth",{"kinds":[5000],"limit":0}]"#);
        while self.challenge.is_none() {
            self.try_hear().await?;
        }
        let challenge = self.challenge.clone().unwrap_or_default();
        let draft = note(unix_secs()).by(author).kind(22_242).content("").tag("relay", "wss://localhost");
        let event = draft.tag("challenge", &challenge).sign();
        self.say(format!("[\"AUTH\",{}]", event.json_str()));
        loop {
            let answer = self.try_hear().await?;
            if answer[0] == "OK" {
                assert_eq!(answer[2], true, "{answer}");
                return Ok(());
            }
        }
    }

    /// Publishes an event; gives what the relay says against it, empty if it took it.
    pub(crate) async fn publish(&mut self, event: &Event) -> String {
        self.say(format!("[\"EVENT\",{}]", event.json_str()));
        loop {
            let answer = self.hear_of("OK").await;
            if answer[1] == event.id.to_hex() {
                return if answer[2] == true { String::new() } else { answer[3].as_str().unwrap().to_owned() };
            }
        }
    }

    /// The ids of what the relay gives for `filter`; `Err` with its words if it refuses.
    pub(crate) async fn fetch(&mut self, filter: &str) -> Result<BTreeSet<String>, String> {
        self.say(format!("[\"REQ\",\"fetch\",{filter}]"));
        let mut ids = BTreeSet::new();
        loop {
            let answer = self.hear().await;
            match answer[0].as_str() {
                Some("EVENT") if answer[1] == "fetch" => {
                    ids.insert(answer[2]["id"].as_str().unwrap().to_owned());
                }
                Some("EOSE") if answer[1] == "fetch" => {
                    self.say("[\"CLOSE\",\"fetch\"]");
                    return Ok(ids);
                }
                Some("CLOSED") if answer[1] == "fetch" => return Err(answer[2].as_str().unwrap().to_owned()),
                _ => {}
            }
        }
    }
}

pub(crate) fn unix_secs() -> u64 {
    NativeClock::new().now().unix_secs
}

/// The ids of `events`.
pub(crate) fn ids<'e>(events: impl IntoIterator<Item = &'e Event>) -> BTreeSet<String> {
    events.into_iter().map(|event| event.id.to_hex()).collect()
}
