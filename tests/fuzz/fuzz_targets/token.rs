//! See `omird_fuzz::daemon::token`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::token::run(bytes));
