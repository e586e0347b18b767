//! What only a client over the network meets: connections that are lost at the worst moment, answers that never come, servers that go and come back, and many threads that wait on
//! one connection.

#[path = "network/addresses.rs"]
mod addresses;
mod network;

use futures::future::join_all;
use network::{Counter, Fate, Relay, Server, Way, connect, connect_with, counter, options};
use rauk_client::blocking::{self, wait};
use rauk_client::{Client, Error, ErrorKind, Options, Records, RetryPolicy, TransactionOptions, Value};
use rauk_node::block_on;
use rauk_wire::Kind;
use std::time::{Duration, Instant};

/// A server, a relay before it, a client behind that.
struct Net {
    client: Client,
    counters: Records<Counter>,
    relay: Relay,
    /// Past the relay.
    direct: Client,
    server: Server,
    _directory: tempfile::TempDir,
}

fn net() -> Net {
    net_with(options())
}

fn net_with(options: Options) -> Net {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path());
    let relay = Relay::start(server.address);
    let direct = connect(server.address);
    wait(direct.open_or_create::<Counter>()).expect("made");
    let client = connect_with(relay.address, options);
    let counters = wait(client.open::<Counter>()).expect("opened");
    wait(counters.insert(&counter(1, 10))).expect("inserted");
    wait(counters.insert(&counter(2, 20))).expect("inserted");
    Net { client, counters, relay, direct, server, _directory: directory }
}

impl Net {
    fn value(&self, id: u64) -> Option<i64> {
        wait(async {
            let counters = self.direct.open::<Counter>().await.expect("opened");
            counters.get(id).await.expect("read").map(|counter| counter.value)
        })
    }

    /// Somebody else changes the row within a moment: nobody holds a lock on it.
    fn is_free(&self, id: u64) {
        let counters = wait(self.direct.open::<Counter>()).expect("opened");
        let options = TransactionOptions { lock_wait: Duration::from_secs(5), ..Default::default() };
        let mut transaction = self.direct.begin_with(options);
        wait(transaction.increment(&counters, id, "value", 0)).expect("nobody has it locked");
        wait(transaction.rollback()).expect("rolled back");
    }
}

#[track_caller]
fn refused<T>(result: Result<T, Error>, kind: ErrorKind) -> Error {
    match result {
        Ok(_) => panic!("expected {kind:?}"),
        Err(error) => {
            assert_eq!(error.kind, kind, "{error}");
            error
        }
    }
}

#[test]
fn a_lost_connection_is_made_again() {
    let net = net();
    for round in 1..=3 {
        net.relay.cut_all();
        assert_eq!(wait(net.counters.get(1u64)).expect("read"), Some(counter(1, 10)));
        assert_eq!(net.relay.connections(), 1 + round);
    }
    // All tasks that find it lost wait for the same attempt.
    net.relay.cut_all();
    std::thread::sleep(Duration::from_millis(50));
    let reads = join_all((0..50).map(|_| net.counters.get(2u64)));
    assert!(wait(reads).into_iter().all(|row| row == Ok(Some(counter(2, 20)))));
    assert_eq!(net.relay.connections(), 5);
}

#[test]
fn a_read_whose_answer_is_lost_is_asked_again() {
    let net = net();
    for (way, kind) in [(Way::ToServer, Kind::Batch), (Way::ToClient, Kind::BatchAnswer)] {
        net.relay.next(way, kind, Fate::Cut);
        assert_eq!(wait(net.counters.get(1u64)).expect("read"), Some(counter(1, 10)));
        assert!(net.relay.happened());
    }
    net.relay.next(Way::ToClient, Kind::ScanPage, Fate::Cut);
    assert_eq!(wait(net.counters.scan().collect()).expect("scanned").len(), 2);
    assert!(net.relay.happened());
}

#[test]
fn a_write_whose_answer_is_lost_has_an_unknown_outcome() {
    let net = net();
    net.relay.next(Way::ToClient, Kind::BatchAnswer, Fate::Cut);
    let error = refused(wait(net.counters.insert(&counter(3, 30))), ErrorKind::UnknownOutcome);
    assert!(error.is_unknown_outcome() && !error.is_temporary());
    assert_eq!(net.value(3), Some(30), "it was executed");
    net.relay.next(Way::ToServer, Kind::Batch, Fate::Cut);
    refused(wait(net.counters.insert(&counter(4, 40))), ErrorKind::UnknownOutcome);
    assert_eq!(net.value(4), None, "it never arrived");
    // Once and no more: nothing was tried again.
    assert_eq!(wait(net.counters.increment(1u64, "value", 1)).expect("changed"), Some(counter(1, 11)));
}

#[test]
fn a_commit_whose_answer_is_lost_has_an_unknown_outcome() {
    let net = net();
    for (way, kind, after) in [(Way::ToClient, Kind::BatchAnswer, 11), (Way::ToServer, Kind::Batch, 11)] {
        let mut transaction = net.client.begin();
        wait(transaction.increment(&net.counters, 1u64, "value", 1)).expect("changed");
        net.relay.next(way, kind, Fate::Cut);
        refused(wait(transaction.commit()), ErrorKind::UnknownOutcome);
        assert_eq!(net.value(1), Some(after));
        net.is_free(1);
    }
    // With the last batch.
    let transaction = net.client.begin();
    let mut batch = transaction.batch();
    batch.increment(net.counters.table(), 2u64, "value", 1);
    net.relay.next(Way::ToClient, Kind::BatchAnswer, Fate::Cut);
    refused(wait(transaction.execute_and_commit(batch)), ErrorKind::UnknownOutcome);
    assert_eq!(net.value(2), Some(21));
    // `transact` does not run it again.
    let mut runs = 0;
    net.relay.next(Way::ToClient, Kind::BatchAnswer, Fate::Cut);
    let result = wait(net.client.transact(async |transaction| {
        runs += 1;
        let mut batch = transaction.batch();
        batch.increment(net.counters.table(), 2u64, "value", 1);
        match runs {
            // The relay takes the first answer, so this one must not be the commit's.
            1 => transaction.execute(batch).await.map(|_| ()),
            _ => {
                transaction.execute(batch).await?.all_succeeded()?;
                net.relay.next(Way::ToClient, Kind::BatchAnswer, Fate::Cut);
                Ok(())
            }
        }
    }));
    refused(result, ErrorKind::UnknownOutcome);
    assert_eq!((runs, net.value(2)), (2, Some(22)));
}

#[test]
fn a_commit_of_reads_is_never_unknown() {
    let net = net();
    let mut transaction = net.client.begin();
    assert_eq!(wait(transaction.get(&net.counters, 1u64)), Ok(Some(counter(1, 10))));
    net.relay.next(Way::ToClient, Kind::BatchAnswer, Fate::Cut);
    assert!(refused(wait(transaction.commit()), ErrorKind::Disconnected).is_temporary());
}

#[test]
fn an_open_transaction_is_lost_with_its_connection_and_can_be_run_again() {
    let net = net();
    let mut transaction = net.client.begin();
    wait(transaction.increment(&net.counters, 1u64, "value", 5)).expect("changed");
    net.relay.cut_all();
    let error = refused(wait(transaction.increment(&net.counters, 2u64, "value", 5)), ErrorKind::Disconnected);
    assert!(error.is_temporary());
    // And stays lost, though there is a connection again.
    assert_eq!(wait(net.counters.get(1u64)), Ok(Some(counter(1, 10))));
    refused(wait(transaction.get(&net.counters, 1u64)), ErrorKind::Disconnected);
    refused(wait(transaction.commit()), ErrorKind::Disconnected);
    net.is_free(1);

    let mut runs = 0;
    wait(net.client.transact(async |transaction| {
        runs += 1;
        transaction.increment(&net.counters, 1u64, "value", 1).await?;
        if runs == 1 {
            net.relay.cut_all();
        }
        transaction.increment(&net.counters, 2u64, "value", 1).await.map(|_| ())
    }))
    .expect("the second run gets through");
    assert_eq!((runs, net.value(1), net.value(2)), (2, Some(11), Some(21)));
}

#[test]
fn nothing_is_sent_before_the_first_operation() {
    let net = net();
    let before = net.relay.passed(Way::ToServer, Kind::Batch);
    wait(net.client.begin().commit()).expect("nothing to commit");
    drop(net.client.begin());
    assert_eq!(net.relay.passed(Way::ToServer, Kind::Batch), before);
    // A whole transaction is one round trip.
    let transaction = net.client.begin();
    let mut batch = transaction.batch();
    batch.increment(net.counters.table(), 1u64, "value", 1);
    batch.increment(net.counters.table(), 2u64, "value", -1);
    wait(transaction.execute_and_commit(batch)).expect("committed").all_succeeded().expect("both");
    assert_eq!(net.relay.passed(Way::ToServer, Kind::Batch), before + 1);
    assert_eq!(net.relay.passed(Way::ToServer, Kind::Rollback), 0);
}

#[test]
fn a_dropped_future_ends_its_transaction() {
    let net = net();
    let mut holder = net.direct.begin();
    let counters = wait(net.direct.open::<Counter>()).expect("opened");
    wait(holder.increment(&counters, 2u64, "value", 1)).expect("changed");

    let mut transaction = net.client.begin();
    wait(transaction.increment(&net.counters, 1u64, "value", 1)).expect("changed");
    {
        // Waits for the lock of the other.
        let mut waiting = Box::pin(transaction.increment(&net.counters, 2u64, "value", 1));
        let pause = Box::pin(futures_pause(Duration::from_millis(30)));
        match wait(futures::future::select(&mut waiting, pause)) {
            futures::future::Either::Left(_) => panic!("the row is locked"),
            futures::future::Either::Right(_) => {}
        }
    }
    refused(wait(transaction.get(&net.counters, 1u64)), ErrorKind::TransactionEnded);
    refused(wait(transaction.commit()), ErrorKind::TransactionEnded);
    net.is_free(1);
    wait(holder.rollback()).expect("rolled back");
    net.is_free(2);
    assert_eq!((net.value(1), net.value(2)), (Some(10), Some(20)));
}

/// A pause that needs no runtime.
async fn futures_pause(duration: Duration) {
    let (sender, receiver) = futures::channel::oneshot::channel();
    std::thread::spawn(move || {
        std::thread::sleep(duration);
        // Whoever waited may be gone.
        let _ = sender.send(());
    });
    // It is sent before the sender is dropped.
    let _: Result<(), _> = receiver.await;
}

#[test]
fn a_dropped_transaction_gives_its_locks_back() {
    let net = net();
    let mut transaction = net.client.begin();
    wait(transaction.increment(&net.counters, 1u64, "value", 1)).expect("changed");
    drop(transaction);
    net.is_free(1);
    assert_eq!(net.value(1), Some(10));
}

#[test]
fn a_dropped_scan_is_closed_and_the_connection_goes_on() {
    let net = net();
    let mut batch = net.client.batch();
    for id in 100..30_000 {
        batch.write_record(&net.counters, &counter(id, 1));
    }
    wait(net.client.execute(batch)).expect("written").all_succeeded().expect("all");
    for _ in 0..300 {
        let mut rows = net.counters.scan().rows();
        wait(rows.next()).expect("a row").expect("there");
        drop(rows);
        let mut rows = net.counters.scan_index("PRIMARY").expect("there").rows();
        let mut first = Box::pin(rows.next());
        // Asked for, and dropped before the answer is here.
        block_on(std::future::poll_fn(|cx| {
            let _ = first.as_mut().poll(cx);
            std::task::Poll::Ready(())
        }));
        drop(first);
    }
    assert_eq!(wait(net.counters.scan().collect()).expect("scanned").len(), 29_902);
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let net = net();
    let Net { client, counters, relay, server, _directory, .. } = net;
    let (address, directory) = (server.address, server.directory.clone());
    let open = client.begin();
    server.stop();
    let again = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        Server::start_at(&directory, address)
    });
    // Waits for it.
    assert_eq!(wait(counters.get(1u64)).expect("read"), Some(counter(1, 10)));
    let server = again.join().expect("started");
    wait(counters.increment(1u64, "value", 1)).expect("changed");
    drop(open);
    // One that is away for long is a temporary error.
    server.stop();
    let started = Instant::now();
    assert!(wait(counters.get(1u64)).unwrap_err().is_temporary());
    assert!(started.elapsed() < Duration::from_secs(20));
    drop((relay, client));
}

#[test]
fn another_database_on_the_same_address_is_noticed() {
    let net = net();
    let Net { client, counters, server, direct, .. } = net;
    let address = server.address;
    drop(direct);
    server.stop();
    // The same numbers of tables and versions, other columns.
    #[derive(rauk_client::Record, Clone, Debug, PartialEq)]
    #[rauk(database = "test", table = "counters")]
    struct Other {
        #[rauk(key)]
        id: u64,
        note: Option<String>,
        value: i64,
    }
    let directory = tempfile::tempdir().expect("a directory");
    let _server = Server::start_at(directory.path(), address);
    let direct = connect(address);
    let others = wait(direct.open_or_create::<Other>()).expect("made");
    wait(others.insert(&Other { id: 7, note: Some("n".into()), value: 77 })).expect("inserted");
    assert_eq!(wait(counters.get(7u64)), Ok(Some(counter(7, 77))));
    wait(counters.insert(&counter(8, 88))).expect("inserted");
    assert_eq!(wait(others.get(8u64)), Ok(Some(Other { id: 8, note: None, value: 88 })));
    wait(client.transact(async |t| t.increment(&counters, 8u64, "value", 1).await)).expect("changed");
    assert_eq!(wait(counters.get(8u64)), Ok(Some(counter(8, 89))));
}

#[test]
fn requests_without_an_answer_time_out() {
    let net = net_with(Options { request_timeout: Duration::from_millis(200), ..options() });
    let started = Instant::now();
    net.relay.next(Way::ToServer, Kind::Batch, Fate::Lost);
    assert!(refused(wait(net.counters.get(1u64)), ErrorKind::Timeout).is_temporary());
    assert!((Duration::from_millis(200)..Duration::from_secs(5)).contains(&started.elapsed()));
    net.relay.next(Way::ToClient, Kind::BatchAnswer, Fate::Lost);
    refused(wait(net.counters.insert(&counter(3, 30))), ErrorKind::UnknownOutcome);
    assert_eq!(net.value(3), Some(30));
    let mut transaction = net.client.begin();
    wait(transaction.increment(&net.counters, 1u64, "value", 1)).expect("changed");
    net.relay.next(Way::ToServer, Kind::Batch, Fate::Lost);
    refused(wait(transaction.get(&net.counters, 1u64)), ErrorKind::Timeout);
    net.is_free(1);
    // The connection is none the worse.
    assert_eq!(wait(net.counters.get(1u64)), Ok(Some(counter(1, 10))));
    assert_eq!(net.relay.connections(), 1);
}

#[test]
fn what_cannot_work_is_told_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(directory.path());
    let address = server.address.to_string();
    let started = Instant::now();
    let wrong = Options { retry: RetryPolicy::default(), ..Options::secret("another secret, also long enough") };
    refused(blocking::connect(&address, wrong), ErrorKind::Connection);
    refused(blocking::connect(&address, Options::default()), ErrorKind::Connection);
    refused(blocking::connect(&address, Options::secret("short")), ErrorKind::Connection);
    let error = refused(blocking::connect(&address, Options::secret_file("/no/such/file")), ErrorKind::Connection);
    assert!(error.message.contains("/no/such/file"), "{error}");
    server.stop();
    assert!(blocking::connect(&address, options()).map(|_| ()).unwrap_err().is_temporary());
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_hundred_batches_in_flight() {
    let net = net();
    let batches = (0..100u64).map(|n| {
        let mut batch = net.client.batch();
        let write = batch.write_record(&net.counters, &counter(1000 + n, n as i64));
        let reads: Vec<_> = (0..50).map(|_| batch.get(net.counters.table(), 1000 + n)).collect();
        let (client, counters) = (&net.client, &net.counters);
        async move {
            let result = client.execute(batch).await.expect("executed");
            assert!(result.outcome(write).is_ok());
            for read in reads {
                assert_eq!(result.record(counters, read), Ok(Some(counter(1000 + n, n as i64))));
            }
        }
    });
    let batches: Vec<_> = batches.collect();
    // By an executor that does not receive: the stand-in wakes its tasks.
    block_on(join_all(batches));
}

#[test]
fn tasks_of_an_asynchronous_runtime() {
    let net = net();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tasks = |n: u64| {
        let (client, counters) = (net.client.clone(), net.counters.clone());
        async move {
            for _ in 0..20 {
                assert_eq!(counters.get(1u64).await, Ok(Some(counter(1, 10))));
                let mine = counters.clone();
                client
                    .transact(async move |t| t.increment(&mine, 2u64, "value", n as i64).await)
                    .await
                    .expect("committed");
            }
        }
    };
    runtime.block_on(async {
        let tasks: Vec<_> = (0..10).map(|n| tokio::spawn(tasks(n))).collect();
        for task in tasks {
            task.await.expect("no panic");
        }
        // A time-out of the runtime's drops the future.
        let mut holder = net.direct.begin();
        let direct = net.direct.open::<Counter>().await.expect("opened");
        holder.increment(&direct, 1u64, "value", 1).await.expect("changed");
        let waits = net.counters.increment(1u64, "value", 1);
        assert!(tokio::time::timeout(Duration::from_millis(50), waits).await.is_err());
        // The node is told, by another way than the commit goes.
        tokio::time::sleep(Duration::from_millis(100)).await;
        holder.commit().await.expect("committed");
    });
    assert_eq!((net.value(1), net.value(2)), (Some(11), Some(20 + 20 * 45)));
}

#[test]
fn threads_share_a_client() {
    let net = net_with(Options { connections: 2, ..options() });
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let net = &net;
            scope.spawn(move || {
                for round in 0..200u64 {
                    let id = 10_000 + thread * 1000 + round;
                    wait(net.counters.insert(&counter(id, thread as i64))).expect("inserted");
                    assert_eq!(wait(net.counters.get(id)), Ok(Some(counter(id, thread as i64))));
                    if round % 10 == 0 {
                        let sum = net.client.transact(async |transaction| {
                            transaction.increment(&net.counters, 1u64, "value", 1).await?;
                            transaction.increment(&net.counters, 2u64, "value", -1).await.map(|_| ())
                        });
                        match thread % 2 {
                            0 => wait(sum),
                            _ => block_on(sum),
                        }
                        .expect("committed");
                    }
                }
            });
        }
    });
    assert_eq!((net.value(1), net.value(2)), (Some(10 + 160), Some(20 - 160)));
    assert_eq!(net.relay.connections(), 2);
}

#[test]
fn one_future_waits_for_several_clients() {
    let net = net();
    let clients: Vec<Client> = (0..4).map(|_| connect(net.server.address)).collect();
    let reads = clients.iter().map(|client| async {
        let counters = client.open::<Counter>().await.expect("opened");
        for _ in 0..50 {
            assert_eq!(counters.get(1u64).await, Ok(Some(counter(1, 10))));
        }
    });
    wait(join_all(reads));
}

#[test]
fn a_table_of_another_client_is_refused() {
    let net = net();
    let mut batch = net.direct.batch();
    batch.get(net.counters.table(), 1u64);
    refused(wait(net.direct.execute(batch)), ErrorKind::Refused);
}

#[test]
fn a_changed_table_is_opened_again() {
    let net = net();
    let direct = wait(net.direct.open::<Counter>()).expect("opened");
    // Dropped and made again: another number, the same columns.
    let mut prepared = net.client.batch();
    let op = prepared.get(net.counters.table(), 1u64);
    wait(net.direct.drop_table("test", "counters")).expect("dropped");
    refused(wait(direct.get(1u64)), ErrorKind::UnknownTable);
    let direct = wait(net.direct.open_or_create::<Counter>()).expect("made");
    wait(direct.insert(&counter(1, 99))).expect("inserted");
    // A batch that was built before is renewed, a single operation is built again, a transaction says so and is run again.
    let result = wait(net.client.execute(prepared)).expect("executed");
    assert_eq!(result.record(&net.counters, op), Ok(Some(counter(1, 99))));
    assert_eq!(wait(net.counters.get(1u64)), Ok(Some(counter(1, 99))));
    wait(net.direct.drop_table("test", "counters")).expect("dropped");
    let direct = wait(net.direct.open_or_create::<Counter>()).expect("made");
    wait(direct.insert(&counter(1, 5))).expect("inserted");
    let mut transaction = net.client.begin();
    let error = refused(wait(transaction.get(&net.counters, 1u64)), ErrorKind::SchemaChanged);
    assert!(error.is_temporary());
    drop(transaction);
    let mut transaction = net.client.begin();
    assert_eq!(wait(transaction.get(&net.counters, 1u64)), Ok(Some(counter(1, 5))));
    let rows = wait(net.client.table("test", "counters")).expect("opened");
    assert_eq!(wait(rows.get(1u64)).expect("read").expect("there").value("value"), Ok(rauk_client::ValueRef::Int(5)));
    assert_eq!(wait(rows.update(1u64, &[("value", Value::from(6i64))])), Ok(true));
}
