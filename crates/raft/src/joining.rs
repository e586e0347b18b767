//! Making a cluster, joining one, saying where this node is now: the part of a process that has no place in the group yet, or a new one.
//!
//! Who a directory is ([`Identity`]) is on disk before anything is said in its name, so that every step can be begun again after a crash: a cluster that is half made is finished when the process starts; joining asks
//! again, and gets the same number for the same directory. What a joiner's directory has forgotten is never made up for: a former voter without its vote is refused.

use crate::error::{JoinRefused, RaftError};
use crate::group::{Core, Description, node_id};
use crate::message::{Body, JoinRequest, PROGRAM, PROTOCOL, Reply, version};
use crate::network::{CallError, Sender};
use crate::propose;
use crate::types::{Founding, Identity};
use openraft::EmptyNode;
use rauk_manage::group::{Answer, ClusterConfig, Group, GroupCommand};
use rauk_types::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// For each of the first commands.
const FOUNDING: Duration = Duration::from_secs(10);

/// A copy of a directory whose process runs takes no part.
pub async fn nobody_else(core: &Core, identity: &Identity) -> Result<(), RaftError> {
    core.network.set_sender(Sender { node: identity.node, cluster: identity.cluster });
    // At its own address it would meet itself.
    if identity.address.is_empty() || core.own_address() == Some(&identity.address) {
        return Ok(());
    }
    let asked = core.network.call_address(0, &identity.address, Body::Who, Duration::from_millis(300)).await;
    match asked {
        Ok(Reply::Hello { node }) if node == identity.node => {
            Err(RaftError::Running { node: node_id(node).0, address: identity.address.clone() })
        }
        // Nobody, or another node.
        _ => Ok(()),
    }
}

/// See [`RaftGroup::bootstrap`](crate::RaftGroup::bootstrap).
pub async fn bootstrap(
    core: &Arc<Core>,
    config: ClusterConfig,
    adopted: Option<Arc<str>>,
    own: Description,
) -> Result<NodeId, RaftError> {
    let _beginning = core.beginning.lock().await;
    if let Some(identity) = core.log.identity() {
        // Begun before a crash, it is ended as it was begun.
        let unfinished = core.shared.group().config.is_none() && identity.name == config.name;
        let Some(founding) = identity.founding.clone().filter(|_| unfinished) else {
            return Err(RaftError::Member { name: identity.name });
        };
        core.take_part(&identity).await?;
        return found(core, *founding).await;
    }
    // The number that the group will give.
    let mut future = Group::new();
    let created = future.apply(1, &GroupCommand::Create { config: config.clone(), adopted: adopted.clone() });
    let node = match (created, future.apply(2, &own.add_node(core.directory()))) {
        (_, Answer::Node(node)) => u64::from(node.0),
        (Answer::Refused(refused), _) | (_, Answer::Refused(refused)) => {
            return Err(RaftError::Refused(refused.to_string()));
        }
        (_, other) => return Err(RaftError::Refused(format!("adding the node gave {other:?}"))),
    };
    let founding = Founding { config, adopted, own };
    let identity = Identity {
        node,
        cluster: founding.config.id,
        name: founding.config.name.clone(),
        address: founding.own.address.clone(),
        founding: Some(Box::new(founding.clone())),
    };
    core.save(&identity).await?;
    core.take_part(&identity).await?;
    found(core, founding).await
}

/// Makes this process the only voter and says the first commands. What is done already is not done again.
pub async fn found(core: &Core, founding: Founding) -> Result<NodeId, RaftError> {
    let raft = core.raft().ok_or(RaftError::NoCluster)?;
    let error = |e: &dyn std::fmt::Display| RaftError::Raft(e.to_string());
    if !raft.is_initialized().await.map_err(|e| error(&e))? {
        let voters = BTreeMap::from([(core.me(), EmptyNode {})]);
        raft.initialize(voters).await.map_err(|e| error(&e))?;
    }
    let Founding { config, adopted, own } = founding;
    let name = config.name.clone();
    for command in [GroupCommand::Create { config, adopted }, own.add_node(core.directory())] {
        if core.shared.group().nodes.contains_key(&node_id(core.me())) {
            break;
        }
        match propose::propose(core, command, FOUNDING).await {
            Ok(Answer::Refused(refused)) => return Err(RaftError::Refused(refused.to_string())),
            Ok(_) => {}
            Err(failed) => return Err(error(&failed)),
        }
    }
    // What was adopted is the group's from here on.
    if let Some(identity) = core.log.identity().filter(|own| own.founding.is_some()) {
        core.save(&Identity { founding: None, ..identity }).await?;
    }
    tracing::info!("this node has made the cluster {name:?}");
    Ok(node_id(core.me()))
}

/// See [`RaftGroup::join`](crate::RaftGroup::join).
pub async fn join(
    core: &Arc<Core>,
    cluster: String,
    seeds: Vec<String>,
    own: Description,
    limit: Duration,
) -> Result<NodeId, RaftError> {
    let _beginning = core.beginning.lock().await;
    if let Some(identity) = core.log.identity() {
        if identity.name != cluster {
            return Err(RaftError::Member { name: identity.name });
        }
        core.take_part(&identity).await?;
        return announce(core, &seeds, own, limit).await;
    }
    let deadline = Instant::now() + limit;
    let (identity, nodes) = ask_to_join(core, &cluster, seeds, &own, deadline).await?;
    core.save(&identity).await?;
    for (node, address) in &nodes {
        if *node != identity.node {
            core.network.addresses.tell(*node, address);
        }
    }
    core.take_part(&identity).await?;
    let node = node_id(identity.node);
    while !core.shared.group().nodes.contains_key(&node) {
        if let Some(why) = core.failure() {
            return Err(RaftError::Raft(why));
        }
        if Instant::now() >= deadline {
            return Err(RaftError::NotHeard { node: node.0, address: own.address });
        }
        sleep(Duration::from_millis(5)).await;
    }
    tracing::info!("this node has joined the cluster {cluster:?} as node {}", node.0);
    Ok(node)
}

async fn ask_to_join(
    core: &Core,
    cluster: &str,
    seeds: Vec<String>,
    own: &Description,
    deadline: Instant,
) -> Result<(Identity, Vec<(u64, String)>), RaftError> {
    let request = JoinRequest {
        cluster: cluster.to_string(),
        directory: core.directory(),
        description: own.clone(),
        forwarded: false,
    };
    let mut reason = "there is no address to ask".to_string();
    let mut named: Option<String> = None;
    for attempt in 0_usize.. {
        let now = Instant::now();
        if now >= deadline || seeds.is_empty() {
            break;
        }
        let address = named.take().unwrap_or_else(|| seeds[attempt % seeds.len()].clone());
        let patience = Duration::from_secs(6).min(deadline - now);
        match core.network.call_address(0, &address, Body::Join(request.clone()), patience).await {
            Ok(Reply::Joined(joined)) => {
                let (name, address) = (cluster.to_string(), own.address.clone());
                let identity = Identity { node: joined.node, cluster: joined.cluster, name, address, founding: None };
                return Ok((identity, joined.nodes));
            }
            Ok(Reply::JoinRefused(JoinRefused::OtherCluster { name })) => {
                return Err(RaftError::OtherCluster { address, expected: cluster.to_string(), found: name });
            }
            Ok(Reply::JoinRefused(JoinRefused::Refused(why))) => return Err(RaftError::Refused(why)),
            Ok(Reply::JoinRefused(JoinRefused::StateLost { node })) => return Err(RaftError::StateLost { node }),
            Ok(Reply::NotLeader(leader)) => {
                reason = format!("the cluster at {address} has no leader now");
                named = leader.map(|(_, address)| address).filter(|leader| *leader != address);
            }
            Ok(_) => reason = format!("{address} gave an answer to another question"),
            Err(CallError::OtherVersion(theirs)) => {
                return Err(RaftError::OtherVersion { address, theirs, ours: version(PROGRAM, PROTOCOL) });
            }
            Err(CallError::Refused(refusal)) => reason = format!("{address}: {refusal}"),
            Err(CallError::Lost(why) | CallError::Late(why)) => reason = why,
        }
        sleep(Duration::from_millis(if attempt < 20 { 20 } else { 200 })).await;
    }
    Err(RaftError::Unreachable(reason))
}

/// See [`RaftGroup::announce`](crate::RaftGroup::announce).
pub async fn announce(
    core: &Arc<Core>,
    seeds: &[String],
    own: Description,
    limit: Duration,
) -> Result<NodeId, RaftError> {
    let (Some(identity), Some(_)) = (core.log.identity(), core.raft()) else { return Err(RaftError::NoCluster) };
    let me = identity.node;
    if identity.address != own.address {
        core.save(&Identity { address: own.address.clone(), ..identity }).await?;
    }
    let mut addresses: BTreeSet<String> = seeds.iter().cloned().collect();
    addresses.extend(core.network.addresses.all().into_iter().map(|(_, address)| address));
    addresses.remove(&own.address);
    for address in addresses {
        let (core, own) = (core.clone(), own.address.clone());
        tokio::spawn(async move {
            let hello = Body::Hello { address: own };
            if let Ok(Reply::Hello { node }) =
                core.network.call_address(0, &address, hello, Duration::from_secs(2)).await
                && node != core.me()
                && core.network.addresses.of(node).as_ref() != Some(&address)
            {
                core.network.addresses.tell(node, &address);
            }
        });
    }
    match propose::propose(core, own.add_node(core.directory()), limit).await {
        Ok(Answer::Node(node)) if u64::from(node.0) == me => Ok(node),
        Ok(Answer::Refused(refused)) => Err(RaftError::Refused(refused.to_string())),
        Ok(Answer::Node(other)) => {
            // The directory was forgotten with its number; the new one is of no use to it.
            let _ = propose::propose(core, GroupCommand::RemoveNode { node: other }, limit).await;
            Err(RaftError::Removed { node: node_id(me).0 })
        }
        Ok(other) => Err(RaftError::Refused(format!("adding the node gave {other:?}"))),
        Err(error) if core.failure().is_some() => Err(RaftError::Ended(core.failure().unwrap_or(error.to_string()))),
        Err(_) if core.is_removed() => Err(RaftError::Removed { node: node_id(me).0 }),
        Err(error) => Err(RaftError::Unreachable(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, RaftGroup, Transport};
    use rauk_log::{Disk, MemoryDisk};
    use rauk_manage::consensus::{BoxFuture, Consensus};
    use rauk_manage::group::{ClusterDurability, DEFAULT_MEMORY_RETURN, DEFAULT_REPLACE_AFTER, RoleKind};

    struct Nobody;

    impl Transport for Nobody {
        fn call(&self, _to: NodeId, _address: &str, _request: Vec<u8>) -> BoxFuture<Result<Vec<u8>, String>> {
            Box::pin(async { Err("nobody is there".to_string()) })
        }
    }

    /// Answers nothing, and remembers where it was asked.
    #[derive(Default)]
    struct Asked(parking_lot::Mutex<BTreeSet<String>>);

    impl Transport for Asked {
        fn call(&self, _to: NodeId, address: &str, _request: Vec<u8>) -> BoxFuture<Result<Vec<u8>, String>> {
            self.0.lock().insert(address.to_string());
            Box::pin(async { Err("nobody is there".to_string()) })
        }
    }

    /// Who comes back asks at the address that it had whether a process with its directory runs there; not where it listens itself.
    #[test]
    fn a_process_does_not_ask_itself_whether_it_runs() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let start = |address: Option<&str>| {
            let asked = Arc::new(Asked::default());
            let options = Options { address: address.map(str::to_string), ..Options::new(5) };
            (RaftGroup::start(options, disk.clone(), asked.clone(), vec![]).unwrap(), asked)
        };
        let (group, _) = start(Some("a:1"));
        let (name, address) = ("shop".to_string(), "a:1".to_string());
        let identity = Identity { node: 1, cluster: [1; 16], name, address, founding: None };
        let core = group.core.clone();
        let saving = group.run(async move { core.save(&identity).await }, Err(RaftError::Closed));
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(saving).unwrap();
        drop(group);
        for (address, asks) in [(Some("a:1"), false), (Some("a:2"), true), (None, true)] {
            let (_group, asked) = start(address);
            assert_eq!(asked.0.lock().contains("a:1"), asks, "listens at {address:?}");
        }
    }

    /// The process ended right after it had written down that it makes a cluster.
    #[test]
    fn a_cluster_half_made_is_finished() {
        let disk: Arc<dyn Disk> = MemoryDisk::new();
        let (sql_address, native_address) = Default::default();
        let own = Description {
            address: "a:1".into(),
            sql_address,
            native_address,
            roles: [RoleKind::Manage, RoleKind::Data].into(),
        };
        let (name, durability) = ("shop".to_string(), ClusterDurability::Fsync);
        let config = ClusterConfig {
            id: [1; 16],
            name: name.clone(),
            partitions: 4,
            groups: None,
            replicas: 1,
            durability,
            replace_after: DEFAULT_REPLACE_AFTER,
            memory_return: DEFAULT_MEMORY_RETURN,
        };
        let start = || RaftGroup::start(Options::new(5), disk.clone(), Arc::new(Nobody), vec![]).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let group = start();
        let identity = Identity {
            node: 1,
            cluster: [1; 16],
            name,
            address: own.address.clone(),
            founding: Some(Box::new(Founding { config: config.clone(), adopted: None, own: own.clone() })),
        };
        let (core, saved) = (group.core.clone(), identity.clone());
        runtime.block_on(group.run(async move { core.save(&saved).await }, Err(RaftError::Closed))).unwrap();
        drop(group);
        let group = start();
        assert_eq!(group.node(), Some(NodeId(1)));
        // Asked for again, with another random number, it is the one that was begun.
        let again = ClusterConfig { id: [2; 16], ..config.clone() };
        let made = runtime.block_on(group.bootstrap(again.clone(), None, own.clone()));
        assert!(matches!(made, Ok(NodeId(1)) | Err(RaftError::Member { .. })), "{made:?}");
        let begun = std::time::Instant::now();
        while !group.group().nodes.contains_key(&NodeId(1)) {
            assert!(begun.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(group.group().config, Some(config));
        let made = runtime.block_on(group.bootstrap(again, None, own));
        assert!(matches!(made, Err(RaftError::Member { .. })), "{made:?}");
    }
}
