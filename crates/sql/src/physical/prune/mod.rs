//! Which partitions of a user's partitioned table the conditions on it leave.
//!
//! What a table is partitioned by is looked at as an index on these columns would be: the conditions on its leading columns
//! make a [`KeyCondition`] ([`match_index`]), and its values say when the table is read which leaves are scanned ([`read`]). So
//! equalities, lists, ranges, row values, ORs and ANDs of these, prefixes of a list of columns, parameters and values of the tables before all narrow the leaves. An expression narrows by equalities of its columns; by ranges where it
//! rises with its only column ([`Rising`]).
//!
//! Lookups by a whole key need none of this: the key says the leaf (`node::table::parts`).

mod read;

pub(crate) use read::leaves;

use super::access::{Spread, match_index};
use super::condition::Sarg;
use super::model::{IndexAccess, Source};
use crate::bind::partition_function;
use crate::expr::Expr;
use crate::parse::{Mode, ast, parse_expression};
use rauk_types::partitioning::{PartitionBy, PartitionOn};
use rauk_types::{IndexId, IndexKind, IndexPart, IndexSchema, KeyDef, TableSchema};

/// What conditions say of the partitions of a table, and of their subpartitions.
pub(crate) struct Prune {
    pub main: Option<PruneBy>,
    pub sub: Option<PruneBy>,
}

/// The conditions on the columns of one way to divide.
pub(crate) struct PruneBy {
    /// The columns and what is known of them; of no index.
    pub access: IndexAccess,
    /// What is computed of the columns; `None`: they themselves are looked at.
    pub expression: Option<(Expr, Rising)>,
}

/// How an expression's value follows from its only column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rising {
    /// Nothing is known.
    No,
    /// A greater value of the column never has a smaller one of the expression.
    Yes {
        /// Values of the column between others may have NULL.
        has_null: bool,
    },
}

impl Prune {
    /// `sargs`: the conditions on the table whose values are known when it is read.
    pub fn of(source: &Source, sargs: &[&Sarg]) -> Option<Box<Prune>> {
        let partitioning = source.handle()?.schema().partitioning.as_ref()?;
        let schema = source.schema();
        let expression = |sub| partition_function::bound(schema, partitioning, sub).ok().flatten();
        let main = PruneBy::of(schema, &partitioning.by, expression(false), sargs);
        let sub = partitioning.sub.as_ref().and_then(|by| PruneBy::of(schema, by, expression(true), sargs));
        let prune = Prune { main, sub };
        (prune.main.is_some() || prune.sub.is_some()).then(|| Box::new(prune))
    }
}

impl Prune {
    /// Calls `visit` on every value.
    pub fn for_each_expr(&self, visit: &mut dyn FnMut(&Expr)) {
        for by in self.main.iter().chain(&self.sub) {
            by.access.condition.for_each_expr(visit);
        }
    }
}

impl PruneBy {
    fn of(schema: &TableSchema, by: &PartitionBy, expression: Option<Expr>, sargs: &[&Sarg]) -> Option<PruneBy> {
        let part = |&column: &usize| IndexPart { column, prefix: None, descending: false };
        let index =
            IndexSchema { kind: IndexKind::Ordered, id: IndexId(u16::MAX), ..IndexSchema::primary(by.on.columns()) };
        // How many rows are left is nothing that matters here.
        // What a subquery gives is not known before the table is read.
        let plain: Vec<&Sarg> = sargs.iter().filter(|sarg| !sarg.test.has_subquery()).copied().collect();
        let found = match_index(&Spread { index: &index, statistics: None, total: 1.0 }, &plain)?;
        Some(PruneBy {
            access: IndexAccess {
                index: usize::MAX,
                key_def: KeyDef::new(schema, &by.on.columns().iter().map(part).collect::<Vec<_>>()),
                condition: found.condition,
                distribution: None,
                ordered: false,
                reverse: false,
            },
            expression: match &by.on {
                PartitionOn::Expression { text, .. } => Some((expression?, rising(text))),
                PartitionOn::Columns { .. } => None,
            },
        })
    }
}

/// By the canonical text of an expression.
fn rising(text: &str) -> Rising {
    match parse_expression(text, Mode::default()) {
        Ok(ast::Expr::Column(_)) => Rising::Yes { has_null: false },
        Ok(ast::Expr::Call(call)) => match (call.name.to_ascii_uppercase().as_str(), &call.arguments) {
            ("YEAR" | "UNIX_TIMESTAMP", ast::Arguments::List { items, .. })
                if matches!(items.as_slice(), [ast::Expr::Column(_)]) =>
            {
                Rising::Yes { has_null: false }
            }
            // Dates with a month or day of zero.
            ("TO_DAYS" | "TO_SECONDS", ast::Arguments::List { items, .. })
                if matches!(items.as_slice(), [ast::Expr::Column(_)]) =>
            {
                Rising::Yes { has_null: true }
            }
            _ => Rising::No,
        },
        _ => Rising::No,
    }
}
