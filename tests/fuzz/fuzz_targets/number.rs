//! See `omird_fuzz::core::number`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::number::run(bytes));
