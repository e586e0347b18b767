//! Out of descriptors: accepting fails, does not spin, and goes on when there are some again. A program of its own, because it uses all of them up.

#[path = "connections/support.rs"]
mod support;

use rauk_transporter::{Options, Urgency};
use socket2::{Domain, Protocol, Socket, Type};
use std::fs::File;
use std::time::Duration;
use support::*;

/// More than this are not used up.
const MOST: usize = 100_000;

#[test]
fn accepting_waits_for_descriptors() {
    let (server, address) = serve(Options::default(), Server::new(echo));
    let client = connect(address, 0);
    client.call(b"before", Urgency::Force).unwrap();
    // Those who knock need descriptors too: they get them first.
    let knocking: Vec<Socket> =
        (0..3).map(|_| Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap()).collect();
    let mut hoard = Vec::new();
    while hoard.len() < MOST {
        match File::open("/dev/null") {
            Ok(file) => hoard.push(file),
            Err(_) => break,
        }
    }
    if hoard.len() == MOST {
        return;
    }
    for socket in &knocking {
        socket.connect(&address.into()).unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    let before = server.statistics();
    std::thread::sleep(Duration::from_millis(300));
    let turns = server.statistics().sleeps - before.sleeps;
    assert!(server.statistics().links_refused == 0, "nobody of them was accepted");
    assert!(turns < 30, "{turns} turns in 300 ms");
    assert_eq!(client.call(b"others go on", Urgency::Force).unwrap(), &b"others go on"[..]);
    drop(hoard);
    drop(knocking);
    let late = connect(address, 0);
    assert_eq!(late.call(b"after", Urgency::Force).unwrap(), &b"after"[..]);
}
