//! What a state of the model is made of. Row 0 is in the bucket that moves, row 1 in one that stays. Nodes 0 and 1 have
//! the source group, node 2 the target group. Times are small numbers: the service's counter and what is built from it.

pub const SOURCES: usize = 2;
pub const TARGET: usize = 2;
pub const TRANSACTIONS: usize = 2;
pub const ROWS: usize = 2;

/// An entry of the source's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entry {
    /// All that a transaction has written, with its commit time.
    Write { transaction: u8, time: u8 },
    /// The first transaction, with its least time.
    Prepare { least: u8 },
    /// Its commit time.
    Decide { time: u8 },
    /// The bucket is sealed: snapshots up to this one were read, and this is the newest commit.
    Seal { max_read: u8, finished: u8 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    Idle,
    /// It holds its locks, in the source or the target.
    Active,
    /// Its entry, or its prepare, has been appended.
    Appended,
    Aborted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transaction {
    pub status: Status,
    /// It runs in the target group.
    pub at_target: bool,
    /// The source's view in which it locked.
    pub view: u8,
    pub acknowledged: bool,
}

/// A node of the source group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// On disk.
    pub log: Vec<Entry>,
    /// How much of it is known to be stable.
    pub stable: u8,
    /// How much of it the partition has adopted.
    pub adopted: u8,
    /// The snapshot that may be read here, once this much of the log is.
    pub confirmed: (u8, u8),
}

impl Node {
    pub fn len(&self) -> u8 {
        self.log.len() as u8
    }

    /// The numbers in the seal, if it is among the first `length` entries.
    pub fn seal(&self, length: u8) -> Option<(u8, u8)> {
        self.log.iter().take(length.into()).find_map(|entry| match entry {
            Entry::Seal { max_read, finished } => Some((*max_read, *finished)),
            _ => None,
        })
    }

    /// The commit time of a transaction in the first `length` entries, and the position of the entry that has it.
    pub fn committed(&self, transaction: usize, length: u8) -> Option<(u8, u8)> {
        self.log.iter().take(length.into()).enumerate().find_map(|(place, entry)| match *entry {
            Entry::Write { transaction: of, time } if usize::from(of) == transaction => Some((time, place as u8)),
            Entry::Decide { time } if transaction == 0 => Some((time, place as u8)),
            _ => None,
        })
    }

    /// The least time of a prepare that is not decided.
    pub fn prepared(&self, length: u8) -> Option<u8> {
        let decided = self.committed(0, length).is_some();
        self.log.iter().take(length.into()).find_map(|entry| match *entry {
            Entry::Prepare { least } if !decided => Some(least),
            _ => None,
        })
    }

    pub fn finished(&self) -> u8 {
        (0..TRANSACTIONS).filter_map(|t| self.committed(t, self.len())).map(|(time, _)| time).max().unwrap_or(0)
    }
}

/// The target group: one node; its log entries are stable at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// How much of the source's stream it has.
    pub copied: u8,
    /// By transaction: the commit time of its write to the bucket, copied or written here.
    pub has: [Option<u8>; TRANSACTIONS],
    /// It knows that it owns the bucket.
    pub serves: bool,
    pub max_read: u8,
    /// No commit here is below this time; no copied version is above it.
    pub finished: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub clock: u8,
    /// The source group's.
    pub view: u8,
    pub leader: u8,
    pub lost: bool,
    /// The second node of the source group is in-sync.
    pub both: bool,
    pub max_read: u8,
    pub nodes: [Node; SOURCES],
    pub target: Target,
    /// The control plane has made the target the owner of the bucket.
    pub moved: bool,
    pub transactions: [Transaction; TRANSACTIONS],
    /// By how much the other participant's least time is above the source's, once it is known.
    pub above: Option<u8>,
    /// 0: not drawn.
    pub snapshot: u8,
    pub seen: [Option<u8>; ROWS],
    pub unrepeatable: bool,
    /// A stale read: a read of the newest state missed what had been acknowledged or shown before it.
    pub stale: bool,
    /// Transactions whose writes to the bucket a reader has seen, one bit each.
    pub shown: u8,
    pub kills_left: u8,
    pub crashes_left: u8,
}

impl State {
    pub fn led(&self) -> Option<&Node> {
        (!self.lost).then(|| &self.nodes[usize::from(self.leader)])
    }

    pub fn led_mut(&mut self) -> Option<&mut Node> {
        (!self.lost).then(|| &mut self.nodes[usize::from(self.leader)])
    }

    /// Whether a transaction holds locks in the bucket at the source.
    pub fn is_locked(&self) -> bool {
        let of_view = |own: &Transaction| own.status == Status::Active && !own.at_target && own.view == self.view;
        self.transactions.iter().any(of_view)
    }
}
