//! Histograms of columns in the catalog: the same on all nodes, and there after a start.
//!
//! They are statistics: nothing is locked, and no row, partition or definition changes. The text is `sql`'s.

use crate::database::Database;
use crate::error::NodeError;
use rauk_manage::Command;
use rauk_manage::histograms::TableHistograms;
use rauk_types::{ColumnId, TableId};
use std::sync::Arc;

impl Database {
    /// Histograms of a table's columns; the same `Arc` while nothing has changed.
    pub fn histograms(&self, table: TableId) -> Option<Arc<TableHistograms>> {
        self.node.catalog.lock().catalog().histograms(table).cloned()
    }

    /// Sets (`Some`) or takes away (`None`) histograms of columns, all or none. Refused: the table or a column is gone, all histograms together are too large.
    pub async fn change_histograms(
        &self,
        table: TableId,
        changes: Vec<(ColumnId, Option<Arc<str>>)>,
    ) -> Result<(), NodeError> {
        self.change_by(Command::ChangeHistograms { table, changes }).await
    }
}
