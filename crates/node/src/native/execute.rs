//! One operation in a transaction.
//!
//! Writes read their row with an exclusive lock first, look at it (there? condition true?), make the new one and store it: so what an operation says of a row is what it
//! has changed. Soft outcomes (missing, duplicate, condition false) are no errors: nothing was written then, though the row may be locked.

use super::answer::{Answer, Effect, written};
use super::image::{self, Number, Refs};
use super::operation::{Op, Operations};
use super::shape::Prepared;
use crate::transaction::{InsertOutcome, Transaction, UpdateOutcome};
use crate::{Database, NodeError};
use rauk_types::{IndexId, RowView, Value};
use rauk_wire::{Failure, OpKind, Wanted};

/// What an operation is executed with.
pub struct Executor<'e, 'a> {
    pub database: &'e Database,
    pub operations: &'e Operations<'a>,
    pub shapes: &'e [Prepared<'e>],
    /// Microseconds since 1970 UTC.
    pub now: i64,
}

/// What a locking read found.
enum Found {
    Missing,
    ConditionFalse,
    Row(Vec<Value>),
}

impl Executor<'_, '_> {
    /// Executes an operation that has a shape. A row that is read goes straight into the answer, as operation `number`; all else is the caller's to write. After
    /// an error a part of it may have been written: the caller undoes the step.
    pub async fn run(
        &self,
        txn: &mut Transaction,
        op: &Op<'_>,
        number: u16,
        answer: &mut Answer,
    ) -> Result<Effect, NodeError> {
        if let Some(failure) = &op.refused {
            return Ok(Effect::Failed(failure.clone()));
        }
        let shape = &self.shapes[op.shape];
        match op.kind {
            OpKind::Read => self.read(txn, op, shape, number, answer).await,
            OpKind::Insert => self.insert(txn, op, shape).await,
            OpKind::Write => self.write(txn, op, shape).await,
            OpKind::Update | OpKind::Increment => self.update(txn, op, shape).await,
            OpKind::Delete => self.delete(txn, op, shape).await,
            OpKind::Savepoint | OpKind::RollbackTo => unreachable!("they have no shape"),
        }
    }

    async fn read(
        &self,
        txn: &mut Transaction,
        op: &Op<'_>,
        shape: &Prepared<'_>,
        number: u16,
        answer: &mut Answer,
    ) -> Result<Effect, NodeError> {
        let wanted = &shape.shape.wanted;
        let visit = |row: Option<RowView<'_>>| match row {
            Some(row) => {
                answer.row(number, wanted, row.layout(), &row);
                Effect::Answered
            }
            None => Effect::Missing,
        };
        txn.get_unique(&shape.table, shape.shape.index, op.key, shape.lock, visit).await
    }

    /// The row that an operation is about, locked.
    async fn find(
        &self,
        txn: &mut Transaction,
        op: &Op<'_>,
        shape: &Prepared<'_>,
        index: IndexId,
        key: &[u8],
    ) -> Result<Found, NodeError> {
        let condition = op.condition.as_ref();
        let visit = |row: Option<RowView<'_>>| match row {
            None => Found::Missing,
            Some(row) if condition.is_some_and(|c| !c.passes(&row)) => Found::ConditionFalse,
            Some(row) => Found::Row(row.to_values()),
        };
        txn.get_unique(&shape.table, index, key, Some(shape.write_lock()), visit).await
    }

    async fn insert(&self, txn: &mut Transaction, op: &Op<'_>, shape: &Prepared<'_>) -> Result<Effect, NodeError> {
        let values = self.operations.values(op);
        match image::new_row(shape.schema(), &shape.shape.columns, values, self.now) {
            (row, None) => self.insert_row(txn, shape, row).await,
            (_, Some(failure)) => Ok(Effect::failed(failure)),
        }
    }

    async fn insert_row(
        &self,
        txn: &mut Transaction,
        shape: &Prepared<'_>,
        mut row: Refs<'_>,
    ) -> Result<Effect, NodeError> {
        let number = image::number(self.database, &shape.table, &mut row).await?;
        if let Err(failure) = image::check_keys(shape.schema(), &row) {
            return Ok(Effect::failed(failure));
        }
        match txn.insert(&shape.table, &image::owned(&row)).await? {
            InsertOutcome::Duplicate { index, .. } => Ok(Effect::Duplicate(index)),
            InsertOutcome::Inserted => {
                if let Number::Explicit(value) = number {
                    self.database.raise_auto_increment(&shape.table, value).await?;
                }
                Ok(written(&shape.shape.wanted, shape.schema(), &row, number.generated()))
            }
        }
    }

    async fn write(&self, txn: &mut Transaction, op: &Op<'_>, shape: &Prepared<'_>) -> Result<Effect, NodeError> {
        let schema = shape.schema();
        let values = self.operations.values(op);
        let (new, incomplete) = image::new_row(schema, &shape.shape.columns, values, self.now);
        // A row that is there needs no more than its key.
        match incomplete {
            Some(failure) if !has_key(shape, &new) => return Ok(Effect::failed(failure)),
            Some(_) => {}
            None if !has_key(shape, &new) => return self.insert_row(txn, shape, new).await,
            None => {
                if let Err(failure) = image::check_keys(schema, &new) {
                    return Ok(Effect::failed(failure));
                }
            }
        }
        let mut key = Vec::with_capacity(32);
        image::encode_key(shape.table.primary_key(), &new, &mut key);
        loop {
            match self.find(txn, op, shape, IndexId::PRIMARY, &key).await? {
                Found::Row(old) => return self.change(txn, op, shape, old).await,
                Found::ConditionFalse => return Ok(Effect::ConditionFalse),
                Found::Missing => {}
            }
            if let Some(failure) = incomplete {
                return Ok(Effect::failed(failure));
            }
            match self.insert_row(txn, shape, new.clone()).await? {
                // Somebody was faster: now it is there, and locked.
                Effect::Duplicate(IndexId::PRIMARY) if shape.write_lock().1 == rauk_kernel::WaitPolicy::Wait => {
                    txn.check_killed()?;
                }
                effect => return Ok(effect),
            }
        }
    }

    async fn update(&self, txn: &mut Transaction, op: &Op<'_>, shape: &Prepared<'_>) -> Result<Effect, NodeError> {
        match self.find(txn, op, shape, shape.shape.index, op.key).await? {
            Found::Missing => Ok(Effect::Missing),
            Found::ConditionFalse => Ok(Effect::ConditionFalse),
            Found::Row(old) => self.change(txn, op, shape, old).await,
        }
    }

    /// Changes a row that is locked.
    async fn change(
        &self,
        txn: &mut Transaction,
        op: &Op<'_>,
        shape: &Prepared<'_>,
        old: Vec<Value>,
    ) -> Result<Effect, NodeError> {
        let schema = shape.schema();
        let mut new: Refs<'_> = old.iter().map(Value::as_ref).collect();
        match self.alter(op, shape, &mut new) {
            Ok(true) => {}
            Ok(false) => {
                txn.check_writable()?;
                return Ok(written(&shape.shape.wanted, schema, &new, None));
            }
            Err(failure) => return Ok(Effect::failed(failure)),
        }
        match txn.update(&shape.table, &old, &image::owned(&new)).await? {
            UpdateOutcome::Updated => {
                let before = old.iter().map(Value::as_ref).collect();
                if let Some(number) = image::changed_number(schema, &before, &new) {
                    self.database.raise_auto_increment(&shape.table, number).await?;
                }
                Ok(written(&shape.shape.wanted, schema, &new, None))
            }
            UpdateOutcome::Missing => Ok(Effect::Missing),
            UpdateOutcome::Duplicate { index, .. } => Ok(Effect::Duplicate(index)),
        }
    }

    /// Makes the changed row out of the old one; `false`: it is the same.
    pub fn alter<'r>(&'r self, op: &Op<'_>, shape: &Prepared<'_>, row: &mut Refs<'r>) -> Result<bool, Failure> {
        let (schema, columns) = (shape.schema(), &shape.shape.columns);
        let values = self.operations.values(op);
        let changed = match op.kind {
            OpKind::Increment => image::increment(schema, row, columns, values, self.now)?,
            _ => image::change(schema, row, columns, values, self.now),
        };
        if changed {
            image::check_keys(schema, row)?;
        }
        Ok(changed)
    }

    async fn delete(&self, txn: &mut Transaction, op: &Op<'_>, shape: &Prepared<'_>) -> Result<Effect, NodeError> {
        let old = match self.find(txn, op, shape, shape.shape.index, op.key).await? {
            Found::Missing => return Ok(Effect::Missing),
            Found::ConditionFalse => return Ok(Effect::ConditionFalse),
            Found::Row(old) => old,
        };
        if !txn.delete(&shape.table, &old).await? {
            return Ok(Effect::Missing);
        }
        if shape.shape.wanted == Wanted::Nothing {
            return Ok(Effect::Done(None));
        }
        let row: Refs<'_> = old.iter().map(Value::as_ref).collect();
        Ok(written(&shape.shape.wanted, shape.schema(), &row, None))
    }
}

/// Whether a new row knows its primary key before it is inserted: nothing of it is missing or to be numbered.
pub fn has_key(shape: &Prepared<'_>, row: &Refs<'_>) -> bool {
    let schema = shape.schema();
    let numbered =
        |column: usize| schema.auto_increment == Some(column) && matches!(row[column].as_counted(), None | Some(0));
    !schema.hidden_key && schema.primary().parts.iter().all(|p| !numbered(p.column) && !row[p.column].is_null())
}
