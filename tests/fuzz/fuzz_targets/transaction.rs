//! See `omird_fuzz::daemon::transaction`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::daemon::transaction::run(bytes));
