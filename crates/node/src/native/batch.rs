//! Batches: outside of transactions each operation for itself, in a transaction all in their order as one statement.

use super::answer::{Answer, Effect};
use super::execute::Executor;
use super::failure::{self, ends_transaction, malformed, refused};
use super::operation::{self, Operations};
use super::session::{Answered, Call};
use super::shape::{self, Prepared};
use super::slot::Held;
use super::lone;
use crate::NodeError;
use crate::transaction::{Isolation, Savepoint};
use rauk_types::error::codes;
use rauk_wire::batch::Isolation as WireIsolation;
use rauk_wire::{Batch, BatchOptions, Failure, Kind, OpKind};
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
        let pads = operation::pads(&batch, &shapes)?;
        let operations = operation::read(&batch, &shapes, &pads)?;
        service.counts.operations.fetch_add(operations.list.len() as u64, Ordering::Relaxed);
        let executor = Executor {
            database: &service.database,
            operations: &operations,
            shapes: &shapes,
            now: (service.clock)(),
        };
        let answer = Answer::new(std::mem::take(frame), operations.list.len());
        match turn {
            Some(turn) => in_transaction(call, turn, &batch.options, executor, answer).await,
            None if batch.options.begin && batch.options.commit => at_once(call, &batch.options, executor, answer).await,
            None if batch.options.begin || batch.options.commit || batch.options.stop_at_failure => {
                Err(refused(codes::WRONG_USAGE, "Incorrect usage of a transaction's options and a batch without transaction"))
            }
            None => {
                lone::run(call, &executor, answer, batch.options.lock_wait_ms).await.map(|frame| (Kind::BatchAnswer, frame))
            }
        }
    }
    .await;
    result
}

fn isolation_of(isolation: WireIsolation) -> Isolation {
    match isolation {
        WireIsolation::ReadCommitted => Isolation::ReadCommitted,
        WireIsolation::RepeatableRead => Isolation::RepeatableRead,
        WireIsolation::Serializable => Isolation::Serializable,
    }
}
