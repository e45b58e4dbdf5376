//! Who signs a call (NIP-98).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bitcoin_hashes::sha256;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use url::{Position, Url};

use super::body::Refusal;
use crate::ingest::{Verified, verify};
use crate::protocol::{Event, hex};

/// The kind of events that authorise a call.
const KIND: u16 = 27235;

/// The event that a call carries. Its signature is not checked yet: see [`proven`].
///
/// # Errors
/// There is none, or it is none of this kind, or somebody else's.
pub(super) fn claimed(headers: &HeaderMap) -> Result<Event, Refusal> {
    let none = || {
        let words = "this takes a signature (NIP-98): the header \"Authorization: Nostr \" and an event in base64";
        Refusal::unproven(words)
    };
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or_else(none)?;
    if values.next().is_some() {
        return Err(unfit("is there twice"));
    }
    let base64 = value.to_str().ok().and_then(|text| text.split_once(' ')).filter(|(scheme, _)| is_nostr(scheme));
    let (_, base64) = base64.ok_or_else(none)?;
    let json = STANDARD.decode(base64.trim()).map_err(|_| unfit("holds something that is not base64"))?;
    let event = Event::parse(json.into()).map_err(|error| unfit(&format!("holds no event: {error}")))?;
    if event.kind_number() != KIND {
        return Err(unfit(&format!("holds an event of kind {}, and it must be {KIND}", event.kind_number())));
    }
    Ok(event)
}

/// Is the event what it says it is? Id first, then the signature, which takes longest.
pub(super) fn proven(event: Event) -> Result<Verified<Event>, Refusal> {
    verify(event).map_err(|_| unfit("holds an event that nobody has signed like that"))
}

fn unfit(why: &str) -> Refusal {
    Refusal::unproven(format!("the Authorization header {why}"))
}

fn is_nostr(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("nostr")
}

/// Is the event meant for this method of HTTP?
pub(super) fn check_method(event: &Event, method: &str) -> Result<(), Refusal> {
    match tag(event, "method")? == method {
        true => Ok(()),
        false => Err(Refusal::unproven(format!("the signature is for another method than {method}"))),
    }
}

/// Is the event meant for this call?
pub(super) fn check_body(event: &Event, body: &[u8]) -> Result<(), Refusal> {
    let hash = hex::encode(sha256::Hash::hash(body).as_ref());
    if !tag(event, "payload")?.eq_ignore_ascii_case(&hash) {
        return Err(Refusal::unproven("the signature is for another call: its payload is not the SHA-256 of this one"));
    }
    Ok(())
}

/// Is the event meant for one of these URLs?
pub(super) fn check_url(event: &Event, urls: impl IntoIterator<Item = Url>) -> Result<(), Refusal> {
    let signed = tag(event, "u")?;
    let meant = Url::parse(signed).ok().map(|url| by_http(&url));
    match meant {
        Some(meant) if urls.into_iter().any(|url| by_http(&url) == meant) => Ok(()),
        _ => Err(Refusal::unproven(format!("the signature is for {signed:?}, which is not where this came to"))),
    }
}

/// The same place, by `http` or `https`.
fn by_http(url: &Url) -> String {
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        other => other,
    };
    let port = url.port().filter(|port| Some(*port) != default_port(scheme));
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let user = &url[Position::BeforeUsername..Position::BeforeHost];
    let host = url.host_str().unwrap_or_default();
    format!("{scheme}://{user}{host}{port}{}", &url[Position::BeforePath..Position::AfterQuery])
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

fn tag<'e>(event: &'e Event, name: &str) -> Result<&'e str, Refusal> {
    let mut tags = event.tags.iter().map(|tag| tag.as_slice()).filter(|tag| tag.first().is_some_and(|tag| tag == name));
    match (tags.next().and_then(|tag| tag.get(1)), tags.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(Refusal::unproven(format!("the signed event has no tag {name:?} with a value"))),
        (Some(_), Some(_)) => Err(Refusal::unproven(format!("the signed event has two tags {name:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_has_one_spelling() {
        let place = |url: &str| by_http(&Url::parse(url).unwrap());
        for url in ["wss://Relay.example", "https://relay.example:443/", "wss://relay.example:443/#x"] {
            assert_eq!(place(url), "https://relay.example/", "{url}");
        }
        assert_eq!(place("ws://[::1]:80/a?b=c"), "http://[::1]/a?b=c");
        for (url, other) in [
            ("http://relay.example", "https://relay.example"),
            ("https://relay.example/a", "https://relay.example/a/"),
            ("https://relay.example/", "https://u:p@relay.example/"),
            ("https://relay.example/?a", "https://relay.example/?b"),
            ("https://relay.example:80/", "https://relay.example/"),
        ] {
            assert_ne!(place(url), place(other));
        }
    }
}
