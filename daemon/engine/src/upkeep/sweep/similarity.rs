//! Near duplicates: observations of one kind of thing, about the same entities, at one place, in
//! nearly the same words.

use std::collections::BTreeSet;

use omir_core::extension::{CONSOLIDATED_URL, REBASE_URL, UNPLACED_URL, is_owned};
use omir_core::model::{ExperienceType, MemoryRecord, Resource};

use crate::index::facts::{Facts, Position, texts_of};
use crate::index::text::DocTerms;
use crate::time::uncertainty::CLOCK_URL;

/// Extensions that tell of a memory and not of what was seen: what became of it, when it came in and how
/// it was placed. Two with other ones than these in common are not of the same.
const ABOUT_THE_MEMORY: [&str; 4] = [CONSOLIDATED_URL, REBASE_URL, CLOCK_URL, UNPLACED_URL];

/// The features by which two records are compared.
#[derive(Debug)]
pub(crate) struct Sighting {
    facts: Facts,
    terms: DocTerms,
    entities: BTreeSet<String>,
    extensions: BTreeSet<String>,
    is_candidate: bool,
}

impl Sighting {
    /// Draws from a record what counts.
    pub(crate) fn of(record: &MemoryRecord) -> Self {
        let resource = Resource::from(record.clone());
        let facts = Facts::of(&resource);
        let entities: BTreeSet<String> =
            record.entity_refs.iter().flatten().map(|entity| entity.target.to_string()).collect();
        let urls = record.extension.iter().flatten().map(|extension| extension.url.as_str());
        let urls = urls.filter(|url| !ABOUT_THE_MEMORY.contains(url));
        let is_intention = record.experience_type == Some(ExperienceType::Intention);
        let is_anchored = facts.access.is_some_and(|access| access.anchored);
        Self {
            terms: DocTerms::without_plurals(texts_of(&resource)),
            is_candidate: !entities.is_empty()
                && !is_intention
                && !is_anchored
                && !is_owned(record),
            entities,
            extensions: urls.map(str::to_owned).collect(),
            facts,
        }
    }

    /// Returns true if it can be part of another record at all, or take over another.
    pub(crate) fn is_candidate(&self) -> bool {
        self.is_candidate
    }

    /// Returns true if both are of the same, at most `radius` metres apart and at least `similar` in their
    /// words. Symmetric.
    pub(crate) fn is_like(&self, other: &Self, radius: f64, similar: f64) -> bool {
        let (a, b) = (&self.facts, &other.facts);
        self.is_candidate
            && other.is_candidate
            && (a.class.kind, a.class.experience) == (b.class.kind, b.class.experience)
            && (a.valid_until, a.parent, &a.producer) == (b.valid_until, b.parent, &b.producer)
            && self.entities == other.entities
            && self.extensions == other.extensions
            && are_close(&a.places, &b.places, radius)
            && similarity(&self.terms, &other.terms) >= similar
    }
}

/// Returns true if the places are near each other, in the same frame. Of several of one memory the first counts:
/// the others say the same in frames that may move, such as that of the camera. Two without a place are
/// at the same one as far as anybody knows.
pub(crate) fn are_close(a: &[Position], b: &[Position], radius: f64) -> bool {
    match (a.first(), b.first()) {
        (None, None) => true,
        (Some(p), Some(q)) => {
            let gaps = [0, 1, 2].map(|axis| p.position[axis] - q.position[axis]);
            p.frame == q.frame && gaps.iter().map(|gap| gap * gap).sum::<f64>() <= radius * radius
        }
        _ => false,
    }
}

/// Similarity of the words: those both have, of all they have (Jaccard, 1901), in [0, 1]. Words with
/// digits are names and readings, which one more word in common does not make alike: where they
/// differ nothing is alike, and neither is what has no words.
pub(crate) fn similarity(a: &DocTerms, b: &DocTerms) -> f64 {
    let words = |terms: &DocTerms| -> BTreeSet<String> {
        terms.iter().map(|(word, _)| word.to_owned()).collect()
    };
    let (a, b) = (words(a), words(b));
    let has_digit = |word: &&String| word.chars().any(|c| c.is_ascii_digit());
    if a.symmetric_difference(&b).any(|word| has_digit(&word)) {
        return 0.0;
    }
    let common = a.intersection(&b).count();
    let all = a.len() + b.len() - common;
    if all == 0 { 0.0 } else { common as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn alike(a: &str, b: &str) -> f64 {
        similarity(&DocTerms::of([a]), &DocTerms::of([b]))
    }

    #[test]
    fn similarity_by_hand() {
        assert_eq!(alike("red cup table", "the red cup"), 0.5); // 2 of 4
        assert_eq!(alike("Red cup", "cup, red!"), 1.0);
        assert_eq!(alike("door 3 open", "door 4 open"), 0.0); // another door
        assert_eq!(alike("", ""), 0.0);
    }

    proptest! {
        #[test]
        fn similarity_does_not_depend_on_order(
            a in proptest::collection::vec("[a-e]{1,2}", 0..8),
            b in proptest::collection::vec("[a-e]{1,2}", 0..8),
            shuffled in any::<proptest::sample::Index>(),
        ) {
            let (x, y) = (a.join(" "), b.join(" "));
            let s = alike(&x, &y);
            prop_assert!((0.0..=1.0).contains(&s));
            prop_assert_eq!(s, alike(&y, &x));
            let mut turned = a.clone();
            if !turned.is_empty() {
                let by = shuffled.index(turned.len());
                turned.rotate_left(by);
            }
            prop_assert_eq!(s, alike(&turned.join(" "), &y));
        }
    }
}
