//! One node: its disk (a log with an end that a crash may lose, and checkpoints), and the process that runs on it.

use super::super::*;
use super::table::{Content, Rows};
use rand::Rng;
use rand::rngs::StdRng;
use rauk_types::{Member, NodeId, ProcessId};
use std::collections::VecDeque;

pub const GROUP: GroupId = GroupId(3);

/// What survives a crash.
#[derive(Default)]
pub struct Medium {
    pub log: Vec<LogRecord>,
    /// Records that a crash cannot take.
    pub synced: usize,
    /// Where restart begins to read, and the rows of the checkpoint.
    pub start: usize,
    pub rows: Rows,
}

/// A checkpoint under way.
pub struct Checkpoint {
    start: usize,
    /// The rows, and the end of the log that they must not be without.
    rows: Option<(Rows, usize)>,
}

pub struct Process {
    pub me: Member,
    pub replica: Replica,
    pub content: Content,
    /// Position of each entry that this process has, first at `shadow_base + 1`: what the log has, told by its records.
    pub shadow: Vec<Entry>,
    pub shadow_base: u64,
    /// The log's length after each record of the block (the log has others too).
    numbers: Vec<usize>,
    pub checkpoint: Option<Checkpoint>,
    /// Assignments that it has not heard yet.
    pub news: VecDeque<Assignment>,
    /// Slices and states that are still being read.
    pub reads: Vec<Output>,
    pub stopped: bool,
}

pub struct Node {
    pub id: NodeId,
    pub medium: Medium,
    pub process: Option<Process>,
}

impl Node {
    /// Starts a process; `None` as contents: nothing was there. The second says whether the log is whole.
    pub fn start(&mut self, process: ProcessId, limits: Limits) -> bool {
        let me = Member { node: self.id, process };
        let mut content = Content { rows: self.medium.rows.clone(), ..Content::default() };
        let mut replay = Replay::new(limits.kept_bytes);
        let mut steps = Vec::new();
        for record in &self.medium.log[self.medium.start..] {
            replay.push(record.clone(), &mut steps).unwrap();
            for step in steps.drain(..) {
                match step {
                    Step::State { state } => content.table = postcard::from_bytes(&state).unwrap(),
                    Step::Reset { state } => content.reset(&state),
                    Step::Entry { entry } => content.entry(entry.id.position, &entry.record),
                    Step::Cut { after } => content.cut(after),
                    Step::Stable { upto } => content.stable(upto),
                    Step::Install { rows } => content.install(&rows),
                }
            }
        }
        let restored = replay.finish();
        let whole = restored.as_ref().is_none_or(|restored| restored.contents == Contents::Whole);
        let shadow = restored.as_ref().map_or(Vec::new(), |restored| restored.kept.clone());
        let replica = Replica::new(GROUP, me, limits, restored);
        let shadow_base = replica.last().position.0 - shadow.len() as u64;
        assert_eq!(content.table.last, replica.last().position.0, "restart: table and stream end at the same entry");
        self.process = Some(Process {
            me,
            replica,
            content,
            shadow,
            shadow_base,
            numbers: Vec::new(),
            checkpoint: None,
            news: VecDeque::new(),
            reads: Vec::new(),
            stopped: false,
        });
        whole
    }

    /// The process dies; of what was not synced a part may stay.
    pub fn crash(&mut self, rng: &mut StdRng) {
        self.process = None;
        let keep = rng.random_range(self.medium.synced..=self.medium.log.len());
        self.medium.log.truncate(keep);
        self.medium.synced = keep;
    }

    /// The disk has come further; gives what the block is told.
    pub fn sync(&mut self, upto: usize) -> Option<u64> {
        let process = self.process.as_mut()?;
        self.medium.synced = self.medium.synced.max(upto);
        if let Some(Checkpoint { start, rows: Some((rows, end)) }) = &process.checkpoint
            && *end <= self.medium.synced
        {
            (self.medium.start, self.medium.rows) = (*start, rows.clone());
            process.checkpoint = None;
        }
        Some(process.numbers.partition_point(|length| *length <= self.medium.synced) as u64)
    }

    /// One step of a checkpoint: the anchor, or the rows.
    pub fn checkpoint(&mut self) {
        let Some(process) = self.process.as_mut().filter(|process| !process.stopped) else { return };
        match &mut process.checkpoint {
            None => {
                let copy = self.medium.log.iter().rposition(|record| matches!(record, LogRecord::Reset { .. }));
                let start = copy.filter(|_| process.replica.copies_in()).unwrap_or(self.medium.log.len());
                process.checkpoint = Some(Checkpoint { start, rows: None });
                self.medium.log.push(process.replica.anchor(process.content.state()));
            }
            Some(Checkpoint { rows: rows @ None, .. }) => {
                let has = process.replica.contents() == Contents::Whole;
                let found = if has { process.content.rows.clone() } else { Rows::new() };
                *rows = Some((found, self.medium.log.len()));
            }
            Some(_) => {}
        }
    }

    pub fn log(&mut self, record: LogRecord, number: u64) {
        let process = self.process.as_mut().unwrap();
        self.medium.log.push(record.clone());
        process.numbers.push(self.medium.log.len());
        assert_eq!(process.numbers.len() as u64, number, "log records are numbered in order");
        match record {
            LogRecord::Entry { entry, .. } => {
                let at = entry.id.position.0 - process.shadow_base - 1;
                process.shadow.truncate(at as usize);
                process.shadow.push(entry);
            }
            LogRecord::Reset { from, .. } => {
                process.shadow.clear();
                process.shadow_base = from.position.0;
            }
            _ => {}
        }
    }
}
