//! Views: create, replace, drop, and RENAME where some of the names are views'.
//!
//! A view has no rows and no partitions, so nothing is locked and nothing but the catalog changes: one command to the journal, or to the manage group of a
//! cluster. Statements find views by [`Database::view`]; a plan made of one is checked by [`Database::catalog_version`], which moves with every such command.

use super::TableName;
use super::tables::Renamed;
use crate::database::Database;
use crate::error::NodeError;
use rauk_manage::Command;
use rauk_types::ViewSchema;
use std::sync::Arc;

impl Database {
    pub fn view(&self, database: &str, name: &str) -> Option<Arc<ViewSchema>> {
        self.node.catalog.lock().catalog().view(database, name).cloned()
    }

    /// Views of a database, sorted by name; of one that is not there: none.
    pub fn views(&self, database: &str) -> Vec<Arc<ViewSchema>> {
        self.node.catalog.lock().catalog().views_of(database).cloned().collect()
    }

    /// Creates a view; `replace`: in the place of a view of its name. Errors: 1050, 1049.
    pub async fn create_view(&self, view: ViewSchema, replace: bool) -> Result<(), NodeError> {
        self.change_by(Command::CreateView { view: Arc::new(view), replace }).await
    }

    /// Drops views, all or none. Error: 1146.
    pub async fn drop_views(&self, views: Vec<TableName>) -> Result<(), NodeError> {
        self.change_by(Command::DropViews { views }).await
    }
}

impl Renamed {
    /// The command that gives tables and views their new names.
    pub(super) fn command(&self) -> Command {
        let tables = self.tables.iter().flat_map(|t| t.family().cloned()).collect();
        match self.views.is_empty() {
            true => Command::ReplaceDefinitions { tables },
            false => Command::Rename { tables, views: self.views.clone() },
        }
    }
}
