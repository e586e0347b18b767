//! `rauk cluster …` and `rauk status`, as an operator types them.

use crate::common::cluster::until;
use crate::common::{Rauk, rauk_command};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn rauk(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rauk"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
        command.env_remove(name);
    }
    command.args(arguments).output().expect("rauk runs")
}

fn good(arguments: &[&str]) -> String {
    let output = rauk(arguments);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {out}{err}");
    out.into_owned()
}

fn bad(arguments: &[&str], words: &[&str]) {
    let output = rauk(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{arguments:?}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// Stops what the test has started, however it ends.
struct Down<'a>(&'a str);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        rauk(&["cluster", "down", "--dir", self.0]);
    }
}

fn nodes(dir: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(dir.join("cluster.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The directory of a cluster, its secret, and the logs of its nodes.
fn only_the_owner_may_read(dir: &Path) {
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(dir), 0o700);
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        assert_eq!(mode(&entry), if entry.is_dir() { 0o700 } else { 0o600 }, "{}", entry.display());
    }
    assert_eq!(mode(&dir.join("node1.log")), 0o600);
}

#[test]
fn a_cluster_on_this_host() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("c");
    let dir = path.to_str().unwrap();
    bad(&["cluster", "status", "--dir", dir], &["there is no cluster", "rauk cluster up"]);
    bad(&["cluster", "up", "--data", "1", "--sql", "1", "--replicas", "2", "--dir", dir], &["2 replicas", "--data"]);
    bad(&["cluster", "up", "--replicas", "5", "--dir", dir], &["replicas"]);
    bad(&["cluster", "up", "--nodes", "0", "--dir", dir], &["--nodes", "0 is not in 1..=64"]);
    let _down = Down(dir);
    let up = good(&[
        "cluster",
        "up",
        "--data",
        "2",
        "--sql",
        "1",
        "--replicas",
        "2",
        "--memory-limit",
        "128MiB",
        "--set",
        "log-level=info",
        "--dir",
        dir,
    ]);
    assert!(
        up.contains("3 nodes are up") && up.contains("leads the manage group") && up.contains("rauk cluster kill"),
        "{up}"
    );
    bad(&["cluster", "up", "--dir", dir], &["runs already", "rauk cluster down"]);
    // What was laid out otherwise is not started as if it had been asked for.
    bad(&["cluster", "up", "--nodes", "5", "--dir", dir], &["has 3 nodes", "rauk cluster add", "--dir"]);
    bad(&["cluster", "up", "--replicas", "1", "--dir", dir], &["SET GLOBAL rauk_replicas"]);
    bad(&["cluster", "add", "--roles", "cook", "--dir", dir], &["--roles cook"]);
    let port = nodes(&path)["nodes"][2]["ports"]["mysql"].to_string();
    let sql = |statement: &str| good(&["sql", "--port", &port, "-e", statement]);
    sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1), (2), (3)");

    let status = good(&["status", "--port", &port]);
    // Two nodes have the role manage.
    assert!(status.starts_with("yellow: losing node ") && status.contains("it is the only voter"), "{status}");
    assert!(status.contains("manage,data") && status.contains("2 of 2"), "{status}");

    only_the_owner_may_read(&path);
    // Data nodes serve no clients, and say so by having no port.
    assert_eq!(nodes(&path)["nodes"][0]["ports"]["mysql"], 0);
    let killed = good(&["cluster", "kill", "2", "--dir", dir]);
    assert!(killed.contains("node 2") && killed.contains("killed"), "{killed}");
    // At once: its lease has not ended yet.
    let status = good(&["cluster", "status", "--dir", dir]);
    assert!(status.contains("the process of node 2 has ended") && status.contains("node 2 has ended"), "{status}");
    assert!(!status.contains("green"), "{status}");
    bad(&["cluster", "kill", "2", "--dir", dir], &["has ended"]);
    bad(&["cluster", "kill", "9", "--dir", dir], &["there is no node 9", "1, 2, 3"]);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let status = good(&["cluster", "status", "--dir", dir]);
    assert!(status.contains("yellow") && status.contains("is down") && status.contains("ended"), "{status}");
    assert!(sql("SELECT COUNT(*) AS n FROM d.t").contains("| 3"));
    let restarted = good(&["cluster", "restart", "2", "--dir", dir]);
    assert!(restarted.contains("node 2 serves after") && restarted.contains("are in sync after"), "{restarted}");
    let states =
        "SELECT COUNT(*) AS n FROM rauk.partitions WHERE FIND_IN_SET(2, placed) AND NOT FIND_IN_SET(2, in_sync)";
    assert!(sql(states).contains("| 0"), "the next node may be restarted");
    let log = good(&["cluster", "logs", "2", "-n", "3", "--dir", dir]);
    assert_eq!(log.lines().count(), 3, "{log}");
    assert!(good(&["cluster", "logs", "2", "-n", "1000", "--dir", dir]).contains("rauk is ready"));
    bad(&["cluster", "logs", "9", "--dir", dir], &["there is no node 9"]);
    let added = good(&["cluster", "add", "--roles", "data", "--dir", dir]);
    assert!(added.contains("node 4 (data) serves") && added.contains("the replicas of node 4 are in sync"), "{added}");

    good(&["cluster", "pause", "1", "--dir", dir]);
    assert!(good(&["cluster", "status", "--dir", dir]).contains("paused"));
    good(&["cluster", "resume", "1", "--dir", dir]);

    let down = good(&["cluster", "down", "--dir", dir]);
    assert!(down.contains("4 nodes stopped"), "{down}");
    for node in nodes(&path)["nodes"].as_array().unwrap() {
        let pid = node["process"]["pid"].to_string();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "process {pid} is still there: {stat}");
    }
    // A version before made these as the umask has it.
    for (name, mode) in [("", 0o755), ("node1.log", 0o644)] {
        std::fs::set_permissions(path.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    // It comes up as it was, with its data and its ports.
    let up = good(&["cluster", "up", "--dir", dir]);
    assert!(up.contains("as it was laid out") && up.contains("4 nodes are up"), "{up}");
    only_the_owner_may_read(&path);
    assert!(sql("SELECT COUNT(*) AS n FROM d.t").contains("| 3"));
}

/// One that waits for the others says so, to whoever asks, and serves when they are there.
#[test]
fn a_node_that_waits_for_a_majority_says_so() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("c");
    let dir = path.to_str().unwrap();
    let _down = Down(dir);
    good(&["cluster", "up", "--memory-limit", "128MiB", "--dir", dir]);
    let port = nodes(&path)["nodes"][0]["ports"]["mysql"].to_string();
    good(&["sql", "--port", &port, "-e", "CREATE DATABASE d"]);
    good(&["cluster", "down", "--dir", dir]);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| good(&["cluster", "restart", "1", "--dir", dir]));
        let waits = "waits for a majority of the manage nodes";
        until("status says what the node waits for", || {
            let status = good(&["cluster", "status", "--dir", dir]);
            status.contains("no node serves yet: the server is starting") && status.contains(waits)
        });
        let status = good(&["cluster", "status", "--dir", dir]);
        assert!(status.lines().any(|line| line.contains(" starts ")), "{status}");
        bad(&["status", "--port", &port], &["1053", "the server is starting", waits]);
        // Two commands at a time would write cluster.json over each other. All nodes start: whichever stopped last may be
        // the only one that has the last writes.
        let start = |node: usize| {
            let entry = nodes(&path)["nodes"][node - 1].clone();
            let mut command = rauk_command(&path.join(format!("node{node}")));
            for name in ["mysql", "native", "http", "cluster"] {
                command.args([format!("--{name}-port"), entry["ports"][name].to_string()]);
            }
            Rauk::start_with(command).unwrap_or_else(|error| panic!("{error}"))
        };
        let others = [start(2), start(3)];
        let first = first.join().unwrap();
        assert!(first.contains("node 1 serves after"), "{first}");
        drop(others);
    });
    assert!(good(&["sql", "--port", &port, "-e", "SHOW DATABASES"]).contains("| d "));
}

#[test]
fn status_of_a_node_that_is_not_there() {
    bad(&["status", "--port", "1"], &["127.0.0.1"]);
}

/// Two commands do not work in a directory at the same time: the second is refused.
#[test]
fn one_command_at_a_time() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("c");
    let dir = path.to_str().unwrap();
    let _down = Down(dir);
    let up = ["cluster", "up", "--nodes", "1", "--replicas", "1", "--memory-limit", "128MiB", "--dir", dir];
    let both = std::thread::scope(|threads| [0, 1].map(|_| threads.spawn(|| rauk(&up))).map(|one| one.join().unwrap()));
    let refused: Vec<_> = both.iter().filter(|output| !output.status.success()).collect();
    let words = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(refused.len(), 1, "{:?}", both.each_ref().map(words));
    let why = words(refused[0]);
    assert!(why.contains("is at work in") || why.contains("runs already"), "{why}");
    assert_eq!(nodes(&path)["nodes"].as_array().unwrap().len(), 1);

    let lock = std::fs::File::open(path.join("cluster.lock")).unwrap();
    lock.try_lock().unwrap();
    let owner = std::fs::read_to_string(path.join("cluster.lock")).unwrap();
    assert!(owner.starts_with("`rauk cluster up` (process "), "{owner}");
    let at_work = format!("{owner} is at work in ");
    for command in [&up[..], &["cluster", "add", "--dir", dir], &["cluster", "restart", "1", "--dir", dir]] {
        bad(command, &[&at_work]);
    }
    bad(&["cluster", "down", "--dir", dir], &[&at_work]);
    good(&["cluster", "status", "--dir", dir]);
    drop(lock);
    assert!(good(&["cluster", "down", "--dir", dir]).contains("1 nodes stopped"));
}
