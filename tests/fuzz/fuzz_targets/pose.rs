//! See `omird_fuzz::core::pose`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::pose::run(bytes));
