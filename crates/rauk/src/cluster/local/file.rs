//! `cluster.json`: what `rauk cluster up` has started, for the commands that come after it.

use super::process::Process;
use crate::cluster::directory::write_durably;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub const FILE: &str = "cluster.json";
pub const SECRET_FILE: &str = "cluster.secret";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterFile {
    /// Absolute.
    pub dir: PathBuf,
    pub replicas: u8,
    pub partitions: u16,
    /// Replication groups; `None`: as many as partitions.
    #[serde(default)]
    pub groups: Option<u16>,
    /// Flags of `rauk start` that all nodes have.
    pub flags: Vec<String>,
    pub nodes: Vec<NodeEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// From 1 on, in the order of the layout. In the cluster it has the same number, until it comes with an empty disk as another node.
    pub number: u16,
    pub roles: String,
    pub data_dir: PathBuf,
    pub log: PathBuf,
    /// As it was last started.
    pub process: Option<Process>,
    pub ports: Ports,
}

/// Zero: not known yet, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    pub mysql: u16,
    pub native: u16,
    pub http: u16,
    pub cluster: u16,
}

impl NodeEntry {
    pub fn is_running(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_running)
    }

    pub fn serves_sql(&self) -> bool {
        self.roles.contains("sql")
    }

    pub fn http(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.ports.http))
    }
}

impl ClusterFile {
    pub fn load(dir: &Path) -> Result<ClusterFile, String> {
        let path = dir.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no cluster in {}; `rauk cluster up --dir {0}` starts one", dir.display())
            }
            _ => format!("cannot read {}: {e}", path.display()),
        })?;
        serde_json::from_str(&text).map_err(|e| format!("{} is damaged: {e}", path.display()))
    }

    pub fn store(&self) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).expect("a cluster's file can be written");
        write_durably(&self.dir, FILE, text.as_bytes())
            .map_err(|e| format!("cannot write {} in {}: {e}", FILE, self.dir.display()))
    }

    pub fn node(&self, number: u16) -> Result<&NodeEntry, String> {
        let numbers: Vec<String> = self.nodes.iter().map(|n| n.number.to_string()).collect();
        let found = self.nodes.iter().find(|n| n.number == number);
        found.ok_or_else(|| {
            format!("there is no node {number} in {}; there are {}", self.dir.display(), numbers.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let missing = ClusterFile::load(directory.path()).unwrap_err();
        assert!(missing.contains("rauk cluster up --dir"), "{missing}");
        let cluster = ClusterFile {
            dir: directory.path().into(),
            replicas: 2,
            partitions: 8,
            groups: Some(4),
            flags: vec!["--memory-limit".into(), "64MiB".into()],
            nodes: vec![NodeEntry {
                number: 1,
                roles: "manage,data".into(),
                data_dir: "a".into(),
                log: "b".into(),
                process: Process::of(std::process::id()),
                ports: Ports { http: 3, cluster: 4, ..Ports::default() },
            }],
        };
        cluster.store().unwrap();
        let read = ClusterFile::load(directory.path()).unwrap();
        assert_eq!(read, cluster);
        assert!(read.node(1).unwrap().is_running());
        assert!(read.node(2).unwrap_err().contains("there are 1"));
        std::fs::write(directory.path().join(FILE), "{").unwrap();
        assert!(ClusterFile::load(directory.path()).unwrap_err().contains("damaged"));
    }
}
