//! The emulated board. Its flash and its console go through semihosting (Arm, "Semihosting for AArch32 and
//! AArch64"); its clock and its UART are those of the chip.

mod clock;
mod file;
mod flash;
mod stack;
mod ticks;
mod uart;

pub use clock::Clock;
pub use file::{File, argument};
pub use flash::{CutFlash, FlashFault};
pub use stack::worst_stack;
pub use ticks::Ticks;
pub use uart::Uart;
