//! Rows as expressions see them.
//!
//! A joined row is a chain: the row of each level points to the rows before it, so that putting one more table beside them copies nothing. Stored
//! rows are read in place; a TIMESTAMP becomes local time in the session's zone as its column is read.

use crate::expr::Columns;
use jiff::tz::TimeZone;
use rauk_types::{DateTime, RowView, Value, ValueRef};

/// What stands for one table in a joined row.
#[derive(Clone, Copy)]
pub(crate) enum Part<'a> {
    /// No table: the beginning of the chain.
    Root,
    Stored(RowView<'a>),
    Values(&'a [Value]),
    /// These tables are null rows.
    Nulls(&'a [usize]),
    /// Several tables: of one that is there twice the first counts. A null row is `Nulls` without tables.
    Several(&'a [(usize, Part<'a>)]),
}

#[derive(Clone, Copy)]
pub(crate) struct Joined<'a> {
    pub outer: Option<&'a Joined<'a>>,
    pub table: usize,
    pub part: Part<'a>,
    pub zone: &'a TimeZone,
}

impl<'a> Joined<'a> {
    pub fn root(zone: &'a TimeZone) -> Self {
        Joined { outer: None, table: usize::MAX, part: Part::Root, zone }
    }

    pub fn with(&'a self, table: usize, part: Part<'a>) -> Joined<'a> {
        Joined { outer: Some(self), table, part, zone: self.zone }
    }
}

impl Columns for Joined<'_> {
    #[inline]
    fn column(&self, table: usize, column: usize) -> ValueRef<'_> {
        local(self.stored(table, column), self.zone)
    }

    #[inline]
    fn stored(&self, table: usize, column: usize) -> ValueRef<'_> {
        let mut at = self;
        loop {
            match &at.part {
                Part::Stored(view) if at.table == table => return view.get(column),
                Part::Values(values) if at.table == table => return values[column].as_ref(),
                Part::Nulls(tables) if tables.contains(&table) => return ValueRef::Null,
                Part::Several(parts) => match parts.iter().find(|(of, _)| *of == table) {
                    Some((_, Part::Stored(view))) => return view.get(column),
                    Some((_, Part::Values(values))) => return values[column].as_ref(),
                    Some(_) => return ValueRef::Null,
                    None => {}
                },
                _ => {}
            }
            match at.outer {
                Some(outer) => at = outer,
                None => unreachable!("the plan reads table {table} before it is there"),
            }
        }
    }
}

/// A stored TIMESTAMP as local time; everything else as it is.
#[inline]
pub(crate) fn local<'a>(value: ValueRef<'a>, zone: &TimeZone) -> ValueRef<'a> {
    match value {
        ValueRef::Timestamp(0) => ValueRef::DateTime(DateTime::ZERO),
        ValueRef::Timestamp(micros) => {
            ValueRef::DateTime(DateTime::from_unix_micros(micros, zone).unwrap_or(DateTime::ZERO))
        }
        other => other,
    }
}

/// A group: its aggregates, and the columns kept from its first row.
pub(crate) struct GroupRow<'a> {
    pub aggregates: &'a [Value],
    pub carried: &'a [(usize, usize)],
    pub values: &'a [Value],
}

impl Columns for GroupRow<'_> {
    fn column(&self, table: usize, column: usize) -> ValueRef<'_> {
        match self.carried.iter().position(|c| *c == (table, column)) {
            // No row at all: COUNT(*) beside a column of an empty table.
            Some(at) => self.values.get(at).map_or(ValueRef::Null, Value::as_ref),
            None => unreachable!("the plan carries every column it reads after grouping"),
        }
    }

    fn group_value(&self, number: usize) -> ValueRef<'_> {
        self.aggregates[number].as_ref()
    }
}

/// Up to three rows of values, as INSERT has them.
pub(crate) struct Rows<'a> {
    pub rows: [&'a [Value]; 3],
    pub zone: &'a TimeZone,
}

impl Columns for Rows<'_> {
    fn column(&self, table: usize, column: usize) -> ValueRef<'_> {
        local(self.rows[table][column].as_ref(), self.zone)
    }
}

/// All columns of a stored row, as stored.
pub(crate) fn owned(view: &RowView<'_>, columns: usize) -> Vec<Value> {
    (0..columns).map(|column| view.get(column).to_owned()).collect()
}
