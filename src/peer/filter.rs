//! Reading a filter that somebody has written.

use serde_json::Value;

use super::SpecMistake;
use crate::protocol::Filter;
use crate::protocol::filter::{is_void, parse_strict};

/// Reads the filter at `path`. Each of its fields is looked at by itself, so that all mistakes are found at once.
/// `barred`: fields that it must not have, and why. `None` only if a mistake is noted.
pub(super) fn filter(
    json: &str,
    path: &str,
    barred: &[(&str, &str)],
    mistakes: &mut Vec<SpecMistake>,
) -> Option<Filter> {
    let before = mistakes.len();
    let Ok(Value::Object(object)) = serde_json::from_str(json) else {
        let reason = "it is no filter; write one JSON object, like {\"kinds\":[5000]}".to_owned();
        mistakes.push(SpecMistake { path: path.to_owned(), reason });
        return None;
    };
    for (name, value) in &object {
        let alone = Value::Object([(name.clone(), value.clone())].into_iter().collect());
        let reason = match barred.iter().find(|(barred, _)| barred == name) {
            Some((_, why)) => Some((*why).to_owned()),
            None => parse_strict(&alone.to_string()).err().map(|error| format!("{}{}", error.reason, hint(name))),
        };
        mistakes.extend(reason.map(|reason| SpecMistake { path: place(path, name), reason }));
    }
    if mistakes.len() > before {
        return None;
    }
    let mut fault = |reason: String| mistakes.push(SpecMistake { path: path.to_owned(), reason });
    match parse_strict(json) {
        Ok(filter) if is_void(&filter) => {
            fault("it ends (until) before it begins (since), so it selects nothing".to_owned());
            None
        }
        Ok(filter) => Some(filter),
        Err(error) => {
            fault(error.reason);
            None
        }
    }
}

fn place(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// What to write in a field.
fn hint(name: &str) -> &'static str {
    match name {
        "ids" | "authors" => "; write a list of 64 hexadecimal digits each",
        "kinds" => "; write a list of numbers, like [5000]",
        "since" | "until" => "; write seconds since 1970",
        name if name.len() == 2 && name.starts_with('#') => "; write a list of texts",
        _ => "",
    }
}
