//! EXPLAIN, in MySQL's twelve columns.
//!
//! `partitions` names the partitions of the table that are read, p0 to pn. The values of this execution decide that (and an impossible WHERE), so
//! EXPLAIN of a prepared statement shows what its parameters would do.

use super::Plan;
use super::model::{Access, IndexAccess, KeyValue, Level, PlanKind, QueryPlan, SelectPlan, Source, SourceTable, Step};
use crate::exec::{Distribution, Joined, distribution};
use crate::expr::{Context, Expr, ExprKind, NoColumns, is_pending};
use rauk_types::schema::BUCKETS;
use rauk_types::{DataType, MysqlError, TableSchema, TypeKind, Value, key};

const COLUMNS: usize = 12;

pub(super) fn rows(plan: &Plan, context: &mut Context) -> Result<Vec<Vec<Value>>, MysqlError> {
    match &plan.kind {
        PlanKind::Select(select) => select_rows(select, "SIMPLE", context),
        PlanKind::Query(query) => query_rows(query, context),
        PlanKind::Update(update) => {
            change_row("UPDATE", &update.sources, &update.level, !update.order.is_empty(), context)
        }
        PlanKind::Delete(delete) => {
            change_row("DELETE", &delete.sources, &delete.level, !delete.order.is_empty(), context)
        }
        PlanKind::Insert(insert) => {
            let mut first = vec![Value::Null; COLUMNS];
            first[0] = Value::Int(1);
            first[1] =
                text(if insert.on_duplicate == super::model::OnDuplicate::Replace { "REPLACE" } else { "INSERT" });
            first[2] = text(&insert.table.schema().name);
            first[4] = text("ALL");
            let mut rows = vec![first];
            if let super::model::InsertSource::Query(query, _) = &insert.source {
                rows.extend(query_rows(query, context)?);
            }
            Ok(rows)
        }
    }
}

fn text(text: &str) -> Value {
    Value::Str(text.to_string())
}

fn query_rows(query: &QueryPlan, context: &mut Context) -> Result<Vec<Vec<Value>>, MysqlError> {
    match query {
        QueryPlan::Select(select) => select_rows(select, "SIMPLE", context),
        QueryPlan::Values(_) => Ok(vec![message("SIMPLE", "No tables used")]),
        QueryPlan::Set(set) => {
            let mut rows = query_rows(&set.left, context)?;
            rows.extend(query_rows(&set.right, context)?);
            Ok(rows)
        }
    }
}

/// A row that says why there is nothing to read.
fn message(kind: &str, extra: &str) -> Vec<Value> {
    let mut row = vec![Value::Null; COLUMNS];
    row[0] = Value::Int(1);
    row[1] = text(kind);
    row[11] = text(extra);
    row
}

fn select_rows(plan: &SelectPlan, kind: &str, context: &mut Context) -> Result<Vec<Vec<Value>>, MysqlError> {
    if plan.steps.is_empty() {
        return Ok(vec![message(kind, "No tables used")]);
    }
    if impossible(&plan.once, context)? {
        return Ok(vec![message(kind, "Impossible WHERE")]);
    }
    let mut rows = Vec::new();
    for step in &plan.steps {
        let Step::Scan(level) = step else { continue };
        let mut extra = Vec::new();
        if rows.is_empty() {
            if plan.distinct || plan.grouping.as_ref().is_some_and(|g| !g.keys.is_empty()) {
                extra.push("Using temporary");
            }
            if !plan.order.is_empty() {
                extra.push("Using filesort");
            }
        }
        rows.push(level_row(kind, &plan.sources, level, extra, !rows.is_empty(), context)?);
    }
    Ok(rows)
}

fn change_row(
    kind: &str,
    sources: &[Source],
    level: &Level,
    sorts: bool,
    context: &mut Context,
) -> Result<Vec<Vec<Value>>, MysqlError> {
    let extra = if sorts { vec!["Using filesort"] } else { vec![] };
    Ok(vec![level_row(kind, sources, level, extra, false, context)?])
}

fn impossible(once: &[Expr], context: &mut Context) -> Result<bool, MysqlError> {
    for condition in once {
        match condition.eval_bool(&NoColumns, context) {
            Ok(true) => {}
            Ok(false) => return Ok(true),
            // A subquery decides it.
            Err(error) if is_pending(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn level_row(
    kind: &str,
    sources: &[Source],
    level: &Level,
    extra: Vec<&str>,
    inner: bool,
    context: &mut Context,
) -> Result<Vec<Value>, MysqlError> {
    let source = &sources[level.table];
    let schema = source.schema();
    let mut row = vec![Value::Null; COLUMNS];
    row[0] = Value::Int(1);
    row[1] = text(kind);
    row[2] = text(&source.alias);
    row[3] = match &source.table {
        SourceTable::Stored(_) => partitions(level, context)?,
        SourceTable::Virtual(_) | SourceTable::Row(_) | SourceTable::Query(..) => Value::Null,
    };
    row[4] = text(access_type(&level.access));
    let visible: Vec<&str> = level.possible.iter().map(|&i| schema.indexes[i].name.as_str()).collect();
    if !visible.is_empty() {
        row[5] = text(&visible.join(","));
    }
    let mut notes: Vec<&str> = Vec::new();
    if let Some(access) = index_of(&level.access) {
        row[6] = text(&schema.indexes[access.index].name);
        row[7] = text(&key_length(access, schema).to_string());
        if matches!(access_type(&level.access), "const" | "eq_ref" | "ref") {
            row[8] = text(&references(access, sources));
        }
        if access.reverse {
            notes.push("Backward index scan");
        }
    }
    row[9] = Value::Int(level.rows.min(i64::MAX as u64) as i64);
    row[10] = Value::Double((level.filtered * 100.0).round() / 100.0);
    if level.used_where {
        notes.insert(0, "Using where");
    }
    notes.extend(extra);
    if inner && level.buffered {
        notes.push(if level.hash.is_some() {
            "Using join buffer (hash join)"
        } else {
            "Using join buffer (Block Nested Loop)"
        });
    }
    if !notes.is_empty() {
        row[11] = text(&notes.join("; "));
    }
    Ok(row)
}

fn index_of(access: &Access) -> Option<&IndexAccess> {
    match access {
        Access::Primary(access) | Access::Unique(access) | Access::Range(access) => Some(access),
        Access::Full { .. } | Access::Virtual { .. } | Access::Rows => None,
    }
}

fn access_type(access: &Access) -> &'static str {
    let values = |access: &IndexAccess| {
        access.condition.equal.iter().flat_map(|p| &p.values).all(|v| match v {
            KeyValue::Value(e) | KeyValue::NullSafe(e) => e.is_constant(),
            KeyValue::Null => true,
        })
    };
    match access {
        Access::Full { .. } | Access::Virtual { .. } | Access::Rows => "ALL",
        Access::Primary(a) | Access::Unique(a) if a.condition.points() > 1 || a.condition.tuples.is_some() => "range",
        Access::Primary(a) | Access::Unique(a) => {
            if values(a) {
                "const"
            } else {
                "eq_ref"
            }
        }
        Access::Range(a) => {
            let condition = &a.condition;
            if condition.equal.is_empty() && condition.range.is_none() && condition.tuples.is_none() {
                "index"
            } else if condition.range.is_none() && condition.tuples.is_none() && condition.points() == 1 {
                "ref"
            } else {
                "range"
            }
        }
    }
}

/// Bytes of the key parts in use, as MySQL counts them.
fn key_length(access: &IndexAccess, schema: &TableSchema) -> u32 {
    let condition = &access.condition;
    let mut used = condition.fixed_parts() + usize::from(condition.range.is_some());
    let index = &schema.indexes[access.index];
    if used == 0 {
        used = index.parts.len();
    }
    index.parts[..used]
        .iter()
        .map(|part| {
            let column = &schema.columns[part.column];
            type_length(&column.ty, part.prefix) + u32::from(column.nullable)
        })
        .sum()
}

fn type_length(ty: &DataType, prefix: Option<u32>) -> u32 {
    let fraction = u32::from(ty.scale.min(6)).div_ceil(2);
    match ty.kind {
        TypeKind::Null => 0,
        TypeKind::TinyInt => 1,
        TypeKind::SmallInt => 2,
        TypeKind::MediumInt | TypeKind::Date => 3,
        TypeKind::Int | TypeKind::Float => 4,
        TypeKind::BigInt | TypeKind::Double => 8,
        TypeKind::Time => 3 + fraction,
        TypeKind::Timestamp => 4 + fraction,
        TypeKind::DateTime => 5 + fraction,
        TypeKind::Decimal => {
            let bytes = |digits: u32| digits / 9 * 4 + [0, 1, 1, 2, 2, 3, 3, 4, 4][(digits % 9) as usize];
            bytes(u32::from(ty.precision - ty.scale)) + bytes(u32::from(ty.scale))
        }
        TypeKind::Char => prefix.unwrap_or(ty.length) * 4,
        TypeKind::Binary => prefix.unwrap_or(ty.length),
        TypeKind::VarBinary => prefix.unwrap_or(ty.length) + 2,
        _ if ty.is_bytes() => prefix.unwrap_or(ty.length) + 2,
        _ => prefix.unwrap_or(ty.length).saturating_mul(4) + 2,
    }
}

fn references(access: &IndexAccess, sources: &[Source]) -> String {
    let names: Vec<String> = access
        .condition
        .equal
        .iter()
        .map(|part| match part.values.first() {
            Some(KeyValue::Value(e) | KeyValue::NullSafe(e)) => match e.kind {
                ExprKind::Column { table, column } => {
                    let source = &sources[table];
                    let schema = source.schema();
                    format!("{}.{}.{}", schema.database, source.alias, schema.columns[column].name)
                }
                _ if e.is_constant() => "const".to_string(),
                _ => "func".to_string(),
            },
            _ => "const".to_string(),
        })
        .collect();
    names.join(",")
}

fn partitions(level: &Level, context: &mut Context) -> Result<Value, MysqlError> {
    let key = match &level.access {
        Access::Full { distribution } => distribution.as_ref(),
        Access::Primary(a) | Access::Unique(a) | Access::Range(a) => a.distribution.as_ref(),
        Access::Virtual { .. } | Access::Rows => None,
    };
    let count = level.partitions;
    let zone = context.time_zone.clone();
    let known = match key {
        // Values of other tables are not known here.
        Some(key) if key.values.iter().all(Expr::is_constant) => {
            match distribution(Some(key), &Joined::root(&zone), context) {
                Ok(Distribution::Key(encoded)) => Some(key::bucket(key::hash(&encoded))),
                Ok(Distribution::Nothing) => return Ok(Value::Null),
                Ok(Distribution::Unknown) => None,
                // A subquery gives the value.
                Err(error) if is_pending(&error) => None,
                Err(error) => return Err(error),
            }
        }
        _ => None,
    };
    Ok(text(&match known {
        // Partitions hold contiguous ranges of buckets.
        Some(bucket) => format!("p{}", u32::from(bucket) * u32::from(count) / u32::from(BUCKETS)),
        None => (0..count).map(|p| format!("p{p}")).collect::<Vec<_>>().join(","),
    }))
}
