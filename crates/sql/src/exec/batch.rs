//! Batched key joins: rows are gathered before a table that is looked up by an index, and all their keys are read in
//! one call.
//!
//! A row that comes to such a table is copied into a [`Batch`] with its key. When the batch is full, or no more rows come,
//! the keys are read partition by partition ([`rauk_node::Transaction::get_many`]), which fetches memory ahead, and asks
//! another node once for a batch and not once for a row. Then the gathered rows go on, one by one, in the order in which
//! they came, each with the row that was found for it. The plan says where this is done ([`KeyBatch`]): for plain reads
//! only, and where the order in which expressions are evaluated makes no difference.
//!
//! By a secondary index a lookup is a range and gives any number of rows, from any partition. So a batch asks for a
//! *window* of its ranges at a time ([`rauk_node::Transaction::look_up`]), as many as give about [`BYTES`] of rows;
//! these are a [`Buffer`] in which the rows of one lookup are linked, and the table's step loops over those of the row
//! that goes on. A row whose lookup alone gives more, or that is not known to be one range, reads the table by itself,
//! and so do all rows where a node of an older build leads a part of the table.
//!
//! *Size.* The first batch has [`FIRST`] rows, and no more than LIMIT wants; each full one is followed by one twice as
//! large, up to [`MOST`] rows. A batch also ends with the row that reaches [`BYTES`], and all of it is counted as memory
//! of the statement.
//!
//! *Errors.* Conditions before the table are evaluated on rows that the rows before them have not left behind yet. When one
//! fails, the rows that have been gathered go on first: where they satisfy the LIMIT, the statement does not fail
//! ([`drain`]).

use super::answer::ends_statement;
use super::buffer::{Buffer, NO_ROW};
use super::keys::{SingleKey, single_key, single_range};
use super::query::Running;
use super::row::{Joined, Part};
use super::select::Run;
use crate::expr::Context;
use crate::memory::{Memory, values_bytes};
use crate::physical::model::{Access, IndexAccess, KeyBatch, SelectPlan, Source, Step};
use rauk_node::Spans;
use rauk_node::bulk::Keys;
use rauk_types::error::codes;
use rauk_types::{IndexId, MysqlError, RowView, Value};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Rows of the first batch.
const FIRST: usize = 16;
/// Rows of the largest.
const MOST: usize = 1024;
/// Bytes of gathered rows, and of rows that were found for them, from which on no more are taken.
const BYTES: usize = 256 << 10;
/// What a row's key takes beside its bytes: its end, and what was found by it.
const BESIDE_KEY: usize = size_of::<Wanted>() + size_of::<Option<(u16, Range<usize>)>>() + 2 * size_of::<usize>();

/// What a row that was found takes beside its bytes: its place, and the next one.
const BESIDE_ROW: usize = 24;

/// Rows before one table that is looked up by key.
pub(super) struct Batch<'a> {
    plan: &'a KeyBatch,
    access: &'a IndexAccess,
    way: Way,
    rows: Rows,
    /// When it is full.
    size: usize,
    /// Ranges that are looked up together.
    window: usize,
    state: State,
}

/// What is looked up for a row.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A whole key of the primary key.
    Primary,
    /// A whole key of a unique index.
    Unique,
    /// A range of an index.
    Range,
}

/// What the batch does when a row comes to its steps.
#[derive(Clone, Copy)]
enum State {
    Gathers,
    /// A gathered row goes on, and a row was found for it or not.
    Runs(bool),
    /// A gathered row goes on, and this row of the step's buffer is the first of those that were found for it.
    RunsLinked(u32),
    /// A gathered row goes on whose key is not known: the table is read for it.
    RunsAlone,
}

/// A part of a gathered row.
enum HeldPart {
    Stored { table: usize, layout: u16, bytes: Range<usize> },
    Values { table: usize, values: Range<usize> },
    Null { table: usize },
}

/// What is to be looked up for a gathered row.
#[derive(Clone, Copy)]
enum Wanted {
    Nothing,
    /// The key, or the range, of this number.
    Key(usize),
    /// Not one key.
    Unknown,
}

/// Gathered rows, their keys, and what was found.
#[derive(Default)]
struct Rows {
    /// Of all rows, the parts of one from its last table to its first.
    parts: Vec<HeldPart>,
    /// One a row: where its parts end.
    ends: Vec<usize>,
    wanted: Vec<Wanted>,
    bytes: Vec<u8>,
    values: Vec<Value>,
    /// Of the statement's memory: for `values` and `keys`, with what stands beside these.
    values_taken: usize,
    keys: Keys,
    spans: Spans,
    /// Room for the high end of a range.
    high: Vec<u8>,
    /// By key: whether it was read, and what was found.
    done: Vec<bool>,
    found: Vec<Option<(u16, Range<usize>)>>,
    found_bytes: Vec<u8>,
    /// Of the statement's memory: for `bytes` and `found_bytes`.
    taken: usize,
    memory: Option<Memory>,
}

impl<'a> Batch<'a> {
    /// The batches of a block. `demand`: how many rows end it.
    pub fn all(plan: &'a SelectPlan, demand: Option<u64>, context: &Context) -> Vec<Batch<'a>> {
        let first = demand.map_or(FIRST, |demand| demand.clamp(1, FIRST as u64) as usize);
        let batch = |of: &'a KeyBatch| {
            let Step::Scan(level) = &plan.steps[of.level] else { unreachable!("a batch is of a table") };
            let (access, way) = match &level.access {
                Access::Primary(access) => (access, Way::Primary),
                Access::Unique(access) => (access, Way::Unique),
                Access::Range(access) => (access, Way::Range),
                _ => unreachable!("a batch is of a table that is looked up by an index"),
            };
            let rows = Rows::new(&context.budget.memory);
            Batch { plan: of, access, way, rows, size: first, window: MOST, state: State::Gathers }
        };
        plan.batches.iter().map(batch).collect()
    }

    pub fn is_full(&self) -> bool {
        self.rows.len() >= self.size || self.rows.bytes.len() + self.rows.values_taken >= BYTES
    }
}

impl<'a> Run<'a> {
    /// The batch that gathers the rows that come to this step.
    #[inline]
    pub(super) fn gathering(&self, at: usize) -> Option<usize> {
        self.batches.iter().position(|batch| batch.plan.at == at && matches!(batch.state, State::Gathers))
    }

    /// Whether a row of the table of this step was found for the row that goes on, where it was looked up in a batch.
    #[inline]
    pub(super) fn looked_up(&self, at: usize) -> Option<bool> {
        let batch = self.batches.iter().find(|batch| batch.plan.level == at)?;
        match batch.state {
            State::Runs(found) => Some(found),
            _ => None,
        }
    }

    /// The first row that was found for the row that goes on, of those in the buffer of this step.
    #[inline]
    pub(super) fn linked(&self, at: usize) -> Option<u32> {
        let batch = self.batches.iter().find(|batch| batch.plan.level == at)?;
        match batch.state {
            State::RunsLinked(first) => Some(first),
            _ => None,
        }
    }

    /// Whether the table of this step is looked up in batches.
    pub(super) fn is_batched(&self, at: usize) -> bool {
        self.batches.iter().any(|batch| batch.plan.level == at)
    }

    /// Takes a row into a batch that is not full.
    pub(super) fn gather(&mut self, batch: usize, row: &Joined<'_>) -> Result<(), MysqlError> {
        let batch = &mut self.batches[batch];
        let mut key = std::mem::take(&mut self.key);
        let mut high = std::mem::take(&mut batch.rows.high);
        key.clear();
        high.clear();
        let known = match batch.way {
            Way::Range => single_range(batch.access, row, self.context, &mut key, &mut high),
            Way::Primary | Way::Unique => single_key(batch.access, row, self.context, &mut key),
        };
        let high_end = (batch.way == Way::Range).then_some(high.as_slice());
        let result = known.and_then(|known| batch.rows.push(row, known, &key, high_end));
        self.key = key;
        batch.rows.high = high;
        result
    }
}

/// Runs what batches from `first` on have gathered when no more rows come, for `result`. After an error the rows that came
/// before it go on; where they are all that is wanted, there is no error.
pub(super) async fn drain(
    run: &mut Run<'_>,
    first: usize,
    mut result: Result<(), MysqlError>,
) -> Result<(), MysqlError> {
    for batch in first..run.batches.len() {
        // The last row that is wanted may fail itself.
        if run.is_done() || result.as_ref().is_err_and(ends_statement) {
            return result;
        }
        match run_batch(run, batch).await {
            // Of a row that came before.
            Err(error) => result = Err(error),
            Ok(()) if run.is_done() => return Ok(()),
            Ok(()) => {}
        }
    }
    result
}

/// Looks up all keys of a batch and lets its rows go on.
pub(super) fn run_batch<'r, 'a: 'r>(run: &'r mut Run<'a>, number: usize) -> Running<'r, ()> {
    Running::new(async move {
        let batch = &mut run.batches[number];
        assert!(matches!(batch.state, State::Gathers), "a batch runs once at a time");
        if batch.rows.len() == 0 {
            return Ok(());
        }
        let full = batch.is_full();
        let mut rows = std::mem::take(&mut batch.rows);
        let (large, result) = run_rows(run, number, &mut rows).await;
        rows.clear();
        let batch = &mut run.batches[number];
        batch.rows = rows;
        batch.state = State::Gathers;
        batch.size = match large {
            true => (batch.size / 2).max(1),
            false if full => (batch.size * 2).min(MOST),
            false => batch.size,
        };
        match result {
            Ok(()) => Ok(()),
            Err(error) => drain(run, number + 1, Err(error)).await,
        }
    })
}

/// Gives as well whether the rows that were found are large.
async fn run_rows(run: &mut Run<'_>, number: usize, rows: &mut Rows) -> (bool, Result<(), MysqlError>) {
    let plan = run.plan;
    let KeyBatch { at, level } = *run.batches[number].plan;
    let Step::Scan(of) = &plan.steps[level] else { unreachable!("a batch is of a table") };
    let zone = run.context.time_zone.clone();
    let root = Joined::root(&zone);
    let ranges = run.batches[number].way == Way::Range;
    let mut window = Window::default();
    let mut large = false;
    if !ranges && let Err(error) = look_up(run, number, rows, None).await {
        return (large, Err(error));
    }
    let found_bytes = rows.found_bytes.len();
    let mut result = Ok(());
    for row in 0..rows.len() {
        if run.is_done() {
            break;
        }
        if let Wanted::Key(key) = rows.wanted[row] {
            let looked = match ranges {
                true if !window.has(key) => window.look_up(run, number, rows, key).await,
                false if !rows.done[key] => {
                    // The rows that were found first are large.
                    large = true;
                    rows.found_bytes.truncate(found_bytes);
                    look_up(run, number, rows, Some(key)).await
                }
                _ => Ok(()),
            };
            if let Err(error) = looked {
                result = Err(error);
                break;
            }
        }
        let (parts, state) = rows.row(row, of.table, &plan.sources, ranges.then_some(&window));
        run.batches[number].state = state;
        let joined = root.with(usize::MAX, Part::Several(&parts));
        let before = run.alone;
        run.alone |= matches!(state, State::RunsAlone);
        result = run.advance(at, &joined).await;
        run.alone = before;
        if result.is_err() {
            break;
        }
    }
    if ranges {
        window.end(run, level, rows);
    }
    (large, result)
}

/// Ranges whose rows are in the buffer of the table's step.
#[derive(Default)]
struct Window {
    numbers: Range<usize>,
    /// Of each: the first and the last of its rows.
    ends: Vec<(u32, u32)>,
    /// One range gives too many rows, or ranges cannot be looked up: the table is read for the row.
    alone: bool,
    /// Another node knows no lookups.
    elsewhere: bool,
}

impl Window {
    fn has(&self, number: usize) -> bool {
        self.numbers.contains(&number)
    }

    /// The first row of a range; `None`: the table is read for it.
    fn first(&self, number: usize) -> Option<u32> {
        let ends = self.ends.get(number - self.numbers.start)?;
        (!self.alone).then_some(ends.0)
    }

    /// Looks up as many ranges from `first` on as give few bytes of rows.
    async fn look_up(&mut self, run: &mut Run<'_>, batch: usize, rows: &Rows, first: usize) -> Result<(), MysqlError> {
        let plan = run.plan;
        let at = run.batches[batch].plan.level;
        let Step::Scan(level) = &plan.steps[at] else { unreachable!("a batch is of a table") };
        let Some(table) = plan.sources[level.table].handle() else { unreachable!("it is a stored table") };
        let index = table.schema().indexes[run.batches[batch].access.index].id;
        let memory = run.context.budget.memory.clone();
        let mut buffer = Buffer::linked(table.schema().clone());
        loop {
            self.end(run, at, rows);
            let wanted = if self.elsewhere { 1 } else { run.batches[batch].window };
            self.numbers = first..rows.spans.len().min(first + wanted);
            self.ends.resize(self.numbers.len(), (NO_ROW, NO_ROW));
            if self.elsewhere {
                self.alone = true;
                return Ok(());
            }
            let (mut bytes, mut full) = (0, false);
            let mut failed = None;
            let mut visit = |number: usize, row: RowView<'_>| {
                bytes += row.size() + BESIDE_ROW;
                full = bytes > BYTES;
                if full {
                    return false;
                }
                match buffer.push_linked(&row, &mut self.ends[number - first], &memory) {
                    Ok(()) => true,
                    Err(error) if error.code == codes::OUT_OF_SORTMEMORY => {
                        full = true;
                        false
                    }
                    Err(error) => {
                        failed = Some(error);
                        false
                    }
                }
            };
            let covering = level.covering.as_deref();
            let numbers = self.numbers.clone();
            let here = run.txn.look_up(table, index, covering, &rows.spans, numbers, &mut visit).await;
            if failed.is_some() || full || !matches!(here, Ok(true)) {
                buffer.clear_linked(&memory);
            }
            if let Some(error) = failed {
                return Err(error);
            }
            self.elsewhere = !here?;
            if full {
                run.batches[batch].window = (self.numbers.len() / 4).max(1);
                if self.numbers.len() == 1 {
                    self.alone = true;
                    return Ok(());
                }
                continue;
            }
            if !self.elsewhere {
                if bytes < BYTES / 4 {
                    run.batches[batch].window = (run.batches[batch].window * 2).min(MOST);
                }
                if level.key_order && level.covering.is_none() && run.txn.is_small(table) {
                    let schema = table.schema();
                    let (by, primary) =
                        (&schema.indexes[run.batches[batch].access.index], schema.key_def(schema.primary()));
                    let by = schema.key_def(by);
                    for ends in &mut self.ends {
                        buffer.order_linked(ends, &by, &primary);
                    }
                }
                run.buffers[at] = Some(Arc::new(buffer));
                return Ok(());
            }
        }
    }

    /// The rows of the window have gone on.
    fn end(&mut self, run: &mut Run<'_>, at: usize, rows: &Rows) {
        if let Some(buffer) = run.buffers[at].take()
            && let (Some(mut buffer), Some(memory)) = (Arc::into_inner(buffer), &rows.memory)
        {
            buffer.clear_linked(memory);
        }
        self.ends.clear();
        self.numbers = 0..0;
        self.alone = false;
    }
}

/// Reads the keys of a batch until what is found is large, or one of them.
async fn look_up(run: &mut Run<'_>, number: usize, rows: &mut Rows, only: Option<usize>) -> Result<(), MysqlError> {
    let batch = &run.batches[number];
    let Step::Scan(level) = &run.plan.steps[batch.plan.level] else { unreachable!("a batch is of a table") };
    let Some(table) = run.plan.sources[level.table].handle() else { unreachable!("it is a stored table") };
    let index = match batch.way == Way::Unique {
        true => table.schema().indexes[batch.access.index].id,
        false => IndexId::PRIMARY,
    };
    let mut failed = None;
    let Rows { keys, done, found, found_bytes, taken, memory, .. } = rows;
    let mut visit = |key: usize, row: Option<RowView<'_>>| {
        let Some(row) = row else { return true };
        if let Err(error) = reserve(found_bytes, row.size(), taken, memory.as_ref()) {
            failed.get_or_insert(error);
            return false;
        }
        let start = found_bytes.len();
        row.append_to(found_bytes);
        found[key] = Some((row.layout(), start..found_bytes.len()));
        found_bytes.len() < BYTES
    };
    match only {
        None => run.txn.get_many(table, index, keys, done, &mut visit).await?,
        Some(key) => {
            let mut alone = Keys::default();
            alone.push(keys.get(key));
            let mut visit = |_: usize, row: Option<RowView<'_>>| visit(key, row);
            run.txn.get_many(table, index, &alone, &mut done[key..=key], &mut visit).await?;
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Makes room for more bytes, and counts it.
fn reserve(bytes: &mut Vec<u8>, more: usize, taken: &mut usize, memory: Option<&Memory>) -> Result<(), MysqlError> {
    if bytes.capacity() - bytes.len() >= more {
        return Ok(());
    }
    let before = bytes.capacity();
    let wanted = (bytes.len() + more).max(before * 2).max(1024);
    if let Some(memory) = memory {
        memory.take(wanted - before)?;
        *taken += wanted - before;
    }
    bytes.reserve_exact(wanted - bytes.len());
    Ok(())
}

impl Rows {
    fn new(memory: &Memory) -> Rows {
        let mut rows = Rows::default();
        rows.memory = Some(memory.clone());
        rows
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// Copies a row. On an error it is as it was, but for memory.
    fn push(&mut self, row: &Joined<'_>, known: SingleKey, key: &[u8], high: Option<&[u8]>) -> Result<(), MysqlError> {
        let (parts, bytes, values) = (self.parts.len(), self.bytes.len(), self.values.len());
        let more = key.len() + high.map_or(0, <[u8]>::len) + BESIDE_KEY;
        if let Err(error) = self.push_parts(row).and_then(|()| self.take(more)) {
            self.parts.truncate(parts);
            self.bytes.truncate(bytes);
            self.values.truncate(values);
            return Err(error);
        }
        self.ends.push(self.parts.len());
        self.wanted.push(match (known, high) {
            (SingleKey::Key, Some(high)) => {
                self.spans.push(key, (!high.is_empty()).then_some(high));
                Wanted::Key(self.spans.len() - 1)
            }
            (SingleKey::Key, None) => {
                self.keys.push(key);
                self.done.push(false);
                self.found.push(None);
                Wanted::Key(self.done.len() - 1)
            }
            (SingleKey::Nothing, _) => Wanted::Nothing,
            (SingleKey::Unknown, _) => Wanted::Unknown,
        });
        Ok(())
    }

    fn push_parts(&mut self, row: &Joined<'_>) -> Result<(), MysqlError> {
        let mut next = Some(row);
        while let Some(at) = next {
            match at.part {
                Part::Several(parts) => {
                    parts.iter().try_for_each(|(table, part)| self.push_part(*table, part))?;
                }
                part => self.push_part(at.table, &part)?,
            }
            next = at.outer;
        }
        Ok(())
    }

    fn push_part(&mut self, table: usize, part: &Part<'_>) -> Result<(), MysqlError> {
        match part {
            Part::Root => {}
            Part::Stored(view) => {
                let start = self.bytes.len();
                reserve(&mut self.bytes, view.size(), &mut self.taken, self.memory.as_ref())?;
                view.append_to(&mut self.bytes);
                self.parts.push(HeldPart::Stored { table, layout: view.layout(), bytes: start..self.bytes.len() });
            }
            Part::Values(values) => {
                let (start, more) = (self.values.len(), values_bytes(values));
                self.take(more)?;
                self.values.extend_from_slice(values);
                self.parts.push(HeldPart::Values { table, values: start..self.values.len() });
            }
            // One of several.
            Part::Nulls([]) => self.parts.push(HeldPart::Null { table }),
            Part::Nulls(tables) => self.parts.extend(tables.iter().map(|&table| HeldPart::Null { table })),
            Part::Several(_) => unreachable!("several parts have none that is several"),
        }
        Ok(())
    }

    /// Counts what is about to be kept until the rows are given up.
    fn take(&mut self, bytes: usize) -> Result<(), MysqlError> {
        if let Some(memory) = &self.memory {
            memory.take(bytes)?;
            self.values_taken += bytes;
        }
        Ok(())
    }

    /// The parts of a row, with what was found for it; `window`: by ranges.
    fn row<'s>(
        &'s self,
        row: usize,
        table: usize,
        sources: &'s [Source],
        window: Option<&Window>,
    ) -> (SmallVec<[(usize, Part<'s>); 6]>, State) {
        let schema = |table: usize| sources[table].schema();
        let mut parts = SmallVec::new();
        let state = match (self.wanted[row], window) {
            (Wanted::Unknown, _) => State::RunsAlone,
            (Wanted::Nothing, _) => State::Runs(false),
            (Wanted::Key(range), Some(window)) => window.first(range).map_or(State::RunsAlone, State::RunsLinked),
            (Wanted::Key(key), None) => match &self.found[key] {
                Some((layout, bytes)) => {
                    let view = RowView::new(schema(table), *layout, &self.found_bytes[bytes.clone()]);
                    parts.push((table, Part::Stored(view)));
                    State::Runs(true)
                }
                None => State::Runs(false),
            },
        };
        let first = if row == 0 { 0 } else { self.ends[row - 1] };
        for part in &self.parts[first..self.ends[row]] {
            parts.push(match part {
                HeldPart::Stored { table, layout, bytes } => {
                    (*table, Part::Stored(RowView::new(schema(*table), *layout, &self.bytes[bytes.clone()])))
                }
                HeldPart::Values { table, values } => (*table, Part::Values(&self.values[values.clone()])),
                HeldPart::Null { table } => (*table, Part::Nulls(&[])),
            });
        }
        (parts, state)
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.ends.clear();
        self.wanted.clear();
        self.bytes.clear();
        self.values.clear();
        self.keys.clear();
        self.spans.clear();
        self.done.clear();
        self.found.clear();
        self.found_bytes.clear();
        if let Some(memory) = &self.memory {
            memory.give(std::mem::take(&mut self.values_taken));
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory {
            memory.give(self.taken + self.values_taken);
        }
    }
}
