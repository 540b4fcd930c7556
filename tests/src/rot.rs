//! The corruption campaign: one random mutation of one random file of a data folder, a start, and every
//! answer compared with those of the folder as it was.
//!
//! | module | the question it answers |
//! |---|---|
//! | `past` | what lies in the folder, and what does it answer while it is whole? |
//! | `hurt` | which bytes of which file are lost in this trial? |
//! | `judge` | is this answer right, withheld, or wrong? |
//! | `trial` | what became of one folder? |
//! | `table` | what became of all of them? |
//!
//! Everything goes by the seed of the trial, which is told with each failure. Invariant 10 of ARCHITECTURE.md.

mod hurt;
mod judge;
mod past;
mod table;
mod trial;

pub use hurt::{Class, Kind};
pub use past::{Past, Shape};
pub use table::Table;
pub use trial::{TrialOutcome, run};
