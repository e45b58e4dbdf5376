//! One of two daemons.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use relaysync::native::daemon::Daemon;
use relaysync::native::settings::{Settings, Sources, load};
use relaysync::peer::{Capability, FailingPeer, Health, HealthStatus, PeerSpec, Pin, Rule};
use relaysync::protocol::{Event, PublicKey};

use crate::certificate::{Certificate, Dates};
use crate::client::{Client, PATIENCE, ids, until};
use crate::events::{Draft, note};

/// The namespaces that are synced.
pub(crate) const NAMESPACES: [&str; 2] = ["tribes.accounts.user", "tribes.chat.tribe"];
/// The application that writes to both daemons, by the number of its key.
pub(crate) const WRITER: u8 = 7;

/// A daemon whose relay is at `wss://localhost`.
pub(crate) struct Side {
    pub(crate) daemon: Daemon,
    pub(crate) certificate: Certificate,
    pub(crate) pin: Pin,
    directory: tempfile::TempDir,
}

impl Side {
    pub(crate) async fn start() -> Self {
        Self::start_with(Dates::Now).await
    }

    pub(crate) async fn start_with(dates: Dates) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, pin) = Certificate::new(dates);
        let settings = settings(directory.path(), &certificate);
        let daemon = Daemon::start(settings, None).await.unwrap_or_else(|error| panic!("{error}"));
        let side = Self { daemon, certificate, pin, directory };
        for capability in [Capability::SyncRead, Capability::SyncWrite] {
            side.grant(note(0).by(WRITER).sign().pubkey, capability).await;
        }
        side
    }

    /// Takes the certificate that is in its files now.
    pub(crate) async fn reload(&self) {
        let reloaded = self.daemon.reload(&settings(self.directory.path(), &self.certificate)).await;
        assert_eq!(reloaded.faults, Vec::<String>::new());
    }

    pub(crate) async fn key(&self) -> PublicKey {
        self.daemon.control().identity().ensure().await.unwrap().pubkey
    }

    pub(crate) async fn grant(&self, principal: PublicKey, capability: Capability) {
        self.daemon.control().access().grant(rule(principal, capability)).await.unwrap();
    }

    pub(crate) async fn revoke(&self, principal: PublicKey, capability: Capability) {
        assert!(self.daemon.control().access().revoke(rule(principal, capability)).await.unwrap());
    }

    /// Lets the other one read and write here.
    pub(crate) async fn trust(&self, other: &Self) {
        for capability in [Capability::SyncRead, Capability::SyncWrite] {
            self.grant(other.key().await, capability).await;
        }
    }

    /// The other one as a peer; what is in `changes` is otherwise.
    pub(crate) async fn spec(&self, other: &Self, changes: &str) -> PeerSpec {
        let port = other.daemon.relay_url().unwrap().port();
        let mut spec = serde_json::json!({
            "id": "other",
            "url": format!("wss://localhost:{port}"),
            "auth_pubkey": other.key().await.to_hex(),
            "filters": [{"kinds": [5000], "#r": NAMESPACES}],
            "tls": {"verify": "pin", "pins": [{"type": "spki_sha256", "value": other.pin}]},
        });
        merge(&mut spec, serde_json::from_str(&changes.replace("PORT", &port.to_string())).unwrap());
        PeerSpec::parse(&spec.to_string()).unwrap_or_else(|mistakes| panic!("{mistakes}"))
    }

    pub(crate) async fn put(&self, other: &Self, changes: &str) {
        self.daemon.control().peers().put(self.spec(other, changes).await).await.unwrap();
    }

    /// The application, authenticated.
    pub(crate) async fn writer(&self) -> Client {
        let mut client = self.stranger().await;
        client.authenticate(WRITER).await;
        client
    }

    pub(crate) async fn stranger(&self) -> Client {
        let url = self.daemon.relay_url().unwrap();
        let url = format!("wss://localhost:{}", url.port()).parse().unwrap();
        Client::connect(&url, self.pin).await
    }

    pub(crate) async fn publish(&self, events: &[Event]) {
        let mut writer = self.writer().await;
        for event in events {
            assert_eq!(writer.publish(event).await, "");
        }
    }

    /// What of the protected events it holds.
    pub(crate) async fn held(&self) -> BTreeSet<String> {
        let filter = format!(r##"{{"kinds":[5000],"#r":["{}","{}"],"limit":5000}}"##, NAMESPACES[0], NAMESPACES[1]);
        self.writer().await.fetch(&filter).await.unwrap()
    }

    /// Waits until it holds exactly these of the protected events.
    pub(crate) async fn holds<'e>(&self, events: impl IntoIterator<Item = &'e Event>) {
        let expected = ids(events);
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.held().await != expected {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        });
        if waited.await.is_err() {
            let held = self.held().await;
            panic!("{} of {} held; {:?}", held.len(), expected.len(), self.health());
        }
    }

    pub(crate) fn health(&self) -> Health {
        self.daemon.control().peers().health()
    }

    /// Waits until the peer fails by this reason; gives it.
    pub(crate) async fn fails_by(&self, reason: &str) -> FailingPeer {
        let is_it = |failing: &FailingPeer| serde_json::to_value(failing.reason).unwrap() == reason;
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(failing) = self.health().servers_failing.into_iter().find(is_it) {
                    return failing;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("not {reason}: {:?}", self.health()))
    }

    /// Waits until all is well with the peer.
    pub(crate) async fn is_well(&self) {
        until("all is well", async || self.health().status == HealthStatus::Ok).await;
    }
}

/// What flows between the two: `count` events of the writer, dated one second apart, that begin at `number`.
pub(crate) fn synced(number: u64, count: u64) -> Vec<Event> {
    let draft = |number: u64| protected(number).tag("r", NAMESPACES[(number % 2) as usize]);
    (number..number + count).map(|number| draft(number).sign()).collect()
}

/// A protected event without a namespace.
pub(crate) fn protected(number: u64) -> Draft {
    note(1_700_000_000 + number).by(WRITER).kind(5000).content(format!("event {number}"))
}

fn rule(principal: PublicKey, capability: Capability) -> Rule {
    let events = serde_json::from_value(serde_json::json!({"kinds": [5000], "#r": NAMESPACES})).unwrap();
    Rule { principal, capability, events }
}

/// The configuration of a side.
pub(crate) fn configuration(directory: &Path, certificate: &Certificate, listen: SocketAddr) -> String {
    format!(
        "[store]\npath = '{}'\n[discovery]\nenabled = false\n[access]\nprotected = ['{{\"kinds\":[5000]}}']\n\
         [relay]\nlisten = '{listen}'\nurls = ['wss://localhost']\ntls_cert_file = '{}'\ntls_key_file = '{}'\n\
         [sync]\nprogress_interval = '20ms'\nbackoff_floor = '50ms'\nbackoff_base = '100ms'\nbackoff_max = '500ms'\n",
        directory.join("events.db").display(),
        certificate.cert_file().display(),
        certificate.key_file().display(),
    )
}

fn settings(directory: &Path, certificate: &Certificate) -> Settings {
    let text = configuration(directory, certificate, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let sources = Sources { file: Some(("test.toml".to_owned(), text)), ..Sources::default() };
    load(&sources).unwrap_or_else(|mistakes| panic!("{mistakes}")).settings
}

/// Puts the fields of `changes` over those of `value`, objects inside them, too.
fn merge(value: &mut serde_json::Value, changes: serde_json::Value) {
    match (value, changes) {
        (serde_json::Value::Object(fields), serde_json::Value::Object(changes)) => {
            for (name, change) in changes {
                merge(fields.entry(name).or_insert(serde_json::Value::Null), change);
            }
        }
        (value, change) => *value = change,
    }
}
