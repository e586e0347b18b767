//! A query printed with other names than those that were written: in full, for the catalog, or without the database that goes without saying.
//!
//! Binding finds out what each name means and notes it in [`FullNames`]; the tree stays as it is. A name is known by the address of its text
//! in the tree, which lives while it is bound and printed. What binding did not note (aliases of the select list, common
//! tables) is printed as it was written.

use super::Printer;
use crate::parse::ast::{ColumnName, CommonTable, Expr, Query, SelectItem, TableName};
use crate::parse::lexer::Mode;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// A column with the names in front of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullColumn {
    /// `None`: the table has an alias, or is a derived or common one.
    pub database: Option<String>,
    pub table: String,
    pub name: String,
}

/// What the names of a query mean.
#[derive(Debug, Default)]
pub struct FullNames {
    /// By the address of the column's name.
    columns: FxHashMap<usize, FullColumn>,
    /// Databases, by the address of the table's name.
    databases: FxHashMap<usize, String>,
    /// The columns of `*`, by the address of the item or, of `TABLE name`, of the table's name.
    stars: FxHashMap<usize, Vec<FullColumn>>,
    /// Common tables that nothing reads, by the address of their names: they are not printed.
    unread: FxHashSet<usize>,
}

fn address(text: &str) -> usize {
    text.as_ptr() as usize
}

impl FullNames {
    /// `name` is the text of the tree itself.
    pub fn note_column(&mut self, name: &str, column: FullColumn) {
        self.columns.insert(address(name), column);
    }

    pub fn note_table(&mut self, table: &TableName, database: &str) {
        self.databases.insert(address(&table.name), database.to_string());
    }

    pub fn note_star(&mut self, item: &SelectItem, columns: Vec<FullColumn>) {
        self.stars.insert(std::ptr::from_ref(item) as usize, columns);
    }

    pub fn note_unread(&mut self, table: &CommonTable) {
        self.unread.insert(address(&table.name));
    }

    /// `TABLE name` was bound as a SELECT of this item from a copy of the name.
    pub fn note_whole_table(&mut self, table: &TableName, item: &SelectItem, copy: &TableName) {
        if let Some(columns) = self.stars.remove(&(std::ptr::from_ref(item) as usize)) {
            self.stars.insert(address(&table.name), columns);
        }
        if let Some(database) = self.databases.remove(&address(&copy.name)) {
            self.databases.insert(address(&table.name), database);
        }
    }
}

/// The query with all that binding has noted.
pub fn in_full(query: &Query, names: &FullNames) -> String {
    let mut text = String::new();
    let mut printer = Printer { names: Some(names), ..Printer::new(&mut text, Mode::default()) };
    printer.query(query).expect("a string takes all that is written");
    text
}

/// The query without a database in front of its names, if all of them have this one.
pub fn without_database(query: &Query, database: &str) -> Option<String> {
    let mut text = String::new();
    let mut printer = Printer { home: Some(database), ..Printer::new(&mut text, Mode::default()) };
    printer.query(query).expect("a string takes all that is written");
    (!printer.is_away).then_some(text)
}

/// An expression over the columns of one row, as the catalog keeps it.
pub fn of_own_row(expr: &Expr) -> String {
    let mut text = String::new();
    let mut printer = Printer { of_own_row: true, ..Printer::new(&mut text, Mode::default()) };
    printer.expr(expr).expect("a string takes all that is written");
    text
}

impl Printer<'_> {
    /// A database and its point, unless it goes without saying.
    fn database(&mut self, database: Option<&str>) -> fmt::Result {
        let Some(database) = database else { return Ok(()) };
        if let Some(home) = self.home {
            self.is_away |= home != database;
            return Ok(());
        }
        self.name(database)?;
        self.text(".")
    }

    pub(super) fn table_name(&mut self, table: &TableName) -> fmt::Result {
        let noted = self.names.and_then(|names| names.databases.get(&address(&table.name)));
        self.database(noted.or(table.database.as_ref()).map(String::as_str))?;
        self.name(&table.name)
    }

    pub(super) fn column_name(&mut self, column: &ColumnName) -> fmt::Result {
        if let Some(noted) = self.names.and_then(|names| names.columns.get(&address(&column.name))) {
            return self.full_column(noted);
        }
        if self.of_own_row {
            return self.name(&column.name);
        }
        self.database(column.database.as_deref())?;
        if let Some(table) = &column.table {
            self.name(table)?;
            self.text(".")?;
        }
        self.name(&column.name)
    }

    pub(super) fn is_noted_unread(&self, table: &CommonTable) -> bool {
        self.names.is_some_and(|names| names.unread.contains(&address(&table.name)))
    }

    fn full_column(&mut self, column: &FullColumn) -> fmt::Result {
        self.database(column.database.as_deref())?;
        self.name(&column.table)?;
        self.text(".")?;
        self.name(&column.name)
    }

    fn star(&mut self, columns: &[FullColumn]) -> fmt::Result {
        self.list(columns, |p, column| {
            p.full_column(column)?;
            p.text(" AS ")?;
            p.name(&column.name)
        })
    }

    /// `*` or `table.*` as the columns that it stands for; `false`: nothing was noted.
    pub(super) fn noted_star(&mut self, item: &SelectItem) -> Result<bool, fmt::Error> {
        let noted = self.names.and_then(|names| names.stars.get(&(std::ptr::from_ref(item) as usize)));
        noted.map_or(Ok(false), |columns| self.star(columns).map(|()| true))
    }

    /// `TABLE name` as the SELECT that it stands for; `false`: nothing was noted.
    pub(super) fn noted_whole_table(&mut self, table: &TableName) -> Result<bool, fmt::Error> {
        let Some(columns) = self.names.and_then(|names| names.stars.get(&address(&table.name))) else {
            return Ok(false);
        };
        self.text("select ")?;
        self.star(columns)?;
        self.text(" from ")?;
        self.table_name(table)?;
        Ok(true)
    }
}
