//! The panic handler of programs that talk to the emulator: it prints the reason, and ends with an error.

use core::fmt::Write;
use core::panic::PanicInfo;

use cortex_m_semihosting::debug::{EXIT_FAILURE, exit};
use cortex_m_semihosting::hio;

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if let Ok(mut out) = hio::hstdout() {
        let _ = writeln!(out, "{info}");
    }
    exit(EXIT_FAILURE);
    loop {
        cortex_m::asm::wfi();
    }
}
