//! What a restart makes of the log records of one group.
//!
//! [`Replay`] takes them in the order of the log and says what is to be done with rows and transaction table, step by step; at its end stands [`Restored`], which
//! a [`super::Replica`] begins with.
//!
//! The log is read from where the newest checkpoint's first anchor stands. The anchors of other groups come a little
//! later, so there may be records before a group's own: they are passed over, unless they are the beginning of
//! everything (the first entry of a stream, or of a copy), which is as good as an anchor. An anchor that agrees with
//! what was read already says nothing new (a checkpoint that was never finished).
//!
//! A copy counts when the log has it from its beginning to its end (a checkpoint keeps the log from there on while a copy is under way).
//!
//! An entry that is there already is passed over; one that differs cuts what stood at its place and behind, just as it did when it was written.

use super::history::{History, well_formed};
use super::messages::{Contents, Entry, EntryId, LogRecord, Restored};
use bytes::Bytes;
use rauk_types::Position;

/// What restart does, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The transaction table is this one. The rows are those of the checkpoint: they stay.
    State { state: Bytes },
    /// Rows and table are void, those of the checkpoint too; the table is this one.
    Reset { state: Bytes },
    /// Show the entry to the table.
    Entry { entry: Entry },
    /// Entries behind `after` are void.
    Cut { after: Position },
    /// Everything up to here is stable.
    Stable { upto: Position },
    /// Put these rows in, where nothing as new or newer is.
    Install { rows: Bytes },
}

/// The records contradict each other: the log is damaged, or is not the log of one group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    #[error("entry {position} of the stream follows on entry {last} in the log")]
    Gap { position: u64, last: u64 },
    #[error("entry {position} of the stream is cut in the log, although everything up to {stable} is stable")]
    CutStable { position: u64, stable: u64 },
    #[error("the log's anchor at entry {position} contradicts itself")]
    Anchor { position: u64 },
}

#[derive(Debug)]
pub struct Replay {
    kept_bytes: u64,
    started: bool,
    /// There were records before anything to begin with.
    skipped: bool,
    /// It began in the middle of a copy: slices are missing, so the copy's end makes nothing whole.
    headless: bool,
    history: History,
    stable: Position,
    contents: Contents,
}

impl Replay {
    /// `kept_bytes`: as in [`super::Limits`].
    pub fn new(kept_bytes: usize) -> Replay {
        Replay {
            kept_bytes: kept_bytes as u64,
            started: false,
            skipped: false,
            headless: false,
            history: History::default(),
            stable: Position(0),
            contents: Contents::Whole,
        }
    }

    pub fn push(&mut self, record: LogRecord, steps: &mut Vec<Step>) -> Result<(), ReplayError> {
        match record {
            LogRecord::Anchor { last, stable, history, kept, contents, state } => {
                if self.started && self.history.last() == last && self.contents == contents {
                    self.stabilise(stable, steps);
                    return Ok(());
                }
                let bad = ReplayError::Anchor { position: last.position.0 };
                let restored = History::restored(&history, kept).ok_or(bad.clone())?;
                if restored.last() != last || stable > last.position {
                    return Err(bad);
                }
                self.started = true;
                self.history = restored;
                self.stable = Position(0);
                self.contents = contents;
                self.headless = contents == Contents::Partial;
                steps.push(Step::State { state });
                self.stabilise(stable, steps);
            }
            LogRecord::Reset { from, stable, history, state } => {
                let bad = ReplayError::Anchor { position: from.position.0 };
                if !well_formed(&history)
                    || history.last().copied().unwrap_or_default() != from
                    || stable > from.position
                {
                    return Err(bad);
                }
                self.started = true;
                self.history = History::starting(from);
                self.stable = Position(0);
                self.contents = Contents::Partial;
                self.headless = false;
                steps.push(Step::Reset { state });
                self.stabilise(stable, steps);
            }
            LogRecord::Entry { entry, stable } => {
                self.started |= entry.id.position.0 == 1;
                if !self.started {
                    self.skipped = true;
                    return Ok(());
                }
                // The entry may rest on what was stable when it was written.
                self.stabilise(stable.min(Position(entry.id.position.0 - 1)), steps);
                self.entry(entry, steps)?;
                self.stabilise(stable, steps);
            }
            _ if !self.started => self.skipped = true,
            LogRecord::Stable { stable } => self.stabilise(stable, steps),
            LogRecord::Rows { rows } => steps.push(Step::Install { rows }),
            LogRecord::Whole if self.headless => {}
            LogRecord::Whole => self.contents = Contents::Whole,
        }
        Ok(())
    }

    fn entry(&mut self, entry: Entry, steps: &mut Vec<Step>) -> Result<(), ReplayError> {
        let EntryId { position, view } = entry.id;
        let last = self.history.last();
        if self.history.id_at(position) == Some(entry.id) {
            return Ok(());
        }
        if position.0 > last.position.0 + 1 {
            return Err(ReplayError::Gap { position: position.0, last: last.position.0 });
        }
        if position <= last.position {
            let stable = self.stable.max(self.history.base().position);
            if position <= stable {
                return Err(ReplayError::CutStable { position: position.0, stable: stable.0 });
            }
            let after = Position(position.0 - 1);
            self.history.cut(after);
            steps.push(Step::Cut { after });
        }
        if view < self.history.last().view {
            return Err(ReplayError::Gap { position: position.0, last: last.position.0 });
        }
        self.history.push(entry.clone());
        steps.push(Step::Entry { entry });
        Ok(())
    }

    fn stabilise(&mut self, stable: Position, steps: &mut Vec<Step>) {
        let stable = stable.min(self.history.last().position);
        if stable > self.stable {
            self.stable = stable;
            steps.push(Step::Stable { upto: stable });
            self.history.evict(stable, self.kept_bytes);
        }
    }

    /// How far the stream goes.
    pub fn last(&self) -> EntryId {
        self.history.last()
    }

    /// Whether what was read so far is all of the group.
    pub fn is_whole(&self) -> bool {
        if self.started { self.contents == Contents::Whole } else { !self.skipped }
    }

    /// What the replica begins with. `None`: the log says nothing of the group.
    pub fn finish(self) -> Option<Restored> {
        if !self.started && !self.skipped {
            return None;
        }
        let contents = if self.is_whole() { Contents::Whole } else { Contents::Partial };
        let last = self.history.last().position;
        let kept = self.history.read(Position(self.history.base().position.0 + 1), usize::MAX);
        let history = self.history.views_from(Position(last.0 - kept.len() as u64)).collect();
        Some(Restored { contents, stable: self.stable, history, kept })
    }
}
