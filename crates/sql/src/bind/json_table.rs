//! JSON_TABLE: the document, the paths, and the columns with their types.
//!
//! The document reads the tables before it, as a LATERAL table does, and becomes one when it does. It has no subqueries
//! (1210). Paths (3143) and defaults (1067) are checked here, so that running the table only evaluates.

use super::Binder;
use super::frame::Frame;
use super::names::Clause;
use crate::expr::json::path::Path;
use crate::expr::{ColumnId, Expr, ExprKind};
use crate::logical::{JsonCell, JsonRows, JsonTable, Node, OnMissing, Query, TableFunction};
use crate::parse::ast;
use rauk_types::error::codes;
use rauk_types::json::Json;
use rauk_types::{ColumnDefault, DataType, MysqlError, TypeKind, Value};
use std::sync::Arc;

/// NESTED PATHs of one table.
const MAX_NESTED: usize = 16;

/// What is known of the columns while they are bound.
struct Columns<'t> {
    alias: &'t str,
    list: Vec<rauk_types::Column>,
    nested: usize,
}

impl Binder<'_> {
    /// JSON_TABLE as a query. Errors: 3143, 1067, 3670, 1166, 1210, 3146, 3144 and those of the document.
    pub(super) fn table_function(&mut self, table: &ast::JsonTable) -> Result<Query, MysqlError> {
        self.frames.push(Frame::new());
        let bound = self.bind_in(&table.document, Clause::TableFunction);
        self.frames.pop();
        let document = bound?;
        check_document(&document)?;
        let mut columns = Columns { alias: &table.alias, list: vec![], nested: 0 };
        let rows = self.json_rows(&table.path, &table.columns, &mut columns)?;
        let ids: Vec<ColumnId> =
            columns.list.iter().map(|column| self.add_column(column.ty, true, column.name.clone())).collect();
        let table = Arc::new(JsonTable { rows, columns: columns.list });
        let node = Node::TableFunction(Box::new(TableFunction { document, table, columns: ids.clone() }));
        Ok(Query { node, columns: ids })
    }

    fn json_rows(
        &self,
        path: &str,
        list: &[ast::JsonTableColumn],
        columns: &mut Columns<'_>,
    ) -> Result<JsonRows, MysqlError> {
        let path = Path::parse(path)?;
        let (mut cells, mut nested) = (Vec::new(), Vec::new());
        for column in list {
            match column {
                ast::JsonTableColumn::Ordinality(name) => {
                    let ty = DataType { unsigned: true, ..DataType::BIGINT };
                    cells.push(JsonCell::Ordinality { at: columns.add(name, ty)? });
                }
                ast::JsonTableColumn::Value { name, column_type, options, path, on_empty, on_error } => {
                    let ty = self.lookup.column_type(name, column_type, options, self.context)?;
                    let at = columns.add(name, ty)?;
                    let path = Path::parse(path)?;
                    let on_empty = on_missing(on_empty.as_ref(), name, &ty)?;
                    let on_error = on_missing(on_error.as_ref(), name, &ty)?;
                    cells.push(JsonCell::Value { at, path, on_empty, on_error });
                }
                ast::JsonTableColumn::Exists { name, column_type, options, path } => {
                    let ty = self.lookup.column_type(name, column_type, options, self.context)?;
                    cells.push(JsonCell::Exists { at: columns.add(name, ty)?, path: Path::parse(path)? });
                }
                ast::JsonTableColumn::Nested { path, columns: below } => {
                    columns.nested += 1;
                    if columns.nested >= MAX_NESTED {
                        let alias = columns.alias;
                        let message =
                            format!("More than supported {MAX_NESTED} NESTED PATHs were found in JSON_TABLE '{alias}'");
                        return Err(MysqlError::new(3670, message));
                    }
                    nested.push(self.json_rows(path, below, columns)?);
                }
            }
        }
        Ok(JsonRows { path, cells, nested })
    }
}

impl Columns<'_> {
    /// Error 1166.
    fn add(&mut self, name: &str, ty: DataType) -> Result<usize, MysqlError> {
        if name.is_empty() || name.ends_with(' ') {
            return Err(MysqlError::new(1166, format!("Incorrect column name '{name}'")));
        }
        let at = self.list.len();
        self.list.push(rauk_types::Column {
            id: rauk_types::ColumnId(at as u16),
            name: name.to_string(),
            ty,
            nullable: true,
            default: ColumnDefault::None,
            on_update_now: false,
            comment: String::new(),
            initial: Value::Null,
            generated: None,
            invisible: false,
        });
        Ok(at)
    }
}

/// Errors: 1210 for subqueries, 3144 and 3146 for types that hold no JSON.
fn check_document(document: &Expr) -> Result<(), MysqlError> {
    if document.has_subquery() {
        return Err(MysqlError::new(1210, "Incorrect arguments to JSON_TABLE"));
    }
    let ty = &document.ty;
    if matches!(document.kind, ExprKind::Parameter(_)) {
        return Ok(());
    }
    if ty.is_bytes() {
        let message = "Cannot create a JSON value from a string with CHARACTER SET 'binary'.";
        return Err(MysqlError::new(3144, message));
    }
    if !ty.is_text() && ty.kind != TypeKind::Json && ty.kind != TypeKind::Null {
        let message = "Invalid data type for JSON data in argument 1 to function json_table; a JSON string or JSON type is required.";
        return Err(MysqlError::new(3146, message));
    }
    Ok(())
}

/// Error 1067: a default that is no JSON, or no scalar where the column is one.
fn on_missing(action: Option<&ast::OnMissing>, name: &str, ty: &DataType) -> Result<OnMissing, MysqlError> {
    Ok(match action {
        None | Some(ast::OnMissing::Null) => OnMissing::Null,
        Some(ast::OnMissing::Error) => OnMissing::Error,
        Some(ast::OnMissing::Default(text)) => {
            let scalar = |tree: &Json<'_>| !matches!(tree, Json::Array(_) | Json::Object(_));
            let parsed = rauk_types::json::parse(text, &mut |_| Ok(())).ok().and_then(Result::ok);
            let fits = parsed.filter(|tree| ty.kind == TypeKind::Json || scalar(tree));
            let invalid = || MysqlError::new(codes::INVALID_DEFAULT, format!("Invalid default value for '{name}'"));
            OnMissing::Default(Value::Json(fits.ok_or_else(invalid)?.encode(&mut |_| Ok(()))?))
        }
    })
}
