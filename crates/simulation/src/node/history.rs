//! What transactions on lists did and were told: the record that [`super::list_check`] judges.
use crate::clock::SimClock;
use rauk_node::Isolation;
use std::collections::BTreeMap;
use std::time::Duration;

/// A list's key.
pub type Key = i64;
/// What is appended: a number of its own each time.
pub type Element = u32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Append(Key, Element),
    /// What was read, own appends included; `answered` once the client may believe it.
    Read {
        key: Key,
        list: Vec<Element>,
        answered: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Commit was never asked for: it must leave no trace.
    Aborted,
    Committed,
    /// Asked for, and never answered or answered so: either, but wholly.
    Unknown,
}

#[derive(Clone, Debug)]
pub struct TxnLog {
    pub isolation: Isolation,
    /// REPEATABLE READ with the check that makes it snapshot isolation.
    pub snapshot_isolation: bool,
    pub ops: Vec<Op>,
    pub fate: Fate,
    /// When it began, and when its commit was acknowledged, in events of the history.
    pub began: u64,
    pub acknowledged: Option<u64>,
}

/// All transactions since the lists were last read whole.
#[derive(Debug, Default)]
pub struct History {
    pub txns: Vec<TxnLog>,
    /// What the lists held then.
    pub base: BTreeMap<Key, Vec<Element>>,
    pub next_element: Element,
    /// When each event was.
    times: Vec<Duration>,
    clock: SimClock,
}

impl History {
    pub fn new(clock: &SimClock) -> History {
        History { clock: clock.clone(), ..History::default() }
    }

    fn event(&mut self) -> u64 {
        self.times.push(self.clock.now());
        self.times.len() as u64
    }

    /// When an event was, in simulated time.
    pub fn time(&self, event: u64) -> Duration {
        self.times[event as usize - 1]
    }

    pub fn begin(&mut self, isolation: Isolation, snapshot_isolation: bool) -> usize {
        let began = self.event();
        self.txns.push(TxnLog {
            isolation,
            snapshot_isolation,
            ops: Vec::new(),
            fate: Fate::Aborted,
            began,
            acknowledged: None,
        });
        self.txns.len() - 1
    }

    pub fn element(&mut self) -> Element {
        self.next_element += 1;
        self.next_element
    }

    pub fn acknowledge(&mut self, txn: usize) {
        let event = self.event();
        self.txns[txn].fate = Fate::Committed;
        self.txns[txn].acknowledged = Some(event);
    }

    /// Marks all reads of a transaction so far as answered.
    pub fn answered(&mut self, txn: usize) {
        for op in &mut self.txns[txn].ops {
            if let Op::Read { answered, .. } = op {
                *answered = true;
            }
        }
    }

    /// A crash that may take back acknowledged commits (relaxed durability) makes every fate and answer uncertain.
    pub fn doubt(&mut self) {
        for txn in &mut self.txns {
            if txn.fate == Fate::Committed {
                txn.fate = Fate::Unknown;
            }
            txn.acknowledged = None;
            txn.ops.retain(|op| matches!(op, Op::Append(..)));
        }
    }
}
