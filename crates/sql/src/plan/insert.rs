//! INSERT and REPLACE.
//!
//! Expressions of VALUES see the columns of the row as far as it is filled (`INSERT INTO t (a, b) VALUES (1, a + 1)`); those of ON DUPLICATE KEY
//! UPDATE see the row in the way as table 0 and the row that was to be inserted as table 1, by `VALUES(column)` or through the row alias.

use super::model::{Fill, InsertPlan, InsertSource, OnDuplicate, PlanKind, SetColumn, Source, SourceTable};
use super::names::{Clause, Names, Visible, default_expression, literal, unknown_column, visible_column};
use super::{Lookup, Plan, TableSource, from, select, unsupported};
use crate::expr::{BindContext, Expr};
use crate::parse::ast::{self, Assignment, ColumnName, RowAlias, TableName};
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, TypeKind, Value};
use std::sync::Arc;

pub(super) fn plan_insert(
    insert: &ast::Insert,
    lookup: &dyn Lookup,
    context: &BindContext,
) -> Result<Plan, MysqlError> {
    if !insert.returning.is_empty() {
        return Err(unsupported("INSERT … RETURNING"));
    }
    if !insert.partitions.is_empty() {
        return Err(unsupported("PARTITION selection"));
    }
    let name = &insert.table;
    let handle = target_table(name, lookup, "INSERT")?;
    if insert.replace {
        target_table(name, lookup, "DELETE")?;
    }
    let schema = handle.schema().clone();
    let source = Source {
        table: SourceTable::Stored(handle.clone()),
        alias: schema.name.clone(),
        null_rows: false,
        allowed_indexes: None,
        force_index: false,
    };

    // Columns and rows.
    let mut columns = Vec::new();
    let mut tables = vec![(handle.clone(), true)];
    let mut reads_row = false;
    // `()` names no column, and so do all those do who write no list: values are for all of them.
    let named = insert.columns.as_deref().unwrap_or_default();
    if !matches!(insert.source, ast::InsertSource::Set(_)) {
        for column in named {
            columns.push(named_column(column, &source, Clause::FieldList)?);
        }
        if named.is_empty() {
            columns.extend(0..schema.visible_columns().len());
        }
    }
    let rows = match &insert.source {
        ast::InsertSource::Set(assignments) => {
            let target = from::single(source.clone());
            let mut row = Vec::with_capacity(assignments.len());
            for assignment in assignments {
                columns.push(named_column(&assignment.column, &source, Clause::FieldList)?);
                row.push(bind_value(&assignment.value, &target, context, &mut reads_row)?);
            }
            InsertSource::Rows(vec![row])
        }
        ast::InsertSource::Values(values) => {
            let target = from::single(source.clone());
            let mut rows = Vec::with_capacity(values.len());
            for (number, row) in values.iter().enumerate() {
                if row.is_empty() && named.is_empty() {
                    // `VALUES ()`: every column its default.
                    rows.push(vec![None; columns.len()]);
                    continue;
                }
                if row.len() != columns.len() {
                    return Err(wrong_count(number + 1));
                }
                let bound = row.iter().map(|e| bind_value(e, &target, context, &mut reads_row));
                rows.push(bound.collect::<Result<Vec<_>, _>>()?);
            }
            InsertSource::Rows(rows)
        }
        ast::InsertSource::Query(query) => {
            let bound = select::bind_query(query, lookup, context)?;
            if bound.columns.len() != columns.len() {
                return Err(wrong_count(1));
            }
            tables.extend(bound.tables);
            InsertSource::Select(Box::new(bound.plan))
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

    let mut update = vec![];
    let on_duplicate = if !insert.on_duplicate.is_empty() {
        target_table(name, lookup, "UPDATE")?;
        update = bind_on_duplicate(&insert.on_duplicate, insert.row_alias.as_ref(), &source, &columns, context)?;
        OnDuplicate::Update
    } else if insert.replace {
        OnDuplicate::Replace
    } else if insert.ignore {
        OnDuplicate::Skip
    } else {
        OnDuplicate::Error
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
    Ok(Plan { columns: vec![], tables, kind: PlanKind::Insert(Box::new(plan)) })
}

/// The stored table that a statement changes.
fn target_table(name: &TableName, lookup: &dyn Lookup, privilege: &str) -> Result<TableHandle, MysqlError> {
    match lookup.table(name.database.as_deref(), &name.name, privilege)? {
        TableSource::Stored(handle) => Ok(handle),
        TableSource::Virtual(_) => Err(MysqlError::new(
            codes::TABLEACCESS_DENIED,
            format!("{privilege} command denied to user for table '{}'", name.name),
        )),
    }
}

fn wrong_count(row: usize) -> MysqlError {
    MysqlError::new(codes::WRONG_VALUE_COUNT_ON_ROW, format!("Column count doesn't match value count at row {row}"))
}

/// The column of the table that is changed.
pub(super) fn named_column(name: &ColumnName, source: &Source, clause: Clause) -> Result<usize, MysqlError> {
    let table = name.table.as_ref().is_none_or(|table| *table == source.alias);
    let database = name.database.as_ref().is_none_or(|database| *database == source.schema().database);
    let column = if table && database { visible_column(source, &name.name) } else { None };
    column.ok_or_else(|| unknown_column(&name.path(), clause))
}

fn bind_value(
    expr: &ast::Expr,
    target: &from::From,
    context: &BindContext,
    reads_row: &mut bool,
) -> Result<Option<Expr>, MysqlError> {
    if *expr == ast::Expr::Default {
        return Ok(None);
    }
    let bound = Names::new(&target.sources, &target.visible, Clause::FieldList, context).bind(expr)?;
    if matches!(expr, ast::Expr::Literal(_) | ast::Expr::Parameter(_)) {
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
    assignments: &[Assignment],
    alias: Option<&RowAlias>,
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
            let renamed = &alias.columns;
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
                    schema.columns[column].name = name.clone();
                    visible.push(Visible { name: name.clone(), table: 1, column });
                }
            }
            Source {
                table: SourceTable::Row(Arc::new(schema)),
                alias: alias.name.clone(),
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
        let column = named_column(&assignment.column, source, Clause::FieldList)?;
        let value = if assignment.value == ast::Expr::Default {
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
