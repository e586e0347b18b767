//! The catalog of one node on disk: a journal of commands, begun by a snapshot each time it is compacted.
//!
//! A command is checked against a copy of the catalog, written and synced, and only then becomes visible: what anybody has seen is
//! durable, and what the disk refused has not happened. Contents are JSON, since a catalog is small and is best read by people when
//! something went wrong.
//!
//! The journal claims what it has in the directory's superblocks before a command is visible: a journal that is missing, older or damaged is refused.
//!
//! In a cluster the catalog is the manage group's, and a process only has a *mirror* of it: the same reading side, without a journal and without commands.

use crate::catalog::{Applied, Catalog};
use crate::command::Command;
use crate::error::CatalogError;
use rauk_log::{DatabaseId, Journal, LogError, Superblocks};
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
    /// `None`: a mirror.
    kept: Option<Kept>,
}

struct Kept {
    journal: Journal,
    /// Size of the journal after the last compaction.
    compacted_bytes: u64,
}

impl CatalogStore {
    /// Reads the catalog, which is empty in a new database, and changes nothing on disk. It takes commands after [`CatalogStore::settle`].
    pub fn read(superblocks: &Arc<Superblocks>, database: DatabaseId) -> Result<CatalogStore, LogError> {
        let (journal, entries) = Journal::read(superblocks, PATH, database)?;
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
        Ok(CatalogStore { catalog, kept: Some(Kept { journal, compacted_bytes }) })
    }

    /// Whether the directory is that of a node alone: it has a catalog of its own.
    pub fn is_claimed(superblocks: &Superblocks) -> bool {
        superblocks.claims().journals.contains_key(PATH)
    }

    /// The directory has become a cluster's: the manage group has the catalog. Does nothing the second time.
    pub fn give_up(superblocks: &Superblocks) -> Result<(), LogError> {
        Journal::remove(superblocks, PATH)
    }

    /// Makes the journal ready for commands: to be called once, when everything else in the directory has been checked.
    pub fn settle(&mut self) -> Result<(), LogError> {
        self.kept.as_mut().map_or(Ok(()), |kept| kept.journal.settle())
    }

    /// A copy of a catalog that is kept elsewhere.
    pub fn mirror(catalog: Catalog) -> CatalogStore {
        CatalogStore { catalog, kept: None }
    }

    /// Replaces what a mirror shows.
    pub fn set(&mut self, catalog: Catalog) {
        assert!(self.kept.is_none(), "a catalog with a journal changes by commands only");
        self.catalog = catalog;
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Carries out a command; it is durable when this returns. Not for mirrors, whose changes come from the manage group.
    pub fn execute(&mut self, command: &Command) -> Result<Applied, StoreError> {
        let kept = self.kept.as_mut().expect("a mirror of the catalog takes no commands");
        let mut after = self.catalog.clone();
        let applied = after.apply(command)?;
        kept.journal.append(&encode(&EntryRef::Command(command)))?;
        self.catalog = after;
        Ok(applied)
    }

    /// Replaces the journal by a snapshot when it has grown much since the last time. A mirror has none.
    pub fn compact(&mut self) -> Result<(), LogError> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        if kept.journal.bytes() < COMPACT_BYTES.max(kept.compacted_bytes * 4) {
            return Ok(());
        }
        let content = encode(&EntryRef::Snapshot(&self.catalog));
        kept.compacted_bytes = content.len() as u64;
        kept.journal.compact(&[content])
    }
}

fn encode(entry: &EntryRef<'_>) -> Vec<u8> {
    serde_json::to_vec(entry).expect("a catalog can always be written as JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::SettingChange;
    use rauk_log::{Disk, MemoryDisk};
    use rauk_types::Collation;

    const ID: DatabaseId = DatabaseId([7; 16]);

    fn create(name: &str) -> Command {
        Command::CreateDatabase { name: name.into(), collation: Collation::DEFAULT, comment: String::new() }
    }

    fn open(disk: &Arc<dyn Disk>) -> CatalogStore {
        let superblocks = Arc::new(Superblocks::load(disk).unwrap());
        let mut store = CatalogStore::read(&superblocks, ID).unwrap();
        store.settle().unwrap();
        store
    }

    #[test]
    fn what_was_executed_is_there_again() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let mut store = open(&disk);
        store.execute(&create("a")).unwrap();
        assert!(matches!(store.execute(&create("a")), Err(StoreError::Refused(CatalogError::DatabaseExists(_)))));
        let settings = vec![("k".to_string(), Some("v".to_string()))];
        store.execute(&Command::Settings { changes: settings }).unwrap();
        let expected = store.catalog().clone();
        drop(store);
        assert_eq!(*open(&disk).catalog(), expected);
    }

    #[test]
    fn a_refused_change_of_settings_is_not_in_the_journal() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let mut store = open(&disk);
        let change = |from: Option<&str>, to: &str| Command::ChangeSettings {
            changes: vec![SettingChange { key: "k".into(), from: from.map(Into::into), to: Some(to.into()) }],
        };
        store.execute(&change(None, "1")).unwrap();
        store.execute(&change(Some("1"), "2")).unwrap();
        let refused = store.execute(&change(Some("1"), "3"));
        assert!(matches!(refused, Err(StoreError::Refused(CatalogError::SettingsChanged))));
        drop(store);
        assert_eq!(open(&disk).catalog().setting("k"), Some("2"));
    }

    /// As they are on disks.
    #[test]
    fn commands_about_settings_keep_their_encoding() {
        let written = [
            (
                r#"{"Settings":{"changes":[["a","1"],["b",null]]}}"#,
                Command::Settings { changes: vec![("a".into(), Some("1".into())), ("b".into(), None)] },
            ),
            (
                r#"{"FirstSettings":{"settings":[["a","1"]]}}"#,
                Command::FirstSettings { settings: vec![("a".into(), "1".into())] },
            ),
            (
                r#"{"ChangeSettings":{"changes":[{"key":"a","from":null,"to":"1"}]}}"#,
                Command::ChangeSettings {
                    changes: vec![SettingChange { key: "a".into(), from: None, to: Some("1".into()) }],
                },
            ),
        ];
        for (text, command) in written {
            assert_eq!(serde_json::to_string(&command).unwrap(), text);
            assert_eq!(serde_json::from_str::<Command>(text).unwrap(), command);
        }
    }

    #[test]
    fn compaction_keeps_the_state() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let mut store = open(&disk);
        store.execute(&create("a")).unwrap();
        let long = "x".repeat(10_000);
        for i in 0..40 {
            let settings = vec![(format!("k{}", i % 2), Some(long.clone()))];
            store.execute(&Command::Settings { changes: settings }).unwrap();
        }
        let bytes = |store: &CatalogStore| store.kept.as_ref().unwrap().journal.bytes();
        let before = bytes(&store);
        store.compact().unwrap();
        assert!(bytes(&store) < before / 4);
        store.execute(&create("b")).unwrap();
        let expected = store.catalog().clone();
        drop(store);
        let store = open(&disk);
        assert_eq!(*store.catalog(), expected);
        assert_eq!(store.catalog().databases().count(), 2);
    }

    #[test]
    fn a_mirror_shows_what_it_is_given() {
        let mut store = CatalogStore::mirror(Catalog::default());
        let mut catalog = Catalog::default();
        catalog.apply(&create("a")).unwrap();
        store.set(catalog.clone());
        assert_eq!(*store.catalog(), catalog);
        store.compact().unwrap();
    }

    #[test]
    #[should_panic(expected = "takes no commands")]
    fn a_mirror_takes_no_commands() {
        let _ = CatalogStore::mirror(Catalog::default()).execute(&create("a"));
    }
}
