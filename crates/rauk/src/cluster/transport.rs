//! What goes over the cluster port: the node's messages and the manage group's calls, on links between nodes.
//!
//! Nodes are known by number to the node's protocols, by address to links. Addresses come from the group (`set_peers`), or with a call; those named by `--peer-address` go before
//! both, so that a node can be reached by another way than the one that it announces. Nodes whose address is not known get nothing: whoever has sent it says it again.
//!
//! Links are TLS with certificates of the cluster's authority ([`super::credentials`]), unless all nodes were started
//! with `--plain-links`. A message whose sender is not the node that the link's certificate names is dropped with a
//! warning.

use super::credentials::{Credentials, sources};
use super::settings::ClusterSettings;
use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use rauk_manage::consensus::Consensus;
use rauk_node::Database;
use rauk_node::member::network::Network;
use rauk_raft::{RaftGroup, Transport};
use rauk_transporter::peers::{PeerHandler, PeerStatistics, Peers, Traffic, incarnation, node_name};
use rauk_transporter::{Identity, Name, NodeTls, Options, Secret, TransportError};
use rauk_types::NodeId;
use rauk_wire::hello::Role;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Bytes that may wait for one node that does not read.
const SEND_LIMIT: usize = 16 << 20;
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Who gets what comes in.
#[derive(Default)]
struct Receivers {
    /// Set while it is open: what comes before is dropped.
    database: RwLock<Option<Database>>,
    raft: RwLock<Weak<RaftGroup>>,
    /// `None`: links are plain.
    credentials: Option<Arc<Credentials>>,
}

/// The node that a message of the node's protocols says it is from: what follows the cluster's id at its beginning.
fn sender(payload: &[u8]) -> Option<u16> {
    let mut node = 0u32;
    for (index, byte) in payload.get(16..)?.iter().take(3).enumerate() {
        node |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return u16::try_from(node).ok();
        }
    }
    None
}

impl PeerHandler for Receivers {
    fn on_message(&self, from: Option<Name>, payload: Bytes) {
        if let Some(from) = from
            && sender(&payload) != Some(from.node)
        {
            let says = sender(&payload);
            tracing::warn!(
                certificate = from.node,
                ?says,
                "message of another node than its certificate names dropped"
            );
            return;
        }
        let database = self.database.read().clone();
        if let Some(database) = database {
            database.receive(&payload);
        }
    }

    fn on_request(&self, payload: Bytes) -> BoxFuture<'static, Vec<u8>> {
        match self.raft.read().upgrade() {
            Some(raft) => raft.serve(&payload),
            // The caller takes an answer that it cannot read for none.
            None => Box::pin(async { Vec::new() }),
        }
    }

    fn on_enrol(&self, payload: Bytes) -> BoxFuture<'static, Vec<u8>> {
        let group = self.raft.read().upgrade().map(|raft| raft.group());
        let answer = self.credentials.as_ref().map(|own| own.answer(&payload, group.as_deref()));
        Box::pin(async { answer.unwrap_or_default() })
    }
}

pub struct Links {
    peers: Arc<Peers>,
    receivers: Arc<Receivers>,
    addresses: Mutex<BTreeMap<NodeId, String>>,
    instead: BTreeMap<u16, String>,
    /// Members that were named to be asked.
    seeds: Vec<String>,
}

/// What a listener needs to know.
pub struct Door {
    pub listener: TcpListener,
    /// As others reach this node.
    pub address: String,
    pub secret: Secret,
    /// `None`: links are plain.
    pub credentials: Option<Arc<Credentials>>,
    /// Zeros before it is a member.
    pub cluster: [u8; 16],
    /// Random number of the data directory.
    pub directory: u64,
    /// Random number of this process.
    pub process: u64,
}

impl Links {
    pub fn open(door: Door, settings: &ClusterSettings, threads: usize) -> Result<Arc<Links>, String> {
        let tls = door.credentials.as_ref().map(|own| own.tls().clone());
        let receivers = Arc::new(Receivers { credentials: door.credentials, ..Receivers::default() });
        let identity = Identity {
            role: Role::Node,
            cluster: door.cluster,
            incarnation: incarnation(door.directory, door.process),
            version: rauk_wire::PROTOCOL,
            name: node_name(&format!("rauk {}", env!("CARGO_PKG_VERSION")), &door.address),
        };
        let options = Options {
            receive_threads: threads,
            send_limit: SEND_LIMIT,
            handshake: HANDSHAKE,
            accepts: Some(Role::Node),
            ..Options::default()
        };
        let peers =
            Peers::start(options, identity, (door.secret, tls), receivers.clone()).map_err(|e| e.to_string())?;
        peers.listen(door.listener).map_err(|e| format!("the cluster port cannot be opened: {e}"))?;
        let links = Links {
            peers,
            receivers,
            addresses: Mutex::default(),
            instead: settings.peer_addresses.clone(),
            seeds: settings.join.clone(),
        };
        Ok(Arc::new(links))
    }

    /// Asks the node at an address for a certificate.
    pub fn enrol(&self, address: &str, tls: &Arc<NodeTls>, request: Vec<u8>) -> Result<Bytes, TransportError> {
        let way = self.way_to(NodeId(0), address);
        rauk_node::block_on(self.peers.enrol(&way, tls, request))
    }

    /// Whom to ask for a certificate: members that were named, and nodes that have the authority's key.
    pub fn sources(&self) -> Vec<String> {
        let group = self.receivers.raft.read().upgrade().map(|raft| raft.group());
        let known = group.as_deref().map(sources).unwrap_or_default();
        self.seeds.iter().cloned().chain(known).collect()
    }

    /// Links that this node has made show its newest certificate from now on.
    pub fn reconnect(&self) {
        self.peers.reconnect();
    }

    pub fn set_raft(&self, raft: &Arc<RaftGroup>) {
        *self.receivers.raft.write() = Arc::downgrade(raft);
    }

    /// `None`: what comes from now on is dropped.
    pub fn set_database(&self, database: Option<Database>) {
        *self.receivers.database.write() = database;
    }

    pub fn set_cluster(&self, cluster: [u8; 16]) {
        self.peers.set_cluster(cluster);
    }

    /// `None`: it is not known, and whoever sends says it again.
    fn address_of(&self, node: NodeId) -> Option<String> {
        match self.instead.get(&node.0) {
            Some(instead) => Some(instead.clone()),
            None => self.addresses.lock().get(&node).cloned(),
        }
    }

    /// Where to reach a node whose word is `address`; zero: a node that is known by its address only.
    fn way_to(&self, node: NodeId, address: &str) -> String {
        let number = match node.0 {
            0 => self.addresses.lock().iter().find(|(_, known)| *known == address).map_or(0, |(node, _)| node.0),
            number => number,
        };
        self.instead.get(&number).cloned().unwrap_or_else(|| address.to_string())
    }

    /// Whether the node at an address lets this one in; waits for a connection and its handshake.
    pub fn probe(&self, address: &str) -> Result<(), TransportError> {
        let way = self.way_to(NodeId(0), address);
        // An empty request is answered by the words that it is none.
        rauk_node::block_on(self.peers.call(&way, Vec::new())).map(drop)
    }

    pub fn statistics(&self) -> Vec<PeerStatistics> {
        self.peers.peers()
    }

    /// Messages of the node, calls of the manage group.
    pub fn traffic(&self) -> (Traffic, Traffic) {
        self.peers.traffic()
    }

    pub fn close(&self) {
        self.set_database(None);
        self.peers.shutdown();
    }
}

impl Network for Links {
    fn send(&self, to: NodeId, message: Vec<u8>) {
        if let Some(address) = self.address_of(to) {
            self.peers.send(&address, message);
        }
    }

    fn send_urgent(&self, to: NodeId, message: Vec<u8>) {
        if let Some(address) = self.address_of(to) {
            self.peers.send_urgent(&address, message);
        }
    }

    fn together(&self, work: &mut dyn FnMut()) {
        rauk_transporter::together(work);
    }

    fn set_peers(&self, addresses: &BTreeMap<NodeId, String>) {
        let known = addresses.iter().filter(|(_, address)| !address.is_empty());
        let known: BTreeMap<NodeId, String> = known.map(|(node, address)| (*node, address.clone())).collect();
        let way = |node: &NodeId, address: &String| self.instead.get(&node.0).unwrap_or(address).clone();
        self.peers.expect(known.iter().map(|(node, address)| (way(node, address), node.0)).collect());
        *self.addresses.lock() = known;
    }
}

impl Transport for Links {
    fn call(&self, to: NodeId, address: &str, request: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, String>> {
        let way = self.way_to(to, address);
        let calling = self.peers.call(&way, request);
        Box::pin(async move { calling.await.map(Vec::from).map_err(|e| format!("{way}: {e}")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rauk_node::member::signal::{Envelope, Exchange, Signal};
    use rauk_types::{Member, ProcessId};

    #[test]
    fn the_sender_of_a_message_is_read_from_its_beginning() {
        for node in [1, 127, 128, 300, u16::MAX] {
            let from = Member { node: NodeId(node), process: ProcessId(9) };
            let signal = Signal::Alive { txns: Vec::new() };
            let envelope =
                Envelope { cluster: [200; 16], from, to: from, catalog: 5, exchange: Exchange::OneWay, signal };
            assert_eq!(sender(&envelope.encode()), Some(node));
        }
        for nonsense in [&[][..], &[1; 16], &[255; 40]] {
            assert_eq!(sender(nonsense), None);
        }
    }
}
