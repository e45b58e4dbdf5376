//! The list of settings: name, explanation and place of each.
//!
//! Configurations are taken apart without a `..`, so that a new field does not compile until it stands here, too.

mod control;
mod daemon;
mod discovery;
mod relay;
mod sockets;
mod sync;

use super::Settings;
use super::keys::{Name, Slot, Walker};

/// Leads `walker` along all settings, in the order of the file.
pub(super) fn walk(settings: &mut Settings, walker: &mut dyn Walker) {
    let Settings { store, identity, access, control, relay, discovery, sync, sockets, hook, http, log, daemon } =
        settings;
    daemon::store(store, walker);
    daemon::identity(identity, walker);
    control::access(access, walker);
    control::control(control, walker);
    relay::relay(relay, walker);
    discovery::discovery(discovery, walker);
    daemon::hook(hook, walker);
    daemon::http(http, walker);
    daemon::log(log, walker);
    daemon::daemon(daemon, walker);
    sync::sync(sync, walker);
    sockets::sockets(sockets, walker);
    relay::limits(&mut relay.service, walker);
}

/// The names of all settings.
pub(super) fn names() -> Vec<Name> {
    let mut names = Names::default();
    walk(&mut Settings::default(), &mut names);
    names.0
}

#[derive(Default)]
struct Names(Vec<Name>);

impl Walker for Names {
    fn section(&mut self, _name: &'static str, _about: &'static str) {}

    fn key(&mut self, name: Name, _about: &'static str, _slot: &mut dyn Slot) {
        self.0.push(name);
    }
}
