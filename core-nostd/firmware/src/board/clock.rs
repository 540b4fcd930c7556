//! The uptime of the board: SysTick, and an exception each time it is through.

use core::sync::atomic::{AtomicU32, Ordering};

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;

/// Ticks a microsecond: what the emulator has for the board.
const TICKS: u64 = if cfg!(board = "mps2") { 25 } else { 16 };
/// 24 bits: half a second and more.
const RELOAD: u32 = 0x00FF_FFFF;

/// Number of times that SysTick was through.
static ROUNDS: AtomicU32 = AtomicU32::new(0);

/// A clock that begins at zero.
#[derive(Debug)]
pub struct Clock {
    last: u64,
}

impl Clock {
    /// Starts it.
    pub fn start(mut timer: SYST) -> Self {
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(RELOAD);
        timer.clear_current();
        timer.enable_interrupt();
        timer.enable_counter();
        Self { last: 0 }
    }

    /// SysTick was through. The program's exception `SysTick` is to call this, and nobody else.
    pub fn round() {
        ROUNDS.store(ROUNDS.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Microseconds since then. Never less than before.
    pub fn micros(&mut self) -> u64 {
        let ticks = loop {
            let rounds = ROUNDS.load(Ordering::Relaxed);
            let current = RELOAD - SYST::get_current();
            if rounds == ROUNDS.load(Ordering::Relaxed) {
                break u64::from(rounds) * (u64::from(RELOAD) + 1) + u64::from(current);
            }
        };
        // Between the end of a round and its exception it would go back.
        self.last = self.last.max(ticks / TICKS);
        self.last
    }
}
