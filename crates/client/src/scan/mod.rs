//! Scans: bounds, direction, limit, filter and projection, all evaluated where the rows are; rows come in pages, the next of which is on its way while one is read.
//!
//! A [`Scan`] says what is wanted in the program's terms and is turned into keys, positions and filters when it starts, by the definition that the table has then. [`Rows`] carries it out.
//!
//! # Bounds
//!
//! A bound is a value for the first columns of the index, or for all of them. Columns without a value are free: `..=5` on an index over `(a, b)` ends behind the last row with `a = 5`. NULL is below
//! every value. In an index with descending columns bounds are about values all the same; bounds over columns of both directions have no meaning in terms of the index and are refused.

mod rows;

pub use rows::Rows;

use crate::condition::Condition;
use crate::convert::IntoKey;
use crate::definition::{Opened, Values};
use crate::{Error, ErrorKind, Record, Records, Row, Table};
use rauk_types::error::codes;
use rauk_types::key::prefix_successor;
use rauk_types::{Value, ValueRef};
use rauk_wire::{LockWish, Wanted};
use std::ops::{Bound, RangeBounds};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    Forward,
    Backward,
}

/// A scan as it is wanted; mistakes are noticed when it starts.
#[derive(Clone)]
#[must_use = "a scan does nothing before its rows are asked for"]
pub struct Scan {
    table: Table,
    /// The index by name; `None` is the primary key where one is needed.
    index: Option<String>,
    ordered: bool,
    low: Bound<Vec<Value>>,
    high: Bound<Vec<Value>>,
    direction: Direction,
    limit: u64,
    filter: Option<Condition>,
    columns: Option<Vec<String>>,
    for_update: bool,
}

/// Bounds that hold every row or, without any, none.
type Keys = Option<(Bound<Vec<u8>>, Bound<Vec<u8>>)>;

impl Scan {
    pub(crate) fn of_table(table: Table) -> Scan {
        Scan {
            table,
            index: None,
            ordered: false,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
            direction: Direction::Forward,
            limit: u64::MAX,
            filter: None,
            columns: None,
            for_update: false,
        }
    }

    pub(crate) fn of_index(table: Table, index: &str) -> Result<Scan, Error> {
        ordered_index(&table.current(), index)?;
        Ok(Scan { index: Some(index.to_owned()), ordered: true, ..Scan::of_table(table) })
    }

    /// Bounds on the index's columns, or on the first of them; of a scan without an index, on the primary key.
    pub fn range<K: IntoKey + Clone>(mut self, range: impl RangeBounds<K>) -> Scan {
        self.low = owned(range.start_bound());
        self.high = owned(range.end_bound());
        self
    }

    /// The rows whose first index columns have these values.
    pub fn prefix(mut self, key: impl IntoKey) -> Scan {
        self.low = owned(Bound::Included(&key));
        self.high = self.low.clone();
        self
    }

    /// Rows come in the order of the index, or against it.
    pub fn direction(mut self, direction: Direction) -> Scan {
        self.direction = direction;
        self.ordered = true;
        self
    }

    /// Most rows in all.
    pub fn limit(mut self, rows: u64) -> Scan {
        self.limit = rows;
        self
    }

    /// Only rows that fulfil this condition, and the earlier ones.
    pub fn filter(mut self, condition: Condition) -> Scan {
        self.filter = Some(match self.filter.take() {
            None => condition,
            Some(before) => before.and(condition),
        });
        self
    }

    /// Only these columns.
    pub fn columns(mut self, columns: &[&str]) -> Scan {
        self.columns = Some(columns.iter().map(|column| (*column).to_owned()).collect());
        self
    }

    /// Locks the rows; only within a transaction.
    pub fn for_update(mut self) -> Scan {
        self.for_update = true;
        self
    }

    /// Outside of transactions: one state of the table.
    pub fn rows(self) -> Rows<'static> {
        Rows::alone(self)
    }

    pub async fn collect(self) -> Result<Vec<Row>, Error> {
        let mut rows = self.rows();
        let mut all = Vec::new();
        while let Some(row) = rows.next().await? {
            all.push(row);
        }
        Ok(all)
    }

    pub async fn collect_records<R: Record>(self, records: &Records<R>) -> Result<Vec<R>, Error> {
        let mut rows = self.rows();
        let mut all = Vec::new();
        while let Some(record) = rows.next_record(records).await? {
            all.push(record);
        }
        Ok(all)
    }

    fn table(&self) -> &Table {
        &self.table
    }

    /// As a node understands it; `None`: no row can be in it.
    fn resolve(&self, opened: &Opened) -> Result<Option<rauk_wire::scan::Scan>, Error> {
        let bounded = self.low != Bound::Unbounded || self.high != Bound::Unbounded;
        let index = match &self.index {
            Some(name) => Some(ordered_index(opened, name)?),
            None if bounded || self.ordered => Some(ordered(opened, opened.primary()?)?),
            None => None,
        };
        let Some((low, high)) =
            index.map_or(Ok(Some((Bound::Unbounded, Bound::Unbounded))), |i| self.keys(opened, i))?
        else {
            return Ok(None);
        };
        let wanted = match &self.columns {
            None => Wanted::Row,
            Some(names) => Wanted::Columns(
                names
                    .iter()
                    .map(|name| opened.column(name).map(|position| position as u16))
                    .collect::<Result<_, _>>()?,
            ),
        };
        Ok(Some(rauk_wire::scan::Scan {
            table: opened.schema.id,
            version: opened.schema.version,
            index: index.map(|position| opened.index_schema(position).id),
            low,
            high,
            reverse: self.direction == Direction::Backward,
            ordered: self.ordered,
            lock: if self.for_update { LockWish::Exclusive } else { LockWish::None },
            partition: None,
            limit: self.limit,
            page_rows: 0,
            page_bytes: 0,
            filter: self.filter.as_ref().map(|filter| filter.resolve(&opened.schema)).transpose()?,
            wanted,
            begin: false,
        }))
    }

    /// The bounds as keys of the index at this position.
    fn keys(&self, opened: &Opened, index: usize) -> Result<Keys, Error> {
        let (low, high) = (values_of(&self.low), values_of(&self.high));
        // Where both bounds have the same values it does not matter which way the columns go.
        let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
        let parts = &opened.key_def(index).parts;
        let beyond = low.len().max(high.len()).min(parts.len());
        let descending = parts[same.min(beyond)..beyond].iter().filter(|part| part.descending).count();
        let swapped = match beyond - same.min(beyond) {
            0 => false,
            free if descending == free => true,
            _ if descending == 0 => false,
            _ => {
                let name = &opened.index_schema(index).name;
                let message = format!(
                    "bounds on columns of both directions of key '{name}' of table '{}': give fewer",
                    opened.name
                );
                return Err(Error::new(ErrorKind::InvalidValue, codes::WRONG_ARGUMENTS, message));
            }
        };
        let (first, last) = if swapped { (&self.high, &self.low) } else { (&self.low, &self.high) };
        let encode = |values: &Vec<Value>| {
            let mut key = Vec::new();
            opened.encode_key_prefix(index, &values, &mut key)?;
            Ok::<_, Error>(key)
        };
        let low = match first {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(values) => Bound::Included(encode(values)?),
            Bound::Excluded(values) => {
                let mut key = encode(values)?;
                match prefix_successor(&mut key) {
                    true => Bound::Included(key),
                    false if values.is_empty() => Bound::Unbounded,
                    false => return Ok(None),
                }
            }
        };
        let high = match last {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Excluded(values) if values.is_empty() => Bound::Unbounded,
            Bound::Excluded(values) => Bound::Excluded(encode(values)?),
            Bound::Included(values) => {
                let mut key = encode(values)?;
                match prefix_successor(&mut key) {
                    true => Bound::Excluded(key),
                    false => Bound::Unbounded,
                }
            }
        };
        let empty = match (&low, &high) {
            (Bound::Included(low), Bound::Excluded(high)) => low >= high,
            _ => false,
        };
        Ok((!empty).then_some((low, high)))
    }
}

fn owned<K: IntoKey>(bound: Bound<&K>) -> Bound<Vec<Value>> {
    bound.map(|key| {
        let mut values = Values::new();
        key.values(&mut values);
        values.into_iter().map(ValueRef::to_owned).collect()
    })
}

fn values_of(bound: &Bound<Vec<Value>>) -> &[Value] {
    match bound {
        Bound::Included(values) | Bound::Excluded(values) => values,
        Bound::Unbounded => &[],
    }
}

/// Position of an index that has an order.
fn ordered_index(opened: &Opened, name: &str) -> Result<usize, Error> {
    ordered(opened, opened.index(name)?)
}

fn ordered(opened: &Opened, position: usize) -> Result<usize, Error> {
    let index = opened.index_schema(position);
    if !index.is_ordered() {
        let message =
            format!("Key '{}' of table '{}' is USING HASH: it has no order to scan in", index.name, opened.name);
        return Err(Error::new(ErrorKind::UnknownIndex, codes::KEY_DOES_NOT_EXITS, message));
    }
    Ok(position)
}

#[cfg(all(test, feature = "embedded"))]
mod tests;
