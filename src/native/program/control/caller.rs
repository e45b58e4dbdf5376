//! Who carries calls out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::ControlArguments;
use crate::native::control::{Control, ControlConfig, ControlError, FileError, FileFault};
use crate::native::program::config::settings;
use crate::native::program::{Failure, store};
#[cfg(unix)]
use crate::native::rpc::{AskError, ask};
use crate::native::rpc::{Asked, Blame, Fault, carry_out};
use crate::native::settings::{Flag, Settings};
use crate::protocol::EventId;
use crate::store::{RequestContext, Store};

/// A daemon that does not answer within this time is not well.
#[cfg(unix)]
const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);

/// How often it is looked whether a daemon listens by now, or the files are free.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// Whoever carries calls out: a daemon, or we ourselves.
pub(super) enum Caller {
    /// The daemon at this socket.
    Daemon(PathBuf),
    /// Nobody else has the files.
    Files {
        /// They are open.
        control: Control,
        /// Where the events are.
        store: PathBuf,
    },
}

impl Caller {
    /// Finds the daemon, else opens its files.
    pub(super) async fn find(arguments: &ControlArguments) -> Result<Self, Failure> {
        if let Some(socket) = &arguments.socket {
            return match listens(socket).await? {
                true => Ok(Self::Daemon(socket.clone())),
                false => Err(Failure::new(format!("no daemon listens at {}", socket.display()))),
            };
        }
        let flags = arguments.store.iter().map(|path| Flag::new("--store", "store.path", path)).collect();
        let (_, loaded) = settings(arguments.config.as_deref(), flags)?;
        let settings = loaded.settings;
        let socket = settings.control_socket();
        // A daemon that starts has the files a moment before it listens, and another command has them for a moment.
        let given_up_at = Instant::now() + settings.control.bounds.lock_wait;
        loop {
            if listens(&socket).await? {
                return Ok(Self::Daemon(socket));
            }
            match Control::open(at_once(&settings)).await {
                Ok(control) => return Ok(Self::Files { control, store: settings.store.path.clone() }),
                Err(ControlError::File(FileError { fault: FileFault::Locked, .. })) if Instant::now() < given_up_at => {
                    tokio::time::sleep(LOCK_POLL).await;
                }
                Err(error) => return Err(Failure::new(error)),
            }
        }
    }

    /// Is it a daemon, so that something is synced?
    pub(super) const fn is_running(&self) -> bool {
        matches!(self, Self::Daemon(_))
    }

    /// Has `method` carried out.
    pub(super) async fn call(&self, method: &str, params: Vec<Box<RawValue>>) -> Result<Value, Failure> {
        let asked = Asked { method: method.to_owned(), params };
        match self {
            #[cfg(unix)]
            Self::Daemon(socket) => ask(socket, &asked, ANSWER_TIME_MAX).await.map_err(|error| match error {
                AskError::Fault(fault) => failure(&fault),
                error => Failure::new(format!("{}: {error}", socket.display())),
            }),
            #[cfg(not(unix))]
            Self::Daemon(_) => Err(Failure::new("there are no unix sockets here")),
            Self::Files { control, .. } => carry_out(control, &asked, true).await.map_err(|fault| failure(&fault)),
        }
    }

    /// Who has brought an event.
    pub(super) async fn brought(&self, id: EventId) -> Result<Value, Failure> {
        let Self::Files { store, .. } = self else {
            return self.call("eventcontext", vec![super::param(&id.to_hex())?]).await;
        };
        let store = store::open_existing(store).await?;
        let mut contexts = store.contexts(vec![id.to_bytes()]).await.map_err(Failure::new)?;
        let context: Option<RequestContext> = contexts.pop().flatten();
        serde_json::to_value(context).map_err(Failure::new)
    }

    /// Lets go of the files.
    pub(super) async fn close(self) -> Result<(), Failure> {
        match self {
            Self::Daemon(_) => Ok(()),
            Self::Files { control, .. } => control.close().await.map_err(|error: ControlError| Failure::new(error)),
        }
    }
}

/// The files as the settings say, or an error if somebody has them.
fn at_once(settings: &Settings) -> ControlConfig {
    let mut config = settings.control();
    config.bounds.lock_wait = Duration::ZERO;
    config
}

fn failure(fault: &Fault) -> Failure {
    match fault.blame {
        Blame::Call => Failure::usage(fault),
        Blame::Name | Blame::Circumstances | Blame::Us => Failure::new(fault),
    }
}

/// Does a daemon listen there?
#[cfg(unix)]
async fn listens(socket: &Path) -> Result<bool, Failure> {
    use std::io::ErrorKind;
    match tokio::net::UnixStream::connect(socket).await {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(false),
        // There is none with a path that no socket can have.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(false),
        Err(error) => Err(Failure::new(format!("the daemon's socket {} cannot be used: {error}", socket.display()))),
    }
}

#[cfg(not(unix))]
async fn listens(_socket: &Path) -> Result<bool, Failure> {
    Ok(false)
}
