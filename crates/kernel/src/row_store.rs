//! Rows in size-class slabs, under row ids that stay.
//!
//! A row is 16 bytes of header and its encoded bytes, in a slot of the smallest size class that holds both. Slots of one class share
//! pages; a page whose last slot is freed goes back to the allocator, so memory that one table gives back serves any other. The first page of a
//! store has 512 bytes, each new one about as many as all before it, up to 32 KiB: a table of few rows takes little in each of many partitions,
//! and a large one has large pages. A store without rows has allocated nothing. Rows
//! over [`LARGEST_CLASS`] have an allocation of their own, and so have rows with values beside them (`rauk_types::row::large`), whose list it has. The values
//! are shared and counted by themselves.
//!
//! A [`RowId`] indexes a directory of 4-byte locations, so a row that grows into another class keeps its id and no index must
//! change. Ids of removed rows are reused, lowest chain first.
//!
//! ```text
//! directory[id]  = FREE chain | 0b0…  page number (19 bits), unit of 8 bytes in it (12 bits) | 0b1… index of a large row
//! slot           = time u64 | length u32 | layout u16 | flags u8 | spare u8 | bytes …
//! ```
//!
//! A location counts every page as a full one, so reading does not ask for its size. A new page has at least a half of the bytes that the store holds, so few
//! numbers are spent on small ones: as long as pages are not full ones, 64 of them at most.
//!
//! Of each 64 ids a [`Mark`] keeps what of their headers tells most readers all: the newest time in any of them, and one bit a row that says whether
//! there is more of it elsewhere ([`BESIDE`]). Marks of a million rows are 250 KB and stay in a processor's cache, where headers do not.
//!
//! Invariants: a mark is not older than the header of any of its ids without [`BESIDE`], and has their bits; every location in use points to exactly one slot; a page's live count is the number of its slots in use; `bytes` equals
//! what was added to the budget and not subtracted. Not here: what the bytes mean, versions, locks.

use crate::budget::{MemoryBudget, MemoryFull, Purpose};
use crate::prefetch::prefetch;
use rauk_types::{LargeValue, RowImage, Timestamp};
use std::sync::Arc;

/// A row of one table in one partition. Stable while the row (with its history) lives; reused after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub u32);

/// Where a row lies, until the store changes.
#[derive(Clone, Copy, Debug)]
pub struct Location(u32);

impl Location {
    /// Of no row.
    pub const NONE: Location = Location(u32::MAX);
}

/// What stands before a row's bytes: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowHeader {
    /// Commit time of the inline version; [`Timestamp::ZERO`] while the inline version is an uncommitted insert.
    pub time: Timestamp,
    /// Layout version of the inline bytes.
    pub layout: u16,
    /// Bits that belong to the partition (tombstone, has side-table entries, …).
    pub flags: u8,
}

/// The one flag that means something here: there is more to be known of the row than its header and bytes.
pub const BESIDE: u8 = 4;

/// What 64 rows have in common.
#[derive(Clone, Copy, Default)]
struct Mark {
    /// No header without [`BESIDE`] is newer.
    newest: Timestamp,
    /// One bit an id: its header has the flag [`BESIDE`].
    beside: u64,
}

pub const HEADER_BYTES: usize = 16;
/// The smallest page, and the largest.
const FIRST_PAGE_BYTES: usize = 512;
const PAGE_BYTES: usize = 32 * 1024;
const UNIT: usize = 8;
/// Of a full page.
const UNITS_PER_PAGE: u32 = (PAGE_BYTES / UNIT) as u32;
/// Largest slot, header included; larger rows are allocated one by one.
pub const LARGEST_CLASS: usize = 4096;
const LARGE: u32 = 1 << 31;
const END: u32 = u32::MAX;
const CACHE_LINE: usize = 64;
/// Of a row, so much is fetched ahead; the processor sees by itself that the rest follows.
const PREFETCHED: usize = 256;

const CLASSES: usize = 62;
/// Slot sizes: every 8 bytes up to 256, then steps of an eighth of the power of two above.
static CLASS_SIZES: [u16; CLASSES] = class_sizes();
/// Class of a slot size in units, rounded up.
static CLASS_OF_UNITS: [u8; LARGEST_CLASS / UNIT + 1] = class_of_units();

const fn class_sizes() -> [u16; CLASSES] {
    let mut sizes = [0; CLASSES];
    let (mut class, mut size) = (0, 3 * UNIT);
    while class < CLASSES {
        sizes[class] = size as u16;
        size += if size < 256 { UNIT } else { (size + 1).next_power_of_two() / 16 };
        class += 1;
    }
    assert!(sizes[CLASSES - 1] as usize == LARGEST_CLASS);
    sizes
}

const fn class_of_units() -> [u8; LARGEST_CLASS / UNIT + 1] {
    let sizes = class_sizes();
    let mut classes = [0; LARGEST_CLASS / UNIT + 1];
    let (mut units, mut class) = (0, 0);
    while units < classes.len() {
        if units * UNIT > sizes[class] as usize {
            class += 1;
        }
        classes[units] = class as u8;
        units += 1;
    }
    classes
}

struct Page {
    bytes: Box<[u8]>,
    class: u8,
    live: u16,
    /// Slots from here on were never used.
    fresh: u16,
    /// Chain of freed slots: slot number, the next one stands in its first two bytes.
    free: u16,
    /// Whether it stands in `open` of its class.
    open: bool,
}

impl Page {
    fn slot_bytes(&self) -> usize {
        CLASS_SIZES[self.class as usize].into()
    }

    fn is_full(&self) -> bool {
        self.free == NO_SLOT && (self.fresh as usize + 1) * self.slot_bytes() > self.bytes.len()
    }
}

/// A row with an allocation of its own.
struct Apart {
    slot: Box<[u8]>,
    beside: Box<[LargeValue]>,
}

impl Apart {
    /// Counted in the budget here; the values count themselves.
    fn bytes(&self) -> u64 {
        apart_bytes(self.slot.len(), &self.beside)
    }
}

fn apart_bytes(slot: usize, beside: &[LargeValue]) -> u64 {
    (slot + size_of_val(beside)) as u64
}

/// Whether a row has an allocation of its own.
fn is_apart(row: RowImage<'_>) -> bool {
    HEADER_BYTES + row.head.len() > LARGEST_CLASS || !row.beside.is_empty()
}

const NO_SLOT: u16 = u16::MAX;

/// The rows of one fragment.
pub struct RowStore {
    budget: Arc<MemoryBudget>,
    /// Location of each row id, or the next free id with [`RowStore::used`] clear.
    directory: Vec<u32>,
    /// One bit an id: in use.
    used: Vec<u64>,
    /// One for each word of `used`.
    marks: Vec<Mark>,
    free_id: u32,
    live: usize,
    /// Of each class, up to the largest one that has had pages, the pages with a free slot.
    open: Vec<Vec<u32>>,
    pages: Vec<Option<Page>>,
    free_pages: Vec<u32>,
    large: Vec<Option<Apart>>,
    free_large: Vec<u32>,
    bytes: u64,
    /// Bytes of the values beside rows, of each as often as a row here has it.
    beside_bytes: u64,
    /// What `bytes` last said of the directory and other vectors.
    overhead: u64,
}

impl RowStore {
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        RowStore {
            budget,
            directory: Vec::new(),
            used: Vec::new(),
            marks: Vec::new(),
            free_id: END,
            live: 0,
            open: Vec::new(),
            pages: Vec::new(),
            free_pages: Vec::new(),
            large: Vec::new(),
            free_large: Vec::new(),
            bytes: 0,
            beside_bytes: 0,
            overhead: 0,
        }
    }

    pub fn insert(&mut self, header: RowHeader, row: RowImage<'_>, purpose: Purpose) -> Result<RowId, MemoryFull> {
        if self.free_id == END && self.directory.len() == self.directory.capacity() {
            let more = self.directory_growth();
            self.budget.check(more as u64 * 4, purpose)?;
            self.directory.reserve_exact(more);
        }
        let location = self.place(header, row, purpose)?;
        let id = if self.free_id != END {
            let id = self.free_id;
            self.free_id = self.directory[id as usize];
            self.directory[id as usize] = location;
            id
        } else {
            let id = self.directory.len() as u32;
            assert!(id != END, "a fragment holds fewer than 2^32 - 1 rows");
            self.directory.push(location);
            if self.used.len() * 64 <= id as usize {
                self.used.push(0);
                self.marks.push(Mark::default());
            }
            id
        };
        self.used[id as usize / 64] |= 1 << (id % 64);
        self.mark(RowId(id), header);
        self.live += 1;
        self.count_overhead();
        Ok(RowId(id))
    }

    /// Panics when there is no such row.
    #[inline]
    pub fn get(&self, id: RowId) -> (RowHeader, RowImage<'_>) {
        self.at(Location(self.location(id)))
    }

    /// Fetches what [`RowStore::prefetch_row`] will look at.
    #[inline]
    pub fn prefetch_location(&self, id: RowId) {
        prefetch(&self.directory, id.0 as usize);
    }

    /// Fetches the row's beginning, the header and some hundred bytes, and says where it lies.
    #[inline]
    pub fn prefetch_row(&self, id: RowId) -> Location {
        let location = self.location(id);
        let (slot, size) = match location & LARGE == 0 {
            true => (self.slot(location), self.slot_size(location)),
            false => (self.slot(location), PREFETCHED),
        };
        for line in (0..size.min(PREFETCHED)).step_by(CACHE_LINE) {
            prefetch(slot, line);
        }
        Location(location)
    }

    /// The row at a place that [`RowStore::prefetch_row`] named; nothing may have changed in between.
    #[inline]
    pub fn at(&self, Location(location): Location) -> (RowHeader, RowImage<'_>) {
        let (slot, beside): (_, &[LargeValue]) = match location & LARGE == 0 {
            true => (self.slot(location), &[]),
            false => {
                let apart = self.apart(location);
                (&apart.slot, &apart.beside)
            }
        };
        let (head, bytes) = slot.split_at(HEADER_BYTES);
        let (header, len) = read_header(head);
        (header, RowImage { head: &bytes[..len], beside })
    }

    #[inline]
    pub fn header(&self, id: RowId) -> RowHeader {
        read_header(&self.slot(self.location(id))[..HEADER_BYTES]).0
    }

    pub fn set_header(&mut self, id: RowId, header: RowHeader) {
        let location = self.location(id);
        let slot = self.slot_mut(location);
        let (_, len) = read_header(slot);
        write_header(slot, header, len);
        self.mark(id, header);
    }

    /// When this row has no more to it than its header and bytes, and they are not from after `upto`: a time that is neither, and not before them.
    #[inline]
    pub fn settled(&self, id: RowId, upto: Timestamp) -> Option<Timestamp> {
        debug_assert!(self.contains(id), "row {id:?} is not there");
        let mark = &self.marks[id.0 as usize / 64];
        (mark.beside >> (id.0 % 64) & 1 == 0 && mark.newest <= upto).then_some(mark.newest)
    }

    /// A row has this header from now on.
    #[inline]
    fn mark(&mut self, id: RowId, header: RowHeader) {
        let mark = &mut self.marks[id.0 as usize / 64];
        let bit = 1 << (id.0 % 64);
        if header.flags & BESIDE != 0 {
            // Nobody asks for its time before it gets another header.
            mark.beside |= bit;
        } else {
            mark.beside &= !bit;
            mark.newest = mark.newest.max(header.time);
        }
    }

    /// Gives the row new bytes; it keeps its id. On error nothing has changed.
    pub fn replace(
        &mut self,
        id: RowId,
        header: RowHeader,
        row: RowImage<'_>,
        purpose: Purpose,
    ) -> Result<(), MemoryFull> {
        let old = self.location(id);
        if self.fits(old, row) {
            let bytes = row.head;
            let slot = self.slot_mut(old);
            write_header(slot, header, bytes.len());
            slot[HEADER_BYTES..HEADER_BYTES + bytes.len()].copy_from_slice(bytes);
            self.mark(id, header);
            return Ok(());
        }
        let new = self.place(header, row, purpose)?;
        self.release(old);
        self.directory[id.0 as usize] = new;
        self.mark(id, header);
        Ok(())
    }

    /// Damages a row, for tests: flips a bit of its bytes, counted around.
    pub fn flip_bit(&mut self, id: RowId, bit: usize) {
        let location = self.location(id);
        let slot = self.slot_mut(location);
        let (_, length) = read_header(slot);
        let bit = bit % (length * 8);
        slot[HEADER_BYTES + bit / 8] ^= 1 << (bit % 8);
    }

    /// Bytes that the budget must have for a row in the place of `id`, or for a new one: none where a slot is free. The values beside it are counted already.
    pub fn wanted(&self, id: Option<RowId>, row: RowImage<'_>) -> u64 {
        if id.is_some_and(|id| self.fits(self.location(id), row)) {
            return 0;
        }
        let directory = match id {
            None if self.free_id == END && self.directory.len() == self.directory.capacity() => {
                self.directory_growth() as u64 * 4
            }
            _ => 0,
        };
        let needed = HEADER_BYTES + row.head.len();
        let slot = match !is_apart(row) {
            true if self.open_page(class_for(needed)).is_none() => self.next_page_bytes(class_for(needed)) as u64,
            true => 0,
            false => apart_bytes(needed, row.beside),
        };
        directory + slot
    }

    /// The directory doubles at most: a quarter more at a time keeps the waste small in big tables.
    fn directory_growth(&self) -> usize {
        let len = self.directory.len();
        (len / 4).max(len.clamp(8, 64))
    }

    /// Whether the slot at a location is of the size that a row takes, and nothing lies beside the one or the other.
    fn fits(&self, location: u32, row: RowImage<'_>) -> bool {
        let needed = HEADER_BYTES + row.head.len();
        if location & LARGE == 0 {
            let page = self.pages[page_of(location)].as_ref().expect("a location points into a page");
            !is_apart(row) && class_for(needed) == page.class
        } else {
            let apart = self.apart(location);
            apart.slot.len() == needed && apart.beside.is_empty() && row.beside.is_empty()
        }
    }

    pub fn remove(&mut self, id: RowId) {
        let location = self.location(id);
        self.release(location);
        let used = &mut self.used[id.0 as usize / 64];
        *used &= !(1 << (id.0 % 64));
        if *used == 0 {
            self.marks[id.0 as usize / 64] = Mark::default();
        }
        self.directory[id.0 as usize] = self.free_id;
        self.free_id = id.0;
        self.live -= 1;
        if self.live == 0 {
            self.directory = Vec::new();
            self.used = Vec::new();
            self.marks = Vec::new();
            self.free_id = END;
            self.pages = Vec::new();
            self.free_pages = Vec::new();
            self.large = Vec::new();
            self.free_large = Vec::new();
            self.open = Vec::new();
        }
        self.count_overhead();
    }

    pub fn contains(&self, id: RowId) -> bool {
        self.used.get(id.0 as usize / 64).is_some_and(|word| word >> (id.0 % 64) & 1 == 1)
    }

    /// The first row at or after `from`, in id order: how full scans and checkpoints walk, in slices.
    #[inline]
    pub fn next(&self, from: RowId) -> Option<RowId> {
        let mut word = from.0 as usize / 64;
        let mut bits = self.used.get(word)? & (u64::MAX << (from.0 % 64));
        while bits == 0 {
            word += 1;
            bits = *self.used.get(word)?;
        }
        Some(RowId((word * 64) as u32 + bits.trailing_zeros()))
    }

    /// The bytes that a row of this length takes from slabs, header included.
    pub fn slot_bytes(&self, row_bytes: usize) -> usize {
        let needed = HEADER_BYTES + row_bytes;
        if needed <= LARGEST_CLASS { CLASS_SIZES[class_for(needed) as usize] as usize } else { needed }
    }

    /// Rows stored (tombstones and uncommitted inserts included).
    pub fn len(&self) -> usize {
        self.live
    }

    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Bytes that this store holds from the budget; the values beside rows hold theirs.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.overhead
    }

    /// Bytes of the values beside rows.
    pub fn beside_bytes(&self) -> u64 {
        self.beside_bytes
    }

    #[inline]
    fn location(&self, id: RowId) -> u32 {
        debug_assert!(self.contains(id), "row {id:?} is not there");
        self.directory[id.0 as usize]
    }

    #[inline]
    fn slot(&self, location: u32) -> &[u8] {
        if location & LARGE == 0 {
            let page = self.pages[page_of(location)].as_ref().expect("a location points into a page");
            let start = offset_of(location);
            // The slot's end is not needed: the header's length is bounded by it.
            &page.bytes[start..]
        } else {
            &self.apart(location).slot
        }
    }

    fn apart(&self, location: u32) -> &Apart {
        self.large[(location & !LARGE) as usize].as_ref().expect("a location points to a large row")
    }

    /// Of a location in a page.
    #[inline]
    fn slot_size(&self, location: u32) -> usize {
        let page = self.pages[page_of(location)].as_ref().expect("a location points into a page");
        page.slot_bytes()
    }

    #[inline]
    fn slot_mut(&mut self, location: u32) -> &mut [u8] {
        if location & LARGE == 0 {
            let page = self.pages[page_of(location)].as_mut().expect("a location points into a page");
            let start = offset_of(location);
            &mut page.bytes[start..]
        } else {
            let apart = self.large[(location & !LARGE) as usize].as_mut();
            &mut apart.expect("a location points to a large row").slot
        }
    }

    /// A page with a free slot.
    #[inline]
    fn open_page(&self, class: u8) -> Option<u32> {
        self.open.get(class as usize)?.last().copied()
    }

    /// Of the next page of this class. It is the same page for all classes but where a slot needs a larger one.
    fn next_page_bytes(&self, class: u8) -> usize {
        let as_many = 1 << (self.bytes.min(PAGE_BYTES as u64) as usize + FIRST_PAGE_BYTES).min(PAGE_BYTES).ilog2();
        as_many.max((CLASS_SIZES[class as usize] as usize).next_power_of_two())
    }

    fn place(&mut self, header: RowHeader, row: RowImage<'_>, purpose: Purpose) -> Result<u32, MemoryFull> {
        let bytes = row.head;
        let needed = HEADER_BYTES + bytes.len();
        let location = match is_apart(row) {
            false => self.take_slot(needed, purpose)?,
            true => self.take_large(needed, row.beside, purpose)?,
        };
        let slot = self.slot_mut(location);
        write_header(slot, header, bytes.len());
        slot[HEADER_BYTES..needed].copy_from_slice(bytes);
        Ok(location)
    }

    fn take_slot(&mut self, needed: usize, purpose: Purpose) -> Result<u32, MemoryFull> {
        let class = class_for(needed);
        let number = match self.open_page(class) {
            Some(number) => number,
            None => self.take_page(class, purpose)?,
        };
        let page = self.pages[number as usize].as_mut().expect("an open page is there");
        let size = page.slot_bytes();
        let slot = if page.free != NO_SLOT {
            let slot = page.free;
            let start = slot as usize * size;
            page.free = u16::from_le_bytes([page.bytes[start], page.bytes[start + 1]]);
            slot
        } else {
            page.fresh += 1;
            page.fresh - 1
        };
        page.live += 1;
        if page.is_full() {
            self.open[class as usize].pop();
            page.open = false;
        }
        Ok(number * UNITS_PER_PAGE + slot as u32 * (size / UNIT) as u32)
    }

    fn take_page(&mut self, class: u8, purpose: Purpose) -> Result<u32, MemoryFull> {
        let bytes = self.next_page_bytes(class);
        self.budget.check(bytes as u64, purpose)?;
        self.budget.add(bytes as u64);
        self.bytes += bytes as u64;
        let page =
            Page { bytes: vec![0; bytes].into_boxed_slice(), class, live: 0, fresh: 0, free: NO_SLOT, open: true };
        let number = match self.free_pages.pop() {
            Some(number) => {
                self.pages[number as usize] = Some(page);
                number
            }
            None => {
                let number = self.pages.len() as u32;
                assert!(number < LARGE / UNITS_PER_PAGE, "a fragment's slabs hold at most 16 GiB");
                self.pages.push(Some(page));
                number
            }
        };
        if self.open.len() <= class as usize {
            self.open.resize_with(class as usize + 1, Vec::new);
        }
        self.open[class as usize].push(number);
        Ok(number)
    }

    fn take_large(&mut self, needed: usize, beside: &[LargeValue], purpose: Purpose) -> Result<u32, MemoryFull> {
        let bytes = apart_bytes(needed, beside);
        self.budget.check(bytes, purpose)?;
        self.budget.add(bytes);
        self.bytes += bytes;
        self.beside_bytes += beside.iter().map(|value| value.len() as u64).sum::<u64>();
        let row = Apart { slot: vec![0; needed].into_boxed_slice(), beside: beside.into() };
        let number = match self.free_large.pop() {
            Some(number) => {
                self.large[number as usize] = Some(row);
                number
            }
            None => {
                self.large.push(Some(row));
                self.large.len() as u32 - 1
            }
        };
        Ok(LARGE | number)
    }

    fn release(&mut self, location: u32) {
        if location & LARGE != 0 {
            let number = location & !LARGE;
            let row = self.large[number as usize].take().expect("a location points to a large row");
            self.free_large.push(number);
            self.bytes -= row.bytes();
            self.budget.subtract(row.bytes());
            self.beside_bytes -= row.beside.iter().map(|value| value.len() as u64).sum::<u64>();
            return;
        }
        let number = page_of(location);
        let page = self.pages[number].as_mut().expect("a location points into a page");
        let open = &mut self.open[page.class as usize];
        page.live -= 1;
        // One empty page a class is kept, so that a table at the edge of a page does not allocate at every write.
        if page.live == 0 && open.len() > usize::from(page.open) {
            if page.open {
                open.retain(|&n| n as usize != number);
            }
            let bytes = page.bytes.len() as u64;
            self.pages[number] = None;
            self.free_pages.push(number as u32);
            self.bytes -= bytes;
            self.budget.subtract(bytes);
            return;
        }
        let start = offset_of(location);
        let slot = (start / page.slot_bytes()) as u16;
        page.bytes[start..start + 2].copy_from_slice(&page.free.to_le_bytes());
        page.free = slot;
        if !page.open {
            page.open = true;
            open.push(number as u32);
        }
    }

    fn count_overhead(&mut self) {
        let kept_pages: u64 = if self.live == 0 && self.pages.is_empty() { std::mem::take(&mut self.bytes) } else { 0 };
        if kept_pages > 0 {
            self.budget.subtract(kept_pages);
        }
        let marks = self.marks.capacity() * size_of::<Mark>();
        let now = (self.directory.capacity() * 4 + self.used.capacity() * 8 + marks) as u64;
        if now > self.overhead {
            self.budget.add(now - self.overhead);
        } else if now < self.overhead {
            self.budget.subtract(self.overhead - now);
        }
        self.overhead = now;
    }
}

impl Drop for RowStore {
    fn drop(&mut self) {
        self.budget.subtract(self.bytes + self.overhead);
    }
}

/// The smallest class whose slots have as many bytes.
#[inline]
fn class_for(needed: usize) -> u8 {
    CLASS_OF_UNITS[needed.div_ceil(UNIT)]
}

#[inline]
fn page_of(location: u32) -> usize {
    (location / UNITS_PER_PAGE) as usize
}

#[inline]
fn offset_of(location: u32) -> usize {
    (location % UNITS_PER_PAGE) as usize * UNIT
}

#[inline]
fn read_header(slot: &[u8]) -> (RowHeader, usize) {
    let slot: &[u8; HEADER_BYTES] = slot[..HEADER_BYTES].try_into().expect("a slot holds a header");
    let time = u64::from_le_bytes(slot[..8].try_into().expect("8 bytes"));
    let len = u32::from_le_bytes(slot[8..12].try_into().expect("4 bytes"));
    let layout = u16::from_le_bytes([slot[12], slot[13]]);
    (RowHeader { time: Timestamp(time), layout, flags: slot[14] }, len as usize)
}

#[inline]
fn write_header(slot: &mut [u8], header: RowHeader, len: usize) {
    slot[..8].copy_from_slice(&header.time.0.to_le_bytes());
    slot[8..12].copy_from_slice(&(len as u32).to_le_bytes());
    slot[12..14].copy_from_slice(&header.layout.to_le_bytes());
    slot[14] = header.flags;
    slot[15] = 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};
    use std::collections::BTreeMap;

    fn header(time: u64) -> RowHeader {
        RowHeader { time: Timestamp(time), layout: (time % 7) as u16, flags: (time % 5) as u8 }
    }

    #[test]
    fn classes_grow_by_at_most_an_eighth_and_hold_every_size() {
        let sizes = CLASS_SIZES;
        assert!(sizes.windows(2).all(|w| w[0] < w[1] && w[1] % 8 == 0), "{sizes:?}");
        assert!(sizes.windows(2).all(|w| w[0] < 256 || (w[1] - w[0]) as usize * 7 <= w[0] as usize), "{sizes:?}");
        assert_eq!(*sizes.last().unwrap() as usize, LARGEST_CLASS);
        let smallest = |needed: usize| sizes.iter().position(|&size| size as usize >= needed).unwrap();
        (0..=LARGEST_CLASS).for_each(|needed| assert_eq!(class_for(needed) as usize, smallest(needed), "{needed}"));
    }

    #[test]
    fn random_rows_against_a_map() {
        for seed in 0..20 {
            let mut rng = StdRng::seed_from_u64(seed);
            let budget = Arc::new(MemoryBudget::new(1 << 40));
            let mut store = RowStore::new(budget.clone());
            let mut model: BTreeMap<u32, (RowHeader, Vec<u8>)> = BTreeMap::new();
            for step in 0..4000u64 {
                let len = match rng.random_range(0..10) {
                    0 => rng.random_range(0..9000),
                    1..4 => rng.random_range(0..600),
                    _ => rng.random_range(0..120),
                };
                let bytes: Vec<u8> = (0..len).map(|i| (i as u64 ^ step) as u8).collect();
                let pick = model.keys().copied().nth(rng.random_range(0..model.len().max(1)));
                let shrink = step % 1000 > 700;
                match (rng.random_range(0..if shrink { 9 } else { 6 }), pick) {
                    (0..3, _) | (_, None) => {
                        let id = store.insert(header(step), bytes[..].into(), Purpose::Write).unwrap();
                        assert!(model.insert(id.0, (header(step), bytes)).is_none(), "ids in use are not given again");
                    }
                    (3, Some(id)) => {
                        store.replace(RowId(id), header(step), bytes[..].into(), Purpose::Write).unwrap();
                        model.insert(id, (header(step), bytes));
                    }
                    (4, Some(id)) => {
                        store.set_header(RowId(id), header(step));
                        model.get_mut(&id).unwrap().0 = header(step);
                    }
                    (_, Some(id)) => {
                        store.remove(RowId(id));
                        model.remove(&id);
                    }
                }
                if step % 64 == 0 {
                    let mut at = RowId(0);
                    for (id, (head, _)) in &model {
                        let settled = store.settled(RowId(*id), Timestamp::MAX);
                        assert_eq!(settled.is_some(), head.flags & BESIDE == 0, "row {id}");
                        assert!(settled.is_none_or(|time| time >= head.time && time <= Timestamp(step)), "row {id}");
                        let before = Timestamp(head.time.0.saturating_sub(1));
                        assert!(head.time == Timestamp::ZERO || store.settled(RowId(*id), before).is_none());
                    }
                    for (id, (head, bytes)) in &model {
                        let found = store.next(at).unwrap();
                        assert_eq!(found.0, *id);
                        assert_eq!(store.get(found), (*head, bytes.as_slice().into()));
                        at = RowId(id + 1);
                    }
                    assert_eq!(store.next(at), None);
                    assert_eq!(store.len(), model.len());
                    assert_eq!(store.bytes(), budget.used());
                }
            }
            for id in model.keys() {
                store.remove(RowId(*id));
            }
            assert_eq!(budget.used(), 0, "an empty store holds nothing");
        }
    }

    #[test]
    fn pages_double_up_to_the_full_size() {
        let budget = Arc::new(MemoryBudget::new(1 << 40));
        let mut store = RowStore::new(budget.clone());
        assert_eq!(store.wanted(None, [7; 100][..].into()), 8 * 4 + 512, "a directory of eight and a page");
        let mut sizes = Vec::new();
        let mut ids = Vec::new();
        while store.pages.len() < 10 {
            let (held, wanted) = (store.bytes, store.open_page(class_for(116)).is_none());
            ids.push(store.insert(header(1), [7; 100][..].into(), Purpose::Write).unwrap());
            assert_eq!(store.bytes > held, wanted, "a page is taken when none has room");
            if store.bytes > held {
                sizes.push(store.bytes - held);
            }
        }
        assert_eq!(sizes, [512, 1024, 2048, 4096, 8192, 16384, 32768, 32768, 32768, 32768]);
        assert_eq!(store.bytes(), budget.used());
        ids.iter().for_each(|id| store.remove(*id));
        assert_eq!(budget.used(), 0);
    }

    /// Of any size, in any order, with removals: every slot of a page is used, and few pages are small.
    #[test]
    fn small_pages_are_few_and_wholly_used() {
        for seed in 0..20 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut store = RowStore::new(Arc::new(MemoryBudget::new(1 << 40)));
            let mut ids = Vec::new();
            for _ in 0..3000 {
                if !ids.is_empty() && rng.random_range(0..5) < 2 {
                    store.remove(ids.swap_remove(rng.random_range(0..ids.len())));
                } else {
                    let row = vec![7; rng.random_range(0..LARGEST_CLASS - HEADER_BYTES + 1)];
                    ids.push(store.insert(header(1), row.as_slice().into(), Purpose::Write).unwrap());
                }
                let pages = || store.pages.iter().flatten();
                assert!(pages().filter(|page| page.bytes.len() < PAGE_BYTES).count() <= 64);
                for page in pages() {
                    let slots = page.bytes.len() / page.slot_bytes();
                    assert!(
                        slots > 0 && (page.live as usize == slots) == page.is_full() && page.is_full() != page.open
                    );
                }
            }
        }
    }

    #[test]
    fn a_row_that_comes_and_goes_at_the_edge_of_a_page_takes_no_memory() {
        let mut store = RowStore::new(Arc::new(MemoryBudget::new(1 << 40)));
        store.insert(header(1), [7; 4000][..].into(), Purpose::Write).unwrap();
        let mut last = store.insert(header(1), [7; 4000][..].into(), Purpose::Write).unwrap();
        let bytes = store.bytes();
        for _ in 0..10 {
            store.remove(last);
            assert_eq!(store.bytes(), bytes);
            last = store.insert(header(1), [7; 4000][..].into(), Purpose::Write).unwrap();
            assert_eq!(store.bytes(), bytes);
        }
    }

    #[test]
    fn a_full_budget_refuses_and_changes_nothing() {
        let budget = Arc::new(MemoryBudget::new(200_000));
        let mut store = RowStore::new(budget.clone());
        let mut ids = Vec::new();
        let error = loop {
            match store.insert(header(1), [7; 100][..].into(), Purpose::Write) {
                Ok(id) => ids.push(id),
                Err(e) => break e,
            }
        };
        assert_eq!(error.limit, 200_000);
        let used = budget.used();
        assert!(
            store.replace(ids[0], header(2), [1; 5000][..].into(), Purpose::Write).is_err() || budget.used() > used
        );
        assert_eq!(store.get(ids[1]), (header(1), [7u8; 100][..].into()));
        for id in ids.drain(..) {
            store.remove(id);
        }
        assert_eq!(budget.used(), 0);
        assert!(store.insert(header(1), [7; 100][..].into(), Purpose::Write).is_ok());
    }

    #[test]
    fn a_hundred_byte_row_takes_at_most_125_bytes() {
        let budget = Arc::new(MemoryBudget::new(1 << 40));
        let mut store = RowStore::new(budget.clone());
        for _ in 0..200_000 {
            store.insert(header(1), [7; 100][..].into(), Purpose::Write).unwrap();
        }
        let each = budget.used() as f64 / 200_000.0;
        assert!(each <= 126.0, "{each}");
    }
}
