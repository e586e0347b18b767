//! Rows and keys of a join that are kept in memory: their bytes, one behind the other, and hash indexes over them.
//!
//! A stored row is kept as the bytes that it is stored as, so a copy costs one move of memory and its columns are read when
//! they are asked for. Pieces of memory never move. A row takes its bytes and [`Place`]; in the index it takes [`Entry`] and
//! the end of a bucket.
//!
//! [`HashIndex`] is built at once, when all rows are there: entries are sorted by bucket, those of one bucket in the order
//! in which they were added, and the places of stored rows are put into the same order. So a key with many rows is found by
//! one look at the ends of the buckets and one walk over neighbours, and what lies in memory by chance is only the rows
//! themselves, which are fetched ahead. [`KeySet`] keeps keys, each once, and finds them while it grows: it has chains.
//!
//! The index knows hashes and no keys: whoever finds a row by it checks that it is the right one. Two hashes that are
//! equal by chance cost a check, nothing more.
//!
//! All memory is counted before it is allocated; `release` gives it back.

use crate::hash::hash_of;
use crate::memory::Memory;
use rauk_kernel::prefetch;
use rauk_types::MysqlError;

/// Bytes of a piece, once there are some. Longer records have a piece of their own.
const PIECE: usize = 256 << 10;

#[derive(Clone, Copy)]
struct Place {
    piece: u32,
    start: u32,
    length: u32,
    /// The layout of a stored row.
    layout: u16,
}

/// Records in the order in which they came.
#[derive(Default)]
pub(crate) struct Kept {
    pieces: Vec<Vec<u8>>,
    places: Vec<Place>,
    taken: usize,
}

/// Makes room for one more, and counts it: growth by a quarter, so that what is copied stays in proportion.
fn grow<T>(list: &mut Vec<T>, taken: &mut usize, memory: &Memory) -> Result<(), MysqlError> {
    if list.len() < list.capacity() {
        return Ok(());
    }
    let more = (list.len() / 4).max(16);
    memory.take(more * size_of::<T>())?;
    *taken += more * size_of::<T>();
    list.reserve_exact(more);
    Ok(())
}

impl Kept {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Error 1038.
    pub fn push(&mut self, layout: u16, bytes: &[u8], memory: &Memory) -> Result<(), MysqlError> {
        grow(&mut self.places, &mut self.taken, memory)?;
        let fits = self.pieces.last().is_some_and(|piece| piece.capacity() - piece.len() >= bytes.len());
        if !fits {
            // Few rows take little.
            let size = bytes.len().max(PIECE.min(1024 << self.pieces.len().min(8)));
            memory.take(size)?;
            self.taken += size;
            self.pieces.push(Vec::with_capacity(size));
        }
        let number = self.pieces.len() - 1;
        let piece = &mut self.pieces[number];
        let place = Place { piece: number as u32, start: piece.len() as u32, length: bytes.len() as u32, layout };
        piece.extend_from_slice(bytes);
        self.places.push(place);
        Ok(())
    }

    /// The layout and the bytes of a record.
    #[inline]
    pub fn get(&self, number: usize) -> Option<(u16, &[u8])> {
        let place = self.places.get(number)?;
        let start = place.start as usize;
        Some((place.layout, &self.pieces[place.piece as usize][start..start + place.length as usize]))
    }

    /// Asks the processor to fetch a record that will be read soon.
    #[inline]
    fn prefetch(&self, number: usize) {
        let place = &self.places[number];
        prefetch(&self.pieces[place.piece as usize], place.start as usize);
    }

    /// Gives the records new numbers: those of the entries that point to them.
    fn renumber(&mut self, entries: &mut [Entry], memory: &Memory) -> Result<(), MysqlError> {
        assert_eq!(entries.len(), self.places.len(), "every record has an entry");
        let bytes = self.places.len() * size_of::<Place>();
        memory.take(bytes)?;
        let mut places = Vec::with_capacity(self.places.len());
        for (number, entry) in entries.iter_mut().enumerate() {
            places.push(self.places[entry.row as usize]);
            entry.row = number as u32;
        }
        let before = std::mem::replace(&mut self.places, places).capacity() * size_of::<Place>();
        memory.give(before);
        self.taken = self.taken + bytes - before;
        Ok(())
    }

    /// Gives back what it has taken; it is empty then.
    pub fn release(&mut self, memory: &Memory) {
        memory.give(self.taken);
        *self = Kept::default();
    }
}

/// A row that the index does not sort yet.
#[derive(Clone, Copy)]
struct Added {
    hash: u64,
    row: u32,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    /// The half of the hash that says nothing about the bucket.
    tag: u32,
    row: u32,
}

/// Numbers of rows by the hash of their keys.
#[derive(Default)]
pub(crate) struct HashIndex {
    added: Vec<Added>,
    /// By bucket.
    entries: Vec<Entry>,
    /// A power of two of them, and one before: where the entries of each bucket end.
    ends: Vec<u32>,
    taken: usize,
}

fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn number_of(row: usize) -> u32 {
    u32::try_from(row).ok().filter(|row| *row != NONE).expect("a table in memory has fewer than 2^32 rows")
}

impl HashIndex {
    /// Adds a row. It is found when [`HashIndex::link`] has been called.
    pub fn add(&mut self, hash: u64, row: usize, memory: &Memory) -> Result<(), MysqlError> {
        grow(&mut self.added, &mut self.taken, memory)?;
        self.added.push(Added { hash, row: number_of(row) });
        Ok(())
    }

    /// Makes all rows findable, once. `kept`: where the rows are, each of which has an entry; they get new numbers.
    pub fn link(&mut self, kept: Option<&mut Kept>, memory: &Memory) -> Result<(), MysqlError> {
        assert!(self.ends.is_empty(), "the index is built once");
        if self.added.is_empty() {
            return Ok(());
        }
        let count = (self.added.len() + self.added.len() / 2).next_power_of_two();
        let bytes = (count + 1) * size_of::<u32>() + self.added.len() * size_of::<Entry>();
        memory.take(bytes)?;
        self.taken += bytes;
        let bucket = |hash: u64| hash as usize & (count - 1);
        let mut ends = vec![0u32; count + 1];
        for added in &self.added {
            ends[bucket(added.hash) + 1] += 1;
        }
        let mut end = 0;
        for of in &mut ends {
            end += *of;
            *of = end;
        }
        // From the end, so that rows of a bucket stay in their order: `ends[bucket + 1]` goes down to where the bucket begins.
        let mut entries = vec![Entry::default(); self.added.len()];
        for added in self.added.iter().rev() {
            let next = &mut ends[bucket(added.hash) + 1];
            *next -= 1;
            entries[*next as usize] = Entry { tag: tag_of(added.hash), row: added.row };
        }
        // What begins a bucket ends the one before.
        ends.remove(0);
        ends.push(entries.len() as u32);
        self.ends = ends;
        let before = std::mem::take(&mut self.added).capacity() * size_of::<Added>();
        memory.give(before);
        self.taken -= before;
        if let Some(kept) = kept {
            kept.renumber(&mut entries, memory)?;
        }
        self.entries = entries;
        Ok(())
    }

    /// The rows with this hash.
    #[inline]
    pub fn find(&self, hash: u64) -> Found {
        if self.ends.is_empty() {
            return Found::nothing();
        }
        let bucket = hash as usize & (self.ends.len() - 2);
        Found { tag: tag_of(hash), next: self.ends[bucket], end: self.ends[bucket + 1] }
    }

    pub fn release(&mut self, memory: &Memory) {
        memory.give(self.taken);
        *self = HashIndex::default();
    }
}

/// Records that are fetched ahead of the one that is read.
const AHEAD: u32 = 4;

/// Rows with one hash, as far as they have not been looked at.
pub(crate) struct Found {
    tag: u32,
    next: u32,
    end: u32,
}

impl Found {
    pub fn nothing() -> Found {
        Found { tag: 0, next: 0, end: 0 }
    }

    /// The records will be read soon.
    #[inline]
    pub fn prefetch(&self, index: &HashIndex, kept: &Kept) {
        for entry in &index.entries[self.next as usize..self.end.min(self.next + AHEAD) as usize] {
            kept.prefetch(entry.row as usize);
        }
    }

    /// The next row; with `kept` another one behind it is fetched.
    #[inline]
    pub fn next(&mut self, index: &HashIndex, kept: Option<&Kept>) -> Option<usize> {
        while self.next < self.end {
            let entry = index.entries[self.next as usize];
            if let Some(kept) = kept
                && self.next + AHEAD < self.end
            {
                kept.prefetch(index.entries[(self.next + AHEAD) as usize].row as usize);
            }
            self.next += 1;
            if entry.tag == self.tag {
                return Some(entry.row as usize);
            }
        }
        None
    }
}

/// No link.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    hash: u64,
    /// The next key of the same head.
    next: u32,
}

/// Keys, each once.
#[derive(Default)]
pub(crate) struct KeySet {
    keys: Kept,
    /// One a key.
    links: Vec<Link>,
    /// A power of two of them; the first link of each.
    heads: Vec<u32>,
    taken: usize,
}

impl KeySet {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn has(&self, key: &[u8]) -> bool {
        self.finds(hash_of(key), key)
    }

    fn finds(&self, hash: u64, key: &[u8]) -> bool {
        let mut next = match self.heads.len() {
            0 => NONE,
            count => self.heads[hash as usize & (count - 1)],
        };
        while next != NONE {
            let link = &self.links[next as usize];
            if link.hash == hash && self.keys.get(next as usize).is_some_and(|(_, kept)| kept == key) {
                return true;
            }
            next = link.next;
        }
        false
    }

    /// Error 1038.
    pub fn add(&mut self, key: &[u8], memory: &Memory) -> Result<(), MysqlError> {
        let hash = hash_of(key);
        if self.finds(hash, key) {
            return Ok(());
        }
        self.keys.push(0, key, memory)?;
        grow(&mut self.links, &mut self.taken, memory)?;
        let number = number_of(self.links.len());
        self.links.push(Link { hash, next: NONE });
        if self.links.len() > self.heads.len() {
            return self.spread(memory);
        }
        let head = hash as usize & (self.heads.len() - 1);
        self.links[number as usize].next = std::mem::replace(&mut self.heads[head], number);
        Ok(())
    }

    /// Gives all keys more heads.
    fn spread(&mut self, memory: &Memory) -> Result<(), MysqlError> {
        let count = (self.links.len() + self.links.len() / 2).next_power_of_two();
        let before = self.heads.len() * size_of::<u32>();
        memory.take(count * size_of::<u32>())?;
        memory.give(before);
        self.taken = self.taken + count * size_of::<u32>() - before;
        self.heads.clear();
        self.heads.resize(count, NONE);
        for (number, link) in self.links.iter_mut().enumerate() {
            let head = &mut self.heads[link.hash as usize & (count - 1)];
            link.next = std::mem::replace(head, number as u32);
        }
        Ok(())
    }

    pub fn release(&mut self, memory: &Memory) {
        memory.give(self.taken);
        self.keys.release(memory);
        *self = KeySet::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash_of;

    fn rows(index: &HashIndex, hash: u64) -> Vec<usize> {
        let mut found = index.find(hash);
        std::iter::from_fn(|| found.next(index, None)).collect()
    }

    #[test]
    fn records_come_back_as_they_were() {
        let memory = Memory::limited(64 << 20);
        let mut kept = Kept::default();
        let record = |number: usize| vec![number as u8; number * 7 % 3000];
        for number in 0..2000 {
            kept.push(number as u16, &record(number), &memory).unwrap();
        }
        kept.push(9, &vec![1; PIECE * 2], &memory).unwrap();
        assert_eq!(kept.len(), 2001);
        for number in 0..2000 {
            assert_eq!(kept.get(number), Some((number as u16, record(number).as_slice())));
        }
        assert_eq!(kept.get(2000).unwrap().1.len(), PIECE * 2);
        assert!(kept.get(2001).is_none() && memory.used() > PIECE * 2);
        kept.release(&memory);
        assert_eq!((memory.used(), kept.len()), (0, 0));
    }

    #[test]
    fn rows_are_found_by_their_hash_in_their_order() {
        let memory = Memory::limited(64 << 20);
        let mut empty = HashIndex::default();
        assert!(rows(&empty, 3).is_empty());
        empty.link(None, &memory).unwrap();
        assert!(rows(&empty, 3).is_empty() && memory.used() == 0);
        for count in [1, 2, 3, 100, 10_000] {
            let mut index = HashIndex::default();
            for row in 0..count {
                index.add(hash_of(&[(row % 100) as u8]), row, &memory).unwrap();
            }
            index.link(None, &memory).unwrap();
            for key in 0..100 {
                let expected: Vec<usize> = (0..count).filter(|row| row % 100 == key).collect();
                assert_eq!(rows(&index, hash_of(&[key as u8])), expected);
            }
            assert!(rows(&index, 1).is_empty());
            index.release(&memory);
            assert_eq!(memory.used(), 0);
        }
    }

    #[test]
    fn records_keep_their_order_under_new_numbers() {
        let memory = Memory::limited(64 << 20);
        let (mut index, mut kept) = (HashIndex::default(), Kept::default());
        for row in 0..5_000usize {
            index.add(hash_of(&[(row % 7) as u8]), row, &memory).unwrap();
            kept.push((row % 3) as u16, &row.to_le_bytes(), &memory).unwrap();
        }
        index.link(Some(&mut kept), &memory).unwrap();
        for key in 0..7 {
            let mut found = index.find(hash_of(&[key as u8]));
            found.prefetch(&index, &kept);
            let mut expected = (0..5_000usize).filter(|row| row % 7 == key);
            while let Some(number) = found.next(&index, Some(&kept)) {
                let row = expected.next().unwrap();
                assert_eq!(kept.get(number), Some(((row % 3) as u16, &row.to_le_bytes()[..])));
            }
            assert_eq!(expected.next(), None);
        }
        index.release(&memory);
        kept.release(&memory);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_set_has_each_key_once() {
        let memory = Memory::limited(64 << 20);
        let mut set = KeySet::default();
        assert!(!set.has(b""));
        for round in 0..3 {
            for key in 0..2_000u32 {
                assert_eq!(set.has(&key.to_le_bytes()), round > 0);
                set.add(&key.to_le_bytes(), &memory).unwrap();
                assert!(set.has(&key.to_le_bytes()));
            }
        }
        assert!(set.len() == 2_000 && !set.has(&2_000u32.to_le_bytes()));
        set.release(&memory);
        assert_eq!((memory.used(), set.len()), (0, 0));
    }

    #[test]
    fn memory_has_a_limit() {
        let memory = Memory::limited(100 << 10);
        let mut kept = Kept::default();
        let error = (0..10_000).find_map(|_| kept.push(0, &[7; 100], &memory).err()).expect("a megabyte is too much");
        assert_eq!(error.code, 1038);
        let held = kept.len();
        assert!(held > 100 && kept.get(held - 1).is_some());
        kept.release(&memory);
        assert_eq!(memory.used(), 0);
    }
}
