//! Rows that several indexes have in common: scans of one key of an index that leave out rows without an entry at given keys of others.
//!
//! The entries of one key lie in the order of row ids, so those of several keys are walked side by side, without the rows: what is missing in one of them
//! is left out. Entries that are far ahead in one index let the others jump.
//!
//! Nothing that is to be seen is left out: a version that some snapshot sees has all its entries, in the same hold in which it is looked for. What is
//! not left out may still be something else, since an entry may be of another version than the one that is seen. The scan's own key is checked as in every
//! scan; whoever asks for the rows checks what the other keys mean.
//!
//! A slice looks at no more entries of each index than it would of one.

use super::fragment::{Fragment, Index};
use super::scan::Scanner;
use super::{ScanEnd, ScanPosition, ScanRequest, ScanRow, Stop, Verdict};
use crate::row_store::RowId;
use rauk_types::IndexId;
use std::ops::{Bound, ControlFlow};

/// Entries of one key, from some row on; ids ascend.
struct Entries {
    ids: Vec<RowId>,
    /// Nothing lies behind them.
    all: bool,
}

impl Index {
    /// Up to `most` entries of a key, from a row on.
    fn entries_of(&self, key: &[u8], from: RowId, most: usize) -> Entries {
        let mut entries = Entries { ids: Vec::new(), all: true };
        let after = from.0.checked_sub(1).map(|before| (key, RowId(before)));
        self.tree.scan(Bound::Included(key), Bound::Included(key), false, after, &mut |_, id| {
            if entries.ids.len() == most {
                entries.all = false;
                return ControlFlow::Break(());
            }
            entries.ids.push(id);
            ControlFlow::Continue(())
        });
        entries
    }
}

impl Entries {
    /// Keeps what another has too.
    fn keep_common(&mut self, other: &Entries) {
        let mut rest = other.ids.as_slice();
        self.ids.retain(|id| {
            rest = &rest[rest.partition_point(|of| of < id)..];
            rest.first() == Some(id)
        });
    }
}

impl Scanner<'_, '_> {
    /// A slice of a request that names other keys.
    pub(super) fn common(
        &mut self,
        index: &Index,
        request: &ScanRequest,
        position: &mut ScanPosition,
        slice: usize,
        visit: &mut dyn FnMut(&ScanRow<'_>) -> Verdict,
    ) -> Result<ScanEnd, Stop> {
        let Bound::Included(key) = &request.low else {
            unreachable!("a scan by several keys is of one key of each index")
        };
        assert!(!request.reverse, "a scan by several keys goes upward");
        let most = slice.max(1);
        // No row before this one is looked for.
        let mut from = match position {
            ScanPosition::AfterEntry(_, RowId(id)) => RowId(*id + 1),
            ScanPosition::BeforeEntry(_, id) => *id,
            _ => RowId(0),
        };
        // Up to this one the entries of all keys are known.
        let mut known = RowId(u32::MAX);
        // Behind this one some key has no entry.
        let mut last = RowId(u32::MAX);
        let mut common: Option<Entries> = None;
        let keys = std::iter::once((index, key)).chain(others(self.fragment, request)?);
        for (index, key) in keys {
            let entries = index.entries_of(key, from, most);
            let (Some(&first), Some(&end)) = (entries.ids.first(), entries.ids.last()) else {
                return Ok(ScanEnd::Finished);
            };
            from = from.max(first);
            match entries.all {
                true => last = last.min(end),
                false => known = known.min(end),
            }
            match &mut common {
                Some(common) => common.keep_common(&entries),
                None => common = Some(entries),
            }
        }
        for id in common.into_iter().flat_map(|common| common.ids).take_while(|id| *id <= known) {
            match self.row(id, Some((index, key)), visit) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => {
                    *position = ScanPosition::AfterEntry(key.clone(), id);
                    return Ok(ScanEnd::More);
                }
                Err(stop) => {
                    *position = ScanPosition::BeforeEntry(key.clone(), id);
                    return Err(stop);
                }
            }
        }
        if last <= known {
            return Ok(ScanEnd::Finished);
        }
        // Before the first entry of a key there is nothing either, however far it is.
        *position = ScanPosition::AfterEntry(key.clone(), known.max(RowId(from.0.saturating_sub(1))));
        Ok(ScanEnd::More)
    }
}

/// The other indexes of a request, with their keys.
fn others<'s>(fragment: &'s Fragment, request: &'s ScanRequest) -> Result<Vec<(&'s Index, &'s Vec<u8>)>, Stop> {
    let index = |(id, key): &'s (IndexId, Vec<u8>)| {
        let at = fragment.index_position(*id).ok_or(Stop::StaleSchema)?;
        Ok((&fragment.indexes[at], key))
    };
    request.also.iter().map(index).collect()
}
