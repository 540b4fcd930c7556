//! See `omird_fuzz::daemon::trajectory`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::trajectory::run(bytes));
