//! Temporary tables: a session makes, changes and drops them here, and nobody else knows of them.
//!
//! A temporary table is a [`TableHandle`] like any other, with rows of its own ([`crate::table::own`]). No name leads
//! to it: the session keeps handles by name. A definition never changes: ALTER and TRUNCATE give a new table in the
//! place of the old one, whose handle is stale then, so that plans are made again. When the last handle, plan and
//! transaction that has it goes, its memory is given back.
//!
//! Their memory counts in the node's (`rauk_memory_limit`), because they outlive statements as stored rows do, and all
//! tables of a session have a limit of their own, because nobody but the session can drop them.

use crate::database::{Database, TableHandle};
use crate::ddl::{Convert, Copying, Look, look_at_rows};
use crate::error::NodeError;
use crate::node::Node;
use crate::table::TableInfo;
use crate::table::own::OwnRows;
use rauk_kernel::MemoryBudget;
use rauk_types::{TableId, TableSchema};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Table ids from here on are those of temporary tables; the catalog begins at 1, and counters are above.
const FIRST: u32 = 1 << 30;

/// The memory of a session's temporary tables.
pub struct TemporaryMemory(Arc<MemoryBudget>);

impl TemporaryMemory {
    pub fn set_limit(&self, bytes: u64) {
        self.0.set_limit(bytes);
    }

    pub fn used(&self) -> u64 {
        self.0.used()
    }
}

impl TableHandle {
    pub fn is_temporary(&self) -> bool {
        self.info().own.is_some()
    }

    /// The session has no table of its name any more, or another one.
    pub fn drop_temporary(&self) {
        assert!(self.is_temporary(), "stored tables are dropped by DDL");
        self.info().shared.set_dropped();
    }
}

impl Node {
    /// Ids come again after 2³⁰ tables: nobody but the session's own tables may not have the same.
    fn temporary_id(&self) -> TableId {
        TableId(FIRST | self.temporary_tables.fetch_add(1, Ordering::Relaxed) & (FIRST - 1))
    }

    fn make_temporary(&self, schema: TableSchema, budget: &Arc<MemoryBudget>) -> Arc<TableInfo> {
        let schemas = Node::complete(schema, || self.temporary_id());
        TableInfo::of_session(&schemas, &OwnRows::new(&schemas, budget.clone()))
    }
}

impl Database {
    /// For the temporary tables of one session.
    pub fn temporary_memory(&self, limit: u64) -> TemporaryMemory {
        TemporaryMemory(Arc::new(MemoryBudget::part_of(self.node.budget.clone(), limit)))
    }

    /// As [`Database::create_table`].
    pub fn create_temporary(&self, schema: TableSchema, memory: &TemporaryMemory) -> TableHandle {
        TableHandle::new(self.node.make_temporary(schema, &memory.0))
    }

    /// An empty table in the place of another.
    pub fn truncate_temporary(&self, old: &TableHandle) -> TableHandle {
        let rows = old.info().own.as_ref().expect("a temporary table");
        let new = self.node.make_temporary((**old.schema()).clone(), rows.budget());
        old.drop_temporary();
        TableHandle::new(new)
    }

    /// A table of another form, or name, in the place of one, with its rows, as [`Database::rewrite_seen_table`] makes
    /// it; gives how many rows it has. After an error the old table is what it was. No transaction has the old one.
    pub async fn alter_temporary(
        &self,
        old: &TableHandle,
        new: TableSchema,
        look: Option<&mut Look<'_>>,
        convert: &mut Convert<'_>,
    ) -> Result<(TableHandle, u64), NodeError> {
        let rows = old.info().own.as_ref().expect("a temporary table");
        let info = self.node.make_temporary(new, rows.budget());
        if let Some(look) = look {
            look_at_rows(&self.node, old.info(), look).await?;
        }
        let (into, mut patience) = (TableHandle::new(info.clone()), Default::default());
        let mut copying = Copying::new(&self.node, old.info(), into, None, convert, &mut patience);
        copying.pass().await?;
        let copied = copying.copied;
        let given = old.info().shared.auto_increment.peek() - 1;
        info.shared.auto_increment.observe(given.max(copied.highest), &self.node.log)?;
        if old.schema().hidden_key && info.schema.hidden_key {
            info.shared.hidden_keys.pass(&old.info().shared.hidden_keys, &self.node.log)?;
        }
        old.drop_temporary();
        Ok((TableHandle::new(info), copied.rows))
    }
}
