//! What an entry of a group's stream says, and its bytes.
//!
//! The bytes are a version and the record in postcard. Reading is strict: another version, bytes that end early or go on after the record, and
//! values that no primary writes (participants that are not sorted) give `None`. The writes of a record that was read share the memory of the bytes
//! it was read from, so that an entry is held once, by the stream, the transaction table and the log together.

use bytes::Bytes;
use rauk_types::{GroupId, Timestamp, TxnId, View};
use serde::{Deserialize, Serialize};

/// First byte of every record.
const VERSION: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    Committed(Timestamp),
    Aborted,
}

/// An entry's content. `writes` is a payload of `rauk_log::record` (changes of rows by key), opaque here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// The first entry of a view.
    Opening,
    /// A transaction of this group alone: committed at `time` when the entry is stable.
    Commit { txn: TxnId, time: Timestamp, writes: Bytes },
    /// This group's part of a transaction. `participants`: all of them, sorted. `least`: the least time that it can
    /// commit at, as this group sees it.
    Prepare { txn: TxnId, participants: Vec<GroupId>, least: Timestamp, writes: Bytes },
    /// A prepared transaction is decided.
    Decide { txn: TxnId, outcome: Outcome },
    /// Somebody asked about a transaction that is not known here: it is refused for ever (rule 3).
    Fence { txn: TxnId },
    /// Nobody will ask any more (rule 8).
    Forget { txns: Vec<TxnId> },
    /// Everything that commits at or before `time` here is decided before this entry (rule 27). `view`: that of the entry.
    Cut { time: Timestamp, view: View },
    /// What a large transaction has written so far (rule 63). `series`: chunks of one series come after one another and
    /// are taken back from the last on; `number`: of those that stand, from 0 on.
    Chunk { txn: TxnId, series: u16, number: u32, writes: Bytes },
    /// Of this series only so many chunks stand (rule 65).
    Back { txn: TxnId, series: u16, left: u32 },
    /// What stands, said before the commit or prepare that rests on it (rule 64).
    Count { txn: TxnId, counts: Vec<Counted> },
    /// Every replica tells the digests of its rows as they are at this place (rule 78).
    Compare,
}

/// The chunks of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub series: u16,
    pub chunks: u32,
    /// Of their bytes.
    pub digest: u32,
}

/// [`Record`] as it is read: the writes still lie in the bytes. The same variants and fields in the same order.
#[derive(Deserialize)]
enum Borrowed<'a> {
    Opening,
    Commit { txn: TxnId, time: Timestamp, writes: &'a [u8] },
    Prepare { txn: TxnId, participants: Vec<GroupId>, least: Timestamp, writes: &'a [u8] },
    Decide { txn: TxnId, outcome: Outcome },
    Fence { txn: TxnId },
    Forget { txns: Vec<TxnId> },
    Cut { time: Timestamp, view: View },
    Chunk { txn: TxnId, series: u16, number: u32, writes: &'a [u8] },
    Back { txn: TxnId, series: u16, left: u32 },
    Count { txn: TxnId, counts: Vec<Counted> },
    Compare,
}

/// Where these stand among the variants.
const DECIDE: u8 = 3;
const FORGET: u8 = 5;
const CUT: u8 = 6;
const CHUNK: u8 = 7;
const BACK: u8 = 8;
const COMPARE: u8 = 10;

impl Record {
    /// Whether these bytes are a cut, if they are a record.
    pub fn is_cut(bytes: &[u8]) -> bool {
        bytes.starts_with(&[VERSION, CUT])
    }

    /// Whether somebody waits for the entry with these bytes, if they are a record: nobody does for what follows a
    /// decision, for chunks, and for a comparison.
    pub fn is_waited_for(bytes: &[u8]) -> bool {
        !matches!(bytes, [VERSION, DECIDE | FORGET | CHUNK | BACK | COMPARE, ..])
    }

    pub fn encode(&self) -> Bytes {
        let writes = match self {
            Record::Commit { writes, .. } | Record::Prepare { writes, .. } | Record::Chunk { writes, .. } => {
                writes.len()
            }
            _ => 0,
        };
        let mut bytes = Vec::with_capacity(writes + 48);
        bytes.push(VERSION);
        postcard::to_extend(self, bytes).expect("a record can always be written").into()
    }

    /// `None`: not a record. The writes share the memory of `bytes`.
    pub fn decode(bytes: &Bytes) -> Option<Record> {
        let (&VERSION, rest) = bytes.split_first()? else { return None };
        let (borrowed, rest) = postcard::take_from_bytes(rest).ok()?;
        if !rest.is_empty() {
            return None;
        }
        Some(match borrowed {
            Borrowed::Opening => Record::Opening,
            Borrowed::Commit { txn, time, writes } => Record::Commit { txn, time, writes: bytes.slice_ref(writes) },
            Borrowed::Prepare { txn, participants, least, writes } => {
                if !is_sorted(&participants) {
                    return None;
                }
                Record::Prepare { txn, participants, least, writes: bytes.slice_ref(writes) }
            }
            Borrowed::Decide { txn, outcome } => Record::Decide { txn, outcome },
            Borrowed::Fence { txn } => Record::Fence { txn },
            Borrowed::Forget { txns } => Record::Forget { txns },
            Borrowed::Cut { time, view } => Record::Cut { time, view },
            Borrowed::Chunk { txn, series, number, writes } => {
                Record::Chunk { txn, series, number, writes: bytes.slice_ref(writes) }
            }
            Borrowed::Back { txn, series, left } => Record::Back { txn, series, left },
            Borrowed::Count { txn, counts } => Record::Count { txn, counts },
            Borrowed::Compare => Record::Compare,
        })
    }
}

/// Sorted, without doubles.
pub(super) fn is_sorted(participants: &[GroupId]) -> bool {
    participants.windows(2).all(|pair| pair[0] < pair[1])
}
