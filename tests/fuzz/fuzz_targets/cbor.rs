//! See `omird_fuzz::core::cbor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::cbor::run(bytes));
