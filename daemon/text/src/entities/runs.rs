//! Names, places, quantities and times: what the words around them give away.

use std::collections::BTreeSet;

use super::vocabulary::{
    ABBREVIATIONS, ACTS_OF_PEOPLE, CONNECTORS, DESCRIPTIONS, DEVICES, LANDMARKS, OPENERS, PLACES,
    PROGRAMS, READINGS, TIMES, TITLES,
};
use super::{EntityKind, Span, is_capital};
use crate::claims::names_number;
use crate::lexeme::{Lexeme, LexemeKind, lexemes};
use crate::unit::Unit;
use crate::work::steps;
use crate::{Language, is_stop_word, sentences};

/// The most words of a name.
const MAX_WORDS: usize = 6;

/// The most words of a kind with what tells it apart.
const MOST_COMPOUND: usize = 3;
/// The most digits of a number that is a part of a name.
const LONGEST_NUMBER: usize = 5;

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

/// Kinds of places with a code of letters and digits: `ward 4B`, `dock A1`.
pub(super) fn coded_places(text: &str) -> Vec<Span> {
    let all: Vec<Lexeme<'_>> = lexemes(text).collect();
    let code_end = |at: usize| {
        let first = all.get(at)?;
        // `2A` is read as a number and a unit.
        let unit = all.get(at + 1).filter(|next| next.start == first.end());
        let end = match (first.kind, unit) {
            (LexemeKind::Word, _) => first.end(),
            (LexemeKind::Number(_), Some(unit)) if unit.text.len() == 1 && is_capital(unit) => {
                unit.end()
            }
            _ => return None,
        };
        let code = &text[first.start..end];
        let is_code = code.len() <= LONGEST_NUMBER
            && code.bytes().all(|b| b.is_ascii_alphanumeric())
            && code.contains(|c: char| c.is_ascii_digit());
        is_code.then_some(end)
    };
    let mut spans = Vec::new();
    for (at, lexeme) in all.iter().enumerate().filter(|(_, one)| is_of(PLACES, one.text)) {
        let is_next = text[lexeme.end()..].starts_with(' ')
            && all.get(at + 1).is_some_and(|next| next.start == lexeme.end() + 1);
        if is_next && let Some(end) = code_end(at + 1) {
            spans.push(Span::new(EntityKind::Place, lexeme.start, end));
        }
    }
    spans
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
            let length = if length == 0 { self.compound(at) } else { length };
            let length = if length == 0 { self.single(at) } else { length };
            if length == 0 {
                at += 1;
                continue;
            }
            let run = &self.lexemes[at..at + length];
            let last = run[length - 1];
            let end = last.start + base(last.text).len();
            let is_place = run
                .iter()
                .any(|lexeme| is_of(PLACES, lexeme.text) || is_of(LANDMARKS, lexeme.text));
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

    /// The number of lexemes of the name with capitals that begins at `at`, with its titles; 0 if none does.
    fn run(&self, at: usize) -> usize {
        // A title is what a title may stand before, so there may be as many as the text has words.
        let mut titles = 0;
        while titles < MAX_WORDS {
            match self.title(at + titles) {
                0 => break,
                length => titles += length,
            }
        }
        let name = self.name(at + titles);
        if titles > 0 { titles + name.max(1) } else { name }
    }

    /// The number of lexemes of the name with capitals and without a title that begins at `at`; 0 if none does.
    fn name(&self, at: usize) -> usize {
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
        if is_one_word && is_in_capitals(word) && is_of(ABBREVIATIONS, word) {
            return 0;
        }
        // A word with its number at the beginning of a sentence is judged as one with a small letter.
        if length == 2 && at == self.first && self.is_number_of_name(at + 1) {
            return 0;
        }
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

    /// The number of lexemes of a title before a name: `Dr.`, `Sister`.
    fn title(&self, at: usize) -> usize {
        let is_title = self.lexemes.get(at).is_some_and(|lexeme| {
            is_capital(lexeme) && TITLES.binary_search(&lexeme.text.to_lowercase().as_str()).is_ok()
        });
        let has_stop = self.lexemes.get(at + 1).is_some_and(|next| next.is_symbol("."));
        let length = 1 + usize::from(has_stop);
        let is_before_name = self.follows(at + length) && self.is_of_name(at + length);
        if is_title && is_before_name { length } else { 0 }
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
        let word = self.lexemes[at].text;
        let is_form_of_verb = || {
            word.len() > 4
                && (word.ends_with("ed") || word.ends_with("ing"))
                && !self.proper.contains(base(word))
        };
        at == self.first && (is_of(OPENERS, word) || is_form_of_verb())
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

    /// Returns true if `at` is a number as names have it: whole and not large.
    fn is_number_of_name(&self, at: usize) -> bool {
        self.follows(at)
            && matches!(self.lexemes[at].kind, LexemeKind::Number(value) if value >= 0.0)
            && self.lexemes[at].text.len() <= LONGEST_NUMBER
            && self.lexemes[at].text.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// The number of lexemes of a kind of place or device that `the` and a word before it tell apart: `the goods lift`.
    fn compound(&self, at: usize) -> usize {
        let is_after_article = at
            .checked_sub(1)
            .is_some_and(|before| self.lexemes[before].is_word("the") && self.follows(at));
        if !is_after_article {
            return 0;
        }
        let is_kind = |at: usize| {
            let lexeme = self.lexemes.get(at);
            lexeme.is_some_and(|lexeme| is_of(PLACES, lexeme.text) || is_of(DEVICES, lexeme.text))
        };
        // "the bumper depth camera", and not "the bumper" of it.
        let is_part = |at: usize| {
            self.follows(at)
                && self.lexemes[at].kind == LexemeKind::Word
                && self.lexemes[at].text.chars().all(char::is_lowercase)
        };
        let is_modifier = |at: usize| {
            let word = self.lexemes[at].text;
            is_part(at)
                && !is_of(DESCRIPTIONS, word)
                && !is_stop_word(self.language, word)
                && names_number(self.language, word)
        };
        let mut length = 0;
        for words in 1..MOST_COMPOUND {
            if !is_modifier(at + words - 1) || self.lexemes.get(at + words).is_none() {
                break;
            }
            if is_part(at + words) && is_kind(at + words) {
                length = words + 1;
            }
        }
        length + usize::from(length > 0 && self.is_number_of_name(at + length))
    }

    /// A place or a noun with its number, or a place of which there is one: `room 12`, `gate B`, `kitchen`, `attempt 7`.
    fn single(&self, at: usize) -> usize {
        let lexeme = self.lexemes[at];
        if lexeme.kind != LexemeKind::Word {
            return 0;
        }
        let is_place = is_of(PLACES, lexeme.text);
        if self.is_number_of_name(at + 1) {
            // A plural is counted, and no name.
            let is_plural = lexeme.text.ends_with('s') && !lexeme.text.ends_with("ss");
            let is_noun = names_number(self.language, lexeme.text)
                && !is_of(OPENERS, lexeme.text)
                && !is_of(READINGS, lexeme.text)
                && !lexeme.text.contains(['\'', '\u{2019}']);
            return if (is_place || is_noun) && !is_plural { 2 } else { 0 };
        }
        let is_lettered = self.follows(at + 1) && {
            let next = self.lexemes[at + 1].text;
            next.len() == 1 && next.starts_with(|c: char| c.is_ascii_uppercase()) && next != "I"
        };
        let is_named = is_of(LANDMARKS, lexeme.text) || is_of(PROGRAMS, lexeme.text);
        match (is_place && is_lettered, is_named) {
            (true, _) => 2,
            (false, true) => 1,
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
