//! Memory that changes by itself, on threads: found by the scrub or by comparison. Under faults: the simulator's scenarios
//! `damaged_memory`.

use super::pairs::{get, put};
use super::support::pairs;
use super::world::{Node, World};
use rauk_manage::group::{Colour, Group, ReplicationGroup};
use rauk_node::*;
use rauk_types::{Collation, GroupId, TableId};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const ROWS: i64 = 64;

fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A partition, the node that leads it and one that follows it, by their places in `nodes`.
fn followed(group: &Group, nodes: &[Node]) -> (u16, usize, usize) {
    let layout = nodes[0].db.member().unwrap().layout();
    let partition = layout.partitions_of(GroupId(1)).start;
    let state = &group.replication_groups[1];
    let at = |number: usize| nodes.iter().position(|node| node.id == state.in_sync[number].node).unwrap();
    assert_eq!(state.primary, Some(state.in_sync[0]));
    (partition, at(0), at(1))
}

/// Three nodes with two replicas of each partition, which are compared often, and rows.
fn filled() -> (Arc<World>, Vec<Node>) {
    let world = World::new(3, 4, 2);
    world.compare_every.store(200, Ordering::Relaxed);
    let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait_settled();
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[1].db.create_table(pairs("t")).await.unwrap();
        for id in 0..ROWS {
            put(&nodes[id as usize % nodes.len()].db, id, id).await.unwrap();
        }
    });
    (world, nodes)
}

#[test]
fn a_follower_with_damaged_memory_is_replaced_by_a_copy() {
    let (world, nodes) = filled();
    let (partition, leads, follows) = followed(&world.group(), &nodes);
    let (primary, follower) = (&nodes[leads].db, &nodes[follows].db);
    let table = primary.table("d", "t").unwrap().schema().id;
    let rows = || (primary.dump_partition(partition), follower.dump_partition(partition));
    // Of the value, in the middle of the row.
    assert!(block_on(follower.flip_bit(partition, table, 3, 80, false)));
    wait("it is found", || follower.counters().damaged_tables > 0);
    let copies = |db: &Database| db.report(member::report::Wanted::Events).events;
    wait("it is said", || copies(primary).iter().any(|event| event.what.contains("gets a copy")));
    wait("the rows are equal again", || {
        let group = world.group();
        group.replication_groups[1].in_sync.len() == 2
            && std::panic::catch_unwind(AssertUnwindSafe(rows)).is_ok_and(|(a, b)| a == b)
    });
    assert_eq!(primary.counters().damaged_tables, 0);
    wait("they are compared", || primary.member().unwrap().compared(partition).is_some());
    block_on(async {
        for id in 0..ROWS {
            assert_eq!(get(primary, id).await.unwrap(), Some(id));
        }
    });
    nodes.into_iter().for_each(Node::kill);
}

/// Of a partition with two replicas the primary's memory is damaged, or its rows contradict the stream: the other leads,
/// and the process goes on with everything else.
fn a_primary_that_stops(break_it: impl Fn(&Database, u16, TableId)) {
    let (world, nodes) = filled();
    let (partition, leads, follows) = followed(&world.group(), &nodes);
    let (primary, follower) = (&nodes[leads].db, &nodes[follows].db);
    let table = primary.table("d", "t").unwrap().schema().id;
    let before = world.group();
    break_it(primary, partition, table);
    wait("another leads", || {
        let state = &world.group().replication_groups[1];
        state.view > before.replication_groups[1].view && state.primary.is_some()
    });
    let mut next = ROWS;
    wait("everything is written", || {
        let written = block_on(put(primary, next, next)).is_ok();
        next += i64::from(written);
        next == 2 * ROWS
    });
    let rows = || (primary.dump_partition(partition), follower.dump_partition(partition));
    wait("the rows are equal again", || {
        let group = world.group();
        group.replication_groups[1].in_sync.len() == 2
            && std::panic::catch_unwind(AssertUnwindSafe(rows)).is_ok_and(|(a, b)| a == b)
    });
    assert_eq!(primary.counters().stopped_replicas, 1);
    let group = world.group();
    assert!((0..3).all(|n| group.is_member(nodes[n].db.member().unwrap().me())), "no process has ended");
    assert!(nodes.iter().all(|node| node.db.member().unwrap().all_stopped().is_empty()));
    block_on(async {
        for id in 0..2 * ROWS {
            assert_eq!(get(primary, id).await.unwrap(), Some(id));
        }
    });
    nodes.into_iter().for_each(Node::kill);
}

#[test]
fn a_primary_with_damaged_memory_gives_way_and_gets_a_copy() {
    a_primary_that_stops(|db, partition, table| assert!(block_on(db.flip_bit(partition, table, 3, 80, false))));
}

#[test]
fn a_primary_whose_rows_contradict_its_stream_gives_way_and_gets_a_copy() {
    a_primary_that_stops(|db, partition, _| db.contradict(partition));
}

#[test]
fn a_follower_whose_rows_contradict_its_stream_gets_a_copy() {
    let (world, nodes) = filled();
    let (partition, leads, follows) = followed(&world.group(), &nodes);
    let (primary, follower) = (&nodes[leads].db, &nodes[follows].db);
    follower.contradict(partition);
    let said = |db: &Database, what: &str| {
        let events = db.report(member::report::Wanted::Events).events;
        events.iter().any(|event| event.what.contains(what))
    };
    wait("it is said", || said(follower, "commits and is not beside the rows") && said(primary, "gets a copy"));
    let rows = || (primary.dump_partition(partition), follower.dump_partition(partition));
    wait("the rows are equal again", || {
        let group = world.group();
        group.replication_groups[1].in_sync.len() == 2
            && std::panic::catch_unwind(AssertUnwindSafe(rows)).is_ok_and(|(a, b)| a == b)
    });
    assert_eq!((follower.counters().stopped_replicas, primary.counters().stopped_replicas), (1, 0));
    assert_eq!(world.group().replication_groups[1].primary, Some(primary.member().unwrap().me()), "it leads on");
    nodes.into_iter().for_each(Node::kill);
}

/// Where nobody else has its rows, a group waits for a restart, and the others go on.
#[test]
fn a_group_that_nobody_else_has_stops_alone() {
    let world = World::new(2, 4, 1);
    let mut nodes: Vec<_> = (0..2).map(|n| world.open(n)).collect();
    world.wait_settled();
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[0].db.create_table(pairs("t")).await.unwrap();
        for id in 0..ROWS {
            put(&nodes[0].db, id, id).await.unwrap();
        }
    });
    // One of two groups that the second node leads.
    let group = world.group();
    let led = |state: &ReplicationGroup| state.primary.is_some_and(|primary| primary.node == nodes[1].id);
    let number = group.replication_groups.iter().position(led).unwrap() as u16;
    let stopped = nodes[1].db.member().unwrap().layout().partitions_of(GroupId(number));
    nodes[1].db.contradict(stopped.start);
    wait("it has stopped", || nodes[1].db.counters().stopped_replicas == 1);
    let (colour, reasons) = nodes[1].db.health();
    assert!(colour == Colour::Red && reasons[0].contains("has stopped on this node"), "{reasons:?}");
    // What is in the other groups is read; the checkpoint is refused, and the log keeps everything.
    let gone: Vec<_> =
        stopped.flat_map(|partition| nodes[1].db.dump_partition(partition)).map(|(key, _)| key.1).collect();
    let others: Vec<i64> = (0..ROWS).filter(|id| !gone.contains(&row_key(&nodes[0], *id))).collect();
    assert!(!others.is_empty() && others.len() < ROWS as usize);
    for id in &others {
        assert_eq!(block_on(get(&nodes[0].db, *id)).unwrap(), Some(*id));
    }
    assert!(block_on(nodes[1].db.checkpoint()).is_err());
    nodes.pop().unwrap().kill();
    nodes.push(world.open(1));
    wait("all are read", || (0..ROWS).all(|id| matches!(block_on(get(&nodes[0].db, id)), Ok(Some(_)))));
    assert!(nodes[1].db.health().1.iter().all(|reason| !reason.contains("has stopped")));
    nodes.into_iter().for_each(Node::kill);
}

fn row_key(node: &Node, id: i64) -> Vec<u8> {
    super::pairs::key(&node.db.table("d", "t").unwrap(), id)
}

#[test]
fn a_partition_whose_two_replicas_differ_takes_no_writes_until_they_are_equal() {
    let (world, mut nodes) = filled();
    let (partition, leads, follows) = followed(&world.group(), &nodes);
    let table = nodes[leads].db.table("d", "t").unwrap().schema().id;
    assert!(block_on(nodes[follows].db.flip_bit(partition, table, 3, 80, true)));
    fn divided(node: &Node, partition: u16) -> Option<String> {
        node.db.member().unwrap().divided(partition)
    }
    // Something is written, else nobody compares.
    let mut next = ROWS;
    let end = Instant::now() + Duration::from_secs(20);
    while divided(&nodes[leads], partition).is_none() {
        assert!(Instant::now() < end, "it is found");
        match block_on(put(&nodes[0].db, next, next)) {
            Ok(()) => next += 1,
            Err(NodeError::ReadOnly { table }) => assert_eq!(table, "t"),
            Err(other) => panic!("{other}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let (colour, reasons) = nodes[leads].db.health();
    assert!(colour == Colour::Red && reasons[0].contains("takes no writes"), "{reasons:?}");
    assert_eq!(nodes[leads].db.counters().digest_mismatches, 1);
    // Rows of that partition are refused, those of all others are taken; all are read.
    let refused = |nodes: &[Node], ids: std::ops::Range<i64>| {
        let results: Vec<_> = ids.map(|id| (id, block_on(put(&nodes[0].db, id, id)))).collect();
        let others = results.iter().filter(|(_, result)| result.is_ok()).count();
        let refused: Vec<i64> = results.iter().filter(|(_, result)| result.is_err()).map(|(id, _)| *id).collect();
        let read_only = |result: &Result<(), NodeError>| matches!(result, Ok(()) | Err(NodeError::ReadOnly { .. }));
        assert!(results.iter().all(|(_, result)| read_only(result)), "{results:?}");
        (refused, others)
    };
    let (left, done) = refused(&nodes, 1000..1100);
    assert!(!left.is_empty() && done > 30, "{} refused, {done} written", left.len());
    block_on(async {
        for id in 0..ROWS {
            assert_eq!(get(&nodes[leads].db, id).await.unwrap(), Some(id));
        }
    });
    // What the other has on disk is right.
    let follower = nodes.remove(follows);
    let leads = leads - usize::from(follows < leads);
    follower.kill();
    nodes.push(world.open(follows));
    let end = Instant::now() + Duration::from_secs(20);
    for id in left {
        while let Err(error) = block_on(put(&nodes[leads].db, id, id)) {
            assert!(Instant::now() < end, "{error}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    nodes.into_iter().for_each(Node::kill);
}
