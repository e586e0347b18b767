//! Cuts over the whole cluster, going back to one, and fenced processes that keep their memory: durability
//! `replicated`, rules 26 to 30, 34 and 35 of docs/cluster-protocols.md.
//!
//! # What it stands for
//! Two partitions on up to three nodes, each with up to two replicas, and the manage group. One transaction writes
//! in both partitions (prepare, and an outcome in each); a second one writes in the first partition alone, in a session
//! that was told of the first and carries its time on. Committed is what was prepared, or stood, in the *memory* of all
//! in-sync replicas of each partition where it writes; from then on it may be acknowledged. A cut is drawn, each primary is asked for
//! it, raises `max_read`, writes the entry; it is shipped and flushed, and the group notes it. Checkpoints are written
//! in one step and published in a later one, and take the place of the log before them. A second cut may be drawn while
//! the first can still be noted.
//!
//! Each replica has a *log*, a list of records: entries, what a primary of another stream has cut, the beginning of a
//! copy, its end with the rows. Memory is what the whole log says, and ends with the process. A crash leaves each log's
//! flushed part or any longer one, so also half a copy. Rows have only their newest version: what came by a copy or a
//! checkpoint cannot be taken out of them again, what came by entries is put in when the log is read. The two logs of a
//! node, which are one in truth, may lose different parts. Flushes are made only where a cut waits for one: what else
//! is flushed might as well be left by a crash. The process that comes back is a new one; it joins by the entries that
//! it lacks or by a copy. When the last process that had a partition has ended, the group has the cluster go back, at
//! any later time; opening the disk and registering are two steps, and the cluster may go back between them. What it
//! has undone may be done again.
//!
//! The lease of a process may also end while the process lives (*silence*). It leaves the sets in which somebody is up;
//! where it is the last it stays, and the partition waits for it. When it hears of that it writes all its logs to disk,
//! then a note there that it has done so, and ends; the process that follows it says so when it registers, and takes its
//! place. It may end instead, at any moment, or stay silent for longer than a bound, and the cluster goes back.
//!
//! # What is left out
//! That somebody hears late of what the group has decided, leases, and wrong suspicions of primaries
//! ([`crate::in_sync`]): all hear of each entry at once, a process that ends is struck in the same step, and going back
//! ends all processes in one; of several that fall silent at once one is struck. Aborts and take-over ([`crate::commit_takeover`]): what is prepared everywhere commits;
//! what one partition has lost is prepared there once more. Reads, but that they raise `max_read`
//! ([`crate::least_timestamp`]); so it does not show that a new view draws its time above all that was ever committed
//! (29), which is for those who remember times. Copies and checkpoints in slices: each reads all rows at one moment.
//! That nobody goes back before each partition has a holder who is up (29): the command may be late, so here it comes
//! at any time, and that is as safe; to wait keeps survivors in service as long as nothing is won by their end. The
//! catalog and an end in order (31).
//!
//! # What holds
//! The properties below in every reachable state; and from every reachable state, when faults stop and all nodes come
//! back, every run comes to rest with each partition led and on all its nodes ([`crate::check::stuck`]). No rule was
//! changed for it.
//!
//! The rules, with the mutation that shows why:
//! 1. Acknowledged is what is in the memory of all in-sync replicas (26; [`Mutation::OnPrimaryOnly`]).
//! 2. A primary raises `max_read` to the cut's time when it is asked (27; [`Mutation::MaxReadNotRaised`]), and writes
//!    the entry when everything that may commit at or below is decided ([`Mutation::CutBeforeDecided`]).
//! 3. A cut is complete when its entry is on the disks of all in-sync replicas of all partitions (28;
//!    [`Mutation::CompleteBeforeFlushed`]), under the sum of versions ([`Mutation::SumNotCompared`]) that was read
//!    before its time was drawn ([`Mutation::SumReadAfterDraw`]). Those who were in-sync are its holders, and
//!    nobody else, whatever a log says ([`Mutation::HolderByLog`]: a copy that was taken where the cut's entry was
//!    the last has rows that committed later). Cuts grow in time ([`Mutation::OlderCutNoted`]).
//! 4. Who goes back keeps what committed at or below the cut's time, wherever it stands (29;
//!    [`Mutation::ReadUpToEntry`]), and reads its log up to the copy that has taken the place of the cut
//!    ([`Mutation::CopyTakesCutAway`]). Survivors go back too ([`Mutation::SurvivorsGoOn`]). Who has opened its disk
//!    before the cluster went back is not registered ([`Mutation::OutdatedRegistered`]).
//! 5. The end of a lease is not the end of a process: the cluster goes back when the last process that had a partition
//!    in memory has ended, or its bound has passed (35; [`Mutation::SilenceIsTheEnd`]). A fenced process is followed by
//!    one that has what it had (34; [`Mutation::FencedForgets`]), for everything is on its disk before the disk says so
//!    ([`Mutation::FencedBeforeFlushed`]). The note counts for the process that registered last
//!    ([`Mutation::OldClaim`]), and not when the cluster has gone back since ([`Mutation::OlderMemoryKept`]).
//! 6. A checkpoint is published when a cut is complete (30; [`Mutation::CheckpointNotCovered`]) that was drawn after
//!    its last row was read ([`Mutation::CheckpointUnderEarlierDraw`]).
//!
//! # Named traces
//! *The later time before the cut* (rule 4). P prepares T at 1. The cut is drawn at 1; Q is asked and writes its entry,
//! then prepares T at 2. T commits at 2, and P decides it before it writes its own entry. Who reads P's log up to the
//! entry has T, and Q has not. A commit of P alone by a session that was told of T stands there just so.
//!
//! *The only holder* (rule 4). A alone has P, and the cut is complete. B joins by a copy; A crashes, comes back as a
//! new process, and is brought a copy in its turn, as B no longer has the entries that it lacks. B crashes, and with it
//! all of Q: the cluster goes back. A is the only holder of P. Its log has the cut before the copy; whoever reads on to
//! the end finds rows that are newer, and throws them away. Nobody has P any more.
//!
//! *The outdated process* (rule 4). A, which held P alone, crashes, comes back and reads its disk as ever; then the
//! cluster goes back. Registered all the same, A counts as one that does not hold the cut, since its log goes on behind
//! it, and never looks again: P waits for ever. Where B holds P too and leads it, A has kept a prepare of which nobody
//! else knows, and its rows are not those of its primary.
//!
//! # Sizes that were exhausted
//! Alone: the first partition begins with its primary alone, and others are to join it. Progress was tested in those of
//! the tests.
//!
//! | nodes of the partitions | transactions | cuts | checkpoints | reads | crashes | strikes | states |
//! |---|---|---|---|---|---|---|---|
//! | 01, 1 (test) | 1 | 1 | 0 | 0 | 1 | 0 | 201 474 |
//! | 0, 1 (test) | 2 | 1 | 0 | 0 | 1 | 0 | 24 497 |
//! | 0, 1 (test) | 1 | 1 | 1 | 0 | 1 | 0 | 53 320 |
//! | 0, 1 (test) | 1 | 1 | 0 | 0 | 2 | 0 | 42 825 |
//! | 01, 2 (test) | 0 | 1 | 0 | 0 | 2 | 0 | 31 176 |
//! | 01, 1 (test) | 0 | 1 | 0 | 0 | 1 | 1 | 7 734 |
//! | 01, 1, alone (test) | 0 | 1 | 0 | 0 | 2 | 0 | 36 850 |
//! | 01, 1, two silences (test) | 1 | 0 | 0 | 0 | 0 | 0 | 14 196 |
//! | 0, 1, one silence (test) | 1 | 1 | 0 | 0 | 1 | 0 | 84 784 |
//! | 0, 1, two silences with a bound (test) | 1 | 1 | 0 | 0 | 0 | 0 | 116 584 |
//! | 01, 1 | 2 | 1 | 0 | 0 | 1 | 0 | 1 061 523 |
//! | 01, 1 | 1 | 1 | 0 | 0 | 1 | 1 | 1 137 841 |
//! | 01, 1 | 1 | 1 | 1 | 0 | 1 | 0 | 2 575 275 |
//! | 01, 1, alone | 0 | 2 | 0 | 0 | 3 | 0 | 3 827 220 |
//! | 01, 1 | 1 | 1 | 0 | 0 | 2 | 0 | 4 588 490 |
//! | 01, 01 | 1 | 1 | 0 | 0 | 1 | 0 | 3 005 181 |
//! | 0, 1 | 2 | 2 | 0 | 0 | 2 | 0 | 2 751 444 |
//! | 01, 2 | 1 | 1 | 0 | 0 | 2 | 0 | 3 646 433 |
//! | 01, 1, alone | 1 | 1 | 0 | 1 | 1 | 0 | 1 557 984 |
//! | 01, 1, alone | 0 | 2 | 1 | 0 | 2 | 0 | 5 327 600 |

use stateright::{Model, Property};

use crate::check::Settles;

mod back;
mod state;
mod steps;
#[cfg(test)]
mod tests;

use state::{Cut, Entry, Life, Log, Node, PARTITIONS, Partition, Rows, State, TRANSACTIONS, Wrong};
pub use steps::Step;

/// A safeguard that is switched off, to see that the model finds what it guards against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// A transaction counts as committed when the primaries have it in memory, without the other in-sync replicas.
    OnPrimaryOnly,
    /// A primary that is asked for a cut does not raise `max_read` to its time.
    MaxReadNotRaised,
    /// A primary writes a cut although something that may commit at or below its time is not decided.
    CutBeforeDecided,
    /// A cut is complete when it is in the memory of all in-sync replicas, before it is on their disks.
    CompleteBeforeFlushed,
    /// A cut is complete although replicas have joined, or others lead, since it was drawn.
    SumNotCompared,
    /// The sum of versions that a cut names is read after its time was drawn.
    SumReadAfterDraw,
    /// Who finds the cut in its log holds it, whether or not it was in-sync when the cut was complete.
    HolderByLog,
    /// A cut that was drawn earlier takes the place of a later one.
    OlderCutNoted,
    /// Who goes back keeps what stands before the cut's entry, whatever its commit time.
    ReadUpToEntry,
    /// Who goes back reads its log to the end, so that a copy takes away what it had of the cut.
    CopyTakesCutAway,
    /// Going back to a cut ends only the processes that had what is gone.
    SurvivorsGoOn,
    /// A process that was opened before the cluster went back is registered.
    OutdatedRegistered,
    /// A checkpoint is published at once.
    CheckpointNotCovered,
    /// A checkpoint is published when a cut is complete that was drawn before its last row was read.
    CheckpointUnderEarlierDraw,
    /// The cluster goes back when the lease of the last process that had a partition has ended.
    SilenceIsTheEnd,
    /// A process whose lease has ended restarts with nothing in memory.
    FencedForgets,
    /// A fenced process says that its disk has everything before it has.
    FencedBeforeFlushed,
    /// What the disk says of a fenced process is believed of the processes that have registered since.
    OldClaim,
    /// A successor keeps what its predecessor had although the cluster has gone back since.
    OlderMemoryKept,
}

/// The sizes of one run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// By partition: the nodes that are to hold it, one bit each.
    pub placed: [u8; PARTITIONS],
    /// The first partition begins with its primary alone; who else is to hold it has nothing.
    pub alone: bool,
    /// 0: none; 1: one that writes in both partitions; 2: and one of the same session, in the first partition.
    pub transactions: u8,
    /// Cuts that are drawn.
    pub cuts: u8,
    pub checkpoints: u8,
    /// Snapshots that are read.
    pub reads: u8,
    pub crashes: u8,
    /// Living followers that are struck.
    pub strikes: u8,
    /// Processes whose leases end and that do not.
    pub silences: u8,
    /// They may be silent for so long that the cluster goes back without them.
    pub bound: bool,
}

/// The transaction that writes in both partitions, and the one that carries its time into a later commit.
pub const WIDE: usize = 0;
pub const CARRIED: usize = 1;

#[derive(Debug, Clone)]
pub struct Cuts {
    pub size: Size,
    pub mutation: Option<Mutation>,
}

impl Cuts {
    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub fn is_placed(&self, partition: usize, node: usize) -> bool {
        self.size.placed[partition] & (1 << node) != 0
    }

    pub fn is_used(&self, node: usize) -> bool {
        (0..PARTITIONS).any(|p| self.is_placed(p, node))
    }
}

pub const KEPT: &str = "what is committed is where it was written, unless the cluster has gone back";
pub const WHOLE: &str = "a transaction is in all partitions where it writes, or in none";
pub const NEWER: &str = "nothing is there after going back that committed later";
pub const MISSING: &str = "nothing is missing after going back that committed by then";
pub const HELD: &str = "every holder of a complete cut has it";
pub const GROWING: &str = "cuts grow in time";
pub const SAME: &str = "a replica that has all entries has the rows of its primary";
pub const LOSSLESS: &str = "nothing that is committed is lost while no process ends";

impl Model for Cuts {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let in_sync = [if self.size.alone { 1 } else { self.size.placed[0] }, self.size.placed[1]];
        let partition = |in_sync: u8| Partition {
            view: 0,
            primary: Some(in_sync.trailing_zeros() as u8),
            in_sync,
            gone: false,
            max_read: 0,
            asked: false,
        };
        let node = |number: usize| Node {
            life: Life::Up,
            goes_back: false,
            logs: [0, 1].map(|p| Log::of(self.is_placed(p, number).then(Rows::default))),
            checkpoint: None,
            fenced: false,
        };
        let empty = Cut { time: 0, positions: [0; PARTITIONS], holders: self.size.placed };
        vec![State {
            clock: 0,
            partitions: in_sync.map(partition),
            nodes: [0, 1, 2].map(node),
            drawn: None,
            drawn_before: None,
            cut: empty,
            recovery: empty,
            said: [[0; TRANSACTIONS]; PARTITIONS],
            commits: [0; TRANSACTIONS],
            crashes_left: self.size.crashes,
            strikes_left: self.size.strikes,
            cuts_left: self.size.cuts,
            reads_left: self.size.reads,
            checkpoints_left: self.size.checkpoints,
            silences_left: self.size.silences,
            ended: false,
            wrong: Wrong::default(),
            read_up_to_a_copy: false,
            successor_has_all: false,
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
            Property::always(KEPT, |_, s: &State| {
                let has = |t: usize, p: usize| s.led(p).is_none_or(|stream| stream.rows().has(t));
                let kept = |t: usize| (0..PARTITIONS).all(|p| !steps::writes(t, p) || has(t, p));
                (0..TRANSACTIONS).all(|t| s.commits[t] == 0 || kept(t))
            }),
            Property::always(WHOLE, |_, s: &State| {
                let rows = |p: usize| s.led(p).map(|stream| stream.rows());
                let half = |a: Rows, b: Rows| a.committed[WIDE] > 0 && !b.has(WIDE);
                rows(0).zip(rows(1)).is_none_or(|(a, b)| !half(a, b) && !half(b, a))
            }),
            Property::always(NEWER, |_, s: &State| !s.wrong.newer),
            Property::always(MISSING, |_, s: &State| !s.wrong.missing),
            Property::always(HELD, |_, s: &State| !s.wrong.not_held),
            Property::always(GROWING, |_, s: &State| !s.wrong.older_cut),
            Property::always(SAME, |_, s: &State| !s.wrong.strayed),
            Property::always(LOSSLESS, |_, s: &State| !s.wrong.lost),
            Property::sometimes("a later time stands before a cut", |_, s: &State| {
                let entries = s.led(0).map(|stream| stream.entries).unwrap_or_default();
                entries.windows(2).any(|two| match (two[0].entry, two[1].entry) {
                    (Entry::Commit { time, .. }, Entry::Cut { time: cut }) => time > cut,
                    _ => false,
                })
            }),
            Property::sometimes("a checkpoint that has a commit is published", |_, s: &State| {
                let has_it = |rows: &Rows| rows.committed[WIDE] > 0;
                let published = |node: &Node| node.logs.iter().any(|log| log.base.as_ref().is_some_and(has_it));
                s.recovery.time == 0 && s.nodes.iter().any(published)
            }),
            Property::sometimes("gone back to before a commit", |_, s: &State| {
                s.recovery.time > 0 && s.commits[WIDE] == 0
            }),
            Property::sometimes("gone back to a cut that has a commit", |_, s: &State| {
                s.recovery.time > 0 && s.commits[WIDE] > 0 && s.commits[WIDE] <= s.recovery.time
            }),
            Property::sometimes("gone back to before a copy", |_, s: &State| s.read_up_to_a_copy),
            Property::sometimes("the only one that has a partition follows a fenced process", |_, s: &State| {
                s.successor_has_all
            }),
        ]
    }
}

impl Settles for Cuts {
    fn is_fault(&self, step: &Step) -> bool {
        step.is_fault()
    }

    fn is_settled(&self, state: &State) -> bool {
        let led = |(number, p): (usize, &Partition)| p.primary.is_some() && p.in_sync == self.size.placed[number];
        let decided = |p: usize| state.led(p).is_none_or(|stream| stream.rows().prepared == [0; TRANSACTIONS]);
        state.partitions.iter().enumerate().all(led) && (0..PARTITIONS).all(decided)
    }
}

/// The first partition on the first two nodes, the second on one of them.
pub const SHARED: [u8; PARTITIONS] = [0b011, 0b010];
/// Each partition on a node of its own.
pub const APART: [u8; PARTITIONS] = [0b001, 0b010];
/// The first partition on two nodes, the second on a third.
pub const THIRD: [u8; PARTITIONS] = [0b011, 0b100];
/// Both partitions on the same two nodes.
pub const BOTH: [u8; PARTITIONS] = [0b011, 0b011];

/// One of everything that the smallest runs need; sizes are told by how they differ from it.
pub const ONE: Size = Size {
    placed: SHARED,
    alone: false,
    transactions: 1,
    cuts: 1,
    checkpoints: 0,
    reads: 0,
    crashes: 1,
    strikes: 0,
    silences: 0,
    bound: false,
};

/// The sizes that the tests exhaust, or those that take minutes.
pub fn sizes(large: bool) -> Vec<Size> {
    if !large {
        return vec![
            ONE,
            Size { placed: APART, transactions: 2, ..ONE },
            Size { placed: APART, checkpoints: 1, ..ONE },
            Size { placed: APART, crashes: 2, ..ONE },
            Size { placed: THIRD, transactions: 0, crashes: 2, ..ONE },
            Size { transactions: 0, strikes: 1, ..ONE },
            Size { alone: true, transactions: 0, crashes: 2, ..ONE },
            Size { cuts: 0, crashes: 0, silences: 2, ..ONE },
            Size { placed: APART, silences: 1, ..ONE },
            Size { placed: APART, crashes: 0, silences: 2, bound: true, ..ONE },
        ];
    }
    vec![
        Size { transactions: 2, ..ONE },
        Size { strikes: 1, ..ONE },
        Size { checkpoints: 1, ..ONE },
        Size { placed: BOTH, ..ONE },
        Size { placed: APART, transactions: 2, cuts: 2, crashes: 2, ..ONE },
        Size { placed: THIRD, crashes: 2, ..ONE },
        Size { alone: true, reads: 1, ..ONE },
        Size { alone: true, transactions: 0, cuts: 2, checkpoints: 1, crashes: 2, ..ONE },
        Size { alone: true, transactions: 0, cuts: 2, crashes: 3, ..ONE },
        Size { crashes: 2, ..ONE },
        Size { crashes: 0, silences: 2, ..ONE },
        Size { silences: 1, bound: true, ..ONE },
        Size { cuts: 0, silences: 2, ..ONE },
    ]
}
