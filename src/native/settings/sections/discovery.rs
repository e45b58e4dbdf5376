//! Discovery.

use crate::native::settings::DiscoverySettings;
use crate::native::settings::keys::{Section, Walker};

pub(super) fn discovery(settings: &mut DiscoverySettings, walker: &mut dyn Walker) {
    let DiscoverySettings {
        enabled,
        bootstrap,
        service_urls,
        accept,
        allow_authors,
        allow_repositories,
        block_authors,
        block_repositories,
        block_relays,
        batch_window,
        relays_max,
        repository_relays_max,
        repositories_max,
        roots_max,
    } = settings;
    let about = "Which repositories are followed, and at which relays: those that accepted announcements (kind 30617) \
                 name. Of each, its issues, patches, pull requests and what refers to them are kept.";
    let mut keys = Section::begin(walker, "discovery", about);
    keys.key("enabled", enabled, "Follow repositories at all. If not, only relay.beside is kept in step.");
    keys.key("bootstrap", bootstrap, "Relays to begin with. They are never given up.");
    keys.key(
        "service_urls",
        service_urls,
        "Further URLs of our service, beside relay.urls, by which announcements are known to list it.",
    );
    keys.key(
        "accept",
        accept,
        "Which announcements are accepted: \"listed\", those that list our service among their relays or clone URLs; \
         \"allowed\", those of allow_authors and allow_repositories; \"all\", to archive everything.",
    );
    keys.key("allow_authors", allow_authors, "Announcements of these authors are accepted, listed or not.");
    keys.key("allow_repositories", allow_repositories, "These announcements are accepted, listed or not.");
    keys.key("block_authors", block_authors, "Announcements of these authors are never accepted.");
    keys.key("block_repositories", block_repositories, "These announcements are never accepted.");
    keys.key("block_relays", block_relays, "These relays are never connected to.");
    keys.duration_or_zero(
        "batch_window",
        batch_window,
        "What is found is gathered so long before it is asked for, so that few subscriptions are made of many events.",
    );
    keys.count("relays_max", relays_max, "Relays known at once. Further ones are counted, and not connected to.");
    keys.count("repository_relays_max", repository_relays_max, "Relays that one repository may name.");
    keys.count("repositories_max", repositories_max, "Repositories followed.");
    keys.count("roots_max", roots_max, "Issues, patches and pull requests followed.");
}
