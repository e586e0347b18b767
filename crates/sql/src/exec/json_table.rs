//! The rows of JSON_TABLE.
//!
//! Each match of the table's path gives a row, and more where NESTED PATHs match: a nested path gives one row for each of
//! its matches, in which the columns of the nested paths beside it are NULL. Where none of them matches there is one row
//! all the same. A document that is NULL gives no rows.
//!
//! A value is stored as INSERT in strict mode would store it, after the rules of JSON: `null` is NULL but in a JSON column, a text is a
//! number or a date only as a whole, an array or an object is no scalar (3666). What does not fit is what ON ERROR says,
//! an error only with ERROR ON ERROR; no warnings are left. Defaults are stored before the first row, so that one that
//! does not fit is an error even when it is not needed.
//!
//! The document and all rows are in memory before the first row goes on, and count against the statement's memory.

use super::answer::turn;
use super::output::Target;
use super::select::Ran;
use crate::expr::json;
use crate::expr::json::store::{not_scalar, value_for};
use crate::expr::{Context, NoColumns, run};
use crate::logical::{JsonCell, JsonRows, JsonTable, OnMissing};
use crate::memory::{Memory, values_bytes};
use crate::physical::model::JsonTablePlan;
use rauk_node::Transaction;
use rauk_types::json::{Json, JsonRef, Normal};
use rauk_types::{Column, MysqlError, TypeKind, Value};

/// Work of looking at one value of a document, in bytes.
const VISIT: usize = 64;

pub(super) async fn run_json_table(
    plan: &JsonTablePlan,
    txn: &mut Transaction,
    context: &mut Context,
    mut target: Target<'_>,
) -> Result<Ran, MysqlError> {
    let mut ran = Ran::default();
    let document = match plan.document.eval(&NoColumns, context)? {
        Value::Null => return Ok(ran),
        document @ (Value::Str(_) | Value::Json(_)) => document,
        // Only the type of a parameter is not known before.
        _ => return Err(no_document()),
    };
    let runner = context.budget.runner(crate::memory::heap_bytes(&document));
    let rows = run(runner, || rows_of(&plan.table, &document, context))?;
    let Rows { list, .. } = &rows;
    for row in list {
        turn(1, txn, context).await?;
        ran.rows += 1;
        if !target.take(row.clone())? {
            ran.refused = true;
            break;
        }
        target.flush_if_large(txn, context).await?;
    }
    Ok(ran)
}

/// Rows with the memory that they take.
struct Rows {
    list: Vec<Vec<Value>>,
    bytes: usize,
    memory: Memory,
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.memory.give(self.bytes);
    }
}

/// Errors: 3141, 1038, 1317, and those of ERROR ON EMPTY and ERROR ON ERROR.
fn rows_of(table: &JsonTable, document: &Value, context: &mut Context) -> Result<Rows, MysqlError> {
    let memory = context.budget.memory.clone();
    context.budget.work(crate::memory::heap_bytes(document))?;
    let parsed;
    let normal: Normal<'_> = match document {
        Value::Json(stored) => json::normal(JsonRef::stored(stored), context)?,
        Value::Str(text) => {
            parsed =
                json::counted(&mut context.budget, |take| json::parsed(text, 1, "json_table", take)?.encode(take))?;
            json::normal(JsonRef::stored(&parsed), context)?
        }
        _ => return Err(no_document()),
    };
    let held = normal.get().stored_len();
    memory.take(held)?;
    let mut making = Making {
        table,
        defaults: Vec::new(),
        row: vec![Value::Null; table.columns.len()],
        rows: Rows { list: vec![], bytes: held, memory },
        context,
    };
    making.store_defaults()?;
    making.matches(&table.rows, normal.get())?;
    Ok(making.rows)
}

/// DEFAULT of ON EMPTY and of ON ERROR of one column, stored.
#[derive(Clone, Default)]
struct Defaults {
    on_empty: Option<Value>,
    on_error: Option<Value>,
}

struct Making<'a> {
    table: &'a JsonTable,
    /// One a column.
    defaults: Vec<Defaults>,
    /// The row as far as it is filled; columns of paths that have no match are NULL.
    row: Vec<Value>,
    rows: Rows,
    context: &'a mut Context,
}

impl Making<'_> {
    fn store_defaults(&mut self) -> Result<(), MysqlError> {
        let table = self.table;
        self.defaults = vec![Defaults::default(); table.columns.len()];
        let mut result = Ok(());
        table.rows.for_each_cell(&mut |cell| {
            let JsonCell::Value { at, on_empty, on_error, .. } = cell else { return };
            let mut stored = |action: &OnMissing| match action {
                OnMissing::Default(value) => value_for(document_of(value), &table.columns[*at], self.context).map(Some),
                OnMissing::Null | OnMissing::Error => Ok(None),
            };
            match (stored(on_empty), stored(on_error)) {
                (Ok(on_empty), Ok(on_error)) => self.defaults[*at] = Defaults { on_empty, on_error },
                (Err(error), _) | (_, Err(error)) if result.is_ok() => result = Err(error),
                _ => {}
            }
        });
        result
    }

    /// The rows of all matches of a path in `document`. Gives whether there was one.
    fn matches(&mut self, rows: &JsonRows, document: JsonRef<'_>) -> Result<bool, MysqlError> {
        let found = rows.path.find(document, &mut || self.context.budget.work(VISIT))?;
        for (number, value) in found.iter().enumerate() {
            for cell in &rows.cells {
                let (at, stored) = self.cell(cell, *value, number as u64 + 1)?;
                self.row[at] = stored;
            }
            let mut nested = false;
            for below in &rows.nested {
                nested |= self.matches(below, *value)?;
                below.for_each_cell(&mut |cell| self.row[place(cell)] = Value::Null);
            }
            if !nested {
                let bytes = values_bytes(&self.row) + size_of::<Vec<Value>>();
                self.rows.memory.take(bytes)?;
                self.rows.bytes += bytes;
                self.context.budget.work(bytes)?;
                self.rows.list.push(self.row.clone());
            }
        }
        Ok(!found.is_empty())
    }

    fn cell(&mut self, cell: &JsonCell, document: JsonRef<'_>, number: u64) -> Result<(usize, Value), MysqlError> {
        let context = &mut *self.context;
        Ok(match cell {
            JsonCell::Ordinality { at } => (*at, Value::UInt(number)),
            JsonCell::Exists { at, path } => {
                let exists = path.exists(document, &mut || context.budget.work(VISIT))?;
                let number = Value::Json(Json::Int(exists.into()).encode(&mut |_| Ok(()))?);
                (*at, value_for(document_of(&number), &self.table.columns[*at], context)?)
            }
            JsonCell::Value { at, path, on_empty, on_error } => {
                let column = &self.table.columns[*at];
                let found = path.find(document, &mut || context.budget.work(VISIT))?;
                let stored = match found.as_slice() {
                    [] => match on_empty {
                        OnMissing::Null => Ok(Value::Null),
                        OnMissing::Default(_) => Ok(self.defaults[*at].on_empty.clone().expect("it was stored before")),
                        OnMissing::Error => return Err(missing(column)),
                    },
                    [value] => value_for(*value, column, context),
                    several if column.ty.kind == TypeKind::Json => {
                        let list = Json::Array(several.iter().map(|value| Json::Stored(*value)).collect());
                        json::encoded(&list, context)
                    }
                    _ => Err(not_scalar(column)),
                };
                let stored = match (stored, on_error) {
                    (Ok(value), _) => value,
                    (Err(_), OnMissing::Null) => Value::Null,
                    (Err(_), OnMissing::Default(_)) => {
                        self.defaults[*at].on_error.clone().expect("it was stored before")
                    }
                    (Err(error), OnMissing::Error) => return Err(error),
                };
                (*at, stored)
            }
        })
    }
}

fn place(cell: &JsonCell) -> usize {
    match cell {
        JsonCell::Ordinality { at } | JsonCell::Value { at, .. } | JsonCell::Exists { at, .. } => *at,
    }
}

/// ER_INVALID_TYPE_FOR_JSON.
fn no_document() -> MysqlError {
    let what = "a JSON string or JSON type is required";
    MysqlError::new(3146, format!("Invalid data type for JSON data in argument 1 to function json_table; {what}."))
}

/// ER_MISSING_JSON_TABLE_VALUE.
fn missing(column: &Column) -> MysqlError {
    MysqlError::new(3665, format!("Missing value for JSON_TABLE column '{}'", column.name))
}

/// The document that a default is.
fn document_of(value: &Value) -> JsonRef<'_> {
    match value.as_ref() {
        rauk_types::ValueRef::Json(document) => document,
        _ => JsonRef::NULL,
    }
}
