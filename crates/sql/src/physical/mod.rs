//! Bound, typed plans.
//!
//! ```text
//! model      what a plan is made of
//! lower      logical tree → plan: blocks, sources, changes
//! condition  conjuncts, and what an index can use of them
//! factor     what an OR of ANDs says beside itself
//! alternatives what an OR says of an index
//! access     the access path of one table: candidates and their cost
//! selectivity the part of a table's rows that other conditions leave
//! cost       what a table costs inside of a join
//! batches    where a join looks up a table for many rows at once
//! equal      columns that equalities make equal
//! join       the steps of nested loops
//! merge      the parts of an OR, each by an index of its own
//! skip       paths that jump over keys: loose scans, skip scans
//! order      the order of inner tables
//! grouping   ONLY_FULL_GROUP_BY
//! keys       conditions to keys and ranges
//! prune      partitions of a user's table that conditions leave
//! row        rows as expressions see them
//! place      where a value lies among those of a column; what a distribution key is fixed to
//! vector     which blocks take their rows in batches
//! describe   a plan as EXPLAIN shows it, as values
//! explain    EXPLAIN in MySQL's columns; explain_json its JSON; explain_tree the operators, with what EXPLAIN ANALYZE counted
//! ```
//! Planning is synchronous and does no I/O. Nothing is left to resolve at run time except the values of parameters: a plan is immutable and shared by
//! the plan cache, and every execution brings its parameters in the [`Context`](crate::expr::Context).

mod access;
mod alternatives;
mod batches;
mod condition;
mod cost;
mod covering;
mod describe;
mod equal;
mod explain;
mod explain_json;
mod explain_tree;
mod factor;
pub(crate) mod facts;
mod grouping;
mod join;
pub(crate) mod keys;
mod lower;
mod merge;
pub(crate) mod model;
mod order;
pub(crate) mod place;
pub(crate) mod prune;
pub(crate) mod row;
mod selectivity;
mod skip;
mod vector;

use crate::expr::BindContext;
use crate::lookup::Lookup;
use crate::parse::Statement;
use rauk_node::TableHandle;
use rauk_types::result::ResultColumn;
use rauk_types::{MysqlError, Value};
use std::sync::Arc;

pub(crate) use model::PlanKind;

/// A plan for SELECT, INSERT, REPLACE, UPDATE or DELETE. Immutable and shared by the plan cache; parameters come with each execution.
pub struct Plan {
    /// Of a SELECT, or of RETURNING; empty otherwise.
    pub columns: Vec<ResultColumn>,
    /// Every stored table that it uses, with whether it is written: the executor calls `use_table` on each.
    pub tables: Vec<(TableHandle, bool)>,
    /// Its searches by MATCH, by their numbers; `None`: nothing that runs has it.
    pub(crate) searches: Vec<Option<model::SearchPlan>>,
    /// Its other queries; `None` for most statements.
    pub(crate) parts: Option<Arc<model::Parts>>,
    pub(crate) kind: PlanKind,
    /// What optimizer hints ask of the whole statement.
    pub(crate) hints: Option<Box<crate::logical::StatementHints>>,
    /// It costs much, and the values of its parameters would have said how: in a normal form they had better be literals.
    pub(crate) by_values: bool,
}

/// Binds a statement and plans it. Errors: those of binding.
pub fn plan(statement: &Statement, lookup: &dyn Lookup, context: &BindContext) -> Result<Plan, MysqlError> {
    let mut bound = crate::bind::bind(statement, lookup, context)?;
    crate::optimize::optimize(&mut bound)?;
    lower::lower(bound, lookup, context)
}

/// The logical tree of a statement after all passes, a line for each node. Errors: those of binding.
pub fn tree(statement: &Statement, lookup: &dyn Lookup, context: &BindContext) -> Result<String, MysqlError> {
    let mut bound = crate::bind::bind(statement, lookup, context)?;
    crate::optimize::optimize(&mut bound)?;
    Ok(bound.print())
}

/// The logical tree as it is bound, and after each pass that changes it.
#[cfg(test)]
pub(crate) fn passes(statement: &Statement, lookup: &dyn Lookup, context: &BindContext) -> Result<String, MysqlError> {
    let mut bound = crate::bind::bind(statement, lookup, context)?;
    let mut last = bound.print();
    let mut text = format!("bind\n{last}");
    crate::optimize::watched(&mut bound, &mut |name, statement| {
        let tree = statement.print();
        if tree != last {
            text.push_str(&format!("{name}\n{tree}"));
            last = tree;
        }
    })?;
    Ok(text)
}

impl Plan {
    /// Rows of EXPLAIN (TRADITIONAL) in MySQL's twelve columns.
    pub fn explain(&self, context: &mut crate::expr::Context) -> Result<Vec<Vec<Value>>, MysqlError> {
        let described = describe::describe(self, context, describe::Print::No)?;
        Ok(explain::rows(&described))
    }

    /// The rows, or combinations of rows, that the query block which looks at most of them is expected to look at.
    pub(crate) fn most_rows(&self, context: &mut crate::expr::Context) -> Result<f64, MysqlError> {
        let mut blocks: Vec<(Value, f64)> = Vec::new();
        for row in self.explain(context)? {
            let number = |value: &Value| match value {
                Value::Double(number) => *number,
                other => other.as_ref().as_integer().map_or(1.0, |number| number as f64),
            };
            let rows = number(&row[9]) * if row[10].is_null() { 1.0 } else { number(&row[10]) / 100.0 };
            match blocks.iter_mut().find(|(id, _)| *id == row[0]) {
                Some((_, product)) => *product *= rows,
                None => blocks.push((row[0].clone(), rows)),
            }
        }
        Ok(blocks.iter().map(|(_, product)| *product).fold(0.0, f64::max))
    }

    /// EXPLAIN FORMAT=JSON.
    pub fn explain_json(&self, context: &mut crate::expr::Context) -> Result<String, MysqlError> {
        let described = describe::describe(self, context, describe::Print::Quoted)?;
        Ok(explain_json::text(&described))
    }

    /// Whether EXPLAIN ANALYZE can count what it does: not changes that are fused with the scan of their one table, and no INSERT.
    pub(crate) fn is_measured(&self) -> bool {
        matches!(self.kind, PlanKind::Select(_) | PlanKind::Query(_) | PlanKind::Change(_))
    }

    /// EXPLAIN ANALYZE: the operators with what was counted while the plan ran.
    pub(crate) fn explain_measured(
        &self,
        measures: &crate::measure::Measures,
        context: &mut crate::expr::Context,
    ) -> Result<String, MysqlError> {
        let described = describe::describe(self, context, describe::Print::Short)?;
        let change = match &self.kind {
            PlanKind::Change(change) => Some(&**change),
            _ => None,
        };
        Ok(explain_tree::text(&described, change, measures))
    }

    /// Calls `visit` on every block of the statement.
    pub(crate) fn for_each_block<'a>(&'a self, visit: &mut dyn FnMut(&'a model::SelectPlan)) {
        match &self.kind {
            PlanKind::Select(select) => select.for_each_block(visit),
            PlanKind::Query(query) => query.for_each_block(visit),
            PlanKind::Insert(insert) => {
                if let model::InsertSource::Query(query, _) = &insert.source {
                    query.for_each_block(visit);
                }
            }
            PlanKind::Change(change) => change.rows.for_each_block(visit),
            PlanKind::Update(_) | PlanKind::Delete(_) => {}
        }
        if let Some(parts) = &self.parts {
            for table in &parts.tables {
                table.seed.for_each_block(visit);
                if let Some(recursive) = &table.recursive {
                    recursive.query.for_each_block(visit);
                }
            }
            parts.subqueries.iter().for_each(|subquery| subquery.query.for_each_block(visit));
        }
    }

    /// Whether it is an UPDATE or DELETE without LIMIT that looks at every row of a table which it changes: what
    /// sql_safe_updates refuses (1175).
    pub(crate) fn changes_without_key(&self) -> bool {
        match &self.kind {
            PlanKind::Update(update) => update.limit.is_none() && update.level.looks_at_all(),
            PlanKind::Delete(delete) => delete.limit.is_none() && delete.level.looks_at_all(),
            PlanKind::Change(change) => {
                let scans = |step: &model::Step| matches!(step, model::Step::Scan(level) if level.changed && level.looks_at_all());
                change.rows.limit.is_none() && change.rows.steps.iter().any(scans)
            }
            PlanKind::Select(_) | PlanKind::Query(_) | PlanKind::Insert(_) => false,
        }
    }

    /// Whether it reads tables that it does not change, and whether it changes some.
    pub(crate) fn uses(&self) -> (bool, bool) {
        (self.tables.iter().any(|(_, written)| !written), self.tables.iter().any(|(_, written)| *written))
    }

    /// Whether all tables that it changes are temporary ones.
    pub(crate) fn changes_only_temporary(&self) -> bool {
        self.tables.iter().all(|(table, written)| !written || table.is_temporary())
    }

    /// Whether it reads one row by its key in one step, where nothing is in the way.
    #[cfg(test)]
    pub(crate) fn is_point(&self) -> bool {
        self.parts.is_none()
            && self.searches.is_empty()
            && matches!(&self.kind, PlanKind::Select(select) if select.point)
    }

    /// Whether it changes nothing and takes no locks of its own: a SELECT without FOR UPDATE or FOR SHARE.
    pub fn is_read_only(&self) -> bool {
        match &self.kind {
            PlanKind::Select(select) if self.parts.is_none() && !select.reads_queries() => select.lock.is_none(),
            PlanKind::Select(_) | PlanKind::Query(_) => {
                let mut locks = false;
                self.for_each_block(&mut |block| {
                    locks |= block.steps.iter().any(|s| matches!(s, model::Step::Scan(level) if level.lock.is_some()));
                });
                !locks
            }
            _ => false,
        }
    }
}
