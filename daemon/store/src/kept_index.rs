//! The kept index: what is extracted from each sealed segment, and kept between starts. All of it can be rebuilt from
//! the segments.
//!
//! | module | holds |
//! |---|---|
//! | `index_extractor` | the trait that extracts facts from the versions of a segment |
//! | `block` | the index of one segment |
//! | `block_codec` | the bytes of that index as it is kept |
//! | `cache` | the kept indexes of all segments |
//! | `derived` | the key-value store that keeps them (sled), behind a small trait |

pub(crate) mod block;
pub(crate) mod block_codec;
pub(crate) mod cache;
pub(crate) mod derived;
pub(crate) mod index_extractor;
