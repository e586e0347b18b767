//! What a state of the timestamp model is made of. Times are small numbers: the service's counter and what is built
//! from it. Rows: 0 is `x` in partition 0; 1 is `y` and 2 is `z` in partition 1.

pub const PARTITIONS: usize = 2;
pub const REPLICAS: usize = 3;
pub const TRANSACTIONS: usize = 2;
pub const ROWS: usize = 3;
pub const SNAPSHOTS: usize = 2;

/// What a replica knows of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Known {
    Nothing,
    /// With the partition's least timestamp.
    Prepared(u8),
    /// With its commit time.
    Committed(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Replica {
    pub up: bool,
    /// In memory: no commit at or below it may be prepared from here on.
    pub max_read: u8,
    /// In memory: snapshots up to this one may be read here, a primary has raised its `max_read` for them.
    pub confirmed: u8,
    /// On disk.
    pub known: [Known; TRANSACTIONS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    pub count: u8,
    pub primary: u8,
    /// The primary's process is gone, and none has been named after it.
    pub primary_lost: bool,
    /// One bit a replica.
    pub in_sync: u8,
    pub replicas: [Replica; REPLICAS],
    /// By transaction: who has taken the primary's present least timestamp. One bit a replica.
    pub accepted: [u8; TRANSACTIONS],
    /// By transaction: the primary has its prepare from a predecessor, which may have reported it. One bit each.
    pub inherited: u8,
    /// By transaction: the least timestamp the coordinator has been told. Never goes away.
    pub reported: [Option<u8>; TRANSACTIONS],
}

impl Partition {
    pub fn leader(&self) -> &Replica {
        &self.replicas[usize::from(self.primary)]
    }

    pub fn leader_mut(&mut self) -> &mut Replica {
        &mut self.replicas[usize::from(self.primary)]
    }

    /// Does it count: a process that is up and in-sync?
    pub fn serves(&self, replica: usize) -> bool {
        replica < usize::from(self.count) && self.replicas[replica].up && self.in_sync & (1 << replica) != 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    Open,
    Committed(u8),
    Aborted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snapshot {
    /// 0: not drawn yet.
    pub at: u8,
    /// A read that has done its first half (raise, or under a mutation look): row and replica.
    pub halfway: Option<(u8, u8)>,
    /// By row: which transactions' writes were seen, one bit each.
    pub seen: [Option<u8>; ROWS],
    /// The same row was read twice with different results.
    pub unrepeatable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// The highest number that the timestamp service has given out.
    pub clock: u8,
    pub partitions: [Partition; PARTITIONS],
    pub outcomes: [Outcome; TRANSACTIONS],
    pub snapshots: [Snapshot; SNAPSHOTS],
    /// A number drawn in advance (only under a mutation).
    pub prefetched: u8,
    pub crashes_left: u8,
    pub suspicions_left: u8,
    /// Two survivors could compute different commit times.
    pub two_times: bool,
    /// A snapshot was drawn below a commit that had been acknowledged before.
    pub drawn_below: bool,
}

impl State {
    pub fn commit_time(&self, transaction: usize) -> Option<u8> {
        match self.outcomes[transaction] {
            Outcome::Committed(time) => Some(time),
            _ => None,
        }
    }
}
