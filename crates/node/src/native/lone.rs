//! Batches outside of transactions: each operation for itself.
//!
//! Operations that only read, or only write, one table by its primary key go many at a time through the bulk calls, one hold of a partition for all that are in it;
//! the rest have a transaction each. Operations on the same key keep their order: keys that were read and keys that were written are remembered, and
//! what meets a key again first lets everything go that was gathered for its table. All others are free.

use super::answer::{Answer, Effect};
use super::execute::Executor;
use super::failure;
use super::operation::Op;
use super::session::Call;
use crate::NodeError;
use crate::transaction::Isolation;
use rauk_wire::{Failure, OpKind};

/// How often an operation that was a deadlock's victim is tried again.
const RETRIES: u32 = 8;

/// Executes all operations and gives the answer's frame.
pub async fn run(
    call: &mut Call<'_>,
    executor: &Executor<'_, '_>,
    mut answer: Answer,
    lock_wait_ms: u32,
) -> Result<Vec<u8>, Failure> {
    for (i, op) in executor.operations.list.iter().enumerate() {
        alone(call, executor, op, i as u16, &mut answer, lock_wait_ms).await;
    }
    Ok(answer.finish(false, false))
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
    if matches!(op.kind, OpKind::Savepoint | OpKind::RollbackTo) {
        let text = "Incorrect usage of savepoints and a batch without transaction";
        answer.failed(number, failure::refused(rauk_types::error::codes::WRONG_USAGE, text));
        return;
    }
    let mark = answer.mark();
    let mut attempt = 0;
    let effect = loop {
        match once(call, executor, op, number, answer, lock_wait_ms).await {
            Ok(effect) => break effect,
            Err(error) => {
                answer.undo(mark);
                attempt += 1;
                if error != NodeError::Deadlock || attempt > RETRIES {
                    // It was all of its transaction: nothing of that is left to be ended.
                    break Effect::failed(Failure { ended: false, ..call.failure(error) });
                }
            }
        }
    };
    let shape = &executor.shapes[op.shape];
    answer.put(number, &shape.shape.wanted, shape.schema(), effect);
}

async fn once(
    call: &mut Call<'_>,
    executor: &Executor<'_, '_>,
    op: &Op<'_>,
    number: u16,
    answer: &mut Answer,
    lock_wait_ms: u32,
) -> Result<Effect, NodeError> {
    let options = call.session.options(Isolation::RepeatableRead, false, true, lock_wait_ms, &call.interrupt);
    let mut txn = executor.database.begin(options);
    txn.use_table(&executor.shapes[op.shape].table).await?;
    txn.begin_statement();
    let result = executor.run(&mut txn, op, number, answer).await;
    call.saw(txn.observed());
    let effect = result?;
    if effect.is_failure() {
        txn.rollback();
        return Ok(effect);
    }
    let (time, committed) = txn.commit_in_memory().await;
    call.saw(time);
    committed.map(|()| effect)
}
