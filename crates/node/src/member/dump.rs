//! A look into one replica of a partition, for tests that compare replicas and catalogs when nothing goes on.

use crate::Database;
use rauk_kernel::RowId;
use rauk_types::{RowView, TableId, TableSchema, Timestamp, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The newest committed rows: by table and encoded primary key, when each was committed, and its bytes.
pub type Rows = BTreeMap<(TableId, Vec<u8>), (Timestamp, Vec<u8>)>;

impl Database {
    /// All rows of the replica that this node holds, whatever its role. Copies everything, and is for tests.
    ///
    /// # Panics
    /// If the partition is at work for ten seconds.
    #[doc(hidden)]
    pub fn dump_partition(&self, partition: u16) -> Rows {
        let tables = self.node.tables.all();
        let visit = |p: &mut rauk_kernel::Partition| {
            let mut found = Rows::new();
            for table in &tables {
                let mut next = Some(RowId(0));
                while let Some(from) = next {
                    p.finish_ends();
                    next = p.checkpoint_slice(table.schema.id, from, 1000, &mut |layout, time, bytes| {
                        let mut key = Vec::new();
                        table.primary.encode_row(&RowView::new(&table.schema, layout, bytes), &mut key);
                        found.insert((table.schema.id, key), (time, bytes.to_vec()));
                    });
                }
            }
            found
        };
        self.when_free(partition, visit)
    }

    /// Transactions that have locks, writes or waits in the replica that this node holds.
    ///
    /// # Panics
    /// If the partition is at work for ten seconds.
    #[doc(hidden)]
    pub fn open_in_partition(&self, partition: u16) -> Vec<TxnId> {
        self.when_free(partition, |p| {
            p.finish_ends();
            p.open_transactions()
        })
    }

    /// The tables of the replica that this node holds, with their definitions there.
    ///
    /// # Panics
    /// If the partition is at work for ten seconds.
    #[doc(hidden)]
    pub fn placed_tables(&self, partition: u16) -> BTreeMap<TableId, Arc<TableSchema>> {
        let visit = |p: &mut rauk_kernel::Partition| {
            let schema = |id: TableId| (id, p.schema(id).expect("it is there").clone());
            p.tables().into_iter().map(schema).collect()
        };
        self.when_free(partition, visit)
    }

    /// Visits the partition once its guard is free: the scrub and the comparison of replicas take it for a slice at any time.
    fn when_free<T>(&self, partition: u16, mut visit: impl FnMut(&mut rauk_kernel::Partition) -> T) -> T {
        let patience = std::time::Duration::from_secs(10);
        let began = std::time::Instant::now();
        loop {
            match self.node.partitions[usize::from(partition)].try_with(&mut visit) {
                Ok(found) => return found,
                Err(_) if began.elapsed() < patience => std::thread::yield_now(),
                Err(_) => panic!("partition {partition} is at work"),
            }
        }
    }
}
