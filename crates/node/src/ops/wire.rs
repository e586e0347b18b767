//! Operations and their answers as they go over the network.
//!
//! Rows go as they are stored, with the version of their layout; sender and receiver have the same definition of the table, or the operation is refused
//! ([`Failure::StaleSchema`]). Behind a scan may follow a program ([`crate::scan::pushdown`]); builds that do not know programs answer
//! [`Failure::Malformed`], and the scan is sent again without. What a peer sends is checked before anything relies on it: keys, rows and bounds come out of bytes that somebody else has made.

use super::operation::{Done, LookedUpTo, Op, Position, Scan, Seen};
use crate::table::TableInfo;
use bytes::Bytes;
use rauk_kernel::partition::TableUsage;
use rauk_kernel::{LookupPosition, NAMES, ScanEnd, ScanPosition, ScanRow, Verdict};
use rauk_types::{PartitionId, RowView, TableId, Timestamp, TxnId, View};
use serde::{Deserialize, Serialize};

/// One call on one partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpRequest {
    pub partition: PartitionId,
    /// The transaction, if it locks or writes, or has.
    pub txn: Option<TxnId>,
    /// Number of the call among those of this transaction on this process, from 1: a call that comes twice is done once.
    pub sequence: u32,
    /// The view that it belongs to: in which the transaction first touched the partition, or the scan began. `None`: whichever there is.
    pub view: Option<View>,
    /// Whether the transaction has touched the partition in that view: if it has no locks there (any more), they have died.
    pub touched: bool,
    /// The sender's group state: the receiver waits until it has as much (definitions of tables).
    pub index: u64,
    pub table: TableId,
    /// Of the table's definition.
    pub version: u32,
    /// As in `rauk_kernel::Access`.
    pub own_before: u32,
    pub statement: u32,
    /// `None`: the newest.
    pub snapshot: Option<Timestamp>,
    pub conflict_after: Option<Timestamp>,
    /// Rows that the transaction has written, for the choice of a deadlock's victim.
    pub writes: u64,
    /// First undoes the transaction's writes with this number and above, in all partitions here.
    pub undo_to: Option<u32>,
    /// How long it may wait for locks, in milliseconds.
    pub patience: u32,
    /// An [`Op`].
    pub op: Bytes,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpAnswer {
    /// In which it was done.
    pub view: View,
    pub observed: Timestamp,
    pub outcome: Result<Answer, Failure>,
}

impl OpAnswer {
    /// Nothing was done.
    pub fn failed(failure: Failure) -> OpAnswer {
        OpAnswer { view: View::default(), observed: Timestamp::ZERO, outcome: Err(failure) }
    }
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    Seen(Rows),
    Is(bool),
    /// `position` is behind the last of the rows.
    Scanned {
        rows: Rows,
        #[serde(with = "Position")]
        position: ScanPosition,
        finished: bool,
    },
    Usage {
        rows: u64,
        row_bytes: u64,
        hash_bytes: u64,
        ordered_bytes: u64,
        history_bytes: u64,
    },
    /// Of a scan whose program is known: the rows that it sends, and what it gives back beside them.
    Sifted {
        rows: Rows,
        #[serde(with = "Position")]
        position: ScanPosition,
        finished: bool,
        result: Bytes,
    },
    /// Of a name.
    Owner(Option<u64>),
    /// Of a lookup.
    LookedUp {
        rows: Rows,
        #[serde(with = "LookedUpTo")]
        position: LookupPosition,
        finished: bool,
    },
    /// How many rows are in.
    Count(u32),
}

/// Why an operation was not done; the transaction goes on unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The transaction was the victim, and has no locks here any more.
    Deadlock,
    LockTimeout,
    NoWait,
    Changed,
    SnapshotTooOld,
    MemoryFull {
        limit: u64,
    },
    Interrupted,
    StaleSchema,
    /// What the transaction had here died with a view, or the session is over.
    Lost,
    /// The receiver does not lead the partition, or may not answer for it at the moment. Nothing was done; if the transaction had touched the partition, what it had there counts as lost.
    NotHere,
    /// The receiver does not know yet what the sender knows of the catalog: again in a moment.
    Behind,
    /// A later call of the transaction has come before.
    Late,
    /// Not an operation.
    Malformed,
    /// The transaction's changes in the partition do not fit into one log entry, or the answer not into a message.
    TooLarge {
        bytes: u64,
        limit: u64,
    },
    /// A cycle among locks on names: nothing is lost.
    NameDeadlock,
    ReadOnly,
}

/// Rows one after the other: of point reads without keys, a missing one as [`MISSING`]; of lookups with the number of
/// the range in the place of the key, in four bytes, little end first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// Length of the key, length of the row, layout and [`CHANGED`].
    items: Vec<(u32, u32, u16)>,
    bytes: Bytes,
}

/// As a row's layout: there is no such row.
const MISSING: u16 = u16::MAX;
/// Bit beside a layout: a version of a row that has changed after the snapshot of the transaction (1020, if its visitor
/// keeps it).
const CHANGED: u16 = 1 << 15;

type Visitor<'v> = dyn FnMut(Seen<'_, '_>) -> Verdict + Send + 'v;

/// Rows being gathered.
#[derive(Default)]
pub struct Gatherer {
    items: Vec<(u32, u32, u16)>,
    bytes: Vec<u8>,
}

impl Rows {
    pub fn count(&self) -> usize {
        self.items.len()
    }

    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

impl Gatherer {
    pub fn push(&mut self, seen: Seen<'_, '_>) {
        let number;
        let (key, layout, row): (&[u8], u16, Option<&RowView<'_>>) = match &seen {
            Seen::Missing => (&[], MISSING, None),
            Seen::Row(row) => (&[], row.layout(), Some(row)),
            Seen::Scanned(row) if row.changed => (row.key, row.layout | CHANGED, Some(&row.row)),
            Seen::Scanned(row) => (row.key, row.layout, Some(&row.row)),
            Seen::Key(key) => (key, 0, None),
            Seen::Found(of, row) => {
                number = u32::try_from(*of).expect("few ranges in an operation").to_le_bytes();
                (&number, row.layout(), Some(row))
            }
        };
        self.bytes.extend_from_slice(key);
        let start = self.bytes.len();
        if let Some(row) = row {
            row.append_to(&mut self.bytes);
        }
        self.items.push((key.len() as u32, (self.bytes.len() - start) as u32, layout));
    }

    pub fn count(&self) -> usize {
        self.items.len()
    }

    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub fn finish(self) -> Rows {
        Rows { items: self.items, bytes: self.bytes.into() }
    }
}

/// What a reader of rows has come to.
#[derive(Debug, PartialEq, Eq)]
pub enum Shown {
    All,
    /// The visitor stopped; rows may be left.
    Stopped,
    /// It kept a row that has changed after the snapshot.
    Changed,
    /// These are no rows of the table.
    Malformed,
}

/// Rows that have come and are shown one by one.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    rows: Rows,
    next: usize,
    at: usize,
}

impl Reader {
    pub fn new(rows: Rows) -> Reader {
        Reader { rows, next: 0, at: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.next >= self.rows.items.len()
    }

    fn next(&mut self) -> Option<(u16, &[u8], &[u8])> {
        let &(key, row, layout) = self.rows.items.get(self.next)?;
        let middle = self.at.checked_add(key as usize)?;
        let end = middle.checked_add(row as usize)?;
        let (key, row) = (self.rows.bytes.get(self.at..middle)?, self.rows.bytes.get(middle..end)?);
        self.next += 1;
        self.at = end;
        Some((layout, key, row))
    }

    /// Shows rows of a point read.
    pub fn show_points(mut self, table: &TableInfo, visit: &mut Visitor<'_>) -> Shown {
        while !self.is_empty() {
            let Some((layout, _, row)) = self.next() else { return Shown::Malformed };
            if layout == MISSING {
                visit(Seen::Missing);
                continue;
            }
            let Some(row) = RowView::checked(&table.schema, layout, row) else { return Shown::Malformed };
            visit(Seen::Row(row));
        }
        Shown::All
    }

    pub fn show_keys(mut self, visit: &mut Visitor<'_>) -> Shown {
        while !self.is_empty() {
            let Some((_, key, _)) = self.next() else { return Shown::Malformed };
            visit(Seen::Key(key));
        }
        Shown::All
    }

    /// Shows rows of a lookup of so many ranges until the visitor stops.
    pub fn show_found(mut self, ranges: usize, table: &TableInfo, visit: &mut Visitor<'_>) -> Shown {
        while !self.is_empty() {
            let Some((layout, number, row)) = self.next() else { return Shown::Malformed };
            let number = number.try_into().map(|number| u32::from_le_bytes(number) as usize);
            let Some(number) = number.ok().filter(|number| *number < ranges) else { return Shown::Malformed };
            let Some(row) = RowView::checked(&table.schema, layout, row) else { return Shown::Malformed };
            if visit(Seen::Found(number, row)) == Verdict::KeepAndStop {
                return Shown::Stopped;
            }
        }
        Shown::All
    }

    /// Shows rows of a scan until the visitor stops.
    pub fn show(&mut self, table: &TableInfo, visit: &mut Visitor<'_>) -> Shown {
        while !self.is_empty() {
            let Some((marked, key, row)) = self.next() else { return Shown::Malformed };
            let (layout, changed) = (marked & !CHANGED, marked & CHANGED != 0);
            let Some(row) = RowView::checked(&table.schema, layout, row) else { return Shown::Malformed };
            match visit(Seen::Scanned(&ScanRow { key, layout, row, changed })) {
                Verdict::Keep | Verdict::KeepAndStop if changed => return Shown::Changed,
                Verdict::Keep | Verdict::Skip => {}
                Verdict::KeepAndStop | Verdict::SkipAndStop => return Shown::Stopped,
            }
        }
        Shown::All
    }
}

impl Answer {
    /// Of an operation that was done, and what its visitor saw.
    pub fn new(done: Done, rows: Rows, op: Op<'_>) -> Answer {
        match done {
            Done::Seen => Answer::Seen(rows),
            Done::Is(yes) => Answer::Is(yes),
            Done::Count(rows) => Answer::Count(rows),
            Done::Scanned(end) => {
                let finished = end == ScanEnd::Finished;
                match op {
                    Op::Scan(Scan { position, .. }) | Op::ScanKeys(Scan { position, .. }) => {
                        Answer::Scanned { rows, position, finished }
                    }
                    Op::LookUp(lookup) => Answer::LookedUp { rows, position: lookup.position, finished },
                    op => unreachable!("{op:?} is no scan"),
                }
            }
            Done::Usage(usage) => {
                let TableUsage { rows, row_bytes, hash_bytes, ordered_bytes, history_bytes } = usage;
                Answer::Usage { rows, row_bytes, hash_bytes, ordered_bytes, history_bytes }
            }
            Done::Owner(owner) => Answer::Owner(owner),
            Done::Unknown => unreachable!("said by the asker alone"),
        }
    }
}

pub fn encode(op: &Op<'_>) -> Bytes {
    let mut bytes = postcard::to_stdvec(op).expect("an operation can always be written");
    if let Op::Scan(Scan { pushdown: Some(pushdown), .. }) = op {
        bytes.extend_from_slice(pushdown.program());
    }
    bytes.into()
}

/// `None`: not an operation on this table that its partition can be asked for without harm.
pub fn decode<'a>(bytes: &'a [u8], table: &TableInfo, here: impl Fn(u16) -> bool) -> Option<Op<'a>> {
    let (mut op, mut rest) = postcard::take_from_bytes::<Op<'a>>(bytes).ok()?;
    if let Op::Scan(scan) = &mut op {
        scan.program = std::mem::take(&mut rest);
    }
    let at_home = |key: &super::operation::Key<'_>| {
        table.primary.is_whole(key.bytes) && here(table.route.bucket_of_key(key.bytes, key.hash))
    };
    let fits = |key: &super::operation::Key<'_>, row: &[u8]| {
        let newest = table.schema.layout().version;
        RowView::checked(&table.schema, newest, row).is_some_and(|row| table.primary.matches(&row, key.bytes))
    };
    let sound = rest.is_empty()
        && op.is_name() == (table.schema.id == NAMES)
        && match &op {
            Op::Read { key }
            | Op::ReadLocked { key, .. }
            | Op::LockAbsence { key }
            | Op::Delete { key }
            | Op::Change { key, .. }
            | Op::Name { key, .. } => at_home(key),
            Op::ReadMany { keys, done }
            | Op::LockMany { keys, done, .. }
            | Op::TakeMany { keys, done }
            | Op::DeleteMany { keys, done } => *done == 0 && keys.iter().all(at_home),
            Op::Insert { key, row } | Op::Update { key, row } => at_home(key) && fits(key, row),
            Op::InsertMany { rows, done } | Op::UpdateMany { rows, done } => {
                *done == 0 && rows.iter().all(|new| at_home(&new.key) && fits(&new.key, new.row))
            }
            Op::Scan(scan) => scan.request.table == table.schema.id && scan.slice > 0,
            Op::ScanKeys(scan) => {
                scan.request.table == table.schema.id && scan.slice > 0 && scan.request.lock.is_none()
            }
            Op::LookUp(lookup) => lookup.slice > 0,
            Op::LockRange { .. } | Op::Usage => true,
        };
    sound.then_some(op)
}
