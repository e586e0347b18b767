//! INSERT, REPLACE, UPDATE and DELETE.

use super::{Print, Printer};
use crate::parse::ast::{Assignment, Delete, Insert, InsertSource, Query, QueryBody, RowAlias, SelectItem, Update};
use std::fmt;

impl Printer<'_> {
    fn insert(&mut self, insert: &Insert) -> fmt::Result {
        self.verb(if insert.replace { "replace" } else { "insert" }, insert.ignore)?;
        self.text("into ")?;
        self.table_name(&insert.table)?;
        if !insert.partitions.is_empty() {
            self.text(" partition")?;
            self.column_names(&insert.partitions)?;
        }
        if let Some(columns) = &insert.columns {
            self.text(" (")?;
            self.list(columns, |p, column| p.column_name(column))?;
            self.text(")")?;
        }
        match &insert.source {
            InsertSource::Values(rows) => {
                self.text(" values ")?;
                self.list(rows, |p, row| {
                    p.text("(")?;
                    p.exprs(row)?;
                    p.text(")")
                })?;
            }
            InsertSource::Set(assignments) => {
                self.text(" set ")?;
                self.list(assignments, Self::assignment)?;
            }
            InsertSource::Query(query) => {
                self.text(" ")?;
                if begins_with_values(query) { self.subquery(query)? } else { self.query(query)? }
            }
        }
        if let Some(RowAlias { name, columns }) = &insert.row_alias {
            self.text(" as ")?;
            self.name(name)?;
            self.column_names(columns)?;
        }
        if !insert.on_duplicate.is_empty() {
            self.text(" on duplicate key update ")?;
            self.list(&insert.on_duplicate, Self::assignment)?;
        }
        self.returning(&insert.returning)
    }

    fn verb(&mut self, verb: &str, ignore: bool) -> fmt::Result {
        self.text(verb)?;
        self.text(if ignore { " ignore " } else { " " })
    }

    fn assignment(&mut self, assignment: &Assignment) -> fmt::Result {
        self.column_name(&assignment.column)?;
        self.text(" = ")?;
        self.expr(&assignment.value)
    }

    fn returning(&mut self, items: &[SelectItem]) -> fmt::Result {
        if items.is_empty() {
            return Ok(());
        }
        self.text(" returning ")?;
        self.list(items, Self::select_item)
    }

    fn update(&mut self, update: &Update) -> fmt::Result {
        self.with(update.with.as_ref())?;
        self.update_behind_with(update)
    }

    pub(super) fn update_behind_with(&mut self, update: &Update) -> fmt::Result {
        self.verb("update", update.ignore)?;
        self.tables(&update.tables)?;
        self.text(" set ")?;
        self.list(&update.assignments, Self::assignment)?;
        self.clause(" where ", update.filter.as_ref())?;
        self.order_by(&update.order_by)?;
        self.clause(" limit ", update.limit.as_ref())
    }

    fn delete(&mut self, delete: &Delete) -> fmt::Result {
        self.with(delete.with.as_ref())?;
        self.delete_behind_with(delete)
    }

    pub(super) fn delete_behind_with(&mut self, delete: &Delete) -> fmt::Result {
        self.verb("delete", delete.ignore)?;
        if !delete.targets.is_empty() {
            self.list(&delete.targets, |p, table| p.table_name(table))?;
            self.text(" ")?;
        }
        self.text("from ")?;
        self.tables(&delete.from)?;
        self.clause(" where ", delete.filter.as_ref())?;
        self.order_by(&delete.order_by)?;
        self.clause(" limit ", delete.limit.as_ref())?;
        self.returning(&delete.returning)
    }
}

/// `VALUES ROW(…)` as a query behind INSERT would be read as its rows.
fn begins_with_values(query: &Query) -> bool {
    let mut body = &query.body;
    while let QueryBody::SetOperation { left, .. } = body {
        body = left;
    }
    query.with.is_none() && matches!(body, QueryBody::Values(_))
}

impl Print for Insert {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.insert(self)
    }
}

impl Print for Update {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.update(self)
    }
}

impl Print for Delete {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.delete(self)
    }
}
