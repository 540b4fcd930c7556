//! Entities that a text names, found by their form and by lists of common words: no model, no dictionary of the world.
//!
//! | kind | form |
//! |---|---|
//! | known | a name that the caller hands in, whole words in any case |
//! | link | `https://…`, `www.…`, an address with `@` |
//! | path | a file, a folder or a topic: `/camera/image_raw`, `src/main.rs:44`, `deploy/orders-db` |
//! | identifier | `dock_3`, `WO-1234`, `DockStation`, `v1.2.3`, `8f12c4`, `std::io`, `clock.now`, `mail-gateway`, `PR #77`; a call without its brackets |
//! | quoted | what stands in quotes or backticks, up to 60 characters; one ordinary word in quotes is a remark |
//! | time | `9:05`, `2026-05-30T11:42:05Z`, a weekday, a month |
//! | quantity | a number with a unit: `40 %`, `3.5 m/s` |
//! | place | a kind of place with its number, code or name (`room 12`, `ward 7C`, `the freight lift`), or of which there is one (`kitchen`) |
//! | name | words with a capital that do not merely begin a sentence, capitals (`JWT`) that abbreviate no kind, a noun with its number (`attempt 7`), a device told apart (`the wheel encoder`), a program (`curl`) |
//!
//! The one rule that guesses is that of names at the beginning of a sentence (`runs.rs`). Nouns of German all have
//! capitals, so there a name is of two words or in capitals.

mod forms;
mod runs;
mod vocabulary;

use std::collections::{BTreeMap, BTreeSet};

use crate::Language;
use crate::lexeme::{Lexeme, LexemeKind, lexemes};
use crate::work::steps;

/// A kind of entity, by the form it was found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EntityKind {
    /// A name that the caller knows.
    Known,
    /// An address of the web or of mail.
    Link,
    /// A file, a folder or a topic.
    Path,
    /// A name made for machines.
    Identifier,
    /// Quoted words.
    Quoted,
    /// A time, a date, a weekday or a month.
    Time,
    /// A number with its unit.
    Quantity,
    /// A place.
    Place,
    /// Any other name.
    Name,
}

/// An entity of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entity<'a> {
    /// The form it was found by.
    pub kind: EntityKind,
    /// The entity as the text has it, without quotes.
    pub text: &'a str,
}

/// A stretch of the text that is an entity.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    end: usize,
    kind: EntityKind,
    /// The part that is shown: without quotes.
    shown: (usize, usize),
}

impl Span {
    fn new(kind: EntityKind, start: usize, end: usize) -> Self {
        Self { start, end, kind, shown: (start, end) }
    }
}

/// Returns the entities of `text` in the order of their first mention, each once whatever its case. `known` are names that
/// the caller has, such as those of stored Entities.
///
/// Takes time linear in the text, times the logarithm of its words and the known names that begin with one word.
pub fn entities<'a>(language: Language, text: &'a str, known: &[&str]) -> Vec<Entity<'a>> {
    let mut spans = Spans::default();
    spans.extend(known_names(text, known));
    spans.extend(runs::coded_places(text));
    spans.extend(forms::references(text));
    spans.extend(forms::chunks(text));
    spans.extend(forms::quotes(text));
    spans.extend(runs::quantities_and_times(text));
    let taken = spans.by_start.clone();
    spans.extend(runs::names_and_places(language, text, &|at| covers(&taken, at)));
    let mut seen = BTreeSet::new();
    let found = spans
        .by_start
        .into_values()
        .map(|span| Entity { kind: span.kind, text: &text[span.shown.0..span.shown.1] });
    found.filter(|entity| seen.insert(entity.text.to_lowercase())).collect()
}

/// Spans that do not overlap: the first to come stays.
#[derive(Default)]
struct Spans {
    by_start: BTreeMap<usize, Span>,
}

impl Spans {
    fn extend(&mut self, spans: impl IntoIterator<Item = Span>) {
        for span in spans {
            let before = self.by_start.range(..span.end).next_back();
            if before.is_none_or(|(_, before)| before.end <= span.start) {
                self.by_start.insert(span.start, span);
            }
        }
    }
}

/// Returns true if a span covers the byte `at`.
fn covers(spans: &BTreeMap<usize, Span>, at: usize) -> bool {
    spans.range(..=at).next_back().is_some_and(|(_, span)| at < span.end)
}

/// Occurrences of names that the caller knows; of two that begin at one place the longer.
fn known_names(text: &str, known: &[&str]) -> Vec<Span> {
    let mut by_first: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for name in known {
        let words: Vec<String> = lexemes(name).map(|lexeme| lexeme.text.to_lowercase()).collect();
        if let Some(first) = words.first() {
            by_first.entry(first.clone()).or_default().push(words);
        }
    }
    if by_first.is_empty() {
        return Vec::new();
    }
    for names in by_first.values_mut() {
        names.sort_by_key(|words| std::cmp::Reverse(words.len()));
    }
    let all: Vec<Lexeme<'_>> = lexemes(text).collect();
    let mut spans = Vec::new();
    for at in 0..all.len() {
        let Some(names) = by_first.get(&all[at].text.to_lowercase()) else { continue };
        let fits = |words: &&Vec<String>| {
            steps(words.len());
            words.len() <= all.len() - at
                && words
                    .iter()
                    .zip(&all[at..])
                    .all(|(word, lexeme)| lexeme.text.to_lowercase() == *word)
        };
        if let Some(words) = names.iter().find(fits) {
            let last = all[at + words.len() - 1];
            spans.push(Span::new(EntityKind::Known, all[at].start, last.end()));
        }
    }
    spans
}

/// Returns true for a word with a capital at its beginning.
fn is_capital(lexeme: &Lexeme<'_>) -> bool {
    lexeme.kind == LexemeKind::Word && lexeme.text.starts_with(char::is_uppercase)
}

#[cfg(test)]
mod tests;
