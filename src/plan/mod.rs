//! From what is wanted to what is to be done: target − pending − confirmed.
//!
//! [`Interest`]s are the atoms. [`Packs`] puts those of a relay together into as few filters as they fit in, a [`Pack`]
//! for each; what is in none yet is new. [`Progress`] knows how far the packs are, and [`windows_to_fetch`] what earlier
//! passes over one have proven.

mod coverage;
mod interest;
mod pack;
mod packs;
mod progress;

pub use coverage::{Todo, intersect, uncovered, windows_to_fetch, without};
pub use interest::Interest;
pub use pack::{ANNOUNCEMENT_KINDS, Pack};
pub use packs::{Packs, Replaced};
pub use progress::Progress;
