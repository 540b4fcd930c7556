//! Upkeep: segments made of logs, fewer made of several, and reading for rot. One thread of the engine does all of it, and
//! alone writes and removes segments while the daemon runs.
//!
//! To seal a log is to make it part of a segment. The signature file of a segment, its seal, is read in
//! `store/signing/seal_file.rs`.
//!
//! | module | holds |
//! |---|---|
//! | `sealer` | logs turned into one segment, in the background |
//! | `compact` | one new segment in the place of several |
//! | `rewrite` | the contents of that new segment |
//! | `scrub` | reading a segment or a waiting log through for rot |
//! | `room` | the room that a segment takes on the card, with the files beside it |

pub(crate) mod compact;
pub(crate) mod rewrite;
pub(crate) mod room;
mod scrub;
pub(crate) mod sealer;
