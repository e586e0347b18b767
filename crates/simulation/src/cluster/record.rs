//! What the checkers judge: what clients did and were told, and what the observers of processes saw.
//!
//! Events of all clients are counted in one order, the simulation's; so "before" means before in real time, whatever the nodes' clocks say.
use crate::clock::SimClock;
use parking_lot::Mutex;
use rauk_types::{GroupId, ProcessId, View};
use std::collections::BTreeMap;
use std::time::Duration;

pub use crate::node::history::Fate;

/// Rows of a band: always written together, each in a partition of its own where there are enough.
pub const SLOTS: usize = 3;

/// What is written into all slots of a band; each is written once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value(pub u64);

impl Value {
    /// What every band begins with.
    pub const NONE: Value = Value(0);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub band: u32,
    /// What it found in the band, under its locks.
    pub found: Value,
    pub fate: Fate,
    pub acknowledged: Option<u64>,
    /// Number of the process whose client it is.
    pub by: u32,
}

/// One snapshot, or one look under locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub began: u64,
    /// When the client was told, if it was.
    pub answered: Option<u64>,
    /// The values of the slots that were there.
    pub seen: BTreeMap<u32, Vec<Value>>,
    /// For people.
    pub how: String,
}

/// What happened to bands.
#[derive(Debug, Default)]
pub struct Bands {
    pub writes: BTreeMap<Value, Write>,
    pub reads: Vec<Read>,
    next: u64,
    /// When each event was.
    times: Vec<Duration>,
    clock: SimClock,
}

impl Bands {
    pub fn new(clock: &SimClock) -> Bands {
        Bands { clock: clock.clone(), ..Bands::default() }
    }

    pub fn event(&mut self) -> u64 {
        self.times.push(self.clock.now());
        self.times.len() as u64
    }

    /// When an event was, in simulated time.
    pub fn time(&self, event: u64) -> Duration {
        self.times[event as usize - 1]
    }

    /// A write that is to happen on a process: what it will write.
    pub fn begin(&mut self, band: u32, found: Value, by: u32) -> Value {
        self.next += 1;
        let value = Value(self.next);
        self.writes.insert(value, Write { band, found, fate: Fate::Aborted, acknowledged: None, by });
        value
    }

    /// Its commit is asked for now.
    pub fn asked(&mut self, value: Value) {
        self.writes.get_mut(&value).expect("it was begun").fate = Fate::Unknown;
    }

    pub fn ended(&mut self, value: Value, fate: Fate) {
        let event = self.event();
        let write = self.writes.get_mut(&value).expect("it was begun");
        write.fate = fate;
        write.acknowledged = (fate == Fate::Committed).then_some(event);
    }

    pub fn answered(&mut self, began: u64, seen: BTreeMap<u32, Vec<Value>>, how: String) {
        let answered = Some(self.event());
        self.reads.push(Read { began, answered, seen, how });
    }
}

/// An answer of a process that took itself for a group's primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Simulated time.
    pub at: Duration,
    pub process: ProcessId,
    pub group: GroupId,
    pub view: View,
}

/// All answers, in order.
#[derive(Debug, Default)]
pub struct Answers(pub Mutex<Vec<Served>>);

#[cfg(test)]
pub mod tests {
    use super::*;

    /// (value, found, fate), all of band 0.
    pub fn record(writes: &[(u64, u64, Fate)]) -> Bands {
        let mut record = Bands::default();
        for (value, found, fate) in writes {
            let write = Write { band: 0, found: Value(*found), fate: *fate, acknowledged: None, by: 1 };
            record.writes.insert(Value(*value), write);
        }
        record
    }

    /// An answered read of bands 0, 1 …
    pub fn read(bands: &[&[u64]]) -> Read {
        let seen = bands.iter().zip(0..).map(|(slots, band)| (band, slots.iter().map(|v| Value(*v)).collect()));
        Read { began: 1, answered: Some(2), seen: seen.collect(), how: "a read".to_string() }
    }

    pub fn served(at: u64, process: u32, group: u16, view: u64) -> Served {
        Served { at: Duration::from_millis(at), process: ProcessId(process), group: GroupId(group), view: View(view) }
    }
}
