//! DDL in a cluster: one catalog on all nodes, tables locked on all of them, jobs over rows that are elsewhere, statements and nodes that go away in the middle.

use crate::support::*;
use crate::world::{Node, World};
use rauk_log::fault;
use rauk_manage::group::Open;
use rauk_node::*;
use rauk_types::{
    Collation, ColumnId, DataType, ForeignKey, IndexId, IndexKind, MysqlError, ReferenceAction, TableSchema, Value,
    ValueRef,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn three() -> (parking_lot::MutexGuard<'static, ()>, Arc<World>, Vec<Node>) {
    let turn = crate::turn();
    let world = World::new(3, 4, 2);
    let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait_replicas(2);
    block_on(nodes[0].db.create_database("d", Collation::DEFAULT)).unwrap();
    (turn, world, nodes)
}

pub fn end(nodes: Vec<Node>) {
    nodes.into_iter().for_each(Node::kill);
}

fn name(n: &str) -> (String, String) {
    ("d".to_string(), n.to_string())
}

fn code(error: NodeError) -> u16 {
    MysqlError::from(error).code
}

/// Nothing of a DDL statement is left in the group.
pub fn wait_calm(world: &World) {
    world.wait("no intents and jobs", |g| g.intents.is_empty() && g.catalog.jobs().next().is_none());
}

/// Statements that meet a change of primaries are done again, as clients do.
pub async fn steady<T>(statement: impl AsyncFn() -> Result<T, NodeError>) -> T {
    let end = Instant::now() + Duration::from_secs(15);
    loop {
        match statement().await {
            Ok(done) => return done,
            Err(NodeError::UnknownOutcome(why)) => panic!("{why}"),
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
    }
}

pub async fn rows_by(db: &Database, table: &str, spec: ScanSpec) -> Vec<Vec<Value>> {
    steady(async || {
        let table = db.table("d", table)?;
        let mut txn = db.begin(TxnOptions::default());
        txn.use_table(&table).await?;
        let rows = try_scan(&mut txn, &table, spec.clone()).await?;
        txn.commit().await?;
        Ok(rows)
    })
    .await
}

pub async fn rows(db: &Database, table: &str) -> Vec<Vec<Value>> {
    let mut rows = rows_by(db, table, all(None)).await;
    rows.sort_by_key(|r| match r[0] {
        Value::Int(v) => v,
        _ => i64::MIN,
    });
    rows
}

async fn write(db: &Database, table: &str, rows: &[Vec<Value>]) {
    steady(async || {
        let table = db.table("d", table)?;
        let mut txn = db.begin(TxnOptions::default());
        txn.use_table(&table).await?;
        for row in rows {
            assert_eq!(txn.insert(&table, row).await?, InsertOutcome::Inserted);
        }
        txn.commit().await
    })
    .await
}

/// What becomes of one more row; it is rolled back.
async fn try_insert(db: &Database, table: &str, row: &[Value]) -> InsertOutcome {
    steady(async || {
        let table = db.table("d", table)?;
        let mut txn = db.begin(TxnOptions::default());
        txn.use_table(&table).await?;
        txn.insert(&table, row).await
    })
    .await
}

pub async fn fill(db: &Database, table: &str, ids: std::ops::Range<i64>) {
    let rows: Vec<_> = ids.map(|i| account(i, i % 10, Some(&format!("c{i}")))).collect();
    write(db, table, &rows).await;
}

#[test]
fn a_view_that_one_node_creates_all_have() {
    let (_turn, _world, nodes) = three();
    block_on(async {
        nodes[0].db.create_view(view("v", "select 1"), false).await.unwrap();
        for node in &nodes {
            assert_eq!(node.db.view("d", "v").unwrap().query, "select 1");
            assert_eq!(code(node.db.create_view(view("v", "select 2"), false).await.unwrap_err()), 1050);
            assert_eq!(code(node.db.create_table(accounts("v")).await.unwrap_err()), 1050);
        }
        let versions: Vec<u32> = nodes.iter().map(|node| node.db.catalog_version()).collect();
        nodes[1].db.create_view(view("v", "select 2"), true).await.unwrap();
        nodes[2].db.rename_tables(&[(name("v"), name("w"))], WAIT).await.unwrap();
        for (node, version) in nodes.iter().zip(versions) {
            assert!(node.db.view("d", "v").is_none());
            assert_eq!(node.db.view("d", "w").unwrap().query, "select 2");
            assert_ne!(node.db.catalog_version(), version);
        }
        nodes[0].db.drop_views(vec![name("w")]).await.unwrap();
        for node in &nodes {
            assert!(node.db.views("d").is_empty());
            assert_eq!(code(node.db.drop_views(vec![name("w")]).await.unwrap_err()), 1146);
        }
    });
    end(nodes);
}

#[test]
fn what_one_node_changes_all_have() {
    let (_turn, world, nodes) = three();
    block_on(async {
        nodes[0].db.create_table(accounts("t")).await.unwrap();
        for node in &nodes {
            assert_eq!(code(node.db.create_table(accounts("t")).await.unwrap_err()), 1050);
            assert_eq!(node.db.tables("d").unwrap().len(), 1);
        }
        fill(&nodes[1].db, "t", 0..50).await;
        nodes[2].db.create_table(pairs("u")).await.unwrap();
        let pairs = [(name("t"), name("tmp")), (name("u"), name("t")), (name("tmp"), name("u"))];
        nodes[0].db.rename_tables(&pairs, WAIT).await.unwrap();
        for node in &nodes {
            assert_eq!(rows(&node.db, "u").await.len(), 50);
            assert_eq!(rows(&node.db, "t").await.len(), 0);
            assert_eq!(code(node.db.rename_tables(&[(name("t"), name("u"))], WAIT).await.unwrap_err()), 1050);
        }
        nodes[1].db.truncate_table("d", "u", WAIT).await.unwrap();
        nodes[2].db.drop_table("d", "t", WAIT).await.unwrap();
        for node in &nodes {
            assert_eq!(rows(&node.db, "u").await.len(), 0);
            assert_eq!(code(node.db.drop_table("d", "t", WAIT).await.unwrap_err()), 1051);
        }
        nodes[1].db.set_settings(&[("k".into(), Some("v".into()))]).await.unwrap();
        assert!(nodes.iter().all(|n| n.db.setting("k").as_deref() == Some("v")));
        assert_eq!(nodes[2].db.drop_database("d", WAIT).await, Ok(1));
        assert!(nodes.iter().all(|n| n.db.databases().is_empty() && n.db.table("d", "u").is_err()));
        assert_eq!(code(nodes[0].db.drop_database("d", WAIT).await.unwrap_err()), 1049);
    });
    wait_calm(&world);
    end(nodes);
}

#[test]
fn of_changes_made_from_the_same_text_on_several_nodes_one_is_done() {
    let (_turn, world, nodes) = three();
    let mut from = None;
    for round in 0..5 {
        let changes = nodes.iter().enumerate().map(|(at, node)| {
            let to = Some(format!("{round} by {at}"));
            let change = SettingChange { key: "k".into(), from: from.clone(), to: to.clone() };
            async move { (node.db.change_settings(vec![change]).await, to, node.db.setting("k")) }
        });
        let done = block_on(futures::future::join_all(changes));
        let winners: Vec<_> = done.iter().filter(|(result, ..)| result.is_ok()).map(|(_, to, _)| to.clone()).collect();
        assert_eq!(winners.len(), 1, "{done:?}");
        from = winners[0].clone();
        for (result, _, seen) in &done {
            assert!(matches!(result, Ok(()) | Err(NodeError::SettingsChanged)), "{result:?}");
            // Who looks again finds what to change it from.
            assert_eq!(*seen, from);
        }
    }
    wait_calm(&world);
    end(nodes);
}

#[test]
fn ddl_waits_for_transactions_of_other_nodes_and_new_ones_for_it() {
    let (_turn, world, nodes) = three();
    block_on(nodes[0].db.create_table(accounts("t"))).unwrap();
    block_on(fill(&nodes[0].db, "t", 0..5));
    let t = nodes[1].db.table("d", "t").unwrap();
    let mut open = block_on(begin_rr(&nodes[1].db, &t));
    block_on(get(&mut open, &t, 1));
    let short = Duration::from_millis(200);
    assert_eq!(block_on(nodes[0].db.truncate_table("d", "t", short)), Err(NodeError::LockTimeout));
    // It has left nothing behind: others go on at once, or nearly so.
    wait_calm(&world);
    assert_eq!(block_on(rows(&nodes[2].db, "t")).len(), 5);

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            block_on(nodes[0].db.truncate_table("d", "t", WAIT)).unwrap();
            done.store(true, Ordering::SeqCst);
        });
        world.wait("the intent", |g| !g.intents.is_empty());
        std::thread::sleep(Duration::from_millis(150));
        // The open transaction goes on; another statement on any node queues behind the DDL; another DDL statement too.
        block_on(get(&mut open, &t, 2));
        let options = TxnOptions { lock_wait_timeout: short, ..TxnOptions::default() };
        for node in &nodes {
            let mut txn = node.db.begin(options.clone());
            assert_eq!(block_on(txn.use_table(&node.db.table("d", "t").unwrap())), Err(NodeError::LockTimeout));
        }
        assert_eq!(block_on(nodes[2].db.drop_table("d", "t", short)), Err(NodeError::LockTimeout));
        assert!(!done.load(Ordering::SeqCst));
        block_on(open.commit()).unwrap();
    });
    assert!(nodes.iter().all(|n| block_on(rows(&n.db, "t")).is_empty()));
    end(nodes);
}

pub fn with_indexes(t: &TableHandle) -> TableSchema {
    let mut new = (**t.schema()).clone();
    new.indexes.push(index(5, "u_code_id", IndexKind::Unique, &[2, 0]));
    new.indexes.push(index(6, "by_code_value", IndexKind::Ordered, &[2, 1]));
    new
}

#[test]
fn indexes_are_built_over_the_rows_of_all_nodes() {
    let (_turn, world, nodes) = three();
    block_on(async {
        nodes[0].db.create_table(accounts("t")).await.unwrap();
        for (n, node) in nodes.iter().enumerate() {
            fill(&node.db, "t", n as i64 * 400..(n as i64 + 1) * 400).await;
        }
        let t = nodes[1].db.table("d", "t").unwrap();
        nodes[1].db.alter_table(&t, with_indexes(&t), WAIT).await.unwrap();
        for node in &nodes {
            assert_eq!(rows_by(&node.db, "t", all(Some(6))).await.len(), 1200);
            // The new unique index has every row.
            let found = steady(async || {
                let t = node.db.table("d", "t")?;
                let mut key = Vec::new();
                let wanted = [ValueRef::Str("C777"), ValueRef::Int(777)];
                t.unique_key(IndexId(5)).unwrap().encode_prefix(&wanted, &mut key);
                let mut txn = node.db.begin(TxnOptions::default());
                txn.use_table(&t).await?;
                txn.get_unique(&t, IndexId(5), &key, None, |r| r.map(|r| values(&r, 2))).await
            })
            .await;
            assert_eq!(found, Some(vec![int(777), int(7)]));
        }
        // A unique index that the rows do not allow is refused and leaves nothing.
        let t = nodes[2].db.table("d", "t").unwrap();
        let mut new = (**t.schema()).clone();
        new.indexes.push(index(7, "u_value", IndexKind::Unique, &[1]));
        let error = nodes[2].db.alter_table(&t, new, WAIT).await.unwrap_err();
        assert_eq!(code(error), 1062);
        assert!(!t.is_stale());
        wait_calm(&world);
        // Columns and indexes go, a column comes: one command.
        let mut new = (**t.schema()).clone();
        let mut added = column(7, "extra", DataType::BIGINT, false);
        added.initial = int(5);
        new.columns.push(added);
        new.indexes.retain(|i| ![IndexId(5), IndexId(6)].contains(&i.id));
        nodes[2].db.alter_table(&t, new, WAIT).await.unwrap();
        for node in &nodes {
            assert_eq!(rows(&node.db, "t").await[1], [int(1), int(1), text("c1"), int(5)]);
            assert_eq!(node.db.table("d", "t").unwrap().schema().indexes.len(), 3);
        }
    });
    end(nodes);
}

/// Each node changes 20 rows, deletes one and inserts one; other DDL is kept out.
fn statements_of_all(dbs: &[Database]) {
    for (n, db) in dbs.iter().enumerate() {
        let n = n as i64;
        block_on(async {
            assert!(rows(db, "t").await.len() >= 300);
            let options = TxnOptions { lock_wait_timeout: Duration::from_secs(5), ..TxnOptions::default() };
            steady(async || {
                let t = db.table("d", "t")?;
                let mut txn = db.begin(options.clone());
                txn.use_table(&t).await?;
                for id in (n * 20)..(n * 20 + 20) {
                    let old = get_for_update(&mut txn, &t, id).await?.expect("the row is there");
                    let new = account(id, 1000 + id, Some(&format!("new{id}")));
                    assert_eq!(txn.update(&t, &old, &new).await?, UpdateOutcome::Updated);
                }
                let gone = get_for_update(&mut txn, &t, 100 + n).await?.expect("the row is there");
                assert!(txn.delete(&t, &gone).await?);
                let new = account(5000 + n, n, None);
                assert_eq!(txn.insert(&t, &new).await?, InsertOutcome::Inserted);
                txn.commit().await
            })
            .await;
            let short = Duration::from_millis(50);
            assert_eq!(db.truncate_table("d", "t", short).await, Err(NodeError::LockTimeout));
        });
    }
}

/// Statements are made on all nodes between the two locks of an ADD INDEX, while the processes fill it; replicas and
/// primaries have it in the end.
#[test]
fn statements_of_all_nodes_go_on_while_an_index_is_built() {
    let (_turn, world, nodes) = three();
    block_on(nodes[0].db.create_table(accounts("t"))).unwrap();
    block_on(fill(&nodes[0].db, "t", 0..300));
    let (world_of_step, dbs) = (world.clone(), nodes.iter().map(|n| n.db.clone()).collect::<Vec<_>>());
    let local = fault::Local::new(move |name| {
        if name == "node.ddl.cluster.open" {
            world_of_step.wait("users are let in", |g| g.intents.values().any(|i| i.open == Open::ToAll));
            statements_of_all(&dbs);
        }
        Ok(())
    });
    block_on(async {
        let t = nodes[1].db.table("d", "t").unwrap();
        let mut new = (**t.schema()).clone();
        new.indexes.push(index(6, "by_code_value", IndexKind::Ordered, &[2, 1]));
        new.indexes.push(index(7, "u_value_id", IndexKind::Unique, &[1, 0]));
        nodes[1].db.alter_table(&t, new, WAIT).await.unwrap();
        drop(local);
        for node in &nodes {
            let all_rows = rows(&node.db, "t").await;
            assert_eq!(all_rows.len(), 300);
            assert_eq!(all_rows.iter().filter(|row| matches!(row[1], Value::Int(v) if v >= 1000)).count(), 60);
            let mut by_index = rows_by(&node.db, "t", all(Some(6))).await;
            by_index.sort_by_key(|row| first_column(std::slice::from_ref(row)));
            assert_eq!(by_index, all_rows);
            for row in &all_rows {
                let found = steady(async || {
                    let t = node.db.table("d", "t")?;
                    let mut key = Vec::new();
                    t.schema().key_def(t.schema().index(IndexId(7)).unwrap()).encode_values(row, &mut key);
                    let mut txn = node.db.begin(TxnOptions::default());
                    txn.use_table(&t).await?;
                    txn.get_unique(&t, IndexId(7), &key, None, |found| found.map(|found| values(&found, 3))).await
                })
                .await;
                assert_eq!(found.as_ref(), Some(row));
            }
        }
        // Followers have built it too: whoever leads next gives the same.
        wait_calm(&world);
    });
    end(nodes);
}

/// The same while the table is copied into another form: statements are made before its rows are read, and when all were.
#[test]
fn statements_of_all_nodes_go_on_while_a_table_is_copied() {
    for point in ["node.ddl.cluster.open", "node.ddl.copy", "node.ddl.copy_again"] {
        let (_turn, world, nodes) = three();
        block_on(nodes[0].db.create_table(accounts("t"))).unwrap();
        block_on(fill(&nodes[0].db, "t", 0..300));
        let (world_of_step, dbs) = (world.clone(), nodes.iter().map(|n| n.db.clone()).collect::<Vec<_>>());
        let (begun, noted) = (std::cell::Cell::new(false), std::cell::Cell::new(false));
        let local = fault::Local::new(move |name| {
            if name == "node.ddl.copy" && point == "node.ddl.copy_again" && !noted.replace(true) {
                // Something is noted, so that there is a round.
                block_on(write(&dbs[2], "t", &[account(7000, 1, None)]));
            }
            if name == point && !begun.replace(true) {
                world_of_step.wait("users are let in", |g| g.intents.values().any(|i| i.open == Open::ToAll));
                statements_of_all(&dbs);
            }
            Ok(())
        });
        block_on(async {
            let t = nodes[1].db.table("d", "t").unwrap();
            let before = rows(&nodes[0].db, "t").await;
            let mut new = (**t.schema()).clone();
            new.columns[1].ty = DataType::varchar(30, Default::default());
            new.indexes.push(index(7, "u_value_id", IndexKind::Unique, &[1, 0]));
            let mut convert = |row: &[Value]| {
                let Value::Int(value) = row[1] else { panic!("{row:?}") };
                Ok(vec![row[0].clone(), text(&value.to_string()), row[2].clone()])
            };
            let copied = nodes[1].db.rewrite_table(&t, new, WAIT, &mut convert).await.unwrap();
            drop(local);
            let also = u64::from(point == "node.ddl.copy_again");
            assert_eq!(copied, 300 + also, "{point}");
            for node in &nodes {
                let now = rows(&node.db, "t").await;
                assert_eq!(now.len() as u64, 300 + also);
                for row in &now {
                    let Value::Int(id) = row[0] else { panic!("{row:?}") };
                    let (value, code) = match id {
                        0..60 => ((1000 + id).to_string(), text(&format!("new{id}"))),
                        5000..7000 => ((id - 5000).to_string(), Value::Null),
                        7000.. => ("1".to_string(), Value::Null),
                        _ => {
                            let old = before.iter().find(|old| old[0] == row[0]).expect("the row was there");
                            let Value::Int(value) = old[1] else { panic!("{old:?}") };
                            (value.to_string(), old[2].clone())
                        }
                    };
                    assert_eq!(row, &[int(id), text(&value), code], "{point}");
                }
                let mut by_index = rows_by(&node.db, "t", all(Some(1))).await;
                by_index.sort_by_key(|row| first_column(std::slice::from_ref(row)));
                assert_eq!(by_index, now);
            }
            // Nothing of the notes is left, and followers have what whoever leads has.
            assert_eq!(world.group().catalog.hidden_tables().count(), 0);
            wait_calm(&world);
        });
        end(nodes);
    }
}

/// Parents, children and their writers are on all nodes; the constraint comes when all rows keep it.
#[test]
fn a_foreign_key_is_validated_beside_the_writers_of_all_nodes() {
    let (_turn, world, nodes) = three();
    let with_key = |t: &TableHandle| {
        let mut new = (**t.schema()).clone();
        new.indexes.push(index(6, "new_key", IndexKind::Ordered, &[1, 2]));
        new.indexes.retain(|index| index.id != IndexId(1));
        new.foreign_keys.push(ForeignKey {
            name: "new_key".into(),
            columns: vec![ColumnId(1)],
            parent_database: "d".into(),
            parent_table: "p".into(),
            parent_columns: vec!["id".into()],
            on_delete: ReferenceAction::Restrict,
            on_update: ReferenceAction::Restrict,
        });
        new
    };
    block_on(async {
        nodes[0].db.create_table(accounts("p")).await.unwrap();
        let mut children = accounts("t");
        children.indexes.truncate(2);
        nodes[0].db.create_table(children).await.unwrap();
        let parents: Vec<_> = (0..60).map(|id| account(id, id, None)).collect();
        write(&nodes[1].db, "p", &parents).await;
        let rows: Vec<_> = (0..300).map(|id| account(id, id % 50, None)).collect();
        write(&nodes[2].db, "t", &rows).await;
    });
    let options = TxnOptions { lock_wait_timeout: Duration::from_secs(5), ..TxnOptions::default() };
    // On each node: a parent with a new child, one that goes with its children, and in the last round one that goes alone.
    let step = {
        let dbs: Vec<Database> = nodes.iter().map(|node| node.db.clone()).collect();
        move |round: i64| {
            for (n, db) in dbs.iter().enumerate() {
                let n = n as i64;
                let new = 1000 * round + 100 + n;
                block_on(steady(async || {
                    let (p, t) = (db.table("d", "p")?, db.table("d", "t")?);
                    let mut txn = db.begin(options.clone());
                    txn.use_table(&t).await?;
                    txn.use_table(&p).await?;
                    txn.insert(&t, &account(new, new, None)).await?;
                    txn.insert(&p, &account(new, new, None)).await?;
                    let gone = 10 * round + n;
                    for id in (0..300).filter(|id| id % 50 == gone) {
                        let child = get_for_update(&mut txn, &t, id).await?.expect("the row is there");
                        assert!(txn.delete(&t, &child).await?);
                    }
                    let parent = get_for_update(&mut txn, &p, gone).await?.expect("the row is there");
                    assert!(txn.delete(&p, &parent).await?);
                    txn.commit().await
                }));
                if round == 2 && n == 1 {
                    block_on(steady(async || {
                        let p = db.table("d", "p")?;
                        let mut txn = db.begin(options.clone());
                        txn.use_table(&p).await?;
                        let parent = get_for_update(&mut txn, &p, 45).await?.expect("the row is there");
                        assert!(txn.delete(&p, &parent).await?);
                        txn.commit().await
                    }));
                }
            }
        }
    };
    let validated = |node: &Node, round: i64| {
        let met = std::cell::Cell::new(false);
        let step = step.clone();
        let local = fault::Local::new(move |name| {
            if name == "node.ddl.validate" && !met.replace(true) {
                step(round);
            }
            Ok(())
        });
        let t = node.db.table("d", "t").unwrap();
        let done = block_on(node.db.alter_table(&t, with_key(&t), Duration::from_secs(20)));
        drop(local);
        done
    };
    assert_eq!(code(validated(&nodes[0], 2).expect_err("parent 45 has gone")), 1452);
    block_on(async {
        for node in &nodes {
            assert_eq!(node.db.table("d", "t").unwrap().schema().foreign_keys, []);
        }
        write(&nodes[0].db, "p", &[account(45, 45, None)]).await;
    });
    assert_eq!(validated(&nodes[1], 1), Ok(()));
    block_on(async {
        for node in &nodes {
            let parents: Vec<Value> = rows(&node.db, "p").await.into_iter().map(|mut row| row.remove(0)).collect();
            let children = rows(&node.db, "t").await;
            assert_eq!(children.len(), 300 - 6 * 6 + 6);
            assert!(children.iter().all(|row| parents.contains(&row[1])));
            assert_eq!(rows_by(&node.db, "t", all(Some(6))).await.len(), children.len());
            // All keep it.
            let refused = steady(async || {
                let t = node.db.table("d", "t")?;
                let mut txn = node.db.begin(TxnOptions::default());
                txn.use_table(&t).await?;
                match txn.insert(&t, &account(9000, 9000, None)).await {
                    Err(NodeError::Refused(refused)) => Ok(refused.code),
                    other => panic!("{other:?}"),
                }
            });
            assert_eq!(refused.await, 1452);
        }
        wait_calm(&world);
    });
    end(nodes);
}

#[test]
fn a_table_is_rewritten_and_goes_on_counting() {
    let (_turn, world, nodes) = three();
    block_on(async {
        let mut numbered = accounts("t");
        numbered.auto_increment = Some(0);
        nodes[0].db.create_table(numbered).await.unwrap();
        nodes[0].db.create_table(hidden("h")).await.unwrap();
        fill(&nodes[2].db, "t", 1..701).await;
        for node in &nodes {
            let rows: Vec<_> = (0..40).map(|i| vec![int(i), Value::Null]).collect();
            write(&node.db, "h", &rows).await;
        }
        let t = nodes[1].db.table("d", "t").unwrap();
        let first = nodes[1].db.take_auto_increment(&t, 1).await.unwrap();
        let mut new = (**t.schema()).clone();
        new.columns[1] = column(1, "value", DataType::varchar(30, Collation::DEFAULT), false);
        let mut convert = |row: &[Value]| {
            let mut row = row.to_vec();
            row[1] = text(&format!("{:?}", row[1]));
            Ok(row)
        };
        assert_eq!(nodes[1].db.rewrite_table(&t, new, WAIT, &mut convert).await, Ok(700));
        for node in &nodes {
            let found = rows(&node.db, "t").await;
            assert_eq!(found.len(), 700);
            assert!(matches!(&found[0][1], Value::Str(s) if s.contains("Int")));
            let duplicate = try_insert(&node.db, "t", &[int(9_000), text("x"), text("c5")]).await;
            assert!(matches!(duplicate, InsertOutcome::Duplicate { index: IndexId(2), .. }));
        }
        let t = nodes[2].db.table("d", "t").unwrap();
        assert!(nodes[2].db.take_auto_increment(&t, 1).await.unwrap() > first);
        let h = nodes[0].db.table("d", "h").unwrap();
        let same = (**h.schema()).clone();
        assert_eq!(nodes[0].db.rewrite_table(&h, same, WAIT, &mut |row| Ok(row.to_vec())).await, Ok(120));
        // A row that does not fit leaves the table as it is.
        let t = nodes[0].db.table("d", "t").unwrap();
        let mut convert = |_: &[Value]| Err(MysqlError::new(1265, "Data truncated"));
        let error = nodes[0].db.rewrite_table(&t, (**t.schema()).clone(), WAIT, &mut convert).await.unwrap_err();
        assert_eq!(code(error), 1265);
        wait_calm(&world);
        assert_eq!(rows(&nodes[2].db, "t").await.len(), 700);
    });
    end(nodes);
}

#[test]
fn numbers_are_given_out_once_in_the_whole_cluster() {
    let (_turn, _world, nodes) = three();
    let mut numbered = pairs("t");
    numbered.auto_increment = Some(0);
    block_on(nodes[0].db.create_table(numbered)).unwrap();
    let table = nodes[0].db.table("d", "t").unwrap();
    let taken = parking_lot::Mutex::new(std::collections::BTreeSet::new());
    std::thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(|| {
                for _ in 0..200 {
                    let n = block_on(node.db.take_auto_increment(&table, 2)).unwrap();
                    let mut taken = taken.lock();
                    assert!(taken.insert(n) && taken.insert(n + 1), "{n}");
                }
            });
        }
    });
    assert!(nodes[1].db.peek_auto_increment(table.schema().id) > 400);
    end(nodes);
}

#[test]
fn statements_that_go_away_leave_nothing() {
    let (_turn, world, nodes) = three();
    block_on(nodes[0].db.create_table(accounts("t"))).unwrap();
    block_on(fill(&nodes[0].db, "t", 0..100));
    let t = nodes[1].db.table("d", "t").unwrap();
    // While it waits for the tables.
    let open = block_on(begin_rr(&nodes[1].db, &t));
    {
        let ddl = nodes[0].db.truncate_table("d", "t", WAIT);
        let until = async {
            while world.group().intents.is_empty() {
                std::thread::sleep(Duration::from_millis(1));
                yield_now().await;
            }
        };
        block_on(futures::future::select(Box::pin(ddl), Box::pin(until)));
    }
    wait_calm(&world);
    block_on(open.commit()).unwrap();
    // While it fills: `convert` never ends, and the client goes.
    {
        let t = nodes[0].db.table("d", "t").unwrap();
        let begun = AtomicBool::new(false);
        let mut convert = |row: &[Value]| {
            begun.store(true, Ordering::SeqCst);
            Ok(row.to_vec())
        };
        let new = (**t.schema()).clone();
        let ddl = nodes[0].db.rewrite_table(&t, new, WAIT, &mut convert);
        let until = async {
            while !begun.load(Ordering::SeqCst) {
                yield_now().await;
            }
        };
        block_on(futures::future::select(Box::pin(ddl), Box::pin(until)));
    }
    wait_calm(&world);
    assert!(nodes.iter().all(|n| block_on(rows(&n.db, "t")).len() == 100));
    end(nodes);
}

async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

#[test]
fn a_node_that_dies_in_a_statement_leaves_nothing_and_one_that_is_down_catches_up() {
    let (_turn, world, mut nodes) = three();
    block_on(nodes[0].db.create_table(accounts("t"))).unwrap();
    block_on(fill(&nodes[0].db, "t", 0..100));
    let dying = nodes.remove(2);
    let db = dying.db.clone();
    let (begun, killed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let statement = {
        let (begun, killed) = (begun.clone(), killed.clone());
        std::thread::spawn(move || {
            let t = db.table("d", "t").unwrap();
            let mut convert = |row: &[Value]| {
                begun.store(true, Ordering::SeqCst);
                while !killed.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(row.to_vec())
            };
            let new = (**t.schema()).clone();
            block_on(db.rewrite_table(&t, new, WAIT, &mut convert))
        })
    };
    while !begun.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The new table, its index table and the notes of writers.
    assert_eq!(world.group().catalog.hidden_tables().count(), 3);
    dying.kill();
    killed.store(true, Ordering::SeqCst);
    wait_calm(&world);
    // It ends there, too: nobody waits for what can never come.
    let end_at = Instant::now() + Duration::from_secs(10);
    while !statement.is_finished() {
        assert!(Instant::now() < end_at, "the statement hangs on a node that has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(statement.join().unwrap().is_err());
    // With a node down.
    let end_at = Instant::now() + Duration::from_secs(10);
    while let Err(error) = block_on(nodes[0].db.truncate_table("d", "t", WAIT)) {
        assert!(Instant::now() < end_at, "{error}");
    }
    block_on(nodes[1].db.create_table(pairs("u"))).unwrap();
    nodes.push(world.open(2));
    world.wait_replicas(2);
    let found = nodes[2].db.tables("d").unwrap();
    assert_eq!(found.iter().map(|t| &*t.name).collect::<Vec<_>>(), ["t", "u"]);
    assert!(nodes.iter().all(|n| block_on(rows(&n.db, "t")).is_empty()));
    block_on(nodes[2].db.drop_table("d", "u", WAIT)).unwrap();
    assert!(nodes.iter().all(|n| n.db.table("d", "u").is_err()));
    end(nodes);
}

#[test]
fn statements_of_all_nodes_at_once_leave_one_catalog() {
    let (_turn, world, nodes) = three();
    block_on(nodes[0].db.create_table(accounts("t"))).unwrap();
    std::thread::scope(|scope| {
        for (n, node) in nodes.iter().enumerate() {
            scope.spawn(move || {
                block_on(async {
                    for round in 0..6 {
                        let own = format!("own{n}");
                        node.db.create_table(pairs(&own)).await.unwrap();
                        // One of the nodes has the name, the others are refused.
                        match node.db.create_table(pairs("shared")).await {
                            Ok(()) => node.db.drop_table("d", "shared", WAIT).await.unwrap(),
                            Err(error) => assert_eq!(code(error), 1050),
                        }
                        match node.db.table("d", "t") {
                            Ok(t) => {
                                let mut new = (**t.schema()).clone();
                                new.comment = format!("{n} {round}");
                                match node.db.alter_table(&t, new, WAIT).await {
                                    Ok(()) | Err(NodeError::StaleSchema) => {}
                                    Err(error) => panic!("{error}"),
                                }
                            }
                            Err(error) => panic!("{error}"),
                        }
                        node.db.truncate_table("d", &own, WAIT).await.unwrap();
                        node.db.drop_table("d", &own, WAIT).await.unwrap();
                    }
                });
            });
        }
    });
    wait_calm(&world);
    let expected = nodes[0].db.tables("d").unwrap();
    assert_eq!(expected.len(), 1);
    for node in &nodes {
        assert_eq!(node.db.tables("d").unwrap(), expected);
        let t = node.db.table("d", "t").unwrap();
        assert!(t.schema() == &expected[0] && !t.is_stale());
    }
    end(nodes);
}

#[test]
fn tables_that_a_session_has_locked() {
    use TableLockMode::{Alone, NoWrites};
    let (_turn, world, mut nodes) = three();
    let wait = DdlWait::from(Duration::from_secs(20));
    let short = || TxnOptions { metadata_wait: Some(Duration::from_millis(100)), ..TxnOptions::default() };
    block_on(async {
        nodes[0].db.create_table(accounts("t")).await.unwrap();
        nodes[0].db.create_table(accounts("u")).await.unwrap();
        fill(&nodes[1].db, "t", 0..5).await;
        let handle = |at: usize, table: &str| nodes[at].db.table("d", table).unwrap();
        let wanted = [(handle(0, "t"), NoWrites), (handle(0, "u"), Alone)];
        let locks = nodes[0].db.lock_tables(&wanted, wait).await.unwrap();
        for (at, node) in nodes.iter().enumerate() {
            let mut txn = node.db.begin(short());
            txn.use_table(&handle(at, "t")).await.unwrap();
            assert_eq!(txn.use_table_to_write(&handle(at, "t")).await, Err(NodeError::LockTimeout));
            assert_eq!(txn.use_table(&handle(at, "u")).await, Err(NodeError::LockTimeout));
        }
        let mut own = nodes[0].db.begin(TxnOptions { locked: Some(locks.tables()), ..short() });
        own.use_table(&handle(0, "t")).await.unwrap();
        assert_eq!(code(own.use_table_to_write(&handle(0, "t")).await.unwrap_err()), 1099);
        own.use_table_to_write(&handle(0, "u")).await.unwrap();
        own.insert(&handle(0, "u"), &account(1, 1, None)).await.unwrap();
        own.commit().await.unwrap();
        // Sessions of other nodes keep writers out, too; nobody gets the table alone.
        let second = nodes[1].db.lock_tables(&[(handle(1, "t"), NoWrites)], wait).await.unwrap();
        let alone =
            nodes[2].db.lock_tables(&[(handle(2, "t"), Alone)], DdlWait::from(Duration::from_millis(300))).await;
        assert_eq!(alone.err(), Some(NodeError::LockTimeout));
        drop(locks);
        assert_eq!(rows(&nodes[2].db, "u").await.len(), 1);
        let mut txn = nodes[2].db.begin(short());
        assert_eq!(txn.use_table_to_write(&handle(2, "t")).await, Err(NodeError::LockTimeout));
        drop(txn);
        drop(second);
        fill(&nodes[2].db, "t", 5..6).await;
    });
    wait_calm(&world);
    // DDL under the locks: they stay, and follow a table that is made again.
    block_on(async {
        let handle = |at: usize, table: &str| nodes[at].db.table("d", table).unwrap();
        let locks =
            nodes[0].db.lock_tables(&[(handle(0, "t"), Alone), (handle(0, "u"), NoWrites)], wait).await.unwrap();
        let under = DdlWait { locks: Some(&locks), ..wait };
        nodes[0].db.truncate_table("d", "t", under).await.unwrap();
        let mut wider = (**handle(0, "t").schema()).clone();
        wider.comment = "wider".into();
        nodes[0].db.alter_table(&handle(0, "t"), wider.clone(), under).await.unwrap();
        let rewritten = nodes[0].db.rewrite_table(&handle(0, "t"), wider, under, &mut |row| Ok(row.to_vec())).await;
        assert_eq!(rewritten, Ok(0));
        let name = |table: &str| ("d".to_string(), table.to_string());
        nodes[0].db.rename_tables(&[(name("t"), name("s"))], under).await.unwrap();
        for (at, node) in nodes.iter().enumerate() {
            let mut txn = node.db.begin(short());
            assert_eq!(txn.use_table(&handle(at, "s")).await, Err(NodeError::LockTimeout), "{at}");
            txn.use_table(&handle(at, "u")).await.unwrap();
            assert_eq!(txn.use_table_to_write(&handle(at, "u")).await, Err(NodeError::LockTimeout));
        }
        let mut own = nodes[0].db.begin(TxnOptions { locked: Some(locks.tables()), ..short() });
        own.use_table_to_write(&handle(0, "s")).await.unwrap();
        own.insert(&handle(0, "s"), &account(1, 1, None)).await.unwrap();
        own.commit().await.unwrap();
        // Another session's DDL waits for the locks, and this one's for nobody.
        let other = nodes[1].db.drop_table("d", "s", DdlWait::from(Duration::from_millis(300))).await;
        assert_eq!(other, Err(NodeError::LockTimeout));
        // Only kept from writers, and raised while a reader of another node is there: the reader is waited for.
        let mut reader = nodes[2].db.begin(short());
        reader.use_table(&handle(2, "u")).await.unwrap();
        let limit = Duration::from_millis(300);
        let raised = nodes[0].db.truncate_table("d", "u", DdlWait { limit, ..under }).await;
        assert_eq!(raised, Err(NodeError::LockTimeout));
        drop(reader);
        nodes[0].db.drop_table("d", "s", under).await.unwrap();
        nodes[1].db.create_table(accounts("t")).await.unwrap();
        drop(locks);
        fill(&nodes[2].db, "u", 5..6).await;
    });
    wait_calm(&world);
    // The locks of a process end with it.
    let last = nodes.pop().unwrap();
    let locks = block_on(last.db.lock_tables(&[(last.db.table("d", "u").unwrap(), Alone)], wait)).unwrap();
    last.kill();
    block_on(write(&nodes[0].db, "u", &[account(2, 2, None)]));
    drop(locks);
    wait_calm(&world);
    end(nodes);
}
