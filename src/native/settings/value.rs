//! Types of settings: how each is read, and how it is written.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use nostr::nips::nip19::{FromBech32, Nip19Coordinate};

use url::Url;

use super::raw::{Fault, Raw};
use crate::discover::{Accept, service_url};
use crate::native::admin::MetricPrefix;
use crate::peer::Rule;
use crate::protocol::filter::{Filter, parse_strict};
use crate::protocol::{Address, PublicKey, RelayUrl, hex};

/// A type of setting.
pub(super) trait Value: Sized {
    /// What it is, with an example, after "write ".
    const FORM: &'static str;
    /// An example, in TOML.
    const EXAMPLE: &'static str;

    fn read(raw: &Raw) -> Result<Self, Vec<Fault>>;

    /// In TOML; `None` if it is not set.
    fn write(&self) -> Option<String>;

    /// The example of the whole value.
    fn example() -> String {
        Self::EXAMPLE.to_owned()
    }
}

/// `raw` is nothing of the kind.
pub(super) fn unfit(raw: &Raw, form: &str) -> Vec<Fault> {
    vec![format!("{} does not fit here; write {form}", raw.describe()).into()]
}

/// A type that is a string in TOML.
pub(super) trait Text: Sized {
    const FORM: &'static str;
    const EXAMPLE: &'static str;

    /// The error says what is wrong with the text; what to write instead is in `FORM`.
    fn parse(text: &str) -> Result<Self, String>;

    fn text(&self) -> String;
}

impl<T: Text> Value for T {
    const FORM: &'static str = T::FORM;
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn read(raw: &Raw) -> Result<Self, Vec<Fault>> {
        match raw {
            Raw::Text(text) | Raw::Loose(text) => {
                T::parse(text).map_err(|reason| vec![format!("{reason}; write {}", T::FORM).into()])
            }
            _ => Err(unfit(raw, T::FORM)),
        }
    }

    fn write(&self) -> Option<String> {
        Some(quoted(&self.text()))
    }
}

/// `text` as a string of TOML.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

impl Value for bool {
    const FORM: &'static str = "true or false, without quotes";
    const EXAMPLE: &'static str = "true";

    fn read(raw: &Raw) -> Result<Self, Vec<Fault>> {
        match raw {
            Raw::Boolean(is) => Ok(*is),
            Raw::Loose(text) if text == "true" => Ok(true),
            Raw::Loose(text) if text == "false" => Ok(false),
            _ => Err(unfit(raw, Self::FORM)),
        }
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// An event kind.
impl Value for u16 {
    const FORM: &'static str = "an event kind from 0 to 65535, like 30617";
    const EXAMPLE: &'static str = "30617";

    fn read(raw: &Raw) -> Result<Self, Vec<Fault>> {
        let kind = match raw {
            Raw::Number(number) => Self::try_from(*number).ok(),
            Raw::Loose(text) => text.trim().parse().ok(),
            _ => None,
        };
        kind.ok_or_else(|| unfit(raw, Self::FORM))
    }

    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// From the environment and from flags, empty text means: not set.
impl<T: Value> Value for Option<T> {
    const FORM: &'static str = T::FORM;
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn read(raw: &Raw) -> Result<Self, Vec<Fault>> {
        match raw {
            Raw::Loose(text) if text.is_empty() => Ok(None),
            _ => T::read(raw).map(Some),
        }
    }

    fn write(&self) -> Option<String> {
        self.as_ref().and_then(T::write)
    }
}

impl<T: Value> Value for Vec<T> {
    const FORM: &'static str = T::FORM;
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn read(raw: &Raw) -> Result<Self, Vec<Fault>> {
        let elements = match raw {
            Raw::List(elements) => elements,
            Raw::Loose(text) => return read_loose_list(text),
            _ => return Err(unfit(raw, &format!("a list: {}", Self::example()))),
        };
        let (mut values, mut faults) = (Self::new(), Vec::new());
        for element in elements {
            match T::read(&element.raw) {
                Ok(value) => values.push(value),
                Err(found) => {
                    faults.extend(found.into_iter().map(|fault| Fault { line: fault.line.or(element.line), ..fault }));
                }
            }
        }
        if faults.is_empty() { Ok(values) } else { Err(faults) }
    }

    fn write(&self) -> Option<String> {
        let elements: Vec<String> = self.iter().filter_map(T::write).collect();
        Some(format!("[{}]", elements.join(", ")))
    }

    fn example() -> String {
        format!("[{}]", T::EXAMPLE)
    }
}

/// A list from the environment or a flag: in brackets as in the file, or separated by commas.
fn read_loose_list<T: Value>(text: &str) -> Result<Vec<T>, Vec<Fault>> {
    if !text.trim_start().starts_with('[') {
        let elements = text.split(',').map(str::trim).filter(|element| !element.is_empty());
        return Vec::read(&Raw::list(elements.map(str::to_owned)));
    }
    match toml::de::DeValue::parse(text) {
        Ok(value) => {
            let raw = Raw::from_toml(value.get_ref(), &super::raw::Lines::of(text));
            // Lines of a variable are of no use to anybody.
            Vec::read(&raw).map_err(|faults| faults.into_iter().map(|fault| fault.reason.into()).collect())
        }
        Err(error) => Err(vec![format!("{}; write a list: [{}]", error.message(), T::EXAMPLE).into()]),
    }
}

impl<T: Value + Ord> Value for BTreeSet<T> {
    const FORM: &'static str = T::FORM;
    const EXAMPLE: &'static str = T::EXAMPLE;

    fn read(raw: &Raw) -> Result<Self, Vec<Fault>> {
        Vec::read(raw).map(Self::from_iter)
    }

    fn write(&self) -> Option<String> {
        let elements: Vec<String> = self.iter().filter_map(T::write).collect();
        Some(format!("[{}]", elements.join(", ")))
    }

    fn example() -> String {
        Vec::<T>::example()
    }
}

impl Text for String {
    const FORM: &'static str = "text in quotes";
    const EXAMPLE: &'static str = "\"…\"";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

impl Text for PathBuf {
    const FORM: &'static str = "a path in quotes";
    const EXAMPLE: &'static str = "\"/etc/relaysync/key\"";

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.into()) }
    }

    fn text(&self) -> String {
        self.to_string_lossy().into_owned()
    }
}

impl Text for SocketAddr {
    const FORM: &'static str = "an address and port, like \"127.0.0.1:7777\", \"0.0.0.0:7777\" or \"[::]:7777\"";
    const EXAMPLE: &'static str = "\"127.0.0.1:7777\"";

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| format!("{text:?} is no address to listen on"))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Text for RelayUrl {
    const FORM: &'static str = "a relay URL, like \"wss://relay.example\"";
    const EXAMPLE: &'static str = "\"wss://relay.example\"";

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|error| {
            let reason = error.reason.split(';').next().unwrap_or_default();
            format!("{text:?} is no relay URL: {reason}")
        })
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Text for Url {
    const FORM: &'static str = "an http, https, ws or wss URL, like \"https://relay.example/\"";
    const EXAMPLE: &'static str = "\"https://relay.example/\"";

    fn parse(text: &str) -> Result<Self, String> {
        match Self::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https" | "ws" | "wss") && url.has_host() => Ok(url),
            _ => Err(format!("{text:?} is no such URL")),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// A URL of our own service.
pub(super) struct ServiceUrl(pub(super) RelayUrl);

impl Text for ServiceUrl {
    const FORM: &'static str = "a URL of our service, like \"wss://git.example\" or \"https://git.example\"";
    const EXAMPLE: &'static str = "\"https://git.example\"";

    fn parse(text: &str) -> Result<Self, String> {
        let url = service_url(text).map_err(|error| {
            let reason = error.reason.split(';').next().unwrap_or_default();
            format!("{text:?} is no URL of a service: {reason}")
        })?;
        Ok(Self(url))
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

impl Text for PublicKey {
    const FORM: &'static str = "a public key, as npub1… or 64 hexadecimal digits";
    const EXAMPLE: &'static str = "\"npub14f8usejl26twx0dhuxjh9cas7keav9vr0v8nvtwtrjqx3vycc76qqh9nsy\"";

    fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with("nsec1") {
            // Nobody wants to read it again in a log.
            return Err("this is a secret key, which must not stand here".to_owned());
        }
        Self::parse(text).map_err(|_| format!("{text:?} is no public key"))
    }

    fn text(&self) -> String {
        self.to_hex()
    }
}

/// A public key as discovery knows it.
impl Text for [u8; 32] {
    const FORM: &'static str = <PublicKey as Text>::FORM;
    const EXAMPLE: &'static str = <PublicKey as Text>::EXAMPLE;

    fn parse(text: &str) -> Result<Self, String> {
        <PublicKey as Text>::parse(text).map(PublicKey::to_bytes)
    }

    fn text(&self) -> String {
        hex::encode(self)
    }
}

/// The address of a repository.
impl Text for Address {
    const FORM: &'static str = "a repository, as \"30617:PUBLIC KEY:IDENTIFIER\" or naddr1…";
    const EXAMPLE: &'static str =
        "\"30617:aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4:my-repository\"";

    fn parse(text: &str) -> Result<Self, String> {
        let fault = || format!("{text:?} is no repository");
        let address = if text.starts_with("naddr1") {
            let coordinate = Nip19Coordinate::from_bech32(text).map_err(|_| fault())?.coordinate;
            let author = coordinate.public_key.to_bytes();
            Self { kind: coordinate.kind.as_u16(), author, identifier: coordinate.identifier.into() }
        } else {
            Self::parse(text).map_err(|_| fault())?
        };
        match address.kind {
            Self::REPOSITORY => Ok(address),
            kind => Err(format!("{text:?} has kind {kind}, and repositories have {}", Self::REPOSITORY)),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Text for Accept {
    const FORM: &'static str = "\"listed\", \"allowed\" or \"all\"";
    const EXAMPLE: &'static str = "\"listed\"";

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "listed" => Ok(Self::Listed),
            "allowed" => Ok(Self::Allowed),
            "all" => Ok(Self::All),
            _ => Err(format!("{text:?} is no way to accept announcements")),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Listed => "listed",
            Self::Allowed => "allowed",
            Self::All => "all",
        }
        .to_owned()
    }
}

impl Text for MetricPrefix {
    const FORM: &'static str = "letters, digits and underscores, like \"relaysync\" or \"ngit_sync\"";
    const EXAMPLE: &'static str = "\"relaysync\"";

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text).map_err(|_| format!("{text:?} cannot begin the name of a metric"))
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Text for Arc<Filter> {
    const FORM: &'static str = "a filter (NIP-01) without limit, as JSON in single quotes, like '{\"kinds\":[1]}'";
    const EXAMPLE: &'static str = "'{\"kinds\":[30617,30618,1617,1618,1621]}'";

    fn parse(text: &str) -> Result<Self, String> {
        let filter = parse_strict(text).map_err(|error| error.to_string())?;
        if filter.limit.is_some() {
            return Err("it has a \"limit\", but all that it selects is kept in step".to_owned());
        }
        Ok(Self::new(filter))
    }

    fn text(&self) -> String {
        serde_json::to_string(self.as_ref()).unwrap_or_default()
    }
}

/// A filter of what an event is, not when it is, or which.
pub(super) struct MatchFilter(pub(super) Filter);

impl Text for MatchFilter {
    const FORM: &'static str =
        "kinds, authors and tags of a filter (NIP-01), as JSON in single quotes, like '{\"kinds\":[5000]}'";
    const EXAMPLE: &'static str = "'{\"kinds\":[5000]}'";

    fn parse(text: &str) -> Result<Self, String> {
        Rule::parse_match(text).map(Self).map_err(|mistakes| mistakes.to_string().replace('\n', "; "))
    }

    fn text(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_read_as_it_was() {
        for text in ["", "a\"b\\c", "x\ny\tz\r", "\u{1}\u{7f}\u{85}", "ä🎉"] {
            let quoted = quoted(text);
            let value = toml::de::DeValue::parse(&quoted).unwrap().into_inner();
            assert_eq!(value.as_str(), Some(text));
        }
    }

    #[test]
    fn lists_from_outside_the_file_have_commas_or_brackets() {
        let read = |text: &str| Vec::<String>::read(&Raw::Loose(text.to_owned())).unwrap();
        assert_eq!(read(""), [""; 0]);
        assert_eq!(read("a, b,"), ["a", "b"]);
        assert_eq!(read("[\"a, b\", 'c']"), ["a, b", "c"]);
        assert!(Vec::<String>::read(&Raw::Loose("[\"a".to_owned())).is_err());
        assert!(Vec::<String>::read(&Raw::Loose("[1]".to_owned())).is_err());
    }

    #[test]
    fn keys_and_repositories_are_taken_in_each_usual_form() {
        let npub = <PublicKey as Text>::EXAMPLE.trim_matches('"');
        let key = <PublicKey as Text>::parse(npub).unwrap();
        assert_eq!(<PublicKey as Text>::parse(&key.to_hex()), Ok(key));
        let secret = <PublicKey as Text>::parse("nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5");
        assert!(secret.is_err_and(|reason| reason.contains("secret") && !reason.contains("vl029")));

        let repository = <Address as Text>::parse(<Address as Text>::EXAMPLE.trim_matches('"')).unwrap();
        assert_eq!((repository.author, &*repository.identifier), (key.to_bytes(), "my-repository"));
        let coordinate = nostr::nips::nip01::Coordinate::new(30617.into(), key).identifier("my-repository");
        let naddr = nostr::nips::nip19::ToBech32::to_bech32(&Nip19Coordinate::new(coordinate, [])).unwrap();
        assert_eq!(<Address as Text>::parse(&naddr), Ok(repository.clone()));
        let other_kind = repository.to_string().replace("30617", "30618");
        assert!(<Address as Text>::parse(&other_kind).is_err_and(|reason| reason.contains("30617")));
    }
}
