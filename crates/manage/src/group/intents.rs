//! Changes of the catalog, and the intents of DDL statements that want tables alone.
//!
//! A DDL statement announces an *intent* on its tables. Every process takes its local metadata locks for it and tells the owner; the owner changes the
//! catalog with a command that names the intent, which ends it, and each process gives the locks back when it has applied that. Two intents never
//! have a table in common. An intent ends with its owner's process too, so that no lock outlives whoever wanted it; a change that names an intent
//! that has ended is void, since its tables were not locked any more.
//!
//! While a statement fills an index its intent is *open*: users are let in on every process, and the intent keeps
//! nothing out but other intents that want the tables alone. Open or not, an intent that changes gets another number:
//! what processes said of the one before does not count for it.
//!
//! A statement of a session that has locked tables itself has an intent *under* the one of these locks: the two may
//! have tables in common, and what the statement does to the tables is followed by the locks.
//!
//! What a statement *builds* on its tables (`StartBuild`) changes what partitions have of them at once, so it names the intent too, which goes on; and it ends with the intent at the latest, by the same command: nothing that was
//! half built lies over a table that another statement may change. A build that comes late, when its statement has given up, is void like every other change.
//!
//! Ids of new tables are taken by the proposer from [`crate::Catalog::next_table_id`]: of two that race, the catalog refuses the second
//! ([`crate::CatalogError::TableIdUsed`]), which takes new ids and tries again.

use super::Group;
use super::command::{Answer, CatalogAnswer, Refused};
use crate::command::Command;
use rauk_types::{ProcessId, TableId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A cluster-wide metadata lock: a DDL statement that wants tables alone, or a session that has said LOCK TABLES. Every process locks them locally and tells the owner; the owner changes the catalog, which ends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub owner: ProcessId,
    pub tables: Vec<TableId>,
    /// Tables of which it only keeps writers out (LOCK TABLES … READ).
    #[serde(default)]
    pub reads: Vec<TableId>,
    /// For people: `ALTER TABLE shop.orders`.
    pub what: String,
    /// Whom its tables are open to, while it keeps other intents from them.
    #[serde(default)]
    pub open: Open,
    /// The intent of the locks that the statement's session has (LOCK TABLES), which this one works under.
    #[serde(default)]
    pub under: Option<u64>,
}

/// Who may use the tables of an intent that wants them alone in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Open {
    #[default]
    No,
    ToReaders,
    ToAll,
}

/// Whether two intents cannot be there together.
fn exclude(one: &Intent, other: &Intent) -> bool {
    let alone = |of: &Intent, with: &Intent| {
        of.tables.iter().any(|t| with.tables.contains(t) || of.open == Open::No && with.reads.contains(t))
    };
    alone(one, other) || alone(other, one)
}

/// Locks of a session keep what has become of their tables: tables that are gone are locked no more, those that took
/// their places are.
fn follow(locks: &mut Intent, command: &Command, dropped: &[TableId]) {
    let is_kept = |table: &TableId| !dropped.contains(table);
    let before = locks.tables.len();
    locks.tables.retain(is_kept);
    locks.reads.retain(is_kept);
    if let Command::Switch { create, .. } | Command::ExchangeLeaf { tables: create, .. } = command
        && locks.tables.len() < before
    {
        locks.tables.extend(create.iter().filter(|table| table.entry_of.is_none()).map(|table| table.id));
    }
}

/// Table ids stay below: the highest bit marks the counter of a table's hidden keys.
const MOST_TABLES: u32 = 1 << 31;

impl Group {
    pub(super) fn change_catalog(&mut self, command: &Command, intent: Option<u64>) -> Result<Answer, Answer> {
        let is_build = matches!(command, Command::StartBuild { .. });
        let is_alive = match (intent, command) {
            (Some(number), Command::StartBuild { table, .. }) => {
                self.intents.get(&number).is_some_and(|intent| intent.tables.contains(table))
            }
            (Some(number), _) => self.intents.contains_key(&number),
            (None, _) => !is_build,
        };
        if !is_alive {
            return Err(Answer::Void);
        }
        self.check_ids(command)?;
        let applied = match self.catalog.apply(command) {
            Ok(applied) => applied,
            Err(refused) => return Err(Answer::Catalog(CatalogAnswer::Refused(refused))),
        };
        self.catalog_index = self.index;
        if let Command::ExchangeLeaf { partitioned, with, tables } = command {
            self.count_on_together([partitioned.id, *with], tables[0].id);
        }
        if let Some(number) = intent.filter(|_| !is_build) {
            let locks = self.intents.get(&number).and_then(|intent| intent.under);
            self.end_intents(|other, _| other == number);
            if let Some(locks) = locks.and_then(|locks| self.intents.get_mut(&locks)) {
                follow(locks, command, &applied.dropped);
            }
        }
        if !applied.dropped.is_empty() || matches!(command, Command::AbortJob { .. } | Command::Switch { .. }) {
            self.drop_counters();
        }
        Ok(Answer::Catalog(CatalogAnswer::Applied(applied)))
    }

    pub(super) fn intend(&mut self, intent: &Intent) -> Result<Answer, Answer> {
        if !self.is_up(intent.owner) {
            return Err(Answer::Void);
        }
        let is_locks = |number| self.intents.get(&number).is_some_and(|locks| locks.under.is_none());
        if intent.under.is_some_and(|locks| !is_locks(locks)) {
            return Err(Answer::Void);
        }
        let mut others = self.intents.iter().filter(|(other, _)| intent.under != Some(**other)).map(|(_, other)| other);
        if let Some(other) = others.find(|other| exclude(other, intent)) {
            return Err(Answer::Refused(Refused::Intended(other.what.clone())));
        }
        Ok(Answer::Intent(self.add_intent(intent.clone())))
    }

    fn add_intent(&mut self, intent: Intent) -> u64 {
        let number = self.next_intent;
        self.next_intent += 1;
        self.intents.insert(number, intent);
        number
    }

    /// Opens an intent, or closes it again; what is built on its tables goes on. Void for locks that a statement works
    /// under.
    pub(super) fn reopen(&mut self, number: u64, open: Open) -> Result<Answer, Answer> {
        let intent = self.intents.get(&number).ok_or(Answer::Void)?;
        if self.intents.values().any(|other| other.under == Some(number)) {
            return Err(Answer::Void);
        }
        let changed = Intent { open, ..intent.clone() };
        let apart = |other: u64| other != number && intent.under != Some(other);
        let mut others = self.intents.iter().filter(|(other, _)| apart(**other)).map(|(_, other)| other);
        if let Some(other) = others.find(|other| exclude(other, &changed)) {
            return Err(Answer::Refused(Refused::Intended(other.what.clone())));
        }
        self.intents.remove(&number);
        Ok(Answer::Intent(self.add_intent(changed)))
    }

    pub(super) fn end_intent(&mut self, number: u64) -> Result<Answer, Answer> {
        self.end_intents(|other, _| other == number);
        Ok(Answer::Done)
    }

    /// Intents that `which` names end, those under them, and with them what is being built on their tables.
    pub(super) fn end_intents(&mut self, which: impl Fn(u64, &Intent) -> bool) {
        let named: BTreeSet<u64> = self.intents.iter().filter(|(n, i)| which(**n, i)).map(|(n, _)| *n).collect();
        let ends = |number: &u64, intent: &Intent| {
            named.contains(number) || intent.under.is_some_and(|locks| named.contains(&locks))
        };
        let ended = self.intents.extract_if(.., |number, intent| ends(number, intent));
        let tables: Vec<TableId> = ended.flat_map(|(_, intent)| intent.tables).collect();
        if self.catalog.end_builds(&tables) {
            self.catalog_index = self.index;
            self.drop_counters();
        }
    }

    /// Ids that the catalog would count beyond what fits.
    fn check_ids(&self, command: &Command) -> Result<(), Answer> {
        let fits = match command {
            Command::CreateTables { tables } | Command::StartBuild { tables, .. } => {
                tables.iter().all(|t| t.id.0 < MOST_TABLES)
            }
            Command::Switch { create, .. } => create.iter().all(|t| t.id.0 < MOST_TABLES),
            Command::StartJob { builds, .. } => {
                self.catalog.next_table_id().0.checked_add(*builds).is_some_and(|end| end <= MOST_TABLES)
            }
            _ => true,
        };
        if fits {
            return Ok(());
        }
        Err(Answer::Refused(Refused::OutOfRange(format!("table ids end at {}", MOST_TABLES - 1))))
    }
}
