//! `rauk import` on a real server: formats, wrong files, bad lines, kills of either side in the middle, full memory.

use crate::common::{Rauk, number, rauk_command, run};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub struct Place {
    pub data: tempfile::TempDir,
    files: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place { data: tempfile::tempdir().expect("a directory"), files: tempfile::tempdir().expect("a directory") }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.files.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }
}

pub fn tool(port: u16, name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    command.args([name, "-P", &port.to_string()]).args(arguments).env_remove("MYSQL_PWD").stdin(Stdio::null());
    command
}

fn import(port: u16, file: &Path, arguments: &[&str]) -> Output {
    let mut command = tool(port, "import", arguments);
    command.arg("--").arg(file).output().expect("rauk runs")
}

/// Standard output of an import that succeeds.
pub fn imported(port: u16, file: &Path, arguments: &[&str]) -> String {
    let output = import(port, file, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The one line of an import that fails.
pub fn refused(port: u16, file: &Path, arguments: &[&str]) -> String {
    let output = import(port, file, arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("rauk: ")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    lines[0].into()
}

pub fn execute(client: &mut Conn, statements: &[&str]) {
    for sql in statements {
        client.query_drop(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

fn tables(client: &mut Conn) -> Vec<String> {
    run(client, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd' ORDER BY 1")
}

/// Waits until a number is at least so large.
fn wait_until(client: &mut Conn, sql: &str, least: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found: Result<Option<u64>, _> = client.query_first(sql);
        if matches!(found, Ok(Some(n)) if n >= least) {
            return;
        }
        assert!(Instant::now() < deadline, "{sql}: {found:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn three_formats_give_the_same_rows() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    let mut client = rauk.connect();
    execute(&mut client, &["CREATE DATABASE d", "USE d"]);
    let csv = "id,Name,n,b,j,day\r\n1,\"a, \"\"b\"\"\nc\",1.50,0x00FF,\"{\"\"a\"\": [1]}\",2026-11-29\r\n2,\\N,\\N,\\N,\\N,\\N\r\n3,\"\\N\",0,,null,2026-01-01\r\n";
    let tsv = "id\tName\tn\tb\tj\tday\n1\ta, \"b\"\\nc\t1.50\t00ff\t{\"a\": [1]}\t2026-11-29\n2\t\\N\t\\N\t\\N\t\\N\t\\N\n3\t\\\\N\t0\t\tnull\t2026-01-01\n";
    let jsonl = "{\"day\":\"2026-11-29\",\"id\":1,\"name\":\"a, \\\"b\\\"\\nc\",\"n\":1.50,\"b\":\"00FF\",\"j\":{\"a\": [1]}}\n\n{\"id\":2}\n";
    for (name, text) in [("a.csv", csv), ("b.tsv", tsv), ("c.jsonl", jsonl)] {
        let table = &name[..1];
        execute(
            &mut client,
            &[&format!(
                "CREATE TABLE {table} (id INT PRIMARY KEY, name VARCHAR(20), n DECIMAL(5,2), b VARBINARY(8), j JSON, day DATE)"
            )],
        );
        let said = imported(rauk.port, &place.write(name, text), &["--database", "d"]);
        assert!(said.contains(&format!("rows into d.{table}")), "{said}");
        let rows = run(&mut client, &format!("SELECT id, name, n, HEX(b), j, day FROM {table} ORDER BY id"));
        let wanted = [
            "1 | a, \"b\"\nc | 1.50 | 00FF | {\"a\": [1]} | 2026-11-29",
            "2 | NULL | NULL | NULL | NULL | NULL",
            "3 | \\N | 0.00 |  | null | 2026-01-01",
        ];
        assert_eq!(rows, wanted[..rows.len()], "{name}");
        assert_eq!(rows.len(), if table == "c" { 2 } else { 3 });
    }
    assert_eq!(tables(&mut client), ["a", "b", "c"], "progress is gone");
    // A dash in the place of a member leaves nothing out and does no harm.
    imported(rauk.port, &place.write("more.jsonl", "{\"id\":9,\"x\":1}\n"), &["--table", "d.c", "--columns", "id,-"]);
    assert_eq!(run(&mut client, "SELECT id, name FROM c WHERE id = 9"), ["9 | NULL"]);

    // A table that is made for the file, other delimiters, no header, NULL as an empty field, columns left out.
    let path = place.write("x", "7;x;1.25;2026-11-29 01:02:03\n8;;2;\n");
    let said = imported(
        rauk.port,
        &path,
        &[
            "--table",
            "d.made",
            "--format",
            "csv",
            "--delimiter",
            ";",
            "--no-header",
            "--columns",
            "k,-,v,t",
            "--null",
            "",
            "--create",
        ],
    );
    assert!(said.contains("CREATE TABLE `d`.`made` (`k` BIGINT, `v` DECIMAL(22,2), `t` DATETIME(6))"), "{said}");
    assert_eq!(
        run(&mut client, "SELECT * FROM made ORDER BY k"),
        ["7 | 1.25 | 2026-11-29 01:02:03.000000", "8 | 2.00 | NULL"]
    );

    // A directory: a table for each file.
    execute(&mut client, &["DELETE FROM a", "DELETE FROM b"]);
    let directory = place.path("all");
    std::fs::create_dir(&directory).expect("made");
    std::fs::write(directory.join("d.a.csv"), csv).expect("written");
    std::fs::write(directory.join("b.tsv"), tsv).expect("written");
    imported(rauk.port, &directory, &["-D", "d"]);
    assert_eq!((number(&mut client, "SELECT COUNT(*) FROM a"), number(&mut client, "SELECT COUNT(*) FROM b")), (3, 3));
}

#[test]
fn wrong_files_are_refused_before_anything_is_stored() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    let mut client = rauk.connect();
    execute(
        &mut client,
        &[
            "CREATE DATABASE d",
            "USE d",
            "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(5) NOT NULL, twice INT AS (id * 2))",
        ],
    );
    let told = |text: &[u8], arguments: &[&str]| {
        refused(rauk.port, &place.write("t.csv", text), &[&["--table", "d.t"], arguments].concat())
    };
    assert!(told(b"id,nmae\n1,a\n", &[]).contains("no column 'nmae'; did you mean 'name'?"));
    assert!(told(b"id,name,twice\n1,a,2\n", &[]).contains("generated"));
    assert!(told(b"id,name,ID\n", &[]).contains("twice"));
    assert!(told(b"", &[]).contains("empty"));
    assert!(told(b"\xFF\xFEi\0", &[]).contains("UTF-16"));
    let line = refused(rauk.port, &place.write("t.csv", "id\n"), &["--table", "d.tt"]);
    assert!(line.contains("there is no table d.tt; did you mean 't'?") || line.contains("--create"), "{line}");
    let line = refused(rauk.port, &place.write("t.csv", "id\n"), &["--table", "dd.t"]);
    assert!(line.contains("there is no database 'dd'"), "{line}");
    let line = refused(rauk.port, &place.write("t.csv", "id\n"), &[]);
    assert!(line.contains("of which database is table 't'?"), "{line}");
    let line = refused(rauk.port, &place.path("none.csv"), &["--table", "d.t"]);
    assert!(line.contains("none.csv"), "{line}");
    assert_eq!(tables(&mut client), ["t"]);

    // Bad lines: the first one ends the import, with its place and cause.
    let bad = |text: &[u8], wanted: &[&str]| {
        let line = refused(rauk.port, &place.write("t.csv", text), &["--table", "d.t", "--restart"]);
        for part in wanted {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    };
    bad(b"id,name\n1,a\n2,b\n3", &["t.csv:4: too few fields: 1, and 2 are wanted", "is it cut off?", "--rejects"]);
    bad(b"id,name\n1,a,\n", &["t.csv:2: too many fields: 3, and 2 are wanted"]);
    bad(b"id,name\n1,\"\n\"\n2,\xE4\n", &["t.csv:4: column 'name': byte 0xE4 is not UTF-8"]);
    bad(b"id,name\n1,\"a\n2,b\n", &["t.csv:2: a quote begins here that is not closed"]);
    bad(b"id,name\n1,\"a\"b\n", &["t.csv:2: column 'name': field 2: there is text behind its closing quote"]);
    bad(b"id,name\n1,a\n2,abcdef\n3,x,y\n", &["t.csv:3: ERROR 1406", "'name'"]);
    bad(b"id,name\n1,a\n2,b\nx,c\n", &["t.csv:4: ERROR 1366", "'id'"]);
    bad(b"id,name\n1,a\n2,b\n1,c\n", &["t.csv:4: ERROR 1062"]);
    bad(b"id,name\n1,\\N\n", &["t.csv:2: ERROR 1048"]);
    bad(b"id\n1\n", &["t.csv:2: ERROR 1364"]);
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM t"), 0, "nothing of their batches is there");
}

#[test]
fn bad_lines_are_written_aside() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    let mut client = rauk.connect();
    execute(
        &mut client,
        &["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(6) NOT NULL)"],
    );
    let mut text = String::from("id,name\n");
    let mut wanted = Vec::new();
    for id in 1..=20_000 {
        match id % 1000 {
            7 => text += &format!("{id},far too long\n"),
            8 => text += &format!("{id}\n"),
            // Near the row that it repeats: of two in different batches either may come first.
            9 => text += &format!("{},again\n", id - 4),
            _ => {
                text += &format!("{id},n{id}\n");
                continue;
            }
        }
        wanted.push((id + 1).to_string());
    }
    let path = place.write("t.csv", &text);
    let rejects = place.path("bad.csv");
    let rejects_flag = rejects.display().to_string();
    let with = ["--table", "d.t", "--rejects", &rejects_flag];
    let said = imported(rauk.port, &path, &with);
    assert!(said.contains("19 940 rows into d.t") && said.contains("60 bad lines"), "{said}");
    let mut reader = csv::Reader::from_path(&rejects).expect("readable");
    let mut lines: Vec<(u64, String, String)> = reader
        .records()
        .map(|r| r.expect("readable"))
        .map(|r| (r[1].parse().expect("a number"), r[2].to_string(), r[3].to_string()))
        .collect();
    lines.sort();
    assert_eq!(lines.iter().map(|(line, ..)| line.to_string()).collect::<Vec<_>>(), wanted);
    assert!(lines[0].1.contains("1406") && lines[0].2 == "7,far too long", "{:?}", lines[0]);
    assert!(lines[1].1.contains("too few fields") && lines[2].1.contains("1062"), "{lines:?}");
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM t"), 19_940);
    assert_eq!(tables(&mut client), ["t"]);

    // The file of an import that has ended is not overwritten.
    assert!(refused(rauk.port, &path, &with).contains("exists"));
    let other = place.path("other.csv").display().to_string();
    let line = refused(rauk.port, &path, &["--table", "d.t", "--restart", "--rejects", &other, "--max-rejects", "5"]);
    assert!(line.contains("more than 5 bad lines (--max-rejects); "), "{line}");

    // What becomes of rows that are there.
    let again = place.write("again.csv", "id,name\n1,new\n2,new\n30000,new\n");
    let said = imported(rauk.port, &again, &["--table", "d.t", "--on-duplicate", "ignore"]);
    assert!(said.contains("1 row into d.t") && said.contains("2 were there already"), "{said}");
    assert_eq!(run(&mut client, "SELECT id FROM t WHERE name = 'new'"), ["30000"]);
    imported(rauk.port, &again, &["--table", "d.t", "--on-duplicate", "replace"]);
    assert_eq!(run(&mut client, "SELECT id FROM t WHERE name = 'new' ORDER BY id"), ["1", "2", "30000"]);
}

/// Rows without a key: one that came twice would be there twice.
fn many_rows(rows: u64) -> String {
    let mut text = String::from("id,name\n");
    for id in 0..rows {
        text += &format!("{id},\"row {id} of many\"\n");
    }
    text
}

fn check_all(client: &mut Conn, rows: u64) {
    let counted = run(client, "SELECT COUNT(*), COUNT(DISTINCT id), SUM(id) FROM d.t");
    assert_eq!(counted, [format!("{rows} | {rows} | {}", rows * (rows - 1) / 2)]);
}

#[test]
fn an_import_that_is_killed_goes_on() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    let mut client = rauk.connect();
    execute(&mut client, &["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT, name VARCHAR(40))"]);
    let rows = 150_000;
    // Every thousandth line is bad.
    let text: String = many_rows(rows)
        .lines()
        .enumerate()
        .map(|(at, line)| if at % 1000 == 500 { format!("{line}\nx,bad\n") } else { format!("{line}\n") })
        .collect();
    let path = place.write("t.csv", text);
    let file = path.display().to_string();
    let rejects = place.path("bad.csv");
    let with_rejects = ["--rejects", &rejects.display().to_string()].map(str::to_string);
    let with_rejects: Vec<&str> = with_rejects.iter().map(String::as_str).collect();
    let mut committed = 0;
    for round in 1..=3u64 {
        let arguments = ["--table", "d.t", "--threads", "3", &file];
        let mut command = tool(rauk.port, "import", &[&with_rejects[..], &arguments].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        wait_until(&mut client, "SELECT COUNT(*) FROM d.t", (rows / 5 * round).min(committed + 4096));
        child.kill().expect("killed");
        child.wait().expect("ended");
        committed = number(&mut client, "SELECT COUNT(*) FROM d.t");
    }
    // A file that is another one now is not gone on with.
    let original = std::fs::read(&path).expect("readable");
    let times = std::fs::metadata(&path).expect("there").modified().expect("a time");
    std::fs::write(&path, [&original[..], b"1,x\n"].concat()).expect("written");
    if committed < rows {
        let line = refused(rauk.port, &path, &["--table", "d.t"]);
        assert!(line.contains("has changed since") && line.contains("--restart"), "{line}");
    }
    std::fs::write(&path, &original).expect("written");
    std::fs::File::options().write(true).open(&path).expect("opens").set_modified(times).expect("set");
    if committed < rows {
        let line = refused(rauk.port, &path, &["--table", "d.t", "--null", "x"]);
        assert!(line.contains("with other options"), "{line}");
        imported(rauk.port, &path, &[&["--table", "d.t"], &with_rejects[..]].concat());
    }
    check_all(&mut client, rows);
    assert_eq!(tables(&mut client), ["t"]);
    let mut reader = csv::Reader::from_path(&rejects).expect("readable");
    let mut lines: Vec<u64> = reader.records().map(|r| r.expect("whole")[1].parse().expect("a number")).collect();
    lines.sort();
    let wanted: Vec<u64> = (0..150).map(|n| 502 + n * 1001).collect();
    assert_eq!(lines, wanted, "each bad line once");
}

#[test]
fn a_server_that_is_killed_loses_and_doubles_nothing() {
    let place = Place::new();
    let mut rauk = Rauk::start(place.data.path());
    execute(&mut rauk.connect(), &["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT, name VARCHAR(40))"]);
    let rows = 150_000;
    let path = place.write("t.csv", many_rows(rows));
    let file = path.display().to_string();
    for round in 1..=2 {
        let mut command = tool(rauk.port, "import", &["--table", "d.t", "--threads", "3", &file]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        wait_until(&mut rauk.connect(), "SELECT COUNT(*) FROM d.t", rows / 4 * round);
        rauk.kill();
        let output = child.wait_with_output().expect("ended");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("give the same command again"), "{said}");
        rauk = Rauk::start(place.data.path());
    }
    let said = imported(rauk.port, &path, &["--table", "d.t"]);
    assert!(said.contains("of them before"), "{said}");
    check_all(&mut rauk.connect(), rows);
}

/// The import waits a moment for a server that comes back on its port, and does not end.
#[test]
fn a_server_that_comes_back_is_gone_on_with() {
    let place = Place::new();
    let socket = place.path("socket").display().to_string();
    let start = || {
        let mut command = rauk_command(place.data.path());
        command.args(["--socket", &socket]);
        Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}"))
    };
    let rauk = start();
    execute(&mut rauk.connect(), &["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT, name VARCHAR(40))"]);
    let rows = 150_000;
    let file = place.write("t.csv", many_rows(rows)).display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    command.args(["import", "-S", &socket, "--table", "d.t", &file]).env_remove("MYSQL_PWD").stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    wait_until(&mut rauk.connect(), "SELECT COUNT(*) FROM d.t", rows / 4);
    rauk.kill();
    let rauk = start();
    let output = child.wait_with_output().expect("ended");
    // A machine that is very slow can take longer than the import waits.
    if !output.status.success() {
        assert!(text_of(&output).contains("give the same command again"), "{output:?}");
        let again = command.output().expect("rauk runs");
        assert!(again.status.success(), "{again:?}");
    }
    check_all(&mut rauk.connect(), rows);
    assert_eq!(tables(&mut rauk.connect()), ["t"]);
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Two imports of a file at once: one of them takes over, and every row comes once.
#[test]
fn a_second_import_of_the_file_takes_over() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    let mut client = rauk.connect();
    execute(&mut client, &["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT, name VARCHAR(40))"]);
    let rows = 100_000;
    let file = place.write("t.csv", many_rows(rows)).display().to_string();
    let start = || {
        let mut command = tool(rauk.port, "import", &["--table", "d.t", &file]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
    };
    let first = start();
    wait_until(&mut client, "SELECT COUNT(*) FROM d.t", 1);
    let second = start().wait_with_output().expect("ended");
    let first = first.wait_with_output().expect("ended");
    let said = String::from_utf8_lossy(&first.stderr).into_owned();
    assert!(first.status.success() || said.contains("another rauk import of this file"), "{said}");
    // The first can have ended before the second began, which then read the file once more.
    if !first.status.success() {
        assert!(second.status.success(), "{second:?}");
        check_all(&mut client, rows);
    }
}

#[test]
fn full_memory_stops_an_import_that_goes_on_later() {
    let place = Place::new();
    let mut command = rauk_command(place.data.path());
    command.args(["--memory-limit", "64MiB"]);
    let rauk = Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}"));
    let mut client = rauk.connect();
    execute(&mut client, &["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT, name VARCHAR(1000))"]);
    let rows = 120_000;
    let mut text = String::from("id,name\n");
    for id in 0..rows {
        text += &format!("{id},{}\n", "x".repeat(600));
    }
    let path = place.write("t.csv", text);
    let line = refused(rauk.port, &path, &["--table", "d.t"]);
    assert!(
        line.contains("the server's memory is full") && line.contains("1114") && line.contains("goes on"),
        "{line}"
    );
    let before = number(&mut client, "SELECT COUNT(*) FROM t");
    assert!(before > 0 && before < rows, "{before}");
    execute(&mut client, &["SET GLOBAL rauk_memory_limit = 1073741824"]);
    imported(rauk.port, &path, &["--table", "d.t"]);
    check_all(&mut client, rows);
}

#[test]
fn what_is_exported_is_imported_again() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    let mut client = rauk.connect();
    let columns = "id BIGINT PRIMARY KEY, v VARCHAR(100), c CHAR(10), b VARBINARY(300), l LONGBLOB, j JSON, n DECIMAL(40,10), f FLOAT, f2 FLOAT, x DOUBLE, \
        d DATE, t TIME(3), dt DATETIME(6), ts TIMESTAMP(3) NULL, y YEAR, e ENUM('a','b,c',''), s SET('x','y'), bits BIT(11), g POINT, z INT(6) ZEROFILL, \
        twice BIGINT AS (y + 1), u BIGINT UNSIGNED, tx TEXT CHARACTER SET latin1";
    execute(
        &mut client,
        &[
            "CREATE DATABASE d",
            "USE d",
            "SET sql_mode = 'NO_ENGINE_SUBSTITUTION'",
            &format!("CREATE TABLE a ({columns})"),
            "INSERT INTO a (id) VALUES (1)",
            "INSERT INTO a (id, v, c, b, l, j, n, f, x, d, t, dt, ts, y, e, s, bits, g, z, u, tx) VALUES \
             (-9223372036854775808, 'it''s \\\\N, \"q\"\\r\\nnext\\tline \\0 end\\\\', '', x'00ff0a0d5c22', x'', '{\"k\": [1.5, \"\\\\n\", null, \"ä\"]}', \
              '-123456789012345678901234567890.0123456789', 1.1, 1e-300, '1000-01-01', '-838:59:59', '9999-12-31 23:59:59.999999', \
              '2026-11-29 01:02:03.456', 2155, 'b,c', 'x,y', b'10000000001', ST_GeomFromText('POINT(1 2)'), 42, 18446744073709551615, 'é')",
            "INSERT INTO a (id, v, b, j, f2, x, d, e, s, y, tx) VALUES (3, '\\\\N', 'text', '\"s\"', 0.1234567, -0.1, '0000-00-00', '', '', 0, '日本')",
            "INSERT INTO a (id, v, j) SELECT 10 + id, CHAR(0x61, 0x20 USING utf8mb4), '[]' FROM a",
            "INSERT INTO a (id, v, b) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 255) \
             SELECT 100 + i, CONCAT('𝄞', CONVERT(CHAR(i USING latin1) USING utf8mb4)), CAST(CHAR(i) AS BINARY) FROM n",
        ],
    );
    for (format, binary) in [
        ("csv", "hex"),
        ("tsv", "hex"),
        ("jsonl", "hex"),
        ("csv", "base64"),
        ("csv", "text"),
        ("tsv", "text"),
        ("jsonl", "base64"),
    ] {
        execute(&mut client, &["DROP TABLE IF EXISTS b", &format!("CREATE TABLE b ({columns})")]);
        let path = place.path(&format!("{binary}.{format}"));
        let mut export = tool(rauk.port, "export", &["--table", "d.a", "--binary", binary, "-o"]);
        let output = export.arg(&path).output().expect("rauk runs");
        assert!(output.status.success(), "{output:?}");
        imported(rauk.port, &path, &["--table", "d.b", "--binary", binary, "--zero-dates"]);
        let sums = run(&mut client, "CHECKSUM TABLE a, b");
        if sums[0].replace("d.a", "") != sums[1].replace("d.b", "") {
            let rows = |client: &mut Conn, table: &str| run(client, &format!("SELECT * FROM {table} ORDER BY id"));
            assert_eq!(rows(&mut client, "a"), rows(&mut client, "b"), "{format} {binary}");
            panic!("{format} {binary}: rows look the same, and their checksums differ: {sums:?}");
        }
    }
    // To standard output; a file that exists stays.
    let output = tool(rauk.port, "export", &["--table", "a", "-D", "d"]).output().expect("rauk runs");
    assert_eq!(output.stdout, std::fs::read(place.path("hex.csv")).expect("readable"));
    let taken = place.path("hex.csv").display().to_string();
    let output = tool(rauk.port, "export", &["--table", "d.a", "-o", &taken]).output().expect("rauk runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("exists"), "{output:?}");
    let output = tool(rauk.port, "export", &["--table", "d.none"]).output().expect("rauk runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no table d.none"), "{output:?}");
}
