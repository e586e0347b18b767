//! Aggregates over vectors, and the groups of rows.
//!
//! The states are those of the push form ([`State`](crate::exec::group::State)); a kernel adds many rows to them at once. Without GROUP BY each
//! aggregate has one state, and a batch adds one sum to it.
//!
//! With GROUP BY a row's group is looked up by the words of its keys ([`GroupCache`]): equal words are equal keys, whatever their types and collations. Words that
//! are not known yet go the way of the push form, by the memcomparable key, and so do texts of more than seven bytes: different words may still be
//! one group. The cache has a bound; what does not fit goes that way too.

use super::batch::{Batch, Selection, Validity, Values, Vector};
use crate::exec::group::Grouper;
use crate::expr::{Aggregate, Context};
use hashbrown::HashTable;
use jiff::tz::TimeZone;
use rauk_types::{FieldKind, MysqlError};
use std::borrow::Cow;

/// Keys that a cache has at most: more than batches of few groups have.
const MOST_KEYS: usize = 4096;
/// Longest text that is a word.
const WORD_BYTES: usize = 7;

/// What one aggregate does with a vector, by the number of its node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fold {
    /// COUNT(*).
    Rows,
    Count(usize),
    Exact(usize),
    Doubles(usize),
    /// MIN, MAX.
    Extreme(usize),
}

/// Adds the rows of vectors to the only group. Errors: a sum beyond DECIMAL, memory.
pub(super) fn add_all(
    folds: &[Fold],
    aggregates: &[Aggregate],
    vectors: &[Cow<'_, Vector>],
    rows: usize,
    grouper: &mut Grouper<'_>,
) -> Result<(), MysqlError> {
    let memory = grouper.memory().clone();
    for (number, (fold, aggregate)) in folds.iter().zip(aggregates).enumerate() {
        let state = &mut grouper.states()[number];
        match *fold {
            Fold::Rows => state.add_count(rows as u64),
            Fold::Count(of) => state.add_count((rows - vectors[of].validity.nulls()) as u64),
            Fold::Exact(of) => {
                let vector = &*vectors[of];
                let (count, scale) = ((rows - vector.validity.nulls()) as u64, exact_scale(vector.kind));
                match total(vector) {
                    Some(sum) => state.add_exact(sum, scale, count, aggregate.function)?,
                    // More than 128 bits hold: one by one.
                    None => for_each_exact(vector, |_, value| state.add_exact(value, scale, 1, aggregate.function))?,
                }
            }
            Fold::Doubles(of) => {
                let Vector { values: Values::Words(words), validity, .. } = &*vectors[of] else {
                    unreachable!("doubles are words")
                };
                match validity.has_nulls() {
                    false => state.add_doubles(words.iter().map(|&word| f64::from_bits(word))),
                    true => state.add_doubles(valid(words, validity).map(|(_, word)| f64::from_bits(word))),
                }
            }
            Fold::Extreme(of) => {
                let vector = &*vectors[of];
                let less = aggregate.function == crate::expr::AggregateFunction::Min;
                match best(vector, less) {
                    Some(row) => state.offer(vector.value(row), aggregate, &memory)?,
                    None => {
                        for row in (0..rows).filter(|&row| vector.validity.is_valid(row)) {
                            state.offer(vector.value(row), aggregate, &memory)?;
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// Adds each row of vectors to its group.
pub(super) fn add_grouped(
    folds: &[Fold],
    aggregates: &[Aggregate],
    vectors: &[Cow<'_, Vector>],
    groups: &[u32],
    grouper: &mut Grouper<'_>,
) -> Result<(), MysqlError> {
    let memory = grouper.memory().clone();
    let width = aggregates.len();
    for (number, (fold, aggregate)) in folds.iter().zip(aggregates).enumerate() {
        let states = grouper.states();
        let place = |group: u32| group as usize * width + number;
        match *fold {
            Fold::Rows => groups.iter().for_each(|&group| states[place(group)].add_count(1)),
            Fold::Count(of) => {
                let validity = &vectors[of].validity;
                for (row, &group) in groups.iter().enumerate() {
                    states[place(group)].add_count(u64::from(validity.is_valid(row)));
                }
            }
            Fold::Exact(of) => {
                let vector = &*vectors[of];
                let scale = exact_scale(vector.kind);
                for_each_exact(vector, |row, value| {
                    states[place(groups[row])].add_exact(value, scale, 1, aggregate.function)
                })?;
            }
            Fold::Doubles(of) => {
                let vector = &*vectors[of];
                for (row, word) in valid(vector.words(), &vector.validity) {
                    states[place(groups[row])].add_doubles(std::iter::once(f64::from_bits(word)));
                }
            }
            Fold::Extreme(of) => {
                let vector = &*vectors[of];
                for (row, &group) in groups.iter().enumerate() {
                    if vector.validity.is_valid(row) {
                        states[place(group)].offer(vector.value(row), aggregate, &memory)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn exact_scale(kind: FieldKind) -> u8 {
    super::number::scale_of(kind).expect("the plan adds exact numbers")
}

fn valid<'v>(words: &'v [u64], validity: &'v Validity) -> impl Iterator<Item = (usize, u64)> + 'v {
    words.iter().enumerate().filter(|(row, _)| validity.is_valid(*row)).map(|(row, &word)| (row, word))
}

/// The sum of exact numbers, unscaled; `None`: it is beyond 128 bits.
fn total(vector: &Vector) -> Option<i128> {
    let validity = &vector.validity;
    match (&vector.values, vector.kind, validity.has_nulls()) {
        (Values::Wide(values), ..) => values
            .iter()
            .enumerate()
            .filter(|(row, _)| validity.is_valid(*row))
            .try_fold(0i128, |sum, (_, &value)| sum.checked_add(value)),
        // 1 024 words of 64 bits are far from 128.
        (Values::Words(words), FieldKind::UInt, false) => Some(words.iter().map(|&word| i128::from(word)).sum()),
        (Values::Words(words), FieldKind::UInt, true) => {
            Some(valid(words, validity).map(|(_, word)| i128::from(word)).sum())
        }
        (Values::Words(words), _, false) => Some(words.iter().map(|&word| i128::from(word as i64)).sum()),
        (Values::Words(words), _, true) => Some(valid(words, validity).map(|(_, word)| i128::from(word as i64)).sum()),
        (Values::Bytes { .. }, ..) => unreachable!("bytes are no numbers"),
    }
}

/// Gives every value that is not NULL to `take`, unscaled.
#[inline]
fn for_each_exact(
    vector: &Vector,
    mut take: impl FnMut(usize, i128) -> Result<(), MysqlError>,
) -> Result<(), MysqlError> {
    let (validity, nulls) = (&vector.validity, vector.validity.has_nulls());
    let skipped = |row: usize| nulls && !validity.is_valid(row);
    match &vector.values {
        Values::Wide(values) => {
            for (row, &value) in values.iter().enumerate() {
                if !skipped(row) {
                    take(row, value)?;
                }
            }
        }
        _ => {
            let unsigned = vector.kind == FieldKind::UInt;
            for (row, &word) in vector.words().iter().enumerate() {
                if !skipped(row) {
                    take(row, if unsigned { word.into() } else { (word as i64).into() })?;
                }
            }
        }
    }
    Ok(())
}

/// The first row of the least or greatest value; `None`: there is no kernel for it, or no value.
fn best(vector: &Vector, less: bool) -> Option<usize> {
    let Values::Words(words) = &vector.values else { return None };
    let better = |word: u64, known: u64| -> bool {
        let (word, known) = if less { (word, known) } else { (known, word) };
        match vector.kind {
            FieldKind::UInt | FieldKind::Date | FieldKind::DateTime => word < known,
            FieldKind::Double => f64::from_bits(word) < f64::from_bits(known),
            _ => (word as i64) < (known as i64),
        }
    };
    let mut found: Option<(usize, u64)> = None;
    for (row, &word) in words.iter().enumerate() {
        if found.is_none_or(|(_, known)| better(word, known)) && vector.validity.is_valid(row) {
            found = Some((row, word));
        }
    }
    found.map(|(row, _)| row)
}

/// The groups of keys that were seen.
pub(super) struct GroupCache {
    /// Words of one key: those of its parts, and one that says which parts are NULL.
    width: usize,
    /// The parts' words, key after key.
    keys: Vec<u64>,
    groups: Vec<u32>,
    /// Numbers of keys, with a part of their hash.
    table: HashTable<(u32, u32)>,
    /// Room for the words of a batch, and for its rows whose words do not say all.
    words: Vec<u64>,
    long: Vec<bool>,
}

impl GroupCache {
    pub fn new() -> GroupCache {
        GroupCache { width: 0, keys: vec![], groups: vec![], table: HashTable::new(), words: vec![], long: vec![] }
    }

    /// Bytes of its room.
    pub fn room(&self) -> usize {
        (self.keys.capacity() + self.words.capacity()) * 8 + self.groups.capacity() * 4 + self.table.capacity() * 9
    }

    /// Finds the group of each selected row; `keys` has the keys of these rows.
    pub fn find(
        &mut self,
        keys: &[&Vector],
        (batch, selection, zone): (&Batch<'_>, &Selection, &TimeZone),
        grouper: &mut Grouper<'_>,
        context: &mut Context,
        out: &mut Vec<u32>,
    ) -> Result<(), MysqlError> {
        out.clear();
        self.fill(keys, selection.rows.len());
        let width = self.width;
        for (number, &row) in selection.rows.iter().enumerate() {
            let words = &self.words[number * width..(number + 1) * width];
            if self.long[number] {
                out.push(grouper.group_of(&batch.row(row as usize, zone), context)? as u32);
                continue;
            }
            // Rows of one group often lie together.
            if let Some(last) = number.checked_sub(1)
                && !self.long[last]
                && self.words[last * width..number * width] == *words
            {
                out.push(out[last]);
                continue;
            }
            let hash = spread(words);
            let short = (hash >> 32) as u32;
            let is_it = |&(known, key): &(u32, u32)| {
                known == short && self.keys[key as usize * width..(key as usize + 1) * width] == *words
            };
            if let Some(&(_, key)) = self.table.find(hash, is_it) {
                out.push(self.groups[key as usize]);
                continue;
            }
            let group = grouper.group_of(&batch.row(row as usize, zone), context)? as u32;
            if self.groups.len() < MOST_KEYS {
                let key = self.groups.len() as u32;
                self.keys.extend_from_slice(words);
                self.groups.push(group);
                let keys = &self.keys;
                self.table.insert_unique(hash, (short, key), |&(_, key)| {
                    spread(&keys[key as usize * width..(key as usize + 1) * width])
                });
            }
            out.push(group);
        }
        Ok(())
    }

    /// Writes the words of a batch's keys.
    fn fill(&mut self, keys: &[&Vector], rows: usize) {
        let words_of = |vector: &Vector| if matches!(vector.values, Values::Wide(_)) { 2 } else { 1 };
        let width = 1 + keys.iter().map(|key| words_of(key)).sum::<usize>();
        if width != self.width {
            // A decimal that needs more bits than before: words of other keys mean something else.
            self.width = width;
            self.keys.clear();
            self.groups.clear();
            self.table.clear();
        }
        self.words.clear();
        self.words.resize(rows * width, 0);
        self.long.clear();
        self.long.resize(rows, false);
        let mut place = 1;
        for (part, key) in keys.iter().enumerate() {
            let out = self.words.chunks_exact_mut(width);
            match &key.values {
                Values::Words(words) => out.zip(words).for_each(|(out, &word)| out[place] = word),
                Values::Wide(values) => out.zip(values).for_each(|(out, &value)| {
                    (out[place], out[place + 1]) = (value as u64, (value >> 64) as u64);
                }),
                Values::Bytes { .. } => {
                    for (row, out) in out.enumerate() {
                        let bytes = key.bytes(row);
                        if bytes.len() > WORD_BYTES {
                            self.long[row] = true;
                            continue;
                        }
                        let mut word = [0; 8];
                        word[..bytes.len()].copy_from_slice(bytes);
                        word[WORD_BYTES] = bytes.len() as u8;
                        out[place] = u64::from_le_bytes(word);
                    }
                }
            }
            if key.validity.has_nulls() {
                for (row, out) in self.words.chunks_exact_mut(width).enumerate() {
                    if !key.validity.is_valid(row) {
                        // Of a computed NULL the word is anything.
                        out[place..place + words_of(key)].fill(0);
                        match part {
                            0..64 => out[0] |= 1 << part,
                            _ => self.long[row] = true,
                        }
                    }
                }
            }
            place += words_of(key);
        }
    }
}

/// A hash of all words, of which the table takes both ends.
#[inline]
fn spread(words: &[u64]) -> u64 {
    match words {
        // The one word beside that of the NULLs.
        &[nulls, word] => {
            let product =
                u128::from(word ^ nulls.rotate_left(17)).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            (product as u64) ^ (product >> 64) as u64
        }
        words => words.iter().fold(0, |hash: u64, &word| {
            let product = u128::from(hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            (product as u64).rotate_left(23) ^ (product >> 64) as u64
        }),
    }
}
