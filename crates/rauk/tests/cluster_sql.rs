//! SQL and the native API over several real nodes, as their users find it: accounts, numbers, counts of rows, sessions, settings of the cluster; a native client goes on when its node dies.

mod common;

use common::cluster::{Node, PATIENCE, all_in_one, insist, until, until_healthy};
use common::run;
use mysql::Conn;
use mysql::prelude::Queryable;
use rauk_client::blocking::{self, wait};
use rauk_client::{Client, Options, Value};
use std::collections::BTreeSet;
use std::time::Instant;

fn login(node: &Node, user: &str, password: &str) -> Result<Conn, mysql::Error> {
    let options = mysql::OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(node.process().port)
        .user(Some(user))
        .pass(Some(password))
        .prefer_socket(false);
    Conn::new(options)
}

fn refuses(node: &Node, user: &str, password: &str) {
    match login(node, user, password) {
        Ok(_) => panic!("{user} is let in with {password}"),
        Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1045, "{error}"),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn accounts_of_one_node_are_those_of_all() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut admin = nodes[0].connect();
    insist(&mut admin, "CREATE DATABASE shop");
    insist(&mut admin, "CREATE TABLE shop.t (id INT PRIMARY KEY)");
    insist(&mut admin, "CREATE USER 'ann'@'%' IDENTIFIED BY 'one'");
    // At once, on every node; and without rights on any.
    let mut sessions: Vec<Conn> = nodes.iter().map(|node| login(node, "ann", "one").expect("she is known")).collect();
    for (session, node) in sessions.iter_mut().zip(&nodes) {
        assert_eq!(run(session, "SELECT * FROM shop.t"), ["error 1142"]);
        refuses(node, "ann", "two");
    }
    // Rights count for sessions that are open, too.
    insist(&mut nodes[1].connect(), "GRANT SELECT, INSERT ON shop.* TO 'ann'@'%'");
    for session in &mut sessions {
        assert_eq!(run(session, "SELECT * FROM shop.t"), ["(empty)"]);
        assert_eq!(run(session, "DELETE FROM shop.t"), ["error 1142"]);
    }
    insist(&mut nodes[2].connect(), "REVOKE INSERT ON shop.* FROM 'ann'@'%'");
    for session in &mut sessions {
        assert_eq!(run(session, "INSERT INTO shop.t VALUES (1)"), ["error 1142"]);
    }
    // A password that she changes herself on one node.
    insist(&mut sessions[1], "SET PASSWORD = 'two'");
    for node in &nodes {
        assert!(login(node, "ann", "two").is_ok());
        refuses(node, "ann", "one");
    }
    // And all of it after the whole cluster was down.
    drop(sessions);
    nodes.iter_mut().for_each(Node::kill);
    std::thread::scope(|scope| {
        for node in &mut nodes {
            scope.spawn(|| node.restart());
        }
    });
    until_healthy(&nodes[0], 3);
    for node in &nodes {
        refuses(node, "ann", "one");
        let mut session = login(node, "ann", "two").expect("the new password counts");
        assert_eq!(run(&mut session, "SELECT * FROM shop.t"), ["(empty)"]);
        assert_eq!(run(&mut session, "INSERT INTO shop.t VALUES (1)"), ["error 1142"]);
    }
    insist(&mut nodes[2].connect(), "DROP USER 'ann'@'%'");
    nodes.iter().for_each(|node| refuses(node, "ann", "two"));
}

fn number(connection: &mut Conn, sql: &str) -> u64 {
    let lines = run(connection, sql);
    lines[0].parse().unwrap_or_else(|_| panic!("{sql}: {lines:?}"))
}

#[test]
fn numbers_counts_and_sessions_over_nodes() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut connections: Vec<Conn> = nodes.iter().map(Node::connect).collect();
    insist(&mut connections[0], "CREATE DATABASE shop");
    insist(&mut connections[0], "CREATE TABLE shop.n (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT, KEY (v))");

    // Each is given once, LAST_INSERT_ID is the session's own, and no gap is larger than the blocks of the nodes.
    let mut given = BTreeSet::new();
    for round in 0..40 {
        for connection in &mut connections {
            insist(connection, &format!("INSERT INTO shop.n (v) VALUES ({round}), ({round}), ({round})"));
            let first = number(connection, "SELECT LAST_INSERT_ID()");
            for id in first..first + 3 {
                assert!(given.insert(id), "{id} was given twice");
                let found = run(connection, &format!("SELECT v FROM shop.n WHERE id = {id}"));
                assert_eq!(found, [round.to_string()]);
            }
        }
    }
    assert_eq!(number(&mut connections[2], "SELECT COUNT(*) FROM shop.n"), 360);
    let (low, high) = (given.first().unwrap(), given.last().unwrap());
    assert!(*low <= 10 && *high < 360 + 4 * 1024, "{low} … {high}");
    let gap = given.iter().zip(given.iter().skip(1)).map(|(a, b)| b - a).max().unwrap();
    assert!(gap <= 3 * 1027, "a gap of {gap}");

    // What one node is told of the next number, all keep to.
    insist(&mut connections[1], "ALTER TABLE shop.n AUTO_INCREMENT = 50000");
    for connection in &mut connections {
        insist(connection, "INSERT INTO shop.n (v) VALUES (-1)");
        let id = number(connection, "SELECT LAST_INSERT_ID()");
        assert!(id >= 50_000 && given.insert(id), "{id}");
    }

    // Rows are counted over all nodes: as they are, not the part that one node has.
    for connection in &mut connections {
        // A partition that moves meanwhile may be counted twice, or not at all; and plans are made by counts that are up to two seconds old.
        let rows = "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_NAME = 'n'";
        until("TABLE_ROWS is right", || number(connection, rows) == 363);
        let field = |row: Option<mysql::Row>, name: &str| row.and_then(|row| row.get::<u64, _>(name));
        until("SHOW TABLE STATUS is right", || {
            field(connection.query_first("SHOW TABLE STATUS FROM shop LIKE 'n'").unwrap(), "Rows") == Some(363)
        });
        until("EXPLAIN is right", || {
            field(connection.query_first("EXPLAIN SELECT * FROM shop.n").unwrap(), "rows") == Some(363)
        });
    }

    // A node shows and ends its own sessions; the transaction of one that is killed goes on all nodes.
    insist(&mut connections[1], "BEGIN");
    insist(&mut connections[1], "UPDATE shop.n SET v = 7");
    let id = connections[1].connection_id();
    let mut other = nodes[1].connect();
    let list = run(&mut other, "SELECT ID FROM information_schema.PROCESSLIST");
    assert!(list.contains(&id.to_string()), "{id} in {list:?}");
    assert_eq!(run(&mut other, &format!("KILL {id}")), ["ok 0"]);
    until("its locks are given back", || {
        connections[2].query_drop("SET innodb_lock_wait_timeout = 2").unwrap();
        connections[2].query_drop("UPDATE shop.n SET v = 8").is_ok()
    });
    assert_eq!(number(&mut connections[0], "SELECT COUNT(*) FROM shop.n WHERE v = 8"), 363);
}

/// In-sync replicas of the partition that has fewest, and of that which has most, the fully replicated one left out.
fn replicas(connection: &mut Conn) -> Option<(u8, u8)> {
    let sql = "SELECT MIN(in_sync_count), MAX(in_sync_count) FROM rauk.partitions WHERE fully_replicated = 'NO'";
    connection.query_first(sql).ok().flatten()
}

#[test]
fn replicas_are_more_and_fewer_while_the_cluster_works() {
    let root = tempfile::tempdir().unwrap();
    let nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut connection = nodes[0].connect();
    insist(&mut connection, "CREATE DATABASE shop");
    insist(&mut connection, "CREATE TABLE shop.t (id INT PRIMARY KEY)");
    let mut next = 0;
    let mut insert = |connection: &mut Conn| {
        insist(connection, &format!("INSERT INTO shop.t VALUES ({next})"));
        next += 1;
    };
    for (wanted, by) in [(3, 1), (1, 2), (2, 0)] {
        insist(&mut nodes[by].connect(), &format!("SET GLOBAL rauk_replicas = {wanted}"));
        for node in &nodes {
            assert_eq!(run(&mut node.connect(), "SELECT @@rauk_replicas"), [wanted.to_string()]);
        }
        until("replicas are as many as wanted", || {
            insert(&mut connection);
            replicas(&mut nodes[2].connect()) == Some((wanted, wanted))
        });
    }
    until_healthy(&nodes[0], 3);
    assert_eq!(number(&mut nodes[1].connect(), "SELECT COUNT(*) FROM shop.t"), next);

    // What cannot be is refused with what can.
    for wrong in ["0", "5", "1000", "-1"] {
        let error = connection.query_drop(format!("SET GLOBAL rauk_replicas = {wrong}")).unwrap_err().to_string();
        assert!(error.contains("1231") && error.contains("1 to 4 are possible"), "{wrong}: {error}");
    }
    assert_eq!(run(&mut connection, "SET SESSION rauk_replicas = 1"), ["error 1229"]);
    assert_eq!(run(&mut connection, "SET PERSIST rauk_replicas = 1"), ["error 1231"]);
    assert_eq!(run(&mut connection, "SHOW VARIABLES LIKE 'rauk_replicas'"), ["rauk_replicas | 2"]);
    // More than there are nodes: kept in mind, and said.
    insist(&mut connection, "SET GLOBAL rauk_replicas = 4");
    let warnings: Option<(String, u32, String)> = connection.query_first("SHOW WARNINGS").unwrap();
    assert!(warnings.is_some_and(|(_, _, text)| text.contains("3 data nodes")));
    let reasons = run(&mut connection, "SELECT * FROM rauk.health");
    assert!(reasons.iter().any(|line| line.contains("yellow")), "{reasons:?}");
}

fn native(node: &Node) -> Option<Client> {
    let address = format!("127.0.0.1:{}", node.process().native_port);
    blocking::connect(&address, Options::secret_file(node.dir.join("native.secret"))).ok()
}

#[test]
fn a_native_client_works_on_any_node_and_goes_on_at_another() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut sql = nodes[0].connect();
    insist(&mut sql, "CREATE DATABASE shop");
    insist(&mut sql, "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT NOT NULL)");
    // Rows of all partitions, wherever they are led, by a client of each node.
    for (number, node) in nodes.iter().enumerate() {
        let client = native(node).expect("a client is let in");
        wait(async {
            let table = client.table("shop", "t").await.expect("opened");
            for id in 0..40 {
                let id = number as i32 * 100 + id;
                table.insert(&[("id", Value::from(id)), ("v", Value::from(id * 3))]).await.expect("inserted");
            }
            let rows = table.scan().collect().await.expect("scanned");
            assert_eq!(rows.len(), 40 * (number + 1));
        });
    }
    assert_eq!(run(&mut sql, "SELECT COUNT(*), SUM(v = id * 3) FROM shop.t"), ["120 | 120"]);

    // The node dies while its client writes: whatever was acknowledged is there, whatever was refused is not, of the rest nobody knows. It goes on at another node.
    let client = native(&nodes[2]).expect("a client is let in");
    let mut acknowledged = Vec::new();
    let (mut refused, mut unknown) = (Vec::new(), 0);
    let table = wait(client.table("shop", "t")).expect("opened");
    let mut id = 1000;
    let began = Instant::now();
    let mut killed = false;
    while !killed || acknowledged.last().is_some_and(|last| *last == id - 1) {
        assert!(began.elapsed() < PATIENCE, "the client does not notice");
        if id == 1200 && !killed {
            nodes[2].kill();
            killed = true;
        }
        match wait(table.insert(&[("id", Value::from(id)), ("v", Value::from(0))])) {
            Ok(_) => acknowledged.push(id),
            Err(error) if error.is_unknown_outcome() => unknown += 1,
            Err(error) if error.is_temporary() => refused.push(id),
            Err(error) => panic!("{error}"),
        }
        id += 1;
    }
    let client = native(&nodes[0]).expect("another node takes it");
    let table = wait(client.table("shop", "t")).expect("opened");
    until("it goes on at another node", || {
        let done = wait(table.insert(&[("id", Value::from(id)), ("v", Value::from(0))]));
        if done.is_ok() {
            acknowledged.push(id);
        }
        id += 1;
        done.is_ok()
    });
    for id in &acknowledged {
        assert!(wait(table.get(*id)).expect("read").is_some(), "{id} is lost");
    }
    for id in &refused {
        assert!(wait(table.get(*id)).expect("read").is_none(), "{id} was refused and is there");
    }
    println!("{} acknowledged, {} refused, {unknown} unknown", acknowledged.len(), refused.len());
}
