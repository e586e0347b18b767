//! Values that lie beside their row, and rows whose values do.
//!
//! *Why.* A row with ten documents of 16 MiB is changed one document at a time. If its bytes were one piece, every version of the row would be a copy of all ten: in
//! memory, in the log, on the way to the replicas. So a partition that stores a row takes the values over [`LARGE_VALUE`] bytes out of it. Each becomes a
//! [`LargeValue`]: immutable, counted, shared by all versions of the row that have it, and freed with the last of them.
//!
//! *Forms of a row.* Everywhere else a row is *whole*: the bytes that [`encode_row`](super::encode_row) makes. What a partition keeps of a row with large values is a *head*, the same bytes
//! with four-byte end offsets in which a value that lies beside has the bit [`OUTSIDE`] on its end and, as its bytes, its place among the
//! values beside (u32). A row without large values is its own head. A [`RowImage`] is a head with the values beside, and reads as the whole row does;
//! [`take_apart`] and [`RowImage::append_whole`] lead from one form to the other and back, byte for byte.
//!
//! *What goes over wires and into logs* is the whole row, or a [`sparse`](super::sparse) one, which names the values that the version before has too.
//!
//! *Memory.* Whoever makes a large value has counted its bytes with its [`Account`], which gets them back when the last reference goes, wherever that is.

use super::{RowLayout, WIDE, array, offset_width};
use std::fmt;
use std::sync::Arc;

/// Values of more bytes lie beside the row.
pub const LARGE_VALUE: usize = 8 << 10;
/// Of an end offset in a head: the value lies beside.
const OUTSIDE: u32 = 1 << 31;
/// Bytes in the head for a value that lies beside.
const PLACE_BYTES: usize = 4;

/// Who has counted the bytes of a large value.
pub trait Account: Send + Sync {
    fn give_back(&self, bytes: u64);
}

/// An immutable value that rows share.
#[derive(Clone)]
pub struct LargeValue(Arc<Held>);

struct Held {
    bytes: Box<[u8]>,
    hash: u128,
    account: Arc<dyn Account>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.give_back(LargeValue::counted(self.bytes.len()));
    }
}

impl LargeValue {
    /// A copy of these bytes. The caller has counted [`LargeValue::counted`] with the account.
    pub fn new(bytes: &[u8], account: Arc<dyn Account>) -> LargeValue {
        LargeValue(Arc::new(Held { bytes: bytes.into(), hash: xxhash_rust::xxh3::xxh3_128(bytes), account }))
    }

    /// Damaged memory, for tests of what finds that: the same value with a bit flipped, counted by nobody.
    #[doc(hidden)]
    pub fn damaged(&self, bit: usize) -> LargeValue {
        struct Nobody;
        impl Account for Nobody {
            fn give_back(&self, _: u64) {}
        }
        let mut bytes = self.0.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        LargeValue(Arc::new(Held { bytes, hash: self.0.hash, account: Arc::new(Nobody) }))
    }

    /// What a value of this length takes of memory.
    pub fn counted(length: usize) -> u64 {
        (length + size_of::<Held>() + 2 * size_of::<usize>()) as u64
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    #[expect(clippy::len_without_is_empty, reason = "a large value is never empty")]
    pub fn len(&self) -> usize {
        self.0.bytes.len()
    }

    /// By which one finds the value among those of a row: of its bytes.
    pub fn hash(&self) -> u128 {
        self.0.hash
    }

    /// Whether both are one value in memory.
    pub fn is_same(&self, other: &LargeValue) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PartialEq for LargeValue {
    fn eq(&self, other: &LargeValue) -> bool {
        self.is_same(other) || self.bytes() == other.bytes()
    }
}

impl fmt::Debug for LargeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LargeValue({} bytes, {:032x})", self.len(), self.hash())
    }
}

/// A row as it is read: its head, and the values beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowImage<'a> {
    pub head: &'a [u8],
    pub beside: &'a [LargeValue],
}

/// A whole row.
impl<'a> From<&'a [u8]> for RowImage<'a> {
    #[inline]
    fn from(head: &'a [u8]) -> RowImage<'a> {
        RowImage { head, beside: &[] }
    }
}

impl<'a> From<&'a Vec<u8>> for RowImage<'a> {
    #[inline]
    fn from(row: &'a Vec<u8>) -> RowImage<'a> {
        row.as_slice().into()
    }
}

impl<'a> RowImage<'a> {
    /// Bytes of the row, of the values beside it too.
    #[inline]
    pub fn size(&self) -> usize {
        match self.beside {
            [] => self.head.len(),
            beside => self.head.len() + beside.iter().map(LargeValue::len).sum::<usize>(),
        }
    }

    /// Appends the whole row to `out`.
    #[inline]
    pub fn append_whole(&self, layout: &RowLayout, out: &mut Vec<u8>) {
        match self.beside {
            [] => out.extend_from_slice(self.head),
            _ => self.append_values(layout, &[], out),
        }
    }

    /// Appends the whole row, with the variable columns of these numbers empty.
    #[cold]
    pub(super) fn append_values(&self, layout: &RowLayout, without: &[u16], out: &mut Vec<u8>) {
        let fixed = layout.fixed_end as usize;
        let value = |number: u16| if without.contains(&number) { &[][..] } else { layout.variable(number, *self) };
        let values = (0..layout.variable_columns).map(|number| value(number as u16));
        let variable_bytes = values.clone().map(<[u8]>::len).sum();
        let width = offset_width(variable_bytes);
        let start = out.len();
        out.reserve(fixed + layout.variable_columns as usize * width + variable_bytes);
        out.extend_from_slice(&self.head[..fixed]);
        if width == 2 {
            out[start] &= !WIDE;
        }
        let mut end = 0;
        for value in values.clone() {
            end += value.len() as u32;
            out.extend_from_slice(&end.to_le_bytes()[..width]);
        }
        values.for_each(|value| out.extend_from_slice(value));
    }

    /// The whole row: `room` is where it is put together, if it must be.
    pub fn whole<'r>(&self, layout: &RowLayout, room: &'r mut Vec<u8>) -> &'r [u8]
    where
        'a: 'r,
    {
        if self.beside.is_empty() {
            return self.head;
        }
        room.clear();
        self.append_values(layout, &[], room);
        room
    }
}

impl RowLayout {
    /// The bytes of the variable column with this number.
    #[inline]
    pub(super) fn variable<'a>(&self, number: u16, row: RowImage<'a>) -> &'a [u8] {
        let RowImage { head: bytes, beside } = row;
        let (at, number) = (self.fixed_end as usize, usize::from(number));
        if bytes[0] & WIDE == 0 {
            let offset = |i: usize| usize::from(u16::from_le_bytes(array(bytes, at + 2 * i)));
            let (start, end) = (if number == 0 { 0 } else { offset(number - 1) }, offset(number));
            let data = self.variable_columns as usize * 2;
            return &bytes[at + data + start..at + data + end];
        }
        let offset = |i: usize| u32::from_le_bytes(array(bytes, at + 4 * i));
        let start = if number == 0 { 0 } else { (offset(number - 1) & !OUTSIDE) as usize };
        let end = offset(number);
        let data = at + self.variable_columns as usize * 4;
        if end & OUTSIDE == 0 {
            return &bytes[data + start..data + end as usize];
        }
        let place = u32::from_le_bytes(array(bytes, data + start));
        beside[place as usize].bytes()
    }

    /// Whether a whole row has values that are to lie beside it.
    #[inline]
    pub fn has_large(&self, row: &[u8]) -> bool {
        row.len() > LARGE_VALUE && self.lengths(row).any(|length| length > LARGE_VALUE)
    }

    fn lengths<'a>(&'a self, row: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        (0..self.variable_columns).map(|number| self.variable(number as u16, row.into()).len())
    }

    /// Whether this has the shape of a row of this layout, as [`RowLayout::holds`] says of a whole one.
    pub fn holds_image(&self, row: RowImage<'_>) -> bool {
        let RowImage { head: bytes, beside } = row;
        if beside.is_empty() {
            return self.holds(bytes);
        }
        let fixed = self.fixed_end as usize;
        let data = fixed + self.variable_columns as usize * 4;
        if self.variable_columns == 0 || bytes.len() < data || bytes[0] & WIDE == 0 {
            return false;
        }
        let (ends, content) = bytes[fixed..].split_at(data - fixed);
        let mut start = 0;
        let slots = self.slots.iter().filter(|slot| slot.codec.is_variable());
        for (slot, end) in slots.zip(ends.as_chunks::<4>().0) {
            let marked = u32::from_le_bytes(*end);
            let end = (marked & !OUTSIDE) as usize;
            let Some(mut value) = content.get(start..end) else { return false };
            if marked & OUTSIDE != 0 {
                let Ok(place) = value.try_into().map(u32::from_le_bytes) else { return false };
                let Some(large) = beside.get(place as usize) else { return false };
                value = large.bytes();
            }
            if !slot.fits(value) {
                return false;
            }
            start = end;
        }
        start == content.len()
    }
}

/// Takes the large values out of a whole row that has some: writes its head into `head` and gives the values, which
/// `make` makes. After an error nothing of them is left.
pub fn take_apart<E>(
    layout: &RowLayout,
    row: &[u8],
    head: &mut Vec<u8>,
    mut make: impl FnMut(&[u8]) -> Result<LargeValue, E>,
) -> Result<Vec<LargeValue>, E> {
    let fixed = layout.fixed_end as usize;
    head.clear();
    head.extend_from_slice(&row[..fixed]);
    head[0] |= WIDE;
    head.resize(fixed + layout.variable_columns as usize * 4, 0);
    let data = head.len();
    let mut beside = Vec::new();
    for number in 0..layout.variable_columns {
        let value = layout.variable(number as u16, row.into());
        let mut mark = 0;
        if value.len() > LARGE_VALUE {
            let place = beside.len() as u32;
            beside.push(make(value)?);
            head.extend_from_slice(&place.to_le_bytes());
            mark = OUTSIDE;
        } else {
            head.extend_from_slice(value);
        }
        let end = (head.len() - data) as u32 | mark;
        let at = fixed + number as usize * 4;
        head[at..at + 4].copy_from_slice(&end.to_le_bytes());
    }
    debug_assert!(beside.len() * PLACE_BYTES <= head.len());
    Ok(beside)
}
