//! Which tables of a block are read by an index alone.
//!
//! When an index says all columns of a table that the block reads, rows are made of its keys: the partition looks at a row only where
//! its entry may not be the one to be seen (`kernel`, scans). This is found out at the end, over all expressions that the finished plan evaluates: a
//! condition that the access path guarantees is not one of them, so that `COUNT(*) … WHERE name = 'x'` is covered, though no
//! text can be read back from a key. A text that is shown or compared, and a column that the index lacks, the primary key's too, need the row.
//!
//! Loose and skip scans read the leading columns of their index too, which say where they jump to. A scan of all rows
//! is covered where no column is read, as by COUNT(*): the row store's marks say which rows are there, and that takes
//! less than any index.
//!
//! Left out: reads that lock (the lock is on the row), whole keys of unique indexes (one row, found by its key) and
//! index merges. A column that only some of the rows need is read by all.

use super::model::{Access, Level, Source, Step};
use crate::expr::Expr;
use rauk_types::row::large::LARGE_VALUE;
use rauk_types::{Column, Covering, KeyDef, TableSchema};
use std::sync::Arc;

/// The columns of each table that expressions read.
pub(super) struct ReadColumns(Vec<Vec<usize>>);

impl ReadColumns {
    pub fn of(tables: usize) -> ReadColumns {
        ReadColumns(vec![vec![]; tables])
    }

    pub fn add<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) {
        for expr in exprs {
            expr.for_each_column(&mut |table, column| {
                let of = &mut self.0[table];
                if !of.contains(&column) {
                    of.push(column);
                }
            });
        }
    }

    /// Of each table.
    pub fn tables(&self) -> &[Vec<usize>] {
        &self.0
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Scan(level) => {
                let Level { filters, late_filters, own_filters, hash, keys_only, access, .. } = &**level;
                self.add(filters.iter().chain(late_filters).chain(own_filters).chain(keys_only.iter().flatten()));
                self.add(hash.iter().flat_map(|hash| hash.inner.iter().chain(&hash.outer)));
                access.for_each_expr(&mut |expr| self.add([expr]));
            }
            Step::Leave { filters, .. } => self.add(filters),
            Step::Enter { .. } | Step::Test { .. } | Step::Match { .. } => {}
        }
    }
}

/// The columns that may have large values, are not read, and are in no key.
fn unread(schema: &TableSchema, read: &[usize]) -> Arc<[usize]> {
    let may_be_large = |column: &Column| column.ty.is_lob() || column.ty.row_bytes() > LARGE_VALUE as u64;
    let in_key = |position: usize| schema.indexes.iter().flat_map(|index| &index.parts).any(|p| p.column == position);
    let columns = schema.columns.iter().enumerate().filter(|(_, column)| may_be_large(column));
    columns.map(|(at, _)| at).filter(|at| !read.contains(at) && !in_key(*at)).collect()
}

/// Finds the tables whose rows may be made of keys. `read`: the columns of each table that are read by what is no step.
pub(super) fn cover(steps: &mut [Step], sources: &[Source], read: &[Vec<usize>]) {
    let mut all = ReadColumns(read.to_vec());
    steps.iter().for_each(|step| all.step(step));
    for step in steps {
        let Step::Scan(level) = step else { continue };
        if level.lock.is_some() {
            continue;
        }
        let (schema, read) = (sources[level.table].schema(), &all.0[level.table]);
        let covering = match &level.access {
            Access::Range(access) => Covering::new(schema, &access.key_def, read),
            Access::Skip(skip) => {
                let leading = skip.prefix.parts.iter().map(|part| part.column);
                let columns: Vec<usize> = read.iter().copied().chain(leading).collect();
                Covering::new(schema, &skip.access.key_def, &columns)
            }
            // Rows of which nothing is read are counted by their marks.
            Access::Full { .. } => Covering::new(schema, &KeyDef { parts: vec![] }, read),
            _ => None,
        };
        level.covering = covering.map(Arc::new);
        level.unread = unread(schema, read);
    }
}
