//! Relay information documents (NIP-11), true and false.

use super::Chance;

/// What becomes of requests for a relay's information document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Info {
    /// There is none.
    #[default]
    Missing,
    /// The one that is true of the relay.
    True,
    /// This text.
    Text(String),
    /// Nothing, not even a failure.
    Silent,
}

/// Bytes of a huge document.
const HUGE_BYTES: usize = 2 << 20;

impl Info {
    /// A document with wrong numbers and lies.
    pub fn wrong(chance: &mut Chance) -> Self {
        Self::Text(chance.words(&WRONG).to_owned())
    }

    /// A document of 2 MB.
    pub fn huge() -> Self {
        Self::Text(format!("{{\"name\":\"{}\",\"limitation\":{{\"max_limit\":100}}}}", "~".repeat(HUGE_BYTES)))
    }

    /// Something that is no document.
    pub fn garbage(chance: &mut Chance) -> Self {
        Self::Text(chance.words(&GARBAGE).to_owned())
    }
}

const WRONG: [&str; 9] = [
    r#"{"limitation":{"max_limit":1,"max_subscriptions":1,"max_message_length":1}}"#,
    r#"{"limitation":{"max_limit":0,"max_subscriptions":0,"max_message_length":0,"max_subid_length":0}}"#,
    r#"{"limitation":{"max_limit":-5,"max_subscriptions":-1,"max_message_length":-9223372036854775808}}"#,
    r#"{"limitation":{"max_limit":"500","max_subscriptions":"many","max_message_length":"128 KiB"}}"#,
    r#"{"limitation":{"max_limit":18446744073709551615,"max_subscriptions":99999,"max_message_length":1e300}}"#,
    r#"{"limitation":{"max_limit":2.5,"max_subscriptions":null,"max_message_length":[1]},"supported_nips":"all"}"#,
    r#"{"supported_nips":[1,11,"77",77.5,-77,null],"limitation":{"auth_required":true,"restricted_writes":true}}"#,
    r#"{"supported_nips":[1],"limitation":{"max_subid_length":1,"default_limit":1,"auth_required":"no"}}"#,
    r#"{"name":7,"pubkey":{},"self":[],"limitation":"none","retention":[[[[[[]]]]]]}"#,
];

const GARBAGE: [&str; 7] = [
    "",
    "<html><body>welcome</body></html>",
    "null",
    "[1,2,3]",
    "{\"limitation\":{\"max_limit\":100",
    "{\"name\":\"\\ud800\"}",
    "\u{0}\u{FFFD}",
];
