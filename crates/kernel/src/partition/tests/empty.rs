//! Tables that have never had a row: they are as any other, whatever tables they share an empty fragment with.

use super::support::*;
use crate::partition::{ReadAt, Stop};
use rauk_types::{TableId, TableSchema, Timestamp, key};
use std::sync::Arc;

/// A table of the same shape as [`TABLE`].
fn leaf(id: u32) -> Arc<TableSchema> {
    Arc::new(TableSchema { id: TableId(id), name: format!("leaf {id}"), ..(*schema(false, true)).clone() })
}

/// Whether a row with the first key is in a table.
fn has_row(w: &mut World, table: u32, at: u64) -> Result<bool, Stop> {
    let key = w.key(1);
    let mut access = w.access(None, ReadAt::Snapshot(Timestamp(at)));
    w.p.read(TableId(table), &key, key::hash(&key), &mut access, |row| row.is_some())
}

#[test]
fn a_row_of_one_table_is_in_no_other() {
    let mut w = World::new(schema(false, true));
    (10..20).for_each(|id| w.p.create_table(leaf(id)));
    w.p.restore_put(TableId(13), 0, &w.encode(&(1, Some(1), vec![1])), Timestamp(5)).unwrap();
    w.p.finish_restore().unwrap();
    w.p.validate();
    for id in 10..20 {
        assert_eq!(has_row(&mut w, id, 9), Ok(id == 13));
        assert_eq!(w.p.schema(TableId(id)).unwrap().name, format!("leaf {id}"));
        assert_eq!(w.p.table_usage(TableId(id)).unwrap().rows, u64::from(id == 13));
    }
    w.p.drop_table(TableId(12));
    w.p.drop_table(TableId(13));
    assert_eq!(has_row(&mut w, 13, 9), Err(Stop::StaleSchema));
    assert_eq!(has_row(&mut w, 14, 9), Ok(false));
    w.p.validate();
}

#[test]
fn snapshots_from_before_a_copy_are_refused_where_no_row_came_too() {
    let mut w = World::new(schema(false, true));
    w.p.create_table(leaf(10));
    w.p.create_table(leaf(11));
    w.p.restore_put(TableId(11), 0, &w.encode(&(1, Some(1), vec![1])), Timestamp(5)).unwrap();
    w.p.finish_restore().unwrap();
    w.p.create_table(leaf(12));
    let altered = |id| Arc::new(TableSchema { version: 2, ..(*leaf(id)).clone() });
    w.p.alter_table(altered(10));
    for (table, early, late) in
        [(10, Err(Stop::SnapshotTooOld), false), (11, Err(Stop::SnapshotTooOld), true), (12, Ok(false), false)]
    {
        assert_eq!(has_row(&mut w, table, 4), early, "table {table}");
        assert_eq!(has_row(&mut w, table, 5), Ok(late), "table {table}");
    }
    // A fragment of its own keeps what was known of the empty one.
    w.p.restore_put(TableId(10), 0, &w.encode(&(2, Some(1), vec![1])), Timestamp(7)).unwrap();
    assert_eq!(has_row(&mut w, 10, 4), Err(Stop::SnapshotTooOld));
    assert_eq!(has_row(&mut w, 10, 5), Ok(false));
    w.p.finish_restore().unwrap();
    w.p.validate();
}

#[test]
fn an_index_that_an_empty_table_gets_is_its_own() {
    let mut w = World::new(schema(false, true));
    w.p.create_table(leaf(10));
    w.p.create_table(leaf(11));
    let mut more = (*leaf(10)).clone();
    more.indexes.push(index(BY_Y, &[(1, true)]));
    w.p.alter_table(Arc::new(more));
    let count = |w: &World, table| {
        w.p.estimate(TableId(table), Some(BY_Y), std::ops::Bound::Unbounded, std::ops::Bound::Unbounded)
    };
    w.p.restore_put(TableId(10), 0, &w.encode(&(1, Some(1), vec![1])), Timestamp(5)).unwrap();
    w.p.restore_put(TableId(11), 0, &w.encode(&(1, Some(1), vec![1])), Timestamp(5)).unwrap();
    w.p.finish_restore().unwrap();
    assert_eq!((count(&w, 10), count(&w, 11)), (Some(1), None));
    w.p.validate();
}
