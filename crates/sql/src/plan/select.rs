//! SELECT: the select list, grouping, ordering and LIMIT around the join of FROM and WHERE.

use super::from::{From, bind_from};
use super::join::{JoinInput, WantedOrder, plan_join};
use super::model::{Grouping, PlanKind, SelectPlan, SortKey, Step};
use super::names::{Alias, Clause, Names, bind_constant, column_expression, item_name};
use super::{Lookup, Plan, condition, grouping, unsupported};
use crate::expr::readable;
use crate::expr::{AGGREGATES, Aggregate, AggregateFunction, BindContext, Expr, ExprKind};
use crate::parse::ast::{
    self, ColumnName, Limit, Literal, LockClause, LockStrength, LockWait, OrderItem, QueryBody, SetOp,
};
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_node::TableHandle;
use rauk_node::transaction::Lock;
use rauk_types::error::codes;
use rauk_types::result::ResultColumn;
use rauk_types::{DataType, IndexKind, MysqlError, Value};

/// Columns that a query gives at most (1117).
const MAX_COLUMNS: usize = 4096;

/// A bound query and what it gives back.
pub(crate) struct BoundQuery {
    pub plan: SelectPlan,
    pub columns: Vec<ResultColumn>,
    pub tables: Vec<(TableHandle, bool)>,
}

pub(super) fn plan_query(query: &ast::Query, lookup: &dyn Lookup, context: &BindContext) -> Result<Plan, MysqlError> {
    let bound = bind_query(query, lookup, context)?;
    Ok(Plan { columns: bound.columns, tables: bound.tables, kind: PlanKind::Select(Box::new(bound.plan)) })
}

pub(super) const WITH: &str = "WITH (common table expressions)";

/// The clauses around a SELECT, from whichever parentheses they stand behind.
#[derive(Default)]
struct Clauses<'a> {
    order_by: &'a [OrderItem],
    limit: Option<&'a Limit>,
    locks: Vec<&'a LockClause>,
}

pub(crate) fn bind_query(
    query: &ast::Query,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<BoundQuery, MysqlError> {
    let mut clauses = Clauses::default();
    let mut query = query;
    loop {
        if query.with.is_some() {
            return Err(unsupported(WITH));
        }
        match &query.into {
            None => {}
            Some(ast::Into::Variables(_)) => return Err(unsupported("SELECT ... INTO variable")),
            Some(ast::Into::OutFile(_) | ast::Into::DumpFile(_)) => {
                return Err(unsupported("SELECT ... INTO OUTFILE"));
            }
        }
        // `(SELECT …) ORDER BY … LIMIT …`: the outer clauses stand where the inner query has none.
        if !query.order_by.is_empty() || query.limit.is_some() {
            if !clauses.order_by.is_empty() || clauses.limit.is_some() {
                return Err(unsupported("ORDER BY and LIMIT around a query that has its own"));
            }
            clauses.order_by = &query.order_by;
            clauses.limit = query.limit.as_ref();
        }
        clauses.locks.extend(&query.locks);
        match &query.body {
            QueryBody::Select(select) => return bind_select(select, &clauses, lookup, context),
            QueryBody::Query(inner) => query = inner,
            QueryBody::SetOperation { op, .. } => {
                return Err(unsupported(match op {
                    SetOp::Union => "UNION",
                    SetOp::Except => "EXCEPT",
                    SetOp::Intersect => "INTERSECT",
                }));
            }
            QueryBody::Values(_) => return Err(unsupported("VALUES as a query")),
            QueryBody::Table(_) => return Err(unsupported("TABLE as a query")),
        }
    }
}

struct Binder<'a> {
    from: From,
    context: &'a BindContext,
    aggregates: Vec<Aggregate>,
    items: Vec<Expr>,
    columns: Vec<ResultColumn>,
    aliases: Vec<Alias>,
}

fn bind_select(
    select: &ast::Select,
    clauses: &Clauses<'_>,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<BoundQuery, MysqlError> {
    if !select.windows.is_empty() {
        return Err(unsupported("window functions"));
    }
    let mut from = bind_from(&select.from, lookup, context, "SELECT")?;
    from.keep_order |= select.straight_join;
    let (lock, locked_tables) = bind_locks(&clauses.locks, &from)?;
    if lock.is_some_and(|(mode, _)| mode == LockMode::Exclusive) {
        let locked = |table: &usize| locked_tables.as_ref().is_none_or(|tables| tables.contains(table));
        for table in (0..from.sources.len()).filter(locked) {
            if let Some(handle) = from.sources[table].handle() {
                lookup.may_lock_rows(handle)?;
            }
        }
    }

    let mut binder = Binder { from, context, aggregates: vec![], items: vec![], columns: vec![], aliases: vec![] };
    binder.select_list(&select.items)?;
    let mut conditions = std::mem::take(&mut binder.from.conditions);
    if let Some(filter) = &select.filter {
        let mut bound = Names::new(&binder.from.sources, &binder.from.visible, Clause::Where, context).bind(filter)?;
        condition::find_zero_dates(&mut bound, &binder.from.sources);
        condition::split_and(bound, &mut conditions);
    }
    if select.rollup {
        return Err(unsupported("WITH ROLLUP"));
    }
    let keys = binder.group_by(&select.group_by)?;
    let mut having = select.having.as_ref().map(|h| binder.bind_late(h, Clause::Having, Some(&keys))).transpose()?;
    if let Some(having) = &mut having {
        condition::find_zero_dates(having, &binder.from.sources);
    }
    let mut order = binder.order_by(clauses.order_by)?;
    let (limit, offset) = bind_limit(clauses.limit, context)?;
    let distinct = select.distinct;

    let Binder { from, aggregates, items, columns, .. } = binder;
    let grouped = !keys.is_empty() || !aggregates.is_empty();
    if grouped && context.sql_mode.only_full_group_by {
        let checked = grouping::Checked {
            sources: &from.sources,
            items: &from.items,
            conditions: &conditions,
            keys: &keys,
            select: &items,
            having: having.as_ref(),
            order: &order,
        };
        grouping::check(&checked)?;
    }
    if distinct && context.sql_mode.only_full_group_by {
        grouping::check_distinct(&from.sources, &items, &order)?;
    }
    if !grouped && having.is_some() {
        grouping::check_having(&from.sources, &items, having.as_ref())?;
    }
    order.retain(|k| !k.expr.is_constant());

    let first_row = if grouped { index_end(&keys, &aggregates, &from) } else { None };
    if let Some((column, _)) = first_row
        && from.sources[0].schema().columns[column].nullable
    {
        // NULLs count for neither, and stand first in the index.
        let column = column_expression(&from.sources, 0, column);
        let kind = ExprKind::IsNull { expr: Box::new(column), negated: true };
        conditions.push(Expr { kind, ty: DataType::BIGINT, nullable: false, coercibility: 5 });
    }
    let wanted = match &first_row {
        Some(column) => Some(WantedOrder { table: 0, order: vec![*column], limit: Some(1.0) }),
        None if grouped => None,
        None => wanted_order(&order, limit.as_ref(), offset.as_ref()),
    };
    // A result without rows to take needs no order.
    let wants = wanted.is_some();
    let joined = plan_join(JoinInput {
        sources: &from.sources,
        items: from.items,
        conditions,
        keep_order: from.keep_order,
        wanted,
        lock,
        database: lookup.database(),
    });
    let ordered = wants && joined.ordered;
    if ordered && first_row.is_none() {
        order.clear();
    }
    let mut steps = joined.steps;
    if let Some(tables) = locked_tables {
        for step in &mut steps {
            if let Step::Scan(level) = step
                && !tables.contains(&level.table)
            {
                level.lock = None;
            }
        }
    }
    let grouping = grouped.then(|| {
        let mut carried = Vec::new();
        let late = items.iter().chain(having.iter()).chain(order.iter().map(|k| &k.expr));
        late.for_each(|e| {
            e.for_each_column(&mut |table, column| {
                if table != AGGREGATES && !carried.contains(&(table, column)) {
                    carried.push((table, column));
                }
            });
        });
        Grouping { keys, aggregates, carried }
    });
    let tables = from.sources.iter().filter_map(|s| s.handle().cloned()).map(|h| (h, false)).collect();
    let plan = SelectPlan {
        sources: from.sources,
        steps,
        once: joined.once,
        grouping,
        having,
        items,
        distinct,
        order,
        limit,
        offset,
        calc_found_rows: select.calc_found_rows,
        first_row_only: ordered && first_row.is_some(),
        lock,
        outer_groups: joined.outer_groups,
    };
    Ok(BoundQuery { plan, columns, tables })
}

/// The lock of FOR UPDATE and FOR SHARE, and the tables of OF.
fn bind_locks(locks: &[&LockClause], from: &From) -> Result<(Lock, Option<Vec<usize>>), MysqlError> {
    let mut lock: Lock = None;
    let mut tables: Option<Vec<usize>> = None;
    for clause in locks {
        let mode = match clause.strength {
            LockStrength::Share => LockMode::Shared,
            LockStrength::Update => LockMode::Exclusive,
        };
        let wait = match clause.wait {
            LockWait::Wait => WaitPolicy::Wait,
            LockWait::NoWait => WaitPolicy::NoWait,
            LockWait::SkipLocked => WaitPolicy::SkipLocked,
        };
        if lock.is_some_and(|known| known != (mode, wait)) {
            return Err(unsupported("several different locking clauses"));
        }
        lock = Some((mode, wait));
        for name in &clause.of {
            let name = &name.name;
            let Some(table) = from.sources.iter().position(|s| s.alias == *name) else {
                return Err(MysqlError::new(3568, format!("Unresolved table name `{name}` in locking clause.")));
            };
            tables.get_or_insert_default().push(table);
        }
    }
    Ok((lock, tables))
}

impl Binder<'_> {
    fn select_list(&mut self, items: &[ast::SelectItem]) -> Result<(), MysqlError> {
        for item in items {
            match item {
                ast::SelectItem::Wildcard => {
                    if self.from.sources.is_empty() {
                        return Err(MysqlError::new(codes::NO_TABLES_USED, "No tables used"));
                    }
                    for visible in self.from.visible.clone() {
                        self.push_column(visible.table, visible.column)?;
                    }
                }
                ast::SelectItem::TableWildcard(ast::TableName { database, name }) => {
                    let same_database = |schema: &str| database.as_ref().is_none_or(|d| schema == d);
                    let found =
                        self.from.sources.iter().position(|s| s.alias == *name && same_database(&s.schema().database));
                    let Some(number) = found else {
                        let path = database.iter().chain([name]).map(String::as_str).collect::<Vec<_>>().join(".");
                        return Err(MysqlError::new(codes::BAD_TABLE, format!("Unknown table '{path}'")));
                    };
                    for column in 0..self.from.sources[number].schema().visible_columns().len() {
                        self.push_column(number, column)?;
                    }
                }
                ast::SelectItem::Expr { expr, name } => self.push_expression(expr, item_name(name)?)?,
            }
        }
        Ok(())
    }

    fn push_column(&mut self, table: usize, column: usize) -> Result<(), MysqlError> {
        let expr = column_expression(&self.from.sources, table, column);
        let name = self.from.sources[table].schema().columns[column].name.clone();
        self.push(expr, name)
    }

    fn push_expression(&mut self, expr: &ast::Expr, name: String) -> Result<(), MysqlError> {
        let mut names = Names::new(&self.from.sources, &self.from.visible, Clause::FieldList, self.context);
        names.aggregates = Some(&mut self.aggregates);
        let bound = names.bind(expr)?;
        self.push(bound, name)
    }

    fn push(&mut self, expr: Expr, name: String) -> Result<(), MysqlError> {
        if self.items.len() == MAX_COLUMNS {
            return Err(MysqlError::new(codes::TOO_MANY_FIELDS, "Too many columns"));
        }
        self.columns.push(result_column(&self.from, &expr, name.clone()));
        self.aliases.push(Alias { name, expr: expr.clone() });
        self.items.push(expr);
        Ok(())
    }

    fn group_by(&mut self, group_by: &[ast::Expr]) -> Result<Vec<Expr>, MysqlError> {
        let mut keys: Vec<Expr> = Vec::new();
        for expr in group_by {
            let (bound, name) = match position(expr) {
                Some(number) => {
                    let Some(item) = number.checked_sub(1).and_then(|n| self.items.get(n)) else {
                        return Err(unknown_position(number, Clause::GroupBy));
                    };
                    (item.clone(), self.columns[number - 1].name.clone())
                }
                None => {
                    let mut names = Names::new(&self.from.sources, &self.from.visible, Clause::GroupBy, self.context);
                    names.aliases = &self.aliases;
                    (names.bind(expr)?, written_name(expr))
                }
            };
            let mut aggregated = false;
            bound.for_each_column(&mut |table, _| aggregated |= table == AGGREGATES);
            if aggregated {
                return Err(MysqlError::new(codes::WRONG_GROUP_FIELD, format!("Can't group on '{name}'")));
            }
            if !keys.contains(&bound) {
                keys.push(bound);
            }
        }
        Ok(keys)
    }

    /// Binds an expression of HAVING, which sees the grouped keys, or of ORDER BY.
    fn bind_late(&mut self, expr: &ast::Expr, clause: Clause, grouped: Option<&[Expr]>) -> Result<Expr, MysqlError> {
        let mut names = Names::new(&self.from.sources, &self.from.visible, clause, self.context);
        names.aliases = &self.aliases;
        names.grouped = grouped;
        names.aggregates = Some(&mut self.aggregates);
        names.bind(expr)
    }

    fn order_by(&mut self, order_by: &[OrderItem]) -> Result<Vec<SortKey>, MysqlError> {
        let mut keys = Vec::new();
        for key in order_by {
            let expr = match position(&key.expr) {
                Some(number) => {
                    let Some(item) = number.checked_sub(1).and_then(|n| self.items.get(n)) else {
                        return Err(unknown_position(number, Clause::OrderBy));
                    };
                    item.clone()
                }
                None => match &key.expr {
                    // A lone name is an alias of the select list before it is a column.
                    ast::Expr::Column(ColumnName { table: None, name, .. }) => {
                        let alias = self.aliases.iter().find(|a| a.name.eq_ignore_ascii_case(name));
                        match alias {
                            Some(alias) => alias.expr.clone(),
                            None => self.bind_late(&key.expr, Clause::OrderBy, None)?,
                        }
                    }
                    _ => self.bind_late(&key.expr, Clause::OrderBy, None)?,
                },
            };
            keys.push(SortKey { expr, descending: key.descending });
        }
        Ok(keys)
    }
}

fn unknown_position(number: usize, clause: Clause) -> MysqlError {
    MysqlError::new(codes::BAD_FIELD, format!("Unknown column '{number}' in '{}'", clause.name()))
}

/// `GROUP BY 2`, `ORDER BY 2`.
fn position(expr: &ast::Expr) -> Option<usize> {
    match expr {
        ast::Expr::Literal(Literal::Number(digits)) => digits.parse().ok(),
        _ => None,
    }
}

/// ORDER BY of plain columns of one table, which an index of it may serve.
fn wanted_order(order: &[SortKey], limit: Option<&Expr>, offset: Option<&Expr>) -> Option<WantedOrder> {
    let mut wanted: Option<WantedOrder> = None;
    for key in order {
        let ExprKind::Column { table, column } = key.expr.kind else { return None };
        let wanted = wanted.get_or_insert(WantedOrder { table, order: vec![], limit: None });
        if wanted.table != table {
            return None;
        }
        wanted.order.push((column, key.descending));
    }
    // A limit that only comes with the execution is thought to be small.
    let rows = |e: &Expr| match &e.kind {
        ExprKind::Literal(value) => value.as_ref().as_integer().map_or(10.0, |v| v as f64),
        _ => 10.0,
    };
    let mut wanted = wanted?;
    wanted.limit = limit.map(|l| rows(l) + offset.map_or(0.0, rows));
    Some(wanted)
}

/// A lone MIN or MAX of a column of the only table: the column, and whether the index is wanted backwards.
fn index_end(keys: &[Expr], aggregates: &[Aggregate], from: &From) -> Option<(usize, bool)> {
    let [aggregate] = aggregates else { return None };
    if !keys.is_empty() || from.sources.len() != 1 {
        return None;
    }
    let descending = match aggregate.function {
        AggregateFunction::Min => false,
        AggregateFunction::Max => true,
        _ => return None,
    };
    match aggregate.arguments.as_slice() {
        [Expr { kind: ExprKind::Column { column, .. }, .. }] => Some((*column, descending)),
        _ => None,
    }
}

/// LIMIT and OFFSET.
fn bind_limit(limit: Option<&Limit>, context: &BindContext) -> Result<(Option<Expr>, Option<Expr>), MysqlError> {
    let Some(Limit { count, offset }) = limit else { return Ok((None, None)) };
    let offset = offset.as_ref().map(|offset| bind_row_count(offset, context)).transpose()?;
    Ok((Some(bind_row_count(count, context)?), offset))
}

/// A number of rows: a literal or a parameter.
pub(crate) fn bind_row_count(expr: &ast::Expr, context: &BindContext) -> Result<Expr, MysqlError> {
    let bound = bind_constant(expr, Clause::FieldList, context)?;
    let fits = match &bound.kind {
        ExprKind::Literal(Value::Int(v)) => *v >= 0,
        ExprKind::Literal(Value::UInt(_)) | ExprKind::Parameter(_) => true,
        _ => false,
    };
    if !fits {
        return Err(MysqlError::new(
            codes::PARSE_ERROR,
            format!(
                "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near '{}' at line 1",
                readable(expr)
            ),
        ));
    }
    Ok(bound)
}

/// What errors call a key of GROUP BY.
fn written_name(expr: &ast::Expr) -> String {
    match expr {
        ast::Expr::Column(column) => column.name.clone(),
        expr => readable(expr),
    }
}

/// What a client's metadata shows of an item.
fn result_column(from: &From, expr: &Expr, name: String) -> ResultColumn {
    let mut out = ResultColumn {
        name,
        org_name: String::new(),
        table: String::new(),
        org_table: String::new(),
        database: String::new(),
        ty: expr.ty,
        nullable: expr.nullable,
        primary_key: false,
        unique_key: false,
        multiple_key: false,
        auto_increment: false,
    };
    if let ExprKind::Column { table, column } = expr.kind
        && table != AGGREGATES
    {
        let source = &from.sources[table];
        let schema = source.schema();
        out.org_name = schema.columns[column].name.clone();
        out.table = source.alias.clone();
        out.org_table = schema.name.clone();
        out.database = schema.database.clone();
        out.auto_increment = schema.auto_increment == Some(column);
        for index in &schema.indexes {
            let first = index.parts.first().is_some_and(|p| p.column == column);
            match index.kind {
                IndexKind::Primary => out.primary_key |= index.parts.iter().any(|p| p.column == column),
                IndexKind::Unique if index.parts.len() == 1 => out.unique_key |= first,
                _ => out.multiple_key |= first,
            }
        }
    }
    out
}
