//! A network in one thread and in virtual time: engines, relays, and everything that can go wrong between them.
//!
//! A [`World`] interprets the effects of its engines directly, without an executor: what is to happen later lies on a
//! heap ordered by moment and sequence, and the clocks stand still until it does. An honest relay is the relay service
//! of this crate over a store in memory ([`Honest`]); a faulty one is the same behind [`Tamper`]s, each of which may
//! answer, drop, alter, delay or repeat frames of either side, or close the connection.
//!
//! ```
//! use relaysync::engine::Config;
//! use relaysync::sim::{NOW_SECS, PageCap, Remote, World, notes};
//!
//! let mut world = World::new();
//! let events = notes(NOW_SECS - 100..NOW_SECS);
//! let relay = world.add_relay("wss://relay.example", Remote::with(&events).tamper(PageCap(20)));
//! let engine = world.add_engine(Config::one_shot());
//! world.sync(engine, &relay);
//! let reports = world.finish(engine);
//! assert!(reports[0].complete);
//! assert_eq!(world.held(engine).len(), 100);
//! ```

mod checks;
mod draft;
mod effects;
mod honest;
mod links;
mod node;
mod pool;
mod process;
mod remote;
mod step;
pub mod swarm;
pub mod tamper;
mod trace;
mod wire;
mod world;

pub use draft::{Draft, note, notes};
pub use honest::Honest;
pub use node::{DiskFaults, EngineId, Node, StoreFaults};
pub use pool::{authors, pool};
pub use remote::{Connects, Remote};
pub use tamper::{
    Altered, ClosesAfter, Direction, Eose, EoseFault, Ignores, Infinite, LateChallenge, LimitZero, Missing, NegRefusal,
    NegentropyRefused, NoOk, PageCap, RateLimit, RateLimitBy, Seen, ShortCodec, Shuffled, SubscriptionCap, Tamper,
    Turn,
};
pub use wire::NetFaults;
pub use world::{NOW_SECS, World};
