//! What drivers, frameworks and tools send: recorded from their sources and from servers' general logs. All must run; some answers are looked at.

use super::server;

/// Statements of Connector/J 8 and 9, MariaDB Connector/J, PyMySQL, mysql-connector-python, go-sql-driver, DBeaver, the `mariadb` shell, Django, Rails,
/// SQLAlchemy and Hibernate when they connect.
const CONNECTING: &[&str] = &[
    "/* mysql-connector-j-8.0.33 (Revision: 7d6b0800528b6b25c68b52dc10d6c1c8429c100c) */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, @@character_set_results AS character_set_results, @@character_set_server AS character_set_server, @@collation_server AS collation_server, @@collation_connection AS collation_connection, @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@transaction_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout",
    "SHOW VARIABLES WHERE Variable_name ='language' OR Variable_name = 'net_write_timeout' OR Variable_name = 'interactive_timeout' OR Variable_name = 'wait_timeout' OR Variable_name = 'character_set_client' OR Variable_name = 'character_set_connection' OR Variable_name = 'character_set' OR Variable_name = 'character_set_server' OR Variable_name = 'tx_isolation' OR Variable_name = 'transaction_isolation' OR Variable_name = 'character_set_results' OR Variable_name = 'timezone' OR Variable_name = 'time_zone' OR Variable_name = 'system_time_zone' OR Variable_name = 'lower_case_table_names' OR Variable_name = 'max_allowed_packet' OR Variable_name = 'net_buffer_length' OR Variable_name = 'sql_mode' OR Variable_name = 'query_cache_type' OR Variable_name = 'query_cache_size' OR Variable_name = 'license' OR Variable_name = 'init_connect'",
    "SET NAMES utf8mb4",
    "SET character_set_results = NULL",
    "SET autocommit=1",
    "SET sql_mode='STRICT_TRANS_TABLES'",
    "SET SESSION TRANSACTION READ WRITE",
    "set session transaction isolation level read committed",
    "SELECT @@session.transaction_read_only",
    "SELECT @@session.transaction_isolation",
    "SELECT @@session.tx_isolation",
    "SHOW WARNINGS",
    "SELECT DATABASE()",
    "SHOW COLLATION",
    "SHOW ENGINES",
    "select @@max_allowed_packet, @@system_time_zone, @@time_zone, @@auto_increment_increment, @@tx_isolation AS tx_isolation",
    "set autocommit=1, session_track_schema=1, sql_mode=concat(@@sql_mode,',STRICT_TRANS_TABLES')",
    "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_0900_ai_ci'",
    "SET @@session.autocommit = OFF",
    "SET AUTOCOMMIT = 0",
    "SELECT @@max_allowed_packet",
    "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
    "SET time_zone = '+00:00'",
    "SET SQL_AUTO_IS_NULL = 0",
    "SELECT VERSION(), @@sql_mode, @@default_storage_engine, @@sql_auto_is_null, @@lower_case_table_names",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET  @@SESSION.sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'),  @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483",
    "SET NAMES utf8mb4,  @@SESSION.sql_mode = CONCAT(CONCAT(@@SESSION.sql_mode, ',STRICT_ALL_TABLES'), ',NO_AUTO_VALUE_ON_ZERO'),  @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483",
    "SHOW VARIABLES LIKE 'sql_mode'",
    "SHOW VARIABLES LIKE 'lower_case_table_names'",
    "SHOW VARIABLES LIKE 'aurora\\_version'",
    "SHOW VARIABLES LIKE 'character\\_set\\_%'",
    "SELECT CURRENT_USER(), USER(), CONNECTION_ID()",
    "select @@version_comment limit 1",
    "select USER()",
    "SELECT @@GLOBAL.sql_mode",
    "SHOW PLUGINS",
    "SHOW STATUS LIKE 'Ssl_cipher'",
    "SET SESSION sql_select_limit=DEFAULT",
    "SET SQL_SAFE_UPDATES=0",
    "SELECT 1",
    "SELECT 'x' AS `some label`",
    "ROLLBACK",
    "COMMIT",
    "SET net_write_timeout=600",
    "SET SESSION group_concat_max_len = 100000",
    "SET SESSION lock_wait_timeout = 30, innodb_lock_wait_timeout = 30",
];

/// What frameworks ask about tables.
const METADATA: &[&str] = &[
    "SHOW FULL TABLES",
    "SHOW FULL TABLES FROM `test` LIKE '%'",
    "SHOW FULL TABLES WHERE table_type = 'BASE TABLE'",
    "SHOW TABLES FROM information_schema",
    "SHOW FULL COLUMNS FROM `t` FROM `test` LIKE '%'",
    "SHOW CREATE TABLE `test`.`t`",
    "SHOW KEYS FROM `t` FROM `test`",
    "SHOW INDEX FROM t WHERE Key_name = 'PRIMARY'",
    "SHOW TABLE STATUS LIKE 't'",
    "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN ('mysql', 'information_schema')",
    "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = (DATABASE())",
    "SELECT column_name, data_type, CASE WHEN collation_name = 'utf8mb4_0900_ai_ci' THEN NULL ELSE collation_name END AS collation_name FROM information_schema.columns WHERE table_name = 't' AND table_schema = DATABASE()",
    "SELECT kc.constraint_name, kc.column_name, kc.referenced_table_name, kc.referenced_column_name FROM information_schema.key_column_usage AS kc WHERE kc.table_schema = DATABASE() AND kc.table_name = 't' ORDER BY kc.ordinal_position",
    "SELECT c.constraint_name, c.constraint_type FROM information_schema.table_constraints AS c WHERE c.table_schema = DATABASE() AND c.table_name = 't'",
    "SELECT engine FROM information_schema.engines WHERE support = 'DEFAULT'",
    "SELECT fk.referenced_table_name AS 'to_table', fk.referenced_column_name AS 'primary_key' FROM information_schema.key_column_usage fk JOIN information_schema.referential_constraints rc USING (constraint_schema, constraint_name) WHERE fk.referenced_column_name IS NOT NULL AND fk.table_schema = 'test' AND fk.table_name = 't' AND rc.constraint_schema = 'test' AND rc.table_name = 't'",
    "SELECT TABLE_SCHEMA AS TABLE_CAT, NULL AS TABLE_SCHEM, TABLE_NAME, NON_UNIQUE, NULL AS INDEX_QUALIFIER, INDEX_NAME, 3 AS TYPE, SEQ_IN_INDEX AS ORDINAL_POSITION, COLUMN_NAME, COLLATION AS ASC_OR_DESC, CARDINALITY, 0 AS PAGES, NULL AS FILTER_CONDITION FROM INFORMATION_SCHEMA.STATISTICS WHERE TABLE_SCHEMA = 'test' AND TABLE_NAME = 't' ORDER BY NON_UNIQUE, INDEX_NAME, SEQ_IN_INDEX",
    "SELECT TABLE_SCHEMA AS TABLE_CAT, NULL AS TABLE_SCHEM, TABLE_NAME, COLUMN_NAME, SEQ_IN_INDEX AS KEY_SEQ, 'PRIMARY' AS PK_NAME FROM INFORMATION_SCHEMA.STATISTICS WHERE TABLE_SCHEMA = 'test' AND TABLE_NAME = 't' AND INDEX_NAME='PRIMARY' ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX",
];

/// mariadb-dump 10.19 and mysqldump 8 dumping one table, as their servers' general logs show it.
const DUMPING: &[&str] = &[
    "/*!40100 SET @@SQL_MODE='' */",
    "/*!40103 SET TIME_ZONE='+00:00' */",
    "/*M!100100 SET @@MAX_STATEMENT_TIME=0.000000 */",
    "/*M!100100 SET WAIT_TIMEOUT=DEFAULT */",
    "/*!80000 SET SESSION information_schema_stats_expiry=0 */",
    "SET SESSION NET_READ_TIMEOUT= 86400, SESSION NET_WRITE_TIMEOUT= 86400",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "LOCK TABLES `t` READ /*!32311 LOCAL */",
    "START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */",
    "SHOW VARIABLES LIKE 'gtid\\_mode'",
    "SHOW VARIABLES LIKE 'ndbinfo\\_version'",
    "UNLOCK TABLES",
    "SELECT LOGFILE_GROUP_NAME, FILE_NAME, TOTAL_EXTENTS, INITIAL_SIZE, ENGINE, EXTRA FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'UNDO LOG' AND FILE_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IN ('test') GROUP BY LOGFILE_GROUP_NAME, FILE_NAME, ENGINE, TOTAL_EXTENTS, INITIAL_SIZE, EXTRA ORDER BY LOGFILE_GROUP_NAME",
    "SELECT DISTINCT TABLESPACE_NAME, FILE_NAME, LOGFILE_GROUP_NAME, EXTENT_SIZE, INITIAL_SIZE, ENGINE FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'DATAFILE' AND TABLESPACE_NAME IN ('test') ORDER BY TABLESPACE_NAME, LOGFILE_GROUP_NAME",
    "SHOW CREATE DATABASE IF NOT EXISTS `test`",
    "SAVEPOINT sp",
    "show tables",
    "show table status like 't'",
    "SHOW FULL TABLES LIKE 't'",
    "SET SQL_QUOTE_SHOW_CREATE=1",
    "SET SESSION character_set_results = 'binary'",
    "show create table `t`",
    "SET SESSION character_set_results = 'utf8mb4'",
    "show fields from `t`",
    "select column_name, extra, generation_expression, data_type from information_schema.columns where table_schema=database() and table_name='t' order by ordinal_position",
    "SELECT engine, table_type FROM INFORMATION_SCHEMA.TABLES WHERE table_schema = DATABASE() AND table_name = 't'",
    "SELECT TRIGGER_NAME FROM INFORMATION_SCHEMA.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE = 't'",
    "set optimizer_switch='semijoin=off'",
    "SELECT /*!40001 SQL_NO_CACHE */ `id`, `a` FROM `t`",
    "SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`",
    "set optimizer_switch=default",
    "use `test`",
    "select @@collation_database",
    "SHOW TRIGGERS LIKE 't'",
    "show events",
    "SHOW FUNCTION STATUS WHERE Db = 'test'",
    "SHOW PROCEDURE STATUS WHERE Db = 'test'",
    "ROLLBACK TO SAVEPOINT sp",
    "RELEASE SAVEPOINT sp",
];

/// The head and tail of a dump, read back.
const RELOADING: &[&str] = &[
    "/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */",
    "/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */",
    "/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */",
    "/*!40101 SET NAMES utf8mb4 */",
    "/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */",
    "/*!40103 SET TIME_ZONE='+00:00' */",
    "/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */",
    "/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */",
    "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */",
    "/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */",
    "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `test` /*!40100 DEFAULT CHARACTER SET latin1 COLLATE latin1_swedish_ci */",
    "USE `test`",
    "DROP TABLE IF EXISTS `t`",
    "/*!40101 SET @saved_cs_client     = @@character_set_client */",
    "/*!50503 SET character_set_client = utf8mb4 */",
    "CREATE TABLE `t` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `b` varchar(20) DEFAULT 'x',
  `c` timestamp NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(),
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci",
    "/*!40101 SET character_set_client = @saved_cs_client */",
    "LOCK TABLES `t` WRITE",
    "/*!40000 ALTER TABLE `t` DISABLE KEYS */",
    "INSERT INTO `t` VALUES\n(1,'a','2026-11-20 08:48:24'),\n(2,'b','2026-11-20 08:48:24')",
    "/*!40000 ALTER TABLE `t` ENABLE KEYS */",
    "UNLOCK TABLES",
    "/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */",
    "/*!40101 SET SQL_MODE=@OLD_SQL_MODE */",
    "/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */",
    "/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */",
    "/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */",
    "/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */",
    "/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */",
    "/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */",
];

/// Runs all, and tells all that failed.
fn run_all(list: &[&str]) {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(10), KEY (a))");
    t.ok("INSERT INTO t (a) VALUES ('x')");
    let mut failed = Vec::new();
    for sql in list {
        let (_, result) = t.collect(sql);
        if let Err(error) = result {
            failed.push(format!("{sql}\n    {error}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn drivers_connect() {
    run_all(CONNECTING);
}

#[test]
fn frameworks_look_at_tables() {
    run_all(METADATA);
}

#[test]
fn dumps_are_made() {
    run_all(DUMPING);
}

#[test]
fn dumps_are_read_back() {
    run_all(RELOADING);
}

#[test]
fn sysbench() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE sbtest1(
  id INTEGER NOT NULL AUTO_INCREMENT,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  PRIMARY KEY (id)
) /*! ENGINE = innodb */ ");
    t.expect(
        "INSERT INTO sbtest1(k, c, pad) VALUES(50, '08566691963-88624912351', '63188288836-92351140030'),(7, 'a', 'b'),(50, 'c', 'd')",
        &["OK 3"],
    );
    t.ok("CREATE INDEX k_1 ON sbtest1(k)");
    let point = t.prepare("SELECT c FROM sbtest1 WHERE id=?");
    let sum = t.prepare("SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?");
    let order = t.prepare("SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c");
    let distinct = t.prepare("SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c");
    let index = t.prepare("UPDATE sbtest1 SET k=k+1 WHERE id=?");
    let other = t.prepare("UPDATE sbtest1 SET c=? WHERE id=?");
    let delete = t.prepare("DELETE FROM sbtest1 WHERE id=?");
    let insert = t.prepare("INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)");
    let int = rauk_types::Value::Int;
    t.ok("BEGIN");
    assert_eq!(t.prepared(point.id, &[int(2)]), "a");
    assert_eq!(t.prepared(sum.id, &[int(1), int(3)]), "107");
    assert_eq!(t.prepared(order.id, &[int(2), int(3)]), "a\nc");
    assert_eq!(t.prepared(distinct.id, &[int(2), int(3)]), "a\nc");
    assert_eq!(t.prepared(index.id, &[int(2)]), "OK 1");
    assert_eq!(t.prepared(other.id, &["new".into(), int(3)]), "OK 1");
    assert_eq!(t.prepared(delete.id, &[int(1)]), "OK 1");
    assert_eq!(t.prepared(insert.id, &[int(1), int(5), "cc".into(), "pp".into()]), "OK 1");
    t.ok("COMMIT");
    t.expect("SELECT id, k, c FROM sbtest1 ORDER BY id", &["1|5|cc", "2|8|a", "3|50|new"]);
    t.ok("DROP TABLE IF EXISTS sbtest1");
}

#[test]
fn tpcc_new_order_and_payment() {
    let server = server();
    let mut t = server.session();
    for sql in [
        "CREATE TABLE warehouse (w_id SMALLINT NOT NULL, w_name VARCHAR(10), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2), PRIMARY KEY (w_id))",
        "CREATE TABLE district (d_id TINYINT NOT NULL, d_w_id SMALLINT NOT NULL, d_tax DECIMAL(4,4), d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id)) PARTITION BY KEY (d_w_id)",
        "CREATE TABLE customer (c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id SMALLINT NOT NULL, c_last VARCHAR(16), c_first VARCHAR(16), c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), c_data TEXT, PRIMARY KEY (c_w_id, c_d_id, c_id), KEY idx_customer (c_w_id, c_d_id, c_last, c_first)) PARTITION BY KEY (c_w_id)",
        "CREATE TABLE orders (o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id SMALLINT NOT NULL, o_c_id INT, o_entry_d DATETIME, o_ol_cnt TINYINT, PRIMARY KEY (o_w_id, o_d_id, o_id)) PARTITION BY KEY (o_w_id)",
        "CREATE TABLE stock (s_i_id INT NOT NULL, s_w_id SMALLINT NOT NULL, s_quantity SMALLINT, s_ytd DECIMAL(8,0), PRIMARY KEY (s_w_id, s_i_id)) PARTITION BY KEY (s_w_id)",
        "CREATE TABLE order_line (ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id SMALLINT NOT NULL, ol_number TINYINT NOT NULL, ol_i_id INT, ol_amount DECIMAL(6,2), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)) PARTITION BY KEY (ol_w_id)",
        "INSERT INTO warehouse VALUES (1, 'w', 0.1, 300000)",
        "INSERT INTO district VALUES (1, 1, 0.05, 30000, 3001)",
        "INSERT INTO customer VALUES (7, 1, 1, 'BARBAR', 'x', 0.2, -10, 'd'), (8, 1, 1, 'BARBAR', 'a', 0.2, -10, 'd')",
        "INSERT INTO stock VALUES (5, 1, 50, 0), (6, 1, 10, 0)",
    ] {
        t.ok(sql);
    }
    t.ok("START TRANSACTION");
    t.expect(
        "SELECT c_discount, c_last, w_tax FROM customer, warehouse WHERE w_id = 1 AND c_w_id = w_id AND c_d_id = 1 AND c_id = 7",
        &["0.2000|BARBAR|0.1000"],
    );
    t.expect("SELECT d_next_o_id, d_tax FROM district WHERE d_id = 1 AND d_w_id = 1 FOR UPDATE", &["3001|0.0500"]);
    t.expect("UPDATE district SET d_next_o_id = 3001 + 1 WHERE d_id = 1 AND d_w_id = 1", &["OK 1"]);
    t.expect(
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt) VALUES (3001, 1, 1, 7, NOW(), 2)",
        &["OK 1"],
    );
    t.expect("SELECT s_quantity FROM stock WHERE s_i_id = 5 AND s_w_id = 1 FOR UPDATE", &["50"]);
    t.expect("UPDATE stock SET s_quantity = 45, s_ytd = s_ytd + 5 WHERE s_i_id = 5 AND s_w_id = 1", &["OK 1"]);
    t.expect("INSERT INTO order_line VALUES (3001, 1, 1, 1, 5, 9.50), (3001, 1, 1, 2, 6, 0.25)", &["OK 2"]);
    t.ok("COMMIT");
    t.ok("START TRANSACTION");
    t.expect("UPDATE warehouse SET w_ytd = w_ytd + 12.34 WHERE w_id = 1", &["OK 1"]);
    t.expect("SELECT COUNT(c_id) namecnt FROM customer WHERE c_w_id = 1 AND c_d_id = 1 AND c_last = 'BARBAR'", &["2"]);
    t.expect(
        "SELECT c_id FROM customer WHERE c_w_id = 1 AND c_d_id = 1 AND c_last = 'BARBAR' ORDER BY c_first",
        &["8", "7"],
    );
    t.expect("UPDATE customer SET c_balance = c_balance - 12.34, c_data = CONCAT('h', c_data) WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 8", &["OK 1"]);
    t.ok("COMMIT");
    t.expect("SELECT SUM(ol_amount) FROM order_line WHERE ol_o_id = 3001 AND ol_d_id = 1 AND ol_w_id = 1", &["9.75"]);
    t.expect(
        "SELECT COUNT(DISTINCT (s_i_id)) FROM order_line, stock WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id < 3002 AND ol_o_id >= (3002 - 20) AND s_w_id = 1 AND s_i_id = ol_i_id AND s_quantity < 20",
        &["1"],
    );
    t.expect("SELECT w_ytd FROM warehouse", &["300012.34"]);
    t.expect("SELECT MAX(o_id) FROM orders WHERE o_w_id = 1 AND o_d_id = 1 AND o_c_id = 7", &["3001"]);
}
