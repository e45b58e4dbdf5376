//! Messages (NIP-01, 42, 45, 67, 77): reading those of a relay, reading those of a client, writing both.
//!
//! Reading borrows from the frame and copies only what carries escapes; an event's JSON is referred to, not copied.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Event, Filter, filter, hex};

/// How deep a frame's JSON may be nested. A message with an event or filter needs 5; serde_json itself stops at 128.
pub const DEPTH_MAX: usize = 16;

/// Why a frame is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageError {
    /// No JSON array that begins with a text, or a field of the wrong form.
    Malformed(String),
    /// Nested deeper than [`DEPTH_MAX`].
    TooDeep,
    /// An array whose first text is no message type that is known here.
    Unknown(String),
    /// A filter has a field that is not known here. To ignore it would be to select other events than were meant.
    UnknownFilterField(String),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(reason) => write!(f, "malformed message: {reason}"),
            Self::TooDeep => write!(f, "message nested deeper than {DEPTH_MAX}"),
            Self::Unknown(kind) => write!(f, "unknown message type {kind:?}"),
            Self::UnknownFilterField(name) => write!(f, "unknown filter field {name:?}"),
        }
    }
}

impl std::error::Error for MessageError {}

/// What a relay sends.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are the elements of the message")]
pub enum RelayMessage<'a> {
    /// `["EVENT", subscription, event]`. The event is not parsed yet: see [`event_of_frame`].
    Event { subscription: Cow<'a, str>, json: &'a str },
    /// `["EOSE", subscription, hints?]`. Some relays send no subscription.
    Eose { subscription: Option<Cow<'a, str>>, hint: EoseHint },
    /// `["CLOSED", subscription, reason]`.
    Closed { subscription: Cow<'a, str>, reason: Cow<'a, str> },
    /// `["OK", event id, accepted, reason]`.
    Ok { id: Cow<'a, str>, accepted: bool, reason: Cow<'a, str> },
    /// `["NOTICE", text]`.
    Notice { text: Cow<'a, str> },
    /// `["AUTH", challenge]` (NIP-42).
    Auth { challenge: Cow<'a, str> },
    /// `["COUNT", subscription, {"count": n}]` (NIP-45).
    Count { subscription: Cow<'a, str>, count: u64 },
    /// `["NEG-MSG", subscription, hex]` (NIP-77).
    NegMsg { subscription: Cow<'a, str>, message: Cow<'a, str> },
    /// `["NEG-ERR", subscription, reason, max_records?]` (NIP-77).
    NegErr { subscription: Cow<'a, str>, reason: Cow<'a, str>, records_max: Option<u64> },
}

/// What an EOSE says of completeness (NIP-67).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EoseHint {
    /// Nothing, which means nothing.
    #[default]
    None,
    /// The relay has sent all that it has.
    Finish,
    /// The relay has more.
    More,
}

/// What a client sends.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are the elements of the message")]
pub enum ClientMessage<'a> {
    /// `["EVENT", event]`.
    Event { json: &'a str },
    /// `["REQ", subscription, filter, …]`.
    Req { subscription: Cow<'a, str>, filters: Vec<Filter> },
    /// `["CLOSE", subscription]`.
    Close { subscription: Cow<'a, str> },
    /// `["AUTH", event]` (NIP-42).
    Auth { json: &'a str },
    /// `["COUNT", subscription, filter, …]` (NIP-45).
    Count { subscription: Cow<'a, str>, filters: Vec<Filter> },
    /// `["NEG-OPEN", subscription, filter, hex]` (NIP-77).
    NegOpen { subscription: Cow<'a, str>, filter: Box<Filter>, message: Cow<'a, str> },
    /// `["NEG-MSG", subscription, hex]` (NIP-77).
    NegMsg { subscription: Cow<'a, str>, message: Cow<'a, str> },
    /// `["NEG-CLOSE", subscription]` (NIP-77).
    NegClose { subscription: Cow<'a, str> },
}

impl<'a> RelayMessage<'a> {
    /// Reads one frame.
    ///
    /// # Errors
    /// The frame is no message; it is not the caller's fault, and nothing but a counter should come of it.
    pub fn parse(frame: &'a str) -> Result<Self, MessageError> {
        let fields = Fields::parse(frame)?;
        let message = match &*fields.kind {
            "EVENT" => Self::Event { subscription: fields.text(0)?, json: fields.raw(1)? },
            "EOSE" => Self::Eose { subscription: fields.text(0).ok(), hint: fields.eose_hint() },
            "CLOSED" => Self::Closed { subscription: fields.text(0)?, reason: fields.text_or_empty(1) },
            "OK" => Self::Ok { id: fields.text(0)?, accepted: fields.value(1)?, reason: fields.text_or_empty(2) },
            "NOTICE" => Self::Notice { text: fields.text_or_empty(0) },
            "AUTH" => Self::Auth { challenge: fields.text(0)? },
            "COUNT" => Self::Count { subscription: fields.text(0)?, count: fields.value::<CountBody>(1)?.count },
            "NEG-MSG" => Self::NegMsg { subscription: fields.text(0)?, message: fields.text(1)? },
            "NEG-ERR" => Self::NegErr {
                subscription: fields.text(0)?,
                reason: fields.text_or_empty(1),
                records_max: fields.value(2).ok(),
            },
            other => return Err(MessageError::Unknown(shorten(other))),
        };
        Ok(message)
    }
}

impl<'a> ClientMessage<'a> {
    /// Reads one frame.
    ///
    /// # Errors
    /// The frame is no message.
    pub fn parse(frame: &'a str) -> Result<Self, MessageError> {
        let fields = Fields::parse(frame)?;
        let message = match &*fields.kind {
            "EVENT" => Self::Event { json: fields.raw(0)? },
            "REQ" => Self::Req { subscription: fields.text(0)?, filters: fields.filters()? },
            "CLOSE" => Self::Close { subscription: fields.text(0)? },
            "AUTH" => Self::Auth { json: fields.raw(0)? },
            "COUNT" => Self::Count { subscription: fields.text(0)?, filters: fields.filters()? },
            "NEG-OPEN" => {
                let filter = Box::new(fields.filter(1)?);
                Self::NegOpen { subscription: fields.text(0)?, filter, message: fields.text(2)? }
            }
            "NEG-MSG" => Self::NegMsg { subscription: fields.text(0)?, message: fields.text(1)? },
            "NEG-CLOSE" => Self::NegClose { subscription: fields.text(0)? },
            other => return Err(MessageError::Unknown(shorten(other))),
        };
        Ok(message)
    }
}

/// Parses the event that `json` refers to inside `frame`; the event keeps a reference to the frame, not a copy.
///
/// # Errors
/// See [`Event::parse`].
pub fn event_of_frame(frame: &Bytes, json: &str) -> Result<Event, super::EventError> {
    Event::parse_in(frame, json)
}

/// Type and first text of a frame that is no message as a whole, for an answer that names what it answers.
pub fn sketch(frame: &str) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let fields = Fields::parse(frame).ok()?;
    let first = fields.text(0).ok()?;
    Some((fields.kind, first))
}

#[derive(serde::Deserialize)]
struct CountBody {
    count: u64,
}

/// The elements of a message's array: its type as text, the others as they stand in the frame.
struct Fields<'a> {
    kind: Cow<'a, str>,
    rest: Vec<&'a RawValue>,
}

impl<'a> Fields<'a> {
    fn parse(frame: &'a str) -> Result<Self, MessageError> {
        check_depth(frame)?;
        serde_json::from_str(frame).map_err(|error| MessageError::Malformed(error.to_string()))
    }

    fn raw(&self, index: usize) -> Result<&'a str, MessageError> {
        let missing = || MessageError::Malformed(format!("{} lacks element {}", shorten(&self.kind), index + 1));
        self.rest.get(index).map(|raw| raw.get()).ok_or_else(missing)
    }

    fn value<T: serde::Deserialize<'a>>(&self, index: usize) -> Result<T, MessageError> {
        let fault = |error| MessageError::Malformed(format!("{}, element {}: {error}", shorten(&self.kind), index + 1));
        serde_json::from_str(self.raw(index)?).map_err(fault)
    }

    fn text(&self, index: usize) -> Result<Cow<'a, str>, MessageError> {
        let raw = self.raw(index)?;
        // Nearly every text has no escape: then it is borrowed.
        match raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')) {
            Some(inner) if !inner.contains('\\') => Ok(Cow::Borrowed(inner)),
            _ => self.value::<String>(index).map(Cow::Owned),
        }
    }

    fn text_or_empty(&self, index: usize) -> Cow<'a, str> {
        self.text(index).unwrap_or(Cow::Borrowed(""))
    }

    fn filters(&self) -> Result<Vec<Filter>, MessageError> {
        if self.rest.len() < 2 {
            return Err(MessageError::Malformed(format!("{} has no filter", shorten(&self.kind))));
        }
        (1..self.rest.len()).map(|index| self.filter(index)).collect()
    }

    fn filter(&self, index: usize) -> Result<Filter, MessageError> {
        let filter = self.value(index)?;
        let names = self.value::<BTreeMap<String, IgnoredAny>>(index)?;
        match names.keys().find(|name| !filter::is_field(name)) {
            Some(name) => Err(MessageError::UnknownFilterField(shorten(name))),
            None => Ok(filter),
        }
    }

    fn eose_hint(&self) -> EoseHint {
        let hints: Vec<String> = self.value(1).unwrap_or_default();
        match hints.iter().map(String::as_str).find(|hint| matches!(*hint, "finish" | "more")) {
            Some("finish") => EoseHint::Finish,
            Some(_) => EoseHint::More,
            None => EoseHint::None,
        }
    }
}

impl<'de: 'a, 'a> de::Deserialize<'de> for Fields<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array that begins with the message type")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Fields<'de>, A::Error> {
                let kind: KindText<'de> = array.next_element()?.ok_or_else(|| de::Error::custom("empty array"))?;
                let mut rest = Vec::with_capacity(3);
                while rest.len() < ELEMENTS_MAX {
                    match array.next_element::<&'de RawValue>()? {
                        Some(raw) => rest.push(raw),
                        None => return Ok(Fields { kind: kind.0, rest }),
                    }
                }
                match array.next_element::<IgnoredAny>()? {
                    None => Ok(Fields { kind: kind.0, rest }),
                    Some(_) => Err(de::Error::custom("too many elements")),
                }
            }
        }

        deserializer.deserialize_seq(FieldsVisitor)
    }
}

/// Elements a message, beside its type. strfry, too, takes no more filters in one REQ.
const ELEMENTS_MAX: usize = 256;

struct KindText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> de::Deserialize<'de> for KindText<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = KindText<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message type")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<KindText<'de>, E> {
                Ok(KindText(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<KindText<'de>, E> {
                Ok(KindText(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(TextVisitor)
    }
}

/// Refuses deep nesting before anything recurses into it.
fn check_depth(frame: &str) -> Result<(), MessageError> {
    // Most frames have not even that many brackets, which is quickly counted.
    if frame.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() <= DEPTH_MAX {
        return Ok(());
    }
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in frame.bytes() {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return Err(MessageError::TooDeep);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

fn shorten(text: &str) -> String {
    text.chars().take(32).collect()
}

/// Appends `text` as a JSON string.
fn push_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).expect("a text is always JSON"));
}

fn start(kind: &str, subscription: &str, room: usize) -> String {
    let mut out = String::with_capacity(kind.len() + subscription.len() + room + 12);
    out.push_str("[\"");
    out.push_str(kind);
    out.push_str("\",");
    push_text(&mut out, subscription);
    out
}

/// Writers of what a client sends.
pub mod client {
    use super::*;

    /// `["REQ", subscription, filter, …]`.
    pub fn req<'f>(subscription: &str, filters: impl IntoIterator<Item = &'f Filter>) -> String {
        let mut out = start("REQ", subscription, 128);
        for filter in filters {
            out.push(',');
            out.push_str(&serde_json::to_string(filter).expect("a filter is always JSON"));
        }
        out.push(']');
        out
    }

    /// `["REQ", subscription, {"ids": […], "limit": n}]`, without building a filter.
    pub fn req_ids(subscription: &str, ids: &[[u8; 32]]) -> String {
        let mut out = start("REQ", subscription, ids.len() * 67 + 32);
        out.push_str(",{\"ids\":[");
        for (index, id) in ids.iter().enumerate() {
            out.push_str(if index == 0 { "\"" } else { ",\"" });
            hex::encode_into(id, &mut out);
            out.push('"');
        }
        out.push_str("],\"limit\":");
        out.push_str(&ids.len().to_string());
        out.push_str("}]");
        out
    }

    /// `["CLOSE", subscription]`.
    pub fn close(subscription: &str) -> String {
        start("CLOSE", subscription, 0) + "]"
    }

    /// `["EVENT", event]`.
    pub fn event(json: &str) -> String {
        format!("[\"EVENT\",{json}]")
    }

    /// `["AUTH", event]`.
    pub fn auth(json: &str) -> String {
        format!("[\"AUTH\",{json}]")
    }

    /// `["NEG-OPEN", subscription, filter, hex]`.
    pub fn neg_open(subscription: &str, filter: &Filter, message: &[u8]) -> String {
        let mut out = start("NEG-OPEN", subscription, message.len() * 2 + 128);
        out.push(',');
        out.push_str(&serde_json::to_string(filter).expect("a filter is always JSON"));
        out.push_str(",\"");
        hex::encode_into(message, &mut out);
        out.push_str("\"]");
        out
    }

    /// `["NEG-MSG", subscription, hex]`.
    pub fn neg_msg(subscription: &str, message: &[u8]) -> String {
        super::neg_msg(subscription, message)
    }

    /// `["NEG-CLOSE", subscription]`.
    pub fn neg_close(subscription: &str) -> String {
        start("NEG-CLOSE", subscription, 0) + "]"
    }
}

fn neg_msg(subscription: &str, message: &[u8]) -> String {
    let mut out = start("NEG-MSG", subscription, message.len() * 2);
    out.push_str(",\"");
    hex::encode_into(message, &mut out);
    out.push_str("\"]");
    out
}

/// Writers of what a relay sends.
pub mod relay {
    use super::*;

    /// `["EVENT", subscription, event]`.
    pub fn event(subscription: &str, json: &str) -> String {
        let mut out = start("EVENT", subscription, json.len());
        out.push(',');
        out.push_str(json);
        out.push(']');
        out
    }

    /// `["EOSE", subscription]`, with a NIP-67 hint if there is one.
    pub fn eose(subscription: &str, hint: EoseHint) -> String {
        start("EOSE", subscription, 12)
            + match hint {
                EoseHint::None => "]",
                EoseHint::Finish => ",[\"finish\"]]",
                EoseHint::More => ",[\"more\"]]",
            }
    }

    /// `["CLOSED", subscription, reason]`.
    pub fn closed(subscription: &str, reason: &str) -> String {
        let mut out = start("CLOSED", subscription, reason.len());
        out.push(',');
        push_text(&mut out, reason);
        out.push(']');
        out
    }

    /// `["OK", id, accepted, reason]`.
    pub fn ok(id: &str, accepted: bool, reason: &str) -> String {
        let mut out = start("OK", id, reason.len() + 8);
        out.push_str(if accepted { ",true," } else { ",false," });
        push_text(&mut out, reason);
        out.push(']');
        out
    }

    /// `["NOTICE", text]`.
    pub fn notice(text: &str) -> String {
        start("NOTICE", text, 0) + "]"
    }

    /// `["AUTH", challenge]`.
    pub fn auth(challenge: &str) -> String {
        start("AUTH", challenge, 0) + "]"
    }

    /// `["COUNT", subscription, {"count": n}]`.
    pub fn count(subscription: &str, count: u64) -> String {
        start("COUNT", subscription, 24) + &format!(",{{\"count\":{count}}}]")
    }

    /// `["NEG-MSG", subscription, hex]`.
    pub fn neg_msg(subscription: &str, message: &[u8]) -> String {
        super::neg_msg(subscription, message)
    }

    /// `["NEG-ERR", subscription, reason, records_max?]`.
    pub fn neg_err(subscription: &str, reason: &str, records_max: Option<u64>) -> String {
        let mut out = start("NEG-ERR", subscription, reason.len() + 24);
        out.push(',');
        push_text(&mut out, reason);
        if let Some(records_max) = records_max {
            out.push_str(&format!(",{records_max}"));
        }
        out.push(']');
        out
    }
}
