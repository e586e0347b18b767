//! Scans that do without rows, within the random histories: each gives what the rows give. Covering ones make rows of keys; those of several keys leave
//! out what is missing in one of the indexes. And lookups of several ranges in one call, each of which gives what a
//! scan of it gives.

use super::*;
use crate::partition::{Lookup, LookupPosition, ScanRow, Span};
use rauk_types::key::prefix_successor;
use rauk_types::{Covering, KeyDef, ValueRef};

impl Model {
    /// The same scan with rows made of keys, where it is by an index; `found` is what the rows gave.
    pub(super) fn look_covering(
        &mut self,
        actor: Option<usize>,
        request: &ScanRequest,
        at: ReadAt,
        slice: usize,
        found: &[(Vec<u8>, Row)],
    ) {
        let schema = self.w.schema.clone();
        let def = match request.index {
            Some(id) => schema.key_def(schema.indexes.iter().find(|i| i.id == id).expect("it is in the schema")),
            // Rows are counted by their marks.
            None => KeyDef { parts: vec![] },
        };
        let columns: Vec<usize> = def.parts.iter().map(|part| part.column).collect();
        let covering = Covering::new(&schema, &def, &columns).expect("its keys say all columns");
        let request = ScanRequest { covering: Some(Arc::new(covering)), ..request.clone() };
        let others: Vec<usize> = (0..3).filter(|column| !columns.contains(column)).collect();
        let nothing = |value: ValueRef<'_>| {
            value.is_null() || value.as_integer() == Some(0) || value.as_bytes().is_some_and(<[u8]>::is_empty)
        };
        let mut covered = Vec::new();
        let mut made = 0;
        let mut visit = |row: &ScanRow<'_>| {
            covered.push((row.key.to_vec(), columns.iter().map(|c| row.row.get(*c).to_owned()).collect::<Vec<_>>()));
            made += u64::from(others.iter().all(|column| nothing(row.row.get(*column))));
            Verdict::Keep
        };
        let mut position = ScanPosition::Start;
        let mut access = self.w.access(actor.map(|i| &self.actors[i].txn), at);
        while self.w.p.scan(&request, &mut position, slice, &mut access, &mut visit).expect("as the rows were read")
            == ScanEnd::More
        {}
        self.w.observed = access.observed.0;
        self.made_of_keys += made;
        let expected = found.iter().map(|(key, row)| {
            let values = values(row);
            (key.clone(), columns.iter().map(|column| values[*column].clone()).collect::<Vec<_>>())
        });
        assert_eq!(covered, expected.collect::<Vec<_>>(), "{request:?} at {at:?}");
    }

    /// The range of a scan and the keys that it found, looked up in one call.
    pub(super) fn look_spans(
        &mut self,
        actor: Option<usize>,
        request: &ScanRequest,
        at: ReadAt,
        slice: usize,
        found: &[(Vec<u8>, Row)],
    ) {
        let Some(index) = request.index else { return };
        let mut ends: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
        for (key, _) in found {
            let mut next = key.clone();
            ends.push((key.clone(), prefix_successor(&mut next).then_some(next)));
            // Nothing lies in it.
            ends.push((key.clone(), Some(key.clone())));
        }
        ends.push(match (&request.low, &request.high) {
            (Bound::Included(low), Bound::Excluded(high)) => (low.clone(), Some(high.clone())),
            _ => (Vec::new(), None),
        });
        let spans: Vec<Span<'_>> = ends.iter().map(|(low, high)| Span { low, high: high.as_deref() }).collect();
        let lookup = Lookup { table: TABLE, index, spans: &spans, covering: None, lock: None };
        let mut position = LookupPosition::default();
        let mut access = self.w.access(actor.map(|i| &self.actors[i].txn), at);
        let mut seen: Vec<Vec<(Vec<u8>, Row)>> = vec![Vec::new(); spans.len()];
        let mut last = 0;
        let mut visit = |span: usize, row: &ScanRow<'_>| {
            assert!(last <= span, "range by range");
            last = span;
            seen[span].push((row.key.to_vec(), decode(&row.row)));
            // It goes on behind the row at which it was stopped.
            if seen[span].len().is_multiple_of(3) { Verdict::KeepAndStop } else { Verdict::Keep }
        };
        while self.w.p.look_up(&lookup, &mut position, slice, &mut access, &mut visit).expect("as the rows were read")
            == ScanEnd::More
        {}
        self.w.observed = access.observed.0;
        let mut found = found.to_vec();
        if request.reverse {
            found.reverse();
        }
        for ((low, high), mut seen) in ends.iter().zip(seen) {
            let inside = |(key, _): &&(Vec<u8>, Row)| low <= key && high.as_ref().is_none_or(|high| key < high);
            let mut expected: Vec<_> = found.iter().filter(inside).cloned().collect();
            assert!(seen.is_sorted_by(|a, b| a.0 <= b.0), "in the order of the index");
            seen.sort();
            expected.sort();
            assert_eq!(seen, expected, "{low:?} to {high:?} by {index:?} at {at:?}");
        }
    }

    /// Rows that have one of their keys in each of two indexes.
    pub(super) fn look_common(&mut self, actor: Option<usize>, at: ReadAt, slice: usize, found: &[(Vec<u8>, Row)]) {
        let Some((_, row)) = found.get(found.len() / 2) else { return };
        let (k, v) = (self.index_key(Some(BY_K), row), self.index_key(Some(BY_V), row));
        for (one, other) in [((BY_K, &k), (BY_V, &v)), ((BY_V, &v), (BY_K, &k))] {
            let key = Bound::Included(one.1.clone());
            let alone = ScanRequest { low: key.clone(), high: key, ..whole(Some(one.0)) };
            let both = ScanRequest { also: vec![(other.0, other.1.clone())].into(), ..alone.clone() };
            // Some row may belong to a transaction that is prepared.
            let Ok(mut expected) = self.w.scan(actor.map(|i| &self.actors[i].txn), &alone, at, 99) else { continue };
            let mut rows = self.w.scan(actor.map(|i| &self.actors[i].txn), &both, at, slice).expect("as before");
            let meets = |row: &Row| self.index_key(Some(other.0), row) == *other.1;
            expected.retain(|(_, row)| meets(row));
            rows.retain(|(_, row)| meets(row));
            assert_eq!(rows, expected, "{both:?} at {at:?}");
            self.in_common += rows.len() as u64;
        }
    }
}
