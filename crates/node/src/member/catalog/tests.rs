//! A process follows made-up states of the group; intents over two processes.

use super::{CatalogState, all_tables};
use crate::database::{Config, Database, TableHandle};
use crate::error::NodeError;
use crate::executor::Class;
use crate::node::Node;
use crate::runtime::threads::{Threads, block_on};
use crate::table::entries;
use crate::transaction::{InsertOutcome, TxnOptions};
use rauk_log::MemoryDisk;
use rauk_manage::group::{
    Answer, CatalogAnswer, ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, Group,
    GroupCommand, Intent, Open, RoleKind,
};
use rauk_manage::{CatalogStore, Command, JobId};
use rauk_types::schema::{Column, ColumnDefault, IndexPart, IndexSchema};
use rauk_types::{
    Collation, ColumnId, DataType, IndexId, IndexKind, Member, NodeId, ProcessId, RowLayout, TableId, TableSchema,
    Value,
};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn column(id: u16, name: &str) -> Column {
    Column {
        id: ColumnId(id),
        name: name.into(),
        ty: DataType::BIGINT,
        nullable: false,
        default: ColumnDefault::None,
        on_update_now: false,
        comment: String::new(),
        initial: Value::Null,
        generated: None,
        invisible: false,
    }
}

fn index(id: u16, name: &str, kind: IndexKind, column: usize) -> IndexSchema {
    IndexSchema {
        id: IndexId(id),
        name: name.into(),
        kind,
        parts: vec![IndexPart { column, prefix: None, descending: false }],
        hash_only: false,
        entry_table: None,
        comment: String::new(),
        invisible: false,
        global: false,
    }
}

/// `CREATE TABLE name (id BIGINT PRIMARY KEY, value BIGINT)`
fn table(id: u32, name: &str) -> TableSchema {
    let columns = vec![column(0, "id"), column(1, "value")];
    TableSchema {
        id: TableId(id),
        version: 1,
        database: "d".into(),
        name: name.into(),
        layouts: vec![Arc::new(RowLayout::for_columns(0, &columns))],
        columns: columns.into(),
        indexes: vec![index(0, "PRIMARY", IndexKind::Primary, 0)].into(),
        distribution: vec![0],
        hidden_key: false,
        auto_increment: None,
        collation: Collation::DEFAULT,
        comment: String::new(),
        explicit_partitioning: false,
        fully_replicated: false,
        checks: Vec::new(),
        entry_of: None,
        foreign_keys: Vec::new(),
        storage: Default::default(),
        partitioning: None,
        leaf_of: None,
        leaf_tables: Default::default(),
    }
}

/// A table with a unique index on `value`, and its index table.
fn with_unique(mut base: TableSchema, entries: u32) -> [Arc<TableSchema>; 2] {
    let mut unique = index(9, "u", IndexKind::Unique, 1);
    unique.entry_table = Some(TableId(entries));
    let entries = entries::schema(&base, &unique, TableId(entries));
    base.indexes.push(unique);
    [Arc::new(base), Arc::new(entries)]
}

/// The group, by its commands, and one process that follows it.
struct World {
    group: Group,
    db: Database,
    state: CatalogState,
    /// The intent of the build that is under way.
    builds: Option<u64>,
}

fn open() -> Database {
    let config = Config { partitions: 3, segment_bytes: 1 << 20, ..Config::default() };
    let db = Database::open(config, MemoryDisk::new(), Threads::start().unwrap(), &|_| {}).unwrap();
    *db.node.catalog.lock() = CatalogStore::mirror(Default::default());
    db
}

fn group() -> Group {
    let mut group = Group::new();
    let config = ClusterConfig {
        id: [1; 16],
        name: "test".into(),
        partitions: 2,
        groups: None,
        replicas: 1,
        durability: ClusterDurability::Fsync,
        replace_after: DEFAULT_REPLACE_AFTER,
        memory_return: DEFAULT_MEMORY_RETURN,
    };
    assert_eq!(group.apply(1, &GroupCommand::Create { config, adopted: None }), Answer::Done);
    for n in 1..3u64 {
        let add = GroupCommand::AddNode {
            directory: n,
            address: format!("node{n}:7306"),
            sql_address: String::new(),
            native_address: String::new(),
            roles: [RoleKind::Data, RoleKind::Sql].into(),
        };
        let Answer::Node(node) = group.apply(group.index + 1, &add) else { panic!("a node") };
        group.apply(
            group.index + 1,
            &GroupCommand::Register { node, nonce: n, whole: vec![], recovery: 0, directory: Default::default() },
        );
    }
    group
}

impl World {
    fn new() -> World {
        let mut world = World { group: group(), db: open(), state: CatalogState::default(), builds: None };
        world.change(Command::CreateDatabase {
            name: "d".into(),
            collation: Collation::DEFAULT,
            comment: String::new(),
        });
        world
    }

    fn node(&self) -> &Arc<Node> {
        &self.db.node
    }

    fn say(&mut self, command: GroupCommand) -> Answer {
        let index = self.group.index + 1;
        self.group.apply(index, &command)
    }

    /// A command that the catalog takes; nobody follows yet. A build gets an intent, which its switch or its abort ends.
    fn put(&mut self, command: Command) -> rauk_manage::Applied {
        match &command {
            Command::StartBuild { table, owner, .. } => {
                let number = self.intend(owner.0, &[table.0]);
                self.builds = Some(number);
                self.put_with(command, Some(number))
            }
            Command::Switch { job: Some(_), .. } => {
                let number = self.builds.take();
                self.put_with(command, number)
            }
            Command::AbortJob { .. } => {
                let applied = self.put_with(command, None);
                self.builds.take().map(|number| self.say(GroupCommand::EndIntent { number }));
                applied
            }
            _ => self.put_with(command, None),
        }
    }

    fn put_with(&mut self, command: Command, intent: Option<u64>) -> rauk_manage::Applied {
        match self.say(GroupCommand::Catalog { command, intent }) {
            Answer::Catalog(CatalogAnswer::Applied(applied)) => applied,
            other => panic!("{other:?}"),
        }
    }

    fn follow(&self) {
        block_on(self.state.follow(self.node(), &Arc::new(self.group.clone())));
        self.check();
    }

    fn change(&mut self, command: Command) -> rauk_manage::Applied {
        let applied = self.put(command);
        self.follow();
        applied
    }

    /// Partitions, cache and mirror have what the group has.
    fn check(&self) {
        let catalog = &self.group.catalog;
        assert!(self.node().catalog.lock().catalog() == catalog);
        let wanted = all_tables(catalog);
        let ids: Vec<TableId> = {
            let mut ids: Vec<_> = wanted.iter().map(|t| t.id).collect();
            ids.sort_unstable();
            ids
        };
        for partition in 0..self.node().partition_count() {
            block_on(self.node().on_partition(partition, Class::Background, |p| {
                assert_eq!(p.tables(), ids);
                for schema in &wanted {
                    assert_eq!(p.schema(schema.id), Some(schema));
                }
            }));
        }
        let cached: Vec<_> = self.node().tables.all().iter().map(|t| t.schema.clone()).collect();
        let mut known: Vec<_> = catalog.tables().chain(catalog.hidden_tables()).cloned().collect();
        known.sort_by_key(|t| t.id);
        assert_eq!(cached, known);
        for table in catalog.tables().filter(|t| t.entry_of.is_none()) {
            let found = self.db.table(&table.database, &table.name).unwrap();
            assert_eq!(found.schema(), table);
            assert!(!found.is_stale());
        }
    }

    fn intend(&mut self, owner: u32, tables: &[u32]) -> u64 {
        self.intend_beside(owner, tables, &[], None)
    }

    fn intend_beside(&mut self, owner: u32, tables: &[u32], reads: &[u32], under: Option<u64>) -> u64 {
        let ids = |tables: &[u32]| tables.iter().map(|&t| TableId(t)).collect();
        let (owner, tables, reads) = (ProcessId(owner), ids(tables), ids(reads));
        let intent = Intent { owner, tables, reads, what: "ALTER TABLE d.t".into(), open: Open::No, under };
        match self.say(GroupCommand::Intend { intent }) {
            Answer::Intent(number) => number,
            other => panic!("{other:?}"),
        }
    }

    fn insert(&self, table: &TableHandle, rows: impl IntoIterator<Item = [i64; 2]>) {
        block_on(async {
            let mut txn = self.db.begin(TxnOptions::default());
            txn.use_table(table).await.unwrap();
            for row in rows {
                let row: Vec<Value> = row.into_iter().map(Value::Int).collect();
                assert!(matches!(txn.insert(table, &row).await.unwrap(), InsertOutcome::Inserted));
            }
            txn.commit().await.unwrap();
        });
    }

    /// Waits for what a task does.
    fn until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(10), "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// About how many entries an index has, over all partitions, which are checked.
    fn entries(&self, table: TableId, index: IndexId) -> u64 {
        let estimate = |p: &mut rauk_kernel::Partition| {
            p.validate();
            p.estimate(table, Some(index), Bound::Unbounded, Bound::Unbounded).unwrap()
        };
        let partitions = 0..self.node().partition_count();
        partitions.map(|p| block_on(self.node().on_partition(p, Class::Background, estimate))).sum()
    }

    fn task_runs(&self) -> bool {
        self.state.intents.runs()
    }
}

#[test]
fn tables_come_change_their_names_and_go() {
    let mut w = World::new();
    w.change(Command::CreateTables { tables: vec![Arc::new(table(1, "a"))] });
    w.change(Command::CreateTables { tables: with_unique(table(2, "b"), 3).to_vec() });
    let (a, b) = (w.db.table("d", "a").unwrap(), w.db.table("d", "b").unwrap());
    w.insert(&b, [[1, 1]]);
    let swapped = {
        let mut a = (**a.schema()).clone();
        let mut b = (**b.schema()).clone();
        (a.version, b.version) = (2, 2);
        std::mem::swap(&mut a.name, &mut b.name);
        vec![Arc::new(a), Arc::new(b)]
    };
    w.change(Command::ReplaceDefinitions { tables: swapped });
    assert!(a.is_stale() && b.is_stale());
    assert_eq!(w.db.table("d", "a").unwrap().schema().id, TableId(2));
    // The unique index is the same one.
    block_on(async {
        let a = w.db.table("d", "a").unwrap();
        let mut txn = w.db.begin(TxnOptions::default());
        txn.use_table(&a).await.unwrap();
        let outcome = txn.insert(&a, &[Value::Int(2), Value::Int(1)]).await.unwrap();
        assert!(matches!(outcome, InsertOutcome::Duplicate { index: IndexId(9), .. }));
    });
    w.change(Command::DropTables { tables: vec![TableId(2)] });
    assert!(w.db.table("d", "a").is_err());
    // Several commands are followed at once; what came and went in between is never seen.
    w.put(Command::CreateTables { tables: vec![Arc::new(table(4, "c"))] });
    w.put(Command::DropTables { tables: vec![TableId(4)] });
    w.put(Command::CreateTables { tables: vec![Arc::new(table(5, "c"))] });
    w.put(Command::Settings { changes: vec![("k".into(), Some("v".into()))] });
    w.follow();
    assert_eq!(w.db.setting("k"), Some("v".into()));
    w.change(Command::DropDatabase { name: "d".into() });
    assert!(w.db.table("d", "c").is_err() && w.db.databases().is_empty());
}

#[test]
fn a_new_ordered_index_has_the_rows_that_are_there() {
    let mut w = World::new();
    w.change(Command::CreateTables { tables: vec![Arc::new(table(1, "a"))] });
    let a = w.db.table("d", "a").unwrap();
    // Decided indexes are filled beyond the memory limit.
    w.insert(&a, (0..500).map(|i| [i, 500 - i]));
    w.db.set_memory_limit(1);
    let mut new = (**a.schema()).clone();
    new.version = 2;
    new.indexes.push(index(5, "by_value", IndexKind::Ordered, 1));
    w.change(Command::ReplaceDefinitions { tables: vec![Arc::new(new)] });
    let entries = w.entries(TableId(1), IndexId(5));
    assert!((400..600).contains(&entries), "{entries}");
    assert!(a.is_stale());
}

#[test]
fn what_a_job_builds_is_known_by_its_ids_until_the_switch() {
    let mut w = World::new();
    w.change(Command::CreateTables { tables: vec![Arc::new(table(1, "a"))] });
    let old = w.db.table("d", "a").unwrap();
    let build = |ids: [u32; 2]| Command::StartBuild {
        what: "ALTER TABLE d.a".into(),
        table: TableId(1),
        owner: ProcessId(1),
        tables: with_unique(table(ids[0], "a"), ids[1]).to_vec(),
        definitions: vec![],
        limits: Default::default(),
    };
    let job = w.change(build([2, 3])).job.unwrap();
    assert_eq!(w.db.table("d", "a").unwrap().schema().id, TableId(1));
    // It is filled as if it were there.
    let hidden = w.db.table_by_id(TableId(2)).unwrap();
    w.insert(&hidden, [[1, 10], [2, 20]]);
    let create = with_unique(table(2, "a"), 3).to_vec();
    w.change(Command::Switch { job: Some(job.id), drop: vec![TableId(1)], create, replace: vec![] });
    let new = w.db.table("d", "a").unwrap();
    assert_eq!((new.schema().id, w.db.table_usage(TableId(2)).rows), (TableId(2), 2));
    assert!(old.is_stale());
    // Another one is given up.
    let job = w.change(build([4, 5])).job.unwrap();
    w.insert(&w.db.table_by_id(TableId(4)).unwrap(), [[1, 10]]);
    w.change(Command::AbortJob { job: job.id });
    assert!(w.db.table_by_id(TableId(4)).is_none());
    assert_eq!(w.db.table("d", "a").unwrap().schema().id, TableId(2));
    w.until("the task ends when there are no jobs", || !w.task_runs());
}

#[test]
fn a_process_that_begins_has_what_its_partitions_had_and_what_came_since() {
    let mut w = World::new();
    w.change(Command::CreateTables { tables: with_unique(table(1, "a"), 2).to_vec() });
    w.change(Command::CreateTables { tables: vec![Arc::new(table(3, "b"))] });
    w.insert(&w.db.table("d", "a").unwrap(), [[1, 1]]);
    // A new process over the same partitions: table 3 went meanwhile, table 1 has another name, table 4 is new.
    w.state = CatalogState::default();
    w.node().tables.all().iter().for_each(|t| w.node().tables.retract(t.schema.id));
    w.put(Command::DropTables { tables: vec![TableId(3)] });
    let [mut a, _] = with_unique(table(1, "z"), 2);
    Arc::make_mut(&mut a).version = 2;
    w.put(Command::ReplaceDefinitions { tables: vec![a] });
    w.put(Command::CreateTables { tables: vec![Arc::new(table(4, "b"))] });
    w.follow();
    assert_eq!(w.db.table_usage(TableId(1)).rows, 1);
}

#[test]
fn an_intent_waits_for_users_and_new_users_for_it() {
    let mut w = World::new();
    w.change(Command::CreateTables { tables: vec![Arc::new(table(1, "a")), Arc::new(table(2, "b"))] });
    let (a, b) = (w.db.table("d", "a").unwrap(), w.db.table("d", "b").unwrap());
    let mut txn = w.db.begin(TxnOptions::default());
    block_on(txn.use_table(&a)).unwrap();
    // A table that is not known any more is no reason to wait.
    let number = w.intend(2, &[2, 1, 77]);
    w.follow();
    std::thread::sleep(Duration::from_millis(30));
    assert!(!w.state.intents.is_locked(number));
    // The open transaction goes on with what it uses; others wait.
    let short = TxnOptions { lock_wait_timeout: Duration::from_millis(20), ..TxnOptions::default() };
    let mut other = w.db.begin(short.clone());
    assert_eq!(block_on(other.use_table(&a)), Err(NodeError::LockTimeout));
    block_on(txn.commit()).unwrap();
    w.until("locked", || w.state.intents.is_locked(number));
    assert_eq!(block_on(other.use_table(&b)), Err(NodeError::LockTimeout));
    // The change comes before the locks go.
    let mut new = (**a.schema()).clone();
    (new.version, new.name) = (2, "c".into());
    w.put_with(Command::ReplaceDefinitions { tables: vec![Arc::new(new)] }, Some(number));
    w.follow();
    assert_eq!(block_on(other.use_table(&a)), Err(NodeError::StaleSchema));
    assert_eq!(block_on(other.use_table(&b)), Ok(()));
    w.until("the task ends", || !w.task_runs());
}

#[test]
fn an_intent_that_is_given_up_leaves_no_lock() {
    let mut w = World::new();
    w.change(Command::CreateTables { tables: vec![Arc::new(table(1, "a"))] });
    let a = w.db.table("d", "a").unwrap();
    let mut txn = w.db.begin(TxnOptions::default());
    block_on(txn.use_table(&a)).unwrap();
    for _ in 0..3 {
        let number = w.intend(1, &[1]);
        w.follow();
        w.until("asked for", || {
            !a.info().shared.lock.try_share() || {
                a.info().shared.lock.unshare();
                false
            }
        });
        w.say(GroupCommand::EndIntent { number });
        w.follow();
        let mut other = w.db.begin(TxnOptions::default());
        block_on(other.use_table(&a)).unwrap();
    }
    block_on(txn.commit()).unwrap();
    // Nobody uses it: locked before the call returns, as a process that begins must.
    let number = w.intend(1, &[1]);
    w.follow();
    assert!(w.state.intents.is_locked(number));
    // Its owner's end ends it.
    let owner = Member { node: NodeId(1), process: ProcessId(1) };
    w.say(GroupCommand::Down { member: owner });
    w.follow();
    assert!(!w.state.intents.is_locked(number) && a.info().shared.lock.try_exclude());
}

/// What a DDL does under the locks of its session they follow: nobody gets in between.
#[test]
fn locks_stay_while_their_session_changes_definitions() {
    let mut w = World::new();
    let tables = [(1, "a"), (2, "b"), (3, "c")].map(|(id, name)| Arc::new(table(id, name)));
    w.change(Command::CreateTables { tables: tables.to_vec() });
    let [a, b, c] = ["a", "b", "c"].map(|name| w.db.table("d", name).unwrap());
    let locks = w.intend_beside(1, &[1], &[2], None);
    w.follow();
    assert!(w.state.intents.is_locked(locks));
    let is_free = |table: &TableHandle| {
        let lock = &table.info().shared.lock;
        lock.try_share() && {
            lock.unshare();
            true
        }
    };
    assert!(!is_free(&a) && is_free(&b));
    // A is locked already, B's lock is raised when its reader has gone, C is locked for the statement.
    assert!(b.info().shared.lock.try_share());
    let truncate = w.intend_beside(1, &[1, 2, 3], &[], Some(locks));
    w.follow();
    assert!(!w.state.intents.is_locked(truncate));
    b.info().shared.lock.unshare();
    w.until("raised", || w.state.intents.is_locked(truncate));
    assert!(!is_free(&a) && !is_free(&b) && !is_free(&c));
    let create = vec![Arc::new(table(4, "a"))];
    let switch = Command::Switch { job: None, drop: vec![TableId(1)], create, replace: vec![] };
    w.put_with(switch, Some(truncate));
    w.follow();
    let new = w.db.table("d", "a").unwrap();
    assert_eq!(new.schema().id, TableId(4));
    assert!(is_free(&a) && !is_free(&new) && is_free(&b) && is_free(&c));
    assert!(!b.info().shared.lock.try_write());
    // Rows that were written again come with a job, which has made the table known by its id alone.
    let rewrite = w.intend_beside(1, &[4], &[], Some(locks));
    let build = Command::StartBuild {
        what: "ALTER TABLE d.a".into(),
        table: TableId(4),
        owner: ProcessId(1),
        tables: vec![Arc::new(table(5, "a"))],
        definitions: vec![],
        limits: Default::default(),
    };
    let job = w.put_with(build, Some(rewrite)).job.unwrap().id;
    w.follow();
    let hidden = TableHandle::new(w.node().tables.by_id(TableId(5)).unwrap());
    assert!(is_free(&hidden));
    let create = vec![Arc::new(table(5, "a"))];
    w.put_with(Command::Switch { job: Some(job), drop: vec![TableId(4)], create, replace: vec![] }, Some(rewrite));
    w.follow();
    assert!(is_free(&new) && !is_free(&hidden));
    // A process that begins has the locks, too.
    let (second, other) = (CatalogState::default(), open());
    block_on(second.follow(&other.node, &Arc::new(w.group.clone())));
    assert!(second.intents.is_locked(locks) && !is_free(&other.table("d", "a").unwrap()));
    w.say(GroupCommand::EndIntent { number: locks });
    w.follow();
    assert!(is_free(&hidden) && b.info().shared.lock.try_write());
    b.info().shared.lock.end_write();
}

#[test]
fn the_owner_waits_for_every_process_that_is_up() {
    let mut w = World::new();
    w.change(Command::CreateTables { tables: vec![Arc::new(table(1, "a"))] });
    let second = CatalogState::default();
    let other = open();
    block_on(second.follow(&other.node, &Arc::new(w.group.clone())));
    let used = other.table("d", "a").unwrap();
    let mut txn = other.begin(TxnOptions::default());
    block_on(txn.use_table(&used)).unwrap();

    let number = w.intend(1, &[1]);
    w.follow();
    block_on(second.follow(&other.node, &Arc::new(w.group.clone())));
    let intents = &w.state.intents;
    let own = intents.own(number);
    let up = parking_lot::Mutex::new(vec![ProcessId(1), ProcessId(2), ProcessId(3)]);
    let runtime = w.node().runtime.clone();
    let done = std::sync::atomic::AtomicBool::new(false);
    let is_done = || done.load(std::sync::atomic::Ordering::SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(block_on(intents.wait_locked(&*runtime, number, || up.lock().clone())));
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        // As the messages would.
        assert!(intents.is_locked(number) && !second.intents.is_locked(number));
        w.state.on_locked(number, ProcessId(1));
        w.state.on_locked(number + 1, ProcessId(2));
        std::thread::sleep(Duration::from_millis(20));
        block_on(txn.commit()).unwrap();
        w.until("locked there", || second.intents.is_locked(number));
        assert!(!is_done());
        w.state.on_locked(number, ProcessId(2));
        w.state.on_locked(number, ProcessId(2));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!is_done());
        // The third one goes down, which nobody tells.
        up.lock().pop();
        w.until("all have locked", is_done);
    });
    drop(own);
    // An intent that is gone is never locked.
    w.say(GroupCommand::EndIntent { number });
    w.follow();
    let _own = w.state.intents.own(number);
    assert!(!block_on(w.state.intents.wait_locked(&*runtime, number, Vec::new)));
}

#[test]
fn jobs_and_intents_without_a_statement_are_found() {
    use super::upkeep::Surroundings;
    let mut w = World::new();
    w.change(Command::CreateTables { tables: vec![Arc::new(table(1, "a"))] });
    let number = w.intend(1, &[1]);
    let next = |w: &World, me: u32, smallest: bool| {
        let group = Arc::new(w.group.clone());
        w.state.intents.with_state(|s| Surroundings::made_up(group, ProcessId(me), smallest).next(s))
    };
    let end = Some(GroupCommand::EndIntent { number });
    assert_eq!(next(&w, 1, false), end);
    // Not while something is on its way, or a statement stands for it; never that of another process that is up.
    let starting = w.state.intents.starting();
    assert_eq!(next(&w, 1, false), None);
    let own = w.state.intents.own(number);
    drop(starting);
    assert_eq!(next(&w, 1, true), None);
    assert_eq!(next(&w, 2, true), None);
    drop(own);
    assert_eq!(next(&w, 1, true), end);
    w.say(GroupCommand::EndIntent { number });

    let tables = vec![Arc::new(table(2, "a"))];
    let build = Command::StartBuild {
        what: "x".into(),
        table: TableId(1),
        owner: ProcessId(2),
        tables,
        definitions: vec![],
        limits: Default::default(),
    };
    let job: JobId = w.put(build).job.unwrap().id;
    let _own = w.state.intents.own(w.builds.unwrap());
    let abort = Some(GroupCommand::Catalog { command: Command::AbortJob { job }, intent: None });
    let own = w.state.intents.own_job(job);
    assert_eq!(next(&w, 2, true), None);
    assert_eq!(next(&w, 1, true), None);
    drop(own);
    assert_eq!(next(&w, 2, false), abort);
    // With the process that has begun them they end by themselves.
    w.say(GroupCommand::Down { member: Member { node: NodeId(2), process: ProcessId(2) } });
    assert_eq!(next(&w, 1, true), None);
    assert_eq!(w.group.catalog.jobs().count(), 0);
}

/// What was built for a statement that is over lies over nothing that others change.
#[test]
fn partitions_have_the_old_definition_again_when_the_intent_of_a_build_ends() {
    let mut w = World::new();
    let (a, new) = indexed(&mut w);
    w.change(fill(&new));
    w.until("filled", || !w.state.intents.fills.has_work());
    let number = w.builds.take().unwrap();
    w.say(GroupCommand::EndIntent { number });
    w.follow();
    // Another statement gives it a column.
    let mut wide = (**a.schema()).clone();
    wide.version = 2;
    wide.comment = "wide".into();
    w.change(Command::ReplaceDefinitions { tables: vec![Arc::new(wide.clone())] });
    let placed = block_on(w.node().on_partition(0, Class::Background, |p| p.schema(TableId(1)).cloned()));
    assert_eq!(placed.as_deref(), Some(&wide));
}

/// `a` with a row a number, and the definition that gives it the ordered index 5.
fn indexed(w: &mut World) -> (TableHandle, Arc<TableSchema>) {
    w.change(Command::CreateTables { tables: vec![Arc::new(table(1, "a"))] });
    let a = w.db.table("d", "a").unwrap();
    w.insert(&a, (0..500).map(|i| [i, 500 - i]));
    let mut new = (**a.schema()).clone();
    new.version = 2;
    new.indexes.push(index(5, "by_value", IndexKind::Ordered, 1));
    (a, Arc::new(new))
}

fn fill(new: &Arc<TableSchema>) -> Command {
    let (what, definitions) = ("ALTER TABLE d.a".to_string(), vec![new.clone()]);
    Command::StartBuild {
        what,
        table: new.id,
        owner: ProcessId(1),
        tables: vec![],
        definitions,
        limits: Default::default(),
    }
}

#[test]
fn new_indexes_of_a_job_are_filled_beside_and_then_switched_on() {
    let mut w = World::new();
    let (a, new) = indexed(&mut w);
    let job = w.change(fill(&new)).job.unwrap();
    // Nobody else knows the definition yet.
    assert!(!a.is_stale() && w.db.table("d", "a").unwrap().schema().version == 1);
    w.until("filled", || w.state.intents.fills.done().iter().any(|f| f.job == job.id && f.full.is_none()));
    assert!((400..600).contains(&w.entries(TableId(1), IndexId(5))));
    w.change(Command::Switch { job: Some(job.id), drop: vec![], create: vec![], replace: vec![new] });
    assert!(a.is_stale());
    assert!((400..600).contains(&w.entries(TableId(1), IndexId(5))));
    w.until("the task ends", || !w.task_runs());
}

#[test]
fn a_switch_that_comes_early_is_filled_at_once_and_one_that_never_comes_leaves_nothing() {
    let mut w = World::new();
    let (_, new) = indexed(&mut w);
    let job = w.put(fill(&new)).job.unwrap();
    w.put(Command::Settings { changes: vec![] });
    w.follow();
    w.change(Command::Switch { job: Some(job.id), drop: vec![], create: vec![], replace: vec![new.clone()] });
    assert!((400..600).contains(&w.entries(TableId(1), IndexId(5))));
    let mut more = (*new).clone();
    more.version = 3;
    more.indexes.push(index(6, "by_value_too", IndexKind::Ordered, 1));
    let job = w.change(fill(&Arc::new(more))).job.unwrap();
    w.change(Command::AbortJob { job: job.id });
    assert!(w.state.intents.fills.done().is_empty() && !w.state.intents.fills.has_work());
    w.until("the task ends", || !w.task_runs());
    w.check();
}

#[test]
fn an_index_without_memory_is_refused_before_it_is_decided() {
    let mut w = World::new();
    let (_, new) = indexed(&mut w);
    w.db.set_memory_limit(1);
    let own = w.state.intents.own_job(JobId(1));
    let job = w.change(fill(&new)).job.unwrap();
    assert_eq!(job.id, JobId(1));
    w.until("refused", || w.state.intents.fills.done().iter().any(|f| f.full == Some(1)));
    // What the owner hears.
    let runtime = w.node().runtime.clone();
    w.state.on_filled(job.id, ProcessId(1), Some(1));
    let waited = w.state.intents.wait_filled(&*runtime, job.id, || vec![ProcessId(1), ProcessId(2)]);
    assert_eq!(block_on(waited), Err(1));
    drop(own);
    w.change(Command::AbortJob { job: job.id });
    let _own = w.state.intents.own_job(JobId(2));
    w.state.on_filled(JobId(2), ProcessId(1), None);
    assert_eq!(block_on(w.state.intents.wait_filled(&*runtime, JobId(2), || vec![ProcessId(1)])), Ok(()));
}
