//! What the paths that every row takes cost: reading columns, making keys, comparing text, adding decimals.

use divan::{Bencher, black_box, counter::ItemsCount};
use rauk_types::row::encode_row;
use rauk_types::{
    Collation, Column, ColumnId, DataType, Decimal, IndexSchema, KeyDef, RowView, TableId, TableSchema, TypeKind, Value,
};

fn main() {
    divan::main();
}

/// sysbench's table: id INT, k INT, c CHAR(120), pad CHAR(60).
fn sysbench() -> (TableSchema, Vec<u8>) {
    let char = |length| DataType { length, ..DataType::new(TypeKind::Char) };
    let types = [DataType::new(TypeKind::Int), DataType::new(TypeKind::Int), char(120), char(60)];
    let columns =
        types.into_iter().enumerate().map(|(i, ty)| Column::new(ColumnId(i as u16), format!("c{i}"), ty, false));
    let table = TableSchema::new(TableId(1), "d", "sbtest1", columns.collect(), vec![IndexSchema::primary(&[0])]);
    let mut bytes = Vec::new();
    encode_row(&table, &values(), &mut bytes);
    (table, bytes)
}

fn values() -> [Value; 4] {
    [
        Value::Int(4711),
        Value::Int(5012),
        Value::from("0123456789-".repeat(11).as_str()),
        Value::from("0123456789-".repeat(5).as_str()),
    ]
}

#[divan::bench]
fn row_view_integer(bencher: Bencher) {
    let (table, bytes) = sysbench();
    bencher.bench_local(|| RowView::new(black_box(&table), 0, black_box(&bytes)).get(black_box(1)));
}

#[divan::bench]
fn row_view_text_of_121_bytes(bencher: Bencher) {
    let (table, bytes) = sysbench();
    bencher.bench_local(|| RowView::new(black_box(&table), 0, black_box(&bytes)).get(black_box(2)));
}

#[divan::bench]
fn encode_row_of_four(bencher: Bencher) {
    let (table, _) = sysbench();
    let (row, mut out) = (values(), Vec::new());
    bencher.bench_local(|| {
        out.clear();
        encode_row(black_box(&table), black_box(&row), &mut out);
    });
}

#[divan::bench]
fn key_of_an_integer(bencher: Bencher) {
    let (table, bytes) = sysbench();
    let (def, mut out) = (table.key_def(table.primary()), Vec::new());
    bencher.bench_local(|| {
        out.clear();
        black_box(&def).encode_row(&RowView::new(&table, 0, black_box(&bytes)), &mut out);
    });
}

#[divan::bench]
fn match_an_integer_key(bencher: Bencher) {
    let (table, bytes) = sysbench();
    let def = table.key_def(table.primary());
    let mut key = Vec::new();
    def.encode_row(&RowView::new(&table, 0, &bytes), &mut key);
    bencher.bench_local(|| black_box(&def).matches(&RowView::new(&table, 0, black_box(&bytes)), black_box(&key)));
}

/// One of each kind.
const COLLATIONS: [Collation; 5] = [
    Collation::Utf8mb4GeneralCi,
    Collation::Utf8mb4Bin,
    Collation::Binary,
    Collation::Utf8mb4UnicodeCi,
    Collation::Utf8mb40900AiCi,
];

#[divan::bench(args = COLLATIONS)]
fn match_a_text_key(bencher: Bencher, collation: Collation) {
    let columns = vec![Column::new(ColumnId(0), "c", DataType::varchar(20, collation), false)];
    let table = TableSchema::new(TableId(1), "d", "t", columns, vec![IndexSchema::primary(&[0])]);
    let (mut bytes, mut key) = (Vec::new(), Vec::new());
    encode_row(&table, &[Value::from(TEXT)], &mut bytes);
    let def: KeyDef = table.key_def(table.primary());
    def.encode_row(&RowView::new(&table, 0, &bytes), &mut key);
    bencher.bench_local(|| black_box(&def).matches(&RowView::new(&table, 0, black_box(&bytes)), black_box(&key)));
}

/// 20 characters.
const TEXT: &str = "Customer#000000001 x";
const ACCENTS: &str = "Händler Ångström Éva";

#[divan::bench(args = COLLATIONS)]
fn sort_key_of_20_ascii(bencher: Bencher, collation: Collation) {
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(20usize)).bench_local(|| {
        out.clear();
        collation.sort_key(black_box(TEXT).as_bytes(), &mut out);
    });
}

#[divan::bench(args = COLLATIONS)]
fn sort_key_of_20_accents(bencher: Bencher, collation: Collation) {
    let mut out = Vec::new();
    bencher.counter(ItemsCount::new(20usize)).bench_local(|| {
        out.clear();
        collation.sort_key(black_box(ACCENTS).as_bytes(), &mut out);
    });
}

#[divan::bench(args = COLLATIONS)]
fn compare_20_characters(bencher: Bencher, collation: Collation) {
    let other = TEXT.to_lowercase();
    bencher.bench_local(|| collation.compare(black_box(TEXT).as_bytes(), black_box(&other).as_bytes()));
}

fn decimal(text: &str) -> Decimal {
    text.parse().expect("a decimal")
}

#[divan::bench]
fn decimal_add(bencher: Bencher) {
    let (a, b) = (decimal("1234567.89"), decimal("0.05"));
    bencher.bench_local(|| black_box(a).checked_add(&black_box(b)));
}

#[divan::bench]
fn decimal_add_of_60_digits(bencher: Bencher) {
    let (a, b) = (decimal(&"123456".repeat(10)), decimal("0.05"));
    bencher.bench_local(|| black_box(a).checked_add(&black_box(b)));
}

#[divan::bench]
fn decimal_divide(bencher: Bencher) {
    let (a, b) = (decimal("1234567.89"), decimal("3.1"));
    bencher.bench_local(|| black_box(a).checked_div(&black_box(b), 4));
}

#[divan::bench]
fn decimal_to_text(bencher: Bencher) {
    let (a, mut out) = (decimal("1234567.89"), Vec::new());
    bencher.bench_local(|| {
        out.clear();
        black_box(a).append_text(&mut out);
    });
}

#[divan::bench]
fn double_to_text(bencher: Bencher) {
    let mut out = Vec::new();
    bencher.bench_local(|| {
        out.clear();
        rauk_types::format::append_f64(black_box(1234567.891), &mut out);
    });
}

#[divan::bench]
fn parse_a_date_time() -> rauk_types::DateTime {
    let text = black_box("2024-01-31 12:34:56.789");
    rauk_types::datetime::parse_date_time(text.as_bytes(), Default::default()).expect("a date").value
}
