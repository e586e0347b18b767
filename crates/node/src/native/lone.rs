//! Batches outside of transactions: each operation for itself.
//!
//! Operations that only read, or only write, one table by its primary key go many at a time through the bulk calls, one hold of a partition for all that are in it;
//! the rest have a transaction each. Operations on the same key keep their order: keys that were read and keys that were written are remembered, and
//! what meets a key again first lets everything go that was gathered for its table. All others are free.
//!
//! In a cluster commits are replicated, and the bulk writes are not: there every write has a transaction of its own, and many run at the same time ([`IN_FLIGHT`]), under the same rule for keys.

use super::answer::{Answer, Effect, written};
use super::execute::{Executor, has_key};
use super::failure;
use super::image::{self, Number, Refs};
use super::operation::Op;
use super::session::Call;
use super::shape::{Prepared, Way};
use crate::bulk::{Found, Keys, Unwritten, Verb};
use crate::transaction::{Isolation, TxnOptions};
use crate::{NodeError, TableHandle};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rauk_types::error::codes;
use rauk_types::row::encode_refs;
use rauk_types::{ErrorClass, IndexId, Timestamp, ValueRef, key};
use rauk_wire::{Failure, OpKind, Wanted};
use rustc_hash::{FxHashMap, FxHashSet};
use std::future::Future;
use std::pin::Pin;

/// How often an operation that was a deadlock's victim is tried again.
const RETRIES: u32 = 8;
/// Transactions of one batch that run at the same time, in a cluster.
const IN_FLIGHT: usize = 64;

/// Operations on one table that are free to go together.
struct Gathered<'e> {
    table: &'e TableHandle,
    /// Whether operations on it go different ways, so that their order may matter.
    mixed: bool,
    read_keys: Keys,
    reads: Vec<u16>,
    /// Hashes of `read_keys`, where it matters.
    read: FxHashSet<u64>,
    write_keys: Keys,
    writes: Vec<Write>,
    /// The rows that inserts store, one after the other: beside the writes, so that those stay small.
    rows: Vec<ValueRef<'e>>,
    /// The last write of each key, by its hash.
    written: FxHashMap<u64, usize>,
    /// Writes that have a transaction each, in a cluster.
    beside: Vec<u16>,
    /// An insert brings a number of its own: those that get theirs from the counter come after it.
    explicit: bool,
}

/// A write that waits to be done.
struct Write {
    operation: u16,
    /// Where the row begins that an insert stores.
    row: Option<u32>,
    /// Why that row cannot be stored: the upsert of one that is there does not need all of it.
    incomplete: Option<Box<Failure>>,
    /// Of a row that has been given its numbers; an upsert gets them only when it inserts.
    number: Option<Number>,
    /// An earlier write of the same key.
    previous: Option<usize>,
}

/// Executes all operations and gives the answer's frame.
pub async fn run(
    call: &mut Call<'_>,
    executor: &Executor<'_, '_>,
    mut answer: Answer,
    lock_wait_ms: u32,
) -> Result<Vec<u8>, Failure> {
    let answer_to = &mut answer;
    let mut tables: Vec<Gathered<'_>> = Vec::new();
    let (mut encoded, mut row) = (Vec::new(), Vec::new());
    for (i, op) in executor.operations.list.iter().enumerate() {
        let number = i as u16;
        if matches!(op.kind, OpKind::Savepoint | OpKind::RollbackTo) {
            let text = "Incorrect usage of savepoints and a batch without transaction";
            answer_to.failed(number, failure::refused(codes::WRONG_USAGE, text));
            continue;
        }
        if let Some(refused) = &op.refused {
            answer_to.failed(number, (**refused).clone());
            continue;
        }
        let shape = &executor.shapes[op.shape];
        let id = shape.schema().id;
        let at = tables.iter().position(|t| t.table.schema().id == id).unwrap_or_else(|| {
            tables.push(Gathered::new(shape, executor.shapes, executor.operations.list.len()));
            tables.len() - 1
        });
        let table = &mut tables[at];
        match shape.way {
            Way::Read => {
                if table.mixed {
                    let hash = key::hash(op.key);
                    if table.written.contains_key(&hash) {
                        flush(call, executor, table, answer_to, lock_wait_ms).await;
                    }
                    table.read.insert(hash);
                }
                table.read_keys.push(op.key);
                table.reads.push(number);
            }
            Way::Write if executor.database.node.cluster().is_some() => {
                let hash = key_hash(executor, op, &mut encoded);
                let met = |hash: u64| table.written.contains_key(&hash) || table.read.contains(&hash);
                if hash.is_some_and(met) || table.explicit && asks_for_number(executor, op) {
                    flush(call, executor, table, answer_to, lock_wait_ms).await;
                }
                table.explicit |= brings_number(executor, op);
                if let Some(hash) = hash {
                    table.written.insert(hash, table.beside.len());
                }
                table.beside.push(number);
            }
            Way::Write => {
                if table.explicit && asks_for_number(executor, op) {
                    flush(call, executor, table, answer_to, lock_wait_ms).await;
                }
                encoded.clear();
                row.clear();
                let write = match prepare(executor, op, number, &mut row, &mut encoded) {
                    Ok(write) => write,
                    Err(effect) => {
                        answer_to.put(number, &shape.shape.wanted, shape.schema(), effect);
                        continue;
                    }
                };
                let key = if row.is_empty() { op.key } else { &encoded[..] };
                let hash = key::hash(key);
                if table.mixed && table.read.contains(&hash) {
                    flush(call, executor, table, answer_to, lock_wait_ms).await;
                }
                table.explicit |= matches!(write.number, Some(Number::Explicit(_)));
                let previous = table.written.insert(hash, table.writes.len());
                table.write_keys.push(key);
                let at = (!row.is_empty()).then_some(table.rows.len() as u32);
                table.rows.extend_from_slice(&row);
                table.writes.push(Write { row: at, previous, ..write });
            }
            Way::Alone => {
                flush(call, executor, table, answer_to, lock_wait_ms).await;
                alone(call, executor, op, number, answer_to, lock_wait_ms).await;
            }
        }
    }
    for table in &mut tables {
        flush(call, executor, table, answer_to, lock_wait_ms).await;
    }
    Ok(answer.finish(false, false))
}

impl<'e> Gathered<'e> {
    fn new(shape: &'e Prepared<'e>, shapes: &[Prepared<'_>], operations: usize) -> Gathered<'e> {
        let id = shape.schema().id;
        let mixed = shapes.iter().any(|other| other.schema().id == id && other.way != shape.way);
        let writes = if shape.way == Way::Write { operations } else { 0 };
        Gathered {
            table: &shape.table,
            mixed,
            read_keys: Keys::default(),
            reads: Vec::new(),
            read: FxHashSet::default(),
            write_keys: Keys::default(),
            writes: Vec::with_capacity(writes),
            rows: Vec::new(),
            written: FxHashMap::with_capacity_and_hasher(writes, Default::default()),
            beside: Vec::new(),
            explicit: false,
        }
    }

    fn clear(&mut self) {
        self.read_keys.clear();
        self.reads.clear();
        self.read.clear();
        self.write_keys.clear();
        self.writes.clear();
        self.rows.clear();
        self.written.clear();
        self.beside.clear();
        self.explicit = false;
    }
}

/// Whether an insert gets its number from the AUTO_INCREMENT counter.
fn asks_for_number(executor: &Executor<'_, '_>, op: &Op<'_>) -> bool {
    let shape = &executor.shapes[op.shape];
    let Some(column) = shape.schema().auto_increment else { return false };
    let given = shape.shape.columns.iter().position(|&c| usize::from(c) == column);
    let given = given.map(|at| executor.operations.values(op)[at].as_counted());
    matches!(op.kind, OpKind::Insert | OpKind::Write) && matches!(given.flatten(), None | Some(0))
}

/// Makes a write ready; an insert's row is put into `made`, and its key encoded.
fn prepare<'e>(
    executor: &Executor<'e, '_>,
    op: &'e Op<'_>,
    operation: u16,
    made: &mut Vec<ValueRef<'e>>,
    key: &mut Vec<u8>,
) -> Result<Write, Effect> {
    let shape = &executor.shapes[op.shape];
    let mut write = Write { operation, row: None, incomplete: None, number: None, previous: None };
    if !matches!(op.kind, OpKind::Insert | OpKind::Write) {
        return Ok(write);
    }
    let values = executor.operations.values(op);
    let (mut row, incomplete) = image::new_row(shape.schema(), &shape.shape.columns, values, executor.now);
    if let Some(failure) = incomplete {
        if op.kind == OpKind::Insert || !has_key(shape, &row) {
            return Err(Effect::failed(failure));
        }
        image::encode_key(shape.table.primary_key(), &row, key);
        write.incomplete = Some(Box::new(failure));
        made.extend_from_slice(&row);
        return Ok(write);
    }
    // An upsert may find its row, and then needs no number.
    if op.kind == OpKind::Insert || !has_key(shape, &row) {
        let number = image::number_alone(executor.database, &shape.table, &mut row);
        write.number = Some(number.map_err(|error| Effect::failed(failure::of_node(error)))?);
    }
    image::check_keys(shape.schema(), &row).map_err(Effect::failed)?;
    image::encode_key(shape.table.primary_key(), &row, key);
    made.extend_from_slice(&row);
    Ok(write)
}

/// Executes what was gathered for a table.
async fn flush(
    call: &mut Call<'_>,
    executor: &Executor<'_, '_>,
    table: &mut Gathered<'_>,
    answer: &mut Answer,
    lock_wait_ms: u32,
) {
    if table.reads.is_empty() && table.writes.is_empty() && table.beside.is_empty() {
        return;
    }
    // A DDL in the way is waited for here, where deadlines and cancels end the wait: the bulk calls would wait for it regardless.
    let options = call.session.options(Isolation::RepeatableRead, true, true, lock_wait_ms, &call.interrupt);
    let mut txn = executor.database.begin(options);
    let passed = match table.writes.is_empty() && table.beside.is_empty() {
        true => txn.use_table(table.table).await,
        false => txn.use_table_to_write(table.table).await,
    };
    drop(txn);
    if let Err(error) = passed {
        let failure = Failure { ended: false, ..call.failure(error) };
        let writes = table.writes.iter().map(|w| w.operation).chain(table.beside.iter().copied());
        let all = table.reads.iter().copied().chain(writes);
        all.for_each(|operation| answer.failed(operation, failure.clone()));
    } else {
        if !table.reads.is_empty() {
            flush_reads(call, executor, table, answer).await;
        }
        if !table.writes.is_empty() {
            flush_writes(call, executor, table, answer, lock_wait_ms).await;
        }
        if !table.beside.is_empty() {
            flush_beside(call, executor, &table.beside, answer, lock_wait_ms).await;
        }
    }
    table.clear();
}

async fn flush_reads(call: &mut Call<'_>, executor: &Executor<'_, '_>, table: &mut Gathered<'_>, answer: &mut Answer) {
    let reads = &table.reads;
    let mut done = vec![false; reads.len()];
    let mut visit = |i: usize, found: Found<'_>| {
        let op = &executor.operations.list[usize::from(reads[i])];
        let wanted = &executor.shapes[op.shape].shape.wanted;
        match found {
            Some((layout, row)) => answer.row(reads[i], wanted, layout, &row),
            None => answer.missing(reads[i]),
        }
    };
    let result = executor.database.read_many(table.table, &table.read_keys, &mut done, &mut visit).await;
    match result {
        Ok(time) => call.saw(time),
        Err(error) => {
            // What was visited before it stays answered: it may have been seen.
            call.saw(executor.database.newest_commit());
            let failure = Failure { ended: false, ..call.failure(error) };
            let left = reads.iter().zip(&done).filter(|(_, done)| !**done);
            left.for_each(|(&number, _)| answer.failed(number, failure.clone()));
        }
    }
}

async fn flush_writes(
    call: &mut Call<'_>,
    executor: &Executor<'_, '_>,
    table: &mut Gathered<'_>,
    answer: &mut Answer,
    lock_wait_ms: u32,
) {
    let (writes, rows) = (&table.writes, &table.rows[..]);
    let mut effects: Vec<Option<Effect>> = Vec::new();
    effects.resize_with(writes.len(), || None);
    let mut done = vec![false; writes.len()];
    let mut unwritten = Unwritten::default();
    let mut change = |i: usize, found: Found<'_>, out: &mut Vec<u8>| {
        let write = &writes[i];
        // An earlier write of this key was left: this one comes after it.
        if write.previous.is_some_and(|previous| effects[previous].is_none()) {
            return Verb::Keep;
        }
        let (verb, effect) = apply(executor, write, rows, found, out);
        effects[i] = Some(effect);
        verb
    };
    let result =
        executor.database.write_many(table.table, &table.write_keys, &mut done, &mut unwritten, &mut change).await;
    match result {
        Ok(time) => call.saw(time),
        Err(error) => {
            call.saw(executor.database.newest_commit());
            let failure = Failure { ended: false, ..call.failure(error) };
            for effect in &mut effects {
                // Changes come before an error only when the log is lost.
                let class = if effect.is_some() { ErrorClass::UnknownOutcome } else { failure.class };
                *effect = Some(Effect::failed(Failure { class, ..failure.clone() }));
            }
        }
    }
    for (i, error) in unwritten.failed {
        effects[i] = Some(Effect::failed(Failure { ended: false, ..call.failure(error) }));
    }
    for (write, effect) in writes.iter().zip(effects) {
        let op = &executor.operations.list[usize::from(write.operation)];
        let shape = &executor.shapes[op.shape];
        match effect {
            Some(effect) => {
                if let (Some(Number::Explicit(value)), Effect::Done(_) | Effect::Row(..)) = (write.number, &effect) {
                    observe(executor, shape, value);
                }
                answer.put(write.operation, &shape.shape.wanted, shape.schema(), effect);
            }
            None => alone(call, executor, op, write.operation, answer, lock_wait_ms).await,
        }
    }
}

/// The counter goes above an explicit number. The row is there: that the log could not take the counter's new bound does not undo it.
fn observe(executor: &Executor<'_, '_>, shape: &Prepared<'_>, value: u64) {
    let counter = &shape.table.info().shared.auto_increment;
    if let Err(error) = counter.observe(value, &executor.database.node.log) {
        tracing::warn!(%error, "an AUTO_INCREMENT counter could not be raised");
    }
}

/// What a write makes of its row, in the partition's hold.
fn apply(
    executor: &Executor<'_, '_>,
    write: &Write,
    rows: &[ValueRef<'_>],
    found: Found<'_>,
    out: &mut Vec<u8>,
) -> (Verb, Effect) {
    let op = &executor.operations.list[usize::from(write.operation)];
    let shape = &executor.shapes[op.shape];
    let (schema, wanted) = (shape.schema(), &shape.shape.wanted);
    let Some((layout, row)) = found else {
        return match write.row {
            Some(_) if let Some(failure) = &write.incomplete => (Verb::Keep, Effect::Failed(failure.clone())),
            Some(start) => {
                let start = start as usize;
                insert(executor, shape, write, &rows[start..start + schema.columns.len()], out)
            }
            None => (Verb::Keep, Effect::Missing),
        };
    };
    if op.kind == OpKind::Insert || op.kind == OpKind::Write && write.number.is_some() {
        return (Verb::Keep, Effect::Duplicate(IndexId::PRIMARY));
    }
    if op.condition.as_ref().is_some_and(|condition| !condition.passes(&row)) {
        return (Verb::Keep, Effect::ConditionFalse);
    }
    let stored = |layout: u16, row: &dyn Fn() -> Vec<u8>| match wanted {
        Wanted::Nothing => Effect::Done(None),
        _ => Effect::Row(layout, row()),
    };
    if op.kind == OpKind::Delete {
        return (Verb::Delete, stored(layout, &|| row.to_whole()));
    }
    let mut new = image::values_of(&row);
    match executor.alter(op, shape, &mut new) {
        Err(failure) => (Verb::Keep, Effect::failed(failure)),
        Ok(false) => (Verb::Keep, stored(layout, &|| row.to_whole())),
        Ok(true) => {
            if schema.auto_increment.is_some()
                && let Some(number) = image::changed_number(schema, &image::values_of(&row), &new)
            {
                observe(executor, shape, number);
            }
            encode_refs(schema, &new, out);
            (Verb::Put, stored(schema.layout().version, &|| out.clone()))
        }
    }
}

fn insert(
    executor: &Executor<'_, '_>,
    shape: &Prepared<'_>,
    write: &Write,
    new: &[ValueRef<'_>],
    out: &mut Vec<u8>,
) -> (Verb, Effect) {
    let schema = shape.schema();
    let mut new: Refs<'_> = new.iter().copied().collect();
    let number = match write.number {
        Some(number) => number,
        None => match image::number_alone(executor.database, &shape.table, &mut new) {
            Ok(number) => {
                if let Number::Explicit(value) = number {
                    observe(executor, shape, value);
                }
                number
            }
            Err(error) => return (Verb::Keep, Effect::failed(failure::of_node(error))),
        },
    };
    encode_refs(schema, &new, out);
    (Verb::Put, written(&shape.shape.wanted, schema, &new, number.generated()))
}

/// The hash of the primary key that an operation is about, if it is known before the operation is executed.
fn key_hash(executor: &Executor<'_, '_>, op: &Op<'_>, encoded: &mut Vec<u8>) -> Option<u64> {
    if !matches!(op.kind, OpKind::Insert | OpKind::Write) {
        return Some(key::hash(op.key));
    }
    let shape = &executor.shapes[op.shape];
    let (row, _) = image::new_row(shape.schema(), &shape.shape.columns, executor.operations.values(op), executor.now);
    has_key(shape, &row).then(|| {
        encoded.clear();
        image::encode_key(shape.table.primary_key(), &row, encoded);
        key::hash(encoded)
    })
}

/// Whether an insert brings the number of its AUTO_INCREMENT column.
fn brings_number(executor: &Executor<'_, '_>, op: &Op<'_>) -> bool {
    let numbered = executor.shapes[op.shape].schema().auto_increment.is_some();
    numbered && matches!(op.kind, OpKind::Insert | OpKind::Write) && !asks_for_number(executor, op)
}

/// Writes of different keys, a transaction each.
async fn flush_beside(
    call: &mut Call<'_>,
    executor: &Executor<'_, '_>,
    writes: &[u16],
    answer: &mut Answer,
    lock_wait_ms: u32,
) {
    let options = call.session.options(Isolation::RepeatableRead, false, true, lock_wait_ms, &call.interrupt);
    let mut rest = writes.iter();
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < IN_FLIGHT
            && let Some(&number) = rest.next()
        {
            running.push(beside(executor, options.clone(), number));
        }
        let Some((number, (time, result))) = running.next().await else { return };
        call.saw(time);
        let op = &executor.operations.list[usize::from(number)];
        let shape = &executor.shapes[op.shape];
        let effect = result.unwrap_or_else(|error| Effect::failed(Failure { ended: false, ..call.failure(error) }));
        answer.put(number, &shape.shape.wanted, shape.schema(), effect);
    }
}

type Once = (Timestamp, Result<Effect, NodeError>);

/// A write, which puts nothing into the answer while it runs.
fn beside<'a>(
    executor: &'a Executor<'_, '_>,
    options: TxnOptions,
    number: u16,
) -> Pin<Box<dyn Future<Output = (u16, Once)> + Send + 'a>> {
    let op = &executor.operations.list[usize::from(number)];
    Box::pin(
        async move { (number, once_or_again(executor, options, op, number, &mut Answer::new(Vec::new(), 0)).await) },
    )
}

/// One operation in a transaction of its own, and its answer.
async fn alone(
    call: &mut Call<'_>,
    executor: &Executor<'_, '_>,
    op: &Op<'_>,
    number: u16,
    answer: &mut Answer,
    lock_wait_ms: u32,
) {
    let options = call.session.options(Isolation::RepeatableRead, false, true, lock_wait_ms, &call.interrupt);
    let (time, result) = once_or_again(executor, options, op, number, answer).await;
    call.saw(time);
    // It was all of its transaction: nothing of that is left to be ended.
    let effect = result.unwrap_or_else(|error| Effect::failed(Failure { ended: false, ..call.failure(error) }));
    let shape = &executor.shapes[op.shape];
    answer.put(number, &shape.shape.wanted, shape.schema(), effect);
}

/// Until it is nobody's victim; and the newest commit that it has seen or made.
async fn once_or_again(
    executor: &Executor<'_, '_>,
    options: TxnOptions,
    op: &Op<'_>,
    number: u16,
    answer: &mut Answer,
) -> Once {
    let mark = answer.mark();
    let mut seen = Timestamp::ZERO;
    for attempt in 0.. {
        let (time, result) = once(executor, options.clone(), op, number, answer).await;
        seen = seen.max(time);
        match result {
            Ok(effect) => return (seen, Ok(effect)),
            Err(error) => {
                answer.undo(mark);
                let victim = matches!(error, NodeError::Deadlock | NodeError::Moved { .. });
                if !victim || attempt >= RETRIES {
                    return (seen, Err(error));
                }
            }
        }
    }
    unreachable!("it has ended")
}

async fn once(executor: &Executor<'_, '_>, options: TxnOptions, op: &Op<'_>, number: u16, answer: &mut Answer) -> Once {
    let mut txn = executor.database.begin(options);
    let table = &executor.shapes[op.shape].table;
    let used = match op.kind {
        OpKind::Read => txn.use_table(table).await,
        _ => txn.use_table_to_write(table).await,
    };
    if let Err(error) = used {
        return (Timestamp::ZERO, Err(error));
    }
    txn.begin_statement();
    let result = executor.run(&mut txn, op, number, answer).await;
    let seen = txn.observed();
    match result {
        Err(error) => (seen, Err(error)),
        Ok(effect) if effect.is_failure() => {
            txn.rollback();
            (seen, Ok(effect))
        }
        Ok(effect) => {
            let (time, committed) = txn.commit_in_memory().await;
            (seen.max(time), committed.map(|()| effect))
        }
    }
}
