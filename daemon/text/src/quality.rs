//! Measures of a summary against its source, ours or a model's: a model's summary is checked by these.

use std::collections::BTreeSet;

use crate::work::Allowance;
use crate::{Claim, Language, StemSet};

/// The share of a fact's stems that one sentence must have to keep it.
const KEPT_SHARE: f64 = 0.8;

/// Returns the ratio of input to output tokens, rounded to two digits behind the point. Of no output it is that of one token.
pub fn compression_ratio(input_tokens: usize, output_tokens: usize) -> f64 {
    let ratio = input_tokens as f64 / output_tokens.max(1) as f64;
    (ratio * 100.0).round() / 100.0
}

/// Returns the share of `facts` that a sentence of `kept` keeps, in [0, 1]. Of no facts it is 1.
///
/// A sentence keeps a fact if it is the same, or has at least 0.8 of its stems, all its words with a digit, and does not
/// oppose it: "must enter room 12" keeps neither "must not enter room 12" nor "must enter room 13". Comparisons are
/// bounded; in a source of very many sentences a fact that was not compared counts as lost.
pub fn retention(language: Language, facts: &[&str], kept: &[&str]) -> f64 {
    if facts.is_empty() {
        return 1.0;
    }
    let verbatim: BTreeSet<&str> = kept.iter().map(|sentence| sentence.trim()).collect();
    let mut read: Option<Vec<Read>> = None;
    let bytes = facts.iter().chain(kept).map(|sentence| sentence.len()).sum();
    let mut allowance = Allowance::for_bytes(bytes);
    let is_kept = |fact: &&&str| {
        if verbatim.contains(fact.trim()) {
            return true;
        }
        let fact = Read::of(language, fact);
        let kept = read.get_or_insert_with(|| {
            kept.iter().map(|sentence| Read::of(language, sentence)).collect()
        });
        kept.iter().any(|sentence| {
            allowance.take(8 * (fact.stems.len().min(sentence.stems.len()) + 1))
                && fact.is_kept_by(sentence)
        })
    };
    let count = facts.iter().filter(is_kept).count();
    count as f64 / facts.len() as f64
}

/// Returns the coherence of a summary: 1 less the share of its sentences' number that pairs of contradicting sentences make,
/// as far as a pair does not come from `source` word for word. In [0, 1]; for sentences taken as they are always 1.
///
/// Comparisons are bounded as those of [`retention`] are; pairs that were not compared count as coherent.
pub fn coherence(language: Language, source: &[&str], summary: &[&str]) -> f64 {
    let known: BTreeSet<&str> = source.iter().map(|sentence| sentence.trim()).collect();
    let claims: Vec<(bool, Claim)> = summary
        .iter()
        .map(|sentence| (known.contains(sentence.trim()), Claim::of(language, sentence)))
        .collect();
    let mut allowance = Allowance::for_bytes(summary.iter().map(|sentence| sentence.len()).sum());
    let mut pairs = 0_usize;
    for (at, (is_known, claim)) in claims.iter().enumerate() {
        for (other_is_known, other) in &claims[..at] {
            if *is_known && *other_is_known {
                continue;
            }
            if !allowance.take(16) {
                break;
            }
            pairs += usize::from(claim.opposes(other).is_some());
        }
    }
    (1.0 - pairs as f64 / summary.len().max(1) as f64).max(0.0)
}

struct Read {
    stems: StemSet,
    claim: Claim,
}

impl Read {
    fn of(language: Language, sentence: &str) -> Self {
        Self { stems: StemSet::of(language, sentence), claim: Claim::of(language, sentence) }
    }

    fn is_kept_by(&self, sentence: &Self) -> bool {
        let has_digit = |stem: &&str| stem.bytes().any(|byte| byte.is_ascii_digit());
        self.stems.iter().filter(has_digit).all(|stem| sentence.stems.contains(stem))
            && self.stems.contained_in(&sentence.stems) >= KEPT_SHARE
            && self.claim.opposes(&sentence.claim).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::counted;

    fn kept(facts: &[&str], sentences: &[&str]) -> f64 {
        retention(Language::English, facts, sentences)
    }

    #[test]
    fn ratios_have_two_digits() {
        assert_eq!(compression_ratio(1000, 96), 10.42);
        assert_eq!(compression_ratio(5, 0), 5.0);
        assert_eq!(compression_ratio(0, 0), 0.0);
    }

    #[test]
    fn a_fact_is_kept_in_other_words_but_not_in_other_numbers() {
        let fact = ["The robot must not enter room 12."];
        assert_eq!(kept(&fact, &["The robot must not enter room 12."]), 1.0);
        assert_eq!(kept(&fact, &["Robots must not be entering room 12 today"]), 1.0);
        assert_eq!(kept(&fact, &["The robot must not enter room 13."]), 0.0);
        assert_eq!(kept(&fact, &["The robot must enter room 12."]), 0.0);
        assert_eq!(
            kept(&fact, &["Room 12.", "The robot must not enter."]),
            0.0,
            "one sentence must have it"
        );
        assert_eq!(kept(&["a must", "never b"], &["never b", "never b"]), 0.5);
        assert_eq!(kept(&[], &[]), 1.0);
        assert_eq!(kept(&["x must"], &[]), 0.0);
    }

    #[test]
    fn new_contradictions_cost_coherence() {
        let of = |source: &[&str], summary: &[&str]| coherence(Language::English, source, summary);
        let (open, closed) = ("Door 3 is open.", "Door 3 is not open.");
        assert_eq!(of(&[open, closed], &[open, closed]), 1.0, "the source says both");
        assert_eq!(of(&[open], &[open, closed]), 0.5);
        assert_eq!(of(&[], &[]), 1.0);
        assert_eq!(of(&[], &[open, closed, "Door 3 is open", "Door 3 is closed"]), 0.0);
    }

    #[test]
    fn work_is_bounded() {
        let facts: Vec<String> =
            (0..4000).map(|n| format!("arm {n} must stop at the red door")).collect();
        let others: Vec<String> = facts.iter().map(|fact| fact.replace("stop", "halt")).collect();
        let (facts, others): (Vec<&str>, Vec<&str>) = (
            facts.iter().map(String::as_str).collect(),
            others.iter().map(String::as_str).collect(),
        );
        let bytes = 2 * facts.iter().map(|fact| fact.len()).sum::<usize>();
        let steps = counted(|| {
            retention(Language::English, &facts, &others);
            coherence(Language::English, &facts, &others);
        });
        assert!(
            steps < 2 * (Allowance::LEAST + (Allowance::PER_BYTE + 40) * bytes),
            "{steps} for {bytes}"
        );
    }
}
