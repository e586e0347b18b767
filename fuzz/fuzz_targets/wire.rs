//! The native protocol: frames, and the payload of every signal.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rauk_wire::fuzz::fuzz_signal(data));
