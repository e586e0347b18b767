//! HANDLER: rows one by one, forwards and backwards, by indexes with and without NULLs; what closes a handler.

use super::{Test, server};

fn tables(t: &mut Test) {
    for statement in [
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(10) NOT NULL, KEY ka (a), UNIQUE KEY kb (b), KEY kab (a, b))",
        "INSERT INTO t VALUES (1, NULL, 'e'), (2, 20, 'd'), (3, NULL, 'c'), (4, 20, 'b'), (5, 10, 'a')",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE keyless (a INT)",
        "CREATE TABLE pair (a INT, b INT, c INT, PRIMARY KEY (a, b))",
        "INSERT INTO pair VALUES (1, 1, 1), (1, 2, 2), (2, 1, 3)",
    ] {
        t.ok(statement);
    }
}

#[test]
fn rows_in_the_order_of_indexes() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.ok("HANDLER t OPEN");
    for row in ["1|NULL|e", "2|20|d", "3|NULL|c", "4|20|b", "5|10|a"] {
        t.expect("HANDLER t READ NEXT", &[row]);
    }
    t.expect("HANDLER t READ NEXT", &[]);
    t.expect("HANDLER t READ FIRST LIMIT 2", &["1|NULL|e", "2|20|d"]);
    t.expect("HANDLER t READ NEXT LIMIT 1, 1", &["4|20|b"]);
    t.expect("HANDLER t READ `PRIMARY` LAST", &["5|10|a"]);
    t.expect("HANDLER t READ PRIMARY PREV LIMIT 2", &["4|20|b", "3|NULL|c"]);
    t.expect("HANDLER t READ PRIMARY NEXT", &["4|20|b"]);
    // NULLs come first, rows of the same key by the primary key.
    let by_a = ["1|NULL|e", "3|NULL|c", "5|10|a", "2|20|d", "4|20|b"];
    for row in by_a {
        t.expect("HANDLER t READ ka NEXT", &[row]);
    }
    t.expect("HANDLER t READ ka NEXT", &[]);
    t.expect("HANDLER t READ ka LAST", &["4|20|b"]);
    for row in by_a.iter().rev().skip(1) {
        t.expect("HANDLER t READ ka PREV", &[row]);
    }
    t.expect("HANDLER t READ ka PREV", &[]);
    // In another index it begins at the start.
    t.expect("HANDLER t READ kb NEXT", &["5|10|a"]);
    t.expect("HANDLER t READ kb NEXT", &["4|20|b"]);
    // By values, and on from there.
    t.expect("HANDLER t READ ka = (20)", &["2|20|d"]);
    t.expect("HANDLER t READ ka NEXT", &["4|20|b"]);
    t.expect("HANDLER t READ ka = (20) LIMIT 5", &["2|20|d", "4|20|b"]);
    t.expect("HANDLER t READ ka = (NULL) LIMIT 5", &["1|NULL|e", "3|NULL|c"]);
    t.expect("HANDLER t READ ka >= (11)", &["2|20|d"]);
    t.expect("HANDLER t READ ka < (20) WHERE a IS NOT NULL LIMIT 5", &["5|10|a"]);
    t.expect("HANDLER t READ kab = (20, 'b')", &["4|20|b"]);
    t.expect("HANDLER t READ kb > ('b') LIMIT 2", &["3|NULL|c", "2|20|d"]);
    t.expect("HANDLER t READ kb <= ('b') LIMIT 2", &["4|20|b", "5|10|a"]);
    t.expect("HANDLER t READ FIRST WHERE id > 2", &["3|NULL|c"]);
    t.expect("HANDLER t READ NEXT WHERE b = 'a'", &["5|10|a"]);
    // Rows that come and go meanwhile.
    t.expect("HANDLER t READ PRIMARY = (2)", &["2|20|d"]);
    t.ok("DELETE FROM t WHERE id IN (2, 3)");
    t.expect("HANDLER t READ PRIMARY NEXT", &["4|20|b"]);
    t.ok("INSERT INTO t VALUES (6, 1, 'z')");
    t.expect("HANDLER t READ PRIMARY NEXT LIMIT 9", &["5|10|a", "6|1|z"]);
    t.ok("HANDLER test.pair OPEN AS p");
    assert_eq!(t.names("HANDLER p READ FIRST"), ["a", "b", "c"]);
    t.expect("HANDLER p READ PRIMARY >= (1, 2) LIMIT 5", &["1|2|2", "2|1|3"]);
    t.expect("HANDLER p READ PRIMARY = (1) LIMIT 5", &["1|1|1", "1|2|2"]);
    t.expect("HANDLER p READ PRIMARY NEXT", &["2|1|3"]);
    t.ok("PREPARE s FROM 'HANDLER p READ PRIMARY = (?, ?)'");
    t.ok("SET @x = 1, @y = 2");
    t.expect("EXECUTE s USING @x, @y", &["1|2|2"]);
    t.expect("EXECUTE s USING @x, @x", &["1|1|1"]);
}

#[test]
fn what_opens_and_closes() {
    let server = server();
    let mut t = server.session();
    tables(&mut t);
    t.error("HANDLER t READ FIRST", 1109, "Unknown table 't' in HANDLER");
    t.error("HANDLER t CLOSE", 1109, "Unknown table 't' in HANDLER");
    t.code("HANDLER missing OPEN", 1146);
    t.error("HANDLER v OPEN", 1347, "'test.v' is not BASE TABLE");
    t.code("HANDLER keyless OPEN", 1235);
    t.ok("HANDLER t OPEN AS h");
    t.error("HANDLER pair OPEN h", 1066, "Not unique table/alias: 'h'");
    t.error("HANDLER h READ nothing FIRST", 1176, "Key 'nothing' doesn't exist in table 'h'");
    t.error("HANDLER h READ kab = (1, 'a', 3)", 1070, "Too many key parts specified; max 2 parts allowed");
    t.code("HANDLER h READ FIRST WHERE nothing = 1", 1054);
    t.code("HANDLER h READ LAST", 1064);
    t.ok("HANDLER h CLOSE");
    t.code("HANDLER h READ FIRST", 1109);
    // DDL closes, by whomever.
    t.ok("HANDLER t OPEN");
    t.expect("HANDLER t READ FIRST", &["1|NULL|e"]);
    t.ok("ALTER TABLE t ADD COLUMN c INT");
    t.code("HANDLER t READ NEXT", 1109);
    t.ok("HANDLER t OPEN");
    server.session().ok("TRUNCATE TABLE t");
    t.code("HANDLER t READ NEXT", 1109);
    t.ok("HANDLER pair OPEN");
    t.code("LOCK TABLES missing READ", 1146);
    t.ok("LOCK TABLES t READ");
    t.code("HANDLER pair READ FIRST", 1192);
    t.ok("UNLOCK TABLES");
    t.expect("HANDLER pair READ FIRST", &["1|1|1"]);
    rauk_node::block_on(t.session.reset());
    t.code("HANDLER test.pair READ FIRST", 1109);
    t.ok("CREATE USER app");
    let mut app = server.connect("app", "10.1.2.3").unwrap();
    app.code("HANDLER test.pair OPEN", 1142);
    t.ok("USE test");
    t.ok("CREATE TEMPORARY TABLE own (id INT PRIMARY KEY)");
    t.ok("INSERT INTO own VALUES (3), (1)");
    t.ok("HANDLER own OPEN");
    t.expect("HANDLER own READ FIRST", &["1"]);
    t.expect("HANDLER own READ NEXT", &["3"]);
}
