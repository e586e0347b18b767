//! What a run does, one step at a time, as data: so that a run can be repeated with some of its steps left out.
//!
//! In texts [`MARK`] stands for the name of the table, which is another one where the table has partitions.

use super::model::Partitioning;
use super::table::Table;

/// Where the name of the table stands.
pub const MARK: char = '~';

#[derive(Clone, Debug)]
pub enum Step {
    /// Answered by both tables with the same rows, in any order. With values: prepared, and executed with each of them.
    Query {
        sql: String,
        values: Vec<Vec<String>>,
        only: Option<Only>,
    },
    Write(Write),
    /// BEGIN, SAVEPOINT, ROLLBACK: of the session, not of a table.
    Transaction(String),
    Manage(Box<Manage>),
    Exchange(Exchange),
    /// The server is killed.
    Crash,
}

/// Some partitions, named behind the table.
#[derive(Clone, Debug)]
pub struct Only {
    /// `PARTITION (p0, p1)`.
    pub clause: String,
    /// The condition of their rows.
    pub members: String,
}

#[derive(Clone, Debug)]
pub struct Write {
    pub which: Which,
    pub text: Text,
    /// With IGNORE: rows that no partition takes are left out.
    pub ignores: bool,
    /// Which of several rows meets a duplicate first is left open.
    pub loose: bool,
    /// A row that is refused may be another one in the end.
    pub replaces: bool,
}

/// The table with partitions and its twin, or the table that is exchanged and its twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Main,
    Other,
}

#[derive(Clone, Debug)]
pub enum Text {
    /// `INSERT INTO ~`, rows, what is behind them; into some partitions alone.
    Rows {
        before: String,
        rows: Vec<String>,
        behind: String,
        only: Option<Only>,
    },
    Plain(String),
    /// An UPDATE or DELETE of some partitions: up to the table, behind it up to the condition, the condition.
    Within {
        before: String,
        behind: String,
        condition: String,
        only: Only,
    },
}

/// A statement on the table with partitions.
#[derive(Clone, Debug)]
pub struct Manage {
    pub sql: String,
    pub twin: Twin,
    /// What is true afterwards.
    pub table: Table,
    pub partitioning: Option<Partitioning>,
    /// Rows that no new partition takes hold this, and are error 1526.
    pub misfits: Option<String>,
    /// The server is killed after so many microseconds, in the middle of it or just after.
    pub killed_after: Option<u64>,
    /// Its answer has rows that say OK.
    pub answers: bool,
}

/// What follows for the twin.
#[derive(Clone, Debug)]
pub enum Twin {
    Nothing,
    /// Rows that hold this go.
    Delete(String),
    /// The rows of these partitions go, all columns of which that decide are listed.
    DeleteOf {
        clause: String,
        columns: Vec<String>,
    },
    /// The same statement on the twin, and on the table that is exchanged and its twin.
    Same,
}

#[derive(Clone, Debug)]
pub struct Exchange {
    /// Of the table that is exchanged, before: its rows are others then.
    pub filled_by: Option<String>,
    pub leaf: String,
    pub validates: &'static str,
    /// The condition of the leaf's rows, if it is known.
    pub members: Option<String>,
    /// The columns that decide.
    pub columns: Vec<String>,
    pub killed_after: Option<u64>,
}

impl Text {
    /// The partitions that are named.
    pub fn only(&self) -> Option<&Only> {
        match self {
            Text::Rows { only, .. } => only.as_ref(),
            Text::Within { only, .. } => Some(only),
            Text::Plain(_) => None,
        }
    }

    pub fn of(&self, table: &str, is_partitioned: bool) -> String {
        let text = match self {
            Text::Rows { before, rows, behind, only } => {
                let clause = only.iter().filter(|_| is_partitioned).map(|only| format!(" {}", only.clause));
                format!("{before}{} VALUES {}{behind}", clause.collect::<String>(), rows.join(", "))
            }
            Text::Plain(text) => text.clone(),
            Text::Within { before, behind, condition, only } => match is_partitioned {
                true => format!("{before} {MARK} {}{behind} WHERE {condition}", only.clause),
                false => format!("{before} {MARK}{behind} WHERE ({condition}) AND ({})", only.members),
            },
        };
        text.replace(MARK, table)
    }
}
