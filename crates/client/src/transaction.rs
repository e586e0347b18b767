//! Transactions.
//!
//! May be handed between threads and tasks. Operations take place in their order; those of one [`Batch`] go in one round trip, and the commit with
//! the last of them ([`Transaction::execute_and_commit`]). Dropping a transaction rolls it back.
//!
//! A transaction begins with its first operation, in the same round trip, and stays on the connection that this went
//! by. In a cluster that is the connection to the node that leads the first key, if there is one. When it is lost, so is
//! the transaction: operations then fail with a temporary error, and the program runs it again
//! ([`crate::Client::transact`] does so by itself). A commit whose answer is lost has an unknown outcome.
//!
//! A future of a transaction that is dropped before it is ready ends the transaction: nobody can say how far it came. The server is told at once.

use crate::batch::Answer;
use crate::channel::places::map::NOWHERE;
use crate::channel::{Ask, CallError, Effect, Line};
use crate::client::Client;
use crate::convert::IntoKey;
use crate::scan::Rows;
use crate::table::{ONLY, drop_id};
use crate::{Batch, BatchResult, Error, ErrorKind, Record, Records, Row, Scan, Table};
use bytes::Bytes;
use rauk_types::Value;
use rauk_types::error::codes;
use rauk_wire::{AnswerReader, BatchOptions, Kind, OpKind};
use smallvec::smallvec;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    ReadCommitted,
    #[default]
    RepeatableRead,
    Serializable,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransactionOptions {
    pub isolation: Isolation,
    pub read_only: bool,
    /// Zero: the node's default.
    pub lock_wait: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Savepoint(pub(crate) u32);

pub struct Transaction {
    client: Client,
    options: TransactionOptions,
    number: u64,
    state: State,
    /// Something of it is for good when it commits.
    writes: bool,
}

enum State {
    /// Nothing was sent yet.
    Fresh,
    Open(Line),
    /// What is answered to everything from now on.
    Ended(Error),
}

/// How a batch is to be taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The first failure undoes all of it.
    Whole,
    Each,
    Commit,
}

/// A request of a transaction that is under way. Dropped before its end, it takes the transaction along.
struct InFlight<'t> {
    transaction: &'t mut Transaction,
    line: Line,
    commits: bool,
    over: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.over {
            let error = match self.commits {
                true => Error::outcome_unknown("the future of the commit was dropped"),
                false => Error::ended("the transaction was rolled back, since the future of an operation was dropped"),
            };
            self.transaction.end(&self.line, error);
        }
    }
}

impl Transaction {
    pub(crate) fn new(client: Client, options: TransactionOptions) -> Transaction {
        let number = client.next_transaction();
        Transaction { client, options, number, state: State::Fresh, writes: false }
    }

    pub fn batch(&self) -> Batch {
        Batch::default()
    }

    /// In one round trip, in their order; the first failure ends the batch and undoes it, the transaction goes on. A missing row, a duplicate and a false condition are failures, too:
    /// the result says which it was ([`BatchResult::all_succeeded`] makes an error of it), and that what followed was not executed.
    pub async fn execute(&mut self, batch: Batch) -> Result<BatchResult, Error> {
        self.send(batch, Mode::Whole).await
    }

    /// The same, each operation with an outcome of its own.
    pub async fn execute_each(&mut self, batch: Batch) -> Result<BatchResult, Error> {
        self.send(batch, Mode::Each).await
    }

    /// Commit with the last batch: one round trip for both. When an operation fails, nothing is committed and the transaction is rolled back: the error says which it was.
    pub async fn execute_and_commit(mut self, batch: Batch) -> Result<BatchResult, Error> {
        self.send(batch, Mode::Commit).await
    }

    /// A line to send by, and whether the transaction begins with it.
    /// Where it begins: at the node that leads the first key of the batch, else anywhere.
    async fn line(&mut self, batch: &Batch) -> Result<(Line, bool), Error> {
        match &self.state {
            State::Open(line) => Ok((line.clone(), false)),
            State::Ended(error) => Err(error.clone()),
            State::Fresh => {
                let located = batch.located(0);
                let bucket = match batch.is_of(self.client.channel().epoch()) {
                    true => located.first(),
                    false => NOWHERE,
                };
                Ok((self.client.line_at(bucket, located.writes, Some(self.number)).await?, true))
            }
        }
    }

    /// It is over: the server is told, and everything from now on fails so.
    pub(crate) fn end(&mut self, line: &Line, error: Error) {
        line.tell(Kind::Rollback, self.number, |out| out);
        self.state = State::Ended(error);
    }

    fn batch_options(&self, begin: bool, mode: Mode) -> BatchOptions {
        BatchOptions {
            begin,
            commit: mode == Mode::Commit,
            stop_at_failure: mode != Mode::Each,
            isolation: match self.options.isolation {
                Isolation::ReadCommitted => rauk_wire::batch::Isolation::ReadCommitted,
                Isolation::RepeatableRead => rauk_wire::batch::Isolation::RepeatableRead,
                Isolation::Serializable => rauk_wire::batch::Isolation::Serializable,
            },
            read_only: self.options.read_only,
            lock_wait_ms: match self.options.lock_wait {
                Duration::ZERO => 0,
                wait => u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).max(1),
            },
        }
    }

    async fn send(&mut self, mut batch: Batch, mode: Mode) -> Result<BatchResult, Error> {
        let (line, begin) = self.line(&batch).await?;
        self.client.check(&batch).await?;
        if batch.parts() > 1 {
            let message = "Got a packet bigger than one request takes: a batch in a transaction has at most 65 535 operations and 63 MiB";
            return Err(Error::new(ErrorKind::Refused, codes::NET_PACKET_TOO_LARGE, message));
        }
        if !batch.is_of(line.epoch()) {
            Box::pin(self.client.renew(&line, &mut batch)).await?;
        }
        let client = self.client.clone();
        let writes = self.writes || batch.writes();
        let commits = mode == Mode::Commit && writes;
        let options = self.batch_options(begin, mode);
        let effect = if commits { Effect::Lasting } else { Effect::None };
        let ask = Ask { kind: Kind::Batch, transaction: self.number, effect };
        // From here on the server may know of it.
        self.writes = writes;
        let mut flight = InFlight { transaction: self, line, commits, over: false };
        let build = |out| batch.build(0, &options, out);
        let answer = flight.line.call(ask, Kind::BatchAnswer, client.timeout(), build).await;
        flight.over = true;
        let InFlight { transaction, line, .. } = &mut flight;
        match answer {
            Ok(payload) => transaction.answered(line, batch, payload, mode),
            Err(refused) => {
                let error = refused.error;
                match (refused.answered, refused.ended) {
                    // What was refused as a whole has not begun it.
                    (true, _) if begin => transaction.number = client.next_transaction(),
                    (true, true) => transaction.state = State::Ended(gone(&error)),
                    (true, false) if mode != Mode::Commit => {}
                    _ => transaction.end(line, gone(&error)),
                }
                if error.kind == ErrorKind::SchemaChanged {
                    // For those who build the batch again; that it cannot be had is their error, then.
                    let _ = Box::pin(client.renew(line, &mut batch)).await;
                }
                Err(error)
            }
        }
    }

    fn answered(&mut self, line: &Line, batch: Batch, payload: Bytes, mode: Mode) -> Result<BatchResult, Error> {
        let read = AnswerReader::parse(&payload).map(|reader| reader.answer).map_err(Error::from);
        let read = read.and_then(|answer| Ok((answer, BatchResult::new(batch, smallvec![Answer::whole(0, payload)])?)));
        let (answer, result) = match read {
            Ok(read) => read,
            Err(error) => {
                self.end(line, gone(&error));
                return Err(match mode == Mode::Commit && self.writes {
                    true => Error::outcome_unknown(error),
                    false => error,
                });
            }
        };
        if answer.committed {
            self.state = State::Ended(Error::ended("the transaction has been committed"));
            return Ok(result);
        }
        if answer.ended || mode == Mode::Commit {
            let error = match result.all_succeeded() {
                Err(error) => error,
                Ok(()) => Error::ended("the node has rolled the transaction back"),
            };
            match answer.ended {
                true => self.state = State::Ended(gone(&error)),
                false => self.end(line, gone(&error)),
            }
            return Err(error);
        }
        self.state = State::Open(line.clone());
        Ok(result)
    }

    async fn one(&mut self, add: impl FnOnce(&mut Batch)) -> Result<BatchResult, Error> {
        let mut batch = Batch::default();
        add(&mut batch);
        self.send(batch, Mode::Whole).await
    }

    pub async fn get<R: Record>(&mut self, records: &Records<R>, key: impl IntoKey) -> Result<Option<R>, Error> {
        self.one(|batch| records.keyed(batch, OpKind::Read, |b| b.get(records.table(), key)))
            .await?
            .record(records, ONLY)
    }

    pub async fn get_for_update<R: Record>(
        &mut self,
        records: &Records<R>,
        key: impl IntoKey,
    ) -> Result<Option<R>, Error> {
        self.one(|batch| records.keyed(batch, OpKind::Read, |b| b.get_for_update(records.table(), key)))
            .await?
            .record(records, ONLY)
    }

    /// A row by column name.
    pub async fn get_row(&mut self, table: &Table, key: impl IntoKey) -> Result<Option<Row>, Error> {
        self.one(|batch| drop_id(batch.get(table, key))).await?.row(ONLY)
    }

    pub async fn insert<R: Record>(&mut self, records: &Records<R>, record: &R) -> Result<Option<u64>, Error> {
        self.one(|batch| drop_id(batch.insert_record(records, record))).await?.inserted()
    }

    pub async fn write<R: Record>(&mut self, records: &Records<R>, record: &R) -> Result<(), Error> {
        self.one(|batch| drop_id(batch.write_record(records, record))).await?.inserted().map(|_| ())
    }

    pub async fn update<R: Record>(&mut self, records: &Records<R>, record: &R) -> Result<bool, Error> {
        self.one(|batch| drop_id(batch.update_record(records, record))).await?.found()
    }

    pub async fn increment<R: Record>(
        &mut self,
        records: &Records<R>,
        key: impl IntoKey,
        column: &str,
        by: impl Into<Value>,
    ) -> Result<Option<R>, Error> {
        self.one(|batch| records.keyed(batch, OpKind::Increment, |b| b.increment(records.table(), key, column, by)))
            .await?
            .record(records, ONLY)
    }

    pub async fn delete<R: Record>(&mut self, records: &Records<R>, key: impl IntoKey) -> Result<bool, Error> {
        self.one(|batch| records.keyed(batch, OpKind::Delete, |b| b.delete(records.table(), key))).await?.found()
    }

    /// A scan that sees this transaction's state.
    pub fn scan<'t>(&'t mut self, scan: Scan) -> Rows<'t> {
        Rows::within(self, scan)
    }

    pub async fn savepoint(&mut self) -> Result<Savepoint, Error> {
        self.one(Batch::savepoint).await?.savepoint(ONLY).map(Savepoint)
    }

    pub async fn rollback_to(&mut self, savepoint: Savepoint) -> Result<(), Error> {
        self.one(|batch| batch.rollback_to(savepoint.0)).await?.all_succeeded()
    }

    /// Durable when it returns (as the server's `durability` says).
    pub async fn commit(mut self) -> Result<(), Error> {
        match &self.state {
            State::Fresh => Ok(()),
            _ => self.send(Batch::default(), Mode::Commit).await.map(|_| ()),
        }
    }

    pub async fn rollback(mut self) -> Result<(), Error> {
        let line = match std::mem::replace(&mut self.state, State::Fresh) {
            State::Fresh => return Ok(()),
            State::Ended(error) => return Err(error),
            State::Open(line) => line,
        };
        let ask = Ask { transaction: self.number, ..Ask::new(Kind::Rollback) };
        match line.call(ask, Kind::Done, self.client.timeout(), |out| out).await {
            // Gone is gone.
            Err(error) if error.ended => Ok(()),
            result => result.map(|_| ()).map_err(Error::from),
        }
    }

    // For scans in it.

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The line that the transaction is open on; begins it if it has not begun.
    pub(crate) async fn begun(&mut self) -> Result<Line, Error> {
        if matches!(self.state, State::Fresh) {
            self.send(Batch::default(), Mode::Whole).await.map(drop)?;
        }
        Ok(self.line(&Batch::default()).await?.0)
    }

    /// A scan in it has failed in a way that has ended it.
    pub(crate) fn scan_failed(&mut self, line: &Line, failed: &CallError) {
        match failed.answered {
            true => self.state = State::Ended(gone(&failed.error)),
            false => self.end(line, gone(&failed.error)),
        }
    }
}

/// What is answered in a transaction that ended with this error: the same kind, since the same may be done about it.
fn gone(error: &Error) -> Error {
    match error.is_temporary() || error.is_unknown_outcome() {
        true => Error { message: format!("the transaction has ended: {error}"), ..error.clone() },
        false => Error::ended(format!("the transaction has ended: {error}")),
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let State::Open(line) = &self.state {
            line.tell(Kind::Rollback, self.number, |out| out);
        }
    }
}
