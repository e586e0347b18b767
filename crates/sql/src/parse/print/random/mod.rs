//! Random trees are printed, and parsing their text gives them back.
//!
//! A tree is made of bytes, one for each choice; when they end, every choice is the first, which is the simplest, so
//! that a failing tree shrinks with its bytes. All nodes are made. Only what the printer's essay lists as different
//! is not: tables between commas, `a || b`, DATE_ADD with an interval, chains of AND and OR of other shapes than the
//! parser's, items without alias, functions in upper case. Parameters are numbered as the text has them.
//! [`super::tests`] has the differences.

mod definition;
mod expression;
mod query;

use crate::parse::ast::{ColumnDefinition, ColumnName, ColumnOption, Expr, TableName};
use crate::parse::print::{Print, for_mode};
use crate::parse::statement::{AlterOperation, Statement};
use crate::parse::{Mode, parse};
use proptest::prelude::*;
use std::fmt::Debug;

const NAMES: &[&str] =
    &["a", "b", "T", "order", "with blank", "back`tick", "dou\"ble", "ä", "1st", "x.y", "select", "it's", "b\\s", "N"];
const TEXTS: &[&str] = &[
    "",
    "a",
    "it's",
    "''",
    "\\",
    "\\\\",
    "\\%",
    "\\_x",
    "a\\'b",
    "line\nline\r",
    "nul\0",
    "\u{1a}",
    "ä€",
    "\"quoted\"",
    "`",
    "%",
    "tab\t",
    "?",
    "-- /* no comment",
];

/// The choices that make a tree.
struct Choices<'b> {
    bytes: std::slice::Iter<'b, u8>,
    parameters: usize,
}

impl Choices<'_> {
    /// One of so many: a number below `n`.
    fn pick(&mut self, n: usize) -> usize {
        self.bytes.next().map_or(0, |byte| usize::from(*byte) % n)
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.pick(items.len())]
    }

    fn flag(&mut self) -> bool {
        self.pick(2) == 1
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(make(self)) } else { None }
    }

    /// Up to three, but at least so many.
    fn some<T>(&mut self, least: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = least.max(self.pick(4));
        (0..count).map(|_| make(self)).collect()
    }

    fn name(&mut self) -> String {
        self.one_of(NAMES).into()
    }

    fn string(&mut self) -> String {
        self.one_of(TEXTS).into()
    }

    fn names(&mut self, least: usize) -> Vec<String> {
        self.some(least, Self::name)
    }

    fn number(&mut self) -> u64 {
        self.one_of(&[0, 1, 10, 255])
    }

    fn table_name(&mut self) -> TableName {
        TableName { database: self.maybe(Self::name), name: self.name() }
    }

    fn column_name(&mut self) -> ColumnName {
        let table = self.maybe(Self::name);
        let database = if table.is_some() { self.maybe(Self::name) } else { None };
        ColumnName { database, table, name: self.name() }
    }

    fn parameter(&mut self) -> Expr {
        self.parameters += 1;
        Expr::Parameter(self.parameters - 1)
    }
}

/// Every way to read text.
fn modes() -> impl Iterator<Item = Mode> {
    (0..16u8).map(|bits| Mode {
        ansi_quotes: bits & 1 != 0,
        no_backslash_escapes: bits & 2 != 0,
        pipes_as_concat: bits & 4 != 0,
        high_not_precedence: bits & 8 != 0,
    })
}

fn choices(bytes: &[u8]) -> Choices<'_> {
    Choices { bytes: bytes.iter(), parameters: 0 }
}

/// Prints the tree behind `before`, and reads it.
fn comes_back<T: Print + PartialEq + Debug>(
    tree: &T,
    mode: Mode,
    before: &str,
    select: impl Fn(Statement) -> Option<T>,
) -> Result<(), TestCaseError> {
    let text = format!("{before}{}", for_mode(tree, mode));
    let read = match parse(&text, mode) {
        Ok(parsed) => parsed.statement.into_statement(),
        Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}\n{tree:?}"))),
    };
    let again = select(read);
    prop_assert!(again.as_ref() == Some(tree), "{}\n{:?}\n{:?}", text, tree, again);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn random_statements_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..400), mode in 0usize..16) {
        let mode = modes().nth(mode).unwrap();
        match choices(&bytes).statement(4) {
            Statement::Query(query) => comes_back(&*query, mode, "", |read| match read {
                Statement::Query(query) => Some(*query),
                _ => None,
            })?,
            Statement::Insert(insert) => comes_back(&*insert, mode, "", |read| match read {
                Statement::Insert(insert) => Some(*insert),
                _ => None,
            })?,
            Statement::Update(update) => comes_back(&*update, mode, "", |read| match read {
                Statement::Update(update) => Some(*update),
                _ => None,
            })?,
            Statement::Delete(delete) => comes_back(&*delete, mode, "", |read| match read {
                Statement::Delete(delete) => Some(*delete),
                _ => None,
            })?,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn random_expressions_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..200), mode in 0usize..16) {
        let mode = modes().nth(mode).unwrap();
        comes_back(&choices(&bytes).expr(5), mode, "do ", |read| match read {
            Statement::Do(mut exprs) if exprs.len() == 1 => exprs.pop(),
            _ => None,
        })?;
    }

    #[test]
    fn random_definitions_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..120), mode in 0usize..16) {
        let mode = modes().nth(mode).unwrap();
        let mut choices = choices(&bytes);
        let mut column = ColumnDefinition {
            name: choices.name(),
            column_type: choices.column_type(),
            options: choices.some(0, |c| c.column_option(2)),
        };
        // An ON UPDATE behind it would be its own.
        column.options.extend(choices.maybe(|c| ColumnOption::References(c.references())));
        comes_back(&column, mode, "alter table t add column ", |read| match read {
            Statement::AlterTable { mut operations, .. } => match operations.pop() {
                Some(AlterOperation::AddColumn { column, .. }) => Some(column),
                _ => None,
            },
            _ => None,
        })?;
        choices.parameters = 0;
        comes_back(&choices.constraint(2), mode, "alter table t add ", |read| match read {
            Statement::AlterTable { mut operations, .. } => match operations.pop() {
                Some(AlterOperation::AddConstraint(constraint)) => Some(constraint),
                _ => None,
            },
            _ => None,
        })?;
    }
}
