//! See `omird_fuzz::daemon::time_range`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::time_range::run(bytes));
