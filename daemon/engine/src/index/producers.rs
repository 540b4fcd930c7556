//! Scores of several producers, made comparable for ranking.
//!
//! Importance, salience and strength share a scale within one producer only (spec: Theory & Scope,
//! "Stored scalars are producer-relative"): a consumer that ranks records of more than one producer
//! should renormalise per producer, keyed by `meta.source`. So a score of another producer counts
//! by its rank: its mid-rank quantile among the live scores of that producer and type. Where we
//! have enough scores of our own, the quantile is turned into the score that has the same rank
//! among ours. Our own scores count as they are, and as long as only one producer has ever stated
//! any, all do. Within one producer no two scores change places; ranks are
//! of what is live, so a version that is not may tie with another where no live score lies between.
//!
//! The ranks depend on what is live and on nothing else, so they are the same after a restart.

use omir_core::model::Resource;
use omir_core::reference::ResourceType;
use serde::{Deserialize, Serialize};

use omird_store::{DocId, RefKey};

/// Another producer, by the hash of its `meta.source`, which comes from the network: see [`RefKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Producer(RefKey);

impl Producer {
    /// The producer of a resource; `None` if it was us: it names no source, or a version of `omird` or
    /// `omir`.
    pub fn of(resource: &Resource) -> Option<Self> {
        let source = resource.meta()?.source.as_deref()?;
        let name = source.split_once('/').map_or(source, |(name, _)| name);
        (!matches!(name, "omird" | "omir")).then(|| Self(RefKey::of_text(source)))
    }
}

/// Number of a producer in the index.
pub(crate) type ProducerNumber = u16;

/// Our own number.
pub(crate) const OURS: ProducerNumber = 0;
/// Producers beyond this many share one scale: names come from the network.
const MOST: usize = 1000;
/// Fewer scores than these of our own tell no scale.
const ENOUGH: u32 = 20;

/// A scale is kept in steps of 1/200. Steps are centred, so that scores of two decimals lie in the
/// middle of theirs and get their exact mid-rank; between the middles it is interpolated.
const STEPS: usize = 200;

/// The scores of one producer and one type.
#[derive(Debug, Clone)]
struct Scale {
    /// Number of scores below each step; the last counts all.
    below: [u32; STEPS + 2],
}

impl Scale {
    const EMPTY: Self = Self { below: [0; STEPS + 2] };

    /// The step a score lies in, and how far up in it.
    fn step(score: f64) -> (usize, f64) {
        let at = score.clamp(0.0, 1.0) * STEPS as f64;
        let step = at.round();
        (step as usize, at - step + 0.5)
    }

    fn add(&mut self, score: f64) {
        let (step, _) = Self::step(score);
        self.below[step + 1..].iter_mut().for_each(|count| *count += 1);
    }

    fn remove(&mut self, score: f64) {
        let (step, _) = Self::step(score);
        self.below[step + 1..].iter_mut().for_each(|count| *count = count.saturating_sub(1));
    }

    fn total(&self) -> u32 {
        self.below[STEPS + 1]
    }

    /// The mid-rank quantile of a score. Without any to compare with, the score itself.
    fn rank(&self, score: f64) -> f64 {
        if self.total() == 0 {
            return score.clamp(0.0, 1.0);
        }
        let (step, inside) = Self::step(score);
        let (below, above) = (f64::from(self.below[step]), f64::from(self.below[step + 1]));
        (below + (above - below) * inside) / f64::from(self.total())
    }

    /// The score that has a rank.
    fn score_at(&self, rank: f64) -> f64 {
        let wanted = rank * f64::from(self.total());
        let step = self.below[1..].partition_point(|&count| f64::from(count) < wanted).min(STEPS);
        let (below, above) = (f64::from(self.below[step]), f64::from(self.below[step + 1]));
        let inside = if above > below { (wanted - below) / (above - below) } else { 0.0 };
        let low = ((step as f64 - 0.5) / STEPS as f64).max(0.0);
        let high = ((step as f64 + 0.5) / STEPS as f64).min(1.0);
        low + inside.clamp(0.0, 1.0) * (high - low)
    }
}

/// The scales of a producer, one for each type that has scores.
type Scales = [Option<Box<Scale>>; ResourceType::ALL.len()];

/// All producers and their scales.
#[derive(Debug, Default)]
pub(crate) struct Producers {
    numbers: hashbrown::HashMap<Producer, ProducerNumber>,
    /// By number.
    scales: Vec<Scales>,
    /// Number of producers that have ever stated a score.
    scored: usize,
    /// Confidence by our own rule of versions that others produced, if it is not the stated one.
    beliefs: hashbrown::HashMap<DocId, f64>,
}

impl Producers {
    /// The number of a producer, a new one for a new producer.
    pub(crate) fn number(&mut self, producer: Option<Producer>) -> ProducerNumber {
        let Some(producer) = producer else { return OURS };
        // Ours is 0 and is in no table; the number behind the last is shared by all the rest.
        let next = self.numbers.len() + 1;
        if next <= MOST {
            *self.numbers.entry(producer).or_insert(next as ProducerNumber)
        } else {
            self.numbers.get(&producer).copied().unwrap_or(next as ProducerNumber)
        }
    }

    /// Counts the score of a version that begins to be live, or ceases to. `kind` is the position
    /// in [`ResourceType::ALL`]; NaN is no score.
    pub(crate) fn count(&mut self, number: ProducerNumber, kind: u8, score: f64, comes: bool) {
        if score.is_nan() {
            return;
        }
        let number = usize::from(number);
        if self.scales.len() <= number {
            self.scales.resize_with(number + 1, Scales::default);
        }
        let scales = &mut self.scales[number];
        if comes && scales.iter().all(Option::is_none) {
            self.scored += 1;
        }
        let scale = scales[usize::from(kind)].get_or_insert_with(|| Box::new(Scale::EMPTY));
        if comes { scale.add(score) } else { scale.remove(score) }
    }

    /// The score that ranks with those of other producers.
    pub(crate) fn comparable(&self, number: ProducerNumber, kind: u8, score: f64) -> f64 {
        if number == OURS || self.scored < 2 || score.is_nan() {
            return score;
        }
        let rank = self.scale(number, kind).map_or(score, |scale| scale.rank(score));
        match self.scale(OURS, kind).filter(|ours| ours.total() >= ENOUGH) {
            Some(ours) => ours.score_at(rank),
            None => rank,
        }
    }

    /// The confidence by our own rule of a version that another producer made, if it is not the stated one.
    pub(crate) fn belief(&self, number: ProducerNumber, id: DocId) -> Option<f64> {
        if number == OURS { None } else { self.beliefs.get(&id).copied() }
    }

    /// Adds the confidence by our own rule of a version.
    pub(crate) fn add_belief(&mut self, id: DocId, belief: f64) {
        self.beliefs.insert(id, belief);
    }

    /// Removes that of a version that a compaction drops.
    pub(crate) fn remove_belief(&mut self, id: DocId) {
        self.beliefs.remove(&id);
    }

    fn scale(&self, number: ProducerNumber, kind: u8) -> Option<&Scale> {
        self.scales.get(usize::from(number))?.get(usize::from(kind))?.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn producer(name: &str) -> Option<Producer> {
        Some(Producer(RefKey::of_text(name)))
    }

    fn scale(scores: impl IntoIterator<Item = f64>) -> Scale {
        let mut scale = Scale::EMPTY;
        scores.into_iter().for_each(|score| scale.add(score));
        scale
    }

    #[test]
    fn a_rank_is_the_middle_of_its_equals() {
        let scale = scale([0.2, 0.5, 0.5, 0.9]);
        for (score, rank) in [(0.2, 0.125), (0.5, 0.5), (0.9, 0.875), (0.0, 0.0), (1.0, 1.0)] {
            assert!((scale.rank(score) - rank).abs() < 1e-12, "{score}");
        }
        let one = Scale::EMPTY.rank(0.3);
        assert_eq!(one, 0.3, "nothing to compare with");
        for always in [0.0, 0.37, 1.0] {
            let rank = self::scale([always; 9]).rank(always);
            assert!((rank - 0.5).abs() < 1e-9, "who always says {always} says nothing");
        }
    }

    #[test]
    fn the_order_within_one_producer_is_kept() {
        // Packed into two steps of the scale, and spread over all of it.
        for spread in [0.001, 1.0] {
            let stated: Vec<f64> =
                (0..500).map(|n| 0.501 * (1.0 - spread) + spread * f64::from(n) / 500.0).collect();
            let theirs = scale(stated.iter().copied());
            let ours = scale((0..50).map(|n| 0.3 + 0.002 * f64::from(n % 7)));
            let ranked: Vec<f64> =
                stated.iter().map(|&score| ours.score_at(theirs.rank(score))).collect();
            assert!(ranked.is_sorted_by(|a, b| a < b), "{spread}: {ranked:?}");
        }
    }

    #[test]
    fn a_score_is_found_again_by_its_rank() {
        let ours = scale((0..100).map(|n| f64::from(n % 10) / 10.0 + 0.05));
        for n in 0..10 {
            let score = f64::from(n) / 10.0 + 0.05;
            assert!((ours.score_at(ours.rank(score)) - score).abs() < 1e-9, "{score}");
        }
        for rank in [0.0, 0.25, 1.0] {
            assert!((0.0..=1.0).contains(&ours.score_at(rank)), "{rank}");
        }
    }

    #[test]
    fn what_went_no_longer_counts() {
        let mut scale = scale([0.1, 0.4, 0.4, 0.8]);
        scale.remove(0.4);
        scale.remove(0.8);
        assert_eq!(scale.below, self::scale([0.1, 0.4]).below);
    }

    #[test]
    fn others_count_by_rank_and_we_as_we_say() {
        let mut producers = Producers::default();
        let theirs = producers.number(producer("veld/1"));
        for score in [0.90, 0.92, 0.94] {
            producers.count(theirs, 0, score, true);
        }
        assert_eq!(producers.comparable(theirs, 0, 0.94), 0.94, "nobody to compare with");
        producers.count(OURS, 1, 0.3, true);
        let ranks = [0.90, 0.92, 0.94].map(|score| producers.comparable(theirs, 0, score));
        let expected = [1.0 / 6.0, 0.5, 5.0 / 6.0];
        assert!(ranks.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{ranks:?}");
        assert_eq!(producers.comparable(OURS, 0, 0.94), 0.94);
        assert!(producers.comparable(theirs, 0, f64::NAN).is_nan());
        // With a scale of our own, theirs lies within it.
        (0..20).for_each(|_| producers.count(OURS, 0, 0.3, true));
        let middle = producers.comparable(theirs, 0, 0.92);
        assert!((middle - 0.3).abs() < 1e-9, "{middle}");
        // Another type has a scale of its own, and here nothing in it.
        assert_eq!(producers.comparable(theirs, 1, 0.92), 0.92);
    }

    #[test]
    fn names_without_end_share_one_scale() {
        let mut producers = Producers::default();
        let numbers: Vec<ProducerNumber> =
            (0..3000).map(|n| producers.number(producer(&format!("p/{n}")))).collect();
        assert_eq!(numbers[0], 1);
        assert_eq!(numbers[MOST - 1], MOST as ProducerNumber);
        assert!(numbers[MOST..].iter().all(|&n| n == MOST as ProducerNumber + 1));
        assert_eq!(producers.number(producer("p/0")), 1, "who was known stays known");
        assert_eq!(producers.number(None), OURS);
    }

    #[test]
    fn a_producer_is_named_by_its_source() {
        let of = |source: Option<&str>| {
            let mut entity = omir_core::model::Entity::new("e".parse().unwrap(), "e");
            entity.meta = Some(omir_core::model::Meta {
                source: source.map(str::to_owned),
                ..omir_core::model::Meta::r1()
            });
            Producer::of(&entity.into())
        };
        for ours in [None, Some("omird/0.1.0"), Some("omir/9"), Some("omir")] {
            assert_eq!(of(ours), None, "{ours:?}");
        }
        for other in ["omirdx/1", "veld/0.7.6", "", "Omird/1"] {
            assert_eq!(of(Some(other)), producer(other), "{other:?}");
        }
    }
}
