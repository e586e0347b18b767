//! What the primary asks its transaction table: before it takes a prepare, a question, an outcome; and what there is to do on its own.
//!
//! Who proposes an entry looks here first, in the same turn: the table's assertions hold because nothing is proposed that it would not take.
//! All answers are for a primary under its lease (rule 15: looked at again before the answer leaves).

use super::record::{Outcome, Record};
use super::safeguards::{Safeguard, off};
use super::table::{Effect, Part, Standing, TxnTable, Vote, chunk_effect};
use bytes::Bytes;
use rauk_types::{GroupId, Position, ProcessId, Timestamp, TxnId};
use std::time::Duration;

/// What a question finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    Vote(Vote),
    /// A record is on its way to be stable: [`Effect::Answer`] will come.
    Soon,
    /// Nothing: propose this fence; [`Effect::Answer`] will come.
    Fence(Record),
}

/// What an outcome that somebody tells finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is stable here, or was, and is forgotten: confirm at once.
    Confirmed,
    /// It is on its way to be stable: [`Effect::Confirmed`] will come.
    Soon,
    /// Propose this; [`Effect::Confirmed`] will come.
    Propose(Record),
}

/// Somebody tells an outcome that cannot be: the protocol is broken, and which side is wrong cannot be told from here. Nothing is to be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transaction {} of process {} is told to be {told:?}, and was {known}", txn.0, txn.process().0)]
pub struct Contradiction {
    pub txn: TxnId,
    pub told: Outcome,
    pub known: &'static str,
}

/// A transaction that somebody has to close: decide, if that is open, and push until all have confirmed. For [`super::Closing::take_over`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    pub txn: TxnId,
    pub participants: Vec<GroupId>,
    pub least: Timestamp,
    /// What this group says: prepared, or the outcome, if it knows that and others may not.
    pub vote: Vote,
}

/// What dead coordinators have left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// To be forgotten here at once (propose [`Record::Forget`]).
    pub forget: Vec<TxnId>,
    /// To be closed; among them what [`TxnTable::undecided`] tells too.
    pub close: Vec<Undecided>,
}

impl TxnTable {
    /// The primary is asked (by a coordinator that lost its answer, or a take-over). The asker waits for [`Effect::Answer`] unless the vote is there.
    /// Not for transactions with one participant: [`TxnTable::look_alone`].
    pub fn ask(&self, txn: TxnId) -> Known {
        match self.look(txn) {
            Some(known) => known,
            None if off(Safeguard::Fence) => Known::Vote(Vote::Refused),
            None => Known::Fence(Record::Fence { txn }),
        }
    }

    /// The same without fencing. A prepare that arrives once more is answered from here; `None`: nothing is known, take it if its locks are held (rule 5).
    pub fn look(&self, txn: TxnId) -> Option<Known> {
        if self.tombstones.contains(txn) || self.commits.time(txn).is_some() {
            return Some(Known::Vote(self.vote(txn)));
        }
        let rests_on = match self.standing.get(&txn)? {
            Standing::Alone { at, .. } => *at,
            // An outcome is a fact wherever it was heard.
            Standing::Part(part) if part.outcome.is_some() => Position(0),
            Standing::Part(part) => match (&part.prepared, part.fence) {
                (Some(prepared), _) if !off(Safeguard::PrepareStable) => prepared.at,
                (None, Some(at)) => at,
                _ => Position(0),
            },
        };
        Some(if self.is_stable(rests_on) { Known::Vote(self.vote(txn)) } else { Known::Soon })
    }

    /// A commit with one participant is asked for (once more, or by a coordinator that lost its answer). `None`: it was never here. If its locks are held
    /// here it may be proposed; else it is refused (1213): no record is needed, as nobody else will ever hold them (rules 5, 6).
    /// [`Vote::Forgotten`]: it may have committed so long ago that this is not known any more; the client is told "outcome unknown".
    /// Who asks and wants no commit any more has its locks taken away first; then `None` is an abort.
    pub fn look_alone(&self, txn: TxnId) -> Option<Known> {
        let lost = || self.commits.may_be_lost(txn).then_some(Known::Vote(Vote::Forgotten));
        self.look(txn).or_else(lost)
    }

    /// Whether a prepare or commit of this transaction may be proposed: it is not prepared, fenced, decided or forgotten.
    pub fn may_prepare(&self, txn: TxnId) -> bool {
        !self.standing.contains_key(&txn) && self.commits.time(txn).is_none() && !self.tombstones.contains(txn)
    }

    /// Somebody tells the outcome. Telling it once more, before and after it was forgotten, does no harm.
    pub fn tell(&self, txn: TxnId, outcome: Outcome) -> Result<Told, Contradiction> {
        let wrong = |known| Err(Contradiction { txn, told: outcome, known });
        let propose = Ok(Told::Propose(Record::Decide { txn, outcome }));
        let part = match self.standing.get(&txn) {
            Some(Standing::Part(part)) => part,
            Some(Standing::Alone { .. }) => return wrong("to be committed in this group alone"),
            None if self.commits.time(txn).is_some() => return wrong("committed in this group alone"),
            None => {
                return match outcome {
                    // Nobody decides for a commit before it is prepared here: it is forgotten.
                    Outcome::Committed(_) => Ok(Told::Confirmed),
                    Outcome::Aborted if self.tombstones.contains(txn) => wrong("committed and forgotten"),
                    Outcome::Aborted => propose,
                };
            }
        };
        match (part.outcome, outcome) {
            (Some(known), _) if known != outcome => wrong("decided otherwise"),
            (_, Outcome::Committed(_)) if part.prepared.is_none() => wrong("refused here"),
            (_, Outcome::Committed(time)) if part.prepared.as_ref().is_some_and(|p| time < p.least) => {
                wrong("prepared for a later time")
            }
            (None, _) if part.fence.is_none() => propose,
            _ => match part.decided.or(part.fence) {
                Some(at) if self.is_stable(at) || off(Safeguard::ConfirmedStable) => Ok(Told::Confirmed),
                Some(_) => Ok(Told::Soon),
                None => propose,
            },
        }
    }

    /// What became of a transaction here, as far as is known: stable or not.
    pub fn outcome(&self, txn: TxnId) -> Option<Outcome> {
        match self.standing.get(&txn) {
            Some(Standing::Part(part)) => part.outcome,
            _ => self.commits.time(txn).map(Outcome::Committed),
        }
    }

    /// Whether an outcome is stable here, or forgotten after it was.
    pub fn is_confirmed(&self, txn: TxnId) -> bool {
        match self.standing.get(&txn) {
            Some(Standing::Part(part)) => part.decided.or(part.fence).is_some_and(|at| self.is_stable(at)),
            Some(Standing::Alone { .. }) => false,
            None => self.tombstones.contains(txn) || self.commits.time(txn).is_some(),
        }
    }

    /// Those that a [`Record::Forget`] may name: decided and stable here, and not named by another already. Who is told to forget proposes these.
    pub fn forgettable(&self, txns: &[TxnId]) -> Vec<TxnId> {
        let settled = |txn: &TxnId| match self.standing.get(txn) {
            Some(Standing::Part(part)) => self.is_settled(part),
            _ => false,
        };
        let mut txns: Vec<TxnId> = txns.iter().copied().filter(settled).collect();
        txns.sort_unstable();
        txns.dedup();
        txns
    }

    /// Stable prepares that have waited for an outcome since `before` or longer, in the order of the stream. Also those whose outcome is known here from an entry
    /// that was cut: it is to be told to all again.
    pub fn undecided(&self, before: Duration) -> Vec<Undecided> {
        self.open_parts(|_, part| part.since <= before).collect()
    }

    fn open_parts<'a>(&'a self, wanted: impl Fn(TxnId, &Part) -> bool + 'a) -> impl Iterator<Item = Undecided> + 'a {
        let upto = if off(Safeguard::OwnPrepareStable) { self.last } else { self.stable };
        self.undecided.range(..=upto).filter_map(move |(_, txn)| {
            let part = self.part(*txn).expect("an undecided prepare stands");
            wanted(*txn, part).then(|| close(*txn, part))
        })
    }

    /// What dead coordinators have left, once `is_live` is `false` for their process and the group has let go of all
    /// their locks (in that order: then no prepare of theirs is ever taken again, here or under a later primary, which
    /// has learnt of the death too).
    ///
    /// Fences and aborts may then be forgotten at once: whoever still asks makes another fence and hears the same. A commit must be pushed to all first, else
    /// a participant that is still in doubt would ask here, find nothing and abort.
    pub fn orphans(&self, is_live: impl Fn(ProcessId) -> bool) -> Orphans {
        let dead = |txn: TxnId| !is_live(txn.process());
        let mut orphans = Orphans { forget: Vec::new(), close: self.open_parts(|txn, _| dead(txn)).collect() };
        for (txn, part) in self.parts() {
            if dead(txn) && self.is_settled(part) {
                match part.outcome {
                    Some(Outcome::Committed(_)) if !off(Safeguard::OrphansPushed) => {
                        orphans.close.push(close(txn, part))
                    }
                    _ => orphans.forget.push(txn),
                }
            }
        }
        orphans.forget.sort_unstable();
        orphans.close.sort_unstable_by_key(|undecided| undecided.txn);
        orphans
    }

    /// Decided and stable since `before` or longer, and still not forgotten, sorted: the message that said so was lost, or a late question has made a fence. If their
    /// coordinator lives it is asked: those that it neither runs nor closes any more may be forgotten; it had heard every confirmation. The others are [`TxnTable::orphans`].
    pub fn lingering(&self, before: Duration) -> Vec<TxnId> {
        let lingers = |part: &Part| part.since <= before && self.is_settled(part);
        let mut txns: Vec<TxnId> = self.parts().filter(|(_, part)| lingers(part)).map(|(txn, _)| txn).collect();
        txns.sort_unstable();
        txns
    }

    /// All that stands pending beside the rows, as [`Effect::Chunk`] and [`Effect::Adopt`] in the order of the stream: to be adopted after a restart or a copy.
    pub fn pending(&self) -> Vec<Effect> {
        let mut pending: Vec<(Position, Effect)> = Vec::new();
        for (txn, standing) in &self.standing {
            let (at, least, writes) = match standing {
                Standing::Alone { at, time, writes } => (at, time, writes),
                Standing::Part(part) => match &part.prepared {
                    Some(prepared) => match &prepared.writes {
                        Some(writes) => (&prepared.at, &prepared.least, writes),
                        None => continue,
                    },
                    None => continue,
                },
            };
            let number = self.chunks.next_number(*txn);
            pending.push((*at, Effect::Adopt { txn: *txn, least: *least, number, writes: writes.clone() }));
        }
        pending.extend(self.chunks.iter().map(|(txn, chunk)| (chunk.at, chunk_effect(txn, chunk))));
        pending.sort_unstable_by_key(|(at, _)| *at);
        pending.into_iter().map(|(_, effect)| effect).collect()
    }

    /// Of [`TxnTable::pending`] what belongs to transactions that no entry names.
    pub fn open_chunks(&self) -> Vec<Effect> {
        let mut open: Vec<(Position, Effect)> = self
            .chunks
            .iter()
            .filter(|(txn, _)| !self.standing.contains_key(txn))
            .map(|(txn, chunk)| (chunk.at, chunk_effect(txn, chunk)))
            .collect();
        open.sort_unstable_by_key(|(at, _)| *at);
        open.into_iter().map(|(_, effect)| effect).collect()
    }

    /// What the naming entry of a transaction rests on, to be proposed right before it; `None`: it has no chunks.
    pub fn count(&self, txn: TxnId) -> Option<Record> {
        let counts = self.chunks.counts(txn);
        (!counts.is_empty()).then_some(Record::Count { txn, counts })
    }

    /// Whether the transaction has chunks that no entry names.
    pub fn has_open_chunks(&self, txn: TxnId) -> bool {
        !self.standing.contains_key(&txn) && !self.chunks.of(txn).is_empty()
    }

    /// The writes of a transaction's chunks, by number.
    pub fn chunks_of(&self, txn: TxnId) -> Vec<(u32, Bytes)> {
        self.chunks.of(txn).iter().map(|chunk| (chunk.number, chunk.writes.clone())).collect()
    }

    /// Bytes of chunks that stand.
    pub fn chunk_bytes(&self) -> usize {
        self.chunks.bytes()
    }

    /// The same, with those of chunks that would stand again after a cut: what the table keeps in memory.
    pub fn kept_chunk_bytes(&self) -> usize {
        self.chunks.kept_bytes()
    }

    /// The commit time of a transaction of this group alone whose entry is not known to be stable. A replica that
    /// does not know yet that it is may find that another entry writes over it: that proves that it is, since the
    /// primary had given the lock on.
    pub fn alone_time(&self, txn: TxnId) -> Option<Timestamp> {
        match self.standing.get(&txn)? {
            Standing::Alone { time, .. } => Some(*time),
            Standing::Part(_) => None,
        }
    }

    /// What is to be said of a transaction that has a record, or had one.
    pub(super) fn vote(&self, txn: TxnId) -> Vote {
        let Some(part) = self.part(txn) else {
            return match (self.standing.get(&txn), self.commits.time(txn)) {
                (Some(Standing::Alone { time, .. }), _) => Vote::Decided(Outcome::Committed(*time)),
                (_, Some(time)) => Vote::Decided(Outcome::Committed(time)),
                _ => Vote::Forgotten,
            };
        };
        match (part.outcome, &part.prepared) {
            (Some(outcome), _) => Vote::Decided(outcome),
            (None, Some(prepared)) => Vote::Prepared(prepared.least),
            (None, None) => Vote::Refused,
        }
    }

    fn part(&self, txn: TxnId) -> Option<&Part> {
        match self.standing.get(&txn) {
            Some(Standing::Part(part)) => Some(part),
            _ => None,
        }
    }

    fn parts(&self) -> impl Iterator<Item = (TxnId, &Part)> {
        self.standing.iter().filter_map(|(txn, standing)| match standing {
            Standing::Part(part) => Some((*txn, &**part)),
            Standing::Alone { .. } => None,
        })
    }

    /// An outcome is stable in the stream, and nothing has been said about forgetting it.
    fn is_settled(&self, part: &Part) -> bool {
        part.forgotten.is_none() && part.decided.or(part.fence).is_some_and(|at| self.is_stable(at))
    }
}

fn close(txn: TxnId, part: &Part) -> Undecided {
    let prepared = part.prepared.as_ref().expect("only what was prepared is closed");
    Undecided {
        txn,
        participants: prepared.participants.clone(),
        least: prepared.least,
        vote: part.outcome.map_or(Vote::Prepared(prepared.least), Vote::Decided),
    }
}
