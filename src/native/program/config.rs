//! `relaysync config`, and how commands get their settings.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::numbers::counted;
use super::sync_run::print;
use super::{Exit, Failure};
use crate::native::admin::GRAFANA_DASHBOARD;
use crate::native::settings::{Flag, Loaded, Sources, load, template};

/// The file that is looked for when none is named.
const FILE_NAME: &str = "relaysync.toml";
/// The variable that names the file.
const FILE_VARIABLE: &str = "RELAYSYNC_CONFIG";
/// How systemd runs it.
const SYSTEMD_UNIT: &str = include_str!("files/relaysync.service");
/// How a container with it is built.
const CONTAINER_FILE: &str = include_str!("files/Containerfile");

/// Write a configuration with all settings explained, or check one.
#[derive(Debug, Clone, Args)]
pub(super) struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum ConfigCommand {
    Init(InitArguments),
    Check(CheckArguments),
}

/// Write a file with every setting, its default and what it means.
#[derive(Debug, Clone, Args)]
struct InitArguments {
    /// Where to; - for stdout.
    #[arg(value_name = "PATH", default_value = FILE_NAME)]
    path: PathBuf,
    /// Overwrite a file that is there.
    #[arg(long)]
    force: bool,
    /// Print a systemd unit instead.
    #[arg(long, conflicts_with_all = ["path", "force"])]
    systemd: bool,
    /// Print a container file instead.
    #[arg(long, conflicts_with_all = ["path", "force", "systemd"])]
    container: bool,
    /// Print a dashboard for Grafana instead.
    #[arg(long, conflicts_with_all = ["path", "force", "systemd", "container"])]
    grafana: bool,
}

/// Find every mistake in a configuration; ends with status 0 if there is none.
#[derive(Debug, Clone, Args)]
struct CheckArguments {
    /// The file; by default RELAYSYNC_CONFIG or relaysync.toml.
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Print all settings that hold, with where each was set.
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    set: SetArguments,
}

/// Flags that override any setting.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SetArguments {
    /// Override a setting, as --set sync.backoff_max=30m. Repeat it for several.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE", value_parser = parse_set)]
    set: Vec<(String, String)>,
}

impl SetArguments {
    pub(super) fn flags(&self) -> impl Iterator<Item = Flag> {
        self.set.iter().map(|(setting, value)| Flag::new(format!("--set {setting}"), setting, value))
    }
}

fn parse_set(text: &str) -> Result<(String, String), String> {
    let (setting, value) = text.split_once('=').ok_or("write SECTION.KEY=VALUE, like sync.backoff_max=30m")?;
    Ok((setting.trim().to_owned(), value.trim().to_owned()))
}

pub(super) fn run(arguments: ConfigArguments) -> Result<Exit, Failure> {
    match arguments.command {
        ConfigCommand::Init(arguments) => init(&arguments),
        ConfigCommand::Check(arguments) => check(&arguments),
    }
}

fn init(arguments: &InitArguments) -> Result<Exit, Failure> {
    let path = &arguments.path;
    if arguments.systemd {
        print(SYSTEMD_UNIT)?;
    } else if arguments.container {
        print(CONTAINER_FILE)?;
    } else if arguments.grafana {
        print(GRAFANA_DASHBOARD)?;
    } else if path == Path::new("-") {
        print(&template())?;
    } else {
        write(path, arguments.force)?;
        let path = path.display();
        print(&format!("wrote {path}; edit it, then look at it with `relaysync config check {path}`\n"))?;
    }
    Ok(Exit::Complete)
}

fn write(path: &Path, force: bool) -> Result<(), Failure> {
    let mut options = fs::OpenOptions::new();
    let opened = options.write(true).create(force).truncate(force).create_new(!force).open(path);
    let fault = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            Failure::new(format!("{} is there already; --force overwrites it", path.display()))
        }
        _ => Failure::new(format!("cannot write {}: {error}", path.display())),
    };
    opened.and_then(|mut file| file.write_all(template().as_bytes())).map_err(fault)
}

fn check(arguments: &CheckArguments) -> Result<Exit, Failure> {
    let (file, loaded) = settings(arguments.path.as_deref(), arguments.set.flags().collect())?;
    if arguments.print {
        print(&loaded.effective())?;
        return Ok(Exit::Complete);
    }
    let file = file.map_or_else(|| "there is no file; the defaults".to_owned(), |path| path.display().to_string());
    print(&format!("{file}: no mistakes, {} set\n", counted(loaded.origins.len() as u64, "setting")))?;
    Ok(Exit::Complete)
}

/// The settings of a command: the file at `path`, or where it usually is; the environment; and flags. With the file, if
/// there is one.
///
/// # Errors
/// The file is not there though it was named, or there are mistakes; each of them is printed on stderr.
pub(super) fn settings(path: Option<&Path>, flags: Vec<Flag>) -> Result<(Option<PathBuf>, Loaded), Failure> {
    let named = path.map(Path::to_owned).or_else(|| std::env::var_os(FILE_VARIABLE).map(PathBuf::from));
    let path = match named {
        Some(path) => Some(path),
        None => Path::new(FILE_NAME).exists().then(|| FILE_NAME.into()),
    };
    let file = match &path {
        Some(path) => Some((path.display().to_string(), read(path)?)),
        None => None,
    };
    let sources = Sources { file, environment: std::env::vars_os().collect(), flags };
    let loaded = load(&sources).map_err(|mistakes| {
        let count = mistakes.mistakes.len() as u64;
        eprintln!("{mistakes}");
        Failure::usage(format!("{} in the configuration", counted(count, "mistake")))
    })?;
    Ok((path, loaded))
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::usage(format!("there is no {path}; `relaysync config init {path}` writes one"))
            }
            io::ErrorKind::InvalidData => Failure::usage(format!("{path} is not UTF-8 text")),
            _ => Failure::usage(format!("cannot read {path}: {error}")),
        }
    })
}
