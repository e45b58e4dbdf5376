//! What discovery has seen since it began. Every bound that bites is counted here.

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DiscoveryCounters {
    /// Announcements observed, repeated ones too.
    pub announcements: u64,
    /// Issues, patches and pull requests observed, repeated ones too.
    pub roots: u64,
    /// Requests to delete or to vanish observed.
    pub requests: u64,
    /// Repositories that were accepted.
    pub repositories_accepted: u64,
    /// Repositories that ceased to be.
    pub repositories_left: u64,
    /// Batches of changes handed out.
    pub batches: u64,
    /// Interests handed out as added.
    pub interests_added: u64,
    /// Interests handed out as removed.
    pub interests_removed: u64,

    /// URLs in announcements that are no relay URLs, or too long for one.
    pub relay_urls_invalid: u64,
    /// Values in announcements that were not looked at: `relays_per_repository_max`.
    pub relay_urls_skipped: u64,
    /// URLs not remembered: `relay_urls_max`.
    pub relay_urls_refused: u64,
    /// Relays at private addresses that were named for the first time.
    pub relays_private: u64,
    /// Relays that had to wait: `relays_max`.
    pub relays_refused: u64,
    /// Maintainers not looked at: `maintainers_per_repository_max`.
    pub maintainers_skipped: u64,
    /// Repositories that would have been accepted: `repositories_max`.
    pub repositories_refused: u64,
    /// Announcements not remembered: `dormant_repositories_max`.
    pub dormant_refused: u64,
    /// Announcements and addresses with too long an identifier: `identifier_bytes_max`.
    pub identifiers_too_long: u64,
    /// Issues, patches and pull requests not remembered: `roots_max`.
    pub roots_refused: u64,
    /// The same for a repository: `roots_per_repository_max`.
    pub roots_refused_by_repository: u64,
    /// Repositories of an issue, patch or pull request that were not looked at: `repositories_per_root_max`.
    pub root_repositories_skipped: u64,
    /// Issues, patches and pull requests forgotten while they waited: `orphans_max`.
    pub orphans_dropped: u64,
    /// References forgotten: `references_max`.
    pub references_dropped: u64,
    /// References not looked at: `references_per_event_max`.
    pub references_skipped: u64,
    /// Events judged good that were forgotten before they were observed: `promises_max`.
    pub promises_dropped: u64,
    /// Requests forgotten: `tombstones_max`.
    pub tombstones_dropped: u64,

    /// Events judged wanted.
    pub wanted: u64,
    /// Events refused because the author or the repository is blocked.
    pub objections_blocked: u64,
    /// Announcements refused because they are of no repository of ours.
    pub objections_not_accepted: u64,
    /// Events refused because they have to do with none of our repositories.
    pub objections_unrelated: u64,
    /// Announcements refused because they cannot be indexed.
    pub objections_invalid: u64,
    /// Announcements refused because there are too many.
    pub objections_full: u64,
}

/// How much discovery holds now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DiscoverySizes {
    /// Repositories accepted.
    pub repositories: usize,
    /// Announcements that are not accepted.
    pub dormant_repositories: usize,
    /// Issues, patches and pull requests.
    pub roots: usize,
    /// Of them, times that one waits for an announcement.
    pub orphans: usize,
    /// Relays that are targets, bootstrap relays among them.
    pub relays: usize,
    /// Relays that wait to be targets.
    pub relays_waiting: usize,
    /// Relay URLs.
    pub relay_urls: usize,
    /// Ids and addresses referred to.
    pub references: usize,
    /// Events judged good and not yet observed.
    pub promises: usize,
    /// Changes not yet handed out.
    pub changes: usize,
}
