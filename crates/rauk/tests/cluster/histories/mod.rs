//! What clients of a cluster are told while its nodes are killed, stopped and restarted fits one order of transactions, and nothing acknowledged is lost.
//!
//! Clients at SERIALIZABLE and at REPEATABLE READ append to lists, transfer money and audit it, over SQL, with connections to all nodes; meanwhile one node after the other fails, the manage group's leader among them,
//! a majority, and at last all at once. The lists' history is judged as in the simulator (dependency graph as Elle's: G1, G-single, G2; nothing acknowledged or read is taken back; who begins later sees what
//! was acknowledged), the bank by its ledger.

mod bank;
mod clients;
mod lists;

use crate::common::cluster::{Node, PATIENCE, all_in_one, insist_on, until, until_healthy};
use crate::common::run;
use clients::{Client, told};
use mysql::prelude::Queryable;
use rauk_simulation::cluster::check::lists::check;
use rauk_simulation::cluster::network::Site;
use rauk_simulation::node::history::History;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LISTERS: usize = 6;
const BANKERS: usize = 4;
/// How long a failure lasts: several leases.
const LASTS: Duration = Duration::from_millis(1500);

fn leader(nodes: &[Node]) -> usize {
    let mut found = None;
    until("somebody leads the manage group", || {
        let ask = "SELECT node_id FROM rauk.nodes WHERE leads_manage_group = 'YES'";
        let answer: Option<usize> = nodes[0].process().try_connect().ok().and_then(|mut c| c.query_first(ask).ok()?);
        found = answer.map(|number| number - 1);
        found.is_some()
    });
    found.expect("found")
}

/// Fails, stays so, comes back, and all is as configured again before this returns.
fn fail(nodes: &mut [Node], at: usize, how: &str) {
    let count = nodes.len();
    until_healthy(&nodes[0], count);
    match how {
        "killed" => nodes[at].kill(),
        "hung" => nodes[at].process().signal("STOP"),
        "shut down" => nodes[at].stop(),
        other => panic!("there is no {other}"),
    }
    std::thread::sleep(LASTS);
    let began = Instant::now();
    match how {
        "hung" => {
            // Noticed while it was away; else nothing was tested.
            let other = (at + 1) % count;
            let ask = format!("SELECT status FROM rauk.nodes WHERE node_id = {}", at + 1);
            until("the hung node is missed", || {
                let status = nodes[other].process().try_connect().ok().map(|mut c| run(&mut c, &ask));
                status.is_some_and(|status| status == ["down"])
            });
            nodes[at].process().signal("CONT");
        }
        _ => nodes[at].restart(),
    }
    until_healthy(&nodes[(at + 1) % count], count);
    println!("node {} {how}: everything as configured after {} ms", at + 1, began.elapsed().as_millis());
}

fn kill_at_once(nodes: &mut [Node], which: &[usize]) {
    which.iter().for_each(|at| nodes[*at].process().signal("KILL"));
    which.iter().for_each(|at| nodes[*at].kill());
    std::thread::sleep(LASTS / 3);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for (_, node) in nodes.iter_mut().enumerate().filter(|(at, _)| which.contains(at)) {
            scope.spawn(|| node.restart());
        }
    });
    until_healthy(&nodes[0], nodes.len());
    println!(
        "{} of {} nodes killed at once: as configured after {} ms",
        which.len(),
        nodes.len(),
        began.elapsed().as_millis()
    );
}

#[test]
fn histories_hold_while_nodes_fail() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    insist_on(&nodes[0], &["CREATE DATABASE IF NOT EXISTS h"]);
    lists::prepare(&nodes[0]);
    bank::prepare(&nodes[0]);

    let ports: Vec<u16> = nodes.iter().map(|node| node.process().port).collect();
    let (history, numbers, stop) = (Mutex::new(History::default()), AtomicU64::new(0), AtomicBool::new(false));
    let (listers, bankers) = std::thread::scope(|scope| {
        let listers: Vec<_> = (0..LISTERS)
            .map(|number| {
                let (client, history, stop) = (Client::new(&ports, number), &history, &stop);
                scope.spawn(move || lists::work(client, number as u64, history, stop))
            })
            .collect();
        let bankers: Vec<_> = (0..BANKERS)
            .map(|number| {
                let (client, numbers, stop) = (Client::new(&ports, number), &numbers, &stop);
                scope.spawn(move || bank::work(client, 100 + number as u64, numbers, stop))
            })
            .collect();
        // The clients end also when a node does not come back.
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            std::thread::sleep(Duration::from_secs(1));
            let led = leader(&nodes);
            fail(&mut nodes, (led + 1) % 3, "killed");
            fail(&mut nodes, (led + 2) % 3, "shut down");
            let led = leader(&nodes);
            fail(&mut nodes, (led + 1) % 3, "hung");
            fail(&mut nodes, led, "hung");
            let led = leader(&nodes);
            fail(&mut nodes, led, "killed");
            kill_at_once(&mut nodes, &[1, 2]);
            std::thread::sleep(Duration::from_secs(1));
            kill_at_once(&mut nodes, &[0, 1, 2]);
            std::thread::sleep(Duration::from_secs(1));
        }));
        stop.store(true, Ordering::Relaxed);
        let listers: Vec<Client> = listers.into_iter().map(|t| t.join().expect("a client ends")).collect();
        let bankers: Vec<_> = bankers.into_iter().map(|t| t.join().expect("a client ends")).collect();
        failed.unwrap_or_else(|cause| std::panic::resume_unwind(cause));
        (listers, bankers)
    });

    let mut history = history.into_inner().unwrap();
    println!("lists: {} transactions: {}", history.txns.len(), told(listers.iter().map(|c| c.counts.clone())));
    println!("bank: {}", told(bankers.iter().map(|(c, _)| c.counts.clone())));
    let all = |name: &str| {
        listers.iter().chain(bankers.iter().map(|(c, _)| c)).filter_map(|c| c.counts.get(name)).sum::<u64>()
    };
    for wanted in ["serializable", "repeatable read", "transfers", "audits", "lost"] {
        assert!(all(wanted) > 0, "there was no {wanted}: nothing was tested");
    }
    let book: bank::Book = bankers.iter().flat_map(|(_, book)| book.clone()).collect();
    let began = Instant::now();
    let mut read = BTreeMap::new();
    for (site, node) in (1..).map(Site).zip(&nodes) {
        let mut connection = node.connect();
        bank::check(&mut connection, &book);
        read.insert(site, lists::read(&mut connection));
    }
    check(&mut history, &read).unwrap_or_else(|anomaly| panic!("{anomaly}"));
    assert!(began.elapsed() < PATIENCE);
}
