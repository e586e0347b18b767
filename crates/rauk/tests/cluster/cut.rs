//! A network that is cut: the minority stops serving before the majority goes on, and comes back without hand work.

use crate::common::cluster::{Node, PATIENCE, insist, until_healthy};
use crate::common::relay::Relay;
use crate::common::run;
use mysql::prelude::Queryable;
use std::time::{Duration, Instant};

#[test]
fn a_cut_off_node_stops_serving_and_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let secret = root.path().join("secret");
    let secret = secret.to_str().unwrap();
    // One relay for each direction between two nodes.
    let relays: Vec<Vec<Relay>> = (0..3).map(|_| (0..3).map(|_| Relay::start().unwrap()).collect()).collect();
    let ways = |from: usize| {
        let way = |to: usize| format!("{}={}", to + 1, relays[from][to].address);
        let others: Vec<String> = (0..3).filter(|to| *to != from).map(way).collect();
        others.join(",")
    };
    let mut nodes: Vec<Node> = Vec::new();
    for number in 0..3 {
        let dir = root.path().join(format!("n{}", number + 1));
        let ways = ways(number);
        let mut arguments = vec!["--cluster-secret-file", secret, "--peer-address", &ways];
        let founder = nodes.first().map(Node::address);
        match &founder {
            Some(founder) => arguments.extend(["--join", founder]),
            None => arguments.extend(["--replicas", "2"]),
        }
        // Whoever is already there must be able to reach it before it is ready: its port is chosen here.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        relays.iter().for_each(|from| from[number].lead_to(port));
        let port = port.to_string();
        arguments.extend(["--cluster-port", &port]);
        nodes.push(Node::start(&dir, &arguments));
    }
    until_healthy(&nodes[0], 3);
    let mut connection = nodes[0].connect();
    connection.query_drop("CREATE DATABASE d").unwrap();
    connection.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, v INT)").unwrap();
    let rows: Vec<String> = (0..200).map(|id| format!("({id}, 0)")).collect();
    insist(&mut connection, &format!("INSERT INTO d.t VALUES {}", rows.join(",")));

    let cut = |is_cut: bool| {
        let (to_others, from_others) = (&relays[2][..2], relays[..2].iter().map(|ways| &ways[2]));
        to_others.iter().chain(from_others).for_each(|relay| relay.set_cut(is_cut));
    };
    let mut minority = nodes[2].connect();
    // A call to a primary that cannot be reached is given up after this and a little.
    minority.query_drop("SET innodb_lock_wait_timeout = 2").unwrap();
    assert_eq!(run(&mut minority, "SELECT COUNT(*) FROM d.t"), ["200"]);
    cut(true);
    let began = Instant::now();
    // The majority goes on, all rows included.
    let mut longest = Duration::ZERO;
    for id in 0..200 {
        let one = Instant::now();
        while connection.query_drop(format!("UPDATE d.t SET v = 1 WHERE id = {id}")).is_err() {
            assert!(one.elapsed() < PATIENCE, "the majority does not write row {id}");
            std::thread::sleep(Duration::from_millis(5));
        }
        longest = longest.max(one.elapsed());
    }
    println!(
        "cut off: the majority has changed every row {} ms after the cut, the slowest took {} ms",
        began.elapsed().as_millis(),
        longest.as_millis()
    );
    // By now the minority must not show what was before, nor take anything; and it must say so.
    for id in [3, 101] {
        let asked = Instant::now();
        let answer: Result<Option<i32>, _> =
            minority.query_first(format!("SELECT v FROM d.t WHERE id = {id} LOCK IN SHARE MODE"));
        println!("cut off: the minority answers {answer:?} after {} ms", asked.elapsed().as_millis());
        assert!(answer.is_err(), "the minority serves: {answer:?}");
        assert!(asked.elapsed() < Duration::from_secs(30), "the minority hangs");
    }
    cut(false);
    let healed = Instant::now();
    until_healthy(&nodes[0], 3);
    println!("cut off: everything as configured {} ms after the network was back", healed.elapsed().as_millis());
    let mut back = nodes[2].connect();
    assert_eq!(run(&mut back, "SELECT COUNT(*), SUM(v) FROM d.t"), ["200 | 200"]);
    insist(&mut back, "UPDATE d.t SET v = 2 WHERE id = 5");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(run(&mut connection, "SELECT v FROM d.t WHERE id = 5"), ["2"]);
}
