//! Rows written again under a new definition: ALTER TABLE where stored values change, or where rows live.
//!
//! [`needs_rewrite`] says of two definitions whether rows that are there can be read as the new one says. FORCE and REBUILD
//! PARTITION write rows again as well where they are in several layouts, or would be read with values that a column got when it was added
//! ([`is_as_new`]): so that EXCHANGE PARTITION finds them alike.

use super::alter::key_parts;
use super::checks;
use super::conversion::{Beside, Conversion, RowNumbers, Warnings};
use crate::bind::own_row;
use crate::session::session::Session;
use parking_lot::Mutex;
use rauk_node::{DdlWait, Look, Meanwhile, OwnConvert, TableHandle, is_copied_online};
use rauk_types::format::parse_int_prefix;
use rauk_types::{Column, ColumnDefault, DataType, MysqlError, TableSchema, TypeKind, Value, ValueRef};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether all rows are as those of a new table would be.
pub(super) fn is_as_new(table: &TableSchema) -> bool {
    table.layouts.len() == 1
}

pub(super) fn needs_rewrite(old: &TableSchema, new: &TableSchema) -> bool {
    let distribution = |schema: &TableSchema| -> Vec<_> {
        schema.distribution.iter().map(|&at| (schema.columns[at].id, schema.columns[at].ty.collation)).collect()
    };
    if key_parts(old, old.primary()) != key_parts(new, new.primary()) || distribution(old) != distribution(new) {
        return true;
    }
    if checks::must_validate(old, new) || computes(old, new, |_| true) {
        return true;
    }
    // Rows may belong to other partitions.
    let looked_at = old.partitioning.iter().flat_map(|partitioning| partitioning.columns()).map(|at| &old.columns[at]);
    let changed = |before: &Column| new.columns.iter().any(|c| c.id == before.id && c.ty != before.ty);
    if looked_at.into_iter().any(changed) {
        return true;
    }
    // Rows that are there must be numbered, and the counter must be above their numbers.
    newly_numbered(old, new)
        || new.columns.iter().any(|column| {
            old.columns
                .iter()
                .find(|c| c.id == column.id)
                .is_some_and(|before| !reads_as(&before.ty, &column.ty) || (before.nullable && !column.nullable))
        })
}

/// Whether AUTO_INCREMENT comes to a column that is new or had it not.
fn newly_numbered(old: &TableSchema, new: &TableSchema) -> bool {
    let numbered = |schema: &TableSchema| schema.auto_increment.map(|at| schema.columns[at].id);
    numbered(new).is_some_and(|column| numbered(old) != Some(column))
}

/// The number that a value will be as an integer; 0 for what is none or below.
fn number_of(value: &Value) -> u64 {
    let number = match value.as_ref() {
        ValueRef::Decimal(v) => v.to_i128(),
        ValueRef::Double(v) => Some(v.round() as i128),
        value => value.as_integer().or_else(|| value.as_bytes().map(|text| parse_int_prefix(text).value)),
    };
    number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}

/// Whether rows as they are stored can be read as the new type: the same family, and at least as wide.
fn reads_as(old: &DataType, new: &DataType) -> bool {
    use TypeKind::*;
    if old.kind != new.kind {
        let rank = |kind| match kind {
            TinyText => Some((0, 0)),
            Text => Some((0, 1)),
            MediumText => Some((0, 2)),
            LongText => Some((0, 3)),
            TinyBlob => Some((1, 0)),
            Blob => Some((1, 1)),
            MediumBlob => Some((1, 2)),
            LongBlob => Some((1, 3)),
            _ => None,
        };
        return match (rank(old.kind), rank(new.kind)) {
            (Some((family, from)), Some((other, to))) => {
                family == other && from <= to && old.collation == new.collation
            }
            _ => false,
        };
    }
    match old.kind {
        VarChar | VarBinary | Char => old.collation == new.collation && old.length <= new.length,
        TinyInt | SmallInt | MediumInt | Int | BigInt => old.unsigned == new.unsigned,
        // Members may be added behind the others: numbers stay what they are.
        Enum | Set => {
            let (Some(before), Some(after)) = (old.members, new.members) else { return false };
            let begins = before.len() <= after.len() && before.texts().zip(after.texts()).all(|(a, b)| a == b);
            begins && old.collation == new.collation && old.row_bytes() == new.row_bytes()
        }
        Bit => old.length <= new.length && old.row_bytes() == new.row_bytes(),
        Float | Double => {
            old.unsigned == new.unsigned
                && (new.scale == 31 || (old.scale, old.precision) == (new.scale, new.precision))
        }
        _ => old == new,
    }
}

/// Whether MySQL would do it with ALGORITHM=COPY: a changed column type, AUTO_INCREMENT for a column that is there, or a primary key that is
/// dropped and not replaced.
pub(super) fn is_copy(old: &TableSchema, new: &TableSchema) -> bool {
    let changed =
        |column: &Column| old.columns.iter().any(|before| before.id == column.id && !reads_as(&before.ty, &column.ty));
    // A column that gets its numbers while it is added is no reason.
    let numbers_rows = newly_numbered(old, new)
        && new.auto_increment.is_some_and(|at| old.columns.iter().any(|c| c.id == new.columns[at].id));
    let in_rows = |column: &Column| column.generated.as_ref().is_none_or(|generated| generated.stored);
    checks::must_validate(old, new)
        || computes(old, new, in_rows)
        || new.columns.iter().any(changed)
        || (new.hidden_key && !old.hidden_key)
        || numbers_rows
}

/// Whether columns that `counts` says get values which are computed for each row: new ones with a default that is an expression, and generated ones that
/// are new or generated otherwise than before.
fn computes(old: &TableSchema, new: &TableSchema, counts: impl Fn(&Column) -> bool) -> bool {
    new.columns.iter().filter(|column| counts(column)).any(|column| {
        let before = old.columns.iter().find(|c| c.id == column.id);
        match (&column.generated, before) {
            (Some(generated), Some(before)) => before.generated.as_ref() != Some(generated),
            (Some(_), None) => true,
            (None, before) => before.is_none() && matches!(column.default, ColumnDefault::Expression(_)),
        }
    })
}

/// Whether users go on while the rows are written again. Not where rows get numbers, which stand above those of all that are there, nor where
/// new foreign keys are validated.
pub(super) fn is_online(old: &TableSchema, new: &TableSchema, checks: bool) -> bool {
    let adds_foreign_key = new.foreign_keys.iter().any(|key| !old.foreign_keys.contains(key));
    is_copied_online(old, new) && !newly_numbered(old, new) && !(checks && adds_foreign_key)
}

impl Session {
    fn conversion(&self, old: &TableSchema, new: &TableSchema) -> Result<Conversion, MysqlError> {
        let source = |column: &Column| {
            let at = old.columns.iter().position(|before| before.id == column.id)?;
            Some((at, old.columns[at].ty))
        };
        let sources: Vec<Option<(usize, DataType)>> = new.columns.iter().map(source).collect();
        let bind_context = self.bind_context(Vec::new());
        let mut computed = Vec::new();
        for at in (0..sources.len()).filter(|&at| sources[at].is_none()) {
            if let Some(expr) = own_row::computed_default(new, at, &bind_context)? {
                computed.push((at, expr));
            }
        }
        Ok(Conversion {
            sources,
            numbered: new.auto_increment.filter(|_| newly_numbered(old, new)),
            zero_is_number: self.settings.sql_mode.no_auto_value_on_zero,
            highest: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            row_rules: own_row::row_rules(new, &bind_context)?,
            computed,
            strict: self.settings.sql_mode.strict,
            schema: new.clone(),
        })
    }

    /// Writes all rows again under the new definition; gives how many. `meanwhile`: who may use the table, where that can be. Where AUTO_INCREMENT comes to a column, rows without a number get one above
    /// all that are there: rows come in no order, so that lower ones might be taken by rows that are yet to come.
    pub(super) async fn rewrite_table(
        &mut self,
        table: &TableHandle,
        old: &TableSchema,
        new: TableSchema,
        meanwhile: Meanwhile,
    ) -> Result<u64, MysqlError> {
        let conversion = Arc::new(self.conversion(old, &new)?);
        let numbers_of = conversion.numbers_of();
        let runtime = self.engine.runtime.clone();
        let database = self.engine.database.clone();
        let context = &mut self.context;
        let before = std::mem::replace(&mut context.strict_statement, conversion.strict);
        // Other threads convert rows with contexts of their own.
        let template = Mutex::new(context.beside(0));
        let warnings: Arc<Mutex<Warnings>> = Arc::default();
        let further = || -> OwnConvert {
            let context = template.lock().beside(runtime.random());
            let mut beside = Beside::new(conversion.clone(), context, warnings.clone());
            Box::new(move |row: &[Value]| beside.convert(row))
        };
        let mut numbers = RowNumbers::default();
        let mut convert = |row: &[Value]| conversion.convert(row, &mut numbers, context);
        let mut look = numbers_of.map(|from| {
            let highest = &conversion.highest;
            move |row: &[Value]| {
                highest.fetch_max(number_of(&row[from]), Ordering::Relaxed);
            }
        });
        let look = look.as_mut().map(|look| look as &mut Look<'_>);
        let wait = DdlWait {
            limit: self.settings.metadata_wait,
            interrupt: Some(&self.process.interrupt),
            foreign_key_checks: self.settings.foreign_key_checks,
            meanwhile: if is_online(old, &conversion.schema, self.settings.foreign_key_checks) {
                meanwhile
            } else {
                Meanwhile::Nobody
            },
            progress: Some(&self.process.progress),
            locks: self.locks_of_ddl.as_ref(),
            threads: self.settings.ddl_threads,
            rows_per_second: self.settings.ddl_rows_per_second,
        };
        let result = match table.is_temporary() {
            true => database.alter_temporary(table, new, look, &mut convert).await.map(|(new, rows)| (Some(new), rows)),
            false => {
                let written = database.rewrite_seen_table(table, new, wait, look, &mut convert, Some(&further)).await;
                written.map(|rows| (None, rows))
            }
        };
        self.context.strict_statement = before;
        let warnings = std::mem::take(&mut *warnings.lock());
        self.context.take_over(warnings.kept, warnings.count);
        let (temporary, rows) = result?;
        if let Some(new) = temporary {
            self.replace_temporary(table, new);
        }
        Ok(rows)
    }
}
