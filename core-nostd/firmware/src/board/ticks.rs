//! Instructions counted by SysTick.
//!
//! The emulator runs with `-icount shift=0`: one instruction is one nanosecond of the board, and SysTick counts
//! those. How many instructions one tick is follows from a loop whose length is known.

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;

/// SysTick counts down from here: 24 bits.
const RELOAD: u32 = 0x00FF_FFFF;
/// Instructions of the loop.
const KNOWN: u32 = 4_000_000;

/// A counter of instructions.
pub struct Ticks {
    timer: SYST,
    /// Ticks of the known loop.
    known: u32,
}

impl Ticks {
    /// Takes the timer; `None` if somebody has it.
    pub fn take() -> Option<Self> {
        let mut timer = cortex_m::Peripherals::take()?.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(RELOAD);
        timer.clear_current();
        timer.enable_counter();
        let mut ticks = Self { timer, known: 0 };
        // `delay` runs a loop of two instructions for each two cycles: as many instructions as asked for.
        ticks.known = ticks.of(|| cortex_m::asm::delay(KNOWN)).max(1);
        Some(ticks)
    }

    /// Ticks that `deed` takes: less than one round of the counter.
    pub fn of(&mut self, deed: impl FnOnce()) -> u32 {
        self.timer.clear_current();
        let before = SYST::get_current();
        deed();
        let after = SYST::get_current();
        before.wrapping_sub(after) & RELOAD
    }

    /// The instructions that so many ticks are.
    pub fn instructions(&self, ticks: u32) -> u64 {
        u64::from(ticks) * u64::from(KNOWN) / u64::from(self.known)
    }
}
