//! A control plane, the servers that take calls to it, and those who call.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bitcoin_hashes::sha256;
use nostr::event::{EventBuilder, FinalizeUnsignedEvent, Kind, Tag};
use nostr::key::{Keys, PublicKey};
use relaysync::native::NativeClock;
use relaysync::native::admin::{AdminConfig, AdminServer, DaemonReport};
use relaysync::native::control::{Control, ControlConfig};
use relaysync::native::rpc::{Rpc, RpcConfig};
use relaysync::native::serve::{RelayService, Ties};
use relaysync::protocol::{Event, hex};
use relaysync::runtime::Clock;
use relaysync::serve::ServeConfig;
use relaysync::store::MemoryStore;
use secp256k1::Secp256k1;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const ADMIN: &str = "6b911fd37cdf5c81d4c0adb1ab7fa822ed253ab0ad9aa18d77257c88b29b718e";
pub(crate) const STRANGER: &str = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa";
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(crate) struct World {
    pub(crate) control: Control,
    pub(crate) rpc: Rpc,
    pub(crate) admin: AdminServer,
    pub(crate) relay: RelayService,
    /// The store's file would be here.
    pub(crate) directory: tempfile::TempDir,
    calls: AtomicU64,
    _reports: watch::Sender<Arc<DaemonReport>>,
}

impl World {
    /// One that the key of [`ADMIN`] may govern.
    pub(crate) async fn new(config: RpcConfig) -> Self {
        Self::governed_by([public_key(ADMIN)], config).await
    }

    pub(crate) async fn governed_by(admins: impl IntoIterator<Item = PublicKey>, config: RpcConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let beside = ControlConfig::beside(directory.path().join("events.db"));
        let control = Control::open(ControlConfig { admins: admins.into_iter().collect(), ..beside }).await.unwrap();
        let rpc = Rpc::new(control.clone(), config);
        let clock = NativeClock::new();
        let report = DaemonReport::starting(1_700_000_000, clock.now().instant);
        let (reports, published) = watch::channel(Arc::new(report));
        let admin = AdminServer::bind_with(ANY_PORT, AdminConfig::default(), clock, published, Some(rpc.clone()));
        let ties = Ties { rpc: Some(rpc.clone()), ..Ties::default() };
        let store = Arc::new(MemoryStore::default());
        let relay = RelayService::bind_with(ANY_PORT, ServeConfig::default(), store, ties).await.unwrap();
        Self {
            admin: admin.await.unwrap(),
            control,
            rpc,
            relay,
            directory,
            calls: AtomicU64::new(0),
            _reports: reports,
        }
    }

    /// Has a call by [`ADMIN`] answered by the admin server.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Answer {
        let body = body(method, params);
        let url = self.url();
        // Two calls of one second would be the same event.
        let number = self.calls.fetch_add(1, Ordering::Relaxed).to_string();
        let signature = Signature::of(&url, &body).with("nonce", &number);
        Call::new(&body).signed(&signature).send(self.admin.local_addr()).await
    }

    /// The admin server's URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.admin.local_addr())
    }
}

pub(crate) fn body(method: &str, params: Value) -> String {
    serde_json::json!({ "method": method, "params": params }).to_string()
}

pub(crate) fn public_key(secret: &str) -> PublicKey {
    Keys::parse(secret).unwrap().public_key()
}

pub(crate) fn now_secs() -> u64 {
    NativeClock::new().now().unix_secs
}

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("within the bound")
}

/// What a call is signed for.
#[derive(Debug, Clone)]
pub(crate) struct Signature {
    pub(crate) secret: &'static str,
    pub(crate) kind: u16,
    pub(crate) created_at: u64,
    pub(crate) tags: Vec<(&'static str, String)>,
}

impl Signature {
    /// The right one, by [`ADMIN`].
    pub(crate) fn of(url: &str, body: &str) -> Self {
        let payload = hex::encode(sha256::Hash::hash(body.as_bytes()).as_ref());
        let tags = vec![("u", url.to_owned()), ("method", "POST".to_owned()), ("payload", payload)];
        Self { secret: ADMIN, kind: 27235, created_at: now_secs(), tags }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.tags.retain(|(tag, _)| *tag != name);
        self.tags.push((name, value.to_owned()));
        self
    }

    pub(crate) fn event(&self) -> Event {
        let keys = Keys::parse(self.secret).unwrap();
        let tags = self.tags.iter().map(|(name, value)| Tag::parse([*name, value]).unwrap());
        let unsigned = EventBuilder::new(Kind::from(self.kind), "")
            .tags(tags)
            .custom_created_at(self.created_at.into())
            .finalize_unsigned(keys.public_key());
        let id = unsigned.compute_id();
        let signature = keys.sign_schnorr_with_aux_rand(&Secp256k1::signing_only(), id.as_bytes(), &[0; 32]);
        unsigned.add_signature(signature).unwrap().into()
    }
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) json: Value,
}

impl Answer {
    /// The result, of a call that was carried out.
    #[track_caller]
    pub(crate) fn result(self) -> Value {
        assert_eq!((self.status, &self.json["error"]), (200, &Value::Null), "{self:?}");
        self.json["result"].clone()
    }

    /// Was not carried out, with this status and these words.
    #[track_caller]
    pub(crate) fn is_refused(&self, status: u16, words: &str) {
        let error = self.json["error"].as_str().unwrap_or_default();
        assert!(self.status == status && error.contains(words), "{status} {words}: {self:?}");
        assert_eq!(self.json["result"], Value::Null);
    }
}

impl Call {
    pub(crate) fn new(body: &str) -> Self {
        Self::typed("application/nostr+json+rpc", body)
    }

    pub(crate) fn typed(content_type: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!(
            "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n"
        );
        Self { head, body: body.to_owned() }
    }

    pub(crate) fn signed(self, signature: &Signature) -> Self {
        self.authorized(&format!("Nostr {}", STANDARD.encode(signature.event().json_str())))
    }

    pub(crate) fn authorized(mut self, header: &str) -> Self {
        self.head.push_str(&format!("authorization: {header}\r\n"));
        self
    }

    pub(crate) async fn send(&self, to: SocketAddr) -> Answer {
        self.over(TcpStream::connect(to).await.unwrap()).await
    }

    pub(crate) async fn over(&self, mut socket: impl AsyncRead + AsyncWrite + Unpin) -> Answer {
        let request = format!("{}\r\n{}", self.head, self.body);
        patiently(async {
            // Who is refused by the head alone may not be read any further.
            let _ = socket.write_all(request.as_bytes()).await;
            let mut answer = Vec::new();
            let ended = socket.read_to_end(&mut answer).await;
            let answer = String::from_utf8(answer).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{ended:?} {answer:?}"));
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
            Answer { status, head: head.to_lowercase(), json: serde_json::from_str(body).unwrap_or(Value::Null) }
        })
        .await
    }
}
