//! What a repository announcement says (NIP-34, kind 30617).

use std::cmp::Reverse;

use super::DiscoverConfig;
use crate::protocol::{Address, Event, RelayUrl, hex};

/// Which of several versions of an addressable event stands: the newest, of equal times the one with the lowest id.
/// The greater stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) created_at: u64,
    id: Reverse<[u8; 32]>,
}

impl Version {
    pub(super) fn of(event: &Event) -> Self {
        Self { created_at: event.created_at_secs(), id: Reverse(event.id.to_bytes()) }
    }

    /// The version that stands against all others of this second and of those before, in seconds since 1970.
    pub(super) fn last_of(second: u64) -> Self {
        Self { created_at: second, id: Reverse([0; 32]) }
    }

    pub(super) fn id(&self) -> &[u8; 32] {
        &self.id.0
    }
}

/// One announcement, read within the bounds of the configuration.
#[derive(Debug)]
pub(super) struct Announcement {
    pub(super) address: Address,
    pub(super) version: Version,
    /// From `relays` and from `clone`, in this order, each once.
    pub(super) relays: Vec<RelayUrl>,
    pub(super) maintainers: Vec<[u8; 32]>,
    pub(super) tally: Tally,
}

/// What an announcement had too much of, or wrong.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) urls_invalid: u64,
    pub(super) urls_skipped: u64,
    pub(super) maintainers_skipped: u64,
}

impl Announcement {
    /// Reads an event of kind 30617; `None` if the identifier is too long.
    pub(super) fn read(event: &Event, config: &DiscoverConfig) -> Option<Self> {
        let identifier = identifier(event);
        if identifier.len() > config.identifier_bytes_max {
            return None;
        }
        let mut announcement = Self {
            address: Address::repository(event.pubkey.to_bytes(), identifier),
            version: Version::of(event),
            relays: Vec::new(),
            maintainers: Vec::new(),
            tally: Tally::default(),
        };
        announcement.read_relays(event, config);
        announcement.read_maintainers(event, config);
        Some(announcement)
    }

    fn read_relays(&mut self, event: &Event, config: &DiscoverConfig) {
        let relays_max = config.relays_per_repository_max;
        for value in self.values(event, "relays", relays_max) {
            self.add_relay(value, config);
        }
        for value in self.values(event, "clone", relays_max) {
            if let Some(url) = grasp_relay(value) {
                self.add_relay(&url, config);
            }
        }
    }

    fn values<'e>(&mut self, event: &'e Event, name: &'e str, values_max: usize) -> Vec<&'e str> {
        let mut all = values(event, name);
        let values = all.by_ref().take(values_max).collect();
        self.tally.urls_skipped += all.count() as u64;
        values
    }

    fn add_relay(&mut self, text: &str, config: &DiscoverConfig) {
        let url = (text.len() <= config.relay_url_bytes_max).then(|| RelayUrl::parse(text));
        match url {
            Some(Ok(url)) if self.relays.contains(&url) => {}
            Some(Ok(url)) => self.relays.push(url),
            Some(Err(_)) | None => self.tally.urls_invalid += 1,
        }
    }

    fn read_maintainers(&mut self, event: &Event, config: &DiscoverConfig) {
        for value in values(event, "maintainers") {
            if self.maintainers.len() >= config.maintainers_per_repository_max {
                self.tally.maintainers_skipped += 1;
                continue;
            }
            if let Some(key) = decode_32(value)
                && !self.maintainers.contains(&key)
            {
                self.maintainers.push(key);
            }
        }
    }
}

/// The value of the first `d` tag, or nothing (NIP-01).
pub(super) fn identifier(event: &Event) -> &str {
    event.tags.iter().find(|tag| tag.kind() == "d").and_then(|tag| tag.content()).unwrap_or_default()
}

/// The values of all tags of this name; a tag may have many.
pub(super) fn values<'e>(event: &'e Event, name: &'e str) -> impl Iterator<Item = &'e str> {
    let tags = event.tags.iter().filter(move |tag| tag.kind() == name);
    tags.flat_map(|tag| tag.as_slice().iter().skip(1)).map(String::as_str)
}

/// The first values of all tags of this name.
pub(super) fn first_values<'e>(event: &'e Event, name: &'e str) -> impl Iterator<Item = &'e str> {
    event.tags.iter().filter(move |tag| tag.kind() == name).filter_map(|tag| tag.content())
}

/// An id or key as NIP-01 writes it; nobody finds one that is written otherwise.
pub(super) fn decode_32(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    hex::decode(text)?.try_into().ok()
}

/// The relay of the grasp server that serves this clone URL, `https://host[:port]/npub1…/name.git`; `None` if another
/// git host serves it.
fn grasp_relay(clone_url: &str) -> Option<String> {
    let (scheme, rest) = clone_url.trim().split_once("://")?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "https" => "wss",
        "http" => "ws",
        _ => return None,
    };
    let mut parts = rest.trim_end_matches('/').split('/');
    let (host, owner, name, nothing) = (parts.next()?, parts.next()?, parts.next()?, parts.next());
    let is_grasp = nothing.is_none() && is_npub(owner) && name.len() > ".git".len() && name.ends_with(".git");
    (is_grasp && !host.is_empty()).then(|| format!("{scheme}://{host}"))
}

/// Has it the form of a public key as NIP-19 writes it?
fn is_npub(text: &str) -> bool {
    const BECH32: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    text.strip_prefix("npub1").is_some_and(|rest| rest.len() == 58 && rest.chars().all(|char| BECH32.contains(char)))
}

#[cfg(test)]
mod tests {
    use super::super::draft::draft;
    use super::*;

    fn urls(announcement: &Announcement) -> Vec<&str> {
        announcement.relays.iter().map(RelayUrl::as_str).collect()
    }

    #[test]
    fn relays_come_from_relays_and_clone_tags() {
        let npub = format!("npub1{}", "q0".repeat(29));
        let event = draft(1, 30617)
            .tag(&["d", "a:b"])
            .tag(&["relays", "wss://A.example/", "wss://a.example", "nonsense"])
            .tag(&["relays", "ws://b.example:7000/x"])
            .tag(&["clone", &format!("https://c.example:8443/{npub}/a.git"), "https://github.example/a/b.git"])
            .tag(&["clone", &format!("http://d.example/{npub}/a.git/"), &format!("https://e.example/git/{npub}/a.git")])
            .event();
        let read = Announcement::read(&event, &DiscoverConfig::default()).unwrap();
        assert_eq!(urls(&read), ["wss://a.example", "ws://b.example:7000/x", "wss://c.example:8443", "ws://d.example"]);
        assert_eq!(&*read.address.identifier, "a:b");
        assert_eq!(read.tally, Tally { urls_invalid: 1, ..Tally::default() });
    }

    #[test]
    fn ten_thousand_relays_in_one_announcement_are_cut_to_the_bound() {
        let many: Vec<String> = (0..10_000).map(|n| format!("wss://r{n}.example")).collect();
        let tag: Vec<&str> = std::iter::once("relays").chain(many.iter().map(String::as_str)).collect();
        let event = draft(1, 30617).tag(&tag).event();
        let config = DiscoverConfig { relays_per_repository_max: 7, ..DiscoverConfig::default() };
        let read = Announcement::read(&event, &config).unwrap();
        assert_eq!((read.relays.len(), read.tally.urls_skipped), (7, 9_993));
    }

    #[test]
    fn of_versions_the_newest_stands_and_of_equal_times_the_lowest_id() {
        let version = |created_at, id| Version { created_at, id: Reverse([id; 32]) };
        assert!(version(2, 9) > version(1, 1));
        assert!(version(2, 1) > version(2, 9));
        assert!(Version::last_of(2) >= version(2, 0) && Version::last_of(2) < version(3, 255));
    }

    #[test]
    fn too_long_an_identifier_is_not_read() {
        let long = "x".repeat(100_000);
        assert!(Announcement::read(&draft(1, 30617).tag(&["d", &long]).event(), &DiscoverConfig::default()).is_none());
    }
}
