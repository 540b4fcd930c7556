//! The emulated board: everything goes through semihosting (Arm, "Semihosting for AArch32 and AArch64").

mod file;
mod flash;
mod stack;

pub use file::{File, argument};
pub use flash::{CutFlash, FlashFault};
pub use stack::worst_stack;
