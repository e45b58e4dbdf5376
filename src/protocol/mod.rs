//! Bytes ⇄ types: events, filters, messages, relay information, item sets. No state, no time.

pub mod address;
pub mod event;
pub mod filter;
pub mod hex;
pub mod items;
pub mod lines;
pub mod message;
pub mod relay_info;
pub mod relay_url;

pub use address::{Address, AddressError};
pub use event::{Event, EventError, EventId, PublicKey};
pub use filter::{Filter, FilterError, FilterKey, Window};
pub use items::{Item, ItemSet, ItemView};
pub use message::{ClientMessage, MessageError, RelayMessage};
pub use relay_info::RelayInfo;
pub use relay_url::{RelayUrl, RelayUrlError};
