//! The `relaysync` program: arguments, exit status, and one module a command.

pub mod arguments;
mod config;
mod control;
mod count;
mod demo;
mod exit;
mod export;
mod import;
pub mod key;
mod lines;
mod logging;
mod memory;
mod numbers;
pub mod progress;
mod query;
pub mod report;
mod run;
mod selection;
mod serve;
mod signals;
#[cfg(feature = "testing")]
mod sim;
mod status;
pub mod store;
pub mod sync;
mod sync_run;

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

pub use exit::{Exit, Failure};
pub use signals::interrupted;

/// How long what still runs (a commit, a name look-up) may go on once the command has ended.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(500);

/// Keeps sets of Nostr events in step between relays and this machine.
///
/// Ends with status 0 if everything is complete, 3 if something is missing and reported, 1 if the command failed,
/// 2 if it was called wrongly. Logs go to stderr; set RUST_LOG (for example to `relaysync=debug`) for more of them.
#[derive(Debug, Parser)]
#[command(name = "relaysync", version, max_term_width = 100)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArguments),
    Sync(sync::SyncArguments),
    Serve(serve::ServeArguments),
    Import(import::ImportArguments),
    Export(export::ExportArguments),
    Query(query::QueryArguments),
    Count(count::CountArguments),
    Config(config::ConfigArguments),
    Status(status::StatusArguments),
    Peer(control::PeerArguments),
    Identity(control::IdentityArguments),
    Access(control::AccessArguments),
    Demo(demo::DemoArguments),
    #[cfg(feature = "testing")]
    Sim(sim::SimArguments),
}

impl Command {
    /// Do its threads hand events to each other? Worlds of the simulation are each one thread's own.
    fn shares_events(&self) -> bool {
        match self {
            #[cfg(feature = "testing")]
            Self::Sim(_) => false,
            _ => true,
        }
    }

    /// Does it say in its settings what is logged?
    const fn logs_by_itself(&self) -> bool {
        matches!(self, Self::Run(_))
    }

    /// What is logged unless RUST_LOG says otherwise.
    const fn logged(&self) -> &'static str {
        match self {
            // Thousands of relays misbehave there, as they are meant to.
            #[cfg(feature = "testing")]
            Self::Sim(_) => "off",
            _ => "warn",
        }
    }
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(error) => return usage(&error).into(),
    };
    if program.command.shares_events() {
        memory::keep_one_heap();
    }
    if !program.command.logs_by_itself() {
        logging::start(program.command.logged());
    }
    run_to_end(dispatch(program.command)).into()
}

async fn dispatch(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(arguments) => run::run(arguments).await,
        Command::Sync(arguments) => sync_run::run(arguments).await,
        Command::Serve(arguments) => serve::run(arguments).await,
        Command::Import(arguments) => or_interrupted(import::run(arguments)).await,
        Command::Export(arguments) => or_interrupted(export::run(arguments)).await,
        Command::Query(arguments) => or_interrupted(query::run(arguments)).await,
        Command::Count(arguments) => or_interrupted(count::run(arguments)).await,
        Command::Config(arguments) => config::run(arguments),
        Command::Status(arguments) => status::run(arguments).await,
        Command::Peer(arguments) => or_interrupted(control::peer(arguments)).await,
        Command::Identity(arguments) => or_interrupted(control::identity(arguments)).await,
        Command::Access(arguments) => or_interrupted(control::access(arguments)).await,
        Command::Demo(arguments) => demo::run(arguments).await,
        #[cfg(feature = "testing")]
        Command::Sim(arguments) => sim::run(arguments).await,
    }
}

/// Ends `command` at Ctrl-C or SIGTERM. What it has committed is kept; what it was about to commit is not.
async fn or_interrupted(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    tokio::select! {
        result = command => result,
        signal = interrupted() => Err(Failure::new(format!("{}; what was committed is kept", signal?))),
    }
}

fn run_to_end(command: impl Future<Output = Result<Exit, Failure>>) -> Exit {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::new(format!("the runtime cannot start: {error}")).report(),
    };
    let exit = runtime.block_on(command).unwrap_or_else(|failure| failure.report());
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    exit
}

/// Prints help and version as asked; a wrong value as one line; other mistakes with a hint of how to call.
fn usage(error: &clap::Error) -> Exit {
    if error.kind() == ErrorKind::ValueValidation {
        let text = error.to_string();
        eprintln!("{}", text.split("\n\n").next().unwrap_or(&text).replace('\n', " "));
        return Exit::Usage;
    }
    // Nobody is left to tell if stdout or stderr is gone.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage } else { Exit::Complete }
}
