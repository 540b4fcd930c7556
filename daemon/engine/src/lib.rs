//! The engine: one store, one writer, any number of readers. A protocol adapts to it and holds no logic of its own.
//!
//! | folder | holds |
//! |---|---|
//! | `ingest` | requests made into checked changes |
//! | `write` | the one writer: plan, log, apply, answer, announce |
//! | `index`, `recall` | places to look in, and questions with their ranking |
//! | `read` | answers: memories, exports, explanations, backups |
//! | `upkeep` | sealing, compaction, scrubbing, the sweep |
//! | `card` | the state of the card: faults, reserve, quota, budget, wear, rot |
//! | `time` | clocks, the time lines of the store, dates of unknown quality |
//!
//! Bytes on disk are those of `omird-store`. This page is all that others may use.

#![warn(unreachable_pub)]

mod card;
mod contained;
mod encoded;
mod engine;
mod error;
mod index;
mod ingest;
mod open;
mod question;
mod read;
mod recall;
mod reconfigure;
mod settings;
mod shared;
mod status;
#[cfg(test)]
mod store_tests;
#[doc(hidden)]
pub mod testing;
mod time;
mod upkeep;
mod write;

use omird_store::{PRODUCER, disk};

// A running engine, and how it fails.
pub use crate::card::health::State as CardState;
pub use crate::card::integrity::RotFinding;
pub use crate::contained::contain;
pub use crate::encoded::id_of;
pub use crate::engine::{Engine, unanswered};
pub use crate::error::{Code, Error};
pub use crate::open::Parts;

// Requests, changes and their receipts.
pub use crate::ingest::import_rule::{Merged, Precedence};
pub use crate::ingest::importing::{ImportPermit, NotAdmitted};
pub use crate::ingest::precondition::Precondition;
pub use crate::ingest::request::{Encoding, Prepared, decode};
pub use crate::write::command::{Change, Effect, Event, Receipt, Stored};
pub use crate::write::events::{EventQueue, Events, Listening};
pub use crate::write::rebase::{CAUSE as REBASE_CAUSE, Rebase, Step as RebaseStep};

// Questions and answers.
pub use crate::index::scores::ScorePart;
pub use crate::index::text::Correction;
pub use crate::index::vectors::{Fusion, keep_scans_on_this_thread};
pub use crate::question::Question;
pub use crate::read::backup::MAX_PIECE;
pub use crate::read::export::{Cursor, Export, LeftOut, Selection, decode_stored};
pub use crate::read::get::{Lookup, Unread};
pub use crate::read::hits::{Hit, Recall};
pub use crate::read::reading::{CursorCache, KEPT as READINGS_KEPT, Reading, ReadingStart};
pub use crate::recall::frames::Frames;
pub use crate::recall::query::{
    DEFAULT_FRAME, MAX_LIMIT, Moment, Order, Query, QueryVector, Snapshot, TimeRange,
};
pub use crate::recall::tally::{Asks, CountBy};

// Work that the daemon does by itself.
pub use crate::upkeep::sweep::SweepReport;
pub use crate::write::orders::{Compaction, CompactionScope, Task};

// Settings and clocks.
pub use crate::settings::{
    DEEPEST, Durability, FlashSettings, Forgetting, RequestLimits, Settings,
};
pub use crate::time::clock::{
    Clock, ClockState, SYNCHRONISED_FILE, SimulatedClock, Source, SystemClock,
};
pub use omird_text::Language;
