//! The handshake, in either role.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tunnel::fuzz::hello(input));
