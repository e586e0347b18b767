//! Commit times against snapshot reads: design.md §5 (time, commit), §7 (`max_read` after promotion).
//!
//! # What it stands for
//! A timestamp service that counts; two partitions with one to three replicas; two transactions and one or two
//! snapshots. A commit draws no time: each participant's primary picks a *least timestamp*, and the commit time is the
//! maximum over participants. The first transaction writes row `x` in partition 0 and `y` in partition 1; the second
//! writes over both, or over one of them, or writes `z` in a session that has been told of the first ([`Second`]). A
//! snapshot at `s` sees the commits at or below `s`; each of its reads takes any row on any in-sync replica, at any
//! time and any number of times, in two halves (raise, look), with anything between them.
//!
//! # What is left out
//! Partitions that are only read at SERIALIZABLE (they prepare like the others), aborts by the user, fences and take-over ([`crate::commit_takeover`]: reports are facts there, as here), leases (a
//! primary is named when the old one's lease has ended), locks (the second transaction
//! begins at a partition when the first has finished there), garbage collection of versions, and that a prepare is late
//! within a view (streams are in order). A look is at one row: a scan is many looks after one raise.
//!
//! # What does not hold: refusal by replicas
//! design.md lets every replica keep a `max_read` of its own and refuse a least timestamp that is not above it
//! ([`Rule::Refusal`]). What a replica has shown is then known to that replica only, and dies with it.
//!
//! *The struck reader* (one crash, two replicas). A prepares T with least timestamp 1 and ships. Snapshot 1 is drawn,
//! reads `x` on B, which has not got the prepare: old value, B's `max_read` is 1. B crashes and is struck. Nobody
//! refuses any more: T is reported at 1, commits at 1. Snapshot 1 reads `x` on A: new value.
//!
//! A fresh `max_read` when a replica is struck mends this ([`Rule::RefusalAndFreshAfterStrike`]), for the primary knows
//! that the struck replica had not taken the prepare. A new primary does not know:
//!
//! *The inherited prepare* (two crashes, two replicas; with three replicas A and C crash). A prepares T at 1; snapshot 1
//! reads the old `x` on B. A crashes, comes back and leads again, with T's prepare in its log. B crashes and is struck.
//! Had B taken the prepare, then T may have been reported and committed at 1, and the client told so: A must keep 1.
//! Had B refused it, as here, then A must not keep 1. The two cannot be told apart from what survives, and no choice
//! is right in both: keeping 1 changes what snapshot 1 reads, raising it gives one transaction two commit times
//! ([`Mutation::LeastChangedAfterPromotion`]).
//!
//! # What replaces it: the primary confirms
//! [`Rule::Confirm`]: only the primary's `max_read` counts. Before a replica reads a snapshot `s` for the first time in
//! a view it asks the primary; the primary, under its lease, raises `max_read` to `s` and answers *in its stream*; the
//! replica reads when it has taken everything the stream had before the answer. From then on it serves every snapshot
//! at or below `s` from its own memory without asking, as long as its process lives, also in later views, and also after
//! it was struck without hearing of it: it may then wait for an outcome in vain, but shows nothing wrong. (Raft calls
//! this a read index.) For every prepare has either a least timestamp above `s`, or is known to the replica before it
//! looks, and the read waits for it; and whoever leads later draws a `max_read` above `s`. No least timestamp is ever refused, so that prepare is one round trip always, and a prepare found in any log
//! was good for all readers: nobody needs to know whether it was reported. The price: one small message per partition
//! and snapshot, for the first read on a replica that is not the primary; many snapshots share one (the highest counts),
//! and a long snapshot pays once.
//!
//! # The rules, with the mutation that shows why
//! 1. Least timestamp = max(`max_read` + 1, highest finished commit of the partition, what the session has seen)
//!    ([`Mutation::NoMaxRead`], [`Mutation::IgnoresFinishedCommits`], [`Mutation::IgnoresSession`]). It is picked, and the rows
//!    marked, in one turn of the primary.
//! 2. *Not above* the last two, but *at least*: then no commit time is ever more than one above the service's counter
//!    ([`NOT_AHEAD`]), and a snapshot drawn later sees every commit acknowledged before, also one of another session
//!    ([`ACKNOWLEDGED`]). Therefore dependent transactions may share a commit time: what is ordered by commit time
//!    (redo, change log) orders equal times by the partition's sequence, and a reader of the change log takes all
//!    transactions of one time as one step; (commit time, transaction id) alone can put cause after effect.
//! 3. A snapshot sees commits at or below it, and waits for rows prepared *at or below* it
//!    ([`Mutation::ReadsBelowPrepared`], [`Mutation::WaitsStrictlyBelow`]).
//! 4. `max_read` is raised before the look ([`Mutation::LookThenRaise`]), on a replica: the primary's answer is there
//!    ([`Mutation::ReplicaOnItsOwn`]) and everything before it in the stream ([`Mutation::StreamNotAwaited`]).
//! 5. A primary of a new view, also the same node after a restart, draws a fresh `max_read` after the old lease has ended
//!    ([`Mutation::OldMaxReadAfterPromotion`]). Confirmations stay good; a replica whose state is replaced by a copy, or
//!    whose process is new, begins with none.
//! 6. A least timestamp in a log is never changed ([`Mutation::LeastChangedAfterPromotion`]).
//! 7. A snapshot is requested from the service after its statement began. Requests may share an answer; numbers must not
//!    be fetched in advance ([`Mutation::Prefetched`]).
//!
//! # Sizes that were exhausted
//! States with [`Rule::Confirm`], by what the second transaction does ([`Second`]); strikes are those of living replicas.
//!
//! | replicas | snapshots | crashes | strikes | overwriting | later | dependent |
//! |---|---|---|---|---|---|---|
//! | 1 + 1 (test) | 1 | 2 | 0 | 69 440 | 35 838 | 134 518 |
//! | 2 + 1 (test) | 1 | 1 | 0 | 179 538 | 52 291 | 213 724 |
//! | 2 + 1 (test) | 1 | 0 | 1 | 20 897 | 7 381 | 30 429 |
//! | 3 + 1 (test) | 1 | 0 | 0 | 30 636 | 7 137 | 29 096 |
//! | 2 + 1 | 1 | 2 | 0 | 2 574 767 | 591 490 | 2 334 015 |
//! | 2 + 1 | 1 | 1 | 1 | 621 539 | 166 718 | 673 437 |
//! | 2 + 2 | 1 | 1 | 0 | 1 924 053 | 592 313 | 2 300 109 |
//! | 3 + 1 | 1 | 1 | 0 | 3 833 628 | 436 118 | 1 827 692 |
//! | 3 + 1 | 1 | 0 | 1 | 204 627 | 41 083 | 169 075 |
//! | 2 + 1 | 2 | 0 | 1 | 1 997 051 | 589 863 | 6 399 355 |

use stateright::{Model, Property};

mod state;
mod steps;
#[cfg(test)]
mod tests;

use state::{Known, Outcome, PARTITIONS, Partition, REPLICAS, ROWS, Replica, SNAPSHOTS, Snapshot, State, TRANSACTIONS};
pub use steps::Step;

/// How snapshot reads on replicas and commit times are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// As design.md §5 has it: every replica has a `max_read` of its own and refuses a least timestamp not above it.
    Refusal,
    /// The same, and a primary draws a fresh `max_read` also when another replica is struck.
    RefusalAndFreshAfterStrike,
    /// The rule that holds: a replica has the primary raise `max_read` before it reads a snapshot the first time, and
    /// reads when it has everything the primary had sent before its answer.
    Confirm,
}

/// How the second transaction depends on the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// It writes the same rows, after the first has let go of their locks.
    Overwriting,
    /// It writes one of these rows, in one partition, after the first has let go of its lock there.
    Later,
    /// It writes another row, in a session that has been told of the first one's commit.
    Dependent,
}

/// A safeguard that is switched off, to see that the model finds what it guards against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// The least timestamp does not regard `max_read`.
    NoMaxRead,
    /// `max_read` is raised after the look.
    LookThenRaise,
    /// A replica takes a least timestamp that is not above its `max_read` (rule `Refusal`), or reads without asking
    /// the primary (rule `Confirm`).
    ReplicaOnItsOwn,
    /// A replica reads when the primary's answer is there, although the stream before it is not (rule `Confirm`).
    StreamNotAwaited,
    /// A new primary goes on with the `max_read` it had as a replica.
    OldMaxReadAfterPromotion,
    /// The least timestamp does not regard commits that are finished in the partition.
    IgnoresFinishedCommits,
    /// The least timestamp does not regard what the session has seen.
    IgnoresSession,
    /// A snapshot does not wait for rows that are prepared at or below it.
    ReadsBelowPrepared,
    /// A snapshot waits only for rows prepared strictly below it.
    WaitsStrictlyBelow,
    /// Snapshots are drawn in advance and handed out later.
    Prefetched,
    /// A new primary ships its prepared transactions with a new least timestamp.
    LeastChangedAfterPromotion,
}

/// The sizes of one run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Replicas of each partition, 1 to 3.
    pub replicas: [u8; PARTITIONS],
    /// Snapshots drawn, 1 or 2.
    pub snapshots: usize,
    pub crashes: u8,
    /// Living replicas that are struck, and go on reading what they may.
    pub suspicions: u8,
}

#[derive(Debug, Clone)]
pub struct LeastTimestamp {
    pub rule: Rule,
    pub second: Second,
    pub size: Size,
    pub mutation: Option<Mutation>,
}

impl LeastTimestamp {
    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// The transactions that write `row`, one bit each.
    pub fn writers(&self, row: usize) -> u8 {
        match (self.second, row) {
            (Second::Overwriting, 0 | 1) | (Second::Later, 1) => 0b11,
            (Second::Later | Second::Dependent, 0 | 1) => 0b01,
            (Second::Dependent, 2) => 0b10,
            _ => 0,
        }
    }

    pub fn takes_part(&self, transaction: usize, partition: usize) -> bool {
        (0..ROWS).any(|row| partition_of(row) == partition && self.writers(row) & (1 << transaction) != 0)
    }
}

pub fn partition_of(row: usize) -> usize {
    usize::from(row > 0)
}

pub const WHOLE: &str = "a snapshot sees all of a transaction or nothing";
pub const REPEATABLE: &str = "two reads of one snapshot agree, wherever and whenever";
pub const CAUSAL: &str = "who sees a transaction sees what it built upon";
pub const ACKNOWLEDGED: &str = "a snapshot is not below a commit acknowledged before it was drawn";
pub const ORDERED: &str = "commit times follow the order of dependent transactions";
pub const ONE_TIME: &str = "whoever computes a commit time computes the same";
pub const NOT_AHEAD: &str = "no commit time is more than one above the service's counter";

impl Model for LeastTimestamp {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let replica = Replica { up: true, max_read: 0, confirmed: 0, known: [Known::Nothing; TRANSACTIONS] };
        let partition = |count: u8| Partition {
            count,
            primary: 0,
            primary_lost: false,
            in_sync: (1 << count) - 1,
            replicas: [replica; REPLICAS],
            accepted: [0; TRANSACTIONS],
            inherited: 0,
            reported: [None; TRANSACTIONS],
        };
        vec![State {
            clock: 0,
            partitions: self.size.replicas.map(partition),
            outcomes: [Outcome::Open; TRANSACTIONS],
            snapshots: [Snapshot { at: 0, halfway: None, seen: [None; ROWS], unrepeatable: false }; SNAPSHOTS],
            prefetched: 0,
            crashes_left: self.size.crashes,
            suspicions_left: self.size.suspicions,
            two_times: false,
            drawn_below: false,
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
                (0..TRANSACTIONS).all(|t| s.snapshots.iter().all(|snapshot| sees_whole(model, snapshot, t)))
            }),
            Property::always(REPEATABLE, |_, s: &State| s.snapshots.iter().all(|snapshot| !snapshot.unrepeatable)),
            Property::always(CAUSAL, |model: &Self, s: &State| {
                s.snapshots.iter().all(|snapshot| sees_second_with_first(model, snapshot))
            }),
            Property::always(ACKNOWLEDGED, |_, s: &State| !s.drawn_below),
            Property::always(ORDERED, |_, s: &State| match (s.commit_time(0), s.commit_time(1)) {
                (Some(first), Some(second)) => first <= second,
                _ => true,
            }),
            Property::always(ONE_TIME, |_, s: &State| !s.two_times),
            Property::always(NOT_AHEAD, |_, s: &State| {
                (0..TRANSACTIONS).all(|t| s.commit_time(t).is_none_or(|time| time <= s.clock + 1))
            }),
            Property::sometimes("a snapshot sees both transactions", |_, s: &State| {
                s.snapshots.iter().any(|snapshot| snapshot.seen.iter().flatten().fold(0, |a, b| a | b) == 0b11)
            }),
            Property::sometimes("a snapshot sees nothing of a committed transaction", |_, s: &State| {
                s.commit_time(0).is_some() && s.snapshots[0].seen[0] == Some(0) && s.snapshots[0].seen[1] == Some(0)
            }),
            Property::sometimes("both commit at one time", |_, s: &State| {
                s.commit_time(0).is_some() && s.commit_time(0) == s.commit_time(1)
            }),
        ]
    }
}

fn sees_whole(model: &LeastTimestamp, snapshot: &Snapshot, transaction: usize) -> bool {
    let bit = 1 << transaction;
    let of_it = (0..ROWS).filter(|row| model.writers(*row) & bit != 0);
    let mut seen = of_it.filter_map(|row| snapshot.seen[row].map(|seen| seen & bit != 0));
    let first = seen.next();
    seen.all(|other| Some(other) == first)
}

fn sees_second_with_first(model: &LeastTimestamp, snapshot: &Snapshot) -> bool {
    let sees_second = snapshot.seen.iter().flatten().any(|seen| seen & 0b10 != 0);
    let misses_first =
        (0..ROWS).any(|row| model.writers(row) & 0b01 != 0 && snapshot.seen[row].is_some_and(|seen| seen & 0b01 == 0));
    !(sees_second && misses_first)
}

/// The sizes that the tests exhaust, or those that take minutes.
pub fn sizes(large: bool) -> Vec<(Second, Size)> {
    let sizes: &[([u8; PARTITIONS], usize, u8, u8)] = if large {
        &[
            ([2, 1], 1, 2, 0),
            ([2, 1], 1, 1, 1),
            ([2, 2], 1, 1, 0),
            ([3, 1], 1, 1, 0),
            ([3, 1], 1, 0, 1),
            ([2, 1], 2, 0, 1),
        ]
    } else {
        &[([1, 1], 1, 2, 0), ([2, 1], 1, 1, 0), ([2, 1], 1, 0, 1), ([3, 1], 1, 0, 0)]
    };
    let seconds = [Second::Overwriting, Second::Later, Second::Dependent];
    let size = |(replicas, snapshots, crashes, suspicions)| Size { replicas, snapshots, crashes, suspicions };
    seconds.iter().flat_map(|second| sizes.iter().map(|chosen| (*second, size(*chosen)))).collect()
}
