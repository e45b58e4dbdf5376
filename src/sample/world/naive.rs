//! A daemon without any cleverness: asks every relay that it knows for everything that it wants, until nothing new
//! comes. Knows the rules of acceptance, and nothing of how the world was made.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use crate::protocol::{Address, Event, RelayUrl, hex};

type Id = [u8; 32];

/// What is held, and what follows from it.
#[derive(Default)]
struct Daemon {
    held: BTreeMap<Id, Event>,
    deleted: BTreeSet<Id>,
    /// Accepted repositories, and the relays that they list.
    repositories: BTreeMap<Address, BTreeSet<RelayUrl>>,
    /// Issues, patches and pull requests, and the repositories that they are about.
    roots: BTreeMap<Id, BTreeSet<Address>>,
}

/// What it holds in the end, and the relays that it has come to know.
pub(super) fn crawl(world: &World) -> (BTreeSet<Id>, BTreeSet<RelayUrl>) {
    let service = &world.config().service_url;
    let genuine: Vec<Vec<&Event>> = (0..world.relays().len())
        .map(|relay| world.held_by(relay).filter(|event| event.verify().is_ok()).collect())
        .collect();
    let mut daemon = Daemon::default();
    loop {
        let before: Vec<Id> = daemon.held.keys().copied().collect();
        let known = daemon.relays(&world.relays()[0]);
        for (url, events) in world.relays().iter().zip(&genuine).filter(|(url, _)| known.contains(*url)) {
            for event in events {
                if daemon.asks(url, event) && daemon.wants(event, service) {
                    daemon.hold((*event).clone());
                    daemon.learn(service);
                }
            }
        }
        if daemon.held.keys().copied().eq(before) {
            return (daemon.held.into_keys().collect(), known);
        }
    }
}

impl Daemon {
    fn relays(&self, bootstrap: &RelayUrl) -> BTreeSet<RelayUrl> {
        self.repositories.values().flatten().chain([bootstrap]).cloned().collect()
    }

    fn is_about(&self, address: &Address, relay: &RelayUrl) -> bool {
        self.repositories.get(address).is_some_and(|relays| relays.contains(relay))
    }

    /// Does a filter for this relay select the event?
    fn asks(&self, relay: &RelayUrl, event: &Event) -> bool {
        matches!(event.kind_number(), 30617 | 30618 | 10317)
            || references(event).any(|(name, value)| match name {
                "a" | "A" => Address::parse(value).is_ok_and(|address| self.is_about(&address, relay)),
                "e" | "E" => self.is_root_at(value, relay),
                "q" => {
                    self.is_root_at(value, relay)
                        || Address::parse(value).is_ok_and(|address| self.is_about(&address, relay))
                }
                _ => false,
            })
    }

    fn is_root_at(&self, value: &str, relay: &RelayUrl) -> bool {
        root(value)
            .and_then(|id| self.roots.get(&id))
            .is_some_and(|owners| owners.iter().any(|owner| self.is_about(owner, relay)))
    }

    /// Is it to be held?
    fn wants(&self, event: &Event, service: &RelayUrl) -> bool {
        let id = event.id.to_bytes();
        if self.deleted.contains(&id) || self.held.values().any(|held| supersedes(held, event)) {
            return false;
        }
        match event.kind_number() {
            30617 => lists(event, service),
            30618 => self.repositories.keys().any(|address| {
                Some(&*address.identifier) == event.tags.identifier().as_deref() && self.has_say(event, address)
            }),
            10317 => {
                self.repositories.keys().any(|address| address.author == event.pubkey.to_bytes())
                    || values(event, "g").any(|value| RelayUrl::parse(value).is_ok_and(|url| url == *service))
            }
            _ => references(event).any(|(_, value)| {
                Address::parse(value).is_ok_and(|address| self.repositories.contains_key(&address))
                    || root(value).is_some_and(|id| self.roots.contains_key(&id))
            }),
        }
    }

    fn has_say(&self, event: &Event, address: &Address) -> bool {
        let author = event.pubkey.to_hex();
        let announcement = self.held.values().find(|held| address_of(held).as_ref() == Some(address));
        hex::encode(&address.author) == author
            || announcement.is_some_and(|announcement| values(announcement, "maintainers").any(|key| key == author))
    }

    fn hold(&mut self, event: Event) {
        self.held.retain(|_, held| !supersedes(&event, held));
        if event.kind_number() == 5 {
            for id in values(&event, "e").filter_map(root) {
                if self.held.get(&id).is_some_and(|held| held.pubkey == event.pubkey) {
                    self.held.remove(&id);
                    self.deleted.insert(id);
                }
            }
        }
        self.held.insert(event.id.to_bytes(), event);
    }

    fn learn(&mut self, service: &RelayUrl) {
        let announcements = self.held.values().filter(|event| lists(event, service));
        self.repositories =
            announcements.filter_map(|event| Some((address_of(event)?, targets(event, service)))).collect();
        let roots = self.held.values().filter(|event| matches!(event.kind_number(), 1617 | 1618 | 1621));
        self.roots = roots
            .map(|event| {
                let named = values(event, "a").filter_map(|value| Address::parse(value).ok());
                (event.id.to_bytes(), named.filter(|address| self.repositories.contains_key(address)).collect())
            })
            .filter(|(_, owners): &(_, BTreeSet<Address>)| !owners.is_empty())
            .collect();
    }
}

fn values<'event>(event: &'event Event, name: &str) -> impl Iterator<Item = &'event str> {
    let named = event.tags.iter().filter(move |tag| tag.as_slice().first().is_some_and(|first| first == name));
    named.flat_map(|tag| tag.as_slice().iter().skip(1)).map(String::as_str)
}

/// The tags that refer to something: name and value.
fn references(event: &Event) -> impl Iterator<Item = (&str, &str)> {
    event.tags.iter().filter_map(|tag| match tag.as_slice() {
        [name, value, ..] if matches!(&**name, "a" | "A" | "e" | "E" | "q") => Some((&**name, &**value)),
        _ => None,
    })
}

fn root(value: &str) -> Option<Id> {
    hex::decode(value)?.try_into().ok()
}

fn address_of(event: &Event) -> Option<Address> {
    let identifier = event.tags.identifier()?;
    (event.kind_number() == 30617).then(|| Address::repository(event.pubkey.to_bytes(), &identifier))
}

/// The relays that an announcement lists, and the hosts of its grasp servers as relays.
fn targets(announcement: &Event, service: &RelayUrl) -> BTreeSet<RelayUrl> {
    let relays = values(announcement, "relays").map(str::to_owned);
    let servers = values(announcement, "clone").filter(|url| url.contains("/npub1")).map(|url| {
        let host = url.split("/npub1").next().unwrap_or_default();
        host.replacen("http", "ws", 1)
    });
    relays.chain(servers).filter_map(|url| RelayUrl::parse(&url).ok()).filter(|url| url != service).collect()
}

fn lists(event: &Event, service: &RelayUrl) -> bool {
    let with_service = targets(event, &RelayUrl::parse("wss://nobody.example").expect("it is a URL"));
    event.kind_number() == 30617 && with_service.contains(service)
}

/// Does a newer version, or of equally old ones that with the lower id, take the place of `old`?
fn supersedes(new: &Event, old: &Event) -> bool {
    let is_version = (new.kind.is_replaceable() || new.kind.is_addressable())
        && (new.kind, new.pubkey) == (old.kind, old.pubkey)
        && (new.kind.is_replaceable() || new.tags.identifier() == old.tags.identifier());
    let newer = new.created_at_secs() > old.created_at_secs()
        || new.created_at_secs() == old.created_at_secs() && new.id < old.id;
    is_version && newer
}
