//! Keeps an engine running: after a failure of the store, a new one over the store that was opened again; and a new one
//! when the old one has missed too much.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_channel::mpsc;
use tokio::sync::Notify;

use super::held;
use super::hooked::Hooked;
use super::reload::bring_rules;
use super::shared::{Commands, Shared, lock};
use super::steward::{self, Told};
use crate::drive::drive;
use crate::engine::{Command, Config, Direction, RelayOptions};
use crate::native::NativeRuntime;
use crate::native::admin::Stage;
use crate::native::feed::FedStore;
use crate::native::settings::{DaemonSettings, RelaySettings};
use crate::plan::Interest;
use crate::runtime::Clock;

/// How the relay beside us is synced: it is ours, so whatever it holds is wanted, and what it lacks it gets.
const BESIDE: RelayOptions = RelayOptions { direction: Direction::Both, method: None, live: true, trusted: true };

/// Runs engines until the daemon is to stop.
pub(super) async fn keep(shared: Arc<Shared>, runtime: Arc<NativeRuntime<FedStore<Hooked>>>) {
    let mut wait = Wait::default();
    loop {
        let began = shared.clock.now().instant;
        let result = run(&shared, &runtime).await;
        shared.link.send_replace(None);
        *shared.told.lock().await = Told::default();
        shared.drop_cases();
        shared.control.end_engine();
        match result {
            Ok(()) if shared.is_stopping() => return,
            Ok(()) => index_pending(&shared, "something was missed, and the store is read again"),
            Err(failure) => {
                index_pending(&shared, "the store has failed, and is read again");
                shared.change_news(|news| {
                    news.engine.restarts += 1;
                    news.engine.last_failure = Some(failure.clone());
                });
                let lasted = shared.clock.now().instant - began;
                if !reopen(&shared, &mut wait, lasted, failure).await {
                    return;
                }
            }
        }
    }
}

fn index_pending(shared: &Shared, why: &str) {
    shared.change_news(|news| {
        if news.index != Stage::Off {
            news.index = Stage::Pending(why.to_owned());
        }
    });
}

/// Opens the store again, as often as it takes, after a wait that is longer each time. `lasted`: how long the engine
/// that ended by `failure` has run. `false` if the daemon is to stop meanwhile.
async fn reopen(shared: &Shared, wait: &mut Wait, mut lasted: Duration, mut failure: String) -> bool {
    loop {
        let wait = wait.next(lasted, &shared.settings().daemon);
        let failed = format!("{failure}; it is opened again in {} s", wait.as_secs_f32());
        tracing::error!("syncing stopped: {failed}");
        shared.change_news(|news| news.store = Stage::Pending(failed));
        tokio::select! {
            () = shared.stopped() => return false,
            () = tokio::time::sleep(wait) => {}
        }
        match shared.disk.reopen().await {
            Ok(()) => {
                tracing::info!("the store is open again");
                shared.change_news(|news| news.store = Stage::Ready);
                return true;
            }
            Err(error) => (lasted, failure) = (Duration::ZERO, error.to_string()),
        }
    }
}

/// The time between engines: longer each time, until one has lasted.
#[derive(Debug, Default)]
struct Wait {
    failures: u32,
}

impl Wait {
    fn next(&mut self, lasted: Duration, settings: &DaemonSettings) -> Duration {
        self.failures = if lasted > settings.store_retry_max { 0 } else { self.failures.saturating_add(1) };
        let doubled = settings.store_retry_base.saturating_mul(1 << self.failures.saturating_sub(1).min(20));
        doubled.min(settings.store_retry_max)
    }
}

/// Runs one engine until the daemon is to stop, or the engine is outdated.
///
/// # Errors
/// The store has failed, in these words.
async fn run(shared: &Arc<Shared>, runtime: &Arc<NativeRuntime<FedStore<Hooked>>>) -> Result<(), String> {
    let settings = shared.settings();
    let (commands, inbox) = mpsc::channel(settings.daemon.commands_max);
    let (failed, failure) = (Notify::new(), Mutex::new(None));
    let seed = u64::from(std::process::id()) ^ (shared.clock.now().unix_secs << 20);
    let desired = shared.control.desired();
    let config = Config { access: desired.access.clone(), ..settings.engine() };
    *shared.told.lock().await = Told::new(commands.clone(), &desired);
    shared.rules.lock().await.clone_from(&config.discovery);
    let engine = drive(runtime.clone(), config, seed, inbox, |notice| {
        if let Some(error) = shared.hear(notice) {
            *lock(&failure) = Some(error);
            failed.notify_one();
        }
    });
    tokio::select! {
        biased;
        result = engine => result.map(drop).map_err(|error| error.to_string()),
        // The relay service may be the one to find out: after that the engine could not commit either.
        failure = shared.disk.failed() => Err(failure),
        () = failed.notified() => Err(lock(&failure).take().unwrap_or_default()),
        result = lead(shared, commands) => result,
    }
}

/// Tells a new engine what it has to know, then lets others talk to it, until it is to end. It says itself when it has;
/// this returns if that takes too long.
async fn lead(shared: &Shared, mut commands: Commands) -> Result<(), String> {
    let led = async {
        begin(shared, &mut commands).await?;
        std::future::pending().await
    };
    tokio::select! {
        () = shared.stopped() => {}
        () = shared.outdated() => {}
        result = led => return result,
    }
    held::tell(&mut commands, Command::Stop).await?;
    tokio::time::sleep(shared.settings().daemon.drain_max).await;
    Ok(())
}

/// Tells it, then links it.
pub(super) async fn begin(shared: &Shared, commands: &mut Commands) -> Result<(), String> {
    let settings = shared.settings();
    // The peers first. From now on the steward has its own way to it: rules do not wait for the store to be read.
    steward::bring(shared, &mut *shared.told.lock().await).await?;
    if let Some(command) = beside(&settings.relay) {
        held::tell(commands, command).await?;
    }
    if settings.discovery.enabled {
        let events = held::replay(shared, commands).await?;
        tracing::info!(events, "the index of repositories is rebuilt from what is held");
    }
    // From here on a change of the rules finds the engine; one that came meanwhile did not.
    let mut rules = shared.rules.lock().await;
    bring_rules(shared, commands, &mut rules).await?;
    shared.link.send_replace(Some(commands.clone()));
    if settings.discovery.enabled {
        shared.change_news(|news| news.index = Stage::Ready);
    }
    Ok(())
}

fn beside(relay: &RelaySettings) -> Option<Command> {
    let interest = Interest::Opaque(relay.beside_filter.clone().unwrap_or_default());
    let relay = relay.beside.clone()?;
    Some(Command::SetInterests { relay, interests: [interest].into(), options: BESIDE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_until_an_engine_has_lasted() {
        let settings = DaemonSettings::default();
        let mut wait = Wait::default();
        let mut next = |lasted| wait.next(Duration::from_secs(lasted), &settings).as_secs();
        assert_eq!([0; 8].map(&mut next), [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!([3600, 0, 0].map(&mut next), [1, 1, 2]);
    }
}
