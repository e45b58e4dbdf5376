//! The form of a negentropy message (NIP-77), checked before it is believed: a message that breaks off in the middle
//! of a number would read as one that skips all the rest, and so as agreement.

/// Protocol version 1.
const VERSION: u8 = 0x61;

const FINGERPRINT_BYTES: usize = 16;
const ID_BYTES: usize = 32;

/// Is `message` whole: a version and ranges, each with its bound, mode and payload, and nothing else? One byte alone is:
/// it is the version that the other side speaks.
pub(super) fn is_whole(message: &[u8]) -> bool {
    let [version, ranges @ ..] = message else { return false };
    let mut rest = Rest(ranges);
    if *version != VERSION {
        return ranges.is_empty();
    }
    while !rest.0.is_empty() {
        if rest.range().is_none() {
            return false;
        }
    }
    true
}

/// What is left to be read.
struct Rest<'m>(&'m [u8]);

impl Rest<'_> {
    fn range(&mut self) -> Option<()> {
        self.number()?;
        let prefix = usize::try_from(self.number()?).ok().filter(|bytes| *bytes <= ID_BYTES)?;
        self.skip(prefix)?;
        match self.number()? {
            0 => Some(()),
            1 => self.skip(FINGERPRINT_BYTES),
            2 => {
                let ids = usize::try_from(self.number()?).ok()?;
                self.skip(ids.checked_mul(ID_BYTES)?)
            }
            _ => None,
        }
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    /// Seven bits a byte, the highest first; the highest bit of each says whether another follows.
    fn number(&mut self) -> Option<u64> {
        let mut number: u64 = 0;
        loop {
            let [byte, rest @ ..] = self.0 else { return None };
            self.0 = rest;
            number = number.checked_mul(128)? | u64::from(byte & 0x7F);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn whole_messages_are_told_from_those_that_break_off() {
        let mut fingerprint = vec![0x61, 0, 0, 1];
        fingerprint.extend([7; 16]);
        let mut ids = vec![0x61, 0x81, 0x05, 2, 9, 9, 2, 2];
        ids.extend([7; 64]);
        ids.extend([0, 0, 0]);
        for message in [vec![0x61], vec![0x62], vec![0x61, 0, 0, 0], fingerprint.clone(), ids.clone()] {
            assert!(is_whole(&message), "{message:?}");
        }
        for message in [&fingerprint, &ids] {
            let ends: Vec<usize> = (2..message.len()).filter(|end| is_whole(&message[..*end])).collect();
            let whole_ranges: Vec<usize> = if message == &ids { vec![ids.len() - 3] } else { Vec::new() };
            assert_eq!(ends, whole_ranges, "{message:?}");
        }
        for message in [&[][..], &[0x61, 0x80, 0x80], &[0x61, 0, 33], &[0x61, 0, 0, 3], &[0x62, 0]] {
            assert!(!is_whole(message), "{message:?}");
        }
    }
}
