//! Reading refusals. Their words come as CLOSED, OK, NEG-ERR, NOTICE or a close; prefixes (NIP-01) stand at or near
//! the start, or are missing, and every relay software has wordings of its own.

/// What a refusal means for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Authenticate first (NIP-42).
    AuthRequired,
    /// Ask less often.
    RateLimited,
    /// Fewer subscriptions at a time.
    TooManySubscriptions,
    /// The set is larger than the relay reconciles at once (NIP-77).
    SetTooLarge,
    /// There is no negentropy here, or not now.
    NoNegentropy,
    /// What the relay goes by has changed while it answered: it answers if it is asked anew.
    Changed,
    /// Anything else.
    Other,
}

/// How far from the start a prefix may stand: strfry writes `ERROR: auth-required: …`.
const PREFIX_WITHIN_CHARS: usize = 48;

/// No relay needs more bytes for its reason; what a hostile one sends beyond is not looked at.
const WORDS_BYTES_MAX: usize = 1_024;

/// The beginning of a refusal, as it is compared.
fn lowered(words: &str) -> String {
    let end = words.floor_char_boundary(WORDS_BYTES_MAX);
    words[..end].to_ascii_lowercase()
}

impl Refusal {
    /// Reads the words of a CLOSED or of a refused EVENT.
    pub fn read(words: &str) -> Self {
        let text = lowered(words);
        if has_prefix(&text, "auth-required") || text.contains("authentication required") {
            Self::AuthRequired
        } else if is_too_many_subscriptions(&text) {
            Self::TooManySubscriptions
        } else if is_rate_limit(&text) {
            Self::RateLimited
        } else if text.contains("rules have changed") {
            Self::Changed
        } else {
            Self::Other
        }
    }

    /// Reads a NOTICE: it has no id, and may be mere chatter, which is [`Refusal::Other`].
    pub fn read_notice(words: &str) -> Self {
        let text = lowered(words);
        match Self::read(words) {
            Self::RateLimited if mentions_negentropy(&text) => Self::NoNegentropy,
            Self::Other if mentions_negentropy(&text) || is_unknown_message(&text) => Self::NoNegentropy,
            other => other,
        }
    }

    /// Reads a NEG-ERR, or a CLOSED that answers a NEG-OPEN. `records_max` is the cap if the relay states one.
    pub fn read_negentropy(words: &str, records_max: Option<u64>) -> Self {
        const TOO_LARGE: [&str; 9] = [
            "too many query results",
            "too many results",
            "too many records",
            "too many events",
            "too many items",
            "too big",
            "too large",
            "max_records",
            "exceeds",
        ];
        let text = lowered(words);
        match Self::read(words) {
            read @ (Self::AuthRequired | Self::Changed) => read,
            // "Too many requests" or sessions says nothing about the size of a set.
            Self::RateLimited | Self::TooManySubscriptions => Self::RateLimited,
            _ if records_max.is_some() || TOO_LARGE.iter().any(|words| text.contains(words)) => Self::SetTooLarge,
            _ => Self::NoNegentropy,
        }
    }
}

fn has_prefix(text: &str, prefix: &str) -> bool {
    text.find(prefix).is_some_and(|at| at <= PREFIX_WITHIN_CHARS)
}

fn is_rate_limit(text: &str) -> bool {
    const WORDINGS: [&str; 8] = [
        "rate-limited",
        "rate limit",
        "rate-limit",
        "ratelimit",
        "slow down",
        "too many requests",
        "too fast",
        "too many queries",
    ];
    WORDINGS.iter().any(|wording| text.contains(wording))
}

fn is_too_many_subscriptions(text: &str) -> bool {
    const THINGS: [&str; 5] = ["subscription", "concurrent req", "reqs", "subs", "open req"];
    let too_many = text.contains("too many") || text.contains("maximum") || text.contains("limit reached");
    too_many && THINGS.iter().any(|thing| text.contains(thing))
}

fn mentions_negentropy(text: &str) -> bool {
    ["negentropy", "neg-open", "neg-msg", "neg_open", "neg requests", "nip-77", "nip77"]
        .iter()
        .any(|name| text.contains(name))
}

/// What relays say that do not know the message type at all.
fn is_unknown_message(text: &str) -> bool {
    const WORDINGS: [&str; 12] = [
        "unknown message",
        "unknown cmd",
        "unknown command",
        "unknown type",
        "unrecognized",
        "unrecognised",
        "bad msg",
        "bad message",
        "could not parse",
        "couldn't parse",
        "failed to parse",
        "unsupported",
    ];
    WORDINGS.iter().any(|wording| text.contains(wording))
        || has_prefix(text, "invalid:")
        || has_prefix(text, "invalid message")
}

#[cfg(test)]
mod tests {
    use super::Refusal;

    #[test]
    fn wordings_of_real_relays() {
        assert_eq!(Refusal::read("ERROR: auth-required: we only serve members"), Refusal::AuthRequired);
        assert_eq!(Refusal::read("rate-limited: too many queries"), Refusal::RateLimited);
        assert_eq!(Refusal::read("too many concurrent REQs"), Refusal::TooManySubscriptions);
        assert_eq!(Refusal::read("Maximum concurrent subscription count reached"), Refusal::TooManySubscriptions);
        assert_eq!(Refusal::read("error: the access rules have changed, ask again"), Refusal::Changed);
        assert_eq!(Refusal::read("blocked: spam"), Refusal::Other);
        assert_eq!(Refusal::read(""), Refusal::Other);
    }

    #[test]
    fn notices_that_refuse_negentropy() {
        for words in [
            "negentropy disabled",
            "ERROR: bad msg: negentropy disabled",
            "bad msg: unknown message type",
            "could not parse command",
            "too many concurrent NEG requests",
            "invalid: unknown cmd",
            "unknown message type NEG-OPEN",
            "Error: failed to parse message",
            "unrecognized command",
        ] {
            assert_eq!(Refusal::read_notice(words), Refusal::NoNegentropy, "{words}");
        }
        for words in ["welcome", "this relay moves next week", "restricted: members only"] {
            assert_eq!(Refusal::read_notice(words), Refusal::Other, "{words}");
        }
    }

    #[test]
    fn only_the_size_of_a_set_splits_a_window() {
        assert_eq!(Refusal::read_negentropy("blocked: too many query results", None), Refusal::SetTooLarge);
        assert_eq!(Refusal::read_negentropy("blocked: x", Some(100_000)), Refusal::SetTooLarge);
        assert_eq!(Refusal::read_negentropy("blocked: you are banned", None), Refusal::NoNegentropy);
        assert_eq!(Refusal::read_negentropy("rate-limited: too many sessions", None), Refusal::RateLimited);
        assert_eq!(Refusal::read_negentropy("blocked: too many requests", None), Refusal::RateLimited);
        assert_eq!(Refusal::read_negentropy("PROTOCOL-ERROR", None), Refusal::NoNegentropy);
        assert_eq!(Refusal::read_negentropy("error: the access rules have changed, ask again", None), Refusal::Changed);
        assert_eq!(Refusal::read_negentropy("auth-required: x", None), Refusal::AuthRequired);
    }
}
