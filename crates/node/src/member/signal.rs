//! What nodes say to each other.

use super::processes::{KillOutcome, ProcessInfo};
use super::report::{Report, Wanted};
use crate::ops::{Edge, OpAnswer, OpRequest};
use rauk_cluster::{Outcome, Vote};
use rauk_types::{GroupId, Member, PartitionId, ProcessId, Timestamp, TxnId, View};
use serde::{Deserialize, Serialize};

/// Around every signal. One that is not for this process is dropped (rule 21), one from a process that this node knows to be gone too.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Envelope {
    pub cluster: [u8; 16],
    pub from: Member,
    pub to: Member,
    /// The catalog that the sender knows: what a stream carries for a table waits until the receiver knows the table.
    pub catalog: u64,
    pub exchange: Exchange,
    pub signal: Signal,
}

impl Envelope {
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("a signal can always be written")
    }

    /// `None`: not an envelope.
    pub fn decode(bytes: &[u8]) -> Option<Envelope> {
        postcard::from_bytes(bytes).ok()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exchange {
    OneWay,
    /// Answered with the same number.
    Request(u64),
    Answer(u64),
}

/// A partition of a group where a transaction has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub partition: PartitionId,
    /// Writes with this number and above are to be undone before anything else (a savepoint's rollback that the primary
    /// has not been told).
    pub undo_to: Option<u32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Signal {
    /// Between replicas of a group.
    Replica {
        group: GroupId,
        message: rauk_cluster::replica::Message,
    },

    /// An operation of a transaction on a partition led by the receiver. → `OpDone`
    Op(Box<OpRequest>),
    OpDone(Box<OpAnswer>),
    /// The transaction is over without a commit: its locks and writes on the receiver go. One way, sent again with `Alive`.
    End {
        txn: TxnId,
    },
    /// Which of these transactions of the receiver still run? → `Running`
    Alive {
        txns: Vec<TxnId>,
    },
    Running {
        txns: Vec<TxnId>,
    },
    /// Waits for locks that have lasted: (who waits, for whom), for the search for deadlocks over nodes. One way.
    Waits {
        edges: Vec<Edge>,
    },
    /// The statement was interrupted (KILL): ends the wait of the transaction's call with this number. One way.
    Interrupt {
        txn: TxnId,
        sequence: u32,
    },

    /// Where the transaction only has locks: has it held them, in this view, until now? It gives them back. → `Done`
    Verify {
        txn: TxnId,
        partition: PartitionId,
        view: View,
    },
    /// → `Voted`, when the prepare is stable; `OpDone`, if it never will be: the changes do not fit into an entry
    Prepare {
        txn: TxnId,
        group: GroupId,
        view: View,
        parts: Vec<Part>,
        participants: Vec<GroupId>,
        seen: Timestamp,
    },
    /// It has written in this group only: commit it, or say what has become of it. → `Voted`, when its entry is stable;
    /// `Done`: it had written nothing `last`: a write there that has not been done yet, and comes first. → `OpDone`, if
    /// that fails: nothing is committed
    Commit {
        txn: TxnId,
        group: GroupId,
        view: View,
        parts: Vec<Part>,
        seen: Timestamp,
        last: Option<Box<OpRequest>>,
    },
    /// What became of it there? Answered when the record that the answer rests on is stable. → `Voted`
    Ask {
        txn: TxnId,
        group: GroupId,
    },
    Voted {
        group: GroupId,
        vote: Vote,
    },
    /// The transaction is decided. → `Done`, when that is on all in-sync replicas
    Decide {
        txn: TxnId,
        group: GroupId,
        outcome: Outcome,
    },
    /// All participants have confirmed the outcome. One way.
    Forget {
        group: GroupId,
        txns: Vec<TxnId>,
    },

    /// To the control-plane leader: asks for the lease. `oldest`: the oldest snapshot in use; `wanted`: a cut is wanted
    /// that is not older. → `Grant`
    Heartbeat {
        index: u64,
        oldest: Timestamp,
        wanted: Timestamp,
    },
    /// `index`: of the last command committed before the grant; `oldest`: no snapshot in the cluster is or will be older; `counter`: every time drawn from now on is above it.
    Grant {
        granted: bool,
        index: u64,
        oldest: Timestamp,
        counter: Timestamp,
    },
    /// To the control-plane leader: a snapshot time. → `Time`
    DrawTime,
    Time {
        time: Option<Timestamp>,
    },
    /// Read on replicas of these groups at this snapshot: their primary confirms it (rule 11). → `Confirmed`
    Confirm {
        groups: Vec<GroupId>,
        snapshot: Timestamp,
    },
    /// A replica may read at the snapshot once it has everything up to this place of its stream. Of those that were asked for, the ones that the sender leads.
    Confirmed {
        places: Vec<(GroupId, rauk_cluster::EntryId)>,
    },
    /// → `Done`, when the receiver's tables and partitions have followed the group to this index
    Follow {
        index: u64,
    },
    /// The sender's process has locked an intent's tables. One way to the owner, repeated.
    Locked {
        intent: u64,
        process: ProcessId,
    },
    /// The sender's process has filled the new ordered indexes of a DDL job of the receiver; `full`: it could not, for this memory limit. One way, repeated.
    Filled {
        job: rauk_manage::JobId,
        process: ProcessId,
        full: Option<u64>,
    },
    /// Answered when the receiver has followed the group's state of this index, tables and partitions included. → `Done`
    Reached {
        index: u64,
    },

    /// What does the receiver tell of itself? → `Reported`
    Report {
        wanted: Wanted,
    },
    Reported {
        report: Box<Report>,
    },

    /// From the control-plane leader: a cut at this time in groups that the receiver leads. → `CutDone`
    Cut {
        time: Timestamp,
        groups: Vec<GroupId>,
    },
    /// The cut is on the disks of all in-sync replicas of these, at these places.
    CutDone {
        time: Timestamp,
        entries: Vec<(GroupId, rauk_cluster::EntryId)>,
    },

    /// Numbers of a counter up to this value are not to be given out any more. → `Done`
    Skip {
        counter: rauk_types::TableId,
        value: u64,
    },

    /// The memory of the sender's process is nearly used up; this is its limit. One way, repeated as long as it is so.
    Full {
        limit: u64,
    },

    /// To the primary: the digests of the sender's rows of a partition at this entry, by table (rule 78). One way.
    Digests {
        partition: PartitionId,
        entry: rauk_cluster::EntryId,
        digests: rauk_cluster::comparison::Digests,
    },
    /// To the primary: the sender has found that its memory of a partition is damaged. One way.
    Damaged {
        partition: PartitionId,
        table: rauk_types::TableId,
    },

    Done,
    /// The receiver cannot answer: it does not lead (any more), or has no lease. Nothing was done.
    NotHere,

    /// Who is connected to the receiver: of this user, or all. → `Sessions`
    ListSessions {
        user: Option<String>,
    },
    Sessions {
        sessions: Vec<ProcessInfo>,
    },
    /// End a session of the receiver, or what it runs, if it is of this user. → `SessionKilled`
    KillSession {
        id: u32,
        query_only: bool,
        user: Option<String>,
    },
    SessionKilled {
        outcome: KillOutcome,
    },
    /// The sender's replica of the group has stopped, in this view, after so many copies (rule 80). One way, repeated.
    Stopped {
        group: GroupId,
        view: View,
        copy: u64,
    },
}

impl Signal {
    /// Of leases and snapshot times, which must not wait behind other work.
    pub fn is_beat(&self) -> bool {
        matches!(self, Signal::Heartbeat { .. } | Signal::Grant { .. } | Signal::DrawTime | Signal::Time { .. })
    }
}
