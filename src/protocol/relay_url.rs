//! Relay URLs, normalised so that the spellings of one relay are one relay.

use std::fmt;
use std::sync::Arc;

#[cfg(not(all(feature = "browser", target_family = "wasm")))]
use with_url::normalise;

/// The browser's own parser does the same, and needs no tables of names that would be a tenth of the download.
#[cfg(all(feature = "browser", target_family = "wasm"))]
use crate::browser::normalise;

/// Why a text is no relay URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayUrlError {
    /// The text.
    pub url: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for RelayUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid relay URL {:?}: {}", self.url, self.reason)
    }
}

impl std::error::Error for RelayUrlError {}

/// The address of a relay: `ws` or `wss`, host in lower case without trailing dots, default port left out, no
/// trailing slash, no fragment, credentials or tracking parameters. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayUrl(Arc<str>);

impl RelayUrl {
    /// Parses and normalises.
    ///
    /// # Errors
    /// The text is no URL, its scheme is not `ws` or `wss`, or it has no host.
    pub fn parse(text: &str) -> Result<Self, RelayUrlError> {
        match normalise(text.trim()) {
            Ok(normal) => Ok(Self(normal.into())),
            Err(reason) => Err(RelayUrlError { url: text.to_owned(), reason }),
        }
    }

    /// The normal form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Is the connection to be encrypted?
    pub fn is_tls(&self) -> bool {
        self.0.starts_with("wss:")
    }

    /// The host, without port.
    pub fn host(&self) -> String {
        self.authority().0.trim_matches(['[', ']']).to_owned()
    }

    /// The port, written or default.
    pub fn port(&self) -> u16 {
        let written = self.authority().1.and_then(|port| port.parse().ok());
        written.unwrap_or(if self.is_tls() { 443 } else { 80 })
    }

    /// Host and written port. An IPv6 address is in brackets.
    fn authority(&self) -> (&str, Option<&str>) {
        let (_, rest) = self.0.split_once("://").unwrap_or_default();
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        }
    }
}

/// Is this a query parameter that says who linked to the relay, not which relay it is?
pub(crate) fn is_tracking(name: &str) -> bool {
    name.starts_with("utm_") || matches!(name, "fbclid" | "gclid" | "ref")
}

/// Why texts are no relay URL.
pub(crate) mod reasons {
    pub(crate) const NO_URL: &str = "write it like wss://relay.example";
    pub(crate) const SCHEME: &str = "the scheme must be ws or wss";
    pub(crate) const CREDENTIALS: &str = "a relay URL carries no user name or password";
    pub(crate) const NO_HOST: &str = "the host is empty";
}

#[cfg(not(all(feature = "browser", target_family = "wasm")))]
mod with_url {
    use url::{Host, Url};

    use super::{is_tracking, reasons};

    /// The normal form of a relay URL, or why it is none.
    pub(super) fn normalise(text: &str) -> Result<String, String> {
        let mut url = Url::parse(text).map_err(|error| format!("{error}; {}", reasons::NO_URL))?;
        if !matches!(url.scheme(), "ws" | "wss") {
            return Err(reasons::SCHEME.into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(reasons::CREDENTIALS.into());
        }
        if let Some(Host::Domain(domain)) = url.host() {
            let bare = domain.trim_end_matches('.').to_owned();
            url.set_host(Some(&bare)).map_err(|_| reasons::NO_HOST)?;
        }
        url.set_fragment(None);
        drop_tracking(&mut url);
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        // For an empty path the url crate always writes one slash.
        let mut normal = String::from(url);
        if path.is_empty() && normal.ends_with('/') {
            normal.pop();
        }
        Ok(normal)
    }

    fn drop_tracking(url: &mut Url) {
        if url.query().is_none() {
            return;
        }
        let kept: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(name, _)| !is_tracking(name))
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        url.set_query(None);
        if !kept.is_empty() {
            url.query_pairs_mut().extend_pairs(kept);
        }
    }
}

impl fmt::Display for RelayUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RelayUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for RelayUrl {
    type Err = RelayUrlError;

    fn from_str(text: &str) -> Result<Self, RelayUrlError> {
        Self::parse(text)
    }
}

impl serde::Serialize for RelayUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for RelayUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::RelayUrl;

    #[test]
    fn spellings_of_one_relay_are_one_relay() {
        for spelling in [
            "wss://x.example",
            "wss://X.Example/",
            "wss://x.example:443",
            "wss://x.example.",
            "wss://x.example/?utm_source=a#b",
        ] {
            assert_eq!(RelayUrl::parse(spelling).unwrap().as_str(), "wss://x.example", "{spelling}");
        }
        assert_eq!(RelayUrl::parse("ws://127.0.0.1:80/a/").unwrap().as_str(), "ws://127.0.0.1/a");
        assert_ne!(RelayUrl::parse("wss://x.example/a").unwrap(), RelayUrl::parse("wss://x.example/b").unwrap());
        assert_ne!(RelayUrl::parse("wss://x.example/?k=1").unwrap(), RelayUrl::parse("wss://x.example/").unwrap());
    }

    #[test]
    fn host_and_port_are_those_of_the_url() {
        for (url, host, port) in [
            ("wss://x.example", "x.example", 443),
            ("ws://x.example/a:1?b=:2", "x.example", 80),
            ("ws://127.0.0.1:7777", "127.0.0.1", 7777),
            ("wss://[::1]", "::1", 443),
            ("ws://[2001:db8::1]:81/", "2001:db8::1", 81),
            ("wss://x.example/?k=1", "x.example", 443),
        ] {
            let url = RelayUrl::parse(url).unwrap();
            assert_eq!((&*url.host(), url.port()), (host, port), "{url}");
        }
    }

    #[test]
    fn what_is_no_relay_url_is_refused() {
        for text in ["", "x.example", "http://x.example", "wss://", "wss://u:p@x.example", "ws://."] {
            assert!(RelayUrl::parse(text).is_err(), "{text}");
        }
    }
}
