//! See `omird_fuzz::ros2::message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::ros2::message::run(bytes));
