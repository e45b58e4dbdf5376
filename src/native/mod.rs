//! The native runtime.

pub mod store;
