//! See `omird_fuzz::core::text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::text::run(bytes));
