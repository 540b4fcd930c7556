//! Prints, for each deed, the bytes of stack it takes and the instructions it runs: `name bytes count`; and what
//! is held in RAM meanwhile: `held name bytes`.

#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

use core::fmt::Write;

use cortex_m_rt::entry;
use cortex_m_semihosting::debug::{EXIT_FAILURE, EXIT_SUCCESS, exit};
use cortex_m_semihosting::hio;
use omir_firmware::board::{Ticks, worst_stack};
use omir_firmware::workloads::{HELD, WORKLOADS};

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
    let mut ticks = Ticks::take().ok_or(())?;
    for deed in WORKLOADS {
        let stack = worst_stack(deed.run);
        let spent = ticks.of(|| (0..TIMES).for_each(|_| (deed.run)()));
        let base = ticks.of(|| (0..TIMES).for_each(|_| (deed.base)()));
        let instructions = ticks.instructions(spent.saturating_sub(base)) / u64::from(TIMES);
        writeln!(out, "{:?} {stack} {instructions}", deed.name).map_err(drop)?;
    }
    for (name, bytes) in HELD {
        writeln!(out, "held {name} {bytes}").map_err(drop)?;
    }
    Ok(())
}
