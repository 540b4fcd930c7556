//! See `omird_fuzz::daemon::store`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::store::run(bytes));
