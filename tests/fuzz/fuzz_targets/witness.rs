//! See `omird_fuzz::daemon::witness`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::witness::run(bytes));
