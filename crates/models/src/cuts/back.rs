//! What a disk has of the cut that the cluster has gone back to (rules 29, 30): as `recovery::member` of the node reads
//! it.

use super::state::{Entry, Log, Record, Rows, Stream, follow};
use super::{Cuts, Mutation};

/// What one partition goes back to.
#[derive(Clone, Copy)]
pub struct Goal {
    pub time: u8,
    /// Of the cut's entry.
    pub position: u8,
    /// The group counts this node among the cut's holders.
    pub holder: bool,
}

/// What was found.
pub struct Back {
    /// Exactly the cut, or nothing of the partition.
    pub rows: Option<Rows>,
    /// A copy stood behind it.
    pub before_a_copy: bool,
}

pub fn go_back(model: &Cuts, log: &Log, goal: Goal) -> Back {
    let mut stream = log.base.map(|base| Stream { base, entries: Vec::new() });
    let mut copied = None;
    let mut before_a_copy = false;
    for record in &log.records {
        let replaced = *record == Record::Reset && has_cut(&stream, copied, goal);
        if replaced && !model.is(Mutation::CopyTakesCutAway) {
            before_a_copy = true;
            break;
        }
        follow(&mut stream, *record);
        if let Record::Whole(rows) = record {
            copied = Some(rows.position);
        }
    }
    let held = has_cut(&stream, copied, goal);
    let rows = stream.filter(|_| held).map(|stream| rows_at(model, &stream, goal));
    Back { rows, before_a_copy }
}

/// Is this all that the cut has, with no rows of a copy that was whole behind it?
fn has_cut(stream: &Option<Stream>, copied: Option<u8>, goal: Goal) -> bool {
    let Some(stream) = stream.as_ref().filter(|_| goal.holder) else { return false };
    let reached = stream.base.cut == goal.time || stream.position_of(Entry::Cut { time: goal.time }).is_some();
    reached && copied.is_none_or(|copied| copied <= goal.position)
}

/// The rows that checkpoint or copy have brought are what they are. Of the entries those count that committed at or below the cut's time, wherever they stand.
fn rows_at(model: &Cuts, stream: &Stream, goal: Goal) -> Rows {
    let Goal { time: cut, position, .. } = goal;
    let view = stream.view_at(position);
    let mut rows = Rows { position, view, cut, committed: stream.base.committed, ..Rows::default() };
    for (at, written) in (stream.base.position + 1..).zip(&stream.entries) {
        if let Entry::Outcome { transaction, time } | Entry::Commit { transaction, time } = written.entry {
            let counts = if model.is(Mutation::ReadUpToEntry) { at <= position } else { time <= cut };
            if counts {
                rows.committed[usize::from(transaction)] = time;
            }
        }
    }
    rows
}
