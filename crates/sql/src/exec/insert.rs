//! INSERT, REPLACE, INSERT … SELECT, IGNORE, ON DUPLICATE KEY UPDATE; the rows of LOAD DATA, which [`super::load`] makes, are stored here too.
//!
//! A row is filled in the order MySQL fills it: defaults, then the listed values from left to right, each converted to its
//! column as it is stored; then defaults that read the row; then AUTO_INCREMENT (the numbers of a statement go on above the explicit ones among them); then
//! the insert, which reports the first unique key that is taken and has locked the row in the way. What happens then is the
//! statement's choice: an error, a warning, an update of that row, or its deletion and another try.
//!
//! A statement's own writes are invisible to its reads, so that INSERT … SELECT from the same table ends; the row in the way is the exception: REPLACE and
//! ON DUPLICATE KEY UPDATE of several rows meet rows that they made themselves ([`super::over`]).

use super::answer::with_answers;
use super::check::satisfies;
use super::gathered::{Gathered, may_gather};
use super::load;
use super::output::Target;
use super::query::run_query;
use super::returning::return_row;
use super::row::{Rows, owned};
use super::rules;
use super::sort::{KeptRows, values_of};
use super::violation::unless_refused;
use crate::expr::{Columns, Context, Expr, NoColumns, convert_for_column, type_zero};
use crate::physical::model::{Fill, InsertPlan, InsertSource, OnDuplicate, SetColumn};
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::{InsertOutcome, NodeError, Transaction};
use rauk_types::error::codes;
use rauk_types::format::append_text;
use rauk_types::result::{Completion, ResultColumn, ResultSink};
use rauk_types::schema::{MAX_KEY_BYTES, MAX_LOB_BYTES};
use rauk_types::{DataType, IndexId, IndexKind, KeyDef, MysqlError, TableSchema, TypeKind, Value, ValueRef};

/// ER_WARNING_NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN of MariaDB.
const IGNORED_VALUE: u16 = 1906;

/// AUTO_INCREMENT numbers that are taken at once while nobody knows how many rows come.
const MOST_RESERVED: u64 = 65_535;

/// Longest encoded weights of a byte of text: what makes checking a key's length worth while.
const WORST_KEY_GROWTH: usize = 20;

/// One warning for each value of a generated column that VALUES gives.
fn warn_of_ignored(plan: &InsertPlan, context: &mut Context) {
    let schema = plan.table.schema();
    for &column in &plan.ignored {
        let (column, table) = (&schema.columns[column].name, &schema.name);
        let message =
            format!("The value specified for generated column '{column}' in table '{table}' has been ignored");
        context.warn(IGNORED_VALUE, message);
    }
}

pub(crate) async fn run_insert(
    plan: &InsertPlan,
    columns: &[ResultColumn],
    txn: &mut Transaction,
    context: &mut Context,
    sink: &mut dyn ResultSink,
) -> Result<Completion, MysqlError> {
    if !plan.returning.is_empty() {
        sink.columns(columns);
    }
    warn_of_ignored(plan, context);
    let selected = match &plan.source {
        InsertSource::Rows(_) | InsertSource::File(_) => None,
        InsertSource::Query(query, types) => {
            let mut rows = KeptRows::new(context.budget.memory.clone());
            run_query(query, txn, context, Target::Rows(&mut rows)).await?;
            Some((rows, types))
        }
    };
    let total = match (&plan.source, &selected) {
        (_, Some((rows, _))) => Some(rows.len() as u64),
        (InsertSource::Rows(rows), _) => Some(rows.len() as u64),
        _ => None,
    };
    let gathers = may_gather(plan, total, txn);
    let mut insert = Insert {
        plan,
        schema: plan.table.schema(),
        txn,
        context,
        sink,
        total,
        number: 0,
        reserved: None,
        reservations: 0,
        generated: None,
        last_explicit: 0,
        affected: 0,
        duplicates: 0,
        refused: 0,
        computed: Vec::new(),
        always_computed: Vec::new(),
        forced: false,
        gathers,
        gathered: Gathered::default(),
    };
    let mut result = Ok(());
    let mut loaded = None;
    match (&plan.source, selected) {
        (_, Some((mut rows, types))) => {
            while let Some(row) = rows.next() {
                let row = values_of(row).map(ValueRef::to_owned).collect();
                result = insert.selected_row(row, types).await;
                if result.is_err() {
                    break;
                }
            }
        }
        (InsertSource::Rows(rows), None) => {
            for row in rows {
                result = insert.listed_row(row).await;
                if result.is_err() {
                    break;
                }
            }
        }
        (InsertSource::File(file), None) => match Box::pin(load::load_rows(&mut insert, file)).await {
            Ok(rows) => loaded = Some(rows),
            Err(error) => result = Err(error),
        },
        (InsertSource::Query(..), None) => unreachable!("its rows have been read"),
    }
    // Errors of the rows before the one that has failed go first.
    result = insert.write_gathered().await.and(result);
    let Insert { context, generated, last_explicit, affected, duplicates, .. } = insert;
    result?;
    // A generated number goes before what LAST_INSERT_ID(expr) has set, and that before the number that a row brought.
    let of_function = context.new_last_insert_id;
    if generated.is_some() {
        context.new_last_insert_id = generated;
    }
    let several = total > Some(1) || matches!(plan.source, InsertSource::Query(..));
    let info = if let Some(loaded) = loaded {
        let deleted = if plan.on_duplicate == OnDuplicate::Replace { duplicates } else { 0 };
        let skipped = loaded.records.saturating_sub(affected.saturating_sub(deleted));
        let warnings = context.warning_count;
        format!("Records: {}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}", loaded.records)
    } else if several {
        let total = total.unwrap_or(0);
        format!("Records: {total}  Duplicates: {duplicates}  Warnings: {}", context.warning_count)
    } else {
        String::new()
    };
    Ok(Completion {
        affected_rows: affected,
        last_insert_id: generated.or(of_function).unwrap_or(last_explicit),
        warnings: context.warning_count.min(u16::MAX.into()) as u16,
        info,
        ..Completion::default()
    })
}

pub(super) struct Insert<'a> {
    pub plan: &'a InsertPlan,
    pub schema: &'a TableSchema,
    pub txn: &'a mut Transaction,
    pub context: &'a mut Context,
    /// Where rows of RETURNING go, and where a file comes from.
    pub sink: &'a mut dyn ResultSink,
    /// The rows of the statement; `None`: nobody knows before the file has ended.
    total: Option<u64>,
    /// Of the row in work, from 1.
    pub number: u64,
    /// AUTO_INCREMENT numbers in hand: the next, and how many.
    pub(super) reserved: Option<(u64, u64)>,
    /// How often numbers were taken for rows that nobody has counted.
    reservations: u32,
    pub(super) generated: Option<u64>,
    pub(super) last_explicit: u64,
    pub(super) affected: u64,
    pub(super) duplicates: u64,
    /// Rows that a check has refused, under IGNORE.
    pub refused: u64,
    /// Columns of the row in work that get a default which reads the row.
    computed: Vec<usize>,
    /// Those that get one in each row of a file.
    always_computed: Vec<usize>,
    /// SET insert_id has given the numbers: the counter does not know of them.
    pub(super) forced: bool,
    /// Whether rows are written together.
    gathers: bool,
    pub(super) gathered: Gathered,
}

/// How a row's AUTO_INCREMENT column got its number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    None,
    Generated(u64),
    Explicit(u64),
}

impl Insert<'_> {
    async fn listed_row(&mut self, row: &[Option<Expr>]) -> Result<(), MysqlError> {
        self.number += 1;
        let plan = self.plan;
        let mut values = vec![Value::Null; self.schema.columns.len()];
        for (column, fill) in plan.fill.iter().enumerate() {
            if plan.reads_row || !plan.columns.contains(&column) {
                values[column] = self.filled(column, fill, !plan.columns.contains(&column))?;
            }
        }
        let zone = self.context.time_zone.clone();
        let others = self.context.subqueries.is_active();
        for (&column, expr) in plan.columns.iter().zip(row) {
            values[column] = match expr {
                None => self.filled(column, &plan.fill[column], true)?,
                Some(expr) => {
                    let row = Rows { rows: [&values, &[], &[]], zone: &zone };
                    let row: &(dyn Columns + Sync) = if plan.reads_row { &row } else { &NoColumns };
                    let value = match others {
                        true => with_answers(self.txn, self.context, |context| expr.eval(row, context)).await?,
                        false => expr.eval(row, self.context)?,
                    };
                    self.converted(value, &expr.ty, column)?
                }
            };
        }
        self.store(values, vec![]).await
    }

    async fn selected_row(&mut self, mut row: Vec<Value>, types: &[DataType]) -> Result<(), MysqlError> {
        self.number += 1;
        let plan = self.plan;
        let mut values = vec![Value::Null; self.schema.columns.len()];
        for (column, fill) in plan.fill.iter().enumerate() {
            if !plan.columns.contains(&column) {
                values[column] = self.filled(column, fill, true)?;
            }
        }
        // What ON DUPLICATE KEY UPDATE reads of the tables of SELECT stands behind the columns that are inserted.
        let inputs = row.split_off(plan.columns.len());
        for ((&column, value), ty) in plan.columns.iter().zip(row).zip(types) {
            values[column] = self.converted(value, ty, column)?;
        }
        self.store(values, inputs).await
    }

    /// A row of a file begins.
    pub fn begin_row(&mut self) {
        self.number += 1;
        self.computed.clone_from(&self.always_computed);
    }

    /// The columns that were filled by what reads the row are so in each row that follows.
    pub fn keep_computed(&mut self) {
        self.always_computed = std::mem::take(&mut self.computed);
    }

    /// What a column gets that has no value. `counts`: it stays so, and a missing default is an error.
    pub fn filled(&mut self, column: usize, fill: &Fill, counts: bool) -> Result<Value, MysqlError> {
        match fill {
            Fill::AutoIncrement => Ok(Value::Null),
            Fill::Computed(_) => {
                if counts {
                    self.computed.push(column);
                }
                Ok(Value::Null)
            }
            Fill::Value(expr) => {
                let value = expr.eval(&NoColumns, self.context)?;
                match value {
                    Value::Null | Value::Timestamp(_) => Ok(value),
                    value => {
                        convert_for_column(value, &expr.ty, &self.schema.columns[column], self.number, self.context)
                    }
                }
            }
            Fill::Missing => {
                let definition = &self.schema.columns[column];
                if counts {
                    let message = format!("Field '{}' doesn't have a default value", definition.name);
                    if self.context.strict_statement {
                        return Err(MysqlError::new(codes::NO_DEFAULT_FOR_FIELD, message));
                    }
                    self.context.warn(codes::NO_DEFAULT_FOR_FIELD, message);
                }
                Ok(type_zero(&definition.ty))
            }
        }
    }

    /// A value as the column stores it.
    fn converted(&mut self, value: Value, ty: &DataType, column: usize) -> Result<Value, MysqlError> {
        let definition = &self.schema.columns[column];
        if value.is_null() {
            if definition.nullable || self.schema.auto_increment == Some(column) {
                return Ok(Value::Null);
            }
            // A NULL in a single row is an error in every mode.
            let lenient = self.plan.ignore || (self.total > Some(1) && !self.context.strict_statement);
            return not_null(&definition.name, &definition.ty, lenient, self.context);
        }
        let stored = convert_for_column(value, ty, definition, self.number, self.context)?;
        check_length(&stored, definition, self.number)?;
        Ok(stored)
    }

    /// Defaults that read the row, in the order of the columns: each reads those before it.
    fn compute_defaults(&mut self, values: &mut [Value]) -> Result<(), MysqlError> {
        let mut columns = std::mem::take(&mut self.computed);
        columns.sort_unstable();
        let zone = self.context.time_zone.clone();
        for column in columns {
            let Fill::Computed(expr) = &self.plan.fill[column] else { unreachable!("only these are noted") };
            let value = expr.eval(&Rows { rows: [values, &[], &[]], zone: &zone }, self.context)?;
            let definition = &self.schema.columns[column];
            values[column] = assign(value, &expr.ty, definition, self.number, self.plan.ignore, self.context)?;
        }
        Ok(())
    }

    /// Stores a row whose values are those of the statement: numbers it, checks it, writes it.
    pub async fn store(&mut self, mut values: Vec<Value>, inputs: Vec<Value>) -> Result<(), MysqlError> {
        if self.number.is_multiple_of(1024) {
            if super::scan::is_interrupted(self.txn) {
                return Err(NodeError::Interrupted.into());
            }
            super::scan::yield_now(self.context).await;
        }
        if self.context.budget.is_due() {
            super::scan::give_way(self.txn, self.context).await?;
        }
        if !self.computed.is_empty() {
            self.compute_defaults(&mut values)?;
        }
        let number = self.number_row(&mut values).await?;
        if let Some(rules) = &self.plan.rules {
            rules::compute(rules, self.schema, &mut values, self.number, self.plan.ignore, self.context)?;
        }
        if let Some(check) = &self.plan.check
            && !satisfies(check, &values, &[], self.plan.ignore, self.txn, self.context).await?
        {
            self.refused += 1;
            self.give_back(number);
            return Ok(());
        }
        if let Some(rules) = &self.plan.rules
            && !rules::holds(rules, &values, self.plan.ignore, self.context)?
        {
            self.refused += 1;
            self.give_back(number);
            return Ok(());
        }
        check_keys(self.schema, &self.plan.key_defs, &values)?;
        match self.gathers {
            true => self.gather(values, number, inputs).await,
            false => self.write(values, number, inputs).await,
        }
    }

    /// A row was inserted that has this number.
    pub(super) async fn inserted(&mut self, number: Number) -> Result<(), MysqlError> {
        self.affected += 1;
        match number {
            Number::Generated(number) => {
                self.generated.get_or_insert(number);
                if self.forced {
                    self.plan.database.raise_auto_increment(&self.plan.table, number).await?;
                }
            }
            Number::Explicit(value) => {
                // Only a row that is there moves the counter, as in InnoDB.
                self.plan.database.raise_auto_increment(&self.plan.table, value).await?;
                self.last_explicit = value;
            }
            Number::None => {}
        }
        Ok(())
    }

    /// Writes a row that is numbered and checked.
    pub(super) async fn write(
        &mut self,
        values: Vec<Value>,
        number: Number,
        inputs: Vec<Value>,
    ) -> Result<(), MysqlError> {
        // What follows the only row may not fail: it may be committed by then.
        let ends = self.total == Some(1) && !matches!(number, Number::Explicit(_)) && self.plan.returning.is_empty();
        loop {
            self.txn.end_with_write(ends && !self.forced);
            let written = self.txn.insert(&self.plan.table, &values).await;
            self.txn.end_with_write(false);
            let Some(outcome) = unless_refused(written, self.plan.ignore, self.context)? else {
                self.duplicates += 1;
                self.give_back(number);
                return Ok(());
            };
            let (index, existing) = match outcome {
                InsertOutcome::Inserted => {
                    self.inserted(number).await?;
                    return self.returned(&values).await;
                }
                InsertOutcome::Duplicate { index, existing } => (index, existing),
            };
            match self.plan.on_duplicate {
                OnDuplicate::Error => {
                    return Err(duplicate(self.schema, &self.plan.key_defs, index, &values, self.context));
                }
                OnDuplicate::Skip => {
                    let error = duplicate(self.schema, &self.plan.key_defs, index, &values, self.context);
                    self.context.warn(error.code, error.message);
                    self.duplicates += 1;
                    self.give_back(number);
                    return Ok(());
                }
                OnDuplicate::Update => {
                    let Some(old) = self.existing(index, &existing).await? else { continue };
                    self.give_back(number);
                    return self.update_existing(old, values, inputs).await;
                }
                OnDuplicate::Replace => {
                    let Some(old) = self.existing(index, &existing).await? else { continue };
                    if self.replaces_nothing(index, &old, &values) {
                        self.affected += 1;
                        return self.returned(&values).await;
                    }
                    if self.txn.delete(&self.plan.table, &old).await? {
                        self.affected += 1;
                        self.duplicates += 1;
                    }
                }
            }
        }
    }

    /// The row in the way, locked. Error 1748: it is in a partition that the statement does not name, as a global key allows.
    async fn existing(&mut self, index: IndexId, key: &[u8]) -> Result<Option<Vec<Value>>, MysqlError> {
        let columns = self.schema.columns.len();
        let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
        let existing = self.txn.get(&self.plan.table, key, lock, |view| view.map(|v| owned(&v, columns))).await?;
        let is_global = self.schema.index(index).is_some_and(|index| index.global);
        if existing.is_none() && is_global && self.plan.table.leaves().is_some() {
            let text = "Found a row not matching the given partition set";
            return Err(MysqlError::new(codes::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET, text));
        }
        Ok(existing)
    }

    /// Gives the row of RETURNING.
    pub(super) async fn returned(&mut self, row: &[Value]) -> Result<(), MysqlError> {
        match self.plan.returning.as_slice() {
            [] => Ok(()),
            returning => return_row(returning, row, self.txn, self.context, self.sink).await,
        }
    }

    /// The number of a row that was not inserted goes to the next one.
    pub(super) fn give_back(&mut self, number: Number) {
        if let (Number::Generated(number), Some((next, count))) = (number, &mut self.reserved) {
            *next = number;
            *count += 1;
        }
    }

    /// The numbers in hand go on above one that a row brought. When it is beyond them, the next come from the counter, which is above it.
    pub(super) fn pass_number(&mut self, number: u64) {
        let Some((next, count)) = self.reserved else { return };
        if number < next {
            return;
        }
        let step = self.context.auto_increment.0;
        let passed = (number - next) / step + 1;
        self.reserved = (passed < count).then(|| (next.saturating_add(passed.saturating_mul(step)), count - passed));
    }

    /// The first of as many numbers as rows may still need one; they are auto_increment_increment apart.
    async fn reserve(&mut self) -> Result<(u64, u64), MysqlError> {
        let count = match self.total {
            Some(total) => total - self.number + 1,
            // More each time, as in MySQL.
            None => MOST_RESERVED.min(1 << self.reservations.min(16)),
        };
        self.reservations += 1;
        if let Some(first) = self.context.insert_id.take() {
            self.forced = true;
            return Ok((first, count));
        }
        let (step, offset) = self.context.auto_increment;
        let taken = count.checked_mul(step).ok_or_else(no_number)?;
        let first = self.plan.database.take_auto_increment(&self.plan.table, taken).await?;
        Ok((aligned(first, step, offset).ok_or_else(no_number)?, count))
    }

    /// Gives the row its AUTO_INCREMENT number, or finds the one it brings.
    async fn number_row(&mut self, values: &mut [Value]) -> Result<Number, MysqlError> {
        let Some(column) = self.schema.auto_increment else { return Ok(Number::None) };
        let largest = self.schema.columns[column].ty.largest_counted();
        let wanted = match values[column].as_ref().as_counted() {
            Some(0) if !self.context.sql_mode.no_auto_value_on_zero => None,
            Some(v) => Some(v),
            None if values[column].is_null() => None,
            None => return Ok(Number::None),
        };
        if let Some(value) = wanted {
            let Ok(value) = u64::try_from(value) else { return Ok(Number::None) };
            if self.may_give_back() {
                // It is passed by what they leave.
                self.write_gathered().await?;
            }
            self.pass_number(value);
            return Ok(Number::Explicit(value));
        }
        if self.reserved.is_none_or(|(next, count)| count == 0 || next > largest) {
            // The counter is above the numbers of rows that are written, and some of these may give theirs back.
            self.write_gathered().await?;
            if self.reserved.is_none_or(|(_, count)| count == 0) {
                self.reserved = Some(self.reserve().await?);
            }
        }
        self.take_number(values)
    }

    /// Gives the row a number of those in hand.
    pub(super) fn take_number(&mut self, values: &mut [Value]) -> Result<Number, MysqlError> {
        let (Some(column), Some((next, count))) = (self.schema.auto_increment, self.reserved) else {
            return Err(no_number());
        };
        let definition = &self.schema.columns[column];
        self.reserved = Some((next.saturating_add(self.context.auto_increment.0), count.saturating_sub(1)));
        if next > definition.ty.largest_counted() {
            return Err(no_number());
        }
        values[column] = match definition.ty.kind {
            TypeKind::Float | TypeKind::Double => Value::Double(next as f64),
            _ if definition.ty.unsigned => Value::UInt(next),
            _ => Value::Int(next as i64),
        };
        Ok(Number::Generated(next))
    }
}

/// ER_AUTOINC_READ_FAILED.
fn no_number() -> MysqlError {
    MysqlError::new(1467, "Failed to read auto-increment value from storage engine")
}

/// The first number from `number` on that is `offset`, or a multiple of `step` above it. An offset above the step is ignored, as in MySQL.
fn aligned(number: u64, step: u64, offset: u64) -> Option<u64> {
    let offset = if offset > step { 0 } else { offset };
    let above = number.saturating_sub(offset);
    offset.checked_add(above.div_ceil(step).checked_mul(step)?)
}

/// NULL for a column that takes none: an error, or where allowed the type's zero and a warning.
pub(crate) fn not_null(column: &str, ty: &DataType, lenient: bool, context: &mut Context) -> Result<Value, MysqlError> {
    let message = format!("Column '{column}' cannot be null");
    if !lenient {
        return Err(MysqlError::new(codes::BAD_NULL, message));
    }
    context.warn(codes::BAD_NULL, message);
    Ok(type_zero(ty))
}

/// The value of an assignment, as the column stores it.
pub(crate) fn assign(
    value: Value,
    ty: &DataType,
    column: &rauk_types::Column,
    row_number: u64,
    ignore: bool,
    context: &mut Context,
) -> Result<Value, MysqlError> {
    if value.is_null() {
        if column.nullable {
            return Ok(Value::Null);
        }
        let lenient = ignore || !context.strict_statement;
        return not_null(&column.name, &column.ty, lenient, context);
    }
    let stored = convert_for_column(value, ty, column, row_number, context)?;
    check_length(&stored, column, row_number)?;
    Ok(stored)
}

/// Columns with ON UPDATE CURRENT_TIMESTAMP that the statement does not set.
pub(crate) fn set_on_update(schema: &TableSchema, set: &[SetColumn], new: &mut [Value], context: &Context) {
    for (column, definition) in schema.columns.iter().enumerate() {
        if definition.on_update_now && !set.iter().any(|s| s.column == column) {
            new[column] = now_for(&definition.ty, context);
        }
    }
}

/// The statement's time as a TIMESTAMP or DATETIME column stores it.
pub(super) fn now_for(ty: &DataType, context: &Context) -> Value {
    let unit = 10i64.pow(6 - u32::from(ty.scale.min(6)));
    let micros = context.now_micros.div_euclid(unit) * unit;
    if ty.kind == TypeKind::Timestamp {
        return Value::Timestamp(micros);
    }
    let local = rauk_types::DateTime::from_unix_micros(micros, &context.time_zone);
    Value::DateTime(local.unwrap_or(rauk_types::DateTime::ZERO))
}

pub(super) fn check_length(value: &Value, column: &rauk_types::Column, row_number: u64) -> Result<(), MysqlError> {
    match crate::memory::heap_length(value) {
        bytes if column.ty.is_lob() && bytes > MAX_LOB_BYTES => Err(MysqlError::new(
            codes::DATA_TOO_LONG,
            format!("Data too long for column '{}' at row {row_number}", column.name),
        )),
        _ => Ok(()),
    }
}

/// Keys have a largest size in bytes, whatever the number of characters. Those of a FULLTEXT index are words.
pub(crate) fn check_keys(schema: &TableSchema, key_defs: &[KeyDef], values: &[Value]) -> Result<(), MysqlError> {
    for (index, key_def) in schema.indexes.iter().zip(key_defs) {
        // What is made of an array has limits of its own.
        if matches!(index.kind, IndexKind::FullText(_)) || index.elements().is_some() {
            continue;
        }
        let text: usize =
            index.parts.iter().filter_map(|p| values[p.column].as_ref().as_bytes()).map(<[u8]>::len).sum();
        if text * WORST_KEY_GROWTH <= MAX_KEY_BYTES - 256 {
            continue;
        }
        let mut key = Vec::new();
        key_def.encode_values(values, &mut key);
        if key.len() > MAX_KEY_BYTES {
            return Err(MysqlError::new(
                codes::TOO_LONG_KEY,
                format!("Specified key was too long; max key length is {MAX_KEY_BYTES} bytes"),
            ));
        }
    }
    Ok(())
}

/// Error 1062 for a row.
pub(crate) fn duplicate(
    schema: &TableSchema,
    key_defs: &[KeyDef],
    index: IndexId,
    values: &[Value],
    context: &Context,
) -> MysqlError {
    let mut text = Vec::new();
    let position = schema.indexes.iter().position(|i| i.id == index).unwrap_or(0);
    for (number, part) in key_defs[position].parts.iter().enumerate() {
        if number > 0 {
            text.push(b'-');
        }
        let value = super::row::local(values[part.column].as_ref(), &context.time_zone);
        if value.is_null() {
            text.extend_from_slice(b"NULL");
            continue;
        }
        let start = text.len();
        append_text(value, &schema.columns[part.column].ty, &mut text);
        if let Some(prefix) = part.prefix {
            let shown = String::from_utf8_lossy(&text[start..]).chars().take(prefix as usize).collect::<String>();
            text.truncate(start);
            text.extend_from_slice(shown.as_bytes());
        }
    }
    MysqlError::new(
        codes::DUP_ENTRY,
        format!(
            "Duplicate entry '{}' for key '{}.{}'",
            String::from_utf8_lossy(&text),
            schema.name,
            schema.indexes[position].name
        ),
    )
}
