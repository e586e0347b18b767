//! The ordered index: a B+tree of (memcomparable key, row id), fan-out about 128.
//!
//! Nodes stand in an arena and hold their entries packed ([`keys`]). An inner node with n separators has n + 1 children; separator i is not above any
//! entry of child i + 1 and above every entry of child i (it need not be an entry any more). There are no links between
//! leaves: a scan walks down again from the root for every slice, with the place where it stopped as a key, so that the tree may change in
//! between.
//!
//! A node splits at 128 entries or 16 KiB; at its right edge it splits unevenly, so that ascending inserts fill nodes wholly. A node that has
//! become small is merged with a neighbour. Not here: what keys mean, versions, bounds on the number of entries visited (the visitor stops).

mod keys;

use crate::budget::MemoryBudget;
use crate::row_store::RowId;
use keys::{Keys, compare, compare_entry, split_entry};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

const MAX_ENTRIES: usize = 128;
const MAX_BYTES: usize = 16 * 1024;
/// A node below this many entries looks for a neighbour to merge with.
const SMALL: usize = 32;
/// The merged node may have this many, so that it does not split again soon.
const MERGED: usize = 96;

#[derive(Debug, Default)]
struct Node {
    keys: Keys,
    /// Empty in leaves.
    children: Vec<u32>,
}

impl Node {
    fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    fn bytes(&self) -> u64 {
        (self.keys.capacity_bytes() + self.children.capacity() * 4) as u64
    }

    fn is_over(&self) -> bool {
        self.keys.len() > MAX_ENTRIES || (self.keys.byte_len() > MAX_BYTES && self.keys.len() > 3)
    }
}

pub struct OrderedIndex {
    budget: Arc<MemoryBudget>,
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
    len: usize,
    bytes: u64,
}

/// Upper part of a node that split: the separator entry and the new node.
type Split = Option<(Vec<u8>, u32)>;

impl OrderedIndex {
    pub fn new(budget: Arc<MemoryBudget>) -> Self {
        OrderedIndex { budget, nodes: Vec::new(), free: Vec::new(), root: 0, len: 0, bytes: 0 }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = OrderedIndex::new(self.budget.clone());
    }

    /// Adds an entry; `false` when it was there. Equal keys are ordered by row id.
    pub fn insert(&mut self, key: &[u8], id: RowId) -> bool {
        if self.nodes.is_empty() {
            self.root = self.new_node(Node::default());
        }
        match self.insert_into(self.root, key, id) {
            Err(()) => false,
            Ok(split) => {
                self.len += 1;
                if let Some((separator, upper)) = split {
                    let mut root = Node { keys: Keys::default(), children: vec![self.root, upper] };
                    root.keys.insert_entry(0, &separator);
                    self.root = self.new_node(root);
                }
                true
            }
        }
    }

    /// `false` when it was not there.
    pub fn remove(&mut self, key: &[u8], id: RowId) -> bool {
        if self.len == 0 || !self.remove_from(self.root, key, id) {
            return false;
        }
        self.len -= 1;
        if self.len == 0 {
            self.nodes = Vec::new();
            self.free = Vec::new();
            self.root = 0;
            self.budget.subtract(self.bytes);
            self.bytes = 0;
            return true;
        }
        while !self.nodes[self.root as usize].is_leaf() && self.nodes[self.root as usize].keys.len() == 0 {
            let child = self.nodes[self.root as usize].children[0];
            self.drop_node(self.root);
            self.root = child;
        }
        true
    }

    pub fn contains(&self, key: &[u8], id: RowId) -> bool {
        if self.len == 0 {
            return false;
        }
        let mut node = &self.nodes[self.root as usize];
        loop {
            let before = |entry: &[u8]| compare_entry(entry, key, id) != Ordering::Greater;
            let i = node.keys.partition_point(before);
            if node.is_leaf() {
                return i > 0 && compare_entry(node.keys.entry(i - 1), key, id) == Ordering::Equal;
            }
            node = &self.nodes[node.children[i] as usize];
        }
    }

    /// Visits entries between `low` and `high` upward, or downward when `reverse`, starting behind `after` (an entry that
    /// need no longer be there) where given.
    pub fn scan<'s>(
        &'s self,
        low: Bound<&[u8]>,
        high: Bound<&[u8]>,
        reverse: bool,
        after: Option<(&[u8], RowId)>,
        visit: &mut dyn FnMut(&'s [u8], RowId) -> ControlFlow<()>,
    ) {
        if self.len == 0 {
            return;
        }
        let below_low = |key: &[u8]| match low {
            Bound::Unbounded => false,
            Bound::Included(bound) => compare(key, bound) == Ordering::Less,
            Bound::Excluded(bound) => compare(key, bound) != Ordering::Greater,
        };
        let within_high = |key: &[u8]| match high {
            Bound::Unbounded => true,
            Bound::Included(bound) => compare(key, bound) != Ordering::Greater,
            Bound::Excluded(bound) => compare(key, bound) == Ordering::Less,
        };
        let _ = if let (false, Bound::Included(bound), None) = (reverse, low, after) {
            // Most lookups: worth a search of its own.
            let before = |entry: &[u8]| compare(split_entry(entry).0, bound) == Ordering::Less;
            let mut visit = |key: &'s [u8], id| if within_high(key) { visit(key, id) } else { ControlFlow::Break(()) };
            self.up(self.root, Some(&before), &mut visit)
        } else if reverse {
            // Entries to visit are those below this point, from its end down.
            let before = |entry: &[u8]| {
                let (key, id) = split_entry(entry);
                within_high(key) && after.is_none_or(|(k, i)| compare(key, k).then(id.cmp(&i)) == Ordering::Less)
            };
            let mut visit = |key: &'s [u8], id| if below_low(key) { ControlFlow::Break(()) } else { visit(key, id) };
            self.down(self.root, Some(&before), &mut visit)
        } else {
            let before = |entry: &[u8]| {
                let (key, id) = split_entry(entry);
                below_low(key) || after.is_some_and(|(k, i)| compare(key, k).then(id.cmp(&i)) != Ordering::Greater)
            };
            let mut visit = |key: &'s [u8], id| if within_high(key) { visit(key, id) } else { ControlFlow::Break(()) };
            self.up(self.root, Some(&before), &mut visit)
        };
    }

    /// About how many entries lie between the bounds, taking the subtrees of a node as equally full: good to a factor of two,
    /// exact when both bounds fall into one leaf of a tree of one.
    pub fn estimate(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> u64 {
        if self.len == 0 {
            return 0;
        }
        let low_rank = match low {
            Bound::Unbounded => 0.0,
            Bound::Included(b) => self.rank(&|key| compare(key, b) == Ordering::Less),
            Bound::Excluded(b) => self.rank(&|key| compare(key, b) != Ordering::Greater),
        };
        let high_rank = match high {
            Bound::Unbounded => 1.0,
            Bound::Included(b) => self.rank(&|key| compare(key, b) != Ordering::Greater),
            Bound::Excluded(b) => self.rank(&|key| compare(key, b) == Ordering::Less),
        };
        ((high_rank - low_rank).max(0.0) * self.len as f64).round() as u64
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The share of entries for which `before` holds, taking all subtrees of a node as equally full.
    fn rank(&self, before: &dyn Fn(&[u8]) -> bool) -> f64 {
        let (mut base, mut width) = (0.0, 1.0);
        let mut node = &self.nodes[self.root as usize];
        loop {
            let i = node.keys.partition_point(|entry| before(split_entry(entry).0));
            if node.is_leaf() {
                return base + width * i as f64 / node.keys.len().max(1) as f64;
            }
            width /= node.children.len() as f64;
            base += width * i as f64;
            node = &self.nodes[node.children[i] as usize];
        }
    }

    /// `before`: whether an entry (key and row id) lies before the place to begin at; `None`: begin at the edge.
    fn up<'s, B: Fn(&[u8]) -> bool>(
        &'s self,
        number: u32,
        before: Option<&B>,
        visit: &mut impl FnMut(&'s [u8], RowId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let node = &self.nodes[number as usize];
        let from = before.map_or(0, |before| node.keys.partition_point(before));
        if node.is_leaf() {
            for i in from..node.keys.len() {
                visit(node.keys.key(i), node.keys.id(i))?;
            }
        } else {
            self.up(node.children[from], before, visit)?;
            for &child in &node.children[from + 1..] {
                self.up(child, None::<&B>, visit)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn down<'s, B: Fn(&[u8]) -> bool>(
        &'s self,
        number: u32,
        before: Option<&B>,
        visit: &mut impl FnMut(&'s [u8], RowId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let node = &self.nodes[number as usize];
        let to = before.map_or(node.keys.len(), |before| node.keys.partition_point(before));
        if node.is_leaf() {
            for i in (0..to).rev() {
                visit(node.keys.key(i), node.keys.id(i))?;
            }
        } else {
            self.down(node.children[to], before, visit)?;
            for &child in node.children[..to].iter().rev() {
                self.down(child, None::<&B>, visit)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn insert_into(&mut self, number: u32, key: &[u8], id: RowId) -> Result<Split, ()> {
        let node = &self.nodes[number as usize];
        let i = node.keys.partition_point(|entry| compare_entry(entry, key, id) != Ordering::Greater);
        if node.is_leaf() {
            if i > 0 && compare_entry(node.keys.entry(i - 1), key, id) == Ordering::Equal {
                return Err(());
            }
            self.change(number, |node| node.keys.insert(i, key, id));
            return Ok(self.split_if_over(number, i));
        }
        let child = node.children[i];
        let Some((separator, upper)) = self.insert_into(child, key, id)? else { return Ok(None) };
        self.change(number, |node| {
            node.keys.insert_entry(i, &separator);
            if node.children.capacity() == node.children.len() {
                node.children.reserve_exact((node.children.len() / 4).max(4));
            }
            node.children.insert(i + 1, upper);
        });
        Ok(self.split_if_over(number, i))
    }

    /// `inserted`: where the newest entry stands.
    fn split_if_over(&mut self, number: u32, inserted: usize) -> Split {
        let node = &self.nodes[number as usize];
        if !node.is_over() {
            return None;
        }
        let count = node.keys.len();
        let at_edge = inserted == count - 1;
        let (separator, upper) = if node.is_leaf() {
            let at = if at_edge { count - 1 } else { count / 2 };
            let upper = self.change(number, |node| Node { keys: node.keys.split_off(at), children: Vec::new() });
            if at_edge {
                self.change(number, |node| node.keys.shrink());
            }
            (upper.keys.entry(0).to_vec(), upper)
        } else {
            // The separator at `at` moves up; the node keeps `at` separators and `at + 1` children.
            let at = if at_edge { count - 2 } else { count / 2 };
            self.change(number, |node| {
                let keys = node.keys.split_off(at + 1);
                let separator = node.keys.entry(at).to_vec();
                node.keys.remove(at);
                let children = node.children.split_off(at + 1);
                node.children.shrink_to_fit();
                (separator, Node { keys, children })
            })
        };
        Some((separator, self.new_node(upper)))
    }

    fn remove_from(&mut self, number: u32, key: &[u8], id: RowId) -> bool {
        let node = &self.nodes[number as usize];
        let i = node.keys.partition_point(|entry| compare_entry(entry, key, id) != Ordering::Greater);
        if node.is_leaf() {
            if i == 0 || compare_entry(node.keys.entry(i - 1), key, id) != Ordering::Equal {
                return false;
            }
            self.change(number, |node| node.keys.remove(i - 1));
            return true;
        }
        let child = node.children[i];
        if !self.remove_from(child, key, id) {
            return false;
        }
        if self.nodes[child as usize].keys.len() < SMALL {
            self.merge_child(number, i);
        }
        true
    }

    /// Merges child `i` with a neighbour where both are small enough, or drops it when it is an empty leaf.
    fn merge_child(&mut self, number: u32, i: usize) {
        let children = &self.nodes[number as usize].children;
        for left in [i.wrapping_sub(1), i] {
            let (Some(&a), Some(&b)) = (children.get(left), children.get(left.wrapping_add(1))) else { continue };
            let (lower, upper) = (&self.nodes[a as usize], &self.nodes[b as usize]);
            if lower.keys.len() + upper.keys.len() > MERGED
                || lower.keys.byte_len() + upper.keys.byte_len() > MAX_BYTES * 3 / 4
            {
                continue;
            }
            let separator = self.nodes[number as usize].keys.entry(left).to_vec();
            let upper = self.change(b, std::mem::take);
            self.change(a, |node| {
                if !node.is_leaf() {
                    node.keys.insert_entry(node.keys.len(), &separator);
                }
                node.keys.append(&upper.keys);
                node.children.extend_from_slice(&upper.children);
            });
            self.free.push(b);
            self.change(number, |node| {
                node.keys.remove(left);
                node.children.remove(left + 1);
            });
            return;
        }
    }

    /// Changes a node and keeps the count of bytes.
    fn change<R>(&mut self, number: u32, change: impl FnOnce(&mut Node) -> R) -> R {
        let node = &mut self.nodes[number as usize];
        let before = node.bytes();
        let result = change(node);
        let after = node.bytes();
        self.count(before, after);
        result
    }

    fn new_node(&mut self, node: Node) -> u32 {
        self.count(0, node.bytes());
        if let Some(number) = self.free.pop() {
            self.nodes[number as usize] = node;
            return number;
        }
        let before = self.nodes.capacity();
        if before == self.nodes.len() {
            self.nodes.reserve_exact((before / 4).max(1));
        }
        self.count((before * size_of::<Node>()) as u64, (self.nodes.capacity() * size_of::<Node>()) as u64);
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    fn drop_node(&mut self, number: u32) {
        self.change(number, |node| *node = Node::default());
        self.free.push(number);
    }

    fn count(&mut self, before: u64, after: u64) {
        if after > before {
            self.budget.add(after - before);
            self.bytes += after - before;
        } else if after < before {
            self.budget.subtract(before - after);
            self.bytes -= before - after;
        }
    }
}

impl Drop for OrderedIndex {
    fn drop(&mut self) {
        self.budget.subtract(self.bytes);
    }
}

#[cfg(test)]
mod tests;
