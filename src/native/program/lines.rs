//! Events as lines of JSON (JSONL), on stdin and stdout.

use std::io::{self, BufRead, BufReader, Read, Write};

use bytes::Bytes;

use super::Failure;
use crate::protocol::lines;
use crate::store::Record;

/// The longest line taken, in bytes: larger than any event that relays take.
pub(super) const LINE_BYTES_MAX: usize = 4 << 20;
/// Bytes read at once.
const BUFFER_BYTES: usize = 128 << 10;
/// Lines handed over at once, at most.
const BATCH_LINES_MAX: usize = 128;
/// Bytes of lines handed over at once.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Counts from 1.
    pub(super) number: u64,
    /// The text without line end; `None` if it is longer than [`LINE_BYTES_MAX`].
    pub(super) text: Option<Bytes>,
}

/// Reads lines in batches. Empty ones are counted and left out.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    number: u64,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(BUFFER_BYTES, input), number: 0 }
    }

    /// The next lines; none at the end of the input. Lines that are there do not wait for those that are not.
    pub(super) fn next_batch(&mut self) -> io::Result<Vec<Line>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < BATCH_LINES_MAX && bytes < BATCH_BYTES_MAX {
            let Some(line) = self.next_line()? else { break };
            bytes += line.text.as_ref().map_or(0, Bytes::len);
            if line.text.as_ref().is_none_or(|text| !text.trim_ascii().is_empty()) {
                batch.push(line);
            }
            if !batch.is_empty() && !self.input.buffer().contains(&b'\n') {
                break;
            }
        }
        Ok(batch)
    }

    fn next_line(&mut self) -> io::Result<Option<Line>> {
        let mut text = Vec::new();
        // One byte more than allowed shows that the line is too long.
        let taken = Read::take(&mut self.input, LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut text)?;
        if taken == 0 {
            return Ok(None);
        }
        self.number += 1;
        let number = self.number;
        if text.ends_with(b"\n") {
            text.pop();
        } else if text.len() > LINE_BYTES_MAX {
            self.input.skip_until(b'\n')?;
            return Ok(Some(Line { number, text: None }));
        }
        Ok(Some(Line { number, text: Some(text.into()) }))
    }
}

/// Writes events to stdout, one a line; see [`write`].
pub(super) async fn print(records: &[Record]) -> Result<bool, Failure> {
    let mut text = Vec::with_capacity(records.iter().map(|record| record.json.len() + 1).sum());
    for record in records {
        lines::push(&record.json, &mut text);
    }
    write(text).await
}

/// Writes to stdout, on a thread where that may block.
///
/// Gives `false` if nobody reads any more, which is a clean end: `relaysync export | head`.
pub(super) async fn write(text: Vec<u8>) -> Result<bool, Failure> {
    let write = move || {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&text).and_then(|()| stdout.flush())
    };
    match tokio::task::spawn_blocking(write).await.map_err(Failure::new)? {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(format!("cannot write to stdout: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_BYTES_MAX, Line, Lines};

    #[test]
    fn lines_are_numbered_bounded_and_not_lost_at_the_end() {
        let long = "x".repeat(LINE_BYTES_MAX);
        let input = format!("a\n\n \r\n{long}\n{long}x\n{long}xx\nlast");
        let mut lines = Lines::new(input.as_bytes());
        let mut seen = Vec::new();
        loop {
            let batch = lines.next_batch().unwrap();
            if batch.is_empty() {
                break;
            }
            seen.extend(batch);
        }
        let line = |number, text: Option<&str>| Line { number, text: text.map(|text| text.to_owned().into()) };
        assert_eq!(
            seen,
            [line(1, Some("a")), line(4, Some(&long)), line(5, None), line(6, None), line(7, Some("last"))]
        );
    }
}
