//! relaysync keeps sets of Nostr events in step between relays and those that hold copies, and gives a true answer to
//! "is my copy complete?": **complete, or these gaps, for these reasons**.
//!
//! # The way of the data
//!
//! ```text
//! relay ──frame──▶ relay/session ──▶ fetch/{page,reconcile,split,ids} ──▶ ingest ──batch──▶ Store
//!                                           ▲                                      │ outcomes
//!                                           │ filters                              ▼
//!     plan: packs; target − pending − confirmed ◀── interests ── discover ◀── what is stored
//!                                                                                  │
//!                                relays that are published to, serve, hook ◀───────┘
//! ```
//!
//! - [`protocol`] turns bytes into types and back. No state, no time.
//! - [`discover`] keeps an index of the git repositories (NIP-34) that accepted events announce, and says which relays
//!   are to have what of them, and which events are wanted.
//! - [`plan`] knows what is wanted ([`plan::Interest`]), puts it into as few filters as it fits in ([`plan::Packs`]), and
//!   knows what earlier passes have proven ([`plan::windows_to_fetch`]).
//! - [`fetch`] has one small machine for each way to fetch: pages, reconciliation (NIP-77), parts of a second that
//!   overflows a page, ids; and publishing. A [`fetch::History`] drives them for one filter at one relay.
//! - [`ingest`] is the one way into the store: match, drop what is not wanted or known, check the signature, commit, in
//!   order. Only its verifying stage makes a [`ingest::Verified`], and a store takes nothing else.
//! - [`relay`] is what is known of one relay: session, health, limits, and how to read its refusals.
//! - [`engine`] owns all of that: a pure state machine. [`store`] has the trait of stores, and one in memory.
//! - [`job`] is what most embedders want: jobs that can be waited for, publishing with answers, what is newly held as it
//!   comes, over any runtime.
//! - [`runtime`] has the traits of clock and sockets; [`drive`] is the one async interpreter of the engine's effects.
//! - [`peer`] has configured peers: how they prove who they are, and who may read and write what is protected. What an
//!   operator says of them is kept by `native::control`.
//! - [`serve`] is the other side: a relay, without sockets. `native` (feature) binds everything to tokio, sockets and
//!   files, holds relays to their [`peer::TlsTerms`], has the daemon (`native::daemon`) and the `relaysync` program.
//! - `browser` (feature, for WebAssembly only) binds everything to WebSockets, timers and IndexedDB, checks signatures many at
//!   a time, and is what the npm package in `bindings/` is made of. Its store, [`store::packed`], keeps few large records
//!   over anything that keeps named bytes, and can be tested without a browser.
//! - `sim` (feature `testing`) runs engines and relays in one thread and in virtual time, with every fault that can be
//!   thought of. Everything said here is checked there.
//!
//! # Discovery
//!
//! Who hosts git repositories wants what belongs to them: announcements, states and lists of grasp servers (layer 1),
//! what refers to the repositories (layer 2), and what refers to their issues, patches and pull requests (layer 3). Where
//! to find it, the announcements say. So everything that is stored, by whatever way, is observed; once every batch window
//! the relays that are concerned are told what more, or less, is wanted of them ([`engine::Command::ChangeInterests`] does
//! the same for an embedder), and what is new of it is fetched and followed. One issue more costs what its own relays
//! cost. What comes from a relay is judged before its signature is checked, and what clients publish after it
//! ([`engine::Command::Judge`]).
//!
//! Up to a hundred interests go into a filter, and several filters into a live subscription, as far as the relay takes
//! them. What drips in makes small filters; when there are more than relays like, those that are fetched are put together,
//! which keeps what is proven of them and fetches nothing again. What is put together is kept with the coverage marks, so
//! that a restart finds the same filters.
//!
//! # Configured peers
//!
//! A relay can be a peer on terms ([`engine::Command::SetPeer`], [`peer`]): nothing is said to it, and nothing taken,
//! before its information document has named its key, on each connection anew. What it brings counts as written by that
//! key, what is published to it and compared with it as read by it, and [`peer::AccessRules`] say what of that is
//! allowed, at the moment at which it is stored or sent. What they do not allow is as if it were not there, and what is
//! not synced for that reason is named in [`engine::RelayReport::denied`]. Where a peer asks who we are, nothing is asked
//! of it before it knows, as it may leave out what it hides from strangers; and when it lets us see more, all is asked
//! again. No relay says so of what it grants while the link is down: a peer that asks who we are is looked at whole after
//! every absence, however short. Proofs hold by the rules by which they were made, for who the peer was and for whom it
//! took us, and for no others.
//!
//! What a peer may write and not read has a price: nothing that we send may tell it what of that we hold, so it is compared
//! as if nothing were held, and fetched anew by each pass over the whole, once a day and after every absence. Grant
//! `sync_read`, too, for what a peer brings, unless it must not learn what others have brought.
//!
//! # Staying in step
//!
//! A job that ends makes one pass over its filters. Who stays ([`engine::RelayOptions::live`]) follows each filter by a
//! live subscription, opened before its history so that nothing falls between the two. That alone does not keep a copy
//! complete, so:
//!
//! - **Probe**: a connection on which no request was answered for a minute is asked for an event that cannot be. If
//!   nothing comes, it is cut. Only an answer proves what a live subscription has sent until then; so far, what was
//!   proven counts as followed, and its [`store::Proof`] says so.
//! - **Quick pass**: after an absence of up to a quarter of an hour, counted from the disconnect, only what is dated
//!   since the last proven moment is fetched, with an overlap.
//! - **Full pass**: after a longer one, when the wall clock was set back, and once a day in any case, everything is
//!   fetched again and no earlier proof counts. What a relay got meanwhile with an old date is found by this alone;
//!   until then no proof claims it, and [`engine::RelayReport::relied_on_secs`] says as of when older dates are known.
//! - **Retry**: filters with gaps are looked at again, less and less often.
//! - **Poll**: what a relay does not serve live is fetched every ten minutes, and tried live again.
//! - **Pass on**: what others bring is published at once to relays that are published to.
//! - **Wake** ([`engine::Command::Wake`]): after a sleep or a change of the network every connection is probed, and
//!   relays that are down may be tried at once. A deadline missed by far does the same.
//!
//! Each interval is a named value of [`engine::Config`].
//!
//! # The run-loop contract
//!
//! The engine has no clock, socket, store, task, lock or randomness inside. Three calls drive it, always in this order:
//! *mutate* with [`engine::Engine::handle`], *drain* [`engine::Engine::poll_effect`] to the end, then *wait* until
//! [`engine::Engine::deadline`] or until something happens. What a remote does is never an error, only effects,
//! counters and gaps. A panic is a bug here; nothing that a relay sends may cause one.
//!
//! This is a whole run loop, against a store in memory and a relay that cannot be reached:
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use relaysync::engine::{Command, Config, Effect, Engine, Input, Notice, RelayOptions};
//! use relaysync::plan::Interest;
//! use relaysync::protocol::{Filter, RelayUrl};
//! use relaysync::runtime::{CloseReason, ConnectError, Instant, Now};
//! use relaysync::store::Snapshot;
//!
//! let mut now = Now { instant: Instant::ZERO, unix_secs: 1_700_000_000 };
//! let mut engine = Engine::new(Config::one_shot(), Snapshot::default(), 7, now);
//! let mut inputs = vec![Input::Command(Command::SetInterests {
//!     relay: RelayUrl::parse("wss://relay.example").unwrap(),
//!     interests: [Interest::Opaque(Arc::new(Filter::new()))].into(),
//!     options: RelayOptions::default(),
//! })];
//! let reports = 'run: loop {
//!     for input in inputs.drain(..) {
//!         engine.handle(input, now);                                    // mutate
//!     }
//!     while let Some(effect) = engine.poll_effect() {                   // drain
//!         match effect {
//!             Effect::Connect { conn, .. } => inputs.push(Input::Disconnected {
//!                 conn,
//!                 reason: CloseReason::Connect(ConnectError::TimedOut),
//!             }),
//!             Effect::LoadItems { ticket, .. } => inputs.push(Input::Items { ticket, result: Ok(Arc::default()) }),
//!             Effect::Commit { ticket, batch } => {
//!                 assert!(batch.events.is_empty(), "nothing came");
//!                 inputs.push(Input::Committed { ticket, result: Ok(Vec::new()) });
//!             }
//!             Effect::Notify(Notice::Finished(reports)) => break 'run reports,
//!             _ => {}
//!         }
//!     }
//!     if inputs.is_empty() {
//!         let (at, _why) = engine.deadline().expect("until it has finished, it waits for something");
//!         let waited = at - now.instant;                                // wait (here: let time jump)
//!         now = Now { instant: at, unix_secs: now.unix_secs + waited.as_secs() };
//!         inputs.push(Input::Tick);
//!     }
//! };
//! assert!(!reports[0].complete);
//! assert_eq!(reports[0].gaps.len(), 1);
//! println!("{}: {}", reports[0].relay, reports[0].gaps[0]);
//! # assert!(now.instant - Instant::ZERO < Duration::from_secs(60));
//! ```
//!
//! # Rules that prevent real faults
//!
//! 1. A store commits batches as a whole, durable on return, idempotent by id. A coverage mark rides behind the events
//!    that it covers.
//! 2. An id counts as known only once it is committed: a forged copy never suppresses the honest one.
//! 3. Every connection attempt has an id of its own; what arrives late for an old one is dropped by construction.
//! 4. Page caps are learned. What cannot be proven complete is a gap on record.
//! 5. The driver awaits in one place; sending never waits.
//! 6. Everything is bounded, by values named in [`engine::Config`], `native::SocketConfig` and [`serve::ServeConfig`].
//! 7. No order depends on chance or on a hash; no logic reads a clock.
//! 8. One relay never delays another: cooldowns and backoff are deadlines.
//! 9. Wall time is an input that may step or be wrong; intervals use the monotonic clock.
//!
//! # Features
//!
//! `native` (default): tokio, sockets, TLS, the store on disk, the program. `testing`: generated events, the simulation,
//! faults put into the engine on purpose and, with `native`, `relaysync sim`. `browser`, for WebAssembly:
//! WebSockets, IndexedDB and what JavaScript sees (`browser`, and `bindings/`). With none of them
//! the IO-free core builds, for `wasm32-unknown-unknown` too.

#[cfg(all(feature = "browser", target_family = "wasm"))]
pub mod browser;
pub mod discover;
pub mod drive;
pub mod engine;
pub mod fetch;
pub mod ingest;
pub mod job;
#[cfg(feature = "native")]
pub mod native;
pub mod peer;
pub mod plan;
pub mod protocol;
pub mod relay;
pub mod runtime;
#[cfg(any(feature = "native", feature = "testing"))]
pub mod sample;
pub mod serve;
#[cfg(feature = "testing")]
pub mod sim;
pub mod store;
