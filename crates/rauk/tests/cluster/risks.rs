//! What one more failure would stop is told before it happens.

use crate::common::cluster::{Node, all_in_one, health, until, until_healthy};
use crate::common::run;

fn reasons(node: &Node) -> String {
    let rows =
        node.process().try_connect().map(|mut c| run(&mut c, "SELECT CONCAT(status, ': ', reason) FROM rauk.health"));
    rows.map(|rows| rows.join("\n")).unwrap_or_default()
}

fn until_told(node: &Node, parts: &[&str]) {
    let mut last = String::new();
    let told = || {
        last = reasons(node);
        parts.iter().all(|part| last.contains(part))
    };
    until(&parts.join(", "), told);
}

#[test]
fn the_nodes_that_must_not_be_lost_are_named() {
    let root = tempfile::tempdir().unwrap();
    let mut nodes = all_in_one(root.path(), 2, "2");
    until_healthy(&nodes[0], 2);
    until_told(&nodes[1], &["yellow: losing node ", "stops the cluster: it is the only voter", "add nodes with it"]);
    let page = nodes[1].process().http("/health");
    assert!(
        page.contains("200 OK") && page.contains("\"health\":\"yellow\"") && page.contains("losing node "),
        "{page}"
    );
    let page = nodes[1].process().http("/cluster");
    assert!(page.contains("\"settled\":true"), "everything is where it is to be: {page}");

    let secret = root.path().join("secret");
    let arguments = ["--join", &nodes[0].address(), "--cluster-secret-file", secret.to_str().unwrap()];
    nodes.push(Node::start(&root.path().join("n3"), &arguments));
    until("three voters and two replicas are green", || reasons(&nodes[0]).starts_with("green: "));

    nodes[2].kill();
    until_told(
        &nodes[0],
        &[
            "losing node 1 or node 2 stops the cluster: 2 of the 3 voters of the control plane are up, and 2 must be; start node 3",
            "replication groups: it has their only in-sync replica",
        ],
    );
    nodes[2].restart();
    until("it is green again", || health(&nodes[0]).as_deref() == Some("green"));
}
