//! Large transactions in chunks: what they write is in the stream before it is known whether they commit.
//!
//! # What it stands for
//! One replication group on two nodes with two rows. A large transaction writes the rows one after the other, under
//! locks of a view. The leader appends what was written as chunks, later and in any order. The transaction may go back
//! to a savepoint before its last row. Its commit appends a *naming entry* that counts the chunks that stand; with
//! [`Size::prepares`] that is its prepare, and another entry decides it. A small transaction writes the last row while
//! that is not locked.
//!
//! Nodes checkpoint what is committed and stable, and release their log up to there. A process that starts begins with
//! checkpoint and log. A node that was removed from the in-sync set joins again by a copy of the rows. The leader may
//! crash; the same node or the other one leads the next view. In-sync replicas answer reads of the newest state.
//!
//! # What is left out
//! Snapshots and commit times: a naming entry has its time as every other ([`crate::group_entry`]); leases; limits on
//! memory and log, which abort the transaction (1114) as a kill does; slices of installation and undo; splits
//! ([`crate::group_split`]).
//!
//! # The rules, with the mutation that shows why
//! Numbers of shared/replication-groups.md in brackets.
//! 1. A chunk is an entry of the stream, behind the locks of its view. The leader appends the naming entry when all
//!    chunks that the commit counts are in the stream ([`Mutation::CountNotChecked`]) \[14\]. So a stable naming entry
//!    has stable chunks, and a chunk itself is waited for by nobody.
//! 2. `Back` is appended before the locks of what is taken back are released ([`Mutation::BackAfterRelease`]) \[14\].
//!    Every replica counts by the stream alone; *the harm without that is not a lost update*, since the naming entry
//!    has counts, but that in-sync replicas find other counts and are removed. A kill appends `Back` too.
//! 3. The opening of a view voids chunks that no entry names ([`Mutation::ChunksOutliveViews`]) \[14\]. Safety does not
//!    rest on that, since a commit demands the view of its locks; but nothing else would
//!    say that the log may be released.
//! 4. Readers pass over chunks without a naming entry ([`Mutation::ShowsOpenChunks`]). A follower makes them pending at
//!    the naming entry before it acknowledges that ([`Mutation::NamedBeforePending`]) \[15\].
//! 5. The log reaches back to the oldest chunk that stands ([`Mutation::ReleasedWhileOpen`]), *until what names it is
//!    decided* ([`Mutation::ReleasedOnceNamed`]): a checkpoint has only what is committed. A copy has the chunks that
//!    stand ([`Mutation::JoinsWithoutChunks`]) \[16\].
//!
//! # Sizes that were exhausted
//! | crashes | removals | kills | savepoint | prepares | states |
//! |---|---|---|---|---|---|
//! | 0 (test) | 0 | 0 | yes | no | 11 452 |
//! | 1 (test) | 0 | 0 | no | no | 76 217 |
//! | 0 (test) | 1 | 0 | no | no | 13 103 |
//! | 1 (test) | 0 | 0 | no | yes | 85 876 |
//! | 0 | 0 | 1 | yes | yes | 24 076 |
//! | 1 | 0 | 0 | yes | no | 248 324 |
//! | 1 | 1 | 0 | no | no | 286 292 |
//! | 1 | 1 | 0 | no | yes | 332 655 |
//! | 2 | 0 | 0 | no | no | 759 739 |

use stateright::{Model, Property};

mod state;
mod steps;
#[cfg(test)]
mod tests;

use crate::check::Settles;
use state::{Entry, NODES, Node, Outcome, State, Status, needed, outcome};
pub use steps::Step;

/// A safeguard that is switched off, to see that the model finds what it guards against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// The naming entry is appended while a chunk is still to come.
    CountNotChecked,
    /// The lock of a row is released before the stream says that its chunk is taken back.
    BackAfterRelease,
    /// A new view keeps chunks that no entry names.
    ChunksOutliveViews,
    /// Readers see chunks that no entry names.
    ShowsOpenChunks,
    /// A follower acknowledges a naming entry before its chunks are pending.
    NamedBeforePending,
    /// The log is released up to what is stable.
    ReleasedWhileOpen,
    /// The log is released past chunks that are prepared.
    ReleasedOnceNamed,
    /// A copy has committed rows only.
    JoinsWithoutChunks,
}

/// The sizes of one run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub crashes: u8,
    pub removals: u8,
    pub kills: u8,
    /// The large transaction may go back to its savepoint.
    pub savepoint: bool,
    /// The large transaction prepares and is decided.
    pub prepares: bool,
}

#[derive(Debug, Clone)]
pub struct LargeChunks {
    pub size: Size,
    pub mutation: Option<Mutation>,
}

impl LargeChunks {
    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub fn views_void(&self) -> bool {
        !self.is(Mutation::ChunksOutliveViews)
    }
}

pub const ENTIRE: &str = "a naming entry has all that its transaction has written and not taken back";
pub const COUNTED: &str = "an in-sync replica has the chunks that a naming entry counts, and no others";
pub const KEPT: &str = "what was reported or shown is never lost";
pub const TRUE: &str = "no write of a transaction that was reported as aborted is committed";
pub const NEWEST: &str = "no read of the newest state is stale";
pub const CLEAN: &str = "a read sees only what is committed";

impl Model for LargeChunks {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let node = || Node { log: Vec::new(), from: 0, stable: 0, adopted: 0, missing: 0 };
        vec![State {
            view: 1,
            leader: 0,
            lost: false,
            both: true,
            nodes: [(); NODES].map(|()| node()),
            status: Status::Active,
            of_view: 0,
            written: 0,
            chunked: 0,
            owed: 0,
            went_back: false,
            meant: 0,
            reported: None,
            small_reported: false,
            shown: 0,
            small_shown: false,
            stale: false,
            dirty: false,
            crashes_left: self.size.crashes,
            removals_left: self.size.removals,
            kills_left: self.size.kills,
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
            Property::always(ENTIRE, |_, s: &State| {
                let named = s.nodes.iter().flat_map(|node| &node.log).filter_map(|entry| match entry {
                    Entry::Name { rows, .. } => Some(*rows),
                    _ => None,
                });
                named.into_iter().all(|rows| rows == s.meant)
            }),
            Property::always(COUNTED, |model: &Self, s: &State| {
                (0..NODES).all(|node| !s.is_in_sync(node) || !s.mismatch(node, model.views_void()))
            }),
            Property::always(KEPT, |model: &Self, s: &State| {
                let Some(own) = s.led() else { return true };
                let large = match outcome(&own.log, model.views_void()) {
                    Outcome::Committed(rows) => rows & !own.missing,
                    // Decided, and told again.
                    Outcome::Prepared(rows) => rows & !own.missing,
                    _ => 0,
                };
                let promised = if s.reported == Some(true) { s.meant } else { 0 } | s.shown;
                let small = own.log.contains(&Entry::Small);
                promised & !large == 0 && (small || !s.small_reported && !s.small_shown)
            }),
            Property::always(TRUE, |model: &Self, s: &State| {
                let committed = |own: &Node| matches!(outcome(&own.log, model.views_void()), Outcome::Committed(_));
                s.reported != Some(false) || !s.led().is_some_and(committed) && s.shown == 0
            }),
            Property::always(NEWEST, |_, s: &State| !s.stale),
            Property::always(CLEAN, |_, s: &State| !s.dirty),
            Property::sometimes("both transactions are reported as committed", |_, s: &State| {
                s.reported == Some(true) && s.small_reported && s.meant == 0b11
            }),
            Property::sometimes("it commits after it went back to its savepoint", |_, s: &State| {
                s.reported == Some(true) && s.went_back && s.small_reported
            }),
            Property::sometimes(
                "a node that joined has an open chunk that is named later",
                |model: &Self, s: &State| {
                    let joined = &s.nodes[1];
                    let has_joined = s.both && s.removals_left < model.size.removals;
                    has_joined && joined.from == 0 && s.nodes[0].stable > 0 && s.reported == Some(true)
                },
            ),
            Property::sometimes("a view voids a chunk", |_, s: &State| {
                s.led().is_some_and(|own| {
                    own.place(|entry| matches!(entry, Entry::Chunk { .. })) < own.place(|entry| *entry == Entry::Open)
                        && own.place(|entry| matches!(entry, Entry::Chunk { .. })).is_some()
                        && s.reported == Some(false)
                })
            }),
            Property::sometimes("the log of a named transaction is released", |_, s: &State| {
                s.reported == Some(true) && s.nodes[0].from == s.nodes[0].len()
            }),
        ]
    }
}

impl Settles for LargeChunks {
    fn is_fault(&self, step: &Step) -> bool {
        matches!(step, Step::Crash { .. } | Step::Remove | Step::Kill)
    }

    /// The transaction has ended, and its chunks keep no log.
    fn is_settled(&self, state: &State) -> bool {
        let ended = state.reported.is_some() || state.of_view == 0;
        let free = |own: &Node| needed(&own.log, self.views_void()) == 0 && own.from == own.len();
        ended && !state.lost && (0..NODES).all(|node| !state.is_in_sync(node) || free(&state.nodes[node]))
    }
}

/// The sizes that the tests exhaust, or those that take minutes.
pub fn sizes(large: bool) -> Vec<Size> {
    let size = |crashes, removals, kills, savepoint, prepares| Size { crashes, removals, kills, savepoint, prepares };
    match large {
        false => vec![
            size(0, 0, 0, true, false),
            size(1, 0, 0, false, false),
            size(0, 1, 0, false, false),
            size(1, 0, 0, false, true),
        ],
        true => vec![
            size(0, 0, 1, true, true),
            size(1, 0, 0, true, false),
            size(1, 1, 0, false, false),
            size(1, 1, 0, false, true),
            size(2, 0, 0, false, false),
        ],
    }
}
