//! The control plane for others: JSON-RPC over HTTP, in the manner of NIP-86.
//!
//! A call is a POST of content type `application/nostr+json+rpc` with a body like `{"method":"getpeer","params":["a"]}`.
//! The answer is `{"result":…}`, or `{"result":null,"error":"…"}` with a status that says whose fault it is. It is taken
//! - by the admin server and at the relay's own URL, from keys that may govern, who sign each call (NIP-98);
//! - on a unix socket, which only its owner can use, without that.
//!
//! | method | parameters | result |
//! |---|---|---|
//! | `supportedmethods` | | names of methods |
//! | `getidentity` `ensureidentity` `rotateidentity` | | who we are; `null` from the first if we are nobody yet |
//! | `importidentity` | secret key | who we are; over the socket only |
//! | `grantaccess` `revokeaccess` | rule | `{"changed":…}` |
//! | `moveaccess` | from, to | `{"moved":…}`, a number of rules |
//! | `listaccess` | | rules, and whose keys they grant to |
//! | `protectevents` `unprotectevents` | filter | `{"changed":…}` |
//! | `listprotected` | | what is protected |
//! | `putpeer` | peer | the peer |
//! | `getpeer` `startpeer` `stoppeer` | name | the peer |
//! | `listpeers` | | all peers |
//! | `removepeer` | name | `{"changed":…}` |
//! | `syncpeer` | name | `true`: everything is looked at again |
//! | `peerstats` | name | what was counted at the peer |
//! | `syncstats` `synchealth` | | the same of all; is sync working? |
//! | `eventcontext` | id of an event | which peer has brought it, and when; else `null` |
//!
//! Rules, peers and what is answered have the forms of [`crate::peer`].

mod admission;
mod authorization;
mod body;
#[cfg(unix)]
mod client;
mod config;
mod desk;
mod methods;
mod params;
#[cfg(unix)]
mod socket;

pub use config::RpcConfig;
pub use desk::Rpc;
#[cfg(unix)]
pub use socket::{RpcSocket, SocketError};

#[cfg(unix)]
pub(in crate::native) use client::{AskError, ask};
pub(in crate::native) use desk::Way;
pub(in crate::native) use methods::{Asked, Blame, Fault, carry_out};
