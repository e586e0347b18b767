//! Transactions that do not fit into one entry of a stream: they go in chunks, and are whole on all replicas or nowhere. What
//! cannot go in chunks is refused with the limit, and nothing of it is left, wherever it runs.

use super::*;
use rauk_types::MysqlError;

const LIMIT: usize = 2_000;
/// So many rows are too many for all partitions together, and few enough for none.
const MANY: i64 = 2_000;
const FEW: i64 = 20;

fn limited(partitions: u16) -> (Arc<World>, Vec<world::Node>) {
    let world = World::new(3, partitions, 2);
    world.commit_limit.store(LIMIT, std::sync::atomic::Ordering::Relaxed);
    let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait_replicas(2);
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[1].db.create_table(pairs("t")).await.unwrap();
    });
    (world, nodes)
}

async fn insert(db: &Database, ids: std::ops::Range<i64>) -> Result<(), NodeError> {
    let table = db.table("d", "t")?;
    let mut txn = db.begin(TxnOptions::default());
    txn.use_table(&table).await?;
    for id in ids {
        txn.insert(&table, &[Value::Int(id), Value::Int(1)]).await?;
    }
    txn.commit().await
}

/// The row once no partition changes its primary.
async fn settled(db: &Database, id: i64) -> Result<Option<i64>, NodeError> {
    loop {
        match get(db, id).await {
            Err(error) if error.class() == rauk_types::ErrorClass::Temporary => continue,
            row => return row,
        }
    }
}

/// Led here and elsewhere; with one partition it is one entry, with four each prepares.
#[test]
fn a_transaction_that_is_too_large_is_refused_and_leaves_nothing() {
    for partitions in [1, 4] {
        let (_world, nodes) = limited(partitions);
        block_on(async {
            for (number, node) in (0..).zip(&nodes) {
                let refused = loop {
                    match insert(&node.db, 0..MANY).await.unwrap_err() {
                        // Partitions may still change their primaries.
                        error if error.class() == rauk_types::ErrorClass::Temporary => continue,
                        error => break error,
                    }
                };
                let NodeError::TooLarge { bytes, limit } = refused else { panic!("{refused:?}") };
                assert!(limit == LIMIT as u64 && bytes > limit, "{bytes} {limit}");
                assert_eq!(refused.class(), rauk_types::ErrorClass::Permanent);
                let text = MysqlError::from(refused);
                assert!(text.code == 1114 && text.message.contains("2000 bytes"), "{text}");
                // Its rows and locks are gone, and the next one is done.
                for other in &nodes {
                    assert_eq!(settled(&other.db, number * FEW).await, Ok(None));
                }
                while let Err(error) = insert(&node.db, number * FEW..(number + 1) * FEW).await {
                    assert_eq!(error.class(), rauk_types::ErrorClass::Temporary, "{error}");
                }
                for other in &nodes {
                    assert_eq!(settled(&other.db, number * FEW).await, Ok(Some(1)));
                }
            }
        });
        nodes.into_iter().for_each(world::Node::kill);
    }
}

/// Inserts rows, goes back over the second half of them, inserts others, and commits.
async fn insert_and_go_back(db: &Database, first: i64) -> Result<(), NodeError> {
    let table = db.table("d", "t")?;
    let mut txn = db.begin(TxnOptions::default());
    txn.use_table(&table).await?;
    for id in first..first + MANY / 4 {
        txn.insert(&table, &[Value::Int(id), Value::Int(1)]).await?;
    }
    let savepoint = txn.savepoint();
    for id in first + MANY / 4..first + MANY / 2 {
        txn.insert(&table, &[Value::Int(id), Value::Int(2)]).await?;
    }
    // Rows that are in chunks already.
    for id in first..first + FEW {
        txn.update(&table, &[Value::Int(id), Value::Int(1)], &[Value::Int(id), Value::Int(3)]).await?;
    }
    txn.rollback_to(savepoint);
    for id in first + MANY / 2..first + MANY / 2 + FEW {
        txn.insert(&table, &[Value::Int(id), Value::Int(4)]).await?;
    }
    txn.commit().await
}

async fn expect(nodes: &[world::Node], first: i64) {
    for node in nodes {
        for (id, value) in [
            (first, Some(1)),
            (first + MANY / 4 - 1, Some(1)),
            (first + MANY / 4, None),
            (first + MANY / 2 - 1, None),
            (first + MANY / 2, Some(4)),
            (first + MANY / 2 + FEW - 1, Some(4)),
        ] {
            assert_eq!(settled(&node.db, id).await, Ok(value), "row {id} on {:?}", node.id);
        }
    }
}

/// In one group and in several, on the node that leads and on others.
#[test]
fn a_large_transaction_goes_in_chunks() {
    for groups in [1, 3] {
        let world = World::new(3, groups, 2);
        world.commit_limit.store(LIMIT, std::sync::atomic::Ordering::Relaxed);
        world.chunk_bytes.store(400, std::sync::atomic::Ordering::Relaxed);
        let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
        world.wait_replicas(2);
        block_on(async {
            nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
            nodes[1].db.create_table(pairs("t")).await.unwrap();
            for (number, node) in (0..).zip(&nodes) {
                let first = number * MANY;
                while let Err(error) = insert_and_go_back(&node.db, first).await {
                    assert_eq!(error.class(), rauk_types::ErrorClass::Temporary, "{error}");
                }
                expect(&nodes, first).await;
                // Rolled back: nothing is left of it, and its keys are free.
                let table = node.db.table("d", "t").unwrap();
                let mut txn = node.db.begin(TxnOptions::default());
                txn.use_table(&table).await.unwrap();
                for id in first + MANY / 4..first + MANY / 2 {
                    if let Err(error) = txn.insert(&table, &[Value::Int(id), Value::Int(5)]).await {
                        assert_eq!(error.class(), rauk_types::ErrorClass::Temporary, "{error}");
                        break;
                    }
                }
                drop(txn);
                expect(&nodes, first).await;
            }
        });
        // All of them end, and what was committed is on their disks.
        nodes.into_iter().for_each(world::Node::kill);
        let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
        world.wait_settled();
        block_on(async {
            for number in 0..3 {
                expect(&nodes, number * MANY).await;
            }
        });
        nodes.into_iter().for_each(world::Node::kill);
    }
}
