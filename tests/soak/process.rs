//! The daemon as a process, and what it says of itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use relaysync::protocol::RelayUrl;
use relaysync::sample::world::World;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::logs::{Kind, Logs};
use crate::{Fault, Limit};

/// How long the daemon may take to start.
const START_MAX: Duration = Duration::from_secs(30);
/// How long an answer of its HTTP server may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long it may take to end.
const END_MAX: Duration = Duration::from_secs(10);
/// A key to tell relays who we are; no secret.
const KEY: &str = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa";

pub(crate) struct Daemon {
    child: Ending,
    logs: Logs,
    relay_url: RelayUrl,
    admin: SocketAddr,
}

/// A process that is killed when this is dropped, as when the soak fails.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // Both succeed for a child that has ended already.
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("the daemon could not be ended: {error}");
        }
    }
}

/// How it ended.
pub(crate) struct End {
    pub(crate) status: Option<ExitStatus>,
    pub(crate) took: Duration,
    pub(crate) logs: std::collections::BTreeMap<Kind, u64>,
}

impl Daemon {
    pub(crate) async fn start(folder: &Path, world: &World, limit: Limit) -> Result<Self, Fault> {
        let config = write_config(folder, world, limit)?;
        let child = Command::new(env!("CARGO_BIN_EXE_relaysync"))
            .arg("run")
            .arg("--config")
            .arg(config)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut child = Ending(child);
        let stderr = child.0.stderr.take().ok_or("it is piped")?;
        let mut logs = Logs::read(stderr, &folder.join("daemon.log"))?;
        let addresses = async {
            let relay_url = RelayUrl::parse(&logs.wait_for("the relay listens at ").await?)?;
            let admin = logs.wait_for("metrics and status are at http://").await?.parse()?;
            Ok::<_, Fault>((relay_url, admin))
        };
        let found = tokio::time::timeout(START_MAX, addresses).await.map_err(Fault::from).and_then(|found| found);
        let (relay_url, admin) =
            found.map_err(|fault| format!("the daemon does not start: {fault}; see daemon.log"))?;
        Ok(Self { child, logs, relay_url, admin })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub(crate) fn relay_url(&self) -> &RelayUrl {
        &self.relay_url
    }

    /// A page of its HTTP server: the text of the answer.
    pub(crate) async fn page(&self, path: &str) -> Result<String, Fault> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.admin);
        let answer = async {
            let mut stream = TcpStream::connect(self.admin).await?;
            stream.write_all(request.as_bytes()).await?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await?;
            Ok::<_, Fault>(text)
        };
        let text = tokio::time::timeout(ANSWER_MAX, answer).await??;
        match text.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 200") => Ok(body.to_owned()),
            _ => Err(format!("{path}: {}", text.lines().next().unwrap_or_default()).into()),
        }
    }

    /// What `relaysync status` says, and its exit status.
    pub(crate) fn status(&self) -> Result<(String, Option<i32>), Fault> {
        let url = format!("http://{}", self.admin);
        let output = Command::new(env!("CARGO_BIN_EXE_relaysync")).args(["status", "--url", &url]).output()?;
        let text = [output.stdout, output.stderr].concat();
        Ok((String::from_utf8_lossy(&text).into_owned(), output.status.code()))
    }

    /// Asks it to end, and waits.
    pub(crate) fn end(mut self) -> Result<End, Fault> {
        let begun = Instant::now();
        Command::new("kill").args(["-TERM", &self.pid().to_string()]).status()?;
        let status = loop {
            match self.child.0.try_wait()? {
                Some(status) => break Some(status),
                None if begun.elapsed() > END_MAX => break None,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        let took = begun.elapsed();
        drop(self.child);
        Ok(End { status, took, logs: self.logs.end()? })
    }
}

/// A configuration as an operator would write it, but for shorter waits: passes that come daily are to come often.
fn write_config(folder: &Path, world: &World, limit: Limit) -> Result<PathBuf, Fault> {
    let (config, key, store) = (folder.join("relaysync.toml"), folder.join("key"), folder.join("store"));
    std::fs::write(&key, KEY)?;
    #[cfg(unix)]
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    // What an earlier soak left would be there already.
    std::fs::create_dir(&store).map_err(|error| format!("{}: {error}", store.display()))?;
    let (bootstrap, service, any) =
        (&world.relays()[0], &world.config().service_url, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let text = format!(
        r#"[store]
path = "{store}"

[identity]
key_file = "{key}"

[relay]
urls = ["{service}"]
listen = "{any}"

[discovery]
bootstrap = ["{bootstrap}"]
private_relays = true

[http]
listen = "{any}"

[log]
format = "json"

[sync]
backoff_base = "1s"
backoff_max = "15s"
rate_limit_cooldown = "{cooldown_secs}s"
gap_retry_base = "10s"
live_retry = "10s"
full_pass_min = "10m"
full_pass_max = "15m"
"#,
        store = store.display(),
        key = key.display(),
        cooldown_secs = limit.cooldown_secs,
    );
    std::fs::write(&config, text)?;
    Ok(config)
}
