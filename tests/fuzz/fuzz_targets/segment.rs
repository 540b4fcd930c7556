//! See `omird_fuzz::daemon::segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::segment::run(bytes));
