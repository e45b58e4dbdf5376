//! Relay information documents (NIP-11): hints, never promises.

use serde::{Deserialize, Serialize};

/// The fields of a relay information document that matter to a sync. All are optional; unknown fields are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RelayInfo {
    /// The relay's name.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub name: Option<String>,
    /// A description for people.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub description: Option<String>,
    /// The administrator's key, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub pubkey: Option<String>,
    /// The relay's own key, hexadecimal.
    #[serde(rename = "self", skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub relay_key: Option<String>,
    /// The software's address.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub software: Option<String>,
    /// The software's version.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub version: Option<String>,
    /// The NIPs that the relay says it has. What it lists or leaves out proves nothing.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub supported_nips: Option<Vec<serde_json::Value>>,
    /// Limits.
    #[serde(deserialize_with = "lenient_or_default")]
    pub limitation: Limitation,
}

/// `limitation` of a relay information document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limitation {
    /// The largest frame that the relay takes, in bytes.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub max_message_length: Option<u64>,
    /// Open subscriptions a connection.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub max_subscriptions: Option<u64>,
    /// Filters a request. NIP-11 no longer names it; relays still state it.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub max_filters: Option<u64>,
    /// Characters of a subscription id.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub max_subid_length: Option<u64>,
    /// Events a page, at most.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub max_limit: Option<u64>,
    /// Events a page where none is asked for.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub default_limit: Option<u64>,
    /// Reading needs authentication (NIP-42).
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub auth_required: Option<bool>,
    /// Writing is restricted.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "lenient")]
    pub restricted_writes: Option<bool>,
}

impl RelayInfo {
    /// Reads a document. A field of a wrong form counts as missing, since relays in the wild have such fields.
    /// `None` if the text is no JSON object.
    pub fn parse(json: &str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }
}

fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

fn lenient_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned + Default,
{
    Ok(lenient(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::RelayInfo;

    #[test]
    fn wrong_fields_count_as_missing() {
        let info =
            RelayInfo::parse(r#"{"name":7,"limitation":{"max_limit":"many","max_subscriptions":20},"x":1}"#).unwrap();
        assert_eq!(info.name, None);
        assert_eq!(info.limitation.max_limit, None);
        assert_eq!(info.limitation.max_subscriptions, Some(20));
        assert_eq!(RelayInfo::parse(r#"{"limitation":[]}"#).unwrap().limitation.max_limit, None);
        assert_eq!(RelayInfo::parse("<html>"), None);
    }
}
