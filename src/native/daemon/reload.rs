//! What can change while the daemon runs.

use super::held::tell;
use super::hooked::Hooked;
use super::shared::{Commands, Shared};
use crate::discover::DiscoverConfig;
use crate::engine::Command;
use crate::native::serve::RelayService;
use crate::native::settings::Settings;

/// Settings that change at once, and beginnings of their names.
const LIVE: &[&str] =
    &["discovery.", "discovery_limits.", HOOK, TLS, "log.filter", "access.protected", "control.admins"];
/// The beginning of the names of the hook's settings.
const HOOK: &str = "hook.";
/// The beginning of the names of the files that the relay's encryption goes by.
const TLS: &str = "relay.tls_";
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

pub(super) async fn reload(
    shared: &Shared,
    hooked: &Hooked,
    service: Option<&RelayService>,
    settings: &Settings,
) -> Reloaded {
    let old = shared.settings();
    let tls = settings.relay.tls().filter(|_| old.relay.tls().is_some());
    let is_live = |name: &String| is_live(name) && (tls.is_some() || !name.starts_with(TLS));
    let (changed, waiting) = old.differences(settings).into_iter().partition(is_live);
    let mut reloaded = Reloaded { changed, waiting, faults: Vec::new() };

    let mut new = Settings::clone(&old);
    new.discovery.config = settings.discovery.config.clone();
    new.log.filter = settings.log.filter.clone();
    new.hook = settings.hook.clone();
    if (reloaded.changes(HOOK) || hooked.is_off().await)
        && let Err(error) = hooked.set(new.hook.hook(), new.sockets()).await
    {
        // The former one goes on, and the next reload tries again.
        new.hook = old.hook.clone();
        reloaded.changed.retain(|name| !name.starts_with(HOOK));
        reloaded.faults.push(error.to_string());
    }
    if let (Some(_), Some(service)) = (&tls, service) {
        renew_certificate(service, settings, &mut new, &mut reloaded);
    }
    new.access.protected.clone_from(&settings.access.protected);
    new.control.admins.clone_from(&settings.control.admins);
    let configured = shared.control.configure(new.access.protected.clone(), new.control.admins.clone()).await;
    reloaded.faults.extend(configured.err().map(|error| error.to_string()));
    shared.set_settings(new);
    let mut rules = shared.rules.lock().await;
    // An engine that is being built hears of the rules that hold before it is linked.
    let commands = shared.link.borrow().clone();
    if let Some(mut commands) = commands
        && let Err(error) = bring_rules(shared, &mut commands, &mut rules).await
    {
        tracing::debug!("the new rules of discovery wait for the next engine: {error}");
    }
    reloaded
}

/// Has the relay service read its certificate again: the files may have changed, whatever they are called.
fn renew_certificate(service: &RelayService, settings: &Settings, new: &mut Settings, reloaded: &mut Reloaded) {
    let Some(files) = settings.relay.tls() else { return };
    match service.set_tls(&files) {
        Ok(_) => {
            new.relay.tls_cert_file = Some(files.cert_file);
            new.relay.tls_key_file = Some(files.key_file);
            tracing::info!("the relay's certificate was read again");
        }
        Err(error) => {
            reloaded.changed.retain(|name| !name.starts_with(TLS));
            reloaded.faults.push(format!("the relay's certificate stays as it was: {error}"));
        }
    }
}

/// Tells the engine the rules of discovery that hold, if it goes by others: by `rules`.
///
/// # Errors
/// There is no engine any more.
pub(super) async fn bring_rules(
    shared: &Shared,
    commands: &mut Commands,
    rules: &mut Option<DiscoverConfig>,
) -> Result<(), String> {
    let holding = shared.settings().discover();
    if let Some(config) = holding.clone()
        && holding != *rules
    {
        tell(commands, Command::Discover(Box::new(config))).await?;
        *rules = holding;
    }
    Ok(())
}

impl Reloaded {
    /// Does a setting change whose name begins like this?
    fn changes(&self, beginning: &str) -> bool {
        self.changed.iter().any(|name| name.starts_with(beginning))
    }
}

fn is_live(name: &str) -> bool {
    LIVE.iter().any(|live| name.starts_with(live)) && !NOT_LIVE.contains(&name)
}
