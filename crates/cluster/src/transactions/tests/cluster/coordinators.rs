//! Processes that run transactions, die, and are held for dead while they live.

use super::*;

impl World {
    pub(super) fn start_process(&mut self) {
        let process = ProcessId(self.coordinators.len() as u32 + 1);
        self.coordinators.push(Coordinator {
            process,
            alive: true,
            condemned: false,
            running: BTreeMap::new(),
            number: 0,
        });
    }

    pub(super) fn kill(&mut self, c: usize) {
        let coordinator = &mut self.coordinators[c];
        if coordinator.alive && !coordinator.condemned {
            self.start_process();
        }
        let coordinator = &mut self.coordinators[c];
        coordinator.condemned = true;
        if self.random.random() {
            coordinator.alive = false;
            coordinator.running.clear();
        }
    }

    /// It takes locks; the prepares follow in a later step.
    pub(super) fn begin(&mut self, c: usize) {
        if self.coordinators[c].condemned || self.coordinators[c].running.len() > 3 {
            return;
        }
        let alone = self.chance(20);
        let mut touched = Vec::new();
        for p in 0..self.partitions.len() {
            let partition = &self.partitions[p];
            let wanted = if alone { touched.is_empty() } else { touched.len() < 2 || self.random.random() };
            if wanted && partition.serving && !partition.knows_dead.contains(&self.coordinators[c].process) {
                touched.push((id(p), partition.view));
            }
        }
        if touched.is_empty() {
            return;
        }
        let coordinator = &mut self.coordinators[c];
        coordinator.number += 1;
        let txn = TxnId::of_process(coordinator.process, coordinator.number);
        for (partition, _) in &touched {
            self.partitions[index(*partition)].locks.insert(txn);
        }
        let participants = touched.iter().map(|(partition, _)| *partition).collect();
        self.facts.insert(txn, Facts { participants, ..Facts::default() });
        coordinator.running.insert(txn, Running { touched, part: Phase::Touched });
    }

    pub(super) fn tick_coordinator(&mut self, c: usize) {
        let now = self.now;
        let mut sends = Vec::new();
        let mut done = Vec::new();
        let condemned = self.coordinators[c].condemned;
        for (txn, running) in &mut self.coordinators[c].running {
            let participants: Vec<GroupId> = running.touched.iter().map(|(partition, _)| *partition).collect();
            match &mut running.part {
                // It writes more.
                Phase::Touched if self.faults && self.random.random_ratio(1, 2) => {}
                Phase::Touched if participants.len() == 1 => running.part = Phase::Alone { due: now },
                Phase::Touched => {
                    for (partition, view) in &running.touched {
                        let question = Question::Prepare { view: *view, participants: participants.clone() };
                        sends.push((*partition, *txn, question));
                    }
                    running.part = Phase::Several(Closing::coordinator(*txn, &participants, PACE, now));
                }
                Phase::Alone { due } if *due <= now => {
                    *due = now + PACE.longest;
                    let (partition, view) = running.touched[0];
                    sends.push((partition, *txn, Question::Commit { view }));
                }
                Phase::Alone { .. } => {}
                Phase::Several(closing) => {
                    let steps = closing.on_tick(now);
                    sends.extend(steps.into_iter().map(|(partition, step)| (partition, *txn, question(step))));
                    if let Some(outcome) = closing.outcome() {
                        tell(&mut self.facts, *txn, outcome);
                    }
                    if closing.is_done() {
                        // Who is held for dead is not waited for.
                        let told = closing.outcome().is_some() || condemned;
                        assert!(told, "the coordinator of {txn:?} never hears its outcome");
                        done.push(*txn);
                    }
                }
            }
        }
        for txn in done {
            self.coordinators[c].running.remove(&txn);
        }
        for (partition, txn, question) in sends {
            self.ask(index(partition), Asker::Coordinator(c), txn, question);
        }
    }

    pub(super) fn on_answer(&mut self, c: usize, from: usize, txn: TxnId, answer: Answer) {
        let Some(running) = self.coordinators[c].running.get_mut(&txn) else { return };
        match (&mut running.part, answer) {
            (Phase::Several(closing), answer) => {
                if let Some(outcome) = hear(closing, id(from), answer) {
                    tell(&mut self.facts, txn, outcome);
                }
            }
            (Phase::Alone { .. }, Answer::Voted(vote)) => {
                let outcome = match vote {
                    Vote::Decided(outcome) => outcome,
                    Vote::Refused => Outcome::Aborted,
                    _ => panic!("{txn:?} is alone and hears {vote:?}"),
                };
                tell(&mut self.facts, txn, outcome);
                self.coordinators[c].running.remove(&txn);
            }
            (Phase::Alone { due }, _) => *due = Duration::ZERO,
            (Phase::Touched, _) => panic!("an answer before the question"),
        }
    }
}

/// The client hears it.
fn tell(facts: &mut BTreeMap<TxnId, Facts>, txn: TxnId, outcome: Outcome) {
    let facts = facts.get_mut(&txn).expect("begun");
    assert!(facts.told.is_none_or(|told| told == outcome), "a client hears two outcomes");
    facts.told = Some(outcome);
    if let Outcome::Committed(time) = outcome {
        facts.on_commit(txn, time);
    }
    facts.agree(txn, outcome);
}
