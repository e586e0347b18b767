//! Laying out and starting a cluster on this host.
//!
//! The first node founds it, the others join one after the other, so that the cluster gives them the numbers that they have here. Every node takes free ports at its first start and keeps them, so that it comes back at its address. A node's standard output and error go
//! to its log; that it serves is read from its `ready.json`.

use super::file::{ClusterFile, FILE, NodeEntry, Ports, SECRET_FILE};
use super::lock::{self, Lock};
use super::process::{Process, Signal};
use super::show;
use crate::cluster::directory::{append_private, make_private};
use crate::config::KEYS;
use crate::out;
use crate::start::Ready;
use clap::ArgMatches;
use clap::parser::ValueSource;
use rauk_transporter::Secret;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A node is to serve within this; while it recovers, recovery is to get further within this.
const READY: Duration = Duration::from_secs(120);
/// How often a node that does not serve yet is asked how far it is, and how often that is told.
const ASK: Duration = Duration::from_millis(500);
const TELL: Duration = Duration::from_secs(5);
const HEALTHY: Duration = Duration::from_secs(60);
/// A node that was away may get copies of all that it holds.
const IN_SYNC: Duration = Duration::from_secs(300);
const SHUTDOWN: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    pub nodes: u16,
    pub data: u16,
    pub sql: u16,
    pub manage: u16,
    pub replicas: u8,
    pub partitions: Option<u16>,
    pub groups: Option<u16>,
    pub flags: Vec<String>,
    /// What the command line names: nodes of some kind, and other things by name.
    pub named: Vec<&'static str>,
}

const OF_LAYOUT: [&str; 4] = ["nodes", "data", "sql", "manage"];

impl Wish {
    pub fn of(arguments: &ArgMatches) -> Result<Wish, String> {
        let number = |name: &str| arguments.get_one::<u16>(name).copied();
        let mut flags =
            vec!["--memory-limit".to_string(), arguments.get_one::<String>("memory").expect("has a default").clone()];
        for setting in arguments.get_many::<String>("set").into_iter().flatten() {
            let wanted =
                || format!("--set {setting}: a setting of `rauk start` and its value, as --set log-level=debug");
            let (name, value) = setting.split_once('=').ok_or_else(wanted)?;
            if !KEYS.iter().any(|key| key.name == name) {
                return Err(wanted());
            }
            flags.extend([format!("--{name}"), value.to_string()]);
        }
        let says_which = OF_LAYOUT.into_iter().any(|kind| number(kind).is_some());
        let given = |name: &&str| arguments.value_source(name) == Some(ValueSource::CommandLine);
        let others = ["replicas", "partitions", "groups", "memory", "set"];
        let wish = Wish {
            nodes: number("nodes").unwrap_or(if says_which { 0 } else { 3 }),
            data: number("data").unwrap_or(0),
            sql: number("sql").unwrap_or(0),
            manage: number("manage").unwrap_or(0),
            replicas: *arguments.get_one::<u8>("replicas").expect("has a default"),
            partitions: number("partitions").filter(|n| *n > 0),
            groups: number("groups").filter(|n| *n > 0),
            flags,
            named: OF_LAYOUT.into_iter().chain(others).filter(given).collect(),
        };
        Ok(wish)
    }

    /// Refuses what is asked for otherwise than a cluster is that was laid out before.
    fn check_same(&self, cluster: &ClusterFile) -> Result<(), String> {
        let named = |name: &str| self.named.contains(&name);
        let roles: Vec<&str> = cluster.nodes.iter().map(|node| node.roles.as_str()).collect();
        let other = if OF_LAYOUT.iter().any(|name| named(name)) && self.layout()? != roles {
            "other nodes were asked for; `rauk cluster add` adds one"
        } else if named("replicas") && self.replicas != cluster.replicas {
            "another number of replicas was asked for; SET GLOBAL rauk_replicas changes it while it runs"
        } else if named("partitions") && self.partitions.is_some_and(|n| n != cluster.partitions) {
            "another number of partitions was asked for, which is settled when a cluster is made"
        } else if named("groups") && self.groups != cluster.groups {
            "another number of groups was asked for, which is settled when a cluster is made"
        } else if (named("memory") || named("set")) && self.flags != cluster.flags {
            "its nodes have other settings, which are in cluster.json (flags)"
        } else {
            return Ok(());
        };
        Err(format!(
            "the cluster in {} has {} nodes ({}), and {other}; leave that out to start it as it is, or choose another with --dir",
            cluster.dir.display(),
            roles.len(),
            roles.join("; ")
        ))
    }

    /// The roles of each node, in the order in which they are started; the first founds the cluster.
    pub fn layout(&self) -> Result<Vec<String>, String> {
        let Wish { nodes, data, sql, manage, .. } = *self;
        let data_nodes = nodes + data;
        if data_nodes == 0 {
            return Err("a cluster needs nodes with the role data: --data N, or --nodes N".into());
        }
        if nodes + sql == 0 {
            return Err("a cluster without nodes of the role sql serves nobody: --sql N, or --nodes N".into());
        }
        if data_nodes < u16::from(self.replicas) {
            return Err(format!(
                "{} replicas need as many data nodes, and {data_nodes} were asked for: --data N, or --replicas N",
                self.replicas
            ));
        }
        let mut layout = vec!["manage".to_string(); manage.into()];
        layout.extend(vec!["manage,data,sql".to_string(); nodes.into()]);
        // A majority needs three; with fewer data nodes one decides alone.
        let voters = if manage + nodes > 0 {
            0
        } else if data >= 3 {
            3
        } else {
            1
        };
        layout.extend((0..data).map(|at| if at < voters { "manage,data".to_string() } else { "data".to_string() }));
        layout.extend(vec!["sql".to_string(); sql.into()]);
        Ok(layout)
    }
}

pub fn run(wish: &Wish, dir: &Path) -> Result<(), String> {
    let began = Instant::now();
    if !dir.join(FILE).exists() {
        // A wish that cannot be met makes no directory.
        wish.layout()?;
        make_empty(dir)?;
    }
    let _lock = Lock::take(dir, "rauk cluster up")?;
    let mut cluster = match dir.join(FILE).exists() {
        true => {
            let cluster = ClusterFile::load(dir)?;
            wish.check_same(&cluster)?;
            // One that an older version made may be open to other accounts.
            make_private(&cluster.dir).map_err(|e| format!("cannot use {}: {e}", cluster.dir.display()))?;
            out::line(format_args!("starts the cluster in {} as it was laid out", cluster.dir.display()))?;
            cluster
        }
        false => lay_out(wish, dir)?,
    };
    if let Some(running) = cluster.nodes.iter().find(|n| n.is_running()) {
        return Err(format!(
            "node {} of the cluster in {} runs already; `rauk cluster status` shows it, `rauk cluster down` stops it",
            running.number,
            cluster.dir.display()
        ));
    }
    // One after the other they get the numbers that they have here; nodes that come back wait for each other.
    let new = cluster.nodes.iter().all(|n| !n.data_dir.join(crate::cluster::directory::FILE).exists());
    let result = (|| {
        let all: Vec<usize> = (0..cluster.nodes.len()).collect();
        match new {
            true => all.iter().try_for_each(|at| start_all(&mut cluster, &[*at]))?,
            false => start_all(&mut cluster, &all)?,
        }
        show::wait_healthy(&cluster, HEALTHY)
    })();
    if let Err(error) = result {
        return Err(format!(
            "{error}\nwhat runs of it goes on: `rauk cluster status --dir {0}`, `rauk cluster down --dir {0}`",
            dir.display()
        ));
    }
    out::line(format_args!("{} nodes are up after {:.1} s\n", cluster.nodes.len(), began.elapsed().as_secs_f64()))?;
    show::table(&cluster)?;
    show::advice(&cluster)
}

/// Makes the directory of a new cluster, unless it is there and empty but for the lock of a command.
fn make_empty(dir: &Path) -> Result<(), String> {
    let cannot = |e: std::io::Error| format!("cannot use {}: {e}", dir.display());
    let holds = |dir: &Path| match dir.exists() {
        true => std::fs::read_dir(dir)?.find(|e| e.as_ref().map_or(true, |e| e.file_name() != lock::FILE)).transpose(),
        false => Ok(None),
    };
    if let Some(entry) = holds(dir).map_err(cannot)? {
        let name = entry.file_name();
        return Err(format!(
            "{} is not empty (it holds {}); choose another with --dir",
            dir.display(),
            name.to_string_lossy()
        ));
    }
    make_private(dir).map_err(cannot)
}

fn lay_out(wish: &Wish, dir: &Path) -> Result<ClusterFile, String> {
    let layout = wish.layout()?;
    let dir = dir.canonicalize().map_err(|e| format!("cannot use {}: {e}", dir.display()))?;
    Secret::from_file_or_new(&dir.join(SECRET_FILE)).map_err(|e| e.to_string())?;
    let data_nodes = layout.iter().filter(|roles| roles.contains("data")).count() as u16;
    let entry = |(number, roles): (u16, &String)| new_node(&dir, number, roles);
    let cluster = ClusterFile {
        replicas: wish.replicas,
        partitions: wish.partitions.unwrap_or((data_nodes * 2).max(8)),
        groups: wish.groups,
        flags: wish.flags.clone(),
        nodes: (1..).zip(&layout).map(entry).collect(),
        dir: dir.clone(),
    };
    cluster.store()?;
    Ok(cluster)
}

fn new_node(dir: &Path, number: u16, roles: &str) -> NodeEntry {
    NodeEntry {
        number,
        roles: roles.to_string(),
        data_dir: dir.join(format!("node{number}")),
        log: dir.join(format!("node{number}.log")),
        process: None,
        ports: Ports::default(),
    }
}

/// Starts one node more, which joins those that run, and waits until it has its replicas.
pub fn add(cluster: &mut ClusterFile, roles: &str) -> Result<(), String> {
    crate::cluster::settings::roles(roles).map_err(|wanted| format!("--roles {roles}: wanted: {wanted}"))?;
    if show::newest(cluster).is_none() {
        let dir = cluster.dir.display();
        return Err(format!(
            "no node of the cluster in {dir} answers, so none can be joined: `rauk cluster up --dir {dir}`"
        ));
    }
    let number = cluster.nodes.iter().map(|node| node.number).max().unwrap_or(0) + 1;
    let entry = new_node(&cluster.dir, number, roles);
    if entry.data_dir.exists() {
        return Err(format!("{} exists already: move it away", entry.data_dir.display()));
    }
    cluster.nodes.push(entry);
    let at = cluster.nodes.len() - 1;
    let began = Instant::now();
    if let Err(error) = start_all(cluster, &[at]) {
        // A node that never was must not be started by the next `up`.
        cluster.nodes.pop();
        cluster.store()?;
        return Err(error);
    }
    out::line(format_args!("node {number} ({roles}) serves after {:.1} s", began.elapsed().as_secs_f64()))?;
    in_sync(cluster, at, began)?;
    show::table(cluster)
}

/// Waits until a node that serves has its replicas, so that another may be stopped next.
fn in_sync(cluster: &ClusterFile, at: usize, began: Instant) -> Result<(), String> {
    let number = cluster.nodes[at].number;
    show::wait_in_sync(cluster, &cluster.nodes[at], IN_SYNC)?;
    out::line(format_args!("the replicas of node {number} are in sync after {:.1} s", began.elapsed().as_secs_f64()))
}

/// The command that starts a node.
fn command(cluster: &ClusterFile, entry: &NodeEntry) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let mut command = Command::new(program);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RAUK_")) {
        command.env_remove(name);
    }
    let log = append_private(&entry.log).map_err(|e| format!("cannot write {}: {e}", entry.log.display()))?;
    let again = log.try_clone().map_err(|e| e.to_string())?;
    command.arg("start").arg("--data-dir").arg(&entry.data_dir).args(["--roles", &entry.roles]);
    command.args(["--redo-segment", "16MiB", "--partitions", &cluster.partitions.to_string()]);
    let Ports { mysql, native, http, cluster: port } = entry.ports;
    for (flag, port) in
        [("--mysql-port", mysql), ("--native-port", native), ("--http-port", http), ("--cluster-port", port)]
    {
        command.args([flag, &port.to_string()]);
    }
    command.arg("--cluster-secret-file").arg(cluster.dir.join(SECRET_FILE));
    let members = cluster.nodes.iter().filter(|n| n.number != entry.number && n.ports.cluster != 0);
    let members: Vec<String> = members.map(|n| format!("127.0.0.1:{}", n.ports.cluster)).collect();
    match members.is_empty() {
        true => {
            let groups = cluster.groups.unwrap_or(0).to_string();
            command.args(["--replicas", &cluster.replicas.to_string(), "--groups", &groups])
        }
        false => command.args(["--join", &members.join(",")]),
    };
    command.args(&cluster.flags);
    // It goes on when the terminal is closed, and Ctrl-C here is not for it.
    command.stdin(Stdio::null()).stdout(log).stderr(again).process_group(0);
    Ok(command)
}

/// Starts nodes at the same time and waits until all of them serve.
fn start_all(cluster: &mut ClusterFile, which: &[usize]) -> Result<(), String> {
    let mut children: Vec<(usize, Child)> = Vec::new();
    for at in which {
        let child = command(cluster, &cluster.nodes[*at])?.spawn().map_err(|e| format!("cannot start a node: {e}"))?;
        cluster.nodes[*at].process = Process::of(child.id());
        children.push((*at, child));
    }
    cluster.store()?;
    let mut end = Instant::now() + READY;
    let (mut asked, mut told, mut done) = (Instant::now(), Instant::now(), None);
    while let Some((at, child)) = children.first_mut() {
        let entry = &cluster.nodes[*at];
        let ready = Ready::read(&entry.data_dir).filter(|ready| ready.pid == child.id());
        if let Some(ready) = ready {
            let port = |address: Option<std::net::SocketAddr>| address.map_or(0, |a| a.port());
            let ports = Ports {
                mysql: port(ready.mysql),
                native: port(ready.native),
                http: ready.http.port(),
                cluster: port(ready.cluster),
            };
            cluster.nodes[*at].ports = ports;
            children.remove(0);
            cluster.store()?;
            continue;
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("node {} has ended ({status}): {}", entry.number, show::last_line(&entry.log)));
        }
        let starting = if asked.elapsed() >= ASK { show::starting(entry) } else { None };
        if let Some(starting) = starting {
            if starting.done.is_some() && starting.done != done {
                (done, end) = (starting.done, Instant::now() + READY);
            }
            if told.elapsed() >= TELL {
                told = Instant::now();
                out::line(format_args!("node {}: {}", entry.number, starting.reason))?;
            }
        }
        if asked.elapsed() >= ASK {
            asked = Instant::now();
        }
        if Instant::now() >= end {
            let why = show::starting(entry).map_or(String::new(), |starting| format!(" ({})", starting.reason));
            return Err(format!(
                "node {} does not serve after {} s{why}; its log is {}",
                entry.number,
                READY.as_secs(),
                entry.log.display()
            ));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// How long others may take to have everything that a node has which is to lose its disk.
const SPARE: Duration = Duration::from_secs(20);

/// Stops a node if it runs, and starts it again, with its data or as a new one with none: that only if others have everything that it has.
pub fn restart(cluster: &mut ClusterFile, number: u16, empty: bool) -> Result<(), String> {
    let at = cluster.nodes.iter().position(|n| n.number == number).expect("the caller has found it");
    if empty {
        show::wait_spare(cluster, &cluster.nodes[at], SPARE)?;
    }
    if let Some(process) = cluster.nodes[at].process.clone().filter(Process::is_running) {
        // A paused one must go on to end.
        process.send(Signal::Terminate)?;
        let _ = process.send(Signal::Continue);
        if !process.wait_gone(SHUTDOWN) {
            process.send(Signal::Kill)?;
            process.wait_gone(Duration::from_secs(5));
        }
    }
    if empty {
        let directory = &cluster.nodes[at].data_dir;
        std::fs::remove_dir_all(directory).map_err(|e| format!("cannot remove {}: {e}", directory.display()))?;
    }
    let began = Instant::now();
    start_all(cluster, &[at])?;
    out::line(format_args!("node {number} serves after {:.1} s", began.elapsed().as_secs_f64()))?;
    in_sync(cluster, at, began)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(nodes: u16, data: u16, sql: u16, manage: u16, replicas: u8) -> Wish {
        let named = Vec::new();
        Wish { nodes, data, sql, manage, replicas, partitions: None, groups: None, flags: Vec::new(), named }
    }

    #[test]
    fn layouts() {
        assert_eq!(wish(3, 0, 0, 0, 2).layout().unwrap(), ["manage,data,sql"; 3]);
        assert!(wish(0, 0, 0, 0, 2).layout().unwrap_err().contains("--nodes"));
        let layout = wish(0, 4, 2, 0, 2).layout().unwrap();
        assert_eq!(layout, ["manage,data", "manage,data", "manage,data", "data", "sql", "sql"]);
        let layout = wish(0, 2, 1, 3, 2).layout().unwrap();
        assert_eq!(layout, ["manage", "manage", "manage", "data", "data", "sql"]);
        assert_eq!(wish(0, 2, 1, 0, 2).layout().unwrap(), ["manage,data", "data", "sql"]);
        assert_eq!(wish(2, 1, 0, 0, 3).layout().unwrap(), ["manage,data,sql", "manage,data,sql", "data"]);
        assert!(wish(0, 1, 1, 0, 2).layout().unwrap_err().contains("--replicas"));
        assert!(wish(0, 0, 1, 0, 1).layout().unwrap_err().contains("--data"));
        assert!(wish(0, 2, 0, 0, 1).layout().unwrap_err().contains("--sql"));
    }

    #[test]
    fn a_cluster_is_started_as_it_was_laid_out() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("c");
        make_empty(&directory).unwrap();
        let cluster = lay_out(&wish(3, 0, 0, 0, 2), &directory).unwrap();
        let asked = |change: &dyn Fn(&mut Wish)| {
            let mut wish = wish(3, 0, 0, 0, 2);
            change(&mut wish);
            wish.check_same(&cluster).err().unwrap_or_default()
        };
        assert_eq!(asked(&|_| {}), "");
        assert_eq!(asked(&|w| w.named = vec!["nodes", "replicas"]), "");
        let other = asked(&|w| (w.nodes, w.named) = (5, vec!["nodes"]));
        assert!(other.contains("has 3 nodes") && other.contains("`rauk cluster add` adds one"), "{other}");
        assert!(asked(&|w| (w.replicas, w.named) = (3, vec!["replicas"])).contains("SET GLOBAL rauk_replicas"));
        assert!(asked(&|w| (w.groups, w.named) = (Some(1), vec!["groups"])).contains("groups"));
        assert!(asked(&|w| (w.partitions, w.named) = (Some(9), vec!["partitions"])).contains("partitions"));
        assert!(asked(&|w| (w.flags, w.named) = (vec!["--x".into()], vec!["set"])).contains("cluster.json"));
    }

    #[test]
    fn a_directory_with_something_else_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("letters"), "x").unwrap();
        let lock = Lock::take(directory.path(), "rauk cluster up").unwrap();
        let error = make_empty(directory.path()).unwrap_err();
        assert!(error.contains("letters") && error.contains("--dir"), "{error}");
        std::fs::remove_file(directory.path().join("letters")).unwrap();
        make_empty(directory.path()).expect("it holds the lock alone");
        drop(lock);
    }
}
