//! UPDATE and DELETE of one table: a locking scan, and what happens to the rows it finds.

use super::from::{From, bind_from};
use super::insert::{assigned_column, is_default};
use super::join::{JoinInput, WantedOrder, plan_join};
use super::model::{DeletePlan, Level, PlanKind, SetColumn, SortKey, Step, UpdatePlan};
use super::names::{Clause, Names, default_expression};
use super::select::bind_row_count;
use super::{Lookup, Plan, condition, unsupported};
use crate::expr::{BindContext, Expr, ExprKind};
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::TableHandle;
use rauk_types::MysqlError;
use rauk_types::error::codes;
use sqlparser::ast;

pub(super) fn plan_update(
    update: &ast::Update,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<Plan, MysqlError> {
    if !update.table.joins.is_empty() || update.from.is_some() {
        return Err(unsupported("UPDATE of several tables"));
    }
    if update.returning.is_some() {
        return Err(unsupported("UPDATE … RETURNING"));
    }
    let ignore = matches!(update.or, Some(ast::SqliteOnConflict::Ignore));
    let from = bind_from(std::slice::from_ref(&update.table), lookup, context, "UPDATE")?;
    let handle = target(&from, "UPDATE")?;
    let source = &from.sources[0];
    let mut set: Vec<SetColumn> = Vec::new();
    for assignment in &update.assignments {
        let column = assigned_column(assignment, source, Clause::FieldList)?;
        let value = if is_default(&assignment.value) {
            default_expression(&source.schema().columns[column], context)?
        } else {
            Some(Names::new(&from.sources, &from.visible, Clause::FieldList, context).bind(&assignment.value)?)
        };
        set.push(SetColumn { column, value });
    }
    let schema = source.schema().clone();
    let found =
        bind_changed(from, update.selection.as_ref(), &update.order_by, update.limit.as_ref(), lookup, context)?;
    let plan = UpdatePlan {
        database: lookup.database().clone(),
        sources: found.sources,
        level: found.level,
        once: found.once,
        set,
        order: found.order,
        limit: found.limit,
        ignore,
        key_defs: schema.indexes.iter().map(|i| schema.key_def(i)).collect(),
    };
    Ok(Plan { columns: vec![], tables: vec![(handle, true)], parts: None, kind: PlanKind::Update(Box::new(plan)) })
}

pub(super) fn plan_delete(
    delete: &ast::Delete,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<Plan, MysqlError> {
    let tables = match &delete.from {
        ast::FromTable::WithFromKeyword(tables) | ast::FromTable::WithoutKeyword(tables) => tables,
    };
    let plain = tables.len() == 1 && tables[0].joins.is_empty();
    if !delete.tables.is_empty() || delete.using.is_some() || !plain {
        return Err(unsupported("DELETE of several tables"));
    }
    if delete.returning.is_some() {
        return Err(unsupported("DELETE … RETURNING"));
    }
    let from = bind_from(tables, lookup, context, "DELETE")?;
    let handle = target(&from, "DELETE")?;
    let found =
        bind_changed(from, delete.selection.as_ref(), &delete.order_by, delete.limit.as_ref(), lookup, context)?;
    let plan = DeletePlan {
        sources: found.sources,
        level: found.level,
        once: found.once,
        order: found.order,
        limit: found.limit,
    };
    Ok(Plan { columns: vec![], tables: vec![(handle, true)], parts: None, kind: PlanKind::Delete(Box::new(plan)) })
}

fn target(from: &From, verb: &str) -> Result<TableHandle, MysqlError> {
    match from.sources.first() {
        Some(source) => source.handle().cloned().ok_or_else(|| {
            MysqlError::new(
                codes::TABLEACCESS_DENIED,
                format!("{verb} command denied to user for table '{}'", source.alias),
            )
        }),
        None => Err(MysqlError::new(codes::NO_TABLES_USED, "No tables used")),
    }
}

struct Changed {
    sources: Vec<super::model::Source>,
    level: Level,
    once: Vec<Expr>,
    order: Vec<SortKey>,
    limit: Option<Expr>,
}

fn bind_changed(
    from: From,
    selection: Option<&ast::Expr>,
    order_by: &[ast::OrderByExpr],
    limit: Option<&ast::Expr>,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<Changed, MysqlError> {
    let mut conditions = Vec::new();
    if selection.is_some()
        && let Some(source) = from.sources.first()
    {
        // A condition reads.
        let schema = source.schema();
        lookup.table(Some(&schema.database), &schema.name, "SELECT")?;
    }
    if let Some(selection) = selection {
        let mut bound = Names::new(&from.sources, &from.visible, Clause::Where, context).bind(selection)?;
        condition::find_zero_dates(&mut bound, &from.sources);
        condition::split_and(bound, &mut conditions);
    }
    let mut order = Vec::new();
    for key in order_by {
        let expr = Names::new(&from.sources, &from.visible, Clause::OrderBy, context).bind(&key.expr)?;
        if !expr.is_constant() {
            order.push(SortKey { expr, descending: key.options.asc == Some(false) });
        }
    }
    let limit = limit.map(|l| bind_row_count(l, context)).transpose()?;
    let columns: Option<Vec<(usize, bool)>> = order
        .iter()
        .map(|k| match k.expr.kind {
            ExprKind::Column { column, .. } => Some((column, k.descending)),
            _ => None,
        })
        .collect();
    let wanted = columns.filter(|c| !c.is_empty()).map(|order| WantedOrder {
        table: 0,
        order,
        limit: limit.as_ref().map(|l| match &l.kind {
            ExprKind::Literal(value) => value.as_ref().as_integer().map_or(10.0, |v| v as f64),
            _ => 10.0,
        }),
    });
    let joined = plan_join(JoinInput {
        sources: &from.sources,
        items: from.items,
        conditions,
        keep_order: true,
        wanted,
        lock: Some((LockMode::Exclusive, WaitPolicy::Wait)),
        database: lookup.database(),
    });
    if joined.ordered {
        order.clear();
    }
    let Some(Step::Scan(level)) = joined.steps.into_iter().next() else {
        return Err(MysqlError::new(codes::NO_TABLES_USED, "No tables used"));
    };
    Ok(Changed { sources: from.sources, level: *level, once: joined.once, order, limit })
}
