//! EXPLAIN FORMAT=JSON, with MySQL's keys.
//!
//! A block is a `query_block`; around its tables stand the operations on joined rows, the last one outermost:
//! `ordering_operation`, `duplicates_removal`, `grouping_operation`. A query in FROM stands in its table as
//! `materialized_from_subquery`, a subquery where its condition is checked (`attached_subqueries`) or in the list of the
//! clause it belongs to. Costs are in rows of a full scan; they compare plans of one server, not servers.

use super::describe::{Below, Block, COVERED, Described, Part, Place, Role, Set, TABLE_FUNCTION, Table, Tests};
use super::explain::operation_name;
use super::model::{Access, IndexAccess, RowsOf, SelectPlan, SourceTable, Step};
use crate::expr::Expr;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The part of a table's cost that its rows take once they are there.
const ROW_COST: f64 = 0.1;

enum Json {
    Text(String),
    Number(i64),
    Truth(bool),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

type Members = Vec<(&'static str, Json)>;

pub(super) fn text(described: &Described<'_>) -> String {
    let top = match described {
        Described::Query(query) => vec![("query_block", part(query))],
        Described::Change(change) => vec![("query_block", block(change))],
        Described::Insert { replace, table, source, below } => {
            let kind = if *replace { "replace" } else { "insert" };
            let table = vec![(kind, Json::Truth(true)), ("table_name", name(table)), ("access_type", name("ALL"))];
            let mut members = vec![("select_id", Json::Number(1)), ("table", Json::Object(table))];
            if let Some(source) = source {
                members.push(("insert_from", part(source)));
            }
            lists(below, &mut members);
            vec![("query_block", Json::Object(members))]
        }
    };
    let mut out = String::new();
    print(&Json::Object(top), 0, &mut out);
    out
}

fn name(text: &str) -> Json {
    Json::Text(text.to_string())
}

fn cost(value: f64) -> Json {
    Json::Text(format!("{value:.2}"))
}

/// The content of a `query_block`.
fn part(query: &Part<'_>) -> Json {
    crate::stack::grow(|| match query {
        Part::Block(of) => block(of),
        Part::Set(of) => Json::Object(vec![set(of)]),
        Part::Sorted(of) => {
            let result = vec![
                ("using_temporary_table", Json::Truth(true)),
                ("table_name", Json::Text(format!("<unary{}>", of.id()))),
                ("access_type", name("ALL")),
                ("using_filesort", Json::Truth(true)),
                ("query_specifications", Json::List(vec![specification(of)])),
            ];
            Json::Object(vec![("unary_result", Json::Object(result))])
        }
    })
}

fn set(set: &Set<'_>) -> (&'static str, Json) {
    let key = match operation_name(set.op) {
        "union" => "union_result",
        "except" => "except_result",
        _ => "intersect_result",
    };
    let kept = set.keeps || set.sorts;
    let mut members = vec![("using_temporary_table", Json::Truth(kept))];
    if kept {
        let ids: Vec<String> = set.members.iter().map(|member| member.id().to_string()).collect();
        members.push(("table_name", Json::Text(format!("<{}{}>", operation_name(set.op), ids.join(",")))));
        members.push(("access_type", name("ALL")));
    }
    if set.sorts {
        members.push(("using_filesort", Json::Truth(true)));
    }
    members.push(("query_specifications", Json::List(set.members.iter().map(specification).collect())));
    (key, Json::Object(members))
}

fn specification(query: &Part<'_>) -> Json {
    Json::Object(specification_members(is_dependent(query), query))
}

fn specification_members(dependent: bool, query: &Part<'_>) -> Members {
    vec![("dependent", Json::Truth(dependent)), ("cacheable", Json::Truth(!dependent)), ("query_block", part(query))]
}

fn is_dependent(query: &Part<'_>) -> bool {
    match query {
        Part::Block(block) => block.role.is_dependent(),
        Part::Set(set) => set.members.iter().any(is_dependent),
        Part::Sorted(of) => is_dependent(of),
    }
}

fn block(block: &Block<'_>) -> Json {
    let mut members = vec![("select_id", Json::Number(block.id))];
    if let Some(message) = block.message {
        members.push(("message", name(message)));
    } else {
        let total = block.tables.last().map_or(0.0, |table| table.prefix_cost);
        members.push(("cost_info", Json::Object(vec![("query_cost", cost(total))])));
    }
    let mut inside = tables(block);
    if let Some(plan) = block.plan {
        if plan.grouping.is_some() && !block.tables.is_empty() {
            let keys = plan.grouping.as_ref().is_some_and(|grouping| !grouping.keys.is_empty());
            if keys {
                let mut grouping =
                    vec![("using_temporary_table", Json::Truth(true)), ("using_filesort", Json::Truth(false))];
                grouping.append(&mut inside);
                below_of(block, Place::Group, "group_by_subqueries", &mut grouping);
                inside = vec![("grouping_operation", Json::Object(grouping))];
            }
            below_of(block, Place::Having, "having_subqueries", &mut inside);
        }
        if plan.distinct {
            let mut distinct =
                vec![("using_temporary_table", Json::Truth(true)), ("using_filesort", Json::Truth(false))];
            distinct.append(&mut inside);
            inside = vec![("duplicates_removal", Json::Object(distinct))];
        }
    }
    if let Some(windows) = &block.windows
        && block.message.is_none()
    {
        let mut windowing =
            vec![("using_temporary_table", Json::Truth(true)), ("using_filesort", Json::Truth(windows.sorts))];
        windowing.append(&mut inside);
        inside = vec![("windowing", Json::Object(windowing))];
    }
    let sorts = block.sorts || block.windows.as_ref().is_some_and(|windows| !windows.plan.order.is_empty());
    if sorts && block.message.is_none() {
        let mut ordering = vec![("using_filesort", Json::Truth(true))];
        ordering.append(&mut inside);
        below_of(block, Place::Order, "order_by_subqueries", &mut ordering);
        inside = vec![("ordering_operation", Json::Object(ordering))];
    }
    members.append(&mut inside);
    let grouped = block.plan.is_some_and(|plan| plan.grouping.is_some()) && !block.tables.is_empty();
    let shown = |place: &Place| match place {
        Place::From(_) | Place::Condition(_) => !block.tables.is_empty(),
        Place::Order => sorts && block.message.is_none(),
        Place::Group | Place::Having => grouped,
        Place::Once | Place::Select | Place::Values => false,
    };
    lists(block.below.iter().filter(|below| !shown(&below.place)), &mut members);
    Json::Object(members)
}

/// The subqueries of a block that stand beside its tables.
fn lists<'b, 'p: 'b>(below: impl IntoIterator<Item = &'b Below<'p>>, members: &mut Members) {
    let key = |place: Place| match place {
        Place::Select => "select_list_subqueries",
        Place::Group => "group_by_subqueries",
        Place::Having => "having_subqueries",
        Place::Order => "order_by_subqueries",
        Place::Values => "update_value_subqueries",
        Place::Once | Place::Condition(_) | Place::From(_) => "optimized_away_subqueries",
    };
    for below in below {
        let key = key(below.place);
        let entry = Json::Object(specification_members(below.dependent, &below.part));
        match members.iter_mut().find(|(name, _)| *name == key) {
            Some((_, Json::List(list))) => list.push(entry),
            _ => members.push((key, Json::List(vec![entry]))),
        }
    }
}

/// Adds the subqueries that stand at a place.
fn below_of(block: &Block<'_>, place: Place, key: &'static str, members: &mut Members) {
    let found: Vec<Json> = block
        .below
        .iter()
        .filter(|below| below.place == place)
        .map(|below| Json::Object(specification_members(below.dependent, &below.part)))
        .collect();
    if !found.is_empty() {
        members.push((key, Json::List(found)));
    }
}

fn tables(block: &Block<'_>) -> Members {
    let mut tables: Vec<Json> = block.tables.iter().map(|of| Json::Object(vec![("table", table(block, of))])).collect();
    match (tables.len(), tables.pop()) {
        (1, Some(Json::Object(only))) => only,
        (_, None) => vec![],
        (_, Some(last)) => {
            tables.push(last);
            vec![("nested_loop", Json::List(tables))]
        }
    }
}

fn table(block: &Block<'_>, table: &Table<'_>) -> Json {
    let mut members = Vec::new();
    match block.role_of(table) {
        Role::Update => members.push(("update", Json::Truth(true))),
        Role::Delete => members.push(("delete", Json::Truth(true))),
        _ => {}
    }
    let names = |list: &[&str]| Json::List(list.iter().map(|text| name(text)).collect());
    members.push(("table_name", name(&table.name)));
    // Each partition of a large table would be most of the text: those of a part are named.
    if let Some(partitions) = &table.partitions
        && partitions.len() < table.all_partitions
    {
        members.push(("partitions", Json::List(partitions.iter().map(|name| Json::Text(name.clone())).collect())));
    }
    members.push(("access_type", name(table.access_type)));
    if !table.possible.is_empty() {
        members.push(("possible_keys", names(&table.possible)));
    }
    if let Some(index) = &table.index {
        members.push(("key", name(table.merge.as_ref().unwrap_or(&index.name))));
        members.push(("used_key_parts", names(&index.parts)));
        members.push(("key_length", Json::Text(index.length.clone())));
        if !index.references.is_empty() {
            members.push(("ref", Json::List(index.references.iter().map(|text| name(text)).collect())));
        }
    }
    if table.notes.contains(&"Backward index scan") {
        members.push(("backward_index_scan", Json::Truth(true)));
    }
    let level = table.level;
    members.push(("rows_examined_per_scan", Json::Number(level.rows.min(i64::MAX as u64) as i64)));
    members.push(("rows_produced_per_join", Json::Number(table.produced.max(1.0) as i64)));
    members.push(("filtered", cost(level.filtered)));
    if table.notes.contains(&COVERED) {
        members.push(("using_index", Json::Truth(true)));
    }
    match &table.tests {
        Some(Tests::FirstMatch(table)) => members.push(("first_match", name(table))),
        Some(Tests::NotExists) => members.push(("not_exists", Json::Truth(true))),
        None => {}
    }
    if let Some(kind) = table.join_buffer {
        members.push(("using_join_buffer", name(kind)));
    }
    if table.notes.contains(&TABLE_FUNCTION) {
        members.push(("table_function", name("json_table")));
        members.push(("using_temporary_table", Json::Truth(true)));
    }
    let eval = table.produced * ROW_COST;
    let costs = vec![
        ("read_cost", cost((table.step_cost - eval).max(0.0))),
        ("eval_cost", cost(eval.min(table.step_cost))),
        ("prefix_cost", cost(table.prefix_cost)),
    ];
    members.push(("cost_info", Json::Object(costs)));
    if let Some(plan) = block.plan {
        let columns = used_columns(plan, level.table);
        if !columns.is_empty() {
            members.push(("used_columns", names(&columns)));
        }
    }
    if let Some(condition) = &table.condition {
        members.push(("attached_condition", name(condition)));
    }
    if let SourceTable::Query(rows, _) = &table.source.table {
        let below = block.below.iter().find(|below| below.place == Place::From(level.table));
        match (rows, below) {
            (RowsOf::Working(_), _) => members.push(("recursive", Json::Truth(true))),
            (_, Some(below)) => {
                let mut query = vec![("using_temporary_table", Json::Truth(true))];
                query.extend(specification_members(below.dependent, &below.part));
                members.push(("materialized_from_subquery", Json::Object(query)));
            }
            (_, None) => {
                let number = table.name.trim_start_matches("<derived").trim_end_matches('>').parse().unwrap_or(0);
                let of = Json::Object(vec![("select_id", Json::Number(number))]);
                let shared = Json::Object(vec![("sharing_temporary_table_with", of)]);
                members.push(("materialized_from_subquery", shared));
            }
        }
    }
    below_of(block, Place::Condition(level.table), "attached_subqueries", &mut members);
    Json::Object(members)
}

/// The columns of a table that the block reads, in the order of the table.
fn used_columns(plan: &SelectPlan, table: usize) -> Vec<&str> {
    let mut used = BTreeSet::new();
    let mut note = |expr: &Expr| {
        expr.for_each_column(&mut |of, column| {
            if of == table {
                used.insert(column);
            }
        });
    };
    for step in &plan.steps {
        match step {
            Step::Scan(level) => {
                level.access.for_each_expr(&mut note);
                level.filters.iter().chain(&level.late_filters).for_each(&mut note);
                level.hash.iter().flat_map(|hash| hash.inner.iter().chain(&hash.outer)).for_each(&mut note);
            }
            Step::Leave { filters, .. } => filters.iter().for_each(&mut note),
            _ => {}
        }
    }
    plan.items.iter().chain(&plan.having).chain(plan.order.iter().map(|key| &key.expr)).for_each(&mut note);
    if let Some(grouping) = &plan.grouping {
        grouping.keys.iter().for_each(&mut note);
        for aggregate in &grouping.aggregates {
            let order = aggregate.order_by.iter().map(|(expr, _)| expr);
            aggregate.arguments.iter().chain(order).for_each(&mut note);
        }
    }
    let schema = plan.sources[table].schema();
    for step in &plan.steps {
        // What an index guarantees is checked no more, and is used all the same.
        if let Step::Scan(level) = step
            && level.table == table
        {
            let read: Vec<(&IndexAccess, usize)> = match &level.access {
                Access::Primary(access) | Access::Unique(access) | Access::Range(access) => {
                    vec![(access, access.condition.used_parts())]
                }
                Access::Skip(skip) => vec![(&skip.access, skip.used)],
                Access::Merge(merge) => merge.parts.iter().map(|part| (part, part.condition.used_parts())).collect(),
                Access::Full { .. } | Access::Rows | Access::Virtual { .. } | Access::Text(_) => vec![],
            };
            for (access, parts) in read {
                used.extend(schema.indexes[access.index].parts[..parts].iter().map(|part| part.column));
            }
        }
    }
    used.into_iter().filter_map(|column| Some(schema.columns.get(column)?.name.as_str())).collect()
}

fn print(json: &Json, depth: usize, out: &mut String) {
    let indent = |depth: usize, out: &mut String| out.extend(std::iter::repeat_n(' ', depth * 2));
    match json {
        Json::Text(text) => quote(text, out),
        Json::Number(number) => write!(out, "{number}").expect("a text takes a number"),
        Json::Truth(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::List(items) => {
            out.push_str("[\n");
            for (at, item) in items.iter().enumerate() {
                indent(depth + 1, out);
                print(item, depth + 1, out);
                out.push_str(if at + 1 < items.len() { ",\n" } else { "\n" });
            }
            indent(depth, out);
            out.push(']');
        }
        Json::Object(members) => crate::stack::grow(|| {
            out.push_str("{\n");
            for (at, (key, value)) in members.iter().enumerate() {
                indent(depth + 1, out);
                quote(key, out);
                out.push_str(": ");
                print(value, depth + 1, out);
                out.push_str(if at + 1 < members.len() { ",\n" } else { "\n" });
            }
            indent(depth, out);
            out.push('}');
        }),
    }
}

fn quote(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
