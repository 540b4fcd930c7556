//! Vectors as they are kept: of length 1, an integer of one byte for each number, and one scale.

use fearless_simd::{Level, Simd, dispatch};

/// A vector of length 1 in integers: each number is the scale times its integer.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The value of 1.
    pub scale: f32,
    /// Between -127 and 127.
    pub values: Box<[i8]>,
}

impl Vector {
    /// The vector of length 1 in the direction of `numbers`; `None` if they have no direction: all zero, or not finite.
    pub fn of(numbers: &[f32]) -> Option<Self> {
        let largest = numbers.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        if !(largest > 0.0 && numbers.iter().all(|number| number.is_finite())) {
            return None;
        }
        let values: Box<[i8]> = numbers
            .iter()
            .map(|number| (number / largest * 127.0).round_ties_even() as i8)
            .collect();
        Self::of_integers(values)
    }

    /// The vector of length 1 in the direction of some integers; `None` if all are zero.
    pub fn of_integers(values: Box<[i8]>) -> Option<Self> {
        // The length of the integers themselves: so a vector and itself have the cosine 1.
        let squares: i64 = values.iter().map(|value| i64::from(*value) * i64::from(*value)).sum();
        (squares > 0).then(|| Self { scale: (1.0 / (squares as f64).sqrt()) as f32, values })
    }

    /// The cosine with another of as many numbers.
    pub fn cosine(&self, other: &Self) -> f32 {
        dot(&self.values, &other.values) as f32 * self.scale * other.scale
    }
}

/// The sum of the products of two rows of integers. Of rows of 16 and more it is vector instructions.
#[inline]
fn dot(a: &[i8], b: &[i8]) -> i32 {
    let (a, a_rest) = a.as_chunks::<16>();
    let (b, b_rest) = b.as_chunks::<16>();
    let mut sums = [0_i32; 16];
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            // Products fit 16 bits, which have twice the lanes of 32.
            *sum += i32::from(i16::from(*a) * i16::from(*b));
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| i32::from(*a) * i32::from(*b));
    sums.iter().sum::<i32>() + rest.sum::<i32>()
}

/// The same of a row that was widened. A sum over 64 products at a time is what compilers make `vpmaddwd` of, which multiplies and adds
/// pairs: with AVX-512 a row of 64 takes a third of the time of [`dot`], with SSE2 alone up to a quarter more.
#[inline(always)]
fn dot_of_wide(a: &[i16], b: &[i8]) -> i32 {
    let (a, a_rest) = a.as_chunks::<64>();
    let (b, b_rest) = b.as_chunks::<64>();
    let of = |a: &[i16], b: &[i8]| -> i32 {
        a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(i16::from(*b))).sum()
    };
    a.iter().zip(b).map(|(a, b)| of(a, b)).sum::<i32>() + of(a_rest, b_rest)
}

/// A vector that is compared with many rows: its integers in the width in which processors multiply and add, so that they are
/// widened once and not for each row.
#[derive(Debug, Clone)]
pub struct Probe {
    scale: f32,
    values: Box<[i16]>,
}

impl Probe {
    /// A probe for a vector.
    pub fn of(vector: &Vector) -> Self {
        let values = vector.values.iter().map(|value| i16::from(*value)).collect();
        Self { scale: vector.scale, values }
    }

    /// Fills `out` with the cosines of rows that lie one behind the other, each of as many integers: what [`Probe::cosine`] says of
    /// each, with the widest vector instructions that this processor has.
    pub fn cosines(&self, rows: &[i8], scales: &[f32], out: &mut Vec<f32>) {
        out.clear();
        let rows = rows.chunks_exact(self.values.len().max(1));
        // `simd` compiles what is inlined into the closure once for each set of instructions.
        dispatch!(Level::new(), simd => simd.vectorize(#[inline(always)] || {
            for (row, scale) in rows.zip(scales) {
                out.push(dot_of_wide(&self.values, row) as f32 * self.scale * scale);
            }
        }));
    }

    /// The cosine with a row of as many integers and its scale: what [`Vector::cosine`] says.
    #[inline]
    pub fn cosine(&self, row: &[i8], scale: f32) -> f32 {
        let (a, a_rest) = row.as_chunks::<16>();
        let (b, b_rest) = self.values.as_chunks::<16>();
        let mut sums = [0_i32; 16];
        for (a, b) in a.iter().zip(b) {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                *sum += i32::from(i16::from(*a)) * i32::from(*b);
            }
        }
        let rest = a_rest.iter().zip(b_rest).map(|(a, b)| i32::from(*a) * i32::from(*b));
        let dot = sums.iter().sum::<i32>() + rest.sum::<i32>();
        dot as f32 * self.scale * scale
    }
}

/// The signs of a vector, a bit for each number: what is unlike in many of them has a small cosine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bits;

impl Bits {
    /// Words of 64 bits for so many numbers.
    pub fn words(dims: usize) -> usize {
        dims.div_ceil(64)
    }

    /// Writes the signs of `values` to `out`, of [`Bits::words`].
    pub fn write(values: &[i8], out: &mut [u64]) {
        for (word, part) in out.iter_mut().zip(values.chunks(64)) {
            *word = part
                .iter()
                .enumerate()
                .fold(0, |bits, (at, value)| bits | u64::from(*value < 0) << at);
        }
    }

    /// Number of signs in which two differ.
    #[inline]
    pub fn distance(a: &[u64], b: &[u64]) -> u32 {
        a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_vector_without_direction_is_none() {
        assert_eq!(Vector::of(&[0.0; 8]), None);
        assert_eq!(Vector::of(&[]), None);
        assert_eq!(Vector::of(&[1.0, f32::NAN]), None);
        assert_eq!(Vector::of(&[f32::INFINITY, 1.0]), None);
        let tiny = Vector::of(&[f32::MIN_POSITIVE, 0.0]).unwrap();
        assert_eq!(&*tiny.values, [127, 0]);
    }

    proptest! {
        #[test]
        fn integers_keep_the_cosine(
            pairs in prop::collection::vec((-1.0f32..1.0, -1.0f32..1.0), 64..300),
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            let sum = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            let exact = sum(&a, &b) / (sum(&a, &a) * sum(&b, &b)).sqrt();
            let (a, b) = (Vector::of(&a).unwrap(), Vector::of(&b).unwrap());
            prop_assert!((f64::from(a.cosine(&b)) - exact).abs() < 0.01);
            prop_assert!((a.cosine(&a) - 1.0).abs() < 1e-5);
            let plain: i32 = a.values.iter().zip(&b.values)
                .map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
            prop_assert_eq!(dot(&a.values, &b.values), plain);
            let probe = Probe::of(&a);
            prop_assert_eq!(probe.cosine(&b.values, b.scale), a.cosine(&b));
            let rows: Vec<i8> = [&*b.values, &*a.values].concat();
            let mut cosines = vec![7.0];
            probe.cosines(&rows, &[b.scale, a.scale], &mut cosines);
            prop_assert_eq!(cosines, [a.cosine(&b), a.cosine(&a)]);
        }

        #[test]
        fn bits_are_signs(values in prop::collection::vec(any::<i8>(), 0..300)) {
            let mut bits = vec![0; Bits::words(values.len())];
            Bits::write(&values, &mut bits);
            let mut none = vec![0; bits.len()];
            Bits::write(&vec![0; values.len()], &mut none);
            let negative = values.iter().filter(|value| **value < 0).count();
            prop_assert_eq!(Bits::distance(&bits, &none) as usize, negative);
        }
    }
}
