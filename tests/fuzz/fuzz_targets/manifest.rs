//! See `omird_fuzz::daemon::manifest`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::manifest::run(bytes));
