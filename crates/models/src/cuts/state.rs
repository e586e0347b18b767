//! What a state of the model of cuts is made of: the log of every replica (its memory is what the whole log says, and
//! dies with the process), what the manage group has noted, and what has become of the transactions, which nobody in
//! the model looks at.

pub const NODES: usize = 3;
pub const PARTITIONS: usize = 2;
pub const TRANSACTIONS: usize = 2;

/// An entry of a partition's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entry {
    Prepare {
        transaction: u8,
        least: u8,
    },
    /// What was prepared has committed at this time.
    Outcome {
        transaction: u8,
        time: u8,
    },
    /// A transaction of this partition alone.
    Commit {
        transaction: u8,
        time: u8,
    },
    Cut {
        time: u8,
    },
}

/// An entry, and the view in which it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Written {
    pub view: u8,
    pub entry: Entry,
}

/// What a stream comes to: rows and open transactions. Of a row only the newest version is there, so that what was committed cannot be taken out of rows again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rows {
    /// Entries so far.
    pub position: u8,
    /// In which the last of them was written. View and position together name an entry: the same one, the same stream up to there.
    pub view: u8,
    /// The newest cut among them.
    pub cut: u8,
    /// Commit time of each transaction that is in the rows, 0 where it is not.
    pub committed: [u8; TRANSACTIONS],
    /// Least timestamp of each that is prepared and not decided.
    pub prepared: [u8; TRANSACTIONS],
}

impl Rows {
    pub fn take(&mut self, written: Written) {
        self.position += 1;
        self.view = written.view;
        match written.entry {
            Entry::Prepare { transaction, least } => self.prepared[usize::from(transaction)] = least,
            Entry::Outcome { transaction, time } | Entry::Commit { transaction, time } => {
                self.prepared[usize::from(transaction)] = 0;
                self.committed[usize::from(transaction)] = time;
            }
            Entry::Cut { time } => self.cut = time,
        }
    }

    /// Is the transaction here, decided or not?
    pub fn has(&self, transaction: usize) -> bool {
        self.committed[transaction] > 0 || self.prepared[transaction] > 0
    }

    /// Is anything undecided that may commit at or below `time`?
    pub fn is_open_before(&self, time: u8) -> bool {
        self.prepared.iter().any(|least| (1..=time).contains(least))
    }
}

/// A record of a replica's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Record {
    Entry(Written),
    /// What stood behind this position is not of the stream.
    Rewind {
        position: u8,
    },
    /// A copy begins: what was there before is void.
    Reset,
    /// The copy is whole, and these are its rows.
    Whole(Rows),
}

/// A partition's stream as one replica has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    pub base: Rows,
    pub entries: Vec<Written>,
}

impl Stream {
    pub fn last(&self) -> u8 {
        self.base.position + self.entries.len() as u8
    }

    /// Of what it has up to a position.
    pub fn rows(&self) -> Rows {
        let mut rows = self.base;
        self.entries.iter().for_each(|entry| rows.take(*entry));
        rows
    }

    pub fn position_of(&self, entry: Entry) -> Option<u8> {
        let at = self.entries.iter().position(|written| written.entry == entry)?;
        Some(self.base.position + at as u8 + 1)
    }

    /// The view of the entry at a position, or at the base where that is behind it.
    pub fn view_at(&self, position: u8) -> u8 {
        let behind_base = usize::from(position.saturating_sub(self.base.position));
        behind_base.checked_sub(1).map_or(self.base.view, |at| self.entries[at].view)
    }

    pub fn behind(&self, position: u8) -> &[Written] {
        &self.entries[usize::from(position - self.base.position)..]
    }

    /// How far two streams are the same. `None`: what they still have of their entries does not tell.
    pub fn common(&self, other: &Stream) -> Option<u8> {
        let first = self.base.position.max(other.base.position);
        let last = self.last().min(other.last());
        (first..=last).rev().find(|position| self.view_at(*position) == other.view_at(*position))
    }
}

/// One replica's log of one partition: the checkpoint, and the records behind it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Log {
    /// `None`: the checkpoint has no rows of it.
    pub base: Option<Rows>,
    pub records: Vec<Record>,
    /// So many records are on disk.
    pub durable: u8,
}

impl Log {
    pub fn of(base: Option<Rows>) -> Log {
        Log { base, records: Vec::new(), durable: 0 }
    }

    pub fn len(&self) -> u8 {
        self.records.len() as u8
    }

    pub fn flush(&mut self) {
        self.durable = self.len();
    }

    /// What a process has in memory that has written, or read, all of this log. `None`: a copy is not whole.
    pub fn stream(&self) -> Option<Stream> {
        let mut stream = self.base.map(|base| Stream { base, entries: Vec::new() });
        for record in &self.records {
            follow(&mut stream, *record);
        }
        stream
    }

    /// Is a cut's entry among the first `upto` records?
    pub fn has_cut(&self, time: u8, upto: u8) -> bool {
        let is_cut = |record: &Record| matches!(record, Record::Entry(written) if written.entry == Entry::Cut { time });
        self.records.iter().take(usize::from(upto)).any(is_cut)
    }
}

/// The stream after one more record of the log.
pub fn follow(stream: &mut Option<Stream>, record: Record) {
    match (record, stream.as_mut()) {
        (Record::Entry(written), Some(stream)) => stream.entries.push(written),
        (Record::Rewind { position }, Some(stream)) => {
            stream.entries.truncate(usize::from(position - stream.base.position));
        }
        (Record::Whole(base), _) => *stream = Some(Stream { base, entries: Vec::new() }),
        (Record::Reset, _) => *stream = None,
        (Record::Entry(_) | Record::Rewind { .. }, None) => {}
    }
}

/// What the manage group knows of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// Named by the time that its primary drew when it began to lead, 0 for the first.
    pub view: u8,
    pub primary: Option<u8>,
    /// One bit a node. All of them are up; or it is one node, the last that had the partition in memory, and its process
    /// is silent, or has ended, and no other has registered since.
    pub in_sync: u8,
    /// The last process that had it in memory has ended.
    pub gone: bool,
    /// The primary's.
    pub max_read: u8,
    /// The primary has been asked for the newest cut.
    pub asked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Life {
    Down,
    /// Its lease has ended and it has not. It has its memory, and does nothing until it hears of that.
    Silent,
    /// It has read its disk and does not count yet.
    Opened {
        /// The cluster has gone back since.
        outdated: bool,
        /// Partitions that are as the cut has them to which the cluster had gone back then.
        holds: u8,
        /// Its log has everything that the process before had in memory.
        kept: bool,
    },
    Up,
}

/// A checkpoint that is written and not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Checkpoint {
    pub rows: [Option<Rows>; PARTITIONS],
    /// Records of each log that it takes the place of.
    pub replaces: [u8; PARTITIONS],
    /// Drawn when its last row had been read.
    pub drawn: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    pub life: Life,
    /// Its disk has not gone back yet as the cluster has.
    pub goes_back: bool,
    pub logs: [Log; PARTITIONS],
    pub checkpoint: Option<Checkpoint>,
    /// Its disk says that the process that registered last was fenced, and has written there all that it had in memory.
    pub fenced: bool,
}

/// A complete cut; at time 0 the empty cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cut {
    pub time: u8,
    /// By partition: the position of its entry.
    pub positions: [u8; PARTITIONS],
    /// By partition, one bit a node.
    pub holders: [u8; PARTITIONS],
}

/// What has been seen to be wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wrong {
    pub newer: bool,
    pub missing: bool,
    pub not_held: bool,
    pub older_cut: bool,
    pub strayed: bool,
    pub lost: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// The timestamp service.
    pub clock: u8,
    pub partitions: [Partition; PARTITIONS],
    pub nodes: [Node; NODES],
    /// The newest cut that was drawn, and is not complete or void.
    pub drawn: Option<u8>,
    /// The one before, if it may still become complete.
    pub drawn_before: Option<u8>,
    /// The last complete cut.
    pub cut: Cut,
    /// The one to which the cluster has gone back.
    pub recovery: Cut,
    /// By partition and transaction: its least timestamp, when the partition has said that it is prepared and it has not committed yet; else 0.
    pub said: [[u8; TRANSACTIONS]; PARTITIONS],
    /// When each transaction committed, 0 if it has not. From here on it may be acknowledged.
    pub commits: [u8; TRANSACTIONS],
    pub crashes_left: u8,
    pub strikes_left: u8,
    pub cuts_left: u8,
    pub reads_left: u8,
    pub checkpoints_left: u8,
    pub silences_left: u8,
    /// A process has ended, or was silent for longer than the bound: what it had in memory may be lost.
    pub ended: bool,
    pub wrong: Wrong,
    /// For what is to be seen at all: a copy stood behind the cut in the log of one that went back.
    pub read_up_to_a_copy: bool,
    /// The same: a process that followed a fenced one has registered as the only one that has a partition.
    pub successor_has_all: bool,
}

impl State {
    /// The stream as the primary has it.
    pub fn led(&self, partition: usize) -> Option<Stream> {
        let primary = self.partitions[partition].primary?;
        self.nodes[usize::from(primary)].logs[partition].stream()
    }

    /// Whether the last process that had the partition in memory is silent, or is being followed by a successor.
    pub fn waits_for_memory(&self, partition: usize) -> bool {
        let in_sync = self.partitions[partition].in_sync;
        let is_up = |node: usize| in_sync & (1 << node) != 0 && self.nodes[node].life == Life::Up;
        in_sync != 0 && !(0..NODES).any(is_up)
    }

    /// How far the stream is in the memory of all in-sync replicas.
    pub fn stable(&self, partition: usize) -> u8 {
        let in_sync = self.partitions[partition].in_sync;
        let members = (0..NODES).filter(|n| in_sync & (1 << n) != 0);
        let last = |n: usize| self.nodes[n].logs[partition].stream().map_or(0, |stream| stream.last());
        members.map(last).min().unwrap_or_default()
    }
}
