//! One entry over several guards: a replication group of two partitions with one stream.
//!
//! # What it stands for
//! A group with two partitions, each with one row and a guard of its own, on one or two nodes; a transaction that writes in both,
//! and a second one ([`Second`]). The transaction locks and writes in one partition after the other; its commit swaps
//! the status word from active to committing, collects the writes of one partition after the other, and appends one entry, which gets its commit
//! time and its place in the stream under one leaf lock. A kill aborts it at any time before that. Followers take entries to their disks and
//! have their partitions adopt them; an entry is stable when all in-sync nodes have it. A snapshot reads both rows, in any order, at the leader or
//! at a follower to which the leader has confirmed it, and in-sync replicas answer reads of the newest state. A node crashes, is struck, comes back with its disk and joins; the
//! same node may lead a new view with its memory as it was, and each partition then drops what has died in a step of its own.
//!
//! Acknowledgements are not messages: a leader may count on what a follower of its view has, at any time. Who runs
//! the transaction asks the leader what became of it until it is told; answers that are lost are asked for again, so telling is one step.
//!
//! # What is left out
//! Leases, the commands of the group and who may still read when it is struck ([`crate::in_sync`], [`crate::follower_reads`]); a
//! transaction over several groups, but for what its session has observed ([`crate::commit_takeover`]); cuts; schema
//! versions; splits and moves.
//!
//! # The rules, with the mutation that shows why
//! Numbers of shared/replication-groups.md in brackets.
//! 1. A commit swaps the status word from active to committing before it collects, and every abort swaps from active
//!    ([`Mutation::AbortsCommitting`]) \[1\].
//! 2. The append demands that the view in which the locks were taken still stands ([`Mutation::ViewNotChecked`]) \[1\]. A leader serves when
//!    what it has inherited is stable ([`Mutation::ServesUnopened`]). A partition drops what died with the last view in a step of its own, at any
//!    time \[13\]: that is no matter of safety where the append demands the view, it gives locks back.
//! 3. Commit time and stream position are one decision under the leaf lock ([`Mutation::TimeBeforeAppend`]), and so are raising `max_read` for a
//!    confirmation and reading the position that it names ([`Mutation::PositionBeforeRaise`]) \[2\]. At the leader `max_read` is
//!    raised before the look ([`Mutation::LookThenRaise`]) \[2\]. *A reader need not wait at `committing`*: without an entry there is no time yet, and the one to
//!    come is above `max_read`. It waits for an entry at or below its snapshot that is not known to be stable.
//! 4. What is shown is stable ([`Mutation::ShownAtAppend`]), and who joins has everything that was shown ([`Mutation::JoinsWithoutTheNewest`]) \[3\].
//! 5. *Locks may pass on at the append* ([`Size::locks_pass_early`]): who gets one writes behind in the same stream, so it is stable only with the entry that it built upon. What leaves the
//!    group waits: a prepare in another group, until what its session has observed is stable ([`Mutation::ObservedNotAwaited`]) \[4\].
//! 6. What became of a transaction is remembered until who runs it has been told ([`Mutation::ForgottenByNumber`]) \[5\].
//! 7. A follower's partitions have taken an entry in before anybody reads there and finds nothing pending: the follower queues it at all of
//!    them before it acknowledges ([`Mutation::AcknowledgedBeforeAdopted`]) \[6\].
//!
//! # Sizes that were exhausted
//! Views: of the same node or another. Early: locks pass on at the append.
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
    /// An entry is appended though the view of its locks is over.
    ViewNotChecked,
    /// A leader serves before what it has inherited is stable.
    ServesUnopened,
    /// The commit time is chosen before the entry is appended.
    TimeBeforeAppend,
    /// A confirmation names a position that was read before `max_read` was raised.
    PositionBeforeRaise,
    /// `max_read` is raised after the look.
    LookThenRaise,
    /// The leader shows what is in its log.
    ShownAtAppend,
    /// A node joins without the newest entry.
    JoinsWithoutTheNewest,
    /// A commit in another group does not wait for what its session has observed here.
    ObservedNotAwaited,
    /// What became of a transaction is forgotten by itself.
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
    /// Locks pass on at the append; else when the entry is stable.
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
pub const TRUE: &str = "who is told that a transaction was aborted sees nothing of it";
pub const KEPT: &str = "what was told or shown stays";
pub const NEWEST: &str = "a read of the newest state shows what was told or shown before it";
pub const CAUSAL: &str = "what a transaction elsewhere built upon stays";
pub const ACKNOWLEDGED: &str = "a snapshot is not below a commit told before it was drawn";
pub const ORDERED: &str = "commit times follow the stream";
pub const NOT_AHEAD: &str = "no commit time is more than one above the service's counter";

impl Model for GroupEntry {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let transaction = Transaction {
            status: Status::Active,
            view: 0,
            standing: 0,
            visited: 0,
            collected: 0,
            chosen: 0,
            observed: false,
            elsewhere: false,
            told: None,
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

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        steps::candidates(self, state, actions);
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
                (0..TRANSACTIONS)
                    .all(|t| s.transactions[t].told != Some(false) || s.place(t).is_none() && s.shown & (1 << t) == 0)
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
                s.transactions[0].told == Some(true) && s.snapshot.seen == [Some(0), Some(0)]
            }),
            Property::sometimes("both transactions are told to be committed", |_, s: &State| {
                s.transactions.iter().all(|own| own.told == Some(true))
            }),
            Property::sometimes("a transaction is told to be aborted", |_, s: &State| {
                s.transactions[0].told == Some(false)
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
