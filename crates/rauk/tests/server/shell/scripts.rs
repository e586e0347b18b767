//! Scripts: from a pipe, from files, from `-e`; their errors; formats.

use super::{bad, command, finished, good, piped};
use crate::common::{Rauk, rauk_command, run};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn server() -> (tempfile::TempDir, Rauk) {
    let data = tempfile::tempdir().expect("a directory");
    let server = Rauk::start(data.path());
    run(&mut server.connect(), "CREATE DATABASE d");
    (data, server)
}

#[test]
fn every_statement_is_shown_with_its_own_time() {
    let (_data, server) = server();
    let out = good(
        &server,
        &["d"],
        "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(20));\nINSERT INTO t VALUES (1, 'a;b'), (2, NULL), (30, 'NULL');\n\
         SELECT * FROM t ORDER BY id; SELECT 'x' AS only\\G\nDO SLEEP(0.2); SELECT COUNT(*) FROM t",
    );
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].starts_with("OK, 0 rows affected ("), "{out}");
    assert!(lines[1].starts_with("OK, 3 rows affected (") && lines[1].contains("Records: 3"), "{out}");
    assert_eq!(
        lines[2..7],
        ["| id | s      |", "|----|--------|", "|  1 | a;b    |", "|  2 | NULL   |", "| 30 | 'NULL' |"]
    );
    assert!(lines[7].starts_with("3 rows ("), "{out}");
    assert_eq!(lines[8..10], ["*************************** 1. row ***************************", "only: x"]);
    // Several results of one statement are all shown; an error among them is one.
    let several = piped(&server, &["d"], b"DELIMITER //\nSELECT 5 AS five; DO 1; SELECT nothing; SELECT 6 AS six//\n");
    assert_eq!(several.code, Some(1));
    assert!(several.out.contains("| five |") && several.out.contains("OK, 0 rows") && !several.out.contains("six"));
    assert!(several.err.starts_with("rauk: standard input:2: ERROR 1054"), "{}", several.err);
    // The time of SLEEP is its own: that of what follows is shorter.
    let slept = lines.iter().position(|l| l.starts_with("OK, 0 rows affected (2")).expect("a time of 0.2 s");
    assert!(lines[slept].contains(" ms)") && slept > 9, "{out}");
    assert!(lines[slept + 4].starts_with("1 row (") && !lines[slept + 4].contains(" s)"), "{out}");
}

#[test]
fn the_first_error_ends_a_script_and_names_file_and_line() {
    let (_data, server) = server();
    let files = tempfile::tempdir().expect("a directory");
    let script = "CREATE TABLE d.t (id INT PRIMARY KEY);\nINSERT INTO d.t VALUES\n  (1);\n\n-- twice\nINSERT INTO d.t\n VALUES (1);\nINSERT INTO d.t VALUES (2);\n";
    let error = bad(&server, &[], script.as_bytes());
    assert!(error.starts_with("rauk: standard input:6: ERROR 1062 (23000): "), "{error}");
    let mut connection = server.connect();
    assert_eq!(run(&mut connection, "SELECT id FROM d.t"), ["1"]);

    let forced = piped(&server, &["--force"], b"INSERT INTO d.t VALUES (1);\nNONSENSE;\nINSERT INTO d.t VALUES (3);\n");
    assert_eq!(forced.code, Some(1));
    let errors: Vec<&str> = forced.err.lines().collect();
    assert_eq!(errors.len(), 2, "{}", forced.err);
    assert!(
        errors[0].starts_with("standard input:1: ERROR 1062") && errors[1].starts_with("standard input:2: ERROR 1064")
    );
    assert_eq!(run(&mut connection, "SELECT id FROM d.t ORDER BY id"), ["1", "3"]);

    // Files in files; a file by itself ends where it says.
    let path = |name: &str| files.path().join(name).display().to_string();
    let write = |name: &str, text: &str| std::fs::write(path(name), text).expect("written");
    write("inner.sql", "DELIMITER //\nSELECT 1 AS inside,\n';' AS s //\nNOTHING//\n");
    write("outer.sql", &format!("SELECT 0 AS first;\n\nsource {}\nSELECT 9;\n", path("inner.sql")));
    let said = piped(&server, &["-e", &format!("source {}", path("outer.sql"))], b"");
    assert_eq!(said.code, Some(1));
    let wanted = format!("rauk: {}:3: {}:4: ERROR 1064", path("outer.sql"), path("inner.sql"));
    assert!(said.err.starts_with(&wanted), "{}", said.err);
    write("itself.sql", &format!("\\. {}\n", path("itself.sql")));
    assert!(bad(&server, &["-e", &format!("\\. {}", path("itself.sql"))], b"").contains("16 levels deep"));
    assert!(bad(&server, &["-e", "source /not/there.sql"], b"").contains("cannot open /not/there.sql: No such file"));
    assert!(bad(&server, &["-e", &format!("source {}", files.path().display())], b"").contains("directory"));
    write("quits.sql", "SELECT 5 AS five; quit\nNONSENSE;");
    let out = good(&server, &["-e", &format!("source {}; SELECT 6", path("quits.sql"))], "");
    assert!(out.contains("| five |") && out.contains("| 6 |"), "{out}");
    // An argument has no name.
    let error = bad(&server, &["-e", "SELECT 1;\nSELECT nothing"], b"");
    assert!(error.starts_with("rauk: line 2: ERROR 1054"), "{error}");
    assert!(bad(&server, &["-e", "SELECT nothing"], b"").starts_with("rauk: ERROR 1054"));
}

#[test]
fn wrong_texts_are_refused_in_one_line() {
    let (_data, server) = server();
    let error = |input: &[u8]| {
        let error = bad(&server, &[], input);
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    assert!(error(b"SELECT 1;\n\x00\x01\x02\x7FELF").contains("standard input:2: a zero byte"));
    assert!(error(b"SELECT 1;\nSELECT 'cut off").contains("standard input:2: the text ends inside the quoted text"));
    assert!(error(b"SELECT 1; /* cut off").contains("inside the comment"));
    assert!(error(b"\xFF\xFES\0E\0L\0").contains("UTF-16"));
    assert!(error(b"SELECT 1;\n\\y\n").contains("standard input:2: there is no command '\\y'"));
    assert!(error(b"format xml\n").contains("there are table, vertical, csv"));
    assert!(error(b"delimiter\n").contains("DELIMITER needs"));
    assert!(error(b"SELECT `stra\xDFe`;").contains("0xDF"));
    assert!(error(b"system touch /tmp/nobody\n").contains("system is not run from a file"));
    assert!(error(b"\\T /tmp/nobody\n").contains("tee is not run"));
    assert!(error(b"edit\n").contains("edit is a command of the prompt"));
    assert!(error(b"/*M!999999\\- enable the sandbox mode */\nsource x.sql\n").contains("sandbox"));
    // What the end cuts off outside of quotes runs, as with MySQL's client; the server says what it makes of it.
    assert!(error(b"SELECT 1;\nINSERT INTO d.t VALUES (1").contains("standard input:2: ERROR 1064"));
    assert!(good(&server, &[], "SELECT 1 AS one").contains("| one |"));
    assert_eq!(good(&server, &[], ""), "");
    assert_eq!(good(&server, &[], " ;; -- nothing\n"), "");
    for (arguments, wanted) in [
        (&["--format", "xml"][..], "xml"),
        (&["--ssl-mode", "MAYBE"], "MAYBE"),
        (&["-e", "SELECT 1", "a", "b"], "unexpected argument 'b'"),
        (&["-D", "a", "b"], "cannot be used with"),
    ] {
        let said = piped(&server, arguments, b"");
        assert!(said.code == Some(2) && said.err.contains(wanted), "{:?} {}", said.code, said.err);
    }
    let said = piped(&server, &["nowhere", "-e", "SELECT 1"], b"");
    assert!(said.code == Some(1) && said.err.starts_with("rauk: ERROR 1049"), "{}", said.err);
}

#[test]
fn a_statement_longer_than_a_packet_is_refused_before_it_is_held() {
    let (_data, server) = server();
    run(&mut server.connect(), "SET GLOBAL max_allowed_packet = 1048576");
    let long = format!("SELECT 1;\nSELECT '{}';\n", "x".repeat(3 << 20));
    let error = bad(&server, &[], long.as_bytes());
    assert!(
        error.contains("standard input:2: the statement that begins here is longer than max_allowed_packet (1048576")
    );
    let fits = format!("SELECT LENGTH('{}') AS n;\n", "x".repeat(1 << 19));
    assert!(good(&server, &[], &fits).contains("| 524288 |"));
}

/// The bytes of BLOBs stand in dumps as they are.
#[test]
fn dumps_with_bytes_come_in() {
    let (_data, server) = server();
    let mut script = b"CREATE TABLE d.b (id INT PRIMARY KEY, v BLOB);\nINSERT INTO d.b VALUES (1, _binary '".to_vec();
    let bytes: Vec<u8> = (0..=255).collect();
    for byte in &bytes {
        match byte {
            0 => script.extend(b"\\0"),
            b'\'' | b'\\' | b'"' => script.extend([b'\\', *byte]),
            b'\n' => script.extend(b"\\n"),
            26 => script.extend(b"\\Z"),
            byte => script.push(*byte),
        }
    }
    script.extend(b"'), (2, '\xFF\xFE');\n");
    let said = piped(&server, &[], &script);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let all: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
    assert_eq!(run(&mut server.connect(), "SELECT HEX(v) FROM d.b ORDER BY id"), [all.as_str(), "FFFE"]);
}

#[test]
fn formats_and_flags() {
    let (_data, server) = server();
    let mut connection = server.connect();
    run(
        &mut connection,
        "CREATE TABLE d.f (id INT PRIMARY KEY, p DECIMAL(20,4), s TEXT, j JSON, b BIT(4), z INT ZEROFILL)",
    );
    run(
        &mut connection,
        "INSERT INTO d.f VALUES (1, 12345678901234.5000, 'a,\"b\"', '{\"k\": [1, null]}', 5, 7), (2, NULL, '', NULL, NULL, NULL)",
    );
    let shown = |arguments: &[&str]| good(&server, &[arguments, &["-e", "SELECT * FROM d.f ORDER BY id"]].concat(), "");
    assert_eq!(
        shown(&["--format", "csv"]),
        "id,p,s,j,b,z\n1,12345678901234.5000,\"a,\"\"b\"\"\",\"{\"\"k\"\": [1, null]}\",0x05,0000000007\n2,,\"\",,,\n"
    );
    assert_eq!(
        shown(&["--format", "TSV", "--no-header"]),
        "1\t12345678901234.5000\ta,\"b\"\t{\"k\": [1, null]}\t0x05\t0000000007\n2\t\\N\t\t\\N\t\\N\t\\N\n"
    );
    let json: serde_json::Value = serde_json::from_str(&shown(&["--format", "json"])).expect("JSON");
    assert_eq!(
        (json[0]["id"].as_i64(), json[0]["j"]["k"][0].as_i64(), json[0]["z"].as_str()),
        (Some(1), Some(1), Some("0000000007"))
    );
    assert!(json[1]["p"].is_null() && json[1]["s"] == "");
    assert!(
        shown(&["--format", "markdown"]).starts_with("| id | p | s | j | b | z |\n|---:|---:|---|---|---|---:|\n| 1 |")
    );
    let table = shown(&["--no-header"]);
    assert!(
        table.starts_with("| 1 | 12345678901234.5000 |") && table.contains("\n| 2 |                NULL |"),
        "{table}"
    );
    // A format can change on the way.
    let out = good(&server, &[], "format csv\nSELECT 1 AS a;\nformat vertical\nSELECT 2 AS b;");
    assert!(out.starts_with("a\n1\n*****") && out.contains("\nb: 2\n"), "{out}");
    // Warnings, when asked for.
    let warned = "SELECT CAST('1x' AS SIGNED) AS n";
    assert!(!good(&server, &["-e", warned], "").contains("Code 1292"));
    let out = good(&server, &["--show-warnings", "-e", warned], "");
    assert!(out.contains("1 row, 1 warning (") && out.contains("Warning (Code 1292): "), "{out}");
    let tee = tempfile::tempdir().expect("a directory").keep().join("tee.txt");
    good(&server, &["-e", &format!("tee {}\nSELECT 7 AS seven; notee\nSELECT 8", tee.display())], "");
    let kept = std::fs::read_to_string(&tee).expect("written");
    assert!(kept.contains("| seven |") && kept.contains("1 row (") && kept.lines().count() == 4, "{kept}");
    std::fs::remove_dir_all(tee.parent().expect("a directory")).expect("removed");
}

/// Rows are written as they come: a reader that has seen enough ends the shell, which reads no further.
#[test]
fn large_results_are_streamed() {
    let (_data, server) = server();
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE d.n (id INT PRIMARY KEY, s VARCHAR(100))");
    run(
        &mut connection,
        "INSERT INTO d.n WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, REPEAT('x', 100) FROM n",
    );
    let port = server.port.to_string();
    // A hundred million rows, which would take minutes and gigabytes.
    let endless = "SELECT a.id, a.s, b.s FROM d.n a, d.n b, d.n c";
    for format in ["csv", "table"] {
        let mut shell = command(&["-P", &port, "--format", format, "-e", endless]);
        let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut first = vec![0; 1 << 20];
        child.stdout.take().expect("piped").read_exact(&mut first).expect("rows come");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(
            (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
            (Some(141), ""),
            "{format}"
        );
    }
    let end = Instant::now() + Duration::from_secs(60);
    while run(&mut connection, "SELECT COUNT(*) FROM information_schema.PROCESSLIST") != ["1"] {
        assert!(Instant::now() < end, "the server still runs what nobody reads");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn peak(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = text.lines().find(|l| l.starts_with("VmHWM:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
}

/// The shell's memory does not grow with what it is given.
#[test]
fn a_dump_of_many_megabytes_needs_little_memory() {
    let data = tempfile::tempdir().expect("a directory");
    let mut command_line = rauk_command(data.path());
    command_line.args(["--durability", "relaxed"]);
    let server = Rauk::start_with(command_line).expect("it starts");
    let mut connection = server.connect();
    run(&mut connection, "CREATE DATABASE d");
    let port = server.port.to_string();
    let mut shell = command(&["-P", &port, "d"]);
    let shell = shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = shell.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut give = |text: &str| stdin.write_all(text.as_bytes()).expect("it reads");
    let wait_for = |connection: &mut mysql::Conn, rows: usize| {
        let end = Instant::now() + Duration::from_secs(300);
        while run(connection, "SELECT COUNT(*) FROM d.t") != [rows.to_string()] {
            assert!(Instant::now() < end, "the rows do not come");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    give("/*!40101 SET NAMES utf8mb4 */;\nCREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(1000));\n");
    let (mut rows, mut bytes, mut first) = (0, 0, None);
    while bytes < 32 << 20 {
        let values: Vec<String> =
            (rows..rows + 250).map(|id| format!("({id},'{}; \\'\\n')", "x".repeat(980))).collect();
        let statement = format!("INSERT INTO `t` VALUES {};\n", values.join(","));
        give(&statement);
        rows += 250;
        bytes += statement.len();
        if first.is_none() && bytes > 1 << 20 {
            wait_for(&mut connection, rows);
            first = Some(peak(child.id()));
        }
    }
    wait_for(&mut connection, rows);
    let (first, last) = (first.expect("it was measured"), peak(child.id()));
    println!("{} MiB in {rows} rows: {first} KiB of memory at the first, {last} KiB at the last", bytes >> 20);
    assert!(last < first + 4096, "from {first} KiB to {last} KiB");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// A dump of MariaDB's own program comes in as it is.
#[test]
fn a_dump_of_another_program_comes_in() {
    let (_data, server) = server();
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE d.t (id INT PRIMARY KEY, s VARCHAR(50), b BLOB)");
    run(&mut connection, "INSERT INTO d.t VALUES (1, 'it''s; -- \\n', x'00FF5C27'), (2, NULL, NULL), (3, '/* é', '')");
    run(&mut connection, "CREATE VIEW d.v AS SELECT id FROM d.t");
    let port = server.port.to_string();
    let dump = std::process::Command::new("mariadb-dump")
        .args(["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "root", "--skip-ssl", "d"])
        .output()
        .expect("mariadb-dump is installed");
    assert!(dump.status.success(), "{dump:?}");
    run(&mut connection, "CREATE DATABASE copy");
    let said = piped(&server, &["copy"], &dump.stdout);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let sums = |connection: &mut mysql::Conn, name: &str| {
        run(connection, &format!("SELECT id, s, HEX(b) FROM {name}.t ORDER BY id"))
    };
    assert_eq!(sums(&mut connection, "copy"), sums(&mut connection, "d"));
    assert_eq!(run(&mut connection, "SELECT COUNT(*) FROM copy.v"), ["3"]);
}

/// Ctrl-C ends a script: the statement is cancelled, and nothing more is run.
#[test]
fn an_interrupted_script_ends() {
    let (_data, server) = server();
    let mut connection = server.connect();
    run(&mut connection, "CREATE TABLE d.t (id INT PRIMARY KEY)");
    let port = server.port.to_string();
    let running = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(1000)' AND INFO NOT LIKE '%PROCESSLIST%'";
    for flags in [&[][..], &["--force"]] {
        let script = "SELECT SLEEP(1000); INSERT INTO d.t VALUES (1)";
        let mut shell = command(&[&["-P", &port], flags, &["-e", script]].concat());
        let child = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let end = Instant::now() + Duration::from_secs(60);
        while run(&mut connection, running) != ["1"] {
            assert!(Instant::now() < end, "it does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), output.status.signal()), (Some(130), None), "{output:?}");
        assert_eq!(run(&mut connection, running), ["0"], "the server has been told");
    }
    assert_eq!(run(&mut connection, "SELECT COUNT(*) FROM d.t"), ["0"]);
    // Between statements it ends at once.
    let mut shell = command(&["-P", &port]);
    let shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"SELECT 'begun';\n").expect("it reads");
    let mut seen = Vec::new();
    let mut out = child.stdout.take().expect("piped");
    while !String::from_utf8_lossy(&seen).contains("1 row") {
        let mut byte = [0];
        out.read_exact(&mut byte).expect("it answers");
        seen.push(byte[0]);
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

#[test]
fn a_script_whose_server_goes_ends() {
    let (data, server) = server();
    let port = server.port.to_string();
    let mut shell = command(&["-P", &port, "--force"]);
    let shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"SELECT 'begun';\n").expect("it reads");
    let mut out = std::io::BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("1 row") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut out, &mut line).expect("it answers") > 0);
    }
    server.kill();
    let mut again = rauk_command(data.path());
    again.args(["--mysql-port", &port]);
    let server = Rauk::start_with(again).expect("it starts");
    stdin.write_all(b"CREATE DATABASE unexpected;\n").expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("standard input:2: "), "{error}");
    assert!(error.contains("closed the connection") || error.contains("connection was lost"), "{error}");
    assert_eq!(run(&mut server.connect(), "SHOW DATABASES LIKE 'unexpected'"), ["(empty)"]);
}

#[test]
fn no_server_is_said_in_one_line() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let said = finished(command(&["-P", &free.to_string(), "-e", "SELECT 1"]), b"");
    assert_eq!((said.code, said.err.lines().count()), (Some(1), 1), "{}", said.err);
    assert!(said.err.contains(&format!("127.0.0.1:{free}")) && said.err.contains("rauk start"), "{}", said.err);
}
