//! A sorted block of index entries packed into one byte vector.
//!
//! An entry is its key followed by the row id, big-endian. The keys of one index are prefix-free (crate `types`, module `key`), so the
//! order of these bytes is the order of (key, row id). As long as all entries of a block have one length only that length is
//! kept; the first entry of another length gives the block an end offset for each.

use crate::row_store::RowId;
use std::cmp::Ordering;

pub(super) const ID_BYTES: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    /// End of each entry, while their lengths differ; empty otherwise.
    ends: Vec<u16>,
    /// Length of every entry while `ends` is empty.
    stride: u16,
    count: u16,
}

impl Keys {
    #[inline]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    pub fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 2
    }

    #[inline]
    fn bounds(&self, i: usize) -> (usize, usize) {
        if self.ends.is_empty() {
            let stride = self.stride as usize;
            (i * stride, (i + 1) * stride)
        } else {
            (if i == 0 { 0 } else { self.ends[i - 1] as usize }, self.ends[i] as usize)
        }
    }

    /// The entry's bytes: key and row id.
    #[inline]
    pub fn entry(&self, i: usize) -> &[u8] {
        let (start, end) = self.bounds(i);
        &self.bytes[start..end]
    }

    #[inline]
    pub fn key(&self, i: usize) -> &[u8] {
        let entry = self.entry(i);
        &entry[..entry.len() - ID_BYTES]
    }

    #[inline]
    pub fn id(&self, i: usize) -> RowId {
        let entry = self.entry(i);
        let id = entry[entry.len() - ID_BYTES..].try_into().expect("4 bytes");
        RowId(u32::from_be_bytes(id))
    }

    /// The number of entries for which `before` holds; it must hold for a beginning of the block.
    #[inline]
    pub fn partition_point(&self, mut before: impl FnMut(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            if before(self.entry(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Makes room for one more entry of `len` bytes without doubling: blocks are many and stay near their size.
    fn reserve(&mut self, len: usize) {
        if self.bytes.capacity() - self.bytes.len() < len {
            self.bytes.reserve_exact((self.bytes.len() / 4).max(len * 4));
        }
        if !self.ends.is_empty() && self.ends.capacity() == self.ends.len() {
            self.ends.reserve_exact((self.ends.len() / 4).max(8));
        }
    }

    pub fn insert(&mut self, i: usize, key: &[u8], id: RowId) {
        let len = key.len() + ID_BYTES;
        if self.count == 0 {
            self.ends.clear();
            self.stride = len as u16;
        } else if self.ends.is_empty() && self.stride as usize != len {
            self.ends.reserve_exact(self.len() + 8);
            let stride = self.stride;
            self.ends.extend((1..=self.count).map(|n| n * stride));
        }
        self.reserve(len);
        let start = if i == self.len() { self.bytes.len() } else { self.bounds(i).0 };
        let tail = self.bytes.len() - start;
        self.bytes.resize(start + tail + len, 0);
        self.bytes.copy_within(start..start + tail, start + len);
        self.bytes[start..start + key.len()].copy_from_slice(key);
        self.bytes[start + key.len()..start + len].copy_from_slice(&id.0.to_be_bytes());
        if !self.ends.is_empty() {
            for end in &mut self.ends[i..] {
                *end += len as u16;
            }
            self.ends.insert(i, (start + len) as u16);
        }
        self.count += 1;
    }

    pub fn insert_entry(&mut self, i: usize, entry: &[u8]) {
        let (key, id) = split_entry(entry);
        self.insert(i, key, id);
    }

    pub fn remove(&mut self, i: usize) {
        let (start, end) = self.bounds(i);
        self.bytes.drain(start..end);
        if !self.ends.is_empty() {
            self.ends.remove(i);
            for later in &mut self.ends[i..] {
                *later -= (end - start) as u16;
            }
        }
        self.count -= 1;
    }

    /// Cuts the block at entry `at`; gives the upper part.
    pub fn split_off(&mut self, at: usize) -> Keys {
        let mut upper = Keys::default();
        let start = if at == self.len() { self.bytes.len() } else { self.bounds(at).0 };
        upper.count = self.count - at as u16;
        upper.stride = self.stride;
        upper.bytes.reserve_exact((self.bytes.len() - start) * 5 / 4);
        upper.bytes.extend_from_slice(&self.bytes[start..]);
        if !self.ends.is_empty() {
            upper.ends.extend(self.ends[at..].iter().map(|e| e - start as u16));
            self.ends.truncate(at);
            self.ends.shrink_to_fit();
        }
        self.bytes.truncate(start);
        self.bytes.shrink_to(start * 5 / 4);
        self.count = at as u16;
        upper
    }

    pub fn append(&mut self, upper: &Keys) {
        for i in 0..upper.len() {
            self.insert_entry(self.len(), upper.entry(i));
        }
    }

    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

#[inline]
pub(super) fn split_entry(entry: &[u8]) -> (&[u8], RowId) {
    let (key, id) = entry.split_at(entry.len() - ID_BYTES);
    (key, RowId(u32::from_be_bytes(id.try_into().expect("4 bytes"))))
}

/// Compares bytes; most keys differ in their first eight, which are compared as one number.
#[inline]
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if let (Some(x), Some(y)) = (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        let (x, y) = (u64::from_be_bytes(*x), u64::from_be_bytes(*y));
        if x != y {
            return x.cmp(&y);
        }
    }
    a.cmp(b)
}

/// Compares an entry with (key, id).
#[inline]
pub(super) fn compare_entry(entry: &[u8], key: &[u8], id: RowId) -> Ordering {
    let (entry_key, entry_id) = split_entry(entry);
    compare(entry_key, key).then(entry_id.cmp(&id))
}
