//! Transactions whose partitions other nodes lead: the same as on one node, from whichever node they are run.

use crate::support::*;
use crate::world::{Node, World};
use parking_lot::MutexGuard;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_manage::group::GroupCommand;
use rauk_node::*;
use rauk_types::{Collation, Covering, GroupId, IndexId, RowView, TableSchema};
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

const EXCLUSIVE: Lock = Some((LockMode::Exclusive, WaitPolicy::Wait));

struct Cluster {
    world: Arc<World>,
    nodes: Vec<Node>,
    /// The table as each node knows it.
    tables: Vec<TableHandle>,
    _turn: MutexGuard<'static, ()>,
}

/// Three nodes, four partitions on two replicas each, and a table.
fn three(table: TableSchema) -> Cluster {
    let _turn = crate::turn();
    let world = World::new(3, 4, 2);
    let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait("all lead", |group| {
        let leads = |node: &Node| group.replication_groups.iter().any(|p| p.primary.is_some_and(|m| m.node == node.id));
        nodes.iter().all(leads)
    });
    world.wait_settled();
    let name = table.name.clone();
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[1].db.create_table(table).await.unwrap();
    });
    let tables = nodes.iter().map(|node| node.db.table("d", &name).unwrap()).collect();
    Cluster { world, nodes, tables, _turn }
}

impl Cluster {
    fn end(self) {
        self.nodes.into_iter().for_each(Node::kill);
    }
}

async fn set(txn: &mut Transaction, table: &TableHandle, id: i64, value: i64) -> Result<(), NodeError> {
    let Some(old) = get_for_update(txn, table, id).await? else { panic!("row {id} is missing") };
    let mut new = old.clone();
    new[1] = int(value);
    assert_eq!(txn.update(table, &old, &new).await?, UpdateOutcome::Updated);
    Ok(())
}

fn ids(from: i64, to: i64) -> Vec<Vec<rauk_types::Value>> {
    (from..to).map(|id| account(id, id % 10, Some(&format!("code {id:03}")))).collect()
}

#[test]
fn rows_scans_and_savepoints_from_every_node() {
    let cluster = three(accounts("t"));
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        for (node, table) in nodes.iter().zip(tables) {
            insert_all(&node.db, table, &ids(0, 40)).await;
            for (other, table) in nodes.iter().zip(tables) {
                assert_eq!(contents(&other.db, table).await, ids(0, 40));
                let mut txn = begin_rr(&other.db, table).await;
                let sorted: Vec<i64> = scan(&mut txn, table, all(Some(1)))
                    .await
                    .iter()
                    .map(|row| if let rauk_types::Value::Int(v) = row[1] { v } else { panic!() })
                    .collect();
                assert!(sorted.is_sorted() && sorted.len() == 40, "{sorted:?}");
                // By an index, without its order: batches that end wherever a partition does.
                for batch in [1, 2, 3, 5] {
                    let mut cursor = ScanCursor::new(table, ScanSpec { ordered: false, ..all(Some(0)) });
                    let (mut rows, mut page) = (Vec::new(), ScanBatch::default());
                    while {
                        cursor.next_batch(&mut txn, batch, &mut |_| true, &mut page).await.unwrap();
                        !page.is_empty()
                    } {
                        rows.extend((0..page.len()).map(|i| values(&page.row(table, i), 3)));
                        assert!(rows.len() <= 40, "batches of {batch}: it does not end");
                    }
                    let mut found = first_column(&rows);
                    found.sort_unstable();
                    assert_eq!(found, (0..40).collect::<Vec<_>>(), "batches of {batch}");
                }
                let code = code_key(table, "CODE 017");
                let found = txn.get_unique(table, IndexId(2), &code, None, |row| row.map(|r| values(&r, 3))).await;
                assert_eq!(found.unwrap(), Some(account(17, 7, Some("code 017"))));
                // Duplicates name the row in the way, and leave nothing.
                let duplicate = txn.insert(table, &account(100, 1, Some("code 003"))).await.unwrap();
                assert_eq!(duplicate, InsertOutcome::Duplicate { index: IndexId(2), existing: key_of(table, 3) });
                let duplicate = txn.insert(table, &account(5, 1, None)).await.unwrap();
                assert_eq!(duplicate, InsertOutcome::Duplicate { index: IndexId(0), existing: key_of(table, 5) });
                // What a savepoint undoes is undone on all nodes, and what comes after it stays.
                for id in 200..210 {
                    assert_eq!(txn.insert(table, &account(id, 0, None)).await.unwrap(), InsertOutcome::Inserted);
                }
                let savepoint = txn.savepoint();
                for id in 0..20 {
                    txn.begin_statement();
                    set(&mut txn, table, id, 99).await.unwrap();
                }
                txn.begin_statement();
                assert_eq!(first_column(&scan(&mut txn, table, all(Some(0))).await).len(), 50);
                txn.rollback_to(savepoint);
                txn.begin_statement();
                for id in 210..215 {
                    assert_eq!(txn.insert(table, &account(id, 0, None)).await.unwrap(), InsertOutcome::Inserted);
                }
                txn.commit().await.unwrap();
                let mut expected = ids(0, 40);
                expected.extend((200..215).map(|id| account(id, 0, None)));
                assert_eq!(contents(&node.db, &tables[0]).await, expected);
                // Deleting by a locking scan.
                let mut txn = begin_rr(&other.db, table).await;
                let request = ScanSpec { lock: EXCLUSIVE, low: Bound::Included(key_of(table, 200)), ..all(Some(0)) };
                for row in scan(&mut txn, table, request).await {
                    assert!(txn.delete(table, &row).await.unwrap());
                }
                txn.commit().await.unwrap();
                assert_eq!(contents(&other.db, table).await, ids(0, 40));
            }
            // The statement's undo alone, then commit: nothing of it is there.
            let mut txn = begin_rr(&node.db, table).await;
            for id in 0..40 {
                set(&mut txn, table, id, 77).await.unwrap();
            }
            txn.rollback_statement();
            txn.commit().await.unwrap();
            assert_eq!(contents(&node.db, table).await, ids(0, 40));
            let mut txn = begin_rr(&node.db, table).await;
            for row in ids(0, 40) {
                assert!(txn.delete(table, &row).await.unwrap());
            }
            txn.rollback();
            let mut txn = begin_rr(&node.db, table).await;
            for row in ids(0, 40) {
                assert!(txn.delete(table, &row).await.unwrap());
            }
            txn.commit().await.unwrap();
            assert_eq!(contents(&node.db, table).await, Vec::<Vec<_>>::new());
        }
    });
    cluster.end();
}

#[test]
fn locks_of_one_node_hold_on_all() {
    let cluster = three(accounts("t"));
    let Cluster { nodes, tables, .. } = &cluster;
    let (a, b) = (&nodes[0].db, &nodes[1].db);
    let (ta, tb) = (&tables[0], &tables[1]);
    block_on(async {
        insert_all(a, ta, &ids(0, 16)).await;
        let mut holder = begin_rr(a, ta).await;
        for id in 0..8 {
            set(&mut holder, ta, id, 50).await.unwrap();
        }
        // NOWAIT, SKIP LOCKED, a wait that times out, KILL.
        let mut other = begin_rr(b, tb).await;
        for id in 0..8 {
            let lock = Some((LockMode::Shared, WaitPolicy::NoWait));
            assert_eq!(other.get(tb, &key_of(tb, id), lock, |_| ()).await, Err(NodeError::NoWait));
        }
        for index in [None, Some(0), Some(1)] {
            let skipping = ScanSpec { lock: Some((LockMode::Exclusive, WaitPolicy::SkipLocked)), ..all(index) };
            let mut free = first_column(&scan(&mut other, tb, skipping).await);
            free.sort();
            assert_eq!(free, (8..16).collect::<Vec<_>>(), "{index:?}");
        }
        other.rollback();
        let short = TxnOptions { lock_wait_timeout: Duration::from_millis(60), ..TxnOptions::default() };
        let mut other = b.begin(short);
        other.use_table(tb).await.unwrap();
        other.begin_statement();
        for id in 0..4 {
            let begun = Instant::now();
            assert_eq!(set(&mut other, tb, id, 1).await, Err(NodeError::LockTimeout));
            assert!(begun.elapsed() >= Duration::from_millis(60));
        }
        other.rollback();
        for id in 0..4 {
            let interrupt = Arc::new(Interrupt::default());
            let mut other = b.begin(TxnOptions { interrupt: interrupt.clone(), ..TxnOptions::default() });
            other.use_table(tb).await.unwrap();
            other.begin_statement();
            let killer = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                interrupt.kill();
            });
            assert_eq!(set(&mut other, tb, id, 1).await, Err(NodeError::Interrupted));
            killer.join().unwrap();
        }
        // A read that locks nothing sees what was there.
        assert_eq!(contents(b, tb).await, ids(0, 16));
        // Who waits goes on when the holder has committed, and its snapshot says whether that is a conflict.
        let mut waiting = begin(b, tb, Isolation::ReadCommitted).await;
        let mut snapshot = begin_rr(b, tb).await;
        // What it has read stays as it was.
        assert_eq!(scan(&mut snapshot, tb, all(None)).await.len(), 16);
        let waits = async { set(&mut waiting, tb, 3, 60).await.unwrap() };
        let commits = async {
            nodes[2].db.begin(TxnOptions::default()).rollback();
            holder.commit().await.unwrap();
        };
        futures::join!(waits, commits);
        waiting.commit().await.unwrap();
        assert_eq!(read(a, ta, 3).await, Some(account(3, 60, Some("code 003"))));
        for id in 0..8 {
            snapshot.begin_statement();
            assert_eq!(set(&mut snapshot, tb, id, 1).await, Err(NodeError::Changed { table: "t".into() }));
        }
        // What its snapshot sees has not changed.
        assert_eq!(get(&mut snapshot, tb, 5).await, Some(account(5, 5, Some("code 005"))));
        // A scan that does not want the changed rows meets no conflict, one that does, does.
        let spec = || ScanSpec { lock: EXCLUSIVE, ..all(None) };
        let unchanged = |row: &RowView<'_>| row.get(0).as_integer().is_some_and(|id| id >= 8);
        let (mut cursor, mut batch) = (ScanCursor::new(tb, spec()), ScanBatch::default());
        let mut found = 0;
        loop {
            cursor.next_batch(&mut snapshot, 100, &mut |row| unchanged(row), &mut batch).await.unwrap();
            if batch.is_empty() {
                break;
            }
            found += batch.len();
        }
        assert_eq!(found, 8);
        assert_eq!(try_scan(&mut snapshot, tb, spec()).await, Err(NodeError::Changed { table: "t".into() }));
    });
    cluster.end();
}

/// A consistent snapshot shows nothing that was committed after it was taken, in no partition, from whichever node.
/// Rows made of keys on this node, whole ones of the others: both have the columns that were asked for.
#[test]
fn an_index_is_read_without_its_rows_from_every_node() {
    let cluster = three(accounts("t"));
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        insert_all(&nodes[0].db, &tables[0], &ids(0, 60)).await;
        for round in 0..3i64 {
            for (at, (node, table)) in nodes.iter().zip(tables).enumerate() {
                let schema = table.schema();
                let covering = Covering::new(schema, &schema.key_def(&schema.indexes[1]), &[1]).map(Arc::new);
                assert!(covering.is_some(), "the index is of a number");
                let by_keys = || ScanSpec { covering: covering.clone(), ..all(Some(1)) };
                let column =
                    |rows: Vec<Vec<rauk_types::Value>>| rows.into_iter().map(|row| row[1].clone()).collect::<Vec<_>>();
                let mut txn = begin_rr(&node.db, table).await;
                let before = column(scan(&mut txn, table, all(Some(1))).await);
                assert_eq!(column(scan(&mut txn, table, by_keys()).await), before);
                // Others commit meanwhile, and the transaction changes rows itself.
                let other = (at + 1) % 3;
                let mut changes = begin_rr(&nodes[other].db, &tables[other]).await;
                for id in (round..60).step_by(7) {
                    let value = 100 + (id + 3 * round + at as i64) % 90;
                    set(&mut changes, &tables[other], id, value).await.unwrap();
                }
                changes.commit().await.unwrap();
                assert_eq!(column(scan(&mut txn, table, by_keys()).await), before, "the snapshot stays");
                for id in 200..205 {
                    assert_eq!(txn.insert(table, &account(id, id, None)).await.unwrap(), InsertOutcome::Inserted);
                }
                txn.begin_statement();
                let mut expected = before.clone();
                expected.extend((200..205).map(int));
                assert_eq!(column(scan(&mut txn, table, by_keys()).await), expected);
                txn.rollback();
                let mut fresh = begin_rr(&node.db, table).await;
                let rows = column(scan(&mut fresh, table, all(Some(1))).await);
                assert_eq!(column(scan(&mut fresh, table, by_keys()).await), rows);
                assert_ne!(rows, before);
                // By locks the rows are read.
                let locked = ScanSpec { lock: EXCLUSIVE, ..by_keys() };
                assert_eq!(scan(&mut fresh, table, locked).await[0].len(), 3);
            }
        }
    });
    cluster.end();
}

#[test]
fn a_consistent_snapshot_shows_nothing_later() {
    let cluster = three(accounts("t"));
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        insert_all(&nodes[0].db, &tables[0], &ids(0, 12)).await;
        for round in 0..12 {
            let (reader, writer) = (round as usize % 3, (round as usize + 1 + round as usize / 3) % 3);
            let mut snapshot = nodes[reader].db.begin(TxnOptions::default());
            snapshot.take_consistent_snapshot().await.unwrap();
            snapshot.use_table(&tables[reader]).await.unwrap();
            for id in 0..12 {
                let mut later = begin_rr(&nodes[writer].db, &tables[writer]).await;
                set(&mut later, &tables[writer], id, 100 + round).await.unwrap();
                later.commit().await.unwrap();
            }
            snapshot.begin_statement();
            let before = |id: i64| if round == 0 { id % 10 } else { 99 + round };
            for id in 0..12 {
                let seen = get(&mut snapshot, &tables[reader], id).await;
                let expected = account(id, before(id), Some(&format!("code {id:03}")));
                assert_eq!(seen, Some(expected), "row {id} in round {round}, read on node {reader}");
            }
            snapshot.rollback();
        }
    });
    cluster.end();
}

/// UPDATE without an index at REPEATABLE READ: rows that the snapshot has and that changed since are not passed over,
/// wherever they are.
#[test]
fn a_locking_scan_meets_what_changed_after_its_snapshot() {
    let cluster = three(accounts("t"));
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        let mut rows = ids(0, 16);
        rows.iter_mut().for_each(|row| row[1] = int(20));
        insert_all(&nodes[0].db, &tables[0], &rows).await;
        for id in 0..16 {
            let (reader, writer) = (id as usize % 3, (id as usize + 1) % 3);
            let (table, other) = (&tables[reader], &tables[writer]);
            let mut snapshot = begin_rr(&nodes[reader].db, table).await;
            assert_eq!(scan(&mut snapshot, table, all(None)).await.len(), 16 - id as usize);
            // Odd rows are deleted, even ones no longer meet the condition; and its code is no row's any more.
            let mut later = begin_rr(&nodes[writer].db, other).await;
            let old = get_for_update(&mut later, other, id).await.unwrap().unwrap();
            match id % 2 {
                0 => {
                    let new = account(id, 18, Some("another"));
                    assert_eq!(later.update(other, &old, &new).await.unwrap(), UpdateOutcome::Updated);
                }
                _ => assert!(later.delete(other, &old).await.unwrap()),
            }
            later.commit().await.unwrap();
            snapshot.begin_statement();
            let code = code_key(table, &format!("CODE {id:03}"));
            let changed = Err(NodeError::Changed { table: "t".into() });
            let found =
                snapshot.get_unique(table, IndexId(2), &code, EXCLUSIVE, |row| row.map(|r| values(&r, 3))).await;
            assert_eq!(found, changed.clone().map(|()| None), "by its code, row {id}");
            for index in [None, Some(0), Some(1)] {
                snapshot.begin_statement();
                let spec = ScanSpec { lock: EXCLUSIVE, ..all(index) };
                let mut cursor = ScanCursor::new(table, spec.clone());
                let mut wanted = |row: &RowView<'_>| {
                    (row.get(0).as_integer(), row.get(1).as_integer()) == (Some(i128::from(id)), Some(20))
                };
                let met = cursor.next_batch(&mut snapshot, 100, &mut wanted, &mut ScanBatch::default()).await;
                assert_eq!(met, changed, "by index {index:?}, row {id}");
                // Who does not want it meets no conflict.
                let mut cursor = ScanCursor::new(table, spec);
                let mut unwanted = |row: &RowView<'_>| row.get(0).as_integer() == Some(100);
                let met = cursor.next_batch(&mut snapshot, 100, &mut unwanted, &mut ScanBatch::default()).await;
                assert_eq!(met, Ok(()), "by index {index:?}, without row {id}");
            }
            snapshot.rollback();
            let mut clean = begin_rr(&nodes[writer].db, other).await;
            if let Some(row) = get_for_update(&mut clean, other, id).await.unwrap() {
                assert!(clean.delete(other, &row).await.unwrap());
            }
            clean.commit().await.unwrap();
        }
    });
    cluster.end();
}

/// SERIALIZABLE: what was found missing stays missing, wherever it would be.
#[test]
fn ranges_are_locked_on_all_nodes() {
    let cluster = three(accounts("t"));
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        insert_all(&nodes[0].db, &tables[0], &ids(0, 8)).await;
        let mut reader = begin(&nodes[0].db, &tables[0], Isolation::Serializable).await;
        assert_eq!(scan(&mut reader, &tables[0], all(Some(0))).await.len(), 8);
        let short = TxnOptions { lock_wait_timeout: Duration::from_millis(50), ..TxnOptions::default() };
        for id in 20..28 {
            let mut writer = nodes[1].db.begin(short.clone());
            writer.use_table(&tables[1]).await.unwrap();
            let refused = writer.insert(&tables[1], &account(id, 1, None)).await;
            assert_eq!(refused, Err(NodeError::LockTimeout));
        }
        reader.commit().await.unwrap();
        insert_all(&nodes[1].db, &tables[1], &ids(20, 28)).await;
    });
    cluster.end();
}

#[test]
fn a_deadlock_over_nodes_has_one_victim_soon() {
    let cluster = three(accounts("t"));
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        insert_all(&nodes[0].db, &tables[0], &ids(0, 16)).await;
        // Each pair of rows, whoever leads their partitions: from different nodes, in opposite order.
        let mut longest = Duration::ZERO;
        for (one, two) in [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)] {
            let mut a = begin_rr(&nodes[0].db, &tables[0]).await;
            let mut b = begin_rr(&nodes[1].db, &tables[1]).await;
            set(&mut a, &tables[0], one, 100).await.unwrap();
            set(&mut b, &tables[1], two, 100).await.unwrap();
            let begun = Instant::now();
            let first = async {
                let result = set(&mut a, &tables[0], two, 100).await;
                let after = begun.elapsed();
                match &result {
                    Ok(()) => a.commit().await.unwrap(),
                    Err(_) => a.rollback(),
                }
                (result, after)
            };
            let second = async {
                let result = set(&mut b, &tables[1], one, 100).await;
                let after = begun.elapsed();
                match &result {
                    Ok(()) => b.commit().await.unwrap(),
                    Err(_) => b.rollback(),
                }
                (result, after)
            };
            let (first, second) = futures::join!(first, second);
            let fallen = [&first, &second].iter().filter(|(result, _)| *result == Err(NodeError::Deadlock)).count();
            assert_eq!(fallen, 1, "{first:?} {second:?}");
            longest = longest.max(if first.0.is_err() { first.1 } else { second.1 });
        }
        // 200 ms are promised; the machine that runs the tests may be busy.
        assert!(longest < Duration::from_millis(1000), "{longest:?}");
    });
    cluster.end();
}

/// Locks die with the node that runs the transaction; a transaction that has touched a node's partitions falls with that node, and others do not.
#[test]
fn nodes_take_their_transactions_with_them() {
    let mut cluster = three(accounts("t"));
    // Rows are everywhere: one that leads some of them falls.
    let leads = cluster.world.group().replication_groups[0].primary.map(|m| m.node);
    let at = cluster.nodes.iter().position(|node| Some(node.id) == leads).unwrap();
    let doomed_node = cluster.nodes.remove(at);
    let doomed_table = cluster.tables.remove(at);
    let tables = cluster.tables.clone();
    let Cluster { world, nodes, .. } = &cluster;
    block_on(async {
        insert_all(&nodes[0].db, &tables[0], &ids(0, 32)).await;
        let mut doomed = begin_rr(&doomed_node.db, &doomed_table).await;
        for id in 0..16 {
            set(&mut doomed, &doomed_table, id, 66).await.unwrap();
        }
        let mut witness = begin_rr(&nodes[0].db, &tables[0]).await;
        for id in 16..32 {
            set(&mut witness, &tables[0], id, 55).await.unwrap();
        }
        doomed_node.kill();
        let waited = Instant::now();
        // The witness has touched all partitions, so some of it has died.
        let mut error = None;
        while error.is_none() {
            assert!(waited.elapsed() < Duration::from_secs(10), "it has lost nothing");
            witness.begin_statement();
            for id in 16..32 {
                if let Err(fallen) = set(&mut witness, &tables[0], id, 56).await {
                    error = Some(fallen);
                    break;
                }
            }
        }
        assert!(matches!(error, Some(NodeError::Moved { .. })), "{error:?}");
        assert!(witness.commit().await.is_err());
        world.wait("other primaries", |group| {
            let partitions = group.replication_groups.len() - 1;
            group.replication_groups[..partitions].iter().all(|p| p.primary.is_some())
        });
        let mut txn = begin_rr(&nodes[1].db, &tables[1]).await;
        for id in 0..32 {
            set(&mut txn, &tables[1], id, 9).await.unwrap();
        }
        txn.commit().await.unwrap();
        let expected: Vec<_> = (0..32).map(|id| account(id, 9, Some(&format!("code {id:03}")))).collect();
        assert_eq!(contents(&nodes[0].db, &tables[0]).await, expected);
        drop(doomed);
    });
    cluster.end();
}

/// Keys of all partitions at once, from each node.
#[test]
fn many_keys_are_read_wherever_they_are() {
    let cluster = three(pairs("t"));
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        let rows: Vec<_> = (0..300).map(|id| vec![int(id), int(id * 3)]).collect();
        insert_all(&nodes[0].db, &tables[0], &rows).await;
        for (node, table) in nodes.iter().zip(tables) {
            let mut keys = bulk::Keys::default();
            (0..310).for_each(|id| keys.push(&key_of(table, id)));
            let mut found = vec![None; 310];
            let mut visit = |i: usize, row: bulk::Found<'_>| {
                assert_eq!(found[i], None);
                found[i] = Some(row.map(|(_, row)| values(&row, 2)));
            };
            node.db.read_many(table, &keys, &mut vec![false; 310], &mut visit).await.unwrap();
            for (i, row) in found.into_iter().enumerate() {
                assert_eq!(row, Some(rows.get(i).cloned()), "key {i}");
            }
        }
    });
    cluster.end();
}

/// A first call that was made and whose answer was lost is made again when its sender has given it up; what it left must not stand in its own way.
#[test]
fn a_first_call_whose_answer_is_lost_is_made_again() {
    let cluster = three(pairs("t"));
    let (leader, far) = (&cluster.nodes[0], &cluster.nodes[2]);
    cluster.world.cut(leader.id, far.id);
    let (db, table) = (&far.db, &cluster.tables[2]);
    let outcomes: Vec<Result<InsertOutcome, NodeError>> = std::thread::scope(|scope| {
        let insert = |id: i64| async move {
            let options = TxnOptions { lock_wait_timeout: Duration::from_secs(8), ..TxnOptions::default() };
            let mut txn = db.begin(options);
            txn.use_table(table).await?;
            txn.insert(table, &[int(id), int(id)]).await
        };
        let all: Vec<_> = (0..12).map(|id| scope.spawn(move || block_on(insert(id)))).collect();
        std::thread::sleep(Duration::from_millis(3500));
        cluster.world.heal();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let inserted = |outcome: &&Result<InsertOutcome, NodeError>| **outcome == Ok(InsertOutcome::Inserted);
    assert!(outcomes.iter().filter(inserted).count() > 0, "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| inserted(&outcome) || outcome.is_err()), "{outcomes:?}");
    cluster.end();
}

/// Accounts with no more than two indexes.
fn three_with_fewer_indexes() -> Cluster {
    let mut table = accounts("t");
    table.indexes.truncate(2);
    three(table)
}

/// The last write of a statement in autocommit goes with its commit: whoever asks next finds it, and what is wrong with it is the statement's error.
#[test]
fn the_last_write_of_a_statement_is_done_or_its_error_is_told() {
    let cluster = three_with_fewer_indexes();
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        insert_all(&nodes[0].db, &tables[0], &ids(0, 16)).await;
        for (number, id) in (0..3).cycle().zip(0..16) {
            let (db, table) = (&nodes[number].db, &tables[number]);
            let mut txn = begin_alone(db, table, Duration::from_secs(5)).await;
            set(&mut txn, table, id, 50 + id).await.unwrap();
            txn.commit().await.unwrap();
            let next = (number + 1) % 3;
            assert_eq!(read(&nodes[next].db, &tables[next], id).await.unwrap()[1], int(50 + id));
            // Two rows: the first is sent before the second.
            let mut txn = begin_alone(db, table, Duration::from_secs(5)).await;
            for (row, value) in [(id, 20), ((id + 1) % 16, 21)] {
                set(&mut txn, table, row, value).await.unwrap();
            }
            txn.commit().await.unwrap();
            assert_eq!(read(db, table, id).await.unwrap()[1], int(20));
            // Of one that ends before its commit nothing is left, its locks included.
            let mut txn = begin_alone(db, table, Duration::from_secs(5)).await;
            set(&mut txn, table, id, 1000).await.unwrap();
            txn.rollback_statement();
            txn.commit().await.unwrap();
            let mut txn = begin_alone(db, table, Duration::from_secs(5)).await;
            set(&mut txn, table, id, 1001).await.unwrap();
            txn.rollback();
            assert_eq!(read(&nodes[next].db, &tables[next], id).await.unwrap()[1], int(20));
        }
        // Somebody keeps these values missing: whoever would write one waits for him.
        let mut reader = begin(&nodes[0].db, &tables[0], Isolation::Serializable).await;
        let from = |value| ScanSpec { low: Bound::Included(key_of(&tables[0], value)), ..all(Some(1)) };
        assert_eq!(scan(&mut reader, &tables[0], from(100)).await.len(), 0);
        for id in 0..16 {
            let mut txn = begin_alone(&nodes[1].db, &tables[1], Duration::from_millis(50)).await;
            let begun = Instant::now();
            let written = match set(&mut txn, &tables[1], id, 100 + id).await {
                Ok(()) => txn.commit().await,
                Err(error) => Err(error),
            };
            assert_eq!(written, Err(NodeError::LockTimeout), "{id}");
            assert!(begun.elapsed() >= Duration::from_millis(50));
        }
        let waits = async {
            for id in 0..4 {
                let mut txn = begin_alone(&nodes[1].db, &tables[1], Duration::from_secs(30)).await;
                set(&mut txn, &tables[1], id, 100 + id).await.unwrap();
                txn.commit().await.unwrap();
            }
        };
        let ends = async {
            nodes[0].db.begin(TxnOptions::default()).rollback();
            reader.commit().await.unwrap();
        };
        futures::join!(waits, ends);
        for id in 0..16 {
            let value = read(&nodes[2].db, &tables[2], id).await.unwrap()[1].clone();
            assert_eq!(value == int(100 + id), id < 4, "{id}: {value:?}");
        }
    });
    cluster.end();
}

/// A statement in autocommit that writes here first, and whose last write, led elsewhere, is refused: all of it is undone.
#[test]
fn a_statement_whose_last_write_is_refused_leaves_nothing() {
    let cluster = three_with_fewer_indexes();
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        insert_all(&nodes[0].db, &tables[0], &ids(0, 16)).await;
        // Somebody keeps these values missing: whoever would write one waits for him.
        let mut reader = begin(&nodes[0].db, &tables[0], Isolation::Serializable).await;
        let from = |value| ScanSpec { low: Bound::Included(key_of(&tables[0], value)), ..all(Some(1)) };
        assert_eq!(scan(&mut reader, &tables[0], from(100)).await.len(), 0);
        for id in 0..16 {
            let (first, last) = (id, (id + 5) % 16);
            let mut txn = begin_alone(&nodes[1].db, &tables[1], Duration::from_millis(50)).await;
            set(&mut txn, &tables[1], first, 50).await.unwrap();
            let written = match set(&mut txn, &tables[1], last, 100).await {
                Ok(()) => txn.commit().await,
                Err(error) => {
                    txn.rollback();
                    Err(error)
                }
            };
            assert_eq!(written, Err(NodeError::LockTimeout), "{first}, {last}");
            // Nothing of it is in anybody's way, and nobody sees anything.
            let mut other = begin_rr(&nodes[2].db, &tables[2]).await;
            for id in [first, last] {
                let found = get_for_update(&mut other, &tables[2], id).await.unwrap();
                assert_eq!(found.unwrap()[1], int(id % 10), "{first}, {last}");
            }
            other.commit().await.unwrap();
        }
        reader.commit().await.unwrap();
    });
    cluster.end();
}

/// A locking scan waits in the middle, its partition changes hands and comes back: what it had locked is gone with the old view, so it does not go on where it was.
#[test]
fn a_scan_that_waits_does_not_go_on_in_another_view() {
    let cluster = three(accounts("t"));
    let Cluster { world, nodes, tables, .. } = &cluster;
    let led = world.group().replication_groups[0].clone();
    let at = nodes.iter().position(|node| Some(node.id) == led.primary.map(|m| m.node)).unwrap();
    let (here, table) = (&nodes[at].db, &tables[at]);
    let other = (at + 1) % 3;
    block_on(async {
        insert_all(here, table, &ids(0, 40)).await;
        let mut reader = begin_rr(here, table).await;
        let whole = || ScanSpec { partition: Some(0), ..all(Some(0)) };
        let rows = first_column(&scan(&mut reader, table, whole()).await);
        reader.commit().await.unwrap();
        assert!(rows.len() > 2);
        let mut holder = begin_rr(&nodes[other].db, &tables[other]).await;
        set(&mut holder, &tables[other], rows[2], 50).await.unwrap();

        let mut txn = begin_rr(here, table).await;
        let scanned = {
            let mut scanning = Box::pin(try_scan(&mut txn, table, ScanSpec { lock: EXCLUSIVE, ..whole() }));
            assert!(futures::poll!(scanning.as_mut()).is_pending());
            let version = world.group().replication_groups[0].version;
            world.propose(GroupCommand::Relieve { group: GroupId(0), version });
            world.wait("the same process leads again", |group| {
                group.replication_groups[0].view > led.view && group.replication_groups[0].primary == led.primary
            });
            holder.rollback();
            assert!(read(&nodes[other].db, &tables[other], rows[0]).await.is_some());
            scanning.await
        };
        if scanned.is_ok() {
            for id in rows {
                let mut txn = begin_rr(&nodes[other].db, &tables[other]).await;
                let lock = Some((LockMode::Exclusive, WaitPolicy::NoWait));
                let key = key_of(&tables[other], id);
                let locked = txn.get(&tables[other], &key, lock, |row| row.is_some()).await;
                assert_eq!(locked, Err(NodeError::NoWait), "{id}");
                txn.rollback();
            }
        }
        txn.rollback();
    });
    cluster.end();
}

async fn begin_alone(db: &Database, table: &TableHandle, lock_wait_timeout: Duration) -> Transaction {
    let mut txn = db.begin(TxnOptions { lock_wait_timeout, ..autocommit() });
    txn.use_table(table).await.unwrap();
    txn.begin_statement();
    txn
}

/// Rows with this balance, which the nodes that lead the partitions are asked to choose.
async fn with_balance(
    txn: &mut Transaction,
    table: &TableHandle,
    spec: ScanSpec,
    balance: i64,
    most: usize,
) -> Vec<i64> {
    let filter = rauk_wire::Filter::Compare { column: 1, op: rauk_wire::CompareOp::Equal, value: int(balance) };
    let spec = ScanSpec { pushdown: FilterPushdown::of(&filter), ..spec };
    let mut cursor = ScanCursor::new(table, spec);
    let (mut batch, mut found) = (ScanBatch::default(), Vec::new());
    loop {
        let rows = most.saturating_sub(found.len()).min(16);
        if rows == 0 {
            return found;
        }
        cursor.next_batch(txn, rows, &mut |row| filter.passes(row), &mut batch).await.unwrap();
        if batch.is_empty() {
            return found;
        }
        found.extend((0..batch.len()).map(|i| match batch.row(table, i).get(0) {
            rauk_types::ValueRef::Int(id) => id,
            other => panic!("{other:?}"),
        }));
    }
}

/// A filter runs where the rows are: those that it drops are not sent, and keep no lock; of those that pass only as many are locked as are wanted.
#[test]
fn rows_that_a_filter_drops_are_neither_sent_nor_locked() {
    const ROWS: i64 = 900;
    let cluster = three(accounts("t"));
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        insert_all(&nodes[0].db, &tables[0], &ids(0, ROWS)).await;
        let chosen: Vec<i64> = (0..ROWS).filter(|id| id % 10 == 3).collect();
        for (number, (node, table)) in nodes.iter().zip(tables).enumerate() {
            let next = (number + 1) % nodes.len();
            let (other, there) = (&nodes[next].db, &tables[next]);
            for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
                for index in [None, Some(0), Some(1)] {
                    let before = node.db.counters();
                    let mut txn = begin(&node.db, table, isolation).await;
                    let mut found = with_balance(&mut txn, table, all(index), 3, usize::MAX).await;
                    found.sort_unstable();
                    assert_eq!(found, chosen, "{index:?}");
                    let sent = node.db.counters().remote_scan_rows - before.remote_scan_rows;
                    assert!(sent <= chosen.len() as u64, "{sent} rows were sent");
                    txn.rollback();

                    let before = node.db.counters();
                    let mut txn = begin(&node.db, table, isolation).await;
                    let spec = || ScanSpec { lock: EXCLUSIVE, ..all(index) };
                    let mut found = with_balance(&mut txn, table, spec(), 3, usize::MAX).await;
                    found.sort_unstable();
                    assert_eq!(found, chosen, "{index:?}");
                    let after = node.db.counters();
                    let sent = after.remote_scan_rows - before.remote_scan_rows;
                    assert!((1..=chosen.len() as u64).contains(&sent), "{sent} rows were sent");
                    assert!(after.remote_scan_bytes > before.remote_scan_bytes);
                    let skipping =
                        || ScanSpec { lock: Some((LockMode::Exclusive, WaitPolicy::SkipLocked)), ..all(None) };
                    let mut free = begin(other, there, Isolation::ReadCommitted).await;
                    let unlocked = first_column(&scan(&mut free, there, skipping()).await).len();
                    assert_eq!(unlocked, ROWS as usize - chosen.len(), "{index:?} {isolation:?}");
                    free.rollback();
                    txn.rollback();

                    // Wherever the first rows lie: two are wanted, two are locked.
                    let mut txn = begin(&node.db, table, isolation).await;
                    assert_eq!(with_balance(&mut txn, table, spec(), 3, 2).await.len(), 2);
                    let mut free = begin(other, there, Isolation::ReadCommitted).await;
                    let unlocked = first_column(&scan(&mut free, there, skipping()).await).len();
                    assert_eq!(unlocked, ROWS as usize - 2, "{index:?} {isolation:?}");
                    free.rollback();
                    txn.rollback();
                }
            }
            // A row that came into the condition after the snapshot is a conflict, one that did not is none.
            for (becomes, conflict) in [(5, false), (3, true)] {
                let mut txn = begin_rr(&node.db, table).await;
                assert_eq!(with_balance(&mut txn, table, all(None), 3, usize::MAX).await.len(), chosen.len());
                let mut change = begin_rr(other, there).await;
                for id in [7, 17, 27, 37, 47] {
                    set(&mut change, there, id, becomes).await.unwrap();
                }
                change.commit().await.unwrap();
                txn.begin_statement();
                let filter = rauk_wire::Filter::Compare { column: 1, op: rauk_wire::CompareOp::Equal, value: int(3) };
                let spec = ScanSpec { lock: EXCLUSIVE, pushdown: FilterPushdown::of(&filter), ..all(None) };
                let mut cursor = ScanCursor::new(table, spec);
                let mut passes = |row: &RowView<'_>| filter.passes(row);
                let result = cursor.next_batch(&mut txn, 1000, &mut passes, &mut ScanBatch::default()).await;
                assert_eq!(result.is_err(), conflict, "{result:?}");
                txn.rollback();
                let mut change = begin_rr(other, there).await;
                for id in [7, 17, 27, 37, 47] {
                    set(&mut change, there, id, 7).await.unwrap();
                }
                change.commit().await.unwrap();
            }
        }
    });
    cluster.end();
}

/// A program that nobody knows: all rows come, and the visitor chooses.
#[derive(Debug)]
struct Unknown;

impl Pushdown for Unknown {
    fn program(&self) -> &[u8] {
        &[99, 1, 2, 3]
    }

    fn take(&self, _: &[u8]) -> bool {
        panic!("nobody has run it")
    }

    fn only_drops(&self) -> bool {
        true
    }
}

#[test]
fn a_program_that_is_not_known_is_not_missed() {
    let cluster = three(accounts("t"));
    let Cluster { nodes, tables, .. } = &cluster;
    block_on(async {
        insert_all(&nodes[0].db, &tables[0], &ids(0, 100)).await;
        for (node, table) in nodes.iter().zip(tables) {
            for (index, lock) in [(None, None), (Some(0), None), (None, EXCLUSIVE), (Some(1), EXCLUSIVE)] {
                let mut txn = begin_rr(&node.db, table).await;
                let spec = ScanSpec { pushdown: Some(Arc::new(Unknown)), lock, ..all(index) };
                assert_eq!(scan(&mut txn, table, spec).await.len(), 100);
                txn.rollback();
            }
        }
    });
    cluster.end();
}

/// A batch of keys costs a message or two for each partition, not one for each key.
#[test]
fn many_keys_of_other_nodes_are_one_message_a_partition() {
    let cluster = three(accounts("t"));
    let Cluster { world, nodes, tables, .. } = &cluster;
    let sent = || world.sent.load(std::sync::atomic::Ordering::Relaxed);
    block_on(async {
        insert_all(&nodes[0].db, &tables[0], &ids(0, 240)).await;
        for (node, table) in nodes.iter().zip(tables) {
            let keys: Vec<Vec<u8>> = (0..240).map(|id| key_of(table, id)).collect();
            let codes: Vec<Vec<u8>> = (0..240).map(|id| code_key(table, &format!("code {id:03}"))).collect();
            // With writes of its own the transaction asks the primaries of what it has touched.
            for writes in [false, true] {
                let mut txn = begin_rr(&node.db, table).await;
                txn.take_snapshot().await.unwrap();
                if writes {
                    for id in 0..20 {
                        set(&mut txn, table, id, 77).await.unwrap();
                    }
                    txn.begin_statement();
                }
                let before = sent();
                let found = get_many(&mut txn, table, IndexId::PRIMARY, &keys).await.unwrap();
                let by_code = get_many(&mut txn, table, IndexId(2), &codes).await.unwrap();
                let many = sent() - before;
                let before = sent();
                for (id, (found, by_code)) in found.iter().zip(&by_code).enumerate() {
                    let one = get(&mut txn, table, id as i64).await;
                    assert!(one.is_some() && *found == one && *by_code == one, "{id}: {found:?} {by_code:?}");
                }
                let each = sent() - before;
                // Nodes have other things to say to each other as well.
                assert!(many + 40 < each, "{many} messages for all keys, {each} for each by itself");
                txn.rollback();
            }
        }
    });
    cluster.end();
}

/// Rows of a statement go to each partition together: a message for many rows, not one for each; what is taken is left to
/// the statement, and what is undone is gone everywhere.
#[test]
fn many_rows_are_inserted_together() {
    let cluster = three(accounts("t"));
    let Cluster { world, nodes, tables, .. } = &cluster;
    let sent = || world.sent.load(std::sync::atomic::Ordering::Relaxed);
    let every = |from: i64| -> Vec<Vec<rauk_types::Value>> { ids(from, from + 400) };
    block_on(async {
        let mut expected = Vec::new();
        for (n, (node, table)) in nodes.iter().zip(tables).enumerate() {
            let base = 1000 * n as i64;
            let mut txn = begin_rr(&node.db, table).await;
            let before = sent();
            let mut rows = every(base);
            let mut done = vec![false; 400];
            txn.insert_many(table, &mut rows, &mut done).await.unwrap();
            let many = sent() - before;
            assert!(done.iter().all(|done| *done));
            assert!(many < 100, "{many} messages for 400 rows with two keys each");
            // It sees them, each by its keys.
            txn.begin_statement();
            assert_eq!(get(&mut txn, table, base + 399).await, Some(rows[399].clone()));
            // A savepoint takes them back, and they can be brought again.
            let savepoint = txn.savepoint();
            let mut more = every(base + 400);
            let mut done = vec![false; 400];
            txn.insert_many(table, &mut more, &mut done).await.unwrap();
            txn.rollback_to(savepoint);
            txn.begin_statement();
            assert_eq!(get(&mut txn, table, base + 500).await, None);
            let mut done = vec![false; 400];
            txn.insert_many(table, &mut more, &mut done).await.unwrap();
            assert!(done.iter().all(|done| *done));
            txn.commit().await.unwrap();
            expected.extend(rows.into_iter().chain(more));
        }
        for (node, table) in nodes.iter().zip(tables) {
            assert_eq!(contents(&node.db, table).await, expected);
        }
        // A primary key that is there: it is left, and so is what comes behind it in its partition.
        let (db, table) = (&nodes[1].db, &tables[1]);
        let mut txn = begin_rr(db, table).await;
        let mut rows: Vec<_> = ids(5000, 5300);
        rows[100] = account(7, 7, Some("another"));
        let mut done = vec![false; 300];
        txn.insert_many(table, &mut rows, &mut done).await.unwrap();
        assert!(!done[100] && done[..100].iter().all(|done| *done));
        assert!(done.iter().filter(|done| **done).count() > 150);
        for (row, _) in rows.iter().zip(&done).filter(|(_, done)| !**done) {
            let inserted = txn.insert(table, row).await.unwrap();
            assert_eq!(inserted == InsertOutcome::Inserted, row[0] != int(7), "{row:?}");
        }
        txn.commit().await.unwrap();
        // A unique key that is there undoes the call.
        let mut txn = begin_rr(db, table).await;
        let mut rows: Vec<_> = ids(6000, 6100);
        rows[50][2] = text("code 007");
        let mut done = vec![false; 100];
        txn.insert_many(table, &mut rows, &mut done).await.unwrap();
        assert!(!done.contains(&true));
        txn.begin_statement();
        assert_eq!(get(&mut txn, table, 6000).await, None);
        txn.rollback();
        // Two transactions that bring the same rows: one waits for the other, and finds them.
        let (first, second) = (&nodes[0], &nodes[2]);
        let mut txn = begin_rr(&first.db, &tables[0]).await;
        let mut rows: Vec<_> = ids(8000, 8100);
        let mut done = vec![false; 100];
        txn.insert_many(&tables[0], &mut rows, &mut done).await.unwrap();
        assert!(done.iter().all(|done| *done));
        let options = TxnOptions { lock_wait_timeout: Duration::from_millis(100), ..TxnOptions::default() };
        let mut other = second.db.begin(options);
        other.use_table(&tables[2]).await.unwrap();
        other.begin_statement();
        let mut again = rows.clone();
        let mut done = vec![false; 100];
        let waited = other.insert_many(&tables[2], &mut again, &mut done).await;
        assert_eq!(waited, Err(NodeError::LockTimeout));
        other.rollback();
        txn.commit().await.unwrap();
        let mut other = begin_rr(&second.db, &tables[2]).await;
        let mut done = vec![false; 100];
        other.insert_many(&tables[2], &mut again, &mut done).await.unwrap();
        assert!(!done.contains(&true));
        other.rollback();
    });
    cluster.end();
}
