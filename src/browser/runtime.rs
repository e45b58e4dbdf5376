//! The browser runtime as a whole.

use std::sync::Arc;

use wasm_bindgen_futures::spawn_local;

use super::{BrowserClock, BrowserConfig, BrowserConnector, Host, verify};
use crate::ingest::{self, Verdict, Verified};
use crate::protocol::{Event, RelayUrl};
use crate::runtime::{Clock, Runtime, SignError};
use crate::store::Store;

/// The kind of the answer to a challenge (NIP-42).
const AUTHENTICATION: u16 = 22242;

/// The tasks, timers and sockets of the thread that it is on, its host, and a store.
pub struct BrowserRuntime<S> {
    clock: BrowserClock,
    connector: BrowserConnector,
    store: S,
    host: Host,
    config: Arc<BrowserConfig>,
}

impl<S: Store> BrowserRuntime<S> {
    /// A runtime over `store`; `host` provides what the browser does not.
    pub fn new(store: S, host: Host, config: BrowserConfig) -> Self {
        let config = Arc::new(config);
        let connector = BrowserConnector::new(host.clone(), config.clone());
        Self { clock: BrowserClock::new(), connector, store, host, config }
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }
}

impl<S: Store> Runtime for BrowserRuntime<S> {
    type Clock = BrowserClock;
    type Connector = BrowserConnector;
    type Store = S;

    fn clock(&self) -> &BrowserClock {
        &self.clock
    }

    fn connector(&self) -> &BrowserConnector {
        &self.connector
    }

    fn store(&self) -> &S {
        &self.store
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        spawn_local(task);
    }

    async fn verify(&self, events: Vec<Event>) -> Vec<Verdict> {
        verify::check(&self.host, &self.clock, &self.config, events).await
    }

    async fn sign_auth(&self, relay: &RelayUrl, challenge: &str) -> Result<Verified<Event>, SignError> {
        let tags = [["relay", relay.as_str()], ["challenge", challenge]];
        let mut unsigned = serde_json::json!({
            "kind": AUTHENTICATION, "created_at": self.clock.now().unix_secs, "tags": tags, "content": "",
        });
        if let Some(key) = self.host.key().await.map_err(SignError::Declined)? {
            unsigned["pubkey"] = key.into();
        }
        let signed = self.host.signature(&unsigned.to_string(), relay.as_str()).await;
        let signed = signed.ok_or(SignError::NoKey)?.map_err(SignError::Declined)?;
        answer(signed, &tags).map_err(|reason| SignError::Declined(format!("the signer has answered with {reason}")))
    }
}

/// What a signer has made of what it was asked for. It may be somebody else's program.
fn answer(signed: String, tags: &[[&str; 2]]) -> Result<Verified<Event>, String> {
    let event = Event::parse(signed.into()).map_err(|error| error.to_string())?;
    let has = |tag: &[&str; 2]| event.tags.iter().any(|held| held.as_slice() == tag);
    if event.kind_number() != AUTHENTICATION || !tags.iter().all(has) {
        return Err("another event than it was asked for".into());
    }
    ingest::verify(event).map_err(|fault| match fault {
        ingest::Invalid::Id => "an id that is not the event's".into(),
        ingest::Invalid::Signature => "a signature that does not verify".into(),
    })
}
