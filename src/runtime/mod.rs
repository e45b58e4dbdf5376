//! What a runtime provides: a clock, sockets, a store, and somewhere to run. The native and the browser runtime
//! implement these traits; [`drive`](crate::drive) is the one interpreter over them.

mod maybe_send;
mod time;
mod transport;

pub use maybe_send::{MaybeSend, MaybeSync};
pub use time::{Clock, Instant, Now};
pub use transport::{
    CloseReason, ConnectError, Connector, Dial, FailureKind, Frame, FrameReceiver, FrameSender, Runtime, SendError,
    SignError,
};
