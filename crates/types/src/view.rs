//! What a view of SQL is: a named query with the rules under which it is read and written.
//!
//! A [`ViewSchema`] is immutable and shared (`Arc`), like a table's schema. It holds text, not a tree: the catalog is older and younger
//! than any one program's syntax tree. The text is canonical (`*` expanded, names qualified, quotes and keywords in MySQL's form), so that it means
//! the same whatever sql_mode and current database its reader has. What it depends on besides is kept beside it: the account that
//! tables are read with, and the connection's collation, which literals get.
//!
//! Types of columns are not here: they follow from the tables at the time of reading. Replication views ([`crate::View`]) are something else.

use crate::Collation;
use serde::{Deserialize, Serialize};

/// ALGORITHM of CREATE VIEW.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewAlgorithm {
    #[default]
    Undefined,
    Merge,
    Temptable,
}

/// SQL SECURITY: whose privileges count where the view uses tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewSecurity {
    #[default]
    Definer,
    Invoker,
}

/// WITH CHECK OPTION: which conditions a row written through the view must fulfil.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViewCheck {
    #[default]
    None,
    /// The view's own, and those of views below that ask for a check.
    Local,
    /// The view's own and those of all views below.
    Cascaded,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewSchema {
    pub database: String,
    pub name: String,
    /// The query as canonical text in the default sql_mode. Each item of its select list has a name.
    pub query: String,
    /// Names of the columns where CREATE VIEW lists them; empty: those of the query.
    pub columns: Vec<String>,
    pub algorithm: ViewAlgorithm,
    /// User and host of the account.
    pub definer: (String, String),
    pub security: ViewSecurity,
    pub check: ViewCheck,
    /// character_set_client and collation_connection when it was created.
    pub charset: String,
    pub collation: Collation,
}

impl ViewSchema {
    /// Its name in the catalog.
    pub fn full_name(&self) -> (String, String) {
        (self.database.clone(), self.name.clone())
    }
}
