//! The choice of sentences: the best first, less what is said already, within the budget.
//!
//! The value of a sentence only falls as others are taken. So the best is found by looking again at the one on top of a
//! heap alone, and the choice is the same as by looking at all of them each time. On texts of very many sentences the work
//! is bounded: when the allowance is spent, values stay as they are.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Extract;
use crate::LineKind;
use crate::work::Allowance;

/// What the overlap with a taken sentence costs, from the share of its stems on from which a sentence says much the same. Sentences
/// of one matter share some of their words, and each may state something of its own.
const OVERLAP_COST: f64 = 0.7;
const MUCH_THE_SAME: f64 = 0.6;

fn cost(overlap: f64) -> f64 {
    if overlap >= MUCH_THE_SAME { OVERLAP_COST * overlap } else { 0.0 }
}

/// A sentence that may be taken.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) extract: Extract<'a>,
    /// Its place in the source.
    pub(super) order: usize,
    pub(super) score: f64,
    /// Numbers of its stems, sorted.
    pub(super) stems: Vec<u32>,
    /// Tokens of it and of a newline, where it needs one.
    pub(super) tokens: usize,
    /// What its line is.
    pub(super) kind: LineKind,
}

/// Returns the critical candidates, and behind them those that were taken, in the order they were taken in. `bytes` is the
/// size of the source.
pub(super) fn select(
    candidates: Vec<Candidate<'_>>,
    budget: usize,
    bytes: usize,
) -> Vec<Candidate<'_>> {
    let mut allowance = Allowance::for_bytes(bytes);
    let (mut taken, rest): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| candidate.extract.is_critical);
    let mut used: usize = taken.iter().map(|candidate| candidate.tokens).sum();
    let fits = rest.into_iter().filter(|candidate| used.saturating_add(candidate.tokens) <= budget);
    let mut heap: BinaryHeap<Entry<'_>> = fits.map(Entry::new).collect();
    while let Some(mut entry) = heap.pop() {
        if used.saturating_add(entry.candidate.tokens) > budget {
            continue;
        }
        if entry.compared < taken.len() && entry.look_again(&taken, &mut allowance) {
            heap.push(entry);
            continue;
        }
        used += entry.candidate.tokens;
        taken.push(entry.candidate);
    }
    taken
}

struct Entry<'a> {
    candidate: Candidate<'a>,
    /// Taken sentences that it was compared with.
    compared: usize,
    overlap: f64,
}

impl<'a> Entry<'a> {
    fn new(candidate: Candidate<'a>) -> Self {
        Self { candidate, compared: 0, overlap: 0.0 }
    }

    fn value(&self) -> f64 {
        self.candidate.score - cost(self.overlap)
    }

    /// Compares it with what was taken since. Returns false if the allowance is spent.
    fn look_again(&mut self, taken: &[Candidate<'_>], allowance: &mut Allowance) -> bool {
        for other in &taken[self.compared..] {
            if !allowance.take(self.candidate.stems.len() + other.stems.len() + 1) {
                return false;
            }
            self.overlap = self.overlap.max(overlap(&self.candidate.stems, &other.stems));
            self.compared += 1;
        }
        true
    }
}

/// The share of `stems` that `taken` has too. Both are sorted.
fn overlap(stems: &[u32], taken: &[u32]) -> f64 {
    let mut others = taken.iter().peekable();
    let common = stems.iter().filter(|&stem| {
        while others.next_if(|&other| other < stem).is_some() {}
        others.next_if_eq(&stem).is_some()
    });
    common.count() as f64 / stems.len().max(1) as f64
}

impl Ord for Entry<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value()
            .total_cmp(&other.value())
            .then_with(|| other.candidate.order.cmp(&self.candidate.order))
    }
}

impl PartialOrd for Entry<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule as it is written: looks at all candidates for each that it takes.
    fn by_looking_at_all(candidates: Vec<Candidate<'_>>, budget: usize) -> Vec<usize> {
        let (mut taken, mut rest): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|c| c.extract.is_critical);
        let mut used: usize = taken.iter().map(|c| c.tokens).sum();
        while !rest.is_empty() {
            let value = |c: &Candidate<'_>| {
                let largest = taken.iter().map(|t| overlap(&c.stems, &t.stems)).fold(0.0, f64::max);
                c.score - cost(largest)
            };
            let best = (0..rest.len()).max_by(|&a, &b| {
                value(&rest[a]).total_cmp(&value(&rest[b])).then(rest[b].order.cmp(&rest[a].order))
            });
            let best = rest.remove(best.unwrap());
            if used + best.tokens <= budget {
                used += best.tokens;
                taken.push(best);
            }
        }
        taken.into_iter().map(|c| c.order).collect()
    }

    #[test]
    fn overlap_by_hand() {
        assert_eq!(overlap(&[1, 3, 5, 7], &[0, 3, 4, 7, 9]), 0.5);
        assert_eq!(overlap(&[], &[1]), 0.0);
        assert_eq!(overlap(&[2], &[2]), 1.0);
    }

    proptest! {
        #[test]
        fn the_heap_takes_what_the_rule_takes(
            drawn in prop::collection::vec((0u8..20, prop::collection::btree_set(0u32..8, 1..5), 1usize..9, prop::bool::weighted(0.1)), 0..20),
            budget in 0usize..60,
        ) {
            let candidates: Vec<Candidate<'_>> = drawn.into_iter().enumerate().map(|(order, (score, stems, tokens, is_critical))| {
                Candidate {
                    extract: Extract { passage: 0, text: "", is_critical },
                    order,
                    score: f64::from(score) / 20.0,
                    stems: stems.into_iter().collect(),
                    tokens,
                    kind: LineKind::Said,
                }
            }).collect();
            let taken: Vec<usize> = select(candidates.clone(), budget, 0).into_iter().map(|c| c.order).collect();
            prop_assert_eq!(taken, by_looking_at_all(candidates, budget));
        }
    }
}
