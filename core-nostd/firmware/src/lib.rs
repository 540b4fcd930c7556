//! A sensor node that remembers: what it senses, what it keeps of it, and the numbers that must come out
//! the same on every machine.
//!
//! `src/bin/node.rs` is the firmware; it has the board, this has none. Read [`life`] first.

#![cfg_attr(not(test), no_std)]

#[cfg(feature = "board")]
pub mod board;
pub mod golden;
#[cfg(feature = "board")]
pub mod handing;
pub mod life;
pub mod sensors;
pub mod workloads;

use omir_core::fixed::{self, Journal};

/// A record of this node: 24 bytes for ids and frames, 48 of content, 2 references.
pub type Record = fixed::Record<24, 48, 2>;

/// The records of this node in flash, 512 bytes at most for each.
pub type Memories<F> = Journal<F, 24, 48, 2, 512>;

/// Their hand-over to a daemon.
pub type HandOver = fixed::HandOver<'static, 512>;

/// Bytes of flash for them: six pages of 1 KiB.
pub const FLASH: usize = 6 * 1024;
