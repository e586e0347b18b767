//! A small blocking client, written from the protocol's manual and not from the server's code.
use mysql_common::auth::plugins::{caching_sha2_password::scramble_sha256, mysql_native_password::scramble_native};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub const PROTOCOL_41: u32 = 0x200;
pub const SSL: u32 = 0x800;
pub const DEPRECATE_EOF: u32 = 1 << 24;
pub const SESSION_TRACK: u32 = 1 << 23;
pub const COMPRESS: u32 = 0x20;
pub const MULTI: u32 = 1 << 16 | 1 << 17;
const BASE: u32 = 1 | 0x200 | 0x2000 | 0x8000 | 1 << 19 | 1 << 21;

pub trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

pub struct Client {
    pub stream: Box<dyn Wire>,
    pub sequence: u8,
    pub capabilities: u32,
    pub connection_id: u32,
    pub nonce: [u8; 20],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: u16,
    pub state: String,
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Names of the columns; empty: no result set.
    pub columns: Vec<String>,
    /// Row packets as they came.
    pub rows: Vec<Vec<u8>>,
    pub affected: u64,
    pub insert_id: u64,
    pub status: u16,
    pub warnings: u16,
    pub info: Vec<u8>,
}

impl Outcome {
    pub fn text(&self) -> Vec<Vec<Option<String>>> {
        self.rows
            .iter()
            .map(|row| {
                let mut at = 0;
                let mut values = Vec::new();
                while at < row.len() {
                    if row[at] == 0xFB {
                        values.push(None);
                        at += 1;
                    } else {
                        let (n, header) = lenenc(&row[at..]);
                        at += header;
                        values.push(Some(String::from_utf8_lossy(&row[at..at + n as usize]).into_owned()));
                        at += n as usize;
                    }
                }
                values
            })
            .collect()
    }
}

/// Value and length of a length-encoded integer.
pub fn lenenc(b: &[u8]) -> (u64, usize) {
    let le = |n: usize| b[1..=n].iter().rev().fold(0u64, |a, x| a << 8 | u64::from(*x));
    match b[0] {
        0xFC => (le(2), 3),
        0xFD => (le(3), 4),
        0xFE => (le(8), 9),
        n => (n.into(), 1),
    }
}

pub fn failure(packet: &[u8]) -> Failure {
    assert_eq!(packet[0], 0xFF, "an error packet: {packet:?}");
    let code = u16::from_le_bytes([packet[1], packet[2]]);
    let (state, message) = if packet[3] == b'#' { (&packet[4..9], &packet[9..]) } else { (&b""[..], &packet[3..]) };
    let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
    Failure { code, state: text(state), message: text(message) }
}

impl Client {
    /// Connects and reads the greeting.
    pub fn connect(port: u16) -> Result<Client, Failure> {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self::greeted(Box::new(stream))
    }

    pub fn greeted(stream: Box<dyn Wire>) -> Result<Client, Failure> {
        let mut client = Client { stream, sequence: 0, capabilities: 0, connection_id: 0, nonce: [0; 20] };
        let greeting = client.read();
        if greeting[0] == 0xFF {
            return Err(failure(&greeting));
        }
        let at = 1 + greeting[1..].iter().position(|b| *b == 0).unwrap() + 1;
        client.connection_id = u32::from_le_bytes(greeting[at..at + 4].try_into().unwrap());
        client.nonce[..8].copy_from_slice(&greeting[at + 4..at + 12]);
        client.nonce[8..].copy_from_slice(&greeting[at + 31..at + 43]);
        Ok(client)
    }

    pub fn send(&mut self, payload: &[u8]) {
        self.try_send(payload).unwrap();
    }

    pub fn try_send(&mut self, payload: &[u8]) -> std::io::Result<()> {
        let mut bytes = Vec::with_capacity(payload.len() + 8);
        let mut rest = payload;
        loop {
            let (now, later) = rest.split_at(rest.len().min(0xFF_FFFF));
            bytes.extend_from_slice(&(now.len() as u32).to_le_bytes()[..3]);
            bytes.push(self.sequence);
            self.sequence = self.sequence.wrapping_add(1);
            bytes.extend_from_slice(now);
            if now.len() < 0xFF_FFFF {
                return self.stream.write_all(&bytes);
            }
            rest = later;
        }
    }

    pub fn read(&mut self) -> Vec<u8> {
        self.try_read().unwrap()
    }

    pub fn try_read(&mut self) -> std::io::Result<Vec<u8>> {
        let mut payload = Vec::new();
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header)?;
            assert_eq!(header[3], self.sequence, "sequence number of the answer");
            self.sequence = self.sequence.wrapping_add(1);
            let n = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            let at = payload.len();
            payload.resize(at + n, 0);
            self.stream.read_exact(&mut payload[at..])?;
            if n < 0xFF_FFFF {
                return Ok(payload);
            }
        }
    }

    /// Sends the handshake response and goes through authentication, also to the public key when it is asked for.
    pub fn login(&mut self, user: &str, password: &str, extra: u32, plugin: &str) -> Result<(), Failure> {
        self.capabilities = BASE | extra;
        let mut p = self.capabilities.to_le_bytes().to_vec();
        p.extend_from_slice(&[0, 0, 0, 1, 45]);
        p.extend_from_slice(&[0; 23]);
        p.extend_from_slice(user.as_bytes());
        p.push(0);
        let proof = prove(plugin, &self.nonce, password);
        p.push(proof.len() as u8);
        p.extend_from_slice(&proof);
        p.extend_from_slice(plugin.as_bytes());
        p.push(0);
        self.send(&p);
        self.authenticate(password)
    }

    pub fn authenticate(&mut self, password: &str) -> Result<(), Failure> {
        loop {
            let packet = self.read();
            match packet.as_slice() {
                [0, ..] => return Ok(()),
                [0xFF, ..] => return Err(failure(&packet)),
                [0xFE, rest @ ..] => {
                    let end = rest.iter().position(|b| *b == 0).unwrap();
                    let plugin = std::str::from_utf8(&rest[..end]).unwrap().to_owned();
                    self.nonce.copy_from_slice(&rest[end + 1..end + 21]);
                    let proof = prove(&plugin, &self.nonce, password);
                    self.send(&proof);
                }
                [1, 3] => {}
                [1, 4] => self.send(&[2]),
                [1, pem @ ..] => {
                    let encrypted = encrypt(pem, &self.nonce, password);
                    self.send(&encrypted);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    pub fn command(&mut self, payload: &[u8]) {
        self.sequence = 0;
        self.send(payload);
    }

    /// One result: a result set or an OK.
    pub fn result(&mut self) -> Result<Outcome, Failure> {
        let first = self.read();
        match first[0] {
            0 => return Ok(self.ok(&first)),
            0xFF => return Err(failure(&first)),
            _ => {}
        }
        let mut outcome = Outcome::default();
        for _ in 0..lenenc(&first).0 {
            let definition = self.read();
            let mut at = 0;
            for field in 0..6 {
                let (n, header) = lenenc(&definition[at..]);
                at += header;
                if field == 4 {
                    outcome.columns.push(String::from_utf8(definition[at..at + n as usize].to_vec()).unwrap());
                }
                at += n as usize;
            }
        }
        if self.capabilities & DEPRECATE_EOF == 0 {
            let eof = self.read();
            assert_eq!((eof[0], eof.len()), (0xFE, 5));
            if eof[3] & 64 != 0 {
                outcome.status = u16::from_le_bytes([eof[3], eof[4]]);
                return Ok(outcome);
            }
        }
        self.rows(outcome)
    }

    /// Rows up to the end of the result set.
    pub fn rows(&mut self, mut outcome: Outcome) -> Result<Outcome, Failure> {
        loop {
            let packet = self.read();
            match packet[0] {
                0xFF => return Err(failure(&packet)),
                0xFE if packet.len() < 0xFF_FFFF => {
                    if self.capabilities & DEPRECATE_EOF == 0 {
                        outcome.warnings = u16::from_le_bytes([packet[1], packet[2]]);
                        outcome.status = u16::from_le_bytes([packet[3], packet[4]]);
                        return Ok(outcome);
                    }
                    let end = self.ok(&packet);
                    return Ok(Outcome { columns: outcome.columns, rows: outcome.rows, ..end });
                }
                _ => outcome.rows.push(packet),
            }
        }
    }

    fn ok(&self, packet: &[u8]) -> Outcome {
        let (affected, a) = lenenc(&packet[1..]);
        let (insert_id, b) = lenenc(&packet[1 + a..]);
        let rest = &packet[1 + a + b..];
        Outcome {
            affected,
            insert_id,
            status: u16::from_le_bytes([rest[0], rest[1]]),
            warnings: u16::from_le_bytes([rest[2], rest[3]]),
            info: rest[4..].to_vec(),
            ..Outcome::default()
        }
    }

    pub fn query(&mut self, sql: &str) -> Result<Outcome, Failure> {
        let mut payload = vec![3];
        payload.extend_from_slice(sql.as_bytes());
        self.command(&payload);
        self.result()
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0)) || self.stream.write_all(&[0]).is_err()
    }
}

fn prove(plugin: &str, nonce: &[u8; 20], password: &str) -> Vec<u8> {
    match plugin {
        "mysql_native_password" => scramble_native(nonce, password.as_bytes()).map(Vec::from).unwrap_or_default(),
        _ => scramble_sha256(nonce, password.as_bytes()).map(Vec::from).unwrap_or_default(),
    }
}

fn encrypt(pem: &[u8], nonce: &[u8; 20], password: &str) -> Vec<u8> {
    use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
    use rustls_pki_types::{SubjectPublicKeyInfoDer, pem::PemObject};
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).unwrap();
    let key = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&der).unwrap()).unwrap();
    let masked: Vec<u8> = password.bytes().chain([0]).zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect();
    let mut out = vec![0; key.ciphertext_size()];
    key.encrypt(&OAEP_SHA1_MGF1SHA1, &masked, &mut out, None).unwrap().to_vec()
}
