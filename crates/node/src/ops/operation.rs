//! What a transaction can ask of one partition, as a value: so that the partition's node does the same whether the transaction runs there or elsewhere.
//!
//! [`run`] is the only place where an operation meets a partition. A node that leads the partition itself calls it with borrowed keys and rows and nothing is
//! encoded; else the operation goes over the network ([`super::wire`]) and [`super::serve`] calls it. Visitors of rows are the caller's: beside the partition they
//! run while it is held, from afar when the answer has come.

use super::change::{Change, Changed};
use super::wire::{Reader, Shown};
use crate::executor::Class;
use crate::scan::pushdown::Pushdown;
use crate::table::TableInfo;
use rauk_kernel::partition::TableUsage;
use rauk_kernel::{
    Access, LockMode, Lookup, LookupPosition, Partition, RowId, ScanEnd, ScanPosition, ScanRequest, ScanRow, Span,
    Stop, Verdict, WaitPolicy,
};
use rauk_types::{Covering, IndexId, RowView, TableId, key};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

/// An encoded primary key and its hash. Over the network goes the key alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    pub bytes: &'a [u8],
    pub hash: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Op<'a> {
    /// A consistent read of one row.
    Read {
        #[serde(borrow)]
        key: Key<'a>,
    },
    /// Consistent reads of rows, visited in order until the visitor stops; from afar they come until they are many bytes.
    ReadMany {
        #[serde(borrow)]
        keys: Vec<Key<'a>>,
        /// How many have been read.
        done: u32,
    },
    /// `ranges`: a key that is missing is kept missing (SERIALIZABLE).
    ReadLocked {
        #[serde(borrow)]
        key: Key<'a>,
        #[serde(with = "Mode")]
        mode: LockMode,
        #[serde(with = "Policy")]
        wait: WaitPolicy,
        ranges: bool,
    },
    /// Keeps a missing key missing, and tells whether it is there after all.
    LockAbsence {
        #[serde(borrow)]
        key: Key<'a>,
    },
    LockRange {
        index: IndexId,
        #[serde(borrow)]
        low: Bound<&'a [u8]>,
        #[serde(borrow)]
        high: Bound<&'a [u8]>,
    },
    /// `false`: the key is taken.
    Insert {
        #[serde(borrow)]
        key: Key<'a>,
        #[serde(with = "raw")]
        row: &'a [u8],
    },
    /// `false`: there is no such row.
    Update {
        #[serde(borrow)]
        key: Key<'a>,
        #[serde(with = "raw")]
        row: &'a [u8],
    },
    Delete {
        #[serde(borrow)]
        key: Key<'a>,
    },
    Scan(Scan<'a>),
    ScanKeys(Scan<'a>),
    /// How large the table's part of the partition is.
    Usage,
    /// A lock on a name, the key of no row ([`crate::names`]).
    Name {
        #[serde(borrow)]
        key: Key<'a>,
        /// What others are told of who has it.
        owner: u64,
        act: NameAct,
    },
    LookUp(LookUp<'a>),
    /// Locks the rows that there are among these; the visitor is shown their numbers ([`Seen::Key`], four bytes, little
    /// end first).
    LockMany {
        #[serde(borrow)]
        keys: Vec<Key<'a>>,
        #[serde(with = "Mode")]
        mode: LockMode,
        #[serde(with = "Policy")]
        wait: WaitPolicy,
        /// How many have been looked at.
        done: u32,
    },
    /// Locks a row exclusively and changes it by a program, if what comes of that is certain. If not, or where the
    /// program is not known, it is [`Op::ReadLocked`].
    Change {
        #[serde(borrow)]
        key: Key<'a>,
        /// As of [`Op::ReadLocked`].
        ranges: bool,
        #[serde(with = "raw")]
        program: &'a [u8],
        /// The program where the rows are.
        #[serde(skip)]
        change: Option<Change>,
    },
    /// Inserts rows up to the first whose key is taken; gives how many.
    InsertMany {
        #[serde(borrow)]
        rows: Vec<KeyedRow<'a>>,
        /// How many are in.
        done: u32,
    },
    /// Puts rows in the place of those with their keys, up to the first that is not there; gives how many.
    UpdateMany {
        #[serde(borrow)]
        rows: Vec<KeyedRow<'a>>,
        /// How many are changed.
        done: u32,
    },
    /// Deletes rows up to the first that is not there; gives how many.
    DeleteMany {
        #[serde(borrow)]
        keys: Vec<Key<'a>>,
        /// How many are gone.
        done: u32,
    },
    /// Locks the rows that there are among these exclusively and shows each, or that there is none, in order until the
    /// visitor stops; from afar they come until they are many bytes.
    TakeMany {
        #[serde(borrow)]
        keys: Vec<Key<'a>>,
        /// How many have been shown.
        done: u32,
    },
}

/// A row that is to be stored.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct KeyedRow<'a> {
    #[serde(borrow)]
    pub key: Key<'a>,
    #[serde(with = "raw")]
    pub row: &'a [u8],
}

/// What is to be done about the lock on a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NameAct {
    Take,
    /// Without waiting.
    TryTake,
    Give,
    /// Who has it?
    Look,
}

/// A slice of a scan.
#[derive(Debug, Serialize, Deserialize)]
pub struct Scan<'a> {
    #[serde(with = "request")]
    pub request: Cow<'a, ScanRequest>,
    /// In: where it goes on; out: where it has come to.
    #[serde(with = "Position")]
    pub position: ScanPosition,
    /// Entries visited in one hold.
    pub slice: u32,
    /// How many rows the visitor may want at most: no more are locked, or sent, ahead of it.
    pub most: u32,
    /// Rows that have come from afar and are not shown yet: before the position, and shown before it goes on.
    #[serde(skip)]
    pub ahead: Reader,
    /// Behind those nothing is left.
    #[serde(skip)]
    pub finished: bool,
    /// What another node asks to be done with the rows; it travels behind the operation.
    #[serde(skip)]
    pub program: &'a [u8],
    /// What another node is to be asked; `None` as soon as that has refused it.
    #[serde(skip)]
    pub pushdown: Option<&'a Arc<dyn Pushdown>>,
}

/// A slice of a read of many ranges of one index.
#[derive(Debug, Serialize, Deserialize)]
pub struct LookUp<'a> {
    pub index: IndexId,
    #[serde(borrow, with = "spans")]
    pub spans: Cow<'a, [Span<'a>]>,
    /// In: where it goes on; out: where it has come to.
    #[serde(with = "LookedUpTo")]
    pub position: LookupPosition,
    /// Entries visited in one hold.
    pub slice: u32,
    /// The rows that are shown are locked (shared): the newest ones, pending ones of others are waited for. Another node
    /// sends the first of them alone.
    pub locks: bool,
    /// As of a scan; another node sends whole rows.
    #[serde(skip)]
    pub covering: Option<&'a Covering>,
}

impl Scan<'_> {
    /// Shows what has come from afar, until the visitor stops. Also with the last row of all the visitor may stop: that is the end, and there is no position to go on from.
    pub fn show_ahead(
        &mut self,
        table: &TableInfo,
        visit: &mut (dyn FnMut(Seen<'_, '_>) -> Verdict + Send),
    ) -> Result<ScanEnd, Shown> {
        match self.ahead.show(table, visit) {
            Shown::All | Shown::Stopped if self.finished && self.ahead.is_empty() => Ok(ScanEnd::Finished),
            Shown::All | Shown::Stopped => Ok(ScanEnd::More),
            shown => Err(shown),
        }
    }
}

/// What an operation gives, beside what its visitor saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// What the visitor saw is all.
    Seen,
    Is(bool),
    /// How many rows.
    Count(u32),
    Scanned(ScanEnd),
    Usage(TableUsage),
    /// Of a name.
    Owner(Option<u64>),
    /// Another node does not know lookups.
    Unknown,
}

/// What a visitor is shown.
#[derive(Clone, Copy)]
pub enum Seen<'a, 'r> {
    Missing,
    Row(RowView<'a>),
    Scanned(&'a ScanRow<'r>),
    Key(&'a [u8]),
    /// Of a lookup: the number of the range and a row in it.
    Found(usize, RowView<'a>),
}

impl<'a> Seen<'a, '_> {
    /// Of a point read.
    pub fn row(self) -> Option<RowView<'a>> {
        match self {
            Seen::Row(row) => Some(row),
            _ => None,
        }
    }
}

impl<'a> Key<'a> {
    pub fn of(bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, hash: key::hash(bytes) }
    }
}

impl Done {
    /// Of operations that answer with yes or no.
    pub fn is(self) -> bool {
        self == Done::Is(true)
    }
}

impl Op<'_> {
    pub fn class(&self) -> Class {
        match self {
            Op::Scan(_) | Op::ScanKeys(_) | Op::LockRange { .. } | Op::LookUp(_) => Class::Scan,
            Op::ReadMany { keys, .. }
            | Op::LockMany { keys, .. }
            | Op::TakeMany { keys, .. }
            | Op::DeleteMany { keys, .. }
                if keys.len() > 8 =>
            {
                Class::Scan
            }
            Op::InsertMany { rows, .. } | Op::UpdateMany { rows, .. } if rows.len() > 8 => Class::Scan,
            _ => Class::Point,
        }
    }

    pub fn writes(&self) -> bool {
        matches!(
            self,
            Op::Insert { .. }
                | Op::InsertMany { .. }
                | Op::Update { .. }
                | Op::UpdateMany { .. }
                | Op::Delete { .. }
                | Op::DeleteMany { .. }
                | Op::Change { .. }
        )
    }

    /// Whether it may leave locks or writes behind: it belongs to a transaction then.
    pub fn touches(&self) -> bool {
        match self {
            Op::Read { .. } | Op::ReadMany { .. } | Op::ScanKeys(_) | Op::Usage => false,
            Op::LookUp(lookup) => lookup.locks,
            Op::Name { act, .. } => *act != NameAct::Look,
            Op::Scan(scan) => scan.request.lock.is_some(),
            _ => true,
        }
    }

    /// Whether the locks that it asks for let others have shared ones beside them.
    pub fn locks_shared(&self) -> bool {
        match self {
            Op::ReadLocked { mode, .. } | Op::LockMany { mode, .. } => *mode != LockMode::Exclusive,
            Op::LockAbsence { .. } | Op::LockRange { .. } | Op::LookUp(LookUp { locks: true, .. }) => true,
            Op::Scan(scan) => scan.request.lock.is_some_and(|(mode, _)| mode != LockMode::Exclusive),
            _ => false,
        }
    }

    pub fn is_name(&self) -> bool {
        matches!(self, Op::Name { .. })
    }

    /// Nothing of it has been shown: it begins anew, perhaps elsewhere, where a position that it has come to means nothing.
    pub fn rewind(&mut self) {
        match self {
            Op::Scan(scan) | Op::ScanKeys(scan) => scan.position = ScanPosition::Start,
            Op::LookUp(lookup) => lookup.position = LookupPosition::default(),
            Op::LockMany { done, .. }
            | Op::TakeMany { done, .. }
            | Op::InsertMany { done, .. }
            | Op::UpdateMany { done, .. }
            | Op::DeleteMany { done, .. } => *done = 0,
            _ => {}
        }
    }
}

/// Does it. On [`Stop::Wait`] and the like the same operation is run again, and goes on where it was.
#[inline]
pub fn run(
    op: &mut Op<'_>,
    table: TableId,
    p: &mut Partition,
    access: &mut Access<'_>,
    visit: &mut (impl FnMut(Seen<'_, '_>) -> Verdict + ?Sized),
) -> Result<Done, Stop> {
    let mut show = |row: Option<RowView<'_>>| {
        visit(row.map_or(Seen::Missing, Seen::Row));
    };
    match op {
        Op::Read { key } => p.read(table, key.bytes, key.hash, access, show).map(|()| Done::Seen),
        Op::ReadMany { keys, done } => {
            while let Some(key) = keys.get(*done as usize) {
                let seen = |row: Option<RowView<'_>>| visit(row.map_or(Seen::Missing, Seen::Row));
                let verdict = p.read(table, key.bytes, key.hash, access, seen)?;
                *done += 1;
                if verdict == Verdict::KeepAndStop {
                    break;
                }
            }
            Ok(Done::Seen)
        }
        Op::ReadLocked { key, mode, wait, ranges } => {
            read_locked(p, table, key, (*mode, *wait), *ranges, access, &mut show).map(|()| Done::Seen)
        }
        Op::Change { key, ranges, change, .. } => {
            let mut changed = Changed::Unsure;
            let mut look = |row: Option<RowView<'_>>| {
                if let (Some(row), Some(change)) = (&row, &mut *change) {
                    changed = change.of(row, key.bytes);
                }
                if matches!(changed, Changed::Unsure) {
                    show(row);
                }
            };
            read_locked(p, table, key, (LockMode::Exclusive, WaitPolicy::Wait), *ranges, access, &mut look)?;
            // In the same hold: the row that was seen is there.
            match changed {
                Changed::Unsure => Ok(Done::Seen),
                Changed::Row(row) => p.update(table, key.bytes, key.hash, &row, access).map(Done::Is),
                Changed::Gone => p.delete(table, key.bytes, key.hash, access).map(Done::Is),
            }
        }
        Op::LockMany { keys, mode, wait, done } => {
            while let Some(key) = keys.get(*done as usize) {
                let mut found = false;
                p.read_locked(table, key.bytes, key.hash, *mode, *wait, access, |row| found = row.is_some())?;
                if found {
                    visit(Seen::Key(&done.to_le_bytes()));
                }
                *done += 1;
            }
            Ok(Done::Seen)
        }
        Op::TakeMany { keys, done } => {
            let lock = (LockMode::Exclusive, WaitPolicy::Wait);
            while let Some(key) = keys.get(*done as usize) {
                let seen = |row: Option<RowView<'_>>| visit(row.map_or(Seen::Missing, Seen::Row));
                let verdict = p.read_locked(table, key.bytes, key.hash, lock.0, lock.1, access, seen)?;
                *done += 1;
                if verdict == Verdict::KeepAndStop {
                    break;
                }
            }
            Ok(Done::Seen)
        }
        Op::LockAbsence { key } => {
            lock_key(p, table, key, access)?;
            p.read(table, key.bytes, key.hash, access, |row| Done::Is(row.is_some()))
        }
        Op::LockRange { index, low, high } => {
            let txn = access.txn.expect("a lock belongs to a transaction");
            p.lock_range(txn, table, *index, *low, *high).map(|()| Done::Seen)
        }
        Op::Insert { key, row } => match p.insert(table, key.bytes, key.hash, row, access) {
            Ok(()) => Ok(Done::Is(true)),
            Err(Stop::Duplicate) => Ok(Done::Is(false)),
            Err(stop) => Err(stop),
        },
        Op::InsertMany { rows, done } => {
            while let Some(KeyedRow { key, row }) = rows.get(*done as usize) {
                match p.insert(table, key.bytes, key.hash, row, access) {
                    Ok(()) => *done += 1,
                    Err(Stop::Duplicate) => break,
                    Err(stop) => return Err(stop),
                }
            }
            Ok(Done::Count(*done))
        }
        Op::UpdateMany { rows, done } => {
            while let Some(KeyedRow { key, row }) = rows.get(*done as usize)
                && p.update(table, key.bytes, key.hash, row, access)?
            {
                *done += 1;
            }
            Ok(Done::Count(*done))
        }
        Op::DeleteMany { keys, done } => {
            while let Some(key) = keys.get(*done as usize)
                && p.delete(table, key.bytes, key.hash, access)?
            {
                *done += 1;
            }
            Ok(Done::Count(*done))
        }
        Op::Update { key, row } => p.update(table, key.bytes, key.hash, row, access).map(Done::Is),
        Op::Delete { key } => p.delete(table, key.bytes, key.hash, access).map(Done::Is),
        Op::Scan(Scan { request, position, slice, .. }) => {
            let visit = &mut |row: &ScanRow<'_>| visit(Seen::Scanned(row));
            p.scan(request, position, *slice as usize, access, visit).map(Done::Scanned)
        }
        Op::ScanKeys(Scan { request, position, slice, .. }) => {
            let visit = &mut |key: &[u8]| {
                visit(Seen::Key(key));
            };
            p.scan_keys(request, position, *slice as usize, access, visit).map(Done::Scanned)
        }
        Op::LookUp(LookUp { index, spans, position, slice, locks, covering }) => {
            let lock = locks.then_some((LockMode::Shared, WaitPolicy::Wait));
            let lookup = Lookup { table, index: *index, spans, covering: *covering, lock };
            let visit = &mut |span: usize, row: &ScanRow<'_>| visit(Seen::Found(span, row.row));
            p.look_up(&lookup, position, *slice as usize, access, visit).map(Done::Scanned)
        }
        Op::Usage => Ok(Done::Usage(p.table_usage(table).unwrap_or_default())),
        Op::Name { key, owner, act } => on_name(p, key, *owner, *act, access),
    }
}

fn on_name(p: &mut Partition, key: &Key<'_>, owner: u64, act: NameAct, access: &Access<'_>) -> Result<Done, Stop> {
    let txn = || access.txn.expect("a lock belongs to a transaction");
    let wait = if act == NameAct::Take { WaitPolicy::Wait } else { WaitPolicy::NoWait };
    match act {
        NameAct::Take | NameAct::TryTake => p.take_name(txn(), key.bytes, owner, wait).map(|()| Done::Is(true)),
        NameAct::Give => {
            p.give_name(txn().id, key.bytes);
            Ok(Done::Is(true))
        }
        NameAct::Look => Ok(Done::Owner(p.name_owner(key.bytes))),
    }
}

/// Locks a row and shows it, or that there is none.
fn read_locked(
    p: &mut Partition,
    table: TableId,
    key: &Key<'_>,
    (mode, wait): (LockMode, WaitPolicy),
    ranges: bool,
    access: &mut Access<'_>,
    show: &mut impl FnMut(Option<RowView<'_>>),
) -> Result<(), Stop> {
    let mut found = false;
    p.read_locked(table, key.bytes, key.hash, mode, wait, access, |row| {
        if row.is_some() {
            found = true;
            show(row);
        }
    })?;
    if !found {
        if ranges {
            // In the same hold, so that what was found missing stays missing.
            lock_key(p, table, key, access)?;
        }
        show(None);
    }
    Ok(())
}

fn lock_key(p: &mut Partition, table: TableId, key: &Key<'_>, access: &Access<'_>) -> Result<(), Stop> {
    let txn = access.txn.expect("a lock belongs to a transaction");
    p.lock_range(txn, table, IndexId::PRIMARY, Bound::Included(key.bytes), Bound::Included(key.bytes))
}

// How the parts that belong to the partition core are written.

impl Serialize for Key<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.bytes)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The hash is made here: one that does not belong to the key would put the row where nobody finds it.
        <&[u8]>::deserialize(deserializer).map(Key::of)
    }
}

mod raw {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    pub fn deserialize<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<&'a [u8], D::Error> {
        <&[u8]>::deserialize(deserializer)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LockMode")]
enum Mode {
    KeyShare,
    Shared,
    Exclusive,
    KeyChange,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "WaitPolicy")]
enum Policy {
    Wait,
    NoWait,
    SkipLocked,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RowId")]
struct Row(u32);

#[derive(Serialize, Deserialize)]
#[serde(remote = "ScanPosition")]
pub(super) enum Position {
    Start,
    AfterEntry(Vec<u8>, #[serde(with = "Row")] RowId),
    BeforeEntry(Vec<u8>, #[serde(with = "Row")] RowId),
    AfterRow(#[serde(with = "Row")] RowId),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LookupPosition")]
pub(super) struct LookedUpTo {
    span: usize,
    #[serde(with = "Position")]
    within: ScanPosition,
}

mod spans {
    use rauk_kernel::Span;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::borrow::Cow;

    pub fn serialize<S: Serializer>(spans: &[Span<'_>], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(spans.iter().map(|span| (span.low, span.high)))
    }

    pub fn deserialize<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'a, [Span<'a>]>, D::Error> {
        let ends = Vec::<(&[u8], Option<&[u8]>)>::deserialize(deserializer)?;
        Ok(ends.into_iter().map(|(low, high)| Span { low, high }).collect())
    }
}

mod request {
    use super::{LockMode, Mode, Policy, WaitPolicy};
    use rauk_kernel::ScanRequest;
    use rauk_types::{IndexId, TableId};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::borrow::Cow;
    use std::ops::Bound;

    #[derive(Serialize, Deserialize)]
    struct Lock {
        #[serde(with = "Mode")]
        mode: LockMode,
        #[serde(with = "Policy")]
        wait: WaitPolicy,
    }

    #[derive(Serialize, Deserialize)]
    struct Request<'a> {
        table: TableId,
        index: Option<IndexId>,
        #[serde(borrow)]
        low: Bound<&'a [u8]>,
        #[serde(borrow)]
        high: Bound<&'a [u8]>,
        reverse: bool,
        lock: Option<Lock>,
    }

    pub fn serialize<S: Serializer>(request: &ScanRequest, serializer: S) -> Result<S::Ok, S::Error> {
        Request {
            table: request.table,
            index: request.index,
            low: request.low.as_ref().map(Vec::as_slice),
            high: request.high.as_ref().map(Vec::as_slice),
            reverse: request.reverse,
            lock: request.lock.map(|(mode, wait)| Lock { mode, wait }),
        }
        .serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'static, ScanRequest>, D::Error> {
        let Request { table, index, low, high, reverse, lock } = Request::deserialize(deserializer)?;
        let (low, high) = (low.map(<[u8]>::to_vec), high.map(<[u8]>::to_vec));
        let lock = lock.map(|Lock { mode, wait }| (mode, wait));
        // Nothing is said of the columns that are wanted: whole rows are sent.
        Ok(Cow::Owned(ScanRequest { table, index, low, high, reverse, lock, covering: None, also: Default::default() }))
    }
}
