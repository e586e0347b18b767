//! The redo log's reader: any bytes in a segment are read, cut or refused, never misread and never a panic.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rauk_log::fuzz::fuzz_read(data));
