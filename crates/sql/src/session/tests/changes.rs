//! UPDATE and DELETE of several tables beside each other, their plans, and RETURNING over both protocols.

use super::{Server, Test, render, server};
use crate::session::collect::Collector;
use crate::session::engine::Client;
use rauk_node::block_on;
use rauk_types::Value;
use std::sync::{Arc, Barrier};
use std::thread;

fn explained(t: &mut Test, sql: &str) -> Vec<String> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        assert_eq!(cells.len(), 12, "{line}");
        [0, 1, 2, 4, 6, 8, 11].map(|at| cells[at]).join(" ")
    };
    t.run(&format!("EXPLAIN {sql}")).lines().map(row).collect()
}

fn tables(t: &mut Test) {
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY (a))");
    t.ok("CREATE TABLE u (id INT PRIMARY KEY, a INT NOT NULL, KEY (a))");
    t.ok("INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, NULL, 'z')");
    t.ok("INSERT INTO u VALUES (1, 1), (2, 2), (3, 3)");
}

#[test]
fn explain_shows_what_is_changed() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let cases: [(&str, &[&str]); 7] = [
        (
            "UPDATE t JOIN u ON u.id = t.a SET t.b = 'q'",
            &[
                "1 UPDATE t ALL NULL NULL NULL",
                "1 SIMPLE u eq_ref PRIMARY test.t.a Using join buffer (Batched Key Access)",
            ],
        ),
        (
            "UPDATE t STRAIGHT_JOIN u ON u.id = t.id SET t.b = 'q', u.a = 1 WHERE t.id = 1",
            &["1 UPDATE t const PRIMARY const NULL", "1 UPDATE u eq_ref PRIMARY test.t.id NULL"],
        ),
        (
            "DELETE u FROM t STRAIGHT_JOIN u ON u.a = t.id WHERE t.a > 1",
            &["1 SIMPLE t range a NULL NULL", "1 DELETE u ref a test.t.id Using join buffer (Batched Key Access)"],
        ),
        (
            "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.a)",
            &[
                "1 DELETE t ALL NULL NULL NULL",
                "1 SIMPLE u eq_ref PRIMARY test.t.a FirstMatch(t); Using join buffer (Batched Key Access)",
            ],
        ),
        (
            "UPDATE t JOIN u ON u.id = t.id SET t.a = (SELECT COUNT(*) FROM u v WHERE v.a = t.id) WHERE t.id < 3",
            &[
                "1 UPDATE t range PRIMARY NULL NULL",
                "1 PRIMARY u eq_ref PRIMARY test.t.id Using join buffer (Batched Key Access)",
                "2 DEPENDENT SUBQUERY v ref a func Using index",
            ],
        ),
        (
            "WITH c AS (SELECT a FROM u GROUP BY a) UPDATE t STRAIGHT_JOIN c ON c.a = t.id SET t.a = 1",
            &[
                "1 UPDATE t ALL NULL NULL NULL",
                "1 PRIMARY <derived2> ALL NULL NULL Using where; Using join buffer (hash join)",
                "2 DERIVED u ALL NULL NULL Using temporary",
            ],
        ),
        ("DELETE t FROM t JOIN u WHERE 1 = 2", &["1 DELETE NULL NULL NULL NULL Impossible WHERE"]),
    ];
    let found: Vec<String> = cases.iter().map(|(sql, _)| format!("{sql}: {:?}", explained(&mut t, sql))).collect();
    let wanted: Vec<String> = cases.iter().map(|(sql, expected)| format!("{sql}: {expected:?}")).collect();
    assert_eq!(found, wanted);
    t.expect("SELECT COUNT(*), SUM(a) FROM t", &["3|3"]);
}

#[test]
fn the_tree_shows_the_query_of_a_change() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let tree = t.run("EXPLAIN FORMAT=TREE DELETE t FROM t JOIN (SELECT id AS i FROM u WHERE a > 1) d ON d.i = t.id");
    assert!(tree.starts_with("Delete t\n"), "{tree}");
    assert!(tree.contains("Scan u") && !tree.contains("Derived"), "the derived table is merged: {tree}");
    let tree = t.run("EXPLAIN FORMAT=TREE UPDATE t x, u SET x.a = 1, u.a = 2 WHERE x.id = u.id");
    assert!(tree.starts_with("Update x, u\n"), "{tree}");
}

#[test]
fn clients_that_count_found_rows_hear_of_matched_ones() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    let client = Client { found_rows: true, ..Client::local(server.id()) };
    let mut found = Test { session: server.engine.connect(client).unwrap() };
    found.ok("USE test");
    found.expect("UPDATE t JOIN u ON u.id = t.id SET t.a = 1", &["OK 3"]);
    found.expect("UPDATE t JOIN u ON u.id = t.id SET t.a = 1", &["OK 3"]);
    found.expect("UPDATE t SET a = 1 WHERE id < 3", &["OK 2"]);
    t.expect("UPDATE t JOIN u ON u.id = t.id SET t.a = 1", &["OK 0"]);
    t.expect("UPDATE t SET a = 1", &["OK 0"]);
}

#[test]
fn returning_has_columns_when_it_is_prepared() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE r (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(10))");
    let insert = t.prepare("INSERT INTO r (a, b) VALUES (?, ?) RETURNING id, CONCAT(b, '!') AS c");
    let names = |p: &crate::session::prepared::Prepared| p.columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
    assert_eq!((names(&insert), insert.parameters.len()), (vec!["id".to_string(), "c".to_string()], 2));
    assert_eq!(insert.columns[0].org_table, "r");
    assert!(insert.columns[0].primary_key && insert.columns[0].auto_increment);
    assert_eq!(t.prepared(insert.id, &[Value::Int(1), Value::from("x")]), "1|x!");
    assert_eq!(t.prepared(insert.id, &[Value::Int(2), Value::from("y")]), "2|y!");
    let delete = t.prepare("DELETE FROM r WHERE a >= ? ORDER BY id RETURNING *");
    assert_eq!(names(&delete), ["id", "a", "b"]);
    assert_eq!(t.prepared(delete.id, &[Value::Int(1)]), "1|1|x\n2|2|y");
    assert_eq!(t.prepared(delete.id, &[Value::Int(1)]), "");
    assert_eq!(t.names("DELETE FROM r WHERE a = 1 RETURNING b, a + 1"), ["b", "a + 1"]);
}

/// A statement that fails after its first rows has given none of them.
#[test]
fn a_failed_statement_returns_no_row() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE r (id INT PRIMARY KEY)");
    t.ok("INSERT INTO r VALUES (3)");
    let mut sink = Collector::default();
    let result = block_on(t.session.query("INSERT INTO r VALUES (1), (2), (3) RETURNING id", &mut sink));
    assert_eq!(render(&sink, result), "ERROR 1062: Duplicate entry '3' for key 'r.PRIMARY'");
    assert!(sink.results.is_empty(), "no result set begins");
    t.expect("SELECT id FROM r", &["3"]);
    t.ok("SET rauk_query_memory_limit = 2000000");
    t.ok("INSERT INTO r WITH RECURSIVE n AS (SELECT 10 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i FROM n");
    t.code("DELETE FROM r RETURNING REPEAT('x', 10000)", 1038);
    t.expect("SELECT COUNT(*) FROM r", &["892"]);
}

#[test]
fn rows_that_wait_for_their_change_count_as_memory() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE m (id INT PRIMARY KEY, b VARCHAR(2000))");
    t.ok("INSERT INTO m WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
          SELECT i, REPEAT('x', 2000) FROM n");
    t.ok("CREATE TABLE k (id INT PRIMARY KEY)");
    t.ok("INSERT INTO k SELECT id FROM m");
    t.ok("SET rauk_query_memory_limit = 1200000");
    t.code("UPDATE m JOIN k ON k.id = m.id SET m.b = 'y'", 1038);
    t.expect("SELECT COUNT(*) FROM m WHERE b = 'y'", &["0"]);
    t.expect("UPDATE m JOIN k ON k.id = m.id SET m.b = 'y' WHERE m.id < 100", &["OK 99"]);
}

/// Runs `work` in `count` sessions at once.
fn beside(server: &Arc<Server>, count: usize, level: &str, work: impl Fn(usize, &mut Test) + Send + Sync + 'static) {
    let work = Arc::new(work);
    let barrier = Arc::new(Barrier::new(count));
    let threads: Vec<_> = (0..count)
        .map(|number| {
            let (server, work, barrier, level) = (server.clone(), work.clone(), barrier.clone(), level.to_string());
            thread::spawn(move || {
                let mut t = server.session();
                t.ok(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
                barrier.wait();
                work(number, &mut t);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a session does its work"));
}

/// Repeats a statement that is a deadlock's victim.
fn until_done(t: &mut Test, sql: &str) -> String {
    loop {
        let answer = t.run(sql);
        if !answer.starts_with("ERROR 1213") {
            return answer;
        }
    }
}

/// No update is lost and none is done twice, whoever changes the rows in between.
#[test]
fn changes_of_several_tables_add_up() {
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let server = Arc::new(server());
        let mut t = server.session();
        t.ok("CREATE TABLE account (id INT PRIMARY KEY, v INT NOT NULL)");
        t.ok("CREATE TABLE step (id INT PRIMARY KEY, n INT NOT NULL, grp INT, KEY (grp))");
        t.ok("INSERT INTO account VALUES (1, 0), (2, 0), (3, 0), (4, 0)");
        t.ok("INSERT INTO step VALUES (1, 1, 0), (2, 10, 0), (3, 100, 1), (4, 1000, 1)");
        let rounds = 20;
        beside(&server, 4, level, move |number, t| {
            for round in 0..rounds {
                let answer = match (number + round) % 3 {
                    0 => {
                        until_done(t, "UPDATE account a JOIN step s ON s.id = a.id SET a.v = a.v + s.n WHERE s.grp = 0")
                    }
                    1 => until_done(t, "UPDATE account a, step s SET a.v = a.v + 1 WHERE a.id = s.id AND s.id < 3"),
                    _ => until_done(t, "UPDATE account SET v = v + 1 WHERE id < 3"),
                };
                assert_eq!(answer, "OK 2");
            }
        });
        let (mut first, mut second) = (0, 0);
        for turn in (0..4).flat_map(|number| (0..rounds).map(move |round| (number + round) % 3)) {
            first += 1;
            second += if turn == 0 { 10 } else { 1 };
        }
        t.expect(
            "SELECT id, v FROM account ORDER BY id",
            &[format!("1|{first}").as_str(), format!("2|{second}").as_str(), "3|0", "4|0"],
        );
    }
}

/// A transfer checks its whole condition on the rows that it changes: no balance goes below zero, and nothing is lost.
#[test]
fn transfers_keep_their_condition() {
    for level in ["READ COMMITTED", "REPEATABLE READ"] {
        let server = Arc::new(server());
        let mut t = server.session();
        t.ok("CREATE TABLE account (id INT PRIMARY KEY, v INT NOT NULL)");
        t.ok("INSERT INTO account VALUES (1, 5), (2, 5), (3, 5)");
        beside(&server, 3, level, |number, t| {
            for round in 0..20 {
                let (from, to) = ((number + round) % 3 + 1, (number + round * 2 + 1) % 3 + 1);
                if from == to {
                    continue;
                }
                let sql = format!(
                    "UPDATE account x JOIN account y ON x.id = {from} AND y.id = {to} \
                     SET x.v = x.v - 2, y.v = y.v + 2 WHERE x.v >= 2"
                );
                let answer = until_done(t, &sql);
                assert!(answer == "OK 2" || answer == "OK 0", "{answer}");
            }
        });
        t.expect("SELECT SUM(v), MIN(v) >= 0 FROM account", &["15|1"]);
    }
}

/// Two statements that each write what they read of the other's table: one comes first.
#[test]
fn autocommit_changes_at_serializable_have_an_order() {
    let server = Arc::new(server());
    let mut t = server.session();
    t.ok("CREATE TABLE a (id INT PRIMARY KEY, v INT)");
    t.ok("CREATE TABLE b (id INT PRIMARY KEY, v INT)");
    for round in 0..15 {
        t.ok("REPLACE INTO a VALUES (1, 1)");
        t.ok("REPLACE INTO b VALUES (1, 2)");
        beside(&server, 2, "SERIALIZABLE", move |number, t| {
            let sql = match (number, round % 2) {
                (0, 0) => "UPDATE a JOIN b ON b.id = a.id SET a.v = b.v",
                (0, _) => "UPDATE a SET v = (SELECT v FROM b WHERE b.id = a.id)",
                (_, 0) => "UPDATE b JOIN a ON a.id = b.id SET b.v = a.v",
                _ => "INSERT INTO b SELECT id, v FROM a ON DUPLICATE KEY UPDATE v = a.v",
            };
            let sql = sql.replace("UPDATE v = a.v", "UPDATE b.v = a.v");
            until_done(t, &sql);
        });
        let answer = t.run("SELECT a.v, b.v FROM a JOIN b USING (id)");
        assert!(answer == "1|1" || answer == "2|2", "{answer}");
    }
}

/// Rows that change their keys beside each other: every statement is done, or meets a duplicate, and no row is lost.
#[test]
fn keys_move_beside_each_other() {
    for level in ["READ COMMITTED", "REPEATABLE READ"] {
        let server = Arc::new(server());
        let mut t = server.session();
        t.ok("CREATE TABLE place (id INT PRIMARY KEY, who INT, UNIQUE (who))");
        t.ok("CREATE TABLE one (id INT PRIMARY KEY)");
        t.ok("INSERT INTO place VALUES (1, 1), (2, 2), (3, 3)");
        t.ok("INSERT INTO one VALUES (1)");
        beside(&server, 3, level, |number, t| {
            for round in 0..30 {
                let (from, to) = ((number * 2 + round) % 5 + 1, (number + round * 3) % 5 + 1);
                let sql = format!("UPDATE place p JOIN one ON one.id = 1 SET p.id = {to} WHERE p.id = {from}");
                let answer = until_done(t, &sql);
                let known = ["OK 0", "OK 1", "ERROR 1062"].iter().any(|known| answer.starts_with(known));
                assert!(known, "{sql}: {answer}");
            }
        });
        t.expect("SELECT COUNT(*), SUM(who), COUNT(DISTINCT id) FROM place", &["3|6|3"]);
    }
}

/// What waits for a row is ended by KILL, and gives back the rows that it had locked before.
#[test]
fn a_change_that_waits_is_killed() {
    let server = Arc::new(server());
    let mut t = server.session();
    tables(&mut t);
    let mut waiting = server.session();
    let id = waiting.run("SELECT CONNECTION_ID()");
    t.ok("BEGIN");
    t.ok("UPDATE t SET b = 'held' WHERE id = 3");
    let thread = thread::spawn(move || {
        let answer = waiting.run("UPDATE t JOIN u ON u.id = t.id SET t.b = 'new', u.a = 9");
        (waiting, answer)
    });
    let mut other = server.session();
    // It has locked the first row when that cannot be had any more.
    while other.run("SELECT id FROM t WHERE id < 3 FOR UPDATE NOWAIT").starts_with('1') {
        thread::yield_now();
    }
    other.ok(&format!("KILL QUERY {id}"));
    let (mut waiting, answer) = thread.join().expect("the session answers");
    assert!(answer.starts_with("ERROR 1317"), "{answer}");
    other.expect("SELECT id FROM t WHERE id < 3 ORDER BY id FOR UPDATE NOWAIT", &["1", "2"]);
    other.expect("SELECT MAX(a) FROM u FOR UPDATE NOWAIT", &["3"]);
    t.ok("ROLLBACK");
    waiting.expect("UPDATE t JOIN u ON u.id = t.id SET t.b = 'new', u.a = 9", &["OK 6"]);
}

#[test]
fn changes_take_privileges_on_each_table() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("CREATE USER ann");
    t.ok("GRANT SELECT, UPDATE ON test.t TO ann");
    t.ok("GRANT SELECT ON test.u TO ann");
    let mut ann = server.connect("ann", "127.0.0.1").unwrap();
    ann.ok("USE test");
    ann.expect("UPDATE t JOIN u ON u.id = t.id SET t.b = 'ann'", &["OK 3"]);
    ann.code("UPDATE t JOIN u ON u.id = t.id SET t.b = 'ann', u.a = 1", 1142);
    ann.code("DELETE t FROM t JOIN u ON u.id = t.id", 1142);
    ann.code("DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id)", 1142);
    t.ok("GRANT DELETE ON test.u TO ann");
    ann.expect("DELETE u FROM t JOIN u ON u.id = t.id WHERE t.id = 1", &["OK 1"]);
    ann.expect("DELETE FROM u WHERE id = 2 RETURNING a", &["2"]);
    t.ok("REVOKE SELECT ON test.u FROM ann");
    ann.code("DELETE FROM u RETURNING a", 1142);
    ann.code("UPDATE t JOIN u ON u.id = t.id SET t.b = 'ann'", 1142);
    t.ok("GRANT INSERT ON test.u TO ann");
    ann.ok("INSERT INTO u VALUES (7, 7)");
    ann.code("INSERT INTO u VALUES (8, 8) RETURNING id", 1142);
    // A plan that root has made is no way around.
    t.ok("UPDATE t, u SET u.a = 1 WHERE u.id = t.id");
    ann.code("UPDATE t, u SET u.a = 1 WHERE u.id = t.id", 1142);
}
