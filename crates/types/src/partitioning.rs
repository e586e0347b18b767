//! How a user's partitioned table is divided: PARTITION BY RANGE, LIST, HASH or KEY.
//!
//! A *partitioned table* is one definition ([`crate::TableSchema`] with [`Partitioning`]) over a list of physical tables:
//! one for each user partition, or for each of its subpartitions. Each has an id of its own, and its own rows, indexes and
//! index tables; the partitioned table itself has none. What is called partition in the rest of the code, a share of the
//! buckets of all tables, is something else: every physical table is spread over those.
//!
//! This module holds the declaration. Where a row belongs is found by the data node (`node::table::parts`); the value of a
//! partitioning expression is computed by SQL. MySQL's manual, chapter "Partitioning", has the kinds and their rules.
//!
//! Invariants ([`Partitioning::validate`]): there is a partition; each has as many leaves as every other; values fit the method;
//! every name is there once; INTERVAL is of RANGE; leaves have as many table ids as there are physical tables for one of them.

use crate::{DateTime, TableId, Value};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Most leaves of a table, as in MySQL.
pub const MAX_PARTITIONS: usize = 8192;
/// Most columns of a list, as in MySQL.
pub const MAX_PARTITION_COLUMNS: usize = 16;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partitioning {
    pub by: PartitionBy,
    /// SUBPARTITION BY: HASH or KEY.
    pub sub: Option<PartitionBy>,
    /// In their order: RANGE by ascending bounds.
    pub partitions: Vec<UserPartition>,
    /// `PARTITIONS n` was written in the place of names, so SHOW CREATE TABLE shows that.
    pub counted: bool,
    /// The same of SUBPARTITIONS n.
    pub counted_sub: bool,
    /// INTERVAL …: partitions by RANGE of a time are made, and dropped, as time passes.
    #[serde(default)]
    pub interval: Option<PartitionInterval>,
    /// Partitions have gone whose rows may still have entries in the table's global unique indexes. The node sets it.
    #[serde(default)]
    pub dead_entries: bool,
}

/// INTERVAL … RETAIN …
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionInterval {
    /// From a partition's bound to the next one's.
    pub every: Span,
    /// How long a partition stays after its bound; without, until somebody drops it.
    pub retain: Option<Span>,
}

/// A length of time as the calendar has it: a month has the days that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// At least one.
    pub count: u32,
    pub unit: SpanUnit,
}

/// Shorter ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SpanUnit {
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartitionBy {
    pub method: PartitionMethod,
    pub on: PartitionOn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartitionMethod {
    Range,
    List,
    Hash {
        linear: bool,
    },
    /// `algorithm` as it was written: it changes nothing here.
    Key {
        linear: bool,
        algorithm: Option<u8>,
    },
}

/// What is looked at. Columns are positions in [`crate::TableSchema::columns`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PartitionOn {
    /// An integer expression: canonical text, as of generated columns, and the columns in it, each once.
    Expression { text: String, columns: Vec<usize> },
    /// RANGE COLUMNS, LIST COLUMNS, KEY. `implied`: KEY () was written, which is the primary key.
    Columns { columns: Vec<usize>, implied: bool },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserPartition {
    pub name: String,
    pub values: PartitionValues,
    pub options: PartitionOptions,
    /// Subpartitions; one without a name where there are none.
    pub leaves: Vec<Leaf>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PartitionValues {
    /// HASH and KEY: rows come here by its position.
    None,
    /// RANGE: rows below this, one bound a column (or one of the expression's values).
    LessThan(Vec<PartitionBound>),
    /// LIST: rows with one of these, each a value a column (or one of the expression's values).
    In(Vec<Vec<Value>>),
    /// LIST: rows that no other takes.
    Default,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PartitionBound {
    Value(Value),
    MaxValue,
}

/// What is shown again and changes nothing, but for the comment that information_schema shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionOptions {
    pub comment: String,
    /// MAX_ROWS, MIN_ROWS, TABLESPACE by name, in the order in which they are shown.
    pub others: Vec<(String, String)>,
}

/// A physical table that rows are in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// Of a subpartition.
    pub name: Option<String>,
    pub options: PartitionOptions,
    /// Its rows, then its unique indexes' tables, in the order of these indexes. The node gives them.
    pub tables: Vec<TableId>,
}

impl SpanUnit {
    pub const ALL: [SpanUnit; 7] = [
        SpanUnit::Minute,
        SpanUnit::Hour,
        SpanUnit::Day,
        SpanUnit::Week,
        SpanUnit::Month,
        SpanUnit::Quarter,
        SpanUnit::Year,
    ];

    /// As it is written in SQL.
    pub const fn name(self) -> &'static str {
        match self {
            SpanUnit::Minute => "MINUTE",
            SpanUnit::Hour => "HOUR",
            SpanUnit::Day => "DAY",
            SpanUnit::Week => "WEEK",
            SpanUnit::Month => "MONTH",
            SpanUnit::Quarter => "QUARTER",
            SpanUnit::Year => "YEAR",
        }
    }
}

impl Span {
    /// Longest count: beyond the years 1 to 9999 whatever the unit, so that sums fit their numbers.
    pub const MAX_COUNT: u32 = 10_000_000;

    /// `times` spans later, or earlier; `None` beyond the years 1 to 9999.
    fn from(self, time: DateTime, times: i64) -> Option<DateTime> {
        let count = times * i64::from(self.count);
        let minutes = |minutes: i64| time.add_micros(minutes * 60_000_000);
        match self.unit {
            SpanUnit::Minute => minutes(count),
            SpanUnit::Hour => minutes(count * 60),
            SpanUnit::Day => time.add_days(count),
            SpanUnit::Week => time.add_days(count * 7),
            SpanUnit::Month => time.add_months(count),
            SpanUnit::Quarter => time.add_months(count * 3),
            SpanUnit::Year => time.add_months(count * 12),
        }
    }

    pub fn after(self, time: DateTime) -> Option<DateTime> {
        self.from(time, 1)
    }

    pub fn before(self, time: DateTime) -> Option<DateTime> {
        self.from(time, -1)
    }
}

/// As in SQL: `30 DAY`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.unit.name())
    }
}

/// As in SQL: `INTERVAL 1 DAY RETAIN 30 DAY`.
impl fmt::Display for PartitionInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "INTERVAL {}", self.every)?;
        self.retain.iter().try_for_each(|retain| write!(f, " RETAIN {retain}"))
    }
}

impl PartitionOn {
    pub fn columns(&self) -> &[usize] {
        match self {
            PartitionOn::Expression { columns, .. } | PartitionOn::Columns { columns, .. } => columns,
        }
    }

    fn columns_mut(&mut self) -> &mut Vec<usize> {
        match self {
            PartitionOn::Expression { columns, .. } | PartitionOn::Columns { columns, .. } => columns,
        }
    }
}

impl Leaf {
    pub fn new(name: Option<String>) -> Leaf {
        Leaf { name, options: PartitionOptions::default(), tables: Vec::new() }
    }

    /// The table of its rows.
    pub fn rows(&self) -> TableId {
        self.tables[0]
    }
}

impl Partitioning {
    /// Every leaf, in their order.
    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.partitions.iter().flat_map(|partition| &partition.leaves)
    }

    pub fn leaves_mut(&mut self) -> impl Iterator<Item = &mut Leaf> {
        self.partitions.iter_mut().flat_map(|partition| &mut partition.leaves)
    }

    /// As many as every partition has.
    pub fn leaves_each(&self) -> usize {
        self.partitions[0].leaves.len()
    }

    /// Every id of a physical table.
    pub fn tables(&self) -> impl Iterator<Item = TableId> {
        self.leaves().flat_map(|leaf| leaf.tables.iter().copied())
    }

    /// Positions of all columns that are looked at, each once, those of the partitions first.
    pub fn columns(&self) -> Vec<usize> {
        let mut all = Vec::new();
        for by in [Some(&self.by), self.sub.as_ref()].into_iter().flatten() {
            for &column in by.on.columns() {
                if !all.contains(&column) {
                    all.push(column);
                }
            }
        }
        all
    }

    /// Gives every column another position.
    pub fn move_columns(&mut self, to: impl Fn(usize) -> usize) {
        for by in [Some(&mut self.by), self.sub.as_mut()].into_iter().flatten() {
            by.on.columns_mut().iter_mut().for_each(|column| *column = to(*column));
        }
    }

    /// Places among all leaves of the partition or subpartition of this name, in any case.
    pub fn named(&self, name: &str) -> Option<std::ops::Range<usize>> {
        let each = self.leaves_each();
        for (at, partition) in self.partitions.iter().enumerate() {
            if partition.name.eq_ignore_ascii_case(name) {
                return Some(at * each..(at + 1) * each);
            }
            let is_it = |leaf: &Leaf| leaf.name.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(name));
            if let Some(sub) = partition.leaves.iter().position(is_it) {
                return Some(at * each + sub..at * each + sub + 1);
            }
        }
        None
    }

    /// Panics where an invariant of this module does not hold; `each` is how many physical tables a leaf has, 0 while they have no ids.
    pub fn validate(&self, each: usize) {
        assert!(!self.partitions.is_empty(), "a partitioned table has a partition");
        let by_range = self.by.method == PartitionMethod::Range;
        assert!(by_range || self.interval.is_none(), "INTERVAL beside {:?}", self.by.method);
        let leaves = self.leaves_each();
        assert!(leaves > 0 && (leaves == 1 || self.sub.is_some()), "{leaves} leaves");
        for partition in &self.partitions {
            assert_eq!(partition.leaves.len(), leaves, "partition {}", partition.name);
            let fits = match (&self.by.method, &partition.values) {
                (PartitionMethod::Range, PartitionValues::LessThan(bounds)) => match &self.by.on {
                    PartitionOn::Expression { .. } => bounds.len() == 1,
                    PartitionOn::Columns { columns, .. } => bounds.len() == columns.len(),
                },
                (PartitionMethod::List, PartitionValues::In(_) | PartitionValues::Default) => true,
                (PartitionMethod::Hash { .. } | PartitionMethod::Key { .. }, PartitionValues::None) => true,
                _ => false,
            };
            assert!(fits, "partition {} has {:?}", partition.name, partition.values);
            for leaf in &partition.leaves {
                assert_eq!(leaf.tables.len(), each, "a leaf of partition {}", partition.name);
            }
        }
    }
}
