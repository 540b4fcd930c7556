//! Records in NOR flash, and what is left of them when power goes.
//!
//! Invariant 29 of ARCHITECTURE.md.

mod journal;
mod nor;
mod ring;
