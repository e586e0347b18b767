//! What bounds a large transaction: chunks that stand in a group, bytes of the stream that replicas have not, memory.

use super::*;
use rauk_manage::group::GroupCommand;
use rauk_types::{GroupId, MysqlError};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

const CHUNK: usize = 400;

/// Three nodes; the table is in one group, on two of them.
fn with(bound: impl FnOnce(&World)) -> (Arc<World>, Vec<world::Node>) {
    let world = World::new(3, 1, 2);
    world.chunk_bytes.store(CHUNK, Ordering::Relaxed);
    bound(&world);
    let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait_settled();
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[1].db.create_table(pairs("t")).await.unwrap();
    });
    (world, nodes)
}

/// Where the group is led, and its follower.
fn places(world: &World, nodes: &[world::Node]) -> (usize, usize) {
    let group = world.group().replication_groups[0].clone();
    let number = |id| nodes.iter().position(|node| node.id == id).unwrap();
    let primary = group.primary.unwrap().node;
    (number(primary), number(group.placed.iter().copied().find(|node| *node != primary).unwrap()))
}

async fn insert(txn: &mut Transaction, table: &TableHandle, ids: std::ops::Range<i64>) -> Result<(), NodeError> {
    for id in ids {
        txn.insert(table, &[Value::Int(id), Value::Int(1)]).await?;
    }
    Ok(())
}

async fn begin(db: &Database, options: TxnOptions) -> (TableHandle, Transaction) {
    let table = db.table("d", "t").unwrap();
    let mut txn = db.begin(options);
    txn.use_table(&table).await.unwrap();
    (table, txn)
}

fn is_temporary(error: &NodeError) -> bool {
    error.class() == rauk_types::ErrorClass::Temporary
}

/// On a busy machine a lease may end, and the group change its primary: then the same is done again.
macro_rules! until_settled {
    ($attempt:expr) => {
        loop {
            match $attempt.await {
                Err(error) if is_temporary(&error) => continue,
                result => break result,
            }
        }
    };
}

/// Ids that are there, up to `most`, as each node reads them.
async fn count(nodes: &[world::Node], most: i64) -> Vec<usize> {
    let mut counts = Vec::new();
    for node in nodes {
        let mut found = 0;
        for id in 0..most {
            found += usize::from(until_settled!(get(&node.db, id)).unwrap().is_some());
        }
        counts.push(found);
    }
    counts
}

async fn insert_and_commit(db: &Database, rows: i64) -> Result<(), NodeError> {
    let (table, mut txn) = begin(db, TxnOptions::default()).await;
    insert(&mut txn, &table, 0..rows).await?;
    txn.commit().await
}

async fn delete_and_commit(db: &Database, rows: i64) -> Result<(), NodeError> {
    let (table, mut txn) = begin(db, TxnOptions::default()).await;
    for id in 0..rows {
        txn.delete(&table, &[Value::Int(id), Value::Int(1)]).await?;
    }
    txn.commit().await
}

/// Beyond the bound no chunks are made, and what is in none must fit into the naming entry.
#[test]
fn a_group_takes_only_so_many_chunks() {
    let (_world, nodes) = with(|world| {
        world.commit_limit.store(2_000, Ordering::Relaxed);
        world.standing_chunk_bytes.store(4_000, Ordering::Relaxed);
    });
    block_on(async {
        for node in &nodes {
            let refused = until_settled!(insert_and_commit(&node.db, 1_000)).unwrap_err();
            assert!(matches!(refused, NodeError::TooLarge { limit: 2_000, .. }), "{refused:?}");
            assert_eq!(MysqlError::from(refused).code, 1114);
            assert_eq!(count(&nodes, 1_000).await, [0, 0, 0]);
            // More than an entry takes and within the bound; what stood before stands no more.
            until_settled!(insert_and_commit(&node.db, 100)).unwrap();
            assert_eq!(count(&nodes, 200).await, [100, 100, 100]);
            until_settled!(delete_and_commit(&node.db, 100)).unwrap();
        }
    });
    nodes.into_iter().for_each(world::Node::kill);
}

/// A session that inserts until its replica is too far behind, on the node that leads.
struct Writer {
    inserted: Arc<AtomicI64>,
    interrupt: Arc<Interrupt>,
    ended: std::thread::JoinHandle<Result<(), NodeError>>,
}

impl Writer {
    /// Waits until it stands still. `None`: it has ended before, with a lease.
    fn start(db: &Database, rows: i64) -> Option<Writer> {
        let (db, inserted, interrupt) = (db.clone(), Arc::new(AtomicI64::new(0)), Arc::new(Interrupt::default()));
        let options = TxnOptions {
            interrupt: interrupt.clone(),
            lock_wait_timeout: Duration::from_secs(1),
            ..TxnOptions::default()
        };
        let counts = inserted.clone();
        let ended = std::thread::spawn(move || {
            block_on(async {
                let (table, mut txn) = begin(&db, options).await;
                for id in 0..rows {
                    insert(&mut txn, &table, id..id + 1).await?;
                    counts.fetch_add(1, Ordering::Relaxed);
                }
                txn.commit().await
            })
        });
        let writer = Writer { inserted, interrupt, ended };
        let (mut before, mut since) = (-1, Instant::now());
        while since.elapsed() < Duration::from_millis(200) {
            let now = writer.inserted.load(Ordering::Relaxed);
            if now != before {
                (before, since) = (now, Instant::now());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if writer.ended.is_finished() {
            assert!(is_temporary(&writer.ended.join().unwrap().expect_err("nobody waits")));
            return None;
        }
        assert!((1..rows).contains(&before), "{before} rows, and nobody waits");
        Some(writer)
    }

    fn end(self) -> Result<(), NodeError> {
        let since = Instant::now();
        while !self.ended.is_finished() {
            assert!(since.elapsed() < Duration::from_secs(15), "it waits still");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.ended.join().unwrap()
    }
}

const ROWS: i64 = 2_000;

/// What the primary says does not come to its follower, and nobody decides that this one is out.
fn behind(world: &World, nodes: &[world::Node]) -> (usize, usize) {
    let (primary, follower) = places(world, nodes);
    world.lose_majority();
    world.cut(nodes[primary].id, nodes[follower].id);
    (primary, follower)
}

/// On a busy machine a lease may end in the middle: then all of it is tried again.
fn some_time(attempt: impl Fn(&World, &[world::Node]) -> Option<()>) {
    let succeeds = |_| {
        let (world, nodes) = with(small);
        let result = attempt(&world, &nodes);
        nodes.into_iter().for_each(world::Node::kill);
        result.is_some()
    };
    assert!((0..10).any(succeeds), "leases end again and again");
}

fn small(world: &World) {
    world.unstable_bytes.store(5_000, Ordering::Relaxed);
}

#[test]
fn a_large_transaction_waits_for_its_replicas() {
    some_time(|world, nodes| {
        let (primary, _) = behind(world, nodes);
        let writer = Writer::start(&nodes[primary].db, ROWS)?;
        let slowest = writer.inserted.load(Ordering::Relaxed);
        assert!(slowest < ROWS / 2, "{slowest} rows while the replica has heard of none");
        world.heal();
        world.regain_majority();
        match writer.end() {
            Err(error) if is_temporary(&error) => return None,
            ended => ended.unwrap(),
        }
        assert_eq!(block_on(count(nodes, ROWS + 10)), [ROWS as usize; 3]);
        Some(())
    });
}

#[test]
fn who_waits_for_replicas_can_be_killed() {
    some_time(|world, nodes| {
        let (primary, _) = behind(world, nodes);
        let writer = Writer::start(&nodes[primary].db, ROWS)?;
        writer.interrupt.kill();
        match writer.end() {
            // Before its replica has heard of anything.
            Err(NodeError::Interrupted) => {}
            Err(error) if is_temporary(&error) => return None,
            ended => panic!("{ended:?}"),
        }
        world.heal();
        world.regain_majority();
        assert_eq!(block_on(count(nodes, 50)), [0; 3]);
        Some(())
    });
}

/// The view ends, or the lease in which this process leads: of that it may not even hear.
#[test]
fn who_waits_for_replicas_ends_with_the_view() {
    for relieved in [true, false] {
        some_time(|world, nodes| {
            let (primary, follower) = behind(world, nodes);
            let (leads, follows) = (nodes[primary].id, nodes[follower].id);
            let third = nodes.iter().map(|node| node.id).find(|id| ![leads, follows].contains(id));
            world.lead(third.expect("three nodes"));
            let version = world.group().replication_groups[0].version;
            let writer = Writer::start(&nodes[primary].db, ROWS)?;
            if relieved {
                world.propose(GroupCommand::Relieve { group: GroupId(0), version });
            } else {
                for other in nodes.iter().map(|node| node.id).filter(|other| *other != leads) {
                    world.cut(leads, other);
                    world.cut(other, leads);
                }
            }
            let ended = writer.end();
            assert!(ended.is_err(), "{ended:?}");
            Some(())
        });
    }
}

/// Inserts until the memory is full, takes the last statement back, and goes on; gives how many rows there was room for.
async fn fill(nodes: &[world::Node], primary: usize, limit: u64) -> Result<i64, NodeError> {
    let (table, mut txn) = begin(&nodes[primary].db, TxnOptions::default()).await;
    let mut next = 0;
    let refused = loop {
        txn.begin_statement();
        let mut rows: Vec<_> = (next..next + 500).map(|id| vec![Value::Int(id), Value::Int(1)]).collect();
        let mut done = vec![false; rows.len()];
        match txn.insert_many(&table, &mut rows, &mut done).await {
            Ok(()) => assert!(done.iter().all(|done| *done)),
            Err(full @ NodeError::MemoryFull { .. }) => break full,
            Err(error) => return Err(error),
        }
        next += 500;
        let most = used(nodes).into_iter().max().unwrap();
        assert!(most <= limit, "{most} bytes after {next} rows");
    };
    assert_eq!(MysqlError::from(refused).code, 1114);
    // At once a slice, and all of it before the transaction goes on: a full node takes deletions.
    txn.rollback_statement();
    assert!(txn.delete(&table, &[Value::Int(0), Value::Int(1)]).await?);
    txn.rollback();
    Ok(next)
}

fn used(nodes: &[world::Node]) -> Vec<u64> {
    nodes.iter().map(|node| node.db.memory_used()).collect()
}

/// What is kept of a transaction's chunks counts on every node, so it is refused at the limit, and undone.
#[test]
fn a_transaction_of_many_rows_keeps_to_the_memory_limit() {
    const LIMIT: u64 = 12 << 20;
    let (world, nodes) = with(|world| {
        // All that comes to a node here comes through one queue: leases are not to wait behind many chunks.
        world.chunk_bytes.store(16 << 10, Ordering::Relaxed);
        world.unstable_bytes.store(64 << 10, Ordering::Relaxed);
        world.memory_limit.store(LIMIT as usize, Ordering::Relaxed);
    });
    let before = used(&nodes);
    block_on(async {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            world.wait_settled();
            let state = || {
                let group = &world.group().replication_groups[0];
                (group.view, group.in_sync.clone())
            };
            let (before, rows) = (state(), fill(&nodes, places(&world, &nodes).0, LIMIT).await);
            if rows.is_ok() && state() == before {
                assert!(rows.clone().unwrap() > 10_000, "{rows:?}");
                break;
            }
            // On a busy machine leases end for a moment.
            assert!(Instant::now() < end, "replicas leave: {before:?}, {:?}, {rows:?}", state());
        }
        assert_eq!(count(&nodes, 20).await, [0; 3]);
        for node in &nodes {
            node.db.finish_ends().await;
        }
    });
    let end = Instant::now() + Duration::from_secs(20);
    while used(&nodes).iter().zip(&before).any(|(now, before)| *now > before + (3 << 20)) {
        assert!(Instant::now() < end, "{before:?} bytes before, {:?} after", used(&nodes));
        std::thread::sleep(Duration::from_millis(20));
    }
    nodes.into_iter().for_each(world::Node::kill);
}
