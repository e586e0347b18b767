//! Leases, in-sync sets, views and incarnations of one partition with two replicas: design.md §7.
//!
//! # What it stands for
//! Two nodes and the manage group. The group is one entry that changes by committed steps (Raft itself is taken as
//! given: entries are linear and never lost): version, view, primary, in-sync set, and the registered process of each
//! node. Its leader grants leases; it may be replaced at any time, and knows nothing of what its predecessor granted.
//! Nodes hear of entries at any later time. A node that believes to be primary writes, ships, counts acknowledgements,
//! acknowledges to clients and answers reads. Ask, grant and arrival of a lease are three steps with time between them.
//!
//! Time passes by ticks. A lease is a countdown on each side: [`LEADER_TICKS`] for the leader from granting,
//! [`HOLDER_TICKS`] for the holder from sending; the difference is the margin, and clocks fall behind by at most that
//! much. A log is a list of entries, each with the view in which it was written. A crash keeps the log (`fsync`) or loses
//! it (`replicated`, or a new disk), and there are both kinds of runs.
//!
//! # What is left out
//! The manage group's own elections (only that an old leader may act for a while), several partitions on a node (a
//! node's lease is one for all of them), three replicas (sets of more than one other member behave like the member that
//! is last), leases of followers (snapshots need none: reads at them rest on a primary's confirmation, [`crate::least_timestamp`]; reads
//! of the newest state do, [`crate::follower_reads`]), and how a
//! log is brought from one state to another: shipping is one step that makes the follower's log equal. Progress is not
//! tested here, for leases run out for ever.
//!
//! # The rules, with the mutation that shows why
//! 1. The lease is looked at after the work and before the answer ([`Mutation::LeaseNotCheckedBeforeAnswer`]). The holder
//!    counts from sending ([`Mutation::HolderCountsFromGrant`]), and less than the leader by what clocks may drift
//!    ([`Mutation::NoMargin`]).
//! 2. A lease counts only when its holder has heard of every entry that was committed before the grant
//!    ([`Mutation::LeaseWithoutEntry`]: new). A grant carries the index of the leader's last entry.
//!    *The ignorant holder*: A's lease has ended, B is named primary; A, which has not heard of it, asks for a lease, gets
//!    one as any living node does, and goes on serving in its old view.
//! 3. A new manage leader takes nobody for gone before one whole lease has passed ([`Mutation::NewLeaderDoesNotWait`]), and
//!    a leader grants only after a majority has followed it *after the request came in*
//!    ([`Mutation::OldLeaderGrants`]: new; one that was replaced without knowing could else go on granting for ever).
//! 4. A primary is replaced when its lease has ended. A follower may be struck at once: what it reads for others was
//!    confirmed to it for ever ([`crate::least_timestamp`]), or is waited for ([`crate::follower_reads`]). Every entry names the
//!    version it was requested under, and is void if another came first ([`Mutation::VersionNotChecked`]: new).
//! 5. Nothing is acknowledged without a replica before the entry that strikes it is committed and known
//!    ([`Mutation::AcknowledgedBeforeStrike`]).
//! 6. Only an in-sync, registered process leads ([`Mutation::OutOfSyncPromoted`]). A view belongs to one process: the same
//!    node, restarted, needs a new view.
//! 7. A process registers before anything else. With its log whole (`fsync`) it keeps its place, otherwise it is struck by
//!    the same entry ([`Mutation::RestartedKeepsPlace`]). Acknowledgements carry view and incarnation, and count for the
//!    registered process of the node only ([`Mutation::IncarnationNotChecked`]).
//! 8. The view whose stream a log follows is on disk with the log, and older streams are refused, also after a restart
//!    ([`Mutation::OldStreamTaken`]).
//! 9. A primary shows what it has inherited only when that is on all in-sync replicas ([`Mutation::InheritedShownEarly`]:
//!    the opening of the view).
//! 10. A replica joins when it has all that its primary had when its view began and all that it has acknowledged since
//!     ([`Mutation::JoinedBeforeCaughtUp`], [`Mutation::InheritedNotRequired`]), and from the request on the primary
//!     acknowledges nothing without it ([`Mutation::JoinerNotCounted`]: new): between request and entry it counts already.
//! 11. A log that ends in a damaged frame is cut there: what was cut may have been acknowledged. Such a member leaves the
//!     in-sync set when it registers ([`Mutation::DoubtfulKeepsPlace`]) and is remembered as doubtful, with how far its log
//!     reaches (view and position of its end). It leads only when all that were in-sync have registered doubtful too
//!     ([`Mutation::DoubtfulLeadsEarly`]), and its log reaches furthest ([`Mutation::ShorterLogLeads`]): one of them has cut
//!     nothing that was acknowledged, unless the same entry was damaged everywhere. Whoever leads, the others join again. The
//!     cut is on disk as a fact of its own until it has been told ([`Mutation::DoubtForgotten`]).
//!
//! 12. A directory that was put back to an older copy, made since the node's newest start, looks like the directory itself. A follower refuses to
//!     cut what it knows to be *stable*, and says how far that is. A primary that an in-sync member tells of a stable entry which it lacks ends its
//!     process ([`Mutation::LackingPrimaryGoesOn`]), and the next one registers as doubtful (11), so that the other leads. What the member only has
//!     counts for nothing: a primary may lack that for good reasons ([`Mutation::UnstableTold`]). What the rule cannot see: entries that the member
//!     has and does not know to be stable (it hears of it with the next message), and a member that is down, or was struck before it was heard. The
//!     runs leave these out: a directory goes back only below what the other knows to be stable, and until its process has said that it is doubtful,
//!     or has what it lacks, the other neither crashes nor is struck unheard.
//! 13. A process whose rows are damaged *stops*: it serves, ships and takes nothing any more in that group ([`Mutation::StoppedServes`]), and says so. If
//!     it leads, the in-sync follower that hears of it, in the same view ([`Mutation::StaleStop`]), asks that it be removed, so
//!     one that is alive says it. Its log is whole: it keeps that until the next primary brings it everything
//!     ([`Mutation::StoppedForgets`]).
//!
//! # Named trace
//! *The gap before the entry* (rule 10). B has everything, A asks that B become in-sync. Before the entry is committed A
//! writes, and acknowledges alone, as the in-sync set it knows allows. The entry is committed; A dies, B leads, and the
//! write is gone.
//!
//! # Sizes that were exhausted
//! | a crash | writes | crashes | elections | drift | entries | states |
//! |---|---|---|---|---|---|---|
//! | keeps (test) | 1 | 0 | 1 | 1 | 2 | 51 511 |
//! | keeps (test) | 1 | 1 | 0 | 0 | 3 | 226 251 |
//! | loses (test) | 1 | 1 | 0 | 0 | 3 | 225 754 |
//! | keeps (test) | 2 | 0 | 0 | 0 | 3 | 230 637 |
//! | keeps | 1 | 1 | 0 | 0 | 4 | 936 801 |
//! | loses | 1 | 1 | 0 | 0 | 4 | 796 583 |
//! | keeps | 1 | 1 | 1 | 1 | 3 | 1 329 142 |
//! | loses | 1 | 1 | 1 | 1 | 3 | 1 307 791 |
//! | keeps | 2 | 1 | 0 | 0 | 3 | 979 545 |
//! | loses | 2 | 1 | 0 | 0 | 3 | 914 982 |
//! | keeps | 2 | 0 | 1 | 1 | 3 | 1 507 153 |
//! | keeps | 2 | 0 | 0 | 0 | 4 | 1 042 178 |
//! | loses | 1 | 2 | 0 | 0 | 4 | 2 174 521 |
//! | loses | 1 | 1 | 0 | 0 | 5 | 2 214 356 |
//!
//! With damaged logs (one of them loses an entry that was synced; no elections, no drift, one write): 1 crash, 1 log, 3
//! entries (test); 2 crashes, both logs, 4 entries: 13 614 587 states.
//!
//! With a directory that goes back (no elections, no drift): 1 write, 1 crash, 3 entries (test); the same with 4 entries:
//! 2 708 124 states.
//!
//! With processes that stop (no elections, no drift): 1 write, no crash, 4 entries (test); 1 crash, 4 entries: STATES states.
//!
//! Drift: ticks by which clocks fall behind in all. Entries: how far the manage group commits, the first included.

use stateright::{Model, Property};

mod state;
mod steps;
#[cfg(test)]
mod tests;

use state::{Entry, Log, NODES, Node, Renewal, State};
pub use steps::Step;

/// A safeguard that is switched off, to see that the model finds what it guards against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// The lease is checked before the work and not before the answer.
    LeaseNotCheckedBeforeAnswer,
    /// A new manage leader takes nodes for gone at once, although its predecessor may have granted leases.
    NewLeaderDoesNotWait,
    /// A manage leader that has been replaced goes on granting leases.
    OldLeaderGrants,
    /// The holder counts its lease from the grant's arrival, not from the sending of its request.
    HolderCountsFromGrant,
    /// The holder counts as many ticks as the leader: nothing is left for drift.
    NoMargin,
    /// A lease counts although its holder has not heard of the entries that were committed before the grant.
    LeaseWithoutEntry,
    /// The primary acknowledges without a replica once it has asked to strike it, before the entry is committed.
    AcknowledgedBeforeStrike,
    /// A replica that is not in-sync becomes primary.
    OutOfSyncPromoted,
    /// Acknowledgements of an earlier process of a node count for the present one.
    IncarnationNotChecked,
    /// A node that has lost its memory keeps its place in the in-sync set.
    RestartedKeepsPlace,
    /// A replica takes the stream of an older view than the one it follows.
    OldStreamTaken,
    /// A replica becomes in-sync before it has everything that has been acknowledged.
    JoinedBeforeCaughtUp,
    /// A replica becomes in-sync without all that its primary had when it began to lead.
    InheritedNotRequired,
    /// A new primary shows what it has inherited before that is on all in-sync replicas.
    InheritedShownEarly,
    /// Between asking that a replica become in-sync and the entry, the primary acknowledges without it.
    JoinerNotCounted,
    /// An entry is committed on a request that was made under an older one.
    VersionNotChecked,
    /// A member whose log ends in damage keeps its place in the in-sync set.
    DoubtfulKeepsPlace,
    /// A member whose log ends in damage leads although an in-sync member has not registered.
    DoubtfulLeadsEarly,
    /// All in-sync members' logs end in damage, and one leads whose log is not the longest.
    ShorterLogLeads,
    /// A crash between the cut and the registration forgets that the end of the log was cut.
    DoubtForgotten,
    /// A primary that an in-sync member tells of a stable entry which it lacks goes on, and has that member struck.
    LackingPrimaryGoesOn,
    /// A follower refuses to cut, and tells of, what it has, whether it knows that to be stable or not.
    UnstableTold,
    /// A primary that has stopped goes on answering.
    StoppedServes,
    /// Who hears late that a primary has stopped has it removed, although it leads another view by now.
    StaleStop,
    /// Who stops forgets its log at once.
    StoppedForgets,
}

/// What a crash takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Crash {
    /// Memory only: the log was on disk before it was acknowledged (`fsync`).
    KeepsLog,
    /// The log as well (`replicated`, or a new disk).
    LosesLog,
}

/// The sizes of one run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub crash: Crash,
    pub crashes: u8,
    /// Changes of the manage leader.
    pub elections: u8,
    /// Ticks by which nodes' clocks fall behind the manage leader's, all in all; at most the margin.
    pub drifts: u8,
    /// Writes, 1 or 2.
    pub writes: u8,
    /// Entries that the manage group commits, the first included; a process that registers is one more.
    pub versions: u8,
    /// Logs whose end is damaged while their process is down.
    pub doubts: u8,
    /// How many of these lose a frame that had been synced.
    pub drops: u8,
    /// Directories that are put back to an older copy while their process is down.
    pub olds: u8,
    /// Processes that stop in this group, since their rows are damaged.
    pub stops: u8,
}

/// Ticks a granted lease counts for the leader, and for its holder.
pub const LEADER_TICKS: u8 = 2;
pub const HOLDER_TICKS: u8 = 1;

#[derive(Debug, Clone)]
pub struct InSync {
    pub size: Size,
    pub mutation: Option<Mutation>,
}

impl InSync {
    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub fn holder_ticks(&self) -> u8 {
        if self.is(Mutation::NoMargin) { LEADER_TICKS } else { HOLDER_TICKS }
    }
}

pub const ONE_PRIMARY: &str = "nobody serves after another has been named primary";
pub const LEASED: &str = "nobody serves without a lease";
pub const HELD: &str = "every surviving in-sync replica holds every acknowledged write";
pub const LED: &str = "a primary with a lease has every acknowledged write";
pub const SHOWN: &str = "what is shown or acknowledged has every acknowledged write";
pub const ENDED: &str = "a primary with everything does not end for lack of it";

impl Model for InSync {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let entry = Entry {
            version: 1,
            view: 1,
            primary: 0,
            leader_incarnation: 1,
            in_sync: 0b11,
            incarnations: [1; NODES],
            doubtful: [None; NODES],
            led: true,
        };
        let node = Node {
            up: true,
            incarnation: 1,
            log: Log::EMPTY,
            follows: 1,
            doubtful: false,
            stable: 0,
            older: false,
            opened: false,
            refused: false,
            stopped: false,
            told: None,
            knows: Some(entry),
            lease: 0,
            renewal: Renewal::None,
            worked: false,
            acknowledged: 0,
            inherited: 0,
            other_has: 0,
            joining: false,
            ack: None,
            late_ack: None,
        };
        vec![State {
            entry,
            granted: [0; NODES],
            nodes: [node; NODES],
            join_request: None,
            promised: Log::EMPTY,
            crashes_left: self.size.crashes,
            elections_left: self.size.elections,
            drifts_left: self.size.drifts,
            doubts_left: self.size.doubts,
            drops_left: self.size.drops,
            olds_left: self.size.olds,
            stops_left: self.size.stops,
            served_after_relief: false,
            served_without_lease: false,
            showed_less: false,
            ended_whole: false,
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
            Property::always(ONE_PRIMARY, |_, s: &State| !s.served_after_relief),
            Property::always(LEASED, |_, s: &State| !s.served_without_lease),
            Property::always(HELD, |model: &Self, s: &State| {
                (0..NODES).all(|n| !survives(model, s, n) || s.nodes[n].log.begins_with(&s.promised))
            }),
            Property::always(LED, |_, s: &State| {
                // One whose directory has gone back finds out before it shows anything; one that has stopped shows nothing.
                let may_lack = |n, node: &Node| !steps::leads(node, n) || node.lease == 0 || node.older || node.stopped;
                s.nodes.iter().enumerate().all(|(n, node)| may_lack(n, node) || node.log.begins_with(&s.promised))
            }),
            Property::always(SHOWN, |_, s: &State| !s.showed_less),
            Property::always(ENDED, |_, s: &State| !s.ended_whole),
            Property::sometimes("everything acknowledged by one primary", |_, s: &State| s.promised == Log([1, 1])),
            Property::sometimes("writes acknowledged by two primaries", |_, s: &State| {
                s.promised.0[0] == 1 && s.promised.0[1] > 1
            }),
            Property::sometimes("who has stopped is brought everything", |model: &Self, s: &State| {
                model.size.stops == 0
                    || s.stops_left == 0 && s.entry.view > 1 && s.nodes.iter().all(|node| !node.stopped)
            }),
            Property::sometimes("a struck replica is in-sync again and leads", |_, s: &State| {
                s.entry.view > 1 && s.entry.primary == 0 && s.promised.len() == 2 && steps::leads(&s.nodes[0], 0)
            }),
        ]
    }
}

/// Is `node` a member of the latest in-sync set whose log has not been lost, in whole or at its end, and has not gone back?
fn survives(model: &InSync, state: &State, node: usize) -> bool {
    let kept = model.size.crash == Crash::KeepsLog;
    let registered = state.nodes[node].up && state.nodes[node].incarnation == state.entry.incarnations[node];
    state.entry.in_sync & (1 << node) != 0
        && (kept || registered)
        && !state.nodes[node].doubtful
        && !state.nodes[node].older
}

/// The sizes that the tests exhaust, or those that take minutes.
pub fn sizes(large: bool) -> Vec<Size> {
    use Crash::{KeepsLog, LosesLog};
    let damaged = |crashes, doubts, versions| Size {
        crash: KeepsLog,
        crashes,
        elections: 0,
        drifts: 0,
        writes: 1,
        versions,
        doubts,
        drops: 1,
        olds: 0,
        stops: 0,
    };
    let sizes: &[(Crash, u8, u8, u8, u8, u8)] = if large {
        &[
            (KeepsLog, 1, 1, 0, 0, 4),
            (LosesLog, 1, 1, 0, 0, 4),
            (KeepsLog, 1, 1, 1, 1, 3),
            (LosesLog, 1, 1, 1, 1, 3),
            (KeepsLog, 2, 1, 0, 0, 3),
            (LosesLog, 2, 1, 0, 0, 3),
            (KeepsLog, 2, 0, 1, 1, 3),
            (KeepsLog, 2, 0, 0, 0, 4),
            (LosesLog, 1, 2, 0, 0, 4),
            (LosesLog, 1, 1, 0, 0, 5),
        ]
    } else {
        &[(KeepsLog, 1, 0, 1, 1, 2), (KeepsLog, 1, 1, 0, 0, 3), (LosesLog, 1, 1, 0, 0, 3), (KeepsLog, 2, 0, 0, 0, 3)]
    };
    let size = |(crash, writes, crashes, elections, drifts, versions)| Size {
        crash,
        crashes,
        elections,
        drifts,
        writes,
        versions,
        doubts: 0,
        drops: 0,
        olds: 0,
        stops: 0,
    };
    let doubtful = if large { vec![damaged(2, 2, 4)] } else { vec![damaged(1, 1, 3)] };
    let older = |writes, crashes, versions| Size { olds: 1, ..size((KeepsLog, writes, crashes, 0, 0, versions)) };
    let older = vec![older(1, 1, if large { 4 } else { 3 })];
    let stops = Size { stops: 1, ..size((KeepsLog, 1, u8::from(large), 0, 0, 4)) };
    sizes.iter().map(|chosen| size(*chosen)).chain(doubtful).chain(older).chain([stops]).collect()
}
