//! Prints, for each deed, the bytes of stack it takes and the instructions it runs: `name bytes count`; and what
//! is held in RAM meanwhile: `held name bytes`.
//!
//! The emulator runs with `-icount shift=0`: one instruction is one nanosecond of the board, and SysTick counts
//! those. How many instructions one tick is follows from a loop whose length is known.

#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

use core::fmt::Write;

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::entry;
use cortex_m_semihosting::debug::{EXIT_FAILURE, EXIT_SUCCESS, exit};
use cortex_m_semihosting::hio;
use omir_firmware::board::worst_stack;
use omir_firmware::workloads::{HELD, WORKLOADS};

/// SysTick counts down from here: 24 bits.
const RELOAD: u32 = 0x00FF_FFFF;
/// Number of runs of a workload to be counted.
const TIMES: u32 = 64;

#[entry]
fn main() -> ! {
    let done = measure().is_ok();
    exit(if done { EXIT_SUCCESS } else { EXIT_FAILURE });
    loop {
        cortex_m::asm::wfi();
    }
}

fn measure() -> Result<(), ()> {
    let mut out = hio::hstdout()?;
    let mut timer = cortex_m::Peripherals::take().ok_or(())?.SYST;
    timer.set_clock_source(SystClkSource::Core);
    timer.set_reload(RELOAD);
    timer.clear_current();
    timer.enable_counter();

    // `delay` runs a loop of two instructions for each two cycles: as many instructions as asked for.
    const KNOWN: u32 = 4_000_000;
    let known = ticks(&mut timer, || cortex_m::asm::delay(KNOWN));
    for deed in WORKLOADS {
        let stack = worst_stack(deed.run);
        let spent = ticks(&mut timer, || (0..TIMES).for_each(|_| (deed.run)()));
        let base = ticks(&mut timer, || (0..TIMES).for_each(|_| (deed.base)()));
        let instructions = u64::from(spent.saturating_sub(base)) * u64::from(KNOWN)
            / u64::from(known.max(1))
            / u64::from(TIMES);
        writeln!(out, "{:?} {stack} {instructions}", deed.name).map_err(drop)?;
    }
    for (name, bytes) in HELD {
        writeln!(out, "held {name} {bytes}").map_err(drop)?;
    }
    Ok(())
}

/// Ticks that `deed` takes: less than one round of the counter.
fn ticks(timer: &mut SYST, mut deed: impl FnMut()) -> u32 {
    timer.clear_current();
    let before = SYST::get_current();
    deed();
    let after = SYST::get_current();
    before.wrapping_sub(after) & RELOAD
}
