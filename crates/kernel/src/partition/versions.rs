//! Versions of rows beside the newest committed one: pending ones, and old ones that a snapshot may need.
//!
//! The newest committed version stands inline in the row store. A row with anything else has [`flags::SIDE`] in its
//! header and a [`Side`] here:
//!
//! * `pending`: the owner, and a stack of images by statement, so that a savepoint's rollback and "own writes before
//!   this statement" work. Nobody but the owner has pending images on a row: it holds the row's lock.
//! * `history`: older committed versions, oldest first; each is valid until the time of the next, without gaps. Two of equal time have the order in which
//!   they were committed: a reader sees the last whose time is not above its own.
//! * `buried`: under a tombstone the inline bytes are the deleted version's; this is its time.
//!
//! A fresh insert's bytes go straight into the row store, flagged [`flags::UNCOMMITTED`], and its commit is a header
//! change. Until somebody does more to it, such a row has no entry here: its header says whose it is ([`super::fresh`]). All
//! other images lie in one store of the partition, in slabs as rows do.
//!
//! *Index entries follow images*: the ordered indexes have an entry for the key of every image of a row, inline bytes
//! under a tombstone included, and no others. So a scan meets everything that a version could put there, and a row
//! with no side entry needs no check.

use super::fragment::Fragment;
use super::fresh::Seats;
use super::side::{RowKey, SideMap};
use super::{Access, ReadAt, Stop};
use crate::budget::{MemoryBudget, MemoryFull, Purpose};
use crate::row_store::{RowHeader, RowId, RowStore};
use crate::status::{TxnRef, TxnState};
use rauk_types::{RowImage, Timestamp, TxnId};
use smallvec::SmallVec;
use std::sync::Arc;

/// Bits of [`RowHeader::flags`].
pub(super) mod flags {
    /// The inline version is a deletion; the bytes are those of the version before it.
    pub const TOMBSTONE: u8 = 1;
    /// The inline version is an insert that has not been committed.
    pub const UNCOMMITTED: u8 = 2;
    /// The row has an entry in the side table, or is fresh.
    pub const SIDE: u8 = crate::row_store::BESIDE;
    /// The row is fresh: the header's time says whose it is. Stands with the two flags above.
    pub const FRESH: u8 = 8;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Image {
    /// In the row store, in the row's own place.
    Inline,
    /// In the image store.
    Stored(RowId),
    Deleted,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub statement: u32,
    pub image: Image,
}

#[derive(Debug)]
pub(super) struct Pending {
    pub owner: TxnRef,
    pub stack: SmallVec<[Change; 1]>,
}

impl Pending {
    pub fn top(&self) -> Change {
        *self.stack.last().expect("a pending stack is never empty")
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    pub time: Timestamp,
    /// [`DELETED`]: the row was deleted.
    image: RowId,
    /// What of it counts as history: its head, and the values that the version after it did not have.
    bytes: u32,
}

const DELETED: RowId = RowId(u32::MAX);

impl Version {
    pub fn new(time: Timestamp, image: RowId, bytes: u64) -> Version {
        Version { time, image, bytes: bytes.min(u32::MAX.into()) as u32 }
    }

    pub fn deleted(time: Timestamp) -> Version {
        Version { time, image: DELETED, bytes: 0 }
    }

    /// `None`: the row was deleted.
    pub fn image(&self) -> Option<RowId> {
        (self.image != DELETED).then_some(self.image)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.into()
    }
}

#[derive(Debug, Default)]
pub(super) struct Side {
    pub pending: Option<Pending>,
    pub history: SmallVec<[Version; 1]>,
    /// Under a tombstone the time of the inline bytes; else zero.
    pub buried: Timestamp,
}

impl Side {
    pub fn is_empty(&self) -> bool {
        self.pending.is_none() && self.history.is_empty() && self.buried == Timestamp::ZERO
    }

    pub fn heap_bytes(&self) -> usize {
        let history = if self.history.spilled() { self.history.capacity() * size_of::<Version>() } else { 0 };
        let stack = self
            .pending
            .as_ref()
            .map_or(0, |p| if p.stack.spilled() { p.stack.capacity() * size_of::<Change>() } else { 0 });
        history + stack
    }
}

/// Whose a pending row is, and its newest image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Top<'a> {
    pub owner: &'a TxnRef,
    pub change: Change,
}

pub(super) struct VersionTable {
    sides: SideMap<Side>,
    /// The owners of fresh rows.
    pub seats: Seats,
    pub images: RowStore,
    /// An image that stays, so that the store does not give back and allocate its pages with every single update.
    keeper: Option<RowId>,
    heap: usize,
}

/// The version of a row that a reader sees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight<'a> {
    pub layout: u16,
    pub bytes: RowImage<'a>,
    /// The row has no other image, so that an index entry that led here has its key.
    pub sole: bool,
}

impl VersionTable {
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        VersionTable {
            sides: SideMap::new(),
            seats: Seats::default(),
            images: RowStore::new(budget),
            keeper: None,
            heap: 0,
        }
    }

    /// Bytes of the side table; the image store counts its own.
    pub fn side_bytes(&self) -> usize {
        self.sides.bytes() + self.seats.bytes() + self.heap
    }

    /// Whose the row is that has this header, and its newest pending image.
    pub fn pending(&self, key: RowKey, header: RowHeader) -> Option<Top<'_>> {
        if header.flags & flags::SIDE == 0 {
            return None;
        }
        if let Some((owner, statement)) = self.seats.owner(header) {
            return Some(Top { owner, change: Change { statement, image: Image::Inline } });
        }
        let pending = self.sides.get(key)?.pending.as_ref()?;
        Some(Top { owner: &pending.owner, change: pending.top() })
    }

    /// The newest pending image, when it is this transaction's.
    pub fn own_top(&self, key: RowKey, header: RowHeader, txn: TxnId) -> Option<Change> {
        self.pending(key, header).filter(|top| top.owner.id == txn).map(|top| top.change)
    }

    pub fn get(&self, key: RowKey) -> Option<&Side> {
        self.sides.get(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (RowKey, &Side)> {
        self.sides.iter()
    }

    pub fn remove(&mut self, key: RowKey) -> Option<Side> {
        let side = self.sides.remove(key)?;
        self.heap -= side.heap_bytes();
        Some(side)
    }

    /// Changes a row's side entry, made when it is not there; the caller sees to the header's flag.
    pub fn with<R>(&mut self, key: RowKey, change: impl FnOnce(&mut Side) -> R) -> R {
        let side = self.sides.get_or_insert_with(key, Side::default);
        let before = side.heap_bytes();
        let result = change(side);
        self.heap = self.heap + side.heap_bytes() - before;
        result
    }

    /// Puts a change on top of the owner's stack; whether it is the first.
    pub fn push(&mut self, key: RowKey, owner: &TxnRef, change: Change) -> bool {
        self.with(key, |side| match &mut side.pending {
            Some(pending) => {
                assert_eq!(pending.owner.id, owner.id, "a write beside another transaction's");
                pending.stack.push(change);
                false
            }
            None => {
                let stack = SmallVec::from_iter([change]);
                side.pending = Some(Pending { owner: owner.clone(), stack });
                true
            }
        })
    }

    pub fn store(&mut self, layout: u16, row: RowImage<'_>, purpose: Purpose) -> Result<RowId, MemoryFull> {
        let header = RowHeader { time: Timestamp::ZERO, layout, flags: 0 };
        if self.keeper.is_none() {
            self.keeper = Some(self.images.insert(header, [][..].into(), purpose)?);
        }
        self.images.insert(header, row, purpose)
    }

    pub fn image(&self, id: RowId) -> (u16, RowImage<'_>) {
        let (header, bytes) = self.images.get(id);
        (header.layout, bytes)
    }

    /// Every image of a row: inline, history, pending. `visit` gives `true` to stop.
    pub fn any_image(
        &self,
        fragment: &Fragment,
        key: RowKey,
        mut visit: impl FnMut(u16, RowImage<'_>) -> bool,
    ) -> bool {
        let (header, bytes) = fragment.rows.get(key.row());
        if visit(header.layout, bytes) {
            return true;
        }
        if header.flags & flags::SIDE == 0 {
            return false;
        }
        let Some(side) = self.sides.get(key) else { return false };
        let pending = side.pending.iter().flat_map(|p| p.stack.iter()).filter_map(|c| match c.image {
            Image::Stored(id) => Some(id),
            Image::Inline | Image::Deleted => None,
        });
        side.history.iter().filter_map(Version::image).chain(pending).any(|id| {
            let (layout, bytes) = self.image(id);
            visit(layout, bytes)
        })
    }

    /// What a reader sees of a row, and raises `observed` to what the answer depends on.
    pub fn see<'a>(
        &'a self,
        fragment: &'a Fragment,
        key: RowKey,
        at: ReadAt,
        access: &mut Access<'_>,
    ) -> Result<Option<Sight<'a>>, Stop> {
        self.see_row(fragment, key, fragment.rows.get(key.row()), at, access)
    }

    /// The same for a row that the caller has at hand.
    #[inline]
    pub fn see_row<'a>(
        &'a self,
        fragment: &'a Fragment,
        key: RowKey,
        (header, bytes): (RowHeader, RowImage<'a>),
        at: ReadAt,
        access: &mut Access<'_>,
    ) -> Result<Option<Sight<'a>>, Stop> {
        let upto = match at {
            ReadAt::Newest => Timestamp::MAX,
            ReadAt::Snapshot(time) => time,
        };
        if header.flags & flags::SIDE == 0 && header.time <= upto {
            access.observed = access.observed.max(header.time);
            return Ok(Some(Sight { layout: header.layout, bytes, sole: true }));
        }
        self.see_beside(fragment, key, (header, bytes), upto, access)
    }

    /// For rows with more than one version, or one that is too new.
    fn see_beside<'a>(
        &'a self,
        fragment: &'a Fragment,
        key: RowKey,
        (header, bytes): (RowHeader, RowImage<'a>),
        upto: Timestamp,
        access: &mut Access<'_>,
    ) -> Result<Option<Sight<'a>>, Stop> {
        let inline = Sight { layout: header.layout, bytes, sole: false };
        if let Some((owner, statement)) = self.seats.owner(header) {
            let own = access.txn.is_some_and(|t| t.id == owner.id);
            let seen = if own { statement < access.own_before } else { committed(owner, upto, access)? };
            return if seen { Ok(Some(inline)) } else { absent_before(fragment, upto) };
        }
        let side = if header.flags & flags::SIDE == 0 { None } else { self.sides.get(key) };
        if let Some(pending) = side.and_then(|s| s.pending.as_ref()) {
            let of = |image| match image {
                Image::Inline => Some(inline),
                Image::Stored(id) => {
                    let (layout, bytes) = self.image(id);
                    Some(Sight { layout, bytes, sole: false })
                }
                Image::Deleted => None,
            };
            if access.txn.is_some_and(|t| t.id == pending.owner.id) {
                if let Some(own) = pending.stack.iter().rev().find(|c| c.statement < access.own_before) {
                    return Ok(of(own.image));
                }
            } else if committed(&pending.owner, upto, access)? {
                return Ok(of(pending.top().image));
            }
        }
        if header.flags & flags::UNCOMMITTED != 0 {
            return absent_before(fragment, upto);
        }
        if header.time <= upto {
            access.observed = access.observed.max(header.time);
            return Ok((header.flags & flags::TOMBSTONE == 0).then_some(inline));
        }
        if let Some(side) = side {
            if header.flags & flags::TOMBSTONE != 0 && side.buried != Timestamp::ZERO && side.buried <= upto {
                access.observed = access.observed.max(side.buried);
                return Ok(Some(inline));
            }
            if let Some(version) = side.history.iter().rev().find(|v| v.time <= upto) {
                access.observed = access.observed.max(version.time);
                return Ok(version.image().map(|id| {
                    let (layout, bytes) = self.image(id);
                    Sight { layout, bytes, sole: false }
                }));
            }
        }
        if upto < fragment.floor { Err(Stop::SnapshotTooOld) } else { Ok(None) }
    }

    /// Images in the store, the keeper left out.
    pub fn image_count(&self) -> usize {
        self.images.len() - usize::from(self.keeper.is_some())
    }

    pub fn validate_bytes(&self) {
        assert_eq!(self.heap, self.sides.iter().map(|(_, s)| s.heap_bytes()).sum::<usize>(), "bytes of versions");
    }

    pub fn len(&self) -> usize {
        self.sides.len()
    }
}

/// Whether what another transaction has pending is to be seen by a reader up to `upto`: it has committed by then.
fn committed(owner: &TxnRef, upto: Timestamp, access: &mut Access<'_>) -> Result<bool, Stop> {
    match owner.status.get() {
        TxnState::Committing => Err(Stop::Committing),
        TxnState::Prepared(least) if least <= upto => Err(Stop::Prepared(owner.id)),
        TxnState::Committed(time) if time <= upto => {
            access.observed = access.observed.max(time);
            Ok(true)
        }
        TxnState::Active | TxnState::Aborted | TxnState::Prepared(_) | TxnState::Committed(_) => Ok(false),
    }
}

/// What a reader sees of a row that an insert it does not see has brought: nothing, if what stood under the key before is not
/// gone.
fn absent_before<'a>(fragment: &Fragment, upto: Timestamp) -> Result<Option<Sight<'a>>, Stop> {
    if upto < fragment.removed_floor { Err(Stop::SnapshotTooOld) } else { Ok(None) }
}
