//! Relays found through repository announcements (NIP-34), and what is fetched of them.

mod dials;
mod layers;
mod packs;
mod support;
