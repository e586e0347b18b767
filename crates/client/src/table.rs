//! Tables as opened.
//!
//! A table that was opened keeps its definition. When the node says that it has changed, single operations open it again and are repeated; in a transaction
//! the error is [`crate::ErrorKind::SchemaChanged`], and the table's next use has the new definition.

use crate::channel::{CallError, Line};
use crate::client::{Client, Pauses};
use crate::convert::IntoKey;
use crate::definition::Opened;
use crate::execute::worth_retrying;
use crate::{Batch, BatchResult, Done, Error, ErrorKind, OpId, Row, Scan};
use parking_lot::RwLock;
use rauk_types::{TableSchema, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The only operation of a batch of one.
pub(crate) const ONLY: OpId = OpId(0);

/// Rows by column name. Cheap to clone.
#[derive(Clone)]
pub struct Table {
    state: Arc<State>,
}

struct State {
    client: Client,
    name: String,
    current: RwLock<Arc<Opened>>,
    /// Counts the definitions that `current` has had.
    generation: AtomicU32,
}

impl Table {
    pub(crate) fn new(client: Client, opened: Arc<Opened>) -> Table {
        let name = opened.name.clone();
        Table { state: Arc::new(State { client, name, current: RwLock::new(opened), generation: AtomicU32::new(0) }) }
    }

    #[inline]
    pub(crate) fn is(&self, other: &Table) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.state.client
    }

    /// `database.table`.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Whoever has seen a definition after reading this number has that one or a newer one.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.state.generation.load(Ordering::Acquire)
    }

    pub(crate) fn current(&self) -> Arc<Opened> {
        self.state.current.read().clone()
    }

    /// Gets the definition anew, unless somebody has done so since `before` was the newest.
    pub(crate) async fn refresh(&self, line: &Line, before: &Arc<Opened>) -> Result<(), CallError> {
        let schema = &before.schema;
        let newest = self.client().definition_by(line, &schema.database, &schema.name).await?;
        let mut current = self.state.current.write();
        let same = newest.epoch == current.epoch
            && newest.schema.id == current.schema.id
            && newest.schema.version <= current.schema.version;
        if !same {
            *current = newest;
            self.state.generation.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn replace(&self, opened: Opened) {
        *self.state.current.write() = Arc::new(opened);
        self.state.generation.fetch_add(1, Ordering::Release);
    }

    /// The newest definition that this client knows.
    pub fn schema(&self) -> Arc<TableSchema> {
        self.current().schema.clone()
    }

    /// A batch of one operation; built again when the table has changed, sent again when it has failed temporarily.
    pub(crate) async fn single(&self, add: impl Fn(&mut Batch)) -> Result<BatchResult, Error> {
        let mut batch = Batch::default();
        add(&mut batch);
        match self.client().at_once(&mut batch) {
            Some(Ok(result)) if result.only_is_temporary().is_none() => Ok(result),
            // Boxed, so that the future of what is answered at once is small.
            _ => Box::pin(self.single_waiting(add)).await,
        }
    }

    async fn single_waiting(&self, add: impl Fn(&mut Batch)) -> Result<BatchResult, Error> {
        let mut pauses = None;
        loop {
            let mut batch = Batch::default();
            add(&mut batch);
            let error = match self.client().execute(batch).await {
                Ok(result) => match result.only_is_temporary() {
                    None => return Ok(result),
                    Some(error) => error.at(self.name()),
                },
                // Everything else was tried again already.
                Err(error) if error.kind != ErrorKind::SchemaChanged => return Err(error),
                Err(error) => error,
            };
            let pauses = pauses.get_or_insert_with(|| Pauses::new(self.client().retry()));
            if !worth_retrying(&error) || !pauses.again() {
                return Err(error);
            }
            pauses.pause().await;
            if error.kind == ErrorKind::SchemaChanged {
                let line = self.client().line(None).await?;
                Box::pin(self.refresh(&line, &self.current())).await?;
            }
        }
    }

    pub async fn get(&self, key: impl IntoKey) -> Result<Option<Row>, Error> {
        self.single(|batch| drop_id(batch.get(self, &key))).await?.row(ONLY)
    }

    /// By the columns of a unique index.
    pub async fn get_by(&self, index: &str, key: impl IntoKey) -> Result<Option<Row>, Error> {
        self.single(|batch| drop_id(batch.get_by(self, index, &key))).await?.row(ONLY)
    }

    /// Columns by name; those not named get their defaults. Gives the AUTO_INCREMENT number, if one was made.
    pub async fn insert(&self, values: &[(&str, Value)]) -> Result<Option<u64>, Error> {
        self.single(|batch| drop_id(batch.insert(self, values))).await?.inserted()
    }

    /// Inserts, or sets these columns of the row with the same primary key.
    pub async fn write(&self, values: &[(&str, Value)]) -> Result<(), Error> {
        self.single(|batch| drop_id(batch.write(self, values))).await?.inserted().map(|_| ())
    }

    /// `false`: there is no such row.
    pub async fn update(&self, key: impl IntoKey, values: &[(&str, Value)]) -> Result<bool, Error> {
        self.single(|batch| drop_id(batch.update(self, &key, values))).await?.found()
    }

    /// Adds to a number and gives the row afterwards.
    pub async fn increment(&self, key: impl IntoKey, column: &str, by: impl Into<Value>) -> Result<Option<Row>, Error> {
        let by = by.into();
        self.single(|batch| drop_id(batch.increment(self, &key, column, by.clone()))).await?.row(ONLY)
    }

    /// `false`: there is no such row.
    pub async fn delete(&self, key: impl IntoKey) -> Result<bool, Error> {
        self.single(|batch| drop_id(batch.delete(self, &key))).await?.found()
    }

    /// All rows, over all partitions at once unless an order is asked for.
    pub fn scan(&self) -> Scan {
        Scan::of_table(self.clone())
    }

    /// In the order of an index.
    pub fn scan_index(&self, index: &str) -> Result<Scan, Error> {
        Scan::of_index(self.clone(), index)
    }
}

/// A batch of one has only the operation 0.
pub(crate) fn drop_id(_: OpId) {}

impl BatchResult {
    /// The only operation was an insert or an upsert: the number that was made for it.
    pub(crate) fn inserted(&self) -> Result<Option<u64>, Error> {
        match self.outcome(ONLY)? {
            Done::Done(number) => Ok(number),
            _ => Err(self.error_of(ONLY)),
        }
    }

    /// The only operation was an update or a delete: whether there was such a row.
    pub(crate) fn found(&self) -> Result<bool, Error> {
        match self.outcome(ONLY)? {
            Done::Done(_) | Done::Row(_) => Ok(true),
            Done::Missing => Ok(false),
            _ => Err(self.error_of(ONLY)),
        }
    }
}
