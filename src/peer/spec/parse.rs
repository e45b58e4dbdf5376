//! Reading a peer's specification.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use url::Host;

use super::{Metadata, PeerAuth, PeerSpec, SyncMode};
use crate::engine::Direction;
use crate::peer::fields::{Fields, public_key, shown};
use crate::peer::filter::filter;
use crate::peer::{IdentityField, Pin, PinScope, SpecMistake, SpecMistakes, TlsMode, TlsTerms, Verify};
use crate::protocol::{Filter, RelayUrl};

/// The one type of pins.
pub(super) const PIN_TYPE: &str = "spki_sha256";

const KNOWN: &str = "id, url, enabled, auth_pubkey, auth_pubkey_field, direction, mode, filters, \
                     overlap_window_seconds, auth, tls and metadata";
const URL_FORM: &str = "a relay URL, like \"wss://relay.example\"";
const KEY_FORM: &str = "the public key of the relay, as npub1… or 64 hexadecimal digits";
const FILTERS_FORM: &str = "a list of filters (NIP-01), like [{\"kinds\":[5000]}]";
/// What a synced filter cannot have.
const SYNCED: &[(&str, &str)] =
    &[("limit", "all that the filter selects is kept in step, so there is no limit; leave it out")];
const TLS_FORM: &str =
    "an object, like {\"mode\":\"required\",\"pins\":[{\"type\":\"spki_sha256\",\"value\":\"sha256/…\"}]}";
const PINS_FORM: &str = "a list of pins, like [{\"type\":\"spki_sha256\",\"value\":\"sha256/…\"}]";

pub(super) fn parse(json: &str) -> Result<PeerSpec, SpecMistakes> {
    let mut mistakes = Vec::new();
    let spec = read(json, &mut mistakes);
    match spec {
        Some(spec) if mistakes.is_empty() => Ok(spec),
        _ => Err(SpecMistakes(mistakes)),
    }
}

/// `None` only if a mistake is noted.
fn read(json: &str, mistakes: &mut Vec<SpecMistake>) -> Option<PeerSpec> {
    let mut fields = Fields::of(json, "", "one JSON object with the fields of a peer", mistakes)?;
    let id_form = format!("1 to {} letters, digits and punctuation marks", PeerSpec::ID_CHARS_MAX);
    let id = fields.text("id", &id_form, |text| if is_id(text) { Ok(text.to_owned()) } else { Err(shown(text)) });
    let url = fields.text("url", URL_FORM, |text| RelayUrl::parse(text).map_err(|error| first_part(&error.reason)));
    let enabled = enabled(&mut fields);
    let auth_pubkey = fields.text("auth_pubkey", KEY_FORM, |text| public_key(text, shown));
    let auth_pubkey_field = fields
        .word("auth_pubkey_field", &[("self", IdentityField::OwnKey), ("pubkey", IdentityField::AdministratorKey)]);
    let directions = [("down", Direction::Down), ("up", Direction::Up), ("both", Direction::Both)];
    let direction = fields.word("direction", &directions);
    let modes = [("auto", SyncMode::Auto), ("req_stream", SyncMode::ReqStream), ("negentropy", SyncMode::Negentropy)];
    let mode = fields.word("mode", &modes);
    let filters = filters(&mut fields);
    let overlap_form = format!("whole seconds from 0 to {}", PeerSpec::OVERLAP_SECS_MAX);
    let overlap_secs = fields.optional("overlap_window_seconds", &overlap_form, |value| {
        value.as_u64().filter(|&secs| secs <= PeerSpec::OVERLAP_SECS_MAX).map(Some)
    });
    let auth = auth(&mut fields);
    let tls = tls(&mut fields);
    let metadata = metadata(&mut fields);
    fields.end(KNOWN);
    Some(PeerSpec {
        id: id?,
        url: url?,
        enabled,
        auth_pubkey: auth_pubkey?,
        auth_pubkey_field,
        direction,
        mode,
        filters: filters?,
        overlap_secs: overlap_secs.unwrap_or(PeerSpec::OVERLAP_SECS_DEFAULT),
        auth,
        tls: Arc::new(tls?),
        metadata,
    })
}

/// Letters, digits and punctuation marks: nothing that cannot be seen, or that changes how others are shown.
fn is_id(text: &str) -> bool {
    let is_visible = |character: char| character.is_alphanumeric() || character.is_ascii_punctuation();
    (1..=PeerSpec::ID_CHARS_MAX).contains(&text.chars().count()) && text.chars().all(is_visible)
}

/// What is wrong, without what to write instead.
fn first_part(reason: &str) -> String {
    reason.split(';').next().unwrap_or_default().to_owned()
}

fn enabled(fields: &mut Fields<'_>) -> bool {
    const FORM: &str = "true or false, without quotes";
    let [enabled, asked] =
        ["enabled", "enabled?"].map(|name| fields.optional(name, FORM, |value| value.as_bool().map(Some)));
    if enabled.is_some() && asked.is_some() {
        fields.fault("enabled?", "it means the same as \"enabled\", which is there, too; leave one out");
    }
    enabled.or(asked).unwrap_or(true)
}

fn filters(fields: &mut Fields<'_>) -> Option<Vec<Arc<Filter>>> {
    let raw = fields.required("filters", FILTERS_FORM)?;
    let raws = elements(fields, "filters", &raw, FILTERS_FORM)?;
    if raws.is_empty() {
        fields.fault("filters", format!("without filters nothing is synced; write {FILTERS_FORM}"));
    }
    let filters: Vec<_> = raws
        .iter()
        .enumerate()
        .map(|(index, raw)| {
            let path = fields.place(&format!("filters[{index}]"));
            filter(raw.get(), &path, SYNCED, fields.mistakes())
        })
        .collect();
    filters.into_iter().map(|filter| filter.map(Arc::new)).collect()
}

/// The elements of a list.
fn elements(fields: &mut Fields<'_>, name: &str, raw: &RawValue, form: &str) -> Option<Vec<Box<RawValue>>> {
    let elements = serde_json::from_str(raw.get()).ok();
    if elements.is_none() {
        fields.fault(name, format!("it is no list; write {form}"));
    }
    elements
}

fn auth(fields: &mut Fields<'_>) -> PeerAuth {
    const FORM: &str = "{\"type\":\"nip42\"} or {\"type\":\"none\"}";
    let Some(raw) = fields.raw("auth") else { return PeerAuth::default() };
    let path = fields.place("auth");
    let Some(mut auth) = Fields::of(raw.get(), &path, FORM, fields.mistakes()) else { return PeerAuth::default() };
    let chosen = auth.word("type", &[("nip42", PeerAuth::Nip42), ("none", PeerAuth::None)]);
    auth.end("type");
    chosen
}

fn tls(fields: &mut Fields<'_>) -> Option<TlsTerms> {
    let raw = fields.required("tls", TLS_FORM)?;
    let path = fields.place("tls");
    let mut tls = Fields::of(raw.get(), &path, TLS_FORM, fields.mistakes())?;
    let mode = tls.word("mode", &[("required", TlsMode::Required), ("disabled", TlsMode::Disabled)]);
    let hostname = tls.raw("hostname").and_then(|raw| {
        let form = "a host name or an address, like \"relay.example\"";
        tls.read("hostname", &raw, form, |value| host_name(value.as_str().ok_or(None)?).ok_or(None))
    });
    let pins = pins(&mut tls);
    let pin_scope = tls.word("pin_scope", &[("end_entity", PinScope::EndEntity), ("chain", PinScope::Chain)]);
    let verify = tls.word("verify", &[("full", Verify::Full), ("pin", Verify::Pin)]);
    if let Some(pins) = &pins
        && pins.is_empty()
    {
        if mode == TlsMode::Required {
            tls.fault("pins", format!("encryption is required, so a key must be pinned; write {PINS_FORM}"));
        } else if verify == Verify::Pin {
            tls.fault("verify", "no key is pinned that could vouch for the relay; write \"full\", or pins");
        }
    }
    tls.end("mode, hostname, pins, pin_scope and verify");
    Some(TlsTerms { mode, hostname, pins: pins?, pin_scope, verify })
}

/// A host name in its usual form.
fn host_name(text: &str) -> Option<String> {
    let bare = text.trim_end_matches('.');
    match Host::parse(bare).or_else(|_| Host::parse(&format!("[{bare}]"))).ok()? {
        Host::Ipv6(address) => Some(address.to_string()),
        host => Some(host.to_string()),
    }
}

fn pins(tls: &mut Fields<'_>) -> Option<BTreeSet<Pin>> {
    let Some(raw) = tls.raw("pins") else { return Some(BTreeSet::new()) };
    let raws = elements(tls, "pins", &raw, PINS_FORM)?;
    let pins: Vec<_> = raws.iter().enumerate().map(|(index, raw)| pin(tls, index, raw.get())).collect();
    pins.into_iter().collect()
}

fn pin(tls: &mut Fields<'_>, index: usize, json: &str) -> Option<Pin> {
    const FORM: &str = "{\"type\":\"spki_sha256\",\"value\":\"sha256/…\"}";
    const VALUE_FORM: &str = "\"sha256/\" and the base64 of the key's SHA-256, or 64 hexadecimal digits";
    let path = tls.place(&format!("pins[{index}]"));
    let mut pin = Fields::of(json, &path, FORM, tls.mistakes())?;
    if pin
        .text("type", &format!("{PIN_TYPE:?}"), |text| if text == PIN_TYPE { Ok(()) } else { Err(shown(text)) })
        .is_none()
    {
        pin.raw("value");
        pin.end("type and value");
        return None;
    }
    let value = pin.text("value", VALUE_FORM, |text| text.parse().map_err(|_| shown(text)));
    pin.end("type and value");
    value
}

fn metadata(fields: &mut Fields<'_>) -> Metadata {
    let Some(raw) = fields.raw("metadata") else { return Metadata::default() };
    let form =
        format!("any JSON object, like {{\"owner\":\"us\"}}, of {} levels at most", PeerSpec::METADATA_DEPTH_MAX);
    // Whoever is told of the peer must be able to read it, too.
    fields.read("metadata", &raw, &form, |value| match value {
        Value::Object(_) if depth(value) <= PeerSpec::METADATA_DEPTH_MAX => Ok(()),
        Value::Object(_) => Err(Some("it is nested too deeply".to_owned())),
        _ => Err(Some("it is no object".to_owned())),
    });
    Metadata(raw)
}

/// How many levels of lists and objects there are.
fn depth(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(values) => values.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + deepest.unwrap_or(0)
}
