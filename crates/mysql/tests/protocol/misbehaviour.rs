//! Clients that are slow, broken or hostile, and the server's own end.

use crate::support::client::{self, Client};
use crate::support::{backend::Scripted, eventually, run, run_default, with_timeouts};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::time::{Duration, Instant};

#[test]
fn too_large_is_refused_and_the_connection_goes_on() {
    let running = run(Scripted { max_allowed_packet: 1 << 20, ..Scripted::default() }, Default::default());
    let mut client = running.client();
    for size in [(1 << 20) + 1, 20 << 20] {
        let mut p = vec![b'x'; size];
        p[0] = 3;
        client.command(&p);
        let error = client.result().unwrap_err();
        assert_eq!((error.code, error.state.as_str()), (1153, "08S01"));
        assert_eq!(error.message, "Got a packet bigger than 'max_allowed_packet' bytes");
    }
    client.query("SELECT 1").unwrap();
}

#[test]
fn packets_out_of_order() {
    let running = run_default();
    let mut client = running.client();
    client.stream.write_all(b"\x01\0\0\x05\x0e").unwrap();
    client.sequence = 0;
    let packet = client.read();
    let error = client::failure(&packet);
    assert_eq!((error.code, error.message.as_str()), (1156, "Got packets out of order"));
    assert!(client.is_closed());
}

#[test]
fn half_a_packet_and_silence() {
    let running = run(with_timeouts(|t| t.read = Duration::from_millis(200)), Default::default());
    let mut client = running.client();
    // Slow, but going on: allowed.
    for byte in b"\x09\0\0\0\x03SELECT 1" {
        client.stream.write_all(&[*byte]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    client.sequence = 1;
    client.result().unwrap();
    client.stream.write_all(b"\xff\xff\xff\0\x03SEL").unwrap();
    let began = Instant::now();
    client.sequence = 0;
    let packet = client.read();
    assert_eq!(client::failure(&packet).code, 1159);
    assert!(began.elapsed() >= Duration::from_millis(190));
    assert!(client.is_closed());
    eventually(|| running.server.totals().aborted_clients == 1);
}

#[test]
fn idle_for_too_long() {
    let running = run(with_timeouts(|t| t.idle = Duration::from_millis(100)), Default::default());
    let mut client = running.client();
    client.query("SLEEP 300").unwrap();
    client.sequence = 0;
    let packet = client.read();
    assert_eq!(client::failure(&packet).code, 4031);
    assert!(client.is_closed());
}

#[test]
fn a_client_that_never_reads() {
    let running = run(with_timeouts(|t| t.write = Duration::from_millis(300)), Default::default());
    let mut client = running.client();
    client.command(b"\x03ROWS 1000000 1000");
    // A gigabyte does not go anywhere; the server gives up and holds nothing.
    eventually(|| running.server.totals().sessions == 0);
    drop(client);
    running.client().query("SELECT 1").unwrap();
}

#[test]
fn clients_that_vanish() {
    let running = run_default();
    for command in [&b"\x03ROWS 1000000 100"[..], b"\x03SLEEP 300", b"\x03SELECT 1"] {
        let mut client = running.client();
        client.command(command);
    }
    eventually(|| running.server.totals().sessions == 0);
}

#[test]
fn random_bytes_after_login() {
    let running = run_default();
    let mut rng = SmallRng::seed_from_u64(1);
    for round in 0..300 {
        let mut client = running.client();
        for _ in 0..rng.random_range(1..5) {
            let length = rng.random_range(0..100);
            let mut payload: Vec<u8> = (0..length).map(|_| rng.random()).collect();
            if let Some(command) = payload.first_mut() {
                *command %= 0x22;
            }
            client.sequence = if rng.random_range(0..20) == 0 { 1 } else { 0 };
            if client.try_send(&payload).is_err() {
                break;
            }
        }
        drop(client);
        if round % 50 == 0 {
            running.client().query("SELECT 1").unwrap();
        }
    }
    running.client().query("SELECT 1").unwrap();
    eventually(|| running.server.totals().sessions == 0);
}

#[test]
fn compressed() {
    let running = run_default();
    let mut client = Client::connect(running.port).unwrap();
    client.login("root", "", client::COMPRESS | client::DEPRECATE_EOF, "caching_sha2_password").unwrap();
    client.stream = Box::new(Compressed { inner: client.stream, plain: Vec::new() });
    client.query("SELECT 1").unwrap();
    assert_eq!(client.query("ROWS 5000 100").unwrap().rows.len(), 5000);
    let sql = format!("LENGTH {}", "x".repeat(20 << 20));
    assert_eq!(client.query(&sql).unwrap().text()[0][0], Some((20u32 << 20).to_string()));
    assert_eq!(client.query("NONSENSE").unwrap_err().code, 1064);
}

/// The client's side of the compressed protocol; it sends everything uncompressed.
struct Compressed {
    inner: Box<dyn client::Wire>,
    plain: Vec<u8>,
}

impl std::io::Write for Compressed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = bytes.len().min(0xFF_FFFF);
        let mut chunk = (n as u32).to_le_bytes()[..3].to_vec();
        chunk.extend_from_slice(&[0; 4]);
        chunk.extend_from_slice(&bytes[..n]);
        self.inner.write_all(&chunk)?;
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl std::io::Read for Compressed {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.plain.is_empty() {
            let mut header = [0; 7];
            self.inner.read_exact(&mut header)?;
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            let plain = u32::from_le_bytes([header[4], header[5], header[6], 0]) as usize;
            let mut payload = vec![0; length];
            self.inner.read_exact(&mut payload)?;
            if plain == 0 {
                self.plain = payload;
            } else {
                flate2::read::ZlibDecoder::new(&payload[..]).read_to_end(&mut self.plain)?;
                assert_eq!(self.plain.len(), plain);
            }
        }
        let n = out.len().min(self.plain.len());
        out[..n].copy_from_slice(&self.plain[..n]);
        self.plain.drain(..n);
        Ok(n)
    }
}

#[test]
fn stopping_lets_statements_end() {
    let mut running = run_default();
    let (mut idle, mut busy) = (running.client(), running.client());
    busy.command(b"\x03SLEEP 300");
    std::thread::sleep(Duration::from_millis(50));
    let cancelled = running.workers.take().unwrap().shutdown(Duration::from_secs(5));
    assert_eq!(cancelled, 0);
    busy.result().unwrap();
    for client in [&mut idle, &mut busy] {
        client.sequence = 0;
        let packet = client.read();
        let error = client::failure(&packet);
        assert_eq!(
            (error.code, error.state.as_str(), error.message.as_str()),
            (1053, "08S01", "Server shutdown in progress")
        );
        assert!(client.is_closed());
    }
    assert!(std::net::TcpStream::connect(("127.0.0.1", running.port)).is_err());
}

#[test]
fn stopping_does_not_wait_for_ever() {
    let mut running = run_default();
    let mut busy = running.client();
    busy.command(b"\x03SLEEP 60000");
    std::thread::sleep(Duration::from_millis(50));
    let began = Instant::now();
    let cancelled = running.workers.take().unwrap().shutdown(Duration::from_millis(200));
    assert_eq!(cancelled, 1);
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(busy.result().unwrap_err().code, 1053);
}

#[test]
fn stopping_interrupts_what_computes() {
    let mut running = run_default();
    let mut busy = running.client();
    busy.command(b"\x03SPIN");
    std::thread::sleep(Duration::from_millis(50));
    let began = Instant::now();
    let cancelled = running.workers.take().unwrap().shutdown(Duration::from_millis(200));
    assert_eq!(cancelled, 1);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(busy.result().unwrap_err().code, 1053);
}

/// KILL of a connection whose client takes no answer does not wait for the client.
#[test]
fn who_is_killed_is_not_waited_for() {
    let running = run_default();
    let mut client = running.client();
    client.command(b"\x03ROWS 1000000 1000");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(running.server.totals().sessions, 1);
    let began = Instant::now();
    running.backend.kills.lock().unwrap().values().for_each(|kill| kill.send(true).unwrap());
    eventually(|| running.server.totals().sessions == 0);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn connections_are_spread_and_counted() {
    let running = run_default();
    let mut clients: Vec<Client> = (0..10).map(|_| running.client()).collect();
    assert_eq!(running.workers.as_ref().unwrap().connections(), [5, 5]);
    clients[0].query("SELECT 1").unwrap();
    clients[0].query("SELECT 2").unwrap();
    let totals = running.server.totals();
    assert_eq!((totals.sessions, totals.connections, totals.commands), (10, 10, 2));
    assert!(totals.received_bytes >= 2 * 13);
    assert!(totals.sent_bytes > 10 * 11);
    drop(clients);
    eventually(|| running.workers.as_ref().unwrap().connections() == [0, 0]);
}

/// A client that goes in the middle of a statement takes the statement with it.
#[test]
fn a_client_that_has_gone_interrupts_its_statement() {
    let running = run_default();
    let mut client = running.client();
    client.command(b"\x03SLEEP 60000");
    let mut other = running.client();
    other.query("SELECT 1").unwrap();
    let interrupted = || running.backend.interrupted.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(interrupted(), 0);
    drop(client);
    eventually(|| interrupted() > 0);
    other.query("SELECT 1").unwrap();
}
