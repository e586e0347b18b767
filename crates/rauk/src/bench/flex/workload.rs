//! Workloads: which operations, on which keys.
//!
//! A [`Source`] makes the operations of one client thread, group by group. It is deterministic: the same seed, workload and thread give the same
//! operations, on whichever target they run.
//!
//! | workload | operations |
//! |---|---|
//! | `read`, `update`, `write` | one key each, drawn by the distribution |
//! | `insert` | new keys behind the loaded ones; they are deleted after the round |
//! | `delete` | every loaded key once, in a shuffled order; the round ends early when none is left, and what was deleted is loaded again |
//! | `scan` | a group is one scan of as many rows in the order of the key, from a drawn key on |
//! | `mix=R:U:I:D` | reads, updates, inserts, deletes in these shares; a delete takes the oldest key that the thread has inserted, or is an insert when there is none |

use super::payload::MAX_KEY;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::Distribution as _;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Read,
    Insert,
    Update,
    Write,
    Delete,
    /// A row of a scan.
    Scan,
}

impl Op {
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Insert => "insert",
            Op::Update => "update",
            Op::Write => "write",
            Op::Delete => "delete",
            Op::Scan => "scan",
        }
    }

    /// Whether a record's bytes travel with it.
    pub fn carries_payload(self) -> bool {
        self != Op::Delete
    }
}

/// One operation of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub op: Op,
    pub key: u64,
}

const MIX: [Op; 4] = [Op::Read, Op::Update, Op::Insert, Op::Delete];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    One(Op),
    /// Shares of [`MIX`].
    Mix([u32; 4]),
}

const NAMES: &str = "read, insert, update, write, delete, scan or mix=READS:UPDATES:INSERTS:DELETES (as mix=80:20)";

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Workload, String> {
        if let Some(shares) = text.strip_prefix("mix=") {
            let parts: Vec<&str> = shares.split(':').collect();
            let mut weights = [0u32; 4];
            let wrong = || format!("'{text}' is no mix; wanted: {NAMES}");
            if parts.len() > weights.len() {
                return Err(wrong());
            }
            for (part, weight) in parts.iter().zip(&mut weights) {
                *weight = part.parse().ok().filter(|w| *w <= 1_000_000).ok_or_else(wrong)?;
            }
            return if weights.iter().all(|w| *w == 0) { Err(wrong()) } else { Ok(Workload::Mix(weights)) };
        }
        let all = [Op::Read, Op::Insert, Op::Update, Op::Write, Op::Delete, Op::Scan];
        let one = all.into_iter().find(|op| op.name() == text);
        one.map(Workload::One).ok_or_else(|| format!("there is no workload '{text}'; wanted: {NAMES}"))
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::One(op) => f.write_str(op.name()),
            Workload::Mix([r, u, i, d]) => write!(f, "mix={r}:{u}:{i}:{d}"),
        }
    }
}

impl Workload {
    fn has(self, op: Op) -> bool {
        match self {
            Workload::One(one) => one == op,
            Workload::Mix(weights) => MIX.iter().zip(weights).any(|(o, weight)| *o == op && weight > 0),
        }
    }

    /// Whether keys are left behind that were not loaded.
    pub fn leaves_new_keys(self) -> bool {
        self.has(Op::Insert) || matches!(self, Workload::Mix([.., deletes]) if deletes > 0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    Uniform,
    /// The exponent; the ranks are spread over the keys.
    Zipf(f64),
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Distribution, String> {
        let wrong = || format!("there is no distribution '{text}'; wanted: uniform or zipf:EXPONENT (as zipf:0.99)");
        if text == "uniform" {
            return Ok(Distribution::Uniform);
        }
        let exponent: f64 = text.strip_prefix("zipf:").and_then(|e| e.parse().ok()).ok_or_else(wrong)?;
        if exponent > 0.0 && exponent <= 10.0 { Ok(Distribution::Zipf(exponent)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Zipf(exponent) => write!(f, "zipf:{exponent}"),
        }
    }
}

/// What a source makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Inserts of all keys from 0 on, once.
    Load,
    /// Deletes of all keys, once, in a shuffled order.
    DeleteAll,
    /// Writes of the first so many of that order.
    Restore(u64),
    /// Deletes of the new keys that another source has made.
    Forget,
    Workload(Workload),
}

/// Drawn keys that are used again and again: a zipfian draw costs more than the operation it is for.
const POOL: usize = 1 << 19;
/// New keys of one thread and round.
const NEW_KEYS: u64 = 1 << 34;

/// The operations of one client thread.
pub struct Source {
    work: Work,
    keys: u64,
    thread: u64,
    threads: u64,
    random: SmallRng,
    pool: Vec<u64>,
    place: usize,
    /// Next of the keys that are taken once.
    next: u64,
    /// Keys from here on are new; the next one, and those inserted in a mix.
    first_new: u64,
    next_new: u64,
    inserted: VecDeque<u64>,
}

impl Source {
    /// `round` keeps the new keys of rounds apart.
    pub fn new(
        work: Work,
        distribution: Distribution,
        keys: u64,
        thread: usize,
        threads: usize,
        round: usize,
    ) -> Source {
        let mut random = SmallRng::seed_from_u64((round as u64) << 32 | thread as u64);
        let pool = match distribution {
            Distribution::Uniform => Vec::new(),
            Distribution::Zipf(exponent) => {
                let zipf = rand_distr::Zipf::new(keys as f64, exponent).expect("keys and exponent are above zero");
                // The same rank is the same key for all threads, and near ranks are far from each other.
                let spread = |rank: f64| super::payload::mix(rank as u64) % keys;
                (0..POOL).map(|_| spread(zipf.sample(&mut random))).collect()
            }
        };
        let first_new = keys + (round * threads + thread) as u64 * NEW_KEYS;
        assert!(first_new < MAX_KEY - NEW_KEYS, "rounds and threads are bounded by the command line");
        let (thread, threads) = (thread as u64, threads as u64);
        Source {
            work,
            keys,
            thread,
            threads,
            random,
            pool,
            place: 0,
            next: thread,
            first_new,
            next_new: first_new,
            inserted: VecDeque::new(),
        }
    }

    #[inline]
    fn draw(&mut self) -> u64 {
        if self.pool.is_empty() {
            return self.random.random_range(0..self.keys);
        }
        self.place = (self.place + 1) % self.pool.len();
        self.pool[self.place]
    }

    fn new_key(&mut self) -> u64 {
        self.next_new += 1;
        self.next_new - 1
    }

    /// Fills in the next group. `false`: there is nothing left to do.
    pub fn group(&mut self, operations: usize, steps: &mut Vec<Step>) -> bool {
        steps.clear();
        match self.work {
            Work::Workload(Workload::One(Op::Scan)) => {
                let last = self.keys.saturating_sub(operations as u64);
                let first = self.draw().min(last);
                let rows = (operations as u64).min(self.keys);
                steps.extend((first..first + rows).map(|key| Step { op: Op::Scan, key }));
            }
            Work::Workload(Workload::One(Op::Insert)) => {
                steps.extend((0..operations as u64).map(|i| Step { op: Op::Insert, key: self.next_new + i }));
                self.next_new += operations as u64;
            }
            Work::Workload(Workload::One(op)) => {
                for _ in 0..operations {
                    let key = self.draw();
                    steps.push(Step { op, key });
                }
            }
            Work::Workload(Workload::Mix(weights)) => {
                for _ in 0..operations {
                    let step = self.mixed(&weights);
                    steps.push(step);
                }
            }
            Work::Forget => {
                let end = self.next_new.min(self.next + operations as u64);
                steps.extend((self.next..end).map(|key| Step { op: Op::Delete, key }));
                self.next = end;
            }
            Work::Load | Work::DeleteAll | Work::Restore(_) => {
                let (op, end) = match self.work {
                    Work::Load => (Op::Insert, self.keys),
                    Work::Restore(end) => (Op::Write, end),
                    _ => (Op::Delete, self.keys),
                };
                while steps.len() < operations && self.next < end {
                    let key = if self.work == Work::Load { self.next } else { shuffled(self.next, self.keys) };
                    steps.push(Step { op, key });
                    self.next += self.threads;
                }
            }
        }
        !steps.is_empty()
    }

    fn mixed(&mut self, weights: &[u32; 4]) -> Step {
        let mut drawn = self.random.random_range(0..weights.iter().sum());
        let mut op = Op::Read;
        for (candidate, weight) in MIX.into_iter().zip(weights) {
            if drawn < *weight {
                op = candidate;
                break;
            }
            drawn -= weight;
        }
        match op {
            Op::Delete if !self.inserted.is_empty() => {
                Step { op, key: self.inserted.pop_front().expect("it is not empty") }
            }
            Op::Delete | Op::Insert => Step { op: Op::Insert, key: self.new_key() },
            _ => Step { op, key: self.draw() },
        }
    }

    /// Tells what a group did, so that a mix deletes only what is there.
    pub fn on_done(&mut self, steps: &[Step]) {
        if matches!(self.work, Work::Workload(Workload::Mix(_))) {
            self.inserted.extend(steps.iter().filter(|s| s.op == Op::Insert).map(|s| s.key));
        }
    }

    /// Deletes the keys that this source has made; those of a mix that it has deleted itself are tried again.
    pub fn forgetting(&self) -> Source {
        Source {
            work: Work::Forget,
            random: self.random.clone(),
            pool: Vec::new(),
            inserted: VecDeque::new(),
            next: self.first_new,
            ..*self
        }
    }

    /// How far a [`Work::DeleteAll`] has come, in its order.
    pub fn reached(&self) -> u64 {
        if self.next == self.thread { 0 } else { (self.next - self.threads + 1).min(self.keys) }
    }
}

/// The `i`th key of the shuffled order: a permutation of `0..keys`.
fn shuffled(i: u64, keys: u64) -> u64 {
    // A prime above every number of keys that is allowed is coprime to each of them.
    const PRIME: u128 = 4_294_967_311;
    (u128::from(i) * PRIME % u128::from(keys)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn source(work: Work, thread: usize) -> Source {
        Source::new(work, Distribution::Uniform, 1000, thread, 3, 0)
    }

    #[test]
    fn loading_and_deleting_take_every_key_once() {
        for work in [Work::Load, Work::DeleteAll, Work::Restore(1000)] {
            let mut seen = BTreeSet::new();
            for thread in 0..3 {
                let mut source = source(work, thread);
                let mut steps = Vec::new();
                while source.group(7, &mut steps) {
                    assert!(steps.iter().all(|s| seen.insert(s.key)), "{work:?} takes a key twice");
                }
            }
            assert_eq!(seen, (0..1000).collect());
        }
    }

    #[test]
    fn what_a_stopped_delete_took_is_restored() {
        let mut deleted = BTreeSet::new();
        let mut reached = 0;
        for (thread, groups) in [(0, 5), (1, 2), (2, 0)] {
            let mut source = source(Work::DeleteAll, thread);
            let mut steps = Vec::new();
            for _ in 0..groups {
                assert!(source.group(10, &mut steps));
                deleted.extend(steps.iter().map(|s| s.key));
            }
            reached = reached.max(source.reached());
        }
        let mut restored = BTreeSet::new();
        for thread in 0..3 {
            let mut source = source(Work::Restore(reached), thread);
            let mut steps = Vec::new();
            while source.group(10, &mut steps) {
                restored.extend(steps.iter().map(|s| s.key));
            }
        }
        assert!(deleted.is_subset(&restored));
    }

    #[test]
    fn a_mix_keeps_its_shares_and_deletes_only_what_it_inserted() {
        let workload: Workload = "mix=70:10:12:8".parse().unwrap();
        let mut source = source(Work::Workload(workload), 1);
        let mut there = BTreeSet::new();
        let mut counts = [0usize; 4];
        let mut steps = Vec::new();
        for _ in 0..1000 {
            assert!(source.group(20, &mut steps));
            for step in &steps {
                counts[MIX.iter().position(|op| *op == step.op).unwrap()] += 1;
                match step.op {
                    Op::Insert => assert!(step.key >= 1000 && there.insert(step.key)),
                    Op::Delete => assert!(there.remove(&step.key)),
                    _ => assert!(step.key < 1000),
                }
            }
            source.on_done(&steps);
        }
        for (count, wanted) in counts.into_iter().zip([14_000usize, 2_000, 2_400, 1_600]) {
            assert!(count.abs_diff(wanted) < 400, "{counts:?}");
        }
        let mut forgetting = source.forgetting();
        while forgetting.group(100, &mut steps) {
            steps.iter().for_each(|step| {
                there.remove(&step.key);
            });
        }
        assert!(there.is_empty(), "everything new is forgotten");
    }

    #[test]
    fn zipfian_keys_are_skewed_and_the_same_for_all_threads() {
        let mut favourites = Vec::new();
        for thread in 0..2 {
            let mut source =
                Source::new(Work::Workload(Workload::One(Op::Read)), Distribution::Zipf(0.99), 10_000, thread, 2, 0);
            let mut counts = std::collections::BTreeMap::<u64, usize>::new();
            let mut steps = Vec::new();
            for _ in 0..100 {
                assert!(source.group(1000, &mut steps));
                steps.iter().for_each(|s| *counts.entry(s.key).or_default() += 1);
            }
            let (key, count) = counts.into_iter().max_by_key(|(_, count)| *count).unwrap();
            assert!((8_000..13_000).contains(&count), "{count} of 100000 for the most frequent key");
            favourites.push(key);
        }
        assert_eq!(favourites[0], favourites[1]);
    }

    #[test]
    fn words_are_read_and_wrong_ones_answered_with_the_right_ones() {
        for text in ["read", "insert", "update", "write", "delete", "scan", "mix=80:20:0:0"] {
            assert_eq!(text.parse::<Workload>().unwrap().to_string(), text);
        }
        assert_eq!("mix=1:1".parse(), Ok(Workload::Mix([1, 1, 0, 0])));
        for text in ["reed", "mix=", "mix=0:0", "mix=1:2:3:4:5", "mix=a", "", "Read"] {
            let error = text.parse::<Workload>().unwrap_err();
            assert!(error.contains("read, insert, update, write, delete, scan or mix="), "{error}");
        }
        assert_eq!("zipf:0.99".parse(), Ok(Distribution::Zipf(0.99)));
        for text in ["zipf", "zipf:0", "zipf:x", "zipf:nan", "normal"] {
            assert!(text.parse::<Distribution>().unwrap_err().contains("uniform or zipf:EXPONENT"), "{text}");
        }
    }
}
