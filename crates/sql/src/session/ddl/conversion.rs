//! Rows in the form of a new definition: what ALTER TABLE makes of each row that it writes again.
//!
//! A statement has one [`Conversion`], which several threads use at the same time, each with a context of its own
//! ([`Beside`]). What they have to say together is numbered: new AUTO_INCREMENT values, and the rows that messages name,
//! which come in no order. Warnings of other threads go to the statement when they have ended.

use super::columns;
use crate::exec::rules;
use crate::expr::context::Warning;
use crate::expr::{self, Context, Expr};
use crate::physical::model::RowRules;
use parking_lot::Mutex;
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, TableSchema, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Conversion {
    pub schema: TableSchema,
    /// Where each new column's value comes from, and the type it has there.
    pub sources: Vec<Option<(usize, DataType)>>,
    /// The column that gets numbers.
    pub numbered: Option<usize>,
    /// NO_AUTO_VALUE_ON_ZERO.
    pub zero_is_number: bool,
    /// The highest number so far.
    pub highest: AtomicU64,
    /// Rows that have numbers for messages.
    pub rows: AtomicU64,
    pub row_rules: Option<Arc<RowRules>>,
    /// Columns with defaults that are expressions.
    pub computed: Vec<(usize, Expr)>,
    pub strict: bool,
}

/// Numbers for the next rows of one thread.
#[derive(Default)]
pub(super) struct RowNumbers {
    last: u64,
    end: u64,
}

/// So many are taken at a time, so that threads do not meet at each row.
const NUMBERS: u64 = 500;

impl RowNumbers {
    fn next(&mut self, rows: &AtomicU64) -> u64 {
        if self.last == self.end {
            self.last = rows.fetch_add(NUMBERS, Ordering::Relaxed);
            self.end = self.last + NUMBERS;
        }
        self.last += 1;
        self.last
    }
}

impl Conversion {
    /// The old column whose numbers are kept and counted.
    pub fn numbers_of(&self) -> Option<usize> {
        self.numbered.and_then(|at| self.sources[at]).map(|(from, _)| from)
    }

    pub fn convert(
        &self,
        row: &[Value],
        numbers: &mut RowNumbers,
        context: &mut Context,
    ) -> Result<Vec<Value>, MysqlError> {
        let row_number = numbers.next(&self.rows);
        let mut out = Vec::with_capacity(self.schema.columns.len());
        for (at, column) in self.schema.columns.iter().enumerate() {
            let value = match self.sources[at] {
                source if self.numbered == Some(at) => {
                    let stored = match source {
                        Some((from, ty)) if !row[from].is_null() => {
                            expr::convert_for_column(row[from].clone(), &ty, column, row_number, context)?
                        }
                        _ => Value::Null,
                    };
                    let zero_is_number = self.zero_is_number && source.is_some();
                    match stored.as_ref().as_counted() {
                        Some(number) if number != 0 || zero_is_number => stored,
                        _ => {
                            let number = Value::UInt(self.highest.fetch_add(1, Ordering::Relaxed).saturating_add(1));
                            let ty = DataType::BIGINT_UNSIGNED;
                            expr::convert_for_column(number, &ty, column, row_number, context)?
                        }
                    }
                }
                // Computed below.
                _ if column.generated.is_some() => Value::Null,
                None => column.initial.clone(),
                Some((from, _)) if row[from].is_null() && !column.nullable => {
                    if self.strict {
                        return Err(MysqlError::new(1138, "Invalid use of NULL value"));
                    }
                    let message = format!("Data truncated for column '{}' at row {row_number}", column.name);
                    context.warn(codes::WARN_DATA_TRUNCATED, message);
                    columns::implicit_value(column, context)?
                }
                Some((from, ty)) if ty == column.ty => row[from].clone(),
                Some((from, ty)) => expr::convert_for_column(row[from].clone(), &ty, column, row_number, context)?,
            };
            out.push(value);
        }
        for (at, expr) in &self.computed {
            rules::fill(*at, expr, &self.schema, &mut out, row_number, context)?;
        }
        if let Some(row_rules) = &self.row_rules {
            rules::compute(row_rules, &self.schema, &mut out, row_number, false, context)?;
            rules::holds(row_rules, &out, false, context)?;
        }
        Ok(out)
    }
}

/// Warnings of threads that have ended.
#[derive(Default)]
pub(super) struct Warnings {
    pub kept: Vec<Warning>,
    /// Those that were not kept included.
    pub count: u64,
}

/// What another thread converts rows with.
pub(super) struct Beside {
    conversion: Arc<Conversion>,
    context: Context,
    numbers: RowNumbers,
    warnings: Arc<Mutex<Warnings>>,
}

impl Beside {
    pub fn new(conversion: Arc<Conversion>, context: Context, warnings: Arc<Mutex<Warnings>>) -> Beside {
        Beside { conversion, context, numbers: RowNumbers::default(), warnings }
    }

    pub fn convert(&mut self, row: &[Value]) -> Result<Vec<Value>, MysqlError> {
        self.conversion.convert(row, &mut self.numbers, &mut self.context)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let mut warnings = self.warnings.lock();
        let room = self.context.max_error_count.saturating_sub(warnings.kept.len());
        warnings.kept.extend(self.context.warnings.drain(..).take(room));
        warnings.count += self.context.warning_count;
    }
}
