//! Where a relay is: whether two URLs lead to one service, and whether to a network that is nobody else's business.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::protocol::{RelayUrl, RelayUrlError};

/// Names that are never those of a public relay.
const PRIVATE_SUFFIXES: [&str; 7] = ["localhost", "local", "internal", "lan", "home.arpa", "intranet", "corp"];

/// Host and port of a service. The default ports of `ws` and `wss` are one: a service that listens on both is one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    host: String,
    port: Option<u16>,
}

impl Place {
    pub(super) fn of(url: &RelayUrl) -> Self {
        let port = url.port();
        Self { host: url.host(), port: (!matches!(port, 80 | 443)).then_some(port) }
    }

    /// Is it on this machine, or on a network that is not public?
    pub(super) fn is_private(&self) -> bool {
        match self.host.parse() {
            Ok(address) => is_private_address(address),
            Err(_) => PRIVATE_SUFFIXES.iter().any(|suffix| {
                let rest = self.host.strip_suffix(suffix);
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }),
        }
    }
}

/// Does this address lead to this machine, or to a network that is not public?
pub fn is_private_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let shared = first == 100 && (64..128).contains(&second);
    let benchmark = first == 198 && (18..20).contains(&second);
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || first == 0
        || first >= 224
        || shared
        || benchmark
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let [first, second, .., high, low] = address.segments();
    // Mapped (::ffff:0:0/96), compatible (::/96), translated (64:ff9b::/96) and 6to4 (2002::/16) addresses lead to an IPv4
    // address.
    let embedded = match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some((high, low)),
        [0x2002, high, low, ..] => Some((high, low)),
        _ => None,
    };
    if let Some((high, low)) = embedded {
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        return is_private_v4(Ipv4Addr::new(a, b, c, d));
    }
    address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || (first, second) == (0x2001, 0xdb8)
}

/// Reads a URL of our own service: that of its relay, or that of its git server, which is the same but for the scheme.
/// The path is left out.
///
/// # Errors
/// The text is no URL, or its scheme is none of `ws`, `wss`, `http` and `https`.
pub fn service_url(text: &str) -> Result<RelayUrl, RelayUrlError> {
    let text = text.trim();
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => "ws".to_owned(),
        "https" => "wss".to_owned(),
        other => other.to_owned(),
    };
    RelayUrl::parse(&format!("{scheme}://{rest}")).map(|url| origin(&url))
}

/// The URL without path and query.
pub(super) fn origin(url: &RelayUrl) -> RelayUrl {
    let text = url.as_str();
    let begin = text.find("://").map_or(0, |at| at + 3);
    let end = text[begin..].find(['/', '?']).map_or(text.len(), |at| begin + at);
    RelayUrl::parse(&text[..end]).unwrap_or_else(|_| url.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> Place {
        Place::of(&RelayUrl::parse(url).unwrap())
    }

    #[test]
    fn a_service_is_known_by_host_and_port_in_either_scheme() {
        assert_eq!(place("wss://git.example/a"), place("ws://GIT.example."));
        assert_eq!(place("ws://git.example:7000"), place("wss://git.example:7000/b"));
        assert_ne!(place("ws://git.example:7000"), place("ws://git.example"));
        assert_ne!(place("wss://git.example"), place("wss://evil-git.example"));
    }

    #[test]
    fn private_places_are_known() {
        for host in [
            "127.0.0.1",
            "127.1",
            "10.1.2.3",
            "192.168.0.9",
            "172.16.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "[::1]",
            "[::]",
            "[fd00::1]",
            "[fe80::1]",
            "[::ffff:10.0.0.1]",
            "[2002:7f00:1::]",
            "[64:ff9b::a00:1]",
            "localhost",
            "a.localhost",
            "printer.local",
            "0x7f000001",
            "db.internal",
        ] {
            assert!(place(&format!("ws://{host}:8080")).is_private(), "{host}");
        }
        for host in ["8.8.8.8", "relay.example", "local.example", "notlocalhost", "[2606:4700::1]", "[::ffff:8.8.8.8]"]
        {
            assert!(!place(&format!("ws://{host}")).is_private(), "{host}");
        }
    }

    #[test]
    fn a_service_url_may_be_that_of_the_git_server() {
        for text in
            ["https://git.example/", "HTTPS://git.example/npub1/x.git", "wss://git.example?a=b", "wss://git.example"]
        {
            assert_eq!(service_url(text).unwrap().as_str(), "wss://git.example", "{text}");
        }
        assert_eq!(service_url("http://127.0.0.1:80").unwrap().as_str(), "ws://127.0.0.1");
        assert!(service_url("git.example").is_err() && service_url("ssh://git.example").is_err());
    }
}
