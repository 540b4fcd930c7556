//! See `omird_fuzz::daemon::request`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::request::run(bytes));
