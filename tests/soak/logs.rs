//! What the daemon logs: kept as it is, and counted by level and kind.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value;
use tokio::sync::watch;

use crate::Fault;

/// Level and kind of a line: its words without what differs from one to the next.
pub(crate) type Kind = (String, String);

/// A thread that reads them to their end.
pub(crate) struct Logs {
    counts: Arc<Mutex<BTreeMap<Kind, u64>>>,
    messages: watch::Receiver<Vec<String>>,
    reading: JoinHandle<std::io::Result<()>>,
}

/// The first messages are kept for those who look for the daemon's addresses.
const MESSAGES_KEPT: usize = 50;

impl Logs {
    pub(crate) fn read(output: impl Read + Send + 'static, path: &Path) -> Result<Self, Fault> {
        let mut file = BufWriter::new(File::create(path)?);
        let counts = Arc::<Mutex<BTreeMap<Kind, u64>>>::default();
        let (said, messages) = watch::channel(Vec::new());
        let counted = counts.clone();
        let reading = std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line?;
                writeln!(file, "{line}")?;
                file.flush()?;
                let (kind, message) = kind_of(&line);
                *counted.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
                said.send_if_modified(|said| {
                    let is_kept = said.len() < MESSAGES_KEPT;
                    said.extend(is_kept.then_some(message));
                    is_kept
                });
            }
            Ok(())
        });
        Ok(Self { counts, messages, reading })
    }

    /// Waits for an early message that has `words`, and gives what follows them.
    pub(crate) async fn wait_for(&mut self, words: &str) -> Result<String, Fault> {
        let after = |message: &String| message.split_once(words).map(|(_, after)| after.trim().to_owned());
        let messages = self.messages.wait_for(|messages| messages.iter().any(|message| after(message).is_some())).await;
        messages?.iter().find_map(after).ok_or("it was there".into())
    }

    /// Reads to the end, and gives the counts.
    pub(crate) fn end(self) -> Result<BTreeMap<Kind, u64>, Fault> {
        self.reading.join().map_err(|_| "the thread that reads the log panicked")??;
        Ok(self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn kind_of(line: &str) -> (Kind, String) {
    let Ok(fields) = serde_json::from_str::<Value>(line) else {
        return (("unreadable".to_owned(), masked(line)), line.to_owned());
    };
    let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    let message = text("message");
    ((text("level"), format!("{}: {}", text("target"), masked(&message))), message)
}

/// Words that have a digit in them differ from line to line: addresses, counts, times.
fn masked(text: &str) -> String {
    let mask =
        |word: &str| if word.contains(|char: char| char.is_ascii_digit()) { "…".to_owned() } else { word.to_owned() };
    text.split(' ').map(mask).collect::<Vec<_>>().join(" ")
}
