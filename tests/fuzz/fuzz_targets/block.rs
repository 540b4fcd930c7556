//! See `omird_fuzz::daemon::block`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::block::run(bytes));
