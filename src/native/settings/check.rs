//! What single settings cannot show: whether they fit each other.

use std::time::Duration;

use super::{Loaded, Mistake, Origin, Settings};
use crate::discover::{Accept, DiscoverConfig};

/// All mistakes of that kind.
pub(super) fn mistakes(loaded: &Loaded) -> Vec<Mistake> {
    let mut checking = Checking { loaded, mistakes: Vec::new() };
    checking.relay();
    checking.discovery();
    checking.order();
    checking.hook();
    checking.listeners();
    checking.health();
    checking.mistakes
}

fn allows_nobody(config: &DiscoverConfig) -> bool {
    config.allow_authors.is_empty() && config.allow_repositories.is_empty()
}

struct Checking<'a> {
    loaded: &'a Loaded,
    mistakes: Vec<Mistake>,
}

impl<'a> Checking<'a> {
    fn settings(&self) -> &'a Settings {
        &self.loaded.settings
    }

    /// A mistake of the first of `settings` that was set by somebody.
    fn fault(&mut self, settings: &[&str], reason: String) {
        let set = settings.iter().find(|setting| self.loaded.origins.contains_key(**setting));
        let setting = set.or(settings.first()).copied().unwrap_or_default();
        let origin = self.loaded.origins.get(setting).cloned().unwrap_or(Origin::Default);
        self.mistakes.push(Mistake::new(origin, setting, reason));
    }

    fn relay(&mut self) {
        let relay = &self.settings().relay;
        if relay.listen.is_some() && relay.beside.is_some() {
            let reason = "the relay is either embedded (relay.listen) or beside us (relay.beside); leave one out";
            self.fault(&["relay.beside"], reason.to_owned());
        }
        if relay.beside_filter.is_some() && relay.beside.is_none() {
            self.fault(&["relay.beside_filter"], "it means nothing without relay.beside".to_owned());
        }
        match (&relay.tls_cert_file, &relay.tls_key_file) {
            (Some(_), None) => {
                self.fault(&["relay.tls_cert_file"], "it needs its key: set relay.tls_key_file".to_owned())
            }
            (None, Some(_)) => {
                self.fault(&["relay.tls_key_file"], "it needs its certificate: set relay.tls_cert_file".to_owned());
            }
            (Some(_), Some(_)) if relay.listen.is_none() => {
                self.fault(&["relay.tls_cert_file"], "it means nothing without relay.listen".to_owned());
            }
            _ => {}
        }
        if let Some(beside) = &relay.beside
            && self.settings().discovery.config.blocks_relay(beside)
        {
            self.fault(&["discovery.block_relays"], format!("it blocks {beside}, which is relay.beside"));
        }
    }

    fn discovery(&mut self) {
        let Some(config) = self.settings().discover() else { return };
        let relay = &self.settings().relay;
        let has_sources = !config.bootstrap.is_empty() || relay.listen.is_some() || relay.beside.is_some();
        match config.accept {
            Accept::Listed if has_sources && config.service_urls.is_empty() && allows_nobody(&config) => {
                let reason = "announcements are accepted that list our service, but under no URL is it known; set \
                              relay.urls (or discovery.service_urls) to the URLs in announcements, accept \"allowed\" or \
                              \"all\", or turn discovery off by discovery.enabled = false";
                self.fault(&["discovery.accept", "relay.listen", "relay.beside", "discovery.bootstrap"], reason.into());
            }
            Accept::Allowed if allows_nobody(&config) => {
                let reason = "nobody is allowed; set discovery.allow_authors or discovery.allow_repositories";
                self.fault(&["discovery.accept"], reason.to_owned());
            }
            _ => {}
        }
        for relay in &config.bootstrap {
            if config.blocks_relay(relay) {
                let reason = format!("it blocks {relay}, which is one of discovery.bootstrap");
                self.fault(&["discovery.block_relays"], reason);
            }
            if config.is_own(relay) {
                let reason =
                    format!("{relay} is our own service (relay.urls, discovery.service_urls), where nothing is found");
                self.fault(&["discovery.bootstrap"], reason);
            }
        }
    }

    /// Settings of which one must not exceed the other.
    fn order(&mut self) {
        let Settings { sync, daemon, relay, .. } = self.settings();
        let serve = &relay.service.serve;
        let durations: [(&str, Duration, &str, Duration); 4] = [
            ("sync.backoff_floor", sync.backoff_floor, "sync.backoff_base", sync.backoff_base),
            ("sync.backoff_base", sync.backoff_base, "sync.backoff_max", sync.backoff_max),
            ("sync.full_pass_min", sync.full_pass_min, "sync.full_pass_max", sync.full_pass_max),
            ("daemon.store_retry_base", daemon.store_retry_base, "daemon.store_retry_max", daemon.store_retry_max),
        ];
        for (low, low_value, high, high_value) in durations {
            if low_value > high_value {
                self.fault(&[low, high], format!("{low} must not be longer than {high}"));
            }
        }
        let counts = [
            ("sync_limits.page_events", sync.page_events, "sync_limits.page_events_raised", sync.page_events_raised),
            (
                "sync_limits.commit_events_min",
                sync.commit_events_min,
                "sync_limits.commit_events_max",
                sync.commit_events_max,
            ),
            (
                "relay_limits.page_events_default",
                serve.page_events_default,
                "relay_limits.page_events_max",
                serve.page_events_max,
            ),
        ];
        for (low, low_value, high, high_value) in counts {
            if low_value > high_value {
                self.fault(&[low, high], format!("{low} must not be more than {high}"));
            }
        }
    }

    fn hook(&mut self) {
        let hook = &self.settings().hook;
        if !hook.command.is_empty() && hook.url.is_some() {
            let reason = "events are handed on to a command (hook.command) or to a URL (hook.url); leave one out";
            self.fault(&["hook.url"], reason.to_owned());
        }
        if hook.command.first().is_some_and(String::is_empty) {
            self.fault(&["hook.command"], "the program's name is empty".to_owned());
        }
    }

    /// Between two reports of an engine that is well, nobody must take it for dead.
    fn health(&mut self) {
        let Settings { sync, http, .. } = self.settings();
        if http.listen.is_none() {
            return;
        }
        let between = sync.progress_interval;
        for (most, value) in [
            ("http.report_age_max", http.admin.report_age_max),
            ("http.engine_silence_max", http.admin.engine_silence_max),
        ] {
            if between >= value {
                let reason = format!("{most} must be longer than sync.progress_interval, or /healthz fails in between");
                self.fault(&["sync.progress_interval", most], reason);
            }
        }
    }

    fn listeners(&mut self) {
        let Settings { relay, http, .. } = self.settings();
        if let (Some(relay), Some(http)) = (relay.listen, http.listen)
            && relay == http
            && relay.port() != 0
        {
            self.fault(&["http.listen"], format!("relay.listen is {relay}, too; take another port"));
        }
    }
}
