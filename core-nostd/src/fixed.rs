//! Memories without an allocator: records of fixed capacity, their CBOR, and a ring of them in flash.
//!
//! For microcontrollers. A [`Record`] is the part of `model::MemoryRecord` that a sensor node fills in,
//! with the same words, the same forgetting state and the same pose, in a size known when the program is
//! built. [`Record::write`] gives byte for byte what `cbor::to_vec` gives for that record, so what a
//! microcontroller hands over needs no translation. A [`Journal`] keeps records in flash.
//!
//! A machine without a clock dates by its own uptime ([`Moment::SinceBoot`]); it learns the time later, and says so
//! with a [`Dating`].
//!
//! With the feature `link` too, [`HandOver`](handover) gives the records to a daemon over a serial line.
//!
//! ```
//! use omir_core::fixed::{Moment, NoClock, Record, Text};
//! use omir_core::instant::Timestamp;
//!
//! type Memory = Record<32, 96, 2>;
//!
//! let now = Moment::At(Timestamp::from_unix(1_780_141_325, 0));
//! let mut bump = Memory::new("bump-1".try_into()?, Text::try_from("bumper pressed").unwrap(), now);
//! bump.entity_refs.push("Entity/rover".try_into()?).unwrap();
//!
//! let mut bytes = heapless::Vec::<u8, 256>::new();
//! bump.write(&NoClock, &mut bytes).unwrap();
//! assert_eq!(Memory::read(&bytes).unwrap(), bump);
//! # Ok::<(), omir_core::fixed::NameError>(())
//! ```

mod bytes;
#[cfg(feature = "link")]
pub mod handover;
mod journal;
mod mark;
mod moment;
mod names;
mod notes;
mod read;
mod record;
pub mod ring;
mod starts;
mod write;

pub use bytes::{Length, NoRoom, Sink};
#[cfg(feature = "link")]
pub use handover::HandOver;
pub use journal::{Journal, JournalEntry, JournalError};
pub use mark::Mark;
pub use moment::{BootClock, Dating, Moment, NoClock, Uptime};
pub use names::{Frame, Id, NameError, Reference};
pub use read::{ReadError, ReadErrorKind, Unknown};
pub use record::{Confidence, Decay, Pose, Record, Unit};
pub use starts::{Starts, Trust};
pub use write::WriteError;

/// Text of at most `N` bytes.
pub type Text<const N: usize> = heapless::String<N>;

/// The examples of the guide are compiled.
#[cfg(all(doctest, feature = "link"))]
#[doc = include_str!("../../docs/microcontroller.md")]
struct Guide;
