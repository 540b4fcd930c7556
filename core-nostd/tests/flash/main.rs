//! Records in NOR flash, and what is left of them when power goes.
//!
//! Invariant 29 of ARCHITECTURE.md.

mod cuts;
mod journal;
mod model;
mod nor;
mod notes;
mod ring;
mod rot;
