//! Requests go to the node that leads their rows.
//!
//! A client is connected to one node, its *present connection* (or to several, by `Options::connections`). That node
//! answers every request; it asks the leaders for rows that it does not lead. To avoid these messages, a client of a
//! cluster learns which node leads which partitions, and sends each request whose key it knows to the leader.
//!
//! | file | what |
//! |---|---|
//! | [`map`] | which node leads a bucket; pure |
//! | [`division`] | the operations of a batch, divided between nodes; pure |
//! | [`place`] | a node: its connection, and when to try again to make one |
//! | [`work`] | a thread that asks for the placement and makes connections |
//!
//! # Mechanism
//! The header of each answer has the version of the placement that the server knows. When it is newer than the map, the
//! client asks for the placement. It asks once, too, by each present connection, to learn which node that leads to. A
//! request for a node without a connection has one made. A thread does all of this; it ends when nothing is left to do.
//! No request waits for it: requests go by the present connection until the other one is there.
//!
//! # Why an outdated map is harmless
//! Every node answers every request, so an outdated map costs a message between nodes and nothing else. Requests of one
//! program that go to several nodes see what they would see at one node:
//!
//! * A node answers with a commit only when that is stable, on all in-sync replicas (rules 46 to 48 of
//!   docs/cluster-protocols.md). Every later leader of the partition has it. A leader answers under its lease and in
//!   its view only (15); an in-sync follower asks the leader where a version is pending (33). So a read of the newest state
//!   at any node shows everything that any node has acknowledged or shown before.
//! * The control-plane leader draws a snapshot's time after the request has come (14), and commit times are at most one
//!   above its counter (10). So a snapshot shows everything that was acknowledged before, by any node.
//! * Each request carries the newest commit time that the client has seen at any node, and its commit is not below
//!   that (`Times::saw_elsewhere` in `rauk_node::member`). So no snapshot shows the later of two commits of a
//!   client without the earlier.
//! * One map divides a batch. So operations on one key go to one node, in their order. A batch that writes is never
//!   divided: when a node refuses it as a whole, nothing of it has taken place.
//!
//! # Failures
//! Requests under way at a node that fails are lost as at any other node. The client repeats those that may be repeated
//! by the present connection. When a node is silent while requests wait, the client asks another for the placement. If
//! the cluster has marked the silent node down, the client closes the connection, long before `connect_timeout` ends.
//!
//! # Bounds
//! At most [`map::MOST_NODES`] connections; one thread; one question for the placement at a time, not sooner than
//! [`work::FIRST_PAUSE`] after the one before. A client asks no server whose version is 0. When a node refuses the
//! account, the client makes no further connections, since every node would count a wrong password.
//!
//! Left out: scans, reads by other unique keys, and transactions whose first batch has no key that the client knows.
//! They go by the present connection. So do inserts into tables with AUTO_INCREMENT, since each node takes its numbers
//! from a block of its own.

pub(crate) mod division;
pub(crate) mod map;
mod place;
mod work;

use super::remote::{Connection, Seen};
use crate::Error;
use map::Map;
use parking_lot::{Mutex, RwLock};
use rauk_transporter::{CloseReason, Link, Security, Transporter, Urgency};
use rauk_wire::Placement;
use rauk_wire::placement::is_newer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What connections are made with.
pub(super) struct Means {
    pub transporter: Weak<Transporter>,
    pub security: Security,
    pub urgency: Urgency,
    pub timeout: Duration,
    pub seen: Arc<Seen>,
}

pub(crate) struct Places {
    means: Means,
    map: RwLock<Arc<Map>>,
    work: Mutex<work::Work>,
    /// The client is gone.
    closed: AtomicBool,
    own: Weak<Places>,
}

impl Means {
    fn connection(&self, link: Arc<Link>, patience: Option<Duration>) -> Result<Arc<Connection>, Error> {
        Connection::new(link, self.urgency, patience, self.seen.clone(), self.transporter.clone())
    }
}

impl Places {
    pub(super) fn new(means: Means) -> Arc<Places> {
        Arc::new_cyclic(|own| Places {
            means,
            map: RwLock::new(Arc::new(Map::empty())),
            work: Mutex::default(),
            closed: AtomicBool::new(false),
            own: own.clone(),
        })
    }

    /// The newest map. Sees to it that a newer one is asked for if there is any, by `present` among others.
    pub fn map(&self, present: Option<&Arc<Connection>>) -> Arc<Map> {
        let map = self.map.read().clone();
        let told = self.means.seen.placement.load(Ordering::Relaxed);
        // A server that is no member of a cluster has told nothing.
        if told != 0 && (is_newer(told, map.version) || present.is_some_and(|present| present.node().is_none())) {
            self.ask(present);
        }
        map
    }

    /// The connection to the node at this position of the map. `None`: go by the present one. A missing one is made.
    pub fn connection(&self, map: &Map, at: u8, present: Option<&Arc<Connection>>) -> Option<Arc<Connection>> {
        let place = &map.nodes()[usize::from(at)];
        if let Some(present) = present.filter(|present| present.node() == Some(place.node)) {
            return Some(present.clone());
        }
        let connection = place.connection();
        if connection.is_none() {
            self.open(place);
        }
        connection
    }

    /// A node has said so: takes it unless it is older than what is known, and leaves nodes that have gone.
    fn adopt(&self, placement: &Placement) {
        let mut map = self.map.write();
        if is_newer(map.version, placement.version) {
            return;
        }
        let before = std::mem::replace(&mut *map, Arc::new(Map::empty()));
        let after = Arc::new(Map::new(placement, &before));
        *map = after.clone();
        drop(map);
        for place in before.nodes() {
            if !after.nodes().iter().any(|stays| Arc::ptr_eq(stays, place))
                && let Some(connection) = place.leave()
            {
                connection.give_up(&format!("{place:?} has left the cluster"));
            }
        }
    }

    /// The client is gone: so are its connections.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let map = self.map.read().clone();
        for connection in map.nodes().iter().filter_map(|place| place.leave()) {
            connection.close(CloseReason::Here);
        }
    }
}

#[cfg(test)]
mod tests;
