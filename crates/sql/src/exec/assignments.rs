//! What the assignments of an UPDATE make of a row, and what the table and the view ask of the result.
//!
//! Assignments are made from left to right, each sees what those before it have set. Then follow ON UPDATE
//! CURRENT_TIMESTAMP, generated columns, WITH CHECK OPTION, CHECK constraints and the largest size of keys. The row is
//! not written here ([`super::together`]).

use super::answer::with_answers;
use super::check::satisfies;
use super::insert::{assign, check_keys, set_on_update};
use super::row::Rows;
use super::rules;
use crate::expr::{Context, type_zero};
use crate::physical::model::{RowCheck, RowRules, SetColumn};
use jiff::tz::TimeZone;
use rauk_node::Transaction;
use rauk_types::error::codes;
use rauk_types::{KeyDef, MysqlError, TableSchema, Value};

/// The assignments of an UPDATE to one table.
pub(super) struct Assignments<'a> {
    pub set: &'a [SetColumn],
    pub schema: &'a TableSchema,
    pub key_defs: &'a [KeyDef],
    pub check: Option<&'a RowCheck>,
    pub rules: Option<&'a RowRules>,
    pub ignore: bool,
    pub zone: &'a TimeZone,
}

impl Assignments<'_> {
    /// The row that takes the place of `old`; `None`: it stays as it is. `matched` counts the rows of the statement, and
    /// is the number of this one. `inputs`: what is read of other tables.
    pub async fn of(
        &self,
        old: &[Value],
        inputs: &[Value],
        matched: &mut u64,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<Option<Vec<Value>>, MysqlError> {
        *matched += 1;
        let mut new = old.to_vec();
        self.apply(&mut new, inputs, *matched, txn, context).await?;
        if new == old {
            return Ok(None);
        }
        set_on_update(self.schema, self.set, &mut new, context);
        if let Some(rules) = self.rules {
            rules::compute(rules, self.schema, &mut new, *matched, self.ignore, context)?;
        }
        if let Some(check) = self.check
            && !satisfies(check, &new, inputs, self.ignore, txn, context).await?
        {
            *matched -= 1;
            return Ok(None);
        }
        if let Some(rules) = self.rules
            && !rules::holds(rules, &new, self.ignore, context)?
        {
            return Ok(None);
        }
        check_keys(self.schema, self.key_defs, &new)?;
        Ok(Some(new))
    }

    /// The assignments alone.
    pub async fn apply(
        &self,
        row: &mut [Value],
        inputs: &[Value],
        number: u64,
        txn: &mut Transaction,
        context: &mut Context,
    ) -> Result<(), MysqlError> {
        for set in self.set {
            let column = &self.schema.columns[set.column];
            let Some(expr) = &set.value else {
                let message = format!("Field '{}' doesn't have a default value", column.name);
                if context.strict_statement {
                    return Err(MysqlError::new(codes::NO_DEFAULT_FOR_FIELD, message));
                }
                context.warn(codes::NO_DEFAULT_FOR_FIELD, message);
                row[set.column] = type_zero(&column.ty);
                continue;
            };
            let read = Rows { rows: [row, inputs, &[]], zone: self.zone };
            let value = match context.subqueries.is_active() {
                true => with_answers(txn, context, |context| expr.eval(&read, context)).await?,
                false => expr.eval(&read, context)?,
            };
            row[set.column] = assign(value, &expr.ty, column, number, self.ignore, context)?;
        }
        Ok(())
    }
}
