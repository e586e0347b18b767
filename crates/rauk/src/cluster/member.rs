//! A member of a cluster: founding, joining, coming back, and the end of a process that was taken for gone.
//!
//! # Order at the start
//! The directory says who it is, or is made somebody ([`super::directory`]); the cluster port is opened; the manage group is founded, joined, or told where this node is now; then the node takes its
//! place in it ([`Database::open_member`]). Clients are served after that; MySQL clients that come before are told so ([`crate::start::opening`]).
//!
//! The directory of a node alone founds a cluster that begins with its tables ([`rauk_node::recovery::adopt`]). It is
//! read before anything is written, so that one which cannot be read stays what it is.
//!
//! # What is refused
//! A wrong secret, another version and another cluster are found by asking the nodes to join before anything is written; an address that another node has, a name of another cluster and a node that was removed
//! are the manage group's to refuse. Each ends the start with one line.
//!
//! # When others have taken this process for gone
//! A process that was stopped or cut off for longer than its lease is over for the group. It starts anew, by executing its own program with the same arguments and the ports that it has: memory is as after
//! a crash, which recovery is made for, and the operating system's process stays the same for whoever watches it. With durability `replicated` its memory may be the only copy of what was acknowledged: it is
//! written to disk first, and the process that follows says that it has it ([`Database::fence`]).

use super::credentials::{Credentials, Unsigned};
use super::directory::{Directory, MemberFile, SECRET_FILE, inspect, is_alone};
use super::settings::{DEFAULT_REPLICAS, role_names, with_port};
use super::transport::{Door, Links};
use crate::config::Settings;
use crate::start::opening::Opening;
use rauk_log::Disk;
use rauk_manage::consensus::Consensus;
use rauk_manage::group::{ClusterConfig, ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, RoleKind};
use rauk_node::member::hooks::Hooks;
use rauk_node::member::{Identity, MemberOptions};
use rauk_node::recovery::adopt::{self, Surveyed};
use rauk_node::{Config, Database, Runtime, block_on};
use rauk_raft::{Description, LONGEST_COMMAND, Options, RaftError, RaftGroup};
use rauk_transporter::{Secret, TransportError};
use rauk_types::{ErrorClass, NodeId};
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long a node asks to be taken in.
const JOIN: Duration = Duration::from_secs(30);
/// An attempt of a node that comes back to tell where it is.
const ANNOUNCE: Duration = Duration::from_secs(5);
/// A node that has died stands for up until its lease has ended, and its address is its own until then.
const TAKEN: Duration = Duration::from_secs(3);
/// A new node waits no longer than this until it has its share of an empty cluster.
const SPREAD: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(200);
/// Bytes that are left, in the command that founds a cluster, for what is not of the directory.
const FOUNDING_REST: u64 = 64 << 10;

/// What a member needs of the process.
pub struct Needs<'a> {
    pub settings: &'a Settings,
    pub config: Config,
    pub disk: Arc<dyn Disk>,
    pub runtime: Arc<dyn Runtime>,
    pub cluster: TcpListener,
    pub sql: Option<SocketAddr>,
    pub native: Option<SocketAddr>,
    pub cores: usize,
    pub opening: Arc<Opening>,
}

/// A member that has taken its place.
pub struct Member {
    pub database: Database,
    pub links: Arc<Links>,
    pub raft: Arc<RaftGroup>,
    pub node: NodeId,
    pub name: String,
    pub address: String,
    /// It has made the cluster just now.
    pub founded: bool,
    pub secret_file: PathBuf,
    /// The certificate is renewed until this is dropped.
    _renewing: Option<Sender<()>>,
}

/// What this node is going to be, told by the directory and the settings before anything is opened.
pub struct Plan {
    file: MemberFile,
    pub roles: BTreeSet<RoleKind>,
}

/// Whether the directory may be used as the settings say, and as what. `None`: the node is alone.
pub fn plan(settings: &Settings, runtime: &dyn Runtime) -> Result<Option<Plan>, String> {
    let cluster = &settings.cluster;
    let shown = settings.data_dir.display();
    if let Some(name) = cluster.idle() {
        return Err(format!("--{name} is for members of a cluster: give --cluster-port, --roles or --join as well"));
    }
    let found = inspect(&settings.data_dir)?;
    let was_alone = found == Directory::Alone;
    let file = match (found, cluster.is_member()) {
        (Directory::Empty | Directory::Alone, false) if settings.durability == rauk_node::Durability::Replicated => {
            return Err("--durability replicated is for a cluster, where replicas are on other nodes: give --cluster-port as well, or --durability relaxed".into());
        }
        (Directory::Empty | Directory::Alone, false) => return Ok(None),
        (Directory::Member(file), false) => {
            return Err(format!(
                "data directory {shown} is that of {}; start it as a member, with --cluster-port or --roles, or choose another with --data-dir",
                file.described()
            ));
        }
        (Directory::Empty | Directory::Alone, true) => MemberFile::new(runtime.random().max(1)),
        (Directory::Member(file), true) => file,
    };
    // Begun before a crash, the directory may have both.
    let has_rows = was_alone || file.node.is_none() && is_alone(&settings.data_dir);
    if has_rows && !cluster.join.is_empty() {
        return Err(format!(
            "data directory {shown} has tables of its own, and a node joins a cluster with none: leave --join out, and it founds a cluster with these tables; or join with an empty directory (--data-dir) and copy the tables over with a dump"
        ));
    }
    if let (Some(name), Some(wanted)) = (&file.cluster_name, &cluster.name)
        && file.node.is_some()
        && name != wanted
    {
        return Err(format!(
            "data directory {shown} is that of {}, not of the cluster '{wanted}'; correct --cluster-name, or choose another directory with --data-dir",
            file.described()
        ));
    }
    let all = || BTreeSet::from([RoleKind::Manage, RoleKind::Data, RoleKind::Sql]);
    let stored = Some(file.roles()).filter(|roles| !roles.is_empty());
    let roles = cluster.roles.clone().or(stored).unwrap_or_else(all);
    let founds = file.node.is_none() && cluster.join.is_empty();
    if founds && !roles.contains(&RoleKind::Manage) {
        return Err(format!(
            "a node with the roles {} cannot found a cluster: the first node needs the role manage; name members to join with --join HOST:PORT",
            role_names(&roles)
        ));
    }
    if founds && !roles.contains(&RoleKind::Data) && cluster.replicas.is_none() && cluster.roles.is_none() {
        return Err("a cluster needs nodes with the role data".into());
    }
    if has_rows && !roles.contains(&RoleKind::Data) {
        return Err(format!(
            "data directory {shown} has tables, and a node with the roles {} keeps none: give it the role data as well",
            role_names(&roles)
        ));
    }
    if !founds && cluster.replicas.is_some() {
        tracing::warn!("--replicas counts when a cluster is founded; this node joins one and takes what that has");
    }
    if settings.durability == rauk_node::Durability::Relaxed {
        return Err("a cluster has durability fsync or replicated; leave --durability out, or found a cluster with --durability replicated".into());
    }
    Ok(Some(Plan { file, roles }))
}

/// `host:port` as others reach this node.
fn announced(settings: &Settings, local: SocketAddr) -> Result<String, String> {
    match &settings.cluster.advertise {
        Some(host) => Ok(with_port(host, local.port())),
        None if settings.host.is_unspecified() => Err(format!(
            "--host {} is no address by which others reach this node: name one with --advertise",
            settings.host
        )),
        None => Ok(SocketAddr::new(settings.host, local.port()).to_string()),
    }
}

/// The cluster's secret: the file named, or the directory's own. One that is founded makes it; one that joins keeps a copy, so that it needs the file once only.
fn secret(settings: &Settings, founds: bool) -> Result<(Secret, PathBuf), String> {
    let own = settings.data_dir.join(SECRET_FILE);
    let told = |e: TransportError| format!("{e} (--cluster-secret-file)");
    match &settings.cluster.secret_file {
        Some(file) if founds => Ok((Secret::from_file_or_new(file).map_err(told)?, file.clone())),
        Some(file) => Ok((Secret::from_file(file).map_err(told)?, file.clone())),
        None if own.exists() || founds => Ok((Secret::from_file_or_new(&own).map_err(told)?, own)),
        None => Err(format!(
            "joining a cluster takes its secret: copy {SECRET_FILE} out of the data directory of the node that founded it, and name the copy with --cluster-secret-file"
        )),
    }
}

impl Member {
    /// Blocks until the node has its place in the cluster.
    pub fn open(plan: Plan, needs: Needs<'_>) -> Result<Member, String> {
        let Plan { mut file, roles } = plan;
        let settings = needs.settings;
        let directory = settings.data_dir.as_path();
        let cluster = &settings.cluster;
        let local = needs.cluster.local_addr().map_err(|e| e.to_string())?;
        let address = announced(settings, local)?;
        let client_address = |at: Option<SocketAddr>| match at {
            Some(at) => announced(settings, at),
            None => Ok(String::new()),
        };
        let own = Description {
            address: address.clone(),
            sql_address: client_address(needs.sql)?,
            native_address: client_address(needs.native)?,
            roles: roles.clone(),
        };
        if cluster.join.contains(&address) {
            return Err(format!(
                "--join names {address}, which is this node's own address; name a member of the cluster"
            ));
        }
        let joins = file.node.is_none() && !cluster.join.is_empty();
        let (secret, secret_file) = secret(settings, file.node.is_none() && !joins)?;
        file.set_roles(&roles);
        let founds = file.node.is_none() && !joins;
        let surveyed = if founds { survey(&needs)? } else { None };
        if founds && file.cluster() == [0; 16] {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&needs.runtime.random().to_le_bytes());
            id[8..].copy_from_slice(&needs.runtime.random().to_le_bytes());
            // Its files are marked with it.
            file.set_cluster(surveyed.as_ref().map_or(id, |found| found.id.0), cluster.name());
        }
        file.store(directory)?;
        let credentials = match cluster.plain_links {
            true => None,
            false => Some(Credentials::open(directory, &file, &roles, &secret, founds)?),
        };
        // The cluster's id is known to others once it has been founded.
        let known = if founds { [0; 16] } else { file.cluster() };
        let door = Door {
            listener: needs.cluster,
            address: address.clone(),
            secret,
            credentials: credentials.clone(),
            cluster: known,
            directory: file.directory(),
            process: needs.runtime.random(),
        };
        let links = Links::open(door, cluster, (needs.cores / 2).max(1))?;
        let stopping = needs.runtime.clone();
        let options = Options {
            on_failure: Arc::new(move |why| {
                // An end that was asked for is not one that needs attention.
                if !why.contains("shutting down") {
                    stopping.fatal(why);
                }
            }),
            address: Some(address.clone()),
            ..Options::new(file.directory())
        };
        let raft =
            RaftGroup::start(options, needs.disk.clone(), links.clone(), Vec::new()).map_err(|e| e.to_string())?;
        links.set_raft(&raft);
        let mut founded = false;
        let name = cluster.name().to_string();
        let certify = |node: u16| match &credentials {
            Some(own) => certify(own, &links, node, &needs.opening),
            None => Ok(()),
        };
        certify(raft.node().map_or(0, |node| node.0))?;
        match raft.node() {
            Some(node) => {
                come_back(&raft, &links, node, cluster_name(&raft, &file), &cluster.join, &own, &needs.opening)?;
            }
            None if joins => join(&raft, &links, &name, &cluster.join, own.clone(), &needs.opening)?,
            None if file.node.is_some() => {
                return Err(format!(
                    "data directory {} is that of {}, but its part of the manage group ({}) is gone: put it back, or join with an empty directory",
                    directory.display(),
                    file.described(),
                    directory.join("manage").display()
                ));
            }
            None => {
                found(&raft, &mut file, settings, needs.config.partitions, surveyed, own.clone())?;
                founded = true;
            }
        }
        let node = raft.node().ok_or("the manage group has given this node no number")?;
        certify(node.0)?;
        let group = raft.group();
        let made = group.config.as_ref().ok_or("the cluster's configuration has not come here")?;
        if settings.durability == rauk_node::Durability::Replicated && made.durability == ClusterDurability::Fsync {
            tracing::warn!("--durability replicated counts when a cluster is founded; this one has fsync");
        }
        links.set_cluster(made.id);
        file.set_cluster(made.id, &made.name);
        file.node = Some(node.0);
        file.founding = None;
        file.authority = credentials.as_ref().and_then(|own| own.authority()).or(file.authority);
        file.store(directory)?;
        keep_secret(directory, &secret_file)?;
        let name = made.name.clone();
        let identity = Identity {
            directory: file.directory(),
            address: own.address,
            sql_address: own.sql_address,
            native_address: own.native_address,
            roles,
        };
        let opening = needs.opening.clone();
        let progress = move |text: &str| opening.tell(text);
        let options = MemberOptions { config: needs.config, identity, hooks: Hooks::default() };
        let opening = Database::open_member(options, needs.disk, needs.runtime, links.clone(), raft.clone(), &progress);
        let database =
            block_on(opening).map_err(|e| format!("cannot open data directory {}: {e}", directory.display()))?;
        links.set_database(Some(database.clone()));
        let renewing = credentials.map(|own| own.renew(&links, node.0)).transpose()?;
        wait_spread(&raft);
        Ok(Member { database, links, raft, node, name, address, founded, secret_file, _renewing: renewing })
    }

    /// What the operator can do next, after a cluster has been founded.
    pub fn invitation(&self) -> String {
        format!(
            "this node has founded the cluster '{}'; the next node on this host joins with\n  rauk start --data-dir rauk-data-2 --join {} --cluster-secret-file {} --cluster-port 0 --mysql-port 0 --http-port 0 --native-port 0\nand one on another host with a copy of that file, its own --host, and no ports to choose",
            self.name,
            self.address,
            self.secret_file.display()
        )
    }

    /// The manage group has taken this process for gone.
    pub fn is_expelled(&self) -> bool {
        self.database.member().is_some_and(|cluster| cluster.expelled())
    }

    /// After its lease has expired, before it executes itself again: what it has in memory goes to disk, and the process that follows keeps it. Where that fails, what follows is as after a crash.
    pub fn fence(&self) {
        let began = Instant::now();
        match block_on(self.database.fence()) {
            Ok(()) => tracing::info!(ms = began.elapsed().as_millis() as u64, "fenced process has its memory on disk"),
            Err(error) => tracing::error!(%error, "fenced process could not write its memory to disk"),
        }
    }

    /// After the database: ends what is left.
    pub fn close(&self) {
        self.raft.shutdown();
        self.links.close();
    }
}

fn cluster_name(raft: &RaftGroup, file: &MemberFile) -> String {
    raft.cluster().or_else(|| file.cluster_name.clone()).unwrap_or_default()
}

/// The secret stays with the directory.
fn keep_secret(directory: &Path, named: &Path) -> Result<(), String> {
    let own = directory.join(SECRET_FILE);
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()));
    let wanted = read(named)?;
    if own.exists() && read(&own)? == wanted {
        return Ok(());
    }
    super::directory::write_durably(directory, SECRET_FILE, &wanted)
        .map_err(|e| format!("cannot write {}: {e}", own.display()))
}

/// What the directory of a node alone brings along.
fn survey(needs: &Needs<'_>) -> Result<Option<Surveyed>, String> {
    let progress = |text: &str| needs.opening.tell(text);
    let found = adopt::survey(&needs.config, &needs.disk, &*needs.runtime, &progress);
    let found = found
        .map_err(|e| format!("cannot make a cluster of data directory {}: {e}", needs.settings.data_dir.display()))?;
    if let Some(Surveyed { partitions, adopted, .. }) = &found {
        // Before anything says that the directory is to be another's.
        let bytes = serde_json::to_vec(&*adopted.encode()).map_err(|e| e.to_string())?.len() as u64;
        if bytes + FOUNDING_REST > LONGEST_COMMAND {
            return Err(format!(
                "the definitions of data directory {} have {bytes} bytes, and a cluster is founded with {LONGEST_COMMAND} at most: found an empty one, and copy the tables over with dumps",
                needs.settings.data_dir.display()
            ));
        }
        let tables = adopted.catalog.tables().filter(|table| table.entry_of.is_none()).count();
        tracing::info!(tables, partitions, "the data directory of a node alone becomes that of a cluster's first node");
    }
    Ok(found)
}

fn found(
    raft: &RaftGroup,
    file: &mut MemberFile,
    settings: &Settings,
    partitions: u16,
    surveyed: Option<Surveyed>,
    own: Description,
) -> Result<(), String> {
    let partitions = surveyed.as_ref().map_or(partitions, |found| found.partitions);
    let adopted = surveyed.map(|found| found.adopted.encode());
    let id = file.cluster();
    let name = settings.cluster.name().to_string();
    let replicas = settings.cluster.replicas.or(file.founding).unwrap_or(DEFAULT_REPLICAS);
    // Begun again after a crash, it must be the same cluster.
    file.set_cluster(id, &name);
    file.founding = Some(replicas);
    file.store(&settings.data_dir)?;
    let durability = match settings.durability {
        rauk_node::Durability::Replicated => ClusterDurability::Replicated,
        _ => ClusterDurability::Fsync,
    };
    let replace_after = settings.cluster.replace_after.unwrap_or(DEFAULT_REPLACE_AFTER);
    let memory_return = DEFAULT_MEMORY_RETURN;
    let groups = settings.cluster.groups;
    let config = ClusterConfig { id, name, partitions, groups, replicas, durability, replace_after, memory_return };
    block_on(raft.bootstrap(config, adopted, own)).map(drop).map_err(|e| e.to_string())
}

/// Nodes that refuse this one say why; that ends it before anything else.
fn ask(links: &Links, seeds: &[String]) -> Result<(), String> {
    for seed in seeds {
        if let Err(error) = links.probe(seed) {
            match refusal(seed, &error) {
                Some(text) => return Err(text),
                // The others may do better, or this one later.
                None => tracing::warn!("{seed}: {error}"),
            }
        }
    }
    Ok(())
}

/// What ends the start of a node that an answer of this kind keeps out.
fn refusal(seed: &str, error: &TransportError) -> Option<String> {
    let permanent = error.class() == ErrorClass::Permanent;
    match error {
        TransportError::Refused { .. } if permanent => {
            Some(format!("{seed} does not let this node in: {error} {}", way_out(error)))
        }
        TransportError::Untrusted { .. } => Some(format!("{seed} is not trusted: {error} {}", way_out(error))),
        TransportError::Certificate { reason, .. } if permanent => {
            Some(format!("{seed} is not linked: {reason} (--join)"))
        }
        TransportError::Configuration(_) => Some(format!("cannot join {seed}: {error}")),
        TransportError::Oneself { .. } => {
            Some(format!("--join names {seed}, which is this node's own address; name a member of the cluster"))
        }
        _ => None,
    }
}

/// Sees to it that this node has a certificate with its number (0: none yet). Waits for a node that can sign it.
fn certify(own: &Credentials, links: &Links, node: u16, opening: &Opening) -> Result<(), String> {
    loop {
        let sources = links.sources();
        match own.ensure(links, node, &sources, JOIN) {
            Ok(true) => {
                links.reconnect();
                return Ok(());
            }
            Ok(false) => return Ok(()),
            Err(Unsigned::By(source, error)) => {
                return Err(refusal(&source, &error).unwrap_or_else(|| format!("{source}: {error}")));
            }
            Err(Unsigned::Refused(why)) => return Err(why),
            Err(Unsigned::Unreachable(why)) if node == 0 => {
                return Err(format!("{why}; is a member of the cluster running at {}?", sources.join(", ")));
            }
            // A whole cluster may be coming back.
            Err(Unsigned::Unreachable(why)) => {
                opening.warn(&format!("node {node} waits for a manage node to sign its certificate: {why}"))
            }
        }
    }
}

fn way_out(error: &TransportError) -> &'static str {
    use rauk_wire::hello::Refusal;
    match error {
        TransportError::Refused { reason: Refusal::Credentials, .. } | TransportError::Untrusted { .. } => {
            "(--cluster-secret-file: a copy of cluster.secret of the node that founded the cluster)"
        }
        TransportError::Refused { reason: Refusal::Cluster, .. } => {
            "(correct --join, or choose an empty directory with --data-dir)"
        }
        TransportError::Refused { reason: Refusal::Role, .. } => "(correct --join: it names a native port)",
        _ => "",
    }
}

fn join(
    raft: &RaftGroup,
    links: &Links,
    name: &str,
    seeds: &[String],
    own: Description,
    opening: &Opening,
) -> Result<(), String> {
    ask(links, seeds)?;
    opening.tell(&format!("asks {} to take this node into the cluster '{name}'", seeds.join(", ")));
    let joined = persist(|| block_on(raft.join(name, seeds, own.clone(), JOIN)).map(drop));
    joined.map_err(|error| match error {
        RaftError::OtherCluster { .. } => format!("{error} (--cluster-name, --join)"),
        RaftError::Unreachable(_) => format!("{error}; is a member of the cluster running at {}?", seeds.join(", ")),
        RaftError::Refused(_) => format!("{error} (--cluster-port, --advertise)"),
        other => other.to_string(),
    })
}

/// Tries again for a while when the cluster refuses: the reason may be a node that has just died.
fn persist(mut attempt: impl FnMut() -> Result<(), RaftError>) -> Result<(), RaftError> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(RaftError::Refused(why)) if began.elapsed() < TAKEN => {
                tracing::info!("the cluster refused this node, which asks again: {why}");
                std::thread::sleep(AGAIN);
            }
            other => return other,
        }
    }
}

/// Tells the group where this node is now; waits for it for as long as it takes, since a whole cluster may be coming back.
fn come_back(
    raft: &RaftGroup,
    links: &Links,
    node: NodeId,
    name: String,
    seeds: &[String],
    own: &Description,
    opening: &Opening,
) -> Result<(), String> {
    ask(links, seeds)?;
    // Where it was may be where it is, by another name: then it meets itself there.
    let known = raft.group().nodes.get(&node).map(|state| state.address.clone()).unwrap_or_default();
    if !known.is_empty()
        && known != own.address
        && let Err(error @ TransportError::Configuration(_)) = links.probe(&known)
    {
        return Err(format!(
            "node {} of the cluster '{name}' runs already: {error}; a data directory belongs to one process, start this one with an empty directory",
            node.0
        ));
    }
    opening.tell(&format!("comes back as node {} of the cluster '{name}'", node.0));
    loop {
        match persist(|| block_on(raft.announce(seeds, own.clone(), ANNOUNCE)).map(drop)) {
            Ok(()) => return Ok(()),
            Err(RaftError::Unreachable(why)) => {
                opening.warn(&format!("waits for a majority of the manage nodes: {why}"));
            }
            Err(RaftError::Refused(why)) => {
                return Err(format!("the cluster refused this node: {why} (--cluster-port, --advertise)"));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// As long as there are no tables partitions are spread over the nodes in a moment. Who works with a node as soon as it serves is not to be disturbed by that.
fn wait_spread(raft: &RaftGroup) {
    let began = Instant::now();
    loop {
        let group = raft.group();
        if !group.holds_nothing() || group.is_settled() || began.elapsed() >= SPREAD {
            return;
        }
        std::thread::sleep(SPREAD / 200);
    }
}

/// How often this process has started anew in a row, and when the last time: for itself, over `exec`. No setting, which begin with `RAUK_`.
const ANEW: &str = "_RAUK_STARTED_ANEW";
/// Starts in a row are those that come sooner than this one after the other.
const ROW: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Starts anew in a row, this one counted: where a machine has no time for its nodes, opening them costs the others what they lack to keep their leases, so each waits longer and longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anew {
    count: u32,
    /// Seconds since the system started: a wall clock may jump.
    at: u64,
}

impl Anew {
    /// The next, after what was remembered of the one before.
    pub fn next() -> Anew {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
        let at = uptime.split('.').next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
        Anew::after(std::env::var(ANEW).ok().as_deref(), at)
    }

    fn after(before: Option<&str>, at: u64) -> Anew {
        let numbers = before.and_then(|text| text.split_once(' '));
        let before = numbers.and_then(|(count, at)| Some((count.parse::<u32>().ok()?, at.parse::<u64>().ok()?)));
        let row = before.filter(|(_, last)| at.checked_sub(*last).is_some_and(|passed| passed < ROW.as_secs()));
        Anew { count: row.map_or(1, |(count, _)| count.saturating_add(1)), at }
    }

    /// To be waited before it: nothing the first time. Nodes of a machine wait differently long.
    pub fn pause(&self) -> Duration {
        let Some(doubled) = self.count.checked_sub(2) else { return Duration::ZERO };
        let whole = (Duration::from_millis(500) * (1 << doubled.min(8))).min(LONGEST_PAUSE);
        whole / 2 + whole / 2 * (std::process::id() % 16) / 16
    }
}

/// Executes this program anew, with its arguments, the ports that it has, and its memory limit if that may have changed.
/// Comes back only when that fails.
pub fn start_anew(anew: Anew, ports: &[(&str, u16)], memory_limit: Option<u64>) -> String {
    use std::os::unix::process::CommandExt;
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| "rauk".into());
    let program = match std::env::current_exe() {
        Ok(path) if path.exists() => path,
        // Replaced by another version meanwhile: the one that runs is still there by this name.
        _ => PathBuf::from("/proc/self/exe"),
    };
    let mut command = std::process::Command::new(program);
    command.arg0(name);
    let own = ports.iter().map(|(flag, port)| (*flag, u64::from(*port)));
    let own: Vec<(&str, u64)> = own.chain(memory_limit.map(|bytes| ("--memory-limit", bytes))).collect();
    let mut given: Vec<std::ffi::OsString> = Vec::new();
    let mut rest = arguments.peekable();
    while let Some(argument) = rest.next() {
        // As they were given the last time that it started anew; and a password that was reset is reset once.
        let text = argument.to_string_lossy();
        let mut left_out = own.iter().map(|(flag, _)| *flag).chain(["--reset-root-password"]);
        if let Some(flag) = left_out.find(|flag| text == *flag || text.starts_with(&format!("{flag}="))) {
            if text == flag {
                rest.next();
            }
            continue;
        }
        given.push(argument);
    }
    command.args(given);
    for (flag, value) in own {
        command.arg(flag).arg(value.to_string());
    }
    // A test's faults are this process's.
    command.env_remove("RAUK_FAULT");
    command.env(ANEW, format!("{} {}", anew.count, anew.at));
    if let Err(error) = rauk_log::fault::point("member.start_anew") {
        return format!("cannot start anew: {error}");
    }
    format!("cannot start anew: {}", command.exec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_starts_anew_again_and_again_waits_longer() {
        let first = Anew::after(None, 1000);
        assert_eq!((first.count, first.pause()), (1, Duration::ZERO));
        let mut last = first;
        let mut pauses = Vec::new();
        for _ in 0..12 {
            last = Anew::after(Some(&format!("{} {}", last.count, last.at)), last.at + 29);
            pauses.push(last.pause());
        }
        assert!(pauses[0] >= Duration::from_millis(250) && pauses[0] < Duration::from_millis(500));
        assert!(pauses.is_sorted() && pauses[11] <= LONGEST_PAUSE && pauses[11] >= LONGEST_PAUSE / 2);
        let later = |text: &str, at| Anew::after(Some(text), at).count;
        assert_eq!([later("5 1000", 1030), later("5 1000", 999), later("nonsense", 1), later("5 x", 1)], [1; 4]);
    }
}
