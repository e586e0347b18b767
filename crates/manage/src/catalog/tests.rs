//! Each command by itself and what it refuses; and random commands: what was refused left no trace, and a catalog that is read again is the same.

use super::*;
use crate::command::SettingChange;
use rauk_types::partitioning::{
    Leaf, PartitionBy, PartitionMethod, PartitionOn, PartitionValues, Partitioning, UserPartition,
};
use rauk_types::{ColumnId, DataType, IndexId, IndexKind, ProcessId, RowLayout, schema::*};

pub(crate) fn table(id: u32, database: &str, name: &str) -> Arc<TableSchema> {
    let columns = vec![Column {
        id: ColumnId(0),
        name: "id".into(),
        ty: DataType::BIGINT,
        nullable: false,
        default: ColumnDefault::None,
        on_update_now: false,
        comment: String::new(),
        initial: rauk_types::Value::Null,
        generated: None,
        invisible: false,
    }];
    Arc::new(TableSchema {
        id: TableId(id),
        version: 1,
        database: database.into(),
        name: name.into(),
        layouts: vec![Arc::new(RowLayout::for_columns(0, &columns))],
        columns: columns.into(),
        indexes: vec![IndexSchema {
            id: IndexId::PRIMARY,
            name: "PRIMARY".into(),
            kind: IndexKind::Primary,
            parts: vec![IndexPart { column: 0, prefix: None, descending: false }],
            hash_only: false,
            entry_table: None,
            comment: String::new(),
            invisible: false,
            global: false,
        }]
        .into(),
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
    })
}

fn entries_of(base: u32, id: u32) -> Arc<TableSchema> {
    let mut t = (*table(id, "d", "entries")).clone();
    t.entry_of = Some((TableId(base), IndexId(1)));
    Arc::new(t)
}

fn with_database() -> Catalog {
    let mut c = Catalog::default();
    c.apply(&Command::CreateDatabase { name: "d".into(), collation: Collation::DEFAULT, comment: String::new() })
        .unwrap();
    c
}

#[test]
fn names_are_unique_and_refusals_change_nothing() {
    let mut c = with_database();
    c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a")] }).unwrap();
    let before = c.clone();
    assert_eq!(
        c.apply(&Command::CreateTables { tables: vec![table(2, "d", "b"), table(3, "d", "a")] }),
        Err(CatalogError::TableExists { database: "d".into(), name: "a".into() })
    );
    assert_eq!(
        c.apply(&Command::CreateTables { tables: vec![table(2, "x", "b")] }),
        Err(CatalogError::UnknownDatabase("x".into()))
    );
    assert_eq!(
        c.apply(&Command::CreateDatabase { name: "d".into(), collation: Collation::DEFAULT, comment: String::new() }),
        Err(CatalogError::DatabaseExists("d".into()))
    );
    assert_eq!(c, before);
}

#[test]
fn ids_are_never_reused() {
    let mut c = with_database();
    c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a")] }).unwrap();
    c.apply(&Command::DropTables { tables: vec![TableId(1)] }).unwrap();
    assert_eq!(c.next_table_id(), TableId(2));
    assert_eq!(
        c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a")] }),
        Err(CatalogError::TableIdUsed(TableId(1)))
    );
    let job = c.apply(&Command::StartJob { what: "x".into(), table: TableId(1), builds: 2 }).unwrap().job.unwrap();
    assert_eq!(job.builds, vec![TableId(2), TableId(3)]);
    c.apply(&Command::AbortJob { job: job.id }).unwrap();
    assert_eq!(c.next_table_id(), TableId(4));
}

#[test]
fn a_dropped_table_takes_its_index_tables_along() {
    let mut c = with_database();
    c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a"), entries_of(1, 2)] }).unwrap();
    let applied = c.apply(&Command::DropDatabase { name: "d".into() }).unwrap();
    assert_eq!(applied.dropped, vec![TableId(1), TableId(2)]);
    assert_eq!(c.tables().count(), 0);
}

#[test]
fn renaming_can_swap_names() {
    let mut c = with_database();
    c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a"), table(2, "d", "b")] }).unwrap();
    c.apply(&Command::ReplaceDefinitions { tables: vec![table(1, "d", "b"), table(2, "d", "a")] }).unwrap();
    assert_eq!(c.table_by_name("d", "a").unwrap().id, TableId(2));
    assert_eq!(c.table_by_name("d", "b").unwrap().id, TableId(1));
    assert!(c.apply(&Command::ReplaceDefinitions { tables: vec![table(1, "d", "a")] }).is_err());
}

#[test]
fn names_of_foreign_keys_are_unique_in_a_database() {
    let mut c = with_database();
    c.apply(&Command::CreateDatabase { name: "e".into(), collation: Collation::DEFAULT, comment: String::new() })
        .unwrap();
    let child = |id, database: &str, name: &str, key: &str| {
        let mut t = (*table(id, database, name)).clone();
        t.foreign_keys.push(rauk_types::ForeignKey {
            name: key.into(),
            columns: vec![ColumnId(0)],
            parent_database: database.into(),
            parent_table: "p".into(),
            parent_columns: vec!["id".into()],
            on_delete: Default::default(),
            on_update: Default::default(),
        });
        Arc::new(t)
    };
    c.apply(&Command::CreateTables { tables: vec![child(1, "d", "a", "f")] }).unwrap();
    c.apply(&Command::CreateTables { tables: vec![child(2, "e", "a", "f")] }).unwrap();
    let taken = Err(CatalogError::ForeignKeyExists("f".into()));
    assert_eq!(c.apply(&Command::CreateTables { tables: vec![child(3, "d", "b", "F")] }), taken);
    c.apply(&Command::CreateTables { tables: vec![child(3, "d", "b", "g")] }).unwrap();
    assert_eq!(c.apply(&Command::ReplaceDefinitions { tables: vec![child(3, "d", "b", "f")] }), taken);
    c.apply(&Command::ReplaceDefinitions { tables: vec![child(1, "d", "a", "g"), child(3, "d", "b", "f")] }).unwrap();
}

#[test]
fn a_switch_is_all_or_nothing() {
    let mut c = with_database();
    c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a")] }).unwrap();
    let job = c.apply(&Command::StartJob { what: "x".into(), table: TableId(1), builds: 1 }).unwrap().job.unwrap();
    let before = c.clone();
    let bad = Command::Switch {
        job: Some(job.id),
        drop: vec![TableId(1)],
        create: vec![table(9, "d", "a")],
        replace: vec![],
    };
    assert!(c.apply(&bad).is_err());
    assert_eq!(c, before);
    let good = Command::Switch {
        job: Some(job.id),
        drop: vec![TableId(1)],
        create: vec![table(2, "d", "a")],
        replace: vec![],
    };
    assert_eq!(c.apply(&good).unwrap().dropped, vec![TableId(1)]);
    assert_eq!(c.table_by_name("d", "a").unwrap().id, TableId(2));
    assert_eq!(c.jobs().count(), 0);
}

#[test]
fn settings_by_prefix_are_sorted() {
    let mut c = Catalog::default();
    let set = |k: &str| (k.to_owned(), Some("1".to_owned()));
    c.apply(&Command::Settings { changes: vec![set("user/b"), set("user/a"), set("var/x"), set("a")] }).unwrap();
    c.apply(&Command::Settings { changes: vec![("a".into(), None)] }).unwrap();
    assert_eq!(c.settings_with_prefix("user/").map(|(k, _)| k).collect::<Vec<_>>(), vec!["user/a", "user/b"]);
    assert_eq!(c.setting("a"), None);
}

#[test]
fn first_settings_change_nothing_that_was_set_since() {
    let mut c = Catalog::default();
    let first = |root: &str| Command::FirstSettings {
        settings: vec![("initialized".into(), "1".into()), ("user/root".into(), root.into())],
    };
    c.apply(&first("no password")).unwrap();
    assert_eq!((c.setting("initialized"), c.setting("user/root")), (Some("1"), Some("no password")));
    c.apply(&Command::Settings { changes: vec![("user/root".into(), Some("secret".into()))] }).unwrap();
    c.apply(&first("no password")).unwrap();
    assert_eq!(c.setting("user/root"), Some("secret"));
    c.apply(&Command::Settings { changes: vec![("user/root".into(), None)] }).unwrap();
    c.apply(&first("no password")).unwrap();
    assert_eq!(c.setting("user/root"), None, "who was dropped does not come back");
}

fn change(key: &str, from: Option<&str>, to: Option<&str>) -> SettingChange {
    SettingChange { key: key.to_owned(), from: from.map(str::to_owned), to: to.map(str::to_owned) }
}

#[test]
fn of_two_changes_made_from_the_same_text_the_second_is_refused_wholly() {
    let mut c = Catalog::default();
    c.apply(&Command::ChangeSettings {
        changes: vec![change("user/a", None, Some("1")), change("user/b", None, Some("1"))],
    })
    .unwrap();
    c.apply(&Command::ChangeSettings { changes: vec![change("user/a", Some("1"), Some("2"))] }).unwrap();
    let after = c.clone();
    let late = [
        // In either order: what comes before the one that differs is not done.
        vec![change("user/b", Some("1"), Some("3")), change("user/a", Some("1"), Some("3"))],
        vec![change("user/a", Some("1"), None), change("user/c", None, Some("3"))],
        vec![change("user/a", None, Some("3"))],
        // One that is only to be so still.
        vec![change("user/b", Some("1"), None), change("user/c", Some("1"), Some("1"))],
    ];
    for changes in late {
        assert_eq!(c.apply(&Command::ChangeSettings { changes }), Err(CatalogError::SettingsChanged));
        assert_eq!(c, after);
    }
    c.apply(&Command::ChangeSettings { changes: vec![change("user/a", Some("2"), None)] }).unwrap();
    let again = Command::ChangeSettings { changes: vec![change("user/a", Some("2"), Some("3"))] };
    assert_eq!(c.apply(&again), Err(CatalogError::SettingsChanged), "who was dropped does not come back");
    assert_eq!((c.setting("user/a"), c.setting("user/b")), (None, Some("1")));
}

mod replay {
    use super::*;
    use proptest::prelude::*;

    fn texts() -> impl Strategy<Value = Option<&'static str>> {
        prop_oneof![Just(None), Just(Some("1")), Just(Some("2"))]
    }

    fn commands() -> impl Strategy<Value = Vec<Command>> {
        let name = prop_oneof![Just("a"), Just("b"), Just("c")];
        let db = prop_oneof![Just("d"), Just("e")];
        let one = prop_oneof![
            db.clone().prop_map(|n| Command::CreateDatabase {
                name: n.into(),
                collation: Collation::DEFAULT,
                comment: String::new()
            }),
            db.clone().prop_map(|n| Command::AlterDatabase {
                name: n.into(),
                collation: Collation::Utf8mb4Bin,
                comment: (n.len() % 2 == 0).then(|| n.to_uppercase()),
            }),
            db.clone().prop_map(|n| Command::DropDatabase { name: n.into() }),
            (1u32..20, db.clone(), name.clone())
                .prop_map(|(i, d, n)| Command::CreateTables { tables: vec![table(i, d, n)] }),
            (1u32..20, db, name).prop_map(|(i, d, n)| Command::ReplaceDefinitions { tables: vec![table(i, d, n)] }),
            (1u32..20).prop_map(|i| Command::DropTables { tables: vec![TableId(i)] }),
            (1u32..3).prop_map(|n| Command::StartJob { what: "j".into(), table: TableId(1), builds: n }),
            (1u64..4).prop_map(|j| Command::AbortJob { job: JobId(j) }),
            (texts(), texts()).prop_map(|(from, to)| Command::ChangeSettings { changes: vec![change("k", from, to)] }),
        ];
        proptest::collection::vec(one, 0..40)
    }

    proptest! {
        /// What was refused left no trace, so replaying only the accepted commands gives the same state; and a
        /// snapshot in the middle changes nothing.
        #[test]
        fn gives_equal_state(all in commands(), cut in 0usize..40) {
            let mut first = Catalog::default();
            let accepted: Vec<Command> = all.into_iter().filter(|c| first.apply(c).is_ok()).collect();
            let mut second = Catalog::default();
            for (i, command) in accepted.iter().enumerate() {
                if i == cut {
                    let json = serde_json::to_vec(&second).unwrap();
                    second = serde_json::from_slice(&json).unwrap();
                    second.after_load();
                }
                let command: Command = serde_json::from_slice(&serde_json::to_vec(command).unwrap()).unwrap();
                second.apply(&command).unwrap();
            }
            prop_assert_eq!(first, second);
        }
    }
}

#[test]
fn a_build_of_a_cluster_has_its_tables_hidden_until_the_switch() {
    let mut c = with_database();
    c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a")] }).unwrap();
    let build = |id| Command::StartBuild {
        what: "ALTER TABLE d.a".into(),
        table: TableId(1),
        owner: ProcessId(7),
        tables: vec![table(id, "d", "a")],
        definitions: vec![],
        limits: Default::default(),
    };
    assert_eq!(c.apply(&build(1)), Err(CatalogError::TableIdUsed(TableId(1))));
    let job = c.apply(&build(2)).unwrap().job.unwrap();
    assert_eq!((job.owner, job.builds.clone()), (Some(ProcessId(7)), vec![TableId(2)]));
    assert_eq!(c.next_table_id(), TableId(3));
    assert_eq!(c.table_by_name("d", "a").unwrap().id, TableId(1));
    assert!(c.table(TableId(2)).is_none());
    assert_eq!(c.hidden_tables().map(|t| t.id).collect::<Vec<_>>(), [TableId(2)]);
    assert_eq!(c.partition_tables().keys().copied().collect::<Vec<_>>(), [TableId(1), TableId(2)]);
    // Somebody who had the same idea takes other ids.
    assert_eq!(c.apply(&build(2)), Err(CatalogError::TableIdUsed(TableId(2))));
    let switch = Command::Switch {
        job: Some(job.id),
        drop: vec![TableId(1)],
        create: vec![table(2, "d", "a")],
        replace: vec![],
    };
    c.apply(&switch).unwrap();
    assert_eq!(c.table_by_name("d", "a").unwrap().id, TableId(2));
    assert_eq!(c.hidden_tables().count(), 0);
    // Partitions may have a definition before the catalog has it.
    let redefine = |id| Command::StartBuild {
        what: "ALTER TABLE d.a".into(),
        table: TableId(2),
        owner: ProcessId(7),
        tables: vec![],
        definitions: vec![table(id, "d", "b")],
        limits: Default::default(),
    };
    assert_eq!(c.apply(&redefine(9)), Err(CatalogError::NoSuchTableId(TableId(9))));
    let job = c.apply(&redefine(2)).unwrap().job.unwrap();
    assert_eq!((&*c.table(TableId(2)).unwrap().name, &*c.partition_tables()[&TableId(2)].name), ("a", "b"));
    c.apply(&Command::AbortJob { job: job.id }).unwrap();
    assert_eq!(&*c.partition_tables()[&TableId(2)].name, "a");
}

/// A partitioned table with these leaves.
fn partitioned(id: u32, name: &str, leaves: &[u32]) -> Arc<TableSchema> {
    let partition = |leaf: &u32| UserPartition {
        name: format!("p{leaf}"),
        values: PartitionValues::None,
        options: Default::default(),
        leaves: vec![Leaf { tables: vec![TableId(*leaf)], ..Leaf::new(None) }],
    };
    let on = PartitionOn::Columns { columns: vec![0], implied: true };
    let method = PartitionMethod::Key { linear: false, algorithm: None };
    let mut table = (*table(id, "d", name)).clone();
    table.partitioning = Some(Arc::new(Partitioning {
        by: PartitionBy { method, on },
        sub: None,
        partitions: leaves.iter().map(partition).collect(),
        counted: true,
        counted_sub: false,
        interval: None,
        dead_entries: false,
    }));
    Arc::new(table)
}

#[test]
fn leaves_have_ids_that_nobody_else_gets() {
    let mut c = with_database();
    c.apply(&Command::CreateTables { tables: vec![partitioned(1, "a", &[2, 3])] }).unwrap();
    assert_eq!(c.next_table_id(), TableId(4));
    let used = |id| Err(CatalogError::TableIdUsed(TableId(id)));
    assert_eq!(c.apply(&Command::CreateTables { tables: vec![table(3, "d", "b")] }), used(3));
    assert_eq!(c.apply(&Command::CreateTables { tables: vec![partitioned(4, "b", &[5, 3])] }), used(3));
    let replace = |table| Command::Switch { job: None, drop: vec![], create: vec![], replace: vec![table] };
    // A leaf goes, another comes.
    c.apply(&replace(partitioned(1, "a", &[3, 4]))).unwrap();
    assert_eq!(c.next_table_id(), TableId(5));
    assert_eq!(c.apply(&replace(partitioned(1, "a", &[2, 4]))), used(2));
    // What a job builds it may switch to.
    let build = Command::StartBuild {
        what: "ALTER TABLE d.a".into(),
        table: TableId(1),
        owner: ProcessId(7),
        tables: vec![partitioned(5, "a", &[6, 7])],
        definitions: vec![],
        limits: Default::default(),
    };
    let job = c.apply(&build).unwrap().job.unwrap();
    assert_eq!((job.builds.clone(), c.next_table_id()), (vec![TableId(5), TableId(6), TableId(7)], TableId(8)));
    let create = vec![partitioned(5, "a", &[6, 7])];
    c.apply(&Command::Switch { job: Some(job.id), drop: vec![TableId(1)], create, replace: vec![] }).unwrap();
    assert_eq!(c.table_by_name("d", "a").unwrap().id, TableId(5));
}

#[test]
fn a_leaf_and_a_table_exchange_their_ids() {
    let mut c = with_database();
    let tables = vec![partitioned(1, "a", &[2, 3]), table(4, "d", "b")];
    c.apply(&Command::CreateTables { tables }).unwrap();
    let exchange = |leaves: &[u32], with, other| Command::ExchangeLeaf {
        partitioned: partitioned(1, "a", leaves),
        with: TableId(with),
        tables: vec![other],
    };
    let before = c.clone();
    let used = |id| Err(CatalogError::TableIdUsed(TableId(id)));
    assert_eq!(c.apply(&exchange(&[2, 4], 4, table(5, "d", "b"))), used(5));
    assert_eq!(c.apply(&exchange(&[4, 4], 4, table(3, "d", "b"))), used(1), "an id twice");
    let unknown = Err(CatalogError::NoSuchTableId(TableId(9)));
    assert_eq!(c.apply(&exchange(&[2, 9], 9, table(3, "d", "b"))), unknown);
    assert!(c.apply(&exchange(&[2, 4], 4, table(3, "d", "c"))).is_err(), "it has another name");
    assert_eq!(c, before);
    let applied = c.apply(&exchange(&[2, 4], 4, table(3, "d", "b"))).unwrap();
    assert_eq!((applied.dropped, c.next_table_id()), (vec![TableId(4)], TableId(5)));
    assert_eq!(c.table_by_name("d", "b").unwrap().id, TableId(3));
    let leaves: Vec<TableId> = c.table_by_name("d", "a").unwrap().partitioning.as_ref().unwrap().tables().collect();
    assert_eq!(leaves, [TableId(2), TableId(4)]);
    c.apply(&exchange(&[2, 3], 3, table(4, "d", "b"))).unwrap();
    assert_eq!(c, before);
}

#[test]
fn a_database_is_dropped_only_with_the_tables_that_its_dropper_knows() {
    let mut c = with_database();
    c.apply(&Command::CreateTables { tables: vec![table(1, "d", "a"), entries_of(1, 2)] }).unwrap();
    let drop = |tables: &[u32]| Command::DropDatabaseOf {
        name: "d".into(),
        tables: tables.iter().map(|&t| TableId(t)).collect(),
    };
    let before = c.clone();
    assert_eq!(c.apply(&drop(&[])), Err(CatalogError::TablesChanged("d".into())));
    assert_eq!(c.apply(&drop(&[1, 3])), Err(CatalogError::TablesChanged("d".into())));
    assert_eq!(c, before);
    assert_eq!(c.apply(&drop(&[1])).unwrap().dropped, [TableId(1), TableId(2)]);
    assert_eq!(c.apply(&drop(&[])), Err(CatalogError::UnknownDatabase("d".into())));
}
