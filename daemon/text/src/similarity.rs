//! Similarity of texts, in [0, 1].
//!
//! Jaccard's measure compares sets of stems; the cosine compares their weights, by how rare a stem is among the texts at
//! hand (TF-IDF). [`embedding`](crate::HashedEmbedding) compares vectors of fixed size.

use std::collections::{BTreeMap, BTreeSet};

use crate::Language;

/// The set of a text's stems, without stop words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StemSet {
    stems: BTreeSet<String>,
}

impl StemSet {
    /// Returns the stems of `text`.
    pub fn of(language: Language, text: &str) -> Self {
        let mut stems = BTreeSet::new();
        language.stems(text, |stem| {
            if !stems.contains(stem) {
                stems.insert(stem.to_owned());
            }
        });
        Self { stems }
    }

    /// Returns the stems, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.stems.iter().map(String::as_str)
    }

    /// Returns the number of stems.
    pub fn len(&self) -> usize {
        self.stems.len()
    }

    /// Returns true if the text has no word that counts.
    pub fn is_empty(&self) -> bool {
        self.stems.is_empty()
    }

    /// Returns true if the stem is one of them.
    pub fn contains(&self, stem: &str) -> bool {
        self.stems.contains(stem)
    }

    /// Stems that both have.
    fn common(&self, other: &Self) -> usize {
        let (few, many) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        few.stems.iter().filter(|stem| many.stems.contains(*stem)).count()
    }

    /// Jaccard similarity (1901): stems that both have, of all that either has. 0 if neither has any.
    pub fn jaccard(&self, other: &Self) -> f64 {
        let common = self.common(other);
        share(common, self.len() + other.len() - common)
    }

    /// The share of these stems that `other` has too. 0 if there are none.
    pub fn contained_in(&self, other: &Self) -> f64 {
        share(self.common(other), self.len())
    }
}

impl FromIterator<String> for StemSet {
    fn from_iter<I: IntoIterator<Item = String>>(stems: I) -> Self {
        Self { stems: stems.into_iter().collect() }
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// How rare each stem is among some texts: what TF-IDF weighs by.
#[derive(Clone, Debug, Default)]
pub struct Rarity {
    language: Language,
    texts: u32,
    holding: BTreeMap<String, u32>,
}

impl Rarity {
    /// Counts the stems of `texts`, each once a text.
    pub fn of<'a>(language: Language, texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut rarity = Self { language, ..Self::default() };
        for text in texts {
            rarity.texts = rarity.texts.saturating_add(1);
            for stem in StemSet::of(language, text).stems {
                let count = rarity.holding.entry(stem).or_default();
                *count = count.saturating_add(1);
            }
        }
        rarity
    }

    /// The weight of a stem: ln((1 + texts) / (1 + texts with it)) + 1, at least 1.
    pub fn weight(&self, stem: &str) -> f64 {
        let holding = self.holding.get(stem).copied().unwrap_or(0);
        libm::log((1.0 + f64::from(self.texts)) / (1.0 + f64::from(holding))) + 1.0
    }

    /// Returns the weighted stems of `text`: how often each occurs, times its weight.
    pub fn vector(&self, text: &str) -> WeightedStems {
        let mut weights: BTreeMap<String, f64> = BTreeMap::new();
        self.language.stems(text, |stem| match weights.get_mut(stem) {
            Some(count) => *count += 1.0,
            None => {
                weights.insert(stem.to_owned(), 1.0);
            }
        });
        for (stem, count) in &mut weights {
            *count *= self.weight(stem);
        }
        WeightedStems { weights }
    }
}

/// Stems of a text with their weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightedStems {
    weights: BTreeMap<String, f64>,
}

impl WeightedStems {
    /// Cosine of the angle between both, in [0, 1]; 0 if either has no stems.
    pub fn cosine(&self, other: &Self) -> f64 {
        let (few, many) =
            if self.weights.len() <= other.weights.len() { (self, other) } else { (other, self) };
        let dot: f64 = few
            .weights
            .iter()
            .filter_map(|(stem, weight)| Some(weight * many.weights.get(stem)?))
            .sum();
        let length =
            |of: &Self| of.weights.values().map(|weight| weight * weight).sum::<f64>().sqrt();
        let lengths = length(self) * length(other);
        if lengths > 0.0 { (dot / lengths).clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(text: &str) -> StemSet {
        StemSet::of(Language::English, text)
    }

    #[test]
    fn similarity_of_sets_by_hand() {
        assert_eq!(set("the red cup on a table").jaccard(&set("red cups")), 2.0 / 3.0);
        assert_eq!(set("Charging the robot").jaccard(&set("the robot is charged")), 1.0);
        assert_eq!(set("red cups").contained_in(&set("the red cup on a table")), 1.0);
        assert_eq!(set("the of and").jaccard(&set("the of and")), 0.0);
        assert_eq!(set("").contained_in(&set("cup")), 0.0);
    }

    #[test]
    fn a_rare_word_in_common_counts_more_than_a_common_one() {
        let texts = ["robot near dock", "robot near door", "robot near lathe", "robot near dock"];
        let rarity = Rarity::of(Language::English, texts);
        assert_eq!(rarity.weight("robot"), 1.0);
        assert!((rarity.weight("lath") - ((5.0_f64 / 2.0).ln() + 1.0)).abs() < 1e-12);
        let question = rarity.vector("lathe robot");
        let by_rare = question.cosine(&rarity.vector("lathe is hot"));
        let by_common = question.cosine(&rarity.vector("robot is hot"));
        assert!(by_rare > by_common, "{by_rare} {by_common}");
        assert_eq!(question.cosine(&rarity.vector("mug")), 0.0);
        assert_eq!(rarity.vector("").cosine(&question), 0.0);
    }

    proptest! {
        #[test]
        fn similarity_is_symmetric_and_whole_with_itself(a in "[a-e ]{0,30}", b in "[a-e ]{0,30}") {
            let (p, q) = (set(&a), set(&b));
            prop_assert_eq!(p.jaccard(&q), q.jaccard(&p));
            prop_assert!((0.0..=1.0).contains(&p.jaccard(&q)));
            prop_assert!(p.is_empty() || p.jaccard(&p) == 1.0);
            let rarity = Rarity::of(Language::English, [a.as_str(), b.as_str()]);
            let (v, w) = (rarity.vector(&a), rarity.vector(&b));
            prop_assert_eq!(v.cosine(&w), w.cosine(&v));
            prop_assert!(p.is_empty() || v.cosine(&v) > 1.0 - 1e-12);
        }
    }
}
