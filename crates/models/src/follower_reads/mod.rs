//! Reads of the newest state that an in-sync follower answers by itself: rule 33 of docs/cluster-protocols.md.
//!
//! # What it stands for
//! One partition with one key on two or three nodes, and the manage group: a list of committed commands, of which each
//! process hears in order, at any later time. The key is a register; its writes are a log, and a read shows the last one
//! that the replica knows to be stable. A primary writes, ships, finds out what is stable, tells that, and serves under
//! its lease: acknowledges, and answers reads. A follower looks at the row and answers in two steps with anything between
//! them. Members are struck (by their primary, by their own wish, or because the partition is placed elsewhere; the primary may be
//! the last to hear of it), brought up by the stream or by a copy, and taken in again. A primary is relieved while it
//! lives, or its lease ends and it is over; another leads, and opens its view on all in-sync replicas. The whole cluster
//! may go back to a cut (rule 29) in which nothing was written yet: all processes are over in one command, none of them
//! knows, and new ones begin on their nodes. What was shown before the first view after that does not count.
//!
//! Time is abstract: a grant names how many commands were committed before it, and holds until a step ends it. "One whole
//! lease has passed since this process learned of the strike" is possible as soon as all grants have ended that
//! were given before the strike: with the holder counting from sending, with a margin, that is never later.
//!
//! Acknowledgements are not messages here: a primary may count on what a replica has and knows at any time, since that
//! only grows as long as it follows the same view, and so is what a late, repeated or lost message would say of an earlier moment
//! (what it said before a copy is known by the copy's number). For the same reason a stream brings any part of
//! what the primary has, and what is stable is told apart from it. A process that knows all commands always has the
//! newest lease: it may get one at any time, and nobody waits for its end.
//!
//! # What is left out
//! The manage leader, clocks and the length of leases ([`crate::in_sync`]: rules 15 to 17). New processes, but after going
//! back: one has nothing to show until it has joined. That the old process of a node has ended when a new one registers is
//! taken as given: a directory is open in one process. A process that says by itself that it ends is one whose lease has
//! ended, for it gives that up first. Transactions over several partitions: a prepared version is pending until its
//! outcome is here, and a read that finds it asks the primary. Copies in slices: rows are all missing until the copy is
//! whole.
//!
//! # The rules, with the mutation that shows why
//! 1. With the row, in one turn, the follower looks whether its contents are whole ([`Mutation::WholeNotChecked`],
//!    [`Mutation::WholeAtAnswerOnly`]) and nothing is pending at the key ([`Mutation::PendingPassedOver`],
//!    [`Mutation::PendingAtAnswerOnly`]). It shows only what it knows to be stable ([`Mutation::UnstableShown`]).
//! 2. After that, and before the answer, its lease holds ([`Mutation::LeaseNotChecked`], [`Mutation::CheckedBeforeLook`]), and counts
//!    only with every command known that was committed before the grant ([`Mutation::LeaseWithoutEntries`]).
//! 3. By all that it has heard of from the look to a moment after that it was in-sync, without interruption
//!    ([`Mutation::InSyncNotChecked`], [`Mutation::InSyncAtLookOnly`], [`Mutation::InSyncAtAnswerOnly`]).
//! 4. While a struck member may still read, nothing becomes stable ([`Mutation::NotWaited`]), the opening of a view included. It
//!    is not enough to acknowledge nothing: others are told what is stable, and show it ([`Mutation::StableBeforeWait`]).
//! 5. The group remembers strikes of processes that are up, for the next primary waits too
//!    ([`Mutation::StruckForgotten`]). Each strike is waited for by itself ([`Mutation::WaitsOnceForEach`]).
//!    Who is over is not waited for, since its lease has ended ([`Mutation::OverBeforeLeaseEnds`]); but when the
//!    cluster goes back to a cut processes are over whose leases go on, and they count as struck
//!    ([`Mutation::SurvivorsForgotten`]).
//! 6. An acknowledgement ends the wait if it names the strike's version or a later one
//!    ([`Mutation::AnyAcknowledgementCounts`]), and a follower names a version when its reads go by it
//!    ([`Mutation::NamedBeforeStopped`]).
//!
//! In `rauk-manage` the member says in its heartbeat to the manage leader what it knows, and the leader ends the wait, with a command of the group, by the same two conditions; until a primary hears of that, it counts
//! the member as in-sync. So the wait ends no sooner than here.
//!
//! # Named traces
//! *The read that slept through a strike* (rule 3). B is struck and its lease ends; A acknowledges a write without it. A
//! client reads at B: the old value, nothing pending. Before B looks at anything else it hears of the strike, gets the
//! write, joins, hears of that and has a lease. Now everything is as it should be, but for the value.
//!
//! *The read within a copy* (rule 1). B has an acknowledged write, is struck, does not know it and still holds a lease. A
//! begins a copy; a client reads at B, and there is no row. When B looks whether it is whole, the copy is, and B has heard
//! of nothing: its version is the same as ever.
//!
//! *The survivor that reads on* (rule 5). All of another partition's replicas have ended, and the cluster goes back to a
//! cut. B, which has heard nothing of it, holds a lease. A's new process leads this partition, and no lease of its
//! predecessor stands against that; it acknowledges a write. B shows what was there before, and has been undone.
//!
//! # Sizes that were exhausted
//! Commands: of the manage group, the beginning included. Struck: the second one has struck the last node already, and
//! nobody has heard of it. Back: the cluster may go back to a cut.
//!
//! | nodes | writes | commands | struck | copies | crashes | back | states |
//! |---|---|---|---|---|---|---|---|
//! | 2 (test) | 1 | 3 | no | 1 | 0 | no | 14 666 |
//! | 2 (test) | 2 | 3 | no | 0 | 1 | no | 78 997 |
//! | 2 (test) | 1 | 4 | yes | 1 | 0 | no | 57 936 |
//! | 2 (test) | 1 | 4 | no | 0 | 0 | yes | 151 479 |
//! | 3 (test) | 1 | 2 | no | 0 | 0 | no | 11 249 |
//! | 3 (test) | 1 | 3 | yes | 0 | 0 | no | 273 083 |
//! | 2 | 1 | 4 | no | 1 | 1 | no | 241 859 |
//! | 2 | 2 | 4 | no | 0 | 0 | no | 662 250 |
//! | 2 | 1 | 5 | no | 0 | 0 | yes | 1 044 402 |
//! | 3 | 1 | 3 | no | 0 | 0 | no | 986 770 |
//! | 3 | 1 | 4 | yes | 0 | 0 | no | 7 392 410 |

use stateright::{Model, Property};

mod state;
mod steps;
#[cfg(test)]
mod tests;

use state::{Entry, Log, NODES, Node, State};
pub use steps::Step;

/// A safeguard that is switched off, to see that the model finds what it guards against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// A primary waits for nobody who was struck.
    NotWaited,
    /// Only the primary that led when it happened waits: a new view begins without anybody struck.
    StruckForgotten,
    /// Who was waited for once is not waited for when it has joined and is struck again.
    WaitsOnceForEach,
    /// A process is taken for over before its lease has ended.
    OverBeforeLeaseEnds,
    /// When the cluster goes back to a cut, nobody waits for survivors that may not have heard of it.
    SurvivorsForgotten,
    /// The acknowledgement that ends the wait may name any version.
    AnyAcknowledgementCounts,
    /// Acknowledgements name a version before the follower's reads know of it.
    NamedBeforeStopped,
    /// What becomes stable does not wait, only what is acknowledged.
    StableBeforeWait,
    /// A read passes over a pending version, and shows the one before.
    PendingPassedOver,
    /// That nothing is pending a follower looks at after the row, not with it.
    PendingAtAnswerOnly,
    /// A read shows what is not known to be stable.
    UnstableShown,
    /// A follower reads without looking at its lease.
    LeaseNotChecked,
    /// A follower's lease counts although it has not heard of the commands that were committed before the grant.
    LeaseWithoutEntries,
    /// Whether it is in-sync, a follower does not look at.
    InSyncNotChecked,
    /// That it is in-sync a follower looks at with the row only, not with its lease.
    InSyncAtLookOnly,
    /// That it is in-sync a follower looks at with its lease only: it may have been struck and have joined since the row.
    InSyncAtAnswerOnly,
    /// A follower reads while its contents are replaced by a copy.
    WholeNotChecked,
    /// That its contents are whole a follower looks at after the row, not with it.
    WholeAtAnswerOnly,
    /// Lease and in-sync set are looked at before the row, and not after it.
    CheckedBeforeLook,
}

/// The sizes of one run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// 2 or 3.
    pub nodes: usize,
    /// Writes, 1 or 2.
    pub writes: u8,
    /// Commands of the manage group, the beginning included.
    pub commands: u8,
    /// The second command has struck the last node already, and nobody has heard of it.
    pub struck: bool,
    /// Copies that are begun.
    pub copies: u8,
    pub crashes: u8,
    /// The cluster may go back to a cut, once.
    pub goes_back: bool,
}

#[derive(Debug, Clone)]
pub struct FollowerReads {
    pub size: Size,
    pub mutation: Option<Mutation>,
}

impl FollowerReads {
    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }
}

pub const NEWEST: &str = "a read shows everything that was acknowledged or shown before it began";
pub const HELD: &str = "every living in-sync replica holds everything that was acknowledged or shown";

impl Model for FollowerReads {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let all = (1 << self.size.nodes) - 1;
        let entry = Entry { view: 1, primary: Some(0), in_sync: all, struck: [0; NODES], over: !all & 0b111 };
        let mut history = vec![entry];
        if self.size.struck {
            let last = self.size.nodes - 1;
            let mut struck = Entry { in_sync: all & !(1 << last), ..entry };
            struck.struck[last] = 2;
            history.push(struck);
        }
        let node = |number| {
            let up = number < self.size.nodes;
            Node { up, grants: u8::from(up), opened: number == 0, ..Node::new(1) }
        };
        vec![State {
            history,
            nodes: std::array::from_fn(node),
            request: None,
            promised: Log::EMPTY,
            went_back: false,
            undone: false,
            crashes_left: self.size.crashes,
            copies_left: self.size.copies,
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
            Property::always(NEWEST, |_, s: &State| !s.went_back),
            Property::always(HELD, |_, s: &State| {
                let living = |n: &usize| s.nodes[*n].up && s.newest().has(*n);
                (0..NODES).filter(living).all(|n| s.nodes[n].whole && s.nodes[n].log.begins_with(&s.promised))
            }),
            Property::sometimes(
                "one that was struck could answer, and its primary knows that and waits",
                |_, s: &State| {
                    let could = |n: usize| s.known(n).has(n) && steps::holds_lease(&s.nodes[n]);
                    (0..NODES).any(|p| steps::leads(s, p) && (0..NODES).any(|n| s.known(p).struck[n] > 0 && could(n)))
                },
            ),
            Property::sometimes("one that was struck and has a lease is gone on without", |_, s: &State| {
                let behind = |n: usize| s.newest().struck[n] > 0 && s.nodes[n].log.len() < s.promised.len();
                (0..NODES).any(|n| behind(n) && steps::holds_lease(&s.nodes[n]))
            }),
            Property::sometimes("one that was struck is in-sync again and reads what it missed", |_, s: &State| {
                let missed = s.history.iter().any(|entry| entry.struck[1] > 0) && s.copies_left == 0;
                missed && s.newest().has(1) && steps::holds_lease(&s.nodes[1]) && s.nodes[1].stable > 0
            }),
            Property::sometimes("a later primary goes on without one that was struck", |_, s: &State| {
                let later = s.promised.0.iter().any(|view| *view > 1);
                later && s.newest().struck.iter().any(|strike| *strike > 0)
            }),
            Property::sometimes("a survivor that has a lease keeps a view waiting after going back", |_, s: &State| {
                let waits = |n: usize| s.newest().struck[n] > 0 && steps::holds_lease(&s.nodes[n]);
                s.undone && s.newest().primary.is_some() && (0..NODES).any(waits)
            }),
            Property::sometimes("something is written after going back", |_, s: &State| {
                s.has_gone_back(s.index()) && !s.undone && s.promised.len() > 0
            }),
            Property::sometimes("a follower shows something first", |_, s: &State| {
                let first = |n: &Node| n.reading.is_some_and(|r| !r.stale && r.shown.len() > s.promised.len());
                s.nodes.iter().any(first)
            }),
        ]
    }
}

/// The sizes that the tests exhaust, or those that take minutes.
pub fn sizes(large: bool) -> Vec<Size> {
    let size = |nodes, writes, commands| Size {
        nodes,
        writes,
        commands,
        struck: false,
        copies: 0,
        crashes: 0,
        goes_back: false,
    };
    if large {
        vec![
            Size { copies: 1, crashes: 1, ..size(2, 1, 4) },
            size(2, 2, 4),
            Size { goes_back: true, ..size(2, 1, 5) },
            size(3, 1, 3),
            Size { struck: true, ..size(3, 1, 4) },
        ]
    } else {
        vec![
            Size { copies: 1, ..size(2, 1, 3) },
            Size { crashes: 1, ..size(2, 2, 3) },
            Size { struck: true, copies: 1, ..size(2, 1, 4) },
            Size { goes_back: true, ..size(2, 1, 4) },
            size(3, 1, 2),
            Size { struck: true, ..size(3, 1, 3) },
        ]
    }
}
