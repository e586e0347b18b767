use super::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeSet;

type Model = BTreeSet<(Vec<u8>, u32)>;

/// A prefix-free key: length decided by the first byte, as self-delimiting encodings are.
fn key(rng: &mut StdRng, kind: u8) -> Vec<u8> {
    match kind {
        0 => rng.random_range(0..3000u64).to_be_bytes().to_vec(),
        1 => {
            let text: Vec<u8> = (0..rng.random_range(0..40)).map(|_| rng.random_range(1..4)).collect();
            [text, vec![0, 0]].concat()
        }
        _ => {
            let text: Vec<u8> = (0..rng.random_range(0..900)).map(|_| rng.random_range(1..3)).collect();
            [text, vec![0, 0]].concat()
        }
    }
}

fn check_nodes(index: &OrderedIndex) {
    fn walk(
        index: &OrderedIndex,
        number: u32,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
        depth: usize,
    ) -> (usize, usize) {
        let node = &index.nodes[number as usize];
        for i in 0..node.keys.len() {
            let entry = node.keys.entry(i);
            assert!(i == 0 || node.keys.entry(i - 1) < entry);
            assert!(low.is_none_or(|low| low <= entry) && high.is_none_or(|high| entry < high));
        }
        if node.is_leaf() {
            return (node.keys.len(), depth);
        }
        assert_eq!(node.children.len(), node.keys.len() + 1);
        let mut total = 0;
        let mut leaf_depth = None;
        for (i, &child) in node.children.iter().enumerate() {
            let low = if i == 0 { low } else { Some(node.keys.entry(i - 1)) };
            let high = if i == node.keys.len() { high } else { Some(node.keys.entry(i)) };
            let (count, at) = walk(index, child, low, high, depth + 1);
            assert!(leaf_depth.is_none_or(|d| d == at), "all leaves are equally deep");
            leaf_depth = Some(at);
            total += count;
        }
        (total, leaf_depth.unwrap())
    }
    if index.len > 0 {
        assert_eq!(walk(index, index.root, None, None, 0).0, index.len);
    }
    let counted: u64 =
        index.nodes.iter().map(Node::bytes).sum::<u64>() + (index.nodes.capacity() * size_of::<Node>()) as u64;
    assert_eq!(counted, index.bytes);
    assert_eq!(index.bytes, index.budget.used());
}

fn bound(rng: &mut StdRng, kind: u8) -> Bound<Vec<u8>> {
    let mut key = key(rng, kind);
    if rng.random_bool(0.3) {
        key.truncate(rng.random_range(0..=key.len()));
    }
    match rng.random_range(0..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

#[test]
fn random_operations_against_a_set() {
    for seed in 0..30u64 {
        let kind = (seed % 3) as u8;
        let mut rng = StdRng::seed_from_u64(seed);
        let mut index = OrderedIndex::new(Arc::new(MemoryBudget::new(1 << 40)));
        let mut model = Model::new();
        for step in 0..6000 {
            let shrink = step / 1500 % 2 == 1;
            if rng.random_bool(if shrink { 0.3 } else { 0.7 }) {
                let (key, id) = (key(&mut rng, kind), rng.random_range(0..20));
                assert_eq!(index.insert(&key, RowId(id)), model.insert((key, id)));
            } else if !model.is_empty() {
                let near = (key(&mut rng, kind), 0);
                let entry = model.range(near..).next().or(model.first()).cloned().unwrap();
                assert!(index.contains(&entry.0, RowId(entry.1)));
                assert!(index.remove(&entry.0, RowId(entry.1)));
                assert!(!index.remove(&entry.0, RowId(entry.1)));
                model.remove(&entry);
            }
            if step % 100 == 0 {
                check_nodes(&index);
                for _ in 0..5 {
                    check_scan(&mut rng, kind, &index, &model);
                }
            }
        }
        for (key, id) in std::mem::take(&mut model) {
            assert!(index.remove(&key, RowId(id)));
        }
        check_nodes(&index);
        assert_eq!(index.budget.used(), 0);
    }
}

/// Scans in slices of a few entries, going on behind the last one each time.
fn check_scan(rng: &mut StdRng, kind: u8, index: &OrderedIndex, model: &Model) {
    let (low, high) = (bound(rng, kind), bound(rng, kind));
    let inside = |key: &Vec<u8>| {
        (match &low {
            Bound::Unbounded => true,
            Bound::Included(b) => key >= b,
            Bound::Excluded(b) => key > b,
        }) && (match &high {
            Bound::Unbounded => true,
            Bound::Included(b) => key <= b,
            Bound::Excluded(b) => key < b,
        })
    };
    let reverse = rng.random_bool(0.5);
    let mut wanted: Vec<_> = model.iter().filter(|(key, _)| inside(key)).cloned().collect();
    if reverse {
        wanted.reverse();
    }
    let slice = rng.random_range(1..200);
    let mut found: Vec<(Vec<u8>, u32)> = Vec::new();
    loop {
        let mut got = 0;
        let after = found.last().cloned();
        index.scan(
            low.as_ref().map(Vec::as_slice),
            high.as_ref().map(Vec::as_slice),
            reverse,
            after.as_ref().map(|(key, id)| (key.as_slice(), RowId(*id))),
            &mut |key, id| {
                found.push((key.to_vec(), id.0));
                got += 1;
                if got == slice { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        if got < slice {
            break;
        }
    }
    assert_eq!(found, wanted);
    let estimate = index.estimate(low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
    assert!(estimate <= index.len() as u64);
}

#[test]
fn ascending_inserts_fill_their_nodes() {
    let mut index = OrderedIndex::new(Arc::new(MemoryBudget::new(1 << 40)));
    for i in 0..100_000u64 {
        assert!(index.insert(&i.to_be_bytes(), RowId(i as u32)));
    }
    check_nodes(&index);
    let each = index.bytes() as f64 / 100_000.0;
    assert!(each < 14.0, "{each} bytes an entry");
    let estimate = index.estimate(Bound::Included(&1000u64.to_be_bytes()), Bound::Excluded(&51_000u64.to_be_bytes()));
    assert!((35_000..65_000).contains(&estimate), "{estimate}");
}

#[test]
fn random_inserts_waste_little() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut index = OrderedIndex::new(Arc::new(MemoryBudget::new(1 << 40)));
    for i in 0..100_000u32 {
        index.insert(&rng.random::<u64>().to_be_bytes(), RowId(i));
    }
    let each = index.bytes() as f64 / 100_000.0;
    assert!(each < 24.0, "{each} bytes an entry");
}
