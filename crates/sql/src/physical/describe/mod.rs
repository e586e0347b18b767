//! A plan as EXPLAIN shows it: blocks with their numbers, the tables of each, and how these are read, as values.
//!
//! Blocks are numbered (`id`): a block first, then its derived and common tables in the order of FROM, then its subqueries
//! in the order in which they were bound, each with all that is in it. The three forms of EXPLAIN print what stands here:
//! `explain` the table of MySQL, `explain_json` MySQL's JSON, `explain_tree` the operators.
//!
//! The values of this execution decide which partitions are read, and whether a WHERE is impossible, so EXPLAIN of a
//! prepared statement shows what its parameters would do. No subquery is run: what needs the answer of one, or a column
//! of a block around a subquery, is not known.
//!
//! Here are the values; `build` makes them of a plan, `text` prints the expressions in them.

mod build;
mod text;

use super::model::{Level, SelectPlan, SetOp, SetPlan, Source};
use std::collections::BTreeMap;

pub(super) use build::describe;

/// A statement.
pub(super) enum Described<'p> {
    Query(Part<'p>),
    /// UPDATE and DELETE.
    Change(Box<Block<'p>>),
    /// INSERT and REPLACE.
    Insert {
        replace: bool,
        table: &'p str,
        source: Option<Part<'p>>,
        below: Vec<Below<'p>>,
    },
}

/// A query.
pub(super) enum Part<'p> {
    Block(Box<Block<'p>>),
    Set(Set<'p>),
    /// A query whose rows are sorted in a block of their own.
    Sorted(Box<Part<'p>>),
}

/// A set operation, or a recursive table: a UNION of its seed and of what its rounds add.
pub(super) struct Set<'p> {
    pub op: SetOp,
    pub all: bool,
    pub members: Vec<Part<'p>>,
    /// Rows are kept to find equal ones.
    pub keeps: bool,
    pub sorts: bool,
    /// The operation in the plan; `None` of a recursive table.
    pub plan: Option<&'p SetPlan>,
}

pub(super) struct Block<'p> {
    pub id: i64,
    pub role: Role,
    /// `None`: VALUES, or a change.
    pub plan: Option<&'p SelectPlan>,
    /// Why nothing is read.
    pub message: Option<&'static str>,
    /// In the order in which they are read.
    pub tables: Vec<Table<'p>>,
    pub below: Vec<Below<'p>>,
    /// GROUP BY or DISTINCT keep rows.
    pub temporary: bool,
    pub sorts: bool,
    /// Window functions over its rows.
    pub windows: Option<Windows<'p>>,
    /// UPDATE or DELETE of those of its tables that are changed.
    pub changes: Option<Role>,
    /// What is printed of the block's expressions, when that is wanted.
    pub texts: Texts,
}

/// Window functions: a block of their own in the plan, shown with the block whose rows they read.
pub(super) struct Windows<'p> {
    pub plan: &'p SelectPlan,
    pub functions: usize,
    /// Rows are sorted for them.
    pub sorts: bool,
    /// Of ORDER BY and LIMIT above them.
    pub texts: Texts,
}

/// A query inside of a block.
pub(super) struct Below<'p> {
    pub place: Place,
    pub dependent: bool,
    pub part: Part<'p>,
}

/// Where a query stands in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is the table of FROM of this number.
    From(usize),
    /// In a condition on the table of this number.
    Condition(usize),
    /// In a condition that reads no table.
    Once,
    Select,
    Group,
    Having,
    Order,
    /// In the values of a change.
    Values,
}

/// The join buffer of a table that is looked up for many rows at once.
pub(super) const BATCHED: &str = "Batched Key Access";

/// A table of a block, and how it is read.
pub(super) struct Table<'p> {
    pub source: &'p Source,
    pub level: &'p Level,
    /// The number of its step.
    pub step: usize,
    /// As it is shown: the alias, or `<derivedN>`.
    pub name: String,
    /// Names of the partitions that are read; `None`: nothing is, or it has none.
    pub partitions: Option<Vec<String>>,
    /// How many there are.
    pub all_partitions: usize,
    pub access_type: &'static str,
    pub possible: Vec<&'p str>,
    pub index: Option<Index<'p>>,
    /// Extra, but what the block as a whole adds.
    pub notes: Vec<&'static str>,
    /// The last table of a semi or anti join.
    pub tests: Option<Tests>,
    /// A join buffer is used.
    pub join_buffer: Option<&'static str>,
    /// How indexes are merged: `union(a,b)`.
    pub merge: Option<String>,
    /// Rows that come out of this table's loop, and the cost up to there, by the estimate.
    pub produced: f64,
    pub step_cost: f64,
    pub prefix_cost: f64,
    /// Conditions that are checked on its rows.
    pub condition: Option<String>,
    /// What its keys are made of.
    pub keys: String,
    /// Equalities that it is probed by.
    pub hash: Option<String>,
}

/// What the first match of a semi or anti join does.
pub(super) enum Tests {
    /// Back to the next row of this table.
    FirstMatch(String),
    NotExists,
}

/// The index that a table is read by.
pub(super) struct Index<'p> {
    /// Of an index merge: all of them.
    pub name: String,
    pub parts: Vec<&'p str>,
    pub length: String,
    /// What the keys are compared with, where they are whole values.
    pub references: Vec<String>,
}

/// Expressions of a block as text.
#[derive(Default)]
pub(super) struct Texts {
    pub group: Vec<String>,
    pub aggregates: Vec<String>,
    pub having: Option<String>,
    pub order: Vec<String>,
    pub limit: Option<String>,
    pub offset: Option<String>,
    /// Of each step that closes an outer join: what it checks.
    pub leaves: BTreeMap<usize, String>,
    pub once: Option<String>,
}

/// The note of a table whose rows a function computes.
pub(in crate::physical) const TABLE_FUNCTION: &str = "Table function: json_table";

/// The note of a table whose index says all that is read of it.
pub(in crate::physical) const COVERED: &str = "Using index";

/// The note of a table whose rows are grouped in batches.
pub(in crate::physical) const BATCHES: &str = "Using batches";

/// Whether expressions are printed, and how columns are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Print {
    No,
    /// `` `database`.`table`.`column` ``.
    Quoted,
    /// `table.column`.
    Short,
}

impl Block<'_> {
    /// What it does with a table.
    pub fn role_of(&self, table: &Table<'_>) -> Role {
        match self.changes {
            Some(role) if table.level.changed || self.plan.is_none() => role,
            _ => self.role,
        }
    }
}

/// What a block is in its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The whole query: SIMPLE when there is no other block, else PRIMARY.
    Main,
    Primary,
    Derived,
    DependentDerived,
    Subquery,
    DependentSubquery,
    /// A member of a set operation behind the first.
    Member(SetOp),
    DependentMember(SetOp),
    Update,
    Delete,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Main => "SIMPLE",
            Role::Primary => "PRIMARY",
            Role::Derived => "DERIVED",
            Role::DependentDerived => "DEPENDENT DERIVED",
            Role::Subquery => "SUBQUERY",
            Role::DependentSubquery => "DEPENDENT SUBQUERY",
            Role::Member(SetOp::Union) => "UNION",
            Role::Member(SetOp::Except) => "EXCEPT",
            Role::Member(SetOp::Intersect) => "INTERSECT",
            Role::DependentMember(SetOp::Union) => "DEPENDENT UNION",
            Role::DependentMember(SetOp::Except) => "DEPENDENT EXCEPT",
            Role::DependentMember(SetOp::Intersect) => "DEPENDENT INTERSECT",
            Role::Update => "UPDATE",
            Role::Delete => "DELETE",
        }
    }

    pub fn is_dependent(self) -> bool {
        matches!(self, Role::DependentSubquery | Role::DependentDerived | Role::DependentMember(_))
    }

    /// As the first member of a set operation.
    fn first(self) -> Role {
        if self == Role::Main { Role::Primary } else { self }
    }

    /// As another member of it.
    fn member(self, op: SetOp) -> Role {
        match self {
            Role::DependentSubquery | Role::DependentDerived | Role::DependentMember(_) => Role::DependentMember(op),
            _ => Role::Member(op),
        }
    }
}

impl<'p> Part<'p> {
    fn first_block(&mut self) -> &mut Block<'p> {
        match self {
            Part::Block(block) => block,
            Part::Set(set) => set.members[0].first_block(),
            Part::Sorted(part) => part.first_block(),
        }
    }

    /// The number of its first block.
    pub fn id(&self) -> i64 {
        match self {
            Part::Block(block) => block.id,
            Part::Set(set) => set.members[0].id(),
            Part::Sorted(part) => part.id(),
        }
    }
}
