//! The directory of a node alone founds a cluster: every row is there, numbers go on, and those who join get copies.

use super::support::*;
use super::world::{Node, World};
use rauk_log::{Disk, MemoryDisk, fault};
use rauk_manage::group::{Answer, ClusterDurability, GroupCommand};
use rauk_node::*;
use rauk_types::{Collation, GroupId, IndexId, NodeId, Value};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

const ROWS: i64 = 300;
const TABLES: [&str; 4] = ["a", "f", "h", "t"];

/// A database with tables of each kind: unique and ordered indexes, rows on every node, hidden keys. Half of the rows are
/// in a checkpoint, half in the log only.
fn fill(db: &Database) {
    block_on(async {
        db.create_database("d", Collation::DEFAULT).await.unwrap();
        let mut everywhere = pairs("f");
        everywhere.fully_replicated = true;
        for schema in [accounts("a"), everywhere, hidden("h"), pairs("t")] {
            db.create_table(schema).await.unwrap();
        }
        let [a, f, h, t] = TABLES.map(|name| db.table("d", name).unwrap());
        for range in [0..ROWS / 2, ROWS / 2..ROWS] {
            let of = |id: i64| account(id, id * 3, Some(&format!("code{id}")));
            insert_all(db, &a, &range.clone().map(of).collect::<Vec<_>>()).await;
            let pair = |id: i64| vec![int(id), int(id * 7)];
            insert_all(db, &f, &range.clone().take(20).map(pair).collect::<Vec<_>>()).await;
            insert_all(db, &t, &range.clone().map(pair).collect::<Vec<_>>()).await;
            insert_all(db, &h, &range.clone().map(|id| vec![int(id), Value::Null]).collect::<Vec<_>>()).await;
            db.checkpoint().await.unwrap();
            db.take_auto_increment(&t, range.end as u64).await.unwrap();
        }
        let mut txn = begin_rr(db, &t).await;
        assert!(txn.delete(&t, &[int(5), int(35)]).await.unwrap());
        txn.commit().await.unwrap();
    });
}

fn rows(db: &Database) -> Vec<Vec<Vec<Value>>> {
    let of = |name: &&str| block_on(contents(db, &db.table("d", name).unwrap()));
    TABLES.iter().map(of).collect()
}

/// What a node alone left, and what was in it.
fn left_alone(in_order: bool) -> (Arc<dyn Disk>, Vec<Vec<Vec<Value>>>) {
    let disk: Arc<dyn Disk> = MemoryDisk::new();
    let db = open_on(disk.clone(), config());
    fill(&db);
    let rows = rows(&db);
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [300, 40, 300, 299]);
    if in_order {
        block_on(db.shutdown()).unwrap();
    }
    (disk, rows)
}

/// Reads by unique key, writes, and numbers that go on behind those that were given out.
fn goes_on(db: &Database, round: i64) {
    block_on(async {
        let (a, t) = (db.table("d", "a").unwrap(), db.table("d", "t").unwrap());
        let mut txn = begin_rr(db, &a).await;
        let found = get_many(&mut txn, &a, IndexId(2), &[code_key(&a, "code17")]).await.unwrap();
        assert_eq!(found, [Some(account(17, 51, Some("code17")))]);
        let outcome = txn.insert(&a, &account(ROWS + round, 0, Some("code3"))).await.unwrap();
        assert!(matches!(outcome, InsertOutcome::Duplicate { index: IndexId(2), .. }));
        txn.commit().await.unwrap();
        insert_all(db, &t, &[vec![int(1_000 + round), int(round)]]).await;
        assert!(db.take_auto_increment(&t, 1).await.unwrap() > (ROWS + ROWS / 2) as u64);
    });
}

fn founds_a_cluster(in_order: bool, durability: ClusterDurability) {
    let (disk, expected) = left_alone(in_order);
    let world = World::adopting(&disk, vec![disk.clone(), MemoryDisk::new()], 2, durability);
    let first = world.open(0);
    assert_eq!(rows(&first.db), expected);
    goes_on(&first.db, 1);
    assert!(!disk.exists("catalog.journal").unwrap());
    let expected = rows(&first.db);
    // Another gets copies, leads some of them, and then all.
    let second = world.open(1);
    world.wait_replicas(2);
    world.wait_settled();
    assert_eq!(rows(&second.db), expected);
    goes_on(&second.db, 2);
    let expected = rows(&second.db);
    for node in [&first, &second] {
        let table = node.db.table("d", "f").unwrap();
        assert_eq!(block_on(contents(&node.db, &table)).len(), 40);
    }
    let gone = first.db.member().unwrap().me();
    first.kill();
    world.propose(GroupCommand::Down { member: gone });
    assert_eq!(rows(&second.db), expected);
    goes_on(&second.db, 3);
    let first = world.open(0);
    world.wait_replicas(2);
    goes_on(&first.db, 4);
    [first, second].into_iter().for_each(Node::kill);
}

#[test]
fn a_node_that_ended_in_order_founds_a_cluster() {
    founds_a_cluster(true, ClusterDurability::Fsync);
}

#[test]
fn a_node_that_was_killed_founds_a_cluster() {
    founds_a_cluster(false, ClusterDurability::Fsync);
}

#[test]
fn a_node_alone_founds_a_cluster_where_memory_counts() {
    founds_a_cluster(true, ClusterDurability::Replicated);
}

/// The start fails at each place where it can be cut off; the next one goes on with everything.
#[test]
fn a_start_that_is_cut_off_can_be_begun_again() {
    let (mut failures, mut number) = (0, 0);
    loop {
        let (disk, expected) = left_alone(number % 2 == 0);
        let world = World::adopting(&disk, vec![disk.clone()], 1, ClusterDurability::Fsync);
        let hits = Rc::new(Cell::new(0));
        let failed = {
            let counted = hits.clone();
            let _faults = fault::Local::new(move |name| {
                counted.set(counted.get() + 1);
                match counted.get() == number {
                    true => Err(std::io::Error::other(name)),
                    false => Ok(()),
                }
            });
            world.try_open(0).map(Node::kill).is_err()
        };
        failures += i32::from(failed);
        if number > 0 && hits.get() < number {
            break;
        }
        world.lead(NodeId(1));
        let node = world.open(0);
        assert_eq!(rows(&node.db), expected, "cut off at point {number}");
        goes_on(&node.db, 1);
        node.kill();
        number += 1;
    }
    assert!(failures > 20, "{failures}");
}

#[test]
fn a_directory_that_has_changed_since_is_refused() {
    let (disk, _) = left_alone(true);
    let world = World::adopting(&disk, vec![disk.clone()], 1, ClusterDurability::Fsync);
    let db = open_on(disk, config());
    let table = db.table("d", "t").unwrap();
    block_on(insert_all(&db, &table, &[vec![int(7_777), int(1)]]));
    block_on(db.shutdown()).unwrap();
    let error = world.try_open(0).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("not as it was"), "{error}");
}

/// Who lacks the rows that the cluster was made of does not lead, though nobody has ever led.
#[test]
fn an_empty_directory_in_its_place_has_nothing() {
    let (disk, _) = left_alone(true);
    let world = World::adopting(&disk, vec![MemoryDisk::new()], 1, ClusterDurability::Fsync);
    let node = world.open(0);
    let member = node.db.member().unwrap().me();
    let group = world.group();
    assert!(group.is_member(member));
    for (number, state) in (0..).zip(&group.replication_groups) {
        assert_eq!((&state.in_sync, state.primary), (&vec![], None));
        let lead = GroupCommand::Lead { group: GroupId(number), version: state.version, member };
        assert_ne!(world.propose(lead), Answer::Done);
    }
    node.kill();
}
