//! INSERT and REPLACE.
//!
//! Expressions of VALUES see the columns of the row as far as it is filled (`INSERT INTO t (a, b) VALUES (1, a + 1)`); those of ON DUPLICATE KEY
//! UPDATE see the row in the way as table 0 and the row that was to be inserted as table 1, by `VALUES(column)` or through the row alias.

use super::model::{Fill, InsertPlan, InsertSource, OnDuplicate, PlanKind, QueryPlan, SetColumn, Source, SourceTable};
use super::names::{Clause, Names, Visible, default_expression, literal, name_parts, unknown_column, visible_column};
use super::{Lookup, Plan, TableSource, from, select, unsupported};
use crate::expr::{BindContext, Expr};
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, TypeKind, Value};
use sqlparser::ast;
use std::sync::Arc;

pub(super) fn plan_insert(
    insert: &ast::Insert,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<Plan, MysqlError> {
    if insert.or.is_some() || insert.returning.is_some() || insert.overwrite {
        return Err(unsupported("INSERT with RETURNING or OR"));
    }
    if insert.partitioned.is_some() {
        return Err(unsupported("PARTITION selection"));
    }
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(unsupported("INSERT into a function"));
    };
    let handle = target_table(name, lookup, "INSERT")?;
    if insert.replace_into {
        target_table(name, lookup, "DELETE")?;
    }
    let schema = handle.schema().clone();
    let source = Source {
        table: SourceTable::Stored(handle.clone()),
        alias: match &insert.table_alias {
            Some(alias) => alias.alias.value.clone(),
            None => schema.name.clone(),
        },
        null_rows: false,
        allowed_indexes: None,
        force_index: false,
    };

    // Columns and rows.
    let mut columns = Vec::new();
    let mut tables = vec![(handle.clone(), true)];
    let mut reads_row = false;
    let rows = if !insert.assignments.is_empty() {
        let target = from::single(source.clone());
        let mut row = Vec::new();
        for assignment in &insert.assignments {
            columns.push(assigned_column(assignment, &source, Clause::FieldList)?);
            row.push(bind_value(&assignment.value, &target, context, &mut reads_row)?);
        }
        InsertSource::Rows(vec![row])
    } else {
        for column in &insert.columns {
            columns.push(named_column(column, &source, Clause::FieldList)?);
        }
        if insert.columns.is_empty() {
            columns.extend(0..schema.visible_columns().len());
        }
        match insert.source.as_deref() {
            None => InsertSource::Rows(vec![vec![]]),
            Some(query) => match &*query.body {
                ast::SetExpr::Values(values) if query.with.is_none() => {
                    let target = from::single(source.clone());
                    let mut rows = Vec::with_capacity(values.rows.len());
                    for (number, row) in values.rows.iter().enumerate() {
                        let row: &[ast::Expr] = &row.content;
                        if row.is_empty() && insert.columns.is_empty() {
                            // `VALUES ()`: every column its default.
                            rows.push(vec![None; columns.len()]);
                            continue;
                        }
                        if row.len() != columns.len() {
                            return Err(wrong_count(number + 1));
                        }
                        rows.push(
                            row.iter()
                                .map(|e| bind_value(e, &target, context, &mut reads_row))
                                .collect::<Result<Vec<_>, _>>()?,
                        );
                    }
                    InsertSource::Rows(rows)
                }
                _ => {
                    let bound = select::bind_query(query, lookup, context)?;
                    if bound.columns.len() != columns.len() {
                        return Err(wrong_count(1));
                    }
                    tables.extend(bound.tables);
                    {
                        let types = bound.plan.items.iter().map(|item| item.ty).collect();
                        InsertSource::Query(Box::new(QueryPlan::Select(Box::new(bound.plan))), types)
                    }
                }
            },
        }
    };
    let mut seen = Vec::new();
    for &column in &columns {
        if seen.contains(&column) {
            return Err(MysqlError::new(
                codes::FIELD_SPECIFIED_TWICE,
                format!("Column '{}' specified twice", schema.columns[column].name),
            ));
        }
        seen.push(column);
    }

    let (on_duplicate, update) = match &insert.on {
        Some(ast::OnInsert::DuplicateKeyUpdate(assignments)) => {
            target_table(name, lookup, "UPDATE")?;
            let alias = insert.insert_alias.as_ref();
            (OnDuplicate::Update, bind_on_duplicate(assignments, alias, &source, &columns, context)?)
        }
        Some(_) => return Err(unsupported("ON CONFLICT")),
        None if insert.replace_into => (OnDuplicate::Replace, vec![]),
        None if insert.ignore => (OnDuplicate::Skip, vec![]),
        None => (OnDuplicate::Error, vec![]),
    };
    let fill = fills(&handle, context)?;
    let plan = InsertPlan {
        columns,
        source: rows,
        fill,
        on_duplicate,
        ignore: insert.ignore,
        update,
        key_defs: schema.indexes.iter().map(|i| schema.key_def(i)).collect(),
        database: lookup.database().clone(),
        reads_row,
        table: handle,
    };
    Ok(Plan { columns: vec![], tables, parts: None, kind: PlanKind::Insert(Box::new(plan)) })
}

/// The stored table that a statement changes.
pub(super) fn target_table(
    name: &ast::ObjectName,
    lookup: &dyn Lookup,
    privilege: &str,
) -> Result<TableHandle, MysqlError> {
    let parts = name_parts(name)?;
    let (database, table) = match parts.as_slice() {
        [table] => (None, *table),
        [database, table] => (Some(*database), *table),
        _ => return Err(MysqlError::new(codes::WRONG_TABLE_NAME, format!("Incorrect table name '{name}'"))),
    };
    match lookup.table(database, table, privilege)? {
        TableSource::Stored(handle) => Ok(handle),
        TableSource::Virtual(_) => Err(MysqlError::new(
            codes::TABLEACCESS_DENIED,
            format!("{privilege} command denied to user for table '{table}'"),
        )),
    }
}

fn wrong_count(row: usize) -> MysqlError {
    MysqlError::new(codes::WRONG_VALUE_COUNT_ON_ROW, format!("Column count doesn't match value count at row {row}"))
}

/// The column that an assignment sets.
pub(super) fn assigned_column(
    assignment: &ast::Assignment,
    source: &Source,
    clause: Clause,
) -> Result<usize, MysqlError> {
    match &assignment.target {
        ast::AssignmentTarget::ColumnName(name) => named_column(name, source, clause),
        ast::AssignmentTarget::Tuple(_) => Err(unsupported("assignment to a tuple")),
    }
}

fn named_column(name: &ast::ObjectName, source: &Source, clause: Clause) -> Result<usize, MysqlError> {
    let path = name_parts(name)?;
    let fits = match path.as_slice() {
        [_] => true,
        [table, _] => *table == source.alias,
        [database, table, _] => *table == source.alias && *database == source.schema().database,
        _ => false,
    };
    path.last()
        .filter(|_| fits)
        .and_then(|column| visible_column(source, column))
        .ok_or_else(|| unknown_column(&path, clause))
}

/// Whether an expression is the bare word DEFAULT.
pub(super) fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("DEFAULT"))
}

fn bind_value(
    expr: &ast::Expr,
    target: &from::From,
    context: &BindContext,
    reads_row: &mut bool,
) -> Result<Option<Expr>, MysqlError> {
    if is_default(expr) {
        return Ok(None);
    }
    let bound = Names::new(&target.sources, &target.visible, Clause::FieldList, context).bind(expr)?;
    if matches!(expr, ast::Expr::Value(_)) {
        return Ok(Some(bound));
    }
    bound.for_each_column(&mut |_, _| *reads_row = true);
    Ok(Some(bound))
}

/// What columns get that the statement does not name.
fn fills(handle: &TableHandle, context: &BindContext) -> Result<Vec<Fill>, MysqlError> {
    let schema = handle.schema();
    let mut out = Vec::with_capacity(schema.columns.len());
    for (position, column) in schema.columns.iter().enumerate() {
        out.push(if schema.auto_increment == Some(position) {
            Fill::AutoIncrement
        } else if position >= schema.visible_columns().len() {
            // The node fills the hidden key.
            Fill::Value(literal(Value::Null, DataType::new(TypeKind::Null)))
        } else {
            match default_expression(column, context)? {
                Some(expr) => Fill::Value(expr),
                None => Fill::Missing,
            }
        });
    }
    Ok(out)
}

fn bind_on_duplicate(
    assignments: &[ast::Assignment],
    alias: Option<&ast::InsertAliases>,
    source: &Source,
    columns: &[usize],
    context: &BindContext,
) -> Result<Vec<SetColumn>, MysqlError> {
    let target = from::single(source.clone());
    let mut sources = target.sources;
    let mut visible = target.visible;
    let inserted = match alias {
        None => source.clone(),
        Some(alias) => {
            let mut schema = (**source.schema()).clone();
            let renamed = alias.col_aliases.as_deref().unwrap_or_default();
            if !renamed.is_empty() {
                if renamed.len() != columns.len() {
                    return Err(MysqlError::new(
                        1353,
                        "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts",
                    ));
                }
                for column in &mut schema.columns {
                    // Columns that the statement does not name are out of reach under their own names.
                    column.name = String::from("\u{1}");
                }
                for (name, &column) in renamed.iter().zip(columns) {
                    schema.columns[column].name = name.value.clone();
                    visible.push(Visible { name: name.value.clone(), table: 1, column });
                }
            }
            Source {
                table: SourceTable::Row(Arc::new(schema)),
                alias: name_parts(&alias.row_alias)?.last().copied().unwrap_or_default().to_string(),
                // Values of the row to be inserted may be NULL before they are checked.
                null_rows: true,
                allowed_indexes: None,
                force_index: false,
            }
        }
    };
    if alias.is_some() {
        sources.push(inserted.clone());
    }
    let mut out = Vec::new();
    for assignment in assignments {
        let column = assigned_column(assignment, source, Clause::FieldList)?;
        let value = if is_default(&assignment.value) {
            default_expression(&source.schema().columns[column], context)?
        } else {
            let mut names = Names::new(&sources, &visible, Clause::FieldList, context);
            names.inserted = Some(source);
            Some(names.bind(&assignment.value)?)
        };
        out.push(SetColumn { column, value });
    }
    Ok(out)
}
