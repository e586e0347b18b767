//! One query block: joins as nested loops, and what happens to joined rows.

use super::Lowering;
use super::places::{Outer, Places};
use super::window;
use crate::expr::{Aggregate, AggregateFunction, ColumnId, Expr, ExprKind};
use crate::logical::{AggregateNode, CommonTableScan, JoinHints, JoinKind, Limit, Node, PathHints, Query, ScanTable};
use crate::physical::batches::key_batches;
use crate::physical::condition;
use crate::physical::covering::ReadColumns;
use crate::physical::factor::factor;
use crate::physical::grouping;
use crate::physical::join::{Item, JoinInput, WantedOrder, plan_join};
use crate::physical::model::{
    Access, Grouping, LateralRows, Rollup, RowsOf, SelectPlan, SortKey, Source, SourceTable, Step,
};
use crate::physical::skip::Groups;
use crate::physical::vector;
use rauk_node::transaction::Lock;
use rauk_types::{Collation, ColumnDefault, DataType, MysqlError, TableId, TableSchema, Value};
use std::sync::Arc;

/// Rows of the table that a block reads first come in the order of the primary key, where there are few, and so do the rows that a lookup by an index
/// finds: [`Level::key_order`].
///
/// [`Level::key_order`]: crate::physical::model::Level::key_order
fn keep_key_order(plan: &mut SelectPlan) {
    if plan.lock.is_some() {
        return;
    }
    for (number, step) in plan.steps.iter_mut().enumerate() {
        let Step::Scan(level) = step else { continue };
        let ordered = match level.access {
            Access::Range(_) => true,
            Access::Primary(_) | Access::Unique(_) | Access::Virtual { .. } | Access::Rows => false,
            _ => number == 0,
        };
        level.key_order = ordered && !level.buffered;
    }
}

/// GROUP BY: keys, aggregates, and what ROLLUP makes of the keys.
type Grouped = (Vec<Expr>, Vec<(ColumnId, Aggregate)>, Option<crate::logical::Rollup>);

/// A block taken apart, from the top.
struct Parts {
    limit: Option<(Option<Expr>, Option<Expr>, bool)>,
    order: Vec<crate::logical::SortKey>,
    distinct: bool,
    project: Option<Vec<(ColumnId, Expr)>>,
    having: Vec<Expr>,
    aggregate: Option<Grouped>,
    /// WHERE.
    conditions: Vec<Expr>,
    joins: Node,
}

fn take_apart(mut node: Node) -> Parts {
    let mut parts = Parts {
        limit: None,
        order: vec![],
        distinct: false,
        project: None,
        having: vec![],
        aggregate: None,
        conditions: vec![],
        joins: Node::OneRow,
    };
    if let Node::Limit(limit) = node {
        let Limit { input, count, offset, calc_found_rows } = *limit;
        parts.limit = Some((count, offset, calc_found_rows));
        node = input;
    }
    if let Node::Sort { input, keys } = node {
        parts.order = keys;
        node = *input;
    }
    if let Node::Distinct { input, .. } = node {
        parts.distinct = true;
        node = *input;
    }
    if let Node::Project { input, items } = node {
        parts.project = Some(items);
        node = *input;
        if let Node::Filter { input, conditions, having: true } = node {
            parts.having = conditions;
            node = *input;
        }
        if let Node::Aggregate(aggregate) = node {
            let AggregateNode { input, keys, aggregates, rollup } = *aggregate;
            parts.aggregate = Some((keys, aggregates, rollup));
            node = input;
        }
        while let Node::Filter { input, conditions, having: false } = node {
            parts.conditions.splice(0..0, conditions);
            node = *input;
        }
    }
    parts.joins = node;
    parts
}

/// FROM of a block.
struct Joins<'a> {
    sources: Vec<Source>,
    locks: Vec<Lock>,
    places: Places<'a>,
    keep_order: bool,
    /// Hints: tables with columns of those that are to be read before them.
    follows: Vec<(usize, Vec<ColumnId>)>,
    /// How many tables are of semi and anti joins: nothing behind the joins reads them.
    tested: usize,
}

impl Lowering<'_> {
    pub(super) fn block(&mut self, node: Node, given: &[ColumnId], outer: &Outer) -> Result<SelectPlan, MysqlError> {
        let selected = self.selected.take();
        let parts = take_apart(node);
        if let (Node::Window(windows), Some(items)) = (&parts.joins, &parts.project) {
            self.selected = Some(window::selected(windows, items, given));
        }
        let mut joins = Joins {
            sources: vec![],
            locks: vec![],
            places: Places::new(outer),
            keep_order: false,
            follows: vec![],
            tested: 0,
        };
        let mut from_conditions = Vec::new();
        let items = self.flatten(parts.joins, &mut joins, &mut from_conditions, outer)?;
        let Joins { mut sources, locks, mut places, keep_order, follows, tested } = joins;
        for (table, before) in follows {
            sources[table].follows = before.into_iter().filter_map(|id| places.table_of(id)).collect();
        }
        let read = sources.len() - tested;

        // The order of conditions is that in which they were written: FROM, then WHERE.
        let mut conditions = places.place_all(from_conditions)?;
        conditions.extend(places.place_all(parts.conditions)?);
        let mut conditions = factor(conditions);
        for condition in &mut conditions {
            condition::find_zero_dates(condition, &sources);
        }
        let items = place_items(items, &places, &sources)?;

        let grouped = parts.aggregate.is_some();
        let (keys, aggregates, rollup) = parts.aggregate.unwrap_or_default();
        let keys = places.place_all(keys)?;
        let mut placed_aggregates = Vec::with_capacity(aggregates.len());
        for (number, (id, aggregate)) in aggregates.into_iter().enumerate() {
            let arguments = places.place_all(aggregate.arguments)?;
            let order_by = aggregate
                .order_by
                .into_iter()
                .map(|(expr, descending)| Ok((places.place(expr)?, descending)))
                .collect::<Result<_, MysqlError>>()?;
            placed_aggregates.push(Aggregate { arguments, order_by, ..aggregate });
            places.add_group_value(id, number);
        }
        let aggregates = placed_aggregates;
        let rollup = rollup.map(|rollup| {
            let first = aggregates.len() + rollup.keys.len();
            for (number, id) in rollup.keys.into_iter().enumerate() {
                places.add_group_value(id, aggregates.len() + number);
            }
            let mut groupings = Vec::with_capacity(rollup.groupings.len());
            for (number, (id, positions)) in rollup.groupings.into_iter().enumerate() {
                places.add_group_value(id, first + number);
                groupings.push(positions);
            }
            Rollup { groupings }
        });
        for (id, expr) in parts.project.into_iter().flatten() {
            let placed = places.place(expr)?;
            places.add_item(id, placed);
        }
        let mut select = given.iter().map(|&id| self.given(id, &places)).collect::<Result<Vec<Expr>, _>>()?;
        let mut having = places.place_all(parts.having)?.into_iter().reduce(and);
        if let Some(having) = &mut having {
            condition::find_zero_dates(having, &sources);
        }
        let mut order = Vec::with_capacity(parts.order.len());
        for key in parts.order {
            order.push(SortKey { expr: places.place(key.expr)?, descending: key.descending });
        }
        let (limit, offset, calc_found_rows) = parts.limit.unwrap_or((None, None, false));

        if grouped && self.context.sql_mode.only_full_group_by {
            let checked = grouping::Checked {
                sources: &sources,
                items: &items,
                conditions: &conditions,
                keys: &keys,
                rollup: rollup.is_some(),
                select: &select,
                selected: selected.as_deref(),
                having: having.as_ref(),
                order: &order,
            };
            grouping::check(&checked)?;
        }
        if parts.distinct && self.context.sql_mode.only_full_group_by {
            grouping::check_distinct(&sources, &select, &order)?;
        }
        if !grouped && having.is_some() {
            grouping::check_having(&sources, &select, selected.as_deref(), having.as_ref())?;
        }
        // A subquery is asked even where it cannot order rows: it may have too many (1242).
        order.retain(|k| !k.expr.is_constant() || k.expr.has_subquery());

        let first_row = if grouped && read == 1 { index_end(&keys, &aggregates) } else { None };
        if let Some((column, _)) = first_row
            && sources[0].schema().columns[column].nullable
        {
            // NULLs count for neither, and stand first in the index.
            let column = column_expression(&sources, 0, column);
            let kind = ExprKind::IsNull { expr: Box::new(column), negated: true };
            conditions.push(Expr { kind, ty: DataType::BIGINT, nullable: false, coercibility: 5 });
        }
        let wanted = match &first_row {
            Some(column) => Some(WantedOrder { table: 0, order: vec![*column], limit: Some(1.0) }),
            None if grouped => None,
            None => wanted_order(&order, limit.as_ref(), offset.as_ref()),
        };
        let wants = wanted.is_some();
        let behind = select.iter().chain(&having).chain(order.iter().map(|key| &key.expr));
        let equal_rows = match sources.len() == 1 && first_row.is_none() {
            true if grouped => Groups::of_aggregates(&keys, &aggregates, behind),
            true if parts.distinct => Groups::of_distinct(behind),
            _ => None,
        };
        let lock = locks.iter().copied().flatten().next();
        let mut read = ReadColumns::of(sources.len());
        read.add(keys.iter().chain(&select).chain(&having).chain(order.iter().map(|key| &key.expr)));
        for aggregate in &aggregates {
            read.add(aggregate.arguments.iter().chain(aggregate.order_by.iter().map(|(expr, _)| expr)));
        }
        sources.iter().filter_map(Source::lateral).for_each(|lateral| read.add(&lateral.outer));
        let joined = plan_join(JoinInput {
            sources: &sources,
            items,
            conditions,
            keep_order,
            wanted,
            equal_rows,
            read: read.tables(),
            locks: &locks,
            switches: self.switches,
            database: self.database,
        });
        self.by_values |= joined.by_values;
        let ordered = wants && joined.ordered;
        if ordered && first_row.is_none() {
            order.clear();
        }
        let kept = match &rollup {
            Some(_) => vec![true; keys.len()],
            None => {
                let above = select.iter_mut().chain(&mut having).chain(order.iter_mut().map(|key| &mut key.expr));
                read_keys(above, &keys, aggregates.len())
            }
        };
        let grouping = grouped.then(|| {
            let mut carried = Vec::new();
            let late = select.iter().chain(having.iter()).chain(order.iter().map(|k| &k.expr));
            late.for_each(|e| {
                e.for_each_column(&mut |table, column| {
                    if !carried.contains(&(table, column)) {
                        carried.push((table, column));
                    }
                });
            });
            Grouping { keys, aggregates, carried, kept, rollup }
        });
        let mut plan = SelectPlan {
            sources,
            steps: joined.steps,
            once: joined.once,
            grouping,
            having,
            items: select,
            distinct: parts.distinct,
            order,
            limit,
            offset,
            calc_found_rows,
            first_row_only: ordered && first_row.is_some(),
            lock,
            outer_groups: joined.outer_groups,
            batches: vec![],
            late: false,
            stored: false,
            vector: None,
            point: false,
        };
        plan.late = has_subquery(&plan);
        plan.batches = key_batches(&plan, self.switches.batched_key_access());
        keep_key_order(&mut plan);
        plan.vector = vector::choose(&plan, self.switches);
        plan.point = plan.reads_point();
        Ok(plan)
    }

    /// A column that the block gives: one of its projection, or without one a column of a table.
    fn given(&self, id: ColumnId, places: &Places<'_>) -> Result<Expr, MysqlError> {
        match places.item(id) {
            Some(item) => Ok(item.clone()),
            None => {
                let column = self.columns.get(id);
                places.place(Expr::reference(id, column.ty, column.nullable))
            }
        }
    }

    /// Adds the tables of a part of FROM; gives its structure, with conditions of outer joins not placed yet.
    fn flatten(
        &mut self,
        node: Node,
        joins: &mut Joins<'_>,
        conditions: &mut Vec<Expr>,
        outer: &Outer,
    ) -> Result<Vec<Item>, MysqlError> {
        crate::stack::grow(|| {
            let node = match node {
                Node::OneRow => return Ok(vec![]),
                Node::Join(join) => {
                    joins.keep_order |= join.straight;
                    let mut items = self.flatten(join.left, joins, conditions, outer)?;
                    match join.kind {
                        JoinKind::Inner => {
                            items.extend(self.flatten(join.right, joins, conditions, outer)?);
                            conditions.extend(join.on);
                        }
                        JoinKind::Semi | JoinKind::Anti => {
                            let (first, tested) = (joins.sources.len(), joins.tested);
                            let mut on = Vec::new();
                            let tests = self.flatten(join.right, joins, &mut on, outer)?;
                            on.extend(join.on);
                            joins.tested = tested + joins.sources.len() - first;
                            items.push(Item::Test { items: tests, on, anti: join.kind == JoinKind::Anti });
                        }
                        JoinKind::Left => {
                            let first = joins.sources.len();
                            let mut on = Vec::new();
                            let inner = self.flatten(join.right, joins, &mut on, outer)?;
                            on.extend(join.on);
                            for source in &mut joins.sources[first..] {
                                source.null_rows = true;
                            }
                            items.push(Item::Outer { items: inner, on });
                        }
                    }
                    return Ok(items);
                }
                other => other,
            };
            let follows = match &node {
                Node::Scan(scan) => scan.follows.clone(),
                _ => vec![],
            };
            let (source, columns, lock) = match node {
                Node::Lateral(lateral) => {
                    let lateral = *lateral;
                    let schema = self.schema(&lateral.alias, &lateral.columns);
                    // The tables that it reads stand before it.
                    let outer = joins.places.place_all(lateral.outer)?;
                    let rows = RowsOf::Lateral(Arc::new(LateralRows { query: lateral.subquery.0 as usize, outer }));
                    let source = plain_source(SourceTable::Query(rows, schema), lateral.alias);
                    (source, lateral.columns, None)
                }
                node => self.source(node, outer)?,
            };
            let table = joins.sources.len();
            joins.places.add_table(table, &columns);
            if !follows.is_empty() {
                joins.follows.push((table, follows));
            }
            joins.sources.push(source);
            joins.locks.push(lock);
            Ok(vec![Item::Table(table)])
        })
    }

    pub(super) fn source(&mut self, node: Node, outer: &Outer) -> Result<(Source, Vec<ColumnId>, Lock), MysqlError> {
        match node {
            Node::Scan(scan) => {
                let table = match scan.table {
                    ScanTable::Stored(handle) => {
                        self.stored.push((handle.clone(), false));
                        SourceTable::Stored(handle)
                    }
                    ScanTable::Virtual(table) => SourceTable::Virtual(table),
                };
                let statistics = match &table {
                    SourceTable::Stored(handle) => self.lookup.statistics(handle),
                    _ => None,
                };
                let source = Source {
                    statistics,
                    allowed_indexes: scan.allowed_indexes,
                    force_index: scan.force_index,
                    join_hints: scan.join_hints,
                    path_hints: scan.path_hints,
                    ..plain_source(table, scan.alias)
                };
                Ok((source, scan.columns, scan.lock))
            }
            Node::CommonTable(table) => {
                let CommonTableScan { table: number, alias, columns, working, .. } = *table;
                let schema = self.schema(&alias, &columns);
                let rows = if working { RowsOf::Working(number) } else { RowsOf::Common(number) };
                Ok((plain_source(SourceTable::Query(rows, schema), alias), columns, None))
            }
            Node::Derived(derived) => self.derived(derived.alias, derived.query, outer),
            node => {
                let mut columns = Vec::new();
                node.columns(&mut columns);
                self.derived(String::new(), Query { node, columns }, outer)
            }
        }
    }

    fn derived(
        &mut self,
        alias: String,
        query: Query,
        outer: &Outer,
    ) -> Result<(Source, Vec<ColumnId>, Lock), MysqlError> {
        let columns = query.columns.clone();
        let schema = self.schema(&alias, &columns);
        let plan = self.query(query, outer)?;
        let table = SourceTable::Query(RowsOf::Derived(Arc::new(plan)), schema);
        Ok((plain_source(table, alias), columns, None))
    }

    /// The columns of a query in the form of a table's.
    fn schema(&self, alias: &str, columns: &[ColumnId]) -> Arc<TableSchema> {
        let columns: Vec<_> = columns
            .iter()
            .enumerate()
            .map(|(at, &id)| {
                let column = self.columns.get(id);
                rauk_types::Column {
                    id: rauk_types::ColumnId(at as u16),
                    name: if alias.is_empty() { full_name(&column.result) } else { column.result.name.clone() },
                    ty: column.ty,
                    nullable: column.nullable,
                    default: ColumnDefault::None,
                    on_update_now: false,
                    comment: String::new(),
                    initial: Value::Null,
                    generated: None,
                    invisible: false,
                }
            })
            .collect();
        Arc::new(TableSchema {
            id: TableId(0),
            version: 1,
            database: String::new(),
            name: alias.to_string(),
            columns: columns.into(),
            indexes: Default::default(),
            distribution: vec![],
            hidden_key: false,
            auto_increment: None,
            collation: Collation::DEFAULT,
            comment: String::new(),
            explicit_partitioning: false,
            fully_replicated: false,
            checks: Vec::new(),
            entry_of: None,
            foreign_keys: Vec::new(),
            storage: Default::default(),
            partitioning: None,
            leaf_of: None,
            leaf_tables: Default::default(),
            layouts: vec![],
        })
    }
}

fn plain_source(table: SourceTable, alias: String) -> Source {
    Source {
        table,
        alias,
        null_rows: false,
        allowed_indexes: None,
        force_index: false,
        statistics: None,
        follows: vec![],
        join_hints: JoinHints::default(),
        path_hints: PathHints::default(),
    }
}

/// A column of rows that have no name of their own, as errors call it.
fn full_name(column: &rauk_types::result::ResultColumn) -> String {
    if column.table.is_empty() {
        return column.name.clone();
    }
    format!("{}.{}.{}", column.database, column.table, column.name)
}

/// Places the conditions of outer joins.
fn place_items(items: Vec<Item>, places: &Places<'_>, sources: &[Source]) -> Result<Vec<Item>, MysqlError> {
    items
        .into_iter()
        .map(|item| match item {
            Item::Table(table) => Ok(Item::Table(table)),
            Item::Outer { items, on } => {
                let on = place_conditions(on, places, sources)?;
                Ok(Item::Outer { items: place_items(items, places, sources)?, on })
            }
            Item::Test { items, on, anti } => {
                let on = place_conditions(on, places, sources)?;
                Ok(Item::Test { items: place_items(items, places, sources)?, on, anti })
            }
        })
        .collect()
}

fn place_conditions(on: Vec<Expr>, places: &Places<'_>, sources: &[Source]) -> Result<Vec<Expr>, MysqlError> {
    let mut on = places.place_all(on)?;
    for condition in &mut on {
        condition::find_zero_dates(condition, sources);
    }
    Ok(on)
}

/// Makes expressions above the grouping read the values of computed keys instead of computing them again. Gives which keys they read.
fn read_keys<'e>(above: impl Iterator<Item = &'e mut Expr>, keys: &[Expr], first: usize) -> Vec<bool> {
    fn is_computed(expr: &Expr) -> bool {
        !matches!(expr.kind, ExprKind::Column { .. }) && !expr.is_constant()
    }
    fn key_of(expr: &Expr, keys: &[Expr]) -> Option<usize> {
        keys.iter().position(|key| is_computed(expr) && key == expr)
    }
    fn find(expr: &Expr, keys: &[Expr], kept: &mut [bool]) {
        match key_of(expr, keys) {
            Some(at) => kept[at] = true,
            None => expr.for_each_child(&mut |child| crate::stack::grow(|| find(child, keys, kept))),
        }
    }
    fn replace(expr: &mut Expr, keys: &[Expr], places: &[usize]) {
        match key_of(expr, keys) {
            Some(at) => expr.kind = ExprKind::GroupValue(places[at]),
            None => expr.for_each_child_mut(&mut |child| crate::stack::grow(|| replace(child, keys, places))),
        }
    }
    let mut kept = vec![false; keys.len()];
    if !keys.iter().any(is_computed) {
        return kept;
    }
    let above: Vec<&mut Expr> = above.collect();
    above.iter().for_each(|expr| find(expr, keys, &mut kept));
    let places: Vec<usize> =
        (0..keys.len()).map(|at| first + kept[..at].iter().filter(|kept| **kept).count()).collect();
    above.into_iter().for_each(|expr| replace(expr, keys, &places));
    kept
}

fn and(left: Expr, right: Expr) -> Expr {
    let nullable = left.nullable || right.nullable;
    Expr { kind: ExprKind::And(Box::new(left), Box::new(right)), ty: DataType::BIGINT, nullable, coercibility: 5 }
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

/// A lone MIN or MAX of a column of the only table that is read: the column, and whether the index is wanted backwards.
fn index_end(keys: &[Expr], aggregates: &[Aggregate]) -> Option<(usize, bool)> {
    let [aggregate] = aggregates else { return None };
    if !keys.is_empty() {
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

/// Whether anything in a plan has a subquery.
fn has_subquery(plan: &SelectPlan) -> bool {
    let any = |list: &[Expr]| list.iter().any(Expr::has_subquery);
    let step = |step: &Step| match step {
        Step::Scan(level) => any(&level.filters) || !level.late_filters.is_empty() || level.access.has_subquery(),
        Step::Enter { .. } | Step::Test { .. } | Step::Match { .. } => false,
        Step::Leave { filters, .. } => any(filters),
    };
    let aggregate = |a: &Aggregate| any(&a.arguments) || a.order_by.iter().any(|(expr, _)| expr.has_subquery());
    plan.steps.iter().any(step)
        || any(&plan.once)
        || plan.grouping.as_ref().is_some_and(|g| any(&g.keys) || g.aggregates.iter().any(aggregate))
        || plan.having.iter().any(Expr::has_subquery)
        || any(&plan.items)
        || plan.order.iter().any(|key| key.expr.has_subquery())
}

/// A column of a table of the block.
fn column_expression(sources: &[Source], table: usize, column: usize) -> Expr {
    let definition = &sources[table].schema().columns[column];
    Expr {
        kind: ExprKind::Column { table, column },
        ty: definition.ty,
        nullable: definition.nullable || sources[table].null_rows,
        coercibility: 2,
    }
}
