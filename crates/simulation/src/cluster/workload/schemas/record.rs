//! What clients did to the tables of this workload, and what they were told.
//!
//! Time is the index of the manage group's newest command: what was told at index `n` had happened by `n`, what was asked for at `n` happens after it.
use crate::cluster::record::Fate;
use rauk_types::partitioning::{PartitionBy, PartitionValues};
use rauk_types::schema::IndexKind;
use rauk_types::{DataType, TableId, TableSchema};
use std::collections::BTreeMap;
use std::time::Duration;

/// What one statement, or one command of the group, does to a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    Create {
        name: String,
    },
    /// Another definition of the same table.
    Alter {
        name: String,
    },
    /// Another table with the same rows and another definition.
    Rewrite {
        name: String,
    },
    Rename {
        from: String,
        to: String,
    },
    /// Another table with the same definition and no rows.
    Truncate {
        name: String,
    },
    Drop {
        name: String,
    },
}

/// What a client decides of a definition. The comment is one that no other statement gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub comment: String,
    pub columns: Vec<(String, DataType)>,
    pub indexes: Vec<(String, IndexKind, Vec<usize>)>,
    /// Of a partitioned table: by what, and its partitions.
    pub divided: Option<(PartitionBy, Vec<(String, PartitionValues)>)>,
}

impl Shape {
    pub fn of(schema: &TableSchema) -> Shape {
        let columns = schema.columns.iter().map(|column| (column.name.clone(), column.ty));
        let indexes = schema.indexes.iter();
        let indexes = indexes.map(|i| (i.name.clone(), i.kind, i.parts.iter().map(|part| part.column).collect()));
        let divided = schema.partitioning.as_ref().map(|of| {
            let partitions = of.partitions.iter().map(|one| (one.name.clone(), one.values.clone()));
            (of.by.clone(), partitions.collect())
        });
        Shape { comment: schema.comment.clone(), columns: columns.collect(), indexes: indexes.collect(), divided }
    }
}

#[derive(Clone, Debug)]
pub struct Statement {
    pub effect: Effect,
    /// What it makes of the definition, if it gives one.
    pub shape: Option<Shape>,
    pub called: u64,
    pub answered: Option<u64>,
    pub fate: Fate,
    /// How long it was to wait for the table, and how long it took.
    pub wait: Duration,
    pub lasted: Option<Duration>,
    /// For people: what was answered.
    pub answer: String,
}

/// Two rows that are always written together, with one value; only the client that made them writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The table that they were put into.
    pub table: TableId,
    /// `None`: they are not there.
    pub value: Option<i64>,
    /// What they are if the write whose outcome is unknown took effect.
    pub maybe: Option<Option<i64>>,
}

/// What a transaction that committed found of a pair in some table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    pub pair: i64,
    pub table: TableId,
    pub found: [Option<i64>; 2],
    /// What it is in the table where it is.
    pub expected: Option<i64>,
}

#[derive(Debug, Default)]
pub struct Schemas {
    pub statements: Vec<Statement>,
    pub pairs: BTreeMap<i64, Pair>,
    pub looks: Vec<Look>,
}

impl Schemas {
    /// A statement is sent: its number.
    pub fn call(&mut self, effect: Effect, shape: Option<Shape>, called: u64, wait: Duration) -> usize {
        let (answered, fate, lasted, answer) = (None, Fate::Unknown, None, String::new());
        self.statements.push(Statement { effect, shape, called, answered, fate, wait, lasted, answer });
        self.statements.len() - 1
    }

    /// Rows that may be put into `table`: their number.
    pub fn pair(&mut self, table: TableId) -> i64 {
        let number = self.pairs.len() as i64 + 1;
        self.pairs.insert(number, Pair { table, value: None, maybe: None });
        number
    }
}
