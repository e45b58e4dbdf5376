//! The sum of many points of the curve, each taken many times: Pippenger's method, with signed digits. Not in constant
//! time: for what everybody may know.

use k256::elliptic_curve::PrimeField;
use k256::elliptic_curve::scalar::IsHigh;
use k256::{AffinePoint, ProjectivePoint, Scalar};

/// Bits of a scalar, and one for the carry of the last digit.
const BITS: usize = 257;

/// The sum of these points, each taken so many times.
pub(super) fn sum(terms: &[(AffinePoint, Scalar)]) -> ProjectivePoint {
    let width = width(terms.len());
    let digits: Vec<Vec<i32>> = terms.iter().map(|(_, times)| digits(times, width)).collect();
    let places = digits.iter().map(Vec::len).max().unwrap_or(0);
    let mut buckets = vec![ProjectivePoint::IDENTITY; 1 << (width - 1)];
    let mut total = ProjectivePoint::IDENTITY;
    for place in (0..places).rev() {
        for _ in 0..width {
            total = total.double();
        }
        buckets.fill(ProjectivePoint::IDENTITY);
        for ((point, _), digits) in terms.iter().zip(&digits) {
            // All points with the same digit are added up first.
            match digits.get(place).copied().unwrap_or(0) {
                0 => {}
                digit if digit > 0 => buckets[bucket(digit)] += point,
                digit => buckets[bucket(-digit)] -= point,
            }
        }
        total += weighted(&buckets);
    }
    total
}

/// The first bucket once, the second twice, and so on.
fn weighted(buckets: &[ProjectivePoint]) -> ProjectivePoint {
    let (mut above, mut sum) = (ProjectivePoint::IDENTITY, ProjectivePoint::IDENTITY);
    for bucket in buckets.iter().rev() {
        above += bucket;
        sum += above;
    }
    sum
}

fn bucket(digit: i32) -> usize {
    usize::try_from(digit - 1).expect("digits of buckets are positive")
}

/// Bits of a digit: measured, as the wider ones pay only if there are many points.
fn width(points: usize) -> usize {
    match points {
        0..=64 => 4,
        65..=160 => 5,
        161..=640 => 6,
        641..=1600 => 7,
        _ => 8,
    }
}

/// The digits of a number, the lowest first, each from `-2^(width-1)` to `2^(width-1)`; the zeros at the end left out.
fn digits(times: &Scalar, width: usize) -> Vec<i32> {
    let is_negative = bool::from(times.is_high());
    let words = words(&if is_negative { -times } else { *times });
    let (full, half) = (1i32 << width, 1i32 << (width - 1));
    let mut digits = Vec::with_capacity(BITS.div_ceil(width));
    let mut carry = 0;
    for position in (0..BITS).step_by(width) {
        let mut digit = bits(&words, position, width) + carry;
        carry = i32::from(digit > half);
        if carry == 1 {
            digit -= full;
        }
        digits.push(if is_negative { -digit } else { digit });
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    digits
}

/// The words of a number, the lowest first.
fn words(number: &Scalar) -> [u64; 4] {
    let bytes: [u8; 32] = number.to_repr().into();
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().rev().zip(bytes.chunks(8)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words
}

/// `width` bits from `position` on; those beyond the end are zero.
fn bits(words: &[u64; 4], position: usize, width: usize) -> i32 {
    let word = |index: usize| u128::from(words.get(index).copied().unwrap_or(0));
    let (index, offset) = (position / 64, position % 64);
    let pair = word(index) | word(index + 1) << 64;
    i32::try_from(pair >> offset & ((1 << width) - 1)).expect("digits have a few bits")
}

#[cfg(test)]
mod tests {
    use k256::{AffinePoint, ProjectivePoint, Scalar};

    use super::sum;

    #[test]
    fn the_sum_is_that_of_the_products() {
        for count in [0u64, 1, 2, 70, 200] {
            let mut terms = Vec::new();
            let mut expected = ProjectivePoint::IDENTITY;
            let mut times = Scalar::from(0x9e37_79b9_7f4a_7c15u64);
            for number in 0..count {
                let point = (ProjectivePoint::GENERATOR * Scalar::from(number + 1)).to_affine();
                // Small, large, none, and those next to the order of the group.
                times = match number % 5 {
                    0 => Scalar::from(number),
                    1 => -Scalar::ONE,
                    _ => times * times + Scalar::ONE,
                };
                terms.push((point, times));
                expected += ProjectivePoint::from(point) * times;
            }
            assert_eq!(sum(&terms), expected, "{count}");
        }
        assert_eq!(sum(&[(AffinePoint::IDENTITY, Scalar::ONE)]), ProjectivePoint::IDENTITY);
    }
}
