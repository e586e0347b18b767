//! A small cluster under a seed: partitions with a toy stream each, coordinators and take-overs that run at the same time, and messages that are lost, doubled and
//! late. The toy stream keeps what `crate::replica` promises: stable is what all replicas have, any of them may lead the next view, what differs is cut.
//!
//! What must hold is checked where it happens: a commit when rows are committed ([`Facts::on_commit`]), an abort when it is recorded or told, and at the end
//! ([`World::settle`]): faults stop, and then nothing may stay pending or remembered as open, all replicas are equal, and rows are as the outcome says.

mod chunks;
mod coordinators;
mod end;
mod messages;
mod partitions;

use super::*;
use chunks::SERIES;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

const PACE: Pace =
    Pace { patience: Duration::from_millis(60), first: Duration::from_millis(20), longest: Duration::from_millis(100) };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    Coordinator(usize),
    /// Of a take-over: partition and replica.
    Replica(usize, usize),
}

#[derive(Clone, Debug)]
enum Question {
    Prepare { view: u64, participants: Vec<GroupId> },
    Commit { view: u64 },
    Ask,
    Decide(Outcome),
    Forget,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Voted(Vote),
    Done,
    NotHere,
}

#[derive(Clone, Debug)]
enum Message {
    Question { to: (usize, usize), from: Asker, txn: TxnId, question: Question },
    Answer { to: Asker, from: usize, txn: TxnId, answer: Answer },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Pending,
    Committed(Timestamp),
}

#[derive(Clone, Default)]
struct Replica {
    log: Vec<(u64, Bytes)>,
    /// How much of the log outlives the process.
    durable: usize,
    table: TxnTable,
    rows: BTreeMap<TxnId, Row>,
    /// Chunks beside the rows.
    chunks: BTreeMap<TxnId, Vec<BesideRows>>,
}

/// A chunk beside the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BesideRows {
    number: u32,
    series: u16,
    writes: Bytes,
}

struct Partition {
    view: u64,
    primary: usize,
    /// The view's opening is stable.
    serving: bool,
    replicas: Vec<Replica>,
    /// By replica: how much of the primary's log it has acknowledged in this view.
    acknowledged: Vec<usize>,
    stable: usize,
    locks: BTreeSet<TxnId>,
    waiting: Vec<(TxnId, Waits, Asker)>,
    closings: BTreeMap<TxnId, Closing>,
    knows_dead: BTreeSet<ProcessId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Vote,
    Confirmation,
}

struct Coordinator {
    process: ProcessId,
    alive: bool,
    /// The control plane has found it dead, and it may live and not know.
    condemned: bool,
    running: BTreeMap<TxnId, Running>,
    number: u64,
}

struct Running {
    /// With the view of its first touch.
    touched: Vec<(GroupId, u64)>,
    part: Phase,
}

enum Phase {
    Touched,
    Alone { due: Duration },
    Several(Closing),
}

/// What is true of a transaction, seen from above.
#[derive(Default, Debug)]
struct Facts {
    participants: Vec<GroupId>,
    /// What its naming entry rests on, by group: its chunks in the order of the stream.
    chunks: BTreeMap<GroupId, Vec<Bytes>>,
    /// Stable prepares; of a transaction with one participant its stable commit.
    prepared: BTreeMap<GroupId, Timestamp>,
    outcome: Option<Outcome>,
    told: Option<Outcome>,
}

impl Facts {
    fn agree(&mut self, txn: TxnId, outcome: Outcome) {
        assert!(self.outcome.is_none_or(|known| known == outcome), "{txn:?} is {outcome:?} and {self:?}");
        self.outcome = Some(outcome);
    }

    fn on_commit(&mut self, txn: TxnId, time: Timestamp) {
        assert_eq!(self.prepared.len(), self.participants.len(), "{txn:?} commits with {self:?}");
        assert_eq!(self.prepared.values().max(), Some(&time), "{txn:?}: the largest of the least times");
        self.agree(txn, Outcome::Committed(time));
    }
}

/// What has happened in a run, so that tests can tell that runs are worth something.
#[derive(Default, Debug, Clone, Copy)]
pub struct Count {
    pub committed: usize,
    pub aborted: usize,
    pub taken_over: usize,
    pub cut: usize,
    pub fences: usize,
    pub unheard: usize,
    /// Chunks that were made, taken back by the primary, and named.
    pub chunks: usize,
    pub taken_back: usize,
    pub named: usize,
}

pub struct World {
    random: SmallRng,
    now: Duration,
    clock: u64,
    faults: bool,
    partitions: Vec<Partition>,
    coordinators: Vec<Coordinator>,
    messages: Vec<Message>,
    facts: BTreeMap<TxnId, Facts>,
    pub count: Count,
}

fn index(group: GroupId) -> usize {
    usize::from(group.0)
}

fn id(partition: usize) -> GroupId {
    GroupId(partition as u16)
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut random = SmallRng::seed_from_u64(seed);
        let count = random.random_range(2..=3);
        let mut world = World {
            now: Duration::from_secs(1),
            clock: 10,
            faults: true,
            partitions: Vec::new(),
            coordinators: Vec::new(),
            messages: Vec::new(),
            facts: BTreeMap::new(),
            count: Count::default(),
            random,
        };
        for _ in 0..count {
            let replicas = world.random.random_range(1..=3);
            world.partitions.push(Partition {
                view: 0,
                primary: 0,
                serving: false,
                replicas: vec![Replica::default(); replicas],
                acknowledged: vec![0; replicas],
                stable: 0,
                locks: BTreeSet::new(),
                waiting: Vec::new(),
                closings: BTreeMap::new(),
                knows_dead: BTreeSet::new(),
            });
            let p = world.partitions.len() - 1;
            world.lead(p, 0);
        }
        for _ in 0..2 {
            world.start_process();
        }
        world
    }

    /// Many steps with faults, and then the cluster must come to rest.
    pub fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
        self.settle();
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    fn step(&mut self) {
        let p = self.random.random_range(0..self.partitions.len());
        let r = self.random.random_range(0..self.partitions[p].replicas.len());
        let c = self.random.random_range(0..self.coordinators.len());
        match self.random.random_range(0..1_000) {
            0..400 => self.deliver(),
            400..600 => {
                let entries = self.random.random_range(1..4);
                self.replicate(p, r, entries);
            }
            600..680 => self.tell_stable(p, r),
            680..760 => self.tick_coordinator(c),
            760..840 => self.tick_partition(p),
            840..880 => self.begin(c),
            880..920 => self.write(c),
            920..940 => self.now += Duration::from_millis(self.random.random_range(1..60)),
            940..955 => self.lead(p, r),
            955..970 => self.restart(p, r),
            970..978 => self.copy(p, r),
            978..985 => self.kill(c),
            _ => self.learn_death(p),
        }
    }
}

fn txn_writes(txn: TxnId, p: usize) -> Bytes {
    Bytes::from(format!("{} in {p}", txn.0))
}

fn question(step: Step) -> Question {
    match step {
        Step::Ask => Question::Ask,
        Step::Decide(outcome) => Question::Decide(outcome),
        Step::Forget => Question::Forget,
    }
}

fn hear(closing: &mut Closing, from: GroupId, answer: Answer) -> Option<Outcome> {
    match answer {
        Answer::Voted(vote) => return closing.on_vote(from, vote),
        Answer::Done => closing.on_confirmed(from),
        Answer::NotHere => closing.hurry(from),
    }
    None
}
