//! The native runtime as a whole.

use std::future::Future;

use nostr::event::{EventBuilder, FinalizeUnsignedEvent, Kind, Tag};
use nostr::key::Keys;
use secp256k1::Secp256k1;

use super::clock::NativeClock;
use super::config::{ConfigError, SocketConfig};
use super::control::{Secret, Signer};
use super::websocket::NativeConnector;
use crate::ingest::{Verdict, Verified, verify};
use crate::protocol::{Event, RelayUrl};
use crate::runtime::{Clock, Runtime, SignError};
use crate::store::Store;

/// tokio's tasks and blocking pool, the machine's clocks, sockets, and a store. Needs a tokio runtime around it.
pub struct NativeRuntime<S> {
    clock: NativeClock,
    connector: NativeConnector,
    store: S,
    signer: Signer,
}

impl<S: Store> NativeRuntime<S> {
    /// A runtime over `store`; `keys` answer authentication requests (NIP-42).
    ///
    /// # Errors
    /// The configured certificates cannot be read.
    pub fn new(store: S, sockets: SocketConfig, keys: Option<Keys>) -> Result<Self, ConfigError> {
        Self::with_signer(store, sockets, Signer::new(keys.map(Secret::from)))
    }

    /// The same, where `signer` answers, whoever that is at the moment.
    ///
    /// # Errors
    /// The configured certificates cannot be read.
    pub fn with_signer(store: S, sockets: SocketConfig, signer: Signer) -> Result<Self, ConfigError> {
        Ok(Self { clock: NativeClock::new(), connector: NativeConnector::new(sockets)?, store, signer })
    }
}

impl<S: Store> Runtime for NativeRuntime<S> {
    type Clock = NativeClock;
    type Connector = NativeConnector;
    type Store = S;

    fn clock(&self) -> &NativeClock {
        &self.clock
    }

    fn connector(&self) -> &NativeConnector {
        &self.connector
    }

    fn store(&self) -> &S {
        &self.store
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }

    async fn verify(&self, events: Vec<Event>) -> Vec<Verdict> {
        verify_blocking(events).await
    }

    async fn sign_auth(&self, relay: &RelayUrl, challenge: &str) -> Result<Verified<Event>, SignError> {
        let secret = self.signer.secret().ok_or(SignError::NoKey)?;
        sign_auth(secret.keys(), relay, challenge, self.clock.now().unix_secs)
    }
}

/// Checks `events` on a thread of the blocking pool. Several calls at a time use several cores.
pub(super) async fn verify_blocking(events: Vec<Event>) -> Vec<Verdict> {
    let check = || {
        let verdicts = events.into_iter().map(|event| verify(event).map_or_else(Verdict::Invalid, Verdict::Valid));
        verdicts.collect()
    };
    match tokio::task::spawn_blocking(check).await {
        Ok(verdicts) => verdicts,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

fn sign_auth(keys: &Keys, relay: &RelayUrl, challenge: &str, unix_secs: u64) -> Result<Verified<Event>, SignError> {
    let declined = |reason: &dyn std::fmt::Display| SignError::Declined(reason.to_string());
    let tag = |name: &str, value: &str| Tag::parse([name, value]).map_err(|error| declined(&error));
    let unsigned = EventBuilder::new(Kind::Authentication, "")
        .tags([tag("relay", relay.as_str())?, tag("challenge", challenge)?])
        .custom_created_at(unix_secs.into())
        .finalize_unsigned(keys.public_key());
    // BIP-340 signs safely without randomness: the nonce comes from key and message.
    let id = unsigned.compute_id();
    let signature = keys.sign_schnorr_with_aux_rand(&Secp256k1::signing_only(), id.as_bytes(), &[0; 32]);
    let event = unsigned.add_signature(signature).map_err(|error| declined(&error))?;
    verify(event.into()).map_err(|_| declined(&"the signature does not verify"))
}

#[cfg(test)]
mod tests {
    use nostr::key::Keys;

    use super::{sign_auth, verify_blocking};
    use crate::ingest::{Invalid, Verdict};
    use crate::protocol::{Event, RelayUrl};

    const SECRET: &str = "6b911fd37cdf5c81d4c0adb1ab7fa822ed253ab0ad9aa18d77257c88b29b718e";

    #[test]
    fn the_answer_to_a_challenge_names_relay_and_challenge() {
        let keys = Keys::parse(SECRET).unwrap();
        let relay = RelayUrl::parse("wss://relay.example").unwrap();
        let event = sign_auth(&keys, &relay, "a \"challenge\"", 1_700_000_000).unwrap();
        assert_eq!(event.kind_number(), 22242);
        assert_eq!(event.created_at_secs(), 1_700_000_000);
        assert_eq!(event.pubkey, keys.public_key());
        let tags: Vec<&[String]> = event.tags.iter().map(|tag| tag.as_slice()).collect();
        assert_eq!(tags, [["relay", "wss://relay.example"], ["challenge", "a \"challenge\""]]);
    }

    #[tokio::test]
    async fn one_verdict_an_event_in_order() {
        let keys = Keys::parse(SECRET).unwrap();
        let relay = RelayUrl::parse("wss://relay.example").unwrap();
        let good = sign_auth(&keys, &relay, "x", 1).unwrap().into_inner();
        let forged = good.json_str().replace("\"created_at\":1", "\"created_at\":2");
        let forged = Event::parse(forged.into()).unwrap();
        let verdicts = verify_blocking(vec![forged, good]).await;
        assert!(matches!(verdicts[..], [Verdict::Invalid(Invalid::Id), Verdict::Valid(_)]));
    }
}
