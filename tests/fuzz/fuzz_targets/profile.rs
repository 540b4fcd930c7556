//! See `omird_fuzz::core::profile`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::profile::run(bytes));
