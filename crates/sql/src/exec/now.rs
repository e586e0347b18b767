//! The part of a join that needs no waiting: steps over tables that are in memory.
//!
//! Where all tables from a step on are kept in memory, or have been looked up already ([`super::batch`]), their loops are
//! plain calls, one inside of the other: no future, and no allocation for a row. Such loops may still be long, and others
//! of the thread must have their turn. So a loop *pauses*: it puts a [`Frame`] that says where it stands on a list, and
//! returns; the loops around it do the same. After the turn the outermost loop is called again with the same row, and each
//! loop takes its frame and goes on. The list is empty while nothing is paused.
//!
//! A block whose expressions wait for subqueries, or whose steps are measured, does not come here.

use super::buffer::{Buffer, Candidates};
use super::row::{Joined, Part};
use super::scan::passes;
use super::select::Run;
use crate::physical::model::{Level, Step};
use crate::stack;
use rauk_types::MysqlError;

/// Rows that are looked at between two turns.
const TURN: usize = 64;

/// How steps that need no waiting end.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Done,
    /// They stand where the frames say.
    Paused,
}

/// Where a step stands.
pub(super) struct Frame {
    at: usize,
    place: Place,
}

enum Place {
    /// It has not begun: the batch of keys that it gathers is full.
    Before,
    /// In the tables of a join, or behind a row that was looked up.
    Inside,
    /// Behind an outer join, with its null rows.
    Nulls,
    /// Behind the row of this number.
    Row(Candidates, usize),
    /// Between two rows.
    Between(Candidates),
}

impl Run<'_> {
    /// Runs the steps from `begin` on, which need no waiting, and gives others their turn.
    pub(super) async fn run_now(&mut self, begin: usize, row: &Joined<'_>) -> Result<(), MysqlError> {
        loop {
            let flow = match stack::grow(|| self.now(begin, row)) {
                Ok(flow) => flow,
                Err(error) => {
                    self.paused.clear();
                    return Err(error);
                }
            };
            if flow == Flow::Done {
                assert!(self.paused.is_empty(), "who pauses says so");
                break;
            }
            // What runs meanwhile has frames of its own.
            let frames = std::mem::take(&mut self.paused);
            if let Some(full) = self.full.take() {
                super::batch::run_batch(self, full).await?;
            }
            self.turn_of_looked().await?;
            if self.is_done() {
                return Ok(());
            }
            self.paused = frames;
        }
        if self.looked >= TURN || self.context.budget.is_due() {
            self.turn_of_looked().await?;
        }
        Ok(())
    }

    async fn turn_of_looked(&mut self) -> Result<(), MysqlError> {
        let looked = std::mem::take(&mut self.looked);
        self.turn(looked).await
    }

    fn pause(&mut self, at: usize, place: Place) -> Flow {
        self.paused.push(Frame { at, place });
        Flow::Paused
    }

    fn now(&mut self, begin: usize, row: &Joined<'_>) -> Result<Flow, MysqlError> {
        let plan = self.plan;
        let (mut at, mut place) = match self.paused.pop() {
            Some(Frame { at, place }) => (at, place),
            None => (begin, Place::Before),
        };
        loop {
            if let Some(batch) = self.gathering(at) {
                if self.batches[batch].is_full() {
                    self.full = Some(batch);
                    return Ok(self.pause(at, Place::Before));
                }
                self.gather(batch, row)?;
                return Ok(Flow::Done);
            }
            match plan.steps.get(at) {
                None => {
                    self.output.push(row, self.context)?;
                    return Ok(Flow::Done);
                }
                Some(Step::Leave { group, filters }) => {
                    self.groups.matched[*group] = true;
                    if !passes(filters, row, self.context)? {
                        return Ok(Flow::Done);
                    }
                    at += 1;
                }
                Some(Step::Match { group }) => {
                    self.groups.matched[*group] = true;
                    self.groups.leaving = true;
                    return Ok(Flow::Done);
                }
                Some(Step::Test { group, anti, end }) => {
                    if let Place::Before = std::mem::replace(&mut place, Place::Before) {
                        self.groups.matched[*group] = false;
                    }
                    if self.now(at + 1, row)? == Flow::Paused {
                        return Ok(self.pause(at, Place::Inside));
                    }
                    self.groups.leaving = false;
                    if self.groups.matched[*group] == *anti {
                        return Ok(Flow::Done);
                    }
                    at = end + 1;
                }
                Some(Step::Enter { group, leave, tables }) => {
                    let nulls = row.with(usize::MAX, Part::Nulls(tables));
                    if !matches!(place, Place::Nulls) {
                        if let Place::Before = place {
                            self.groups.matched[*group] = false;
                        }
                        if self.now(at + 1, row)? == Flow::Paused {
                            return Ok(self.pause(at, Place::Inside));
                        }
                        let Some(Step::Leave { filters, .. }) = plan.steps.get(*leave) else {
                            unreachable!("a group ends with its Leave")
                        };
                        if self.groups.matched[*group] || self.is_done() || !passes(filters, &nulls, self.context)? {
                            return Ok(Flow::Done);
                        }
                    }
                    return Ok(match self.now(leave + 1, &nulls)? {
                        Flow::Paused => self.pause(at, Place::Nulls),
                        Flow::Done => Flow::Done,
                    });
                }
                Some(Step::Scan(level)) => {
                    if let Some(found) = self.looked_up(at) {
                        if let Place::Before = place
                            && !(found && passes(&level.filters, row, self.context)?)
                        {
                            return Ok(Flow::Done);
                        }
                        return Ok(match self.now(at + 1, row)? {
                            Flow::Paused => self.pause(at, Place::Inside),
                            Flow::Done => Flow::Done,
                        });
                    }
                    // It is back before another row comes to this step.
                    let buffer = self.buffers[at].take().expect("the table is in memory");
                    let flow = self.loop_now(at, level, &buffer, row, place);
                    self.buffers[at] = Some(buffer);
                    return flow;
                }
            }
        }
    }

    fn loop_now(
        &mut self,
        at: usize,
        level: &Level,
        buffer: &Buffer,
        row: &Joined<'_>,
        place: Place,
    ) -> Result<Flow, MysqlError> {
        let mut candidates = match place {
            Place::Row(candidates, number) => {
                let part = buffer.part(number).expect("the row was there before");
                if self.now(at + 1, &row.with(level.table, part))? == Flow::Paused {
                    return Ok(self.pause(at, Place::Row(candidates, number)));
                }
                if self.is_done() {
                    return Ok(Flow::Done);
                }
                candidates
            }
            Place::Between(candidates) => candidates,
            _ if let Some(first) = self.linked(at) => Candidates::Linked(first),
            _ => {
                let key = &mut self.key;
                if let Some(others) = &level.keys_only {
                    self.looked += 1;
                    let found = passes(others, row, self.context)? && buffer.has_key(level, row, self.context, key)?;
                    return if found { self.now(at + 1, row) } else { Ok(Flow::Done) };
                }
                buffer.candidates(level, row, self.context, key)?
            }
        };
        while let Some((number, part)) = candidates.next(buffer) {
            self.looked += 1;
            let joined = row.with(level.table, part);
            if passes(&level.filters, &joined, self.context)? {
                if self.now(at + 1, &joined)? == Flow::Paused {
                    return Ok(self.pause(at, Place::Row(candidates, number)));
                }
                if self.is_done() {
                    return Ok(Flow::Done);
                }
            }
            if self.looked >= TURN || self.context.budget.is_due() {
                return Ok(self.pause(at, Place::Between(candidates)));
            }
        }
        Ok(Flow::Done)
    }
}
