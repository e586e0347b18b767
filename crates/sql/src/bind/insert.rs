//! INSERT and REPLACE.
//!
//! Expressions of VALUES see the columns of the row as far as it is filled (`INSERT INTO t (a, b) VALUES (1, a + 1)`); those of ON DUPLICATE KEY
//! UPDATE see the row in the way, and the row that was to be inserted by `VALUES(column)` or through the row alias.

use super::Binder;
use super::change::reads;
use super::frame::{Frame, Table, Visible};
use super::names::{Clause, default_expression, literal, unknown_column};
use crate::expr::{ColumnId, Expr};
use crate::logical::{Column, Fill, Insert, InsertSource, OnDuplicate, SetColumn, Write};
use crate::lookup::{TableSource, unsupported};
use crate::parse::ast::{self, ColumnName, RowAlias, TableName};
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, TypeKind, Value};

impl Binder<'_> {
    pub(super) fn insert(&mut self, insert: &ast::Insert) -> Result<Write, MysqlError> {
        if !insert.returning.is_empty() {
            return Err(unsupported("INSERT … RETURNING"));
        }
        if !insert.partitions.is_empty() {
            return Err(unsupported("PARTITION selection"));
        }
        let table = self.target_table(&insert.table, "INSERT")?;
        if insert.replace {
            self.target_table(&insert.table, "DELETE")?;
        }
        let schema = table.schema().clone();
        let existing = self.row_columns(&table, false);
        let inserted = self.row_columns(&table, true);

        let mut columns = Vec::new();
        // `()` names no column, and so does a statement without a list: values are for all of them.
        let named = insert.columns.as_deref().unwrap_or_default();
        if !matches!(insert.source, ast::InsertSource::Set(_)) {
            for column in named {
                columns.push(named_column(column, &table)?);
            }
            if named.is_empty() {
                columns.extend(0..schema.visible_columns().len());
            }
        }
        let mut reads_row = false;
        let source = match &insert.source {
            ast::InsertSource::Query(query) => {
                let query = self.query(query)?;
                if query.columns.len() != columns.len() {
                    return Err(wrong_count(1));
                }
                InsertSource::Query(query)
            }
            rows => {
                self.target = Some((schema.id, schema.name.clone()));
                self.frames.push(Frame::new());
                self.add_row(&table, &schema.name, &existing);
                let bound = self.rows(rows, &table, named.is_empty(), &mut columns);
                self.frames.pop();
                let bound = bound?;
                for value in bound.iter().flatten().flatten() {
                    reads_row |= reads(value, &existing);
                }
                InsertSource::Rows(bound)
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
            self.target_table(&insert.table, "UPDATE")?;
            self.frames.push(Frame::new());
            self.add_row(&table, &schema.name, &existing);
            let bound = self.on_duplicate(insert, &table, &columns, &inserted);
            self.frames.pop();
            update = bound?;
            OnDuplicate::Update
        } else if insert.replace {
            OnDuplicate::Replace
        } else if insert.ignore {
            OnDuplicate::Skip
        } else {
            OnDuplicate::Error
        };
        let fill = self.fills(&table)?;
        let ignore = insert.ignore;
        let bound =
            Insert { table, existing, inserted, columns, source, fill, on_duplicate, ignore, update, reads_row };
        Ok(Write::Insert(Box::new(bound)))
    }

    /// The stored table that a statement changes.
    fn target_table(&self, name: &TableName, privilege: &str) -> Result<TableHandle, MysqlError> {
        match self.lookup.table(name.database.as_deref(), &name.name, privilege)? {
            TableSource::Stored(handle) => Ok(handle),
            TableSource::Virtual(_) => Err(MysqlError::new(
                codes::TABLEACCESS_DENIED,
                format!("{privilege} command denied to user for table '{}'", name.name),
            )),
        }
    }

    /// Columns for a row of the table. Values of a row to be inserted may be NULL before they are checked.
    fn row_columns(&mut self, table: &TableHandle, nullable: bool) -> Vec<ColumnId> {
        let schema = table.schema();
        let add = |at: usize| {
            let definition = &schema.columns[at];
            let result = super::computed_column(definition.ty, definition.nullable, definition.name.clone());
            let nullable = nullable || definition.nullable;
            let coercibility = crate::expr::column_coercibility(&definition.ty);
            self.columns.add(Column { ty: definition.ty, nullable, coercibility, result })
        };
        (0..schema.columns.len()).map(add).collect()
    }

    /// A row of the table as a table of the innermost frame.
    fn add_row(&mut self, table: &TableHandle, alias: &str, ids: &[ColumnId]) {
        let schema = table.schema().clone();
        let columns: Vec<(String, ColumnId)> =
            schema.visible_columns().iter().zip(ids).map(|(c, id)| (c.name.clone(), *id)).collect();
        let visible = columns.iter().map(|(name, id)| Visible { name: name.clone(), id: *id });
        self.frame().visible.extend(visible);
        self.frame().tables.push(Table {
            database: Some(schema.database.clone()),
            alias: alias.to_string(),
            columns,
            null_rows: false,
            schema: Some(schema),
        });
    }

    fn rows(
        &mut self,
        source: &ast::InsertSource,
        table: &TableHandle,
        all_columns: bool,
        columns: &mut Vec<usize>,
    ) -> Result<Vec<Vec<Option<Expr>>>, MysqlError> {
        match source {
            ast::InsertSource::Set(assignments) => {
                let mut row = Vec::with_capacity(assignments.len());
                for assignment in assignments {
                    columns.push(named_column(&assignment.column, table)?);
                    row.push(self.row_value(&assignment.value)?);
                }
                Ok(vec![row])
            }
            ast::InsertSource::Values(values) => {
                let mut rows = Vec::with_capacity(values.len());
                for (number, row) in values.iter().enumerate() {
                    if row.is_empty() && all_columns {
                        // `VALUES ()`: every column its default.
                        rows.push(vec![None; columns.len()]);
                        continue;
                    }
                    if row.len() != columns.len() {
                        return Err(wrong_count(number + 1));
                    }
                    rows.push(row.iter().map(|value| self.row_value(value)).collect::<Result<Vec<_>, _>>()?);
                }
                Ok(rows)
            }
            ast::InsertSource::Query(_) => unreachable!("a query has no list of rows"),
        }
    }

    fn row_value(&mut self, value: &ast::Expr) -> Result<Option<Expr>, MysqlError> {
        if *value == ast::Expr::Default {
            return Ok(None);
        }
        self.bind_in(value, Clause::FieldList).map(Some)
    }

    /// What columns get that the statement does not name.
    fn fills(&self, table: &TableHandle) -> Result<Vec<Fill>, MysqlError> {
        let schema = table.schema();
        let mut out = Vec::with_capacity(schema.columns.len());
        for (position, column) in schema.columns.iter().enumerate() {
            out.push(if schema.auto_increment == Some(position) {
                Fill::AutoIncrement
            } else if position >= schema.visible_columns().len() {
                // The node fills the hidden key.
                Fill::Value(literal(Value::Null, DataType::new(TypeKind::Null)))
            } else {
                match default_expression(column, self.context)? {
                    Some(expr) => Fill::Value(expr),
                    None => Fill::Missing,
                }
            });
        }
        Ok(out)
    }

    fn on_duplicate(
        &mut self,
        insert: &ast::Insert,
        table: &TableHandle,
        columns: &[usize],
        inserted: &[ColumnId],
    ) -> Result<Vec<SetColumn>, MysqlError> {
        let schema = table.schema().clone();
        if let Some(alias) = &insert.row_alias {
            self.add_row_alias(alias, table, columns, inserted)?;
        }
        let visible = schema.visible_columns();
        self.frame().inserted = Some(visible.iter().zip(inserted).map(|(c, id)| (c.name.clone(), *id)).collect());
        let mut out = Vec::new();
        for assignment in &insert.on_duplicate {
            let column = named_column(&assignment.column, table)?;
            let value = match &assignment.value {
                ast::Expr::Default => default_expression(&schema.columns[column], self.context)?,
                value => Some(self.bind_in(value, Clause::FieldList)?),
            };
            out.push(SetColumn { column, value });
        }
        Ok(out)
    }

    /// `AS row (columns)`. Columns that the list does not rename are out of reach through the alias. Error 1353.
    fn add_row_alias(
        &mut self,
        alias: &RowAlias,
        table: &TableHandle,
        columns: &[usize],
        inserted: &[ColumnId],
    ) -> Result<(), MysqlError> {
        let schema = table.schema().clone();
        let named: Vec<(String, ColumnId)> = if alias.columns.is_empty() {
            schema.visible_columns().iter().zip(inserted).map(|(c, id)| (c.name.clone(), *id)).collect()
        } else {
            if alias.columns.len() != columns.len() {
                return Err(MysqlError::new(
                    1353,
                    "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts",
                ));
            }
            let renamed: Vec<(String, ColumnId)> =
                alias.columns.iter().zip(columns).map(|(name, &column)| (name.clone(), inserted[column])).collect();
            let visible = renamed.iter().map(|(name, id)| Visible { name: name.clone(), id: *id });
            self.frame().visible.extend(visible);
            renamed
        };
        self.frame().tables.push(Table {
            database: Some(schema.database.clone()),
            alias: alias.name.clone(),
            columns: named,
            null_rows: true,
            schema: None,
        });
        Ok(())
    }
}

fn wrong_count(row: usize) -> MysqlError {
    MysqlError::new(codes::WRONG_VALUE_COUNT_ON_ROW, format!("Column count doesn't match value count at row {row}"))
}

/// The position of a column of the table that is changed.
fn named_column(name: &ColumnName, table: &TableHandle) -> Result<usize, MysqlError> {
    let schema = table.schema();
    let own = name.table.as_ref().is_none_or(|table| *table == schema.name);
    let database = name.database.as_ref().is_none_or(|database| *database == schema.database);
    let position = |name: &str| schema.visible_columns().iter().position(|c| c.name.eq_ignore_ascii_case(name));
    let column = if own && database { position(&name.name) } else { None };
    column.ok_or_else(|| unknown_column(&name.path(), Clause::FieldList))
}
