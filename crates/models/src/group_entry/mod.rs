//! One entry over several guards: a replication group of two partitions with one stream.
//!
//! # What it stands for
//! A group with two partitions, each with one row and its own guard, on one or two nodes. One transaction writes in
//! both, and there is a second one ([`Second`]). A transaction locks and writes in one partition after the other. Its
//! commit swaps the status word from active to committing, collects the writes of one partition after the other, and
//! appends one log entry. That gets its commit time and its position in the stream under one leaf lock. A kill may
//! abort the transaction at any time before that.
//!
//! Followers write log entries to disk, and their partitions adopt them. A log entry is stable when all in-sync nodes
//! have it. A snapshot reads both rows, in any order, at the leader or at a follower for which the leader has confirmed
//! it. In-sync replicas answer reads of the newest state. A node crashes, is removed from the in-sync set, restarts
//! with its disk and is added again. The same node may lead a new view with its memory unchanged; each partition then
//! drops locks of the old view in a step of its own.
//!
//! Acknowledgements are not messages: a leader may count on the log of a follower of its view at any time. The
//! coordinator asks the leader for the outcome until it gets an answer; a lost answer is asked for again, so reporting
//! is one step.
//!
//! # What is left out
//! Leases, commands of the control plane and reads of nodes that have been removed ([`crate::in_sync`],
//! [`crate::follower_reads`]); transactions over several groups, except for what their session has observed
//! ([`crate::commit_takeover`]); consistent cuts; schema versions; splits and moves ([`crate::bucket_move`]).
//!
//! # The rules, with the mutation that shows why
//! Numbers of shared/replication-groups.md in brackets.
//! 1. A commit swaps the status word from active to committing before it collects, and every abort swaps from active
//!    ([`Mutation::AbortsCommitting`]) \[1\].
//! 2. The append demands that the view of the locks is still the current one ([`Mutation::ViewNotChecked`]) \[1\]. A
//!    leader serves when all log entries that it inherited are stable ([`Mutation::ServesUnopened`]). A partition may
//!    drop locks of the old view at any time \[13\]: as long as the append checks the view, that is no matter of safety.
//! 3. Commit time and stream position are decided together under the leaf lock ([`Mutation::TimeBeforeAppend`]). So are
//!    raising `max_read` for a confirmation and reading the position that it names
//!    ([`Mutation::PositionBeforeRaise`]) \[2\]. A reader at the leader raises `max_read` before it looks
//!    ([`Mutation::LookThenRaise`]) \[2\]. *A reader need not wait for a committing transaction without a log entry*:
//!    its commit time will be above `max_read`. It waits for log entries at or below its snapshot that are not stable.
//! 4. A leader shows only stable log entries ([`Mutation::ShownAtAppend`]), and a node that is added to the in-sync set
//!    has everything that was shown ([`Mutation::JoinsWithoutTheNewest`]) \[3\].
//! 5. *Locks may be released at the append* ([`Size::locks_pass_early`]): the next holder appends behind it in the same
//!    stream, so its log entry is stable only with the one that it builds upon. A prepare or commit in another group
//!    waits until everything that the session has observed is stable ([`Mutation::ObservedNotAwaited`]) \[4\].
//! 6. The leader remembers an outcome until the coordinator knows it ([`Mutation::ForgottenByNumber`]) \[5\].
//! 7. A follower queues a log entry at all its partitions before it acknowledges it, and a reader runs that queue first
//!    ([`Mutation::AcknowledgedBeforeAdopted`]) \[6\].
//!
//! # Sizes that were exhausted
//! Views: led by the same node or another one. Early: locks are released at the append.
//!
//! | second | nodes | crashes | views | kills | snapshot | early | states |
//! |---|---|---|---|---|---|---|---|
//! | none (test) | 1 | 0 | 1 | 1 | yes | yes | 12 620 |
//! | none (test) | 2 | 0 | 0 | 1 | yes | yes | 12 512 |
//! | none (test) | 2 | 1 | 1 | 0 | no | yes | 17 464 |
//! | overwriting (test) | 1 | 0 | 0 | 0 | yes | yes | 38 382 |
//! | overwriting (test) | 1 | 0 | 1 | 0 | no | yes | 27 306 |
//! | elsewhere (test) | 2 | 1 | 1 | 0 | no | yes | 237 479 |
//! | none | 2 | 1 | 1 | 0 | yes | yes | 450 842 |
//! | later | 2 | 0 | 0 | 0 | yes | yes | 723 768 |
//! | later | 2 | 0 | 1 | 0 | no | no | 119 056 |
//! | overwriting | 1 | 0 | 1 | 0 | yes | yes | 519 748 |
//! | overwriting | 2 | 1 | 1 | 0 | no | yes | 869 306 |
//! | elsewhere | 2 | 1 | 1 | 0 | yes | yes | 6 647 072 |

use stateright::{Model, Property};

mod state;
mod steps;
#[cfg(test)]
mod tests;

use state::{NODES, Node, PARTITIONS, Snapshot, State, Status, TRANSACTIONS, Transaction};
pub use steps::Step;

/// What the second transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// There is none.
    Nothing,
    /// It writes both rows too.
    Overwriting,
    /// It writes the row of the second partition.
    Later,
    /// It locks the row of the second partition, and writes in another group.
    Elsewhere,
}

/// A safeguard that is switched off, to see that the model finds what it guards against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// A transaction may be aborted while its writes are collected.
    AbortsCommitting,
    /// A log entry is appended after the view of its locks has ended.
    ViewNotChecked,
    /// A leader serves before the log entries that it inherited are stable.
    ServesUnopened,
    /// The commit time is chosen before the entry is appended.
    TimeBeforeAppend,
    /// A confirmation names a position that was read before `max_read` was raised.
    PositionBeforeRaise,
    /// `max_read` is raised after the look.
    LookThenRaise,
    /// The leader shows log entries that are not stable.
    ShownAtAppend,
    /// A node joins without the newest entry.
    JoinsWithoutTheNewest,
    /// A commit in another group does not wait until log entries that its session has observed are stable.
    ObservedNotAwaited,
    /// The leader forgets an outcome before the coordinator knows it.
    ForgottenByNumber,
    /// A follower acknowledges an entry before its partitions have it.
    AcknowledgedBeforeAdopted,
}

/// The sizes of one run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// 1 or 2.
    pub nodes: usize,
    pub crashes: u8,
    /// Views after the first.
    pub views: u8,
    pub kills: u8,
    /// A snapshot is drawn.
    pub snapshot: bool,
    /// Locks are released at the append; else when the log entry is stable.
    pub locks_pass_early: bool,
}

#[derive(Debug, Clone)]
pub struct GroupEntry {
    pub second: Second,
    pub size: Size,
    pub mutation: Option<Mutation>,
}

impl GroupEntry {
    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// The partitions in which a transaction locks, one bit each.
    pub fn writes(&self, transaction: usize) -> u8 {
        match (transaction, self.second) {
            (0, _) | (_, Second::Overwriting) => 0b11,
            (_, Second::Later | Second::Elsewhere) => 0b10,
            (_, Second::Nothing) => 0,
        }
    }
}

pub const WHOLE: &str = "a snapshot sees all of a transaction or nothing";
pub const REPEATABLE: &str = "two reads of one snapshot agree, wherever and whenever";
pub const ENTIRE: &str = "an entry has all writes of its transaction";
pub const LOCKED: &str = "an entry is appended while its transaction holds its locks";
pub const TRUE: &str = "no write of a transaction that was reported as aborted exists";
pub const KEPT: &str = "what was reported or shown is never lost";
pub const NEWEST: &str = "no read of the newest state is stale";
pub const CAUSAL: &str = "what a transaction in another group built upon is never lost";
pub const ACKNOWLEDGED: &str = "a snapshot is not below a commit reported before it was drawn";
pub const ORDERED: &str = "commit times follow the stream";
pub const NOT_AHEAD: &str = "no commit time is more than one above the service's counter";

impl Model for GroupEntry {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let transaction = Transaction {
            status: Status::Active,
            view: 0,
            held: 0,
            visited: 0,
            collected: 0,
            chosen: 0,
            observed: false,
            elsewhere: false,
            reported: None,
            forgotten: false,
        };
        vec![State {
            clock: 0,
            view: 1,
            leader: 0,
            lost: false,
            in_sync: (1 << self.size.nodes) - 1,
            max_read: 0,
            inherited: 0,
            entered: [1; PARTITIONS],
            nodes: [(); NODES].map(|()| Node::new()),
            transactions: [transaction; TRANSACTIONS],
            snapshot: Snapshot { at: 0, halfway: None, seen: [None; PARTITIONS], unrepeatable: false },
            shown: 0,
            stale: false,
            unlocked: false,
            drawn_below: false,
            crashes_left: self.size.crashes,
            views_left: self.size.views,
            kills_left: self.size.kills,
        }]
    }

    fn actions(&self, _: &State, actions: &mut Vec<Step>) {
        steps::candidates(self, actions);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        steps::apply(self, state, &step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(WHOLE, |model: &Self, s: &State| {
                let of_both = |t: usize| model.writes(t) == 0b11;
                let [first, second] = s.snapshot.seen;
                let differs = |(first, second): (u8, u8)| {
                    (0..TRANSACTIONS).any(|t| of_both(t) && (first ^ second) & (1 << t) != 0)
                };
                !first.zip(second).is_some_and(differs)
            }),
            Property::always(REPEATABLE, |_, s: &State| !s.snapshot.unrepeatable),
            Property::always(ENTIRE, |model: &Self, s: &State| {
                let entries = s.nodes.iter().flat_map(|node| &node.log);
                entries.into_iter().all(|entry| entry.writes == model.writes(entry.transaction.into()))
            }),
            Property::always(LOCKED, |_, s: &State| !s.unlocked),
            Property::always(TRUE, |_, s: &State| {
                (0..TRANSACTIONS).all(|t| {
                    s.transactions[t].reported != Some(false) || s.place(t).is_none() && s.shown & (1 << t) == 0
                })
            }),
            Property::always(KEPT, |model: &Self, s: &State| {
                let promised = s.promised();
                let here = |t: usize| model.second == Second::Elsewhere && t == 1 || s.place(t).is_some();
                s.lost || (0..TRANSACTIONS).all(|t| promised & (1 << t) == 0 || here(t))
            }),
            Property::always(NEWEST, |_, s: &State| !s.stale),
            Property::always(CAUSAL, |_, s: &State| {
                let [first, second] = &s.transactions;
                let built = second.elsewhere && second.observed;
                s.lost || !built || s.place(0).is_some() || first.view == 0
            }),
            Property::always(ACKNOWLEDGED, |_, s: &State| !s.drawn_below),
            Property::always(ORDERED, |_, s: &State| {
                s.nodes.iter().all(|node| node.log.is_sorted_by_key(|entry| entry.time))
            }),
            Property::always(NOT_AHEAD, |_, s: &State| {
                s.nodes.iter().flat_map(|node| &node.log).all(|entry| entry.time <= s.clock + 1)
            }),
            Property::sometimes("a snapshot sees the transaction", |_, s: &State| {
                s.snapshot.seen == [Some(1), Some(1)]
            }),
            Property::sometimes("a snapshot sees nothing of a committed transaction", |_, s: &State| {
                s.transactions[0].reported == Some(true) && s.snapshot.seen == [Some(0), Some(0)]
            }),
            Property::sometimes("both transactions are reported as committed", |_, s: &State| {
                s.transactions.iter().all(|own| own.reported == Some(true))
            }),
            Property::sometimes("a transaction is reported as aborted", |_, s: &State| {
                s.transactions[0].reported == Some(false)
            }),
            Property::sometimes("an entry of an older view becomes stable", |_, s: &State| {
                s.transactions[0].view > 0 && s.transactions[0].view < s.view && s.is_stable(0)
            }),
        ]
    }
}

/// The sizes that the tests exhaust, or those that take minutes.
pub fn sizes(large: bool) -> Vec<(Second, Size)> {
    use Second::*;
    let size = |nodes, crashes, views, kills, snapshot, locks_pass_early| Size {
        nodes,
        crashes,
        views,
        kills,
        snapshot,
        locks_pass_early,
    };
    match large {
        false => vec![
            (Nothing, size(1, 0, 1, 1, true, true)),
            (Nothing, size(2, 0, 0, 1, true, true)),
            (Nothing, size(2, 1, 1, 0, false, true)),
            (Overwriting, size(1, 0, 0, 0, true, true)),
            (Overwriting, size(1, 0, 1, 0, false, true)),
            (Elsewhere, size(2, 1, 1, 0, false, true)),
        ],
        true => vec![
            (Nothing, size(2, 1, 1, 0, true, true)),
            (Later, size(2, 0, 0, 0, true, true)),
            (Later, size(2, 0, 1, 0, false, false)),
            (Overwriting, size(1, 0, 1, 0, true, true)),
            (Overwriting, size(2, 1, 1, 0, false, true)),
            (Elsewhere, size(2, 1, 1, 0, true, true)),
        ],
    }
}
