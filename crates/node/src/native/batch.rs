//! Batches: outside of transactions each operation for itself, in a transaction all in their order as one statement.

use super::answer::{Answer, Effect};
use super::execute::Executor;
use super::failure::{self, ends_transaction, malformed, refused};
use super::lone;
use super::operation::{self, Op, Operations};
use super::rights::is_write;
use super::session::{Answered, Call};
use super::shape::{self, Prepared};
use super::slot::{Held, Slot, Turn};
use crate::NodeError;
use crate::transaction::{Isolation, Savepoint};
use rauk_types::error::codes;
use rauk_wire::batch::Isolation as WireIsolation;
use rauk_wire::{Batch, BatchOptions, Failure, Kind, OpKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub async fn run(call: &mut Call<'_>, frame: &mut Vec<u8>) -> Answered {
    let service = &call.session.service;
    let batch = Batch::parse(&call.request.payload).map_err(malformed)?;
    // The order of arrival is settled before anything is awaited.
    let turn = match call.request.transaction {
        0 => None,
        number if batch.options.begin => Some(begin(call, number, &batch.options)?.enter()),
        number => Some(call.session.transaction(number).ok_or_else(|| failure::not_open(number))?.enter()),
    };
    let result = async {
        let shapes: Result<Vec<Prepared<'_>>, Failure> =
            batch.shapes.iter().map(|s| shape::prepare(&call.session.tables, &service.database, s)).collect();
        let shapes = shapes?;
        call.spend(shapes.iter().any(|prepared| is_write(prepared.shape.kind)))?;
        let operations = operation::read(&batch, &shapes)?;
        if batch.options.commit || shapes.iter().any(|prepared| is_write(prepared.shape.kind)) {
            call.follow_session().await?;
        }
        service.counts.operations.fetch_add(operations.list.len() as u64, Ordering::Relaxed);
        let executor =
            Executor { database: &service.database, operations: &operations, shapes: &shapes, now: (service.clock)() };
        let answer = Answer::new(std::mem::take(frame), operations.list.len());
        match turn {
            Some(turn) => in_transaction(call, turn, &batch.options, executor, answer).await,
            None if batch.options.begin && batch.options.commit => {
                at_once(call, &batch.options, executor, answer).await
            }
            None if batch.options.begin || batch.options.commit || batch.options.stop_at_failure => Err(refused(
                codes::WRONG_USAGE,
                "Incorrect usage of a transaction's options and a batch without transaction",
            )),
            None => lone::run(call, &executor, answer, batch.options.lock_wait_ms)
                .await
                .map(|frame| (Kind::BatchAnswer, frame)),
        }
    }
    .await;
    match result {
        // A transaction that was to begin with a batch which was refused as a whole has not begun.
        Err(failure) if batch.options.begin && call.request.transaction != 0 => {
            call.session.abandon(call.request.transaction);
            Err(Failure { ended: true, ..failure })
        }
        result => result,
    }
}

fn begin(call: &Call<'_>, number: u64, options: &BatchOptions) -> Result<Arc<Slot>, Failure> {
    let isolation = isolation_of(options.isolation);
    call.session
        .begin(number, call.session.options(isolation, options.read_only, false, options.lock_wait_ms, &call.interrupt))
}

fn isolation_of(isolation: WireIsolation) -> Isolation {
    match isolation {
        WireIsolation::ReadCommitted => Isolation::ReadCommitted,
        WireIsolation::RepeatableRead => Isolation::RepeatableRead,
        WireIsolation::Serializable => Isolation::Serializable,
    }
}

/// How a statement has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Well,
    /// Something failed: nothing is to be committed.
    Failed,
    /// The transaction is gone.
    Ended,
}

async fn in_transaction(
    call: &mut Call<'_>,
    turn: Turn,
    options: &BatchOptions,
    executor: Executor<'_, '_>,
    mut answer: Answer,
) -> Answered {
    let mut taken = call.take(turn).await?;
    let end = match statement(call, taken.held(), options.stop_at_failure, &executor, &mut answer).await {
        Ok(end) => end,
        Err(failure) => {
            if !failure.ended {
                taken.keep();
            }
            return Err(failure);
        }
    };
    if end != End::Ended && !options.commit {
        taken.keep();
        return Ok((Kind::BatchAnswer, answer.finish(false, false)));
    }
    finish(call, taken.end(), end, answer).await
}

/// An atomic batch that is a whole transaction, without a number.
async fn at_once(
    call: &mut Call<'_>,
    options: &BatchOptions,
    executor: Executor<'_, '_>,
    mut answer: Answer,
) -> Answered {
    let isolation = isolation_of(options.isolation);
    let begun = call.session.options(isolation, options.read_only, false, options.lock_wait_ms, &call.interrupt);
    let mut held = Held::new(executor.database.begin(begun), options.read_only);
    let end = statement(call, &mut held, options.stop_at_failure, &executor, &mut answer).await?;
    finish(call, held, end, answer).await
}

/// Commits what went well, and rolls back the rest: the transaction has ended either way.
async fn finish(call: &mut Call<'_>, held: Held, end: End, answer: Answer) -> Answered {
    if end != End::Well {
        held.txn.rollback();
        return Ok((Kind::BatchAnswer, answer.finish(false, true)));
    }
    let (time, committed) = held.txn.commit_in_memory().await;
    call.saw(time);
    match committed {
        Ok(()) => Ok((Kind::BatchAnswer, answer.finish(true, true))),
        Err(error) => Err(Failure { ended: true, ..call.failure(error) }),
    }
}

/// Executes all operations as one statement. `Err`: nothing of it is left.
async fn statement(
    call: &mut Call<'_>,
    held: &mut Held,
    stop_at_failure: bool,
    executor: &Executor<'_, '_>,
    answer: &mut Answer,
) -> Result<End, Failure> {
    held.txn.begin_statement();
    for table in operation::tables(executor.shapes) {
        held.txn.use_table(table).await.map_err(|e| call.failure(e))?;
    }
    for op in &executor.operations.list {
        if !matches!(op.kind, OpKind::Read | OpKind::Savepoint | OpKind::RollbackTo) {
            held.txn.use_table_to_write(&executor.shapes[op.shape].table).await.map_err(|e| call.failure(e))?;
        }
    }
    let (start, mark) = (held.txn.savepoint(), answer.mark());
    let savepoints = held.savepoints.len();
    let mut end = End::Well;
    for (i, op) in executor.operations.list.iter().enumerate() {
        let number = i as u16;
        held.txn.begin_step();
        let step = match op.kind {
            OpKind::Savepoint | OpKind::RollbackTo => Ok(savepoint(held, op)),
            _ => executor.run(&mut held.txn, op, number, answer).await,
        };
        call.saw(held.txn.observed());
        let effect = match step {
            Ok(effect) => effect,
            // These fail the batch as a whole: a definition that has changed, a client that does not wait any more.
            Err(error @ (NodeError::StaleSchema | NodeError::Interrupted)) => {
                undo(held, start, savepoints);
                return Err(call.failure(error));
            }
            Err(error) if ends_transaction(&error) => {
                all_but(answer, mark, executor.operations, number);
                answer.failed(number, failure::of_node(error));
                return Ok(End::Ended);
            }
            Err(error) => {
                held.txn.rollback_statement();
                Effect::failed(failure::of_node(error))
            }
        };
        let stops = stop_at_failure && effect.is_failure();
        if stops {
            undo(held, start, savepoints);
            all_but(answer, mark, executor.operations, number);
        }
        if stops || matches!(effect, Effect::Failed(_)) {
            end = End::Failed;
        }
        match op.kind {
            OpKind::Savepoint | OpKind::RollbackTo => answer.savepoint(number, effect),
            _ => {
                let shape = &executor.shapes[op.shape];
                answer.put(number, &shape.shape.wanted, shape.schema(), effect);
            }
        }
        if stops {
            break;
        }
    }
    Ok(end)
}

/// Takes back what a statement has written. (A return to an earlier savepoint that was part of it stays done.)
fn undo(held: &mut Held, start: Savepoint, savepoints: usize) {
    held.txn.rollback_to(start);
    held.savepoints.truncate(savepoints);
}

/// The answers of a statement that was undone: no operation was executed, but the one that ended it, whose answer follows.
fn all_but(answer: &mut Answer, mark: usize, operations: &Operations<'_>, number: u16) {
    answer.undo(mark);
    for other in (0..operations.list.len() as u16).filter(|&other| other != number) {
        answer.not_executed(other);
    }
}

fn savepoint(held: &mut Held, op: &Op<'_>) -> Effect {
    if op.kind == OpKind::Savepoint {
        let Savepoint(number) = held.txn.savepoint();
        held.savepoints.push(number);
        return Effect::Savepoint(number);
    }
    let wanted = operation::savepoint_of(op);
    match wanted.and_then(|wanted| held.savepoints.iter().position(|&known| known == wanted)) {
        Some(at) => {
            held.txn.rollback_to(Savepoint(held.savepoints[at]));
            // It can be gone back to again; those after it are gone.
            held.savepoints.truncate(at + 1);
            Effect::Done(None)
        }
        None => Effect::failed(no_savepoint(wanted.unwrap_or_default())),
    }
}

pub fn no_savepoint(number: u32) -> Failure {
    refused(codes::SP_DOES_NOT_EXIST, format!("SAVEPOINT {number} does not exist"))
}
