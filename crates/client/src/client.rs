//! A client: a connection that mends itself, tables by name, transactions.
//!
//! A [`Client`] stands for a server or for an embedded database; what it does is the same for both. Many operations may be under way at a time, from any number of tasks and
//! threads.

use crate::address::Address;
use crate::channel::remote::{Remote, jittered};
use crate::channel::{Ask, CallError, Channel, Effect, Line};
use crate::definition::Opened;
pub use crate::options::{Options, RetryPolicy};
use crate::{Batch, Error, Record, Records, Table, Transaction, TransactionOptions, create};
use rauk_wire::Kind;
use rauk_wire::definition::{self, Definition, DropTable, TableName};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Cheap to clone; all clones share the connection.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    channel: Channel,
    retry: RetryPolicy,
    request_timeout: Duration,
    next_transaction: AtomicU64,
}

impl Client {
    /// `address` names one server, or several nodes of one cluster: `host:port`, `host,host:port,…`, or with options
    /// `rauk://host:port,host,…/?secret-file=…&connections=…&name=…&placement=off`. A port that is left out is 4407.
    ///
    /// In a cluster, requests go to the nodes that lead their rows, unless [`Options::placement`] is off.
    ///
    /// Each server is tried once, beginning with any of them, within [`Options::connect_timeout`]: wrong addresses and a wrong secret are told at once.
    /// Connections that are lost later are made again by themselves, to the next server that lets the client in.
    pub async fn connect(address: &str, options: Options) -> Result<Client, Error> {
        let remote = Remote::new(Address::parse(address)?, &options)?;
        remote.connect_first().await?;
        Ok(Client::new(Channel::Remote(remote), options.retry, options.request_timeout))
    }

    pub(crate) fn new(channel: Channel, retry: RetryPolicy, request_timeout: Duration) -> Client {
        Client { inner: Arc::new(Inner { channel, retry, request_timeout, next_transaction: AtomicU64::new(1) }) }
    }

    pub(crate) fn is(&self, other: &Client) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(crate) fn retry(&self) -> &RetryPolicy {
        &self.inner.retry
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.inner.request_timeout
    }

    pub(crate) fn next_transaction(&self) -> u64 {
        self.inner.next_transaction.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.inner.channel
    }

    /// See [`Channel::line`].
    pub(crate) async fn line(&self, turn: Option<u64>) -> Result<Line, Error> {
        self.inner.channel.line(turn).await
    }

    /// See [`Channel::line_at`].
    pub(crate) async fn line_at(&self, bucket: u16, writes: bool, turn: Option<u64>) -> Result<Line, Error> {
        self.inner.channel.line_at(bucket, writes, turn).await
    }

    /// A table as it is; rows by column name.
    pub async fn table(&self, database: &str, table: &str) -> Result<Table, Error> {
        let mut pauses = Pauses::new(self.retry());
        loop {
            // To connect is tried as often as the policy says in there: not that often each time.
            let line = self.line(None).await?;
            match self.definition_by(&line, database, table).await.map_err(Error::from) {
                Err(error) if error.is_temporary() && pauses.again() => pauses.pause().await,
                opened => return Ok(Table::new(self.clone(), opened?)),
            }
        }
    }

    /// A table for records of one type, whose columns are checked against it now.
    pub async fn open<R: Record>(&self) -> Result<Records<R>, Error> {
        Records::new(self.table(R::DATABASE, R::TABLE).await?)
    }

    /// The same; makes the database and the table when they are not there.
    pub async fn open_or_create<R: Record>(&self) -> Result<Records<R>, Error> {
        create::open_or_create(self).await
    }

    pub async fn drop_table(&self, database: &str, table: &str) -> Result<(), Error> {
        let name = TableName { database: database.to_owned(), table: table.to_owned() };
        self.define(Kind::DropTable, &DropTable { name, if_exists: false }, Kind::Done).await.map(|_| ())
    }

    /// A batch outside of transactions: each operation for itself.
    pub fn batch(&self) -> Batch {
        Batch::default()
    }

    pub fn begin(&self) -> Transaction {
        self.begin_with(TransactionOptions::default())
    }

    /// Nothing is sent before the first operation.
    pub fn begin_with(&self, options: TransactionOptions) -> Transaction {
        Transaction::new(self.clone(), options)
    }

    /// Runs `work` in a transaction and commits; again from the beginning, as often as the retry policy says, when it fails with a temporary error. An unknown outcome is not tried again.
    ///
    /// ```no_run
    /// # async fn run(client: rauk_client::Client, table: rauk_client::Table) -> Result<(), rauk_client::Error> {
    /// let row = client.transact(async |transaction| {
    ///     transaction.get_row(&table, 1u64).await
    /// }).await?;
    /// # Ok(()) }
    /// ```
    /// In a task that a runtime moves between threads, give the closure clones of what it needs: `async move |transaction| …` (clients and tables are cheap to clone).
    pub async fn transact<T>(&self, work: impl AsyncFnMut(&mut Transaction) -> Result<T, Error>) -> Result<T, Error> {
        self.transact_with(TransactionOptions::default(), work).await
    }

    /// The same with options for the transaction.
    pub async fn transact_with<T>(
        &self,
        options: TransactionOptions,
        mut work: impl AsyncFnMut(&mut Transaction) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut pauses = Pauses::new(self.retry());
        loop {
            // As in `table`: where no connection can be had, that was tried often enough.
            self.line(None).await?;
            let mut transaction = self.begin_with(options.clone());
            let result = match work(&mut transaction).await {
                Ok(value) => transaction.commit().await.map(|()| value),
                Err(error) => {
                    // Its locks are given back before the pause.
                    drop(transaction);
                    Err(error)
                }
            };
            match result {
                Err(error) if error.is_temporary() && pauses.again() => pauses.pause().await,
                result => return result,
            }
        }
    }

    /// The definition as it is now, by this line, so that it is of the line's epoch.
    pub(crate) async fn definition_by(
        &self,
        line: &Line,
        database: &str,
        table: &str,
    ) -> Result<Arc<Opened>, CallError> {
        let name = TableName { database: database.to_owned(), table: table.to_owned() };
        let ask = Ask::new(Kind::OpenTable);
        let build = |mut out: Vec<u8>| {
            definition::encode(&name, &mut out);
            out
        };
        // As it was when it was asked for: what a server says that has ended meanwhile is not of the new epoch.
        let epoch = line.epoch();
        let payload = Box::pin(line.call(ask, Kind::Definition, self.timeout(), build)).await?;
        let definition: Definition = definition::decode(&payload).map_err(|error| line.nonsense(ask, error))?;
        let opened = Opened::new(definition, epoch).map_err(|error| line.nonsense(ask, error))?;
        Ok(Arc::new(if self.channel().is_placed() { opened.placed() } else { opened }))
    }

    /// Changes definitions; gives the answer's payload.
    pub(crate) async fn define<T: Serialize>(&self, kind: Kind, what: &T, answer: Kind) -> Result<bytes::Bytes, Error> {
        let line = self.line(None).await?;
        let ask = Ask { effect: Effect::Lasting, ..Ask::new(kind) };
        let build = |mut out: Vec<u8>| {
            definition::encode(what, &mut out);
            out
        };
        // Building an index may take longer than any request.
        Ok(Box::pin(line.call(ask, answer, Duration::ZERO, build)).await?)
    }
}

/// The pauses of a retry policy.
pub(crate) struct Pauses<'p> {
    policy: &'p RetryPolicy,
    attempts: u32,
    next: Duration,
}

impl<'p> Pauses<'p> {
    pub fn new(policy: &'p RetryPolicy) -> Pauses<'p> {
        Pauses { policy, attempts: 1, next: policy.first_pause }
    }

    /// Whether there may be another attempt; counts it.
    pub fn again(&mut self) -> bool {
        self.attempts += 1;
        self.attempts <= self.policy.attempts
    }

    pub async fn pause(&mut self) {
        let pause = self.next;
        self.next = (pause * 2).min(self.policy.longest_pause);
        Box::pin(crate::timer::sleep(jittered(pause))).await;
    }
}
