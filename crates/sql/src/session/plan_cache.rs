//! The plan cache: plans of statements in their normal form, shared by all sessions.
//!
//! A plan is valid for a text, the types of its parameters, and what binding looked at besides: the current database, sql_mode and
//! collation_connection. All of these are the key. Whether the *user* may run it is not: an entry lists what must be granted, and the session checks
//! that on every hit. Whether the tables are still what they were is not either: running a stale plan gives `StaleSchema`, and the session removes
//! the entry and plans again. A plan that has read a view is good for one version of the catalog.
//!
//! Sixteen shards, each a table of slots with a clock hand: a hit sets the slot's mark, the hand clears marks and replaces the first slot without
//! one. Plans that read virtual tables are never cached: those see what their session may see.

use crate::expr::Switches;
use crate::expr::context::SqlMode;
use crate::physical::Plan;
use crate::physical::facts::Facts;
use crate::session::data::DataKind;
use crate::session::digests::Digest;
use crate::session::users::Privileges;
use hashbrown::HashTable;
use parking_lot::Mutex;
use rauk_node::Database;
use rauk_types::{Collation, DataType};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

const SHARDS: usize = 16;

/// A plan and what its user needs.
pub struct CachedPlan {
    pub plan: Plan,
    pub needs: Needs,
    pub kind: DataKind,
    /// The version of the catalog for which it was made, if it has read a view: of a view, its definer's rights and what it reads, nothing else tells that they are
    /// what they were.
    pub catalog: Option<u32>,
    /// It has temporary tables: it belongs to its session.
    pub temporary: bool,
    /// How often the cache had been emptied when it was made.
    pub generation: u32,
    /// How often it was run.
    pub uses: AtomicU32,
    pub facts: Facts,
    /// That of the text for which the cache has it.
    pub digest: OnceLock<Arc<Digest>>,
}

impl CachedPlan {
    /// Whether the catalog is another one than the plan was made for.
    pub fn is_outdated(&self, database: &Database) -> bool {
        self.catalog.is_some_and(|version| version != database.catalog_version())
    }
}

/// What must be granted to whoever runs a plan.
#[derive(Default)]
pub struct Needs {
    pub privileges: Vec<Need>,
    /// Tables and views whose rows it locks by FOR UPDATE.
    pub row_locks: Vec<(String, String)>,
}

/// Privileges on one table or view.
pub struct Need {
    pub database: String,
    pub name: String,
    pub privileges: Privileges,
    /// The outermost view that reads it.
    pub view: Option<(String, String)>,
}

/// What a plan depends on besides the catalog. Borrowed, so that looking up allocates nothing.
#[derive(Clone, Copy, PartialEq)]
pub struct Key<'a> {
    pub text: &'a str,
    pub parameters: &'a [DataType],
    pub database: Option<&'a str>,
    pub sql_mode: SqlMode,
    pub switches: Switches,
    pub collation: Collation,
}

impl Key<'_> {
    fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.text.hash(&mut hasher);
        self.database.hash(&mut hasher);
        self.collation.hash(&mut hasher);
        for parameter in self.parameters {
            parameter.kind.hash(&mut hasher);
        }
        hasher.finish()
    }
}

struct Slot {
    hash: u64,
    text: Box<str>,
    parameters: Box<[DataType]>,
    database: Option<Box<str>>,
    sql_mode: SqlMode,
    switches: Switches,
    collation: Collation,
    plan: Arc<CachedPlan>,
    used: AtomicBool,
}

impl Slot {
    fn matches(&self, key: &Key<'_>) -> bool {
        *self.text == *key.text
            && *self.parameters == *key.parameters
            && self.database.as_deref() == key.database
            && self.sql_mode == key.sql_mode
            && self.switches == key.switches
            && self.collation == key.collation
    }
}

#[derive(Default)]
struct Shard {
    index: HashTable<u32>,
    slots: Vec<Slot>,
    hand: usize,
}

pub struct PlanCache {
    shards: [Mutex<Shard>; SHARDS],
    /// Plans in all.
    capacity: AtomicUsize,
    /// How often it was emptied.
    generation: AtomicU32,
}

impl PlanCache {
    pub fn new(capacity: usize) -> PlanCache {
        PlanCache {
            shards: std::array::from_fn(|_| Mutex::new(Shard::default())),
            capacity: AtomicUsize::new(capacity),
            generation: AtomicU32::new(0),
        }
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // The high bits: the low ones choose the place in the shard.
        &self.shards[(hash >> 60) as usize % SHARDS]
    }

    pub fn get(&self, key: &Key<'_>) -> Option<Arc<CachedPlan>> {
        let hash = key.hash();
        let shard = self.shard(hash).lock();
        let at = *shard.index.find(hash, |&at| shard.slots[at as usize].matches(key))?;
        let slot = &shard.slots[at as usize];
        slot.used.store(true, Ordering::Relaxed);
        Some(slot.plan.clone())
    }

    pub fn insert(&self, key: &Key<'_>, plan: Arc<CachedPlan>) {
        let capacity = self.capacity.load(Ordering::Relaxed).div_ceil(SHARDS);
        if capacity == 0 {
            return;
        }
        let hash = key.hash();
        let slot = Slot {
            hash,
            text: key.text.into(),
            parameters: key.parameters.into(),
            database: key.database.map(Into::into),
            sql_mode: key.sql_mode,
            switches: key.switches,
            collation: key.collation,
            plan,
            used: AtomicBool::new(false),
        };
        let mut guard = self.shard(hash).lock();
        let shard = &mut *guard;
        if let Some(&at) = shard.index.find(hash, |&at| shard.slots[at as usize].matches(key)) {
            shard.slots[at as usize] = slot;
            return;
        }
        let at = if shard.slots.len() < capacity {
            shard.slots.push(slot);
            shard.slots.len() - 1
        } else {
            // Two rounds at most: the first may clear every mark.
            let at = loop {
                let at = shard.hand % shard.slots.len();
                shard.hand = at + 1;
                if !shard.slots[at].used.swap(false, Ordering::Relaxed) {
                    break at;
                }
            };
            let old = std::mem::replace(&mut shard.slots[at], slot);
            if let Ok(entry) = shard.index.find_entry(old.hash, |&found| found as usize == at) {
                entry.remove();
            }
            at
        };
        let slots = &shard.slots;
        shard.index.insert_unique(hash, at as u32, |&at| slots[at as usize].hash);
    }

    /// Forgets one plan: its tables have changed.
    pub fn remove(&self, key: &Key<'_>) {
        let hash = key.hash();
        let mut guard = self.shard(hash).lock();
        let shard = &mut *guard;
        let Ok(entry) = shard.index.find_entry(hash, |&at| shard.slots[at as usize].matches(key)) else { return };
        let (at, _) = entry.remove();
        let at = at as usize;
        shard.slots.swap_remove(at);
        // The last slot moved into the gap.
        if let Some(moved) = shard.slots.get(at) {
            let old = shard.slots.len() as u32;
            if let Some(place) = shard.index.find_mut(moved.hash, |&found| found == old) {
                *place = at as u32;
            }
        }
    }

    /// Plans of another generation, which prepared statements keep, are to be made again.
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// FLUSH, new statistics, and DDL that must let go of table handles.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        for shard in &self.shards {
            *shard.lock() = Shard::default();
        }
    }

    /// SET GLOBAL rauk_plan_cache_size. A smaller size is reached by emptying the cache.
    pub fn set_capacity(&self, capacity: usize) {
        if capacity < self.capacity.swap(capacity, Ordering::Relaxed) {
            self.clear();
        }
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|s| s.lock().slots.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
