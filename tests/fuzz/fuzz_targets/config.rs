//! See `omird_fuzz::daemon::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::config::run(bytes));
