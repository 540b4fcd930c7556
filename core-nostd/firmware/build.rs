//! The memory map of the emulated boards, for the linker script of `cortex-m-rt`.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(board, values(\"mps2\", \"microbit\"))");
    if env::var_os("CARGO_FEATURE_BOARD").is_none() {
        return Ok(());
    }
    let target = env::var("TARGET")?;
    let (board, flash, ram) = match target.as_str() {
        // Arm MPS2 with the FPGA image AN386 (application note 386, memory map): SSRAM1, SSRAM2.
        "thumbv7em-none-eabihf" => ("mps2", "0x00000000, LENGTH = 4M", "0x20000000, LENGTH = 4M"),
        // nRF51822 of the micro:bit, 256 KiB and 16 KiB.
        "thumbv6m-none-eabi" => {
            ("microbit", "0x00000000, LENGTH = 256K", "0x20000000, LENGTH = 16K")
        }
        other => return Err(format!("no board is known for {other}").into()),
    };
    let out = env::var("OUT_DIR")?;
    let script = format!("MEMORY\n{{\n  FLASH : ORIGIN = {flash}\n  RAM : ORIGIN = {ram}\n}}\n");
    fs::write(Path::new(&out).join("memory.x"), script)?;
    println!("cargo:rustc-cfg=board=\"{board}\"");
    println!("cargo:rustc-link-search={out}");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    // Sections need no alignment to pages of 64 KiB.
    println!("cargo:rustc-link-arg-bins=--nmagic");
    Ok(())
}
