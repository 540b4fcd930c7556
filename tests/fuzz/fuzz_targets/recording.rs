//! See `omird_fuzz::ros2::recording`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::ros2::recording::run(bytes));
