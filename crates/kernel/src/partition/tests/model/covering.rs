//! Covering scans within the random histories: each gives what the rows give.

use super::*;
use crate::partition::ScanRow;
use rauk_types::{Covering, ValueRef};
use std::sync::Arc;

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
        let Some(index) = request.index else { return };
        let schema = self.w.schema.clone();
        let def = schema.key_def(schema.indexes.iter().find(|i| i.id == index).expect("it is in the schema"));
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
}
