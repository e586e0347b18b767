//! Rows and keys of a join that are kept in memory: their bytes, one behind the other, and a hash index over them.
//!
//! A stored row is kept as the bytes that it is stored as, so a copy costs one move of memory and its columns are read when
//! they are asked for. Pieces of memory never move. A row takes its bytes and [`Place`]; in the index it takes [`Link`] and a
//! head. Links of equal hashes form chains in the order in which they were added.
//!
//! The index knows hashes and no keys: whoever finds a row by it checks that it is the right one. Two 64-bit hashes that are
//! equal by chance cost a check, nothing more.
//!
//! All memory is counted before it is allocated; [`Kept::release`] and [`HashIndex::release`] give it back.

use crate::memory::Memory;
use rauk_types::MysqlError;
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

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

    /// Gives back what it has taken; it is empty then.
    pub fn release(&mut self, memory: &Memory) {
        memory.give(self.taken);
        *self = Kept::default();
    }
}

/// No link.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Link {
    hash: u64,
    row: u32,
    /// The next link of the same head.
    next: u32,
}

/// Numbers of rows by the hash of their keys.
#[derive(Default)]
pub(crate) struct HashIndex {
    links: Vec<Link>,
    /// A power of two of them; the first link of each.
    heads: Vec<u32>,
    taken: usize,
}

pub(crate) fn hash_of(key: &[u8]) -> u64 {
    FxBuildHasher.hash_one(key)
}

impl HashIndex {
    /// Adds a row. It is found when [`HashIndex::link`] has been called.
    pub fn add(&mut self, hash: u64, row: usize, memory: &Memory) -> Result<(), MysqlError> {
        grow(&mut self.links, &mut self.taken, memory)?;
        let row = u32::try_from(row).expect("a table in memory has fewer than 2^32 rows");
        self.links.push(Link { hash, row, next: NONE });
        Ok(())
    }

    /// Adds a row that is found at once. Chains may be out of order.
    pub fn add_now(&mut self, hash: u64, row: usize, memory: &Memory) -> Result<(), MysqlError> {
        self.add(hash, row, memory)?;
        if self.links.len() > self.heads.len() {
            return self.link(memory);
        }
        let number = self.links.len() - 1;
        let head = hash as usize & (self.heads.len() - 1);
        self.links[number].next = std::mem::replace(&mut self.heads[head], number as u32);
        Ok(())
    }

    /// Makes all rows findable.
    pub fn link(&mut self, memory: &Memory) -> Result<(), MysqlError> {
        if self.links.is_empty() {
            return Ok(());
        }
        let count = (self.links.len() + self.links.len() / 2).next_power_of_two();
        if count != self.heads.len() {
            memory.take(count * size_of::<u32>())?;
            self.taken += count * size_of::<u32>();
            let before = self.heads.len() * size_of::<u32>();
            memory.give(before);
            self.taken -= before;
        }
        self.heads.clear();
        self.heads.resize(count, NONE);
        // From the end, so that chains have the order of the rows.
        for number in (0..self.links.len()).rev() {
            let link = &mut self.links[number];
            let head = &mut self.heads[link.hash as usize & (count - 1)];
            link.next = std::mem::replace(head, number as u32);
        }
        Ok(())
    }

    /// The rows with this hash.
    #[inline]
    pub fn find(&self, hash: u64) -> Found {
        let next = match self.heads.len() {
            0 => NONE,
            count => self.heads[hash as usize & (count - 1)],
        };
        Found { hash, next }
    }

    pub fn release(&mut self, memory: &Memory) {
        memory.give(self.taken);
        *self = HashIndex::default();
    }
}

/// Rows with one hash, as far as they have not been looked at.
pub(crate) struct Found {
    hash: u64,
    next: u32,
}

impl Found {
    pub fn nothing() -> Found {
        Found { hash: 0, next: NONE }
    }

    #[inline]
    pub fn next(&mut self, index: &HashIndex) -> Option<usize> {
        while self.next != NONE {
            let link = &index.links[self.next as usize];
            self.next = link.next;
            if link.hash == self.hash {
                return Some(link.row as usize);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(index: &HashIndex, hash: u64) -> Vec<usize> {
        let mut found = index.find(hash);
        std::iter::from_fn(|| found.next(index)).collect()
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
        let (mut later, mut now) = (HashIndex::default(), HashIndex::default());
        assert!(rows(&later, 3).is_empty());
        later.link(&memory).unwrap();
        for row in 0..10_000 {
            later.add(hash_of(&[(row % 100) as u8]), row, &memory).unwrap();
            now.add_now(row as u64 * 2, row, &memory).unwrap();
            assert_eq!(rows(&now, row as u64 * 2), [row]);
        }
        later.link(&memory).unwrap();
        for key in 0..100 {
            let expected: Vec<usize> = (0..100).map(|round| round * 100 + key).collect();
            assert_eq!(rows(&later, hash_of(&[key as u8])), expected);
        }
        assert!(rows(&later, 1).is_empty() && rows(&now, 1).is_empty());
        assert_eq!((rows(&now, 0), now.links.len()), (vec![0], 10_000));
        later.release(&memory);
        now.release(&memory);
        assert_eq!(memory.used(), 0);
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
