//! A bucket moves from one replication group to another while it is read and written: the seal.
//!
//! # What it stands for
//! A source group on two nodes has two rows: one in the bucket that moves, one in a bucket that does not. A target group
//! has one node. The first transaction writes both rows, in one log entry or as one of two participants that prepare
//! ([`First`]). The second one writes the row of the bucket at the bucket's owner. The target copies everything that is
//! stable in the source's stream. Then the source appends `Seal`, its last log entry about the bucket; the control plane
//! makes the target the owner; the target learns that and serves. A snapshot reads both rows, in any order, at any
//! replica; so do reads of the newest state. The source's leader may crash, and its follower leads then.
//!
//! The copy is the stream from its beginning: a copy of rows in slices that catches up is proven elsewhere. Raising
//! `max_read` and the look are one step, and so are commit time and position ([`crate::group_entry`]).
//!
//! # What is left out
//! Leases, and reads of nodes that have been removed from the in-sync set ([`crate::follower_reads`]); take-over of
//! prepared transactions ([`crate::commit_takeover`]); consistent cuts; several moves of one bucket; when the source
//! frees rows that no snapshot needs.
//!
//! # The rules, with the mutation that shows why
//! Numbers of shared/replication-groups.md in brackets.
//! 1. The seal follows the end of all transactions that hold locks in the bucket ([`Mutation::SealedWhileOpen`]) and the
//!    decision of all that are prepared there ([`Mutation::SealedBeforeDecided`]) \[11\].
//! 2. The control plane changes the owner when the seal is stable ([`Mutation::SealNotStable`]) and the target has
//!    everything before it ([`Mutation::CopyNotWhole`]); the target copies only stable log entries
//!    ([`Mutation::CopiesWhatIsNotStable`]) \[11\].
//! 3. The seal carries `max_read` ([`Mutation::MaxReadNotHandedOn`]) and the newest commit time
//!    ([`Mutation::FinishedNotHandedOn`]) \[11\].
//! 4. The source and its followers answer snapshots up to the `max_read` of the seal, *and refuse newer ones*: the target
//!    does not know of them ([`Mutation::SnapshotsPastTheSeal`]). The target refuses snapshots below the newest copied
//!    commit, since copied rows have no history ([`Mutation::OlderSnapshotsAtTarget`]) \[12\].
//! 5. A replica that has the seal answers no reads of the newest state ([`Mutation::SourceReadsOn`]); a follower adopts
//!    the seal before it acknowledges it ([`Mutation::SealAcknowledgedBeforeAdopted`]). *That is enough for reads on
//!    followers*: the seal is stable only when all of them have it, so a read that found no seal began before the
//!    target's first commit. A follower need not compare versions of the owner.
//!
//! # Sizes that were exhausted
//! Both: the second transaction runs in the source or the target; else in the target only.
//!
//! | crashes | kills | both | one entry | prepared |
//! |---|---|---|---|---|
//! | 0 (test) | 0 | no | 7 773 | 27 638 |
//! | 1 (test) | 0 | no | 48 029 | 154 378 |
//! | 0 | 1 | yes | 87 346 | 308 183 |
//! | 1 | 1 | yes | 550 629 | 1 728 034 |

use stateright::{Model, Property};

mod state;
mod steps;
#[cfg(test)]
mod tests;

use state::{Node, ROWS, SOURCES, State, Status, TRANSACTIONS, Target, Transaction};
pub use steps::Step;

/// What the first transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// It has written in the source group alone: one entry.
    Writes,
    /// It has written in another group too: it prepares here, and is decided.
    Prepares,
}

/// A safeguard that is switched off, to see that the model finds what it guards against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// The seal does not wait for transactions that hold locks.
    SealedWhileOpen,
    /// The seal does not wait for prepared transactions.
    SealedBeforeDecided,
    /// The owner changes before the seal is stable.
    SealNotStable,
    /// The owner changes before the target has everything.
    CopyNotWhole,
    /// The target copies log entries that may be lost.
    CopiesWhatIsNotStable,
    MaxReadNotHandedOn,
    FinishedNotHandedOn,
    /// The target shows the newest copied version to older snapshots.
    OlderSnapshotsAtTarget,
    /// The source answers any snapshot from sealed rows.
    SnapshotsPastTheSeal,
    /// The source shows sealed rows as the newest state.
    SourceReadsOn,
    /// A follower acknowledges the seal before its partition has it.
    SealAcknowledgedBeforeAdopted,
}

/// The sizes of one run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub crashes: u8,
    pub kills: u8,
    /// The second transaction runs at the target only.
    pub second_at_target: bool,
}

#[derive(Debug, Clone)]
pub struct BucketMove {
    pub first: First,
    pub size: Size,
    pub mutation: Option<Mutation>,
}

impl BucketMove {
    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }
}

pub const WHOLE: &str = "a snapshot sees all of a transaction or nothing";
pub const REPEATABLE: &str = "two reads of one snapshot agree, wherever and whenever";
pub const KEPT: &str = "a target that serves has everything that the source committed";
pub const TRUE: &str = "the target has nothing that the source did not commit";
pub const NEWEST: &str = "no read of the newest state is stale";
pub const ORDERED: &str = "commit times follow the order of the writes";

/// Whether the source has committed it, and that is stable.
fn committed(state: &State, transaction: usize) -> bool {
    state.led().is_some_and(|leader| leader.committed(transaction, leader.stable).is_some())
}

impl Model for BucketMove {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let node = || Node { log: Vec::new(), stable: 0, adopted: 0, confirmed: (0, 0) };
        let transaction = Transaction { status: Status::Idle, at_target: false, view: 0, acknowledged: false };
        vec![State {
            clock: 0,
            view: 1,
            leader: 0,
            lost: false,
            both: true,
            max_read: 0,
            nodes: [(); SOURCES].map(|()| node()),
            target: Target { copied: 0, has: [None; TRANSACTIONS], serves: false, max_read: 0, finished: 0 },
            moved: false,
            transactions: [transaction; TRANSACTIONS],
            above: None,
            snapshot: 0,
            seen: [None; ROWS],
            unrepeatable: false,
            stale: false,
            shown: 0,
            kills_left: self.size.kills,
            crashes_left: self.size.crashes,
        }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Step>) {
        steps::candidates(actions);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        steps::apply(self, state, &step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(WHOLE, |_, s: &State| match s.seen {
                [Some(first), Some(second)] => (first ^ second) & 1 == 0,
                _ => true,
            }),
            Property::always(REPEATABLE, |_, s: &State| !s.unrepeatable),
            Property::always(KEPT, |_, s: &State| {
                !s.target.serves || (0..TRANSACTIONS).all(|t| !committed(s, t) || s.target.has[t].is_some())
            }),
            Property::always(TRUE, |_, s: &State| {
                let here =
                    |t: usize| s.transactions[t].at_target || s.led().is_none_or(|l| l.committed(t, l.len()).is_some());
                (0..TRANSACTIONS).all(|t| s.target.has[t].is_none() || here(t))
            }),
            Property::always(NEWEST, |_, s: &State| !s.stale),
            Property::always(ORDERED, |_, s: &State| match s.target.has {
                [Some(first), Some(second)] if s.transactions[1].at_target => first <= second,
                _ => true,
            }),
            Property::sometimes("a snapshot sees the first transaction in both groups' rows", |_, s: &State| {
                s.target.serves && s.seen == [Some(0b01), Some(0b01)]
            }),
            Property::sometimes("a snapshot sees nothing of a transaction that was copied", |_, s: &State| {
                s.target.serves && s.transactions[0].acknowledged && s.seen == [Some(0), Some(0)]
            }),
            Property::sometimes("the second transaction is acknowledged at the target", |_, s: &State| {
                s.transactions[1].at_target && s.transactions[1].acknowledged
            }),
            Property::sometimes("the bucket moves in a later view", |_, s: &State| s.moved && s.view > 1),
        ]
    }
}

/// The sizes that the tests exhaust, or those that take minutes.
pub fn sizes(large: bool) -> Vec<(First, Size)> {
    let size = |crashes, kills, second_at_target| Size { crashes, kills, second_at_target };
    let sizes = match large {
        false => vec![size(0, 0, true), size(1, 0, true)],
        true => vec![size(0, 1, false), size(1, 1, false)],
    };
    [First::Writes, First::Prepares]
        .into_iter()
        .flat_map(|first| sizes.iter().map(move |size| (first, *size)))
        .collect()
}
