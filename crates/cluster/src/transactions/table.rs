//! The transaction table: what the entries of one group's stream mean, entry by entry.
//!
//! # How it works
//! Every transaction that has left a record and is not forgotten *stands* in the table: alone in this group
//! ([`Standing::Alone`], until it is stable), or as one part of several ([`Part`]). Entries not stable yet are queued
//! with what they did, so that becoming stable works from the front of the queue and a cut from its back; both cost the
//! same for each entry however much stands in the table.
//!
//! What a cut takes back is what the entry did to the *table*. What a decision did to the *rows* stays: it was taken somewhere on stable records, and
//! will be in the stream again. Such a part has an outcome and no `decided` position: its primary, this one or another, finds it in
//! [`super::TxnTable::undecided`] and pushes the outcome. That is the only difference that there can be between two replicas with equal streams.
//!
//! # Invariants
//! - Equal streams with equal stable positions give equal tables, apart from such facts and from clocks.
//! - A transaction has one outcome. A commit is decided only where its prepare is in the stream, never before its least time.
//! - `writes` and chunks are kept exactly while they stand pending beside the rows.
//! - Nothing stable is cut.
//!
//! An entry that breaks these was written by a primary whose code is wrong: an assertion.

use super::chunks::{Chunk, Chunks};
use super::memory::{Commits, Tombstones};
use super::record::{Outcome, Record, is_sorted};
use super::safeguards::{Safeguard, off};
use bytes::Bytes;
use rauk_types::{GroupId, Position, Timestamp, TxnId, View};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What a transaction has written in a group: its chunks, and what its naming entry has.
pub type Writes = SmallVec<[Bytes; 1]>;

/// What happens to the group's rows, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The transaction's writes stand beside the rows from now on: it may commit at `least` or later. On the primary that wrote the entry they do already.
    /// `number`: behind those of its chunks, which came before.
    Adopt { txn: TxnId, least: Timestamp, number: u32, writes: Bytes },
    /// The writes are the newest committed version at `time`.
    Commit { txn: TxnId, time: Timestamp, writes: Writes },
    /// Pending versions and locks go. Also when only its locks are here, or nothing.
    Abort { txn: TxnId },
    /// What was asked about can be answered now (the record that the answer rests on is stable). Comes whether or not somebody has asked.
    Answer { txn: TxnId, vote: Vote },
    /// An outcome is on all in-sync replicas: the participant has confirmed it (rule 8).
    Confirmed { txn: TxnId },
    /// A chunk stands beside the rows. Nobody sees it before the transaction is adopted.
    Chunk { txn: TxnId, series: u16, number: u32, writes: Bytes },
    /// The chunks of this series with this number and above do not stand any more.
    Back { txn: TxnId, series: u16, number: u32 },
    /// The rows are to be compared with those of other replicas, as they are when all that is committed or is the entry
    /// of a single group up to here has committed, and nothing else (rule 78).
    Compare { at: Position },
    /// The stream and what is here do not fit together: this replica must not go on (rule 64).
    Wrong { what: String },
}

/// What one participant says about a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vote {
    /// Its prepare is stable.
    Prepared(Timestamp),
    /// It will never prepare: a fence, or an abort, is stable.
    Refused,
    /// It knows the outcome.
    Decided(Outcome),
    /// It has forgotten the transaction. Of several groups: every participant had confirmed the outcome. Of one
    /// ([`TxnTable::look_alone`]): it is too long ago to tell.
    Forgotten,
}

/// A transaction with one participant, or one part of several.
#[derive(Clone, Debug)]
pub(super) enum Standing {
    /// Not stable yet; when it is, it moves to [`Commits`].
    Alone {
        at: Position,
        time: Timestamp,
        writes: Bytes,
    },
    Part(Box<Part>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub prepared: Option<Prepared>,
    pub fence: Option<Position>,
    pub outcome: Option<Outcome>,
    /// The first entry in the stream that says the outcome. `None` with an outcome: that entry was cut.
    pub decided: Option<Position>,
    /// Forgotten by this entry, which is not stable.
    pub forgotten: Option<Position>,
    /// When this process first saw it; of decided ones, when it saw the outcome.
    #[serde(skip)]
    pub since: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prepared {
    pub at: Position,
    pub participants: Vec<GroupId>,
    pub least: Timestamp,
    /// `None`: it is decided.
    pub writes: Option<Bytes>,
}

/// What an entry that is not stable has done.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Commit(TxnId),
    Prepare(TxnId),
    Decide(TxnId),
    Fence(TxnId),
    Forget(Vec<TxnId>),
}

/// The transactions of one group, as its stream tells them: the same on every replica that has the same entries.
#[derive(Clone, Debug, Default)]
pub struct TxnTable {
    /// Of the last entry.
    pub(super) last: Position,
    pub(super) stable: Position,
    pub(super) standing: FxHashMap<TxnId, Standing>,
    /// In the order of the stream.
    pub(super) unstable: VecDeque<(Position, Change)>,
    /// Prepares without an outcome in the stream, in its order.
    pub(super) undecided: BTreeMap<Position, TxnId>,
    pub(super) commits: Commits,
    pub(super) tombstones: Tombstones,
    /// Of all `writes`.
    pub(super) writes_bytes: usize,
    /// Cuts of the stream, in its order: the newest that is stable, and those behind it.
    pub(super) cuts: VecDeque<CutAt>,
    pub(super) chunks: Chunks,
}

/// All that the transaction has written here, which is decided.
fn whole(chunks: &mut Chunks, txn: TxnId, last: Bytes) -> Writes {
    let mut writes: Writes = chunks.take(txn).into_iter().map(|chunk| chunk.writes).collect();
    writes.push(last);
    writes
}

pub(super) fn chunk_effect(txn: TxnId, chunk: &Chunk) -> Effect {
    let Chunk { series, number, writes, .. } = chunk;
    Effect::Chunk { txn, series: *series, number: *number, writes: writes.clone() }
}

/// A cut's place in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CutAt {
    pub at: Position,
    pub time: Timestamp,
    pub view: View,
}

impl TxnTable {
    /// An entry is in the stream (proposed here, or received). `now` only starts the clock of [`TxnTable::undecided`].
    ///
    /// # Panics
    /// A position that is not behind the last one, or an entry that contradicts the stream before it.
    pub fn on_entry(&mut self, now: Duration, position: Position, record: &Record, effects: &mut Vec<Effect>) {
        assert!(position > self.last, "entry {} after entry {}", position.0, self.last.0);
        self.last = position;
        self.forgotten_before(record, effects);
        let change = match record {
            Record::Opening => return self.void_open_chunks(position, effects),
            Record::Cut { time, view } => {
                self.cuts.push_back(CutAt { at: position, time: *time, view: *view });
                self.trim_cuts();
                return;
            }
            Record::Chunk { txn, series, number, writes } => {
                return self.on_chunk(position, *txn, (*series, *number), writes, effects);
            }
            Record::Back { txn, series, left } => {
                if let Some(number) = self.chunks.on_back(position, *txn, *series, *left) {
                    effects.push(Effect::Back { txn: *txn, series: *series, number });
                }
                return self.chunks.on_stable(self.stable);
            }
            Record::Count { txn, counts } => {
                let here = self.chunks.counts(*txn);
                if here != *counts {
                    let what = format!("transaction {} has chunks {counts:?}, and here {here:?}", txn.0);
                    effects.push(Effect::Wrong { what });
                }
                return;
            }
            Record::Compare => {
                if self.has_all_decisions() {
                    effects.push(Effect::Compare { at: position });
                }
                return;
            }
            Record::Commit { txn, time, writes } => {
                assert!(self.may_prepare(*txn), "transaction {} commits twice", txn.0);
                self.writes_bytes += writes.len();
                self.standing.insert(*txn, Standing::Alone { at: position, time: *time, writes: writes.clone() });
                let number = self.chunks.next_number(*txn);
                effects.push(Effect::Adopt { txn: *txn, least: *time, number, writes: writes.clone() });
                Change::Commit(*txn)
            }
            Record::Prepare { txn, participants, least, writes } => {
                assert!(self.may_prepare(*txn), "transaction {} prepares twice, or after it was refused", txn.0);
                assert!(is_sorted(participants), "participants of transaction {} are not sorted", txn.0);
                self.writes_bytes += writes.len();
                let prepared = Prepared {
                    at: position,
                    participants: participants.clone(),
                    least: *least,
                    writes: Some(writes.clone()),
                };
                let part = Part { prepared: Some(prepared), since: now, ..Part::default() };
                self.standing.insert(*txn, Standing::Part(Box::new(part)));
                self.undecided.insert(position, *txn);
                let number = self.chunks.next_number(*txn);
                effects.push(Effect::Adopt { txn: *txn, least: *least, number, writes: writes.clone() });
                Change::Prepare(*txn)
            }
            Record::Decide { txn, outcome } => {
                self.decided(now, position, *txn, *outcome, effects);
                Change::Decide(*txn)
            }
            Record::Fence { txn } => {
                assert!(!self.standing.contains_key(txn), "transaction {} is fenced and has a record", txn.0);
                let part = Part { fence: Some(position), since: now, ..Part::default() };
                self.standing.insert(*txn, Standing::Part(Box::new(part)));
                self.chunks.on_void(position, |with| with == *txn);
                effects.push(Effect::Abort { txn: *txn });
                Change::Fence(*txn)
            }
            Record::Forget { txns } => Change::Forget(self.forget(position, txns)),
        };
        self.unstable.push_back((position, change));
        if position <= self.stable {
            // What a copy did not have yet is stable elsewhere.
            self.settle(effects);
        }
    }

    /// A primary begins anew with a transaction that it has forgotten only when that is stable: a replica that has not heard so yet hears it by this. Else the new
    /// record would meet the old one here and not there.
    fn forgotten_before(&mut self, record: &Record, effects: &mut Vec<Effect>) {
        let begins = match record {
            Record::Commit { txn, .. } | Record::Prepare { txn, .. } | Record::Fence { txn } => txn,
            Record::Decide { txn, outcome: Outcome::Aborted } => txn,
            _ => return,
        };
        if let Some(Standing::Part(part)) = self.standing.get(begins)
            && let Some(forgotten) = part.forgotten
        {
            self.on_stable(forgotten, effects);
        }
    }

    fn decided(&mut self, now: Duration, position: Position, txn: TxnId, outcome: Outcome, effects: &mut Vec<Effect>) {
        let part = match self.standing.get_mut(&txn) {
            Some(Standing::Part(part)) => part,
            Some(Standing::Alone { .. }) => {
                panic!("transaction {} has one participant and is decided by others", txn.0)
            }
            None if outcome == Outcome::Aborted => {
                assert!(!self.tombstones.contains(txn), "transaction {} was committed and is aborted", txn.0);
                let part = Part { outcome: Some(outcome), decided: Some(position), since: now, ..Part::default() };
                self.standing.insert(txn, Standing::Part(Box::new(part)));
                self.chunks.on_void(position, |with| with == txn);
                effects.push(Effect::Abort { txn });
                return;
            }
            None => {
                // Said once more to who has forgotten it: confirmed once more.
                assert!(self.tombstones.contains(txn), "transaction {} commits here without a prepare", txn.0);
                return;
            }
        };
        assert!(
            part.outcome.is_none_or(|known| known == outcome),
            "transaction {} is {:?} and {outcome:?}",
            txn.0,
            part.outcome
        );
        let first_in_stream = part.decided.is_none();
        part.decided.get_or_insert(position);
        match (&mut part.prepared, outcome) {
            (None, Outcome::Committed(_)) => panic!("transaction {} was refused here and commits", txn.0),
            (None, Outcome::Aborted) => {}
            (Some(prepared), _) => {
                if first_in_stream {
                    self.undecided.remove(&prepared.at);
                }
                if let Outcome::Committed(time) = outcome {
                    assert!(
                        time >= prepared.least || off(Safeguard::LargestTime),
                        "transaction {} commits before its least time",
                        txn.0
                    );
                }
                if let Some(writes) = prepared.writes.take() {
                    self.writes_bytes -= writes.len();
                    let writes = whole(&mut self.chunks, txn, writes);
                    effects.push(match outcome {
                        Outcome::Committed(time) => Effect::Commit { txn, time, writes },
                        Outcome::Aborted => Effect::Abort { txn },
                    });
                }
            }
        }
        if part.outcome.is_none() {
            part.outcome = Some(outcome);
            part.since = now;
        }
    }

    /// Those that stood here.
    fn forget(&mut self, position: Position, txns: &[TxnId]) -> Vec<TxnId> {
        let mut forgotten = Vec::new();
        for txn in txns {
            let Some(Standing::Part(part)) = self.standing.get_mut(txn) else { continue };
            assert!(part.decided.is_some() || part.fence.is_some(), "transaction {} is forgotten undecided", txn.0);
            if part.forgotten.is_none() {
                part.forgotten = Some(position);
                forgotten.push(*txn);
            }
        }
        forgotten
    }

    /// Everything up to here is on all in-sync replicas. May be further than the last entry here, while a copy catches up.
    pub fn on_stable(&mut self, upto: Position, effects: &mut Vec<Effect>) {
        self.stable = self.stable.max(upto);
        self.trim_cuts();
        self.settle(effects);
    }

    fn trim_cuts(&mut self) {
        while self.cuts.get(1).is_some_and(|second| second.at <= self.stable) {
            self.cuts.pop_front();
        }
    }

    fn settle(&mut self, effects: &mut Vec<Effect>) {
        self.chunks.on_stable(self.stable);
        while self.unstable.front().is_some_and(|(position, _)| *position <= self.stable) {
            let (_, change) = self.unstable.pop_front().expect("just seen");
            match change {
                Change::Commit(txn) => {
                    let Some(Standing::Alone { time, writes, .. }) = self.standing.remove(&txn) else {
                        unreachable!("a commit of one group stands until it is stable");
                    };
                    self.writes_bytes -= writes.len();
                    if !off(Safeguard::CommitRemembered) {
                        self.commits.add(txn, time);
                    }
                    let writes = whole(&mut self.chunks, txn, writes);
                    effects.push(Effect::Commit { txn, time, writes });
                    effects.push(Effect::Answer { txn, vote: Vote::Decided(Outcome::Committed(time)) });
                }
                Change::Prepare(txn) => effects.push(Effect::Answer { txn, vote: self.vote(txn) }),
                Change::Fence(txn) => {
                    effects.push(Effect::Answer { txn, vote: self.vote(txn) });
                    // A fence is the abort's record too.
                    effects.push(Effect::Confirmed { txn });
                }
                Change::Decide(txn) => effects.push(Effect::Confirmed { txn }),
                Change::Forget(txns) => {
                    for txn in txns {
                        let Some(Standing::Part(part)) = self.standing.remove(&txn) else {
                            unreachable!("what is to be forgotten stands until that is stable");
                        };
                        if matches!(part.outcome, Some(Outcome::Committed(_))) && !off(Safeguard::Tombstone) {
                            self.tombstones.add(txn);
                        }
                    }
                }
            }
        }
    }

    /// Entries behind `after` are void: what they prepared is aborted, what they fenced may be asked again. What a void entry decided was a fact, and stays done.
    /// Answers that were still to come are void too: whoever asked asks again.
    ///
    /// # Panics
    /// `after` lies before what is stable, or a committed prepare would be cut.
    pub fn on_cut(&mut self, after: Position, effects: &mut Vec<Effect>) {
        if after >= self.last {
            return;
        }
        assert!(after >= self.stable, "a cut after {}, stable up to {}", after.0, self.stable.0);
        self.last = after;
        while self.cuts.back().is_some_and(|cut| cut.at > after) {
            self.cuts.pop_back();
        }
        let mut reopened = self.chunks.on_cut(after);
        while self.unstable.back().is_some_and(|(position, _)| *position > after) {
            let (position, change) = self.unstable.pop_back().expect("just seen");
            match change {
                Change::Commit(txn) => {
                    let Some(Standing::Alone { writes, .. }) = self.standing.remove(&txn) else {
                        unreachable!("a commit of one group stands until it is stable");
                    };
                    self.writes_bytes -= writes.len();
                    reopened.insert(txn);
                    effects.push(Effect::Abort { txn });
                }
                Change::Prepare(txn) => {
                    self.undecided.remove(&position);
                    let Some(Standing::Part(part)) = self.standing.remove(&txn) else {
                        unreachable!("a prepare stands until its outcome is forgotten");
                    };
                    match part.outcome {
                        Some(Outcome::Committed(_)) => panic!("the prepare of committed transaction {} is cut", txn.0),
                        Some(Outcome::Aborted) => {}
                        None => {
                            let writes = part.prepared.and_then(|p| p.writes).expect("undecided: they are pending");
                            self.writes_bytes -= writes.len();
                            reopened.insert(txn);
                            effects.push(Effect::Abort { txn });
                        }
                    }
                }
                Change::Decide(txn) => self.decision_is_cut(txn, position),
                Change::Fence(txn) => {
                    self.standing.remove(&txn);
                }
                Change::Forget(txns) => {
                    for txn in txns {
                        let Some(Standing::Part(part)) = self.standing.get_mut(&txn) else {
                            unreachable!("what is to be forgotten stands until that is stable");
                        };
                        part.forgotten = None;
                    }
                }
            }
        }
        reopened.retain(|txn| !self.standing.contains_key(txn));
        for txn in reopened {
            // What stands of it is what the remaining entries say.
            if !effects.contains(&Effect::Abort { txn }) {
                effects.push(Effect::Abort { txn });
            }
            effects.extend(self.chunks.of(txn).iter().map(|chunk| chunk_effect(txn, chunk)));
        }
    }

    /// A chunk's entry.
    fn on_chunk(
        &mut self,
        position: Position,
        txn: TxnId,
        place: (u16, u32),
        writes: &Bytes,
        effects: &mut Vec<Effect>,
    ) {
        let numbered = match self.may_prepare(txn) {
            true => self.chunks.on_chunk(position, txn, place, writes),
            false => Err(format!("a chunk of transaction {}, which has ended or is prepared", txn.0)),
        };
        effects.push(match numbered {
            Ok(number) => Effect::Chunk { txn, series: place.0, number, writes: writes.clone() },
            Err(what) => Effect::Wrong { what },
        });
        self.chunks.on_stable(self.stable);
    }

    /// A view opens: chunks that no entry names are void (rule 66).
    fn void_open_chunks(&mut self, position: Position, effects: &mut Vec<Effect>) {
        let standing = &self.standing;
        let is_open = |txn| !standing.contains_key(&txn);
        effects.extend(self.chunks.on_void(position, is_open).into_iter().map(|txn| Effect::Abort { txn }));
        self.chunks.on_stable(self.stable);
    }

    fn decision_is_cut(&mut self, txn: TxnId, position: Position) {
        let Some(Standing::Part(part)) = self.standing.get_mut(&txn) else { return };
        if part.decided != Some(position) {
            return;
        }
        part.decided = None;
        match (&part.prepared, part.fence) {
            (Some(prepared), _) => {
                self.undecided.insert(prepared.at, txn);
            }
            (None, Some(_)) => part.outcome = None,
            (None, None) => {
                self.standing.remove(&txn);
            }
        }
    }

    /// The table of a group that has gone back to a cut (rule 29). Everything up to the cut's entry is decided, and
    /// every process that could ask is over, so nothing is remembered.
    pub fn at_cut(position: Position, time: Timestamp, view: View) -> TxnTable {
        let cut = (position > Position(0)).then_some(CutAt { at: position, time, view });
        TxnTable { last: position, stable: position, cuts: cut.into_iter().collect(), ..TxnTable::default() }
    }

    /// Whether the stream has been cut at or behind this cut, in its view or a later one: then it has everything that the cut has, for a cut that was complete stays in the stream.
    pub fn has_cut(&self, time: Timestamp, view: View) -> bool {
        time == Timestamp::ZERO || self.cuts.iter().any(|cut| cut.time >= time && cut.view >= view)
    }

    /// Whether no commit was decided here whose entry was cut: its rows have committed here and nowhere else, for all
    /// that the stream says.
    fn has_all_decisions(&self) -> bool {
        let is_known = |txn| match self.standing.get(txn) {
            Some(Standing::Part(part)) => matches!(part.outcome, Some(Outcome::Committed(_))),
            _ => false,
        };
        !self.undecided.values().any(is_known)
    }

    /// Whether something that may commit at or before `time` is not decided in the stream.
    pub fn is_open_before(&self, time: Timestamp) -> bool {
        self.undecided.values().any(|txn| match self.standing.get(txn) {
            Some(Standing::Part(part)) => part.prepared.as_ref().is_some_and(|prepared| prepared.least <= time),
            _ => false,
        })
    }

    pub(super) fn is_stable(&self, position: Position) -> bool {
        position <= self.stable
    }

    /// Bytes in memory: of writes (which share the memory of the stream's entries as long as these are kept), of what stands, and of what is remembered.
    pub fn bytes(&self) -> usize {
        let each = size_of::<(TxnId, Standing)>() * 4 / 3 + size_of::<Part>() + 16;
        self.writes_bytes
            + self.chunks.kept_bytes()
            + self.standing.len() * each
            + self.unstable.len() * size_of::<(Position, Change)>()
            + self.undecided.len() * 24
            + self.commits.bytes()
            + self.tombstones.bytes()
    }

    /// Transactions that stand here: not forgotten, and, of one group, not stable.
    pub fn len(&self) -> usize {
        self.standing.len()
    }

    pub fn is_empty(&self) -> bool {
        self.standing.is_empty()
    }
}
