//! Keeps an engine running: after a failure of the store, a new one over the store that was opened again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_channel::mpsc;
use tokio::sync::Notify;

use super::held;
use super::hooked::Hooked;
use super::shared::{Commands, Shared, lock};
use crate::drive::drive;
use crate::engine::{Command, Direction, RelayOptions};
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
        shared.drop_cases();
        let Err(failure) = result else { return };
        let settings = shared.settings();
        let wait = wait.next(shared.clock.now().instant - began, &settings.daemon);
        tracing::error!("syncing stopped: {failure}; it begins anew in {} s", wait.as_secs_f32());
        shared.change_news(|news| {
            news.engine.restarts += 1;
            news.store = Stage::Pending(failure.clone());
            news.engine.last_failure = Some(failure);
            if news.index != Stage::Off {
                news.index = Stage::Pending("the store has failed, and is read again".to_owned());
            }
        });
        if !reopen(&shared, wait).await {
            return;
        }
    }
}

/// Waits, then opens the store again, as often as it takes. `false` if the daemon is to stop meanwhile.
async fn reopen(shared: &Shared, wait: Duration) -> bool {
    loop {
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
            Err(error) => tracing::error!("{error}"),
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

/// Runs one engine until the daemon is to stop.
///
/// # Errors
/// The store has failed, in these words.
async fn run(shared: &Arc<Shared>, runtime: &Arc<NativeRuntime<FedStore<Hooked>>>) -> Result<(), String> {
    let settings = shared.settings();
    let mut failures = shared.disk.failures();
    let (commands, inbox) = mpsc::channel(settings.daemon.commands_max);
    let (failed, failure) = (Notify::new(), Mutex::new(None));
    let seed = u64::from(std::process::id()) ^ (shared.clock.now().unix_secs << 20);
    let engine = drive(runtime.clone(), settings.engine(), seed, inbox, |notice| {
        if let Some(error) = shared.hear(notice) {
            *lock(&failure) = Some(error);
            failed.notify_one();
        }
    });
    tokio::select! {
        biased;
        result = engine => result.map(drop).map_err(|error| error.to_string()),
        // The relay service may be the one to find out: after that the engine could not commit either.
        Ok(()) = failures.changed() => Err(failures.borrow().clone()),
        () = failed.notified() => Err(lock(&failure).take().unwrap_or_default()),
        result = lead(shared, commands) => match result {
            Ok(never) => match never {},
            Err(failure) => Err(failure),
        },
    }
}

/// Tells a new engine what it has to know, then lets others talk to it, until the daemon is to stop.
async fn lead(shared: &Arc<Shared>, mut commands: Commands) -> Result<std::convert::Infallible, String> {
    tokio::select! {
        () = shared.stopped() => {}
        result = begin(shared, &mut commands) => {
            result?;
            shared.link.send_replace(Some(commands.clone()));
            shared.stopped().await;
        }
    }
    held::tell(&mut commands, Command::Stop).await?;
    // The engine says when it is done.
    std::future::pending().await
}

async fn begin(shared: &Arc<Shared>, commands: &mut Commands) -> Result<(), String> {
    let settings = shared.settings();
    if let Some(command) = beside(&settings.relay) {
        held::tell(commands, command).await?;
    }
    if settings.discovery.enabled {
        let events = held::replay(shared, commands).await?;
        tracing::info!(events, "the index of repositories is rebuilt from what is held");
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
