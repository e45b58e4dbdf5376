//! Reading rules that somebody has written.

use super::fields::{Fields, public_key, shown};
use super::filter::filter;
use super::{Capability, Rule, SpecMistake, SpecMistakes};
use crate::protocol::Filter;

const KEY_FORM: &str = "a public key, as npub1… or 64 hexadecimal digits";
const MATCH_FORM: &str = "kinds, authors and tags of a filter (NIP-01), like {\"kinds\":[5000]}";
const BY_SHAPE: &str = "rules are about kinds, authors and tags only; leave it out";
/// What rules, and what is protected, are not about.
const BARRED: &[(&str, &str)] = &[("ids", BY_SHAPE), ("since", BY_SHAPE), ("until", BY_SHAPE), ("limit", BY_SHAPE)];

impl Rule {
    /// Reads the JSON form: `{"principal": …, "capability": "sync_read" or "sync_write", "match": {…}}`.
    ///
    /// # Errors
    /// All mistakes at once.
    pub fn parse(json: &str) -> Result<Self, SpecMistakes> {
        let mut mistakes = Vec::new();
        match read(json, &mut mistakes) {
            Some(rule) if mistakes.is_empty() => Ok(rule),
            _ => Err(SpecMistakes(mistakes)),
        }
    }

    /// Reads the filter of a rule, or of what is protected: kinds, authors and tags.
    ///
    /// # Errors
    /// All mistakes at once.
    pub fn parse_match(json: &str) -> Result<Filter, SpecMistakes> {
        let mut mistakes = Vec::new();
        filter(json, "", BARRED, &mut mistakes).ok_or(SpecMistakes(mistakes))
    }
}

fn read(json: &str, mistakes: &mut Vec<SpecMistake>) -> Option<Rule> {
    let mut fields = Fields::of(json, "", "one JSON object with principal, capability and match", mistakes)?;
    let principal = fields.text("principal", KEY_FORM, |text| public_key(text, shown));
    let capability = fields.text("capability", "\"sync_read\" or \"sync_write\"", |text| match text {
        "sync_read" => Ok(Capability::SyncRead),
        "sync_write" => Ok(Capability::SyncWrite),
        _ => Err(super::fields::shown(text)),
    });
    let events = fields.required("match", MATCH_FORM);
    let events = events.and_then(|raw| filter(raw.get(), "match", BARRED, fields.mistakes()));
    fields.end("principal, capability and match");
    Some(Rule { principal: principal?, capability: capability?, events: events? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_with_all_its_mistakes_at_once() {
        let key = "aa4fc8665f5696e33db7e1a572e3b0f5b3d615837b0f362dcb1c8068b098c7b4";
        let json =
            format!(r##"{{"principal":"{key}","capability":"sync_read","match":{{"kinds":[5000],"#r":["a"]}}}}"##);
        let rule = Rule::parse(&json).unwrap();
        assert_eq!(Rule::parse(&serde_json::to_string(&rule).unwrap()), Ok(rule));

        let json = r#"{"principal":"nsec1abc","capability":"read","match":{"limit":1,"kinds":["x"]},"who":1}"#;
        let mistakes = Rule::parse(json).unwrap_err();
        let paths: Vec<&str> = mistakes.0.iter().map(|mistake| mistake.path.as_str()).collect();
        assert_eq!(paths, ["principal", "capability", "match.kinds", "match.limit", "who"], "{mistakes}");
        assert!(!mistakes.to_string().contains("nsec1abc"));
        assert!(Rule::parse_match("{}").is_ok(), "everything that is protected");
    }
}
