//! LOAD DATA: a client's file, and files of the server.

use super::{Server, Test, render, server};
use crate::session::collect::Collector;
use crate::session::engine::Client;
use rauk_node::block_on;
use rauk_types::result::{Completion, FileFuture, FlushFuture, ResultColumn, ResultSink};
use rauk_types::{Value, ValueRef};
use std::path::Path;

/// A client that gives a file in pieces.
struct Giving {
    results: Collector,
    file: Vec<u8>,
    at: usize,
    step: usize,
    asked: Option<String>,
    /// It never goes on when so much was given.
    stops_at: usize,
}

fn giving(file: &[u8], step: usize) -> Giving {
    let results = Collector::default();
    Giving { results, file: file.to_vec(), at: 0, step, asked: None, stops_at: usize::MAX }
}

impl ResultSink for Giving {
    fn columns(&mut self, columns: &[ResultColumn]) {
        self.results.columns(columns);
    }

    fn row(&mut self, values: &[ValueRef<'_>]) {
        self.results.row(values);
    }

    fn withdraw(&mut self) -> bool {
        self.results.withdraw()
    }

    fn complete(&mut self, completion: &Completion) {
        self.results.complete(completion);
    }

    fn buffered(&self) -> usize {
        0
    }

    fn flush(&mut self) -> FlushFuture<'_> {
        self.results.flush()
    }

    fn request_file(&mut self, name: &str) -> bool {
        assert!(self.asked.is_none(), "a file is asked for once");
        self.asked = Some(name.to_string());
        true
    }

    fn read_file<'a>(&'a mut self, into: &'a mut Vec<u8>) -> FileFuture<'a> {
        Box::pin(async move {
            if self.at >= self.stops_at {
                std::future::pending::<()>().await;
            }
            let end = self.file.len().min(self.at + self.step);
            into.extend_from_slice(&self.file[self.at..end]);
            let more = end > self.at;
            self.at = end;
            Ok(more)
        })
    }
}

impl Test {
    /// Loads a file of the client: what the statement answers, with its information.
    fn load(&mut self, sql: &str, file: &[u8]) -> String {
        let mut client = giving(file, 5);
        let result = block_on(self.session.query(sql, &mut client));
        let ended = client.at == client.file.len();
        assert!(client.asked.is_none() || ended, "the client has sent all of it, whatever became of it");
        let info = client.results.last().map(|last| last.completion.info.clone()).unwrap_or_default();
        format!("{} {info}", render(&client.results, result)).trim().to_string()
    }
}

fn ready() -> (Server, Test) {
    let server = server();
    let mut t = server.session();
    t.ok("SET GLOBAL local_infile = ON");
    (server, t)
}

#[test]
fn a_client_file_becomes_rows() {
    let (_server, mut t) = ready();
    t.ok("CREATE TABLE l (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(10), d DATE, n DECIMAL(5,2) DEFAULT 7)");
    let sql = "LOAD DATA LOCAL INFILE 'x' INTO TABLE l";
    assert_eq!(
        t.load(sql, b"5\tone\t2024-02-29\t1.5\n\\N\tt\\two\t\\N\t2\n"),
        "OK 2 Records: 2  Deleted: 0  Skipped: 0  Warnings: 0"
    );
    t.expect("SELECT * FROM l ORDER BY id", &["5|one|2024-02-29|1.50", "6|t\two|NULL|2.00"]);
    // A key that is there, a line that is short, one that is long.
    assert_eq!(
        t.load(sql, b"5\tx\t2024-01-01\t1\n9\ty\n10\tz\t2024-01-01\t3\tmore\n"),
        "OK 2 Records: 3  Deleted: 0  Skipped: 1  Warnings: 4"
    );
    t.expect(
        "SHOW WARNINGS",
        &[
            "Warning|1062|Duplicate entry '5' for key 'l.PRIMARY'",
            "Warning|1261|Row 2 doesn't contain data for all columns",
            "Warning|1261|Row 2 doesn't contain data for all columns",
            "Warning|1262|Row 3 was truncated; it contained more data than there were input columns",
        ],
    );
    t.expect("SELECT * FROM l WHERE id > 6 ORDER BY id", &["9|y|NULL|0.00", "10|z|2024-01-01|3.00"]);
    assert_eq!(
        t.load("LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE l (id, a)", b"5\tnew\n7\tseven"),
        "OK 3 Records: 2  Deleted: 1  Skipped: 0  Warnings: 0"
    );
    t.expect("SELECT id, a, n FROM l WHERE id IN (5, 7) ORDER BY id", &["5|new|7.00", "7|seven|7.00"]);
    assert_eq!(t.load(sql, b""), "OK 0 Records: 0  Deleted: 0  Skipped: 0  Warnings: 0");
}

#[test]
fn variables_and_set() {
    let (_server, mut t) = ready();
    t.ok("CREATE TABLE s (a INT PRIMARY KEY, b VARCHAR(20), c INT NOT NULL DEFAULT 3, g INT AS (a * 2))");
    t.ok("CREATE TABLE other (x INT)");
    t.ok("INSERT INTO other VALUES (100)");
    t.ok("SET @v = 5");
    let sql = "LOAD DATA LOCAL INFILE 'x' INTO TABLE s FIELDS TERMINATED BY ',' (@V, @w, a) \
               SET b = CONCAT(@v, '-', IFNULL(@w, 'none')), c = a + (SELECT MAX(x) FROM other)";
    assert_eq!(t.load(sql, b"x,y,1\n,\\N,2\n"), "OK 2 Records: 2  Deleted: 0  Skipped: 0  Warnings: 0");
    t.expect("SELECT * FROM s ORDER BY a", &["1|x-y|101|2", "2|-none|102|4"]);
    t.expect("SELECT @v, @w", &["|NULL"]);
    t.code("LOAD DATA LOCAL INFILE 'x' INTO TABLE s (g)", 3105);
    t.code("LOAD DATA LOCAL INFILE 'x' INTO TABLE s", 3105);
    t.code("LOAD DATA LOCAL INFILE 'x' INTO TABLE s (a, nothing)", 1054);
    t.code("LOAD DATA LOCAL INFILE 'x' INTO TABLE s (a) SET c = (SELECT MAX(a) FROM s)", 1093);
    t.code("LOAD DATA LOCAL INFILE 'x' INTO TABLE s FIELDS ENCLOSED BY 'ab' (a)", 1083);
    t.code("LOAD DATA LOCAL INFILE 'x' INTO TABLE s CHARACTER SET klingon (a)", 1115);
    t.code("LOAD DATA LOCAL INFILE 'x' INTO TABLE s FIELDS TERMINATED BY '' (@a)", 1409);
    t.code("LOAD DATA LOCAL INFILE 'x' INTO TABLE s PARTITION (p) (a)", 1747);
    t.code("LOAD DATA LOCAL INFILE 'x' INTO TABLE missing", 1146);
    t.code("PREPARE p FROM 'LOAD DATA LOCAL INFILE ''x'' INTO TABLE s'", 1295);
}

#[test]
fn local_files_are_allowed_by_both_sides() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE l (a INT)");
    let sql = "LOAD DATA LOCAL INFILE 'x' INTO TABLE l";
    let message = "Loading local data is disabled; this must be enabled on both the client and server sides";
    t.error(sql, 3948, message);
    t.ok("SET GLOBAL local_infile = 1");
    assert_eq!(t.load(sql, b"1\n"), "OK 1 Records: 1  Deleted: 0  Skipped: 0  Warnings: 0");
    let client = Client { local_files: false, ..Client::local(server.id()) };
    let mut other = Test { session: server.engine.connect(client).expect("it connects") };
    other.error("LOAD DATA LOCAL INFILE 'x' INTO TABLE test.l", 3948, message);
}

#[test]
fn an_error_leaves_nothing_and_reads_the_file_to_its_end() {
    let (_server, mut t) = ready();
    t.ok("CREATE TABLE l (a INT PRIMARY KEY, b VARCHAR(3))");
    // A byte that begins no character is an error for a client's file too.
    assert_eq!(
        t.load("LOAD DATA LOCAL INFILE 'x' INTO TABLE l", b"1\ta\n2\tb\xFF\n3\tc\n4\td\n5\te\n"),
        "ERROR 1300: Invalid utf8mb4 character string: 'b'"
    );
    t.expect("SELECT COUNT(*) FROM l", &["0"]);
    // REPLACE is strict.
    assert_eq!(
        t.load("LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE l", b"1\ta\n2\tlong\n3\tc\n"),
        "ERROR 1406: Data too long for column 'b' at row 2"
    );
    t.expect("SELECT COUNT(*) FROM l", &["0"]);
    // In a transaction only the statement goes.
    t.ok("BEGIN");
    t.ok("INSERT INTO l VALUES (9, 'x')");
    assert!(t.load("LOAD DATA LOCAL INFILE 'x' REPLACE INTO TABLE l", b"1\ta\nx\tb\n").starts_with("ERROR 1366"));
    t.expect("SELECT a FROM l", &["9"]);
    t.ok("COMMIT");
    t.ok("SET SESSION TRANSACTION READ ONLY");
    assert!(t.load("LOAD DATA LOCAL INFILE 'x' INTO TABLE l", b"1\ta\n").starts_with("ERROR 1792"));
}

#[test]
fn a_client_that_keeps_silent_can_be_killed() {
    let (_server, mut t) = ready();
    t.ok("CREATE TABLE l (a INT)");
    let mut client = giving(b"1\n2\n3\n", 2);
    client.stops_at = 4;
    let kill = t.session.interrupter();
    let killed = t.session.process.clone();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        kill();
        std::thread::sleep(std::time::Duration::from_millis(50));
        killed.kill_connection();
    });
    let result = block_on(t.session.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE l", &mut client));
    killer.join().expect("it ends");
    assert_eq!(result.expect_err("it was killed").code, 1317);
}

#[test]
fn lines_longer_than_the_memory_of_a_statement() {
    let (_server, mut t) = ready();
    t.ok("CREATE TABLE l (a LONGTEXT)");
    t.ok("SET rauk_query_memory_limit = 4000000");
    let mut client = giving(&vec![b'x'; 8 << 20], 64 << 10);
    let result = block_on(t.session.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE l", &mut client));
    assert_eq!(result.expect_err("it is too long").code, 1038);
    // What is behind the fields is not kept.
    let mut file = b"1\t".to_vec();
    file.resize(8 << 20, b'x');
    file.extend_from_slice(b"\n2\n");
    t.ok("CREATE TABLE s (a INT)");
    let mut client = giving(&file, 64 << 10);
    block_on(t.session.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE s", &mut client)).expect("it is passed");
    t.expect("SELECT * FROM s ORDER BY a", &["1", "2"]);
}

#[test]
fn character_sets() {
    let (_server, mut t) = ready();
    t.ok("CREATE TABLE c (a VARCHAR(10), b VARBINARY(10))");
    let load = |charset: &str| format!("LOAD DATA LOCAL INFILE 'x' INTO TABLE c CHARACTER SET {charset}");
    assert!(t.load(&load("latin1"), b"\xE4\x80\t\xE4\n").starts_with("OK 1"));
    assert!(t.load(&load("utf8mb4"), "ä€\tä\n".as_bytes()).starts_with("OK 1"));
    assert!(t.load(&load("binary"), "ä\t\u{e4}\n".as_bytes()).starts_with("OK 1"));
    t.expect("SELECT a, HEX(b) FROM c ORDER BY a, b", &["ä|C3A4", "ä€|C3A4", "ä€|E4"]);
    assert!(t.load(&load("binary"), b"\xFFx\ty\n").ends_with("Warnings: 1"));
    t.expect("SHOW WARNINGS", &["Warning|1366|Incorrect string value: '\\xFFx' for column 'a' at row 1"]);
}

/// A session whose server may use this directory, and the data directory beside it.
pub(super) fn with_files(directory: &Path) -> (Server, Test) {
    let server = server();
    let (secure, data) = (directory.join("files"), directory.join("data"));
    for made in [&secure, &data] {
        std::fs::create_dir_all(made).expect("a directory");
    }
    let text = |path: &Path| Value::Str(path.display().to_string());
    server.engine.variables.set_by_name("secure_file_priv", text(&secure));
    server.engine.variables.set_by_name("datadir", text(&data));
    let t = server.session();
    (server, t)
}

#[test]
fn files_of_the_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, mut t) = with_files(directory.path());
    let files = directory.path().join("files");
    let at = |name: &str| files.join(name).display().to_string();
    t.ok("CREATE TABLE l (a INT PRIMARY KEY, b VARCHAR(10) NOT NULL)");
    std::fs::write(files.join("good"), "1\tx\n2\ty\n").expect("written");
    std::fs::write(files.join("bad"), "3\tx\n2\ty\n").expect("written");
    std::fs::write(files.join("null"), "4\t\\N\n").expect("written");
    std::fs::write(files.join("short"), "5\n").expect("written");
    std::fs::write(files.join("long"), "5\tx\ty\n").expect("written");
    std::fs::write(directory.path().join("outside"), "6\tx\n").expect("written");
    std::fs::write(directory.path().join("data/secret"), "7\tx\n").expect("written");
    std::os::unix::fs::symlink(directory.path().join("outside"), files.join("link")).expect("made");
    let load = |name: &str| format!("LOAD DATA INFILE '{name}' INTO TABLE l");
    t.ok(&load(&at("good")));
    t.error(&load(&at("bad")), 1062, "Duplicate entry '2' for key 'l.PRIMARY'");
    t.error(&load(&at("null")), 1263, "Column set to default value; NULL supplied to NOT NULL column 'b' at row 1");
    t.error(&load(&at("short")), 1261, "Row 1 doesn't contain data for all columns");
    t.error(&load(&at("long")), 1262, "Row 1 was truncated; it contained more data than there were input columns");
    t.expect("SELECT a FROM l ORDER BY a", &["1", "2"]);
    t.code(&load(&at("nothing")), 13);
    t.code(&load(&at("")), 1085);
    for name in ["link", "../outside", "../data/secret", "sub/../../outside"] {
        t.code(&load(&at(name)), 1290);
    }
    t.code(&load("outside"), 1290);
    t.code(&load("secret"), 1290);
    // The whole machine, but not what is the server's own.
    server.engine.variables.set_by_name("secure_file_priv", Value::from(""));
    let mut t = server.session();
    t.ok(&load(&directory.path().join("outside").display().to_string()));
    t.code(&load("secret"), 1290);
    t.ok("CREATE USER u IDENTIFIED BY 'x'");
    t.ok("GRANT ALL ON test.* TO u");
    let mut u = server.connect("u", "127.0.0.1").expect("it connects");
    u.ok("USE test");
    u.error(&load(&at("good")), 1045, "Access denied for user 'u'@'localhost' (using password: YES)");
    t.ok("GRANT FILE ON *.* TO u");
    u.ok(&format!("LOAD DATA INFILE '{}' IGNORE INTO TABLE l", at("good")));
    server.engine.variables.set_by_name("secure_file_priv", Value::Null);
    server.session().code(&load(&at("good")), 1290);
}

#[test]
fn checksums_compare_tables() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE a (k INT PRIMARY KEY, s VARCHAR(10), ts TIMESTAMP NULL, h INT INVISIBLE DEFAULT 1)");
    t.ok("CREATE TABLE b LIKE a");
    t.ok("CREATE VIEW v AS SELECT k FROM a");
    t.expect("CHECKSUM TABLE a, b", &["test.a|0", "test.b|0"]);
    t.ok("INSERT INTO a VALUES (1, 'x', '2024-01-01 00:00:00'), (2, NULL, NULL), (3, '', NULL)");
    t.ok("INSERT INTO b VALUES (3, '', NULL), (1, 'x', '2024-01-01 00:00:00'), (2, NULL, NULL)");
    let one = t.run("CHECKSUM TABLE a");
    assert_eq!(t.run("CHECKSUM TABLE b").replace("test.b", "test.a"), one);
    assert!(!one.ends_with("|0"));
    t.ok("SET time_zone = '+05:00'");
    t.ok("SET sql_select_limit = 1");
    assert_eq!(t.run("CHECKSUM TABLE a EXTENDED"), one);
    t.expect("SELECT HOUR(ts) FROM a WHERE k = 1", &["5"]);
    for change in ["SET s = NULL WHERE k = 3", "SET s = 'y' WHERE k = 1", "SET h = 2 WHERE k = 2"] {
        t.ok("BEGIN");
        t.ok(&format!("UPDATE a {change}"));
        assert_ne!(t.run("CHECKSUM TABLE a"), one, "{change}");
        t.ok("ROLLBACK");
    }
    assert_eq!(t.run("CHECKSUM TABLE a"), one);
    t.expect("CHECKSUM TABLE a QUICK", &["test.a|NULL"]);
    t.expect("CHECKSUM TABLE nothing, v", &["test.nothing|NULL", "test.v|NULL"]);
    t.expect(
        "SHOW WARNINGS",
        &["Error|1146|Table 'test.nothing' doesn't exist", "Error|1347|'test.v' is not BASE TABLE"],
    );
    t.ok("CREATE USER u");
    server.connect("u", "127.0.0.1").expect("it connects").code("CHECKSUM TABLE test.a", 1142);
}

#[test]
fn subqueries_of_set_are_asked_for_each_row() {
    let (_server, mut t) = ready();
    t.ok("CREATE TABLE l (k INT PRIMARY KEY, name VARCHAR(10), other INT)");
    t.ok("CREATE TABLE names (x INT PRIMARY KEY, y VARCHAR(10))");
    t.ok("INSERT INTO names VALUES (1, 'one'), (2, 'two')");
    let sql = "LOAD DATA LOCAL INFILE 'x' INTO TABLE l (k, @v) SET name = (SELECT y FROM names WHERE x = @v), \
               other = (SELECT COUNT(*) FROM names WHERE x <= k)";
    assert_eq!(t.load(sql, b"1\t2\n2\t1\n3\t9\n"), "OK 3 Records: 3  Deleted: 0  Skipped: 0  Warnings: 0");
    t.expect("SELECT * FROM l ORDER BY k", &["1|two|1", "2|one|2", "3|NULL|2"]);
}
