//! What a state of the model is made of. Row r of the large transaction is its chunk r. The small transaction writes
//! the last row. Sets of rows and chunks have one bit each.

pub const NODES: usize = 2;
pub const ROWS: usize = 2;

/// An entry of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entry {
    /// What the large transaction has written in one row.
    Chunk {
        row: u8,
    },
    /// These chunks are taken back.
    Back {
        rows: u8,
    },
    /// The large transaction commits, or prepares, with these chunks.
    Name {
        rows: u8,
        prepares: bool,
    },
    Decide {
        commit: bool,
    },
    /// The small transaction commits.
    Small,
    /// A view begins: chunks that are not named are void.
    Open,
}

/// What a replica makes of the large transaction by a part of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// These chunks are there, and no entry names them.
    Open(u8),
    /// Prepared, not decided.
    Prepared(u8),
    Committed(u8),
    Aborted,
}

/// What the entries say. A view voids chunks unless that is switched off.
pub fn outcome(entries: &[Entry], views_void: bool) -> Outcome {
    entries.iter().fold(Outcome::Open(0), |before, entry| match (before, *entry) {
        (Outcome::Open(rows), Entry::Chunk { row }) => Outcome::Open(rows | 1 << row),
        (Outcome::Open(rows), Entry::Back { rows: back }) => Outcome::Open(rows & !back),
        // What a naming entry counts must be what is there: see `State::mismatch`.
        (Outcome::Open(rows), Entry::Name { prepares: true, .. }) => Outcome::Prepared(rows),
        (Outcome::Open(rows), Entry::Name { .. }) => Outcome::Committed(rows),
        (Outcome::Prepared(rows), Entry::Decide { commit: true }) => Outcome::Committed(rows),
        (Outcome::Prepared(_), Entry::Decide { .. }) => Outcome::Aborted,
        (Outcome::Open(_), Entry::Open) if views_void => Outcome::Open(0),
        (same, _) => same,
    })
}

/// Chunks that are needed later.
pub fn needed(entries: &[Entry], views_void: bool) -> u8 {
    match outcome(entries, views_void) {
        Outcome::Open(rows) | Outcome::Prepared(rows) => rows,
        _ => 0,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// On disk; entries before `from` have been released, and a checkpoint has what was committed by them.
    pub log: Vec<Entry>,
    pub from: u8,
    /// How much of the log is known to be stable.
    pub stable: u8,
    /// How much of it is beside the rows, as pending versions.
    pub adopted: u8,
    /// Chunks that were lost with the memory, or were not in a copy.
    pub missing: u8,
}

impl Node {
    pub fn len(&self) -> u8 {
        self.log.len() as u8
    }

    pub fn place(&self, wanted: impl Fn(&Entry) -> bool) -> Option<u8> {
        self.log.iter().position(wanted).map(|place| place as u8)
    }

    /// The place from which the log is needed for chunks of the large transaction, given what is stable.
    pub fn oldest_needed(&self, until: u8, views_void: bool) -> u8 {
        match needed(&self.log[..until.into()], views_void) {
            0 => until,
            rows => {
                let of = |entry: &Entry| matches!(entry, Entry::Chunk { row } if rows & (1 << row) != 0);
                self.place(of).unwrap_or(until).min(until)
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    Active,
    /// Its naming entry is appended.
    Named,
    Aborted,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub view: u8,
    pub leader: u8,
    /// The leader has lost its memory, and leads no more.
    pub lost: bool,
    pub both: bool,
    pub nodes: [Node; NODES],
    /// The large transaction.
    pub status: Status,
    /// Its view; 0: it has not begun.
    pub of_view: u8,
    /// The leader's memory: rows that it has written and locked, and those that are chunks of the stream.
    pub written: u8,
    pub chunked: u8,
    /// Rows that were taken back, for which no entry has been appended yet (only if that is switched off).
    pub owed: u8,
    /// It has gone back to its savepoint.
    pub went_back: bool,
    /// What it had written when its commit began.
    pub meant: u8,
    pub reported: Option<bool>,
    pub small_reported: bool,
    /// Rows in which a read has seen the large transaction.
    pub shown: u8,
    pub small_shown: bool,
    /// A read missed what had been reported or shown before it.
    pub stale: bool,
    /// A read has seen a write that is not committed.
    pub dirty: bool,
    pub crashes_left: u8,
    pub removals_left: u8,
    pub kills_left: u8,
}

impl State {
    pub fn led(&self) -> Option<&Node> {
        (!self.lost).then(|| &self.nodes[usize::from(self.leader)])
    }

    pub fn push(&mut self, entry: Entry) {
        let own = &mut self.nodes[usize::from(self.leader)];
        own.log.push(entry);
        own.adopted = own.len();
    }

    pub fn is_in_sync(&self, node: usize) -> bool {
        self.both || usize::from(self.leader) == node
    }

    /// A naming entry in the log of the node counts other chunks than it has.
    pub fn mismatch(&self, node: usize, views_void: bool) -> bool {
        let own = &self.nodes[node];
        let named = own.log.iter().enumerate().find_map(|(place, entry)| match entry {
            Entry::Name { rows, .. } => Some((place, *rows)),
            _ => None,
        });
        named.is_some_and(|(place, rows)| {
            outcome(&own.log[..place], views_void) != Outcome::Open(rows) || own.missing & rows != 0
        })
    }
}
