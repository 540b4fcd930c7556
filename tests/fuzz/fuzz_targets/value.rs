//! See `omird_fuzz::core::value`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::value::run(bytes));
