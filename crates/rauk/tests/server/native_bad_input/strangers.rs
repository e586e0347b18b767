//! Who does not belong on the port at all, or not so: refused, with words where the peer can read them.

use super::raw::{Raw, SOON, Server, hello};
use rauk_wire::hello::{Hello, Refusal};
use rauk_wire::{Kind, MAX_HANDSHAKE};
use std::time::{Duration, Instant};

/// The first bytes of a TLS 1.3 ClientHello.
const CLIENT_HELLO: &[u8] = b"\x16\x03\x01\x00\xca\x01\x00\x00\xc6\x03\x03\x8f\x2e\x11\x5c\x05\x9e\x00\x77\x01\x13\x92";

#[test]
fn strangers_are_sent_away() {
    let server = Server::start();
    let garbage: Vec<u8> = (0..100_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let http = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // What a MySQL client would say, if it did not wait for the server to begin.
    let mysql = b"\x55\0\0\x01\x8d\xa2\x3a\0\0\0\0\x01\x2d\0";
    for bytes in [&garbage[..], b"x", http, CLIENT_HELLO, mysql, b"RAUX", &[0; 4096], b"\r\n\r\n"] {
        let mut raw = server.dial();
        let _ = raw.send(bytes);
        assert!(raw.is_closed_within(SOON), "after {:?}", &bytes[..bytes.len().min(20)]);
    }
    server.assert_serves();
}

#[test]
fn other_versions_are_told_which_ones_are_spoken() {
    let server = Server::start();
    for (oldest, newest) in [(2, 2), (7, 9), (u16::MAX, u16::MAX)] {
        let refused = server.dial().handshake(Hello { oldest, newest, ..hello() }, Some(&server.secret)).unwrap_err();
        assert_eq!(refused.reason, Refusal::Version);
        assert_eq!((refused.oldest, refused.newest), (rauk_wire::OLDEST_PROTOCOL, rauk_wire::PROTOCOL));
        for word in ["0 to 1", &format!("{oldest} to {newest}")] {
            assert!(refused.message.contains(word), "{:?} names no {word}", refused.message);
        }
    }
    // The version before is spoken, and one that speaks a newer one as well.
    for (oldest, newest, format) in [(0, 0, 0), (1, 7, 1)] {
        let mut raw = server.dial();
        raw.handshake(Hello { oldest, newest, ..hello() }, Some(&server.secret)).expect("a version in common");
        raw.format = format;
        assert_eq!(raw.ask(Kind::Ping, 0, b"hello"), Ok((Kind::Pong, b"hello".to_vec())));
        raw.open("shop", "orders");
    }
    // After the handshake a frame of a version that was never agreed on is damage.
    let mut raw = server.connect();
    raw.format = 2;
    let _ = raw.send(&raw.frame(Kind::Ping, 1, 0, b""));
    assert!(raw.is_closed_within(SOON));
    server.assert_serves();
}

#[test]
fn only_who_knows_the_secret_comes_in() {
    let server = Server::start();
    let refusal = |hello: Hello, secret: Option<&[u8]>| server.dial().handshake(hello, secret).unwrap_err();
    let wrong = refusal(hello(), Some(b"0123456789abcdef"));
    assert_eq!(wrong.reason, Refusal::Credentials);
    assert!(wrong.message.contains("secret"), "{}", wrong.message);
    let secret = String::from_utf8_lossy(&server.secret).into_owned();
    assert!(!wrong.message.contains(&secret), "the secret is in the refusal");
    assert_eq!(refusal(hello(), None).reason, Refusal::Credentials, "a promised proof that is not given");
    let none = refusal(Hello { has_secret: false, ..hello() }, None);
    assert_eq!(none.reason, Refusal::Credentials);
    assert!(none.message.contains("secret"), "{}", none.message);
    let other = refusal(Hello { cluster: [9; 16], ..hello() }, Some(&server.secret));
    assert_eq!(other.reason, Refusal::Cluster);
    assert!(other.message.contains(&"09".repeat(16)), "{}", other.message);
    // Nothing is read before the proof.
    for kind in [Kind::Batch, Kind::OpenTable, Kind::Ping, Kind::Proof, Kind::Welcome] {
        let mut raw = server.dial();
        let _ = raw.send(&raw.frame(kind, 1, 0, b""));
        match raw.next(SOON) {
            Ok((header, _)) => assert_eq!(header.kind, Kind::Refused, "{kind:?}"),
            Err(end) => assert_eq!(end, super::raw::End::Closed, "{kind:?}"),
        }
        assert!(raw.is_closed_within(SOON), "{kind:?}");
    }
    server.assert_serves();
}

#[test]
fn the_library_says_why_it_was_refused() {
    use rauk_client::{ErrorKind, Options, blocking};
    let server = Server::start();
    let address = format!("127.0.0.1:{}", server.native_port());
    let wrong = blocking::connect(&address, Options::secret("0123456789abcdef")).err().expect("refused");
    assert_eq!(wrong.kind, ErrorKind::Connection);
    assert!(!wrong.is_temporary() && wrong.message.contains("secret"), "{wrong}");
    let mysql = format!("127.0.0.1:{}", server.rauk.port);
    let options = Options { connect_timeout: Duration::from_secs(3), ..Options::secret(server.secret.clone()) };
    let other = blocking::connect(&mysql, options).err().expect("a MySQL server is no native server");
    assert!(!other.is_unknown_outcome(), "{other}");
    server.assert_serves();
}

#[test]
fn damaged_and_boundless_frames_end_the_connection() {
    let server = Server::start();
    let mut raw = server.connect();
    let mut damaged = raw.frame(Kind::Ping, 1, 0, b"some payload");
    let at = damaged.len() - 3;
    damaged[at] ^= 0x10;
    let _ = raw.send(&damaged);
    assert!(raw.is_closed_within(SOON), "a wrong checksum");
    // Cut off as soon as the header is there: nothing more is waited for.
    for length in [(64 << 20) + 1, u32::MAX] {
        let mut raw = server.connect();
        let mut header = raw.frame(Kind::Batch, 1, 0, b"");
        header[8..12].copy_from_slice(&length.to_le_bytes());
        let _ = raw.send(&header);
        assert!(raw.is_closed_within(SOON), "{length} bytes announced");
    }
    let mut raw = server.dial();
    let mut header = raw.frame(Kind::Hello, 0, 0, b"");
    header[8..12].copy_from_slice(&(MAX_HANDSHAKE as u32 + 1).to_le_bytes());
    let _ = raw.send(&header);
    assert!(raw.is_closed_within(SOON), "a long hello");
    let mut raw = server.connect();
    let mut unknown = raw.frame(Kind::Ping, 1, 0, b"");
    unknown[6..8].copy_from_slice(&999u16.to_le_bytes());
    let _ = raw.send(&unknown);
    assert!(raw.is_closed_within(SOON), "an unknown signal");
    // Announced lengths cost nothing until the bytes come.
    let before = server.memory_kib();
    let liars: Vec<Raw> = (0..100)
        .map(|_| {
            let mut raw = server.connect();
            let mut header = raw.frame(Kind::Batch, 1, 0, b"");
            header[8..12].copy_from_slice(&(64u32 << 20).to_le_bytes());
            raw.send(&header).expect("the server waits for the rest");
            raw
        })
        .collect();
    server.assert_serves();
    let grown = server.memory_kib().saturating_sub(before);
    assert!(grown < 64 << 10, "a hundred announcements of 64 MiB cost {grown} KiB");
    drop(liars);
    server.assert_serves();
}

/// Ten seconds, as the server's default is.
#[test]
fn silence_in_the_handshake_is_bounded() {
    let server = Server::start();
    let mut silent = server.dial();
    let mut half = server.dial();
    let mut payload = Vec::new();
    hello().encode(&mut payload);
    let frame = half.frame(Kind::Hello, 0, 0, &payload);
    half.send(&frame[..frame.len() / 2]).expect("the port is open");
    let mut unproved = server.dial();
    unproved.send(&frame).expect("the port is open");
    assert_eq!(unproved.next(SOON).expect("a challenge").0.kind, Kind::Challenge);
    // A connection that was let in may be silent, also in the middle of a frame.
    let mut idle = server.connect();
    let ping = idle.frame(Kind::Ping, 7, 0, b"later");
    idle.send(&ping[..50]).expect("let in");
    let start = Instant::now();
    for (name, raw) in [("nothing said", &mut silent), ("half a hello", &mut half), ("no proof", &mut unproved)] {
        assert!(raw.is_closed_within(Duration::from_secs(20)), "{name}");
    }
    assert!(start.elapsed() < Duration::from_secs(25));
    idle.send(&ping[50..]).expect("still let in");
    assert_eq!(idle.next(SOON).expect("an answer").1, b"later");
    server.assert_serves();
}
