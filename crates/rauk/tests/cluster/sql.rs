//! SQL and the native API over several real nodes, as their users find it: accounts, numbers, counts of rows, sessions, settings of the cluster, conditions where the rows are, full-text searches; a native client goes on when its node dies.

use crate::common::cluster::{Node, PATIENCE, all_in_one, insist, until, until_healthy};
use crate::common::{number, run};
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

    // A histogram is that of all nodes.
    run(&mut connections[2], "ANALYZE TABLE shop.n UPDATE HISTOGRAM ON v WITH 4 BUCKETS");
    let shown = "SELECT HISTOGRAM FROM information_schema.COLUMN_STATISTICS WHERE TABLE_NAME = 'n'";
    let histogram = run(&mut connections[2], shown);
    assert!(histogram.len() == 1 && histogram[0].contains("equi-height"), "{histogram:?}");
    for connection in &mut connections {
        until("the histogram is everywhere", || run(connection, shown) == histogram);
    }
    run(&mut connections[0], "ANALYZE TABLE shop.n DROP HISTOGRAM ON v");
    for connection in &mut connections {
        until("it is dropped everywhere", || run(connection, shown) == ["(empty)"]);
    }

    // Every node shows and ends the sessions of all; the transaction of one that is killed goes on all nodes.
    insist(&mut connections[1], "BEGIN");
    insist(&mut connections[1], "UPDATE shop.n SET v = 7");
    let ids: Vec<u64> = connections.iter_mut().map(|c| number(c, "SELECT CONNECTION_ID()")).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 3, "{ids:?}");
    for (connection, own) in connections.iter_mut().zip(&ids) {
        assert_eq!(*own as u32, connection.connection_id());
        let list = run(connection, "SELECT ID FROM information_schema.PROCESSLIST");
        assert!(ids.iter().all(|id| list.contains(&id.to_string())), "{ids:?} in {list:?}");
        let shown: Vec<mysql::Row> = connection.query("SHOW FULL PROCESSLIST").unwrap();
        let shown: Vec<u64> = shown.iter().filter_map(|row| row.get("Id")).collect();
        assert!(ids.iter().all(|id| shown.contains(id)), "{ids:?} in {shown:?}");
    }
    let [id, unknown] = [ids[1], ids[1] + 1_000_000];
    assert_eq!(run(&mut connections[0], &format!("KILL {unknown}")), ["error 1094"]);
    assert_eq!(run(&mut connections[0], &format!("KILL QUERY {}", 1u64 << 45)), ["error 1094"]);
    insist(&mut connections[2], "CREATE USER 'ann'@'%' IDENTIFIED BY 'one'");
    let mut ann = login(&nodes[2], "ann", "one").expect("she is known");
    assert_eq!(run(&mut ann, &format!("KILL {id}")), ["error 1095"]);
    let own = number(&mut ann, "SELECT CONNECTION_ID()");
    assert_eq!(run(&mut ann, "SELECT ID FROM information_schema.PROCESSLIST"), [own.to_string()]);
    // A statement on another node is ended, and its session goes on.
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| run(&mut ann, "SELECT SLEEP(60)"));
        until("the statement is shown elsewhere", || {
            let shown = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(60)'";
            number(&mut connections[0], shown) == 1
        });
        assert_eq!(run(&mut connections[0], &format!("KILL QUERY {own}")), ["ok 0"]);
        assert_eq!(sleeper.join().unwrap(), ["1"]);
    });
    assert_eq!(number(&mut ann, "SELECT 5"), 5);
    assert_eq!(run(&mut connections[0], &format!("KILL {id}")), ["ok 0"]);
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
            until("the node knows it", || run(&mut node.connect(), "SELECT @@rauk_replicas") == [wanted.to_string()]);
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

/// A client that knows this node and no other.
fn native(node: &Node) -> Option<Client> {
    let address = format!("127.0.0.1:{}", node.process().native_port);
    let options = Options::secret_file(node.dir.join("native.secret")).placement(false);
    blocking::connect(&address, options).ok()
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

/// How many rows other nodes have sent to scans of this one.
fn sent(connection: &mut Conn) -> u64 {
    number(connection, "SELECT value FROM rauk.counters WHERE name = 'remote_scan_rows'")
}

/// Runs a query, and tells how many rows other nodes sent for it. Meanwhile the node may have read a sample of the table for its statistics: what is more than
/// `most` is asked again.
fn rows_sent(connection: &mut Conn, sql: &str, most: u64) -> (Vec<String>, u64) {
    for _ in 0..9 {
        let before = sent(connection);
        let lines = run(connection, sql);
        let count = sent(connection) - before;
        if count <= most {
            return (lines, count);
        }
    }
    panic!("{sql}: more than {most} rows are sent each time");
}

const ROWS: u64 = 3000;

/// Three nodes that lead a third each, and 3000 rows: the class is the last digit of the id.
fn thirds(root: &std::path::Path) -> (Vec<Node>, Vec<Conn>) {
    let nodes = all_in_one(root, 3, "1");
    until_healthy(&nodes[0], 3);
    let mut connections: Vec<Conn> = nodes.iter().map(Node::connect).collect();
    let first = &mut connections[0];
    insist(first, "CREATE DATABASE shop");
    let columns = "id INT PRIMARY KEY, class INT, v DECIMAL(10,2), t VARCHAR(100), f DOUBLE, at TIMESTAMP NULL";
    insist(first, &format!("CREATE TABLE shop.r ({columns}, KEY (class))"));
    insist(first, "CREATE TABLE shop.words (n INT PRIMARY KEY, word VARCHAR(10))");
    insist(first, "INSERT INTO shop.words VALUES (3, 'three'), (4, 'four')");
    insist(first, "SET time_zone = '+00:00'");
    for part in 0..6 {
        let row = |id: u64| format!("({id}, {}, {}.25, 'text {id}', {id} / 4, '2024-01-01 00:30:00')", id % 10, id % 7);
        let rows: Vec<String> = (part * 500..part * 500 + 500).map(row).collect();
        insist(first, &format!("INSERT INTO shop.r VALUES {}", rows.join(", ")));
    }
    (nodes, connections)
}

/// A join that reaches its table by a secondary index asks a node for many rows at a time.
#[test]
fn a_join_by_a_secondary_index_asks_for_many_rows_together() {
    let root = tempfile::tempdir().unwrap();
    let (_nodes, mut connections) = thirds(root.path());
    let connection = &mut connections[0];
    insist(connection, "CREATE TABLE shop.codes (n INT PRIMARY KEY, code INT, KEY (code))");
    insist(connection, "INSERT INTO shop.codes SELECT id, 5000 - id FROM shop.r");
    let answers = |connection: &mut Conn| {
        number(connection, "SELECT value FROM rauk.counters WHERE name = 'remote_scan_answers'")
    };
    let join = "SELECT STRAIGHT_JOIN COUNT(*), SUM(c.n) FROM shop.r FORCE INDEX (PRIMARY) JOIN shop.codes c \
                FORCE INDEX (code) ON c.code = r.id WHERE r.id >= 2400";
    let expected = [format!("600 | {}", (2001..=2600).sum::<u64>())];
    assert_eq!(run(connection, join), expected);
    let before = answers(connection);
    assert_eq!(run(connection, join), expected);
    let asked = answers(connection) - before;
    assert!((1..200).contains(&asked), "{asked} answers for 600 rows");
    // Also in a transaction that has changed some of the rows.
    insist(connection, "BEGIN");
    insist(connection, "UPDATE shop.codes SET code = code + 10000 WHERE n IN (2001, 2600)");
    let changed = format!("598 | {}", (2002..=2599).sum::<u64>());
    let before = answers(connection);
    assert_eq!(run(connection, join), [changed]);
    let asked = answers(connection) - before;
    assert!((1..200).contains(&asked), "{asked} answers for 600 rows");
    insist(connection, "ROLLBACK");
    assert_eq!(run(connection, join), expected);
}

#[test]
fn conditions_and_sums_are_evaluated_where_the_rows_are() {
    let root = tempfile::tempdir().unwrap();
    let (_nodes, mut connections) = thirds(root.path());
    let sum: u64 = (0..ROWS).map(|id| id % 7).sum();
    let total = format!("{}.{:02}", sum + ROWS / 4, 0);
    // Question, answer, and how many rows may be sent for it.
    let questions: Vec<(&str, Vec<String>, u64)> = vec![
        ("SELECT COUNT(*) FROM shop.r WHERE class < 9", vec!["2700".into()], 0),
        ("SELECT COUNT(*) FROM shop.r", vec!["3000".into()], 0),
        ("SELECT COUNT(*), SUM(v), MIN(id), MAX(t) FROM shop.r", vec![format!("3000 | {total} | 0 | text 999")], 0),
        (
            "SELECT class, COUNT(*), SUM(id), AVG(class) FROM shop.r WHERE id % 10 IN (2, 7) GROUP BY class HAVING COUNT(*) = 300",
            vec!["2 | 300 | 449100 | 2.0000".into(), "7 | 300 | 450600 | 7.0000".into()],
            0,
        ),
        ("SELECT COUNT(*) FROM shop.r WHERE t LIKE '%77'", vec!["30".into()], 0),
        ("SELECT COUNT(*) FROM shop.r WHERE class IS NULL", vec!["0".into()], 0),
        // Rows that pass come, and no others.
        (
            "SELECT id FROM shop.r WHERE id % 1000 = 77 ORDER BY id",
            ["77", "1077", "2077"].map(String::from).to_vec(),
            3,
        ),
        ("SELECT COUNT(DISTINCT class) FROM shop.r WHERE id % 100 = 7", vec!["1".into()], 30),
        ("SELECT SUM(f) FROM shop.r WHERE id < 8", vec!["7".into()], 8),
        ("SELECT COUNT(*) FROM shop.r JOIN shop.words ON n = id % 5 WHERE t LIKE '%0'", vec!["0".into()], 302),
        (
            "SELECT word, COUNT(*) FROM shop.r JOIN shop.words ON n = class WHERE id % 100 < 50 GROUP BY word ORDER BY word",
            vec!["four | 150".into(), "three | 150".into()],
            1502,
        ),
        // Of those that come after the first none, or few.
        ("SELECT id FROM shop.r ORDER BY f * 0, t LIMIT 3", ["0", "1", "10"].map(String::from).to_vec(), 300),
        (
            "SELECT t FROM shop.r WHERE class = 5 ORDER BY v DESC, t LIMIT 1, 2",
            ["text 1105", "text 1175"].map(String::from).to_vec(),
            150,
        ),
        // Of these conditions one stays.
        ("SELECT COUNT(*) FROM shop.r WHERE class = 3 AND t REGEXP '3$'", vec!["300".into()], 300),
        (
            "SELECT COUNT(*) FROM shop.r WHERE id % 10 = (SELECT MAX(n) FROM shop.words) AND id < 100",
            vec!["10".into()],
            104,
        ),
        ("SELECT COUNT(*) FROM shop.r WHERE 9223372036854775807 + (id = 77) < 0", vec!["error 1690".into()], 1),
    ];
    for connection in &mut connections {
        let (lines, count) = rows_sent(connection, "SELECT COUNT(CONCAT(t, RAND())) FROM shop.r", ROWS);
        assert_eq!(lines, ["3000"]);
        assert!(count > ROWS / 2, "{count} rows of {ROWS} lie on other nodes");
        for (sql, expected, most) in &questions {
            assert_eq!(&rows_sent(connection, sql, *most).0, expected, "{sql}");
        }
        // The same as a prepared statement.
        let expected = (0..ROWS).filter(|id| id % 10 == 4 && format!("text {id}").as_str() > "text 2").count() as u64;
        until("no row is sent", || {
            let before = sent(connection);
            let sql = "SELECT COUNT(*) FROM shop.r WHERE class = ? AND t > ?";
            let found: Option<u64> = connection.exec_first(sql, (4, "text 2")).unwrap();
            assert_eq!(found, Some(expected));
            sent(connection) == before
        });
        // The session's time zone and sql_mode count, and the warnings come.
        for (zone, hour) in [("+00:00", 0), ("+05:00", 5), ("America/New_York", 19)] {
            insist(connection, &format!("SET time_zone = '{zone}'"));
            let sql = format!("SELECT COUNT(*) FROM shop.r WHERE HOUR(at) = {hour} AND at < NOW()");
            assert_eq!(rows_sent(connection, &sql, 0).0, ["3000"], "{zone}");
        }
        let (lines, count) = rows_sent(connection, "SELECT COUNT(*) FROM shop.r WHERE t = id + 1 AND id < 2000", 0);
        assert_eq!((lines, count), (vec!["0".to_string()], 0));
        run(connection, "SELECT COUNT(*) FROM shop.r WHERE t = id + 1");
        assert_eq!(number(connection, "SHOW COUNT(*) WARNINGS"), ROWS, "as many as texts that are compared");
        assert_eq!(run(connection, "SELECT COUNT(*) FROM shop.r WHERE 1 / (id - 5) IS NULL"), ["1"]);
        let warnings: Vec<(String, u32, String)> = connection.query("SHOW WARNINGS").unwrap();
        assert_eq!(warnings, [("Warning".to_string(), 1365, "Division by 0".to_string())]);
        insist(connection, "SET sql_mode = ''");
        assert_eq!(run(connection, "SELECT COUNT(*) FROM shop.r WHERE 1 / (id - 5) IS NULL"), ["1"]);
        assert_eq!(number(connection, "SHOW COUNT(*) WARNINGS"), 0);
        insist(connection, "SET sql_mode = DEFAULT");
        // What the transaction has written itself counts.
        insist(connection, "BEGIN");
        insist(connection, "UPDATE shop.r SET class = 77 WHERE id % 300 = 1");
        insist(connection, "DELETE FROM shop.r WHERE id % 300 = 2");
        let sql = "SELECT COUNT(*), SUM(class = 77), MAX(class) FROM shop.r";
        assert_eq!(rows_sent(connection, sql, 0).0, ["2990 | 10 | 77"]);
        insist(connection, "ROLLBACK");
    }
}

/// What a locking statement drops it does not lock, and LIMIT locks what it takes, wherever the rows lie.
#[test]
fn dropped_rows_keep_no_lock_on_other_nodes() {
    let root = tempfile::tempdir().unwrap();
    let (_nodes, mut connections) = thirds(root.path());
    let free = |connection: &mut Conn| {
        insist(connection, "BEGIN");
        // Rows that others have locked are passed over.
        let lines = run(connection, "SELECT id FROM shop.r FOR UPDATE SKIP LOCKED");
        insist(connection, "ROLLBACK");
        lines.iter().filter(|line| *line != "(empty)").count() as u64
    };
    const MERGED: &str = "SELECT id FROM shop.r WHERE (class = 3 OR id IN (2, 9, 16)) AND id % 7 = 2 FOR UPDATE";
    let plan = run(&mut connections[0], &format!("EXPLAIN {MERGED}"));
    assert!(plan[0].contains("index_merge"), "{plan:?}");
    for at in 0..3 {
        for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
            for (sql, locked) in [
                ("UPDATE shop.r SET v = v + 1 WHERE t LIKE '%7'", 300),
                ("UPDATE shop.r SET v = v + 1 WHERE t LIKE '%7' LIMIT 3", 3),
                ("UPDATE shop.r IGNORE INDEX (class) SET v = v + 1 WHERE class = 5 AND id < 100", 10),
                ("DELETE FROM shop.r WHERE v * 0 + id % 1000 = 500", 3),
                ("SELECT id FROM shop.r WHERE id % 10 = 3 FOR UPDATE", 300),
                ("SELECT id FROM shop.r WHERE id % 10 = 3 LIMIT 2 FOR UPDATE", 2),
                ("SELECT COUNT(*) FROM shop.r WHERE id % 10 = 3 FOR UPDATE", 300),
                ("SELECT id FROM shop.r WHERE id % 10 = 3 ORDER BY id LIMIT 1 FOR UPDATE", 1),
                (MERGED, 46),
            ] {
                let connection = &mut connections[at];
                insist(connection, &format!("SET TRANSACTION ISOLATION LEVEL {isolation}"));
                insist(connection, "BEGIN");
                let lines = run(connection, sql);
                assert!(!lines[0].starts_with("error"), "{sql}: {lines:?}");
                let unlocked = free(&mut connections[(at + 1) % 3]);
                assert_eq!(ROWS - unlocked, locked, "{sql} at {isolation}");
                insist(&mut connections[at], "ROLLBACK");
            }
        }
        // What is read at SERIALIZABLE is locked.
        insist(&mut connections[at], "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
        insist(&mut connections[at], "BEGIN");
        insist(&mut connections[at], "UPDATE shop.r SET v = v + 1 WHERE t LIKE '%7'");
        assert_eq!(free(&mut connections[(at + 1) % 3]), 0);
        insist(&mut connections[at], "ROLLBACK");
    }
}

#[test]
fn full_text_searches_see_all_nodes() {
    let root = tempfile::tempdir().unwrap();
    let (mut nodes, mut connections) = thirds(root.path());
    insist(&mut connections[0], "CREATE TABLE shop.texts (id INT PRIMARY KEY, body TEXT)");
    let words = ["apple", "pear", "plum", "cherry", "fig"];
    let row = |id: usize| format!("({id}, '{} {} tree')", words[id % 5], words[id * 3 % 7 % 5]);
    let rows: Vec<String> = (0..300).map(row).collect();
    insist(&mut connections[1], &format!("INSERT INTO shop.texts VALUES {}", rows.join(", ")));
    // The index is added while another node writes.
    let mut writer = nodes[2].connect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in 300..400 {
                insist(&mut writer, &format!("INSERT INTO shop.texts VALUES {}", row(id)));
            }
        });
        insist(&mut connections[0], "ALTER TABLE shop.texts ADD FULLTEXT KEY words (body)");
    });
    let searches = ["apple", "+apple +pear", "+plum -fig", "app* cher*", "\"pear tree\"", "tree"];
    let check = |connection: &mut Conn| {
        for text in searches {
            let found = format!("MATCH (body) AGAINST ('{text}' IN BOOLEAN MODE)");
            let sums = |condition: &str| format!("SELECT COUNT(*), SUM(id) FROM shop.texts WHERE {condition}");
            let by_index = run(connection, &sums(&found));
            // Not by the index, but row by row.
            assert_eq!(by_index, run(connection, &sums(&format!("{found} <> 0"))), "{text}");
            assert!(!by_index[0].starts_with("0 |"), "{text}: {by_index:?}");
        }
    };
    for connection in &mut connections {
        check(connection);
    }
    // Other nodes count the rows of a word and send none of them: all 3000 have it, and one is wanted.
    insist(&mut connections[0], "ALTER TABLE shop.r ADD FULLTEXT KEY t (t)");
    let rank =
        "SELECT ROUND(MATCH (t) AGAINST ('5 text'), 6), id FROM shop.r WHERE id = 5 AND MATCH (t) AGAINST ('text')";
    let ranks: BTreeSet<Vec<String>> =
        connections.iter_mut().map(|connection| rows_sent(connection, rank, 10).0).collect();
    assert_eq!(ranks.len(), 1, "{ranks:?}");
    assert!(ranks.first().unwrap()[0].ends_with(" | 5"), "{ranks:?}");
    let rank = "SELECT MATCH (body) AGAINST ('apple') > 0, COUNT(*) FROM shop.texts GROUP BY 1 ORDER BY 1";
    let all: BTreeSet<Vec<String>> = connections.iter_mut().map(|connection| run(connection, rank)).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    insist(&mut connections[2], "UPDATE shop.texts SET body = 'lemon' WHERE MATCH (body) AGAINST ('cherry')");
    let lemons = "SELECT COUNT(*) FROM shop.texts WHERE MATCH (body) AGAINST ('lemon')";
    let count = number(&mut connections[1], lemons);
    assert!(count > 50, "{count}");
    assert_eq!(number(&mut connections[0], &lemons.replace("lemon", "cherry")), 0);
    // A node that comes back builds its entries from its rows.
    drop(connections);
    nodes[1].kill();
    nodes[1].restart();
    until_healthy(&nodes[0], 3);
    for node in &nodes {
        let mut connection = node.connect();
        until("the node answers for all rows", || run(&mut connection, lemons) == [count.to_string()]);
        check(&mut connection);
    }
}
