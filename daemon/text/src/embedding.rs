//! The embedding `hashed-256`: weighted words, hashed into a vector of 256 bytes.
//!
//! It is the default where no model is installed. It needs no file, and finds texts that share words, forms of a word or
//! parts of one. It knows no synonyms: "cup" and "mug" are strangers to it.
//!
//! The rule, from text to vector:
//!
//! 1. Features are the stems without stop words, weight 1; each two neighbouring stems, weight ½; and the parts of three
//!    letters of each stem with its ends marked, weight ½ shared among them by √n, so that a typing error leaves some.
//! 2. A feature's weight is multiplied by the square root of how often it occurs.
//! 3. A feature's place is the hash FNV-1a (64 bits) of its bytes, finished by the mixer of MurmurHash3: the low 8 bits are
//!    the dimension, the highest one the sign (Weinberger and others, 2009).
//! 4. The vector is made of length 1, and then of integers: the largest absolute value becomes 127.
//!
//! Only sums, products, square roots and roundings in a fixed order occur, which IEEE 754 defines to the last bit. So every
//! machine makes the same bytes, and vectors of two robots compare.

use std::collections::BTreeMap;

use crate::Language;

/// Numbers in a vector of `hashed-256`.
pub const DIMENSIONS: usize = 256;

/// The embedding that needs no model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashedEmbedding {
    language: Language,
}

impl HashedEmbedding {
    /// The embedding's name without its language. Vectors compare only with those of one name.
    pub const NAME: &str = "hashed-256";

    /// Returns the embedding for texts of a language.
    pub fn new(language: Language) -> Self {
        Self { language }
    }

    /// The name with the language of its stems, such as `hashed-256-en`: what is stored beside a vector.
    pub fn model(self) -> String {
        format!("{}-{}", Self::NAME, self.language.code())
    }

    /// Returns the vector of `text`. That of a text without words is all zeros.
    pub fn embed(self, text: &str) -> Embedding {
        let mut counts: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        let mut stems: BTreeMap<String, u32> = BTreeMap::new();
        let mut previous = String::new();
        self.language.stems(text, |stem| {
            *stems.entry(stem.to_owned()).or_default() += 1;
            if !previous.is_empty() {
                *counts
                    .entry([previous.as_bytes(), b" ", stem.as_bytes()].concat())
                    .or_default() += 1;
            }
            stem.clone_into(&mut previous);
        });
        let mut sums = [0.0_f64; DIMENSIONS];
        for (pair, count) in &counts {
            add(&mut sums, pair, 0.5 * f64::from(*count).sqrt());
        }
        for (stem, count) in &stems {
            let weight = f64::from(*count).sqrt();
            add(&mut sums, stem.as_bytes(), weight);
            let marked: Vec<char> = format!("<{stem}>").chars().collect();
            let parts = marked.windows(3);
            let each = 0.5 * weight / (parts.len().max(1) as f64).sqrt();
            for part in parts {
                // A byte that no stem has tells a part from a stem of the same letters.
                let part: String = ['\0'].iter().chain(part).collect();
                add(&mut sums, part.as_bytes(), each);
            }
        }
        Embedding::quantized(&sums)
    }
}

/// Adds a feature to its dimension.
fn add(sums: &mut [f64; DIMENSIONS], feature: &[u8], weight: f64) {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in feature {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^= hash >> 33;
    let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
    sums[(hash % DIMENSIONS as u64) as usize] += sign * weight;
}

/// A vector of bytes: each number is `scale` times its integer.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    scale: f32,
    values: [i8; DIMENSIONS],
}

impl Embedding {
    /// Returns the vector of length 1 in the direction of `sums`, in integers.
    fn quantized(sums: &[f64; DIMENSIONS]) -> Self {
        let length = sums.iter().map(|sum| sum * sum).sum::<f64>().sqrt();
        let largest = sums.iter().fold(0.0_f64, |largest, sum| largest.max(sum.abs()));
        if largest == 0.0 {
            return Self { scale: 0.0, values: [0; DIMENSIONS] };
        }
        let values = sums.map(|sum| (sum / largest * 127.0).round_ties_even() as i8);
        Self { scale: (largest / length / 127.0) as f32, values }
    }

    /// The value of 1 in [`values`](Self::values); 0 for a text without words.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// The integers, between -127 and 127.
    pub fn values(&self) -> &[i8; DIMENSIONS] {
        &self.values
    }

    /// Returns true if the text had no words.
    pub fn is_zero(&self) -> bool {
        self.values.iter().all(|&value| value == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn embed(text: &str) -> Embedding {
        HashedEmbedding::new(Language::English).embed(text)
    }

    /// The cosine of the angle between both; 0 if either is zero.
    fn cosine(a: &Embedding, b: &Embedding) -> f64 {
        let dot = |a: &Embedding, b: &Embedding| -> i32 {
            a.values.iter().zip(&b.values).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum()
        };
        let squares = f64::from(dot(a, a)) * f64::from(dot(b, b));
        if squares == 0.0 { 0.0 } else { f64::from(dot(a, b)) / squares.sqrt() }
    }

    fn alike(a: &str, b: &str) -> f64 {
        cosine(&embed(a), &embed(b))
    }

    #[test]
    fn texts_that_share_words_are_near() {
        assert!(alike("The door of room 12 is open", "room 12: open door") > 0.7);
        assert!(alike("charging station", "the robot charges at stations") > 0.4);
        assert!(alike("kitchen", "kitchne") > 0.1, "a typing error leaves something");
        assert!(alike("red cup on the table", "battery voltage fell").abs() < 0.2);
        assert!(alike("dock_3 is free", "dock_3 is free") > 0.999_999);
        assert_eq!(alike("the of and", "cup"), 0.0);
        assert!(embed("").is_zero() && embed("").scale() == 0.0);
    }

    /// Vectors lie on robots: the same text must give the same bytes in every version of omird under this name.
    #[test]
    fn the_bytes_of_a_text_are_fixed() {
        // The same figures came from a second implementation of the rule, in Python.
        let vector = embed("The robot must not enter room 12.");
        let sum = vector
            .values()
            .iter()
            .enumerate()
            .fold(0_i64, |sum, (at, &value)| sum + (at as i64 + 1) * i64::from(value));
        let used = vector.values().iter().filter(|&&value| value != 0).count();
        assert_eq!((sum, used, vector.scale()), (28_958, 27, 0.003_510_307_8));
        assert_eq!(HashedEmbedding::new(Language::German).model(), "hashed-256-de");
    }

    #[test]
    fn a_feature_goes_where_the_published_hash_says() {
        // FNV-1a of "a" is af63dc4c8601ec8c; its mix by MurmurHash3's finalizer, worked out by another program,
        // ends in 5b and has the highest bit set.
        let mut sums = [0.0; DIMENSIONS];
        add(&mut sums, b"a", 2.0);
        let found: Vec<_> = sums.iter().enumerate().filter(|(_, sum)| **sum != 0.0).collect();
        assert_eq!(found, [(91, &-2.0)]);
    }

    proptest! {
        #[test]
        fn vectors_have_length_one_or_zero(text in "\\PC{0,80}") {
            let vector = embed(&text);
            let squares: f64 = vector.values().iter().map(|&v| (f64::from(v) * f64::from(vector.scale())).powi(2)).sum();
            prop_assert!(vector.is_zero() || (squares.sqrt() - 1.0).abs() < 0.03, "{}", squares.sqrt());
            prop_assert!(vector.values().iter().all(|&value| value != i8::MIN));
            prop_assert!(vector.is_zero() || cosine(&vector, &vector) > 0.999_999);
        }

        #[test]
        fn order_of_repetition_does_not_matter_to_one_word(times in 1usize..20) {
            prop_assert!(alike(&"cup ".repeat(times), "cup") > 0.5);
        }
    }
}
