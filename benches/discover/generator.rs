//! Repositories on relays, and issues of them, by number: the same ones each time. The signatures are none.

use nostr::event::{EventId, Kind, Signature, Tag, Tags};
use nostr::key::PublicKey;
use nostr::types::Timestamp;
use relaysync::protocol::{Address, Event};

/// Relays that each repository lists beside our own.
const RELAYS_EACH: u64 = 3;

/// How much there is of everything.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) relays: u64,
    pub(crate) repositories: u64,
    pub(crate) roots: u64,
}

impl Scale {
    /// The announcement of repository number `n`. Some relays are listed far more often than others.
    pub(crate) fn announcement(&self, n: u64) -> Event {
        let mut dice = Dice::of(1, n);
        let mut relays = vec!["relays".to_owned(), "wss://ours.example".to_owned()];
        for _ in 0..RELAYS_EACH {
            let relay = dice.below(self.relays) * (1 + dice.below(self.relays)) / self.relays;
            relays.push(format!("wss://relay{relay}.example"));
        }
        let address = self.repository(n);
        let tags = [vec!["d".to_owned(), address.identifier.to_string()], relays];
        event(&mut dice, address.author, Address::REPOSITORY, &tags)
    }

    /// Issue number `n`. Some repositories have far more of them than others; one issue in fifty belongs to two.
    pub(crate) fn root(&self, n: u64) -> Event {
        let mut dice = Dice::of(2, n);
        let author = Dice::of(3, dice.below(1 + self.roots / 20)).bytes();
        let repositories = 1 + u64::from(dice.below(50) == 0);
        let tags: Vec<_> = (0..repositories)
            .map(|_| {
                let repository =
                    dice.below(self.repositories) * (1 + dice.below(self.repositories)) / self.repositories;
                vec!["a".to_owned(), self.repository(repository).to_string()]
            })
            .collect();
        event(&mut dice, author, 1621, &tags)
    }

    fn repository(&self, n: u64) -> Address {
        let author = Dice::of(4, n % (1 + self.repositories / 5)).bytes();
        Address::repository(author, &format!("repository-{n}"))
    }
}

fn event(dice: &mut Dice, author: [u8; 32], kind: u16, tags: &[Vec<String>]) -> Event {
    let tags = Tags::from_list(tags.iter().map(|tag| Tag::parse(tag).expect("it has a name")).collect());
    let (id, author) = (EventId::from_byte_array(dice.bytes()), PublicKey::from_byte_array(author));
    let at = Timestamp::from(1_700_000_000 + dice.below(10_000_000));
    nostr::event::Event::new(id, author, at, Kind::from_u16(kind), tags, "", Signature::from_byte_array([0; 64])).into()
}

/// The splitmix64 generator.
struct Dice(u64);

impl Dice {
    fn of(sort: u64, number: u64) -> Self {
        Self(sort << 56 ^ number.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&self.next().to_le_bytes()));
        bytes
    }
}
