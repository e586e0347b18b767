//! Peers: groups of commands over one socket a thread, several groups in flight.
//!
//! A group is written with one system call; answers are read as they come and checked against what is expected of them: every value's length, key
//! and bytes, every status. Commands and answers are not built or taken apart beyond that, so that the client costs the peer as little as it can.
//!
//! Both ends could wait for each other when either sends more than the sockets hold while the other does the same. So a further group is only written while the
//! answers or the commands under way are few enough to fit into the sockets.

use super::measure::Tally;
use super::payload;
use super::workload::{Source, Step};
use super::{memcached, redis};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What the next answer must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Text(&'static [u8]),
    /// The value of a key. In memcached's multi-key answers the key is named.
    Value {
        key: u64,
        named: bool,
    },
    /// Redis: the head of a list of so many.
    List(usize),
}

/// How a peer is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Redis {
        /// One MGET for reads that follow each other, in place of a GET each.
        mget: bool,
        /// MULTI and EXEC around each group.
        transactional: bool,
    },
    Memcached {
        /// One `get` with many keys for reads that follow each other, in place of meta commands.
        multi_get: bool,
    },
}

impl Protocol {
    fn encode(self, steps: &[Step], payload: &mut Stamped, out: &mut Vec<u8>, expected: &mut VecDeque<Expected>) {
        match self {
            Protocol::Redis { mget, transactional } => {
                redis::encode(steps, mget, transactional, payload, out, expected);
            }
            Protocol::Memcached { multi_get } => memcached::encode(steps, multi_get, payload, out, expected),
        }
    }
}

/// A record to be written: stamped anew for each write.
pub struct Stamped {
    bytes: Vec<u8>,
    version: u16,
}

impl Stamped {
    pub fn new(size: usize) -> Stamped {
        Stamped { bytes: payload::blank(size), version: 0 }
    }

    pub fn of(&mut self, key: u64) -> &[u8] {
        self.version = self.version.wrapping_add(1);
        payload::stamp(&mut self.bytes, key, self.version);
        &self.bytes
    }

    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Digits of a number.
pub struct Decimal {
    digits: [u8; 20],
    start: usize,
}

impl Decimal {
    /// At least `width` of them.
    #[inline]
    pub fn new(mut number: u64, width: usize) -> Decimal {
        let mut digits = [b'0'; 20];
        let mut start = digits.len();
        while number > 0 {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        Decimal { digits, start: start.min(20 - width) }
    }

    /// A key as the peers have it: twelve digits, as redis-benchmark makes them; only keys made by inserts may have more.
    #[inline]
    pub fn key(key: u64) -> Decimal {
        Decimal::new(key, 12)
    }

    #[inline]
    pub fn text(&self) -> &[u8] {
        &self.digits[self.start..]
    }
}

/// One value's answer, as both peers give it: a head that is known, the bytes, an end of line.
pub struct ValueForm {
    /// Before the key (memcached's multi-key answers), and all of it where no key is named.
    before_key: Vec<u8>,
    after_key: Vec<u8>,
    size: usize,
}

impl ValueForm {
    fn new(protocol: Protocol, size: usize) -> ValueForm {
        let (before_key, after_key) = match protocol {
            Protocol::Redis { .. } => (format!("${size}\r\n"), String::new()),
            Protocol::Memcached { multi_get: false } => (format!("VA {size}\r\n"), String::new()),
            Protocol::Memcached { multi_get: true } => ("VALUE ".to_string(), format!(" 0 {size}\r\n")),
        };
        ValueForm { before_key: before_key.into_bytes(), after_key: after_key.into_bytes(), size }
    }
}

enum Checked {
    /// Right; so many bytes.
    Right(usize),
    /// Not wholly there yet.
    More,
    Wrong(usize, String),
}

fn check(expected: Expected, form: &ValueForm, bytes: &[u8]) -> Checked {
    match expected {
        Expected::Text(text) if bytes.starts_with(text) => Checked::Right(text.len()),
        Expected::Text(text) => line(bytes, || String::from_utf8_lossy(text).trim_end().to_string()),
        Expected::List(n) => {
            let text = format!("*{n}\r\n");
            if bytes.starts_with(text.as_bytes()) { Checked::Right(text.len()) } else { line(bytes, || text) }
        }
        Expected::Value { key, named } => {
            let text = if named { Some(Decimal::key(key)) } else { None };
            let head = form.before_key.len() + text.as_ref().map_or(0, |t| t.text().len()) + form.after_key.len();
            let whole = head + form.size + 2;
            let head_fits = |bytes: &[u8]| match &text {
                None => bytes.starts_with(&form.before_key),
                Some(text) => bytes
                    .strip_prefix(&form.before_key[..])
                    .and_then(|rest| rest.strip_prefix(text.text()))
                    .is_some_and(|rest| rest.starts_with(&form.after_key)),
            };
            if bytes.len() >= whole && head_fits(bytes) && bytes[whole - 2..whole] == *b"\r\n" {
                return if payload::belongs_to(&bytes[head..whole - 2], key) {
                    Checked::Right(whole)
                } else {
                    Checked::Wrong(whole, format!("the value of key {key} is not what was written"))
                };
            }
            // The head is one line; what is there of it tells whether the value is still on its way.
            match bytes.iter().position(|b| *b == b'\n') {
                None => Checked::More,
                Some(end) if end + 1 == head && head_fits(bytes) && bytes.len() < whole => Checked::More,
                Some(_) => line(bytes, || format!("the value of key {key}")),
            }
        }
    }
}

/// An answer that is not the right one: its line, once that is there.
fn line(bytes: &[u8], wanted: impl FnOnce() -> String) -> Checked {
    match bytes.iter().position(|b| *b == b'\n') {
        None => Checked::More,
        Some(end) => {
            let text = String::from_utf8_lossy(&bytes[..end]).trim_end().to_string();
            Checked::Wrong(end + 1, format!("wanted {}, got {text}", wanted()))
        }
    }
}

struct Group {
    steps: Vec<Step>,
    /// Answers that are still to come, bytes of the commands, about how many of the answers.
    answers: usize,
    sent: usize,
    awaited: usize,
    started: Instant,
    right: bool,
}

/// What sockets hold in each direction, with room to spare.
const FITS: usize = 64 << 10;

/// Works on one socket until the tally says that it is over or the source is empty, then takes the last answers.
pub fn client(
    port: u16,
    protocol: Protocol,
    parallel: usize,
    operations: usize,
    size: usize,
    source: &mut Source,
    tally: &mut Tally<'_>,
) -> Result<(), String> {
    let lost = |e: std::io::Error| format!("the connection to port {port} was lost: {e}");
    let mut socket =
        TcpStream::connect(("127.0.0.1", port)).map_err(|e| format!("cannot connect to port {port}: {e}"))?;
    socket.set_nodelay(true).map_err(lost)?;
    socket.set_read_timeout(Some(Duration::from_secs(60))).map_err(lost)?;
    let mut payload = Stamped::new(size);
    let mut answers = Answers {
        form: ValueForm::new(protocol, size),
        expected: VecDeque::new(),
        groups: VecDeque::new(),
        sent: 0,
        awaited: 0,
        input: vec![0u8; (size * 2).max(64 << 10)],
        start: 0,
        end: 0,
    };
    let mut idle: Vec<Vec<Step>> = Vec::new();
    let mut out = Vec::new();
    let mut over = false;
    loop {
        while !over && answers.groups.len() < parallel && answers.fits() {
            let mut steps = idle.pop().unwrap_or_default();
            over = tally.is_over() || !source.group(operations, &mut steps);
            if over {
                break;
            }
            out.clear();
            let started = Instant::now();
            let before = answers.expected.len();
            protocol.encode(&steps, &mut payload, &mut out, &mut answers.expected);
            answers.on_sent(before, steps, out.len(), started);
            socket.write_all(&out).map_err(lost)?;
        }
        if answers.groups.is_empty() {
            return Ok(());
        }
        if let Some(group) = answers.next_group(tally) {
            if group.right {
                source.on_done(&group.steps);
                tally.on_done(&group.steps, size, group.started.elapsed());
            }
            idle.push(group.steps);
            // The next group leaves before what has come of the others is looked at.
            continue;
        }
        if !answers.read(&mut socket).map_err(lost)? {
            return Err(format!("the server on port {port} closed the connection"));
        }
    }
}

/// Groups under way, and the answers that have come.
struct Answers {
    form: ValueForm,
    expected: VecDeque<Expected>,
    groups: VecDeque<Group>,
    /// Bytes of commands and, about, of answers of the groups under way.
    sent: usize,
    awaited: usize,
    input: Vec<u8>,
    start: usize,
    end: usize,
}

impl Answers {
    fn fits(&self) -> bool {
        self.groups.is_empty() || self.sent < FITS || self.awaited < FITS
    }

    fn on_sent(&mut self, before: usize, steps: Vec<Step>, sent: usize, started: Instant) {
        let values = self.expected.range(before..).filter(|e| matches!(e, Expected::Value { .. })).count();
        let (answers, awaited) = (self.expected.len() - before, values * self.form.size);
        self.sent += sent;
        self.awaited += awaited;
        self.groups.push_back(Group { steps, answers, sent, awaited, started, right: true });
    }

    /// Checks what has come, up to the end of the oldest group; `None`: more must be read.
    fn next_group(&mut self, tally: &mut Tally<'_>) -> Option<Group> {
        let group = self.groups.front_mut()?;
        while group.answers > 0 {
            let expected = *self.expected.front().expect("a group's answers are expected");
            match check(expected, &self.form, &self.input[self.start..self.end]) {
                Checked::More => return None,
                Checked::Right(length) => self.start += length,
                Checked::Wrong(length, words) => {
                    self.start += length;
                    group.right = false;
                    tally.on_error(|| words);
                }
            }
            self.expected.pop_front();
            group.answers -= 1;
        }
        let group = self.groups.pop_front()?;
        self.sent -= group.sent;
        self.awaited -= group.awaited;
        Some(group)
    }

    /// `false`: the peer has closed.
    fn read(&mut self, socket: &mut TcpStream) -> std::io::Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.input.len() {
            self.input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.input.len() {
            return Err(std::io::Error::other("an answer is longer than any that is right"));
        }
        let n = socket.read(&mut self.input[self.end..])?;
        self.end += n;
        Ok(n > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(protocol: Protocol, key: u64, size: usize) -> Vec<u8> {
        let form = ValueForm::new(protocol, size);
        let mut bytes = form.before_key.clone();
        if matches!(protocol, Protocol::Memcached { multi_get: true }) {
            bytes.extend_from_slice(Decimal::key(key).text());
        }
        bytes.extend_from_slice(&form.after_key);
        bytes.extend_from_slice(Stamped::new(size).of(key));
        bytes.extend_from_slice(b"\r\n");
        bytes
    }

    #[test]
    fn values_are_right_only_whole_and_for_their_key() {
        for protocol in [
            Protocol::Redis { mget: false, transactional: false },
            Protocol::Memcached { multi_get: false },
            Protocol::Memcached { multi_get: true },
        ] {
            let form = ValueForm::new(protocol, 100);
            let named = protocol == Protocol::Memcached { multi_get: true };
            // A key whose bytes hold an end of line.
            let key = 0x0a0d;
            let bytes = value(protocol, key, 100);
            let expected = Expected::Value { key, named };
            for cut in 0..bytes.len() {
                assert!(matches!(check(expected, &form, &bytes[..cut]), Checked::More), "{protocol:?}, {cut} bytes");
            }
            let mut more = bytes.clone();
            more.extend_from_slice(b"$-1");
            assert!(matches!(check(expected, &form, &more), Checked::Right(n) if n == bytes.len()), "{protocol:?}");
            let other = Expected::Value { key: key + 1, named };
            assert!(matches!(check(other, &form, &more), Checked::Wrong(..)), "{protocol:?}");
        }
    }

    #[test]
    fn misses_and_refusals_are_wrong_with_their_words() {
        let form = ValueForm::new(Protocol::Redis { mget: false, transactional: false }, 100);
        let cases: [(Expected, &[u8], &str); 4] = [
            (Expected::Value { key: 5, named: false }, b"$-1\r\n+OK\r\n", "wanted the value of key 5, got $-1"),
            (Expected::Text(b"+OK\r\n"), b"-OOM command not allowed\r\n", "wanted +OK, got -OOM command not allowed"),
            (Expected::List(3), b"*2\r\n", "wanted *3\r\n, got *2"),
            (Expected::Text(b"HD\r\n"), b"NF\r\n", "wanted HD, got NF"),
        ];
        for (expected, bytes, wanted) in cases {
            match check(expected, &form, bytes) {
                Checked::Wrong(length, words) => {
                    assert_eq!((words.as_str(), bytes[length - 1]), (wanted, b'\n'));
                }
                _ => panic!("{wanted}"),
            }
        }
        assert!(matches!(check(Expected::Text(b"+OK\r\n"), &form, b"+O"), Checked::More));
    }

    #[test]
    fn keys_have_twelve_digits_or_more() {
        for (key, text) in [(0, "000000000000"), (123, "000000000123"), (281_474_976_710_655, "281474976710655")] {
            assert_eq!(Decimal::key(key).text(), text.as_bytes());
        }
        assert_eq!(Decimal::new(0, 1).text(), b"0");
        assert_eq!(Decimal::new(u64::MAX, 1).text(), u64::MAX.to_string().as_bytes());
    }
}
