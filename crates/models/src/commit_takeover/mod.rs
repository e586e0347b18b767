//! Commit of one transaction over two participants, with take-over: design.md §5 (commit), §7 (views, promotion).
//!
//! # What it stands for
//! Two partitions, each with one or two replicas on nodes of their own, and a coordinator on a third. Both have been
//! touched: their primaries hold the transaction's locks. The coordinator sends prepares; a primary writes the prepare
//! to its log and ships it; when the other in-sync replica has it on disk it says so; when both participants have, the
//! transaction is committed and the client is told. Then come the outcome, its confirmation, and the truncation after
//! which nothing is left of it. A prepared participant may take over at any time (no clock: the 100 ms may always be
//! over), both at once and while the coordinator lives.
//!
//! What has been *said* (prepared, aborted, confirmed, committed) is a set of facts that stay: whoever is addressed
//! may hear of them at any later time, any number of times, or never. So are prepares, questions and outcomes. Stream
//! messages between replicas are kept one by one, with view and position. A crash takes memory and, or not, what was
//! written without being synced; a process that comes back leads only in a new view. A *suspicion* is a view change
//! against a living primary, or the striking of a living replica: old and new primary then act at the same time.
//!
//! # What is left out
//! Other transactions: that locks keep others away is the partition's matter, here only "a prepare is taken only where
//! its locks are held" ([`LOCKED`]). Commit times ([`crate::least_timestamp`]). Catching up is one step
//! ([`crate::in_sync`]). Leases are not needed for safety here, with one exception (rule 8): everything else that a
//! relieved primary says is still true. Three participants: facts about the third would be the same facts.
//!
//! # What holds
//! The properties below in every reachable state; and from every reachable state, when faults stop, every run comes to
//! rest with nothing blocked (tested over the whole graph by [`crate::check::stuck`]).
//!
//! The rules as an implementation must follow them, with the mutation that shows why:
//! 1. *Prepared* is said when the record is on disk of every in-sync replica of the primary's view ([`Mutation::PrimaryOnly`]).
//!    This and every other fact stays true over view changes, so that old answers may be believed.
//! 2. After its first prepare the coordinator aborts only on a refusal ([`Mutation::AbortWithoutRefusal`]).
//! 3. Who is asked and has no record writes the abort record, and answers when it is on all in-sync replicas
//!    ([`Mutation::NoFence`], [`Mutation::FenceOnPrimaryOnly`]).
//! 4. Who takes over decides for commit only when its *own* prepare is on all its in-sync replicas, too
//!    ([`Mutation::OwnPrepareNotReplicated`]).
//! 5. A prepare is taken only by the process that holds the transaction's locks: locks die with their primary, with a
//!    view change to another primary, and when the coordinator's incarnation is dead ([`Mutation::OldPrepareTaken`]).
//!    The refusal (1213) needs no record of its own, but is given only when the *opening* of the new view is on all
//!    in-sync replicas, so that no older prepare in somebody's log can come to life ([`Mutation::RefusedBeforeOpened`]).
//! 6. Streams of older views are refused; the opening of a view carries the primary's state and cuts what a log has
//!    beyond it ([`Mutation::OldStreamTaken`]).
//! 7. An outcome is confirmed when it is on all in-sync replicas ([`Mutation::ConfirmedBeforeReplicated`]), and
//!    forgotten when every other participant has confirmed it ([`Mutation::ForgottenUnconfirmed`]) *and the coordinator
//!    knows it or is dead* ([`Mutation::CoordinatorNotAsked`]: new; design.md names only the participants). Otherwise a
//!    slow coordinator that never heard of the take-over is refused by a participant that has forgotten, and tells
//!    the client "aborted".
//! 8. Who has forgotten remembers, in memory, that the transaction is finished ([`Mutation::NoTombstone`]), and so do
//!    the replicas that follow its stream or copy its state ([`Mutation::TombstoneNotFollowed`]). Questions and prepares
//!    are addressed to a view, and refused in a later one; together with a lease, without which nobody asks
//!    ([`Mutation::AsksWithoutLease`]), no late message finds a process that has neither record nor tombstone.
//!    A tombstone may go when the coordinator's incarnation has named a higher number below which all is finished, or
//!    is dead and its messages are refused.
//! 9. Whoever holds a record pushes: prepared asks, decided sends the outcome until all have confirmed.
//!
//! # Named traces
//! *The slow coordinator* (rule 7). Both participants prepare, the answers to the coordinator are late; 0 takes over,
//! both commit and confirm; 1 forgets, crashes, comes back in a new view. The coordinator sends its prepare again: 1 has
//! no locks and no record, refuses with 1213, the client is told "aborted". The transaction is committed.
//!
//! *The early refusal* (rule 5). 0's primary A writes the prepare and crashes before B has it. B leads, A still counts
//! as in-sync. The coordinator's prepare comes to B, which refuses (1213), and the client is told "aborted". B is
//! replaced by A, whose log has the prepare: it ships it, says prepared, and the other participant, prepared as well,
//! takes over and commits. With the opening of B's view on A before the refusal, A's log has been cut.
//!
//! # Sizes that were exhausted
//! The coordinator may crash in each. Suspicions are changes against living processes. Progress was tested in those of
//! the tests.
//!
//! | start | replicas | crashes | suspicions | states |
//! |---|---|---|---|---|
//! | touched (test) | 1 + 1 | 1 | 0 | 28 485 |
//! | touched (test) | 2 + 1 | 0 | 1 | 84 196 |
//! | orphaned (test) | 2 + 1 | 1 | 1 | 90 708 |
//! | touched | 1 + 1 | 2 | 0 | 232 836 |
//! | touched | 2 + 1 | 1 | 0 | 371 018 |
//! | touched | 2 + 2 | 0 | 1 | 236 669 |
//! | touched | 2 + 1 | 1 | 1 | 5 969 294 |
//! | orphaned | 2 + 1 | 2 | 0 | 187 027 |
//! | orphaned | 2 + 2 | 1 | 1 | 620 325 |

use stateright::{Model, Property};

use crate::check::Settles;

mod state;
mod steps;
#[cfg(test)]
mod tests;

use state::{Coordinator, POSITIONS, Participant, REPLICAS, Record, Replica, State, Told, VIEWS, View};
pub use steps::Step;

/// A safeguard that is switched off, to see that the model finds what it guards against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// A participant that is asked answers "not prepared" and records nothing.
    NoFence,
    /// The fence is answered when the primary has it, without the other in-sync replica.
    FenceOnPrimaryOnly,
    /// The coordinator aborts after a timeout, on its own.
    AbortWithoutRefusal,
    /// A prepare is acknowledged when the primary has it, without the other in-sync replica.
    PrimaryOnly,
    /// An outcome is forgotten before the other participants have confirmed it.
    ForgottenUnconfirmed,
    /// An outcome is forgotten while a living coordinator does not know it.
    CoordinatorNotAsked,
    /// An outcome is confirmed when the primary has it, without the other in-sync replica.
    ConfirmedBeforeReplicated,
    /// A primary takes a prepare whose locks died with another primary or with the coordinator.
    OldPrepareTaken,
    /// A replica takes and acknowledges the stream of an older view.
    OldStreamTaken,
    /// A new primary refuses (1213) before the opening of its view is on all in-sync replicas.
    RefusedBeforeOpened,
    /// A participant takes over and decides before its own prepare is on all its in-sync replicas.
    OwnPrepareNotReplicated,
    /// A participant does not remember, within its view, that it has finished the transaction.
    NoTombstone,
    /// Only the primary remembers it, not the replica that follows its stream.
    TombstoneNotFollowed,
    /// A primary whose lease has ended, and that another has followed, still asks the others and makes them fence.
    AsksWithoutLease,
}

/// Where a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Both participants have been touched and hold the locks; no prepare has been sent.
    Touched,
    /// Both participants are prepared on all replicas and have said so, and the coordinator is dead: what is left is
    /// take-over, confirming and forgetting, with room for more faults.
    Orphaned,
}

/// The sizes of one run.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub start: Start,
    /// Replicas of each participant, 1 or 2.
    pub replicas: [usize; 2],
    /// Crashes of replicas, each of which is restarted at any later time.
    pub crashes: u8,
    /// Wrong suspicions: a living replica is struck, or its primary replaced.
    pub suspicions: u8,
}

#[derive(Debug, Clone)]
pub struct CommitTakeover {
    pub size: Size,
    pub mutation: Option<Mutation>,
}

impl CommitTakeover {
    pub fn is(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }
}

pub const ATOMIC: &str = "no participant commits while another aborts";
pub const ACKNOWLEDGED: &str = "a transaction acknowledged as committed is not aborted anywhere";
pub const TOLD_ABORTED: &str = "a transaction reported as aborted is not committed anywhere";
pub const DURABLE: &str = "an acknowledged commit is on disk of every in-sync replica";
pub const FENCE: &str = "who has said aborted never says prepared";
pub const LOCKED: &str = "a prepare is taken only where its locks are held";

impl Model for CommitTakeover {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let participants = self.size.replicas.map(touched);
        let mut state = State {
            coordinator: Coordinator::Working,
            prepare_sent: 0,
            sent_commit: false,
            sent_abort: false,
            told: Told::Nothing,
            participants,
            crashes_left: self.size.crashes,
            suspicions_left: self.size.suspicions,
        };
        if self.size.start == Start::Orphaned {
            (state.coordinator, state.prepare_sent) = (Coordinator::Crashed, 0b11);
            for participant in &mut state.participants {
                participant.said_prepared = true;
                participant.acknowledged[0] = 2;
                for replica in &mut participant.replicas {
                    (replica.record, replica.durable, replica.position) = (Record::Prepared, Record::Prepared, 1);
                }
            }
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        steps::candidates(state, actions);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        steps::apply(self, state, &step)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ATOMIC, |_, s: &State| !(committed(s) && aborted(s))),
            Property::always(ACKNOWLEDGED, |_, s: &State| !(s.told == Told::Committed && aborted(s))),
            Property::always(TOLD_ABORTED, |_, s: &State| !(s.told == Told::Aborted && committed(s))),
            Property::always(DURABLE, |_, s: &State| {
                s.told != Told::Committed || s.participants.iter().all(in_sync_replicas_hold_it)
            }),
            Property::always(FENCE, |_, s: &State| s.participants.iter().all(|p| !p.broke_fence)),
            Property::always(LOCKED, |_, s: &State| s.participants.iter().all(|p| !p.prepared_without_locks)),
            Property::sometimes("acknowledged", |_, s: &State| s.told == Told::Committed),
            Property::sometimes("reported as aborted", |_, s: &State| s.told == Told::Aborted),
            Property::sometimes("committed by take-over, nobody told", |_, s: &State| {
                orphan_confirmed(s) && committed(s)
            }),
            Property::sometimes("aborted by a fence", |_, s: &State| orphan_confirmed(s) && aborted(s)),
            Property::sometimes("forgotten everywhere after a commit", |_, s: &State| {
                s.told == Told::Committed
                    && s.participants
                        .iter()
                        .all(|p| p.confirmed && p.replicas().iter().all(|r| r.record == Record::None))
            }),
        ]
    }
}

impl Settles for CommitTakeover {
    fn is_fault(&self, step: &Step) -> bool {
        step.is_fault()
    }

    fn is_settled(&self, state: &State) -> bool {
        steps::is_settled(state)
    }
}

/// A participant in view 1 whose primary has been touched: it holds the transaction's locks.
fn touched(replicas: usize) -> Participant {
    let replica = |number: usize| Replica {
        up: true,
        leads: number == 0,
        view: 1,
        position: 0,
        record: Record::None,
        durable: Record::None,
        row_written: false,
        locks: number == 0,
        finished: false,
    };
    assert!((1..=REPLICAS).contains(&replicas), "1 or 2 replicas");
    let first = View { primary: 0, in_sync: (1 << replicas) - 1 };
    let mut acknowledged = [0; VIEWS];
    acknowledged[0] = 1;
    Participant {
        count: replicas as u8,
        replicas: [replica(0), replica(1)],
        last_view: 1,
        views: [first; VIEWS],
        primary_lost: false,
        acknowledged,
        stream: [[None; POSITIONS]; VIEWS],
        asked: 0,
        said_prepared: false,
        said_aborted: false,
        said_view_over: false,
        confirmed: false,
        decided_commit: false,
        prepared_without_locks: false,
        broke_fence: false,
    }
}

/// All have confirmed an outcome that no coordinator has sent.
fn orphan_confirmed(state: &State) -> bool {
    let silent = state.coordinator == Coordinator::Crashed && !state.sent_commit && !state.sent_abort;
    silent && state.participants.iter().all(|p| p.confirmed)
}

fn committed(state: &State) -> bool {
    state.commit_is_known()
}

fn aborted(state: &State) -> bool {
    state.abort_is_known()
}

fn in_sync_replicas_hold_it(participant: &Participant) -> bool {
    let in_sync = participant.truth().in_sync;
    participant
        .replicas()
        .iter()
        .enumerate()
        .filter(|(r, _)| in_sync & (1 << r) != 0)
        .all(|(_, replica)| replica.row_written || matches!(replica.durable, Record::Prepared | Record::Committed))
}

/// The sizes that the tests exhaust, or those that take minutes.
pub fn sizes(large: bool) -> Vec<Size> {
    use Start::{Orphaned, Touched};
    let sizes: &[(Start, [usize; 2], u8, u8)] = if large {
        &[
            (Touched, [1, 1], 2, 0),
            (Touched, [2, 1], 1, 0),
            (Touched, [2, 2], 0, 1),
            (Touched, [2, 1], 1, 1),
            (Orphaned, [2, 1], 2, 0),
            (Orphaned, [2, 2], 1, 1),
        ]
    } else {
        &[(Touched, [1, 1], 1, 0), (Touched, [2, 1], 0, 1), (Orphaned, [2, 1], 1, 1)]
    };
    let size = |(start, replicas, crashes, suspicions)| Size { start, replicas, crashes, suspicions };
    sizes.iter().map(|chosen| size(*chosen)).collect()
}
