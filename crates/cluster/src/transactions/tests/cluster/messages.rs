//! Questions and answers under way, and what a primary does with a question: as the node's glue must.

use super::*;

impl World {
    pub(super) fn ask(&mut self, to: usize, from: Asker, txn: TxnId, question: Question) {
        let mut replica = self.partitions[to].primary;
        if self.faults && self.chance(5) {
            replica = self.random.random_range(0..self.partitions[to].replicas.len());
        }
        self.messages.push(Message::Question { to: (to, replica), from, txn, question });
    }

    pub(super) fn deliver(&mut self) {
        if self.messages.is_empty() {
            return;
        }
        let at = self.random.random_range(0..self.messages.len());
        if self.faults && self.chance(8) {
            self.messages.swap_remove(at);
            return;
        }
        let doubled = self.faults && self.chance(10);
        let message = if doubled { self.messages[at].clone() } else { self.messages.swap_remove(at) };
        match message {
            Message::Question { to: (p, r), from, txn, question } => self.on_question(p, r, from, txn, question),
            Message::Answer { to: Asker::Coordinator(c), from, txn, answer } => {
                if self.coordinators[c].alive {
                    self.on_answer(c, from, txn, answer);
                }
            }
            Message::Answer { to: Asker::Replica(p, r), from, txn, answer } => {
                let partition = &mut self.partitions[p];
                if partition.serving
                    && partition.primary == r
                    && let Some(closing) = partition.closings.get_mut(&txn)
                {
                    hear(closing, id(from), answer);
                }
            }
        }
    }

    pub(super) fn on_question(&mut self, p: usize, r: usize, from: Asker, txn: TxnId, question: Question) {
        let partition = &self.partitions[p];
        if let Asker::Coordinator(c) = from
            && partition.knows_dead.contains(&self.coordinators[c].process)
        {
            return;
        }
        if !partition.serving || partition.primary != r {
            return self.answer(from, p, txn, Answer::NotHere);
        }
        let table = &partition.replicas[r].table;
        let holds = |view: u64| view == partition.view && partition.locks.contains(&txn);
        self.clock += self.random.random_range(0..3);
        let time = Timestamp(self.clock + self.random.random_range(0..4));
        match question {
            Question::Prepare { view, participants } => match table.look(txn) {
                Some(known) => self.answer_known(p, from, txn, known),
                None if holds(view) => {
                    let writes = txn_writes(txn, p);
                    self.name_chunks(p, txn);
                    self.propose(p, &Record::Prepare { txn, participants, least: time, writes });
                    self.answer_looking(p, from, txn);
                }
                None => self.answer(from, p, txn, Answer::Voted(Vote::Refused)),
            },
            Question::Commit { view } => match table.look_alone(txn) {
                Some(known) => self.answer_known(p, from, txn, known),
                None if holds(view) => {
                    let writes = txn_writes(txn, p);
                    self.name_chunks(p, txn);
                    self.propose(p, &Record::Commit { txn, time, writes });
                    self.answer_looking(p, from, txn);
                }
                None => self.answer(from, p, txn, Answer::Voted(Vote::Refused)),
            },
            Question::Ask => {
                let known = table.ask(txn);
                self.answer_known(p, from, txn, known);
            }
            Question::Decide(outcome) => match table.tell(txn, outcome).expect("outcomes agree") {
                Told::Confirmed => self.answer(from, p, txn, Answer::Done),
                Told::Soon => self.partitions[p].waiting.push((txn, Waits::Confirmation, from)),
                Told::Propose(record) => {
                    self.partitions[p].waiting.push((txn, Waits::Confirmation, from));
                    self.propose(p, &record);
                    // Only if it is confirmed before it is stable.
                    if self.partitions[p].replicas[r].table.tell(txn, outcome) == Ok(Told::Confirmed) {
                        self.answer(from, p, txn, Answer::Done);
                    }
                }
            },
            Question::Forget => self.forget(p, &[txn]),
        }
    }

    pub(super) fn answer_looking(&mut self, p: usize, to: Asker, txn: TxnId) {
        let partition = &self.partitions[p];
        let known = partition.replicas[partition.primary].table.look(txn).expect("just proposed");
        self.answer_known(p, to, txn, known);
    }

    pub(super) fn answer_known(&mut self, p: usize, to: Asker, txn: TxnId, known: Known) {
        match known {
            Known::Vote(vote) => self.answer(to, p, txn, Answer::Voted(vote)),
            Known::Soon => self.partitions[p].waiting.push((txn, Waits::Vote, to)),
            Known::Fence(record) => {
                self.count.fences += 1;
                self.propose(p, &record);
                self.answer_looking(p, to, txn);
            }
        }
    }

    pub(super) fn answer(&mut self, to: Asker, from: usize, txn: TxnId, answer: Answer) {
        self.messages.push(Message::Answer { to, from, txn, answer });
    }
}
