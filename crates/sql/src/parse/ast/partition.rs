//! The partition clause of CREATE TABLE and ALTER TABLE, and what ALTER TABLE does with partitions.
//!
//! Nothing is checked here but the grammar: how many values a partition may have, whether names are there twice and what
//! an expression may be is found when the table is defined. The older spelling with COLUMN_LIST gives the same tree as
//! RANGE COLUMNS and LIST COLUMNS.

use super::{Expr, TableName};
use rauk_types::partitioning::{PartitionInterval, PartitionMethod};

/// `PARTITION BY …` with all that follows it.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionClause {
    pub by: PartitionBy,
    /// PARTITIONS n.
    pub count: Option<u64>,
    pub sub: Option<SubpartitionClause>,
    /// Empty: none was written.
    pub definitions: Vec<PartitionDefinition>,
    /// INTERVAL …
    pub interval: Option<PartitionInterval>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PartitionBy {
    pub method: PartitionMethod,
    pub on: PartitionOn,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PartitionOn {
    Expr(Box<Expr>),
    /// Of KEY, where none may be written, RANGE COLUMNS and LIST COLUMNS.
    Columns(Vec<String>),
}

/// `SUBPARTITION BY …`.
#[derive(Clone, Debug, PartialEq)]
pub struct SubpartitionClause {
    pub by: PartitionBy,
    /// SUBPARTITIONS n.
    pub count: Option<u64>,
}

/// `PARTITION name …`.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionDefinition {
    pub name: String,
    pub values: PartitionValues,
    pub options: PartitionOptions,
    /// Empty: none was written.
    pub subpartitions: Vec<SubpartitionDefinition>,
}

/// `SUBPARTITION name …`.
#[derive(Clone, Debug, PartialEq)]
pub struct SubpartitionDefinition {
    pub name: String,
    pub options: PartitionOptions,
}

/// By upper-case name, as they were written.
pub type PartitionOptions = Vec<(&'static str, String)>;

#[derive(Clone, Debug, PartialEq)]
pub enum PartitionValues {
    None,
    /// VALUES LESS THAN; `LESS THAN MAXVALUE` is one bound.
    LessThan(Vec<PartitionBound>),
    /// VALUES IN.
    In(Vec<ListValue>),
    /// DEFAULT, alone or as `VALUES IN (DEFAULT)`.
    Default,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PartitionBound {
    Value(Expr),
    MaxValue,
}

/// One of VALUES IN.
#[derive(Clone, Debug, PartialEq)]
pub enum ListValue {
    One(PartitionBound),
    /// `(value, …)`: a value for each column.
    Row(Vec<PartitionBound>),
}

/// What ALTER TABLE does with the partitions of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionOperation {
    /// PARTITION BY.
    By(Box<PartitionClause>),
    /// REMOVE PARTITIONING.
    Remove,
    Add {
        definitions: Vec<PartitionDefinition>,
        if_not_exists: bool,
    },
    /// ADD PARTITION PARTITIONS n.
    AddCount(u64),
    Drop {
        names: Vec<String>,
        if_exists: bool,
    },
    Truncate(PartitionNames),
    /// REORGANIZE PARTITION names INTO (definitions); without both: by the number that there would be.
    Reorganize(Option<Reorganization>),
    Coalesce(u64),
    /// INTERVAL …; `None`: REMOVE INTERVAL.
    Interval(Option<PartitionInterval>),
    /// APPLY INTERVAL.
    ApplyInterval,
    Exchange {
        partition: String,
        table: TableName,
        /// Not WITHOUT VALIDATION.
        validates: bool,
    },
    Maintain {
        work: PartitionWork,
        names: PartitionNames,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reorganization {
    pub names: Vec<String>,
    pub into: Vec<PartitionDefinition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionNames {
    All,
    Named(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionWork {
    Rebuild,
    Analyze,
    Check,
    Optimize,
    Repair,
}
