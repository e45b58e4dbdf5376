//! Relays found through repository announcements (NIP-34), and what is fetched of them.

mod beside;
mod changes;
mod dials;
mod faults;
mod layers;
mod packs;
mod protected;
mod scenarios;
mod second_thoughts;
mod support;
