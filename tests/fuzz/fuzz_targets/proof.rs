//! See `omird_fuzz::core::proof`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::proof::run(bytes));
