//! Signatures (BIP-340) without libsecp256k1: one by one, or many at once by one multiplication of many points.
//!
//! For one signature, `s·G = R + e·P` is to hold. For many, each equation is taken times a factor that nobody could know
//! when the signatures were made, and the sum of all is to hold: it holds for forged ones once in 2^128. The factors come
//! from a hash of all that is checked, as BIP-340 has it. An author's key is multiplied once, however many signatures
//! there are of it, so that a few authors make it several times faster. If the sum does not hold, both halves are looked
//! at, until it is known which are forged.

use std::collections::BTreeMap;

use bitcoin_hashes::{HashEngine, sha256};
use k256::elliptic_curve::PrimeField;
use k256::elliptic_curve::ops::Reduce;
use k256::elliptic_curve::point::DecompressPoint;
use k256::schnorr::{Signature, VerifyingKey};
use k256::{AffinePoint, FieldBytes, ProjectivePoint, Scalar, U256};

use super::multiply;

/// So few signatures are checked one by one: at once, they would not be faster.
const SINGLE_MAX: usize = 4;
/// The name of the hash of what is signed (BIP-340).
const CHALLENGE: &[u8] = b"BIP0340/challenge";

/// What a signature is over, and by whom it is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signed<'a> {
    /// The event's id.
    pub(crate) id: &'a [u8; 32],
    /// The author's key.
    pub(crate) author: &'a [u8; 32],
    /// The signature.
    pub(crate) signature: &'a [u8; 64],
}

impl Signed<'_> {
    /// Is it the author's?
    pub(crate) fn is_genuine(self) -> bool {
        let key = VerifyingKey::from_bytes(self.author);
        let signature = Signature::try_from(&self.signature[..]);
        matches!((key, signature), (Ok(key), Ok(signature)) if key.verify_raw(self.id, &signature).is_ok())
    }
}

/// Which of these are their authors'? One answer each, in order.
pub(crate) fn are_genuine(signed: &[Signed<'_>]) -> Vec<bool> {
    let equations: Vec<Option<Equation<'_>>> = signed.iter().map(|signed| Equation::of(*signed)).collect();
    // What is no signature at all is out before anything is multiplied.
    let whole: Vec<&Equation<'_>> = equations.iter().flatten().collect();
    let mut answers = Vec::with_capacity(whole.len());
    check(&whole, &mut answers);
    let mut answers = answers.into_iter();
    equations.iter().map(|equation| equation.is_some() && answers.next() == Some(true)).collect()
}

/// The parts of `s·G = R + e·P`.
struct Equation<'a> {
    signed: Signed<'a>,
    s: Scalar,
    r: AffinePoint,
    e: Scalar,
}

impl<'a> Equation<'a> {
    /// `None` if the signature is none: its numbers are out of range, or not on the curve.
    fn of(signed: Signed<'a>) -> Option<Self> {
        let (r, s) = signed.signature.split_first_chunk::<32>()?;
        let s: [u8; 32] = s.try_into().ok()?;
        Some(Self { signed, s: scalar(s)?, r: point(r)?, e: challenge(r, signed.author, signed.id) })
    }
}

/// Appends the answers for `equations`.
fn check(equations: &[&Equation<'_>], answers: &mut Vec<bool>) {
    if equations.len() <= SINGLE_MAX {
        answers.extend(equations.iter().map(|equation| equation.signed.is_genuine()));
    } else if hold_together(equations) {
        answers.extend(equations.iter().map(|_| true));
    } else {
        let (first, second) = equations.split_at(equations.len() / 2);
        check(first, answers);
        check(second, answers);
    }
}

/// Does the sum of all equations hold, each taken times its factor?
fn hold_together(equations: &[&Equation<'_>]) -> bool {
    let seed = seed(equations);
    let mut terms = Vec::with_capacity(2 * equations.len() + 1);
    let mut keys: BTreeMap<&[u8; 32], Scalar> = BTreeMap::new();
    let mut generator = Scalar::ZERO;
    for (place, equation) in (0u64..).zip(equations) {
        let factor = factor(&seed, place);
        generator += factor * equation.s;
        terms.push((equation.r, -factor));
        *keys.entry(equation.signed.author).or_insert(Scalar::ZERO) -= factor * equation.e;
    }
    for (key, times) in keys {
        // A key that is none is nobody's signature; the halves will tell whose.
        let Some(key) = point(key) else { return false };
        terms.push((key, times));
    }
    terms.push((AffinePoint::GENERATOR, generator));
    multiply::sum(&terms) == ProjectivePoint::IDENTITY
}

/// A hash of all that is checked.
fn seed(equations: &[&Equation<'_>]) -> [u8; 32] {
    let parts = equations
        .iter()
        .flat_map(|Equation { signed, .. }| [&signed.id[..], &signed.author[..], &signed.signature[..]]);
    hash(parts)
}

/// A number of 128 bits that follows from the seed.
fn factor(seed: &[u8; 32], place: u64) -> Scalar {
    let hash = hash([&seed[..], &place.to_le_bytes()[..]]);
    let (half, _) = hash.split_at(16);
    let number = half.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
    Scalar::from(number)
}

/// `e`: what is signed, with whom it is by, as a number.
fn challenge(r: &[u8; 32], author: &[u8; 32], id: &[u8; 32]) -> Scalar {
    let name = sha256::Hash::hash(CHALLENGE).to_byte_array();
    let hash = hash([&name[..], &name[..], &r[..], &author[..], &id[..]]);
    <Scalar as Reduce<U256>>::reduce_bytes(&FieldBytes::from(hash))
}

fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut engine = sha256::HashEngine::new();
    parts.into_iter().for_each(|part| engine.input(part));
    engine.finalize().to_byte_array()
}

/// The point with this x and an even y, if there is one.
fn point(x: &[u8; 32]) -> Option<AffinePoint> {
    AffinePoint::decompress(&FieldBytes::from(*x), 0.into()).into()
}

fn scalar(bytes: [u8; 32]) -> Option<Scalar> {
    Scalar::from_repr(bytes.into()).into()
}

#[cfg(test)]
mod tests {
    use k256::schnorr::SigningKey;

    use super::{Signed, are_genuine};

    struct Sample {
        id: [u8; 32],
        author: [u8; 32],
        signature: [u8; 64],
    }

    fn samples(count: u8, authors: u8) -> Vec<Sample> {
        let sample = |number: u8| {
            let key = SigningKey::from_bytes(&[1 + number % authors; 32]).unwrap();
            let id = super::hash([&[number][..]]);
            let signature = key.sign_raw(&id, &[0; 32]).unwrap();
            Sample { id, author: key.verifying_key().to_bytes().into(), signature: signature.to_bytes() }
        };
        (0..count).map(sample).collect()
    }

    fn answers(samples: &[Sample]) -> Vec<bool> {
        let mut signed = Vec::new();
        for Sample { id, author, signature } in samples {
            signed.push(Signed { id, author, signature });
        }
        are_genuine(&signed)
    }

    #[test]
    fn genuine_signatures_pass_however_many_there_are() {
        for (count, authors) in [(0, 1), (1, 1), (2, 2), (5, 1), (33, 3), (100, 100), (255, 7)] {
            assert_eq!(answers(&samples(count, authors)), vec![true; count.into()], "{count} of {authors}");
        }
    }

    #[test]
    fn what_is_forged_is_found_and_nothing_else() {
        let forge: [fn(&mut Sample); 7] = [
            |sample| sample.id[0] ^= 1,
            |sample| sample.signature[63] ^= 1,
            |sample| sample.signature[..32].fill(0xff),
            |sample| sample.signature[32..].fill(0xff),
            |sample| sample.signature.fill(0),
            |sample| sample.author.fill(0xff),
            |sample| sample.author = samples(9, 9)[8].author,
        ];
        for (number, forge) in forge.iter().enumerate() {
            for place in [0, 17, 39] {
                let mut samples = samples(40, 4);
                forge(&mut samples[place]);
                let expected: Vec<bool> = (0..40).map(|other| other != place).collect();
                assert_eq!(answers(&samples), expected, "forgery {number} at {place}");
            }
        }
    }

    /// Two forgeries whose faults would cancel out in a plain sum.
    #[test]
    fn faults_that_cancel_out_are_found() {
        let mut samples = samples(20, 1);
        let (low, high) = (samples[3].signature[63], samples[4].signature[63]);
        samples[3].signature[63] = low.wrapping_add(1);
        samples[4].signature[63] = high.wrapping_sub(1);
        let expected: Vec<bool> = (0..20).map(|place| place != 3 && place != 4).collect();
        assert_eq!(answers(&samples), expected);
    }

    #[test]
    fn all_may_be_forged() {
        let mut samples = samples(50, 2);
        samples.iter_mut().for_each(|sample| sample.id[5] ^= 4);
        assert_eq!(answers(&samples), vec![false; 50]);
    }
}
