//! Nothing but the parts of the core that its features name, so that the linker shows what each takes.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
#[allow(unused_imports, reason = "without a feature, the size of nothing")]
use omir_firmware::workloads;

#[entry]
fn main() -> ! {
    #[cfg(feature = "decay")]
    workloads::decay();
    #[cfg(feature = "pose")]
    workloads::pose();
    #[cfg(feature = "encode")]
    workloads::encode();
    #[cfg(feature = "read")]
    workloads::read();
    #[cfg(feature = "journal")]
    workloads::journal();
    #[cfg(feature = "handover")]
    workloads::handover();
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
