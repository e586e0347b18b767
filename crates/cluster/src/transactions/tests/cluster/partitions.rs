//! Partitions: the toy stream, effects on rows, changes of primary, restarts, copies, and what a primary does on its own.

use super::end::assert_alike;
use super::*;

impl World {
    pub(super) fn forget(&mut self, p: usize, txns: &[TxnId]) {
        let partition = &self.partitions[p];
        let txns = partition.replicas[partition.primary].table.forgettable(txns);
        if !txns.is_empty() {
            self.propose(p, &Record::Forget { txns });
        }
    }

    pub(super) fn propose(&mut self, p: usize, record: &Record) {
        let partition = &mut self.partitions[p];
        let (view, primary) = (partition.view, partition.primary);
        partition.replicas[primary].log.push((view, record.encode()));
        self.show(p, primary);
        if let Record::Decide { txn, outcome } = record {
            self.facts.get_mut(txn).expect("begun").agree(*txn, *outcome);
            if let Some(closing) = self.partitions[p].closings.get_mut(txn) {
                closing.on_vote(id(p), Vote::Decided(*outcome));
            }
        }
        // The own log may be durable later than others'.
        if !self.faults || self.chance(50) {
            self.replicate(p, primary, 0);
        }
    }

    /// Shows the replica's last entry to its table.
    pub(super) fn show(&mut self, p: usize, r: usize) {
        let replica = &mut self.partitions[p].replicas[r];
        let record = Record::decode(&replica.log.last().expect("shown after it was written").1).expect("a record");
        let mut effects = Vec::new();
        replica.table.on_entry(self.now, Position(replica.log.len() as u64), &record, &mut effects);
        self.carry_out(p, r, effects);
    }

    pub(super) fn carry_out(&mut self, p: usize, r: usize, effects: Vec<Effect>) {
        for effect in effects {
            let partition = &mut self.partitions[p];
            let leads = partition.primary == r;
            let Replica { rows, chunks, .. } = &mut partition.replicas[r];
            match effect {
                Effect::Adopt { txn, number, writes, .. } => {
                    assert_eq!(writes, txn_writes(txn, p));
                    let last = chunks.get(&txn).and_then(|chunks| chunks.last());
                    assert_eq!(number, last.map_or(0, |last| last.number + 1), "{txn:?} is named behind its chunks");
                    assert_eq!(rows.insert(txn, Row::Pending), None, "{txn:?} stands twice");
                }
                Effect::Commit { txn, time, writes } => {
                    let beside = chunks.remove(&txn).unwrap_or_default().into_iter().map(|chunk| chunk.writes);
                    assert_eq!(writes, Writes::from_iter(beside.chain([txn_writes(txn, p)])));
                    let named = self.facts[&txn].chunks.get(&id(p)).map_or(&[][..], Vec::as_slice);
                    assert_eq!(&writes[..writes.len() - 1], named, "{txn:?} commits with other chunks");
                    assert_eq!(rows.insert(txn, Row::Committed(time)), Some(Row::Pending));
                    partition.locks.remove(&txn);
                    self.facts.get_mut(&txn).expect("begun").on_commit(txn, time);
                }
                Effect::Abort { txn } => {
                    let before = rows.remove(&txn);
                    chunks.remove(&txn);
                    assert!(!matches!(before, Some(Row::Committed(_))), "{txn:?} was committed");
                    if leads {
                        partition.locks.remove(&txn);
                    }
                }
                Effect::Answer { txn, vote } if leads => self.wake(p, txn, Waits::Vote, Answer::Voted(vote)),
                Effect::Confirmed { txn } if leads => self.wake(p, txn, Waits::Confirmation, Answer::Done),
                Effect::Answer { .. } | Effect::Confirmed { .. } => {}
                Effect::Chunk { txn, series, number, writes } => {
                    assert_eq!(rows.get(&txn), None, "a chunk of {txn:?}, which stands");
                    let chunks = chunks.entry(txn).or_default();
                    assert!(chunks.last().is_none_or(|last| last.number < number), "chunk {number} after {chunks:?}");
                    chunks.push(BesideRows { number, series, writes });
                }
                Effect::Back { txn, series, number } => {
                    let of_txn = chunks.get_mut(&txn).expect("it has chunks");
                    of_txn.retain(|chunk| chunk.series != series || chunk.number < number);
                    if of_txn.is_empty() {
                        chunks.remove(&txn);
                    }
                }
                Effect::Compare { .. } => panic!("nobody asks for it here"),
                Effect::Wrong { what } => panic!("{what}"),
            }
        }
    }

    pub(super) fn wake(&mut self, p: usize, txn: TxnId, waits: Waits, answer: Answer) {
        let waiting = std::mem::take(&mut self.partitions[p].waiting);
        let (woken, waiting) =
            waiting.into_iter().partition(|(waiter, for_what, _)| (*waiter, *for_what) == (txn, waits));
        self.partitions[p].waiting = waiting;
        let woken: Vec<(TxnId, Waits, Asker)> = woken;
        for (_, _, asker) in woken {
            self.answer(asker, p, txn, answer);
        }
    }

    /// A replica becomes primary of a new view.
    pub(super) fn lead(&mut self, p: usize, r: usize) {
        let partition = &mut self.partitions[p];
        partition.view += 1;
        (partition.primary, partition.serving) = (r, false);
        partition.acknowledged.fill(0);
        partition.locks.clear();
        partition.waiting.clear();
        partition.closings.clear();
        self.propose(p, &Record::Opening);
    }

    /// The replica takes entries of the primary's stream and acknowledges them.
    pub(super) fn replicate(&mut self, p: usize, r: usize, entries: usize) {
        let partition = &mut self.partitions[p];
        let leader = partition.primary;
        let log = |partition: &Partition| partition.replicas[leader].log.len();
        if leader != r {
            let [primary, replica] = partition.replicas.get_disjoint_mut([leader, r]).expect("two replicas");
            // Stable entries are the same everywhere.
            let known = replica.table.stable.0 as usize;
            let (own, other) = (replica.log[known..].iter(), primary.log[known..].iter());
            let same = known + own.zip(other).take_while(|(own, other)| own.0 == other.0).count();
            assert!(replica.log[..same] == primary.log[..same]);
            if same < replica.log.len() {
                self.count.cut += replica.log.len() - same;
                replica.log.truncate(same);
                replica.durable = replica.durable.min(same);
                let mut effects = Vec::new();
                replica.table.on_cut(Position(same as u64), &mut effects);
                self.carry_out(p, r, effects);
            }
            for at in (same..log(&self.partitions[p])).take(entries) {
                let entry = self.partitions[p].replicas[leader].log[at].clone();
                self.partitions[p].replicas[r].log.push(entry);
                self.show(p, r);
            }
        }
        let partition = &mut self.partitions[p];
        partition.replicas[r].durable = partition.replicas[r].log.len();
        partition.acknowledged[r] = partition.replicas[r].durable;
        let stable = partition.acknowledged.iter().copied().min().expect("a replica");
        if stable <= partition.stable {
            return;
        }
        let newly: Vec<(u64, Bytes)> = partition.replicas[leader].log[partition.stable..stable].to_vec();
        partition.stable = stable;
        partition.serving |= newly.last().is_some_and(|(view, _)| *view == partition.view);
        for (_, bytes) in newly {
            self.on_truth(p, &Record::decode(&bytes).expect("a record"));
        }
        self.tell_stable(p, self.partitions[p].primary);
    }

    /// A record is stable now: this is true for ever.
    pub(super) fn on_truth(&mut self, p: usize, record: &Record) {
        match record {
            Record::Prepare { txn, least: time, .. } | Record::Commit { txn, time, .. } => {
                let facts = self.facts.get_mut(txn).expect("begun");
                let before = facts.prepared.insert(id(p), *time);
                assert_eq!(before, None, "{txn:?} has prepared twice");
            }
            Record::Fence { txn } => {
                let facts = &self.facts[txn];
                assert!(!matches!(facts.outcome, Some(Outcome::Committed(_))), "{txn:?} is fenced: {facts:?}");
            }
            _ => {}
        }
    }

    pub(super) fn tell_stable(&mut self, p: usize, r: usize) {
        let partition = &mut self.partitions[p];
        let upto = partition.stable.min(partition.acknowledged[r]);
        let mut effects = Vec::new();
        partition.replicas[r].table.on_stable(Position(upto as u64), &mut effects);
        self.carry_out(p, r, effects);
    }

    /// A process' memory goes, and what of its log was not durable. The table comes back from a checkpoint's bytes, or from the whole log.
    pub(super) fn restart(&mut self, p: usize, r: usize) {
        let partition = &mut self.partitions[p];
        partition.waiting.clear();
        let replica = &mut partition.replicas[r];
        let before = replica.table.clone();
        if replica.durable == replica.log.len() && self.random.random() {
            replica.table = TxnTable::decode(&before.encode(), self.now).expect("a table");
            assert!(replica.table == before);
            replica.rows.retain(|_, row| *row != Row::Pending);
            replica.chunks.clear();
            self.adopt_pending(p, r);
        } else {
            let log = std::mem::take(&mut replica.log);
            let whole = replica.durable == log.len();
            (replica.table, replica.rows, replica.chunks) = Default::default();
            for entry in log.into_iter().take(replica.durable) {
                self.partitions[p].replicas[r].log.push(entry);
                self.show(p, r);
            }
            let mut effects = Vec::new();
            self.partitions[p].replicas[r].table.on_stable(before.stable, &mut effects);
            self.carry_out(p, r, effects);
            if whole {
                assert_alike(&self.partitions[p].replicas[r].table, &before);
            }
        }
        if self.partitions[p].primary == r {
            let next = self.random.random_range(0..self.partitions[p].replicas.len());
            self.lead(p, next);
        }
    }

    /// The replica's contents are replaced by the primary's.
    pub(super) fn copy(&mut self, p: usize, r: usize) {
        let partition = &mut self.partitions[p];
        if partition.primary == r {
            return;
        }
        let from = partition.replicas[partition.primary].clone();
        partition.replicas[r] = Replica {
            durable: from.log.len(),
            log: from.log,
            table: TxnTable::decode(&from.table.encode(), self.now).expect("a table"),
            rows: from.rows.into_iter().filter(|(_, row)| *row != Row::Pending).collect(),
            chunks: BTreeMap::new(),
        };
        self.adopt_pending(p, r);
        self.replicate(p, r, 0);
    }

    pub(super) fn adopt_pending(&mut self, p: usize, r: usize) {
        let pending = self.partitions[p].replicas[r].table.pending();
        self.carry_out(p, r, pending);
    }

    pub(super) fn learn_death(&mut self, p: usize) {
        for c in 0..self.coordinators.len() {
            let process = self.coordinators[c].process;
            if !self.coordinators[c].condemned || !self.partitions[p].knows_dead.insert(process) {
                continue;
            }
            let partition = &mut self.partitions[p];
            let table = &partition.replicas[partition.primary].table;
            // What is prepared keeps its locks.
            let open: Vec<TxnId> = partition
                .locks
                .extract_if(.., |txn| txn.process() == process && table.look(*txn).is_none())
                .filter(|txn| table.has_open_chunks(*txn))
                .collect();
            if partition.serving {
                open.into_iter().for_each(|txn| SERIES.for_each(|series| self.take_back(p, txn, series, 0)));
            }
            let partition = &mut self.partitions[p];
            for (_, closing) in partition.closings.iter_mut().filter(|(txn, _)| txn.process() == process) {
                closing.on_coordinator_dead();
            }
        }
    }

    /// What a primary does on its own: take-overs, orphans, what was never forgotten.
    pub(super) fn tick_partition(&mut self, p: usize) {
        if !self.partitions[p].serving {
            return;
        }
        let early = self.faults && self.chance(10);
        let before = if early { self.now } else { self.now.saturating_sub(Duration::from_millis(100)) };
        let partition = &mut self.partitions[p];
        let table = &partition.replicas[partition.primary].table;
        let orphans = table.orphans(|process| !partition.knows_dead.contains(&process));
        for undecided in table.undecided(before).iter().chain(&orphans.close) {
            let dead = partition.knows_dead.contains(&undecided.txn.process());
            partition.closings.entry(undecided.txn).or_insert_with(|| {
                self.count.taken_over += 1;
                Closing::take_over(undecided, id(p), dead, PACE)
            });
        }
        let mut forget = orphans.forget;
        let lingering = table.lingering(self.now.saturating_sub(Duration::from_millis(400)));
        for txn in lingering {
            let coordinator = &self.coordinators[txn.process().0 as usize - 1];
            if coordinator.alive && !coordinator.running.contains_key(&txn) {
                forget.push(txn);
            }
        }
        let mut sends = Vec::new();
        for (txn, closing) in &mut partition.closings {
            let steps = closing.on_tick(self.now);
            sends.extend(steps.into_iter().map(|(to, step)| (index(to), *txn, question(step))));
        }
        partition.closings.retain(|_, closing| !closing.is_done());
        let from = Asker::Replica(p, partition.primary);
        for (to, txn, question) in sends {
            self.ask(to, from, txn, question);
        }
        self.forget(p, &forget);
    }
}
