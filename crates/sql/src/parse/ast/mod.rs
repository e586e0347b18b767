//! The syntax tree of MySQL's statements.
//!
//! ```text
//! expression  operators, literals, names, calls, subqueries
//! query       SELECT, set operations, VALUES, WITH, FROM, windows, locking clauses
//! hint        optimizer hints
//! change      INSERT, REPLACE, UPDATE, DELETE
//! file        LOAD DATA, the format of files
//! account     accounts, roles, privileges
//! definition  columns, keys, constraints and their types
//! partition   how a table is divided, and what ALTER TABLE does with its partitions
//! ```
//! The tree says what was written, with synonyms merged (`MID` is `SUBSTRING`, `!=` is `<>`) and grouping parentheses gone: the shape of the tree
//! holds them. Nothing is resolved: a name is the text of its parts without quotes. Statements are in [`super::statement`].
//!
//! The tree is printed by [`super::print`] in MySQL's canonical form; parsing that text gives the same tree.

mod account;
mod change;
mod definition;
mod expression;
mod file;
mod hint;
mod partition;
mod query;

pub use account::*;
pub use change::*;
pub use definition::*;
pub use expression::*;
pub use file::*;
pub use hint::*;
pub use partition::*;
pub use query::*;

/// `db.table`, or `table` in the current database. Names as written, quotes removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    pub database: Option<String>,
    pub name: String,
}

/// `column`, `table.column` or `database.table.column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnName {
    pub database: Option<String>,
    pub table: Option<String>,
    pub name: String,
}

impl ColumnName {
    pub fn bare(name: impl std::convert::Into<String>) -> ColumnName {
        ColumnName { database: None, table: None, name: name.into() }
    }

    /// The parts that were written, the widest first.
    pub fn path(&self) -> smallvec::SmallVec<[&str; 3]> {
        [self.database.as_deref(), self.table.as_deref(), Some(self.name.as_str())].into_iter().flatten().collect()
    }
}
