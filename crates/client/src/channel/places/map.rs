//! What a client knows of the cluster's placement, and which node it makes of a bucket.
//!
//! Made of a [`Placement`] that was decoded, and so is sound in itself, and never changed: a newer one takes its place.
//! The leader of each bucket is written out, one byte a bucket, so that an operation costs one look. Connections
//! belong to the [`Place`]s, which go on from map to map as long as a node keeps its number and address.
//!
//! At most [`MOST_NODES`] nodes are taken, those that lead first. A bucket whose leader is nobody, unknown, or one too
//! many is answered by whatever node the client is connected to.

use super::place::Place;
use rauk_types::NodeId;
use rauk_types::layout::EVERYWHERE;
use rauk_wire::Placement;
use std::sync::Arc;

/// Nodes to which a client has connections for their sake. As many as an address may name.
pub(super) const MOST_NODES: usize = 64;
/// The bucket of an operation whose key the client does not know.
pub(crate) const NOWHERE: u16 = u16::MAX;
const NOBODY: u8 = u8::MAX;

#[derive(Debug)]
pub(crate) struct Map {
    /// 0: nothing is known yet.
    pub version: u32,
    nodes: Vec<Arc<Place>>,
    /// By bucket: the leader's position in `nodes`.
    leaders: Vec<u8>,
}

impl Map {
    pub fn empty() -> Map {
        Map { version: 0, nodes: Vec::new(), leaders: Vec::new() }
    }

    /// `before`: its places go on.
    pub fn new(placement: &Placement, before: &Map) -> Map {
        let mut map = Map { version: placement.version, nodes: Vec::new(), leaders: Vec::new() };
        let Some(layout) = placement.layout() else { return map };
        let take = |map: &mut Map, node: NodeId| {
            if let Some(at) = map.nodes.iter().position(|place| place.node == node) {
                return Some(at as u8);
            }
            let at = placement.nodes.binary_search_by_key(&node, |placed| placed.node).ok()?;
            let address = &placement.nodes[at].address;
            if map.nodes.len() == MOST_NODES {
                return None;
            }
            let known = before.nodes.iter().find(|place| place.is(node, address)).cloned();
            map.nodes.push(known.unwrap_or_else(|| Arc::new(Place::new(node, address.clone()))));
            Some(map.nodes.len() as u8 - 1)
        };
        let mut of_groups = Vec::with_capacity(placement.leaders.len());
        for leader in &placement.leaders {
            of_groups.push(take(&mut map, *leader).unwrap_or(NOBODY));
        }
        // Those that lead nothing keep their connections: they may lead again, and requests may be under way there.
        for placed in &placement.nodes {
            take(&mut map, placed.node);
        }
        let leader = |bucket| {
            let group = layout.group_of(layout.partition_of(bucket)).0;
            of_groups.get(usize::from(group)).copied().unwrap_or(NOBODY)
        };
        map.leaders = (0..=EVERYWHERE).map(leader).collect();
        map
    }

    /// The position of the node that leads a bucket. Every node has the rows of [`EVERYWHERE`], so that it does not
    /// matter where they are read.
    #[inline]
    pub fn leader(&self, bucket: u16, writes: bool) -> Option<u8> {
        if bucket == EVERYWHERE && !writes {
            return None;
        }
        self.leaders.get(usize::from(bucket)).copied().filter(|at| *at != NOBODY)
    }

    /// The node that leads most of these buckets, the first of several that lead as many.
    pub fn leader_of_most(&self, buckets: impl Iterator<Item = u16>, writes: bool) -> Option<u8> {
        let mut counts = [0u32; MOST_NODES];
        let mut most: Option<u8> = None;
        for at in buckets.filter_map(|bucket| self.leader(bucket, writes)) {
            counts[usize::from(at)] += 1;
            if most.is_none_or(|most| counts[usize::from(most)] < counts[usize::from(at)]) {
                most = Some(at);
            }
        }
        most
    }

    pub fn nodes(&self) -> &[Arc<Place>] {
        &self.nodes
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use rauk_types::schema::BUCKETS;
    use rauk_wire::placement::PlacedNode;

    pub fn placement(nodes: &[u16], leaders: &[u16]) -> Placement {
        let placed = |node: &u16| PlacedNode { node: NodeId(*node), address: format!("node{node}:4407") };
        Placement {
            version: 1,
            here: NodeId(1),
            spread: leaders.len() as u16 - 1,
            groups: leaders.len() as u16 - 1,
            nodes: nodes.iter().map(placed).collect(),
            leaders: leaders.iter().map(|node| NodeId(*node)).collect(),
        }
    }

    fn node(map: &Map, bucket: u16, writes: bool) -> Option<u16> {
        map.leader(bucket, writes).map(|at| map.nodes()[usize::from(at)].node.0)
    }

    #[test]
    fn a_bucket_is_its_leaders() {
        let map = Map::new(&placement(&[3, 5, 9], &[5, 3, 5]), &Map::empty());
        assert_eq!(node(&map, 0, false), Some(5));
        assert_eq!(node(&map, BUCKETS / 2, false), Some(3));
        assert_eq!(node(&map, BUCKETS - 1, true), Some(3));
        assert_eq!(node(&map, NOWHERE, true), None);
        assert_eq!(map.nodes().len(), 3, "one that leads nothing is known too");
        assert_eq!(Map::empty().leader(0, false), None);
    }

    #[test]
    fn fully_replicated_rows_are_read_anywhere_and_written_at_their_leader() {
        let map = Map::new(&placement(&[3, 5], &[3, 5]), &Map::empty());
        assert_eq!(node(&map, EVERYWHERE, false), None);
        assert_eq!(node(&map, EVERYWHERE, true), Some(5));
    }

    #[test]
    fn a_leader_that_is_nobody_or_unknown_is_no_node() {
        let map = Map::new(&placement(&[3], &[0, 77, 3]), &Map::empty());
        assert_eq!((node(&map, 0, true), node(&map, BUCKETS - 1, true)), (None, None));
    }

    #[test]
    fn a_batch_goes_where_most_of_it_is() {
        let map = Map::new(&placement(&[1, 2], &[1, 2, 0]), &Map::empty());
        let most = |buckets: &[u16]| {
            let at = map.leader_of_most(buckets.iter().copied(), true);
            at.map(|at| map.nodes()[usize::from(at)].node.0)
        };
        let (one, two) = (0, BUCKETS - 1);
        assert_eq!(most(&[one, two, two, NOWHERE]), Some(2));
        assert_eq!(most(&[one, two]), Some(1));
        assert_eq!(most(&[NOWHERE, EVERYWHERE]), None);
        assert_eq!(most(&[]), None);
    }

    #[test]
    fn a_node_that_stays_keeps_its_place() {
        let before = Map::new(&placement(&[1, 2], &[1, 2, 1]), &Map::empty());
        let mut moved = placement(&[1, 2], &[2, 2, 2]);
        moved.nodes[0].address = "elsewhere:4407".into();
        let after = Map::new(&moved, &before);
        let place = |map: &Map, node: u16| map.nodes().iter().find(|p| p.node.0 == node).unwrap().clone();
        assert!(Arc::ptr_eq(&place(&before, 2), &place(&after, 2)));
        assert!(!Arc::ptr_eq(&place(&before, 1), &place(&after, 1)), "it has another address");
    }

    proptest! {
        #[test]
        fn any_placement_is_bounded_and_leads_to_its_leaders(
            nodes in proptest::collection::btree_set(1..200u16, 0..150),
            leaders in proptest::collection::vec(0..220u16, 2..100),
            buckets in proptest::collection::vec(any::<u16>(), 0..50),
        ) {
            let nodes: Vec<u16> = nodes.into_iter().collect();
            let map = Map::new(&placement(&nodes, &leaders), &Map::empty());
            prop_assert!(map.nodes().len() <= MOST_NODES);
            for bucket in &buckets {
                let found = node(&map, *bucket, true);
                prop_assert!(found.is_none_or(|node| leaders.contains(&node) && nodes.contains(&node)));
            }
            let most = map.leader_of_most(buckets.iter().copied(), true);
            prop_assert_eq!(most.is_some(), buckets.iter().any(|bucket| map.leader(*bucket, true).is_some()));
        }
    }
}
