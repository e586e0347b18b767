//! INSERT and REPLACE.
//!
//! Expressions of VALUES see the columns of the row as far as it is filled (`INSERT INTO t (a, b) VALUES (1, a + 1)`); those of ON DUPLICATE KEY
//! UPDATE see the row in the way, and the row that was to be inserted by `VALUES(column)` or through the row alias.

use super::Binder;
use super::change::{Forbidden, reads};
use super::frame::{Aggregates, Frame, Table, Visible};
use super::from::{of_partitions, refuse_partitions, stored_column};
use super::names::{Clause, default_expression, literal, unknown_column};
use super::own_row;
use super::select::{Clauses, Items};
use super::through::Below;
use crate::expr::{ColumnId, Expr, ExprKind, type_zero};
use crate::logical::{Column, Fill, Insert, InsertSource, Node, OnDuplicate, Query, RowCheck, SetColumn, Write};
use crate::lookup::{GuardedTable, TableSource};
use crate::nearest;
use crate::parse::ast::{self, ColumnName, RowAlias, TableName};
use crate::parse::print::Reader;
use rauk_node::TableHandle;
use rauk_types::error::codes;
use rauk_types::{DataType, MysqlError, TableSchema, TypeKind, Value};
use rustc_hash::FxHashMap;

impl Binder<'_> {
    pub(super) fn insert(&mut self, insert: &ast::Insert) -> Result<Write, MysqlError> {
        let named = insert.columns.as_deref().unwrap_or_default();
        let listed: Option<Vec<String>> = match &insert.source {
            ast::InsertSource::Set(set) => Some(set.iter().map(|set| set.column.name.clone()).collect()),
            _ => insert.columns.as_ref().map(|list| list.iter().map(|column| column.name.clone()).collect()),
        };
        let into = self.target_table(&insert.table, listed.as_deref())?;
        if into.below.is_some() {
            refuse_partitions(&insert.partitions)?;
        }
        if insert.replace {
            self.may_change(&insert.table, &into, "DELETE")?;
        }
        let table = of_partitions(&insert.partitions, into.table.clone())?;
        let schema = table.schema().clone();
        let existing = self.row_columns(&table, false);
        let inserted = self.row_columns(&table, true);

        let mut columns = Vec::new();
        // `()` names no column, and so does a statement without a list: values are for all of them.
        if !matches!(insert.source, ast::InsertSource::Set(_)) {
            for column in named {
                columns.push(self.position_in(&into, column)?);
            }
            if named.is_empty() {
                let all = into.columns.iter().map(|(_, column)| *column);
                columns.extend(all.filter(|&at| into.below.is_some() || !schema.columns[at].invisible));
            }
        }
        let mut reads_row = false;
        let mut of_select = None;
        let mut source = match &insert.source {
            ast::InsertSource::Query(query) => {
                self.pass_hints(&insert.hints);
                let (query, frame) = self.source_query(query, !insert.on_duplicate.is_empty())?;
                of_select = frame;
                if query.columns.len() != columns.len() {
                    return Err(wrong_count(1));
                }
                InsertSource::Query(query)
            }
            rows => {
                self.targets.push(Forbidden::by_alias(schema.id, &schema.name));
                self.frames.push(Frame::new());
                self.take_hints(&insert.hints);
                self.hint_target(&insert.table.name);
                self.add_row(&into, &existing);
                self.hint_order(&mut Node::OneRow);
                let bound = self.rows(rows, &into, named.is_empty(), &mut columns);
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
        self.may_write(&schema, &columns, "INSERT")?;
        let ignored = take_generated(&schema, &columns, &mut source, self.context.sql_mode.strict)?;
        let mut update = vec![];
        let mut inputs = vec![];
        let on_duplicate = if !insert.on_duplicate.is_empty() {
            match into.below {
                Some(_) => self.may_change(&insert.table, &into, "UPDATE")?,
                None => self.updates_by_columns(&schema, &existing)?,
            }
            self.frames.push(of_select.unwrap_or_else(Frame::new));
            self.add_row(&into, &existing);
            let bound = self.on_duplicate(insert, &into, &columns, &existing, &inserted);
            update = bound.inspect_err(|_| drop(self.frames.pop()))?;
            if let InsertSource::Query(query) = &mut source {
                let own = [existing.as_slice(), inserted.as_slice()].concat();
                inputs = self.read_of_select(&mut update, &own, query)?;
            }
            self.frames.pop();
            OnDuplicate::Update
        } else if insert.replace {
            OnDuplicate::Replace
        } else if insert.ignore {
            OnDuplicate::Skip
        } else {
            OnDuplicate::Error
        };
        let mut returning = vec![];
        if !insert.returning.is_empty() {
            self.lookup.table(insert.table.database.as_deref(), &insert.table.name, "SELECT")?;
            self.targets.push(Forbidden::by_table(schema.id, &schema.name));
            self.frames.push(Frame::new());
            self.add_row(&into, &existing);
            let bound = self.returning(&insert.returning);
            self.frames.pop();
            returning = bound?;
        }
        let fill = self.fills(&table)?;
        if into.below.is_some() && !insert.ignore {
            self.check_defaults(&insert.table, &fill, &columns)?;
        }
        let check = match into.check {
            Some(check) => Some(check.reading(&into.below, &existing, &self.absent_row(&into.others)?)),
            None => None,
        };
        let rules = own_row::row_rules(&schema, self.context)?;
        Ok(Write::Insert(Box::new(Insert {
            table,
            existing,
            inserted,
            columns,
            source,
            ignored,
            fill,
            on_duplicate,
            ignore: insert.ignore,
            update,
            reads_row,
            inputs,
            returning,
            check,
            rules,
        })))
    }

    /// The defaults of the columns of tables that get no row.
    pub(super) fn absent_row(&self, tables: &[Below]) -> Result<FxHashMap<ColumnId, Expr>, MysqlError> {
        let mut row = FxHashMap::default();
        for below in tables {
            for (column, id) in below.table.schema().columns.iter().zip(&below.columns) {
                let value = match default_expression(column, self.context)? {
                    Some(default) => default,
                    None if column.nullable => literal(Value::Null, column.ty),
                    None => literal(type_zero(&column.ty), column.ty),
                };
                row.insert(*id, value);
            }
        }
        Ok(row)
    }

    /// The query of INSERT … SELECT. `keeps`: with the names of its block, where ON DUPLICATE KEY UPDATE may read its columns: it is one block that
    /// gives a row for each joined row.
    fn source_query(&mut self, query: &ast::Query, keeps: bool) -> Result<(Query, Option<Frame>), MysqlError> {
        let mut at = query;
        while let ast::QueryBody::Query(inner) = &at.body
            && at.is_plain()
        {
            at = inner;
        }
        let ast::QueryBody::Select(select) = &at.body else { return Ok((self.query(query)?, None)) };
        let each = select.group_by.is_empty() && select.windows.is_empty();
        if !keeps || !each || at.into.is_some() {
            return Ok((self.query(query)?, None));
        }
        let known = self.common.len();
        self.with(Reader::Query(at))?;
        self.frames.push(Frame::new());
        let clauses = Clauses { order_by: &at.order_by, limit: at.limit.as_ref(), locks: &at.locks };
        let bound = self.block(select, clauses);
        let frame = self.frames.pop().expect("it was pushed above");
        self.common.truncate(known);
        let query = bound?;
        // Of a group there is no one row.
        let one_row = project_of(&query.node).is_some_and(|(input, _)| !is_grouped(input));
        let names = Frame { tables: frame.tables, visible: frame.visible, ..Frame::new() };
        Ok((query, one_row.then_some(names)))
    }

    /// Makes the query give the columns that assignments read of its tables; gives their ids. Behind DISTINCT they are those that are selected (1054).
    fn read_of_select(
        &mut self,
        update: &mut [SetColumn],
        own: &[ColumnId],
        query: &mut Query,
    ) -> Result<Vec<ColumnId>, MysqlError> {
        let mut read: Vec<ColumnId> = Vec::new();
        for value in update.iter().filter_map(|set| set.value.as_ref()) {
            value.for_each_reference(&mut |id, _| {
                if !own.contains(&id) && !read.contains(&id) {
                    read.push(id);
                }
            });
        }
        if read.is_empty() {
            return Ok(read);
        }
        let distinct = is_distinct(&query.node);
        let list = project_of_mut(&mut query.node).expect("only names of a block that projects are in reach");
        let mut inputs = Vec::with_capacity(read.len());
        for &id in &read {
            let selected = list.iter().find(|(_, expr)| matches!(expr.kind, ExprKind::Reference(of) if of == id));
            let item = match selected {
                Some((item, _)) => *item,
                None if distinct => {
                    return Err(unknown_column(&[&self.columns.get(id).result.name], Clause::FieldList));
                }
                None => {
                    let null_rows = self.frame().null_rows(id);
                    let expr = self.reference(id, null_rows);
                    let name = self.columns.get(id).result.name.clone();
                    let item = self.add_item(&expr, name);
                    list.push((item, expr));
                    item
                }
            };
            inputs.push(item);
        }
        query.columns.extend(&inputs);
        for value in update.iter_mut().filter_map(|set| set.value.as_mut()) {
            let old = std::mem::replace(value, Expr::null());
            *value = old.map(&mut |expr| match expr.kind {
                ExprKind::Reference(id) => match read.iter().position(|known| *known == id) {
                    Some(at) => Expr { kind: ExprKind::Reference(inputs[at]), ..expr },
                    None => expr,
                },
                _ => expr,
            });
        }
        Ok(inputs)
    }

    /// RETURNING, in the innermost block. Its columns become those of the statement.
    pub(super) fn returning(&mut self, list: &[ast::SelectItem]) -> Result<Vec<Expr>, MysqlError> {
        let mut items = Items::default();
        self.frame().allowed = Aggregates::Refused;
        self.select_list(list, &mut items)?;
        self.returned = items.list.iter().map(|(id, _)| self.columns.get(*id).result.clone()).collect();
        Ok(items.list.into_iter().map(|(_, expr)| expr).collect())
    }

    /// Where the rows go: a stored table, or the table below a view. `named`: the columns that the statement lists.
    pub(super) fn target_table(&mut self, name: &TableName, named: Option<&[String]>) -> Result<Receiver, MysqlError> {
        let (source, by_columns) = self.lookup.table_by_columns(name.database.as_deref(), &name.name, "INSERT")?;
        self.lookup.check_locked(name, None, "INSERT")?;
        match source {
            TableSource::Stored(table) => {
                let schema = table.schema();
                if by_columns {
                    self.by_columns.push(schema.id);
                }
                let columns = schema.visible_columns().iter().enumerate().map(|(at, c)| (c.name.clone(), at)).collect();
                let (database, alias) = (schema.database.clone(), schema.name.clone());
                Ok(Receiver { database, alias, columns, below: None, others: vec![], check: None, table })
            }
            TableSource::View(view) => {
                if by_columns {
                    self.lookup.table(name.database.as_deref(), &name.name, "INSERT")?;
                }
                let through = self.insert_target(&view, named)?;
                self.may_change_below(&through.below, "INSERT")?;
                let (database, alias) = (view.database.clone(), view.name.clone());
                let table = through.below.table.clone();
                Ok(Receiver {
                    database,
                    alias,
                    columns: through.columns,
                    below: Some(through.below),
                    others: through.others,
                    check: through.check,
                    table,
                })
            }
            TableSource::Virtual(_) => Err(MysqlError::new(
                codes::TABLEACCESS_DENIED,
                format!("INSERT command denied to user for table '{}'", name.name),
            )),
        }
    }

    /// Whether the statement may change rows of its table otherwise too. Errors: 1142, 1356.
    pub(super) fn may_change(&self, name: &TableName, into: &Receiver, privilege: &str) -> Result<(), MysqlError> {
        match &into.below {
            Some(below) => self.may_change_below(below, privilege),
            None => self.lookup.table(name.database.as_deref(), &name.name, privilege).map(drop),
        }
    }

    /// ON DUPLICATE KEY UPDATE changes the table, or some columns of it, and reads its row.
    fn updates_by_columns(&mut self, schema: &TableSchema, existing: &[ColumnId]) -> Result<(), MysqlError> {
        let (_, by_columns) = self.lookup.table_by_columns(Some(&schema.database), &schema.name, "UPDATE")?;
        if by_columns {
            self.by_columns.push(schema.id);
            self.guard_row(schema, existing);
        }
        Ok(())
    }

    /// Error 1423: a column of the table below a view that needs a value and gets none.
    pub(super) fn check_defaults(&self, name: &TableName, fill: &[Fill], columns: &[usize]) -> Result<(), MysqlError> {
        let missing = fill.iter().enumerate().any(|(at, fill)| matches!(fill, Fill::Missing) && !columns.contains(&at));
        if !missing || !self.context.sql_mode.strict {
            return Ok(());
        }
        let database = name.database.as_ref().map_or(String::new(), |database| format!("{database}."));
        let message = format!("Field of view '{database}{}' underlying table doesn't have a default value", name.name);
        Err(MysqlError::new(codes::NO_DEFAULT_FOR_VIEW_FIELD, message))
    }

    /// Columns for a row of the table. Values of a row to be inserted may be NULL before they are checked.
    pub(super) fn row_columns(&mut self, table: &TableHandle, nullable: bool) -> Vec<ColumnId> {
        let schema = table.schema();
        let add = |at: usize| {
            let definition = &schema.columns[at];
            let result = stored_column(schema, &schema.name, at);
            let nullable = nullable || definition.nullable;
            let coercibility = crate::expr::column_coercibility(&definition.ty);
            self.columns.add(Column { ty: definition.ty, nullable, coercibility, result })
        };
        let ids: Vec<ColumnId> = (0..schema.columns.len()).map(add).collect();
        let hidden = schema.columns.iter().zip(&ids).filter(|(column, _)| column.invisible);
        self.invisible.extend(hidden.map(|(_, id)| *id));
        ids
    }

    /// A row of the table as a table of the innermost frame.
    pub(super) fn add_row(&mut self, into: &Receiver, ids: &[ColumnId]) {
        let columns = into.named(ids);
        let visible = columns.iter().map(|(name, id)| Visible { name: name.clone(), id: *id });
        self.frame().visible.extend(visible);
        self.frame().tables.push(Table {
            database: Some(into.database.clone()),
            alias: into.alias.clone(),
            is_aliased: true,
            columns,
            null_rows: false,
            schema: into.below.is_none().then(|| into.table.schema().clone()),
        });
    }

    fn rows(
        &mut self,
        source: &ast::InsertSource,
        table: &Receiver,
        all_columns: bool,
        columns: &mut Vec<usize>,
    ) -> Result<Vec<Vec<Option<Expr>>>, MysqlError> {
        match source {
            ast::InsertSource::Set(assignments) => {
                let mut row = Vec::with_capacity(assignments.len());
                for assignment in assignments {
                    columns.push(self.position_in(table, &assignment.column)?);
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
    pub(super) fn fills(&self, table: &TableHandle) -> Result<Vec<Fill>, MysqlError> {
        let schema = table.schema();
        let mut out = Vec::with_capacity(schema.columns.len());
        for (position, column) in schema.columns.iter().enumerate() {
            out.push(if schema.auto_increment == Some(position) {
                Fill::AutoIncrement
            } else if column.generated.is_some() || position >= schema.visible_columns().len() {
                // The node fills the hidden key, and the rules of the row the generated columns.
                Fill::Value(literal(Value::Null, DataType::new(TypeKind::Null)))
            } else {
                match default_expression(column, self.context)? {
                    Some(expr) => Fill::Value(expr),
                    None => match own_row::computed_default(schema, position, self.context)? {
                        Some(expr) => Fill::Computed(expr),
                        None => Fill::Missing,
                    },
                }
            });
        }
        Ok(out)
    }

    fn on_duplicate(
        &mut self,
        insert: &ast::Insert,
        into: &Receiver,
        columns: &[usize],
        existing: &[ColumnId],
        inserted: &[ColumnId],
    ) -> Result<Vec<SetColumn>, MysqlError> {
        let schema = into.table.schema().clone();
        if let Some(alias) = &insert.row_alias {
            self.add_row_alias(alias, into, columns, inserted)?;
        }
        self.frame().inserted = Some(into.named(inserted));
        let mut out = Vec::new();
        for assignment in &insert.on_duplicate {
            let column = self.position_in(into, &assignment.column)?;
            self.may_write(&schema, &[column], "UPDATE")?;
            let assigned = self.assigned_value(column, &assignment.value, &schema, existing)?;
            if into.below.is_none() && assignment.value != ast::Expr::Default {
                self.may_copy(&schema, existing, assigned.value.as_ref())?;
            }
            out.push(assigned);
        }
        Ok(out)
    }

    /// `AS row (columns)`. Columns that the list does not rename are out of reach through the alias. Error 1353.
    fn add_row_alias(
        &mut self,
        alias: &RowAlias,
        into: &Receiver,
        columns: &[usize],
        inserted: &[ColumnId],
    ) -> Result<(), MysqlError> {
        let named: Vec<(String, ColumnId)> = if alias.columns.is_empty() {
            into.named(inserted)
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
            database: Some(into.database.clone()),
            alias: alias.name.clone(),
            is_aliased: true,
            columns: named,
            null_rows: true,
            schema: None,
        });
        Ok(())
    }
}

/// The projection of a block, and what is below it.
fn project_of(mut node: &Node) -> Option<(&Node, &[(ColumnId, Expr)])> {
    loop {
        node = match node {
            Node::Limit(limit) => &limit.input,
            Node::Sort { input, .. } | Node::Distinct { input, .. } => input,
            Node::Project { input, items } => return Some((input, items)),
            _ => return None,
        }
    }
}

fn project_of_mut(mut node: &mut Node) -> Option<&mut Vec<(ColumnId, Expr)>> {
    loop {
        node = match node {
            Node::Limit(limit) => &mut limit.input,
            Node::Sort { input, .. } | Node::Distinct { input, .. } => input,
            Node::Project { items, .. } => return Some(items),
            _ => return None,
        }
    }
}

fn is_distinct(mut node: &Node) -> bool {
    loop {
        node = match node {
            Node::Limit(limit) => &limit.input,
            Node::Sort { input, .. } => input,
            other => return matches!(other, Node::Distinct { .. }),
        }
    }
}

fn is_grouped(mut node: &Node) -> bool {
    while let Node::Filter { input, .. } = node {
        node = input;
    }
    matches!(node, Node::Aggregate(_))
}

/// Error 3105: a generated column gets something else than DEFAULT. Outside of strict mode VALUES may give it a value, which is not taken and
/// is a warning: so MariaDB takes its own dumps. Gives the columns of such values, row by row.
fn take_generated(
    schema: &TableSchema,
    columns: &[usize],
    source: &mut InsertSource,
    strict: bool,
) -> Result<Vec<usize>, MysqlError> {
    let places = columns.iter().enumerate().filter(|(_, column)| schema.columns[**column].generated.is_some());
    let places: Vec<(usize, usize)> = places.map(|(at, column)| (at, *column)).collect();
    let Some(&(_, first)) = places.first() else { return Ok(Vec::new()) };
    let InsertSource::Rows(rows) = source else { return Err(own_row::not_default(schema, first)) };
    let mut ignored = Vec::new();
    for row in rows {
        ignored.extend(places.iter().filter(|(at, _)| row[*at].take().is_some()).map(|(_, column)| *column));
    }
    match ignored.first() {
        Some(&column) if strict => Err(own_row::not_default(schema, column)),
        _ => Ok(ignored),
    }
}

fn wrong_count(row: usize) -> MysqlError {
    MysqlError::new(codes::WRONG_VALUE_COUNT_ON_ROW, format!("Column count doesn't match value count at row {row}"))
}

/// Where an INSERT puts its rows.
pub(super) struct Receiver {
    pub table: TableHandle,
    /// Of the table or the view that the statement names.
    database: String,
    alias: String,
    /// Names that the statement may use, and the positions that they mean in the schema.
    pub columns: Vec<(String, usize)>,
    /// What is between a view and the table.
    pub below: Option<Below>,
    /// The view's other tables.
    pub others: Vec<Below>,
    pub check: Option<RowCheck>,
}

impl Binder<'_> {
    /// The position of a column of the table that is changed. Where there is none, the nearest that may be written is told.
    pub(super) fn position_in(&self, into: &Receiver, name: &ColumnName) -> Result<usize, MysqlError> {
        into.position(name).map_err(|error| {
            let table = GuardedTable { database: into.database.clone(), name: into.table.schema().name.clone() };
            // What a view leaves out is its definer's.
            let may_write =
                |column: &&str| into.below.is_none() && self.lookup.may_use_column(&table, column, "INSERT").is_ok();
            let names = into.columns.iter().map(|(name, _)| name.as_str()).filter(may_write);
            MysqlError::new(error.code, format!("{}{}", error.message, nearest::hint(&name.name, names)))
        })
    }
}

impl Receiver {
    /// The position of a column of the table that is changed.
    pub fn position(&self, name: &ColumnName) -> Result<usize, MysqlError> {
        let own = name.table.as_ref().is_none_or(|table| *table == self.alias);
        let database = name.database.as_ref().is_none_or(|database| *database == self.database);
        let found = self.columns.iter().find(|(known, _)| own && database && known.eq_ignore_ascii_case(&name.name));
        found.map(|(_, at)| *at).ok_or_else(|| unknown_column(&name.path(), Clause::FieldList))
    }

    /// The names with the columns of a row.
    fn named(&self, ids: &[ColumnId]) -> Vec<(String, ColumnId)> {
        self.columns.iter().map(|(name, at)| (name.clone(), ids[*at])).collect()
    }
}

impl RowCheck {
    /// The check of a row that has these columns. `absent`: what stands for the columns of the view's other tables.
    pub(super) fn reading(
        self,
        below: &Option<Below>,
        row: &[ColumnId],
        absent: &FxHashMap<ColumnId, Expr>,
    ) -> RowCheck {
        let columns = below.as_ref().map_or(&[] as &[ColumnId], |below| &below.columns);
        let mut read = |expr: Expr| match expr.kind {
            ExprKind::Reference(id) => match columns.iter().position(|column| *column == id) {
                Some(at) => Expr { kind: ExprKind::Reference(row[at]), ..expr },
                None => absent.get(&id).cloned().unwrap_or(expr),
            },
            _ => expr,
        };
        let conditions = self.conditions.into_iter().map(|condition| condition.map(&mut read)).collect();
        RowCheck { conditions, ..self }
    }
}
