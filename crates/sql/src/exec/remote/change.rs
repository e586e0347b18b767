//! UPDATE and DELETE of one row by its primary key, where another node leads its partition.
//!
//! The conditions and assignments travel as a program, and the row is changed where it is
//! ([`rauk_node::Transaction::change`]). Only what goes as it nearly always does is done there: the row meets the
//! conditions, an assignment changes something, no value has to be cut or warned of. In every other case the row comes
//! here, locked, and the statement goes on with it: so counts, warnings and errors are made in one place.

use super::MAX_INPUT;
use super::evaluator::context_of;
use super::program::{self, EncodedThen, Parts, Program, Settings, Then};
use crate::exec::insert::{assign, check_keys, set_on_update};
use crate::exec::scan::passes;
use crate::expr::codec::{Inputs, encode};
use crate::expr::{Context, Expr};
use crate::logical::SetColumn;
use crate::physical::model::{DeletePlan, Level, UpdatePlan};
use crate::physical::row::{Joined, Part, Rows, owned};
use jiff::tz::TimeZone;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::{NewRow, RowChange};
use rauk_types::{MysqlError, RowView, TableSchema};
use std::sync::Arc;

/// The program of an UPDATE; `None`: its rows must be changed here.
pub(crate) fn of_update(plan: &UpdatePlan, schema: &TableSchema, context: &Context) -> Option<Vec<u8>> {
    let plain = !plan.ignore && plan.check.is_none() && plan.rules.is_none() && !schema.has_row_rules();
    let key = &schema.primary().parts;
    let is_free =
        |set: &SetColumn| schema.auto_increment != Some(set.column) && key.iter().all(|part| part.column != set.column);
    if !plain || !plan.set.iter().all(is_free) {
        return None;
    }
    // Each assignment sees what those before it have set, in a row that stands alone.
    let inputs = Inputs { table: 0, parameters: &context.parameters, others: None };
    let columns = plan.set.iter().map(|set| u16::try_from(set.column).ok()).collect::<Option<_>>()?;
    let values = plan.set.iter().map(|set| encode(set.value.as_ref()?, &inputs)).collect::<Option<_>>()?;
    program_of(&plan.level, EncodedThen::Change(columns, values), context)
}

/// The same of a DELETE.
pub(crate) fn of_delete(plan: &DeletePlan, context: &Context) -> Option<Vec<u8>> {
    if plan.ignore || !plan.returning.is_empty() {
        return None;
    }
    program_of(&plan.level, EncodedThen::Delete, context)
}

fn program_of(level: &Level, then: EncodedThen, context: &Context) -> Option<Vec<u8>> {
    if level.lock != Some((LockMode::Exclusive, WaitPolicy::Wait)) || context.subqueries.is_active() {
        return None;
    }
    let zone = context.time_zone.clone();
    let root = Joined::root(&zone);
    let inputs = Inputs { table: level.table, parameters: &context.parameters, others: Some(&root) };
    let filters = level.filters.iter().chain(&level.late_filters);
    let conditions = filters.map(|filter| encode(filter, &inputs)).collect::<Option<_>>()?;
    program::encode(&Parts { conditions, complete: true, then }, context)
}

/// A change on its way, where the row is.
pub(super) struct Changing {
    context: Context,
    zone: TimeZone,
    conditions: Vec<Expr>,
    /// `None`: the row is deleted.
    set: Option<Vec<SetColumn>>,
    schema: Arc<TableSchema>,
}

impl Changing {
    /// `None`: it is not a program of a change.
    pub fn new(settings: Settings, program: Program, schema: &Arc<TableSchema>) -> Option<Changing> {
        let set = match program.then {
            Then::Change(set) => Some(set),
            Then::Delete => None,
            Then::Send | Then::Sum(_) | Then::First(_) => return None,
        };
        if !program.complete || set.is_some() && schema.has_row_rules() {
            return None;
        }
        let context = context_of(settings);
        let zone = context.time_zone.clone();
        Some(Changing { context, zone, conditions: program.conditions, set, schema: schema.clone() })
    }

    fn new_row(&mut self, row: &RowView<'_>) -> Result<NewRow, MysqlError> {
        let joined = Joined::root(&self.zone);
        let joined = joined.with(0, Part::Stored(*row));
        if !passes(&self.conditions, &joined, &mut self.context)? {
            return Ok(NewRow::Unsure);
        }
        let Some(set) = &self.set else { return Ok(NewRow::Deleted) };
        let old = owned(row, self.schema.columns.len());
        let mut new = old.clone();
        for SetColumn { column, value } in set {
            let Some(expr) = value else { return Ok(NewRow::Unsure) };
            let value = expr.eval(&Rows { rows: [&new, &[], &[]], zone: &self.zone }, &mut self.context)?;
            new[*column] = assign(value, &expr.ty, &self.schema.columns[*column], 1, false, &mut self.context)?;
        }
        if new == old {
            return Ok(NewRow::Unsure);
        }
        set_on_update(&self.schema, set, &mut new, &self.context);
        let key_defs: Vec<_> = self.schema.indexes.iter().map(|index| self.schema.key_def(index)).collect();
        check_keys(&self.schema, &key_defs, &new)?;
        Ok(NewRow::Values(new))
    }
}

impl RowChange for Changing {
    fn change(&mut self, row: &RowView<'_>) -> NewRow {
        let is_long = |column| row.get(column).as_bytes().is_some_and(|bytes| bytes.len() > MAX_INPUT);
        if (0..self.schema.columns.len()).any(is_long) {
            return NewRow::Unsure;
        }
        self.context.warnings.clear();
        self.context.warning_count = 0;
        // An error or a warning is the statement's to give.
        match self.new_row(row) {
            Ok(new) if self.context.warning_count == 0 => new,
            Ok(_) | Err(_) => NewRow::Unsure,
        }
    }
}
