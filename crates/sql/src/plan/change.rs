//! UPDATE and DELETE of one table: a locking scan, and what happens to the rows it finds.

use super::from::{From, bind_from};
use super::insert::named_column;
use super::join::{JoinInput, WantedOrder, plan_join};
use super::model::{DeletePlan, Level, PlanKind, SetColumn, SortKey, Step, UpdatePlan};
use super::names::{Clause, Names, default_expression};
use super::select::{WITH, bind_row_count};
use super::{Lookup, Plan, condition, unsupported};
use crate::expr::{BindContext, Expr, ExprKind};
use crate::parse::ast::{self, TableReference};
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::TableHandle;
use rauk_types::MysqlError;
use rauk_types::error::codes;

pub(super) fn plan_update(
    update: &ast::Update,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<Plan, MysqlError> {
    if update.with.is_some() {
        return Err(unsupported(WITH));
    }
    if !is_single(&update.tables) {
        return Err(unsupported("UPDATE of several tables"));
    }
    if update.ignore {
        return Err(unsupported("UPDATE IGNORE"));
    }
    let from = bind_from(&update.tables, lookup, context, "UPDATE")?;
    let handle = target(&from, "UPDATE")?;
    let source = &from.sources[0];
    let mut set: Vec<SetColumn> = Vec::new();
    for assignment in &update.assignments {
        let column = named_column(&assignment.column, source, Clause::FieldList)?;
        let value = if assignment.value == ast::Expr::Default {
            default_expression(&source.schema().columns[column], context)?
        } else {
            Some(Names::new(&from.sources, &from.visible, Clause::FieldList, context).bind(&assignment.value)?)
        };
        set.push(SetColumn { column, value });
    }
    let schema = source.schema().clone();
    let found = bind_changed(from, update.filter.as_ref(), &update.order_by, update.limit.as_ref(), lookup, context)?;
    let plan = UpdatePlan {
        database: lookup.database().clone(),
        sources: found.sources,
        level: found.level,
        once: found.once,
        set,
        order: found.order,
        limit: found.limit,
        ignore: update.ignore,
        key_defs: schema.indexes.iter().map(|i| schema.key_def(i)).collect(),
    };
    Ok(Plan { columns: vec![], tables: vec![(handle, true)], kind: PlanKind::Update(Box::new(plan)) })
}

pub(super) fn plan_delete(
    delete: &ast::Delete,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<Plan, MysqlError> {
    if delete.with.is_some() {
        return Err(unsupported(WITH));
    }
    if !delete.targets.is_empty() || !is_single(&delete.from) {
        return Err(unsupported("DELETE from several tables"));
    }
    if delete.ignore {
        return Err(unsupported("DELETE IGNORE"));
    }
    if !delete.returning.is_empty() {
        return Err(unsupported("DELETE … RETURNING"));
    }
    let from = bind_from(&delete.from, lookup, context, "DELETE")?;
    let handle = target(&from, "DELETE")?;
    let found = bind_changed(from, delete.filter.as_ref(), &delete.order_by, delete.limit.as_ref(), lookup, context)?;
    let plan = DeletePlan {
        sources: found.sources,
        level: found.level,
        once: found.once,
        order: found.order,
        limit: found.limit,
    };
    Ok(Plan { columns: vec![], tables: vec![(handle, true)], kind: PlanKind::Delete(Box::new(plan)) })
}

/// Whether a statement names one table to change, and no join or derived table.
fn is_single(tables: &[TableReference]) -> bool {
    matches!(tables, [TableReference::Table(_)])
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
    filter: Option<&ast::Expr>,
    order_by: &[ast::OrderItem],
    limit: Option<&ast::Expr>,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<Changed, MysqlError> {
    let mut conditions = Vec::new();
    if filter.is_some()
        && let Some(source) = from.sources.first()
    {
        // A condition reads.
        let schema = source.schema();
        lookup.table(Some(&schema.database), &schema.name, "SELECT")?;
    }
    if let Some(filter) = filter {
        let mut bound = Names::new(&from.sources, &from.visible, Clause::Where, context).bind(filter)?;
        condition::find_zero_dates(&mut bound, &from.sources);
        condition::split_and(bound, &mut conditions);
    }
    let mut order = Vec::new();
    for key in order_by {
        let expr = Names::new(&from.sources, &from.visible, Clause::OrderBy, context).bind(&key.expr)?;
        if !expr.is_constant() {
            order.push(SortKey { expr, descending: key.descending });
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
