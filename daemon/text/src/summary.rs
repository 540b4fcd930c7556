//! Extractive summaries: `extract-1`.
//!
//! A summary is made of sentences of the source, as they are, in order of time. Critical sentences are kept whatever they
//! cost; the others compete for what is left of the budget.
//!
//! 1. Passages are split into sentences ([`sentences`](crate::sentences())). Of equal ones the first counts.
//! 2. A sentence is critical if it states a constraint, or its passage is critical.
//! 3. The budget is given, or it is max(least, ⌊input tokens / ratio⌋), where `least` falls from 144 for 480 tokens to 96 for 1920.
//! 4. Score = 0.45 · centrality + 0.50 · relevance + 1.50 · statement.
//! 5. The best is taken, less 0.7 · its largest overlap with what is taken where that is at least 0.6, while it fits. What does
//!    not fit is skipped.
//!
//! | part of the score | value |
//! |---|---|
//! | centrality | mean over its stems of the share of passages that hold the stem |
//! | relevance | that of its passage |
//! | statement | how much it states, by its words and its shape (`statement.rs`), 0 to 1; 0.55 for the result of a tool |
//! | overlap | share of its stems that one taken sentence has |
//!
//! Left out unless they are critical: sentences of stop words alone, those without a letter (`1:`), labels
//! (`Observation:`), what a tool printed (`output.rs`), fragments of a word or two (`Fine.`) and those that three passages have word for word; the last three unless nothing else is there. Sentences are joined by a space, or by a newline
//! where the one before has no mark at its end.

mod select;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::output::statements;
use crate::statement::{has_mark, statement};
use crate::work::steps;
use crate::{Language, LineKind, TokenCounter, constraint_cue, outcome_cue};
use select::{Candidate, select};

/// The name of the method, as answers state it.
pub const EXTRACT_1: &str = "extract-1";

/// The least budget that a ratio gives a short source, in tokens. What is shorter stays as it is: nothing is gained by the loss of a fact.
const MOST_LEAST: usize = 144;
/// The same for a long source, where a ratio saves more.
const LEAST: usize = 96;
/// Tokens up to which a source is short.
const SHORT: usize = 480;
/// Tokens of a source beyond that which take one from the least budget.
const PER_TOKEN: usize = 30;

/// Returns the least budget that a ratio gives a source of so many tokens.
fn least_budget(input: usize) -> usize {
    MOST_LEAST.saturating_sub(input.saturating_sub(SHORT) / PER_TOKEN).max(LEAST)
}

/// How much the result of a tool states: as much as a plain sentence.
const RESULT: f64 = 0.55;

/// Passages that have a sentence word for word make it a phrase of a tool, or of a greeting.
const BOILERPLATE: usize = 3;

/// One text of the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage<'a> {
    /// The text.
    pub text: &'a str,
    /// The worth of the passage, between 0 and 1.
    pub relevance: f64,
    /// Every sentence of it must be kept.
    pub is_critical: bool,
    /// It corrected an error, and succeeded: its sentences are insights.
    pub is_correction: bool,
}

impl<'a> Passage<'a> {
    /// Returns an ordinary passage of relevance 1.
    pub fn new(text: &'a str) -> Self {
        Self { text, relevance: 1.0, is_critical: false, is_correction: false }
    }
}

/// A sentence of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extract<'a> {
    /// The index of its passage.
    pub passage: usize,
    /// The sentence as it stands there.
    pub text: &'a str,
    /// It must be kept.
    pub is_critical: bool,
}

/// A summary, and what it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary<'a> {
    /// The sentences in order of time.
    pub extracts: Vec<Extract<'a>>,
    /// Tokens of [`text`](Self::text).
    pub tokens: usize,
    /// Tokens of all passages.
    pub input_tokens: usize,
}

impl<'a> Summary<'a> {
    /// Returns the summary as one text.
    pub fn text(&self) -> String {
        join(self.extracts.iter())
    }

    /// Returns the critical sentences, each once.
    pub fn critical_facts(&self) -> impl Iterator<Item = &'a str> {
        self.extracts.iter().filter(|extract| extract.is_critical).map(|extract| extract.text)
    }
}

/// The critical sentences alone have more tokens than the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetTooSmall {
    /// Tokens of the critical sentences.
    pub needed: usize,
    /// Tokens that were allowed.
    pub budget: usize,
}

impl fmt::Display for BudgetTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "critical sentences need {} tokens, the budget is {}; raise the budget",
            self.needed, self.budget
        )
    }
}

impl std::error::Error for BudgetTooSmall {}

/// Makes summaries in one language, with tokens counted by one counter.
#[derive(Clone, Copy)]
pub struct Summarizer<'c> {
    language: Language,
    counter: &'c dyn TokenCounter,
}

impl fmt::Debug for Summarizer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Summarizer({}, {})", self.language.code(), self.counter.name())
    }
}

impl<'c> Summarizer<'c> {
    /// Returns a summarizer.
    pub fn new(language: Language, counter: &'c dyn TokenCounter) -> Self {
        Self { language, counter }
    }

    /// Returns a summary of at most `budget` tokens. `passages` are in order of time.
    ///
    /// # Errors
    /// The critical sentences do not fit.
    pub fn within<'a>(
        self,
        passages: &[Passage<'a>],
        budget: usize,
    ) -> Result<Summary<'a>, BudgetTooSmall> {
        let candidates = self.candidates(passages);
        let needed = self.needed(&candidates);
        if needed > budget {
            return Err(BudgetTooSmall { needed, budget });
        }
        Ok(self.fill(passages, candidates, budget))
    }

    /// Returns a summary `ratio` times smaller than the passages. It is larger where the critical sentences need more: to
    /// keep them goes before the ratio.
    pub fn by_ratio<'a>(self, passages: &[Passage<'a>], ratio: f64) -> Summary<'a> {
        let candidates = self.candidates(passages);
        let ratio = if ratio >= 1.0 { ratio } else { 1.0 };
        let input = self.input_tokens(passages);
        let budget = least_budget(input).max((input as f64 / ratio).floor() as usize);
        let budget = budget.max(self.needed(&candidates));
        self.fill(passages, candidates, budget)
    }

    /// Returns at most `most` insights in order of time: the best sentences that tell an outcome or a failure, or
    /// are of a correction.
    pub fn insights<'a>(self, passages: &[Passage<'a>], most: usize) -> Vec<&'a str> {
        let mut candidates = self.candidates(passages);
        candidates.retain(|candidate| {
            passages[candidate.extract.passage].is_correction
                || candidate.kind == LineKind::Failure
                || outcome_cue(candidate.extract.text).is_some()
        });
        candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.order.cmp(&b.order)));
        candidates.truncate(most);
        candidates.sort_by_key(|candidate| candidate.order);
        candidates.into_iter().map(|candidate| candidate.extract.text).collect()
    }

    fn input_tokens(self, passages: &[Passage<'_>]) -> usize {
        passages.iter().map(|passage| self.counter.count(passage.text)).sum()
    }

    /// Tokens of the critical sentences alone.
    fn needed(self, candidates: &[Candidate<'_>]) -> usize {
        let critical = candidates
            .iter()
            .map(|candidate| &candidate.extract)
            .filter(|extract| extract.is_critical);
        self.counter.count(&join(critical))
    }

    fn fill<'a>(
        self,
        passages: &[Passage<'a>],
        candidates: Vec<Candidate<'a>>,
        budget: usize,
    ) -> Summary<'a> {
        let bytes = passages.iter().map(|passage| passage.text.len()).sum();
        let mut taken = select(candidates, budget, bytes);
        // Critical ones stand first.
        let critical = taken.iter().take_while(|candidate| candidate.extract.is_critical).count();
        let mut dropped = 1;
        loop {
            let mut extracts: Vec<(usize, Extract<'a>)> =
                taken.iter().map(|candidate| (candidate.order, candidate.extract)).collect();
            extracts.sort_unstable_by_key(|&(order, _)| order);
            let extracts: Vec<Extract<'a>> =
                extracts.into_iter().map(|(_, extract)| extract).collect();
            let tokens = self.counter.count(&join(extracts.iter()));
            if tokens <= budget || taken.len() == critical {
                return Summary { extracts, tokens, input_tokens: self.input_tokens(passages) };
            }
            // A counter may give more for the whole than for its parts: what came last goes, twice as much each time.
            taken.truncate(critical.max(taken.len().saturating_sub(dropped)));
            dropped *= 2;
        }
    }

    /// The sentences of the passages with their scores, in order of time, each once.
    fn candidates<'a>(self, passages: &[Passage<'a>]) -> Vec<Candidate<'a>> {
        let mut stems = Stems::default();
        let mut found: Vec<Candidate<'a>> = Vec::new();
        let mut seen: BTreeMap<&str, (usize, BTreeSet<usize>)> = BTreeMap::new();
        for (index, passage) in passages.iter().enumerate() {
            let mut held = BTreeSet::new();
            let own: Vec<(LineKind, &str)> = statements(passage.text).collect();
            for &(kind, text) in &own {
                steps(text.len());
                let ids = stems.of(self.language, text);
                held.extend(ids.iter().copied());
                let is_constraint = kind == LineKind::Said && constraint_cue(text).is_some();
                let is_critical = passage.is_critical || is_constraint;
                if let Some((first, passages)) = seen.get_mut(text) {
                    found[*first].extract.is_critical |= is_critical;
                    passages.insert(index);
                    continue;
                }
                seen.insert(text, (found.len(), BTreeSet::from([index])));
                let relevance = if passage.relevance.is_nan() {
                    0.0
                } else {
                    passage.relevance.clamp(0.0, 1.0)
                };
                let score = 0.50 * relevance
                    + 1.50 * if kind.is_result() { RESULT } else { statement(text) };
                found.push(Candidate {
                    extract: Extract { passage: index, text, is_critical },
                    order: found.len(),
                    score,
                    stems: ids,
                    tokens: self.counter.count(text) + usize::from(!has_mark(text)),
                    kind,
                });
            }
            stems.hold(held);
        }
        for candidate in &mut found {
            candidate.score += 0.45 * stems.centrality(&candidate.stems, passages.len());
        }
        let says_something = |candidate: &Candidate<'_>| {
            let text = candidate.extract.text;
            !candidate.stems.is_empty() && text.contains(char::is_alphabetic) && !is_label(text)
        };
        found.retain(|candidate| candidate.extract.is_critical || says_something(candidate));
        let is_told = |candidate: &Candidate<'_>| {
            candidate.extract.is_critical || candidate.kind != LineKind::Listing
        };
        if found.iter().any(is_told) {
            found.retain(is_told);
        }
        let is_whole = |candidate: &Candidate<'_>| {
            candidate.extract.is_critical || !is_fragment(candidate.extract.text)
        };
        if found.iter().any(is_whole) {
            found.retain(is_whole);
        }
        let is_worth_it = |candidate: &Candidate<'_>| {
            let held = seen.get(candidate.extract.text).map_or(1, |(_, passages)| passages.len());
            candidate.extract.is_critical || held < BOILERPLATE
        };
        if found.iter().any(is_worth_it) {
            found.retain(is_worth_it);
        }
        found
    }
}

/// Returns true for a word or two without a number, such as `Fine.`: its subject is in the sentence before.
/// Scripts that put no space between words are not judged by it.
fn is_fragment(text: &str) -> bool {
    let has_meaning = |c: char| c.is_ascii_digit() || c as u32 > 0x2fff;
    text.split_whitespace().take(3).count() < 3 && !text.contains(has_meaning)
}

/// Returns true for a word or two before a colon with nothing behind it: the name of what follows, such as `Observation:`.
fn is_label(text: &str) -> bool {
    text.ends_with(':') && text.split_whitespace().take(3).count() < 3
}

/// Numbers of stems, and how many passages hold each.
#[derive(Default)]
struct Stems {
    ids: BTreeMap<String, u32>,
    held_by: Vec<u32>,
}

impl Stems {
    /// The numbers of a sentence's stems, sorted, each once.
    fn of(&mut self, language: Language, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        language.stems(text, |stem| {
            let id = match self.ids.get(stem) {
                Some(&id) => id,
                None => {
                    let id = self.held_by.len() as u32;
                    self.ids.insert(stem.to_owned(), id);
                    self.held_by.push(0);
                    id
                }
            };
            ids.push(id);
        });
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn hold(&mut self, stems: impl IntoIterator<Item = u32>) {
        for id in stems {
            self.held_by[id as usize] += 1;
        }
    }

    fn centrality(&self, stems: &[u32], passages: usize) -> f64 {
        let held: f64 = stems.iter().map(|&id| f64::from(self.held_by[id as usize])).sum();
        if stems.is_empty() { 0.0 } else { held / stems.len() as f64 / passages as f64 }
    }
}

fn join<'e, 'a: 'e>(extracts: impl Iterator<Item = &'e Extract<'a>>) -> String {
    let mut text = String::new();
    for extract in extracts {
        if !text.is_empty() {
            text.push(if has_mark(&text) { ' ' } else { '\n' });
        }
        text.push_str(extract.text);
    }
    text
}

#[cfg(test)]
mod tests;
