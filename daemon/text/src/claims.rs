//! Claims: what a sentence says is so, in a form that tells when two sentences oppose each other.
//!
//! Two claims are opposed if they are about the same thing in nearly the same words, and either one of them is negated or
//! says the opposite word, or their values differ. Entities that memories are linked to are the caller's to compare.
//!
//! | part of a claim | rule |
//! |---|---|
//! | negation | not, no, never, none, without, cannot, and whatever ends in `n't` |
//! | opposite | one word of a pair in `opposites.rs`, such as open and closed |
//! | name | a number that follows a noun (`door 3`), and a word with a digit in it (`dock_3`) |
//! | value | a number before a unit, or after is, are, was, were, at, `=` or `:` |
//! | words | stems without stop words, negations, numbers and units |

use std::collections::BTreeSet;

use crate::lexeme::{Lexeme, LexemeKind, lexemes};
use crate::opposites::side;
use crate::unit::Unit;
use crate::{Language, StemSet, is_stop_word, words};

/// The Jaccard similarity of the words from which on two sentences say something of the same.
const SAME_WORDS: f64 = 0.6;

/// Values are equal within this share of the larger: numbers are converted between units.
const SAME_VALUE: f64 = 1e-9;

/// How two claims oppose each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opposition {
    /// One is negated, the other is not.
    Negation,
    /// They say opposite words, such as open and closed.
    Opposite,
    /// They state other values of the same.
    Value,
}

/// What one sentence says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    words: StemSet,
    names: BTreeSet<String>,
    values: Vec<Value>,
    times: BTreeSet<String>,
    /// A time is what the sentence is about: it stands where a value stands.
    has_time_value: bool,
    is_negated: bool,
    /// The pair and the side of each opposite word.
    sides: BTreeSet<(&'static str, bool)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Value {
    base: &'static str,
    number: f64,
}

impl Claim {
    /// Reads the claim of `sentence`. Takes time linear in its length, times the logarithm of its words.
    pub fn of(language: Language, sentence: &str) -> Self {
        let lexemes: Vec<Lexeme<'_>> = lexemes(sentence).collect();
        let mut claim = Self::default();
        let mut stems = BTreeSet::new();
        let mut skip = 0;
        for (at, lexeme) in lexemes.iter().enumerate() {
            if at < skip {
                continue;
            }
            match lexeme.kind {
                LexemeKind::Number(number) => {
                    let behind = &sentence[lexeme.end()..];
                    let spaces = usize::from(behind.starts_with(' '));
                    if let Some((unit, length)) = Unit::first_of(&behind[spaces..]) {
                        let end = lexeme.end() + spaces + length;
                        skip = at
                            + 1
                            + lexemes[at + 1..].iter().take_while(|next| next.start < end).count();
                        claim.values.push(Value { base: unit.base, number: number * unit.size });
                    } else if is_introduced(&lexemes[..at]) {
                        claim.values.push(Value { base: "", number });
                    } else if let Some(noun) = noun_before(language, &lexemes[..at]) {
                        claim.names.insert(format!("{noun} {}", lexeme.text));
                    }
                }
                LexemeKind::Time => {
                    claim.times.insert(lexeme.text.to_owned());
                    claim.has_time_value |= is_introduced(&lexemes[..at]);
                }
                LexemeKind::Word if is_negation(lexeme.text) => claim.is_negated = true,
                LexemeKind::Word => claim.add_word(language, lexeme.text, &mut stems),
                LexemeKind::Symbol => {}
            }
        }
        claim.words = stems.into_iter().collect();
        claim
    }

    fn add_word(&mut self, language: Language, text: &str, stems: &mut BTreeSet<String>) {
        if let Some((pair, is_first)) = side(text) {
            self.sides.insert((pair, is_first));
            stems.insert(pair.to_owned());
            return;
        }
        if text.bytes().any(|byte| byte.is_ascii_digit()) {
            self.names.insert(text.to_ascii_lowercase());
        }
        words(text, |word| {
            let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            if !is_number && !is_stop_word(language, word) {
                stems.insert(language.stem(word).into_owned());
            }
        });
    }

    /// Returns how the claims oppose each other, or `None` if they do not. Symmetric.
    pub fn opposes(&self, other: &Self) -> Option<Opposition> {
        // Texts about different names do not contradict; one may name more than the other.
        let same_names = self.names.is_subset(&other.names) || other.names.is_subset(&self.names);
        if !same_names || self.words.jaccard(&other.words) < SAME_WORDS {
            return None;
        }
        let other_moment = !self.times.is_empty()
            && !other.times.is_empty()
            && self.times.is_disjoint(&other.times);
        let values = self.values_differ(other);
        let polarity = self.polarity_differs(other);
        if other_moment {
            // A fact of one time need not hold at another, unless the time is the value that both tell.
            let is_told = self.has_time_value
                && other.has_time_value
                && self.values.is_empty()
                && other.values.is_empty();
            return (is_told && polarity.is_none()).then_some(Opposition::Value);
        }
        match (polarity, values) {
            // "not 40 %" and "50 %" go together.
            (Some(_), true) => None,
            (Some(polarity), false) => Some(polarity),
            (None, true) => Some(Opposition::Value),
            (None, false) => None,
        }
    }

    fn polarity_differs(&self, other: &Self) -> Option<Opposition> {
        let shared = self.sides.iter().find_map(|&(pair, side)| {
            let (_, theirs) = other.sides.iter().find(|(name, _)| *name == pair)?;
            Some((side, *theirs))
        });
        let negated = self.is_negated != other.is_negated;
        match shared {
            Some((ours, theirs)) if ours != theirs => (!negated).then_some(Opposition::Opposite),
            _ => negated.then_some(Opposition::Negation),
        }
    }

    /// Returns true if there is a unit in which either states a value that the other does not, each one.
    fn values_differ(&self, other: &Self) -> bool {
        let lacks = |of: &Self, value: &Value| {
            let mut same_unit =
                of.values.iter().filter(|known| known.base == value.base).peekable();
            same_unit.peek().is_some() && !same_unit.any(|known| known.is(value))
        };
        let extra = |one: &Self, two: &Self| -> BTreeSet<&'static str> {
            one.values.iter().filter(|value| lacks(two, value)).map(|value| value.base).collect()
        };
        !extra(self, other).is_disjoint(&extra(other, self))
    }
}

impl Value {
    fn is(&self, other: &Self) -> bool {
        let largest = self.number.abs().max(other.number.abs());
        (self.number - other.number).abs() <= largest * SAME_VALUE
    }
}

/// Returns true if what follows `before` is a value: after is, are, was, were, at, `=` or `:`.
fn is_introduced(before: &[Lexeme<'_>]) -> bool {
    let introduces = |last: &Lexeme<'_>| {
        last.is_symbol("=")
            || last.is_symbol(":")
            || ["is", "are", "was", "were", "at"].iter().any(|word| last.is_word(word))
    };
    // "is not 5" states a value too.
    match before {
        [.., verb, last] if is_negation(last.text) => introduces(verb),
        [.., last] => introduces(last),
        [] => false,
    }
}

/// The stem of the noun that a number behind `before` belongs to: the word right before it, unless it is no noun.
fn noun_before(language: Language, before: &[Lexeme<'_>]) -> Option<String> {
    let last = before.last().filter(|last| last.kind == LexemeKind::Word)?;
    names_number(language, last.text).then(|| last.text.to_lowercase())
}

/// Returns true if a number behind `word` is a part of its name: `door 3`, but not `found 3`.
pub(crate) fn names_number(language: Language, word: &str) -> bool {
    /// Words before a count.
    const COUNTING: &[&str] = &[
        "about",
        "after",
        "almost",
        "another",
        "approximately",
        "around",
        "contains",
        "costs",
        "counted",
        "every",
        "exactly",
        "found",
        "get",
        "got",
        "has",
        "least",
        "lasted",
        "lost",
        "made",
        "makes",
        "most",
        "nearly",
        "needs",
        "next",
        "plus",
        "reads",
        "roughly",
        "saw",
        "sent",
        "since",
        "took",
        "takes",
        "than",
        "the",
        "used",
        "uses",
        "within",
    ];
    let lower = word.to_lowercase();
    let is_participle = lower.len() > 4 && lower.ends_with("ed") && !lower.ends_with("eed");
    !is_stop_word(language, &lower)
        && !COUNTING.contains(&lower.as_str())
        && !is_participle
        && !is_negation(word)
}

fn is_negation(word: &str) -> bool {
    let lower = word.to_lowercase().replace('\u{2019}', "'");
    lower.ends_with("n't")
        || matches!(
            lower.as_str(),
            "not" | "no" | "never" | "none" | "without" | "cannot" | "neither" | "nor"
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(text: &str) -> Claim {
        Claim::of(Language::English, text)
    }

    fn opposition(a: &str, b: &str) -> Option<Opposition> {
        let (a, b) = (claim(a), claim(b));
        assert_eq!(a.opposes(&b), b.opposes(&a), "symmetric");
        a.opposes(&b)
    }

    #[test]
    fn one_of_two_is_negated() {
        let negation = Some(Opposition::Negation);
        assert_eq!(opposition("door 3 is open", "door 3 is not open"), negation);
        assert_eq!(opposition("The lift works", "The lift doesn’t work"), negation);
        assert_eq!(opposition("Robots can enter the lab", "Robots cannot enter the lab"), negation);
        assert_eq!(opposition("door 3 is not open", "door 3 was never open"), None);
        assert_eq!(opposition("door 3 is open", "door 4 is not open"), None, "another door");
        assert_eq!(opposition("dock_3 is free", "dock_4 is not free"), None, "another dock");
        assert_eq!(
            opposition("shelf 2 is full", "shelf 2 of door 3 is not full"),
            negation,
            "one may name more than the other"
        );
        assert_eq!(opposition("The robot is in the kitchen", "The robot is not in the hall"), None);
        assert_eq!(opposition("", "not"), None);
    }

    #[test]
    fn values_differ() {
        let value = Some(Opposition::Value);
        assert_eq!(opposition("The battery is at 40 %", "the battery is at 55%"), value);
        assert_eq!(opposition("room 12 is 21 °C", "room 12 is 25 °C"), value);
        assert_eq!(opposition("room 12 is 21 °C", "room 13 is 25 °C"), None);
        assert_eq!(opposition("The limit is 5", "The limit is 6"), value);
        assert_eq!(opposition("speed = 3", "speed: 4"), value);
        assert_eq!(
            opposition("The shelf is 2 m high", "The shelf is 200 cm high"),
            None,
            "the same height"
        );
        assert_eq!(opposition("The shelf is 2 m high", "The shelf is 2.1 m high"), value);
        assert_eq!(
            opposition("attempt 7 took 12 s", "attempt 8 took 15 s"),
            None,
            "another attempt"
        );
        assert_eq!(opposition("attempt 7 took 12 s", "attempt 7 took 15 s"), value);
        assert_eq!(opposition("The limit is not 5", "The limit is 6"), None, "they go together");
        assert_eq!(opposition("The limit is 5 m", "The limit is 6 s"), None, "of other kinds");
        assert_eq!(opposition("found 3 cups", "found 4 cups"), None, "counts of other moments");
    }

    #[test]
    fn times_are_moments_unless_they_are_the_value() {
        assert_eq!(opposition("Battery was 40 % at 10:00", "Battery was 50 % at 11:00"), None);
        assert_eq!(
            opposition("Battery was 40 % at 10:00", "Battery was 50 % at 10:00"),
            Some(Opposition::Value)
        );
        assert_eq!(
            opposition("The delivery is at 14:00", "The delivery is at 15:00"),
            Some(Opposition::Value)
        );
    }

    #[test]
    fn opposite_words_count_as_one_another_negated() {
        assert_eq!(opposition("door 3 is open", "door 3 is closed"), Some(Opposition::Opposite));
        assert_eq!(opposition("door 3 is open", "door 3 is not closed"), None);
        assert_eq!(
            opposition("door 3 is closed", "door 3 is not closed"),
            Some(Opposition::Negation)
        );
        assert_eq!(opposition("Dock 1 is occupied", "Dock 1 is free"), Some(Opposition::Opposite));
    }

    proptest! {
        #[test]
        fn a_claim_never_opposes_itself(text in "\\PC{0,60}|(door|not|open|closed|3|4|is|at|%|m| ){0,12}") {
            let claim = claim(&text);
            prop_assert_eq!(claim.opposes(&claim.clone()), None);
        }

        #[test]
        fn opposition_is_symmetric(
            a in "((door|lift|not|open|closed|3|4|is|at|5 m|6 m|9:05) ){0,8}",
            b in "((door|lift|not|open|closed|3|4|is|at|5 m|6 m|9:05) ){0,8}",
        ) {
            opposition(&a, &b);
        }
    }
}
