//! PARTITION BY RANGE … INTERVAL …: partitions that come and go with time. The clock stands at 2024-02-29 12:34:56 UTC, a Thursday.

use super::{Server, Test, server, server_on};
use crate::session::intervals::Failures;
use rauk_log::MemoryDisk;
use rauk_node::block_on;
use std::sync::atomic::Ordering;

const DAY: i64 = 86_400_000_000;

/// Name and bound of each partition, as `p|'2024-03-01'`.
fn partitions(t: &mut Test, table: &str) -> Vec<String> {
    let sql = format!(
        "SELECT partition_name, partition_description FROM information_schema.partitions WHERE table_name = '{table}' \
         AND COALESCE(subpartition_ordinal_position, 1) = 1 ORDER BY partition_ordinal_position"
    );
    t.run(&sql).lines().map(str::to_string).collect()
}

fn names(t: &mut Test, table: &str) -> Vec<String> {
    partitions(t, table).iter().map(|line| line.split('|').next().unwrap_or_default().to_string()).collect()
}

fn shown(t: &mut Test, table: &str) -> String {
    let (sink, result) = t.collect(&format!("SHOW CREATE TABLE {table}"));
    result.unwrap_or_else(|error| panic!("{table}: {error}"));
    sink.last().and_then(|result| result.text(0, 1)).expect("a text")
}

impl Server {
    fn passes(&self, micros: i64) {
        self.clock.fetch_add(micros, Ordering::Relaxed);
    }

    /// How many tables have been changed.
    fn apply_intervals(&self) -> usize {
        block_on(self.engine.apply_intervals(&mut Failures::default())).len()
    }
}

#[test]
fn a_table_begins_with_what_is_due() {
    let disk = MemoryDisk::new();
    let text = {
        let server = server_on(disk.clone());
        let mut t = server.session();
        t.ok("CREATE TABLE e (d DATE NOT NULL, n INT) PARTITION BY RANGE COLUMNS (d) INTERVAL 1 DAY RETAIN 30 DAY");
        assert_eq!(
            partitions(&mut t, "e"),
            ["p20240229|'2024-03-01'", "p20240301|'2024-03-02'", "p20240302|'2024-03-03'"]
        );
        t.ok("INSERT INTO e VALUES ('2024-02-01', 1), ('2024-02-29', 2), ('2024-03-02', 3)");
        t.code("INSERT INTO e VALUES ('2024-03-03', 4)", 1526);
        t.expect("SELECT n FROM e PARTITION (p20240229) ORDER BY n", &["1", "2"]);
        let text = shown(&mut t, "e");
        assert!(text.ends_with(" */\n/*!990001 INTERVAL 1 DAY RETAIN 30 DAY */"), "{text}");
        t.ok("RENAME TABLE e TO before_it");
        t.ok(&text);
        assert_eq!(shown(&mut t, "e"), text);
        t.ok("CREATE TABLE alike LIKE e");
        assert_eq!(shown(&mut t, "alike"), text.replace("`e`", "`alike`"));
        text
    };
    let server = server_on(disk);
    assert_eq!(shown(&mut server.session(), "e"), text, "after a restart");
}

#[test]
fn every_time_that_can_divide_rows() {
    let server = server();
    let mut t = server.session();
    let columns = "d DATE NOT NULL, dt DATETIME NOT NULL, ts TIMESTAMP NOT NULL, n INT";
    let cases: &[(&str, &[(&str, &str)])] = &[
        (
            "RANGE (TO_DAYS(d)) INTERVAL 1 WEEK",
            &[
                ("p20240226", "TO_DAYS('2024-03-04')"),
                ("p20240304", "TO_DAYS('2024-03-11')"),
                ("p20240311", "TO_DAYS('2024-03-18')"),
            ],
        ),
        (
            "RANGE COLUMNS (dt) INTERVAL 1 MONTH",
            &[
                ("p202402", "QUOTE('2024-03-01 00:00:00')"),
                ("p202403", "QUOTE('2024-04-01 00:00:00')"),
                ("p202404", "QUOTE('2024-05-01 00:00:00')"),
            ],
        ),
        ("RANGE (YEAR(d)) INTERVAL 1 YEAR", &[("p2024", "2025"), ("p2025", "2026"), ("p2026", "2027")]),
        (
            "RANGE (UNIX_TIMESTAMP(ts)) INTERVAL 6 HOUR",
            &[
                ("p2024022912", "UNIX_TIMESTAMP('2024-02-29 18:00:00')"),
                ("p2024022918", "UNIX_TIMESTAMP('2024-03-01 00:00:00')"),
                ("p2024030100", "UNIX_TIMESTAMP('2024-03-01 06:00:00')"),
            ],
        ),
        (
            "RANGE (TO_SECONDS(dt)) INTERVAL 30 MINUTE",
            &[
                ("p202402291234", "TO_SECONDS('2024-02-29 13:04:00')"),
                ("p202402291304", "TO_SECONDS('2024-02-29 13:34:00')"),
                ("p202402291334", "TO_SECONDS('2024-02-29 14:04:00')"),
            ],
        ),
        (
            "RANGE (TO_DAYS(d)) INTERVAL 1 QUARTER SUBPARTITION BY HASH (n) SUBPARTITIONS 2",
            &[
                ("p202401", "TO_DAYS('2024-04-01')"),
                ("p202404", "TO_DAYS('2024-07-01')"),
                ("p202407", "TO_DAYS('2024-10-01')"),
            ],
        ),
        // From the end of a month the next ones are on the first.
        (
            "RANGE COLUMNS (d) INTERVAL 1 MONTH (PARTITION p0 VALUES LESS THAN ('2024-01-31'))",
            &[
                ("p0", "QUOTE('2024-01-31')"),
                ("p202401", "QUOTE('2024-03-01')"),
                ("p202403", "QUOTE('2024-04-01')"),
                ("p202404", "QUOTE('2024-05-01')"),
            ],
        ),
        // Behind what is written, and by other names than those that are there.
        (
            "RANGE COLUMNS (d) (PARTITION P20240301 VALUES LESS THAN ('2024-03-01')) INTERVAL 2 DAY",
            &[
                ("P20240301", "QUOTE('2024-03-01')"),
                ("p20240301_2", "QUOTE('2024-03-03')"),
                ("p20240303", "QUOTE('2024-03-05')"),
            ],
        ),
    ];
    for (clause, expected) in cases {
        t.ok("DROP TABLE IF EXISTS x");
        t.ok(&format!("CREATE TABLE x ({columns}) PARTITION BY {clause}"));
        let expected: Vec<String> =
            expected.iter().map(|(name, bound)| t.run(&format!("SELECT '{name}', {bound}"))).collect();
        assert_eq!(partitions(&mut t, "x"), expected, "{clause}");
        t.ok("INSERT INTO x VALUES ('2024-02-29', '2024-02-29 12:34:56', '2024-02-29 12:34:56', 1)");
        let text = shown(&mut t, "x");
        t.ok("DROP TABLE x");
        t.ok(&text);
        assert_eq!(shown(&mut t, "x"), text);
    }
}

#[test]
fn days_begin_where_the_session_is() {
    let server = server();
    let mut t = server.session();
    t.ok("SET time_zone = '+14:00'");
    // There it is 2 o'clock of the next day.
    t.ok("CREATE TABLE e (ts TIMESTAMP NOT NULL) PARTITION BY RANGE (UNIX_TIMESTAMP(ts)) INTERVAL 1 DAY");
    let expected = t.run("SELECT 'p20240301', UNIX_TIMESTAMP('2024-03-02 00:00:00')");
    assert_eq!(partitions(&mut t, "e")[0], expected);
    // The server goes on from there in the global time zone: bounds stay a day apart.
    server.passes(DAY);
    assert_eq!(server.apply_intervals(), 1);
    let bounds = "SELECT MAX(0 + partition_description) - MIN(0 + partition_description), COUNT(*) \
                  FROM information_schema.partitions WHERE table_name = 'e'";
    let found = t.run(bounds);
    let (apart, count) = found.split_once('|').expect("two columns");
    let (apart, count): (f64, f64) = (apart.parse().unwrap(), count.parse().unwrap());
    assert!(count >= 3.0 && apart == (count - 1.0) * 86_400.0, "{found}");
}

#[test]
fn time_passes() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE e (d DATE NOT NULL, n INT, PRIMARY KEY (n, d), KEY (n)) \
          PARTITION BY RANGE COLUMNS (d) INTERVAL 1 DAY RETAIN 3 DAY");
    t.ok("CREATE TABLE keeps (d DATE NOT NULL) PARTITION BY RANGE COLUMNS (d) INTERVAL 1 WEEK");
    t.ok("CREATE TABLE other (d DATE NOT NULL) PARTITION BY RANGE COLUMNS (d) (PARTITION p VALUES LESS THAN ('2000-01-01'))");
    assert_eq!(server.apply_intervals(), 0, "nothing is due");
    t.ok("INSERT INTO e VALUES ('2024-02-29', 1), ('2024-03-01', 2), ('2024-03-02', 3)");
    server.passes(DAY);
    assert_eq!(server.apply_intervals(), 1);
    assert_eq!(names(&mut t, "e"), ["p20240229", "p20240301", "p20240302", "p20240303"]);
    // On 3 March the 29th of February is over for two days and a half.
    server.passes(2 * DAY);
    server.apply_intervals();
    t.expect("SELECT n FROM e ORDER BY n", &["1", "2", "3"]);
    server.passes(DAY);
    server.apply_intervals();
    assert_eq!(names(&mut t, "e")[0], "p20240301");
    t.expect("SELECT n FROM e ORDER BY n", &["2", "3"]);
    t.expect("SELECT n FROM e WHERE n > 0 ORDER BY n", &["2", "3"]);
    // The server stands still for forty days: what would go at once is not made, and the next partition has that time.
    server.passes(40 * DAY);
    assert_eq!(server.apply_intervals(), 2);
    t.expect("SELECT COUNT(*) FROM e", &["0"]);
    let days: Vec<String> = partitions(&mut t, "e");
    assert_eq!(days[0], "p20240410|'2024-04-11'");
    assert_eq!(days.last().unwrap(), "p20240415|'2024-04-16'");
    assert_eq!(days.len(), 6);
    t.ok("INSERT INTO e VALUES ('2024-03-20', 9)");
    t.expect("SELECT n FROM e PARTITION (p20240410)", &["9"]);
    assert_eq!(names(&mut t, "keeps").len(), 9, "without RETAIN all stay");
    assert_eq!(names(&mut t, "other").len(), 1);
    t.expect("SELECT COUNT(*) > 0 FROM rauk.events WHERE what LIKE 'test.e: partitions dropped%p20240229'", &["1"]);
}

#[test]
fn what_reaches_far_is_left_alone() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE e (d DATE NOT NULL) PARTITION BY RANGE COLUMNS (d) INTERVAL 1 YEAR RETAIN 1 DAY \
          (PARTITION old VALUES LESS THAN ('1999-01-01'), PARTITION p VALUES LESS THAN ('2100-01-01'))");
    assert_eq!(names(&mut t, "e"), ["old", "p"], "what reaches far enough gets nothing behind it");
    t.ok("ALTER TABLE e APPLY INTERVAL");
    assert_eq!(names(&mut t, "e"), ["p"]);
    server.passes(80 * 365 * DAY);
    server.apply_intervals();
    assert_eq!(names(&mut t, "e"), ["p2104", "p2105", "p2106"]);
}

#[test]
fn an_interval_is_changed() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE e (d DATE NOT NULL, n INT) PARTITION BY RANGE COLUMNS (d) \
          (PARTITION a VALUES LESS THAN ('2024-01-01'), PARTITION b VALUES LESS THAN ('2024-02-20'))");
    t.ok("INSERT INTO e VALUES ('2023-12-31', 1), ('2024-02-19', 2)");
    t.ok("ALTER TABLE e INTERVAL 1 MONTH");
    assert_eq!(names(&mut t, "e"), ["a", "b", "p202402", "p202403", "p202404"]);
    t.expect("SELECT n FROM e ORDER BY n", &["1", "2"]);
    // RETAIN drops at once.
    t.ok("ALTER TABLE e INTERVAL 1 WEEK RETAIN 20 DAY");
    assert_eq!(names(&mut t, "e"), ["b", "p202402", "p202403", "p202404"]);
    t.expect("SELECT n FROM e", &["2"]);
    // Whatever else is changed, it stays.
    t.ok("ALTER TABLE e ADD COLUMN c INT, ADD KEY (c)");
    t.ok("ALTER TABLE e DROP PARTITION p202404");
    t.ok("ALTER TABLE e REORGANIZE PARTITION b INTO (PARTITION b1 VALUES LESS THAN ('2024-02-01'), \
          PARTITION b2 VALUES LESS THAN ('2024-02-20'))");
    t.ok("ALTER TABLE e MODIFY n BIGINT");
    assert!(shown(&mut t, "e").ends_with("/*!990001 INTERVAL 1 WEEK RETAIN 20 DAY */"));
    assert_eq!(names(&mut t, "e"), ["b1", "b2", "p202402", "p202403"], "only APPLY and time make partitions");
    t.ok("ALTER TABLE e APPLY INTERVAL");
    assert_eq!(names(&mut t, "e"), ["b2", "p202402", "p202403"]);
    t.ok("ALTER TABLE e REMOVE INTERVAL");
    assert!(!shown(&mut t, "e").contains("INTERVAL"));
    server.passes(400 * DAY);
    assert_eq!(server.apply_intervals(), 0);
    t.ok("ALTER TABLE e PARTITION BY RANGE (TO_DAYS(d)) INTERVAL 1 YEAR");
    assert_eq!(names(&mut t, "e"), ["p2025", "p2026", "p2027"]);
    t.expect("SELECT n FROM e PARTITION (p2025)", &["2"]);
    t.ok("ALTER TABLE e REMOVE PARTITIONING");
    assert!(!shown(&mut t, "e").contains("INTERVAL"));
    t.expect("SELECT n FROM e", &["2"]);
}

#[test]
fn what_is_wrong() {
    let server = server();
    let mut t = server.session();
    let columns = "d DATE NOT NULL, dt DATETIME NOT NULL, ts TIMESTAMP NOT NULL, n INT";
    for (clause, code) in [
        ("HASH (n) INTERVAL 1 DAY PARTITIONS 4", 1221),
        ("KEY (n) INTERVAL 1 DAY", 1221),
        ("LIST (n) INTERVAL 1 DAY (PARTITION p VALUES IN (1))", 1221),
        ("RANGE (n) INTERVAL 1 DAY", 1221),
        ("RANGE (MONTH(d)) INTERVAL 1 MONTH", 1221),
        ("RANGE (TO_DAYS(d) + 1) INTERVAL 1 DAY", 1221),
        ("RANGE COLUMNS (n) INTERVAL 1 DAY", 1221),
        ("RANGE COLUMNS (d, dt) INTERVAL 1 DAY", 1221),
        ("RANGE COLUMNS (d) INTERVAL 1 HOUR", 1221),
        ("RANGE COLUMNS (d) INTERVAL 1 DAY RETAIN 60 MINUTE", 1221),
        ("RANGE (YEAR(d)) INTERVAL 1 MONTH", 1221),
        ("RANGE COLUMNS (d) INTERVAL 1 DAY (PARTITION p VALUES LESS THAN (MAXVALUE))", 1221),
        ("RANGE (TO_DAYS(d)) INTERVAL 1 DAY (PARTITION p VALUES LESS THAN (-1))", 1221),
        ("RANGE COLUMNS (d) INTERVAL 1 DAY PARTITIONS 3", 1492),
        ("RANGE COLUMNS (d) INTERVAL 0 DAY", 1064),
        ("RANGE COLUMNS (d) INTERVAL -1 DAY", 1064),
        ("RANGE COLUMNS (d) INTERVAL 10000001 DAY", 1064),
        ("RANGE COLUMNS (d) INTERVAL 1 SECOND", 1064),
        ("RANGE COLUMNS (d) INTERVAL 1 DAY_HOUR", 1064),
        ("RANGE COLUMNS (d) RETAIN 1 DAY", 1064),
        ("RANGE COLUMNS (d) INTERVAL 1 DAY INTERVAL 1 DAY", 1064),
        ("RANGE COLUMNS (d) INTERVAL 9000 YEAR", 1441),
        ("RANGE COLUMNS (dt) INTERVAL 1 MINUTE (PARTITION p VALUES LESS THAN ('2024-01-01'))", 1499),
    ] {
        t.code(&format!("CREATE TABLE x ({columns}) PARTITION BY {clause}"), code);
    }
    t.ok(&format!("CREATE TABLE plain ({columns})"));
    for operation in ["INTERVAL 1 DAY", "REMOVE INTERVAL", "APPLY INTERVAL"] {
        t.code(&format!("ALTER TABLE plain {operation}"), 1505);
    }
    t.code("CREATE TEMPORARY TABLE x (d DATE) PARTITION BY RANGE COLUMNS (d) INTERVAL 1 DAY", 1562);
    t.ok("CREATE TABLE x (d DATE) PARTITION BY RANGE COLUMNS (d) (PARTITION p VALUES LESS THAN ('2024-02-01'))");
    t.error("ALTER TABLE x REMOVE INTERVAL", 1221, "Incorrect usage of REMOVE INTERVAL and a table without INTERVAL");
    t.error("ALTER TABLE x APPLY INTERVAL", 1221, "Incorrect usage of APPLY INTERVAL and a table without INTERVAL");
    t.ok("ALTER TABLE x INTERVAL 1 MONTH");
    let before = shown(&mut t, "x");
    t.code("ALTER TABLE x ADD PARTITION (PARTITION q VALUES LESS THAN (MAXVALUE))", 1221);
    t.code("ALTER TABLE x INTERVAL 1 HOUR", 1221);
    t.code("ALTER TABLE x INTERVAL 1 DAY, ADD COLUMN c INT", 1064);
    assert_eq!(shown(&mut t, "x"), before);
}

#[test]
fn what_fails_is_told_once() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE e (dt DATETIME NOT NULL) PARTITION BY RANGE COLUMNS (dt) INTERVAL 1 MINUTE");
    t.ok("CREATE TABLE good (d DATE NOT NULL) PARTITION BY RANGE COLUMNS (d) INTERVAL 1 DAY");
    server.passes(10 * DAY);
    let mut failures = Failures::default();
    // The one does not keep the other from its partitions.
    assert_eq!(block_on(server.engine.apply_intervals(&mut failures)).len(), 1);
    assert_eq!(block_on(server.engine.apply_intervals(&mut failures)).len(), 0);
    let told = "SELECT what FROM rauk.events WHERE what LIKE 'partitions of test.e are due%'";
    let text = t.run(told);
    assert!(text.contains("Too many partitions") && text.lines().count() == 1, "{text}");
    t.ok("ALTER TABLE e INTERVAL 1 HOUR RETAIN 1 DAY");
    assert_eq!(block_on(server.engine.apply_intervals(&mut failures)).len(), 0, "nothing is due any more");
}

/// FLUSH TABLES WITH READ LOCK and LOCK INSTANCE FOR BACKUP keep partitions as they are, too.
#[test]
fn what_is_locked_is_tried_again() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE e (d DATE NOT NULL) PARTITION BY RANGE COLUMNS (d) INTERVAL 1 DAY RETAIN 1 DAY");
    server.passes(3 * DAY);
    let before = names(&mut t, "e");
    let changed = std::thread::scope(|scope| {
        t.ok("LOCK INSTANCE FOR BACKUP");
        let applying = scope.spawn(|| server.apply_intervals());
        // That it waits is only seen by its not ending.
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!applying.is_finished());
        assert_eq!(names(&mut t, "e"), before);
        t.ok("UNLOCK INSTANCE");
        applying.join().expect("it ends")
    });
    assert_eq!(changed, 1);
    assert_ne!(names(&mut t, "e"), before);
}

#[test]
fn a_server_that_is_read_only_changes_nothing() {
    let server = server();
    let mut t = server.session();
    t.ok("CREATE TABLE e (d DATE NOT NULL) PARTITION BY RANGE COLUMNS (d) INTERVAL 1 DAY RETAIN 1 DAY");
    server.passes(3 * DAY);
    t.ok("SET GLOBAL super_read_only = ON");
    assert_eq!(server.apply_intervals(), 0);
    t.ok("SET GLOBAL super_read_only = OFF");
    assert_eq!(server.apply_intervals(), 1);
}
