//! A peer, as flags or a file say it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::native::program::Failure;
use crate::peer::{PeerSpec, SpecMistake};

/// The largest file with a peer, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Add a peer, or replace the one of this name.
///
/// Either flags say what it is like, or a file does, with one JSON object.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct PutArguments {
    /// A file with the peer in JSON, in place of all flags; - for standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "flags")]
    file: Option<PathBuf>,
    #[command(flatten)]
    flags: PutFlags,
}

#[derive(Debug, Clone, Default, Args)]
#[group(id = "flags", multiple = true)]
struct PutFlags {
    /// Its name here.
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// The relay.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The relay's key, as npub1… or 64 hexadecimal digits: who has another one is not synced with.
    #[arg(long, value_name = "KEY")]
    auth_pubkey: Option<String>,
    /// The field of the relay's information document that has its key: self or pubkey.
    #[arg(long, value_name = "FIELD")]
    auth_pubkey_field: Option<String>,
    /// What is synced (NIP-01), like '{"kinds":[5000]}'. Repeat it for several.
    #[arg(long = "filter", value_name = "JSON")]
    filters: Vec<String>,
    /// A pinned key of the relay's certificate: "sha256/" and base64, or 64 hexadecimal digits. Repeat it for several.
    #[arg(long = "pin", value_name = "PIN")]
    pins: Vec<String>,
    /// Which way events go: down, up or both.
    #[arg(long, value_name = "WAY")]
    direction: Option<String>,
    /// How what is stored is synced: auto, req_stream or negentropy.
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Is encryption required? required or disabled.
    #[arg(long, value_name = "MODE")]
    tls_mode: Option<String>,
    /// The host name that the relay's certificate is for, if it is not that of the URL.
    #[arg(long, value_name = "NAME")]
    tls_hostname: Option<String>,
    /// Who vouches for the certificate: full (known authorities, and the pins) or pin (the pins alone).
    #[arg(long, value_name = "HOW")]
    verify: Option<String>,
    /// Whose key a pin is: end_entity (the relay's own) or chain (or that of an authority).
    #[arg(long, value_name = "SCOPE")]
    pin_scope: Option<String>,
    /// After a short absence, what is dated up to so long before it is asked for again.
    #[arg(long, value_name = "SECS")]
    overlap: Option<u64>,
    /// Do not say who we are when the relay asks (NIP-42).
    #[arg(long)]
    no_auth: bool,
    /// Whatever else is to be kept with it: a JSON object.
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
    /// Do not sync with it yet.
    #[arg(long)]
    disabled: bool,
}

/// The flags that give the fields of a peer.
const FLAGS: &[(&str, &str)] = &[
    ("id", "--id"),
    ("url", "--url"),
    ("auth_pubkey_field", "--auth-pubkey-field"),
    ("auth_pubkey", "--auth-pubkey"),
    ("filters", "--filter"),
    ("direction", "--direction"),
    ("mode", "--mode"),
    ("overlap_window_seconds", "--overlap"),
    ("metadata", "--metadata"),
    ("tls.mode", "--tls-mode"),
    ("tls.hostname", "--tls-hostname"),
    ("tls.verify", "--verify"),
    ("tls.pin_scope", "--pin-scope"),
    ("tls.pins", "--pin"),
    ("tls", "--pin"),
];

impl PutArguments {
    /// The peer.
    pub(super) fn spec(&self) -> Result<PeerSpec, Failure> {
        match &self.file {
            Some(path) => {
                let name = if path == Path::new("-") { "standard input".into() } else { path.display().to_string() };
                let json = read(path, &name)?;
                PeerSpec::parse(&json).map_err(|mistakes| {
                    let mistakes: Vec<String> = mistakes.0.iter().map(ToString::to_string).collect();
                    Failure::usage(format!("{name}: {}", mistakes.join("; ")))
                })
            }
            None => self.flags.spec(),
        }
    }
}

impl PutFlags {
    fn spec(&self) -> Result<PeerSpec, Failure> {
        let json = self.json()?;
        PeerSpec::parse(&json).map_err(|mistakes| {
            let mistakes: Vec<String> = mistakes.0.iter().map(by_flag).collect();
            Failure::usage(mistakes.join("; "))
        })
    }

    /// The JSON form. What was not said is left out.
    fn json(&self) -> Result<String, Failure> {
        let mut tls = Map::new();
        let pins: Vec<Value> = self.pins.iter().map(|pin| json!({ "type": "spki_sha256", "value": pin })).collect();
        insert(&mut tls, "mode", self.tls_mode.as_ref());
        insert(&mut tls, "hostname", self.tls_hostname.as_ref());
        insert(&mut tls, "pins", (!pins.is_empty()).then_some(&pins));
        insert(&mut tls, "pin_scope", self.pin_scope.as_ref());
        insert(&mut tls, "verify", self.verify.as_ref());
        let mut peer = Map::new();
        insert(&mut peer, "id", self.id.as_ref());
        insert(&mut peer, "url", self.url.as_ref());
        insert(&mut peer, "enabled", self.disabled.then_some(&false));
        insert(&mut peer, "auth_pubkey", self.auth_pubkey.as_ref());
        insert(&mut peer, "auth_pubkey_field", self.auth_pubkey_field.as_ref());
        insert(&mut peer, "direction", self.direction.as_ref());
        insert(&mut peer, "mode", self.mode.as_ref());
        insert(&mut peer, "overlap_window_seconds", self.overlap.as_ref());
        insert(&mut peer, "auth", self.no_auth.then_some(&json!({ "type": "none" })));
        insert(&mut peer, "tls", Some(&tls));
        let mut text = Value::from(peer).to_string();
        // Letter by letter, so that what is wrong with them is said of what was written.
        text.pop();
        if !self.filters.is_empty() {
            let filters: Result<Vec<_>, _> = self.filters.iter().map(|filter| raw("--filter", filter)).collect();
            text.push_str(&format!(",\"filters\":[{}]", filters?.join(",")));
        }
        if let Some(metadata) = &self.metadata {
            text.push_str(&format!(",\"metadata\":{}", raw("--metadata", metadata)?));
        }
        text.push('}');
        Ok(text)
    }
}

fn insert(object: &mut Map<String, Value>, name: &str, value: Option<&(impl serde::Serialize + ?Sized)>) {
    object.extend(value.map(|value| (name.to_owned(), json!(value))));
}

/// JSON that somebody has written: one value, whatever it is.
fn raw<'t>(flag: &str, text: &'t str) -> Result<&'t str, Failure> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => Ok(raw.get()),
        Err(error) => {
            Err(Failure::usage(format!("{flag}: this is no JSON: {error}; write an object in single quotes")))
        }
    }
}

/// The mistake with the flag in place of the field.
fn by_flag(mistake: &SpecMistake) -> String {
    let SpecMistake { path, reason } = mistake;
    let is_within =
        |field: &str| path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    match FLAGS.iter().find(|(field, _)| is_within(field)) {
        Some((field, flag)) if path == field => format!("{flag}: {reason}"),
        Some((_, flag)) => format!("{flag} ({path}): {reason}"),
        None => mistake.to_string(),
    }
}

fn read(path: &Path, name: &str) -> Result<String, Failure> {
    let input: io::Result<Box<dyn Read>> = if path == Path::new("-") {
        Ok(Box::new(io::stdin().lock()))
    } else {
        File::open(path).map(|file| Box::new(file) as _)
    };
    let mut text = String::new();
    match input.and_then(|input| input.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)) {
        Ok(bytes) if bytes as u64 > FILE_BYTES_MAX => {
            Err(Failure::usage(format!("{name} has more than {FILE_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::usage(format!("{name} cannot be read: {error}"))),
    }
}
