//! The catalog of one node on disk: a journal of commands, begun by a snapshot each time it is compacted.
//!
//! A command is checked against a copy of the catalog, written and synced, and only then becomes visible: what anybody has seen is
//! durable, and what the disk refused has not happened. Contents are JSON, since a catalog is small and is best read by people when
//! something went wrong.

use crate::catalog::{Applied, Catalog};
use crate::command::Command;
use crate::error::CatalogError;
use rauk_log::{DatabaseId, Disk, Journal, LogError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The journal's path.
pub const PATH: &str = "catalog.journal";
/// Journals below this are not worth compacting.
const COMPACT_BYTES: u64 = 256 << 10;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Refused(#[from] CatalogError),
    /// After a full disk nothing has happened; all else is final, and whether the command took effect shows when the node starts again.
    #[error(transparent)]
    Log(#[from] LogError),
}

#[derive(Serialize)]
enum EntryRef<'a> {
    Snapshot(&'a Catalog),
    Command(&'a Command),
}

#[derive(Deserialize)]
enum Entry {
    Snapshot(Box<Catalog>),
    Command(Box<Command>),
}

pub struct CatalogStore {
    catalog: Catalog,
    journal: Journal,
    /// Size of the journal after the last compaction.
    compacted_bytes: u64,
}

impl CatalogStore {
    /// Reads the catalog, which is empty in a new database.
    pub fn open(disk: &Arc<dyn Disk>, database: DatabaseId) -> Result<CatalogStore, LogError> {
        let (journal, entries) = Journal::open(disk, PATH, database)?;
        let mut catalog = Catalog::default();
        let mut compacted_bytes = 0;
        for entry in entries {
            let damaged = |what: String| LogError::Damaged {
                file: PATH.to_string(),
                offset: 0,
                what: format!("entry {}: {what}", entry.sequence),
            };
            match serde_json::from_slice(&entry.content).map_err(|e| damaged(e.to_string()))? {
                Entry::Snapshot(snapshot) => {
                    catalog = *snapshot;
                    catalog.after_load();
                    compacted_bytes = entry.content.len() as u64;
                }
                Entry::Command(command) => {
                    catalog.apply(&command).map_err(|e| damaged(e.to_string()))?;
                }
            }
        }
        Ok(CatalogStore { catalog, journal, compacted_bytes })
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Carries out a command; it is durable when this returns.
    pub fn execute(&mut self, command: &Command) -> Result<Applied, StoreError> {
        let mut after = self.catalog.clone();
        let applied = after.apply(command)?;
        self.journal.append(&encode(&EntryRef::Command(command)))?;
        self.catalog = after;
        Ok(applied)
    }

    /// Replaces the journal by a snapshot when it has grown much since the last time.
    pub fn compact(&mut self) -> Result<(), LogError> {
        if self.journal.bytes() < COMPACT_BYTES.max(self.compacted_bytes * 4) {
            return Ok(());
        }
        let content = encode(&EntryRef::Snapshot(&self.catalog));
        self.compacted_bytes = content.len() as u64;
        self.journal.compact(&[content])
    }
}

fn encode(entry: &EntryRef<'_>) -> Vec<u8> {
    serde_json::to_vec(entry).expect("a catalog can always be written as JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_log::MemoryDisk;
    use rauk_types::Collation;

    const ID: DatabaseId = DatabaseId([7; 16]);

    fn create(name: &str) -> Command {
        Command::CreateDatabase { name: name.into(), collation: Collation::DEFAULT }
    }

    #[test]
    fn what_was_executed_is_there_again() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let mut store = CatalogStore::open(&disk, ID).unwrap();
        store.execute(&create("a")).unwrap();
        assert!(matches!(store.execute(&create("a")), Err(StoreError::Refused(CatalogError::DatabaseExists(_)))));
        let settings = vec![("k".to_string(), Some("v".to_string()))];
        store.execute(&Command::Settings { changes: settings }).unwrap();
        let expected = store.catalog().clone();
        drop(store);
        assert_eq!(*CatalogStore::open(&disk, ID).unwrap().catalog(), expected);
    }

    #[test]
    fn compaction_keeps_the_state() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let mut store = CatalogStore::open(&disk, ID).unwrap();
        store.execute(&create("a")).unwrap();
        let long = "x".repeat(10_000);
        for i in 0..40 {
            let settings = vec![(format!("k{}", i % 2), Some(long.clone()))];
            store.execute(&Command::Settings { changes: settings }).unwrap();
        }
        let before = store.journal.bytes();
        store.compact().unwrap();
        assert!(store.journal.bytes() < before / 4);
        store.execute(&create("b")).unwrap();
        let expected = store.catalog().clone();
        drop(store);
        let store = CatalogStore::open(&disk, ID).unwrap();
        assert_eq!(*store.catalog(), expected);
        assert_eq!(store.catalog().databases().count(), 2);
    }
}
