//! One remote relay: its connection, its health, its limits, and how to read its refusals.

pub mod budget;
pub mod health;
pub mod refusal;
pub mod session;
pub mod words;

pub use budget::Budget;
pub use health::{Health, HealthState};
pub use refusal::Refusal;
pub use session::{Purpose, Session};
pub use words::clip;
