//! See `omird_fuzz::daemon::parameters`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::parameters::run(bytes));
