//! What a state of the model is made of. Partition 0 has row 0, partition 1 has row 1; both are of the one group. Times
//! are small numbers: the service's counter and what is built from it.

pub const NODES: usize = 2;
pub const PARTITIONS: usize = 2;
pub const TRANSACTIONS: usize = 2;

/// The status word of a transaction, as its process has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It may lock, and be aborted.
    Active,
    /// Its writes are being collected.
    Committing,
    /// Its entry has been appended.
    Appended,
    Aborted,
}

/// A log entry of the group's stream: all writes of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    pub transaction: u8,
    pub time: u8,
    /// The partitions whose writes it has, one bit each.
    pub writes: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transaction {
    pub status: Status,
    /// The view in which it took its locks; 0: it has none yet.
    pub view: u8,
    /// The leader's memory: the partitions that hold its locks and pending writes, one bit each.
    pub held: u8,
    /// Partitions that the commit has been to, and those whose writes it found there.
    pub visited: u8,
    pub collected: u8,
    /// The commit time, where that is chosen before the append (only if that is switched off).
    pub chosen: u8,
    /// Its session has observed the other transaction while that one's log entry was not stable.
    pub observed: bool,
    /// It has committed in another group too, for ever.
    pub elsewhere: bool,
    /// The outcome that was reported to the client: committed or not.
    pub reported: Option<bool>,
    /// The leader does not remember its outcome any more.
    pub forgotten: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    pub up: bool,
    /// On disk.
    pub log: Vec<Entry>,
    /// The view whose stream it follows or gives.
    pub follows: u8,
    /// How much of its log it knows to be stable.
    pub stable: u8,
    /// How much of its log each partition has adopted.
    pub adopted: [u8; PARTITIONS],
    /// In memory: snapshots up to this one may be read here, once this much of the log is.
    pub confirmed: (u8, u8),
    /// A confirmation on its way, with the position that it names (only if that is switched off).
    pub position: Option<u8>,
}

impl Node {
    pub fn new() -> Node {
        Node {
            up: true,
            log: Vec::new(),
            follows: 1,
            stable: 0,
            adopted: [0; PARTITIONS],
            confirmed: (0, 0),
            position: None,
        }
    }

    pub fn len(&self) -> u8 {
        self.log.len() as u8
    }

    /// Keeps so many entries.
    pub fn cut(&mut self, length: u8) {
        self.log.truncate(length.into());
        self.stable = self.stable.min(length);
        self.adopted = self.adopted.map(|adopted| adopted.min(length));
    }

    /// How many entries both have at the beginning.
    pub fn common(&self, other: &Node) -> u8 {
        self.log.iter().zip(&other.log).take_while(|(a, b)| a == b).count() as u8
    }
}

/// The one snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snapshot {
    /// 0: not drawn yet.
    pub at: u8,
    /// A read that has raised `max_read` and not looked yet (or the other way round, if that is switched off).
    pub halfway: Option<u8>,
    /// By row: which transactions' writes were seen, one bit each.
    pub seen: [Option<u8>; PARTITIONS],
    pub unrepeatable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub clock: u8,
    pub view: u8,
    pub leader: u8,
    /// The leader's process has ended, and the control plane has not named the next leader.
    pub lost: bool,
    /// One bit a node.
    pub in_sync: u8,
    /// The group's, in the leader's memory.
    pub max_read: u8,
    /// How much of the leader's log was there when its view began.
    pub inherited: u8,
    /// By partition: the view that it has entered.
    pub entered: [u8; PARTITIONS],
    pub nodes: [Node; NODES],
    pub transactions: [Transaction; TRANSACTIONS],
    pub snapshot: Snapshot,
    /// Transactions whose writes a reader has seen, one bit each.
    pub shown: u8,
    /// A stale read: a read of the newest state missed what had been reported or shown before it.
    pub stale: bool,
    /// An entry was appended without the locks of its transaction.
    pub unlocked: bool,
    /// The snapshot was drawn below a commit that had been reported before.
    pub drawn_below: bool,
    pub crashes_left: u8,
    pub views_left: u8,
    pub kills_left: u8,
}

impl State {
    pub fn led(&self) -> Option<&Node> {
        (!self.lost).then(|| &self.nodes[usize::from(self.leader)])
    }

    pub fn led_mut(&mut self) -> Option<&mut Node> {
        (!self.lost).then(|| &mut self.nodes[usize::from(self.leader)])
    }

    /// Whether the leader may lock and read in a partition: its view is open, and the partition has entered it.
    pub fn serves(&self, partition: usize, unopened: bool) -> bool {
        let opened = self.led().is_some_and(|leader| unopened || leader.stable >= self.inherited);
        opened && self.entered[partition] == self.view
    }

    pub fn is_in_sync(&self, node: usize) -> bool {
        self.in_sync & (1 << node) != 0
    }

    /// Where the leader's log has the entry of a transaction.
    pub fn place(&self, transaction: usize) -> Option<u8> {
        let log = &self.nodes[usize::from(self.leader)].log;
        log.iter().position(|entry| usize::from(entry.transaction) == transaction).map(|at| at as u8)
    }

    /// Whether it is known at the leader to be stable.
    pub fn is_stable(&self, transaction: usize) -> bool {
        let leader = &self.nodes[usize::from(self.leader)];
        self.place(transaction).is_some_and(|at| at < leader.stable)
    }

    /// Everything that was promised: reported as committed, or shown to a reader.
    pub fn promised(&self) -> u8 {
        let reported = (0..TRANSACTIONS).filter(|t| self.transactions[*t].reported == Some(true));
        reported.fold(self.shown, |promised, t| promised | 1 << t)
    }
}
