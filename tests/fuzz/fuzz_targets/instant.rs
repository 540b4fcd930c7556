//! See `omird_fuzz::core::instant`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::instant::run(bytes));
