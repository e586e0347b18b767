//! What a batch costs on its way: `cargo bench -p rauk-wire`. A hundred operations on single integer keys, rows of a hundred bytes.

use divan::{Bencher, black_box};
use rauk_types::{IndexId, TableId, ValueRef};
use rauk_wire::frame::{self, HEADER};
use rauk_wire::{
    AnswerBuilder, AnswerReader, Batch, BatchBuilder, BatchOptions, Header, Kind, LockWish, OpKind, Outcome, Shape,
    Wanted,
};

const OPERATIONS: usize = 100;

fn main() {
    divan::main();
}

fn shape(kind: OpKind, columns: &[u16]) -> Shape {
    Shape {
        table: TableId(1),
        version: 1,
        kind,
        index: IndexId::PRIMARY,
        lock: LockWish::None,
        conditional: false,
        columns: columns.to_vec(),
        wanted: Wanted::Row,
    }
}

fn reads(buffer: Vec<u8>, shapes: &[Shape]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(buffer, &BatchOptions::default(), shapes);
    for key in 0..OPERATIONS as u64 {
        builder.key(0, &black_box(key).to_be_bytes(), None);
    }
    builder.finish()
}

fn answer(buffer: Vec<u8>, row: &[u8]) -> Vec<u8> {
    let mut builder = AnswerBuilder::new(buffer);
    for operation in 0..OPERATIONS as u16 {
        builder.row(black_box(operation), 0, black_box(row));
    }
    builder.finish(false, false)
}

/// With the buffer used again, as links do.
fn with_buffer(bencher: Bencher<'_, '_>, work: impl Fn(Vec<u8>) -> Vec<u8> + Sync) {
    let mut buffer = Some(frame::begin());
    bencher.counter(OPERATIONS).bench_local(move || {
        let mut frame = buffer.take().unwrap_or_default();
        frame.truncate(HEADER);
        buffer = Some(work(frame));
    });
}

#[divan::bench]
fn build_reads(bencher: Bencher<'_, '_>) {
    let shapes = [shape(OpKind::Read, &[])];
    with_buffer(bencher, |buffer| reads(buffer, &shapes));
}

#[divan::bench]
fn parse_reads(bencher: Bencher<'_, '_>) {
    let payload = reads(Vec::new(), &[shape(OpKind::Read, &[])]);
    bencher.counter(OPERATIONS).bench(|| {
        let batch = Batch::parse(black_box(&payload)).unwrap();
        for operation in batch.operations() {
            black_box(operation.unwrap().key);
        }
    });
}

#[divan::bench]
fn build_updates(bencher: Bencher<'_, '_>) {
    let shapes = [shape(OpKind::Update, &[1])];
    with_buffer(bencher, |buffer| {
        let mut builder = BatchBuilder::new(buffer, &BatchOptions::default(), &shapes);
        for key in 0..OPERATIONS as u64 {
            builder.key_and_values(0, &black_box(key).to_be_bytes(), [ValueRef::Bytes(black_box(&[7; 80]))], None);
        }
        builder.finish()
    });
}

#[divan::bench]
fn parse_updates(bencher: Bencher<'_, '_>) {
    let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape(OpKind::Update, &[1])]);
    for key in 0..OPERATIONS as u64 {
        builder.key_and_values(0, &key.to_be_bytes(), [ValueRef::Bytes(&[7; 80])], None);
    }
    let payload = builder.finish();
    bencher.counter(OPERATIONS).bench(|| {
        let mut values = Vec::new();
        let batch = Batch::parse(black_box(&payload)).unwrap();
        for operation in batch.operations() {
            values.clear();
            operation.unwrap().values.read(&mut values).unwrap();
            black_box(values.len());
        }
    });
}

#[divan::bench(args = [100, 2000])]
fn build_answer(bencher: Bencher<'_, '_>, bytes: usize) {
    let row = vec![7; bytes];
    with_buffer(bencher, |buffer| answer(buffer, &row));
}

#[divan::bench(args = [100, 2000])]
fn parse_answer(bencher: Bencher<'_, '_>, bytes: usize) {
    let payload = answer(Vec::new(), &vec![7; bytes]);
    bencher.counter(OPERATIONS).bench(|| {
        let mut reader = AnswerReader::parse(black_box(&payload)).unwrap();
        while let Some((operation, outcome)) = reader.next_entry().unwrap() {
            let Outcome::Row { bytes, .. } = outcome else { panic!("a row") };
            black_box((operation, bytes));
        }
    });
}

#[divan::bench(args = [100, 2000])]
fn finish_and_parse_frame(bencher: Bencher<'_, '_>, bytes: usize) {
    let mut frame = answer(frame::begin(), &vec![7; bytes]);
    let header = Header::new(Kind::BatchAnswer, 1);
    bencher.counter(OPERATIONS).bench_local(move || {
        frame::finish(&mut frame, black_box(&header));
        black_box(frame::parse(black_box(&frame)).is_ok())
    });
}
