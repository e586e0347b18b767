//! What a table's definition asks of each row that is written: generated columns are computed, CHECK constraints hold.
//!
//! Generated columns, VIRTUAL ones too, are stored with the row: they are then in reach of every read, of conditions that other nodes
//! evaluate and of indexes like any column, and cost nothing when they are read. They are computed when all other values of the
//! row are there, before it is checked. A CHECK that is NULL holds.
//!
//! Nothing here waits: such expressions have no subqueries.

use super::insert::assign;
use super::row::Rows;
use crate::expr::{Context, Expr, INDEX_NAME};
use crate::physical::model::RowRules;
use rauk_types::error::codes;
use rauk_types::{MysqlError, TableSchema, Value};

/// Computes the generated columns of a row. `number`: of the row, for messages.
pub(crate) fn compute(
    rules: &RowRules,
    schema: &TableSchema,
    row: &mut [Value],
    number: u64,
    ignore: bool,
    context: &mut Context,
) -> Result<(), MysqlError> {
    if rules.generated.is_empty() {
        return Ok(());
    }
    let zone = context.time_zone.clone();
    for (column, expr) in &rules.generated {
        let value = expr.eval(&Rows { rows: [row, &[], &[]], zone: &zone }, context);
        let value = value.map_err(|error| of_index(error, schema, *column))?;
        row[*column] = assign(value, &expr.ty, &schema.columns[*column], number, ignore, context)?;
    }
    Ok(())
}

/// An error about the elements of an array, with the name of the index that they are for.
fn of_index(mut error: MysqlError, schema: &TableSchema, column: usize) -> MysqlError {
    if error.message.contains(INDEX_NAME) {
        let index = schema.indexes.iter().find(|index| index.parts.iter().any(|part| part.column == column));
        let name = index.map_or("", |index| index.name.as_str());
        error.message = error.message.replace(INDEX_NAME, name);
    }
    error
}

/// Gives a column of a row the value of an expression over the row.
pub(crate) fn fill(
    column: usize,
    expr: &Expr,
    schema: &TableSchema,
    row: &mut [Value],
    number: u64,
    context: &mut Context,
) -> Result<(), MysqlError> {
    let zone = context.time_zone.clone();
    let value = expr.eval(&Rows { rows: [row, &[], &[]], zone: &zone }, context);
    let value = value.map_err(|error| of_index(error, schema, column))?;
    row[column] = assign(value, &expr.ty, &schema.columns[column], number, false, context)?;
    Ok(())
}

/// Whether a row may be written; else error 3819, or with `ignore` a warning.
pub(crate) fn holds(rules: &RowRules, row: &[Value], ignore: bool, context: &mut Context) -> Result<bool, MysqlError> {
    if rules.checks.is_empty() {
        return Ok(true);
    }
    let zone = context.time_zone.clone();
    for (name, condition) in &rules.checks {
        if condition.eval_truth(&Rows { rows: [row, &[], &[]], zone: &zone }, context)? == Some(false) {
            let message = format!("Check constraint '{name}' is violated.");
            if !ignore {
                return Err(MysqlError::new(codes::CHECK_CONSTRAINT_VIOLATED, message));
            }
            context.warn(codes::CHECK_CONSTRAINT_VIOLATED, message);
            return Ok(false);
        }
    }
    Ok(true)
}
