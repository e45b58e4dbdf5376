//! Why a daemon cannot start.

use std::fmt;

use crate::native::ConfigError;
use crate::native::control::ControlError;
use crate::native::hook::HookError;
#[cfg(unix)]
use crate::native::rpc::SocketError;
use crate::native::serve::BindError;
use crate::native::store::StoreError;

/// Why a daemon cannot start.
#[derive(Debug)]
pub enum DaemonError {
    /// The store cannot be opened.
    Store(StoreError),
    /// The control plane's files cannot be used, or our secret key cannot.
    Control(ControlError),
    /// The control plane's socket cannot be made.
    #[cfg(unix)]
    Socket(SocketError),
    /// The hook cannot begin.
    Hook(HookError),
    /// An address cannot be listened on.
    Bind(BindError),
    /// Sockets cannot be set up as configured.
    Sockets(ConfigError),
}

impl fmt::Display for DaemonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Control(error) => error.fmt(f),
            #[cfg(unix)]
            Self::Socket(error) => error.fmt(f),
            Self::Hook(error) => error.fmt(f),
            Self::Bind(error) => error.fmt(f),
            Self::Sockets(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DaemonError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Control(error) => Some(error),
            #[cfg(unix)]
            Self::Socket(error) => Some(error),
            Self::Hook(error) => Some(error),
            Self::Bind(error) => Some(error),
            Self::Sockets(error) => Some(error),
        }
    }
}

impl From<StoreError> for DaemonError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ControlError> for DaemonError {
    fn from(error: ControlError) -> Self {
        Self::Control(error)
    }
}

#[cfg(unix)]
impl From<SocketError> for DaemonError {
    fn from(error: SocketError) -> Self {
        Self::Socket(error)
    }
}

impl From<HookError> for DaemonError {
    fn from(error: HookError) -> Self {
        Self::Hook(error)
    }
}

impl From<BindError> for DaemonError {
    fn from(error: BindError) -> Self {
        Self::Bind(error)
    }
}

impl From<ConfigError> for DaemonError {
    fn from(error: ConfigError) -> Self {
        Self::Sockets(error)
    }
}
