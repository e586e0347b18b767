//! Large values of rows: taking them out of whole rows, and putting sparse rows together again.
//!
//! Rows come whole: from statements, from the log, from other nodes. Here their large values are taken out
//! ([`rauk_types::row::large`]), before anything is stored. A value that the version before has, byte for byte, is that
//! version's: so an update of one of ten values stores one, and what the row's versions have in common is there once. A
//! row without large values pays one look at its length.
//!
//! *What goes out* ([`written`]) is sparse where the new version shares values with the committed one before it: the log and the replicas have that one. An
//! insert shares with nothing, not even with the deleted row in whose place it comes, so that whoever takes it in needs nothing.
//!
//! *What comes in sparse* ([`assemble`]) finds the kept values in the version before. On a replica that follows, that is always there. Where rows are restored it
//! may not be: see [`super::restore`].

use super::{Partition, Stop, Write};
use crate::budget::{MemoryBudget, MemoryFull, Purpose};
use rauk_types::row::large::{self, Account, LARGE_VALUE};
use rauk_types::row::sparse::{self, Mark, SparseRow, SparseValue};
use rauk_types::{LargeValue, RowImage, RowLayout, TableId};
use std::sync::Arc;

/// A row whose large values lie beside it.
#[derive(Clone, Debug, Default)]
pub(super) struct Apart {
    pub head: Vec<u8>,
    pub beside: Vec<LargeValue>,
}

impl Apart {
    pub fn image(&self) -> RowImage<'_> {
        RowImage { head: &self.head, beside: &self.beside }
    }
}

/// The row as it is to be stored.
#[inline]
pub(super) fn image<'a>(row: &'a [u8], apart: &'a Option<Apart>) -> RowImage<'a> {
    match apart {
        None => row.into(),
        Some(apart) => apart.image(),
    }
}

/// Takes the large values out of a whole row, after a version with the values `before`; `None`: it has none.
#[inline]
pub(super) fn take_apart(
    budget: &Arc<MemoryBudget>,
    layout: &RowLayout,
    row: &[u8],
    before: &[LargeValue],
    purpose: Purpose,
) -> Result<Option<Apart>, MemoryFull> {
    if row.len() <= LARGE_VALUE { Ok(None) } else { take_large(budget, layout, row, before, purpose) }
}

#[cold]
fn take_large(
    budget: &Arc<MemoryBudget>,
    layout: &RowLayout,
    row: &[u8],
    before: &[LargeValue],
    purpose: Purpose,
) -> Result<Option<Apart>, MemoryFull> {
    if !layout.has_large(row) {
        return Ok(None);
    }
    let mut head = Vec::new();
    let beside = large::take_apart(layout, row, &mut head, |bytes| {
        let old = before.iter().find(|old| old.bytes() == bytes);
        old.map_or_else(|| make(budget, bytes, purpose), |old| Ok(old.clone()))
    })?;
    Ok(Some(Apart { head, beside }))
}

/// A new value, counted.
fn make(budget: &Arc<MemoryBudget>, bytes: &[u8], purpose: Purpose) -> Result<LargeValue, MemoryFull> {
    let counted = LargeValue::counted(bytes.len());
    budget.check(counted, purpose)?;
    budget.add(counted);
    Ok(LargeValue::new(bytes, budget.clone() as Arc<dyn Account>))
}

/// What the log and the replicas must be told of a new version, after a committed one with the values `before`. `room`
/// is where it is put together.
pub(super) fn written<'a>(
    layout: &RowLayout,
    key: impl FnOnce(&mut Vec<u8>),
    row: RowImage<'a>,
    before: &[LargeValue],
    room: &'a mut Vec<u8>,
) -> Write<'a> {
    if !sparse::keeps_any(row, before) {
        return Write::Put { layout: layout.version, row: row.whole(layout, room) };
    }
    room.clear();
    let mut encoded = Vec::new();
    key(&mut encoded);
    sparse::append_sparse(&encoded, row, before, room);
    Write::Sparse { layout: layout.version, row: room }
}

/// A value of a sparse row that is on its way.
#[derive(Clone, Debug)]
pub(super) enum Coming {
    Here(LargeValue),
    /// It is kept, and the version that has it has not come.
    Missing(Mark),
}

impl Coming {
    pub fn here(&self) -> Option<&LargeValue> {
        match self {
            Coming::Here(value) => Some(value),
            Coming::Missing(_) => None,
        }
    }
}

/// The values of a sparse row, where the version before has the values `before`.
pub(super) fn find_values(budget: &Arc<MemoryBudget>, row: &SparseRow<'_>, before: &[LargeValue]) -> Vec<Coming> {
    let find = |value: &SparseValue<'_>| match value {
        SparseValue::New(bytes) => Coming::Here(make(budget, bytes, Purpose::Relief).expect("relief is not refused")),
        SparseValue::Kept(mark) => {
            mark.find(before).map_or(Coming::Missing(*mark), |value| Coming::Here(value.clone()))
        }
    };
    row.values.iter().map(find).collect()
}

/// All of them; `None`: some are missing.
pub(super) fn all_here(values: &[Coming]) -> Option<Vec<LargeValue>> {
    values.iter().map(|value| value.here().cloned()).collect()
}

/// Puts a sparse row together, after a version with the values `before`. [`Stop::NoRow`]: what it keeps is not there.
pub(super) fn assemble(budget: &Arc<MemoryBudget>, row: &SparseRow<'_>, before: &[LargeValue]) -> Result<Apart, Stop> {
    let beside = all_here(&find_values(budget, row, before)).ok_or(Stop::NoRow)?;
    Ok(Apart { head: row.head.to_vec(), beside })
}

impl Partition {
    /// Of a row in the table's newest layout that comes after no other.
    #[inline]
    pub(super) fn take_apart(&self, table: TableId, row: &[u8], purpose: Purpose) -> Result<Option<Apart>, MemoryFull> {
        if row.len() <= LARGE_VALUE {
            return Ok(None);
        }
        take_large(&self.budget, self.fragments[&table].schema.layout(), row, &[], purpose)
    }
}
