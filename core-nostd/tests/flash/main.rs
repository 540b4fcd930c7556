//! Records in NOR flash, and what is left of them when power goes.

mod journal;
mod nor;
mod ring;
