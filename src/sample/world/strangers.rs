//! What must not be held: foreign repositories and all around them, notes, forgeries, and what is out of reach.

use super::scribe::{Forgery, Scribe, Sketch};
use super::tags::{clone_url, tag};
use super::{Claim, Reason};
use crate::protocol::Address;
use crate::sample::Draft;
use crate::sample::words::prose;

/// A repository that does not list our service.
struct Foreign {
    address: Address,
    reason: Reason,
    /// An issue of it, once there is one.
    issue: Option<super::tags::Target>,
}

impl Scribe {
    /// Writes strangers' events until there are so many events in all.
    pub(super) fn write_strangers(&mut self, events: usize) {
        let left = events.saturating_sub(self.sketches.len());
        let mut foreign: Vec<Foreign> = (0..(left / 8).max(1)).map(|number| self.foreign(number)).collect();
        let honest = self.sketches.len();
        let mut turn = 0;
        while self.sketches.len() < events {
            match turn % 8 {
                0..=2 => {
                    let place = self.dice.index(foreign.len());
                    self.about_foreign(&mut foreign[place]);
                }
                3 => self.unrelated(),
                4 => self.too_deep(),
                5 => self.usurper(turn),
                6 => self.forgery(honest, Forgery::Content),
                _ => self.forgery(honest, Forgery::Signature),
            }
            turn += 1;
        }
    }

    /// Announced anywhere, with our relays, one that must never be called, and not with our service.
    fn foreign(&mut self, number: usize) -> Foreign {
        let reason = if number % 3 == 2 { Reason::LookAlike } else { Reason::Foreign };
        let (author, service) = (self.stranger(), self.config().service_url.clone());
        let (key, identifier) = (self.key(author), format!("foreign-{number}"));
        let place = self.dice.index(self.config().relays.len());
        let relay = self.config().relays[place].clone();
        let look_alikes = [
            format!("wss://{}.evil.example", service.host()),
            format!("wss://evil.example/{}", service.host()),
            format!("wss://evil.example/?to={service}"),
        ];
        let mut listed = vec!["relays".to_owned(), relay.to_string(), "wss://foreign.example".to_owned()];
        if reason == Reason::LookAlike {
            listed.extend(look_alikes);
        }
        let tags = vec![
            tag(["d", &identifier]),
            tag(["name", &identifier]),
            tag([
                "clone",
                &clone_url(&relay, &key, &identifier),
                &format!("https://evil.example/{}.git", service.host()),
            ]),
            tag(listed),
        ];
        self.stray(author, 30617, tags, String::new(), reason);
        Foreign { address: Address::repository(key.to_bytes(), &identifier), reason, issue: None }
    }

    fn about_foreign(&mut self, foreign: &mut Foreign) {
        let (address, author) = (foreign.address.to_string(), self.stranger());
        let content = format!("{} [{}]", prose(&mut self.dice, 80), self.serial());
        match &foreign.issue {
            None => {
                let tags = vec![tag(["a", &address])];
                foreign.issue = Some(self.stray(author, 1621, tags, content, foreign.reason));
            }
            Some(issue) => {
                let (kind, tags) = match self.dice.below(5) {
                    0 => (1111, [issue.as_root(), issue.as_parent()].concat()),
                    1 => (1, vec![tag(["q", &address])]),
                    2 => (1630, vec![issue.marked("root"), tag(["a", &address])]),
                    3 => (1, vec![issue.quoted()]),
                    _ => (1617, vec![tag(["a", &address]), tag(["t", "root"])]),
                };
                self.stray(author, kind, tags, content, foreign.reason);
            }
        }
    }

    fn unrelated(&mut self) {
        let author = self.stranger();
        let content = format!("{} [{}]", prose(&mut self.dice, 80), self.serial());
        self.stray(author, 1, vec![tag(["t", "nostr"])], content, Reason::Unrelated);
    }

    /// An answer to a comment that leaves out the root.
    fn too_deep(&mut self) {
        let comments =
            self.repositories().iter().flat_map(|repository| &repository.roots).flat_map(|root| &root.comments);
        let comments: Vec<_> = comments.take(100).cloned().collect();
        let author = self.contributor();
        let content = format!("{} [{}]", prose(&mut self.dice, 80), self.serial());
        let tags = match comments.len() {
            0 => vec![tag(["t", "nostr"])],
            len => vec![comments[self.dice.index(len)].marked("reply")],
        };
        self.stray(author, 1, tags, content, Reason::TooDeep);
    }

    /// A state of an accepted repository by nobody who has a say in it; an issue for such a one's copy.
    fn usurper(&mut self, turn: usize) {
        let number = self.dice.index(self.repositories().len());
        let (identifier, author) = (self.repository(number).identifier.clone(), self.stranger());
        if turn % 16 < 8 {
            let commit = self.dice.hex();
            let tags = vec![tag(["d", &identifier]), tag(["refs/heads/main", &commit[..40]])];
            // Another state of its may be there already, and relays keep but the newest.
            self.stray(author, 30618, tags, String::new(), Reason::Usurper);
        } else {
            let address = Address::repository(self.key(author).to_bytes(), &identifier);
            let content = format!("{} [{}]", prose(&mut self.dice, 80), self.serial());
            self.stray(author, 1621, vec![tag(["a", &address.to_string()])], content, Reason::Usurper);
        }
    }

    /// A false copy of an honest event, at a relay of the repository that does not have the honest one.
    fn forgery(&mut self, honest: usize, forgery: Forgery) {
        let begin = self.dice.index(honest);
        let copied = (0..honest).map(|step| (begin + step) % honest).find_map(|place| {
            let relay = self.free_relay(&self.sketches[place])?;
            Some((place, relay))
        });
        let Some((place, relay)) = copied else { return self.unrelated() };
        let Draft { id, author, created_at, kind, tags, content } = &self.sketches[place].draft;
        let (id, author, created_at, kind) = (*id, *author, *created_at, *kind);
        let draft = Draft { id, author, created_at, kind, tags: tags.clone(), content: content.clone() };
        let reason = match forgery {
            Forgery::Content => Reason::ForgedContent,
            Forgery::Signature => Reason::ForgedSignature,
        };
        let claim = Claim::Unwanted(reason);
        self.sketches.push(Sketch { draft, relays: [relay].into(), claim, forgery: Some(forgery) });
    }

    /// A relay at which a copy of this event could be put: only of regular ones, as relays keep the newest of others.
    fn free_relay(&self, sketch: &Sketch) -> Option<usize> {
        let kind = sketch.draft.kind;
        let is_honest = sketch.forgery.is_none() && matches!(sketch.claim, Claim::Wanted(_));
        if !is_honest || !kind.is_regular() || kind.as_u16() == 5 || self.has_forgery(sketch) {
            return None;
        }
        let named = sketch.draft.tags.iter().find_map(|tag| Address::parse(tag.as_slice().get(1)?).ok())?;
        let repository = self.repositories().iter().find(|repository| repository.address() == named)?;
        repository.relays.difference(&sketch.relays).next().copied()
    }

    fn has_forgery(&self, sketch: &Sketch) -> bool {
        self.sketches.iter().rev().any(|other| other.forgery.is_some() && other.draft.id == sketch.draft.id)
    }

    fn stray(
        &mut self,
        author: usize,
        kind: u16,
        tags: Vec<nostr::event::Tag>,
        content: String,
        reason: Reason,
    ) -> super::tags::Target {
        let relay = self.dice.index(self.config().relays.len());
        self.write(author, kind, tags, content, [relay].into(), Claim::Unwanted(reason))
    }
}
