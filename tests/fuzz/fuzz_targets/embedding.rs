//! See `omird_fuzz::core::embedding`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::embedding::run(bytes));
