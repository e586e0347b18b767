//! Groups that split and merge while their rows are read and written.
//!
//! # What it stands for
//! Two partitions with a row each, on two nodes. Before a split they are one replication group, and two after it; a
//! merge is the other way ([`Form`]). The first transaction writes both rows: in one entry where they are one group,
//! else in two phases; with [`Size::elsewhere`] in two phases always, since it has written in a third group too. The
//! second one writes the second row. Locks are of a group and a view. A take-over may ask a participant at any time.
//!
//! Each parent's leader appends `End`, its last log entry. Then the control plane puts the heirs in the place of the
//! parents, in one command. A replica of an heir begins with the rows, the history and the log that it had as a replica
//! of the parents: nothing is copied. The heirs are led by any in-sync node. Snapshots and reads of the newest state
//! ask leaders, also those that have not heard of the heirs. A leader may remove the other node from the in-sync set of
//! one group, and add it again when it has the log. One node may crash; its groups are led by the other one then.
//!
//! # What is left out
//! Leases, and reads on followers ([`crate::follower_reads`]); steps of a partition into a new view, and what a session
//! has observed ([`crate::group_entry`]); chunks of open transactions, which the heirs' views void
//! ([`crate::large_chunks`]); a returning node; consistent cuts.
//!
//! # The rules, with the mutation that shows why
//! Numbers of shared/replication-groups.md in brackets.
//! 1. `End` comes after the decision of all that is prepared in the group ([`Mutation::EndsWhilePrepared`]) \[13\]. *It
//!    need not wait for open transactions*: heirs have views of their own, in which no older lock counts
//!    ([`Mutation::LocksInherited`]), so such a transaction is refused, by the parent or an heir.
//!    A transaction with locks in groups of two versions of the table is aborted before its first prepare
//!    ([`Mutation::LocksOfTwoVersions`]): else the heir would answer for the parent with its own prepare.
//! 2. *A stable `End` is a refusal* for every transaction that has no record before it: where one parent has ended and
//!    the other one waits for a decision, the take-over must not wait for the first parent's heir. The model found that
//!    a merge does not come to rest without that.
//! 3. After `End` the leader accepts no locks, prepares and commits ([`Mutation::WritesPastTheEnd`]), answers no reads
//!    of the newest state, and snapshots only up to the `max_read` in its `End` ([`Mutation::ReadsPastTheEnd`]) \[11\].
//! 4. The control plane replaces the parents when `End` is stable in all of them ([`Mutation::EndNotStable`]) \[11\],
//!    and their in-sync sets are equal ([`Mutation::MergesUnequalSets`]) \[13\]. The command tests both.
//! 5. An heir begins with the largest `max_read` of the ends ([`Mutation::MaxReadNotHandedOn`]) and the newest commit
//!    time of the parents ([`Mutation::FinishedNotInherited`]) \[11\]. Since it has history, it answers older
//!    snapshots too.
//! 6. Heirs inherit the outcomes of the parents, each heir of a split all of them ([`Mutation::OutcomesNotInherited`])
//!    \[13\].
//!
//! # Sizes that were exhausted
//! | form | crashes | removals | snapshot | elsewhere | states |
//! |---|---|---|---|---|---|
//! | split (test) | 0 | 0 | yes | no | 35 680 |
//! | split (test) | 1 | 0 | no | no | 197 506 |
//! | split (test) | 0 | 0 | no | yes | 5 855 |
//! | merge (test) | 0 | 0 | no | no | 6 210 |
//! | split | 1 | 1 | yes | no | 8 544 052 |
//! | split | 1 | 0 | yes | yes | 4 129 028 |
//! | merge | 0 | 0 | yes | no | 52 724 |
//! | merge | 1 | 1 | no | no | 507 772 |

use stateright::{Model, Property};

mod state;
mod steps;
#[cfg(test)]
mod tests;

use crate::check::Settles;
use state::{NODES, PARTITIONS, STREAMS, State, Status, Stream, TRANSACTIONS, Transaction};
pub use steps::Step;

/// What becomes of the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// One group becomes two.
    Split,
    /// Two groups become one.
    Merge,
}

/// A safeguard that is switched off, to see that the model finds what it guards against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// A parent ends while a transaction is prepared in it.
    EndsWhilePrepared,
    /// A commit in an heir goes by locks that were taken in the parent.
    LocksInherited,
    /// A transaction commits with a lock of a parent and one of an heir.
    LocksOfTwoVersions,
    /// A leader goes on to accept writes after its last entry.
    WritesPastTheEnd,
    /// A leader goes on to answer all reads after its last entry.
    ReadsPastTheEnd,
    /// The heirs are there before all in-sync replicas have the last entry.
    EndNotStable,
    /// Groups merge although a node is in-sync in one of them only.
    MergesUnequalSets,
    MaxReadNotHandedOn,
    FinishedNotInherited,
    OutcomesNotInherited,
}

/// The sizes of one run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub crashes: u8,
    /// Removals of a follower from the in-sync set of one group.
    pub removals: u8,
    /// A snapshot is drawn.
    pub snapshot: bool,
    /// The first transaction has written in a third group too.
    pub elsewhere: bool,
}

#[derive(Debug, Clone)]
pub struct GroupSplit {
    pub form: Form,
    pub size: Size,
    pub mutation: Option<Mutation>,
}

impl GroupSplit {
    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }
}

pub const WHOLE: &str = "a snapshot sees all of a transaction or nothing";
pub const REPEATABLE: &str = "two reads of one snapshot agree, wherever and whenever";
pub const ENTIRE: &str = "a transaction that is decided in both groups has the same outcome in both";
pub const TRUE: &str = "no write of a transaction that was reported as aborted exists";
pub const KEPT: &str = "what was reported or shown is never lost";
pub const NEWEST: &str = "no read of the newest state is stale";
pub const ORDERED: &str = "commit times follow the order of the writes";

/// Whether a row has the write of a transaction, by the log of the group that has the row; `None`: not known yet.
fn outcome(state: &State, transaction: usize, row: usize) -> Option<bool> {
    let own = state.led(state.owner(row))?;
    match own.prepared(row) {
        Some(_) if transaction == 0 => None,
        _ => Some(own.committed(transaction, row).is_some()),
    }
}

impl Model for GroupSplit {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let stream = |stream: usize| {
            let exists = stream == 0 || stream == 1 && self.form == Form::Merge;
            let logs = [Vec::new(), Vec::new()];
            // Two parents are led by different nodes.
            let leader = if exists { stream as u8 } else { 0 };
            Stream { view: exists.into(), leader, both: true, max_read: 0, inherited: 0, logs }
        };
        let locks = [None; PARTITIONS];
        let transaction = Transaction { status: Status::Active, locks, asks: None, participants: 0, reported: None };
        vec![State {
            form: self.form,
            clock: 0,
            up: (1 << NODES) - 1,
            streams: [0, 1, 2].map(stream),
            replaced: false,
            transactions: [transaction; TRANSACTIONS],
            fate: None,
            forgotten: false,
            snapshot: 0,
            seen: [None; PARTITIONS],
            unrepeatable: false,
            stale: false,
            shown: [0; PARTITIONS],
            crashes_left: self.size.crashes,
            removals_left: self.size.removals,
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
            Property::always(WHOLE, |_, s: &State| match s.seen {
                [Some(first), Some(second)] => (first ^ second) & 1 == 0,
                _ => true,
            }),
            Property::always(REPEATABLE, |_, s: &State| !s.unrepeatable),
            Property::always(ENTIRE, |_, s: &State| {
                let told = |row: usize| {
                    let own = s.led(s.owner(row))?;
                    let decided = own.log().iter().any(|entry| match entry {
                        state::Entry::Decide { rows, .. } => rows & (1 << row) != 0,
                        state::Entry::Write { transaction, .. } => *transaction == 0,
                        _ => s.transactions[0].participants != 0 && s.fate.is_some() && own.prepared(row).is_none(),
                    });
                    if decided { outcome(s, 0, row) } else { None }
                };
                told(0).zip(told(1)).is_none_or(|(first, second)| first == second)
            }),
            Property::always(TRUE, |_, s: &State| {
                (0..TRANSACTIONS).all(|t| {
                    s.transactions[t].reported != Some(false)
                        || (0..PARTITIONS).all(|row| outcome(s, t, row) != Some(true) && s.shown[row] & (1 << t) == 0)
                })
            }),
            Property::always(KEPT, |_, s: &State| {
                (0..TRANSACTIONS).all(|t| {
                    (0..PARTITIONS).all(|row| s.promised(row) & (1 << t) == 0 || outcome(s, t, row) != Some(false))
                })
            }),
            Property::always(NEWEST, |_, s: &State| !s.stale),
            Property::always(ORDERED, |_, s: &State| {
                let own = &s.streams[s.owner(1)];
                match (own.committed(0, 1), own.committed(1, 1)) {
                    (Some((first, place)), Some((second, later))) => {
                        first == second || (first < second) == (place < later)
                    }
                    _ => true,
                }
            }),
            Property::sometimes("the first transaction commits before the groups change", |_, s: &State| {
                s.replaced
                    && (0..PARTITIONS).all(|row| {
                        let own = &s.streams[s.owner(row)];
                        own.committed(0, row).is_some_and(|(_, place)| place < own.inherited.into())
                    })
            }),
            Property::sometimes("both transactions commit in the heirs", |_, s: &State| {
                s.replaced
                    && s.transactions.iter().all(|own| own.reported == Some(true))
                    && s.streams[1].inherited == 0
                    && s.streams[2].inherited == 0
            }),
            Property::sometimes("a transaction is reported as aborted", |_, s: &State| {
                s.transactions[0].reported == Some(false)
            }),
            Property::sometimes("a snapshot sees the first transaction in the heirs", |_, s: &State| {
                s.replaced && s.seen == [Some(1), Some(1)]
            }),
            Property::sometimes("an heir is led by another node than the parent", |_, s: &State| {
                s.replaced && s.streams[2].leader != s.streams[0].leader
            }),
        ]
    }
}

impl Settles for GroupSplit {
    fn is_fault(&self, step: &Step) -> bool {
        matches!(step, Step::Crash { .. } | Step::Remove { .. })
    }

    /// The heirs are there and nothing is undecided, or the only replica of a group is down.
    fn is_settled(&self, state: &State) -> bool {
        let exists = |stream: &usize| state.streams[*stream].view > 0;
        let lost = (0..STREAMS).filter(exists).any(|stream| state.led(stream).is_none());
        let open = |row: usize| state.streams[state.owner(row)].prepared(row).is_some();
        lost || state.replaced && !(0..PARTITIONS).any(open)
    }
}

/// The sizes that the tests exhaust, or those that take minutes.
pub fn sizes(large: bool) -> Vec<(Form, Size)> {
    let size = |crashes, removals, snapshot, elsewhere| Size { crashes, removals, snapshot, elsewhere };
    match large {
        false => vec![
            (Form::Split, size(0, 0, true, false)),
            (Form::Split, size(1, 0, false, false)),
            (Form::Split, size(0, 0, false, true)),
            (Form::Merge, size(0, 0, false, false)),
        ],
        true => vec![
            (Form::Split, size(1, 1, true, false)),
            (Form::Split, size(1, 0, true, true)),
            (Form::Merge, size(0, 0, true, false)),
            (Form::Merge, size(1, 1, false, false)),
        ],
    }
}
