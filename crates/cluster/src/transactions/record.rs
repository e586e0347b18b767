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
}

/// Where these stand among the variants.
const DECIDE: u8 = 3;
const FORGET: u8 = 5;
const CUT: u8 = 6;

impl Record {
    /// Whether these bytes are a cut, if they are a record.
    pub fn is_cut(bytes: &[u8]) -> bool {
        bytes.starts_with(&[VERSION, CUT])
    }

    /// Whether these bytes say what follows a decision, for which no client waits, if they are a record.
    pub fn is_aftermath(bytes: &[u8]) -> bool {
        bytes.starts_with(&[VERSION, DECIDE]) || bytes.starts_with(&[VERSION, FORGET])
    }

    pub fn encode(&self) -> Bytes {
        let writes = match self {
            Record::Commit { writes, .. } | Record::Prepare { writes, .. } => writes.len(),
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
        })
    }
}

/// Sorted, without doubles.
pub(super) fn is_sorted(participants: &[GroupId]) -> bool {
    participants.windows(2).all(|pair| pair[0] < pair[1])
}
