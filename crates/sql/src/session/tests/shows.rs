//! SHOW, DESCRIBE, EXPLAIN, information_schema.

use super::{Test, server};

fn prepare(t: &mut Test) {
    t.ok("CREATE TABLE t (id INT NOT NULL AUTO_INCREMENT, a VARCHAR(10) DEFAULT 'x', b DECIMAL(8,2), c TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (id), UNIQUE KEY u (a), KEY k (b, a(3)))");
    t.ok("CREATE TABLE h (x INT)");
}

#[test]
fn tables_and_columns() {
    let server = server();
    let mut t = server.session();
    prepare(&mut t);
    t.expect("SHOW DATABASES", &["information_schema", "performance_schema", "test"]);
    assert_eq!(t.names("SHOW DATABASES LIKE 't%'"), ["Database (t%)"]);
    t.expect("SHOW TABLES", &["h", "t"]);
    t.expect("SHOW FULL TABLES LIKE 't'", &["t|BASE TABLE"]);
    t.expect("SHOW TABLES WHERE Tables_in_test = 'h'", &["h"]);
    t.expect(
        "DESCRIBE t",
        &[
            "id|int|NO|PRI|NULL|auto_increment",
            "a|varchar(10)|YES|UNI|x|",
            "b|decimal(8,2)|YES|MUL|NULL|",
            "c|timestamp|YES||CURRENT_TIMESTAMP|DEFAULT_GENERATED on update CURRENT_TIMESTAMP",
        ],
    );
    t.expect("DESC t a", &["a|varchar(10)|YES|UNI|x|"]);
    t.expect(
        "SHOW FULL COLUMNS FROM t WHERE Field = 'a'",
        &["a|varchar(10)|utf8mb4_0900_ai_ci|YES|UNI|x||select,insert,update,references|"],
    );
    t.expect("DESCRIBE h", &["x|int|YES||NULL|"]);
    let lines = t.run("SHOW INDEX FROM t");
    let keys: Vec<String> = lines.lines().map(|l| l.split('|').collect::<Vec<_>>()[1..5].join("|")).collect();
    assert_eq!(keys, ["0|PRIMARY|1|id", "0|u|1|a", "1|k|1|b", "1|k|2|a"]);
    t.expect("SHOW INDEX FROM h", &[]);
    assert_eq!(t.names("SHOW TABLE STATUS")[..5], ["Name", "Engine", "Version", "Row_format", "Rows"]);
    assert!(t.run("SHOW TABLE STATUS LIKE 't'").starts_with("t|InnoDB|10|Dynamic|0|"));
    t.code("SHOW COLUMNS FROM nothing", 1146);
    t.code("SHOW TABLES FROM nothing", 1049);
}

#[test]
fn the_server() {
    let server = server();
    let mut t = server.session();
    t.expect(
        "SHOW CREATE DATABASE test",
        &["test|CREATE DATABASE `test` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */ /*!80016 DEFAULT ENCRYPTION='N' */"],
    );
    t.expect("SHOW COLLATION LIKE 'utf8mb4_bin'", &["utf8mb4_bin|utf8mb4|46||Yes|1|PAD SPACE"]);
    t.expect(
        "SHOW COLLATION WHERE Charset = 'utf8mb4' AND `Default` = 'Yes'",
        &["utf8mb4_0900_ai_ci|utf8mb4|255|Yes|Yes|0|NO PAD"],
    );
    t.expect("SHOW CHARACTER SET LIKE 'utf8mb4'", &["utf8mb4|UTF-8 Unicode|utf8mb4_0900_ai_ci|4"]);
    assert!(t.run("SHOW ENGINES").starts_with("InnoDB|DEFAULT|"));
    assert!(t.run("SHOW PLUGINS").contains("caching_sha2_password|ACTIVE|AUTHENTICATION"));
    t.expect("SHOW STATUS LIKE 'Threads_connected'", &["Threads_connected|1"]);
    t.expect("SHOW SESSION STATUS LIKE 'Com_create_db'", &["Com_create_db|1"]);
    assert!(t.run("SHOW PROCESSLIST").ends_with("|Query|0|executing|SHOW PROCESSLIST"));
    t.expect("SHOW TRIGGERS", &[]);
    assert_eq!(t.names("SHOW TRIGGERS")[0], "Trigger");
    t.expect("SHOW EVENTS FROM test", &[]);
    t.expect("SHOW PROCEDURE STATUS WHERE Db = 'test'", &[]);
    t.code("SHOW BINARY LOGS", 1381);
    t.expect("SHOW GRANTS", &[&t_grants(&mut server.session())]);
    t.expect(
        "CHECK TABLE information_schema",
        &[
            "test.information_schema|check|Error|Table 'test.information_schema' doesn't exist",
            "test.information_schema|check|status|Operation failed",
        ],
    );
}

fn t_grants(t: &mut Test) -> String {
    let text = t.run("SHOW GRANTS FOR CURRENT_USER()");
    assert!(text.starts_with("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, "), "{text}");
    assert!(text.contains("ON *.* TO `root`@`localhost` WITH GRANT OPTION\n"));
    text
}

#[test]
fn information_schema() {
    let server = server();
    let mut t = server.session();
    prepare(&mut t);
    t.expect(
        "SELECT table_name, table_type, engine FROM information_schema.tables WHERE table_schema = 'test' ORDER BY table_name",
        &["h|BASE TABLE|InnoDB", "t|BASE TABLE|InnoDB"],
    );
    t.expect(
        "SELECT COLUMN_NAME, ORDINAL_POSITION, COLUMN_DEFAULT, IS_NULLABLE, DATA_TYPE, COLUMN_TYPE, COLUMN_KEY, EXTRA FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = 'test' AND TABLE_NAME = 't' ORDER BY 2",
        &[
            "id|1|NULL|NO|int|int|PRI|auto_increment",
            "a|2|x|YES|varchar|varchar(10)|UNI|",
            "b|3|NULL|YES|decimal|decimal(8,2)|MUL|",
            "c|4|CURRENT_TIMESTAMP|YES|timestamp|timestamp||DEFAULT_GENERATED on update CURRENT_TIMESTAMP",
        ],
    );
    t.expect(
        "SELECT INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE, SUB_PART FROM information_schema.statistics WHERE table_schema = DATABASE() ORDER BY 1, 2",
        &["k|1|b|1|NULL", "k|2|a|1|3", "PRIMARY|1|id|0|NULL", "u|1|a|0|NULL"],
    );
    t.expect(
        "SELECT CONSTRAINT_NAME, CONSTRAINT_TYPE FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA='test' ORDER BY 1",
        &["PRIMARY|PRIMARY KEY", "u|UNIQUE"],
    );
    t.expect(
        "SELECT CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA='test' AND TABLE_NAME='t' ORDER BY 1",
        &["PRIMARY|id|NULL", "u|a|NULL"],
    );
    t.expect("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'te%'", &["test"]);
    t.expect("SELECT COUNT(*) FROM information_schema.VIEWS WHERE TABLE_SCHEMA <> 'sys'", &["0"]);
    t.expect("SELECT VARIABLE_VALUE FROM performance_schema.session_variables WHERE VARIABLE_NAME = 'port'", &["3306"]);
    t.expect("SELECT COUNT(*) FROM information_schema.processlist", &["1"]);
    t.expect("SELECT User, Host, plugin FROM mysql.user", &["root|localhost|caching_sha2_password"]);
    t.expect("SELECT COUNT(*) > 1 FROM rauk.memory", &["1"]);
    t.expect("SELECT node_id, status FROM rauk.nodes", &["1|up"]);
    t.expect("SELECT transaction_id FROM rauk.transactions", &[]);
    t.error("SELECT * FROM information_schema.nothing", 1109, "Unknown table 'NOTHING' in information_schema");
    t.code("DELETE FROM information_schema.tables", 1142);
    t.expect(
        "SELECT TABLE_NAME FROM information_schema.tables WHERE TABLE_SCHEMA = 'test' AND TABLE_NAME NOT IN (SELECT TABLE_NAME FROM information_schema.statistics WHERE TABLE_SCHEMA = 'test')",
        &["h"],
    );
    t.ok("USE information_schema");
    t.expect("SELECT table_comment FROM tables WHERE table_schema = 'test' AND table_name = 't'", &[""]);
}

#[test]
fn explain_shows_the_access_path() {
    let server = server();
    let mut t = server.session();
    prepare(&mut t);
    assert_eq!(
        t.names("EXPLAIN SELECT * FROM t WHERE id = 1"),
        [
            "id",
            "select_type",
            "table",
            "partitions",
            "type",
            "possible_keys",
            "key",
            "key_len",
            "ref",
            "rows",
            "filtered",
            "Extra"
        ]
    );
    let row = t.run("EXPLAIN SELECT * FROM t WHERE id = 1");
    assert!(row.starts_with("1|SIMPLE|t|") && row.contains("|const|"), "{row}");
    t.code("EXPLAIN FORMAT=XML SELECT 1", 1791);
    t.code("EXPLAIN SELECT * FROM nothing", 1146);
}
