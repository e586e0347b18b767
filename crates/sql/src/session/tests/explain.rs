//! EXPLAIN of statements with several blocks.

use super::{Test, server};

/// Of each row: id, select_type, table, type, key, ref, Extra.
fn explained(t: &mut Test, sql: &str) -> Vec<String> {
    let text = t.run(&format!("EXPLAIN {sql}"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        assert_eq!(cells.len(), 12, "{line}");
        [0, 1, 2, 4, 6, 8, 11].map(|at| cells[at]).join(" ")
    };
    text.lines().map(row).collect()
}

#[track_caller]
fn check(t: &mut Test, sql: &str, expected: &[&str]) {
    assert_eq!(explained(t, sql), expected, "{sql}");
}

fn tables(t: &mut Test) {
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY (a))");
    t.ok("CREATE TABLE u (id INT PRIMARY KEY, a INT NOT NULL, KEY (a))");
    t.ok("INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y'), (3, NULL, 'z')");
    t.ok("INSERT INTO u VALUES (1, 1), (2, 2), (3, 3)");
}

#[test]
fn subqueries_have_blocks_of_their_own() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    check(
        &mut t,
        "SELECT * FROM t WHERE id = (SELECT MAX(a) + 1 FROM u)",
        &["1 PRIMARY t const PRIMARY const NULL", "2 SUBQUERY u index a NULL Backward index scan; Using index"],
    );
    // The value of the outer column is not known, and makes no condition impossible.
    check(
        &mut t,
        "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.a AND t.b = 'x')",
        &[
            "1 SIMPLE t ALL NULL NULL Using where",
            "1 SIMPLE u eq_ref PRIMARY test.t.a FirstMatch(t); Using join buffer (Batched Key Access)",
        ],
    );
    check(
        &mut t,
        "SELECT * FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a + 0 = t.a)",
        &[
            "1 SIMPLE t ALL NULL NULL NULL",
            "1 SIMPLE u ALL NULL NULL Using where; Not exists; Using join buffer (hash join)",
        ],
    );
    check(
        &mut t,
        "SELECT t.id, d.n FROM t, LATERAL (SELECT COUNT(*) AS n FROM u WHERE u.a = t.id) d",
        &[
            "1 PRIMARY t ALL NULL NULL NULL",
            "1 PRIMARY <derived2> ALL NULL NULL NULL",
            "2 DEPENDENT DERIVED u ref a test.t.id Using index",
        ],
    );
    check(
        &mut t,
        "SELECT (SELECT 1 FROM u WHERE u.a = t.id LIMIT 1), (SELECT COUNT(*) FROM u WHERE u.a IN (SELECT 2)) FROM t",
        &[
            "1 PRIMARY t ALL NULL NULL NULL",
            "2 DEPENDENT SUBQUERY u ref a test.t.id Using index",
            "3 SUBQUERY u ALL NULL NULL Using where",
            "4 SUBQUERY NULL NULL NULL NULL No tables used",
        ],
    );
    // Two levels up.
    check(
        &mut t,
        "SELECT 1 FROM t WHERE a IN (SELECT a FROM u WHERE EXISTS (SELECT 1 FROM u v WHERE v.id = t.id))",
        &[
            "1 SIMPLE t ALL NULL NULL NULL",
            "1 SIMPLE u ref a test.t.a Using index; Using join buffer (Batched Key Access)",
            "1 SIMPLE v eq_ref PRIMARY test.t.id FirstMatch(t)",
        ],
    );
    // Nothing is run: the query would be an error.
    check(
        &mut t,
        "SELECT 1 FROM t WHERE (SELECT id FROM u) = 1",
        &["1 PRIMARY t ALL NULL NULL NULL", "2 SUBQUERY u ALL NULL NULL NULL"],
    );
    check(
        &mut t,
        "SELECT 1 FROM t WHERE 1 = 0 AND a = (SELECT 1 FROM u)",
        &["1 PRIMARY NULL NULL NULL NULL Impossible WHERE", "2 SUBQUERY u ALL NULL NULL NULL"],
    );
}

#[test]
fn set_operations_have_results() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    check(
        &mut t,
        "SELECT id FROM t UNION SELECT id FROM u UNION SELECT 3",
        &[
            "1 PRIMARY t ALL NULL NULL NULL",
            "2 UNION u ALL NULL NULL NULL",
            "3 UNION NULL NULL NULL NULL No tables used",
            "NULL UNION RESULT <union1,2,3> ALL NULL NULL Using temporary",
        ],
    );
    check(
        &mut t,
        "SELECT id FROM t UNION ALL SELECT id FROM u",
        &["1 PRIMARY t ALL NULL NULL NULL", "2 UNION u ALL NULL NULL NULL"],
    );
    check(
        &mut t,
        "SELECT id FROM t UNION ALL SELECT id FROM u ORDER BY 1 LIMIT 2",
        &[
            "1 PRIMARY t ALL NULL NULL NULL",
            "2 UNION u ALL NULL NULL NULL",
            "NULL UNION RESULT <union1,2> ALL NULL NULL Using temporary; Using filesort",
        ],
    );
    check(
        &mut t,
        "SELECT 1 FROM t WHERE EXISTS (SELECT a FROM u EXCEPT SELECT t.id)",
        &[
            "1 PRIMARY t ALL NULL NULL Using where",
            "2 DEPENDENT SUBQUERY u ALL NULL NULL NULL",
            "3 DEPENDENT EXCEPT NULL NULL NULL NULL No tables used",
            "NULL EXCEPT RESULT <except2,3> ALL NULL NULL Using temporary",
        ],
    );
}

#[test]
fn derived_and_common_tables_are_named_by_their_block() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    check(
        &mut t,
        "SELECT * FROM (SELECT a, COUNT(*) FROM t GROUP BY a) d JOIN u ON u.id = d.a WHERE u.a > (SELECT MIN(a) FROM u)",
        &[
            "1 PRIMARY u range a NULL NULL",
            "1 PRIMARY <derived2> ALL NULL NULL Using where; Using join buffer (hash join)",
            "2 DERIVED t ALL NULL NULL Using temporary",
            "3 SUBQUERY u index a NULL Using index",
        ],
    );
    check(
        &mut t,
        "WITH c AS (SELECT DISTINCT a FROM u) SELECT 1 FROM c x, c y",
        &[
            "1 PRIMARY <derived2> ALL NULL NULL NULL",
            "1 PRIMARY <derived2> ALL NULL NULL Using join buffer (Block Nested Loop)",
            "2 DERIVED u ALL NULL NULL Using temporary",
        ],
    );
    // Merged: its table is the block's.
    check(&mut t, "SELECT x FROM (SELECT a + 1 AS x FROM t) d", &["1 SIMPLE t ALL NULL NULL NULL"]);
    check(
        &mut t,
        "WITH c AS (SELECT id FROM t WHERE a = 2) SELECT id FROM c WHERE id = 4",
        &["1 SIMPLE t const PRIMARY const Using where"],
    );
    check(
        &mut t,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n",
        &[
            "1 PRIMARY <derived2> ALL NULL NULL NULL",
            "2 DERIVED NULL NULL NULL NULL No tables used",
            "3 UNION n ALL NULL NULL Recursive; Using where",
            "NULL UNION RESULT <union2,3> ALL NULL NULL Using temporary",
        ],
    );
}

#[test]
fn changes_show_their_subqueries() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    check(
        &mut t,
        "UPDATE t SET a = (SELECT COUNT(*) FROM u WHERE u.a = t.id) WHERE id = 1",
        &["1 UPDATE t const PRIMARY const NULL", "2 DEPENDENT SUBQUERY u ref a test.t.id Using index"],
    );
    check(
        &mut t,
        "DELETE FROM t WHERE a IN (SELECT id FROM u)",
        &["1 DELETE t ALL NULL NULL Using where", "2 SUBQUERY u ALL NULL NULL NULL"],
    );
    check(
        &mut t,
        "INSERT INTO t VALUES (9, (SELECT MAX(id) FROM u), NULL)",
        &["1 INSERT t ALL NULL NULL NULL", "2 SUBQUERY u index PRIMARY NULL Backward index scan; Using index"],
    );
    // A scan in a subquery does not make the change unsafe.
    t.ok("SET sql_safe_updates = 1");
    t.ok("UPDATE t SET a = (SELECT MAX(u.id) FROM u) WHERE id = 1");
    t.code("UPDATE t SET a = 1 WHERE b = 'x'", 1175);
}
