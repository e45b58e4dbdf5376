//! Running a command for a delivery.

use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};

use futures_util::future::{Either, select};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use super::config::{Delivery, HookConfig};

/// The environment variable with the repository's address.
const REPOSITORY: &str = "RELAYSYNC_REPOSITORY";

/// Runs `argv` for `delivery`. Dropping the future kills the command and everything that it has started.
///
/// # Errors
/// It could not be started, or its exit status was not 0: in words, with the end of its output.
pub(super) async fn run(argv: &[String], delivery: &Delivery, config: &HookConfig) -> Result<(), String> {
    let (program, arguments) = argv.split_first().ok_or("the command is empty")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        // The environment cannot carry a zero; JSON can.
        .env(REPOSITORY, delivery.repository.to_string().replace('\0', "\u{fffd}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let child = command.spawn().map_err(|error| format!("{program:?} cannot be started: {error}"))?;
    let mut group = Group { child };
    let (status, output) = group.finish(delivery.to_json(), config).await.map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output);
    Err(format!("{program:?} ended with {status}: {:?}", output.trim()))
}

/// A command that runs, and what it has started. All of it is killed when this is dropped before the command has ended.
struct Group {
    child: Child,
}

impl Group {
    /// Feeds the command, and waits for its end; gives its status and the beginning of its output.
    async fn finish(&mut self, json: String, config: &HookConfig) -> io::Result<(ExitStatus, Vec<u8>)> {
        let (stdin, stdout, stderr) = (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        let (mut said, mut output) = (Vec::new(), Vec::new());
        let status = {
            let talk = async {
                let bytes_max = config.output_bytes_max;
                tokio::try_join!(
                    feed(stdin, &json),
                    keep(stdout, &mut said, bytes_max),
                    keep(stderr, &mut output, bytes_max)
                )
            };
            match select(pin!(self.child.wait()), pin!(talk)).await {
                Either::Left((status, talk)) => {
                    // What it has left running may never close its output.
                    if let Ok(talked) = timeout(config.output_grace, talk).await {
                        talked?;
                    }
                    status?
                }
                Either::Right((talked, status)) => {
                    talked?;
                    status.await?
                }
            }
        };
        output.extend(said);
        output.truncate(config.output_bytes_max);
        Ok((status, output))
    }
}

async fn feed(stdin: Option<ChildStdin>, json: &str) -> io::Result<()> {
    let Some(mut stdin) = stdin else { return Ok(()) };
    match stdin.write_all(json.as_bytes()).await {
        // A command that does not want the news closes its input, or ends.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Reads to the end, and keeps the beginning.
async fn keep(output: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>, bytes_max: usize) -> io::Result<()> {
    let Some(mut output) = output else { return Ok(()) };
    let mut buffer = [0; 4 << 10];
    loop {
        let read = output.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        let room = bytes_max - kept.len();
        kept.extend_from_slice(&buffer[..read.min(room)]);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Until it was waited for, its number belongs to nobody else.
        #[cfg(unix)]
        if let Some(id) = self.child.id()
            && let Some(group) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw)
            && let Err(error) = rustix::process::kill_process_group(group, rustix::process::Signal::KILL)
        {
            tracing::debug!("a command of the hook was not killed: {error}");
        }
    }
}
