//! A network in one thread and in virtual time: engines, relays, and everything that can go wrong between them.
//!
//! A [`World`] interprets the effects of its engines directly, without an executor: what is to happen later lies on a
//! heap ordered by moment and sequence, and the clocks stand still until it does. All chance comes from the world's
//! seed, so that the same seed goes the same way on every machine, and in wasm: [`World::trace_hash`] tells.
//!
//! # What can go wrong
//!
//! - **Relays**: an honest one is the relay service of this crate over a store in memory ([`Honest`]); a faulty one is
//!   the same behind [`Tamper`]s, each of which may answer, drop, alter, delay or repeat frames of either side, or close
//!   the connection. [`Remote::connects`] and [`Remote::info`] say what becomes of connection attempts and of requests
//!   for the relay information document.
//! - **The network** ([`NetFaults`], by relay): attempts that fail or hang, latency and jitter, connections that break,
//!   that are dead without a word, or that pass every frame late.
//! - **Stores**: what is being written is not durable until it is. [`StoreFaults`] fail at a given call,
//!   [`DiskFaults`] by chance: slow, failing or full.
//! - **Processes**: [`World::crash`] and [`World::restart`] leave what was durable; what was being written at that
//!   moment became durable as a whole, or not at all.
//! - **Clients and operators** of a daemon that discovers relays: clients of its own relay service publish what it then
//!   judges ([`World::publish_to`]), what is accepted changes, what is held is told to a started engine in any order.
//! - **Clocks**: the wall clock of all steps ([`World::step_wall`]) or that of one engine is off
//!   ([`World::set_wall_offset`]), a machine sleeps with or without its monotonic clock ([`World::suspend`]), timers
//!   are late ([`Node::late_max`]).
//!
//! # What is checked
//!
//! The world looks at every input that an engine handles, and panics where something does not hold that always must:
//! effects and what the engine holds are bounded; what is stored is wanted and genuine; limits, cooldowns and the
//! backoff are kept; nothing is asked for ever; what discovery accepts is what a naive model of it accepts; a coverage mark claims nothing that is missing, as of the moment that it
//! names; a short absence of a relay that was followed costs little; nothing is said to a peer before it
//! has proven who it is, nothing protected is stored whose bringer may not write it, and nothing published to who may not
//! read it.
//!
//! # The swarm
//!
//! [`swarm`] draws all of it from a seed: relays, events, wishes and a random set of faults, each with a rate of its own.
//! Then the faults stop, and all that honest relays hold must arrive, and silence follow. One seed in three goes on with
//! a daemon that discovers relays, in a small world of repositories ([`repository_pool`]): everything wanted at any relay
//! that can be found must arrive. One in five goes on with configured peers, access rules and keys on both sides, all of
//! which change at any time. With feature `native`,
//! `native::swarm` plays many seeds on all cores. [`Planted`](crate::engine::Planted) faults of the engine, which the
//! swarm must catch, show that the checks are worth something.
//!
//! # A world of one's own
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

mod acceptance;
mod checks;
mod discovering;
mod draft;
mod effects;
mod honest;
mod links;
mod node;
mod peers;
mod pool;
mod process;
mod remote;
mod repositories;
mod step;
pub mod swarm;
pub mod tamper;
mod trace;
mod wire;
mod world;

pub use draft::{Draft, key_of, note, notes};
pub use honest::{Honest, plain_relay};
pub use node::{DiskFaults, EngineId, Node, StoreFaults};
pub use pool::{authors, pool};
pub use remote::{Connects, Remote};
pub use repositories::{LISTED_RELAYS, OUR_SERVICE, listed_relay, repository_pool};
pub use tamper::{
    Altered, ClosesAfter, Direction, Eose, EoseFault, Ignores, Infinite, LateChallenge, LimitZero, Missing, NegRefusal,
    NegentropyRefused, NoOk, PageCap, RateLimit, RateLimitBy, Seen, ShortCodec, Shuffled, SubscriptionCap, Tamper,
    Turn,
};
pub use wire::NetFaults;
pub use world::{NOW_SECS, World};
