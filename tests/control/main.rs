//! The control plane's files: what is told is kept, whatever happens to the process, and what is damaged is named.
#![cfg(all(feature = "native", unix))]

mod concurrent;
mod daemon;
mod damage;
mod identity;
mod kill;
mod peers;
mod support;
