//! Character sets on the wire: a client that speaks the protocol's bytes sends statements and parameters in its set,
//! and reads rows, names, messages and metadata in the set that it asked for.
//!
//! The client is written out here, since a driver's would convert, or refuse to send what is no UTF-8.

use crate::common::Rauk;
use std::io::{Read, Write};
use std::net::TcpStream;

const LATIN1: u8 = 8;
const UTF8MB4: u8 = 45;

struct Client(TcpStream);

/// A column of a result: name, collation number, length.
type Head = (Vec<u8>, u16, u32);

#[derive(Debug, PartialEq)]
enum Answer {
    Ok,
    Error(u16, Vec<u8>),
    Rows(Vec<Head>, Vec<Vec<Option<Vec<u8>>>>),
}

fn lenenc(bytes: &mut &[u8]) -> usize {
    let first = bytes[0];
    let (length, skip) = match first {
        0xFC => (usize::from(bytes[1]) | usize::from(bytes[2]) << 8, 3),
        0xFD => (usize::from(bytes[1]) | usize::from(bytes[2]) << 8 | usize::from(bytes[3]) << 16, 4),
        _ => (usize::from(first), 1),
    };
    *bytes = &bytes[skip..];
    length
}

fn text(bytes: &mut &[u8]) -> Vec<u8> {
    let length = lenenc(bytes);
    let (text, rest) = bytes.split_at(length);
    *bytes = rest;
    text.to_vec()
}

impl Client {
    /// Logged in as root with a collation's number.
    fn connect(port: u16, collation: u8) -> Client {
        let mut client = Client(TcpStream::connect(("127.0.0.1", port)).expect("connected"));
        client.packet();
        // PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH; root has no password.
        let mut login = (1u32 << 9 | 1 << 15 | 1 << 19).to_le_bytes().to_vec();
        login.extend([0, 0, 0, 1, collation]);
        login.extend([0; 23]);
        login.extend(b"root\0\0caching_sha2_password\0");
        client.send(1, &login);
        let answer = client.packet();
        assert_eq!(answer[0], 0, "root logs in: {answer:?}");
        client
    }

    fn packet(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.0.read_exact(&mut header).expect("a packet");
        let mut body = vec![0; usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16];
        self.0.read_exact(&mut body).expect("a packet's body");
        body
    }

    fn send(&mut self, sequence: u8, body: &[u8]) {
        let length = (body.len() as u32).to_le_bytes();
        self.0.write_all(&[length[0], length[1], length[2], sequence]).expect("sent");
        self.0.write_all(body).expect("sent");
    }

    fn query(&mut self, sql: &[u8]) -> Answer {
        self.send(0, &[&[3], sql].concat());
        self.answer(|row, heads| {
            let mut row = row;
            let mut value = |_| match row[0] {
                0xFB => {
                    row = &row[1..];
                    None
                }
                _ => Some(text(&mut row)),
            };
            (0..heads).map(&mut value).collect()
        })
    }

    /// Executes a prepared statement with texts (VAR_STRING), whose columns are all texts.
    fn execute(&mut self, sql: &[u8], parameters: &[&[u8]]) -> Answer {
        self.send(0, &[&[0x16], sql].concat());
        let prepared = self.packet();
        assert_eq!(prepared[0], 0, "{prepared:?}");
        let columns = u16::from_le_bytes([prepared[5], prepared[6]]);
        let (count, id) = (u16::from_le_bytes([prepared[7], prepared[8]]), &prepared[1..5]);
        assert_eq!(usize::from(count), parameters.len());
        for definitions in [count, columns] {
            // Definitions, and an EOF behind them.
            (0..definitions + u16::from(definitions > 0)).for_each(|_| _ = self.packet());
        }
        let mut body = [&[0x17], id, &[0, 1, 0, 0, 0]].concat();
        if count > 0 {
            body.extend(vec![0; parameters.len().div_ceil(8)]);
            body.push(1);
            parameters.iter().for_each(|_| body.extend([253, 0]));
            for parameter in parameters {
                body.push(parameter.len() as u8);
                body.extend(*parameter);
            }
        }
        self.send(0, &body);
        self.answer(|row, heads| {
            let (nulls, mut rest) = row[1..].split_at((heads + 2).div_ceil(8));
            let null = |at: usize| nulls[(at + 2) / 8] & (1 << ((at + 2) % 8)) != 0;
            (0..heads).map(|at| (!null(at)).then(|| text(&mut rest))).collect()
        })
    }

    fn answer(&mut self, row: impl Fn(&[u8], usize) -> Vec<Option<Vec<u8>>>) -> Answer {
        let first = self.packet();
        match first[0] {
            0 => return Answer::Ok,
            0xFF => return Answer::Error(u16::from_le_bytes([first[1], first[2]]), first[9..].to_vec()),
            _ => {}
        }
        let heads: Vec<Head> = (0..first[0])
            .map(|_| {
                let packet = self.packet();
                let mut rest = &packet[..];
                // Catalog, database, table, its own name.
                (0..4).for_each(|_| _ = text(&mut rest));
                let name = text(&mut rest);
                text(&mut rest);
                let tail = &rest[1..];
                let length = u32::from_le_bytes([tail[2], tail[3], tail[4], tail[5]]);
                (name, u16::from_le_bytes([tail[0], tail[1]]), length)
            })
            .collect();
        self.packet();
        let mut rows = Vec::new();
        loop {
            let packet = self.packet();
            if packet[0] == 0xFE && packet.len() < 9 {
                return Answer::Rows(heads, rows);
            }
            rows.push(row(&packet, heads.len()));
        }
    }

    fn ok(&mut self, sql: &str) {
        assert_eq!(self.query(sql.as_bytes()), Answer::Ok, "{sql}");
    }

    /// The values of one row of texts.
    fn row(&mut self, sql: &[u8]) -> Vec<Vec<u8>> {
        one_row(self.query(sql))
    }
}

fn one_row(answer: Answer) -> Vec<Vec<u8>> {
    match answer {
        Answer::Rows(_, rows) if rows.len() == 1 => rows[0].iter().map(|value| value.clone().unwrap()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn texts_on_the_wire() {
    let directory = tempfile::tempdir().unwrap();
    let server = Rauk::start(directory.path());
    let mut latin1 = Client::connect(server.port, LATIN1);
    let mut utf8 = Client::connect(server.port, UTF8MB4);
    latin1.ok("CREATE DATABASE d CHARACTER SET utf8mb4");
    latin1.ok("USE d");
    utf8.ok("USE d");

    // The handshake's collation says the character set of both directions.
    let variables = b"SELECT @@character_set_client, @@character_set_results, @@collation_connection";
    assert_eq!(latin1.row(variables), [&b"latin1"[..], b"latin1", b"latin1_swedish_ci"]);
    latin1
        .ok("CREATE TABLE t (id INT PRIMARY KEY, l VARCHAR(10) CHARACTER SET latin1, u VARCHAR(10), b VARBINARY(10))");
    assert_eq!(latin1.query(b"INSERT INTO t VALUES (1, '\xE4\x80', '\xE4\x80', '\xE4\x80')"), Answer::Ok);
    assert_eq!(utf8.query("INSERT INTO t VALUES (2, 'ö', 'Ā😀', 'ö')".as_bytes()), Answer::Ok);
    let bytes = b"SELECT HEX(l), HEX(u), HEX(b) FROM t WHERE id = 1";
    assert_eq!(latin1.row(bytes), [&b"E480"[..], b"C3A4E282AC", b"E480"]);
    // What the client's set lacks is `?`; binary strings go as they are.
    assert_eq!(latin1.row(b"SELECT l, u, b FROM t WHERE id = 2"), [&b"\xF6"[..], b"??", "ö".as_bytes()]);
    assert_eq!(utf8.row(b"SELECT l, u, b FROM t WHERE id = 1"), ["ä€".as_bytes(), "ä€".as_bytes(), b"\xE4\x80"]);

    // Names, metadata and messages.
    let Answer::Rows(heads, _) = latin1.query(b"SELECT l AS '\xC4', u, b, id FROM t LIMIT 1") else { panic!("rows") };
    assert_eq!(heads[0], (b"\xC4".to_vec(), 8, 10));
    assert_eq!(
        heads[1..].iter().map(|(_, set, length)| (*set, *length)).collect::<Vec<_>>(),
        [(8, 10), (63, 10), (63, 11)]
    );
    let Answer::Rows(heads, _) = utf8.query("SELECT l AS 'Ä', u FROM t LIMIT 1".as_bytes()) else { panic!("rows") };
    assert_eq!(heads, [("Ä".as_bytes().to_vec(), 45, 40), (b"u".to_vec(), 45, 40)]);
    let Answer::Error(1054, message) = latin1.query(b"SELECT \xFCx FROM t") else { panic!("an error") };
    assert_eq!(message, b"Unknown column '\xFCx' in 'field list'");

    // Prepared statements.
    let inserted = latin1.execute(b"INSERT INTO t VALUES (3, ?, ?, ?)", &[b"\xDF", b"\xFC\x80", b"\xFC"]);
    assert_eq!(inserted, Answer::Ok);
    let found = latin1.execute(b"SELECT l, u, HEX(u), HEX(b) FROM t WHERE u = ?", &[b"\xDC\x80"]);
    assert_eq!(one_row(found), [&b"\xDF"[..], b"\xFC\x80", b"C3BCE282AC", b"FC"]);

    // An introducer takes the bytes as they were sent.
    assert_eq!(
        latin1.row(b"SELECT HEX(_binary'\xE4'), HEX(_latin1'\xE4'), HEX(_utf8mb4'\xC3\xA4')"),
        [&b"E4"[..], b"E4", b"C3A4"]
    );
    assert_eq!(utf8.row("SELECT HEX(_latin1'ä')".as_bytes()), [&b"C3A4"[..]]);

    // No conversion: each column in its own set, names in utf8mb4.
    latin1.ok("SET character_set_results = NULL");
    assert_eq!(latin1.row(b"SELECT l, u, b FROM t WHERE id = 1"), [&b"\xE4\x80"[..], "ä€".as_bytes(), b"\xE4\x80"]);
    let Answer::Rows(heads, _) = latin1.query(b"SELECT l, u, l AS '\xE4' FROM t LIMIT 1") else { panic!("rows") };
    assert_eq!((heads[0].1, heads[1].1, &heads[2].0[..]), (8, 255, "ä".as_bytes()));

    // The sets apart from one another.
    latin1.ok("SET character_set_client = cp1251");
    latin1.ok("SET character_set_results = koi8r");
    assert_eq!(latin1.row(b"SELECT '\xFE'"), [b"?"]);
    latin1.ok("SET character_set_connection = utf16");
    assert_eq!(latin1.row(b"SELECT '\xFE', HEX('\xFE')"), [&b"\xC0"[..], b"044E"]);
    latin1.ok("SET character_set_results = utf16");
    assert_eq!(latin1.row(b"SELECT '\xFE', 12"), [&b"\x04\x4E"[..], b"12"]);
    let refused = latin1.query(b"SET character_set_client = utf16");
    assert!(matches!(refused, Answer::Error(1231, _)), "{refused:?}");

    server.stop();
}

#[test]
fn sets_whose_second_bytes_look_like_ascii() {
    let directory = tempfile::tempdir().unwrap();
    let server = Rauk::start(directory.path());
    let mut client = Client::connect(server.port, UTF8MB4);
    client.ok("CREATE DATABASE d");
    client.ok("USE d");
    client.ok("CREATE TABLE t (s VARCHAR(10) CHARACTER SET sjis, g VARCHAR(10) CHARACTER SET gbk, u VARCHAR(10))");
    client.ok("SET NAMES sjis");
    // 95 5C is a character and no escape.
    assert_eq!(client.query(b"INSERT INTO t (s, u) VALUES ('\x95\x5C', '\x83\x60\x95\x5C')"), Answer::Ok);
    assert_eq!(
        client.row(b"SELECT s, u, HEX(s), HEX(u) FROM t"),
        [&b"\x95\x5C"[..], b"\x83\x60\x95\x5C", b"955C", b"E38381E8A1A8"]
    );
    client.ok("SET NAMES gbk");
    assert_eq!(client.query(b"UPDATE t SET g = '\xB3\x5C\\'', u = '\xB3\x5C'"), Answer::Ok);
    assert_eq!(
        client.row(b"SELECT g, u, HEX(g), CHAR_LENGTH(g) FROM t"),
        [&b"\xB3\x5C'"[..], b"\xB3\x5C", b"B35C27", b"2"]
    );
    // What is no character of the set is bytes in a literal, and an error elsewhere.
    assert!(matches!(client.query(b"UPDATE t SET g = '\xB3'"), Answer::Error(1366, _)));
    let Answer::Error(1300, message) = client.query(b"SELECT \xFF") else { panic!("an error") };
    assert_eq!(message, b"Invalid gbk character string: '\\xFF'");
    // SET CHARACTER SET: the connection's is that of the database.
    client.ok("SET CHARACTER SET latin1");
    let sets =
        b"SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection";
    assert_eq!(client.row(sets), [&b"latin1"[..], b"utf8mb4", b"latin1", b"utf8mb4_0900_ai_ci"]);
    // As dump tools say: a client of bytes gets and gives bytes.
    client.ok("SET NAMES binary");
    client.ok("CREATE TABLE e (e ENUM('ä', 'b') CHARACTER SET latin1)");
    assert_eq!(client.query(b"INSERT INTO e VALUES ('\xE4')"), Answer::Ok);
    assert_eq!(client.row(b"SELECT e FROM e"), [b"\xE4"]);
    assert_eq!(client.row(b"SELECT s, g FROM t"), [&b"\x95\x5C"[..], b"\xB3\x5C'"]);
    assert_eq!(client.query(b"UPDATE t SET g = '\xD6\xD0', u = '\xC3\xA4', s = 'a'"), Answer::Ok);
    assert_eq!(
        client.row(b"SELECT HEX(g), HEX(u), HEX(s), CHARSET('a') FROM t"),
        [&b"D6D0"[..], b"C3A4", b"61", b"binary"]
    );
    server.stop();
}
