//! Events as lines of JSON (JSONL): what is exported and imported.

use bytes::Bytes;

use super::Event;

/// Reads the event of a line.
///
/// # Errors
/// Says what is wrong, without the parser's own count of lines: each event is one line.
pub fn parse(line: &Bytes) -> Result<Event, String> {
    let json = line.slice_ref(line.trim_ascii());
    Event::parse(json).map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))
}

/// Appends an event and a line end. Inside JSON a raw line break can only be white space between tokens.
pub fn push(json: &[u8], text: &mut Vec<u8>) {
    text.extend(json.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    text.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::push;

    #[test]
    fn an_event_is_one_line() {
        let mut text = Vec::new();
        push(b"{\r\n\"id\": \"\\n\"}", &mut text);
        assert_eq!(text, b"{  \"id\": \"\\n\"}\n");
    }
}
