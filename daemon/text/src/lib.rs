//! Text work of omird, in a room of its own: terms of the index, and what the protocols do with text.
//!
//! Everything is a pure function of its arguments: no clock, no disk, no network, no randomness. The same text gives the
//! same result on every machine and in every run. Nothing panics, whatever the text.
//!
//! The engine indexes with [`terms`]. It and the protocols may depend on this crate, which depends on nothing of ours.

#![warn(unreachable_pub)]

mod embedding;
mod language;
mod sentences;
mod similarity;
mod stop_words;
mod terms;
mod tokens;

pub use self::embedding::{DIMENSIONS, Embedding, HashedEmbedding};
pub use self::language::{Language, UnknownLanguage};
pub use self::sentences::sentences;
pub use self::similarity::{Rarity, StemSet, WeightedStems};
pub use self::stop_words::is_stop_word;
pub use self::terms::{MAX_TERM_BYTES, terms, words};
pub use self::tokens::{Approx1, TokenCounter};
