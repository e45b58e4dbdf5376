//! Records carry a checksum of their name and bytes: one that is damaged, or is another's, is told from a good one.

use bytes::Bytes;

use crate::store::tables::Damaged;

const CHECKSUM_BYTES: usize = 8;
const LANES: usize = 4;
const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;

/// Appends the checksum.
pub(super) fn seal(name: &str, mut bytes: Vec<u8>) -> Bytes {
    let sum = checksum(name, &bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.into()
}

/// Takes the checksum off again.
///
/// # Errors
/// It does not fit; the error names the record.
pub(super) fn open(name: &str, bytes: &Bytes) -> Result<Bytes, Damaged> {
    let sealed = bytes.split_last_chunk::<CHECKSUM_BYTES>();
    let Some((content, _)) = sealed.filter(|(content, sum)| checksum(name, content).to_le_bytes() == **sum) else {
        return Err(Damaged { what: format!("record {name}") });
    };
    Ok(bytes.slice(..content.len()))
}

/// No cryptography: it finds what a disk or a bug does. Every step can be undone, so that no change of one word is lost;
/// four lanes keep a processor busy.
fn checksum(name: &str, bytes: &[u8]) -> u64 {
    let mut lanes = [1, 2, 3, bytes.len() as u64];
    feed(&mut lanes, name.as_bytes());
    feed(&mut lanes, bytes);
    lanes.iter().fold(name.len() as u64, |sum, lane| mix(sum, *lane))
}

fn feed(lanes: &mut [u64; LANES], bytes: &[u8]) {
    let (blocks, rest) = bytes.as_chunks::<{ LANES * 8 }>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    for (at, byte) in rest.iter().enumerate() {
        lanes[at % LANES] = mix(lanes[at % LANES], u64::from(*byte));
    }
}

fn mix(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(PRIME).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_any_bit_and_of_the_name_is_found() {
        for length in [0, 1, 7, 31, 32, 33, 100] {
            let sealed = seal("run/1", (0..length).collect());
            assert_eq!(open("run/1", &sealed).unwrap().len(), usize::from(length));
            assert!(open("run/2", &sealed).is_err());
            for bit in 0..sealed.len() * 8 {
                let mut bytes = sealed.to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(open("run/1", &bytes.into()).is_err(), "bit {bit} of {length} bytes");
            }
            assert!(open("run/1", &sealed.slice(1..)).is_err());
        }
    }
}
