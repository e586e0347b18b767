//! Clients that try to take the whole server: a polite client goes on, new clients log in, and KILL reaches every statement.
//!
//! One process with two worker threads. Each hostile statement runs on several connections at the same time, more than there are workers. Times are
//! printed (`-- --nocapture`); what is asserted is generous, since machines are busy.

use crate::common::{Rauk, rauk_command, run};
use mysql::prelude::Queryable;
use mysql::{Conn, Error};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Nobody waits longer for an answer that costs nothing.
const SOON: Duration = Duration::from_secs(5);
/// Connections that run one hostile statement at the same time.
const TOGETHER: usize = 3;

/// Resident memory in bytes.
fn resident(server: &Rauk) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the process lives");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("Linux says so");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
}

fn code(error: &Error) -> u16 {
    match error {
        Error::MySqlError(error) => error.code,
        other => panic!("the connection broke: {other}"),
    }
}

/// A client that asks for little, again and again, until it is told to stop.
struct Polite {
    stop: Arc<AtomicBool>,
    longest: Arc<Mutex<Duration>>,
    answers: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Polite {
    fn start(server: &Rauk) -> Polite {
        let mut conn = server.connect();
        let (stop, longest, answers) = <(Arc<AtomicBool>, Arc<Mutex<Duration>>, Arc<AtomicU64>)>::default();
        let (stopped, most, count) = (stop.clone(), longest.clone(), answers.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Relaxed) {
                let began = Instant::now();
                let row: Option<i64> = conn.query_first("SELECT v FROM d.small WHERE id = 7").expect("it answers");
                assert_eq!(row, Some(70));
                conn.query_drop("UPDATE d.small SET v = v WHERE id = 8").expect("it answers");
                let mut most = most.lock().expect("nobody panics with it");
                *most = most.max(began.elapsed());
                count.fetch_add(1, Relaxed);
                drop(most);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Polite { stop, longest, answers, thread }
    }

    /// The longest wait since the last time.
    fn longest(&self) -> Duration {
        std::mem::take(&mut *self.longest.lock().expect("nobody panics with it"))
    }

    fn end(self) {
        self.stop.store(true, Relaxed);
        self.thread.join().expect("the polite client has had its answers");
    }
}

/// Ids of the connections that run something of this kind.
fn running(conn: &mut Conn, beginning: &str) -> Vec<u64> {
    let rows: Vec<(u64, Option<String>)> =
        conn.query("SELECT ID, INFO FROM information_schema.PROCESSLIST").expect("the process list");
    rows.into_iter()
        .filter(|(_, info)| info.as_deref().is_some_and(|i| i.starts_with(beginning)))
        .map(|r| r.0)
        .collect()
}

/// Runs `sql` on several connections; after a moment whatever still runs is killed by a client that logs in only then. Gives how each of them ended.
fn attack(server: &Rauk, polite: &Polite, name: &str, sql: &str) -> Vec<Result<(), u16>> {
    polite.longest();
    let marked = format!("/* {name} */ {sql}");
    let began = Instant::now();
    let clients: Vec<_> = (0..TOGETHER)
        .map(|_| {
            let mut conn = server.connect();
            let (id, sql) = (u64::from(conn.connection_id()), marked.clone());
            let (sender, receiver) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let outcome = conn.query_drop(&sql).map_err(|error| code(&error));
                let _ = sender.send((outcome, Instant::now()));
            });
            (id, receiver)
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let login = Instant::now();
    let mut admin = server.connect();
    let login = login.elapsed();
    let mark = format!("/* {name} */");
    let mut asked = Vec::new();
    for id in running(&mut admin, &mark) {
        asked.push((id, Instant::now()));
        // It may have ended by itself.
        let _ = admin.query_drop(format!("KILL QUERY {id}"));
    }
    let mut outcomes = Vec::new();
    // From the question to the answer that the client of the statement gets.
    let mut slowest = Duration::ZERO;
    for (id, client) in clients {
        let ended = client.recv_timeout(SOON * 12);
        let (outcome, ended) = ended.unwrap_or_else(|e| panic!("{name}: {id} does not end: {e}"));
        if let Some((_, asked)) = asked.iter().find(|(killed, _)| *killed == id) {
            let took = ended.saturating_duration_since(*asked);
            assert!(took < SOON, "{name}: KILL has had no effect for {took:?}");
            slowest = slowest.max(took);
        }
        outcomes.push(outcome);
    }
    let killed = asked.len();
    let waited = polite.longest();
    println!(
        "{name:28} took {:5} ms; login {:4} ms; killed {killed}, slowest {:4} ms; polite client waited {:4} ms; {} MiB; {outcomes:?}",
        began.elapsed().as_millis(),
        login.as_millis(),
        slowest.as_millis(),
        waited.as_millis(),
        resident(server) >> 20,
    );
    assert!(login < SOON && waited < SOON, "{name}: {login:?} {waited:?}");
    outcomes
}

#[test]
fn hostile_clients_do_not_take_the_server() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = rauk_command(data.path());
    command.args(["--threads", "2"]);
    let server = Rauk::start_with(command).unwrap_or_else(|e| panic!("{e}"));
    let mut conn = server.connect();
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.small (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE d.large (id INT AUTO_INCREMENT PRIMARY KEY, k INT, t VARCHAR(200))",
    ] {
        conn.query_drop(sql).expect(sql);
    }
    let rows: Vec<String> = (0..100).map(|i| format!("({i}, {})", i * 10)).collect();
    conn.query_drop(format!("INSERT INTO d.small VALUES {}", rows.join(","))).expect("rows");
    conn.query_drop("INSERT INTO d.large (k, t) SELECT a.id, CONCAT('a text of some length ', a.id, '-', b.id) FROM d.small a, d.small b")
        .expect("rows");
    let polite = Polite::start(&server);

    let hex = format!("SELECT LENGTH({}'a'{})", "HEX(".repeat(46), ")".repeat(46));
    for outcome in attack(&server, &polite, "nested HEX", &hex) {
        assert!(outcome.is_ok() || outcome == Err(1317), "{outcome:?}");
    }
    for (name, sql) in [
        ("LIKE", "SELECT REPEAT('a',3000000) LIKE CONCAT('%',REPEAT('a',1500000),'b')"),
        ("LIKE with _", "SELECT REPEAT('a',3000000) LIKE CONCAT('%',REPEAT('aa_',500000),'b%')"),
        ("LOCATE", "SELECT LOCATE(CONCAT(REPEAT('a',1500000),'b'), REPEAT('a',3000000))"),
        ("REPLACE", "SELECT LENGTH(REPLACE(REPEAT('a',3000000), CONCAT(REPEAT('a',1500000),'b'), 'x'))"),
        ("SUBSTRING_INDEX", "SELECT LENGTH(SUBSTRING_INDEX(REPEAT('a',3000000), CONCAT(REPEAT('a',1500000),'b'), -1))"),
        ("REGEXP", "SELECT REPEAT('a',3000000) REGEXP '(a?){300}(a{0,30}){30}b'"),
    ] {
        for outcome in attack(&server, &polite, name, sql) {
            assert!(matches!(outcome, Ok(()) | Err(1317 | 3699)), "{name}: {outcome:?}");
        }
    }
    let reverse = format!("SELECT LENGTH({}REPEAT('a',30000000){})", "REVERSE(".repeat(400), ")".repeat(400));
    for outcome in attack(&server, &polite, "one long evaluation", &reverse) {
        assert_eq!(outcome, Err(1317));
    }
    // The memory limit is 1 GiB; a statement has a fifth of that, or 256 MiB.
    let ands = format!("SELECT {}", vec!["1"; 1_000_000].join(" AND "));
    for outcome in attack(&server, &polite, "5 MB of ANDs", &ands) {
        assert!(matches!(outcome, Err(1038 | 1317)), "{outcome:?}");
    }
    let text = "REPEAT('a', 60000000)";
    for (name, sql) in [
        ("UPPER", format!("SELECT LENGTH({}{text}{})", "UPPER(".repeat(50), ")".repeat(50))),
        ("LIKE %_b%", format!("SELECT {text} LIKE '%_b%', {text} LIKE '%_b%', {text} LIKE '%_b%'")),
        ("nested NULLIF", format!("SELECT {}id{} FROM d.small", "NULLIF(".repeat(60), ", 7)".repeat(60))),
    ] {
        for outcome in attack(&server, &polite, name, &sql) {
            assert!(matches!(outcome, Ok(()) | Err(1038 | 1317)), "{name}: {outcome:?}");
        }
    }
    let wide: Vec<String> = (0..1000).map(|i| format!("REPEAT('{i}', 20000000)")).collect();
    for outcome in attack(&server, &polite, "many large values", &format!("SELECT {}", wide.join(", "))) {
        assert!(matches!(outcome, Err(1038 | 1317)), "{outcome:?}");
    }
    for (open, close) in [("(", ")"), ("NOT ", ""), ("ABS(", ")"), ("CASE WHEN 1 THEN ", " END"), ("1 + ", "")] {
        let deep = format!("SELECT {}1{}", open.repeat(3000), close.repeat(3000));
        for outcome in attack(&server, &polite, open, &deep) {
            assert!(matches!(outcome, Ok(()) | Err(1317)), "{open}: {outcome:?}");
        }
        let deeper = format!("SELECT {}1{}", open.repeat(200_000), close.repeat(200_000));
        for outcome in attack(&server, &polite, open, &deeper) {
            assert!(matches!(outcome, Err(1436 | 1317)), "{open}: {outcome:?}");
        }
    }
    for (name, sql) in [
        ("large GROUP BY", "SELECT a.t, b.t, COUNT(*) FROM d.large a, d.large b GROUP BY a.t, b.t"),
        ("large sort", "SELECT a.t, b.t FROM d.large a, d.large b ORDER BY b.t, a.t"),
        ("join", "SELECT COUNT(*) FROM d.large a, d.large b WHERE a.t < REVERSE(b.t)"),
    ] {
        for outcome in attack(&server, &polite, name, sql) {
            assert!(matches!(outcome, Err(1317 | 1038)), "{name}: {outcome:?}");
        }
    }
    assert!(resident(&server) < 2 << 30, "{} MiB", resident(&server) >> 20);

    // max_execution_time reaches an evaluation that does not wait.
    conn.query_drop("SET max_execution_time = 200").expect("set");
    let began = Instant::now();
    assert_eq!(run(&mut conn, &reverse), ["error 3024"]);
    assert!(began.elapsed() < SOON);

    assert!(polite.answers.load(Relaxed) > 0);
    polite.end();
    server.stop();
}

/// A session whose client has vanished ends its statement.
#[test]
fn a_vanished_session_ends_its_statement() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let server = Rauk::start(data.path());
    let mut admin = server.connect();
    admin.query_drop("CREATE DATABASE d").expect("created");
    admin.query_drop("CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)").expect("created");
    admin.query_drop("INSERT INTO d.t (v) VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)").expect("rows");
    admin.query_drop("INSERT INTO d.t (v) SELECT a.v FROM d.t a, d.t b, d.t c, d.t d").expect("rows");
    admin.query_drop("BEGIN").expect("begun");
    admin.query_drop("UPDATE d.t SET v = 0 WHERE id = 1").expect("updated");
    let mut other = server.connect();
    for (name, sql) in [
        ("SELECT", "SELECT COUNT(*) FROM d.t a, d.t b WHERE a.v + b.v < a.id * b.id"),
        ("waiting UPDATE", "UPDATE d.t SET v = v + 1 WHERE id = 1"),
        ("SLEEP", "SELECT SLEEP(1000)"),
    ] {
        let mut client = server.connect();
        let stream = vanish::stream(server.port, sql);
        client.query_drop("SELECT 1").expect("another client lives");
        let began = Instant::now();
        while running(&mut other, sql).is_empty() {
            assert!(began.elapsed() < SOON, "{name} does not run");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(stream);
        let began = Instant::now();
        while !running(&mut other, sql).is_empty() {
            assert!(began.elapsed() < SOON * 2, "{name} goes on without a client");
            std::thread::sleep(Duration::from_millis(10));
        }
        println!("{name} ended {} ms after its client", began.elapsed().as_millis());
    }
    admin.query_drop("ROLLBACK").expect("rolled back");
    server.stop();
}

/// A client that says one statement and can go without a word: a connection of its own, by the protocol's bytes.
mod vanish {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn packet(stream: &mut TcpStream) -> Vec<u8> {
        let mut header = [0; 4];
        stream.read_exact(&mut header).expect("a packet");
        let mut body = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16];
        stream.read_exact(&mut body).expect("a packet's body");
        body
    }

    fn send(stream: &mut TcpStream, sequence: u8, body: &[u8]) {
        let length = (body.len() as u32).to_le_bytes();
        stream.write_all(&[length[0], length[1], length[2], sequence]).expect("sent");
        stream.write_all(body).expect("sent");
    }

    /// Logged in as root, with `sql` under way.
    pub fn stream(port: u16, sql: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        packet(&mut stream);
        // PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH; root has no password.
        let mut login = (1u32 << 9 | 1 << 15 | 1 << 19).to_le_bytes().to_vec();
        login.extend([0, 0, 0, 1, 255]);
        login.extend([0; 23]);
        login.extend(b"root\0\0caching_sha2_password\0");
        send(&mut stream, 1, &login);
        let answer = packet(&mut stream);
        assert_eq!(answer[0], 0, "root logs in: {answer:?}");
        let mut query = vec![3];
        query.extend(sql.as_bytes());
        send(&mut stream, 0, &query);
        stream
    }
}
