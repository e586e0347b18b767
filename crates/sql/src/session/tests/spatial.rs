//! Spatial columns through a session: their definitions come back as they were, over a restart too, and transactions,
//! keys and prepared statements treat them as other bytes.

use super::*;

const TABLE: &str = "CREATE TABLE `places` (\n  `id` int NOT NULL,\n  `at` point NOT NULL /*!80003 SRID 4326 */,\n  `any` geometry DEFAULT NULL,\n  `plane` polygon /*!80003 SRID 0 */ DEFAULT NULL,\n  `many` geomcollection DEFAULT NULL,\n  PRIMARY KEY (`id`),\n  KEY `at` (`at`(25))\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci";

#[test]
fn a_definition_comes_back() {
    let disk = MemoryDisk::new();
    {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok(TABLE);
        t.expect("SHOW CREATE TABLE places", &[&format!("places|{TABLE}")]);
        t.ok("INSERT INTO places (id, at) VALUES (1, ST_GeomFromText('POINT(10 20)', 4326)), (2, ST_SRID(Point(5, 6), 4326))");
        t.code("INSERT INTO places (id, at) VALUES (3, Point(1, 1))", 3643);
        t.code("INSERT INTO places (id, at, plane) VALUES (3, ST_SRID(Point(5, 6), 4326), Point(1, 1))", 1416);
    }
    let server = server_on(disk);
    let mut t = server.session();
    t.expect("SHOW CREATE TABLE places", &[&format!("places|{TABLE}")]);
    t.expect(
        "SELECT id, ST_AsText(at), ST_Latitude(at) FROM places ORDER BY id",
        &["1|POINT(10 20)|10", "2|POINT(6 5)|6"],
    );
    t.code("UPDATE places SET at = Point(1, 1) WHERE id = 1", 3643);
    t.expect("SELECT id FROM places WHERE at = ST_GeomFromText('POINT(10 20)', 4326)", &["1"]);
}

#[test]
fn a_transaction_sees_its_own_geometries() {
    let server = server();
    let (mut a, mut b) = (server.session(), server.session());
    a.ok(
        "CREATE TABLE t (id INT PRIMARY KEY, p POINT NOT NULL, x DOUBLE AS (ST_X(p)) STORED, UNIQUE KEY (p), KEY (x))",
    );
    a.ok("INSERT INTO t (id, p) VALUES (1, Point(1, 1)), (2, Point(2, 2))");
    a.ok("BEGIN");
    a.ok("UPDATE t SET p = Point(9, 9) WHERE id = 1");
    a.expect("SELECT id FROM t WHERE x = 9", &["1"]);
    b.expect("SELECT id, x FROM t WHERE p = Point(1, 1)", &["1|1"]);
    a.ok("ROLLBACK");
    a.expect("SELECT id FROM t WHERE x = 9", &[]);
    a.code("INSERT INTO t (id, p) VALUES (3, Point(2, 2))", 1062);
    a.ok("PREPARE s FROM 'SELECT id FROM t WHERE p = ? AND ST_Distance(p, ?) < 1'");
    a.ok("SET @p = Point(2, 2)");
    a.expect("EXECUTE s USING @p, @p", &["2"]);
}

/// The dumps of mysqldump and mariadb-dump write the bytes of a geometry, as a text or in hexadecimal.
#[test]
fn a_dump_is_read() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE d (id INT PRIMARY KEY, g GEOMETRY)");
    t.ok("INSERT INTO d VALUES (1, 0x000000000101000000000000000000F03F0000000000000040)");
    // The text of a point at (2, 0): no byte of it is beyond ASCII.
    t.ok(r"INSERT INTO d VALUES (2, _binary '\0\0\0\0\Z\0\0\0\0\0\0\0\0\0\0@\0\0\0\0\0\0\0\0')"
        .replace(r"\Z", "\u{1}\u{1}")
        .as_str());
    t.code(r"INSERT INTO d VALUES (3, _binary '\0\0\0\0\0')", 1416);
    t.expect("SELECT id, ST_AsText(g) FROM d ORDER BY id", &["1|POINT(1 2)", "2|POINT(2 0)"]);
}
