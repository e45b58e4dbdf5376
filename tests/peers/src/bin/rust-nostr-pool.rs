//! rust-nostr's client: reconciles a database with a relay, once, and prints what came of it as one JSON object.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nostr::{Filter, RelayUrl};
use nostr_database::NostrDatabase;
use nostr_lmdb::NostrLMDB;
use nostr_relay_pool::prelude::*;
use relaysync_test_peers::{Fault, dump, load, memory_database};

const USAGE: &str = "rust-nostr-pool down|up|both RELAY [--in FILE] [--out FILE] [--lmdb FOLDER]";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Its reconciliation ends early, and reports no fault, when it falls behind by more messages than this.
const NOTIFICATIONS_MAX: usize = 65_536;

struct Options {
    direction: SyncDirection,
    relay: RelayUrl,
    load: Option<PathBuf>,
    dump: Option<PathBuf>,
    lmdb: Option<PathBuf>,
}

impl Options {
    fn parse() -> Result<Self, Fault> {
        use lexopt::prelude::*;

        let (mut direction, mut relay, mut load, mut dump, mut lmdb) = (None, None, None, None, None);
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Value(word) if direction.is_none() => direction = Some(parse_direction(&word.string()?)?),
                Value(url) if relay.is_none() => relay = Some(RelayUrl::parse(&url.string()?)?),
                Long("in") => load = Some(parser.value()?.into()),
                Long("out") => dump = Some(parser.value()?.into()),
                Long("lmdb") => lmdb = Some(parser.value()?.into()),
                _ => return Err(format!("{}\nusage: {USAGE}", argument.unexpected()).into()),
            }
        }
        let (Some(direction), Some(relay)) = (direction, relay) else {
            return Err(format!("usage: {USAGE}").into());
        };
        Ok(Self { direction, relay, load, dump, lmdb })
    }
}

fn parse_direction(word: &str) -> Result<SyncDirection, Fault> {
    match word {
        "down" => Ok(SyncDirection::Down),
        "up" => Ok(SyncDirection::Up),
        "both" => Ok(SyncDirection::Both),
        _ => Err(format!("unknown direction {word:?}\nusage: {USAGE}").into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let options = Options::parse()?;
    let database: Arc<dyn NostrDatabase> = match &options.lmdb {
        Some(folder) => Arc::new(NostrLMDB::open(folder)?),
        None => memory_database(),
    };
    if let Some(path) = &options.load {
        load(&*database, path).await?;
    }
    let before = Usage::read()?;
    let output = sync(&options, database.clone()).await?;
    let used = Usage::read()?.since(&before);

    let held = database.count(Filter::new()).await?;
    if let Some(path) = &options.dump {
        dump(&*database, path).await?;
    }
    let failures: Vec<String> = output.failed.values().cloned().collect();
    let report = serde_json::json!({
        "received": output.val.received.len(),
        "sent": output.val.sent.len(),
        "send_failures": output.val.send_failures.values().map(|failed| failed.len()).sum::<usize>(),
        "held": held,
        "failures": failures,
        "wall_secs": used.wall.as_secs_f64(),
        "cpu_secs": used.cpu.as_secs_f64(),
        "memory_peak_bytes": used.memory_peak_bytes,
    });
    println!("{report}");
    if failures.is_empty() { Ok(()) } else { Err("the relay was not synced".into()) }
}

async fn sync(options: &Options, database: Arc<dyn NostrDatabase>) -> Result<Output<Reconciliation>, Fault> {
    let mut builder = RelayPool::builder();
    builder.__database = database;
    let pool = builder.build();
    let limits = RelayLimits::disable();
    let relay = RelayOptions::new().limits(limits).reconnect(false).notification_channel_size(NOTIFICATIONS_MAX);
    pool.add_relay(&options.relay, relay).await?;
    pool.try_connect_relay(&options.relay, CONNECT_TIMEOUT).await?;
    let sync = SyncOptions::new().direction(options.direction).initial_timeout(FIRST_ANSWER_TIMEOUT);
    let output = pool.sync(Filter::new(), &sync).await?;
    pool.shutdown().await;
    Ok(output)
}

/// What the process has used, as Linux tells it.
struct Usage {
    at: Instant,
    cpu: Duration,
}

struct Used {
    wall: Duration,
    cpu: Duration,
    memory_peak_bytes: u64,
}

impl Usage {
    /// User and system time are the 14th and 15th field of `/proc/self/stat`, in hundredths of a second; the second
    /// field is the program's name in brackets.
    fn read() -> Result<Self, Fault> {
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        let (_, fields) = stat.rsplit_once(')').ok_or("unknown form of /proc/self/stat")?;
        let ticks: Vec<u64> = fields.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
        Ok(Self { at: Instant::now(), cpu: Duration::from_millis(ticks.iter().sum::<u64>() * 10) })
    }

    fn since(&self, before: &Self) -> Used {
        Used {
            wall: self.at - before.at,
            cpu: self.cpu - before.cpu,
            memory_peak_bytes: memory_peak_bytes().unwrap_or(0),
        }
    }
}

fn memory_peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
