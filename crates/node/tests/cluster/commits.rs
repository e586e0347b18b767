//! Commits in a cluster where something is unusual: locks without writes, clients that go away, the order that one client sees, peers that send what no peer sends, a process that leaves.

use super::*;
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_manage::group::Colour;
use rauk_node::member::report::{PartitionReport, PartitionRole, Wanted};
use rauk_node::member::signal::{Envelope, Exchange, Signal};
use rauk_types::{GroupId, Timestamp};
use std::future::Future;
use std::task::{Context, Poll, Waker};

const ROWS: i64 = 10;

fn filled() -> (Arc<World>, Vec<world::Node>) {
    let (world, nodes) = three(2);
    block_on(async {
        for id in 0..ROWS {
            put(&nodes[0].db, id, 0).await.unwrap();
        }
    });
    (world, nodes)
}

async fn set(db: &Database, options: TxnOptions, locked: &[i64], id: i64, value: i64) -> Result<(), NodeError> {
    let table = db.table("d", "t")?;
    let mut txn = db.begin(options);
    txn.use_table(&table).await?;
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    for id in locked {
        txn.get(&table, &key(&table, *id), lock, |_| ()).await?;
    }
    let read = |row: Option<rauk_types::RowView<'_>>| row.map(|row| value_of(&row));
    let old = txn.get(&table, &key(&table, id), lock, read).await?.expect("rows stay");
    txn.update(&table, &[Value::Int(id), Value::Int(old)], &[Value::Int(id), Value::Int(value)]).await?;
    txn.commit().await
}

/// A transaction, again when a primary that it needs has been replaced meanwhile (1213), or there is none (1205): partitions are moved for a while
/// after the start, and a process that a busy machine does not run for the length of a lease loses it. Whatever else ends it is its outcome.
async fn unless_moved(world: &World, transaction: impl AsyncFn() -> Result<(), NodeError>) -> Result<(), NodeError> {
    let places = || world.group().replication_groups.iter().map(|p| (p.primary, p.version)).collect::<Vec<_>>();
    let end = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        let before = places();
        let outcome = transaction().await;
        let again = match &outcome {
            Err(NodeError::Deadlock | NodeError::Moved { .. }) => places() != before,
            Err(NodeError::NoPrimary { .. }) => true,
            _ => false,
        };
        if !again || std::time::Instant::now() > end {
            return outcome;
        }
        println!("{outcome:?}, again: {before:?} became {:?}", places());
    }
}

/// Partitions where it has locks and no writes, in all combinations with the one where it writes, on this node and on others; also where its locking read has found nothing.
#[test]
fn locks_without_writes_do_not_stand_in_the_way_of_a_commit() {
    let (world, nodes) = filled();
    block_on(async {
        for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
            for locked in 0..ROWS {
                for written in (0..ROWS).filter(|written| *written != locked) {
                    let options = TxnOptions { isolation, ..TxnOptions::default() };
                    let locks = [locked, 1000 + locked * 17 + written];
                    let set = unless_moved(&world, async || {
                        set(&nodes[0].db, options.clone(), &locks, written, locked).await
                    });
                    assert_eq!(set.await, Ok(()), "{isolation:?}: locked {locked}, written {written}");
                }
            }
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

/// A snapshot that was drawn before two commits of one client, in this order, shows neither, or none but the first: wherever the rows are.
#[test]
fn a_snapshot_never_shows_the_later_of_two_commits_without_the_earlier() {
    let (_world, nodes) = filled();
    block_on(async {
        let mut value = 1;
        for first in 0..ROWS {
            for second in (0..ROWS).filter(|second| *second != first) {
                let table = nodes[1].db.table("d", "t").unwrap();
                let mut reader = nodes[1].db.begin(TxnOptions::default());
                reader.use_table(&table).await.unwrap();
                let read = |row: Option<rauk_types::RowView<'_>>| value_of(&row.expect("rows stay"));
                let before = reader.get(&table, &key(&table, first), None, read).await.unwrap();
                value += 1;
                set(&nodes[0].db, TxnOptions::default(), &[], first, value).await.unwrap();
                set(&nodes[0].db, TxnOptions::default(), &[], second, value).await.unwrap();
                let later = reader.get(&table, &key(&table, second), None, read).await.unwrap();
                let again = reader.get(&table, &key(&table, first), None, read).await.unwrap();
                assert_eq!(again, before);
                assert_ne!(later, value, "{second} was written after {first}");
            }
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

/// Clients go away in the middle of commits over partitions that others keep busy: each transfer is done wholly or not at all.
#[test]
fn a_client_that_goes_away_in_a_commit_leaves_no_half_of_it() {
    let (_world, nodes) = filled();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let threads: Vec<_> = (0..4)
        .map(|client: u64| {
            let (db, stop) = (nodes[client as usize % 2].db.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut seed = client + 1;
                let mut random = move |below: i64| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (seed >> 33) as i64 % below
                };
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let (from, to, looks) = (random(ROWS), random(ROWS), random(3));
                    if from != to {
                        let _ = block_on(abandoned(&db, from, to, looks));
                    }
                }
            })
        })
        .collect();
    std::thread::sleep(Duration::from_secs(3));
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    block_on(async {
        // Behind all locks nothing is under way any more.
        for id in 0..ROWS {
            let locked = transfer(&nodes[0].db, id, (id + 1) % ROWS, 1);
            locked.await.unwrap();
        }
        for node in &nodes {
            assert_eq!(balances(&node.db).await.unwrap().iter().sum::<i64>(), 0);
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

async fn abandoned(db: &Database, from: i64, to: i64, looks: i64) -> Result<(), NodeError> {
    let table = db.table("d", "t")?;
    let mut txn = db.begin(TxnOptions { lock_wait_timeout: Duration::from_secs(2), ..TxnOptions::default() });
    txn.use_table(&table).await?;
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    for (id, change) in [(from, -1), (to, 1)] {
        let read = |row: Option<rauk_types::RowView<'_>>| row.map(|row| value_of(&row)).expect("rows stay");
        let old = txn.get(&table, &key(&table, id), lock, read).await?;
        txn.update(&table, &[Value::Int(id), Value::Int(old)], &[Value::Int(id), Value::Int(old + change)]).await?;
    }
    let mut commit = Box::pin(txn.commit());
    for _ in 0..looks {
        if let Poll::Ready(result) = commit.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return result;
        }
    }
    Ok(())
}

/// Questions about times that nobody was ever given are not taken up: commits stay where snapshots see them.
#[test]
fn times_that_nobody_was_given_are_refused() {
    let (world, nodes) = filled();
    let from = nodes[2].db.member().unwrap().me();
    for node in &nodes[..2] {
        let to = node.db.member().unwrap().me();
        for group in (0..world.group().replication_groups.len() as u16).map(GroupId) {
            for time in [u64::MAX, 1 << 61, 1 << 40].map(Timestamp) {
                let (cluster, catalog) = (world.group().config.clone().unwrap().id, 0);
                let signal = Signal::Confirm { groups: vec![group], snapshot: time };
                let envelope = Envelope { cluster, from, to, catalog, exchange: Exchange::Request(1 << 40), signal };
                node.db.receive(&envelope.encode());
            }
        }
    }
    std::thread::sleep(Duration::from_millis(700));
    block_on(async {
        for id in 0..ROWS {
            set(&nodes[0].db, TxnOptions::default(), &[], id, 5).await.unwrap();
            assert_eq!(get(&nodes[1].db, id).await.unwrap(), Some(5));
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

#[test]
fn a_node_that_shuts_down_is_replaced_without_waiting_for_its_lease() {
    let (world, mut nodes) = filled();
    let leaving = nodes.remove(2);
    let me = leaving.db.member().unwrap().me();
    block_on(leaving.db.shutdown()).unwrap();
    assert!(!world.group().is_up(me.process), "the group has been told");
    leaving.kill();
    block_on(async {
        let end = std::time::Instant::now() + Duration::from_secs(10);
        for id in 0..ROWS {
            while let Err(error) = set(&nodes[0].db, TxnOptions::default(), &[], id, 7).await {
                assert!(std::time::Instant::now() < end, "{error}");
            }
        }
    });
    nodes.push(world.open(2));
    world.wait_replicas(2);
    block_on(async {
        for id in 0..ROWS {
            assert_eq!(get(&nodes[2].db, id).await.unwrap(), Some(7));
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

/// Entries in the streams of all groups.
fn entries(nodes: &[world::Node]) -> u64 {
    let layout = nodes[0].db.member().unwrap().layout();
    let reports = nodes.iter().flat_map(|node| node.db.report(Wanted::Partitions).partitions);
    let of_group = |p: &PartitionReport| {
        // One partition of the group tells for all.
        let number = p.partition.0;
        p.role == PartitionRole::Primary && layout.partitions_of(layout.group_of(number)).start == number
    };
    reports.filter(of_group).map(|p| p.last).sum()
}

fn at_rest(world: &World) {
    world.wait("everything as configured", |group| group.health().colour == Colour::Green);
    // What is to be forgotten is written behind what was decided.
    std::thread::sleep(Duration::from_millis(500));
}

#[test]
fn a_commit_in_one_partition_is_one_entry_wherever_it_is_led() {
    let (world, nodes) = filled();
    at_rest(&world);
    let (before, views) = (entries(&nodes), world.group().replication_groups.clone());
    block_on(async {
        for id in 0..ROWS {
            for (at, node) in (0..).zip(&nodes) {
                set(&node.db, TxnOptions::default(), &[], id, at).await.unwrap();
            }
        }
    });
    at_rest(&world);
    let same = views.iter().zip(&world.group().replication_groups).all(|(old, new)| old.view == new.view);
    assert!(same, "nothing has moved meanwhile");
    assert_eq!(entries(&nodes) - before, 3 * ROWS as u64);
    nodes.into_iter().for_each(world::Node::kill);
}

/// What the primary says to the coordinator is lost for a while, from some moment on: the client hears what is so.
#[test]
fn a_commit_whose_answer_is_lost_is_known_all_the_same() {
    let (world, nodes) = filled();
    at_rest(&world);
    let (coordinator, other) = (&nodes[1], &nodes[2]);
    let mut committed = 0;
    for round in 0..24 {
        let (id, value) = (round % ROWS, 100 + round);
        let before = block_on(get(&nodes[0].db, id)).unwrap();
        let result = std::thread::scope(|scope| {
            let setting = scope.spawn(|| block_on(set(&coordinator.db, TxnOptions::default(), &[], id, value)));
            std::thread::sleep(Duration::from_micros(200 * round as u64));
            world.cut(other.id, coordinator.id);
            std::thread::sleep(Duration::from_millis(if round % 4 == 3 { 700 } else { 60 }));
            world.heal();
            setting.join().unwrap()
        });
        let after = block_on(get(&nodes[0].db, id)).unwrap();
        match result {
            Ok(()) => assert_eq!(after, Some(value), "row {id}"),
            Err(NodeError::UnknownOutcome(why)) => panic!("row {id}: {why}"),
            Err(_) => assert_eq!(after, before, "row {id}"),
        }
        committed += usize::from(result.is_ok());
    }
    assert!(committed > 12, "only {committed} were committed");
    // Nothing is locked any more.
    block_on(async {
        for id in 0..ROWS {
            set(&nodes[0].db, TxnOptions::default(), &[], id, 7).await.unwrap();
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

/// The only group has two partitions: a transaction that writes in both is one entry, wherever it is run, and one that
/// takes a part of it back, or ends without a commit, leaves nothing in either.
#[test]
fn a_commit_over_the_partitions_of_a_group_is_one_entry() {
    let world = World::new(3, 1, 2);
    let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait_replicas(2);
    let all = |value: i64| (0..ROWS).map(move |id| (id, value));
    let change = async |db: &Database, value: i64, commits: bool| -> Result<(), NodeError> {
        let table = db.table("d", "t")?;
        let mut txn = db.begin(TxnOptions::default());
        txn.use_table(&table).await?;
        for (id, value) in all(value) {
            let old = txn.get(&table, &key(&table, id), None, |row| row.map(|row| value_of(&row))).await?;
            let row = [Value::Int(id), Value::Int(value)];
            match old {
                Some(old) => drop(txn.update(&table, &[Value::Int(id), Value::Int(old)], &row).await?),
                None => drop(txn.insert(&table, &row).await?),
            }
        }
        if commits {
            return txn.commit().await;
        }
        txn.rollback();
        Ok(())
    };
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[1].db.create_table(pairs("t")).await.unwrap();
        unless_moved(&world, async || change(&nodes[0].db, 0, true).await).await.unwrap();
    });
    at_rest(&world);
    let of = |id: i64| {
        let db = &nodes[0].db;
        let partitions = db.member().unwrap().layout().partitions();
        let has = |partition: &u16| {
            let here = nodes.iter().map(|node| node.db.dump_partition(*partition));
            here.into_iter().any(|rows| rows.keys().any(|(_, found)| *found == *key(&db.table("d", "t").unwrap(), id)))
        };
        partitions.into_iter().find(has).expect("the row is somewhere")
    };
    let places: std::collections::BTreeSet<u16> = (0..ROWS).map(of).collect();
    assert_eq!(places.len(), 2, "rows are in both partitions");
    let (before, views) = (entries(&nodes), world.group().replication_groups.clone());
    block_on(async {
        for (value, node) in (1..).zip(&nodes) {
            change(&node.db, 100, false).await.unwrap();
            change(&node.db, value, true).await.unwrap();
            for other in &nodes {
                for id in 0..ROWS {
                    assert_eq!(get(&other.db, id).await.unwrap(), Some(value));
                }
            }
        }
    });
    at_rest(&world);
    let same = views.iter().zip(&world.group().replication_groups).all(|(old, new)| old.view == new.view);
    assert!(same, "nothing has moved meanwhile");
    assert_eq!(entries(&nodes) - before, 3);
    nodes.into_iter().for_each(world::Node::kill);
}
