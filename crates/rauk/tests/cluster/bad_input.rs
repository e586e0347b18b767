//! What must not become a member of a cluster: each is refused with the cause and the way out, and the cluster does not notice.

use crate::common::cluster::{Node, PATIENCE, all_in_one, insist, member_command, refused, until, until_healthy};
use crate::common::{Rauk, rauk_command, run};
use mysql::TxOpts;
use mysql::prelude::Queryable;
use rauk_transporter::{Authority, Clock, Identity, Name, NodeCertificate, NodeKey, NodeTls, Options, PeerHandler};
use rauk_transporter::{Peers, Secret, TransportError};
use rauk_wire::hello::{Refusal, Role};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

/// A founder with a row in a table, whose secret lies in `root/secret`.
fn founder(root: &Path) -> Node {
    let secret = root.join("secret");
    let node = Node::start(&root.join("n1"), &["--replicas", "1", "--cluster-secret-file", secret.to_str().unwrap()]);
    let mut connection = node.connect();
    connection.query_drop("CREATE DATABASE d").unwrap();
    connection.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY)").unwrap();
    connection.query_drop("INSERT INTO d.t VALUES (1)").unwrap();
    node
}

/// The cluster is as it was: it serves, writes, and has no other nodes.
fn untouched(node: &Node) {
    let mut connection = node.connect();
    assert_eq!(run(&mut connection, "SELECT * FROM d.t WHERE id = 1"), ["1"]);
    assert_eq!(run(&mut connection, "REPLACE INTO d.t VALUES (2)").len(), 1);
    assert_eq!(run(&mut connection, "SELECT COUNT(*) FROM rauk.nodes"), ["1"]);
    // One that has just begun again has partitions that nobody leads yet, which are waited for where they are used.
    until_healthy(node, 1);
}

#[test]
fn strangers_are_refused_and_the_cluster_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let node = founder(root);
    let (address, secret) = (node.address(), root.join("secret"));
    let secret = secret.to_str().unwrap();
    let join = |name: &str, arguments: &[&str]| {
        let all = [&["--join", &address], arguments].concat();
        refused(member_command(&root.join(name), &all))
    };

    std::fs::write(root.join("other-secret"), "0123456789abcdef0123456789abcdef").unwrap();
    let other_secret = root.join("other-secret");
    let text = join("a", &["--cluster-secret-file", other_secret.to_str().unwrap()]);
    says(&text, &[&address, "secret", "is wrong", "--cluster-secret-file", "cluster.secret"]);
    let text = join("b", &[]);
    says(&text, &["joining a cluster takes its secret", "cluster.secret", "--cluster-secret-file"]);
    let missing = root.join("not there");
    let text = join("b2", &["--cluster-secret-file", missing.to_str().unwrap()]);
    says(&text, &["not there", "--cluster-secret-file"]);

    let text = join("c", &["--cluster-secret-file", secret, "--cluster-name", "another"]);
    says(&text, &["'another'".trim_matches('\''), "rauk", "--cluster-name"]);

    // A program's port is no cluster port.
    let native = format!("127.0.0.1:{}", node.process().native_port);
    let text = refused(member_command(&root.join("d"), &["--join", &native, "--cluster-secret-file", secret]));
    says(&text, &[&native]);

    // The founder's address, by another host's listener.
    let port = node.cluster_port.to_string();
    let text = join(
        "e",
        &["--cluster-secret-file", secret, "--host", "127.0.0.2", "--cluster-port", &port, "--advertise", "127.0.0.1"],
    );
    says(&text, &["own address"]);

    // Nobody is there.
    let text = refused(member_command(&root.join("f"), &["--join", "127.0.0.1:1", "--cluster-secret-file", secret]));
    says(&text, &["127.0.0.1:1", "running"]);
    untouched(&node);
}

#[test]
fn an_address_belongs_to_one_node() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let node = founder(root);
    let secret = root.join("secret");
    let secret = secret.to_str().unwrap();
    let second = Node::start(&root.join("n2"), &["--join", &node.address(), "--cluster-secret-file", secret]);
    until("it is up", || run(&mut node.connect(), "SELECT COUNT(*) FROM rauk.nodes WHERE status = 'up'") == ["2"]);
    // The second node's address, said by a third.
    let port = second.cluster_port.to_string();
    let arguments =
        ["--join", &node.address(), "--cluster-secret-file", secret, "--host", "127.0.0.2", "--advertise", "127.0.0.1"];
    let text = refused(member_command(&root.join("n3"), &[&arguments[..], &["--cluster-port", &port]].concat()));
    says(&text, &["address", &second.address(), "node 2", "--advertise"]);
    // A copy of its directory, at another address.
    let copy = root.join("copy");
    let copied = std::process::Command::new("cp").arg("-r").arg(root.join("n2")).arg(&copy).status().unwrap();
    assert!(copied.success());
    let text = refused(member_command(&copy, &["--join", &node.address(), "--cluster-secret-file", secret]));
    says(&text, &["node 2", "runs already", "empty directory"]);
    // Both are as they were.
    assert_eq!(run(&mut second.connect(), "SELECT COUNT(*) FROM d.t"), ["1"]);
    assert_eq!(run(&mut node.connect(), "SELECT COUNT(*) FROM rauk.nodes WHERE status = 'up'"), ["2"]);
}

struct Nobody;

impl PeerHandler for Nobody {
    fn on_message(&self, _: Option<Name>, _: bytes::Bytes) {}
    fn on_request(&self, _: bytes::Bytes) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>> {
        Box::pin(async { Vec::new() })
    }
    fn on_enrol(&self, _: bytes::Bytes) -> Pin<Box<dyn Future<Output = Vec<u8>> + Send>> {
        Box::pin(async { Vec::new() })
    }
}

/// A node made by hand that knows the secret, and what it asks the founder for a certificate with.
fn by_hand(secret: &Secret, cluster: [u8; 16], version: u16) -> (Arc<Peers>, Arc<NodeTls>, NodeKey, Vec<u8>) {
    let identity = Identity { role: Role::Node, cluster, incarnation: 5, version, name: "by hand at nowhere:1".into() };
    let tls = NodeTls::new(Clock::system());
    let secret = (secret.clone(), Some(tls.clone()));
    let peers = Peers::start(Options::default(), identity, secret, Arc::new(Nobody)).unwrap();
    let key = NodeKey::new().unwrap();
    let request = format!("{{\"directory\":77,\"node\":0,\"key\":{:?},\"wants_authority\":false}}", key.public());
    (peers, tls, key, request.into_bytes())
}

/// Nodes of another version, and of another cluster with the same secret, made by hand.
#[test]
fn other_versions_and_other_clusters_are_told_so() {
    let root = tempfile::tempdir().unwrap();
    let node = founder(root.path());
    let secret = Secret::from_file(&root.path().join("secret")).unwrap();
    let knock = |cluster: [u8; 16], version: u16| {
        let (peers, tls, _, request) = by_hand(&secret, cluster, version);
        rauk_node::block_on(peers.enrol(&node.address(), &tls, request))
    };
    match knock([0; 16], rauk_wire::PROTOCOL + 5) {
        Err(TransportError::Refused { reason: Refusal::Version, message }) => {
            says(&message, &["by hand", "upgrade the older one"]);
        }
        other => panic!("{other:?}"),
    }
    match knock([7; 16], rauk_wire::PROTOCOL) {
        Err(TransportError::Refused { reason: Refusal::Cluster, message }) => {
            says(&message, &["by hand", "wrong node"])
        }
        other => panic!("{other:?}"),
    }
    untouched(&node);
}

/// A node that has the secret gets a certificate. What it says with that does no harm, and neither does one that it
/// makes itself.
#[test]
fn a_node_with_a_certificate_that_says_nonsense_does_no_harm() {
    let root = tempfile::tempdir().unwrap();
    let node = founder(root.path());
    let secret = Secret::from_file(&root.path().join("secret")).unwrap();
    let (peers, tls, key, request) = by_hand(&secret, [0; 16], rauk_wire::PROTOCOL);
    let enrol = |request: &[u8]| {
        let answer = rauk_node::block_on(peers.enrol(&node.address(), &tls, request.to_vec())).unwrap();
        serde_json::from_slice::<serde_json::Value>(&answer).unwrap()
    };
    let refused = enrol(b"nonsense");
    says(refused["Refused"].as_str().unwrap(), &["cannot be read"]);
    // It is not node 1, whatever it says.
    let other = String::from_utf8(request.clone()).unwrap().replace("\"node\":0", "\"node\":1");
    says(enrol(other.as_bytes())["Refused"].as_str().unwrap(), &["does not know that data directory as node 1"]);
    let signed = &enrol(&request)["Signed"];
    let text = |name: &str| signed[name].as_str().unwrap().to_string();
    assert!(signed["authority_key"].is_null());
    tls.install(&NodeCertificate { certificate: text("certificate"), key: key.pem(), authority: text("authority") })
        .unwrap();
    for length in [0, 1, 3, 40, 100_000] {
        peers.send(&node.address(), vec![255; length]);
        peers.send_urgent(&node.address(), vec![1; length]);
        let _ = rauk_node::block_on(peers.call(&node.address(), vec![7; length]));
    }
    untouched(&node);

    let forger = Authority::found(tls.name().unwrap().cluster).unwrap();
    let name = Name { node: 1, ..tls.name().unwrap() };
    let certificate = forger.sign(&name, key.public(), std::time::SystemTime::now()).unwrap();
    // The founder's authority, so that only the founder can see that something is wrong.
    tls.install(&NodeCertificate { certificate, key: key.pem(), authority: text("authority") }).unwrap();
    peers.reconnect();
    until("it is kept out", || match rauk_node::block_on(peers.call(&node.address(), vec![7])) {
        Ok(_) | Err(TransportError::Closed(_) | TransportError::Connect { .. }) => false,
        Err(TransportError::Certificate { reason, .. }) => {
            says(&reason, &["certificate of this node", "another cluster"]);
            true
        }
        Err(other) => panic!("{other:?}"),
    });
    untouched(&node);
}

#[test]
fn directories_stay_what_they_are() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    // One with tables of its own can found a cluster, and nothing else.
    let alone = root.join("alone");
    assert!(Rauk::start(&alone).stop().success());
    let text = refused(member_command(&alone, &["--join", "127.0.0.1:7306"]));
    says(&text, &["tables of its own", "--join", "--data-dir", "dump"]);
    let text = refused(member_command(&alone, &["--roles", "manage,sql"]));
    says(&text, &["has tables", "role data"]);
    let text = refused(member_command(&alone, &["--durability", "relaxed"]));
    says(&text, &["fsync or replicated"]);
    // The lone node is untouched by that.
    assert!(!alone.join("member.json").exists());
    assert!(Rauk::start(&alone).stop().success());

    let secret = root.join("secret");
    let secret = secret.to_str().unwrap();
    let mut node = founder(root);
    node.kill();
    let text = refused(rauk_command(&node.dir));
    says(&text, &["node 1 of the cluster 'rauk'", "--cluster-port"]);
    let text = refused(member_command(&node.dir, &["--cluster-name", "another"]));
    says(&text, &["node 1 of the cluster 'rauk'", "'another'", "--cluster-name"]);

    // Another cluster with the same secret: the directory of a member of one does not join the other.
    let other = Node::start(&root.join("other"), &["--replicas", "1", "--cluster-secret-file", secret]);
    let text = refused(member_command(&node.dir, &["--join", &other.address(), "--cluster-secret-file", secret]));
    says(&text, &[&other.address(), "of another cluster", "--join"]);
    drop(other);

    let member = node.dir.join("member.json");
    let good = std::fs::read_to_string(&member).unwrap();
    std::fs::write(&member, "{\"format\":1}").unwrap();
    says(&refused(member_command(&node.dir, &[])), &["member.json", "damaged", "empty directory"]);
    std::fs::write(&member, good).unwrap();
    node.restart();
    untouched(&node);
}

#[test]
fn ports_and_values_out_of_range() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let node = founder(root);
    let port = node.cluster_port.to_string();
    // Two clusters on one port.
    let text = refused(member_command(&root.join("x"), &["--cluster-port", &port]));
    says(&text, &[&port, "in use", "--cluster-port"]);
    for (arguments, words) in [
        (&["--replicas", "0"][..], &["--replicas", "'0'", "1 to 4"][..]),
        (&["--replicas", "5"], &["--replicas", "'5'", "1 to 4"]),
        (&["--roles", "data,spl"], &["--roles", "manage, data and sql"]),
        (&["--roles", "data"], &["manage", "--join"]),
        (&["--join", "nowhere"], &["--join", "'nowhere'", "7306"]),
        (&["--cluster-port", "70000"], &["--cluster-port", "65535"]),
        (&["--cluster-name", "a b"], &["--cluster-name", "letters"]),
        (&["--peer-address", "x=1"], &["--peer-address", "2=127.0.0.1:9000"]),
        (&["--advertise", "0.0.0.0"], &["--advertise"]),
        (&["--host", "0.0.0.0"], &["--advertise", "0.0.0.0"]),
        (&["--durability", "relaxed"], &["durability", "fsync"]),
        (&["--partitions", "2000"], &["--partitions", "1024"]),
        (&["--replace-after", "0"], &["--replace-after", "'0'", "seconds"]),
        (&["--replace-after", "1m"], &["--replace-after", "'1m'", "seconds"]),
    ] {
        says(&refused(member_command(&root.join("y"), arguments)), words);
        assert!(!root.join("y").join("member.json").exists(), "{arguments:?} has left something");
    }
    let mut alone = rauk_command(&root.join("z"));
    alone.args(["--cluster-name", "lonely"]);
    says(&refused(alone), &["--cluster-name", "--cluster-port"]);
    std::thread::sleep(Duration::from_millis(100));
    untouched(&node);
}

struct Unmount(std::path::PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// The node whose disk is full says so and ends; the others go on with every row, and take it back when there is room.
#[test]
fn a_full_disk_ends_one_node_only() {
    let root = tempfile::tempdir().unwrap();
    let small = root.path().join("n3");
    std::fs::create_dir(&small).unwrap();
    let mount = |options: &str| {
        let mounted =
            std::process::Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&small).status();
        assert!(mounted.is_ok_and(|s| s.success()), "this test mounts a small file system: run it as root");
    };
    mount("size=24m");
    let _unmount = Unmount(small.clone());
    let mut nodes = all_in_one(root.path(), 3, "2");
    until_healthy(&nodes[0], 3);
    let mut connection = nodes[0].connect();
    connection.query_drop("CREATE DATABASE d").unwrap();
    connection.query_drop("CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(1000))").unwrap();
    // Until the others have taken over what the full node led.
    let write = |c: &mut mysql::Conn, sql: &str| until("it is written", || c.query_drop(sql).is_ok());
    let (mut rows, end) = (0, std::time::Instant::now() + PATIENCE);
    let is_up =
        |connection: &mut mysql::Conn| run(connection, "SELECT status FROM rauk.nodes WHERE node_id = 3") != ["down"];
    while is_up(&mut connection) {
        for _ in 0..10 {
            let values: Vec<String> = (0..50).map(|i| format!("({}, REPEAT('x', 1000))", rows + i)).collect();
            write(&mut connection, &format!("REPLACE INTO d.t VALUES {}", values.join(", ")));
            rows += 50;
        }
        assert!(rows < 100_000 && std::time::Instant::now() < end, "24 MiB hold less than {rows} rows");
    }
    let words = nodes[2].process.take().unwrap().last_words(PATIENCE);
    says(&words, &["the disk is full", "free some space"]);
    for node in &nodes[..2] {
        assert_eq!(run(&mut node.connect(), "SELECT COUNT(*) FROM d.t"), [rows.to_string()]);
    }
    write(&mut nodes[1].connect(), "REPLACE INTO d.t VALUES (-1, 'x')");
    mount("remount,size=400m");
    nodes[2].restart();
    until_healthy(&nodes[0], 3);
    assert_eq!(run(&mut nodes[2].connect(), "SELECT COUNT(*) FROM d.t"), [(rows + 1).to_string()]);
}

/// A message takes 63 MiB. A row that is larger is refused when it is written; a transaction of more goes in chunks, and
/// is on both nodes.
#[test]
fn a_transaction_that_no_message_carries_goes_in_chunks() {
    let root = tempfile::tempdir().unwrap();
    let secret = root.path().join("secret");
    let secret =
        ["--cluster-secret-file", secret.to_str().unwrap(), "--memory-limit", "1GiB", "--redo-segment", "64MiB"];
    let founding = [&secret[..], &["--replicas", "2", "--partitions", "1"]].concat();
    let first = Node::start(&root.path().join("n1"), &founding);
    let second = Node::start(&root.path().join("n2"), &[&secret[..], &["--join", &first.address()]].concat());
    until_healthy(&first, 2);
    let mut connection = first.connect();
    insist(&mut connection, "CREATE DATABASE d");
    insist(&mut connection, "CREATE TABLE d.t (id INT PRIMARY KEY, b LONGBLOB)");
    let insert = |rows: u32| -> Result<(), mysql::Error> {
        let mut connection = first.connect();
        let mut txn = connection.start_transaction(TxOpts::default())?;
        for id in 1..=rows {
            txn.query_drop(format!("INSERT INTO d.t VALUES ({id}, REPEAT('x', 9000000))"))?;
        }
        txn.commit()
    };
    // A machine with much to do may take the partition away from its primary meanwhile: 1213, and once more.
    let ends = |rows: u32| {
        let mut end = None;
        until("the transaction has an end", || match insert(rows) {
            Ok(()) => true,
            Err(mysql::Error::MySqlError(error)) => {
                let ended = error.code != 1213;
                end = Some((error.code, error.message)).filter(|_| ended);
                ended
            }
            Err(error) => panic!("{error}"),
        });
        end
    };
    let too_large = connection.query_drop("INSERT INTO d.t VALUES (1, REPEAT('x', 67000000))");
    let Err(mysql::Error::MySqlError(error)) = too_large else { panic!("{too_large:?}") };
    assert_eq!(error.code, 1406, "{error}");
    assert_eq!(run(&mut connection, "SELECT COUNT(*) FROM d.t"), ["0"]);
    // 72 MB.
    assert_eq!(ends(8), None);
    until_healthy(&second, 2);
    assert_eq!(run(&mut second.connect(), "SELECT COUNT(*), SUM(LENGTH(b)) FROM d.t"), ["8 | 72000000"]);
}
