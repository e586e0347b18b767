//! Index merge: the same rows as without it, each once, read, locked and changed.

use super::access_paths::{Dice, columns_and_keys, path, predicate, sorted, without};
use super::{Test, server};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// `t`: rows of which one in fifty has each value of `a`, `b` and `c`.
fn table(t: &mut Test, rows: usize) {
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT NOT NULL, c INT, n INT NOT NULL, note VARCHAR(9), \
          KEY a (a), KEY b (b), KEY cn (c, n))");
    for from in (0..rows).step_by(500) {
        let row = |id: usize| {
            let a = if id.is_multiple_of(97) { "NULL".to_string() } else { (id * 7 % 50).to_string() };
            format!("({id}, {a}, {}, {}, 0, 'n{}')", id * 11 % 53, id * 13 % 51, id % 3)
        };
        let to = rows.min(from + 500);
        t.ok(&format!("INSERT INTO t VALUES {}", (from..to).map(row).collect::<Vec<_>>().join(", ")));
    }
    t.ok("ANALYZE TABLE t");
}

#[track_caller]
fn same(t: &mut Test, sql: &str) {
    let (expected, got) = (t.run(&without(sql)), t.run(sql));
    assert_eq!(sorted(&got), sorted(&expected), "{sql}\n{}", t.run(&format!("EXPLAIN {sql}")));
}

#[test]
fn each_part_of_an_or_takes_its_index() {
    let server = server();
    let mut t = server.session();
    table(&mut t, 3000);
    let all = "ALL NULL NULL Using where";
    for (condition, expected) in [
        ("a = 1 OR b = 2", "index_merge a,b 5,4 Using union(a,b); Using where"),
        ("a = 1 OR b = 2 OR a = 3", "index_merge a,b 5,4 Using union(a,b); Using where"),
        ("a IS NULL OR b IN (2, 5)", "index_merge a,b 5,4 Using union(a,b); Using where"),
        ("id = 17 OR b = 2", "index_merge PRIMARY,b 4,4 Using union(PRIMARY,b); Using where"),
        ("a = 1 OR c = 3 AND n > 0", "index_merge a,cn 5,9 Using sort_union(a,cn); Using where"),
        ("a = 1 OR c = 3", "index_merge a,cn 5,5 Using sort_union(a,cn); Using where"),
        ("(a = 1 OR b = 2) AND note = 'n1'", "index_merge a,b 5,4 Using union(a,b); Using where"),
        ("a = 1 AND note = 'n1' OR b = 2 AND id > 7", "index_merge a,b 5,4 Using union(a,b); Using where"),
        ("a = 1 OR b = 2 OR c = 3", "index_merge a,b,cn 5,4,5 Using sort_union(a,b,cn); Using where"),
        // One index says all, one part has no index, or rows are many.
        ("a = 1 OR a = 5", "range a 5 NULL"),
        ("a = 1 OR note = 'n1'", all),
        ("a > 1 OR b = 2", all),
    ] {
        let sql = format!("SELECT * FROM t WHERE {condition}");
        assert_eq!(path(&mut t, &sql), expected, "{condition}");
        same(&mut t, &sql);
        same(&mut t, &format!("{sql} FOR UPDATE"));
        same(&mut t, &format!("SELECT COUNT(*), SUM(id), MIN(b) FROM t WHERE {condition}"));
        same(&mut t, &format!("SELECT b, COUNT(*) FROM t WHERE {condition} GROUP BY b"));
        same(&mut t, &format!("SELECT id FROM t WHERE {condition} ORDER BY n, id DESC LIMIT 7"));
        same(
            &mut t,
            &format!("SELECT id FROM t WHERE ({condition}) AND EXISTS (SELECT 1 FROM t u WHERE u.id = t.id + 1)"),
        );
    }
    let sql = "SELECT * FROM t WHERE a = 1 OR b = 2";
    t.ok("PREPARE p FROM 'SELECT COUNT(*) FROM t WHERE a = ? OR b = ?'");
    t.ok("SET @a = 1, @b = 2, @none = NULL");
    for (a, b, plain) in [("@a", "@b", "a = 1 OR b = 2"), ("@none", "@b", "b = 2"), ("@none", "@none", "FALSE")] {
        let expected = t.run(&format!("SELECT COUNT(*) FROM t USE INDEX () WHERE {plain}"));
        assert_eq!(t.run(&format!("EXECUTE p USING {a}, {b}")), expected, "{plain}");
    }
    for switch in ["index_merge", "index_merge_union"] {
        t.ok(&format!("SET optimizer_switch = 'default,{switch}=off'"));
        assert_eq!(path(&mut t, sql), all, "{switch}");
    }
    t.ok("SET optimizer_switch = 'default,index_merge_sort_union=off'");
    assert!(path(&mut t, sql).contains("union(a,b)"));
    assert_eq!(path(&mut t, "SELECT * FROM t WHERE a = 1 OR c = 3"), all);
}

#[test]
fn conditions_beside_each_other_take_an_index_each() {
    let server = server();
    let mut t = server.session();
    table(&mut t, 3000);
    t.ok("CREATE INDEX s ON t (note)");
    t.ok("ANALYZE TABLE t");
    for (condition, expected) in [
        ("a = 1 AND b = 2", "index_merge b,a 4,5 Using intersect(b,a); Using where"),
        ("b = 2 AND a = 1 AND n = 0", "index_merge b,a 4,5 Using intersect(b,a); Using where"),
        ("a = 7 AND b = 24", "index_merge b,a 4,5 Using intersect(b,a); Using where"),
        ("a = 1 AND b = 2 AND id > 5", "index_merge b,a 4,5 Using intersect(b,a); Using where"),
        // A key that is not whole, a range, several values; a condition that leaves too many rows.
        ("a = 1 AND c = 2", "ref a 5 Using where"),
        ("a = 1 AND b > 2", "ref a 5 Using where"),
        ("a = 1 AND b IN (2, 3)", "ref a 5 Using where"),
        ("a IS NULL AND b = 2", "ref b 4 Using where"),
        ("a = 1 AND b = 2 AND id = 3", "const PRIMARY 4 Using where"),
    ] {
        let sql = format!("SELECT * FROM t WHERE {condition}");
        assert_eq!(path(&mut t, &sql), expected, "{condition}");
        same(&mut t, &sql);
        same(&mut t, &format!("SELECT COUNT(*), SUM(id), MIN(b) FROM t WHERE {condition}"));
        same(&mut t, &format!("SELECT id FROM t WHERE {condition} ORDER BY n, id DESC LIMIT 3"));
        same(&mut t, &format!("{sql} FOR UPDATE"));
    }
    for condition in
        ["a = 1 AND b = 2.5", "a = '1' AND b = 2e0", "a = 1 AND b = NULL", "a = 99 AND b = 2", "a = 1.0 AND b = 1e30"]
    {
        same(&mut t, &format!("SELECT * FROM t WHERE {condition}"));
    }
    let sql = "SELECT COUNT(*) FROM t WHERE a = 1 AND b = 2";
    for switch in ["index_merge", "index_merge_intersection"] {
        t.ok(&format!("SET optimizer_switch = 'default,{switch}=off'"));
        assert_eq!(path(&mut t, sql), "ref b 4 Using where", "{switch}");
    }
    t.ok("SET optimizer_switch = default");
    assert!(t.run(&format!("EXPLAIN FORMAT=JSON {sql}")).contains("\"key\": \"intersect(b,a)\""));
    let analyzed = t.run(&format!("EXPLAIN ANALYZE {sql}"));
    assert!(analyzed.contains("b = 2 and a = 1"), "{analyzed}");
    // Locks and changes take one index.
    assert!(path(&mut t, &format!("{sql} FOR UPDATE")).starts_with("ref b"));
    assert!(path(&mut t, "UPDATE t SET n = 1 WHERE a = 1 AND b = 2").contains("b 4"));
    t.ok("PREPARE p FROM 'SELECT COUNT(*) FROM t WHERE a = ? AND b = ?'");
    t.ok("SET @a = 1, @b = 2, @none = NULL, @text = '2x'");
    for (a, b, plain) in
        [("@a", "@b", "a = 1 AND b = 2"), ("@none", "@b", "FALSE"), ("@a", "@text", "a = 1 AND b = '2x'")]
    {
        let expected = t.run(&format!("SELECT COUNT(*) FROM t USE INDEX () WHERE {plain}"));
        assert_eq!(t.run(&format!("EXECUTE p USING {a}, {b}")), expected, "{plain}");
    }
}

#[test]
fn what_indexes_have_in_common_is_what_each_level_sees() {
    let server = server();
    let (mut t, mut other) = (server.session(), server.session());
    t.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b INT NOT NULL, n INT NOT NULL, KEY a (a), KEY b (b))");
    for from in (0..2000).step_by(500) {
        let row = |id: usize| format!("({id}, {}, {}, 0)", id % 20, id % 23);
        t.ok(&format!("INSERT INTO t VALUES {}", (from..from + 500).map(row).collect::<Vec<_>>().join(", ")));
    }
    t.ok("ANALYZE TABLE t");
    let mut dice = Dice(11);
    // Each changes rows of its own, so that neither waits.
    let change = |dice: &mut Dice, mine: usize| {
        let id = dice.roll(1000) + 1000 * mine;
        match dice.roll(4) {
            0 => format!("DELETE FROM t WHERE id = {id}"),
            1 => format!("UPDATE t SET a = 3 WHERE id IN ({id}, {}, {})", 1000 * mine + 27, 1000 * mine + 50),
            2 => {
                format!("UPDATE t SET b = 4, n = n + 1 WHERE id IN ({id}, {}, {})", 1000 * mine + 23, 1000 * mine + 43)
            }
            _ => format!("REPLACE INTO t VALUES ({id}, 3, 4, 9)"),
        }
    };
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        t.ok(&format!("SET TRANSACTION ISOLATION LEVEL {level}"));
        t.ok("BEGIN");
        for _ in 0..15 {
            let sql = "SELECT id, a, b, n FROM t FORCE INDEX (a, b) WHERE a = 3 AND b = 4";
            assert!(path(&mut t, sql).contains("intersect"));
            let by_rows = without(sql).replace(" FORCE INDEX (a, b)", "");
            for (mine, text) in [(false, change(&mut dice, 0)), (true, change(&mut dice, 1))] {
                match mine {
                    true => _ = t.run(&text),
                    false if level != "SERIALIZABLE" => _ = other.run(&text),
                    false => {}
                }
                let (expected, got) = (t.run(&by_rows), t.run(sql));
                assert_eq!(sorted(&got), sorted(&expected), "{level}: {text}");
            }
        }
        t.run(dice.pick(&["COMMIT", "ROLLBACK"]));
    }
}

#[test]
fn rows_of_small_tables_come_in_the_order_of_the_primary_key() {
    let server = server();
    let mut t = server.session();
    table(&mut t, 900);
    for limit in ["", " LIMIT 5", " LIMIT 3, 5"] {
        let sql = format!("SELECT id FROM t FORCE INDEX (b, a) WHERE b = 2 OR a = 1{limit}");
        assert!(path(&mut t, &sql).starts_with("index_merge"), "{sql}");
        assert_eq!(t.run(&sql), t.run(&without(&sql).replace(" FORCE INDEX (b, a)", "")), "{sql}");
    }
}

#[test]
fn a_row_of_several_scans_is_changed_once() {
    let server = server();
    let mut t = server.session();
    table(&mut t, 3000);
    let wanted = "a = 1 OR b = 2 OR b = 3";
    let count: usize = t.run(&format!("SELECT COUNT(*) FROM t USE INDEX () WHERE {wanted}")).parse().unwrap();
    assert!(path(&mut t, &format!("UPDATE t SET n = n + 1 WHERE {wanted}")).starts_with("index_merge"));
    t.expect(&format!("UPDATE t SET n = n + 1 WHERE {wanted}"), &[&format!("OK {count}")]);
    t.expect("SELECT MAX(n), SUM(n) FROM t", &[&format!("1|{count}")]);
    // Rows that move to where the next scan looks.
    t.expect(&format!("UPDATE t SET n = n + 1, b = 2, a = 1 WHERE {wanted}"), &[&format!("OK {count}")]);
    t.expect("SELECT MAX(n), SUM(n) FROM t", &[&format!("2|{}", 2 * count)]);
    // Rows that are found and stay as they are count once too.
    t.expect(&format!("UPDATE t SET note = note WHERE {wanted} ORDER BY id LIMIT 9"), &["OK 0"]);
    t.expect(&format!("UPDATE t SET n = n + 1 WHERE {wanted} ORDER BY id DESC LIMIT 9"), &["OK 9"]);
    let left = t.run(&format!("SELECT COUNT(*) FROM t USE INDEX () WHERE ({wanted}) AND id < 300"));
    t.expect(&format!("DELETE FROM t WHERE ({wanted}) AND id < 300"), &[&format!("OK {left}")]);
    t.expect("SELECT COUNT(*) FROM t WHERE (a = 1 OR b = 2) AND id < 300", &["0"]);
}

#[test]
fn scans_of_a_merge_see_one_snapshot_and_lock_what_they_give() {
    let server = server();
    let (mut t, mut other) = (server.session(), server.session());
    table(&mut t, 3000);
    let sql = "SELECT id FROM t WHERE a = 1 OR b = 2";
    t.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    let before = t.run(sql);
    other.ok("UPDATE t SET a = 40, b = 2 WHERE a = 1");
    other.ok("UPDATE t SET a = 1, b = 40 WHERE b = 2 AND id > 1000");
    other.ok("INSERT INTO t VALUES (9000, 1, 2, 0, 0, 'x')");
    assert_eq!(t.run(sql), before);
    t.ok("COMMIT");
    same(&mut t, sql);
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        t.ok(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        t.ok("BEGIN");
        let rows = t.run("SELECT id FROM t WHERE (a = 1 OR b = 2) AND note <> 'n1' FOR UPDATE");
        let given = rows.lines().next().expect("there is one").to_string();
        other.ok("SET innodb_lock_wait_timeout = 1");
        other.code(&format!("UPDATE t SET n = n + 1 WHERE id = {given}"), 1205);
        if level != "SERIALIZABLE" {
            // What the condition dropped is free.
            let dropped = t.run("SELECT id FROM t WHERE (a = 1 OR b = 2) AND note = 'n1' LIMIT 1");
            other.ok(&format!("UPDATE t SET n = n + 1 WHERE id = {dropped}"));
        }
        t.ok("COMMIT");
        other.ok(&format!("UPDATE t SET n = n + 1 WHERE id = {given}"));
    }
}

#[test]
fn random_conditions_are_the_same_with_and_without_merges() {
    let server = server();
    let mut t = server.session();
    let mut merged = 0;
    for seed in 200..208 {
        let mut dice = Dice(seed);
        columns_and_keys(&mut t, &mut dice, 100);
        t.ok("ANALYZE TABLE t");
        for _ in 0..25 {
            let condition = format!("{} OR {}", predicate(&mut dice, 1), predicate(&mut dice, 1));
            let expected = t.run(&format!("SELECT * FROM t USE INDEX () WHERE {condition}"));
            for behind in ["", " FOR UPDATE"] {
                let sql = format!("SELECT * FROM t FORCE INDEX (k0, k1, PRIMARY) WHERE {condition}{behind}");
                let got = t.run(&sql);
                assert_eq!(sorted(&got), sorted(&expected), "{sql}\n{}", t.run("SHOW CREATE TABLE t"));
                if path(&mut t, &sql).starts_with("index_merge") {
                    merged += 1;
                    // In the order of the primary key, where nothing is locked.
                    assert!(!behind.is_empty() || got == expected, "{sql}");
                }
            }
        }
    }
    assert!(merged > 10, "{merged} merged");
}

/// Sets a flag also when a test fails, so that the thread that looks at it ends.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Twenty rows meet the condition all the time, now by `a`, now by `b`, while another session moves them.
#[test]
fn rows_that_move_between_the_scans_are_neither_missed_nor_doubled() {
    let server = server();
    let mut t = server.session();
    table(&mut t, 3000);
    t.ok("UPDATE t SET a = 40, b = 40 WHERE a = 1 OR b = 2");
    t.ok("UPDATE t SET a = 1, b = 40 WHERE id < 20");
    let sql = "SELECT id FROM t WHERE a = 1 OR b = 2";
    assert!(path(&mut t, sql).starts_with("index_merge"));
    let expected: Vec<String> = (0..20).map(|id: usize| id.to_string()).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut mover = server.session();
        let stop = &stop;
        scope.spawn(move || {
            let mut round = 0;
            while !stop.load(Relaxed) {
                let (a, b) = if (round / 20) % 2 == 0 { (40, 2) } else { (1, 40) };
                mover.run(&format!("UPDATE t SET a = {a}, b = {b} WHERE id = {}", round % 20));
                round += 1;
            }
        });
        let _end = SetAtEnd(stop);
        let compare = |got: &str| {
            let mut got: Vec<String> = got.lines().map(str::to_string).collect();
            got.sort_unstable_by_key(|id| id.parse::<usize>().unwrap_or(usize::MAX));
            got == expected
        };
        let mut wrong = Vec::new();
        for level in ["READ COMMITTED", "REPEATABLE READ"] {
            t.ok(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
            for _ in 0..60 {
                let got = t.run(sql);
                wrong.extend((!compare(&got)).then(|| format!("{level}: {got}")));
            }
        }
        // What locks rows finds all of the snapshot, or says that one has changed.
        for _ in 0..60 {
            t.ok("BEGIN");
            t.run(&format!("{sql} LIMIT 1"));
            let got = t.run(&format!("{sql} FOR UPDATE"));
            wrong.extend((!got.starts_with("ERROR 1020") && !compare(&got)).then(|| format!("FOR UPDATE: {got}")));
            t.ok("ROLLBACK");
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}

#[test]
fn a_join_looks_up_what_indexes_have_in_common() {
    let server = server();
    let (mut t, mut other) = (server.session(), server.session());
    table(&mut t, 3000);
    t.ok("CREATE TABLE o (id INT PRIMARY KEY, x INT, y INT)");
    t.ok("INSERT INTO o VALUES (1, 1, 2), (2, 7, 24), (3, NULL, 2), (4, 7, NULL), (5, 14, 33), (6, 99, 1), (7, 1, 2)");
    t.ok("ANALYZE TABLE o");
    let merged = |t: &mut Test, sql: &str| t.run(&format!("EXPLAIN {sql}")).contains("Using intersect");
    let queries = [
        "SELECT o.id, t.id, t.n FROM o STRAIGHT_JOIN t ON t.a = o.x AND t.b = o.y",
        "SELECT o.id, t.id FROM o STRAIGHT_JOIN t ON t.a = o.x AND t.b = 2",
        "SELECT o.id, t.id FROM o LEFT JOIN t ON t.a = o.x AND t.b = o.y AND t.n = 0",
        "SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM t WHERE t.a = o.x AND t.b = o.y)",
        "SELECT o.id FROM o WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.a = o.x AND t.b = o.y AND t.n > 0)",
        "SELECT o.id, (SELECT SUM(t.id) FROM t WHERE t.a = o.x AND t.b = o.y) FROM o",
        "SELECT o.id, COUNT(*) FROM t STRAIGHT_JOIN o ON o.id = t.n + 1 WHERE t.a = 7 AND t.b = 24 GROUP BY o.id",
    ];
    let off = "SET optimizer_switch = 'index_merge=off,hash_join=off,subquery_to_derived=off'";
    let on = "SET optimizer_switch = 'default,hash_join=off,subquery_to_derived=off,semijoin=off'";
    let compare = |t: &mut Test| {
        for sql in queries {
            t.ok(off);
            let expected = t.run(sql);
            t.ok(on);
            let got = t.run(sql);
            assert_eq!(sorted(&got), sorted(&expected), "{sql}");
        }
    };
    t.ok(on);
    for sql in queries {
        assert!(merged(&mut t, sql), "{sql}\n{}", t.run(&format!("EXPLAIN {sql}")));
    }
    assert!(!merged(&mut t, &format!("{} FOR UPDATE", queries[0])));
    assert!(!merged(&mut t, &queries[0].replace("SELECT", "SELECT /*+ NO_INDEX_MERGE(t) */")));
    compare(&mut t);
    t.ok("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    t.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    t.ok(on);
    let before = t.run(queries[0]);
    other.ok("UPDATE t SET a = 1, b = 2 WHERE id BETWEEN 100 AND 120");
    other.ok("DELETE FROM t WHERE a = 7 AND b = 24");
    assert_eq!(t.run(queries[0]), before);
    compare(&mut t);
    t.ok("UPDATE t SET b = 33 WHERE a = 14 AND id > 2000");
    compare(&mut t);
    t.ok("ROLLBACK");
    compare(&mut t);
}
