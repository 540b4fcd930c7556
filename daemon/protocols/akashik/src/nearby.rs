//! The vectors of units, a list for each session: which units are near to a new one is found by a look at these lists alone.
//! And what a search of the store by words finds near to them.

use std::cmp::Ordering;

use omird_embedding::{Probe, Vector};

use crate::meaning;
use crate::types::Unit;

/// Rows that are compared at once.
const BLOCK: usize = 256;

/// The agreement of a unit with some words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Agreement {
    /// Words in common, weighed, in [0, 1].
    pub(crate) words: f64,
    /// The cosine of the vectors of the store's model; `None` if it has no model, or none of this unit that is near.
    pub(crate) cosine: Option<f64>,
}

/// A memory of the robot, found for an agent.
#[derive(Debug, Clone)]
pub(crate) struct RobotMemory {
    pub(crate) unit: Unit,
    pub(crate) score: f64,
}

/// What a unit is compared by.
pub(crate) struct Meaning {
    /// The vector of its content; `None` if that has no words.
    content: Option<Vector>,
    assumptions: Vec<Vector>,
}

impl Meaning {
    /// Returns the vectors of a unit that has its content.
    pub(crate) fn of(unit: &Unit) -> Self {
        let assumptions = unit.confidence.iter().flat_map(|confidence| &confidence.assumptions);
        let assumptions = assumptions.filter_map(|text| meaning::embed(text)).collect();
        Self { content: meaning::embed(&unit.content), assumptions }
    }
}

/// The vectors of the units of one session, one behind the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nearby {
    values: Vec<i8>,
    scales: Vec<f32>,
    rows: Vec<Row>,
}

#[derive(Debug, Clone)]
struct Row {
    unit: String,
    is_assumption: bool,
}

impl Nearby {
    /// Adds a unit, and returns the row of its content.
    pub(crate) fn add(&mut self, unit: &str, meaning: &Meaning) -> Option<usize> {
        let content = meaning.content.as_ref().map(|vector| self.push(unit, vector, false));
        for vector in &meaning.assumptions {
            self.push(unit, vector, true);
        }
        content
    }

    fn push(&mut self, unit: &str, vector: &Vector, is_assumption: bool) -> usize {
        self.values.extend_from_slice(&vector.values);
        self.scales.push(vector.scale);
        self.rows.push(Row { unit: unit.to_owned(), is_assumption });
        self.rows.len() - 1
    }

    /// Takes a unit out. Its rows stay, near to nothing, so that those behind them keep their numbers.
    pub(crate) fn remove(&mut self, unit: &str) {
        for (row, scale) in self.rows.iter_mut().zip(&mut self.scales) {
            if row.unit == unit {
                row.unit.clear();
                *scale = 0.0;
            }
        }
    }

    /// Returns the cosine of a row with a text.
    pub(crate) fn cosine(&self, row: usize, probe: &Probe) -> f64 {
        let dims = meaning::DIMENSIONS;
        let values = self.values.get(row * dims..(row + 1) * dims);
        let scale = self.scales.get(row);
        values.zip(scale).map_or(0.0, |(values, scale)| f64::from(probe.cosine(values, *scale)))
    }

    /// Returns the `most` units nearest to one, the nearest first, of those whose cosine is `least` or more. Contents are compared with each
    /// other, and the assumptions of either with the content of the other. Of a unit that is near, `takes` says if it counts.
    pub(crate) fn nearest(
        &self,
        meaning: &Meaning,
        least: f64,
        most: usize,
        mut takes: impl FnMut(&str) -> bool,
    ) -> Vec<(f64, &str)> {
        let content = meaning.content.as_ref().map(Probe::of);
        let assumptions: Vec<Probe> = meaning.assumptions.iter().map(Probe::of).collect();
        let mut best: Vec<(f64, &str)> = Vec::with_capacity(most + 1);
        let mut cosines = Vec::with_capacity(BLOCK);
        let blocks = self.values.chunks(BLOCK * meaning::DIMENSIONS);
        for ((values, scales), rows) in
            blocks.zip(self.scales.chunks(BLOCK)).zip(self.rows.chunks(BLOCK))
        {
            for (probe, is_content) in content
                .iter()
                .map(|probe| (probe, true))
                .chain(assumptions.iter().map(|one| (one, false)))
            {
                probe.cosines(values, scales, &mut cosines);
                for (cosine, row) in cosines.iter().zip(rows) {
                    let cosine = f64::from(*cosine);
                    // Two assumptions are no claims against each other.
                    if cosine < least || !is_content && row.is_assumption {
                        continue;
                    }
                    insert(&mut best, most, (cosine, &row.unit), &mut takes);
                }
            }
        }
        best
    }
}

/// Puts a unit in its place among the best, unless it is there with as good a cosine or others are better.
fn insert<'a>(
    best: &mut Vec<(f64, &'a str)>,
    most: usize,
    new: (f64, &'a str),
    takes: &mut impl FnMut(&str) -> bool,
) {
    let order = |a: &(f64, &str), b: &(f64, &str)| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1));
    let is_full = best.len() >= most;
    if is_full && best.last().is_some_and(|last| order(&new, last) != Ordering::Less) {
        return;
    }
    match best.iter().position(|known| known.1 == new.1) {
        Some(at) if best[at].0 >= new.0 => return,
        Some(at) => drop(best.remove(at)),
        None if !takes(new.1) => return,
        None => {}
    }
    let at = best.partition_point(|known| order(known, &new) == Ordering::Less);
    best.insert(at, new);
    best.truncate(most);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn meaning(content: &str, assumptions: &[String]) -> Meaning {
        let assumptions = assumptions.iter().filter_map(|text| meaning::embed(text)).collect();
        Meaning { content: meaning::embed(content), assumptions }
    }

    fn cosine(a: &Vector, b: &Vector) -> f64 {
        f64::from(a.cosine(b))
    }

    const TEXT: &str = "(door|lift|shelf|red|open|7| ){1,12}";

    proptest! {
        /// The nearest of all, by a plain comparison of each unit with each.
        #[test]
        fn the_nearest_are_those_of_a_plain_comparison(
            units in prop::collection::vec((TEXT, prop::collection::vec(TEXT, 0..3)), 1..40),
            asked in (TEXT, prop::collection::vec(TEXT, 0..3)),
            gone in prop::collection::vec(0_usize..40, 0..4),
            most in 1_usize..8,
        ) {
            let least = 0.3;
            let mut nearby = Nearby::default();
            let meanings: Vec<Meaning> = units.iter().map(|(text, assumed)| meaning(text, assumed)).collect();
            for (at, one) in meanings.iter().enumerate() {
                let row = nearby.add(&format!("mem-{at}"), one);
                prop_assert_eq!(row.is_some(), one.content.is_some());
            }
            for at in &gone {
                nearby.remove(&format!("mem-{at}"));
            }
            let asked = meaning(&asked.0, &asked.1);
            // Every third is refused.
            let takes = |id: &str| !id.trim_start_matches("mem-").parse::<usize>().unwrap().is_multiple_of(3);
            let mut plain: Vec<(f64, String)> = meanings.iter().enumerate().filter_map(|(at, one)| {
                let contents = asked.content.iter().flat_map(|a| one.content.iter().map(move |b| cosine(a, b)));
                let mine = asked.assumptions.iter().flat_map(|a| one.content.iter().map(move |b| cosine(a, b)));
                let theirs = one.assumptions.iter().flat_map(|b| asked.content.iter().map(move |a| cosine(a, b)));
                let closest = contents.chain(mine).chain(theirs).fold(f64::MIN, f64::max);
                (closest >= least && !gone.contains(&at)).then(|| (closest, format!("mem-{at}")))
            }).filter(|(_, id)| takes(id)).collect();
            plain.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
            plain.truncate(most);
            let found = nearby.nearest(&asked, least, most, takes);
            let found: Vec<(f64, String)> = found.into_iter().map(|(cosine, id)| (cosine, id.to_owned())).collect();
            prop_assert_eq!(found, plain);
        }
    }
}
