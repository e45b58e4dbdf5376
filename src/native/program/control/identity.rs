//! `relaysync identity`: who we are.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::Value;

use super::caller::Caller;
use super::table::table;
use super::{ControlArguments, Shown, param, read};
use crate::native::control::{IdentityInfo, IdentitySource, Secret};
use crate::native::program::{Exit, Failure};
use crate::peer::rfc3339;

/// The largest file with a key, in bytes: a key has 64, the rest is room for white space.
const KEY_BYTES_MAX: u64 = 4096;

/// Show or change who we are: the key by which this daemon proves itself to relays, and which peers grant access to.
///
/// The secret key stays in the daemon's files. Nothing shows it.
#[derive(Debug, Clone, Args)]
pub(in crate::native::program) struct IdentityArguments {
    #[command(flatten)]
    control: ControlArguments,
    #[command(subcommand)]
    command: IdentityCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum IdentityCommand {
    /// Who we are.
    Show,
    /// Who we are; if we are nobody yet, a key is generated.
    Ensure,
    /// Be whose secret key this is, as nsec1… or 64 hexadecimal digits.
    Import {
        /// The file with the key; - for standard input. It is never an argument, which others could see.
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
    },
    /// Be somebody new. What others have granted to the old key, they have to move.
    Rotate,
}

pub(in crate::native::program) async fn run(arguments: IdentityArguments) -> Result<Exit, Failure> {
    let IdentityArguments { control, command } = arguments;
    let (method, params) = match &command {
        IdentityCommand::Show => ("getidentity", Vec::new()),
        IdentityCommand::Ensure => ("ensureidentity", Vec::new()),
        IdentityCommand::Import { file } => ("importidentity", vec![param(secret(file)?.trim())?]),
        IdentityCommand::Rotate => ("rotateidentity", Vec::new()),
    };
    let caller = Caller::find(&control).await?;
    let result = caller.call(method, params).await?;
    caller.close().await?;
    shown(result)?.print(control.json)
}

fn shown(result: Value) -> Result<Shown, Failure> {
    let Some(IdentityInfo { pubkey, source, created_at_secs, previous }) = read(&result)? else {
        return Ok(Shown::new(result, "nobody yet; `relaysync identity ensure` generates a key\n"));
    };
    let source = match source {
        IdentitySource::Configured => "configured (identity.key_file)",
        IdentitySource::Imported => "imported",
        IdentitySource::Generated => "generated",
    };
    let row = |name: &str, value: String| [name.to_owned(), value];
    let mut rows = vec![
        row("key", pubkey.to_hex()),
        row("npub", npub(&pubkey)),
        row("source", source.to_owned()),
        row("since", rfc3339::format(created_at_secs)),
    ];
    rows.extend(previous.iter().map(|key| row("before", key.to_hex())));
    Ok(Shown::new(result, table(rows)))
}

/// The key as people write it; in hexadecimal, should that fail.
fn npub(key: &crate::protocol::PublicKey) -> String {
    nostr::nips::nip19::ToBech32::to_bech32(key).unwrap_or_else(|_| key.to_hex())
}

/// The secret key in a file, or on standard input. No error repeats what is there.
fn secret(path: &Path) -> Result<String, Failure> {
    let text = path.to_string_lossy();
    if Secret::parse(&text).is_some() {
        return Err(Failure::usage(
            "the secret key stands in the command, where others may have seen it: take another one, and give the name of \
             a file that has it, or nothing for standard input",
        ));
    }
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let input: io::Result<Box<dyn Read>> =
        if is_stdin { Ok(Box::new(io::stdin().lock())) } else { File::open(path).map(|file| Box::new(file) as _) };
    let mut text = String::new();
    let read = input.and_then(|input| input.take(KEY_BYTES_MAX + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(Failure::usage(format!("the secret key in {name} cannot be read: {error}"))),
        Ok(bytes) if bytes as u64 > KEY_BYTES_MAX => {
            Err(Failure::usage(format!("{name} has more than {KEY_BYTES_MAX} bytes, so it is no key")))
        }
        Ok(_) if text.trim().is_empty() => Err(Failure::usage(format!("there is no secret key in {name}"))),
        Ok(_) => Ok(text),
    }
}
