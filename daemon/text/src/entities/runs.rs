//! Names, places, quantities and times: what the words around them give away.

use std::collections::BTreeSet;

use super::vocabulary::{ACTS_OF_PEOPLE, CONNECTORS, OPENERS, PLACES, TIMES};
use super::{EntityKind, Span, is_capital};
use crate::claims::names_number;
use crate::lexeme::{Lexeme, LexemeKind, lexemes};
use crate::unit::Unit;
use crate::work::steps;
use crate::{Language, is_stop_word, sentences};

/// The most words of a name.
const MAX_WORDS: usize = 6;

/// Numbers with a unit, and times.
pub(super) fn quantities_and_times(text: &str) -> impl Iterator<Item = Span> {
    lexemes(text).filter_map(|lexeme| match lexeme.kind {
        LexemeKind::Time => Some(Span::new(EntityKind::Time, lexeme.start, lexeme.end())),
        LexemeKind::Number(_) => {
            let rest = &text[lexeme.end()..];
            let gap = usize::from(rest.starts_with(' '));
            let (_, length) = Unit::first_of(&rest[gap..])?;
            Some(Span::new(EntityKind::Quantity, lexeme.start, lexeme.end() + gap + length))
        }
        _ => None,
    })
}

/// Names and places, sentence by sentence. `is_taken` tells which bytes are of an entity already.
pub(super) fn names_and_places(
    language: Language,
    text: &str,
    is_taken: &dyn Fn(usize) -> bool,
) -> Vec<Span> {
    let all: Vec<Vec<Lexeme<'_>>> = sentences(text)
        .map(|sentence| {
            let offset = sentence.as_ptr() as usize - text.as_ptr() as usize;
            let shifted =
                lexemes(sentence).map(|lexeme| Lexeme { start: lexeme.start + offset, ..lexeme });
            shifted.filter(|lexeme| !is_taken(lexeme.start)).collect()
        })
        .collect();
    // Words with a capital where no sentence begins: their capital is their own.
    let inner = all.iter().flat_map(|sentence| sentence.iter().skip(first_word(sentence) + 1));
    let proper: BTreeSet<&str> =
        inner.filter(|lexeme| is_capital(lexeme)).map(|lexeme| base(lexeme.text)).collect();
    let mut spans = Vec::new();
    for sentence in &all {
        Sentence {
            language,
            text,
            lexemes: sentence,
            first: first_word(sentence),
            proper: &proper,
        }
        .find(&mut spans);
    }
    spans
}

fn first_word(sentence: &[Lexeme<'_>]) -> usize {
    sentence.iter().position(|lexeme| lexeme.kind == LexemeKind::Word).unwrap_or(sentence.len())
}

/// The word without a possessive ending.
fn base(word: &str) -> &str {
    word.strip_suffix("'s").or(word.strip_suffix("’s")).unwrap_or(word)
}

struct Sentence<'s, 'a> {
    language: Language,
    text: &'a str,
    lexemes: &'s [Lexeme<'a>],
    first: usize,
    proper: &'s BTreeSet<&'a str>,
}

impl<'a> Sentence<'_, 'a> {
    fn find(&self, spans: &mut Vec<Span>) {
        let is_shouted = self.lexemes.iter().filter(|lexeme| is_in_capitals(lexeme.text)).count()
            > 3
            && !self.lexemes.iter().any(|lexeme| lexeme.text.contains(char::is_lowercase));
        let mut at = 0;
        while let Some(lexeme) = self.lexemes.get(at) {
            steps(MAX_WORDS);
            let length = if is_shouted { 0 } else { self.run(at) };
            let length = if length == 0 { self.single(at) } else { length };
            if length == 0 {
                at += 1;
                continue;
            }
            let run = &self.lexemes[at..at + length];
            let last = run[length - 1];
            let end = last.start + base(last.text).len();
            let is_place = run.iter().any(|lexeme| is_of(PLACES, lexeme.text));
            let is_time = run.iter().all(|lexeme| {
                is_of(TIMES, lexeme.text) || matches!(lexeme.kind, LexemeKind::Number(_))
            });
            let kind = match (is_place, is_time) {
                (true, _) => EntityKind::Place,
                (_, true) => EntityKind::Time,
                _ => EntityKind::Name,
            };
            spans.push(Span::new(kind, lexeme.start, end));
            at += length;
        }
    }

    /// The number of lexemes of the name with capitals that begins at `at`; 0 if none does.
    fn run(&self, at: usize) -> usize {
        if !self.is_of_name(at) || self.is_opener(at) {
            return 0;
        }
        let mut length = 1;
        while length < MAX_WORDS && !base_is_shorter(self.lexemes[at + length - 1].text) {
            let next = at + length;
            if self.follows(next) && self.is_of_name(next) {
                length += 1;
            } else if self.is_connector(next)
                && self.follows(next)
                && self.follows(next + 1)
                && self.is_of_name(next + 1)
            {
                length += 2;
            } else {
                break;
            }
        }
        length += usize::from(self.is_number_of_name(at + length));
        let is_one_word = length == 1;
        let word = self.lexemes[at].text;
        if is_one_word && !is_in_capitals(word) {
            if self.language == Language::German {
                return 0;
            }
            if at == self.first && !self.is_name_at_start(at) {
                return 0;
            }
        }
        length
    }

    /// Words with a capital that are no stop words, such as a sentence's `The`.
    fn is_of_name(&self, at: usize) -> bool {
        self.lexemes.get(at).is_some_and(|lexeme| {
            let word = lexeme.text.split(['\'', '’']).next().unwrap_or(lexeme.text);
            let is_letter = word.chars().count() == 1
                && self.lexemes.get(at.wrapping_sub(1)).is_none_or(|before| !is_capital(before));
            is_capital(lexeme) && !is_letter && !is_stop_word(self.language, &word.to_lowercase())
        })
    }

    /// Returns true if a sentence begins at `at` with a word that often begins one: `Use JWT`, `Check door 3`.
    fn is_opener(&self, at: usize) -> bool {
        at == self.first && is_of(OPENERS, self.lexemes[at].text)
    }

    /// Returns true if the one word with a capital at the beginning of the sentence is a name: it has its capital elsewhere
    /// too, owns something, or does what people do.
    fn is_name_at_start(&self, at: usize) -> bool {
        let word = self.lexemes[at].text;
        let acts = self.lexemes.get(at + 1).is_some_and(|next| is_of(ACTS_OF_PEOPLE, next.text));
        self.proper.contains(base(word)) || base_is_shorter(word) || acts
    }

    /// Returns true if `at` follows the lexeme before it by one space.
    fn follows(&self, at: usize) -> bool {
        match (self.lexemes.get(at.wrapping_sub(1)), self.lexemes.get(at)) {
            (Some(before), Some(lexeme)) => &self.text[before.end()..lexeme.start] == " ",
            _ => false,
        }
    }

    fn is_connector(&self, at: usize) -> bool {
        self.lexemes.get(at).is_some_and(|lexeme| CONNECTORS.contains(&lexeme.text))
    }

    fn is_number_of_name(&self, at: usize) -> bool {
        self.follows(at)
            && matches!(self.lexemes[at].kind, LexemeKind::Number(value) if value >= 0.0)
    }

    /// A place or a noun, with its number or without: `room 12`, `gate B`, `kitchen`, `attempt 7`.
    fn single(&self, at: usize) -> usize {
        let lexeme = self.lexemes[at];
        if lexeme.kind != LexemeKind::Word {
            return 0;
        }
        let is_place = is_of(PLACES, lexeme.text);
        if self.is_number_of_name(at + 1) {
            let is_noun = names_number(self.language, lexeme.text) && !is_of(OPENERS, lexeme.text);
            return if is_place || is_noun { 2 } else { 0 };
        }
        let is_lettered = self.follows(at + 1) && {
            let next = self.lexemes[at + 1].text;
            next.len() == 1 && next.starts_with(|c: char| c.is_ascii_uppercase()) && next != "I"
        };
        match (is_place, is_lettered) {
            (true, true) => 2,
            (true, false) => 1,
            _ => 0,
        }
    }
}

fn base_is_shorter(word: &str) -> bool {
    base(word).len() < word.len()
}

fn is_in_capitals(word: &str) -> bool {
    let word = base(word);
    word.chars().filter(|c| c.is_uppercase()).nth(1).is_some() && !word.contains(char::is_lowercase)
}

fn is_of(sorted: &[&str], word: &str) -> bool {
    sorted.binary_search(&base(word).to_lowercase().as_str()).is_ok()
}
