//! A user's partitioned tables over several real nodes: rows that every node writes and reads, partitions that come and go by statements of one node while the others use the table, a node
//! that is killed and comes back, and definitions that are there after all have been killed.
//!
//! On a busy machine the lease of a node may expire, and the node restarts: statements may be run twice, and what nodes show is waited for.

use crate::common::cluster::{Node, all_in_one, insist_on, restart_all, until, until_healthy};
use crate::common::run;
use std::path::Path;

/// Waits until every node answers so.
fn all_say(nodes: &[Node], sql: &str, lines: &[&str]) {
    for node in nodes {
        let mut last = Vec::new();
        let began = std::time::Instant::now();
        while last != lines {
            assert!(began.elapsed() < crate::common::cluster::PATIENCE, "{sql}: {last:?} and not {lines:?}");
            last = run(&mut node.connect(), sql);
        }
    }
}

/// How many rows each partition has.
fn have(nodes: &[Node], partitions: &[(&str, &str)]) {
    for (name, rows) in partitions {
        all_say(nodes, &format!("SELECT COUNT(*) FROM d.t PARTITION ({name})"), &[rows]);
    }
}

/// A cluster of three nodes with this table, in the database `d`.
fn three_with(root: &Path, table: &str) -> Vec<Node> {
    let nodes = all_in_one(root, 3, "2");
    until_healthy(&nodes[0], 3);
    insist_on(&nodes[0], &["CREATE DATABASE IF NOT EXISTS d", table]);
    nodes
}

#[test]
fn partitions_are_the_same_on_every_node() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = three_with(
        root.path(),
        "CREATE TABLE IF NOT EXISTS d.t (id INT, day DATE, v INT, PRIMARY KEY (id, day), UNIQUE KEY u (v, day), KEY (v)) \
             PARTITION BY RANGE (TO_DAYS(day)) (PARTITION a VALUES LESS THAN (TO_DAYS('2020-01-01')), \
             PARTITION b VALUES LESS THAN (TO_DAYS('2021-01-01')), PARTITION c VALUES LESS THAN (TO_DAYS('2022-01-01')))",
    );
    for (number, node) in nodes.iter().enumerate() {
        let year = 2019 + number;
        let rows: Vec<String> = (0..40).map(|id| format!("({}, '{year}-06-01', {id})", number * 100 + id)).collect();
        insist_on(node, &[&format!("INSERT IGNORE INTO d.t VALUES {}", rows.join(", "))]);
    }
    have(&nodes, &[("a", "40"), ("b", "40"), ("c", "40")]);
    all_say(&nodes, "SELECT COUNT(*), SUM(v) FROM d.t WHERE day >= '2020-01-01'", &["80 | 1560"]);
    all_say(&nodes, "SELECT id FROM d.t WHERE v = 7 ORDER BY day", &["7", "107", "207"]);
    all_say(&nodes, "SELECT v FROM d.t WHERE id = 103 AND day = '2020-06-01'", &["3"]);
    all_say(&nodes, "INSERT INTO d.t VALUES (1, '2025-01-01', 1)", &["error 1526"]);
    all_say(&nodes, "INSERT INTO d.t VALUES (900, '2020-06-01', 3)", &["error 1062"]);
    // Rows move between partitions, whoever leads them.
    insist_on(&nodes[1], &["UPDATE d.t SET day = '2021-03-01' WHERE day < '2020-01-01' AND v < 10"]);
    insist_on(&nodes[2], &["DELETE FROM d.t PARTITION (b) WHERE v >= 30"]);
    have(&nodes, &[("a", "30"), ("b", "30"), ("c", "50")]);

    // What one node does with partitions all see.
    insist_on(&nodes[2], &["ALTER TABLE d.t ADD PARTITION IF NOT EXISTS (PARTITION e VALUES LESS THAN MAXVALUE)"]);
    for (number, node) in nodes.iter().enumerate() {
        let id = 500 + number;
        insist_on(node, &[&format!("INSERT IGNORE INTO d.t VALUES ({id}, '2025-01-01', {id})")]);
    }
    insist_on(&nodes[0], &["ALTER TABLE d.t DROP PARTITION IF EXISTS a"]);
    until("a snapshot of another node that is older than TRUNCATE PARTITION is refused", || {
        let mut reader = nodes[2].connect();
        let begun = run(&mut reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT") == ["ok 0"];
        insist_on(&nodes[1], &["ALTER TABLE d.t TRUNCATE PARTITION b"]);
        begun && run(&mut reader, "SELECT COUNT(*) FROM d.t") == ["error 1412"]
    });
    all_say(&nodes, "SELECT COUNT(*) FROM d.t PARTITION (a)", &["error 1735"]);
    have(&nodes, &[("b", "0"), ("c", "50"), ("e", "3")]);
    let reorganize = "ALTER TABLE d.t REORGANIZE PARTITION c, e INTO (PARTITION f VALUES LESS THAN (TO_DAYS('2021-04-01')), \
                      PARTITION g VALUES LESS THAN MAXVALUE)";
    // It is done once: c is gone then.
    until("c and e are f and g", || {
        matches!(&run(&mut nodes[0].connect(), reorganize)[0][..], "ok 0" | "ok 53" | "error 1507")
    });
    have(&nodes, &[("b", "0"), ("f", "10"), ("g", "43")]);

    // A node that is killed has it all when it is back, and so have all when all were killed.
    nodes[2].kill();
    insist_on(
        &nodes[0],
        &["INSERT IGNORE INTO d.t VALUES (600, '2020-02-02', 600)", "ALTER TABLE d.t DROP PARTITION IF EXISTS g"],
    );
    nodes[2].restart();
    until_healthy(&nodes[0], 3);
    have(&nodes, &[("b", "1"), ("f", "10")]);

    // A partition and a table change places.
    insist_on(
        &nodes[1],
        &[
            "CREATE TABLE IF NOT EXISTS d.x (id INT, day DATE, v INT, PRIMARY KEY (id, day), UNIQUE KEY u (v, day), KEY (v))",
            "INSERT IGNORE INTO d.x VALUES (700, '2020-03-03', 700), (701, '2020-03-04', 701)",
        ],
    );
    let placed = |node: &Node| run(&mut node.connect(), "SELECT id FROM d.x ORDER BY id");
    until("partition b and x have changed places", || {
        placed(&nodes[2]) == ["600"] || {
            run(&mut nodes[2].connect(), "ALTER TABLE d.t EXCHANGE PARTITION b WITH TABLE d.x");
            false
        }
    });
    all_say(&nodes, "SELECT id FROM d.x WHERE v = 600", &["600"]);
    all_say(&nodes, "SELECT id FROM d.t PARTITION (b) WHERE v > 690 ORDER BY v", &["700", "701"]);
    insist_on(&nodes[0], &["INSERT IGNORE INTO d.x VALUES (602, '2020-05-05', 602)", "DELETE FROM d.t WHERE id = 701"]);
    all_say(&nodes, "SELECT id FROM d.x ORDER BY id", &["600", "602"]);
    have(&nodes, &[("b", "1"), ("f", "10")]);
    // CREATE TABLE makes what is due; what is over goes when a server looks, as it does when it starts.
    insist_on(
        &nodes[1],
        &[
            "CREATE TABLE IF NOT EXISTS d.timed (day DATE NOT NULL) PARTITION BY RANGE COLUMNS (day) INTERVAL 1 DAY \
             RETAIN 2 DAY (PARTITION old VALUES LESS THAN ('2020-01-01'))",
            "INSERT INTO d.timed VALUES ('2019-01-01'), (CURDATE())",
        ],
    );
    all_say(&nodes, "SELECT COUNT(*) FROM d.timed PARTITION (old)", &["1"]);
    nodes.iter_mut().for_each(Node::kill);
    restart_all(&mut nodes);
    until_healthy(&nodes[0], 3);
    all_say(&nodes, "SELECT COUNT(*) FROM d.timed PARTITION (old)", &["error 1735"]);
    all_say(&nodes, "SELECT COUNT(*) FROM d.timed WHERE day = CURDATE() OR day = CURDATE() - INTERVAL 1 DAY", &["1"]);
    have(&nodes, &[("b", "1"), ("f", "10")]);
    until("it has no partitions", || {
        matches!(&run(&mut nodes[1].connect(), "ALTER TABLE d.t REMOVE PARTITIONING")[0][..], "ok 11" | "error 1505")
    });
    all_say(&nodes, "SELECT COUNT(*), SUM(v) FROM d.t", &["11 | 745"]);
    all_say(&nodes, "SELECT id FROM d.x ORDER BY id", &["600", "602"]);
    insist_on(&nodes[2], &["DROP TABLE IF EXISTS d.t, d.x, d.timed"]);
}

/// Keys that are unique among the rows of all partitions, whatever node writes them and whatever becomes of partitions.
#[test]
fn global_keys_hold_on_every_node() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = three_with(
        root.path(),
        "CREATE TABLE IF NOT EXISTS d.g (id INT, day INT, u VARCHAR(20), PRIMARY KEY (id, day), UNIQUE KEY u (u) GLOBAL) \
             PARTITION BY RANGE (day) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (20), \
             PARTITION c VALUES LESS THAN (30))",
    );
    for (number, node) in nodes.iter().enumerate() {
        let day = number * 10 + 5;
        let rows: Vec<String> = (0..40).map(|id| format!("({id}, {day}, 'k{number}-{id}')")).collect();
        insist_on(node, &[&format!("INSERT IGNORE INTO d.g VALUES {}", rows.join(", "))]);
    }
    all_say(&nodes, "SELECT id, day FROM d.g WHERE u = 'k1-7'", &["7 | 15"]);
    all_say(&nodes, "INSERT INTO d.g VALUES (900, 25, 'k1-7')", &["error 1062"]);
    // Of three who want a key, each in another partition, one gets it.
    std::thread::scope(|scope| {
        for (number, node) in nodes.iter().enumerate() {
            scope.spawn(move || {
                for key in 0..30 {
                    let day = number * 10 + 6;
                    insist_on(node, &[&format!("INSERT IGNORE INTO d.g VALUES ({key}, {day}, 'wanted{key}')")]);
                }
            });
        }
    });
    all_say(&nodes, "SELECT COUNT(*), COUNT(DISTINCT u) FROM d.g WHERE u LIKE 'wanted%'", &["30 | 30"]);
    insist_on(&nodes[0], &["DELETE FROM d.g WHERE u LIKE 'wanted%'"]);

    // Keys of rows that are gone with their partition are free, once.
    insist_on(&nodes[1], &["ALTER TABLE d.g TRUNCATE PARTITION a"]);
    all_say(&nodes, "SELECT id FROM d.g WHERE u = 'k0-3'", &[]);
    for (number, node) in nodes.iter().enumerate() {
        let rows: Vec<String> = (0..20).map(|id| format!("({}, {}, 'k0-{id}')", 100 + id, number * 10 + 7)).collect();
        insist_on(node, &[&format!("INSERT IGNORE INTO d.g VALUES {}", rows.join(", "))]);
    }
    all_say(&nodes, "SELECT COUNT(*), COUNT(DISTINCT u) FROM d.g WHERE u LIKE 'k0-%'", &["20 | 20"]);
    all_say(&nodes, "SELECT id FROM d.g WHERE u = 'k0-3'", &["103"]);
    let reorganize = "ALTER TABLE d.g REORGANIZE PARTITION a, b INTO (PARTITION e VALUES LESS THAN (3), \
                      PARTITION f VALUES LESS THAN (20))";
    until("a and b are e and f", || {
        matches!(&run(&mut nodes[2].connect(), reorganize)[0][..], "ok 0" | "ok 60" | "error 1507")
    });
    nodes[2].kill();
    insist_on(
        &nodes[0],
        &["ALTER TABLE d.g DROP PARTITION IF EXISTS c", "INSERT IGNORE INTO d.g VALUES (8, 8, 'k2-8')"],
    );
    nodes[2].restart();
    until_healthy(&nodes[0], 3);
    all_say(&nodes, "SELECT id, day FROM d.g WHERE u = 'k2-8'", &["8 | 8"]);
    all_say(&nodes, "SELECT id, day FROM d.g WHERE u = 'k2-9'", &[]);
    all_say(&nodes, "INSERT INTO d.g VALUES (900, 1, 'k1-7')", &["error 1062"]);
    let has_purged = |node: &Node| {
        let events =
            "SELECT 1 FROM rauk.events WHERE what LIKE 'd.g: % entries of dropped partitions taken away' LIMIT 1";
        run(&mut node.connect(), events) == ["1"]
    };
    let mut purged = nodes.iter().any(has_purged);
    nodes.iter_mut().for_each(Node::kill);
    restart_all(&mut nodes);
    until_healthy(&nodes[0], 3);
    until("a node purges what is left", || {
        purged |= nodes.iter().any(has_purged);
        purged
    });
    all_say(&nodes, "SELECT COUNT(*), COUNT(DISTINCT u) FROM d.g", &["61 | 61"]);
    all_say(&nodes, "SELECT COUNT(*) FROM d.g a JOIN d.g b ON a.u = b.u AND a.id = b.id AND a.day = b.day", &["61"]);
    insist_on(&nodes[1], &["INSERT IGNORE INTO d.g VALUES (900, 1, 'k2-9'), (901, 2, 'k0-39'), (902, 3, 'k1-7')"]);
    all_say(&nodes, "SELECT id FROM d.g WHERE id >= 900 ORDER BY id", &["900", "901"]);
    insist_on(&nodes[2], &["DROP TABLE IF EXISTS d.g"]);
}
