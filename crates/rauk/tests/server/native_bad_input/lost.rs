//! Ends in the middle: of a client within its transaction, and of the server between a request and its answer.

use super::raw::{Answered, Server};
use crate::common::run;
use rauk_client::{Client, Error, ErrorKind, Options, RetryPolicy, blocking};
use rauk_types::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// Rows that a dead client had locked can be locked at once.
#[test]
fn a_connection_that_dies_within_a_transaction() {
    let server = Server::start();
    let mut other = server.connect();
    let table = other.open("shop", "orders");
    for round in 0..20u64 {
        let mut dying = server.connect();
        let id = round % 10;
        assert_eq!(dying.begin_and_update(&table, 1, id, "dying"), Answered::Done);
        if round % 2 == 0 {
            drop(dying);
        } else {
            // With a request on its way that waits for another's lock.
            let mut holder = server.connect();
            let elsewhere = (id + 1) % 10;
            assert_eq!(holder.begin_and_update(&table, 1, elsewhere, "holder"), Answered::Done);
            let key = super::raw::key(&table, elsewhere);
            let operation = super::raw::Operation::new(&table, rauk_wire::OpKind::Delete, &key);
            let payload = operation.batch(&rauk_wire::BatchOptions::default());
            let frame = dying.frame(rauk_wire::Kind::Batch, 77, 1, &payload);
            dying.send(&frame).expect("let in");
            std::thread::sleep(Duration::from_millis(20));
            drop(dying);
            drop(holder);
        }
        let start = Instant::now();
        assert_eq!(other.begin_and_update(&table, 1000 + round, id, &format!("r{round}")), Answered::Done);
        assert!(start.elapsed() < Duration::from_secs(1), "locks were given back after {:?}", start.elapsed());
        assert!(matches!(other.ask(rauk_wire::Kind::Rollback, 1000 + round, b""), Ok((rauk_wire::Kind::Done, _))));
    }
    let mut connection = server.rauk.connect();
    assert_eq!(run(&mut connection, "SELECT COUNT(*) FROM shop.orders WHERE customer LIKE 'c%'"), ["10"]);
}

fn client(server: &Server, retry: RetryPolicy) -> Client {
    let address = format!("127.0.0.1:{}", server.native_port());
    let options = Options { retry, ..Options::secret(server.secret.clone()) };
    blocking::connect(&address, options).expect("the right secret")
}

fn price(price: i64) -> Vec<(&'static str, Value)> {
    vec![("price", Value::Int(price))]
}

/// Commits a change of row 5 in a transaction, with the last batch or after it.
fn commit(client: &Client, with_the_batch: bool) -> Result<(), Error> {
    blocking::wait(async {
        let table = client.table("shop", "orders").await?;
        let mut transaction = client.begin();
        let mut batch = transaction.batch();
        batch.update(&table, (5u64,), &price(55));
        if with_the_batch {
            transaction.execute_and_commit(batch).await.map(drop)
        } else {
            transaction.execute(batch).await?.all_succeeded()?;
            transaction.commit().await
        }
    })
}

/// The process ends where the log has the commit and nobody has been told.
#[test]
fn the_server_dies_after_it_has_logged_a_commit() {
    for with_the_batch in [true, false] {
        let server = Server::start();
        let Server { rauk, directory, .. } = server;
        rauk.stop();
        let mut command = crate::common::rauk_command(directory.path());
        command.env("RAUK_FAULT", "node.commit.after_append:abort@1");
        let server = restarted(command, directory);
        let client = client(&server, RetryPolicy::default());
        let error = commit(&client, with_the_batch).expect_err("the server is dead");
        assert!(error.is_unknown_outcome(), "{error:?}");
        assert_eq!((error.kind, error.code), (ErrorKind::UnknownOutcome, 1180));
        // A read after it has certainly not taken place.
        let read = blocking::wait(async { client.table("shop", "orders").await?.get((5u64,)).await });
        let error = read.expect_err("the server is dead");
        assert!(error.is_temporary(), "{error:?}");
    }
}

fn restarted(command: Command, directory: tempfile::TempDir) -> Server {
    let rauk = crate::common::Rauk::start_with(command).unwrap_or_else(|e| panic!("{e}"));
    let secret = super::raw::read_secret(directory.path());
    Server { rauk, secret, directory }
}

/// A single write outside of a transaction may have taken place as well.
#[test]
fn the_server_dies_in_a_single_write() {
    let server = Server::start();
    let Server { rauk, directory, .. } = server;
    rauk.stop();
    let mut command = crate::common::rauk_command(directory.path());
    command.env("RAUK_FAULT", "redo.flush.before_sync:abort@1");
    let server = restarted(command, directory);
    let client = client(&server, RetryPolicy::default());
    let table = blocking::wait(client.table("shop", "orders")).expect("it lives");
    let error = blocking::wait(table.update((5u64,), &price(55))).expect_err("the server is dead");
    assert!(error.is_unknown_outcome(), "{error:?}");
}

/// kill -9 while one request waits for the disk and another for a lock.
#[test]
fn the_server_is_killed_between_request_and_answer() {
    let server = Server::start();
    let Server { rauk, directory, .. } = server;
    rauk.stop();
    let mut command = crate::common::rauk_command(directory.path());
    command.env("RAUK_FAULT", "redo.flush.before_sync:pause=20000@1");
    let server = restarted(command, directory);
    let (committing, reading) = (client(&server, RetryPolicy::never()), client(&server, RetryPolicy::never()));
    let mut holder = server.connect();
    let table = holder.open("shop", "orders");
    assert_eq!(holder.begin_and_update(&table, 1, 7, "held"), Answered::Done);
    let commit = std::thread::spawn(move || commit(&committing, true));
    let read = std::thread::spawn(move || {
        blocking::wait(async {
            let table = reading.table("shop", "orders").await?;
            let mut transaction = reading.begin();
            let mut batch = transaction.batch();
            batch.get_for_update(&table, (7u64,));
            transaction.execute(batch).await.map(drop)
        })
    });
    std::thread::sleep(Duration::from_millis(1500));
    assert!(!commit.is_finished() && !read.is_finished(), "both wait");
    let Server { rauk, directory, .. } = server;
    rauk.kill();
    let error = commit.join().expect("no panic").expect_err("the server was killed");
    assert!(error.is_unknown_outcome(), "{error:?}");
    let error = read.join().expect("no panic").expect_err("the server was killed");
    assert!(error.is_temporary(), "{error:?}");
    // Afterwards it is found out: row 5 is as one of the two says, and row 7 is not as the dead client would have had it.
    let server = restarted(crate::common::rauk_command(directory.path()), directory);
    let mut connection = server.rauk.connect();
    let found = run(&mut connection, "SELECT price FROM shop.orders WHERE id = 5");
    assert!(["5.00", "55.00"].contains(&found[0].as_str()), "{found:?}");
    assert_eq!(run(&mut connection, "SELECT customer FROM shop.orders WHERE id = 7"), ["c7"]);
}
