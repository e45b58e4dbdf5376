//! JSON files that show whether they are as they were written.

use std::path::Path;

use bitcoin_hashes::sha256;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::durable;
use super::error::{FileError, FileFault};
use crate::protocol::hex;

/// The format that is written.
const FORMAT: u64 = 1;

/// A file: its contents, and their hash.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    format: u64,
    /// SHA-256 of `contents`, letter by letter.
    sha256: String,
    contents: Box<RawValue>,
}

/// Reads what was written by [`write`]; `None` if there is no file.
pub(super) fn read<T: DeserializeOwned>(path: &Path, bytes_max: u64) -> Result<Option<T>, FileError> {
    let bytes = durable::read(path, bytes_max).map_err(|error| match error {
        Some(error) => FileError::new(path, error),
        None => FileError::new(path, FileFault::TooLarge { bytes_max }),
    })?;
    bytes.map(|bytes| open(&bytes).map_err(|fault| FileError::new(path, fault))).transpose()
}

/// Replaces the file; durable on return.
pub(super) fn write<T: Serialize>(path: &Path, contents: &T, bytes_max: u64) -> Result<(), FileError> {
    durable::replace(path, &text(path, contents, bytes_max)?).map_err(|error| FileError::new(path, error))
}

/// What [`read`] reads again from the file at `path`, by the same bound.
pub(super) fn text<T: Serialize>(path: &Path, contents: &T, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let fault = |error: serde_json::Error| FileError::new(path, std::io::Error::from(error));
    let contents = serde_json::to_string_pretty(contents).and_then(RawValue::from_string).map_err(fault)?;
    let sealed = Sealed { format: FORMAT, sha256: hash(&contents), contents };
    let mut text = serde_json::to_vec_pretty(&sealed).map_err(fault)?;
    text.push(b'\n');
    match text.len() as u64 {
        bytes if bytes > bytes_max => Err(FileError::new(path, FileFault::Full { bytes, bytes_max })),
        _ => Ok(text),
    }
}

fn hash(contents: &RawValue) -> String {
    hex::encode(&sha256::Hash::hash(contents.get().as_bytes()).to_byte_array())
}

fn open<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FileFault> {
    let corrupt = |line: Option<usize>, detail: String| FileFault::Corrupt { line, detail };
    let wrong = |error: serde_json::Error, lines_before: usize| {
        corrupt((error.line() > 0).then(|| error.line() + lines_before), error.to_string())
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        corrupt(Some(line), "it is no text".to_owned())
    })?;
    // Of a later version no more need be as it is here.
    if let Ok(Format { format }) = serde_json::from_str(text)
        && format > FORMAT
    {
        return Err(FileFault::Newer { found: format, known: FORMAT });
    }
    let sealed: Sealed = serde_json::from_str(text).map_err(|error| wrong(error, 0))?;
    if sealed.format != FORMAT {
        return Err(corrupt(None, format!("there is no format {}", sealed.format)));
    }
    let contents = sealed.contents.get();
    // The contents stand in the text letter by letter.
    let begin = text.find(contents).unwrap_or_default();
    let lines_before = text[..begin].matches('\n').count();
    let opened = serde_json::from_str(contents).map_err(|error| wrong(error, lines_before))?;
    if sealed.sha256 != hash(&sealed.contents) {
        let line = text.find("\"sha256\"").map(|at| 1 + text[..at].matches('\n').count());
        return Err(corrupt(line, "its hash (sha256) is not that of its contents".to_owned()));
    }
    Ok(opened)
}

#[derive(Deserialize)]
struct Format {
    format: u64,
}
