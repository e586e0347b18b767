//! What a state of the model of reads on followers is made of. Leases have no length: a grant holds until it ends.

pub const NODES: usize = 3;
pub const WRITES: usize = 2;

/// The writes of the key, oldest first: each the view in which it was written, 0 where there is none. A read shows the last of some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Log(pub [u8; WRITES]);

impl Log {
    pub const EMPTY: Log = Log([0; WRITES]);

    pub fn len(&self) -> u8 {
        self.0.iter().take_while(|view| **view > 0).count() as u8
    }

    /// Does this log begin with all of `other`?
    pub fn begins_with(&self, other: &Log) -> bool {
        let length = usize::from(other.len());
        self.0[..length] == other.0[..length]
    }

    /// The first `length` writes.
    pub fn first(&self, length: u8) -> Log {
        let mut first = *self;
        first.0[usize::from(length)..].fill(0);
        first
    }

    pub fn push(&mut self, view: u8) {
        self.0[usize::from(self.len())] = view;
    }
}

/// What the manage group says of the partition after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// Counts primaries.
    pub view: u8,
    pub primary: Option<u8>,
    /// One bit a node.
    pub in_sync: u8,
    /// The command that struck a node while its process was up; 0: none has since it joined.
    pub struck: [u8; NODES],
    /// Processes that are over, one bit a node: their leases have ended.
    pub over: u8,
}

impl Entry {
    pub fn has(&self, node: usize) -> bool {
        self.in_sync & (1 << node) != 0
    }

    pub fn is_over(&self, node: usize) -> bool {
        self.over & (1 << node) != 0
    }
}

/// A read on a follower, between its look at the row and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reading {
    pub shown: Log,
    /// When it began more had been acknowledged or shown than what it found.
    pub stale: bool,
    /// How many commands its node knew of at the look.
    pub knew: u8,
}

/// The present process of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    pub up: bool,
    /// Commands of the group that it has heard of, in order.
    pub knows: u8,
    /// The newest command that it names in its acknowledgements.
    pub names: u8,
    /// Grants of a lease that have not ended: bit `i - 1` for those that were given when `i` commands were committed.
    pub grants: u8,
    pub log: Log,
    /// How much of its log it knows to be stable: that is what it shows, the rest is pending beside the row.
    pub stable: u8,
    /// The view whose stream its log follows or gives; 0: none yet.
    pub follows: u8,
    /// No copy is under way.
    pub whole: bool,
    pub reading: Option<Reading>,
    /// The conditions of a read have been looked at, before the row (only where that is what is switched off).
    pub checked: bool,
    /// As primary: the opening of its view is on all in-sync replicas.
    pub opened: bool,
    /// As primary: how much of its log was there when its view began.
    pub inherited: u8,
    /// As primary: nodes that it has asked to take in, one bit each.
    pub joining: u8,
    /// As primary: nodes whose strike it has waited for once (only where that is what is switched off).
    pub waited: u8,
}

impl Node {
    /// A process that has heard of so many commands, with a lease and nothing else.
    pub fn new(knows: u8) -> Node {
        Node {
            up: true,
            knows,
            names: knows,
            grants: 1 << (knows - 1),
            log: Log::EMPTY,
            stable: 0,
            follows: 1,
            whole: true,
            reading: None,
            checked: false,
            opened: false,
            inherited: 0,
            joining: 0,
            waited: 0,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// What the group's commands have made of the partition, the beginning first; the number of a command is its place, from 1.
    pub history: Vec<Entry>,
    pub nodes: [Node; NODES],
    /// Somebody is to join, asked for when the newest command was the last.
    pub request: Option<u8>,
    /// What clients have been told is written, or have been shown.
    pub promised: Log,
    /// A client was shown less than what was promised before it asked.
    pub went_back: bool,
    /// The cluster has gone back to a cut, and no view has been opened since: what was shown may be undone.
    pub undone: bool,
    pub crashes_left: u8,
    pub copies_left: u8,
}

impl State {
    pub fn newest(&self) -> &Entry {
        self.history.last().expect("there is a beginning")
    }

    /// Commands committed so far.
    pub fn index(&self) -> u8 {
        self.history.len() as u8
    }

    /// Whether the cluster had gone back to a cut when so many commands were committed.
    pub fn has_gone_back(&self, commands: u8) -> bool {
        self.history[..usize::from(commands)].iter().any(|entry| entry.in_sync == 0)
    }

    /// The newest that `node` has heard of.
    pub fn known(&self, node: usize) -> &Entry {
        &self.history[usize::from(self.nodes[node].knows) - 1]
    }
}
