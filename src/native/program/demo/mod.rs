//! `relaysync demo`: a daemon that follows git repositories, before the eyes of who tries the program.

mod mirror;
mod stage;
mod verdict;
mod view;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::mirror::Mirror;
use self::stage::Stage;
use self::view::View;
use super::numbers::{count, counted};
use super::sync_run::print;
use super::{Exit, Failure, interrupted};
use crate::discover::DiscoverConfig;
use crate::engine::Config;
use crate::native::clock::unix_secs;
use crate::native::daemon::Daemon;
use crate::native::settings::{DiscoverySettings, RelaySettings, Settings, StoreSettings};
use crate::sample::world::World;

/// How long any act of the demo may take before it counts as failed.
const ACT_MAX: Duration = Duration::from_secs(60);
/// How long one of the relays stays away.
const ABSENCE: Duration = Duration::from_secs(2);
/// Events that the relay gets while it is away.
const POSTED_AWAY: usize = 25;
/// Events that another relay gets meanwhile.
const POSTED_LIVE: usize = 10;
/// The place of the relay that goes away.
const AWAY: usize = 1;
/// The place of the relay that gets events meanwhile.
const STAYING: usize = 2;

/// Watch a daemon at work: three small relays with generated git repositories are started on this machine, and a daemon
/// (`relaysync run`) that is told of one of them. It finds the others, and fetches all that belongs to the repositories
/// that list it as their host, and nothing else. One of the relays goes away for a while and comes back.
///
/// Nothing beyond this machine is contacted, and nothing is left behind.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DemoArguments {}

/// Runs the demo, to its end or until the operator ends it.
pub(super) async fn run(_arguments: DemoArguments) -> Result<Exit, Failure> {
    let folder = Folder::new()?;
    tokio::select! {
        result = show(&folder.0) => result,
        signal = interrupted() => Err(Failure::new(format!("{}; the demo's store is removed", signal?))),
    }
}

async fn show(folder: &Path) -> Result<Exit, Failure> {
    let mut stage = Stage::set().await?;
    print(&stage.introduction())?;
    let settings = settings(&stage.world, folder);

    let (daemon, mirror) = start(&settings).await?;
    let mut view = View::new(&stage.world, daemon.reports());
    let acted = act(&mut stage, &mirror, &mut view).await;
    view.finish();
    acted?;
    let (text, exit) = verdict::pronounce(&stage.world, &mirror).await?;
    print(&text)?;
    end(daemon, mirror).await?;
    if exit == Exit::Complete {
        begin_anew(&stage, &settings).await?;
        print("Now try your own: `relaysync config init` writes a configuration, `relaysync run` follows it.\n")?;
    }
    stage.clear().await;
    Ok(exit)
}

/// A daemon, and a copy of what its relay gives.
async fn start(settings: &Settings) -> Result<(Daemon, Mirror), Failure> {
    let daemon = Daemon::start(settings.clone(), None).await.map_err(Failure::new)?;
    let url = daemon.relay_url().ok_or_else(|| Failure::new("the daemon is no relay"))?;
    Ok((daemon, Mirror::follow(url)?))
}

async fn end(daemon: Daemon, mirror: Mirror) -> Result<(), Failure> {
    mirror.stop().await?;
    match daemon.shutdown().await {
        true => Ok(()),
        false => Err(Failure::new("the daemon did not end in time")),
    }
}

/// Starts the daemon once more, over the same store, and tells how much it fetches again.
async fn begin_anew(stage: &Stage, settings: &Settings) -> Result<(), Failure> {
    let (daemon, mirror) = start(settings).await?;
    let mut view = View::new(&stage.world, daemon.reports());
    let live = view.wait_until_live(stage.world.relays().len(), ACT_MAX).await;
    view.finish();
    let report = live?;
    let received: u64 = report.relays.iter().map(|relay| relay.counters.received).sum();
    let held = stage.world.wanted().len() as u64;
    print(&format!(
        "Started anew, it has asked for what may be new only: {} came again, beside {} held.\n",
        counted(received, "event"),
        count(held)
    ))?;
    end(daemon, mirror).await
}

/// What happens, act by act. Ends when all is held that is to be, or once waiting for it was in vain.
async fn act(stage: &mut Stage, mirror: &Mirror, view: &mut View) -> Result<(), Failure> {
    let begun = mirror.now();
    if !watch(stage, mirror, view).await? {
        return Ok(());
    }
    let wanted = counted(stage.world.wanted().len() as u64, "wanted event");
    view.say(&format!("All {wanted} are held after {}, and no others.\n", secs(mirror.now() - begun)))?;

    let away = stage.url(AWAY);
    stage.take_down(AWAY).await;
    view.wait_until_lost(&away, ACT_MAX).await?;
    view.say(&format!("{away} has gone away.\n"))?;
    let live = stage.post_live(STAYING, POSTED_LIVE, unix_secs()).await?;
    let posted = mirror.now();
    mirror.wait_for(&live, ACT_MAX).await?;
    view.say(&format!(
        "{} posted to {} have arrived within {}.\n",
        count(POSTED_LIVE as u64),
        stage.url(STAYING),
        secs(mirror.now() - posted)
    ))?;
    stage.post_to_store(AWAY, POSTED_AWAY, unix_secs()).await?;
    let posted = counted(POSTED_AWAY as u64, "event");
    view.say(&format!("{posted} are posted to the one that is away, where nobody sees them yet.\n"))?;
    tokio::time::sleep(ABSENCE).await;
    stage.bring_up(AWAY).await?;
    let back = mirror.now();
    if watch(stage, mirror, view).await? {
        let took = secs(mirror.now() - back);
        view.say(&format!("It is back under its old address; {took} later what it got meanwhile is held, too.\n"))?;
    }
    Ok(())
}

/// Shows how things go until exactly the wanted events are held; `false` if that has not come about in time.
async fn watch(stage: &Stage, mirror: &Mirror, view: &mut View) -> Result<bool, Failure> {
    let wanted = stage.world.wanted();
    let begun = mirror.now();
    while mirror.now() - begun < ACT_MAX {
        let held = mirror.held().await?;
        view.show(&stage.world, &held)?;
        if held == wanted {
            return Ok(true);
        }
        tokio::time::sleep(view::REDRAW_INTERVAL).await;
    }
    Ok(false)
}

/// A daemon as `relaysync run` starts it, in more of a hurry than usual.
fn settings(world: &World, folder: &Path) -> Settings {
    let discover = DiscoverConfig {
        bootstrap: vec![world.relays()[0].clone()],
        // All of the demo is on this machine.
        private_relays: true,
        batch_window: Duration::from_millis(500),
        ..DiscoverConfig::default()
    };
    let relay = RelaySettings {
        urls: vec![world.config().service_url.clone()],
        listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        ..RelaySettings::default()
    };
    let sync = Config {
        backoff_base: Duration::from_secs(1),
        backoff_max: Duration::from_secs(2),
        progress_interval: view::REDRAW_INTERVAL,
        ..Config::default()
    };
    Settings {
        store: StoreSettings { path: folder.join("store"), ..StoreSettings::default() },
        relay,
        discovery: DiscoverySettings { enabled: true, config: discover },
        sync,
        ..Settings::default()
    }
}

fn secs(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A folder of our own for the demo's store, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("relaysync-demo-{}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(Failure::new(format!("cannot make the folder {}: {error}", path.display()))),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!("the folder {} could not be removed: {error}", self.0.display());
        }
    }
}
