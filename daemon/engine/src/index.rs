//! The index: finds what the store holds by reference, place, time, words and filters.
//!
//! Everything here lives in memory and is derived; the truth is in `omird_store`.

pub(crate) mod block;
pub(crate) mod catalog;
pub(crate) mod doc;
pub(crate) mod facts;
pub(crate) mod fading;
pub(crate) mod producers;
pub(crate) mod scores;
pub(crate) mod spatial;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod vectors;
