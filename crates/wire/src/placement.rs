//! The cluster's placement: which node leads which partitions, and where clients reach the nodes.
//!
//! A client asks for it ([`crate::Kind::AskPlacement`], without a payload) when the header of an answer names a newer
//! version than the client has ([`crate::Header::placement`]; 0: the server is no member of a cluster, and is not
//! asked). The version grows with every change of a leader, by the same amount on all nodes; [`is_newer`] compares two.
//!
//! ```text
//! version u32 │ here u16 │ spread u16 │ groups u16 │ nodes varint │ (node u16 │ address prefixed) … │ leader u16 …
//! ```
//! `spread` and `groups` are those of [`Layout::new`], which says the partition and group of a bucket. There is one
//! leader for each group, that of the fully replicated tables last; 0: nobody known. Nodes come in the order of their
//! numbers, each once. A node that leads and takes no native clients is among the leaders and not among the nodes.
//!
//! Decoding checks all of this, so that what was read has a leader or none for every bucket. It allocates no more
//! than arrived. Whether a leader can be reached is for the client to find out.

use crate::WireError;
use crate::read::{Reader, put_prefixed, put_varint};
use rauk_types::{GroupId, Layout, NodeId};

/// Longest address of a node, in bytes.
pub const MAX_ADDRESS: usize = 300;
/// The fewest bytes that a node takes.
const NODE_BYTES: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Never 0.
    pub version: u32,
    /// The node that answers.
    pub here: NodeId,
    /// As for [`Layout::new`].
    pub spread: u16,
    pub groups: u16,
    /// Nodes that are up and take native clients, by number.
    pub nodes: Vec<PlacedNode>,
    /// By group. Zero: nobody.
    pub leaders: Vec<NodeId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedNode {
    pub node: NodeId,
    /// `host:port` of its native port, as it advertises it.
    pub address: String,
}

/// Whether version `a` is newer than `b`. Versions wrap around; 0 is older than all others.
pub fn is_newer(a: u32, b: u32) -> bool {
    a != 0 && (b == 0 || a.wrapping_sub(b) as i32 > 0)
}

impl Placement {
    pub fn layout(&self) -> Option<Layout> {
        Layout::new(self.spread, self.groups)
    }

    /// The node that leads a bucket's partition.
    pub fn leader(&self, layout: Layout, bucket: u16) -> Option<NodeId> {
        let GroupId(group) = layout.group_of(layout.partition_of(bucket));
        self.leaders.get(usize::from(group)).copied().filter(|node| *node != NodeId(0))
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_le_bytes());
        for number in [self.here.0, self.spread, self.groups] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        put_varint(u32::try_from(self.nodes.len()).expect("a node's number has 16 bits"), out);
        for node in &self.nodes {
            out.extend_from_slice(&node.node.0.to_le_bytes());
            put_prefixed(node.address.as_bytes(), out);
        }
        self.leaders.iter().for_each(|leader| out.extend_from_slice(&leader.0.to_le_bytes()));
    }

    pub fn decode(payload: &[u8]) -> Result<Placement, WireError> {
        let mut reader = Reader::new(payload, "placement");
        let version = reader.u32()?;
        let here = NodeId(reader.u16()?);
        let (spread, groups) = (reader.u16()?, reader.u16()?);
        let layout = Layout::new(spread, groups).ok_or_else(|| reader.malformed())?;
        let count = reader.varint()? as usize;
        if version == 0 || here == NodeId(0) || count > reader.remaining() / NODE_BYTES {
            return Err(reader.malformed());
        }
        let mut nodes: Vec<PlacedNode> = Vec::with_capacity(count);
        for _ in 0..count {
            let node = NodeId(reader.u16()?);
            let address = reader.text()?;
            // In their order, so each once; and none has the number of nobody.
            let follows = nodes.last().map_or(NodeId(0), |last| last.node) < node;
            if !follows || address.is_empty() || address.len() > MAX_ADDRESS {
                return Err(reader.malformed());
            }
            nodes.push(PlacedNode { node, address: address.to_owned() });
        }
        let groups_in_all = layout.groups().len();
        if reader.remaining() != 2 * groups_in_all {
            return Err(reader.malformed());
        }
        let leaders = (0..groups_in_all).map(|_| reader.u16().map(NodeId)).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Placement { version, here, spread, groups, nodes, leaders })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u16, address: &str) -> PlacedNode {
        PlacedNode { node: NodeId(number), address: address.into() }
    }

    fn placement() -> Placement {
        Placement {
            version: 7,
            here: NodeId(2),
            spread: 4,
            groups: 2,
            nodes: vec![node(1, "a:4407"), node(2, "b:4407")],
            leaders: vec![NodeId(1), NodeId(2), NodeId(0)],
        }
    }

    fn read(placement: &Placement) -> Result<Placement, WireError> {
        let mut bytes = Vec::new();
        placement.encode(&mut bytes);
        Placement::decode(&bytes)
    }

    fn is_refused(change: impl FnOnce(&mut Placement)) -> bool {
        let mut placement = placement();
        change(&mut placement);
        read(&placement).is_err()
    }

    #[test]
    fn every_bucket_has_a_leader_or_none() {
        let read = read(&placement()).expect("it is sound");
        assert_eq!(read, placement());
        let layout = read.layout().expect("checked");
        assert_eq!(read.leader(layout, 0), Some(NodeId(1)));
        assert_eq!(read.leader(layout, rauk_types::schema::BUCKETS - 1), Some(NodeId(2)));
        assert_eq!(read.leader(layout, rauk_types::layout::EVERYWHERE), None);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(is_refused(|p| p.version = 0));
        assert!(is_refused(|p| p.here = NodeId(0)));
        assert!(is_refused(|p| p.spread = 0));
        assert!(is_refused(|p| p.spread = u16::MAX));
        assert!(is_refused(|p| p.groups = 5));
        assert!(is_refused(|p| p.groups = 1));
        assert!(is_refused(|p| p.leaders.push(NodeId(1))));
        assert!(is_refused(|p| p.leaders.truncate(2)));
        assert!(is_refused(|p| p.nodes.push(node(2, "again:1"))));
        assert!(is_refused(|p| p.nodes.reverse()));
        assert!(is_refused(|p| p.nodes[0].node = NodeId(0)));
        assert!(is_refused(|p| p.nodes[0].address.clear()));
        assert!(is_refused(|p| p.nodes[0].address = "x".repeat(MAX_ADDRESS + 1)));
    }

    #[test]
    fn counts_that_lie_allocate_nothing() {
        let mut bytes = Vec::new();
        placement().encode(&mut bytes);
        let at = 10;
        assert_eq!(bytes[at], 2, "the number of nodes");
        bytes.splice(at..=at, [0xFF, 0xFF, 0xFF, 0xFF, 0x0F]);
        assert!(Placement::decode(&bytes).is_err());
    }

    #[test]
    fn versions_wrap_around() {
        assert!(is_newer(2, 1) && !is_newer(1, 2) && !is_newer(1, 1));
        assert!(is_newer(3, u32::MAX - 3) && !is_newer(u32::MAX - 3, 3));
        assert!(is_newer(1, 0) && is_newer(u32::MAX, 0) && !is_newer(0, u32::MAX) && !is_newer(0, 0));
    }
}
