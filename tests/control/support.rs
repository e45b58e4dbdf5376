//! Peers, rules and control planes for tests.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use relaysync::native::control::{Control, ControlConfig, ControlError, FileFault};
use relaysync::peer::{PeerSpec, Rule};
use relaysync::protocol::{Filter, PublicKey};

/// Nothing here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("within the bound")
}

/// Waits for something, as long as is bearable.
pub(crate) async fn until(mut is_so: impl FnMut() -> bool) {
    patiently(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

pub(crate) fn config(folder: &Path) -> ControlConfig {
    ControlConfig::beside(folder.join("events.db"))
}

pub(crate) async fn open(folder: &Path) -> Control {
    Control::open(config(folder)).await.unwrap_or_else(|error| panic!("{error}"))
}

/// A file of the control plane.
pub(crate) fn file(folder: &Path, ending: &str) -> PathBuf {
    folder.join(format!("events.db{ending}"))
}

/// Why a control plane cannot be opened: the file, and what is wrong with it.
pub(crate) async fn fault(config: ControlConfig) -> (PathBuf, FileFault) {
    match Control::open(config).await {
        Err(ControlError::File(error)) => (error.path, error.fault),
        other => panic!("{other:?}"),
    }
}

/// The key number `number`.
pub(crate) fn key(number: u8) -> PublicKey {
    PublicKey::from_byte_array([number; 32])
}

/// A peer by its name, with a key by its number.
pub(crate) fn spec(id: &str, number: u8) -> PeerSpec {
    let json = format!(
        r##"{{"id":"{id}","url":"wss://{id}.example","auth_pubkey":"{}","filters":[{{"kinds":[5000],"#r":["x"]}}],
            "tls":{{"pins":[{{"type":"spki_sha256","value":"sha256/rHH8tQB1jOfXbwXxBPjqW6dmzP5dSxnZ6EWJFQ1kWWA="}}]}},
            "metadata":{{"n": {number}.0}}}}"##,
        key(number).to_hex()
    );
    PeerSpec::parse(&json).unwrap()
}

/// To read events of this kind.
pub(crate) fn rule(number: u8, kind: u16) -> Rule {
    let json =
        format!(r#"{{"principal":"{}","capability":"sync_read","match":{{"kinds":[{kind}]}}}}"#, key(number).to_hex());
    Rule::parse(&json).unwrap()
}

pub(crate) fn kind(kind: u16) -> Filter {
    Rule::parse_match(&format!(r#"{{"kinds":[{kind}]}}"#)).unwrap()
}
