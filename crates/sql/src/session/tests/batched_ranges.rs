//! Joins that look up a table by a secondary index for many rows at once: the same rows as by a hash join, at the same
//! snapshot.

use super::{Test, server};

fn insert(t: &mut Test, table: &str, rows: impl Iterator<Item = String>) {
    let rows: Vec<String> = rows.collect();
    for some in rows.chunks(1000) {
        t.ok(&format!("INSERT INTO {table} VALUES {}", some.join(",")));
    }
}

/// Parents (n, k, s): `k` is NULL for each 10th. Children (id, k, v, s): for each `k` below 2000 there are k mod 4 of
/// them, some with a NULL in `v`.
fn family(t: &mut Test) {
    t.ok("CREATE TABLE p (n INT PRIMARY KEY, k INT, s VARCHAR(20))");
    t.ok("CREATE TABLE c (id INT PRIMARY KEY, k INT, v INT, s VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, d INT, \
         KEY (k), KEY kv (k, v), KEY s (s(3)), KEY d (d DESC))");
    insert(
        t,
        "p",
        (0..2500).map(|n| match n % 10 {
            9 => format!("({n}, NULL, NULL)"),
            _ => format!("({n}, {}, 'Name{}')", n * 7 % 2500, n % 50),
        }),
    );
    let children = (0..2000).flat_map(|k| (0..k % 4).map(move |i| (k, i)));
    insert(
        t,
        "c",
        children.enumerate().map(|(id, (k, i))| match i {
            2 => format!("({id}, {k}, NULL, 'NAME{}', {k})", k % 40),
            _ => format!("({id}, {k}, {i}, 'name{}', NULL)", k % 40),
        }),
    );
    t.ok("ANALYZE TABLE p, c");
}

/// Without batches, by the table's rows in memory, and as planned.
fn agrees(t: &mut Test, sql: &str) {
    let hashed = t.run(sql);
    t.ok("SET optimizer_switch = 'hash_join=off,batched_key_access=off'");
    let alone = t.run(sql);
    t.ok("SET optimizer_switch = 'default,hash_join=off'");
    let batched = t.run(sql);
    t.ok("SET optimizer_switch = 'default'");
    assert_eq!(batched, alone, "{sql}");
    assert_eq!(hashed, alone, "{sql}");
}

#[test]
fn batches_of_ranges_find_what_single_lookups_find() {
    let server = server();
    let mut t = server.session();
    family(&mut t);
    let join = "p.n, c.id FROM p STRAIGHT_JOIN c ON c.k = p.k WHERE p.n < 500";
    let plan = t.run(&format!("EXPLAIN SELECT /*+ NO_HASH_JOIN(c) */ {join}"));
    assert!(plan.contains("Using join buffer (Batched Key Access)"), "{plan}");
    for hints in ["NO_HASH_JOIN(c) NO_BKA(c)", "NO_HASH_JOIN(c) NO_BKA()"] {
        let plan = t.run(&format!("EXPLAIN SELECT /*+ {hints} */ {join}"));
        assert!(plan.contains("ref") && !plan.contains("Batched"), "{plan}");
    }
    for count in [0, 1, 15, 16, 17, 49, 1025, 2500] {
        for sql in [
            "SELECT p.n, c.id, c.v FROM p STRAIGHT_JOIN c ON c.k = p.k WHERE p.n < {count} ORDER BY p.n, c.id",
            "SELECT p.n, c.id FROM p STRAIGHT_JOIN c FORCE INDEX (k) ON c.k = p.k AND c.v = p.n % 3 WHERE p.n < {count} ORDER BY p.n, c.id",
            "SELECT p.n, c.id FROM p STRAIGHT_JOIN c ON c.k <=> p.k WHERE p.n < {count} ORDER BY p.n, c.id",
            "SELECT p.n, c.id FROM p LEFT JOIN c ON c.k = p.k AND c.v > 0 WHERE p.n < {count} ORDER BY p.n, c.id",
            "SELECT p.n FROM p WHERE p.n < {count} AND EXISTS (SELECT 1 FROM c WHERE c.k = p.k AND c.v = 1) ORDER BY p.n",
            "SELECT p.n FROM p WHERE p.n < {count} AND NOT EXISTS (SELECT 1 FROM c WHERE c.k = p.k AND c.v IS NULL) ORDER BY p.n",
            "SELECT p.n, COUNT(c.v), SUM(c.k) FROM p LEFT JOIN c ON c.k = p.k WHERE p.n < {count} GROUP BY p.n ORDER BY p.n",
            "SELECT p.n, c.id, e.id FROM p STRAIGHT_JOIN c ON c.k = p.k JOIN c e ON e.k = c.k + 1 WHERE p.n < {count} ORDER BY 1, 2, 3",
            "SELECT p.n, c.id, q.n FROM p STRAIGHT_JOIN c ON c.k = p.k JOIN p q ON q.n = c.id WHERE p.n < {count} ORDER BY 1, 2, 3",
            "SELECT p.n, c.id FROM p LEFT JOIN (c JOIN p q ON q.n = c.id) ON c.k = p.k WHERE p.n < {count} ORDER BY 1, 2",
            "SELECT p.n, c.id FROM p STRAIGHT_JOIN c FORCE INDEX (d) ON c.d = p.k WHERE p.n < {count} ORDER BY 1, 2",
            "SELECT p.n, COUNT(*) FROM p STRAIGHT_JOIN c FORCE INDEX (s) ON c.s = p.s WHERE p.n < {count} / 10 GROUP BY p.n ORDER BY 1",
        ] {
            agrees(&mut t, &sql.replace("{count}", &count.to_string()));
        }
    }
}

#[test]
fn a_lookup_of_many_rows_is_made_by_itself() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE p (n INT PRIMARY KEY, k INT)");
    t.ok("CREATE TABLE c (id INT PRIMARY KEY, k INT, v VARCHAR(2000), KEY (k))");
    insert(&mut t, "p", (0..200).map(|n| format!("({n}, {n})")));
    // 400 KB of one key, 60 KB of others, and nothing.
    insert(&mut t, "c", (0..200).map(|id| format!("({id}, 100, REPEAT('x', 2000))")));
    insert(&mut t, "c", (200..320).map(|id| format!("({id}, {}, REPEAT('y', 2000))", id % 4)));
    t.ok("ANALYZE TABLE p, c");
    t.ok("SET optimizer_switch = 'hash_join=off'");
    let on = "FROM p STRAIGHT_JOIN c FORCE INDEX (k) ON c.k = p.k";
    assert!(t.run(&format!("EXPLAIN SELECT COUNT(*) {on}")).contains("Batched Key Access"));
    t.expect(&format!("SELECT COUNT(*), SUM(LENGTH(c.v)) {on}"), &["320|640000"]);
    t.expect(&format!("SELECT COUNT(*), SUM(p.n = 100) {on} AND c.v > 'xx'"), &["320|200"]);
    t.expect(
        &format!("SELECT p.n, COUNT(*) {on} GROUP BY p.n ORDER BY p.n"),
        &["0|30", "1|30", "2|30", "3|30", "100|200"],
    );
    let (sink, result) = t.collect(&format!("SELECT p.n, c.id {on} LIMIT 150"));
    result.unwrap();
    assert_eq!(sink.results.last().map_or(0, |r| r.texts().len()), 150);
}

#[test]
fn batches_of_ranges_read_the_snapshot() {
    let server = server();
    let (mut t, mut other) = (server.session(), server.session());
    family(&mut t);
    let queries = [
        "SELECT COUNT(*), SUM(c.id), SUM(c.v) FROM p STRAIGHT_JOIN c ON c.k = p.k",
        "SELECT COUNT(*), SUM(c.v) FROM p STRAIGHT_JOIN c FORCE INDEX (kv) ON c.k = p.k",
        "SELECT COUNT(*) FROM p WHERE EXISTS (SELECT 1 FROM c WHERE c.k = p.k AND c.v = 1)",
    ];
    t.ok("SET optimizer_switch = 'hash_join=off'");
    let before: Vec<String> = queries.iter().map(|sql| t.run(sql)).collect();
    t.ok("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    t.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    other.ok("UPDATE c SET k = k + 1 WHERE id % 3 = 0");
    other.ok("DELETE FROM c WHERE id % 5 = 1");
    other.ok("UPDATE c SET v = 7 WHERE id % 7 = 2");
    insert(&mut other, "c", (9000..9100).map(|id| format!("({id}, {}, 1, 'x', 1)", id - 8000)));
    for (sql, before) in queries.iter().zip(&before) {
        assert_eq!(t.run(sql), *before, "{sql}");
    }
    // Own changes are seen, in the place that they have now.
    t.ok("INSERT INTO c VALUES (9500, 0, 5, 'x', 1)");
    t.expect("SELECT p.n, c.id FROM p STRAIGHT_JOIN c ON c.k = p.k WHERE p.n < 20 AND c.v = 5", &["0|9500"]);
    t.ok("ROLLBACK");
    // What is there now, as single lookups and the table in memory find it.
    queries.iter().for_each(|sql| agrees(&mut t, sql));
    t.ok("SET optimizer_switch = 'hash_join=off'");
    // A change that is not committed hides nothing.
    other.ok("BEGIN");
    let now: Vec<String> = queries.iter().map(|sql| t.run(sql)).collect();
    other.ok("UPDATE c SET k = -1 WHERE id % 2 = 0");
    for (sql, now) in queries.iter().zip(&now) {
        assert_eq!(t.run(sql), *now, "{sql}");
    }
    other.ok("ROLLBACK");
}
