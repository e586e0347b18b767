//! A client that keeps to no rules: sockets, frames and the handshake by hand, so that a test can send what no library sends.

use crate::common::{Rauk, rauk_command, run};
use aws_lc_rs::hmac;
use rauk_types::{KeyDef, TableSchema, ValueRef};
use rauk_wire::batch::{BatchOptions, OpKind, Outcome};
use rauk_wire::definition::{self, Definition, TableName};
use rauk_wire::frame::{self, HEADER, Parsed};
use rauk_wire::hello::{Challenge, Hello, Proof, Refused, Role, Welcome};
use rauk_wire::{AnswerReader, BatchBuilder, Failure, Header, Kind, LockWish, Shape, Wanted};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long a server may take to do what it does at once.
pub const SOON: Duration = Duration::from_secs(10);

/// A server with `shop.orders`, ten rows in it.
pub struct Server {
    pub rauk: Rauk,
    pub secret: Vec<u8>,
    pub directory: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Server {
        Server::start_with(|_| {})
    }

    pub fn start_with(change: impl FnOnce(&mut Command)) -> Server {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut command = rauk_command(directory.path());
        change(&mut command);
        let rauk = Rauk::start_with(command).unwrap_or_else(|e| panic!("{e}"));
        let mut connection = rauk.connect();
        for sql in [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.orders (id BIGINT UNSIGNED PRIMARY KEY, customer VARCHAR(10), price DECIMAL(12,2) NOT NULL DEFAULT 0, \
             note MEDIUMTEXT, born DATE, UNIQUE KEY by_customer (customer), KEY by_price (price))",
        ] {
            assert!(run(&mut connection, sql)[0].starts_with("ok"), "{sql}");
        }
        for id in 0..10 {
            let sql = format!("INSERT INTO shop.orders VALUES ({id}, 'c{id}', {id}, REPEAT('n', 2000), '2024-01-01')");
            assert_eq!(run(&mut connection, &sql), ["ok 1"]);
        }
        let secret = read_secret(directory.path());
        Server { rauk, secret, directory }
    }

    pub fn native_port(&self) -> u16 {
        self.rauk.native_port
    }

    /// A connection of which nothing was said yet.
    pub fn dial(&self) -> Raw {
        Raw::dial(self.native_port())
    }

    /// A connection whose handshake went well.
    pub fn connect(&self) -> Raw {
        let mut raw = self.dial();
        raw.handshake(hello(), Some(&self.secret)).expect("the right secret");
        raw
    }

    /// Everything is as it should be: a new client of either kind is served.
    pub fn assert_serves(&self) {
        let mut raw = self.connect();
        let table = raw.open("shop", "orders");
        assert!(matches!(raw.read_row(&table, 3), Answered::Row(_)));
        assert_eq!(run(&mut self.rauk.connect(), "SELECT COUNT(*) FROM shop.orders"), ["10"]);
    }

    /// Resident memory in KiB.
    pub fn memory_kib(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.rauk.pid())).expect("the server lives");
        let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    }

    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.rauk.pid())).expect("the server lives").count()
    }
}

pub fn read_secret(directory: &Path) -> Vec<u8> {
    rauk_transporter::Secret::from_file(&directory.join("native.secret")).expect("made at the first start");
    let bytes = std::fs::read(directory.join("native.secret")).expect("it can be read");
    bytes.trim_ascii().to_vec()
}

pub fn hello() -> Hello {
    Hello {
        oldest: rauk_wire::OLDEST_PROTOCOL,
        newest: rauk_wire::PROTOCOL,
        role: Role::Client,
        cluster: [0; 16],
        nonce: [42; 32],
        has_secret: true,
        name: "bad input".into(),
    }
}

/// Why no frame came.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The server has closed the connection.
    Closed,
    /// It has not, and says nothing.
    Silent,
}

pub struct Raw {
    pub stream: TcpStream,
    received: Vec<u8>,
    /// What frames are written in.
    pub format: u16,
    request: u64,
}

impl Raw {
    pub fn dial(port: u16) -> Raw {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
        stream.set_nodelay(true).expect("a socket");
        Raw { stream, received: Vec::new(), format: rauk_wire::PROTOCOL, request: 0 }
    }

    /// An error when the server has gone away meanwhile, which it may.
    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub fn frame(&self, kind: Kind, request: u64, transaction: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = frame::begin();
        bytes.extend_from_slice(payload);
        frame::finish(&mut bytes, &Header { format: self.format, transaction, ..Header::new(kind, request) });
        bytes
    }

    /// The next frame that comes within `limit`.
    pub fn next(&mut self, limit: Duration) -> Result<(Header, Vec<u8>), End> {
        let deadline = Instant::now() + limit;
        let mut buffer = [0; 64 << 10];
        loop {
            match frame::parse(&self.received).expect("the server sends frames") {
                Parsed::Whole(header, length) => {
                    let payload = self.received[HEADER..length].to_vec();
                    self.received.drain(..length);
                    return Ok((header, payload));
                }
                Parsed::Incomplete(_) => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(End::Silent);
            }
            self.stream.set_read_timeout(Some(left)).expect("a socket");
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(End::Closed),
                Ok(read) => self.received.extend_from_slice(&buffer[..read]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Err(End::Silent),
                Err(_) => return Err(End::Closed),
            }
        }
    }

    /// Whether the server closes the connection, whatever it says before.
    pub fn is_closed_within(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            match self.next(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(end) => return end == End::Closed,
            }
        }
    }

    /// Goes through the handshake; `Err` with what the server refuses it for.
    pub fn handshake(&mut self, hello: Hello, secret: Option<&[u8]>) -> Result<Welcome, Refused> {
        let mut transcript = Vec::new();
        let mut add = |kind: Kind, payload: &[u8]| {
            transcript.extend_from_slice(&(kind as u16).to_le_bytes());
            transcript.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            transcript.extend_from_slice(payload);
            transcript.clone()
        };
        let mut payload = Vec::new();
        hello.encode(&mut payload);
        add(Kind::Hello, &payload);
        self.send(&self.frame(Kind::Hello, 0, 0, &payload)).expect("the port is open");
        let challenge = self.expect(Kind::Challenge)?;
        let said = add(Kind::Challenge, &challenge);
        let challenge = Challenge::decode(&challenge).expect("a challenge");
        assert!(challenge.wants_secret, "a server without certificates asks for the secret");
        let keyed = |secret: &[u8], role: &[u8], said: &[u8]| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            <[u8; 32]>::try_from(hmac::sign(&key, &[role, said].concat()).as_ref()).expect("32 bytes")
        };
        let proof = secret.map(|secret| keyed(secret, b"rauk client", &said));
        payload.clear();
        Proof { proof }.encode(&mut payload);
        let said = add(Kind::Proof, &payload);
        self.send(&self.frame(Kind::Proof, 0, 0, &payload)).expect("the server waits for a proof");
        let welcome = Welcome::decode(&self.expect(Kind::Welcome)?).expect("a welcome");
        let expected = secret.map(|secret| keyed(secret, b"rauk server", &said));
        assert_eq!(welcome.proof, expected, "the server knows the secret too");
        Ok(welcome)
    }

    fn expect(&mut self, kind: Kind) -> Result<Vec<u8>, Refused> {
        match self.next(SOON) {
            Ok((header, payload)) if header.kind == kind => Ok(payload),
            Ok((header, payload)) if header.kind == Kind::Refused => Err(Refused::decode(&payload).expect("a refusal")),
            other => panic!("{kind:?} was expected: {other:?}"),
        }
    }

    /// Sends a request and gives its answer.
    pub fn ask(&mut self, kind: Kind, transaction: u64, payload: &[u8]) -> Result<(Kind, Vec<u8>), End> {
        self.request += 1;
        let request = self.request;
        if self.send(&self.frame(kind, request, transaction, payload)).is_err() {
            return Err(End::Closed);
        }
        loop {
            let (header, payload) = self.next(SOON)?;
            if header.request == request {
                return Ok((header.kind, payload));
            }
        }
    }

    /// A request that the server refuses with this error, and then goes on.
    pub fn refused(&mut self, kind: Kind, transaction: u64, payload: &[u8]) -> Failure {
        match self.ask(kind, transaction, payload) {
            Ok((Kind::Failed, payload)) => Failure::decode(&payload).expect("a failure"),
            other => panic!("{kind:?} was to be refused: {other:?}"),
        }
    }

    pub fn open(&mut self, database: &str, table: &str) -> TableSchema {
        let mut payload = Vec::new();
        definition::encode(&TableName { database: database.into(), table: table.into() }, &mut payload);
        match self.ask(Kind::OpenTable, 0, &payload) {
            Ok((Kind::Definition, payload)) => definition::decode::<Definition>(&payload).expect("a definition").schema,
            other => panic!("{other:?}"),
        }
    }

    /// A batch of one operation.
    pub fn one(&mut self, transaction: u64, options: &BatchOptions, operation: &Operation<'_>) -> Answered {
        match self.ask(Kind::Batch, transaction, &operation.batch(options)) {
            Ok((Kind::BatchAnswer, payload)) => {
                let mut reader = AnswerReader::parse(&payload).expect("an answer");
                let (_, outcome) = reader.next_entry().expect("an entry").expect("an entry");
                Answered::of(outcome)
            }
            Ok((Kind::Failed, payload)) => Answered::Failed(Failure::decode(&payload).expect("a failure")),
            Ok((kind, _)) => panic!("{kind:?} answers a batch"),
            Err(end) => Answered::End(end),
        }
    }

    pub fn read_row(&mut self, table: &TableSchema, id: u64) -> Answered {
        let key = key(table, id);
        self.one(0, &BatchOptions::default(), &Operation::new(table, OpKind::Read, &key))
    }

    /// Sets the customer of a row, in a transaction that this begins.
    pub fn begin_and_update(&mut self, table: &TableSchema, transaction: u64, id: u64, customer: &str) -> Answered {
        let key = key(table, id);
        let values = [ValueRef::Str(customer)];
        let operation = Operation { columns: vec![1], values: &values, ..Operation::new(table, OpKind::Update, &key) };
        self.one(transaction, &BatchOptions { begin: true, ..BatchOptions::default() }, &operation)
    }
}

pub fn key(table: &TableSchema, id: u64) -> Vec<u8> {
    let mut key = Vec::new();
    KeyDef::new(table, &table.primary().parts).encode_prefix(&[ValueRef::UInt(id)], &mut key);
    key
}

/// What an operation of a batch is made of; any of it may be wrong.
pub struct Operation<'o> {
    pub table: u32,
    pub version: u32,
    pub kind: OpKind,
    pub index: u16,
    pub columns: Vec<u16>,
    pub wanted: Wanted,
    pub key: &'o [u8],
    pub values: &'o [ValueRef<'o>],
}

impl<'o> Operation<'o> {
    pub fn new(table: &TableSchema, kind: OpKind, key: &'o [u8]) -> Operation<'o> {
        Operation {
            table: table.id.0,
            version: table.version,
            kind,
            index: 0,
            columns: Vec::new(),
            wanted: if kind == OpKind::Read { Wanted::Row } else { Wanted::Nothing },
            key,
            values: &[],
        }
    }

    pub fn shape(&self) -> Shape {
        Shape {
            table: rauk_types::TableId(self.table),
            version: self.version,
            kind: self.kind,
            index: rauk_types::IndexId(self.index),
            lock: LockWish::None,
            conditional: false,
            columns: self.columns.clone(),
            wanted: self.wanted.clone(),
        }
    }

    pub fn batch(&self, options: &BatchOptions) -> Vec<u8> {
        let mut builder = BatchBuilder::new(Vec::new(), options, &[self.shape()]);
        let values = self.values.iter().copied();
        match (self.kind.has_key(), self.kind.has_values()) {
            (true, false) => builder.key(0, self.key, None),
            (false, _) => builder.values(0, values),
            (true, true) => builder.key_and_values(0, self.key, values, None),
        };
        builder.finish()
    }
}

/// What became of a single operation.
#[derive(Debug, PartialEq)]
pub enum Answered {
    Row(Vec<u8>),
    Done,
    Missing,
    /// The operation or the whole batch failed.
    Failed(Failure),
    End(End),
    Other(String),
}

impl Answered {
    fn of(outcome: Outcome<'_>) -> Answered {
        match outcome {
            Outcome::Row { bytes, .. } => Answered::Row(bytes.to_vec()),
            Outcome::Done { .. } => Answered::Done,
            Outcome::Missing => Answered::Missing,
            Outcome::Failed(failure) => Answered::Failed(failure),
            other => Answered::Other(format!("{other:?}")),
        }
    }

    /// The code of a failure, 0 of anything else.
    pub fn code(&self) -> u16 {
        if let Answered::Failed(failure) = self { failure.code } else { 0 }
    }
}
