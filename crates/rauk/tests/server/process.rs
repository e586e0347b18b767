//! The server as its operator meets it: starting, stopping, wrong settings, limits, bad clients.

use crate::common::{Rauk, rauk_command, run};
use mysql::prelude::Queryable;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn data() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// What a start that must fail says; one line.
pub fn refusal(command: Command) -> String {
    let error = match Rauk::start_with(command) {
        Ok(_) => panic!("it started"),
        Err(error) => error,
    };
    let lines: Vec<&str> = error.lines().filter(|l| l.contains("rauk: ")).collect();
    assert_eq!(lines.len(), 1, "one line says what is wrong: {error}");
    assert!(error.starts_with("exit status: 1"), "{error}");
    lines[0].to_string()
}

#[test]
fn wrong_settings_are_refused_in_one_line_that_names_them() {
    let data = data();
    let with = |arguments: &[&str]| {
        let mut command = rauk_command(data.path());
        command.args(arguments);
        refusal(command)
    };
    assert!(with(&["--durability", "fsink"]).contains("did you mean 'fsync'"));
    assert!(with(&["--host", "nowhere"]).contains("--host"));
    let file = data.path().join("rauk.toml");
    std::fs::write(&file, "memory-limt = \"1GiB\"\n").expect("written");
    let line = with(&["--config", &file.display().to_string()]);
    assert!(line.contains("'memory-limt'") && line.contains("did you mean 'memory-limit'"), "{line}");
    assert!(with(&["--config", "/not/there.toml"]).contains("/not/there.toml"));
    let mut command = rauk_command(data.path());
    command.env("RAUK_MEMORY", "1GiB");
    assert!(refusal(command).contains("RAUK_MEMORY"));
}

#[test]
fn a_port_in_use_and_a_directory_that_cannot_be_used_are_refused() {
    let directory = data();
    let busy = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = busy.local_addr().expect("an address").port();
    let mut command = rauk_command(directory.path());
    command.args(["--mysql-port", &port.to_string()]);
    let line = refusal(command);
    assert!(line.contains(&format!("port {port}")) && line.contains("--mysql-port"), "{line}");

    let server = Rauk::start(directory.path());
    let line = refusal(rauk_command(directory.path()));
    assert!(
        line.contains("in use by another process") && line.contains(&directory.path().display().to_string()),
        "{line}"
    );
    drop(server);

    let foreign = data();
    std::fs::write(foreign.path().join("thesis.tex"), "x").expect("written");
    let line = refusal(rauk_command(foreign.path()));
    assert!(line.contains("thesis.tex") && line.contains("--data-dir"), "{line}");
    assert_eq!(std::fs::read_dir(foreign.path()).expect("readable").count(), 1, "nothing was put into it");
}

#[test]
fn a_directory_of_a_newer_version_is_refused() {
    let directory = data();
    let server = Rauk::start(directory.path());
    run(&mut server.connect(), "CREATE DATABASE d");
    assert!(server.stop().success());
    // Every file begins with its kind and, behind it, the format version.
    let mut patched = 0;
    for name in ["manifest", "catalog"] {
        for entry in walk(directory.path()) {
            if entry.file_name().is_some_and(|n| n.to_string_lossy().to_lowercase().contains(name)) {
                let mut bytes = std::fs::read(&entry).expect("readable");
                if bytes.len() > 12 && &bytes[..4] == b"RAUK" {
                    bytes[8..12].copy_from_slice(&999u32.to_le_bytes());
                    std::fs::write(&entry, bytes).expect("written");
                    patched += 1;
                }
            }
        }
    }
    assert!(patched > 0, "there is a file with a version: {:?}", walk(directory.path()));
    let line = refusal(rauk_command(directory.path()));
    assert!(line.contains("version 999"), "{line}");
}

fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).expect("readable").map(|e| e.expect("readable").path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn a_clean_stop_and_a_kill_keep_the_rows() {
    let directory = data();
    let server = Rauk::start(directory.path());
    let mut connection = server.connect();
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(10))",
        "INSERT INTO d.t (v) VALUES ('a'), ('b')",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let started = Instant::now();
    assert!(server.stop().success());
    assert!(started.elapsed() < Duration::from_secs(10), "an idle server stops quickly");
    let server = Rauk::start(directory.path());
    let mut connection = server.connect();
    connection.query_drop("INSERT INTO d.t (v) VALUES ('c')").expect("insert");
    server.kill();
    let server = Rauk::start(directory.path());
    assert_eq!(run(&mut server.connect(), "SELECT id, v FROM d.t ORDER BY id"), ["1 | a", "2 | b", "3 | c"]);
}

/// systemd's `Type=notify`.
#[test]
fn the_service_manager_hears_that_it_serves_and_that_it_stops() {
    let directory = data();
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket can be bound");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let heard = || {
        let mut buffer = [0; 1000];
        let length = socket.recv(&mut buffer).expect("the server tells within 30 s");
        String::from_utf8(buffer[..length].to_vec()).expect("text")
    };
    let mut command = rauk_command(directory.path());
    command.env("NOTIFY_SOCKET", &path);
    let server = Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}"));
    let ready = heard();
    assert!(ready.starts_with("READY=1\nSTATUS=rauk is ready: mysql on "), "{ready}");
    run(&mut server.connect(), "SELECT 1");
    assert!(server.stop().success());
    assert!(heard().starts_with("STOPPING=1\n"));
}

#[test]
fn the_http_port_tells_health_and_metrics() {
    let directory = data();
    let server = Rauk::start(directory.path());
    let mut connection = server.connect();
    run(&mut connection, "CREATE DATABASE d");
    assert!(server.http("/health").contains("\"ok\""));
    let metrics = server.http("/metrics");
    for name in [
        "rauk_commits_total",
        "rauk_memory_used_bytes",
        "rauk_memory_limit_bytes 1073741824",
        "rauk_sessions 1",
        "# EOF",
    ] {
        assert!(metrics.contains(name), "{name} is missing in\n{metrics}");
    }
}

/// Metrics and the state of the cluster ask for no login, so they are not open to others because SQL is.
#[test]
fn the_http_port_is_on_loopback_unless_told() {
    let another = |port: u16| std::net::TcpStream::connect(("127.0.0.2", port)).is_ok();
    for http_host in [None, Some("0.0.0.0")] {
        let directory = data();
        let mut command = rauk_command(directory.path());
        command.args(["--host", "0.0.0.0"]);
        command.args(http_host.iter().flat_map(|host| ["--http-host", host]));
        let server = Rauk::start_with(command).expect("it starts");
        assert!(server.http("/health").contains("\"ok\""));
        assert!(another(server.port), "SQL is on all addresses");
        assert_eq!(another(server.http_port), http_host.is_some(), "--http-host {http_host:?}");
    }
}

/// A client that does not read its result holds up no statement that comes after a DDL. It holds up the DDL for seconds
/// at most, since its rows are read ahead as far as memory allows.
#[test]
fn a_result_that_is_not_read_holds_up_nobody_else() {
    let directory = data();
    let server = Rauk::start(directory.path());
    let mut admin = server.connect();
    run(&mut admin, "CREATE DATABASE d");
    run(&mut admin, "CREATE TABLE d.big (id INT PRIMARY KEY, pad VARCHAR(8000))");
    run(&mut admin, "CREATE TABLE d.few (id INT PRIMARY KEY)");
    run(&mut admin, "INSERT INTO d.few VALUES (1), (2), (3), (4), (5), (6)");
    for at in (0..1000).step_by(100) {
        let rows: Vec<String> = (at..at + 100).map(|id| format!("({id}, REPEAT('x', 8000))")).collect();
        run(&mut admin, &format!("INSERT INTO d.big VALUES {}", rows.join(", ")));
    }
    // More than the sockets' buffers hold, of which no row is taken: first one that is sorted, which has been read
    // before it is sent.
    let mut sorted = server.connect();
    let unread = sorted.query_iter("SELECT pad FROM d.big, d.few ORDER BY big.id").expect("its first rows");
    run(&mut admin, "SET lock_wait_timeout = 30");
    assert_eq!(run(&mut admin, "ALTER TABLE d.big ADD COLUMN n INT"), ["ok 0"]);
    drop(unread);
    let mut streamed = server.connect();
    let unread = streamed.query_iter("SELECT pad FROM d.few, d.big").expect("its first rows");
    let truncate = {
        let mut connection = server.connect();
        std::thread::spawn(move || run(&mut connection, "TRUNCATE TABLE d.few"))
    };
    let mut other = server.connect();
    assert_eq!(truncate.join().expect("no panic"), ["ok 0"]);
    assert_eq!(run(&mut other, "SELECT COUNT(*) FROM d.few"), ["0"]);
    // What was read ahead comes whole.
    assert_eq!(unread.count(), 6000);

    // Where the rows do not fit the statement's memory, others pass the DDL that waits, and the read is ended.
    let refill = "INSERT INTO d.few VALUES (1), (2), (3), (4), (5), (6)";
    run(&mut admin, refill);
    run(&mut streamed, "SET rauk_query_memory_limit = 1048576");
    let unread = streamed.query_iter("SELECT pad FROM d.few, d.big").expect("its first rows");
    let truncate = {
        let mut connection = server.connect();
        std::thread::spawn(move || run(&mut connection, "TRUNCATE TABLE d.few"))
    };
    run(&mut other, "SET innodb_lock_wait_timeout = 4");
    let mut passed = 0;
    while !truncate.is_finished() {
        let rows = run(&mut other, "SELECT COUNT(*) FROM d.few");
        assert!(rows == ["6"] || rows == ["0"], "{rows:?}");
        passed += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(passed > 2);
    assert_eq!(truncate.join().expect("no panic"), ["ok 0"]);
    let mut ended = None;
    for row in unread {
        if let Err(mysql::Error::MySqlError(error)) = row {
            ended = Some(error);
        }
    }
    let error = ended.expect("the client hears of the end");
    assert!(error.code == 1317 && error.message.contains("has read nothing"), "{error:?}");
    assert_eq!(run(&mut streamed, "SELECT 1"), ["1"]);

    // KILL reaches a statement that waits for its client, and a DDL that waits for a transaction.
    run(&mut admin, refill);
    let stuck = streamed.connection_id();
    let unread = streamed.query_iter("SELECT pad FROM d.few, d.big").expect("its first rows");
    run(&mut admin, "BEGIN");
    run(&mut admin, "SELECT COUNT(*) FROM d.few");
    for (name, ddl) in
        [("DROP", "DROP TABLE d.few"), ("ALTER", "ALTER TABLE d.few ADD COLUMN x INT, ADD UNIQUE KEY (x)")]
    {
        let mut connection = server.connect();
        let id = connection.connection_id();
        let waits = std::thread::spawn(move || run(&mut connection, ddl));
        while run(&mut other, &format!("SELECT INFO FROM information_schema.PROCESSLIST WHERE ID = {id}")) != [ddl] {
            std::thread::sleep(Duration::from_millis(5));
        }
        let asked = Instant::now();
        run(&mut other, &format!("KILL QUERY {id}"));
        assert_eq!(waits.join().expect("no panic"), ["error 1317"]);
        println!("{name} ended {} ms after KILL", asked.elapsed().as_millis());
        assert!(asked.elapsed() < Duration::from_secs(5));
    }
    let asked = Instant::now();
    run(&mut other, &format!("KILL QUERY {stuck}"));
    let info = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {stuck} AND INFO IS NOT NULL");
    while run(&mut other, &info) != ["0"] {
        assert!(asked.elapsed() < Duration::from_secs(5), "KILL has had no effect");
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("the SELECT that waits for its client ended {} ms after KILL", asked.elapsed().as_millis());
    drop(unread);
    // lock_wait_timeout counts for DDL.
    run(&mut other, "SET lock_wait_timeout = 1");
    let asked = Instant::now();
    assert_eq!(run(&mut other, "TRUNCATE TABLE d.few"), ["error 1205"]);
    assert!(asked.elapsed() >= Duration::from_secs(1) && asked.elapsed() < Duration::from_secs(10));
    run(&mut admin, "COMMIT");
    assert_eq!(run(&mut other, "TRUNCATE TABLE d.few"), ["ok 0"]);
}

#[test]
fn full_memory_is_error_1114_and_deletes_make_room() {
    let directory = data();
    let mut command = rauk_command(directory.path());
    command.args(["--memory-limit", "32MiB", "--durability", "relaxed"]);
    let server = Rauk::start_with(command).expect("it starts");
    let mut connection = server.connect();
    for sql in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(1000))",
        "CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(60))",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let mut rows = 0;
    let error = loop {
        let values: Vec<String> = (0..100).map(|i| format!("({}, REPEAT('x', 900))", rows + i)).collect();
        match connection.query_drop(format!("INSERT INTO a VALUES {}", values.join(", "))) {
            Ok(()) => rows += 100,
            Err(error) => break error,
        }
        assert!(rows < 100_000, "32 MiB hold less");
    };
    let mysql::Error::MySqlError(error) = error else { panic!("{error}") };
    assert_eq!(error.code, 1114);
    assert!(error.message.contains("'a'") && error.message.contains("33554432"), "{}", error.message);
    assert!(rows > 20_000, "only {rows} rows of 900 bytes fit into 32 MiB");
    assert_eq!(run(&mut connection, "SELECT COUNT(*) FROM a"), [rows.to_string()], "the failed statement left nothing");
    assert_eq!(
        run(&mut connection, "INSERT INTO b SELECT id, 'y' FROM a"),
        ["error 1114"],
        "other tables are refused too"
    );
    assert_eq!(run(&mut connection, "DELETE FROM a WHERE id >= 1000"), [format!("ok {}", rows - 1000)], "deletes work");
    // Freed memory serves the other table once no snapshot needs it.
    let deadline = Instant::now() + Duration::from_secs(10);
    while run(&mut connection, "INSERT INTO b SELECT id + 1000000, 'y' FROM a") == ["error 1114"] {
        assert!(Instant::now() < deadline, "deleted rows' memory does not come back");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(run(&mut connection, "SELECT COUNT(*) FROM b"), ["1000"]);
    assert_eq!(run(&mut connection, "TRUNCATE TABLE a"), ["ok 0"]);
    assert_eq!(run(&mut connection, "SELECT COUNT(*) FROM a"), ["0"]);
}

#[test]
fn two_thousand_idle_connections_cost_little() {
    let directory = data();
    let server = Rauk::start(directory.path());
    let rss = || -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the server lives");
        let line = text.lines().find(|l| l.starts_with("VmRSS:")).expect("a line");
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number")
    };
    let mut first = server.connect();
    assert_eq!(run(&mut first, "SELECT 1"), ["1"]);
    let before = rss();
    let mut all: Vec<_> = (0..2000).map(|_| server.connect()).collect();
    for connection in &mut all {
        assert_eq!(run(connection, "SELECT 1"), ["1"]);
    }
    let each = (rss().saturating_sub(before)) as f64 / 2000.0;
    assert!(each < 40.0, "an idle connection costs {each:.1} KiB");
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.pid())).expect("the server lives").count();
    assert!(threads < 40, "{threads} threads for 2000 connections");
    assert_eq!(run(&mut first, "SELECT 2"), ["2"]);
}

#[test]
fn statements_that_wait_hold_no_thread() {
    let directory = data();
    let mut command = rauk_command(directory.path());
    command.args(["--threads", "2"]);
    let server = Rauk::start_with(command).expect("it starts");
    let mut holder = server.connect();
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO d.t VALUES (1, 0), (2, 0)",
        "BEGIN",
        "UPDATE d.t SET v = 1 WHERE id = 1",
    ] {
        holder.query_drop(sql).expect(sql);
    }
    let waiting: Vec<_> = (0..60)
        .map(|_| {
            let mut connection = server.connect();
            std::thread::spawn(move || run(&mut connection, "UPDATE d.t SET v = v + 1 WHERE id = 1"))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    assert!(waiting.iter().all(|t| !t.is_finished()), "all of them wait");
    let mut other = server.connect();
    let started = Instant::now();
    assert_eq!(run(&mut other, "UPDATE d.t SET v = 7 WHERE id = 2"), ["ok 1"]);
    assert!(started.elapsed() < Duration::from_secs(2), "another session is served meanwhile");
    holder.query_drop("COMMIT").expect("commit");
    for thread in waiting {
        assert_eq!(thread.join().expect("no panic"), ["ok 1"]);
    }
    assert_eq!(run(&mut other, "SELECT v FROM d.t WHERE id = 1"), ["61"]);
}

#[test]
fn kill_ends_statements_and_connections() {
    let directory = data();
    let server = Rauk::start(directory.path());
    let mut admin = server.connect();
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY)",
        "INSERT INTO d.t VALUES (1)",
        "BEGIN",
        "DELETE FROM d.t",
    ] {
        admin.query_drop(sql).expect(sql);
    }
    let mut victim = server.connect();
    let id: u64 = victim.query_first("SELECT CONNECTION_ID()").expect("an id").expect("a row");
    let thread = std::thread::spawn(move || {
        let answer = run(&mut victim, "SELECT * FROM d.t FOR UPDATE");
        (victim, answer)
    });
    std::thread::sleep(Duration::from_millis(200));
    admin.query_drop(format!("KILL QUERY {id}")).expect("kill");
    let (mut victim, answer) = thread.join().expect("no panic");
    assert_eq!(answer, ["error 1317"]);
    assert_eq!(run(&mut victim, "SELECT 1"), ["1"], "the connection lives on");
    admin.query_drop(format!("KILL {id}")).expect("kill");
    let deadline = Instant::now() + Duration::from_secs(5);
    while run(&mut victim, "SELECT 1") == ["1"] {
        assert!(Instant::now() < deadline, "a killed connection ends");
    }
    assert_eq!(run(&mut admin, "KILL 999999"), ["error 1094"]);
}

#[test]
fn wrong_passwords_and_too_many_connections() {
    let directory = data();
    let mut command = rauk_command(directory.path());
    command.args(["--max-connections", "5"]);
    let server = Rauk::start_with(command).expect("it starts");
    let mut admin = server.connect();
    admin.query_drop("CREATE USER 'eva'@'%' IDENTIFIED BY 'right'").expect("create user");
    let connect = |password: &str| {
        let options = mysql::OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(server.port)
            .user(Some("eva"))
            .pass(Some(password))
            .prefer_socket(false);
        mysql::Conn::new(options)
    };
    let Err(mysql::Error::MySqlError(error)) = connect("wrong") else { panic!("a wrong password was taken") };
    assert_eq!(error.code, 1045);
    assert!(
        error.message.contains("Access denied for user 'eva'@") && error.message.contains("using password: YES"),
        "{}",
        error.message
    );
    let mut eva = connect("right").expect("the right password is taken");
    assert_eq!(run(&mut eva, "CREATE DATABASE nope"), ["error 1044"]);
    let mut kept = Vec::new();
    let refused = loop {
        match server.try_connect() {
            Ok(connection) => kept.push(connection),
            Err(mysql::Error::MySqlError(error)) => break error.code,
            Err(other) => panic!("{other}"),
        }
        assert!(kept.len() < 10, "the limit holds");
    };
    assert_eq!((refused, kept.len()), (1040, 3));
    drop(kept);
    let deadline = Instant::now() + Duration::from_secs(5);
    while server.try_connect().is_err() {
        assert!(Instant::now() < deadline, "places become free again");
    }
}

#[test]
fn garbage_on_the_port_harms_nobody() {
    let directory = data();
    let server = Rauk::start(directory.path());
    let mut good = server.connect();
    let handshake = |stream: &mut TcpStream| {
        let mut header = [0; 4];
        stream.read_exact(&mut header).expect("a greeting");
        let mut greeting = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        stream.read_exact(&mut greeting).expect("a greeting");
    };
    let mut half = Vec::new();
    for i in 0..200u32 {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
        handshake(&mut stream);
        match i % 5 {
            0 => stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("written"),
            1 => stream.write_all(&[0xFF; 300]).expect("written"),
            // A packet that claims 16 MiB and sends three bytes.
            2 => stream.write_all(&[0xFF, 0xFF, 0xFF, 1, 1, 2, 3]).expect("written"),
            3 => stream.write_all(&[4, 0, 0, 9, 1, 2, 3, 4]).expect("written"),
            // Half a packet, then silence.
            _ => stream.write_all(&[200, 0]).expect("written"),
        }
        if i % 5 == 4 {
            half.push(stream);
        }
    }
    assert_eq!(run(&mut good, "SELECT 1"), ["1"]);
    drop(half);
    assert_eq!(run(&mut server.connect(), "SELECT 1"), ["1"]);
    for (sql, code) in [
        ("SELEC 1", 1064),
        ("CREATE VIEW v AS SELECT 1", 1046),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1", 1235),
        ("SELECT * FROM nowhere.t", 1049),
        ("SELECT x FROM (SELECT 1) t", 1054),
    ] {
        let found = run(&mut good, sql);
        assert!(found == [format!("error {code}")] || (code == 1049 && found == ["error 1146"]), "{sql}: {found:?}");
    }
}

#[test]
fn a_full_disk_stops_writes_and_nothing_else() {
    let directory = data();
    // A file system of 40 MiB of its own.
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=40m", "tmpfs"]).arg(directory.path()).status();
    assert!(mounted.is_ok_and(|s| s.success()), "this test mounts a small file system: run it as root");
    let unmount = Unmount(directory.path().to_path_buf());
    let data = directory.path().join("data");
    let mut command = rauk_command(&data);
    command.args(["--redo-segment", "4MiB", "--checkpoint-redo", "1GiB"]);
    let server = Rauk::start_with(command).expect("it starts");
    let mut connection = server.connect();
    for sql in ["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(1000))"] {
        connection.query_drop(sql).expect(sql);
    }
    let mut rows = 0;
    let error = loop {
        let values: Vec<String> = (0..50).map(|i| format!("({}, REPEAT('x', 1000))", rows + i)).collect();
        match connection.query_drop(format!("INSERT INTO t VALUES {}", values.join(", "))) {
            Ok(()) => rows += 50,
            Err(mysql::Error::MySqlError(error)) => break error,
            Err(other) => panic!("{other}"),
        }
        assert!(rows < 100_000, "40 MiB hold less");
    };
    assert_eq!(error.code, 1021, "{}", error.message);
    assert_eq!(
        run(&mut connection, "SELECT COUNT(*) FROM t"),
        [rows.to_string()],
        "reads go on, the failed write left nothing"
    );
    assert_eq!(run(&mut server.connect(), "INSERT INTO t VALUES (-1, 'x')"), ["error 1046"]);
    // Room again: writes work again.
    let grown = Command::new("mount").args(["-o", "remount,size=200m"]).arg(directory.path()).status();
    assert!(grown.is_ok_and(|s| s.success()));
    assert_eq!(run(&mut connection, "INSERT INTO t VALUES (-1, 'x')"), ["ok 1"]);
    server.kill();
    let server = Rauk::start(&data);
    assert_eq!(run(&mut server.connect(), "SELECT COUNT(*) FROM d.t"), [(rows + 1).to_string()]);
    assert!(server.stop().success());
    drop(unmount);
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
