//! Temporary tables: of one session, never in the shared plan cache, within their memory, gone with the session.

use super::*;

#[test]
fn a_session_sees_its_own_and_no_other() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    for (t, value) in [(&mut a, 1), (&mut b, 2)] {
        t.ok("CREATE TEMPORARY TABLE own (id INT PRIMARY KEY, v INT)");
        t.ok(&format!("INSERT INTO own VALUES (1, {value})"));
    }
    for _ in 0..2 {
        a.expect("SELECT v FROM own WHERE id = 1", &["1"]);
        b.expect("SELECT v FROM own WHERE id = 1", &["2"]);
    }
    a.expect("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'own'", &["0"]);
    let listed = "SELECT NAME, N_COLS FROM information_schema.INNODB_TEMP_TABLE_INFO";
    a.expect(listed, &["own|2"]);
    a.ok("DROP TEMPORARY TABLE own");
    a.expect(listed, &[]);
    a.code("SELECT v FROM own WHERE id = 1", 1146);
    b.expect("SELECT v FROM own WHERE id = 1", &["2"]);
}

/// The shared cache has a plan for the same text over the stored table, before, while and after it is hidden.
#[test]
fn plans_are_never_mixed() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    a.ok("INSERT INTO t VALUES (1, 10)");
    let (read, write) = ("SELECT v FROM t WHERE id = 1", "UPDATE t SET v = v + 1 WHERE id = 1");
    for t in [&mut a, &mut b] {
        t.expect(read, &["10"]);
    }
    a.ok("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, v VARCHAR(20))");
    a.ok("INSERT INTO t VALUES (1, '7')");
    for _ in 0..2 {
        a.expect(read, &["7"]);
        b.expect(read, &["10"]);
    }
    a.ok(write);
    b.ok(write);
    a.expect(read, &["8"]);
    b.expect(read, &["11"]);
    a.ok("DROP TABLE t");
    a.expect(read, &["11"]);
    a.ok(write);
    b.expect(read, &["12"]);
}

#[test]
fn their_memory_is_bounded_and_given_back() {
    let server = server();
    let mut t = server.session();
    let before = server.engine.database.memory_used();
    t.ok("SET SESSION rauk_temporary_tables_memory = 1048576");
    t.ok("CREATE TEMPORARY TABLE filled (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(1000))");
    t.ok("INSERT INTO filled (v) VALUES (REPEAT('x', 1000))");
    let mut refused = None;
    for _ in 0..20 {
        let (_, result) = t.collect("INSERT INTO filled (v) SELECT v FROM filled");
        if let Err(error) = result {
            refused = Some(error);
            break;
        }
    }
    let error = refused.expect("a megabyte is soon full");
    assert_eq!(error.code, 1114);
    assert!(error.message.contains("rauk_temporary_tables_memory"), "{}", error.message);
    // The statement is undone, rows can be deleted, and a higher limit helps.
    t.ok("DELETE FROM filled WHERE id > 100");
    t.ok("SET SESSION rauk_temporary_tables_memory = 8388608");
    t.ok("INSERT INTO filled (v) SELECT v FROM filled");
    assert!(server.engine.database.memory_used() > before);
    t.ok("DROP TEMPORARY TABLE filled");
    assert_eq!(server.engine.database.memory_used(), before);
    t.ok("CREATE TEMPORARY TABLE again (v TEXT)");
    t.ok("INSERT INTO again VALUES (REPEAT('y', 10000))");
    drop(t);
    assert_eq!(server.engine.database.memory_used(), before);
}

#[test]
fn they_end_with_reset_and_ask_for_one_privilege() {
    let server = server();
    let mut root = server.session();
    root.ok("CREATE TABLE t (id INT)");
    root.ok("CREATE TEMPORARY TABLE t (other INT)");
    block_on(root.session.reset());
    root.ok("USE test");
    root.expect("SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = 't'", &["id"]);
    root.expect("SELECT id FROM t", &[]);
    root.ok("CREATE USER 'maker'@'%'");
    root.ok("GRANT CREATE TEMPORARY TABLES ON test.* TO 'maker'@'%'");
    root.ok("CREATE USER 'reader'@'%'");
    root.ok("GRANT SELECT ON test.* TO 'reader'@'%'");
    let mut maker = server.connect("maker", "10.0.0.1").unwrap();
    maker.ok("USE test");
    maker.ok("CREATE TEMPORARY TABLE own (id INT PRIMARY KEY, v INT)");
    maker.ok("INSERT INTO own VALUES (1, 1)");
    maker.ok("ALTER TABLE own ADD COLUMN w INT");
    maker.ok("UPDATE own SET w = 2");
    maker.expect("SELECT * FROM own FOR UPDATE", &["1|1|2"]);
    maker.ok("TRUNCATE TABLE own");
    maker.ok("DROP TABLE own");
    maker.code("SELECT * FROM t", 1142);
    let mut reader = server.connect("reader", "10.0.0.1").unwrap();
    reader.ok("USE test");
    reader.code("CREATE TEMPORARY TABLE own (id INT)", 1044);
}

#[test]
fn read_only_servers_and_transactions_let_them_be_written() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE kept (id INT)");
    t.ok("CREATE TEMPORARY TABLE own (id INT PRIMARY KEY)");
    t.ok("SET GLOBAL super_read_only = 1");
    t.ok("INSERT INTO own VALUES (1)");
    t.code("INSERT INTO kept VALUES (1)", 1290);
    t.ok("ALTER TABLE own ADD COLUMN v INT");
    t.ok("CREATE TEMPORARY TABLE more AS SELECT * FROM own");
    t.ok("DROP TEMPORARY TABLE more");
    t.code("DROP TABLE kept", 1290);
    t.ok("BEGIN");
    t.ok("INSERT INTO own VALUES (2, 2)");
    t.ok("COMMIT");
    t.ok("SET GLOBAL super_read_only = 0, GLOBAL read_only = 0");
    t.expect("SELECT id FROM own ORDER BY id", &["1", "2"]);
}
