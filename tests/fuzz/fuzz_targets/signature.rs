//! See `omird_fuzz::daemon::signature`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::signature::run(bytes));
