//! A network that loses every packet of a node without a word: no connection is closed or refused, as it is by a relay or by a process that ends.
//!
//! Each node is in a network namespace of its own. Where that is not permitted (it takes root and CAP_NET_ADMIN) the test says so in one line and shows nothing.

use crate::common::cluster::{Node, PATIENCE, insist_on, until, until_healthy};
use crate::common::namespace::{Network, address};
use crate::common::run;
use mysql::prelude::Queryable;
use std::time::{Duration, Instant};

const PORT: &str = "7306";
const ROWS: usize = 100;

/// Every row is written through this node, those of partitions that had their primary elsewhere too.
fn writes_all(node: &Node, value: usize) -> Duration {
    let began = Instant::now();
    let mut connection = node.connect();
    for id in 0..ROWS {
        let change = format!("UPDATE d.t SET v = {value} WHERE id = {id}");
        while connection.query_drop(&change).is_err() {
            assert!(began.elapsed() < PATIENCE, "row {id} is not written by {}", node.dir.display());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    began.elapsed()
}

#[test]
fn packets_that_vanish() {
    let network = match Network::new(3) {
        Ok(network) => network,
        Err(why) => {
            println!("network namespaces are not permitted here, so nothing is shown: {why}");
            return;
        }
    };
    let root = tempfile::tempdir().unwrap();
    let secret = root.path().join("secret");
    let secret = secret.to_str().unwrap();
    let founder = format!("{}:{PORT}", address(1));
    let mut nodes: Vec<Node> = Vec::new();
    for number in 1..=3 {
        let dir = root.path().join(format!("n{number}"));
        let advertised = address(number);
        // Clients come by the namespace's own loopback interface, others by its link.
        let mut arguments = vec!["--cluster-secret-file", secret, "--host", "0.0.0.0", "--advertise", &advertised];
        arguments.extend(["--cluster-port", PORT]);
        match number {
            1 => arguments.extend(["--replicas", "2"]),
            _ => arguments.extend(["--join", &founder]),
        }
        nodes.push(Node::start_within(Some(&network.spaces[number - 1]), &dir, &arguments));
    }
    until_healthy(&nodes[0], 3);
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, 0)")).collect();
    insist_on(
        &nodes[0],
        &[
            "CREATE DATABASE IF NOT EXISTS d",
            "CREATE TABLE IF NOT EXISTS d.t (id INT PRIMARY KEY, v INT)",
            &format!("REPLACE INTO d.t VALUES {}", rows.join(",")),
        ],
    );

    // A node that only follows, then the one that leads the manage group.
    for round in 1..=2 {
        let ask = "SELECT node_id FROM rauk.nodes WHERE leads_manage_group = 'YES'";
        let mut leader = None;
        until("somebody leads the manage group", || {
            leader = nodes[0].process().try_connect().ok().and_then(|mut c| c.query_first::<usize, _>(ask).ok()?);
            leader.is_some()
        });
        let leader = leader.expect("found");
        let cut = if round == 1 { leader % 3 + 1 } else { leader };
        let others: Vec<&Node> = (1..=3).filter(|number| *number != cut).map(|number| &nodes[number - 1]).collect();
        let mut alone = nodes[cut - 1].connect();
        // A call to a primary that cannot be reached is given up after this and a little.
        alone.query_drop("SET innodb_lock_wait_timeout = 1").unwrap();
        network.set_cut(cut, true);
        let took = others.iter().map(|node| writes_all(node, round)).max().expect("two");
        let what = if cut == leader { "the manage leader" } else { "a node" };
        println!("packets of {what} vanish: the others have written every row after {} ms", took.as_millis());
        // By now it must not show what was before, nor take anything.
        let asked = Instant::now();
        let locked = run(&mut alone, &format!("SELECT v FROM d.t WHERE id = {cut} LOCK IN SHARE MODE"));
        let written = run(&mut alone, &format!("UPDATE d.t SET v = -1 WHERE id = {}", cut + 40));
        for answer in [&locked[0], &written[0]] {
            assert!(
                answer.starts_with("error") || answer.starts_with("lost"),
                "a node that is cut off serves: {answer}"
            );
        }
        assert!(asked.elapsed() < PATIENCE / 2, "it hangs");
        network.set_cut(cut, false);
        let healed = until_healthy(others[0], 3);
        println!("packets of {what} come through again: everything as configured after {} ms", healed.as_millis());
        for node in &nodes {
            let mut sum = Vec::new();
            until("the node serves", || {
                sum = node
                    .process()
                    .try_connect()
                    .map_or(vec![], |mut c| run(&mut c, "SELECT COUNT(*), SUM(v) FROM d.t"));
                sum.first().is_some_and(|answer| answer.contains('|'))
            });
            assert_eq!(sum, [format!("{ROWS} | {}", ROWS * round)], "through {}", node.dir.display());
        }
        writes_all(&nodes[cut - 1], round);
    }
}
