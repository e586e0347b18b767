//! Rows whose large values lie beside them, and sparse rows.

use super::*;
use crate::row::large::{Account, LARGE_VALUE, take_apart};
use crate::row::sparse::{SparseValue, append_sparse, keeps_any, read_sparse};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what is not given back.
#[derive(Default)]
struct Counter(AtomicU64);

impl Account for Counter {
    fn give_back(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn make(bytes: &[u8], counter: &Arc<Counter>) -> LargeValue {
    counter.0.fetch_add(LargeValue::counted(bytes.len()), Ordering::Relaxed);
    LargeValue::new(bytes, counter.clone())
}

/// `i INT, a LONGBLOB NULL, s VARCHAR(9), t LONGTEXT, d DECIMAL(65,30), b LONGBLOB NULL`
fn wide() -> TableSchema {
    let varchar = DataType::varchar(9, Collation::DEFAULT);
    let types = [ty(TypeKind::Int), ty(TypeKind::LongBlob), varchar, ty(TypeKind::LongText)];
    let types = types.into_iter().chain([DataType::decimal(65, 30), ty(TypeKind::LongBlob)]);
    table(types.enumerate().map(|(i, ty)| column(i as u16, ty, i == 1 || i == 5)).collect())
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0..40usize, LARGE_VALUE - 1..LARGE_VALUE + 3, 20_000..70_000usize]
}

fn wide_row() -> impl Strategy<Value = Vec<Value>> {
    let blob = || prop_oneof![1 => Just(Value::Null), 4 => (any::<u8>(), length()).prop_map(|(b, n)| Value::Bytes(vec![b; n]))];
    (any::<i32>(), blob(), "[a-z]{0,9}", length(), blob()).prop_map(|(i, a, s, t, b)| {
        let text = "ä".repeat(t / 2) + if t % 2 == 1 { "t" } else { "" };
        let decimal = Value::Decimal(Decimal::new(i.into(), 30));
        vec![Value::Int(i.into()), a, Value::Str(s), Value::Str(text), decimal, b]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn rows_are_taken_apart_and_put_together(values in wide_row()) {
        let table = wide();
        let layout = table.layout();
        let whole = encoded(&table, &values);
        let large = values.iter().any(|v| match v {
            Value::Bytes(b) => b.len() > LARGE_VALUE,
            Value::Str(s) => s.len() > LARGE_VALUE,
            _ => false,
        });
        prop_assert_eq!(layout.has_large(&whole), large);
        let counter = Arc::new(Counter::default());
        let mut head = vec![7; 9];
        let made = |bytes: &[u8]| Ok::<_, Infallible>(make(bytes, &counter));
        let beside = take_apart(layout, &whole, &mut head, made).unwrap();
        prop_assert_eq!(!beside.is_empty(), large);
        if !large {
            return Ok(());
        }
        let image = RowImage { head: &head, beside: &beside };
        prop_assert!(layout.holds_image(image));
        prop_assert!(!layout.holds(&head) && head.len() < 4 * LARGE_VALUE);
        let row = RowView::of(&table, 0, image);
        prop_assert_eq!(row.to_values(), values);
        prop_assert_eq!(row.to_whole(), &whole[..]);
        let mut room = vec![1];
        prop_assert_eq!(row.whole(&mut room), &whole[..]);
        let mut some = Vec::new();
        row.append_without(&[0, 1, 3], &mut some);
        prop_assert!(layout.holds(&some));
        let read = RowView::new(&table, 0, &some);
        prop_assert!([0, 2, 4, 5].iter().all(|&position| read.get(position) == row.get(position)));
        prop_assert_eq!(read.get(3), ValueRef::Str(""));
        prop_assert_eq!(read.is_null(1), row.is_null(1));
        prop_assert!(row.size().abs_diff(whole.len()) < 100);
        // Any bytes in the place of these are refused or can be read.
        for at in 0..head.len().min(200) {
            let mut wrong = head.clone();
            wrong[at] ^= 0x81;
            let image = RowImage { head: &wrong, beside: &beside };
            if layout.holds_image(image) {
                RowView::of(&table, 0, image).to_values();
            }
        }
        drop(beside);
        prop_assert_eq!(counter.0.load(Ordering::Relaxed), 0, "all is given back");
    }

    #[test]
    fn sparse_rows_are_read_as_they_were_written(kept in proptest::collection::vec(any::<bool>(), 1..5), cut: usize) {
        let counter = Arc::new(Counter::default());
        let old: Vec<LargeValue> = (0..4u8).map(|n| make(&vec![n; 9000], &counter)).collect();
        let beside: Vec<LargeValue> =
            kept.iter().zip(old.iter().rev()).map(|(kept, old)| if *kept { old.clone() } else { make(&[8; 8500], &counter) }).collect();
        let image = RowImage { head: b"head", beside: &beside };
        prop_assert_eq!(keeps_any(image, &old), kept.contains(&true));
        let mut bytes = Vec::new();
        append_sparse(b"key", image, &old, &mut bytes);
        let read = read_sparse(&bytes).unwrap();
        prop_assert_eq!((read.key, read.head), (&b"key"[..], &b"head"[..]));
        for (value, meant) in read.values.iter().zip(&beside) {
            match value {
                SparseValue::New(bytes) => prop_assert!(*bytes == meant.bytes()),
                // Wherever it stands in the version before.
                SparseValue::Kept(mark) => {
                    prop_assert!(mark.find(&old).unwrap().is_same(meant));
                    let others: Vec<LargeValue> = old.iter().rev().cloned().collect();
                    prop_assert!(mark.find(&others).unwrap().is_same(meant));
                    prop_assert!(mark.find(&[]).is_none());
                }
            }
        }
        prop_assert_eq!(read.values.len(), beside.len());
        prop_assert_eq!(read_sparse(&bytes[..cut % bytes.len()]), None);
    }

    #[test]
    fn any_bytes_are_a_sparse_row_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_sparse(&bytes);
    }
}

/// What is in logs stays readable.
#[test]
fn the_bytes_of_sparse_rows_are_frozen() {
    let counter = Arc::new(Counter::default());
    let (old, new) = (make(b"old", &counter), make(b"new", &counter));
    let mut bytes = Vec::new();
    append_sparse(b"k", RowImage { head: b"h", beside: &[old.clone(), new] }, &[old], &mut bytes);
    let expected: &[u8] = b"\x01\0\0\0k\x01\0\0\0h\x02\0\0\0\
        \x01\0\0\0\0\x03\0\0\0\0\0\0\0\
        HASHHASHHASHHASH\
        \0\x03\0\0\0\0\0\0\0new";
    let at = expected.windows(4).position(|four| four == b"HASH").unwrap();
    let hash = xxhash_rust::xxh3::xxh3_128(b"old").to_le_bytes();
    assert_eq!(bytes, [&expected[..at], &hash, &expected[at + 16..]].concat());
}
