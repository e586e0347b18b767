//! Tests of the transaction table and of closing: entry by entry, as bytes, and as whole clusters under seeds.

mod bytes;
mod chunks;
mod closing;
mod cluster;
mod seeds;
mod table;

use super::*;
use ::bytes::Bytes;
use rauk_types::{GroupId, Position, ProcessId, Timestamp, TxnId};
use std::time::Duration;

const A: GroupId = GroupId(1);
const B: GroupId = GroupId(2);
const C: GroupId = GroupId(3);

fn txn(number: u64) -> TxnId {
    TxnId::of_process(ProcessId(7), number)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn writes(number: u64) -> Bytes {
    Bytes::from(number.to_le_bytes().to_vec())
}

fn prepare(number: u64, least: u64) -> Record {
    Record::Prepare { txn: txn(number), participants: vec![A, B], least: Timestamp(least), writes: writes(number) }
}

fn commit(number: u64, time: u64) -> Record {
    Record::Commit { txn: txn(number), time: Timestamp(time), writes: writes(number) }
}

fn decide(number: u64, outcome: Outcome) -> Record {
    Record::Decide { txn: txn(number), outcome }
}

fn fence(number: u64) -> Record {
    Record::Fence { txn: txn(number) }
}

fn forget(numbers: &[u64]) -> Record {
    Record::Forget { txns: numbers.iter().map(|number| txn(*number)).collect() }
}

fn committed(time: u64) -> Outcome {
    Outcome::Committed(Timestamp(time))
}

/// A table that is shown one record after the other.
#[derive(Default)]
struct Shown {
    table: TxnTable,
}

impl Shown {
    fn entry(&mut self, record: Record) -> Vec<Effect> {
        let mut effects = Vec::new();
        let position = Position(self.table.last.0 + 1);
        self.table.on_entry(millis(position.0), position, &record, &mut effects);
        effects
    }

    fn stable(&mut self, upto: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.table.on_stable(Position(upto), &mut effects);
        effects
    }

    fn cut(&mut self, after: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.table.on_cut(Position(after), &mut effects);
        effects
    }
}

fn adopt(number: u64, least: u64) -> Effect {
    Effect::Adopt { txn: txn(number), least: Timestamp(least), number: 0, writes: writes(number) }
}

fn answer(number: u64, vote: Vote) -> Effect {
    Effect::Answer { txn: txn(number), vote }
}

fn commits(number: u64, time: u64) -> Effect {
    Effect::Commit { txn: txn(number), time: Timestamp(time), writes: [writes(number)].into_iter().collect() }
}

fn aborts(number: u64) -> Effect {
    Effect::Abort { txn: txn(number) }
}

fn confirms(number: u64) -> Effect {
    Effect::Confirmed { txn: txn(number) }
}
