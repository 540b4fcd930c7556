//! See `omird_fuzz::core::manifesto`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::manifesto::run(bytes));
