//! What goes in and out of a replica: messages, log records, wishes, limits.
//!
//! Everything here is data. Messages come from other processes and are checked by who takes them; log records come from the own disk (its checksums have been
//! looked at) and are checked by [`super::Replay`].

use bytes::Bytes;
use rauk_types::{GroupId, Member, Position, View};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An entry is known by its place and the view in which its primary wrote it: equal ids are equal entries, and all before them are equal too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntryId {
    pub view: View,
    pub position: Position,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub id: EntryId,
    /// An encoded [`crate::Record`].
    pub record: Bytes,
}

/// What the control plane has decided about a group. Versions only grow; one with an older version than what is known
/// is passed over. `joining` may change without a new version: a process that is left out of it then is gone for ever
/// (who was asked to join under this version and is not listed any more, is never taken in under it).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub group: GroupId,
    pub version: u64,
    pub view: View,
    /// `None`: nobody leads until the control plane has named one.
    pub primary: Option<Member>,
    /// The primary among them.
    pub in_sync: Vec<Member>,
    /// Processes that are to hold the group and do not yet: the primary brings them what they lack.
    pub joining: Vec<Member>,
}

impl Assignment {
    /// Whether the process is to hold the group at all.
    pub fn names(&self, member: Member) -> bool {
        self.in_sync.contains(&member) || self.joining.contains(&member)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Holds nothing of the group.
    None,
    /// Follows the primary's stream, or waits for one.
    Follower,
    /// Primary of a view whose opening is not on all in-sync replicas yet: takes no work (rules 6, 23).
    Opening,
    /// Primary. It takes work, as long as its node's lease holds.
    Primary,
}

/// How far a replica's contents are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Contents {
    /// All entries up to the last are here: the group can be read and led.
    Whole,
    /// A copy is under way, or was cut off: rows may be missing.
    Partial,
}

/// Between replicas of one group. The envelope says which processes it is from and to (members of other incarnations
/// never get here: rule 21).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Primary → replica: `entries` follow directly on `previous`; everything up to `stable` is stable. Also without entries, to tell `stable`.
    Append { view: View, version: u64, previous: EntryId, entries: Vec<Entry>, stable: Position },
    /// Replica → primary: has everything up to `received`, of which up to `durable` is on disk. `copy`: the newest copy that it has begun in this view (0: none);
    /// `contents`: as they would be after a restart.
    Acknowledge { view: View, received: Position, durable: Position, copy: u64, contents: Contents },
    /// Replica → primary: `previous` is not what it has. `history`: the last position of each view in its log, newest first, bounded in number (none of a replica that has given
    /// its copy up); nothing at or before `floor` can be cut; `stable`: the newest entry that it knows to be stable (the default: it can name none); `contents` as they are.
    Mismatch { view: View, last: EntryId, history: Vec<EntryId>, floor: Position, stable: EntryId, contents: Contents },
    /// Primary → joiner: forget everything; entries will follow on `from`, rows come in slices. `state`: an encoded [`crate::TxnTable`] at `from`.
    CopyBegin { view: View, copy: u64, from: EntryId, stable: Position, history: Vec<EntryId>, state: Bytes },
    /// Primary → joiner: a slice of rows as they were when everything up to `at` was in the group. `last`: no more
    /// slices.
    CopySlice { view: View, copy: u64, number: u32, at: Position, rows: Bytes, last: bool },
    /// Joiner → primary: this slice is in (on disk, at `fsync`); `None`: ready for the first. The last slice is answered when the copy is whole (on disk).
    CopyTaken { view: View, copy: u64, number: Option<u32> },
    /// Primary → joiner: the rows there are damaged (rule 79): forget everything, a copy will follow. `copy`: the newest
    /// copy that was begun for it in this view (0: none).
    Discard { view: View, copy: u64 },
}

impl Message {
    /// In which it was said.
    pub fn view(&self) -> View {
        match self {
            Message::Append { view, .. }
            | Message::Acknowledge { view, .. }
            | Message::Mismatch { view, .. }
            | Message::CopyBegin { view, .. }
            | Message::CopySlice { view, .. }
            | Message::CopyTaken { view, .. }
            | Message::Discard { view, .. } => *view,
        }
    }
}

/// What goes into the node's redo log, in this order; restart reads it back in order. A record may be there more than once after a restart of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogRecord {
    /// An entry; what stood at its position and behind is cut. Everything up to `stable` was known to be stable before the entry came.
    Entry { entry: Entry, stable: Position },
    /// Stable up to here.
    Stable { stable: Position },
    /// A copy begins: rows and entries before this count for nothing.
    Reset { from: EntryId, stable: Position, history: Vec<EntryId>, state: Bytes },
    /// Rows of a copy (as [`Message::CopySlice`] has them).
    Rows { rows: Bytes },
    /// The copy is whole.
    Whole,
    /// The replica as it was when a checkpoint began: restart begins reading here. `kept`: the newest entries, all that are not known to be stable among them
    /// (they are in `state` too, but may be cut, or have to be sent to others).
    /// While a copy is under way ([`super::Replica::copies_in`]), restart has to begin reading at the copy's `Reset`, not here, and the log is kept from there on: rows
    /// of a group that is not whole are in no checkpoint.
    Anchor {
        last: EntryId,
        stable: Position,
        history: Vec<EntryId>,
        kept: Vec<Entry>,
        contents: Contents,
        state: Bytes,
    },
}

/// What the block wants done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Send {
        to: Member,
        message: Message,
    },
    /// Append to the redo log, in the order of `number` (1, 2, 3 … of this block); [`super::Replica::on_durable`] is told the highest number that is on disk with all before it.
    Log {
        record: LogRecord,
        number: u64,
    },
    /// An entry is in the stream that was not proposed by the caller (a follower has got it, or it is the primary's own opening): show it to the transaction table.
    Received {
        entry: Entry,
    },
    /// Entries behind `after` are void.
    Cut {
        after: Position,
    },
    /// Everything up to here is on all in-sync replicas.
    Stable {
        upto: Position,
    },
    /// Empty the group and take this state.
    Reset {
        state: Bytes,
    },
    /// Put these rows in, where nothing as new or newer is (equal times: what is there stays).
    Install {
        rows: Bytes,
    },
    /// All rows are in: build what restoring left out, adopt pending transactions.
    Finish,
    /// Read the next slice of the copy for this joiner, beginning at `cursor` (empty: the first), and give it to [`super::Replica::on_slice`].
    ReadSlice {
        to: Member,
        copy: u64,
        cursor: Bytes,
    },
    /// Give the encoded transaction table, as it is now, to [`super::Replica::on_copy_state`]; if it is too long to be sent, not yet: this comes again.
    ReadState {
        to: Member,
    },
    /// Ask the control plane to take a member into the in-sync set: it has all that rule 24 asks for, and counts from
    /// now on.
    RequestJoin {
        version: u64,
        member: Member,
    },
    /// Ask the control plane to strike a member that holds everything up (its acknowledgements have stopped).
    RequestStrike {
        version: u64,
        member: Member,
    },
    /// Primary: an in-sync member knows an entry to be stable that is not in this stream. So what this process has from its disk is older than what its node has acknowledged, and it must end (rule 38).
    Lacking {
        member: Member,
        stable: EntryId,
    },
    /// Primary: a joiner knows an entry to be stable that is not in this stream, and gets a copy in place of all that it has. Said once for each.
    Discards {
        member: Member,
        stable: EntryId,
    },
    /// The primary knows the rows here to be damaged, and nobody counts on them: [`super::Replica::discard`] is to be called.
    Damaged,
    /// The role, or the view, has changed.
    Role {
        role: Role,
        view: View,
    },
    /// How far a joiner is, for the operator: bytes of rows sent; what is still to go is not known exactly.
    Progress {
        member: Member,
        sent: u64,
    },
}

pub type Outbox = Vec<Output>;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of entries kept in memory for replicas that come back; beyond, the oldest that all in-sync replicas have go, and who lacks them gets a copy.
    pub kept_bytes: usize,
    /// Bytes of entries in one message.
    pub append_bytes: usize,
    /// Bytes of entries sent to one replica that it has not said to have received. One message more may be under way.
    pub flight_bytes: usize,
    /// Acknowledged on receipt, or when durable.
    pub durable: bool,
    /// An append without an answer is sent again after this.
    pub resend: Duration,
    /// Silence after which the stable position is told to followers.
    pub heartbeat: Duration,
    /// An in-sync replica that has acknowledged nothing new for so long, while something waits for it, is to be removed
    /// from the in-sync set.
    pub strike_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            kept_bytes: 16 << 20,
            append_bytes: 256 << 10,
            flight_bytes: 2 << 20,
            durable: true,
            resend: Duration::from_millis(50),
            heartbeat: Duration::from_millis(10),
            strike_after: Duration::from_millis(350),
        }
    }
}

/// What a restart has read back. All of it counts as durable: recovery has synced the log that it goes on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub contents: Contents,
    pub stable: Position,
    /// The last position of each view, oldest first; from the first entry of `kept` on at least.
    pub history: Vec<EntryId>,
    /// The newest entries, in order, as many as fit [`Limits::kept_bytes`], and all behind `stable`.
    pub kept: Vec<Entry>,
}
