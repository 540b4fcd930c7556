//! Text work of omird, in a room of its own: terms of the index, and what the protocols do with text.
//!
//! Everything is a pure function of its arguments: no clock, no disk, no network, no randomness. The same text gives the
//! same result on every machine and in every run. Nothing panics, whatever the text.
//!
//! The engine indexes with [`terms()`]. It and the protocols may depend on this crate, which depends on nothing of ours.

#![warn(unreachable_pub)]

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod bounds;
mod claims;
mod constraint;
mod cues;
mod embedding;
mod entities;
mod facts;
mod keywords;
mod language;
mod lexeme;
mod opposites;
mod output;
mod quality;
mod sentences;
mod similarity;
mod statement;
mod stems;
mod stop_words;
mod summary;
mod terms;
mod tokens;
mod unit;
mod work;

pub use self::claims::{Claim, Opposition};
pub use self::constraint::constraint_cue;
pub use self::cues::outcome_cue;
pub use self::embedding::{DIMENSIONS, Embedding, HashedEmbedding};
pub use self::entities::{Entity, EntityKind, entities};
pub use self::facts::{critical_facts, facts};
pub use self::keywords::keywords;
pub use self::language::{Language, UnknownLanguage};
pub use self::output::{LineKind, lines, message, told};
pub use self::quality::{coherence, compression_ratio, retention};
pub use self::sentences::sentences;
pub use self::similarity::{Rarity, StemSet, WeightedStems};
pub use self::stop_words::is_stop_word;
pub use self::summary::{BudgetTooSmall, EXTRACT_1, Extract, Passage, Summarizer, Summary};
pub use self::terms::{MAX_TERM_BYTES, sequence, terms, words};
#[cfg(feature = "tiktoken")]
pub use self::tokens::Vocabulary;
pub use self::tokens::{Approx1, Counter, TokenCounter};
