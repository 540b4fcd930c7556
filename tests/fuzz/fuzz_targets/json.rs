//! See `omird_fuzz::core::json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::json::run(bytes));
