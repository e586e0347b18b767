//! LOAD DATA LOCAL: the client is asked for a file, sends it as packets, and an empty packet ends it.

use crate::support::client::{Client, DEPRECATE_EOF};
use crate::support::{backend::Scripted, eventually, run, run_default, with_timeouts};
use rauk_types::error::codes;
use std::time::Duration;

const LOCAL_FILES: u32 = 1 << 7;

/// Sends a statement, reads the name that is asked for, and sends the file in these pieces.
fn give(client: &mut Client, sql: &str, pieces: &[&[u8]]) {
    client.command(&[b"\x03", sql.as_bytes()].concat());
    let asked = client.read();
    assert_eq!(asked, b"\xFBfile");
    for piece in pieces {
        client.send(piece);
    }
    client.send(b"");
}

fn answer(client: &mut Client) -> Vec<Vec<Option<String>>> {
    client.result().unwrap().text()
}

fn row(bytes: usize, pieces: usize) -> Vec<Vec<Option<String>>> {
    vec![vec![Some(bytes.to_string()), Some(pieces.to_string())]]
}

#[test]
fn a_file_comes_in_packets() {
    let running = run_default();
    let mut client = running.client_with(DEPRECATE_EOF | LOCAL_FILES);
    give(&mut client, "LOAD INFILE file", &[b"one", b"two\n"]);
    assert_eq!(answer(&mut client), row(7, 2));
    // A client that has no such file sends the end at once.
    give(&mut client, "LOAD INFILE file", &[]);
    assert_eq!(answer(&mut client), row(0, 0));
    // More packets than there are numbers for them, and one of two frames.
    let many = vec![b"0123456789".as_slice(); 1000];
    give(&mut client, "LOAD INFILE file", &many);
    assert_eq!(answer(&mut client), row(10_000, 1000));
    let long = vec![b'x'; 0xFF_FFFF + 5];
    give(&mut client, "LOAD INFILE file", &[&long, b"end"]);
    assert_eq!(answer(&mut client), row(0xFF_FFFF + 8, 2));
    client.query("SELECT 1").unwrap();
    // One of several statements.
    let mut client = running.client_with(DEPRECATE_EOF | LOCAL_FILES | (1 << 16));
    client.command(b"\x03SET x; LOAD INFILE file");
    client.result().unwrap();
    assert_eq!(client.read(), b"\xFBfile");
    client.send(b"abc");
    client.send(b"");
    assert_eq!(answer(&mut client), row(3, 1));
}

#[test]
fn an_error_comes_behind_the_file() {
    let running = run(Scripted { max_allowed_packet: 1 << 20, ..Scripted::default() }, Default::default());
    let mut client = running.client_with(DEPRECATE_EOF | LOCAL_FILES);
    give(&mut client, "LOAD INFILE file 3", &[b"one", b"two", b"three"]);
    assert_eq!(client.result().unwrap_err().code, 1062);
    client.query("SELECT 1").unwrap();
    let long = vec![b'x'; 2 << 20];
    give(&mut client, "LOAD INFILE file", &[b"one", &long, b"two"]);
    assert_eq!(client.result().unwrap_err().code, codes::NET_PACKET_TOO_LARGE);
    client.query("SELECT 1").unwrap();
}

#[test]
fn who_gives_no_files_is_not_asked() {
    let running = run_default();
    let mut client = running.client();
    assert_eq!(client.query("LOAD INFILE file").unwrap_err().code, 3948);
    client.query("SELECT 1").unwrap();
}

#[test]
fn clients_that_go_or_keep_silent_in_the_middle() {
    let running = run(with_timeouts(|t| t.read = Duration::from_millis(200)), Default::default());
    let sessions = || running.backend.sessions.load(std::sync::atomic::Ordering::Relaxed);
    let begin = |client: &mut Client| {
        client.command(b"\x03LOAD INFILE file");
        assert_eq!(client.read(), b"\xFBfile");
        client.send(b"piece");
    };
    let mut gone = running.client_with(DEPRECATE_EOF | LOCAL_FILES);
    begin(&mut gone);
    drop(gone);
    eventually(|| sessions() == 0);
    let mut silent = running.client_with(DEPRECATE_EOF | LOCAL_FILES);
    begin(&mut silent);
    // Half a packet.
    silent.stream.write_all(b"\x05\0").unwrap();
    eventually(|| sessions() == 0);
    assert!(silent.is_closed());
    let mut disordered = running.client_with(DEPRECATE_EOF | LOCAL_FILES);
    begin(&mut disordered);
    disordered.stream.write_all(b"\x01\0\0\x63x").unwrap();
    eventually(|| sessions() == 0);
    running.client().query("SELECT 1").unwrap();
}
