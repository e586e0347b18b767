//! The operations of one request, divided between the nodes that lead their rows.
//!
//! Plain reads outside of transactions are independent of each other, so they are *divided*: one frame goes to each
//! node, and the client puts the answers together by operation. All other batches stay whole and go to the node that leads
//! most of their operations. A batch that writes could be divided as long as nothing fails. But a changed definition, a
//! privilege or a limit makes a node refuse a batch as a whole, and then no part of it may have taken place.
//!
//! Operations go by the present connection when the client does not know their key or its leader, or has no connection
//! to the leader. One map divides all operations of a request, so those on one key stay together, in their order.

use super::map::{Map, NOWHERE};
use crate::channel::remote::Connection;
use std::sync::Arc;

/// Where the operations of a request are.
#[derive(Clone, Copy)]
pub(crate) struct Located<'a> {
    pub operations: &'a [Spot],
    /// Plain reads by primary key, all of them.
    pub divisible: bool,
    pub writes: bool,
}

/// Where an operation is: in its request, and in the cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// Behind its last byte, counted from the first operation of its request.
    pub end: u32,
    /// [`NOWHERE`]: not known.
    pub bucket: u16,
}

pub(crate) enum Dealt<C = Arc<Connection>> {
    /// All by one connection; `None`: the present one.
    Together(Option<C>),
    Divided(Division<C>),
}

/// At least two shares, none of them empty.
pub(crate) struct Division<C = Arc<Connection>> {
    /// `None`: the present connection, which has one share at most.
    pub connections: Vec<Option<C>>,
    /// By operation: the number of its share.
    pub shares: Vec<u8>,
}

/// The share of no operation yet.
const UNUSED: u8 = u8::MAX;

/// `connection`: to the node at this position of the map; `None`: it cannot be reached, or the present one leads there.
pub(crate) fn deal<C>(map: &Map, located: Located<'_>, mut connection: impl FnMut(u8) -> Option<C>) -> Dealt<C> {
    let buckets = located.operations.iter().map(|spot| spot.bucket);
    if !located.divisible || located.operations.len() < 2 {
        return Dealt::Together(map.leader_of_most(buckets, located.writes).and_then(connection));
    }
    let mut connections: Vec<Option<C>> = Vec::new();
    // The share of each node of the map, and of nobody's.
    let mut of_nodes = [UNUSED; super::map::MOST_NODES];
    let mut present = UNUSED;
    let mut open_share = |made: Option<C>, present: &mut u8| match made {
        None if *present != UNUSED => *present,
        made => {
            let share = connections.len() as u8;
            if made.is_none() {
                *present = share;
            }
            connections.push(made);
            share
        }
    };
    let mut shares = Vec::with_capacity(located.operations.len());
    for bucket in buckets {
        shares.push(match map.leader(bucket, false) {
            None => open_share(None, &mut present),
            Some(at) => {
                let share = &mut of_nodes[usize::from(at)];
                if *share == UNUSED {
                    *share = open_share(connection(at), &mut present);
                }
                *share
            }
        });
    }
    match connections.len() {
        1 => Dealt::Together(connections.pop().flatten()),
        _ => Dealt::Divided(Division { connections, shares }),
    }
}

impl Located<'_> {
    /// The first bucket that is known; [`NOWHERE`]: none.
    pub fn first(&self) -> u16 {
        let known = self.operations.iter().map(|spot| spot.bucket).find(|bucket| *bucket != NOWHERE);
        known.unwrap_or(NOWHERE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::map::tests::placement;
    use super::*;
    use proptest::prelude::*;
    use rauk_types::layout::EVERYWHERE;
    use rauk_types::schema::BUCKETS;

    fn spots(buckets: &[u16]) -> Vec<Spot> {
        buckets.iter().map(|bucket| Spot { end: 0, bucket: *bucket }).collect()
    }

    fn map() -> Map {
        Map::new(&placement(&[1, 2, 3], &[1, 2, 3, 0, 1]), &Map::empty())
    }

    /// Buckets that the three nodes lead, and one that nobody leads.
    const LED: [u16; 4] = [0, BUCKETS / 4, BUCKETS / 2, BUCKETS - 1];

    /// Nodes by operation; 0: the present connection.
    fn dealt(buckets: &[u16], divisible: bool, reachable: &[u16]) -> Vec<u16> {
        let map = map();
        let spots = spots(buckets);
        let located = Located { operations: &spots, divisible, writes: !divisible };
        let connection = |at: u8| Some(map.nodes()[usize::from(at)].node.0).filter(|node| reachable.contains(node));
        match deal(&map, located, connection) {
            Dealt::Together(node) => vec![node.unwrap_or(0); buckets.len()],
            Dealt::Divided(division) => {
                assert!(division.connections.len() > 1);
                let used: std::collections::BTreeSet<u8> = division.shares.iter().copied().collect();
                assert_eq!(used.len(), division.connections.len(), "no share is empty");
                division.shares.iter().map(|share| division.connections[usize::from(*share)].unwrap_or(0)).collect()
            }
        }
    }

    #[test]
    fn reads_go_to_the_nodes_that_lead_them() {
        let [one, two, three, nobody] = LED;
        let all = [1, 2, 3];
        assert_eq!(dealt(&[one, two, one, three], true, &all), [1, 2, 1, 3]);
        assert_eq!(dealt(&[two, two], true, &all), [2, 2]);
        assert_eq!(dealt(&[two], true, &all), [2]);
        assert_eq!(dealt(&[nobody, two, NOWHERE, EVERYWHERE], true, &all), [0, 2, 0, 0]);
        assert_eq!(dealt(&[one, two, three], true, &[2]), [0, 2, 0]);
        assert_eq!(dealt(&[one, two, three], true, &[]), [0, 0, 0]);
        assert!(dealt(&[], true, &all).is_empty());
    }

    #[test]
    fn what_writes_stays_together() {
        let [one, two, three, nobody] = LED;
        let all = [1, 2, 3];
        assert_eq!(dealt(&[three], false, &all), [3]);
        assert_eq!(dealt(&[one, two, two, nobody], false, &all), [2, 2, 2, 2]);
        assert_eq!(dealt(&[one, two, two], false, &[1]), [0, 0, 0]);
        assert_eq!(dealt(&[EVERYWHERE], false, &all), [1]);
        assert_eq!(dealt(&[NOWHERE, nobody], false, &all), [0, 0]);
    }

    #[test]
    fn the_first_key_that_is_known_says_where_a_transaction_begins() {
        let first = |buckets: &[u16]| Located { operations: &spots(buckets), divisible: false, writes: true }.first();
        assert_eq!(first(&[NOWHERE, 7, 8]), 7);
        assert_eq!(first(&[NOWHERE]), NOWHERE);
    }

    proptest! {
        /// Operations on one key are in one bucket.
        #[test]
        fn operations_of_one_bucket_stay_together(
            buckets in proptest::collection::vec(prop_oneof![0..=EVERYWHERE, Just(NOWHERE)], 0..100),
            divisible in any::<bool>(),
            reachable in proptest::sample::subsequence(vec![1u16, 2, 3], 0..=3),
        ) {
            let nodes = dealt(&buckets, divisible, &reachable);
            prop_assert_eq!(nodes.len(), buckets.len());
            for (at, bucket) in buckets.iter().enumerate() {
                let first = buckets.iter().position(|other| other == bucket).unwrap();
                prop_assert_eq!(nodes[at], nodes[first]);
            }
            prop_assert!(divisible || nodes.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }
}
