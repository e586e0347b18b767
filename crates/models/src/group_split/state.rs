//! What a state of the model is made of. Partition 0 has row 0, partition 1 has row 1. A split turns stream 0, which
//! has both partitions, into streams 1 and 2; a merge turns streams 0 and 1, a partition each, into stream 2. Times are
//! small numbers: the service's counter and what is built from it.

use super::Form;

pub const NODES: usize = 2;
pub const STREAMS: usize = 3;
pub const PARTITIONS: usize = 2;
pub const TRANSACTIONS: usize = 2;

/// An entry of a stream. A transaction of which both parents of a merge have an entry has two in the heir.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entry {
    /// All that a transaction has written in the group, with its commit time.
    Write { transaction: u8, rows: u8, time: u8 },
    /// The same of the first transaction, with its least time.
    Prepare { rows: u8, least: u8 },
    /// The first transaction is decided: its commit time, or aborted. Says so for these rows.
    Decide { rows: u8, time: Option<u8> },
    /// The first transaction has no prepare here, and gets none.
    Refuse,
    /// The last entry of a parent: snapshots up to this one were read.
    End { max_read: u8 },
}

/// A replication group, from its first view to its end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream {
    /// 0: the group does not exist yet.
    pub view: u8,
    pub leader: u8,
    /// The other node is in-sync too.
    pub both: bool,
    pub max_read: u8,
    /// Entries that the group has from its parents, at each node that had all.
    pub inherited: u8,
    /// By node: its log.
    pub logs: [Vec<Entry>; NODES],
}

impl Stream {
    pub fn log(&self) -> &[Entry] {
        &self.logs[usize::from(self.leader)]
    }

    /// How much of the leader's log is on all in-sync nodes.
    pub fn stable(&self) -> usize {
        let other = self.logs[1 - usize::from(self.leader)].len();
        if self.both { self.log().len().min(other) } else { self.log().len() }
    }

    /// The place of the last entry, once it is there, and its number.
    pub fn end(&self) -> Option<(usize, u8)> {
        self.log().iter().enumerate().find_map(|(place, entry)| match entry {
            Entry::End { max_read } => Some((place, *max_read)),
            _ => None,
        })
    }

    /// The first transaction is prepared here for `row` and not decided: its least time.
    pub fn prepared(&self, row: usize) -> Option<u8> {
        let of_row = |rows: u8| rows & (1 << row) != 0;
        let log = self.log();
        let decided = log.iter().any(|entry| matches!(entry, Entry::Decide { rows, .. } if of_row(*rows)));
        log.iter().find_map(|entry| match entry {
            Entry::Prepare { rows, least } if of_row(*rows) && !decided => Some(*least),
            _ => None,
        })
    }

    /// Whether there is a record of the first transaction's prepare, decided or not, and it is stable.
    pub fn is_prepared(&self) -> bool {
        self.log()[..self.stable()].iter().any(|entry| matches!(entry, Entry::Prepare { .. }))
    }

    /// Whether it will never be prepared here: a stable refusal, or the stable end of the stream without a record.
    pub fn has_refused(&self) -> bool {
        let stable = &self.log()[..self.stable()];
        let ended = stable.iter().any(|entry| matches!(entry, Entry::End { .. }));
        stable.contains(&Entry::Refuse) || ended && !self.has_record()
    }

    pub fn has_record(&self) -> bool {
        self.log().iter().any(|entry| matches!(entry, Entry::Prepare { .. } | Entry::Refuse))
    }

    /// The place of the only entry of a transaction that wrote in this group alone.
    pub fn entry_of(&self, wanted: usize) -> Option<usize> {
        let of =
            |entry: &Entry| matches!(entry, Entry::Write { transaction, .. } if usize::from(*transaction) == wanted);
        self.log().iter().position(of)
    }

    /// The commit time of a transaction for `row`, and the place of the entry that says so.
    pub fn committed(&self, transaction: usize, row: usize) -> Option<(u8, usize)> {
        self.log().iter().enumerate().find_map(|(place, entry)| match *entry {
            Entry::Write { transaction: of, rows, time } if usize::from(of) == transaction => {
                (rows & (1 << row) != 0).then_some((time, place))
            }
            Entry::Decide { rows, time: Some(time) } if transaction == 0 => {
                (rows & (1 << row) != 0).then_some((time, place))
            }
            _ => None,
        })
    }

    /// The newest commit time among the entries from `first` on.
    pub fn finished(&self, first: usize) -> u8 {
        let times = self.log().iter().skip(first).filter_map(|entry| match entry {
            Entry::Write { time, .. } => Some(*time),
            Entry::Decide { time, .. } => *time,
            _ => None,
        });
        times.max().unwrap_or(0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    Active,
    /// It asks participants to prepare, or waits for its one entry's outcome.
    Committing,
    Aborted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transaction {
    pub status: Status,
    /// By row: the group and the view in which its lock was taken.
    pub locks: [Option<(u8, u8)>; PARTITIONS],
    /// The group and the view of its only entry.
    pub asks: Option<(u8, u8)>,
    /// The groups that take part in a commit in two phases, one bit each.
    pub participants: u8,
    pub reported: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub form: Form,
    pub clock: u8,
    /// One bit each.
    pub up: u8,
    pub streams: [Stream; STREAMS],
    /// The control plane has put the heirs in the place of the parents.
    pub replaced: bool,
    pub transactions: [Transaction; TRANSACTIONS],
    /// What the first transaction's coordinator has decided: its commit time, or aborted.
    pub fate: Option<Option<u8>>,
    /// The coordinator has forgotten that.
    pub forgotten: bool,
    /// 0: not drawn.
    pub snapshot: u8,
    pub seen: [Option<u8>; PARTITIONS],
    pub unrepeatable: bool,
    /// A read of the newest state missed what had been reported or shown before it.
    pub stale: bool,
    /// By row: transactions whose write a reader has seen, one bit each.
    pub shown: [u8; PARTITIONS],
    pub crashes_left: u8,
    pub removals_left: u8,
}

impl State {
    /// The group that has a partition, as the control plane has it.
    pub fn owner(&self, row: usize) -> usize {
        match (self.form, self.replaced) {
            (Form::Split, false) => 0,
            (Form::Split, true) => 1 + row,
            (Form::Merge, false) => row,
            (Form::Merge, true) => 2,
        }
    }

    /// Who answers now for what a group was told: an heir, where it has ended.
    pub fn heir_of(&self, stream: usize) -> usize {
        match (self.form, self.replaced, stream) {
            (Form::Split, true, 0) => 1,
            (Form::Merge, true, _) => 2,
            _ => stream,
        }
    }

    pub fn is_parent(&self, stream: usize) -> bool {
        match self.form {
            Form::Split => stream == 0,
            Form::Merge => stream < 2,
        }
    }

    pub fn is_up(&self, node: usize) -> bool {
        self.up & (1 << node) != 0
    }

    /// The group, while its leader is up.
    pub fn led(&self, stream: usize) -> Option<&Stream> {
        let own = &self.streams[stream];
        (own.view > 0 && self.is_up(own.leader.into())).then_some(own)
    }

    pub fn push(&mut self, stream: usize, entry: Entry) {
        let own = &mut self.streams[stream];
        own.logs[usize::from(own.leader)].push(entry);
    }

    /// Whether a transaction holds the lock of a row in this group, taken in its view.
    pub fn holds(&self, transaction: usize, row: usize, stream: usize) -> bool {
        let own = &self.transactions[transaction];
        own.status != Status::Aborted && own.locks[row] == Some((stream as u8, self.streams[stream].view))
    }
}
