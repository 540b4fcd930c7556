//! The index: where to find what the store holds, by reference, place, time, words and filters.
//!
//! Everything here lives in memory and is derived; the truth is in `crate::store`.

pub mod block;
pub mod catalog;
pub mod doc;
pub mod facts;
pub mod fading;
pub use omird_store::key;
pub mod producers;
pub mod space;
pub mod text;
pub mod time;
pub mod tokenizer;

pub use doc::DocId;
