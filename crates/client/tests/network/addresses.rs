//! A client with several addresses: where it connects, and where it goes on when a server ends, falls silent or is another cluster's.

use crate::network::{Counter, Relay, Server, Way, connect, counter, options};
use rauk_client::blocking::{self, wait};
use rauk_client::{Client, ErrorKind, Options, Records, RetryPolicy};
use rauk_wire::Kind;
use std::time::Duration;

/// A server behind two relays, as if it were two nodes of a cluster.
struct Two {
    server: Server,
    relays: [Relay; 2],
    _directory: tempfile::TempDir,
}

impl Two {
    fn start() -> Two {
        let directory = tempfile::tempdir().expect("a directory");
        let server = Server::start(directory.path());
        let relays = [Relay::start(server.address), Relay::start(server.address)];
        let direct = connect(server.address);
        let counters = wait(direct.open_or_create::<Counter>()).expect("made");
        wait(counters.insert(&counter(1, 10))).expect("inserted");
        Two { server, relays, _directory: directory }
    }

    fn client(&self, options: Options) -> (Client, Records<Counter>) {
        let [one, other] = &self.relays;
        let address = format!("rauk://{},{}/?name=two", one.address, other.address);
        let client = blocking::connect(&address, options).expect("connected");
        let counters = wait(client.open::<Counter>()).expect("opened");
        (client, counters)
    }

    /// The relay that a client with one connection uses, and the other one.
    fn used(&self) -> (&Relay, &Relay) {
        match self.relays.each_ref().map(Relay::connections) {
            [1, 0] => (&self.relays[0], &self.relays[1]),
            [0, 1] => (&self.relays[1], &self.relays[0]),
            other => panic!("one connection was expected: {other:?}"),
        }
    }
}

#[test]
fn a_client_goes_on_at_the_next_server() {
    let two = Two::start();
    let (client, counters) = two.client(options());
    let (used, other) = two.used();
    let mut transaction = client.begin();
    wait(transaction.increment(&counters, 1u64, "value", 1)).expect("changed");
    used.lead_to(None);
    // The transaction that was running is lost, and nothing else.
    let error = wait(transaction.commit()).expect_err("its connection is lost");
    assert!(error.is_unknown_outcome() || error.is_temporary(), "{error}");
    assert_eq!(wait(counters.get(1u64)), Ok(Some(counter(1, 10))));
    wait(client.transact(async |t| t.increment(&counters, 1u64, "value", 5).await)).expect("committed");
    // What one node has said of tables is good for the others.
    assert_eq!(other.passed(Way::ToServer, Kind::OpenTable), 0);
    // And back.
    used.lead_to(Some(two.server.address));
    other.lead_to(None);
    assert_eq!(wait(counters.get(1u64)), Ok(Some(counter(1, 15))));
}

#[test]
fn a_server_that_is_silent_is_given_up() {
    let two = Two::start();
    // For so long a server may be silent.
    let patience = Duration::from_secs(1);
    let (_client, counters) = two.client(Options { connect_timeout: patience, ..options() });
    let (used, other) = two.used();
    used.freeze();
    // Sent to the silent one, and then again to the other.
    assert_eq!(wait(counters.get(1u64)), Ok(Some(counter(1, 10))));
    assert_eq!(other.connections(), 1);
}

#[test]
fn a_server_that_is_slow_is_asked_and_kept() {
    let two = Two::start();
    let (_client, counters) = two.client(Options { connect_timeout: Duration::from_secs(60), ..options() });
    let (used, other) = two.used();
    let direct = connect(two.server.address);
    let held = wait(direct.open::<Counter>()).expect("opened");
    let mut holder = direct.begin();
    wait(holder.increment(&held, 1u64, "value", 1)).expect("changed");
    let waiter = std::thread::spawn(move || wait(counters.increment(1u64, "value", 1)));
    while used.passed(Way::ToClient, Kind::Pong) == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    wait(holder.commit()).expect("committed");
    assert_eq!(waiter.join().expect("no panic"), Ok(Some(counter(1, 12))));
    assert_eq!(other.connections(), 0);
}

/// An address on which nobody listens.
fn nobody() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

#[test]
fn a_node_of_another_cluster_is_refused() {
    let two = Two::start();
    let directory = tempfile::tempdir().expect("a directory");
    let stranger = Server::start_of([8; 16], directory.path(), "127.0.0.1:0".parse().expect("an address"));
    let [ours, theirs] = &two.relays;
    theirs.lead_to(None);
    let retry = RetryPolicy { attempts: 2, ..RetryPolicy::default() };
    let (_client, counters) = two.client(Options { retry, ..options() });
    theirs.lead_to(Some(stranger.address));
    ours.lead_to(None);
    let error = wait(counters.get(1u64)).expect_err("no node of this cluster is there");
    assert!(error.is_temporary(), "it may come back: {error}");
    for part in ["belongs to cluster 0808", "expects cluster 0707", &theirs.address.to_string()] {
        assert!(error.message.contains(part), "{error}");
    }
    ours.lead_to(Some(two.server.address));
    assert_eq!(wait(counters.get(1u64)), Ok(Some(counter(1, 10))));
    // Where all that are there are strangers, trying again is of no use.
    let lone = Relay::start(two.server.address);
    let client = blocking::connect(&lone.address.to_string(), options()).expect("connected");
    let counters = wait(client.open::<Counter>()).expect("opened");
    lone.lead_to(Some(stranger.address));
    let error = wait(counters.get(1u64)).expect_err("another cluster");
    assert_eq!(error.kind, ErrorKind::Connection, "{error}");
}

#[test]
fn connections_are_spread_over_the_servers() {
    let two = Two::start();
    let (client, counters) = two.client(Options { connections: 4, ..options() });
    // Transactions take connections in turn.
    for _ in 0..4 {
        wait(client.transact(async |t| t.increment(&counters, 1u64, "value", 1).await)).expect("committed");
    }
    assert_eq!(two.relays.each_ref().map(Relay::connections), [2, 2]);
}

#[test]
fn servers_that_do_not_answer_are_named() {
    let two = Two::start();
    let away = [nobody(), nobody()];
    let address = format!("{},{}", away[0], away[1]);
    let error = blocking::connect(&address, options()).err().expect("nobody is there");
    assert!(error.is_temporary(), "{error}");
    assert!(away.iter().all(|address| error.message.contains(&address.to_string())), "{error}");
    // One that is there is enough.
    let address = format!("rauk://{address},{}", two.server.address);
    let client = blocking::connect(&address, options()).expect("the third answers");
    assert!(wait(client.open::<Counter>()).is_ok());
    // The options of the address count more than those of the program.
    let missing = format!("{address}/?secret-file=/no/such/file");
    let error = blocking::connect(&missing, options()).err().expect("there is no such file");
    assert!(error.message.contains("/no/such/file"), "{error}");
    let wrong = blocking::connect("rauk://a/?colour=red", options()).err().expect("no such option");
    assert_eq!(wrong.kind, ErrorKind::Connection);
}
