//! See `omird_fuzz::core::reference`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::reference::run(bytes));
