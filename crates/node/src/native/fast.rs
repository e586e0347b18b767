//! Batches that are answered at once, by the thread that has read them: no task, no wait, no allocation but the answer's buffer.
//!
//! These are batches of plain reads by the primary key of one table, outside of transactions, whose partitions are idle and whose rows are durable: nearly all batches of
//! nearly all programs that are in a hurry. Rows go from where they are stored straight into the answer. Whatever is not so is given back: the long way does
//! it again from the beginning, and says what is wrong with what is wrong.

use super::answer::Answer;
use super::operation::is_key_of;
use super::session::Session;
use super::shape::{Prepared, Way, prepare};
use super::{Reply, Request};
use crate::bulk::{Found, Keys};
use rauk_wire::{Batch, Kind, MAX_PAYLOAD};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Kept from batch to batch.
#[derive(Default)]
struct Scratch {
    keys: Keys,
    /// The shape of each operation.
    shapes: Vec<u16>,
    done: Vec<bool>,
    /// Bytes of the last answer for each of its keys: what the next is made room for. Growing step by step would copy large answers several times.
    bytes_each: usize,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

pub fn try_call(session: &Arc<Session>, request: &Request, frame: Vec<u8>) -> Result<Reply, Vec<u8>> {
    if request.kind != Kind::Batch || request.transaction != 0 || session.is_closed() {
        return Err(frame);
    }
    if session.tables.account().is_some_and(|account| account.rights().is_limited()) {
        return Err(frame);
    }
    SCRATCH.with_borrow_mut(|scratch| read(session, request, frame, scratch))
}

fn read(session: &Session, request: &Request, mut frame: Vec<u8>, scratch: &mut Scratch) -> Result<Reply, Vec<u8>> {
    let Ok(batch) = Batch::parse(&request.payload) else { return Err(frame) };
    let options = &batch.options;
    if options.begin || options.commit || options.stop_at_failure || batch.operations == 0 {
        return Err(frame);
    }
    let database = &session.service.database;
    let mut shapes: SmallVec<[Prepared<'_>; 2]> = SmallVec::new();
    for shape in &batch.shapes {
        match prepare(&session.tables, database, shape) {
            Ok(ready) if ready.way == Way::Read && shape.table == batch.shapes[0].table => shapes.push(ready),
            _ => return Err(frame),
        }
    }
    let Some(Prepared { table, .. }) = shapes.first() else { return Err(frame) };
    let Scratch { keys, shapes: shape_of, done, bytes_each } = scratch;
    keys.clear();
    shape_of.clear();
    for operation in batch.operations() {
        match operation {
            Ok(op)
                if op.shape.is_some_and(|s| usize::from(s) < shapes.len())
                    && is_key_of(table.primary_key(), op.key) =>
            {
                keys.push(op.key);
                shape_of.push(op.shape.unwrap_or_default());
            }
            _ => return Err(frame),
        }
    }
    done.clear();
    done.resize(keys.len(), false);
    let start = frame.len();
    frame.reserve((keys.len() * *bytes_each).min(MAX_PAYLOAD));
    let mut answer = Answer::new(frame, keys.len());
    let mut visit = |i: usize, found: Found<'_>| {
        let wanted = &shapes[usize::from(shape_of[i])].shape.wanted;
        match found {
            Some((layout, row)) => answer.row(i as u16, wanted, layout, &row),
            None => answer.missing(i as u16),
        }
    };
    match database.try_read_many(table, keys, done, &mut visit) {
        Ok(progress) if progress.finished && database.is_durable(progress.time) => {
            let counts = &session.service.counts;
            counts.batches.fetch_add(1, Ordering::Relaxed);
            counts.batches_at_once.fetch_add(1, Ordering::Relaxed);
            counts.operations.fetch_add(keys.len() as u64, Ordering::Relaxed);
            let frame = answer.finish(false, false);
            *bytes_each = (frame.len() - start).div_ceil(keys.len());
            Ok(Reply { kind: Kind::BatchAnswer, timestamp: progress.time.0, frame, fatal: false })
        }
        _ => {
            let mut frame = answer.give_up();
            frame.truncate(start);
            Err(frame)
        }
    }
}
