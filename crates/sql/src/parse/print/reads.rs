//! Which of its common tables a statement reads.
//!
//! MySQL gives a meaning to the query of a common table only where the table is read: names, privileges and types in one that
//! nothing reads are not looked at. So binding has to know before which ones are read. They are found by printing
//! into nothing: the printer comes to every table of every query, in expressions too, and notes the names without a
//! database. A name that an inner WITH defines does not leave that query, and what only an unread table reads is unread.

use super::Printer;
use crate::parse::ast::{Delete, Query, TableName, Update, With};
use crate::parse::lexer::Mode;
use rustc_hash::FxHashSet;
use std::fmt;

/// A statement that reads the tables of its WITH, if it has one.
#[derive(Clone, Copy)]
pub enum Reader<'a> {
    Query(&'a Query),
    Update(&'a Update),
    Delete(&'a Delete),
}

impl<'a> Reader<'a> {
    pub fn with(self) -> Option<&'a With> {
        match self {
            Reader::Query(query) => query.with.as_ref(),
            Reader::Update(update) => update.with.as_ref(),
            Reader::Delete(delete) => delete.with.as_ref(),
        }
    }
}

/// Names of tables, in lower case.
pub(super) type Names = FxHashSet<String>;

/// Takes no text.
struct Nowhere;

impl fmt::Write for Nowhere {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        Ok(())
    }
}

/// Whether each of the tables that a statement's own WITH defines is read.
pub fn are_read(reader: Reader<'_>) -> Vec<bool> {
    let Some(with) = reader.with() else { return Vec::new() };
    let mut nowhere = Nowhere;
    let mut printer = Printer { reads: Some(Names::default()), ..Printer::new(&mut nowhere, Mode::default()) };
    let done = match reader {
        Reader::Query(query) => printer.query_behind_with(query),
        Reader::Update(update) => printer.update_behind_with(update),
        Reader::Delete(delete) => printer.delete_behind_with(delete),
    };
    done.and_then(|()| printer.definitions_read(with)).expect("what takes no text takes all")
}

impl Printer<'_> {
    /// A query prints so that only the names that lead out of it are noted.
    pub(super) fn reads_of(&mut self, query: &Query) -> fmt::Result {
        let around = self.reads.replace(Names::default());
        self.query_behind_with(query)?;
        if let Some(with) = &query.with {
            self.definitions_read(with)?;
        }
        if let Some(reads) = &mut self.reads {
            reads.extend(around.into_iter().flatten());
        }
        Ok(())
    }

    /// Prints the definitions that are read, the last one first: it may read those before it.
    fn definitions_read(&mut self, with: &With) -> Result<Vec<bool>, fmt::Error> {
        let mut are_read = vec![false; with.tables.len()];
        for (table, is_read) in with.tables.iter().zip(&mut are_read).rev() {
            let name = table.name.to_ascii_lowercase();
            *is_read = self.reads.as_mut().is_some_and(|reads| reads.remove(&name));
            if *is_read {
                self.query(&table.query)?;
            }
            // There its name means itself.
            if let (true, Some(reads)) = (with.recursive, &mut self.reads) {
                reads.remove(&name);
            }
        }
        Ok(are_read)
    }

    pub(super) fn note_read(&mut self, table: &TableName) {
        if let (Some(reads), None) = (&mut self.reads, &table.database) {
            reads.insert(table.name.to_ascii_lowercase());
        }
    }
}
