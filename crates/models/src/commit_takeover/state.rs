//! What a state of the commit model is made of: the log record and the memory of every replica, what the manage group
//! has committed, the messages that are under way, and what has been told to the outside (which nothing takes back).

/// Most replicas of a participant, most views of one, most positions of a view's stream.
pub const REPLICAS: usize = 2;
pub const VIEWS: usize = 8;
pub const POSITIONS: usize = 8;

/// What a replica's log holds about the transaction. `None` is also what is left after truncation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Record {
    None,
    Prepared,
    Committed,
    /// The fence, or the outcome of a prepared transaction.
    Aborted,
}

/// One replica of one partition: a process and its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Replica {
    pub up: bool,
    /// It knows that it leads the partition in view `view` (of which it may have been relieved meanwhile).
    pub leads: bool,
    /// The newest view whose stream it follows or gives, as in its log. Views count from 1.
    pub view: u8,
    /// Position in that view's stream: 0 is the opening, which carries the whole state.
    pub position: u8,
    /// The record in memory.
    pub record: Record,
    /// The record on disk.
    pub durable: Record,
    /// The row holds the transaction's write, on disk (told apart from `record`, which truncation takes away).
    pub row_written: bool,
    /// Memory of a primary: the transaction holds its locks here.
    pub locks: bool,
    /// Memory, of followers as well: the transaction is finished here, outcome and all, whatever still arrives.
    pub finished: bool,
}

/// An entry of the manage group's log: a view of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct View {
    pub primary: u8,
    /// One bit a replica.
    pub in_sync: u8,
}

/// What the primary of a view has shipped at one position of its stream to the other replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shipped {
    pub record: Record,
    pub row_written: bool,
    pub finished: bool,
}

/// One partition that takes part in the transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Participant {
    /// How many of `replicas` there are.
    pub count: u8,
    pub replicas: [Replica; REPLICAS],
    /// How many of `views` there are: the last one is the manage group's truth.
    pub last_view: u8,
    pub views: [View; VIEWS],
    /// The process that led the last view is gone.
    pub primary_lost: bool,
    /// By view: 1 + the highest position that the other replica has acknowledged in it; 0 is none.
    pub acknowledged: [u8; VIEWS],
    /// By view and position: what is under way to the other replica, until it can change nothing any more.
    pub stream: [[Option<Shipped>; POSITIONS]; VIEWS],
    /// Views in which another participant has asked for the transaction's state (these messages stay, late and doubled).
    pub asked: u8,
    /// Said to others: prepared on all in-sync replicas. From here on: bits that never go away.
    pub said_prepared: bool,
    /// Said to others: refused or aborted, on record on all in-sync replicas.
    pub said_aborted: bool,
    /// Said to the coordinator: this prepare was first touched in an older view (1213).
    pub said_view_over: bool,
    /// Said to others: the outcome is on record on all in-sync replicas.
    pub confirmed: bool,
    /// A primary has applied the commit and told the others.
    pub decided_commit: bool,
    /// A primary has taken a prepare whose locks it did not hold.
    pub prepared_without_locks: bool,
    /// Said prepared after it had said aborted.
    pub broke_fence: bool,
}

impl Participant {
    pub fn view(&self, number: u8) -> View {
        self.views[usize::from(number) - 1]
    }

    pub fn truth(&self) -> View {
        self.view(self.last_view)
    }

    pub fn replicas(&self) -> &[Replica] {
        &self.replicas[..usize::from(self.count)]
    }

    /// Is everything that `replica` has done as primary of its view on disk of the other in-sync replica of that view?
    /// (Its own disk: whoever relies on the answer syncs first.)
    pub fn is_full(&self, replica: usize) -> bool {
        let own = &self.replicas[replica];
        let others = self.view(own.view).in_sync & !(1 << replica);
        others == 0 || self.acknowledged[usize::from(own.view) - 1] > own.position
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Coordinator {
    Working,
    Commit,
    Abort,
    Crashed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Told {
    Nothing,
    Committed,
    Aborted,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub coordinator: Coordinator,
    /// Prepares sent, one bit a participant: they stay under way for ever, late and doubled.
    pub prepare_sent: u8,
    /// The outcome that the coordinator has sent to the participants; stays under way as well.
    pub sent_commit: bool,
    pub sent_abort: bool,
    pub told: Told,
    pub participants: [Participant; 2],
    pub crashes_left: u8,
    pub suspicions_left: u8,
}

impl State {
    /// Somebody has sent out that the transaction is committed.
    pub fn commit_is_known(&self) -> bool {
        self.sent_commit || self.participants.iter().any(|p| p.decided_commit)
    }

    /// Somebody has sent out that the transaction is aborted.
    pub fn abort_is_known(&self) -> bool {
        self.sent_abort || self.participants.iter().any(|p| p.said_aborted)
    }
}
