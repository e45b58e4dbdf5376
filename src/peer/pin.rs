//! Pinned keys.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bitcoin_hashes::sha256;

use crate::protocol::hex;

/// A public key: the SHA-256 of its SubjectPublicKeyInfo (RFC 7469, 2.4).
///
/// Its text is `sha256/` and base64, as of
/// `openssl x509 -in FILE -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64`,
/// or 64 hexadecimal digits. Where base64 is read, `sha256/` may be left out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pin([u8; 32]);

impl Pin {
    /// The pin of a key, by its SubjectPublicKeyInfo in DER.
    pub fn of_key(subject_public_key_info: &[u8]) -> Self {
        Self(sha256::Hash::hash(subject_public_key_info).to_byte_array())
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256/{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Pin {
    type Err = PinError;

    fn from_str(text: &str) -> Result<Self, PinError> {
        let bytes = match (text.strip_prefix("sha256/"), text.len()) {
            (Some(base64), _) => STANDARD.decode(base64).ok(),
            (None, 64) => hex::decode(text),
            (None, _) => STANDARD.decode(text).ok(),
        };
        let hash = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        hash.map(Self).ok_or_else(|| PinError {
            reason: format!("{text:?} is neither \"sha256/\" and base64 nor hexadecimal of 32 bytes"),
        })
    }
}

impl serde::Serialize for Pin {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Pin {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// This is no pin, or nothing that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinError {
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no pin: {}", self.reason)
    }
}

impl std::error::Error for PinError {}

/// Whose key a pin may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinScope {
    /// The relay's own.
    #[default]
    EndEntity,
    /// The relay's own, or that of an authority whose certificates lead to it. A certificate that the relay merely
    /// sends along does not count.
    Chain,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_are_read_and_others_are_refused() {
        let pin = Pin::of_key(b"a key");
        let text = pin.to_string();
        let hexadecimal = hex::encode(&pin.0);
        for text in [&*text, &text["sha256/".len()..], &hexadecimal] {
            assert_eq!(text.parse(), Ok(pin), "{text}");
        }
        for text in ["", "sha256/", "sha256/AAAA", &hexadecimal[2..], "sha1/AAAA", "zz"] {
            assert!(text.parse::<Pin>().is_err_and(|error| error.to_string().starts_with("no pin: ")), "{text}");
        }
    }
}
