//! See `omird_fuzz::ros2::interface`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::ros2::interface::run(bytes));
