//! Nothing but the parts of the core that its features name, so that the linker shows what each takes.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
#[allow(unused_imports, reason = "without a feature, the size of nothing")]
use omir_firmware::deeds;

#[entry]
fn main() -> ! {
    #[cfg(feature = "decay")]
    deeds::decay();
    #[cfg(feature = "pose")]
    deeds::pose();
    #[cfg(feature = "encode")]
    deeds::encode();
    #[cfg(feature = "read")]
    deeds::read();
    #[cfg(feature = "journal")]
    deeds::journal();
    #[cfg(feature = "handover")]
    deeds::handover();
    loop {
        cortex_m::asm::wfi();
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        cortex_m::asm::wfi();
    }
}
