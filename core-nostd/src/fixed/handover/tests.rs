//! A node with flash, a daemon that keeps what it acknowledged, and the simulated line between them: noise, a
//! cable that is pulled, power that goes on either side.
//!
//! Whatever happens, what is marked as handed over is durable over there, what came twice was the same, and in
//! the end all of it is there.
//!
//! Invariant 31 of ARCHITECTURE.md.

mod cuts;
mod daemon;
mod dates;
#[path = "../../../tests/flash/nor.rs"]
#[allow(dead_code, reason = "the tests of the ring use the rest")]
mod nor;
mod refusals;
mod responses;
mod room;
mod sessions;
mod world;

use super::*;
use crate::fixed::{Decay, Id, Journal, Moment, Record};
use nor::Nor;

type Flash = Nor<4, 1024>;
type Memory = Record<24, 48, 2>;
type Memories = Journal<Flash, 24, 48, 2, 512>;

/// The beginning of the simulation, for ends that know the time: microseconds.
const BEGINNING: i64 = 1_780_141_325_000_000;

fn memory(id: &str, at: Moment) -> Memory {
    let mut record =
        Record::new(Id::try_from(id).unwrap(), Text::try_from("it was so").unwrap(), at);
    record.decay = Some(Decay { access_count: Some(7), ..Decay::default() });
    record
}
