//! A real process, killed at every fault point and at random times while clients write and read, again and again on the same data.
//!
//! Promises checked after every restart:
//! - no acknowledged write is lost: a client's numbered rows are there without a gap, at least up to the last acknowledged, at most up to the last tried;
//! - no half transaction: balances equal what the numbered rows say was moved, and their sum never changes;
//! - no answered read is taken back: a number that a reader was shown is still there;
//! - indexes equal rows: every index gives the same rows as the primary key.
//!
//! `kill -9` keeps what the kernel has in its page cache, so these tests prove atomicity and recovery, not syncing: that is what the simulated disk is for
//! (crate `simulation`). `RAUK_TEST_CRASHES` sets how many random crashes are made.

use crate::common::{Rauk, rauk_command};
use mysql::Conn;
use mysql::prelude::Queryable;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const CLIENTS: u64 = 4;
const ACCOUNTS: u64 = 20;
const INITIAL: i64 = 1000;

/// What the outside world knows about one client's rows.
#[derive(Default)]
struct Known {
    acknowledged: AtomicU64,
    tried: AtomicU64,
    /// The highest number that a reader was shown.
    seen: AtomicU64,
}

struct World {
    clients: Vec<Known>,
    stop: AtomicBool,
}

fn create(connection: &mut Conn) -> mysql::Result<()> {
    connection.query_drop("CREATE DATABASE IF NOT EXISTS bank")?;
    connection.query_drop(
        "CREATE TABLE IF NOT EXISTS bank.accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL, KEY (balance))",
    )?;
    connection.query_drop(
        "CREATE TABLE IF NOT EXISTS bank.transfers (client INT, number INT, source INT NOT NULL, target INT NOT NULL, amount INT NOT NULL, \
         name VARCHAR(40) NOT NULL, PRIMARY KEY (client, number), UNIQUE KEY (name), KEY (source, amount))",
    )?;
    for id in 0..ACCOUNTS {
        connection.query_drop(format!("INSERT IGNORE INTO bank.accounts VALUES ({id}, {INITIAL})"))?;
    }
    Ok(())
}

fn transfer(connection: &mut Conn, rng: &mut StdRng, client: u64, number: u64, known: &Known) -> mysql::Result<()> {
    let source = rng.random_range(0..ACCOUNTS);
    let target = (source + rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
    let amount = rng.random_range(1..50);
    connection.query_drop("BEGIN")?;
    connection.query_drop(format!("UPDATE bank.accounts SET balance = balance - {amount} WHERE id = {source}"))?;
    connection.query_drop(format!("UPDATE bank.accounts SET balance = balance + {amount} WHERE id = {target}"))?;
    connection.query_drop(format!(
        "INSERT INTO bank.transfers VALUES ({client}, {number}, {source}, {target}, {amount}, 'transfer {number} of client {client}')"
    ))?;
    known.tried.store(number, Ordering::SeqCst);
    connection.query_drop("COMMIT")?;
    known.acknowledged.store(number, Ordering::SeqCst);
    Ok(())
}

/// Writes until the connection is lost or the world stops.
fn write(mut connection: Conn, seed: u64, client: u64, world: &World) {
    let known = &world.clients[client as usize];
    let mut rng = StdRng::seed_from_u64(seed);
    let mut number = match connection
        .query_first::<Option<u64>, _>(format!("SELECT MAX(number) FROM bank.transfers WHERE client = {client}"))
    {
        Ok(row) => row.flatten().unwrap_or(0) + 1,
        Err(_) => return,
    };
    while !world.stop.load(Ordering::SeqCst) {
        match transfer(&mut connection, &mut rng, client, number, known) {
            Ok(()) => number += 1,
            // A deadlock, a lock wait timeout or a full disk: the transaction is gone and may be tried again.
            Err(mysql::Error::MySqlError(e)) if matches!(e.code, 1213 | 1205 | 1020 | 1021) => {
                if connection.query_drop("ROLLBACK").is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

fn read(mut connection: Conn, world: &World) {
    while !world.stop.load(Ordering::SeqCst) {
        for (client, known) in world.clients.iter().enumerate() {
            let sql = format!("SELECT MAX(number) FROM bank.transfers WHERE client = {client}");
            match connection.query_first::<Option<u64>, _>(sql) {
                Ok(row) => known.seen.fetch_max(row.flatten().unwrap_or(0), Ordering::SeqCst),
                Err(_) => return,
            };
        }
    }
}

fn load(server: &Rauk, world: &Arc<World>, seed: u64) -> Vec<std::thread::JoinHandle<()>> {
    world.stop.store(false, Ordering::SeqCst);
    let mut threads = Vec::new();
    for client in 0..CLIENTS {
        let world = world.clone();
        if let Ok(connection) = server.try_connect() {
            threads.push(std::thread::spawn(move || write(connection, seed ^ client, client, &world)));
        }
    }
    if let Ok(connection) = server.try_connect() {
        let world = world.clone();
        threads.push(std::thread::spawn(move || read(connection, &world)));
    }
    threads
}

fn check(connection: &mut Conn, world: &World, what: &str) {
    let mut balances = vec![INITIAL; ACCOUNTS as usize];
    for (client, known) in world.clients.iter().enumerate() {
        let rows: Vec<(u64, usize, usize, i64, String)> = connection
            .query(format!("SELECT number, source, target, amount, name FROM bank.transfers WHERE client = {client} ORDER BY number"))
            .expect("transfers can be read");
        for (i, (number, source, target, amount, name)) in rows.iter().enumerate() {
            assert_eq!(*number, i as u64 + 1, "{what}: client {client} has a gap");
            assert_eq!(*name, format!("transfer {number} of client {client}"), "{what}");
            balances[*source] -= amount;
            balances[*target] += amount;
        }
        let count = rows.len() as u64;
        let (acknowledged, tried) = (known.acknowledged.load(Ordering::SeqCst), known.tried.load(Ordering::SeqCst));
        assert!(count >= acknowledged, "{what}: client {client}: {acknowledged} acknowledged, {count} there");
        assert!(count <= tried, "{what}: client {client}: {tried} tried, {count} there");
        let seen = known.seen.load(Ordering::SeqCst);
        assert!(count >= seen, "{what}: client {client}: a reader was shown {seen}, {count} there");
        // A commit without an answer that is there now counts from here on.
        known.acknowledged.store(count, Ordering::SeqCst);
    }
    let found: Vec<i64> =
        connection.query("SELECT balance FROM bank.accounts ORDER BY id").expect("accounts can be read");
    assert_eq!(found, balances, "{what}: balances are not what the transfers say");
    let by_index: Vec<i64> = connection
        .query("SELECT balance FROM bank.accounts FORCE INDEX (balance) WHERE balance > -1000000000 ORDER BY balance")
        .expect("read by index");
    let mut sorted = balances.clone();
    sorted.sort();
    assert_eq!(by_index, sorted, "{what}: the index on balance differs from the rows");
    let counts: Vec<u64> = [
        "SELECT COUNT(*) FROM bank.transfers",
        "SELECT COUNT(*) FROM bank.transfers FORCE INDEX (source) WHERE source >= 0",
        "SELECT COUNT(*) FROM bank.transfers FORCE INDEX (name) WHERE name >= ''",
    ]
    .iter()
    .map(|sql| connection.query_first(*sql).expect("counts can be read").expect("one row"))
    .collect();
    assert!(counts.iter().all(|c| *c == counts[0]), "{what}: indexes have {counts:?} rows");
    for client in 0..world.clients.len() {
        // Point access through the unique key's index table.
        let sql = format!("SELECT number FROM bank.transfers WHERE name = 'transfer 1 of client {client}'");
        let found: Option<u64> = connection.query_first(sql).expect("read by unique key");
        assert_eq!(found.is_some(), world.clients[client].acknowledged.load(Ordering::SeqCst) > 0, "{what}");
    }
}

fn world() -> Arc<World> {
    Arc::new(World { clients: (0..CLIENTS).map(|_| Known::default()).collect(), stop: AtomicBool::new(false) })
}

fn command(data: &Path) -> std::process::Command {
    let mut command = rauk_command(data);
    // Small segments and checkpoints, so that switches and truncation happen within a fraction of a second.
    command.args(["--redo-segment", "1MiB", "--checkpoint-redo", "1MiB"]);
    command
}

#[test]
fn killed_at_random_times() {
    let crashes: u64 = std::env::var("RAUK_TEST_CRASHES").ok().and_then(|n| n.parse().ok()).unwrap_or(140);
    let data = tempfile::tempdir().expect("a temporary directory");
    let world = world();
    let mut rng = StdRng::seed_from_u64(2);
    for crash in 0..crashes {
        let server = Rauk::start_with(command(data.path())).unwrap_or_else(|e| panic!("crash {crash}: {e}"));
        let mut connection = server.connect();
        create(&mut connection).expect("the tables can be made");
        check(&mut connection, &world, &format!("after crash {crash}"));
        let threads = load(&server, &world, crash * 1000);
        std::thread::sleep(Duration::from_millis(rng.random_range(5..250)));
        server.kill();
        world.stop.store(true, Ordering::SeqCst);
        threads.into_iter().for_each(|t| t.join().expect("clients do not panic"));
    }
    let server = Rauk::start_with(command(data.path())).unwrap_or_else(|e| panic!("{e}"));
    check(&mut server.connect(), &world, "at the end");
    let done: u64 = world.clients.iter().map(|k| k.acknowledged.load(Ordering::SeqCst)).sum();
    assert!(done > crashes, "the load did nothing: {done} transfers");
    assert!(server.stop().success());
    println!("{crashes} crashes, {done} transfers, nothing lost");
}

#[test]
fn killed_at_every_fault_point() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let world = world();
    let mut fired = 0;
    let mut silent = Vec::new();
    for (i, point) in rauk_log::fault::ALL.iter().enumerate() {
        let mut any = false;
        for hit in [1, 2, 7] {
            let mut faulty = command(data.path());
            faulty.env("RAUK_FAULT", format!("{point}:abort@{hit}"));
            // The point may lie in recovery: then the process ends before it is ready.
            match Rauk::start_with(faulty) {
                Err(_) => {
                    any = true;
                    fired += 1;
                }
                Ok(mut server) => {
                    if let Ok(mut connection) = server.try_connect() {
                        // Either may be cut off by the abort.
                        let _ = create(&mut connection);
                        let threads = load(&server, &world, i as u64 * 100 + hit);
                        let ddl = connection
                            .query_drop(format!("CREATE TABLE IF NOT EXISTS bank.extra{i} (id INT PRIMARY KEY, v INT)"))
                            .and_then(|()| {
                                connection.query_drop(format!("INSERT INTO bank.extra{i} VALUES (1, 1), (2, 2)"))
                            })
                            .and_then(|()| {
                                connection.query_drop(format!(
                                    "ALTER TABLE bank.extra{i} ADD UNIQUE KEY u (v), ADD COLUMN w INT"
                                ))
                            })
                            .and_then(|()| connection.query_drop(format!("TRUNCATE TABLE bank.extra{i}")))
                            .and_then(|()| connection.query_drop(format!("DROP TABLE bank.extra{i}")));
                        let ended = server.wait(Duration::from_millis(if ddl.is_err() { 2000 } else { 700 })).is_some();
                        any |= ended;
                        fired += u32::from(ended);
                        world.stop.store(true, Ordering::SeqCst);
                        if !ended {
                            // A clean stop passes the points of shutdown.
                            server.signal("TERM");
                            if server.wait(Duration::from_secs(20)).is_some_and(|status| !status.success()) {
                                any = true;
                                fired += 1;
                            }
                        }
                        threads.into_iter().for_each(|t| t.join().expect("clients do not panic"));
                    }
                }
            }
            let server = Rauk::start_with(command(data.path())).unwrap_or_else(|e| panic!("after {point}@{hit}: {e}"));
            let mut connection = server.connect();
            create(&mut connection).expect("the tables can be made");
            check(&mut connection, &world, &format!("after {point}@{hit}"));
            // The DDL was wholly done or not at all: what is left can be used and dropped.
            connection.query_drop(format!("DROP TABLE IF EXISTS bank.extra{i}")).expect("nothing is in the way");
            let left: Vec<String> = connection.query("SHOW TABLES FROM bank").expect("tables can be listed");
            assert_eq!(left, ["accounts", "transfers"], "after {point}@{hit}");
            server.kill();
        }
        if !any {
            silent.push(*point);
        }
    }
    println!("{fired} crashes at {} fault points; never reached here: {silent:?}", rauk_log::fault::ALL.len());
    assert!(fired as usize >= rauk_log::fault::ALL.len(), "only {fired} of the faults happened; silent: {silent:?}");
}
