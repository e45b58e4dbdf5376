//! The daemon as an operator runs it, for a long time: `relaysync run` as a process, eight relays that come and go, are
//! slow, fall silent and limit how much they are asked, and events posted all the while.
//!
//!     cargo test --release --test soak -- --minutes 60 --folder /var/tmp/soak
//!
//! Every ten seconds memory, file descriptors and all metrics go into `samples.csv`; what the daemon logs goes into
//! `daemon.log`. In the end every wanted event must be held and no other, memory must not have grown by more than what
//! is held, and no error may be logged. Without arguments it does the same for a few seconds.
#![cfg(feature = "native")]
#![expect(clippy::disallowed_methods, reason = "how things go in real time is what is looked at")]

mod chance;
mod gate;
mod host;
mod logs;
mod mirror;
mod process;
mod publisher;
mod samples;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use relaysync::sample::world::{World, WorldConfig, WorldEvent};

use chance::Chance;
use gate::Pace;
use host::Host;
use process::Daemon;
use samples::Samples;

/// What goes wrong ends the soak with these words.
type Fault = Box<dyn std::error::Error + Send + Sync>;

/// How much one of the relays takes, and how long it is left alone after it has refused.
#[derive(Debug, Clone, Copy)]
struct Limit {
    requests_per_minute_max: u64,
    cooldown_secs: u64,
}

/// How long the soak is, and how fast things happen.
struct Plan {
    length: Duration,
    pace: Pace,
    limit: Limit,
    sample_interval: Duration,
    post_interval: Duration,
    found_interval: Duration,
    /// How long the daemon may take to hold everything once all relays are well.
    recovery_max: Duration,
    folder: Option<PathBuf>,
}

impl Plan {
    /// A few seconds of everything.
    fn smoke() -> Self {
        Self {
            length: Duration::from_secs(15),
            pace: Pace { well: [1, 4], ill: [1, 3] },
            limit: Limit { requests_per_minute_max: 240, cooldown_secs: 3 },
            sample_interval: Duration::from_secs(1),
            post_interval: Duration::from_millis(250),
            found_interval: Duration::from_secs(3),
            recovery_max: Duration::from_secs(120),
            folder: None,
        }
    }

    fn of_minutes(minutes: u64) -> Self {
        Self {
            length: Duration::from_secs(60 * minutes),
            pace: Pace { well: [10, 90], ill: [2, 60] },
            limit: Limit { requests_per_minute_max: 60, cooldown_secs: 65 },
            sample_interval: Duration::from_secs(10),
            post_interval: Duration::from_secs(1),
            found_interval: Duration::from_secs(30),
            recovery_max: Duration::from_secs(300),
            folder: None,
        }
    }

    fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, Fault> {
        let (mut plan, mut folder, mut arguments) = (Self::smoke(), None, arguments);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} wants a value"));
            match argument.as_str() {
                "--minutes" => plan = Self::of_minutes(value()?.parse()?),
                "--folder" => folder = Some(value()?.into()),
                _ => return Err(format!("unknown argument {argument}; there are --minutes N and --folder PATH").into()),
            }
        }
        Ok(Self { folder, ..plan })
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Plan::parse(std::env::args().skip(1)) {
        Ok(plan) => soak(plan).await,
        Err(fault) => Err(fault),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("error: {fault}");
            ExitCode::FAILURE
        }
    }
}

async fn soak(plan: Plan) -> Result<bool, Fault> {
    let temporary = tempfile::tempdir()?;
    let folder = plan.folder.clone().unwrap_or_else(|| temporary.path().to_owned());
    std::fs::create_dir_all(&folder)?;
    let mut hosts = Vec::new();
    for number in 0..host::SORTS {
        hosts.push(Host::start(number, plan.pace, plan.limit).await?);
    }
    let config = WorldConfig::small(hosts.iter().map(|host| host.url().clone()).collect());
    let mut world = World::new(WorldConfig { repositories: 100, events: 5_000, ..config });
    for (place, host) in hosts.iter().enumerate() {
        host.put(world.held_by(place).cloned().collect()).await?;
    }
    let daemon = Daemon::start(&folder, &world, plan.limit).await?;
    println!("the daemon has process id {}; see {}", daemon.pid(), folder.display());
    let mut samples = Samples::create(&folder.join("samples.csv"))?;

    hosts.iter().for_each(Host::be_troubled);
    live(&plan, &mut world, &hosts, &daemon, &mut samples).await?;
    hosts.iter().for_each(Host::be_well);
    let verdict = verdict::reach(&plan, &world, daemon, samples).await?;
    println!("{verdict}");
    Ok(verdict.is_good())
}

/// Posts and samples until the time is up.
async fn live(
    plan: &Plan,
    world: &mut World,
    hosts: &[Host],
    daemon: &Daemon,
    samples: &mut Samples,
) -> Result<(), Fault> {
    let (begun, mut chance) = (Instant::now(), Chance::new(7));
    let mut posts = tokio::time::interval(plan.post_interval);
    let mut founds = tokio::time::interval(plan.found_interval);
    let mut looks = tokio::time::interval(plan.sample_interval);
    while begun.elapsed() < plan.length {
        tokio::select! {
            _ = posts.tick() => {
                let relay = chance.below(hosts.len());
                let posted = world.post(relay, 1 + chance.below(8), unix_secs());
                if chance.below(4) == 0 {
                    let refused = publisher::publish(daemon.relay_url(), &posted).await?;
                    deliver(hosts, &refused).await?;
                } else {
                    deliver(hosts, &posted).await?;
                }
            }
            _ = founds.tick() => {
                let relays = [chance.below(hosts.len()), chance.below(hosts.len())];
                let founded = world.found(&relays, unix_secs());
                deliver(hosts, &founded).await?;
            }
            _ = looks.tick() => samples.take(daemon, world.events().len()).await?,
        }
    }
    Ok(())
}

/// Puts what was posted where it is to be, and tells subscribers there.
async fn deliver(hosts: &[Host], posted: &[WorldEvent]) -> Result<(), Fault> {
    for (place, host) in hosts.iter().enumerate() {
        let here: Vec<_> =
            posted.iter().filter(|posted| posted.relays.contains(&place)).map(|posted| posted.event.clone()).collect();
        if !here.is_empty() {
            host.put(here).await?;
        }
    }
    Ok(())
}

fn unix_secs() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
