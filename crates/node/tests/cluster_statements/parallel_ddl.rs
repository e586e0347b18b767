//! DDL statements of a cluster that work on many rows with several threads, on rows that any node leads.

use crate::ddl::{end, fill, rows, rows_by, steady, wait_calm, with_indexes};
use crate::support::*;
use crate::world::{Node, World};
use rauk_node::*;
use rauk_types::{Collation, Value};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

const ROWS: i64 = 300;

/// Three nodes on which no table is too small.
fn three() -> (parking_lot::MutexGuard<'static, ()>, Arc<World>, Vec<Node>) {
    let turn = crate::turn();
    let world = World::new(3, 4, 2);
    world.parallel_ddl_rows.store(0, Ordering::Relaxed);
    let nodes: Vec<_> = (0..3).map(|n| world.open(n)).collect();
    world.wait_replicas(2);
    block_on(async {
        nodes[0].db.create_database("d", Collation::DEFAULT).await.unwrap();
        nodes[0].db.create_table(accounts("t")).await.unwrap();
        nodes[0].db.create_table(accounts("u")).await.unwrap();
        fill(&nodes[0].db, "t", 0..ROWS).await;
    });
    (turn, world, nodes)
}

fn id(row: &[Value]) -> i64 {
    let Value::Int(id) = row[0] else { panic!("{row:?}") };
    id
}

#[test]
fn rows_of_all_nodes_are_copied_and_indexed() {
    let (_turn, world, nodes) = three();
    block_on(async {
        let before = rows(&nodes[0].db, "t").await;
        let db = &nodes[1].db;
        let further = || -> OwnConvert { Box::new(as_text) };
        let copied = steady(async || {
            let t = db.table("d", "t")?;
            db.rewrite_seen_table(&t, in_texts(&t), WAIT, None, &mut as_text, Some(&further)).await
        });
        assert_eq!(copied.await, ROWS as u64);
        let expected: Vec<_> = before.iter().map(|row| as_text(row).unwrap()).collect();
        for node in &nodes {
            assert_eq!(rows(&node.db, "t").await, expected);
        }
        steady(async || {
            let t = db.table("d", "t")?;
            db.alter_table(&t, with_indexes(&t), WAIT).await
        })
        .await;
        let t = db.table("d", "t").unwrap();
        for index in t.schema().indexes.iter() {
            for node in &nodes {
                let mut found = rows_by(&node.db, "t", all(Some(index.id.0))).await;
                found.sort_by_key(|row| id(row));
                assert_eq!(found, expected, "index {}", index.name);
            }
        }
    });
    wait_calm(&world);
    end(nodes);
}

/// Until its threads have ended the control plane has its job and its tables.
#[test]
fn a_statement_that_goes_away_ends_with_its_threads() {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(4);
    if threads == 1 {
        return;
    }
    let (_turn, world, nodes) = three();
    let held = HeldConversions::default();
    let further = || held.further();
    {
        let db = &nodes[1].db;
        let t = db.table("d", "t").unwrap();
        let mut convert = as_text;
        let statement = db.rewrite_seen_table(&t, in_texts(&t), WAIT, None, &mut convert, Some(&further));
        let mut statement = pin!(statement);
        held.run_until_begun(statement.as_mut(), threads);
    }
    // What nobody has any more its process ends. It has looked when it has ended this.
    let u = nodes[1].db.table("d", "u").unwrap();
    drop(block_on(nodes[1].db.lock_tables(&[(u, TableLockMode::Alone)], DdlWait::from(WAIT))).unwrap());
    world.wait("one intent", |group| group.intents.len() == 1);
    assert!(nodes[1].db.member().unwrap().group().catalog.jobs().next().is_some(), "its threads work still");
    held.let_go();
    wait_calm(&world);
    block_on(async {
        assert_eq!(rows(&nodes[0].db, "t").await.len() as i64, ROWS);
    });
    end(nodes);
}
