//! Addresses of addressable events, as `a` tags carry them (NIP-01).

use std::fmt;
use std::sync::Arc;

use super::hex;

/// The address of an addressable event: `kind:author:identifier`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The kind, 30000 to 39999.
    pub kind: u16,
    /// The author's public key.
    pub author: [u8; 32],
    /// The value of the `d` tag.
    pub identifier: Arc<str>,
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError {
    /// The text.
    pub address: String,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid address {:?}; write it like 30617:<public key in hexadecimal>:<identifier>", self.address)
    }
}

impl std::error::Error for AddressError {}

impl Address {
    /// The kind of repository announcements (NIP-34).
    pub const REPOSITORY: u16 = 30617;

    /// The address of a repository (NIP-34).
    pub fn repository(author: [u8; 32], identifier: &str) -> Self {
        Self { kind: Self::REPOSITORY, author, identifier: identifier.into() }
    }

    /// Parses `kind:author:identifier`. The identifier may be empty, and may have colons in it.
    ///
    /// # Errors
    /// A part is missing, the kind is not an addressable one, or the author is not 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        Self::parse_parts(text).ok_or_else(|| AddressError { address: text.to_owned() })
    }

    fn parse_parts(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let (kind, author, identifier) = (parts.next()?, parts.next()?, parts.next()?);
        let kind: u16 = kind.parse().ok().filter(|kind| (30_000..40_000).contains(kind))?;
        if author.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        Some(Self { kind, author: hex::decode(author)?.try_into().ok()?, identifier: identifier.into() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.kind, hex::encode(&self.author), self.identifier)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        let key = "ab".repeat(32);
        for identifier in ["relaysync", "", "a:b:c", "ünï"] {
            let text = format!("30617:{key}:{identifier}");
            assert_eq!(Address::parse(&text).unwrap().to_string(), text);
        }
        assert_eq!(Address::parse(&format!("30617:{key}:x")), Ok(Address::repository([0xab; 32], "x")));
    }

    #[test]
    fn what_is_no_address_is_named() {
        let key = "ab".repeat(32);
        let upper = key.to_uppercase();
        for text in ["", "30617", &format!("30617:{key}"), &format!("1:{key}:x"), &format!("x:{key}:x"), "30617:ab:x"] {
            assert!(Address::parse(text).unwrap_err().to_string().contains(text));
        }
        assert!(Address::parse(&format!("30617:{upper}:x")).is_err());
    }
}
