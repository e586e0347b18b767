//! SQL text: normalising, splitting, parsing.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rauk_sql::parse::fuzz_parse(data));
