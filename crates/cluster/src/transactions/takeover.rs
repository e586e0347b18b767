//! Closing a transaction over several groups: the questions until its outcome is known, the outcome until all have
//! confirmed it, and then forgetting.
//!
//! Its coordinator and whoever takes over do the same ([`Closing`]); they differ in how they begin and in who forgets.
//! - The *coordinator* has sent prepares and waits for the votes. It asks whoever has not answered in time. It decides for abort only when somebody
//!   has refused (rule 2): there is nothing here by which it could do so alone. The client is told when [`Closing::outcome`] is there.
//! - A *take-over* begins at a participant whose prepare is stable (rule 4) and that waits for an outcome too long ([`super::TxnTable::undecided`]), or with a
//!   commit that a dead coordinator has left ([`super::TxnTable::orphans`]). Several may be under way, also beside a living coordinator: all come to the same outcome.
//!
//! The outcome is told to all participants, the own one too, until they have confirmed it. Then it is forgotten: by the coordinator, and by a take-over only if
//! the coordinator is dead (rule 8). A take-over beside a living coordinator ends when all have confirmed; the coordinator hears the outcome by asking.
//!
//! Whatever happens in the own group, a take-over is shown in the same turn ([`Closing::on_vote`] with the outcome),
//! and a take-over goes when the group is not led here any more. What it decides counts only under the lease (rule 15).

use super::decision::Decision;
use super::questions::Undecided;
use super::record::Outcome;
use super::safeguards::{Safeguard, off};
use super::table::Vote;
use rauk_types::{GroupId, TxnId};
use std::time::Duration;

/// What is to be sent to a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// What became of it? The answer goes to [`Closing::on_vote`].
    Ask,
    /// The answer goes to [`Closing::on_confirmed`].
    Decide(Outcome),
    /// Needs no answer; what is lost is found again by [`super::TxnTable::lingering`].
    Forget,
}

/// How long each participant is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A coordinator waits so long for the answer to its prepare before it asks: a question that overtakes the prepare aborts.
    pub patience: Duration,
    /// From one question or outcome to the next; doubled each time …
    pub first: Duration,
    /// … up to this.
    pub longest: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { patience: Duration::from_millis(500), first: Duration::from_millis(50), longest: Duration::from_secs(1) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Coordinator,
    TakeOver { coordinator_is_dead: bool },
}

#[derive(Clone, Debug)]
struct Participant {
    group: GroupId,
    /// It has confirmed the outcome.
    confirmed: bool,
    /// When it is sent something (again), and what is waited for after that.
    due: Duration,
    wait: Duration,
}

/// One transaction being closed.
#[derive(Clone, Debug)]
pub struct Closing {
    txn: TxnId,
    role: Role,
    decision: Decision,
    participants: Vec<Participant>,
    pace: Pace,
    forgotten: bool,
}

impl Closing {
    /// The coordinator has sent a prepare to each participant.
    pub fn coordinator(txn: TxnId, participants: &[GroupId], pace: Pace, now: Duration) -> Closing {
        Closing::new(txn, Role::Coordinator, participants, pace, now + pace.patience)
    }

    /// The participant `own` takes over: `undecided` is what its table says. `coordinator_is_dead`: as the control
    /// plane knows.
    pub fn take_over(undecided: &Undecided, own: GroupId, coordinator_is_dead: bool, pace: Pace) -> Closing {
        let role = Role::TakeOver { coordinator_is_dead };
        let mut closing = Closing::new(undecided.txn, role, &undecided.participants, pace, Duration::ZERO);
        closing.on_vote(own, undecided.vote);
        closing
    }

    fn new(txn: TxnId, role: Role, participants: &[GroupId], pace: Pace, due: Duration) -> Closing {
        let participant = |group: &GroupId| Participant { group: *group, confirmed: false, due, wait: pace.first };
        Closing {
            txn,
            role,
            decision: Decision::new(participants),
            participants: participants.iter().map(participant).collect(),
            pace,
            forgotten: false,
        }
    }

    /// What is to be sent now. Call it after every vote and confirmation too, and again at [`Closing::next_due`].
    pub fn on_tick(&mut self, now: Duration) -> Vec<(GroupId, Step)> {
        if self.forgotten {
            return Vec::new();
        }
        let Some(outcome) = self.decision.outcome() else {
            let missing = self.decision.missing();
            let mut steps = Vec::new();
            for participant in self.participants.iter_mut().filter(|p| missing.contains(&p.group)) {
                if participant.is_due(now, self.pace) {
                    steps.push((participant.group, Step::Ask));
                }
            }
            if off(Safeguard::AbortOnlyOnRefusal) && self.role == Role::Coordinator && !steps.is_empty() {
                self.on_vote(steps[0].0, Vote::Refused);
            }
            return steps;
        };
        if self.all_confirmed() && self.may_forget() {
            self.forgotten = true;
            return self.participants.iter().map(|participant| (participant.group, Step::Forget)).collect();
        }
        let unconfirmed = self.participants.iter_mut().filter(|participant| !participant.confirmed);
        unconfirmed.filter_map(|p| p.is_due(now, self.pace).then_some((p.group, Step::Decide(outcome)))).collect()
    }

    /// A participant has voted, or the own group has learnt the outcome. Gives the outcome when it is decided by that:
    /// it is to be told at once.
    ///
    /// # Panics
    /// As [`Decision::on_vote`].
    pub fn on_vote(&mut self, from: GroupId, vote: Vote) -> Option<Outcome> {
        if vote == Vote::Forgotten {
            self.on_forgotten(from);
            return None;
        }
        let outcome = self.decision.on_vote(from, vote)?;
        for participant in &mut self.participants {
            (participant.due, participant.wait) = (Duration::ZERO, self.pace.first);
        }
        Some(outcome)
    }

    /// All had confirmed the outcome, and the coordinator knew it or was dead (rule 8): nothing is left to do. A coordinator to which that is said without
    /// knowing the outcome tells its client that it is unknown; no rule lets that happen.
    fn on_forgotten(&mut self, from: GroupId) {
        if self.decision.outcome().is_some() {
            self.on_confirmed(from);
        } else {
            self.forgotten |= self.participants.iter().any(|participant| participant.group == from);
        }
    }

    /// A participant has the outcome on all its in-sync replicas.
    pub fn on_confirmed(&mut self, from: GroupId) {
        if self.decision.outcome().is_none() {
            // An answer to somebody else's outcome, which is not known here.
            return;
        }
        if let Some(participant) = self.participants.iter_mut().find(|participant| participant.group == from) {
            participant.confirmed = true;
        }
    }

    /// The participant has another primary now, or said that it cannot answer: what is open with it is sent again at the next tick.
    pub fn hurry(&mut self, group: GroupId) {
        if let Some(participant) = self.participants.iter_mut().find(|participant| participant.group == group) {
            participant.due = Duration::ZERO;
        }
    }

    /// The control plane has found the coordinator's process dead: a take-over may forget.
    pub fn on_coordinator_dead(&mut self) {
        if let Role::TakeOver { coordinator_is_dead } = &mut self.role {
            *coordinator_is_dead = true;
        }
    }

    pub fn txn(&self) -> TxnId {
        self.txn
    }

    /// `None`: not decided yet, or nothing to decide any more.
    pub fn outcome(&self) -> Option<Outcome> {
        self.decision.outcome()
    }

    /// When [`Closing::on_tick`] has something to send again. `None`: nothing more will be sent as things are.
    pub fn next_due(&self) -> Option<Duration> {
        if self.forgotten {
            return None;
        }
        if self.decision.outcome().is_none() {
            let missing = self.decision.missing();
            return self.participants.iter().filter(|p| missing.contains(&p.group)).map(|p| p.due).min();
        }
        if self.all_confirmed() {
            return self.may_forget().then_some(Duration::ZERO);
        }
        self.participants.iter().filter(|participant| !participant.confirmed).map(|participant| participant.due).min()
    }

    /// Nothing more to do: it was forgotten, or all have confirmed and forgetting is the living coordinator's part.
    pub fn is_done(&self) -> bool {
        self.forgotten || self.all_confirmed() && !self.may_forget()
    }

    fn all_confirmed(&self) -> bool {
        if off(Safeguard::ForgetAllConfirmed) {
            return self.participants.iter().any(|participant| participant.confirmed);
        }
        self.participants.iter().all(|participant| participant.confirmed)
    }

    fn may_forget(&self) -> bool {
        self.role != Role::TakeOver { coordinator_is_dead: false } || off(Safeguard::CoordinatorKnows)
    }
}

impl Participant {
    /// Whether to send now; if so, when the next time is.
    fn is_due(&mut self, now: Duration, pace: Pace) -> bool {
        if now < self.due {
            return false;
        }
        self.due = now + self.wait;
        self.wait = (self.wait * 2).min(pace.longest);
        true
    }
}
