//! The secret key for relays that ask who we are.

use std::path::Path;

use nostr::key::Keys;

use super::Failure;

/// The largest key file, in bytes: a key has 64, the rest is room for white space.
const FILE_BYTES_MAX: u64 = 4096;

/// Reads a secret key, nsec or hexadecimal, from a file.
///
/// # Errors
/// The file cannot be read, or holds something else. The message does not repeat what the file holds.
pub fn read(path: &Path) -> Result<Keys, Failure> {
    let fault = |reason: &dyn std::fmt::Display| Failure::usage(format!("key file {}: {reason}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| fault(&error))?.len();
    if size > FILE_BYTES_MAX {
        return Err(fault(&format!("larger than {FILE_BYTES_MAX} bytes, so it is no key")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| fault(&error))?;
    Keys::parse(text.trim()).map_err(|_| fault(&"it must hold one secret key, as nsec1… or 64 hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::read;

    const HEX: &str = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa";
    const NSEC: &str = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";

    #[test]
    fn reads_both_forms_and_never_repeats_a_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        for text in [format!("{HEX}\n"), format!(" {NSEC}\r\n")] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap().secret_key().to_secret_hex(), HEX);
        }
        std::fs::write(&path, format!("{HEX}ff")).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("nsec1") && !error.contains(HEX), "{error}");
        assert!(read(&directory.path().join("none")).unwrap_err().to_string().contains("No such file"));
    }
}
