//! What was given to the redo log, and how far that is on disk.
//!
//! Records are numbered in the order in which they are appended; the log reports a number, and all up to it are on disk. What a record stands for when it is there
//! (an entry, a slice of a copy, a copy's end) is a *mark* that waits in a queue. A cut takes the marks of the void entries away: that *they* are on disk says nothing
//! about the entries that took their places.

use super::messages::{LogRecord, Outbox, Output};
use rauk_types::Position;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Entry(Position),
    /// A copy has begun; the stream goes on behind this.
    Begun(Position),
    Slice(u32),
    Whole,
}

/// What has come to the disk with a report.
#[derive(Debug, Default)]
pub(super) struct Reached {
    pub begun: bool,
    pub slice: Option<u32>,
    pub whole: bool,
}

#[derive(Debug, Default)]
pub(super) struct Disk {
    written: u64,
    /// The entries up to here are on disk, of those that are in the stream now.
    durable: Position,
    marks: VecDeque<(u64, Mark)>,
}

impl Disk {
    pub fn new(durable: Position) -> Disk {
        Disk { written: 0, durable, marks: VecDeque::new() }
    }

    pub fn durable(&self) -> Position {
        self.durable
    }

    pub fn write(&mut self, record: LogRecord, mark: Option<Mark>, out: &mut Outbox) {
        self.written += 1;
        if let Some(mark) = mark {
            self.marks.push_back((self.written, mark));
        }
        out.push(Output::Log { record, number: self.written });
    }

    /// # Panics
    /// If the number was not given out: the caller's mistake.
    pub fn on_durable(&mut self, number: u64) -> Reached {
        assert!(number <= self.written, "log record {number} is said to be on disk; {} were written", self.written);
        let mut reached = Reached::default();
        while let Some((written, mark)) = self.marks.front().copied() {
            if written > number {
                break;
            }
            self.marks.pop_front();
            match mark {
                Mark::Entry(position) => self.durable = position,
                Mark::Begun(position) => {
                    self.durable = position;
                    reached.begun = true;
                }
                Mark::Slice(number) => reached.slice = Some(number),
                Mark::Whole => reached.whole = true,
            }
        }
        reached
    }

    /// The entries behind `after` are void.
    pub fn cut(&mut self, after: Position) {
        self.durable = self.durable.min(after);
        self.marks.retain(|(_, mark)| !matches!(mark, Mark::Entry(position) if *position > after));
    }

    /// Everything before is void: a copy begins.
    pub fn reset(&mut self) {
        self.durable = Position(0);
        self.marks.clear();
    }
}
