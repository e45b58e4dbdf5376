//! What can change while the daemon runs.

use super::held::tell;
use super::hooked::Hooked;
use super::shared::Shared;
use crate::engine::Command;
use crate::native::settings::Settings;

/// Settings that change at once, and beginnings of their names.
const LIVE: &[&str] = &["discovery.", "discovery_limits.", "hook.", "log.filter"];
/// Among these, settings that do not.
const NOT_LIVE: &[&str] = &["discovery.enabled"];

/// What a reload came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Settings that hold now, by name.
    pub changed: Vec<String>,
    /// Settings that will hold after a restart.
    pub waiting: Vec<String>,
    /// What went wrong.
    pub faults: Vec<String>,
}

pub(super) async fn reload(shared: &Shared, hooked: &Hooked, settings: &Settings) -> Reloaded {
    let old = shared.settings();
    let (changed, waiting) = old.differences(settings).into_iter().partition(|name| is_live(name));
    let mut reloaded = Reloaded { changed, waiting, faults: Vec::new() };
    let changes = |section: &str| reloaded.changed.iter().any(|name| name.starts_with(section));
    let (discovers, hooks) = (changes("discovery"), changes("hook."));

    let mut new = Settings::clone(&old);
    new.discovery.config = settings.discovery.config.clone();
    new.hook = settings.hook.clone();
    new.log.filter = settings.log.filter.clone();
    shared.set_settings(new.clone());
    if discovers && let Some(config) = new.discover() {
        // An engine that is being built takes the settings that hold.
        let commands = shared.link.borrow().clone();
        if let Some(mut commands) = commands
            && let Err(error) = tell(&mut commands, Command::Discover(Box::new(config))).await
        {
            tracing::debug!("the new rules of discovery wait for the next engine: {error}");
        }
    }
    if hooks && let Err(error) = hooked.set(new.hook.hook(), new.sockets()).await {
        reloaded.faults.push(error.to_string());
    }
    reloaded
}

fn is_live(name: &str) -> bool {
    LIVE.iter().any(|live| name.starts_with(live)) && !NOT_LIVE.contains(&name)
}
