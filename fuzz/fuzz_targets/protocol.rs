//! The MySQL protocol's packets and commands.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rauk_mysql::fuzz::fuzz_packet(data));
