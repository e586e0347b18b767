//! What a state of the membership model is made of. Times are countdowns: how many ticks of somebody's clock are left,
//! so that the model needs no calendar and its states are finitely many.

pub const NODES: usize = 2;
pub const WRITES: usize = 2;

/// A log: by position the view in which the entry was written, 0 where there is none.
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

    /// The first `length` entries.
    pub fn first(&self, length: u8) -> Log {
        let mut first = *self;
        first.0[usize::from(length)..].fill(0);
        first
    }

    /// `None`: the log is full, the run writes no more.
    pub fn push(&mut self, view: u8) -> Option<()> {
        let length = usize::from(self.len());
        *self.0.get_mut(length)? = view;
        Some(())
    }
}

/// The partition's entry in the manage group's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// Counts entries; a request that was made under an older one is refused.
    pub version: u8,
    /// Counts primaries.
    pub view: u8,
    pub primary: u8,
    /// The process that leads this view.
    pub leader_incarnation: u8,
    /// One bit a node.
    pub in_sync: u8,
    /// The registered process of each node.
    pub incarnations: [u8; NODES],
    /// In-sync members that have registered with a log whose end was damaged: how far their logs reach. They are not
    /// in-sync any more.
    pub doubtful: [Option<Reach>; NODES],
    /// The primary has not stopped, as far as is known.
    pub led: bool,
}

/// The view that a log follows, and its length: what logs are compared by.
pub type Reach = (u8, u8);

/// A request for a lease, or the grant that answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Renewal {
    None,
    /// Sent; the holder's countdown runs from here.
    Asked {
        left: u8,
        before_election: bool,
    },
    /// Under way back, with the version of the entry at that time.
    Granted {
        left: u8,
        version: u8,
    },
}

/// An acknowledgement under way from the other node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ack {
    pub view: u8,
    pub incarnation: u8,
    pub length: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    pub up: bool,
    pub incarnation: u8,
    pub log: Log,
    /// The view whose stream its log follows or gives; as long-lived as the log.
    pub follows: u8,
    /// A damaged end of its log was cut, or its process ended as one that lacked a stable entry, and the group has not been told yet.
    pub doubtful: bool,
    /// How much of its log it knows to be stable; as long-lived as the log. Only in runs in which a directory can go back.
    pub stable: u8,
    /// Its directory has gone back, and nobody has brought it what it lacks.
    pub older: bool,
    /// As primary: the other has acknowledged something in this view, so it has the view's opening. Only where `stable` is.
    pub opened: bool,
    /// As primary: the other has told it of a stable entry that it lacks (kept only where it goes on all the same).
    pub refused: bool,
    /// It takes part in nothing, until another primary has brought it everything.
    pub stopped: bool,
    /// The other has told it that it has stopped as the primary of this view; the message may be read at any time.
    pub told: Option<u8>,
    /// The newest entry it has heard of; none after a restart.
    pub knows: Option<Entry>,
    /// Ticks of its own clock for which it holds the lease.
    pub lease: u8,
    pub renewal: Renewal,
    /// As primary: work that is done and not yet answered.
    pub worked: bool,
    /// As primary: how much of its log it has acknowledged to clients in this view.
    pub acknowledged: u8,
    /// As primary: how much of its log was there when it began to lead; all of it may have been acknowledged before.
    pub inherited: u8,
    /// As primary: how much of its log the other node has, as far as its acknowledgements say.
    pub other_has: u8,
    /// As primary: it has asked that the other node become in-sync, and acknowledges nothing without it from then on.
    pub joining: bool,
    /// Acknowledgements under way to this node: the newest, and one of an earlier process of the other node.
    pub ack: Option<Ack>,
    pub late_ack: Option<Ack>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// The manage group's truth.
    pub entry: Entry,
    /// Ticks of the manage leader's clock until it may take a node for gone.
    pub granted: [u8; NODES],
    pub nodes: [Node; NODES],
    /// A request to make `1 - primary` in-sync, made under this version.
    pub join_request: Option<u8>,
    /// What clients have been told is written, or have been shown.
    pub promised: Log,
    pub crashes_left: u8,
    pub elections_left: u8,
    pub drifts_left: u8,
    pub doubts_left: u8,
    pub drops_left: u8,
    pub olds_left: u8,
    pub stops_left: u8,
    /// Somebody answered, or acknowledged, after another had been named primary.
    pub served_after_relief: bool,
    /// Somebody answered, or acknowledged, whose lease had ended by his own clock.
    pub served_without_lease: bool,
    /// Somebody showed, or acknowledged, a log without something that was acknowledged before.
    pub showed_less: bool,
    /// A primary whose directory had not gone back ended as one that lacks a stable entry.
    pub ended_whole: bool,
}
