//! What a session reports of its changes, statement by statement.

use super::*;
use rauk_types::result::SessionChange;

impl Test {
    /// The changes that a statement reports, one a line.
    fn changes(&mut self, sql: &str) -> Vec<String> {
        let (sink, result) = self.collect(sql);
        result.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let changes = sink.results.iter().flat_map(|result| &result.changes);
        changes
            .map(|change| match change {
                SessionChange::Variable { name, value } => format!("{name}={value}"),
                SessionChange::Schema(name) => format!("schema {name}"),
                SessionChange::State => "state".to_string(),
                SessionChange::TransactionState(letters) => letters.clone(),
                SessionChange::TransactionCharacteristics(text) => format!("[{text}]"),
            })
            .collect()
    }
}

#[test]
fn variables_schema_and_state() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE DATABASE other");
    assert_eq!(t.changes("SET autocommit = 1"), ["autocommit=ON"]);
    assert_eq!(t.changes("SET sql_mode = ''"), [""; 0]);
    assert_eq!(t.changes("SET NAMES utf8mb4").len(), 3);
    assert_eq!(t.changes("USE other"), ["schema other"]);
    t.ok("SET session_track_system_variables = 'sql_mode, autocommit'");
    assert_eq!(t.changes("SET sql_mode = 'ANSI_QUOTES', time_zone = '+01:00'"), ["sql_mode=ANSI_QUOTES"]);
    t.ok("SET session_track_system_variables = '*'");
    assert_eq!(t.changes("SET time_zone = '+00:00', @a = 1"), ["time_zone=+00:00"]);
    t.ok("SET session_track_system_variables = ''");
    t.ok("SET session_track_schema = OFF");
    assert_eq!(t.changes("USE test"), [""; 0]);
    t.ok("SET session_track_state_change = ON");
    for sql in [
        "SET @a = 2",
        "USE other",
        "PREPARE p FROM 'SELECT 1'",
        "DEALLOCATE PREPARE p",
        "CREATE TEMPORARY TABLE own (id INT)",
        "DROP TEMPORARY TABLE own",
        "SET sql_mode = ''",
    ] {
        assert_eq!(t.changes(sql), ["state"], "{sql}");
    }
    assert_eq!(t.changes("SELECT 1"), [""; 0]);
    t.ok("SET session_track_system_variables = 'autocommit, no_such'");
    t.expect("SHOW WARNINGS", &["Warning|1231|no_such is not a valid system variable and will be ignored."]);
    t.code("SET session_track_gtids = OWN_GTID", 1235);
}

#[test]
fn transactions() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY)");
    t.ok("SET session_track_transaction_info = 'STATE'");
    assert_eq!(t.changes("START TRANSACTION"), ["T_______"]);
    assert_eq!(t.changes("SELECT 1"), ["T_____S_"]);
    assert_eq!(t.changes("INSERT INTO t VALUES (1)"), ["T___W_S_"]);
    assert_eq!(t.changes("SELECT * FROM t"), ["T_R_W_S_"]);
    assert_eq!(t.changes("SELECT * FROM t"), [""; 0]);
    assert_eq!(t.changes("COMMIT"), ["________"]);
    assert_eq!(t.changes("SELECT * FROM t"), [""; 0]);
    t.ok("SET autocommit = 0");
    assert_eq!(t.changes("INSERT INTO t VALUES (2)"), ["I___W___"]);
    assert_eq!(t.changes("ROLLBACK"), ["________"]);
    t.ok("SET autocommit = 1");
    t.ok("SET session_track_transaction_info = 'CHARACTERISTICS'");
    let serializable = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE";
    assert_eq!(t.changes(serializable), ["[SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;]"]);
    assert_eq!(
        t.changes("START TRANSACTION READ ONLY"),
        ["T_______", "[SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION READ ONLY;]"]
    );
    assert_eq!(t.changes("COMMIT"), ["________", "[]"]);
    let snapshot = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ WRITE";
    assert_eq!(t.changes(snapshot), ["T_______", &format!("[{snapshot};]")]);
    assert_eq!(t.changes("ROLLBACK"), ["________", "[]"]);
    assert_eq!(t.changes("SET TRANSACTION READ ONLY"), ["[SET TRANSACTION READ ONLY;]"]);
}

/// Several statements of one packet report each by itself; a prepared statement is one.
#[test]
fn several_statements() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE DATABASE other");
    let (sink, result) = t.collect("USE other; SELECT 1; SET autocommit = 1; SELECT * FROM nowhere; USE test");
    assert_eq!(result.unwrap_err().code, 1146);
    let changes: Vec<usize> = sink.results.iter().map(|result| result.changes.len()).collect();
    let more: Vec<bool> = sink.results.iter().map(|result| result.completion.status.more_results).collect();
    assert_eq!((changes, more), (vec![1, 0, 1], vec![true; 3]));
    t.expect("SELECT DATABASE()", &["other"]);
    let refused = block_on(t.session.prepare("SELECT 1; SELECT 2"));
    assert_eq!(refused.unwrap_err().code, 1064);
}
