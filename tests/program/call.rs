//! Calling the program.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Nothing that the program does here takes longer, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a call came to.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Starts the program in `directory`, with its usual logs.
pub(crate) fn start(directory: &Path, arguments: &[&str]) -> Child {
    start_logging(directory, arguments, "warn")
}

/// Starts the program in `directory`.
pub(crate) fn start_logging(directory: &Path, arguments: &[&str], log: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_relaysync"))
        .args(arguments)
        .current_dir(directory)
        .env("RUST_LOG", log)
        .env_remove("SEED")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs the program to its end, with `stdin` as its input.
pub(crate) fn run(directory: &Path, arguments: &[&str], stdin: &str) -> Call {
    let mut child = start(directory, arguments);
    let mut input = child.stdin.take().unwrap();
    let stdin = stdin.to_owned();
    let feeding = std::thread::spawn(move || {
        // A program that needs no input closes it.
        let _ = input.write_all(stdin.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    Call {
        status: output.status.code().expect("ended by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Call {
    /// The lines of stdout.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }

    /// Ended with `status`, having said one line on stderr, with `word` in it, and nothing on stdout.
    #[track_caller]
    pub(crate) fn assert_one_line(&self, status: i32, word: &str) {
        assert_eq!((self.status, self.stdout.as_str()), (status, ""), "{self:?}");
        assert!(self.stderr.starts_with("error: ") && self.stderr.contains(word), "{word}: {self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
    }
}

/// The lines of `output` as they come; an end, not a hang, if none comes within [`PATIENCE`].
pub(crate) fn lines_of(output: impl Read + Send + 'static) -> impl Iterator<Item = String> {
    let (line_in, line_out) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if line_in.send(line).is_err() {
                return;
            }
        }
    });
    std::iter::from_fn(move || line_out.recv_timeout(PATIENCE).ok())
}
