//! `relaysync run`: the daemon.

use std::path::{Path, PathBuf};

use clap::Args;

use super::config::{SetArguments, settings};
use super::logging::LogControl;
use super::{Exit, Failure, interrupted, signals};
use crate::native::control;
use crate::native::daemon::{Daemon, DaemonError, Reloaded};
use crate::native::settings::{Flag, Loaded};

/// Follow repositories: find their relays, keep all that belongs to them, and serve it, until Ctrl-C or SIGTERM.
///
/// Settings come from a file (`relaysync config init` writes one with all of them), from environment variables
/// RELAYSYNC_SECTION_KEY over it, and from these flags over both. SIGHUP reads them again.
#[derive(Debug, Clone, Args)]
pub(super) struct RunArguments {
    /// The configuration; by default RELAYSYNC_CONFIG, or relaysync.toml if it is there.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// The event store: a file, or a directory to have it in (store.path).
    #[arg(long, value_name = "PATH")]
    store: Option<String>,
    /// A relay to begin with (discovery.bootstrap). Repeat it for several.
    #[arg(long, value_name = "URL")]
    bootstrap: Vec<String>,
    /// Be a relay, on this address (relay.listen).
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// A URL under which others know our service (relay.urls). Repeat it for several.
    #[arg(long = "url", value_name = "URL")]
    urls: Vec<String>,
    /// An existing relay that holds our events (relay.beside).
    #[arg(long, value_name = "URL")]
    beside: Option<String>,
    /// Serve metrics, health and status on this address (http.listen).
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<String>,
    #[command(flatten)]
    set: SetArguments,
}

impl RunArguments {
    fn flags(&self) -> Vec<Flag> {
        let one = |flag: &str, setting: &str, value: &Option<String>| {
            value.as_ref().map(|value| Flag::new(flag, setting, value))
        };
        let many = |flag: &str, setting: &str, values: &Vec<String>| {
            (!values.is_empty()).then(|| Flag::list(flag, setting, values.iter().cloned()))
        };
        let named = [
            one("--store", "store.path", &self.store),
            many("--bootstrap", "discovery.bootstrap", &self.bootstrap),
            one("--listen", "relay.listen", &self.listen),
            many("--url", "relay.urls", &self.urls),
            one("--beside", "relay.beside", &self.beside),
            one("--http", "http.listen", &self.http),
        ];
        named.into_iter().flatten().chain(self.set.flags()).collect()
    }

    fn load(&self, file: Option<&Path>) -> Result<(Option<PathBuf>, Loaded), Failure> {
        settings(file.or(self.config.as_deref()), self.flags())
    }
}

/// Runs until the operator ends it, then until what has arrived is committed, or the operator ends that, too.
pub(super) async fn run(arguments: RunArguments) -> Result<Exit, Failure> {
    let (file, Loaded { settings, .. }) = arguments.load(None)?;
    if settings.is_idle(control::has_peers(&settings.control())) {
        return Err(Failure::usage(
            "there is nothing to sync with: name a relay to begin with (--bootstrap URL), be one (--listen ADDRESS:PORT), \
             name one that runs already (--beside URL) or configure a peer (relaysync peer put); \
             `relaysync config init` writes a file with all settings",
        ));
    }
    let log = LogControl::start(&settings.log);
    let mut reloads = signals::Reloads::new()?;
    let mut daemon = Daemon::start(settings, None).await.map_err(unable)?;
    // One for all turns of the loop: a signal that comes during a reload counts, too.
    let mut ending = std::pin::pin!(interrupted());
    loop {
        tokio::select! {
            signal = &mut ending => {
                tracing::info!("{}: what has arrived is committed, then this ends", signal?);
                return drain(daemon).await;
            }
            part = daemon.failed() => {
                daemon.shutdown().await;
                return Err(Failure::new(format!("{part} has ended, which is a fault of this program")));
            }
            () = reloads.next() => reload(&arguments, file.as_deref(), &daemon, &log).await,
        }
    }
}

/// What the control plane was told belongs to the configuration.
fn unable(error: DaemonError) -> Failure {
    match error {
        DaemonError::Control(error) => Failure::usage(error),
        error => Failure::new(error),
    }
}

async fn drain(daemon: Daemon) -> Result<Exit, Failure> {
    tokio::select! {
        drained = daemon.shutdown() => if drained {
            tracing::info!("everything is committed and closed");
            Ok(Exit::Complete)
        } else {
            Err(Failure::new("the store does not finish what it was given; what it has committed is kept"))
        },
        signal = interrupted() => Err(Failure::new(format!("{} again; what was committed is kept", signal?))),
    }
}

/// Reads the settings again. If anything is wrong with them, nothing changes.
async fn reload(arguments: &RunArguments, file: Option<&Path>, daemon: &Daemon, log: &LogControl) {
    let settings = match arguments.load(file) {
        Ok((_, loaded)) => loaded.settings,
        Err(failure) => return tracing::error!("the configuration was read again, and nothing changes: {failure}"),
    };
    if let Err(failure) = log.set(&settings.log) {
        tracing::error!("what is logged does not change: {failure}");
    }
    let Reloaded { changed, waiting, faults } = daemon.reload(&settings).await;
    let list = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    tracing::info!("the configuration was read again; changed: {}", list(&changed));
    if !waiting.is_empty() {
        tracing::warn!("these settings change with a restart: {}", list(&waiting));
    }
    for fault in faults {
        tracing::error!("{fault}");
    }
}
