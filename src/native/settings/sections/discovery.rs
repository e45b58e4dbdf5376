//! Discovery.

use crate::discover::DiscoverConfig;
use crate::native::settings::DiscoverySettings;
use crate::native::settings::keys::{Section, Walker};

/// Both sections of discovery.
pub(super) fn discovery(settings: &mut DiscoverySettings, walker: &mut dyn Walker) {
    let DiscoverySettings { enabled, config } = settings;
    rules(enabled, config, walker);
    limits(config, walker);
}

fn rules(enabled: &mut bool, config: &mut DiscoverConfig, walker: &mut dyn Walker) {
    let about = "Which repositories are followed, and at which relays: those that accepted announcements (kind 30617) \
                 name. Of each, its issues, patches, pull requests and what refers to them are kept.";
    let mut keys = Section::begin(walker, "discovery", about);
    keys.key("enabled", enabled, "Follow repositories at all. If not, only relay.beside is kept in step.");
    keys.key("bootstrap", &mut config.bootstrap, "Relays to begin with. They are never given up.");
    keys.service_urls(
        "service_urls",
        &mut config.service_urls,
        "Further URLs of our service, beside relay.urls, by which announcements are known to list it. Host and port \
         decide.",
    );
    keys.key(
        "accept",
        &mut config.accept,
        "Which announcements are accepted: \"listed\", those that list our service among their relays or clone URLs; \
         \"allowed\", those of allow_authors and allow_repositories; \"all\", to archive everything.",
    );
    keys.key("allow_authors", &mut config.allow_authors, "Announcements of these authors are accepted in any case.");
    keys.key("allow_repositories", &mut config.allow_repositories, "These announcements are accepted in any case.");
    keys.key("block_authors", &mut config.block_authors, "Nothing of these authors is ever accepted.");
    keys.key("block_repositories", &mut config.block_repositories, "These repositories are never accepted.");
    keys.key("block_relays", &mut config.block_relays, "These relays are never connected to. Host and port decide.");
    keys.key(
        "private_relays",
        &mut config.private_relays,
        "Connect to relays at loopback and private addresses when announcements name them. Anybody can publish one, so \
         not where internal services are in reach. What their names resolve to counts. Bootstrap relays may be anywhere.",
    );
    keys.duration_or_zero(
        "batch_window",
        &mut config.batch_window,
        "What is found is gathered so long before it is asked for, so that few subscriptions are made of many events.",
    );
}

fn limits(config: &mut DiscoverConfig, walker: &mut dyn Walker) {
    let DiscoverConfig {
        // These stand in [discovery].
        service_urls: _,
        accept: _,
        allow_authors: _,
        allow_repositories: _,
        block_authors: _,
        block_repositories: _,
        block_relays: _,
        bootstrap: _,
        private_relays: _,
        batch_window: _,
        batch_interests_max,
        relays_max,
        relay_urls_max,
        relay_url_bytes_max,
        relays_per_repository_max,
        maintainers_per_repository_max,
        repositories_max,
        dormant_repositories_max,
        identifier_bytes_max,
        roots_max,
        roots_per_repository_max,
        repositories_per_root_max,
        orphans_max,
        references_max,
        references_per_event_max,
        promises_max,
        tombstones_max,
    } = config;
    let about = "Bounds of discovery. What goes beyond is counted, and not followed.";
    let mut keys = Section::begin(walker, "discovery_limits", about);
    keys.count("relays_max", relays_max, "Relays followed, bootstrap relays not counted. Others wait.");
    keys.count("relay_urls_max", relay_urls_max, "Relay URLs remembered, followed or not.");
    keys.bytes("relay_url_bytes_max", relay_url_bytes_max, "The length of a relay or clone URL.");
    keys.count("relays_per_repository_max", relays_per_repository_max, "Relays that one announcement may name.");
    keys.count("maintainers_per_repository_max", maintainers_per_repository_max, "Maintainers that it may name.");
    keys.count("repositories_max", repositories_max, "Repositories accepted.");
    keys.count("dormant_repositories_max", dormant_repositories_max, "Announcements remembered that are not accepted.");
    keys.bytes("identifier_bytes_max", identifier_bytes_max, "The length of a repository's identifier.");
    keys.count("roots_max", roots_max, "Issues, patches and pull requests remembered.");
    keys.count("roots_per_repository_max", roots_per_repository_max, "Of them, those of one repository.");
    keys.count("repositories_per_root_max", repositories_per_root_max, "Repositories that one of them may belong to.");
    keys.count("orphans_max", orphans_max, "Of them, those that wait for the announcement of their repository.");
    keys.count("references_max", references_max, "Events that these refer to, and that are therefore kept.");
    keys.count("references_per_event_max", references_per_event_max, "Of them, those of one event.");
    keys.count("promises_max", promises_max, "Events on their way into the store that count as held.");
    keys.count("tombstones_max", tombstones_max, "Requests to delete or vanish that are remembered.");
    keys.count("batch_interests_max", batch_interests_max, "Changes handed out at a time.");
}
