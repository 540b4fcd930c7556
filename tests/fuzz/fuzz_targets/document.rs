//! See `omird_fuzz::core::document`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::document::run(bytes));
