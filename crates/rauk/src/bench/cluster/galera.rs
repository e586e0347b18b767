//! MariaDB Galera with several nodes, as a peer of the run: Debian's mariadb-server and galera-4, the loopback interface, free ports.
//!
//! Each commit is on disk at the node that took it (`innodb_flush_log_at_trx_commit=1`), and with the others in memory before it is acknowledged: that is the nearest to replicas that sync. State is
//! transferred by mysqldump: the rsync method drops the rights of root and cannot write into directories that only root enters, and at the start there is next to nothing to transfer.

use crate::bench::process::{Process, cpu_time, free_ports};
use crate::bench::servers::{connect_with_patience, install_mariadb, temporary};
use mysql::prelude::Queryable;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";
const SYNCED: Duration = Duration::from_secs(90);
/// For its answer about its state.
const PATIENCE: Duration = Duration::from_secs(5);
/// Threads that apply what comes from other nodes; one a core or more is what its manual wants.
const APPLIERS: usize = 4;

pub struct Galera {
    nodes: Vec<(u16, Process)>,
}

impl Galera {
    pub fn start(root: &Path, nodes: usize) -> Result<Galera, String> {
        if !Path::new(PROVIDER).exists() {
            return Err(format!("there is no {PROVIDER}: install Debian's galera-4, or leave galera out of --against"));
        }
        std::fs::create_dir_all(root).map_err(|e| format!("cannot make {}: {e}", root.display()))?;
        let mut galera = Galera { nodes: Vec::new() };
        let mut members = Vec::new();
        for number in 1..=nodes {
            let ports = free_ports(3)?;
            let [sql, group, transfer] = [ports[0], ports[1], ports[2]];
            let directory = root.join(format!("node{number}"));
            install_mariadb(&directory)?;
            let mut command = Command::new("mariadbd");
            command
                .args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--skip-log-bin", "--max-connections=1000"])
                .arg(format!("--datadir={}", directory.display()))
                .arg(temporary(&directory)?)
                .arg(format!("--socket={}/m.sock", directory.display()))
                .arg(format!("--pid-file={}/m.pid", directory.display()))
                .arg(format!("--port={sql}"))
                .args(["--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=2G", "--innodb-log-file-size=1G"])
                .args(["--binlog-format=ROW", "--default-storage-engine=InnoDB", "--innodb-autoinc-lock-mode=2"])
                .args(["--wsrep-on=ON", "--wsrep-cluster-name=rauk-bench", "--wsrep-node-address=127.0.0.1"])
                .arg(format!("--wsrep-provider={PROVIDER}"))
                .arg(format!("--wsrep-cluster-address=gcomm://{}", members.join(",")))
                .arg(format!("--wsrep-node-name=node{number}"))
                .arg(format!("--wsrep-node-incoming-address=127.0.0.1:{sql}"))
                .args(["--wsrep-sst-method=mysqldump", "--wsrep-sst-auth=root:"])
                .arg(format!("--wsrep-sst-receive-address=127.0.0.1:{sql}"))
                .arg(format!("--wsrep-slave-threads={APPLIERS}"))
                .arg(format!(
                    "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{group};ist.recv_addr=127.0.0.1:{transfer};ist.recv_bind=127.0.0.1:{transfer};gcache.size=128M"
                ));
            if members.is_empty() {
                command.arg("--wsrep-new-cluster");
            }
            let log = File::create(root.join(format!("node{number}.log"))).map_err(|e| e.to_string())?;
            let again = log.try_clone().map_err(|e| e.to_string())?;
            let child = command.stdin(Stdio::null()).stdout(log).stderr(again).spawn();
            let child = child.map_err(|_| "cannot start mariadbd: install Debian's mariadb-server".to_string())?;
            galera.nodes.push((sql, Process::new("mariadbd", child)));
            members.push(format!("127.0.0.1:{group}"));
            galera.wait_synced(number)?;
        }
        Ok(galera)
    }

    /// Waits until the newest node is one of so many that have the same state.
    fn wait_synced(&mut self, size: usize) -> Result<(), String> {
        let end = Instant::now() + SYNCED;
        loop {
            let (port, process) = self.nodes.last_mut().expect("a node was started");
            if let Some(words) = process.ended() {
                return Err(format!("Galera's node {size}: {words}"));
            }
            let last = match state(*port) {
                Ok((state, members)) if state == "Synced" && members == size.to_string() => return Ok(()),
                Ok((state, members)) => format!("{state}, {members} members"),
                Err(error) => error,
            };
            if Instant::now() >= end {
                return Err(format!("Galera's node {size} is not in the cluster after {SYNCED:?}: {last}"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(|(port, _)| *port).collect()
    }

    pub fn cpu_seconds(&self) -> Result<f64, String> {
        self.nodes.iter().map(|(_, process)| cpu_time(process.pid()).map(|t| t.own)).sum()
    }
}

fn state(port: u16) -> Result<(String, String), String> {
    let mut connection = connect_with_patience(port, PATIENCE)?;
    let status = |connection: &mut mysql::Conn, name: &str| -> Result<String, String> {
        let row: Option<(String, String)> =
            connection.query_first(format!("SHOW STATUS LIKE '{name}'")).map_err(|e| e.to_string())?;
        row.map(|(_, value)| value).ok_or_else(|| format!("there is no {name}"))
    };
    Ok((status(&mut connection, "wsrep_local_state_comment")?, status(&mut connection, "wsrep_cluster_size")?))
}
