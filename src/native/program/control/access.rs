//! `relaysync access`: who may read and write what is protected.

use clap::{Args, Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::caller::Caller;
use super::table::table;
use super::{ControlArguments, Shown, param, public_key, read};
use crate::native::program::numbers::counted;
use crate::native::program::{Exit, Failure};
use crate::peer::{Capability, Rule};
use crate::protocol::{Filter, PublicKey};

/// Say who may read and write which protected events.
///
/// What is not protected is free to all. Of what is, nobody has anything unless it is granted.
#[derive(Debug, Clone, Args)]
pub(in crate::native::program) struct AccessArguments {
    #[command(flatten)]
    control: ControlArguments,
    #[command(subcommand)]
    command: AccessCommand,
}

#[derive(Debug, Clone, Subcommand)]
enum AccessCommand {
    /// Let a key read or write protected events.
    Grant(RuleArguments),
    /// Take such a rule away.
    Revoke(RuleArguments),
    /// Grant to another key whatever is granted to this one.
    Move {
        /// The key that has it, as npub1… or 64 hexadecimal digits.
        #[arg(value_name = "FROM", value_parser = public_key)]
        from: PublicKey,
        /// The key that is to have it.
        #[arg(value_name = "TO", value_parser = public_key)]
        to: PublicKey,
    },
    /// Show all rules, and whose keys they grant to.
    List,
    /// Protect what satisfies a filter.
    Protect(MatchArguments),
    /// Do not protect it any more.
    Unprotect(MatchArguments),
    /// Show what is protected.
    Protected,
}

#[derive(Debug, Clone, Args)]
struct RuleArguments {
    /// To whom, as npub1… or 64 hexadecimal digits.
    #[arg(value_name = "KEY", value_parser = public_key)]
    key: PublicKey,
    /// What.
    #[arg(value_name = "CAPABILITY")]
    capability: CapabilityArgument,
    #[command(flatten)]
    events: MatchArguments,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CapabilityArgument {
    /// To be sent events, by a relay or its client.
    #[value(alias = "sync_read")]
    Read,
    /// To bring events.
    #[value(alias = "sync_write")]
    Write,
}

#[derive(Debug, Clone, Args)]
struct MatchArguments {
    /// Which events: kinds, authors and tags of a filter (NIP-01), like '{"kinds":[5000]}'.
    #[arg(value_name = "FILTER", value_parser = match_filter)]
    events: Filter,
}

fn match_filter(json: &str) -> Result<Filter, String> {
    Rule::parse_match(json).map_err(|mistakes| mistakes.to_string().replace('\n', "; "))
}

impl RuleArguments {
    fn param(&self) -> Result<Box<RawValue>, Failure> {
        let capability = match self.capability {
            CapabilityArgument::Read => Capability::SyncRead,
            CapabilityArgument::Write => Capability::SyncWrite,
        };
        param(&Rule { principal: self.key, capability, events: self.events.events.clone() })
    }
}

pub(in crate::native::program) async fn run(arguments: AccessArguments) -> Result<Exit, Failure> {
    let AccessArguments { control, command } = arguments;
    let (method, params) = match &command {
        AccessCommand::Grant(rule) => ("grantaccess", vec![rule.param()?]),
        AccessCommand::Revoke(rule) => ("revokeaccess", vec![rule.param()?]),
        AccessCommand::Move { from, to } => ("moveaccess", vec![param(&from.to_hex())?, param(&to.to_hex())?]),
        AccessCommand::List => ("listaccess", Vec::new()),
        AccessCommand::Protect(filter) => ("protectevents", vec![param(&filter.events)?]),
        AccessCommand::Unprotect(filter) => ("unprotectevents", vec![param(&filter.events)?]),
        AccessCommand::Protected => ("listprotected", Vec::new()),
    };
    let caller = Caller::find(&control).await?;
    let result = caller.call(method, params).await?;
    caller.close().await?;
    let text = match &command {
        AccessCommand::Grant(_) => changed(&result, "granted", "it was granted already"),
        AccessCommand::Revoke(_) => changed(&result, "revoked", "there was no such rule"),
        AccessCommand::Move { .. } => {
            format!("{} moved\n", counted(result["moved"].as_u64().unwrap_or_default(), "rule"))
        }
        AccessCommand::List => rules(&result)?,
        AccessCommand::Protect(_) => changed(&result, "protected", "it was protected already"),
        AccessCommand::Unprotect(_) => {
            changed(&result, "not protected any more", "it was not protected in these words")
        }
        AccessCommand::Protected => protected(&result)?,
    };
    Shown::new(result, text).print(control.json)
}

fn changed(result: &Value, yes: &str, no: &str) -> String {
    let changed = result["changed"] == json!(true);
    format!("{}\n", if changed { yes } else { no })
}

#[derive(Deserialize)]
struct Grant {
    #[serde(flatten)]
    rule: Rule,
    whose: Whose,
}

#[derive(Deserialize)]
struct Whose {
    owner: String,
    id: Option<String>,
}

fn rules(result: &Value) -> Result<String, Failure> {
    let grants: Vec<Grant> = read(result)?;
    if grants.is_empty() {
        return Ok("nothing is granted to anybody\n".to_owned());
    }
    Ok(table(grants.into_iter().map(|Grant { rule, whose }| {
        let id = whose.id.unwrap_or_default();
        let owner = match whose.owner.as_str() {
            "us" => "we".to_owned(),
            "previously_us" => "we, formerly".to_owned(),
            "peer" => format!("peer {id}"),
            "previous_of_peer" => format!("peer {id}, formerly"),
            _ => "unknown".to_owned(),
        };
        let capability = match rule.capability {
            Capability::SyncRead => "read",
            Capability::SyncWrite => "write",
        };
        [rule.principal.to_hex(), owner, capability.to_owned(), text(&rule.events)]
    })))
}

#[derive(Deserialize)]
struct Protected {
    filter: Filter,
    configured: bool,
}

fn protected(result: &Value) -> Result<String, Failure> {
    let filters: Vec<Protected> = read(result)?;
    if filters.is_empty() {
        return Ok("nothing is protected\n".to_owned());
    }
    Ok(table(filters.into_iter().map(|Protected { filter, configured }| {
        let by = if configured { "configured (access.protected)" } else { "" };
        [text(&filter), by.to_owned()]
    })))
}

fn text(filter: &Filter) -> String {
    json!(filter).to_string()
}
