//! Links between the nodes of a cluster: certificates at founding and joining, a cluster that had none, plain links.

use crate::common::cluster::{Node, all_in_one, all_in_one_with, insist, until, until_healthy};
use crate::common::run;
use mysql::prelude::Queryable;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

fn fingerprint(dir: &Path) -> String {
    let member = std::fs::read_to_string(dir.join("member.json")).unwrap();
    let member: serde_json::Value = serde_json::from_str(&member).unwrap();
    member["authority"].as_str().map(str::to_string).unwrap_or_default()
}

fn fill(node: &Node) {
    let mut connection = node.connect();
    insist(&mut connection, "CREATE DATABASE d");
    insist(&mut connection, "CREATE TABLE d.t (id INT PRIMARY KEY)");
    for id in 1..=50 {
        insist(&mut connection, &format!("INSERT INTO d.t VALUES ({id})"));
    }
}

fn count(node: &Node) -> String {
    run(&mut node.connect(), "SELECT COUNT(*) FROM d.t").remove(0)
}

/// What a node begins a connection to a listener with: TLS's first byte, or the first of a frame.
fn first_byte(address: &str, hello: &[u8]) -> u8 {
    use std::io::{Read, Write};
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    socket.write_all(hello).unwrap();
    let mut byte = [0];
    socket.read_exact(&mut byte).unwrap();
    byte[0]
}

#[test]
fn nodes_have_certificates_of_one_authority_that_only_their_owner_can_read() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 2, "2");
    let secret = root.path().join("secret");
    let founder = nodes[0].address();
    let arguments = ["--roles", "sql", "--join", &founder, "--cluster-secret-file", secret.to_str().unwrap()];
    nodes.push(Node::start(&root.path().join("n3"), &arguments));
    fill(&nodes[2]);
    let known: Vec<String> = nodes.iter().map(|node| fingerprint(&node.dir)).collect();
    assert!(known[0].len() == 64 && known.iter().all(|one| *one == known[0]), "{known:?}");
    for (number, node) in nodes.iter().enumerate() {
        // Only nodes with the role manage can sign.
        let files: &[&str] =
            if number < 2 { &["cluster.certificate", "cluster.authority"] } else { &["cluster.certificate"] };
        for file in files {
            let mode = std::fs::metadata(node.dir.join(file)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file} of node {}", number + 1);
        }
        assert_eq!(node.dir.join("cluster.authority").exists(), number < 2);
    }
    // A plain frame is answered in plain, which is no TLS record.
    assert_ne!(first_byte(&founder, &[0; 64]), 22);

    // A node that has lost its certificate gets another of the same authority, from the other node.
    nodes[1].stop();
    for file in ["cluster.certificate", "cluster.authority"] {
        std::fs::remove_file(nodes[1].dir.join(file)).unwrap();
    }
    nodes[1].restart();
    until_healthy(&nodes[0], 3);
    assert_eq!(fingerprint(&nodes[1].dir), known[0]);
    assert!(nodes[1].dir.join("cluster.authority").exists());
    assert_eq!(count(&nodes[1]), "50");
}

/// As a directory that an earlier build has made: no certificates, and no word of them.
#[test]
fn a_cluster_without_certificates_gets_them_when_all_nodes_are_started_again() {
    let root = tempfile::tempdir().unwrap();
    let plain = ["--plain-links", "true"];
    let mut nodes = all_in_one_with(root.path(), 1, &["--replicas", "2", "--plain-links", "true"]);
    let secret = root.path().join("secret");
    let founder = nodes[0].address();
    let arguments = ["--join", &founder, "--cluster-secret-file", secret.to_str().unwrap()];
    nodes.push(Node::start(&root.path().join("n2"), &[&arguments[..], &plain].concat()));
    until_healthy(&nodes[0], 2);
    fill(&nodes[1]);
    for node in &nodes {
        assert!(!node.dir.join("cluster.certificate").exists() && fingerprint(&node.dir).is_empty());
    }

    // One node alone with TLS is no member, whichever side connects, and says which flag it is about.
    nodes[1].stop();
    let text = nodes[1].refused_restart(&["--plain-links", "false"]);
    says(&text, &["--plain-links", "none"]);
    nodes[1].restart();
    until_healthy(&nodes[0], 2);

    nodes.iter_mut().for_each(Node::stop);
    let mut restarted: Vec<_> = Vec::new();
    // Both at once: each waits for the other.
    std::thread::scope(|scope| {
        let starting: Vec<_> =
            nodes.iter_mut().map(|node| scope.spawn(|| node.restart_with(&["--plain-links", "false"]))).collect();
        restarted.extend(starting.into_iter().map(|one| one.join()));
    });
    assert!(restarted.iter().all(Result::is_ok));
    until_healthy(&nodes[0], 2);
    let known: Vec<String> = nodes.iter().map(|node| fingerprint(&node.dir)).collect();
    assert!(known[0].len() == 64 && known[0] == known[1], "{known:?}");
    assert_eq!([count(&nodes[0]), count(&nodes[1])], ["50", "50"]);
    nodes[0].connect().query_drop("INSERT INTO d.t VALUES (100)").unwrap();
    until("it is there", || count(&nodes[1]) == "51");
}
