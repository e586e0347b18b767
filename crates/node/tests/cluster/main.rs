//! Nodes of a cluster, on threads in one process: rows on several replicas, transactions over nodes, nodes that die and come back.

mod adopting;
mod bounds;
mod commits;
mod damage;
mod large;
mod pairs;
mod unanswered;
mod world;

#[path = "../support/mod.rs"]
mod support;

use pairs::{get, key, put, three, value_of};
use rauk_node::*;
use rauk_types::{Collation, Value};
use std::sync::Arc;
use std::time::Duration;
use support::*;
use world::World;

#[test]
fn rows_written_on_one_node_are_read_on_all() {
    let (_world, nodes) = three(2);
    block_on(async {
        for id in 0..60 {
            let writer = &nodes[id as usize % 3].db;
            put(writer, id, id * 10).await.unwrap();
            for reader in &nodes {
                assert_eq!(get(&reader.db, id).await.unwrap(), Some(id * 10), "row {id} on {:?}", reader.id);
            }
        }
        // Each counts all of them, wherever they are.
        for node in &nodes {
            let handle = node.db.table("d", "t").unwrap();
            let table = handle.schema().id;
            // A partition that moves meanwhile may be told of twice, or not at all.
            let end = std::time::Instant::now() + Duration::from_secs(10);
            while (node.db.table_usage(table).rows, node.db.estimate_rows(&handle)) != (60, 60) {
                assert!(std::time::Instant::now() < end, "{:?} counts {}", node.id, node.db.table_usage(table).rows);
                node.db.gather_usage().await;
            }
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

/// A process that holds no replica of what it has committed knows that no cut covers it.
#[test]
fn commits_in_the_memory_of_others_want_a_cut_as_well() {
    let world = World::with(3, 4, 1, rauk_manage::group::ClusterDurability::Replicated);
    let mut nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait_settled();
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[1].db.create_table(pairs("t")).await.unwrap();
        for id in 0..8 {
            put(&nodes[0].db, id, id).await.unwrap();
        }
        let end = std::time::Instant::now() + Duration::from_secs(20);
        // What was committed is noted at the next tick, and covered by a cut after that.
        let mut covered = 0;
        while covered < 10 {
            let all = nodes.iter().all(|node| node.db.member().unwrap().cut_age().is_zero());
            covered = if all { covered + 1 } else { 0 };
            assert!(std::time::Instant::now() < end, "a cut covers what was committed");
            std::thread::sleep(Duration::from_millis(5));
        }
        // From here on no cut is complete.
        let silent = nodes.pop().expect("three");
        let id = silent.id;
        silent.db.fence().await.unwrap();
        silent.kill();
        world.wait("it is silent", |group| group.member(id).is_none());
        let cut = world.group().cut.time;
        let (asks, leads) = (nodes[0].db.member().unwrap(), nodes[1].db.member().unwrap());
        let before = asks.cut_age();
        assert!(before.is_zero() && leads.cut_age().is_zero(), "{before:?}");
        let table = nodes[0].db.table("d", "t").unwrap();
        let txn = nodes[0].db.begin(TxnOptions::default());
        let elsewhere = (100..200).filter(|id| txn.changes_elsewhere(&table, &key(&table, *id)));
        for id in elsewhere.take(4) {
            put(&nodes[0].db, id, id).await.unwrap();
        }
        let end = std::time::Instant::now() + Duration::from_secs(5);
        while asks.cut_age().is_zero() || leads.cut_age().is_zero() {
            assert!(std::time::Instant::now() < end, "{:?} and {:?}", asks.cut_age(), leads.cut_age());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(world.group().cut.time, cut);
    });
    nodes.into_iter().for_each(world::Node::kill);
}

/// Durability `replicated`, rules 34 to 36: a node is silent and has the only memory of its partitions, so no cut is complete. Others commit for about a second, and no longer. It comes back with all it had.
#[test]
fn commits_wait_for_cuts_and_a_fenced_process_brings_its_memory_back() {
    let world = World::with(3, 4, 1, rauk_manage::group::ClusterDurability::Replicated);
    let mut nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait_replicas(1);
    let insert = async |db: &Database, id: i64| {
        let table = db.table("d", "t")?;
        let patience = TxnOptions { lock_wait_timeout: Duration::from_millis(100), ..TxnOptions::default() };
        let mut txn = db.begin(patience);
        txn.use_table(&table).await?;
        txn.insert(&table, &[Value::Int(id), Value::Int(id)]).await?;
        txn.commit().await
    };
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[1].db.create_table(pairs("t")).await.unwrap();
        let mut acknowledged = Vec::new();
        for id in 0..40 {
            // Primaries move for a while.
            if insert(&nodes[2].db, id).await.is_ok() {
                acknowledged.push(id);
            }
        }
        assert!(acknowledged.len() > 20, "{acknowledged:?}");
        let silent = nodes.pop().expect("three");
        let id = silent.id;
        // It has the only memory of a partition, others have that of the rest and of the common one, and none is on its way to another node: each leads one, so none is to move.
        world.wait("each leads", |group| {
            let (common, partitions) = group.replication_groups.split_last().expect("one is common");
            let settled = |p: &rauk_manage::group::ReplicationGroup| p.primary.is_some_and(|m| p.placed == [m.node]);
            let leads = |node: &world::Node| partitions.iter().any(|p| p.placed == [node.id]);
            let common_stays = common.in_sync.iter().any(|member| member.node != id);
            partitions.iter().all(settled) && nodes.iter().chain([&silent]).all(leads) && common_stays
        });
        silent.db.fence().await.unwrap();
        silent.kill();
        world.wait("it is silent", |group| group.member(id).is_none());
        let end = std::time::Instant::now() + Duration::from_secs(20);
        let mut next = 100;
        let mut last = None;
        let refused = loop {
            let group = world.group();
            let late = std::time::Instant::now() >= end;
            assert!(
                !late,
                "commits never wait: {last:?}, {acknowledged:?}, {:?}, {:?}",
                group.cut, group.replication_groups
            );
            match insert(&nodes[0].db, next).await {
                Ok(()) => acknowledged.push(next),
                Err(NodeError::Unavailable(why)) if why.contains("commits wait") => break why,
                Err(error) => last = Some((next, error)),
            }
            next += 1;
            std::thread::sleep(Duration::from_millis(2));
        };
        assert!(refused.contains("rauk.health"), "{refused}");
        let reasons = nodes[0].db.health().1.join("; ");
        assert!(reasons.contains("commits wait") && reasons.contains("waits for the memory of node 3"), "{reasons}");
        assert_eq!(world.group().recovery.number, 0);
        nodes.push(world.open(2));
        world.wait_replicas(1);
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while let Err(error) = insert(&nodes[0].db, 10_000 + next).await {
            assert!(std::time::Instant::now() < end, "{error}");
            next += 1;
        }
        assert_eq!(world.group().recovery.number, 0, "nothing was lost");
        for id in acknowledged {
            let end = std::time::Instant::now() + Duration::from_secs(20);
            let found = loop {
                match get(&nodes[1].db, id).await {
                    Ok(found) => break found,
                    Err(error) => assert!(std::time::Instant::now() < end, "{error}"),
                }
            };
            assert_eq!(found, Some(id), "it was acknowledged");
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

#[test]
fn replicas_are_changed_while_the_cluster_works() {
    let (world, nodes) = three(2);
    block_on(async {
        for (round, wanted) in [3, 1, 2].into_iter().enumerate() {
            nodes[round].db.set_replicas(wanted).await.unwrap();
            assert!(nodes.iter().all(|node| u64::from(node.db.replicas()) == wanted));
            for id in 0..20 {
                // Primaries move, and end what has locks there.
                let end = std::time::Instant::now() + Duration::from_secs(15);
                while let Err(error) = put(&nodes[0].db, round as i64 * 100 + id, id).await {
                    assert!(std::time::Instant::now() < end, "{error}");
                }
            }
            world.wait_replicas(wanted as usize);
            for id in 0..20 {
                assert_eq!(get(&nodes[2].db, round as i64 * 100 + id).await.unwrap(), Some(id));
            }
        }
        for wrong in [0, 5, 1000] {
            let error = nodes[0].db.set_replicas(wrong).await.unwrap_err().to_string();
            assert!(error.contains("1 to 4 are possible"), "{error}");
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

/// Who has given a partition to others has its memory back, also after a restart; and gets a copy when it is given the partition again.
#[test]
fn what_others_hold_is_forgotten() {
    let (world, mut nodes) = three(3);
    let holders = |nodes: &[world::Node]| {
        let mut holders = [0; 8];
        for node in nodes {
            let report = node.db.report(rauk_node::member::report::Wanted::Partitions);
            for p in report.partitions.iter().filter(|p| p.whole && p.last > 0 && p.partition.0 < 8) {
                holders[usize::from(p.partition.0)] += 1;
            }
        }
        holders
    };
    let until = |nodes: &[world::Node], wanted: usize| {
        let end = std::time::Instant::now() + Duration::from_secs(40);
        while holders(nodes) != [wanted; 8] {
            assert!(std::time::Instant::now() < end, "{:?} nodes have the partitions", holders(nodes));
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let insist = async |nodes: &[world::Node], ids: std::ops::Range<i64>| {
        for id in ids {
            let end = std::time::Instant::now() + Duration::from_secs(15);
            while let Err(error) = put(&nodes[0].db, id, id).await {
                assert!(std::time::Instant::now() < end, "row {id}: {error}");
            }
        }
    };
    block_on(insist(&nodes, 0..400));
    until(&nodes, 3);
    block_on(nodes[0].db.set_replicas(1)).unwrap();
    until(&nodes, 1);
    block_on(insist(&nodes, 400..500));
    nodes.pop().unwrap().kill();
    nodes.push(world.open(2));
    world.wait_replicas(1);
    until(&nodes, 1);
    block_on(nodes[0].db.set_replicas(3)).unwrap();
    world.wait_replicas(3);
    until(&nodes, 3);
    block_on(async {
        for node in &nodes {
            for id in 0..500 {
                assert_eq!(get(&node.db, id).await.unwrap(), Some(id), "row {id} on {:?}", node.id);
            }
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

#[test]
fn a_killed_node_is_replaced_and_comes_back() {
    let (world, mut nodes) = three(2);
    block_on(async {
        for id in 0..30 {
            put(&nodes[0].db, id, id).await.unwrap();
        }
    });
    nodes.remove(2).kill();
    let written = block_on(async {
        let mut written = Vec::new();
        let end = std::time::Instant::now() + Duration::from_secs(10);
        for id in 30..60 {
            // What is refused may be tried again; an unknown outcome may not.
            loop {
                match put(&nodes[0].db, id, id).await {
                    Ok(()) => {
                        written.push(id);
                        break;
                    }
                    Err(NodeError::UnknownOutcome(_)) => break,
                    Err(error) => assert!(std::time::Instant::now() < end, "row {id}: {error}"),
                }
            }
        }
        written
    });
    assert!(written.len() >= 25, "{written:?}");
    nodes.push(world.open(2));
    world.wait_replicas(2);
    block_on(async {
        for id in (0..30).chain(written) {
            assert_eq!(get(&nodes[2].db, id).await.unwrap(), Some(id));
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

#[test]
fn a_node_that_is_cut_off_stops_serving_and_must_begin_anew() {
    let (world, mut nodes) = three(2);
    block_on(async { put(&nodes[0].db, 1, 1).await.unwrap() });
    let lost = nodes[2].id;
    for other in &nodes[..2] {
        world.cut(lost, other.id);
        world.cut(other.id, lost);
    }
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while !nodes[2].db.member().unwrap().expelled() {
        assert!(std::time::Instant::now() < end, "it is not taken for gone");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut partitions = nodes[2].db.member().unwrap().layout().partitions();
    assert!(partitions.all(|p| nodes[2].db.member().unwrap().may_serve(p).is_none()));
    world.wait("other primaries", |group| group.replication_groups.iter().all(|p| p.primary.is_some()));
    block_on(async {
        for id in 2..20 {
            while let Err(error) = put(&nodes[0].db, id, id).await {
                assert!(std::time::Instant::now() < end, "row {id}: {error}");
            }
        }
    });
    nodes.remove(2).kill();
    world.heal();
    nodes.push(world.open(2));
    world.wait_replicas(2);
    block_on(async {
        for id in 1..20 {
            assert_eq!(get(&nodes[2].db, id).await.unwrap(), Some(id));
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

/// Moves money between two accounts that mostly live in different partitions.
async fn transfer(db: &Database, from: i64, to: i64, amount: i64) -> Result<(), NodeError> {
    let table = db.table("d", "t")?;
    let mut txn = db.begin(TxnOptions { lock_wait_timeout: Duration::from_secs(2), ..TxnOptions::default() });
    txn.use_table(&table).await?;
    let lock = Some((rauk_kernel::LockMode::Exclusive, rauk_kernel::WaitPolicy::Wait));
    for (id, change) in [(from, -amount), (to, amount)] {
        let read = |row: Option<rauk_types::RowView<'_>>| row.map(|row| value_of(&row)).expect("accounts stay");
        let old = txn.get(&table, &key(&table, id), lock, read).await?;
        let (old, new) = ([Value::Int(id), Value::Int(old)], [Value::Int(id), Value::Int(old + change)]);
        txn.update(&table, &old, &new).await?;
    }
    txn.commit().await
}

/// All balances in one snapshot.
async fn balances(db: &Database) -> Result<Vec<i64>, NodeError> {
    let table = db.table("d", "t")?;
    let mut txn = db.begin(TxnOptions::default());
    txn.use_table(&table).await?;
    let mut cursor = ScanCursor::new(&table, all(Some(0)));
    let (mut batch, mut balances) = (ScanBatch::default(), Vec::new());
    loop {
        cursor.next_batch(&mut txn, 7, &mut |_| true, &mut batch).await?;
        if batch.is_empty() {
            txn.commit().await?;
            return Ok(balances);
        }
        for i in 0..batch.len() {
            balances.push(value_of(&batch.row(&table, i)));
        }
    }
}

#[test]
fn transfers_over_nodes_keep_the_sum_in_every_snapshot_while_a_node_dies_and_returns() {
    const ACCOUNTS: i64 = 20;
    let (world, mut nodes) = three(2);
    block_on(async {
        for id in 0..ACCOUNTS {
            put(&nodes[0].db, id, 100).await.unwrap();
        }
    });
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let threads: Vec<_> = (0..4)
        .map(|client: usize| {
            let (db, stop) = (nodes[client % 2].db.clone(), stop.clone());
            std::thread::spawn(move || {
                let (mut done, mut failed, mut seed) = (0, 0, client as u64 + 1);
                let mut random = move || {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (seed >> 33) as i64
                };
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    if client == 3 {
                        // What cannot be had at the moment is no wrong answer.
                        if let Ok(balances) = block_on(balances(&db)) {
                            assert_eq!(balances.len(), ACCOUNTS as usize);
                            assert_eq!(balances.iter().sum::<i64>(), ACCOUNTS * 100, "{balances:?}");
                            done += 1;
                        }
                        continue;
                    }
                    let (from, to) = (random() % ACCOUNTS, random() % ACCOUNTS);
                    if from == to {
                        continue;
                    }
                    match block_on(transfer(&db, from, to, random() % 10)) {
                        Ok(()) => done += 1,
                        Err(_) => failed += 1,
                    }
                }
                (done, failed)
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    nodes.remove(2).kill();
    std::thread::sleep(Duration::from_millis(1500));
    nodes.push(world.open(2));
    std::thread::sleep(Duration::from_millis(1000));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    for (client, thread) in threads.into_iter().enumerate() {
        let (done, failed) = thread.join().unwrap();
        println!("client {client}: {done} done, {failed} failed");
        assert!(done > 10, "client {client} got nowhere");
    }
    world.wait_replicas(2);
    block_on(async {
        for node in &nodes {
            assert_eq!(balances(&node.db).await.unwrap().iter().sum::<i64>(), ACCOUNTS * 100);
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

#[test]
fn a_fully_replicated_table_is_on_every_node_and_others_are_not_with_it() {
    let world = World::new(3, 4, 2);
    let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait_settled();
    world.wait("replicas on all nodes", |group| group.replication_groups[4].in_sync.len() == 3);
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[0].db.create_table(rauk_types::TableSchema { fully_replicated: true, ..pairs("t") }).await.unwrap();
        nodes[0].db.create_table(pairs("u")).await.unwrap();
        for id in 0..40 {
            put(&nodes[id as usize % 3].db, id, id).await.unwrap();
        }
        assert_eq!(balances(&nodes[1].db).await.unwrap().len(), 40);
        let table = nodes[0].db.table("d", "u").unwrap();
        for id in 0..40 {
            let mut txn = nodes[0].db.begin(TxnOptions::default());
            txn.use_table(&table).await.unwrap();
            txn.insert(&table, &[Value::Int(id), Value::Int(id)]).await.unwrap();
            txn.commit().await.unwrap();
        }
    });
    // The last commits reach followers with the next word of the primary.
    std::thread::sleep(Duration::from_millis(300));
    for node in &nodes {
        let rows = node.db.dump_partition(node.db.member().unwrap().layout().everywhere().0);
        assert_eq!(rows.len(), 40, "on {:?}", node.id);
        let t = node.db.table("d", "t").unwrap().schema().id;
        assert!(rows.keys().all(|(table, _)| *table == t));
    }
    nodes.into_iter().for_each(world::Node::kill);
}
