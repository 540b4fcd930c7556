//! See `omird_fuzz::daemon::sidecar`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::sidecar::run(bytes));
