//! Replication groups that split while rows are read and written; nodes that end before, within and behind.

use super::pairs::{get, key, put, value_of};
use super::support::*;
use super::world::{Node, World};
use rauk_kernel::{LockMode, WaitPolicy};
use rauk_manage::group::{Answer, ClusterDurability, Colour, Group, GroupCommand};
use rauk_node::*;
use rauk_types::{Collation, GroupId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROWS: i64 = 64;
const PARTITIONS: u16 = 8;

fn nodes_of(world: &Arc<World>, count: usize) -> Vec<Node> {
    let nodes: Vec<Node> = (0..count).map(|number| world.open(number)).collect();
    at_rest(world);
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[0].db.create_table(pairs("t")).await.unwrap();
        for id in 0..ROWS {
            put(&nodes[0].db, id, 0).await.unwrap();
        }
    });
    nodes
}

/// Adds to these rows, in one transaction.
async fn add(db: &Database, ids: &[i64], more: i64) -> Result<(), NodeError> {
    let table = db.table("d", "t")?;
    let mut txn = db.begin(TxnOptions { isolation: Isolation::ReadCommitted, ..TxnOptions::default() });
    txn.use_table(&table).await?;
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    for id in ids {
        let read = |row: Option<rauk_types::RowView<'_>>| row.map(|row| value_of(&row));
        let old = txn.get(&table, &key(&table, *id), lock, read).await?.expect("rows stay");
        txn.update(&table, &[int(*id), int(old)], &[int(*id), int(old + more)]).await?;
    }
    txn.commit().await
}

/// The same to each row, by itself, again until it is done: where a group changes hands locks are gone.
fn add_to_all(db: &Database, more: impl Fn(i64) -> i64) {
    let end = Instant::now() + Duration::from_secs(30);
    for id in 0..ROWS {
        while let Err(error) = block_on(add(db, &[id], more(id))) {
            assert!(Instant::now() < end && !matches!(error, NodeError::UnknownOutcome(_)), "row {id}: {error}");
        }
    }
}

fn at_rest(world: &World) {
    world.wait("everything as configured", |group| group.health().colour == Colour::Green);
}

/// Has every group with several partitions split in the middle.
fn split_all(world: &World) {
    let (group, before) = (world.group(), world.group().splits.len());
    let groups = group.groups().unwrap();
    let mut wanted = 0;
    for id in groups.all().filter(|id| groups.partitions_of(*id).len() > 1) {
        let (held, version) = (groups.partitions_of(id), group.replication_groups[usize::from(id.0)].version);
        let at = held.start + held.len() as u16 / 2;
        let answer = world.propose(GroupCommand::Divide { group: id, version, at });
        wanted += usize::from(answer == Answer::Done);
    }
    assert!(wanted > 0, "there was something to split");
    world.wait("the groups are split", |group| group.splits.len() == before + wanted);
    at_rest(world);
}

fn check(nodes: &[Node], expected: impl Fn(i64) -> i64) {
    block_on(async {
        for node in nodes {
            for id in 0..ROWS {
                assert_eq!(get(&node.db, id).await.unwrap(), Some(expected(id)), "row {id} at {:?}", node.id);
            }
        }
    });
}

/// What two nodes that are whole have in each partition is the same, when followers have heard what is stable.
fn replicas_agree(nodes: &[Node], group: &Group) {
    let groups = group.groups().unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    for partition in 0..PARTITIONS {
        let state = group.replication_group(groups.group_of(partition)).unwrap();
        let agree = || {
            let held = nodes.iter().filter(|node| state.in_sync.contains(&node.db.member().unwrap().me()));
            let rows: Vec<_> = held.map(|node| node.db.dump_partition(partition)).collect();
            rows.len() == state.in_sync.len() && rows.windows(2).all(|pair| pair[0] == pair[1])
        };
        while !agree() {
            assert!(Instant::now() < end, "replicas of partition {partition} differ");
        }
    }
}

/// Adds one to rows in turn, through each node, until it is told to end: how often each was acknowledged, and may have
/// been added besides.
fn add_until(db: &Database, ends: &AtomicBool, seed: i64) -> BTreeMap<i64, (i64, i64)> {
    let mut added: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let mut id = seed;
    while !ends.load(Ordering::SeqCst) {
        id = (id + 7) % ROWS;
        // In one order for all.
        let both = [id, ROWS + id + 1].map(|id| id % ROWS);
        let both = [both[0].min(both[1]), both[0].max(both[1])];
        let done = block_on(add(db, &both, 1));
        for id in both {
            let known = added.entry(id).or_default();
            match &done {
                Ok(()) => known.0 += 1,
                Err(NodeError::UnknownOutcome(_)) => known.1 += 1,
                Err(_) => {}
            }
        }
    }
    added
}

#[test]
fn groups_split_under_writes_and_nothing_is_lost() {
    let world = World::of_one_group(3, PARTITIONS, false, 2, ClusterDurability::Fsync);
    let nodes = nodes_of(&world, 3);
    let ends = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..)
        .zip(&nodes)
        .map(|(seed, node)| {
            let (db, ends) = (node.db.clone(), ends.clone());
            std::thread::spawn(move || add_until(&db, &ends, seed))
        })
        .collect();
    for groups in [2, 4, 8] {
        split_all(&world);
        assert_eq!(world.group().replication_groups.len(), groups + 1);
        block_on(nodes[0].db.checkpoint()).unwrap();
    }
    std::thread::sleep(Duration::from_millis(100));
    ends.store(true, Ordering::SeqCst);
    let mut bounds: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for writer in writers {
        for (id, (sure, maybe)) in writer.join().unwrap() {
            let all = bounds.entry(id).or_default();
            *all = (all.0 + sure, all.1 + sure + maybe);
        }
    }
    assert!(bounds.values().map(|(sure, _)| sure).sum::<i64>() > 100, "{bounds:?}");
    at_rest(&world);
    block_on(async {
        for (id, (least, most)) in bounds {
            for node in &nodes {
                let value = get(&node.db, id).await.unwrap().unwrap();
                assert!((least..=most).contains(&value), "row {id} is {value}, and {least} to {most} were added");
            }
        }
    });
    replicas_agree(&nodes, &world.group());
    nodes.into_iter().for_each(Node::kill);
}

/// Whatever a node had on disk when it ended, before or behind a checkpoint, it is whole again.
#[test]
fn nodes_that_end_behind_a_split_have_both_groups() {
    for (checkpoint, durability) in [
        (false, ClusterDurability::Fsync),
        (true, ClusterDurability::Fsync),
        (false, ClusterDurability::Replicated),
        (true, ClusterDurability::Replicated),
    ] {
        let world = World::of_one_group(2, PARTITIONS, false, 2, durability);
        let mut nodes = nodes_of(&world, 2);
        split_all(&world);
        add_to_all(&nodes[1].db, |id| id);
        block_on(async {
            if checkpoint {
                nodes[0].db.checkpoint().await.unwrap();
                nodes[1].db.checkpoint().await.unwrap();
            }
            nodes[0].db.member().unwrap().wait_cut(Duration::from_secs(10)).await.unwrap();
        });
        let log = nodes[1].db.member().unwrap().group().splits.clone();
        // One after the other, then both.
        nodes.remove(1).kill();
        add_to_all(&nodes[0].db, |_| 1);
        nodes.push(world.open(1));
        at_rest(&world);
        check(&nodes, |id| id + 1);
        replicas_agree(&nodes, &world.group());
        // Where memory counts, the cluster would go back to a cut, and all processes would begin anew.
        if durability == ClusterDurability::Fsync {
            nodes.drain(..).for_each(Node::kill);
            let opening: Vec<_> = (0..2)
                .map(|number| {
                    let world = world.clone();
                    std::thread::spawn(move || world.open(number))
                })
                .collect();
            nodes.extend(opening.into_iter().map(|opening| opening.join().unwrap()));
            at_rest(&world);
            check(&nodes, |id| id + 1);
        }
        assert_eq!(world.group().splits, log, "{durability:?}");
        split_all(&world);
        check(&nodes, |id| id + 1);
        nodes.into_iter().for_each(Node::kill);
    }
}

#[test]
fn a_node_that_was_down_during_splits_gets_what_it_lacks() {
    let world = World::of_one_group(3, PARTITIONS, false, 2, ClusterDurability::Fsync);
    let mut nodes = nodes_of(&world, 3);
    nodes.remove(2).kill();
    world.wait("it is down", |group| group.health().colour != Colour::Green);
    let leads = |group: &Group| group.replication_groups.iter().all(|state| state.primary.is_some());
    world.wait("others lead", leads);
    let group = world.group();
    let version = group.replication_groups[0].version;
    assert_eq!(world.propose(GroupCommand::Divide { group: GroupId(0), version, at: 3 }), Answer::Done);
    world.wait("the group is split", |group| group.splits.len() == 1 && leads(group));
    add_to_all(&nodes[0].db, |id| 3 * id);
    nodes.push(world.open(2));
    at_rest(&world);
    check(&nodes, |id| 3 * id);
    replicas_agree(&nodes, &world.group());
    nodes.into_iter().for_each(Node::kill);
}

#[test]
fn a_growing_cluster_has_two_groups_a_node_at_least() {
    let world = World::of_one_group(3, PARTITIONS, true, 2, ClusterDurability::Fsync);
    let mut nodes = vec![world.open(0)];
    world.wait("two groups", |group| group.replication_groups.len() == 3);
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[0].db.create_table(pairs("t")).await.unwrap();
        for id in 0..ROWS {
            put(&nodes[0].db, id, id).await.unwrap();
        }
    });
    // Six groups of eight partitions would not be of one size.
    for (count, groups) in [(2, 4), (3, 8)] {
        nodes.push(world.open(count - 1));
        at_rest(&world);
        assert_eq!(world.group().replication_groups.len(), groups + 1);
        check(&nodes, |id| id);
    }
    let led = |node: &Node| {
        let me = node.db.member().unwrap().me();
        world.group().replication_groups.iter().filter(|state| state.primary == Some(me)).count()
    };
    assert!(nodes.iter().all(|node| led(node) >= 2), "{:?}", nodes.iter().map(led).collect::<Vec<_>>());
    nodes.into_iter().for_each(Node::kill);
}
