//! See `omird_fuzz::core::link_message`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| omird_fuzz::core::link_message::run(bytes));
