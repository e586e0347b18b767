//! Records of files, whatever pieces a reader gives, whatever was done before.

use super::*;
use rand::prelude::*;
use std::io::Cursor;

const LIMIT: usize = 1 << 20;

fn records(text: &[u8], format: Format, limit: usize, done: Vec<Span>) -> Vec<(u64, String, Option<Fault>)> {
    let mut reader = Records::new(Cursor::new(text.to_vec()), format, limit, done).expect("it begins");
    let mut found = Vec::new();
    while let Some(batch) = reader.next_batch().expect("readable") {
        for record in &batch.records {
            let text = String::from_utf8_lossy(batch.text(record)).into_owned();
            found.push((record.line, text, record.fault.clone()));
        }
    }
    found
}

fn lines(text: &str, format: Format) -> Vec<(u64, String)> {
    records(text.as_bytes(), format, LIMIT, Vec::new()).into_iter().map(|(line, text, _)| (line, text)).collect()
}

fn owned(wanted: &[(u64, &str)]) -> Vec<(u64, String)> {
    wanted.iter().map(|(line, text)| (*line, text.to_string())).collect()
}

#[test]
fn where_records_end() {
    assert_eq!(
        lines("\u{FEFF}a,b\r\n\"c\nd\",e\n\nf", Format::CSV),
        owned(&[(1, "a,b"), (2, "\"c\nd\",e"), (4, ""), (5, "f")])
    );
    assert_eq!(lines("5\" disk\n\"a\"\"\n\"\n", Format::CSV), owned(&[(1, "5\" disk"), (2, "\"a\"\"\n\"")]));
    assert_eq!(lines("a\\\nb\tc\nd\\\\\ne", Format::Tsv), owned(&[(1, "a\\\nb\tc"), (3, "d\\\\"), (4, "e")]));
    assert_eq!(lines("{\"a\":\"\\\"\"}\r\n{}", Format::Jsonl), owned(&[(1, "{\"a\":\"\\\"\"}"), (2, "{}")]));
}

#[test]
fn faults_cost_one_line() {
    let found = records(b"a\n\"b\nc\nd\n", Format::CSV, LIMIT, Vec::new());
    let faults: Vec<(u64, Option<Fault>)> = found.iter().map(|(line, _, fault)| (*line, fault.clone())).collect();
    assert_eq!(faults, [(1, None), (2, Some(Fault::OpenQuote)), (3, None), (4, None)]);
    let long = format!("a\n{}\nb\n", "x".repeat(2 * CHUNK));
    let found = records(long.as_bytes(), Format::CSV, 100, Vec::new());
    assert_eq!((found.len(), &found[1].2, found[2].1.as_str()), (3, &Some(Fault::TooLong), "b"));
}

#[test]
fn other_encodings_are_refused() {
    let refused = |text: &[u8]| Records::new(Cursor::new(text.to_vec()), Format::CSV, LIMIT, Vec::new()).err();
    assert!(refused(b"\xFF\xFEa\0").expect("refused").contains("UTF-16"));
    assert!(refused(b"\x1F\x8B\x08").expect("refused").contains("gunzip"));
}

/// Whatever batches were committed before, the rest is what comes, under the same line numbers.
#[test]
fn what_was_done_is_passed_over() {
    let mut random = StdRng::seed_from_u64(18);
    let text: String = (0..60_000).map(|i| format!("{i},\"line\n{i}\"\n")).collect();
    let mut reader =
        Records::new(Cursor::new(text.clone().into_bytes()), Format::CSV, LIMIT, Vec::new()).expect("begins");
    let mut batches = Vec::new();
    while let Some(batch) = reader.next_batch().expect("readable") {
        let of_batch: Vec<(u64, String)> =
            batch.records.iter().map(|r| (r.line, String::from_utf8_lossy(batch.text(r)).into_owned())).collect();
        batches.push((batch.span, of_batch));
    }
    assert!(batches.len() > 5);
    for _ in 0..10 {
        let (done, left): (Vec<_>, Vec<_>) = batches.iter().cloned().partition(|_| random.random_bool(0.5));
        let wanted: Vec<(u64, String)> = left.into_iter().flat_map(|(_, records)| records).collect();
        let mut spans: Vec<Span> = done.into_iter().map(|(span, _)| span).collect();
        spans.shuffle(&mut random);
        let found = records(text.as_bytes(), Format::CSV, LIMIT, spans);
        let found: Vec<(u64, String)> = found.into_iter().map(|(line, text, _)| (line, text)).collect();
        assert_eq!(found, wanted);
    }
}
