//! SELECT … INTO OUTFILE and DUMPFILE, and LOAD DATA of what they wrote.

use super::loads::with_files;
use super::{Server, Test};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

struct Files {
    directory: tempfile::TempDir,
    _server: Server,
    t: Test,
}

fn files() -> Files {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, t) = with_files(directory.path());
    Files { directory, _server: server, t }
}

impl Files {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("files").join(name)
    }

    fn named(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// What a query writes with these options; the file is gone afterwards.
    #[track_caller]
    fn written(&mut self, select: &str, options: &str) -> String {
        let path = self.path("out");
        self.t.ok(&format!("{select} INTO OUTFILE '{}' {options}", path.display()));
        let bytes = std::fs::read(&path).expect("it is there");
        std::fs::remove_file(&path).expect("it is there");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("readable").next().is_none()
}

#[test]
fn rows_are_written_as_mysql_writes_them() {
    let mut f = files();
    f.t.ok("CREATE TABLE o (i INT, s VARCHAR(20), d DATE, n DECIMAL(5,2), b VARBINARY(5), e ENUM('x','y'))");
    f.t.ok("INSERT INTO o VALUES (1, 'a\\tb\\nc\\\\d', '2024-02-29', 1.5, x'00FF', 'y'), (NULL, NULL, NULL, NULL, NULL, NULL)");
    let select = "SELECT i, s, d, n, e FROM o ORDER BY i DESC";
    assert_eq!(f.written(select, ""), "1\ta\\\tb\\\nc\\\\d\t2024-02-29\t1.50\ty\n\\N\t\\N\t\\N\t\\N\t\\N\n");
    assert_eq!(
        f.written(
            select,
            "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES STARTING BY '>' TERMINATED BY '\\r\\n'"
        ),
        ">1,\"a\tb\nc\\\\d\",\"2024-02-29\",1.50,\"y\"\r\n>\\N,\\N,\\N,\\N,\\N\r\n"
    );
    assert_eq!(
        f.written("SELECT 1, 'a\"b,c'", "FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY '\"'"),
        "\"1\",\"a\"\"b,c\"\n"
    );
    assert_eq!(f.written("SELECT NULL, 'a,b'", "FIELDS TERMINATED BY ',' ESCAPED BY ''"), "NULL,a,b\n");
    assert_eq!(f.written("SELECT 1, 2", "FIELDS TERMINATED BY ',' LINES TERMINATED BY ''"), "1,2,");
    assert_eq!(f.written("SELECT 'ä€', 'x'", "CHARACTER SET latin1"), "\u{FFFD}\tx\n");
    assert_eq!(f.written("SELECT i FROM o WHERE i > 5", ""), "");
    let fixed = f.written("SELECT i, d FROM o ORDER BY i DESC", "FIELDS TERMINATED BY '' ENCLOSED BY ''");
    assert_eq!(fixed, format!("1{}2024-02-29\n{}\n", " ".repeat(10), " ".repeat(21)));
    f.t.expect("SELECT ROW_COUNT()", &["2"]);
    assert_eq!(f.written("SELECT 'x0y', 10", "FIELDS TERMINATED BY '0'"), "x0y010\n");
    f.t.expect("SELECT @@warning_count", &["1"]);
}

#[test]
fn files_are_new_and_whole_or_not_there() {
    let mut f = files();
    let (one, two) = (f.named("one"), f.named("two"));
    f.t.expect(&format!("SELECT 1 UNION SELECT 2 INTO OUTFILE '{one}'"), &["OK 2"]);
    f.t.error(&format!("SELECT 1 INTO OUTFILE '{one}'"), 1086, &format!("File '{one}' already exists"));
    f.t.error(&format!("SELECT 1 INTO DUMPFILE '{one}'"), 1086, &format!("File '{one}' already exists"));
    f.t.ok(&format!("SELECT 'a', x'00', NULL, 5 INTO DUMPFILE '{two}'"));
    assert_eq!(std::fs::read(f.path("two")).expect("it is there"), b"a\0\x005");
    std::fs::remove_file(f.path("one")).expect("it is there");
    std::fs::remove_file(f.path("two")).expect("it is there");
    f.t.code(&format!("SELECT 1 UNION SELECT 2 INTO DUMPFILE '{one}'"), 1172);
    f.t.code(&format!("SELECT (SELECT 1 UNION SELECT 2) INTO OUTFILE '{one}'"), 1242);
    f.t.code(&format!("SELECT a FROM nothing INTO OUTFILE '{one}'"), 1146);
    f.t.code(&format!("SELECT 1 INTO OUTFILE '{one}' FIELDS ESCAPED BY 'ab'"), 1083);
    f.t.code(&format!("SELECT 1 INTO OUTFILE '{one}' CHARACTER SET klingon"), 1115);
    f.t.code(&format!("SELECT 1 INTO OUTFILE '{one}/x'"), 1290);
    f.t.code("SELECT 1 INTO OUTFILE '/tmp/rauk-nowhere'", 1290);
    f.t.code("SELECT 1 INTO OUTFILE 'plain'", 1290);
    assert!(is_empty(&f.directory.path().join("files")));
    f.t.ok("CREATE TABLE big (a INT PRIMARY KEY, b VARCHAR(200))");
    let rows: Vec<String> = (0..20_000).map(|i| format!("({i}, REPEAT('x', 100))")).collect();
    f.t.ok(&format!("INSERT INTO big VALUES {}", rows.join(",")));
    f.t.ok(&format!("SELECT * FROM big ORDER BY a INTO OUTFILE '{one}'"));
    assert!(std::fs::metadata(f.path("one")).expect("it is there").len() > 2_000_000);
    f.t.ok("CREATE TABLE again LIKE big");
    f.t.expect(&format!("LOAD DATA INFILE '{one}' INTO TABLE again"), &["OK 20000"]);
    f.t.expect("SELECT COUNT(*), SUM(a), MIN(b) = MAX(b) FROM again", &["20000|199990000|1"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    /// What OUTFILE has written, LOAD DATA with the same options reads.
    #[test]
    fn rows_come_back(
        rows in proptest::collection::vec(
            (proptest::option::of("[a-cN,;\"'\\\\\t\n\r0-9é]{0,6}"), proptest::option::of(any::<i32>()), proptest::collection::vec(any::<u8>(), 0..6)),
            1..6,
        ),
        options in prop_oneof![
            Just(""),
            Just("FIELDS TERMINATED BY ',' ENCLOSED BY '\"'"),
            Just("FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'"),
            Just("FIELDS TERMINATED BY ',,' ESCAPED BY '!' LINES STARTING BY 'aa' TERMINATED BY ';;'"),
            Just("FIELDS TERMINATED BY ';' ENCLOSED BY '\\'' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n'"),
        ],
    ) {
        let mut f = files();
        f.t.ok("CREATE TABLE a (k INT PRIMARY KEY, s VARCHAR(20), i INT, b VARBINARY(20))");
        f.t.ok("CREATE TABLE c LIKE a");
        for (key, (text, number, bytes)) in rows.iter().enumerate() {
            let text = text.as_ref().map_or("NULL".to_string(), |text| {
                let hex: String = text.bytes().map(|b| format!("{b:02X}")).collect();
                format!("CONVERT(x'{hex}' USING utf8mb4)")
            });
            let hex: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
            let number = number.map_or("NULL".to_string(), |n| n.to_string());
            f.t.ok(&format!("INSERT INTO a VALUES ({key}, {text}, {number}, x'{hex}')"));
        }
        let path = f.named("rows");
        f.t.ok(&format!("SELECT * FROM a INTO OUTFILE '{path}' {options}"));
        f.t.ok(&format!("LOAD DATA INFILE '{path}' INTO TABLE c CHARACTER SET binary {options}"));
        let all = |table: &str| format!("SELECT k, HEX(s), i, HEX(b) FROM {table} ORDER BY k");
        let expected = f.t.run(&all("a"));
        prop_assert_eq!(f.t.run(&all("c")), expected);
    }
}
