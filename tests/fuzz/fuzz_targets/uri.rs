//! See `omird_fuzz::core::uri`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::uri::run(bytes));
