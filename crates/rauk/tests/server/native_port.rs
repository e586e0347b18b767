//! The native port as its operator meets it: settings, the secret, the ready line, metrics, the variable, the end.

use crate::common::{Rauk, rauk_command, run};
use mysql::prelude::Queryable;
use rauk_node::block_on;
use rauk_transporter::{
    CloseReason, Handler, Identity, Link, Options, Secret, Security, TransportError, Transporter, Urgency,
};
use rauk_types::{TableSchema, Value, ValueRef};
use rauk_wire::definition::{Definition, TableName};
use rauk_wire::hello::Role;
use rauk_wire::*;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(10);

/// Everything that comes, in its order.
struct Inbox(Mutex<Sender<Frame>>);

impl Handler for Inbox {
    fn on_open(&self, _: &Arc<Link>) {}

    fn on_frame(&self, _: &Arc<Link>, frame: Frame) {
        let _ = self.0.lock().expect("nobody panics under it").send(frame);
    }

    fn on_close(&self, _: &Arc<Link>, _: &CloseReason) {}
}

/// A native client, as small as a test can do with.
struct Native {
    _transporter: Arc<Transporter>,
    link: Arc<Link>,
    frames: Receiver<Frame>,
    requests: u64,
}

impl Native {
    fn connect(server: &Rauk, secret: Secret) -> Result<Native, TransportError> {
        let (send, frames) = channel();
        let identity =
            Identity { role: Role::Client, cluster: [0; 16], incarnation: 0, version: PROTOCOL, name: "test".into() };
        let transporter = Transporter::start(Options::default(), identity, Arc::new(Inbox(Mutex::new(send))))?;
        let security = Security { secret: Some(secret), tls: None };
        let link = block_on(transporter.connect(&format!("127.0.0.1:{}", server.native_port), &security, WAIT))?;
        Ok(Native { _transporter: transporter, link, frames, requests: 0 })
    }

    fn of(server: &Rauk, data: &Path) -> Native {
        let secret = Secret::from_file(&data.join("native.secret")).expect("the server has made it");
        Native::connect(server, secret).expect("the secret is right")
    }

    fn ask(&mut self, kind: Kind, transaction: u64, payload: &[u8]) -> u64 {
        self.requests += 1;
        let mut frame = self.link.buffer();
        frame.extend_from_slice(payload);
        let header = Header { transaction, ..Header::new(kind, self.requests) };
        self.link.send(&header, frame, Urgency::Force).expect("the link is open");
        self.requests
    }

    fn call(&mut self, kind: Kind, transaction: u64, payload: &[u8]) -> Frame {
        let number = self.ask(kind, transaction, payload);
        let frame = self.frames.recv_timeout(WAIT).expect("an answer");
        assert_eq!(frame.header.request, number);
        frame
    }

    fn open(&mut self, database: &str, table: &str) -> TableSchema {
        let mut payload = Vec::new();
        definition::encode(&TableName { database: database.into(), table: table.into() }, &mut payload);
        let frame = self.call(Kind::OpenTable, 0, &payload);
        assert_eq!(frame.header.kind, Kind::Definition);
        definition::decode::<Definition>(&frame.payload).expect("a definition").schema
    }
}

fn shape(table: &TableSchema, kind: OpKind) -> Shape {
    let columns = if kind == OpKind::Insert { vec![0, 1] } else { vec![] };
    let wanted = if kind == OpKind::Read { Wanted::Row } else { Wanted::Nothing };
    Shape {
        table: table.id,
        version: table.version,
        kind,
        index: rauk_types::IndexId::PRIMARY,
        lock: LockWish::None,
        conditional: false,
        columns,
        wanted,
    }
}

fn insert(table: &TableSchema, options: &BatchOptions, rows: &[[i64; 2]]) -> Vec<u8> {
    let mut batch = BatchBuilder::new(Vec::new(), options, &[shape(table, OpKind::Insert)]);
    for row in rows {
        batch.values(0, row.iter().map(|v| ValueRef::Int(*v)));
    }
    batch.finish()
}

fn key(table: &TableSchema, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.key_def(table.primary()).encode_prefix(&[ValueRef::Int(id)], &mut key);
    key
}

fn outcomes(frame: &Frame) -> usize {
    assert_eq!(frame.header.kind, Kind::BatchAnswer);
    let mut reader = AnswerReader::parse(&frame.payload).expect("an answer");
    let mut good = 0;
    while let Some((_, outcome)) = reader.next_entry().expect("an entry") {
        good += usize::from(matches!(outcome, Outcome::Done { .. } | Outcome::Row { .. }));
    }
    good
}

#[test]
fn programs_and_sql_see_the_same_rows() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let server = Rauk::start(data.path());
    let secret = data.path().join("native.secret");
    assert_eq!(std::fs::metadata(&secret).expect("made at the start").permissions().mode() & 0o777, 0o600);
    let mut sql = server.connect();
    sql.query_drop("CREATE DATABASE d").expect("create");
    sql.query_drop("CREATE TABLE d.t (id BIGINT PRIMARY KEY, v BIGINT)").expect("create");
    let mut native = Native::of(&server, data.path());
    let table = native.open("d", "t");
    let rows: Vec<[i64; 2]> = (0..100).map(|i| [i, i * i]).collect();
    assert_eq!(outcomes(&native.call(Kind::Batch, 0, &insert(&table, &BatchOptions::default(), &rows))), 100);
    assert_eq!(run(&mut sql, "SELECT COUNT(*), SUM(v) FROM d.t"), ["100 | 328350"]);
    sql.query_drop("UPDATE d.t SET v = -1 WHERE id = 7").expect("update");
    let mut batch = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &[shape(&table, OpKind::Read)]);
    (0..200).for_each(|i| {
        batch.key(0, &key(&table, i), None);
    });
    let frame = native.call(Kind::Batch, 0, &batch.finish());
    assert_eq!(outcomes(&frame), 100);
    assert!(frame.header.timestamp > 0 && frame.header.incarnation > 0 && frame.header.cluster != [0; 16]);
    let mut reader = AnswerReader::parse(&frame.payload).expect("an answer");
    let mut seven = None;
    while let Some((operation, outcome)) = reader.next_entry().expect("an entry") {
        if let (7, Outcome::Row { layout, bytes }) = (operation, outcome) {
            seven = Some(rauk_types::RowView::new(&table, layout, bytes).get(1).to_owned());
        }
    }
    assert_eq!(seven, Some(Value::Int(-1)));
    // A changed definition is noticed, and the new one is there.
    let schema = frame.header.schema;
    sql.query_drop("ALTER TABLE d.t ADD COLUMN w INT DEFAULT 5").expect("alter");
    let failed = native.call(Kind::Batch, 0, &insert(&table, &BatchOptions::default(), &[[1000, 1]]));
    assert_eq!(Failure::decode(&failed.payload).expect("a failure").code, 1412);
    assert!(failed.header.schema > schema);
    assert_eq!(native.open("d", "t").columns.len(), 3);
    // What the operator sees.
    let metrics = server.http("/metrics");
    for line in [
        "rauk_native_batches_total 3",
        "rauk_native_batches_at_once_total 1",
        "rauk_native_operations_total 300",
        "rauk_native_definitions_total 2",
        "rauk_native_failures_total 1",
        "rauk_native_links 1",
        "rauk_native_sessions 1",
        "rauk_native_frames_received_total",
        "rauk_native_frames_sent_total",
        "rauk_native_sends_total",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
    let port = server.native_port;
    assert_eq!(run(&mut sql, "SELECT @@rauk_native_port"), [port.to_string()]);
    assert_eq!(run(&mut sql, "SHOW VARIABLES LIKE 'rauk_native_longest_wait'"), ["rauk_native_longest_wait | 200"]);
    sql.query_drop("SET PERSIST rauk_native_longest_wait = 0").expect("set");
    assert_eq!(run(&mut sql, "SELECT @@rauk_native_longest_wait"), ["0"]);
    assert_eq!(native.call(Kind::Rollback, 5, &[]).header.kind, Kind::Done);
    // The secret stays the same over restarts.
    let before = std::fs::read(&secret).expect("readable");
    drop(native);
    assert!(server.stop().success());
    let server = Rauk::start(data.path());
    assert_eq!(std::fs::read(&secret).expect("readable"), before);
    assert_eq!(run(&mut server.connect(), "SELECT @@rauk_native_longest_wait"), ["0"]);
    Native::of(&server, data.path());
}

#[test]
fn open_transactions_end_with_the_server() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let server = Rauk::start(data.path());
    let mut sql = server.connect();
    sql.query_drop("CREATE DATABASE d").expect("create");
    sql.query_drop("CREATE TABLE d.t (id BIGINT PRIMARY KEY, v BIGINT)").expect("create");
    let mut native = Native::of(&server, data.path());
    let table = native.open("d", "t");
    let begin = BatchOptions { begin: true, ..BatchOptions::default() };
    assert_eq!(outcomes(&native.call(Kind::Batch, 1, &insert(&table, &begin, &[[1, 1]]))), 1);
    assert_eq!(outcomes(&native.call(Kind::Batch, 0, &insert(&table, &BatchOptions::default(), &[[2, 2]]))), 1);
    // A second transaction waits for the first; both are open when the server stops.
    let mut waiter = Native::of(&server, data.path());
    waiter.ask(Kind::Batch, 2, &insert(&table, &begin, &[[1, 9]]));
    let mut other = Native::of(&server, data.path());
    let batch = insert(&table, &begin, &[[3, 3]]);
    assert_eq!(outcomes(&other.call(Kind::Batch, 1, &batch)), 1);
    // A client that is gone leaves nothing.
    drop(other);
    let deadline = Instant::now() + WAIT;
    while !server.http("/metrics").contains("rauk_native_links 2\n") {
        assert!(Instant::now() < deadline, "a link ends with its client");
        std::thread::sleep(Duration::from_millis(10));
    }
    let metrics = server.http("/metrics");
    assert!(
        metrics.contains("rauk_native_transactions 2\n") && metrics.contains("rauk_native_sessions 2\n"),
        "{metrics}"
    );
    let started = Instant::now();
    assert!(server.stop().success());
    assert!(started.elapsed() < Duration::from_secs(8), "what is idle is ended, so what waits for it goes on");
    let server = Rauk::start(data.path());
    assert_eq!(run(&mut server.connect(), "SELECT id FROM d.t"), ["2"]);
}

#[test]
fn strangers_and_garbage_are_refused() {
    use std::io::{Read, Write};
    let data = tempfile::tempdir().expect("a temporary directory");
    let server = Rauk::start(data.path());
    let wrong = Secret::new("not the secret that was meant").expect("long enough");
    match Native::connect(&server, wrong) {
        Err(TransportError::Refused { reason, .. }) => assert_eq!(reason, hello::Refusal::Credentials),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a wrong secret was taken"),
    }
    let mut raw = std::net::TcpStream::connect(("127.0.0.1", server.native_port)).expect("the port is open");
    raw.set_read_timeout(Some(WAIT)).expect("set");
    let _ = raw.write_all(
        b"GET / HTTP/1.1\r\n\r\n and a lot of other things that are no frame at all, as long as a header and more",
    );
    let mut text = Vec::new();
    let _ = raw.read_to_end(&mut text);
    // A request that is none ends the link; others do not notice.
    let mut good = Native::of(&server, data.path());
    let mut bad = Native::of(&server, data.path());
    let frame = bad.call(Kind::Batch, 0, &[1, 2, 3]);
    assert_eq!(Failure::decode(&frame.payload).expect("a failure").code, 1835);
    let deadline = Instant::now() + WAIT;
    while !bad.link.is_closed() {
        assert!(Instant::now() < deadline, "who sends garbage is cut off");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(good.call(Kind::Rollback, 1, &[]).header.kind, Kind::Done);
}

#[test]
fn wrong_settings_are_refused_by_name() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let refusal = |arguments: &[&str]| {
        let mut command = rauk_command(data.path());
        command.args(arguments);
        match Rauk::start_with(command) {
            Ok(_) => panic!("it started"),
            Err(error) => error,
        }
    };
    let busy = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = busy.local_addr().expect("an address").port().to_string();
    let error = refusal(&["--native-port", &port]);
    assert!(error.contains(&port) && error.contains("--native-port"), "{error}");
    let short = data.path().with_extension("secret");
    std::fs::write(&short, "short").expect("written");
    let error = refusal(&["--secret-file", &short.display().to_string()]);
    assert!(error.contains("16") && error.contains("--secret-file"), "{error}");
    let error = refusal(&["--secret-file", "/not/there"]);
    assert!(error.contains("/not/there"), "{error}");
    let error = refusal(&["--native-tls-cert", "/not/there.pem"]);
    assert!(error.contains("native-tls-key"), "{error}");
    let _ = std::fs::remove_file(short);
}
