//! How many connections one address may have and open.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use super::ServiceConfig;
use crate::runtime::Instant;
use crate::serve::Bucket;

/// The addresses from which connections came.
#[derive(Debug, Default)]
pub(super) struct Visitors {
    known: BTreeMap<IpAddr, Visitor>,
    /// Each connection that is being turned away holds a copy.
    turned_away: Arc<()>,
}

#[derive(Debug, Default)]
struct Visitor {
    /// Each connection holds a copy.
    open: Arc<()>,
    opened: Bucket,
}

/// Held by a connection as long as it is open.
#[derive(Debug)]
pub(super) struct Visit {
    _open: Option<Arc<()>>,
}

impl Visitors {
    /// Lets one more connection from `ip` in; `None` if it has, or opens, too many.
    pub(super) fn admit(&mut self, ip: IpAddr, config: &ServiceConfig, now: Instant) -> Option<Visit> {
        let ip = network_of(ip);
        if ip.is_loopback() && !config.bounds_loopback {
            return Some(Visit { _open: None });
        }
        if !self.known.contains_key(&ip) && self.known.len() >= config.addresses_max {
            self.known.retain(|_, visitor| visitor.is_open() || !visitor.opened.is_full(now));
            // Strangers who come in such numbers are bounded together, by the connections open at once.
            if self.known.len() >= config.addresses_max {
                return Some(Visit { _open: None });
            }
        }
        let visitor = self.known.entry(ip).or_default();
        let is_let_in = Arc::strong_count(&visitor.open) <= config.clients_per_address_max
            && visitor.opened.take(1, config.connects_per_address_per_minute_max, now);
        is_let_in.then(|| Visit { _open: Some(Arc::clone(&visitor.open)) })
    }

    /// For a connection that is to be told to go away.
    pub(super) fn turn_away(&self) -> Visit {
        Visit { _open: Some(Arc::clone(&self.turned_away)) }
    }

    /// Connections that are being turned away.
    pub(super) fn turned_away(&self) -> usize {
        Arc::strong_count(&self.turned_away) - 1
    }
}

impl Visitor {
    fn is_open(&self) -> bool {
        Arc::strong_count(&self.open) > 1
    }
}

/// Who has an IPv6 address has at least 2^64 of them: they count as one.
fn network_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) if !ip.is_loopback() => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn config() -> ServiceConfig {
        ServiceConfig {
            clients_per_address_max: 2,
            connects_per_address_per_minute_max: 4,
            addresses_max: 3,
            ..ServiceConfig::default()
        }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_and_opens_so_many_and_no_more() {
        let (mut visitors, config, now) = (Visitors::default(), config(), Instant::from_origin(Duration::from_secs(9)));
        let mut admit = |text: &str, now| visitors.admit(ip(text), &config, now);
        let first = admit("203.0.113.1", now).unwrap();
        let _second = admit("::ffff:203.0.113.1", now).unwrap();
        assert!(admit("203.0.113.1", now).is_none(), "two are open");
        assert!(admit("203.0.113.2", now).is_some(), "others do not suffer");
        drop(first);
        drop(admit("203.0.113.1", now).unwrap());
        drop(admit("203.0.113.1", now).unwrap());
        assert!(admit("203.0.113.1", now).is_none(), "four were opened in this minute");
        assert!(admit("203.0.113.1", now + Duration::from_secs(15)).is_some());
    }

    #[test]
    fn networks_count_as_one_and_this_machine_is_exempt() {
        let (mut visitors, config, now) = (Visitors::default(), config(), Instant::ZERO);
        let _open = (visitors.admit(ip("2001:db8::1"), &config, now), visitors.admit(ip("2001:db8::2"), &config, now));
        assert!(visitors.admit(ip("2001:db8:0:0:ffff::3"), &config, now).is_none());
        assert!(visitors.admit(ip("2001:db8:0:1::1"), &config, now).is_some());
        assert!((0..9).all(|_| visitors.admit(ip("127.0.0.1"), &config, now).is_some()));
        assert!((0..9).all(|_| visitors.admit(ip("::1"), &config, now).is_some()));
    }

    #[test]
    fn addresses_that_are_remembered_are_bounded() {
        let (mut visitors, config, now) = (Visitors::default(), config(), Instant::from_origin(Duration::from_secs(9)));
        for last in 1..=9 {
            assert!(visitors.admit(ip(&format!("203.0.113.{last}")), &config, now).is_some());
        }
        assert_eq!(visitors.known.len(), 3);
        let later = now + Duration::from_secs(60);
        let open = visitors.admit(ip("203.0.113.9"), &config, later);
        assert_eq!(visitors.known.len(), 1, "those that are gone are forgotten");
        assert!(open.is_some());
    }
}
