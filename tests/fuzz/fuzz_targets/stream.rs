//! See `omird_fuzz::core::stream`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::stream::run(bytes));
