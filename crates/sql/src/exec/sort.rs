//! The buffer that sorts.
//!
//! Rows are sorted by keys, which are bytes ([`crate::expr::value_key`]). With a limit only the best rows are kept, so
//! that ORDER BY … LIMIT 10 of a large table needs the memory of a few rows. Rows with equal keys keep the order they
//! came in. What is sorted are bytes: encoded values, or whatever leads to them.

use crate::memory::Memory;
use rauk_types::{MysqlError, ValueRef};
use rauk_wire::read::Reader;
use rauk_wire::value;
use std::cmp::Ordering;
use std::ops::Range;

/// Sorts what may be much, and has been counted: in runs, which are merged, so that it is looked now and then whether the statement may go on.
/// Errors: 1317, 3024, and 1038 where there is no room to merge.
pub(crate) fn sort_in_runs<T: Copy>(
    mut items: Vec<T>,
    memory: &Memory,
    order: impl Fn(&T, &T) -> Ordering,
) -> Result<Vec<T>, MysqlError> {
    for run in items.chunks_mut(RUN) {
        memory.look()?;
        run.sort_unstable_by(&order);
    }
    let mut width = RUN;
    while width < items.len() {
        memory.take(items.len() * size_of::<T>())?;
        let mut merged = Vec::with_capacity(items.len());
        for pair in items.chunks(width * 2) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, memory, &order, &mut merged)?;
        }
        memory.give(items.capacity() * size_of::<T>());
        items = merged;
        width *= 2;
    }
    Ok(items)
}

/// Appends two sorted runs as one; what is left comes before what is right.
fn merge<T: Copy>(
    mut left: &[T],
    mut right: &[T],
    memory: &Memory,
    order: impl Fn(&T, &T) -> Ordering,
    out: &mut Vec<T>,
) -> Result<(), MysqlError> {
    while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
        if out.len().is_multiple_of(RUN) {
            memory.look()?;
        }
        if order(b, a) == Ordering::Less {
            out.push(*b);
            right = right_rest;
        } else {
            out.push(*a);
            left = left_rest;
        }
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
    Ok(())
}

/// Bytes of a piece of [`Arena`]. Longer records have a piece of their own.
const PIECE: usize = 256 << 10;
/// Entries that are sorted in one go, between two looks at KILL: some milliseconds.
const RUN: usize = 32 << 10;
/// Bytes of a key that its entry has: those of a number are all.
const PREFIX: usize = 16;

/// Rows that wait to be sorted.
///
/// A row is a *record*, its key and then its payload, in pieces of memory that never move, and an *entry* that says
/// where it lies. So a row takes its bytes and some forty more, whatever its columns are, and sorting moves entries.
pub(crate) struct Sorter {
    arena: Arena,
    entries: Vec<Entry>,
    /// Rows that will be wanted; `usize::MAX`: all.
    keep: usize,
    cut: Option<Box<[u8]>>,
}

/// Where a row lies. Later rows lie behind earlier ones.
#[derive(Clone, Copy)]
struct Entry {
    /// The key's first [`PREFIX`] bytes: they decide most comparisons.
    prefix: u128,
    piece: u32,
    start: u32,
    key_length: u32,
    length: u32,
}

#[derive(Default)]
struct Arena {
    pieces: Vec<Vec<u8>>,
    memory: Memory,
}

impl Arena {
    /// Room for a record behind all others. Error 1038.
    fn place(&mut self, length: usize) -> Result<&mut Vec<u8>, MysqlError> {
        let fits = self.pieces.last().is_some_and(|piece| piece.capacity() - piece.len() >= length);
        if !fits {
            // A sort of few rows takes little: pieces grow with what there is.
            let size = length.max(PIECE.min(1024 << self.pieces.len().min(8)));
            self.memory.take(size)?;
            self.pieces.push(Vec::with_capacity(size));
        }
        Ok(self.pieces.last_mut().expect("there is one now"))
    }

    fn add(&mut self, key: &[u8], payload: &[u8]) -> Result<Entry, MysqlError> {
        let length = key.len() + payload.len();
        let mut prefix = [0; PREFIX];
        let known = key.len().min(PREFIX);
        prefix[..known].copy_from_slice(&key[..known]);
        let piece = self.place(length)?;
        let start = piece.len() as u32;
        piece.extend_from_slice(key);
        piece.extend_from_slice(payload);
        Ok(Entry {
            prefix: u128::from_be_bytes(prefix),
            piece: self.pieces.len() as u32 - 1,
            start,
            key_length: key.len() as u32,
            length: length as u32,
        })
    }

    fn record(&self, entry: &Entry) -> (&[u8], &[u8]) {
        let start = entry.start as usize;
        self.pieces[entry.piece as usize][start..start + entry.length as usize].split_at(entry.key_length as usize)
    }

    /// By key; equal ones as they came.
    fn order(&self, a: &Entry, b: &Entry) -> Ordering {
        (a.prefix.cmp(&b.prefix))
            .then_with(|| match a.key_length.max(b.key_length) as usize {
                // The shorter one is the beginning of the other.
                0..=PREFIX => a.key_length.cmp(&b.key_length),
                _ => self.record(a).0.cmp(self.record(b).0),
            })
            .then_with(|| (a.piece, a.start).cmp(&(b.piece, b.start)))
    }

    /// The memory of all pieces.
    fn bytes(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum()
    }
}

impl Sorter {
    pub fn new(keep: usize, memory: Memory) -> Self {
        Sorter { arena: Arena { pieces: Vec::new(), memory }, entries: Vec::new(), keep, cut: None }
    }

    /// Whether a row with this key could still be among those kept.
    pub fn wants(&self, key: &[u8]) -> bool {
        self.cut.as_ref().is_none_or(|cut| key < &**cut)
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<(), MysqlError> {
        if self.keep == 0 || !self.wants(key) {
            return Ok(());
        }
        if self.entries.len() == self.entries.capacity() {
            // By a quarter: what is copied stays in proportion, and little of it is empty.
            let more = (self.entries.len() / 4).max(8);
            self.arena.memory.take(more * size_of::<Entry>())?;
            self.entries.reserve_exact(more);
        }
        let entry = self.arena.add(key, payload)?;
        self.entries.push(entry);
        if self.keep < usize::MAX / 4 && self.entries.len() >= self.keep * 2 + 256 {
            self.shrink()?;
        }
        Ok(())
    }

    /// Only the best rows stay; they move together.
    fn shrink(&mut self) -> Result<(), MysqlError> {
        let (keep, arena) = (self.keep, &self.arena);
        let (_, last, _) = self.entries.select_nth_unstable_by(keep - 1, |a, b| arena.order(a, b));
        self.cut = Some(arena.record(last).0.into());
        self.entries.truncate(keep);
        self.entries.sort_unstable_by_key(|entry| (entry.piece, entry.start));
        let mut moved = Arena { pieces: Vec::new(), memory: arena.memory.clone() };
        for entry in &mut self.entries {
            let (key, payload) = arena.record(entry);
            *entry = moved.add(key, payload)?;
        }
        let before = std::mem::replace(&mut self.arena, moved);
        before.memory.give(before.bytes());
        Ok(())
    }

    /// The rows in their order. Errors: 1317, 3024, and 1038 where there is no room to merge.
    pub fn finish(mut self) -> Result<Sorted, MysqlError> {
        let arena = &self.arena;
        self.entries = sort_in_runs(self.entries, &arena.memory, |a, b| arena.order(a, b))?;
        self.entries.truncate(self.keep);
        Ok(Sorted { left: 0..self.entries.len(), arena: self.arena, entries: self.entries })
    }

    /// The rows as they came.
    pub fn unsorted(self) -> Sorted {
        Sorted { left: 0..self.entries.len(), arena: self.arena, entries: self.entries }
    }
}

/// Rows in their order. Their memory counts until the statement ends.
#[derive(Default)]
pub(crate) struct Sorted {
    arena: Arena,
    entries: Vec<Entry>,
    /// Those that are still to come.
    left: Range<usize>,
}

impl Sorted {
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// OFFSET and LIMIT.
    pub fn limit(&mut self, offset: u64, count: u64) {
        let clamped = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let start = self.left.start.saturating_add(clamped(offset)).min(self.left.end);
        self.left = start..start.saturating_add(clamped(count)).min(self.left.end);
    }

    /// The key and the payload of a row, by its place among all.
    pub fn record(&self, index: usize) -> (&[u8], &[u8]) {
        self.arena.record(&self.entries[index])
    }

    /// Gives the memory back before the statement ends.
    pub fn release(self) {
        let Sorted { arena, entries, .. } = self;
        arena.memory.give(arena.bytes() + entries.capacity() * size_of::<Entry>());
    }

    /// The key and the payload of the next row.
    pub fn next_record(&mut self) -> Option<(&[u8], &[u8])> {
        let entry = &self.entries[self.left.next()?];
        Some(self.arena.record(entry))
    }

    /// All rows are to come again.
    pub fn rewind(&mut self) {
        self.left = 0..self.entries.len();
    }

    /// The payload of the next row.
    pub fn next(&mut self) -> Option<&[u8]> {
        let entry = &self.entries[self.left.next()?];
        Some(self.arena.record(entry).1)
    }
}

/// Rows that are kept as they come, in pieces that may have been sorted before. Their memory counts until the statement ends.
pub(crate) struct KeptRows {
    memory: Memory,
    pieces: std::collections::VecDeque<Sorted>,
    /// Rows behind the last piece.
    open: Option<Sorter>,
    payload: Vec<u8>,
}

impl KeptRows {
    pub fn new(memory: Memory) -> Self {
        KeptRows { memory, pieces: Default::default(), open: None, payload: Vec::new() }
    }

    pub fn push(&mut self, payload: &[u8]) -> Result<(), MysqlError> {
        let memory = &self.memory;
        self.open.get_or_insert_with(|| Sorter::new(usize::MAX, memory.clone())).push(&[], payload)
    }

    pub fn push_values(&mut self, values: &[rauk_types::Value]) -> Result<(), MysqlError> {
        self.push_all(values.iter().map(rauk_types::Value::as_ref))
    }

    pub fn push_refs(&mut self, values: &[ValueRef<'_>]) -> Result<(), MysqlError> {
        self.push_all(values.iter().copied())
    }

    fn push_all<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) -> Result<(), MysqlError> {
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        put_values(values, &mut payload);
        let result = self.push(&payload);
        self.payload = payload;
        result
    }

    /// Adds sorted rows behind the others.
    pub fn append(&mut self, rows: Sorted) {
        self.close();
        self.pieces.push_back(rows);
    }

    fn close(&mut self) {
        self.pieces.extend(self.open.take().map(Sorter::unsorted));
    }

    pub fn len(&self) -> usize {
        self.pieces.iter().map(Sorted::len).sum::<usize>() + self.open.as_ref().map_or(0, Sorter::len)
    }

    /// The payload of the next row.
    pub fn next(&mut self) -> Option<&[u8]> {
        self.close();
        while self.pieces.front().is_some_and(|piece| piece.len() == 0) {
            self.pieces.pop_front();
        }
        self.pieces.front_mut()?.next()
    }
}

/// Appends values as a payload.
pub(crate) fn put_values<'v>(values: impl IntoIterator<Item = ValueRef<'v>>, out: &mut Vec<u8>) {
    values.into_iter().for_each(|value| value::put(value, out));
}

/// The values of a payload.
pub(crate) fn values_of(payload: &[u8]) -> impl Iterator<Item = ValueRef<'_>> {
    let mut reader = Reader::new(payload, "sorted row");
    std::iter::from_fn(move || {
        (reader.remaining() > 0).then(|| value::get(&mut reader).expect("it was written by this statement"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::value_key::append_key;
    use rauk_types::{DataType, Date, DateTime, Decimal, Time};

    #[test]
    fn a_bounded_sort_keeps_the_first_rows_in_order() {
        for (keep, rows) in
            [(0, 1000), (1, 1000), (3, 1000), (100, 1000), (usize::MAX, 1000), (usize::MAX, 60_000), (700, 60_000)]
        {
            let memory = Memory::default();
            let mut sorter = Sorter::new(keep, memory.clone());
            let mut expected = Vec::new();
            for i in 0..rows {
                let v = (i * 7919) % 100;
                let (mut bytes, mut payload) = (Vec::new(), Vec::new());
                append_key(ValueRef::UInt(v), &DataType::BIGINT, true, &mut bytes);
                put_values([ValueRef::UInt(v), ValueRef::UInt(i)], &mut payload);
                sorter.push(&bytes, &payload).unwrap();
                expected.push((std::cmp::Reverse(v), i));
            }
            expected.sort();
            expected.truncate(keep);
            // A bounded sort needs a few times what it keeps.
            assert!(keep == usize::MAX || memory.used() < 64 * 1024 + keep * 300, "{keep}: {}", memory.used());
            let mut sorted = sorter.finish().unwrap();
            let mut got = Vec::new();
            while let Some(payload) = sorted.next() {
                got.push(match values_of(payload).collect::<Vec<_>>()[..] {
                    [ValueRef::UInt(v), ValueRef::UInt(i)] => (std::cmp::Reverse(v), i),
                    _ => unreachable!(),
                });
            }
            assert!(got == expected, "keep {keep} of {rows}");
        }
    }

    /// Keys that differ behind their first bytes, keys that begin like others, and records larger than a piece.
    #[test]
    fn keys_of_all_lengths_are_sorted_whole() {
        let mut keys: Vec<Vec<u8>> = (0..200usize).map(|i| vec![7; i * 37 % 50]).collect();
        keys.extend((0..200u8).map(|i| [vec![7; 9], vec![i.wrapping_mul(59)]].concat()));
        let mut sorter = Sorter::new(usize::MAX, Memory::default());
        for (i, key) in keys.iter().enumerate() {
            let payload = [&key[..], &(i as u32).to_be_bytes(), &vec![1; if i == 3 { 1 << 20 } else { 0 }]].concat();
            sorter.push(key, &payload).unwrap();
        }
        let mut expected: Vec<_> = keys.into_iter().enumerate().map(|(i, key)| (key, i as u32)).collect();
        expected.sort();
        let mut sorted = sorter.finish().unwrap();
        for (key, i) in expected {
            assert!(sorted.next().unwrap().starts_with(&[&key[..], &i.to_be_bytes()].concat()));
        }
        assert!(sorted.next().is_none());
    }

    #[test]
    fn payloads_give_their_values_back() {
        let largest = Decimal::parse_prefix(format!("{}.{}", "9".repeat(35), "9".repeat(30)).as_bytes()).value;
        // With guard digits, as an average has them until its row is sent.
        let third = largest.checked_div_guarded(&Decimal::parse_prefix(b"3").value, 4).unwrap();
        let tiny = Decimal::parse_prefix(format!("0.{}7", "0".repeat(29)).as_bytes()).value;
        let guarded = tiny.checked_div_guarded(&Decimal::parse_prefix(b"7").value, 4).unwrap();
        let end = Date::new(9999, 12, 31).unwrap();
        let (long, bytes) = ("é".repeat(1000), [0xFF; 20]);
        let values = [
            ValueRef::Null,
            ValueRef::Int(i64::MIN),
            ValueRef::UInt(u64::MAX),
            ValueRef::Double(f64::MIN_POSITIVE),
            ValueRef::Decimal(largest),
            ValueRef::Decimal(third),
            ValueRef::Decimal(guarded),
            ValueRef::Date(Date::from_packed(0)),
            ValueRef::Date(end),
            ValueRef::Time(Time::MIN),
            ValueRef::Time(Time::MAX),
            ValueRef::DateTime(DateTime::ZERO),
            ValueRef::DateTime(DateTime::new(end, 86_399_999_999)),
            ValueRef::Timestamp(0),
            ValueRef::Str(""),
            ValueRef::Str(&long),
            ValueRef::Bytes(&bytes),
        ];
        let mut payload = Vec::new();
        put_values(values, &mut payload);
        assert!(values_of(&payload).eq(values));
    }

    #[test]
    fn a_row_takes_its_bytes_and_little_more() {
        let memory = Memory::limited(100 << 20);
        let mut sorter = Sorter::new(usize::MAX, memory.clone());
        let text = "x".repeat(184);
        let mut payload = Vec::new();
        for i in 0..100_000i64 {
            payload.clear();
            put_values([ValueRef::Int(i), ValueRef::Int(i % 977), ValueRef::Str(&text)], &mut payload);
            let mut key = Vec::new();
            append_key(ValueRef::Int(i % 977), &DataType::BIGINT, false, &mut key);
            sorter.push(&key, &payload).unwrap();
        }
        let each = memory.used() / 100_000;
        assert!((200..260).contains(&each), "{each} bytes a row");
    }

    #[test]
    fn a_sort_ends_when_its_statement_has_to() {
        let interrupt = std::sync::Arc::new(rauk_node::Interrupt::default());
        let runtime = rauk_node::Threads::start().unwrap();
        let memory = Memory::new(Default::default(), 1 << 30, crate::memory::Watch::new(interrupt.clone(), runtime));
        let mut sorter = Sorter::new(usize::MAX, memory);
        (0..100_000u32).for_each(|i| sorter.push(&i.wrapping_mul(2_654_435_761).to_be_bytes(), &[]).unwrap());
        interrupt.kill();
        assert_eq!(sorter.finish().err().map(|error| error.code), Some(1317));
    }
}
