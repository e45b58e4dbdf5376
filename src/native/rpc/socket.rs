//! Calls over a unix socket: for whoever may use the daemon's files anyway.

use std::convert::Infallible;
use std::fmt;
use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::desk::{Rpc, Way};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// The wait after the system could not accept a connection, as when it is out of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A unix socket that takes calls. Dropping it removes the file.
#[derive(Debug)]
pub struct RpcSocket {
    path: PathBuf,
    /// The file that was made: device and inode.
    file: (u64, u64),
    task: JoinHandle<()>,
}

/// The socket cannot be made.
#[derive(Debug)]
pub struct SocketError {
    /// Where it was to be.
    pub path: PathBuf,
    /// What the system says, or why not.
    pub error: io::Error,
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot take calls at the socket {}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for SocketError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl RpcSocket {
    /// Takes calls at `path`, which only the owner of this process can use. A socket that nobody listens at any more is
    /// replaced. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// Somebody listens there already, something else is there, or the path is too long.
    pub fn bind(path: &Path, rpc: Rpc) -> Result<Self, SocketError> {
        let fault = |error| SocketError { path: path.to_owned(), error };
        let listener = listen(path).map_err(fault)?;
        let made = fs::symlink_metadata(path).map_err(fault)?;
        let task = tokio::spawn(run(listener, rpc));
        Ok(Self { path: path.to_owned(), file: identity(&made), task })
    }
}

impl Drop for RpcSocket {
    fn drop(&mut self) {
        // Its connections are its tasks, and end with it.
        self.task.abort();
        let is_ours = fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.file);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("the socket {} stays behind: {error}", self.path.display());
        }
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    let address = SockAddr::unix(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => io::Error::new(
            ErrorKind::InvalidInput,
            format!(
                "its path has {} bytes, which is more than the system takes for sockets: name a shorter one (control.socket)",
                path.as_os_str().len()
            ),
        ),
        _ => error,
    })?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            make_room(path)?;
            socket.bind(&address)?;
        }
        result => result?,
    }
    // Nobody can connect before it listens, and then only its owner can.
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    UnixListener::from_std(socket.into())
}

/// Removes what a daemon left that was killed.
fn make_room(path: &Path) -> io::Result<()> {
    let taken = |words: &str| Err(io::Error::new(ErrorKind::AddrInUse, words.to_owned()));
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return taken("there is a file that is no socket");
    }
    match BlockingStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => taken("another daemon listens there"),
    }
}

async fn run(listener: UnixListener, rpc: Rpc) {
    let mut connections = JoinSet::new();
    loop {
        let has_room = connections.len() < rpc.config().socket_connections_max.max(1);
        tokio::select! {
            Some(ended) = connections.join_next() => report_panic(ended),
            accepted = listener.accept(), if has_room => match accepted {
                Ok((socket, _)) => drop(connections.spawn(talk(socket, rpc.clone()))),
                Err(error) => {
                    tracing::warn!("cannot accept a connection to the control socket: {error}");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            },
        }
    }
}

async fn talk(socket: UnixStream, rpc: Rpc) {
    let answer = |request: Request<Incoming>| {
        let rpc = rpc.clone();
        async move { Ok::<_, Infallible>(rpc.answer(request, Way::Socket).await) }
    };
    let time_max = rpc.config().socket_time_max;
    let mut http = http1::Builder::new();
    http.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(time_max);
    let talk = http.serve_connection(TokioIo::new(socket), service_fn(answer));
    match timeout(time_max, talk).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!("a call over the control socket: {error}"),
        Err(_) => tracing::debug!("a call over the control socket took too long"),
    }
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a connection of the control socket ended badly: {error}");
    }
}
