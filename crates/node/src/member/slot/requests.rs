//! What coordinators ask of a group that is led here: to commit alone (rule 32), to prepare, to say what became of a
//! transaction, to take an outcome, to forget.
//!
//! Each request is an entry of the stream, or is answered from what the transaction table knows already; who asks gets a receiver that resolves when the answer is stable, and is dropped when this process does not
//! lead any more: then the next primary is asked.

use super::super::group_rows::Parts;
use super::super::rows::RowStep;
use super::{Context, Slot, Standing, State};
use bytes::Bytes;
use futures::channel::oneshot;
use rauk_cluster::transactions::{Known, Told};
use rauk_cluster::{Outcome, Record, Vote};
use rauk_kernel::{TxnRef, TxnState};
use rauk_types::{GroupId, Timestamp, TxnId};

/// What a transaction has in a group: its writes, as the payload of an entry, and the partitions where it has been,
/// which are all that have writes.
pub struct Collected {
    /// Of what is in chunks nothing.
    pub writes: Bytes,
    pub parts: Parts,
    pub has_chunks: bool,
}

impl Collected {
    pub fn is_nothing(&self) -> bool {
        self.writes.is_empty() && !self.has_chunks
    }
}

/// The process does not lead the group (any more), or may not do this to the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl Slot {
    /// Commits a transaction that has written in this group only. Resolves with its time, or `None` when it was cut (it
    /// is rolled back then). Dropped when this process does not lead any more, and the outcome is decided elsewhere.
    /// `Err`: refused, nothing of it is left.
    pub fn commit_alone(
        &self,
        s: &mut State,
        cx: &mut Context<'_>,
        txn: &TxnRef,
        seen: Timestamp,
        collected: Collected,
    ) -> Result<oneshot::Receiver<Option<Timestamp>>, Refused> {
        let (sender, receiver) = oneshot::channel();
        s.commits.insert(txn.id, sender);
        self.write_commit(s, cx, txn, seen, collected).inspect_err(|Refused| drop(s.commits.remove(&txn.id)))?;
        Ok(receiver)
    }

    /// The same for the transaction of another process; resolves with the vote. Dropped when this process does not lead any more: who asked asks the next primary.
    pub fn commit_for(
        &self,
        s: &mut State,
        cx: &mut Context<'_>,
        txn: &TxnRef,
        seen: Timestamp,
        collected: Collected,
    ) -> Result<oneshot::Receiver<Vote>, Refused> {
        let receiver = self.await_vote(s, txn.id);
        self.write_commit(s, cx, txn, seen, collected).inspect_err(|Refused| drop(s.votes.remove(&txn.id)))?;
        Ok(receiver)
    }

    /// Resolves when the entry that stands here is stable.
    pub fn await_vote(&self, s: &mut State, txn: TxnId) -> oneshot::Receiver<Vote> {
        let (sender, receiver) = oneshot::channel();
        s.votes.entry(txn).or_default().push(sender);
        receiver
    }

    fn write_commit(
        &self,
        s: &mut State,
        cx: &mut Context<'_>,
        txn: &TxnRef,
        seen: Timestamp,
        Collected { writes, parts, .. }: Collected,
    ) -> Result<(), Refused> {
        if !s.table.may_prepare(txn.id) {
            self.bring_to(s, cx, &parts, || RowStep::Abort { txn: txn.id });
            return Err(Refused);
        }
        txn.status.set(TxnState::Committing);
        let time = self.least_time(cx, seen);
        txn.status.set(TxnState::Prepared(time));
        s.refs.insert(txn.id, Standing { txn: txn.clone(), parts: parts.clone(), is_open: false, ran_here: true });
        self.bring_to(s, cx, &parts, || RowStep::Stand { txn: txn.clone(), time: Some(time) });
        if !self.name_chunks(s, cx, txn.id) || !self.propose(s, cx, &Record::Commit { txn: txn.id, time, writes }) {
            s.refs.remove(&txn.id);
            txn.status.set(TxnState::Aborted);
            self.bring_to(s, cx, &parts, || RowStep::Abort { txn: txn.id });
            return Err(Refused);
        }
        Ok(())
    }

    /// Prepares this group's part; resolves with the vote.
    #[allow(clippy::too_many_arguments)] // the parts of one record
    pub fn prepare(
        &self,
        s: &mut State,
        cx: &mut Context<'_>,
        txn: &TxnRef,
        participants: Vec<GroupId>,
        seen: Timestamp,
        Collected { writes, parts, .. }: Collected,
    ) -> Result<oneshot::Receiver<Vote>, Refused> {
        let (sender, receiver) = oneshot::channel();
        // It may have come before: then it is answered from what is known, and never taken twice.
        match s.table.look(txn.id) {
            Some(Known::Vote(vote)) => {
                let _ = sender.send(vote);
                return Ok(receiver);
            }
            Some(_) => {
                s.votes.entry(txn.id).or_default().push(sender);
                return Ok(receiver);
            }
            None => {}
        }
        let before = txn.status.get();
        txn.status.set(TxnState::Committing);
        let least = self.least_time(cx, seen);
        // Of several groups of this node the least is what readers may pass by.
        let least_here = match before {
            TxnState::Prepared(other) => other.min(least),
            _ => least,
        };
        txn.status.set(TxnState::Prepared(least_here));
        s.refs.insert(txn.id, Standing { txn: txn.clone(), parts: parts.clone(), is_open: false, ran_here: true });
        self.bring_to(s, cx, &parts, || RowStep::Stand { txn: txn.clone(), time: None });
        s.votes.entry(txn.id).or_default().push(sender);
        let prepare = Record::Prepare { txn: txn.id, participants, least, writes };
        if !self.name_chunks(s, cx, txn.id) || !self.propose(s, cx, &prepare) {
            s.votes.remove(&txn.id);
            s.refs.remove(&txn.id);
            self.bring_to(s, cx, &parts, || RowStep::Abort { txn: txn.id });
            return Err(Refused);
        }
        if !cx.safeguards.prepare_everywhere {
            for asker in s.votes.remove(&txn.id).into_iter().flatten() {
                let _ = asker.send(Vote::Prepared(least));
            }
        }
        Ok(receiver)
    }

    /// Right before a naming entry: counts the chunks that stand (rule 64).
    fn name_chunks(&self, s: &mut State, cx: &mut Context<'_>, txn: TxnId) -> bool {
        let count = s.table.count(txn);
        count.is_none_or(|count| self.propose(s, cx, &count))
    }

    /// Under the guard of a partition, which is the series: what a transaction has written there goes into the stream
    /// (rule 63). `false`: this process does not lead, or the transaction is about to end.
    pub fn send_chunk(
        &self,
        s: &mut State,
        cx: &mut Context<'_>,
        txn: TxnId,
        (series, number): (u16, u32),
        writes: Bytes,
    ) -> bool {
        self.serving().is_some()
            && s.table.may_prepare(txn)
            && self.propose(s, cx, &Record::Chunk { txn, series, number, writes })
    }

    /// The same: chunks of the transaction were undone there, before anybody else has its locks (rule 65).
    pub fn take_back(&self, s: &mut State, cx: &mut Context<'_>, txn: TxnId, series: u16, left: u32) {
        if cx.safeguards.taken_back && self.serving().is_some() && s.table.has_open_chunks(txn) {
            self.propose(s, cx, &Record::Back { txn, series, left });
        }
    }

    /// What became of a transaction here?
    pub fn ask(
        &self,
        s: &mut State,
        cx: &mut Context<'_>,
        txn: TxnId,
        fenced: bool,
    ) -> Result<oneshot::Receiver<Vote>, Refused> {
        let (sender, receiver) = oneshot::channel();
        match s.table.ask(txn) {
            Known::Vote(vote) => {
                let _ = sender.send(vote);
            }
            Known::Soon => return Ok(self.await_vote(s, txn)),
            Known::Fence(_) if !fenced => {
                let _ = sender.send(Vote::Refused);
            }
            Known::Fence(record) => {
                // What it has here without a prepare can never be prepared any more: the entry takes it away.
                s.votes.entry(txn).or_default().push(sender);
                if !self.propose(s, cx, &record) {
                    s.votes.remove(&txn);
                    return Err(Refused);
                }
            }
        }
        Ok(receiver)
    }

    /// The transaction is decided; resolves when that is on all in-sync replicas.
    pub fn decide(
        &self,
        s: &mut State,
        cx: &mut Context<'_>,
        txn: TxnId,
        outcome: Outcome,
    ) -> Result<oneshot::Receiver<()>, Refused> {
        let (sender, receiver) = oneshot::channel();
        match s.table.tell(txn, outcome) {
            Ok(Told::Confirmed) => {
                let _ = sender.send(());
            }
            Ok(Told::Soon) => s.confirmations.entry(txn).or_default().push(sender),
            Ok(Told::Propose(record)) => {
                s.confirmations.entry(txn).or_default().push(sender);
                if !self.propose(s, cx, &record) {
                    s.confirmations.remove(&txn);
                    return Err(Refused);
                }
            }
            Err(contradiction) => {
                // All replicas have the same table: a copy would say the same, so this is not for the group alone.
                self.fail(s, cx, &contradiction.to_string());
                return Err(Refused);
            }
        }
        Ok(receiver)
    }

    /// Nobody will ask any more.
    pub fn forget(&self, s: &mut State, cx: &mut Context<'_>, txns: Vec<TxnId>) {
        let txns = s.table.forgettable(&txns);
        if !txns.is_empty() {
            self.propose(s, cx, &Record::Forget { txns });
        }
    }

    /// The status word says *committing*: a reader that this does not see sees that.
    fn least_time(&self, cx: &Context<'_>, seen: Timestamp) -> Timestamp {
        match cx.safeguards.max_read {
            true => self.times.least_time(seen),
            false => seen.max(Timestamp(1)),
        }
    }
}
