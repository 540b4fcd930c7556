//! See `omird_fuzz::daemon::log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::log::run(bytes));
