//! Locks on names: what GET_LOCK takes. A name has no row; it is locked exclusively, by the same queues as rows.
//!
//! Each name in use has a number, and its lock is that of the row with this number in [`NAMES`], a table that is not
//! there: so waits, the order of the queue, grants and the end of a transaction are those of row locks
//! ([`super::locks`]). Beside the number stands who asked, with an *owner* that the caller chose (a connection's id), so
//! that [`Partition::name_owner`] can tell whose the lock is.
//!
//! Names that nobody locks any more are taken out when there are twice as many as after the last time: an entry costs no
//! hook at the end of a transaction.

use super::locks::{self, Mode};
use super::side::RowKey;
use super::{Partition, Stop, WaitPolicy};
use crate::row_store::RowId;
use crate::status::TxnRef;
use hashbrown::HashMap;
use rauk_types::{TableId, TxnId};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// The table to which names belong. No definition has this number.
pub const NAMES: TableId = TableId(u32::MAX);

/// Fewer names than this are not looked through for unused ones.
const LEAST_SWEEP: usize = 64;

struct Name {
    number: u32,
    /// Those that have asked for it, with their owners. May hold some that have gone.
    callers: SmallVec<[(TxnId, u64); 1]>,
}

#[derive(Default)]
pub(super) struct NameTable {
    names: HashMap<Box<[u8]>, Name, FxBuildHasher>,
    /// The next number that was never given.
    next: u32,
    /// Numbers of names that have gone.
    spare: Vec<u32>,
    sweep_at: usize,
    /// What keys and callers hold on the heap.
    heap: usize,
}

fn row(number: u32) -> RowKey {
    RowKey::new(NAMES, RowId(number))
}

fn heap_bytes(key: &[u8], name: &Name) -> usize {
    let spilled = if name.callers.spilled() { name.callers.capacity() * size_of::<(TxnId, u64)>() } else { 0 };
    key.len() + spilled
}

impl NameTable {
    pub fn bytes(&self) -> usize {
        self.names.allocation_size() + self.heap + self.spare.capacity() * size_of::<u32>()
    }

    fn number(&self, key: &[u8]) -> Option<u32> {
        self.names.get(key).map(|name| name.number)
    }

    /// Notes who asks, and gives the name's number. `is_used` tells whether a lock is held or waited for.
    fn enter(&mut self, key: &[u8], txn: TxnId, owner: u64, is_used: impl Fn(u32) -> bool) -> u32 {
        if self.names.len() >= self.sweep_at.max(LEAST_SWEEP) && !self.names.contains_key(key) {
            self.sweep(&is_used);
        }
        if !self.names.contains_key(key) {
            let number = self.spare.pop().unwrap_or_else(|| {
                self.next += 1;
                self.next
            });
            self.heap += key.len();
            self.names.insert(key.into(), Name { number, callers: SmallVec::new() });
        }
        let name = self.names.get_mut(key).expect("just made");
        let before = heap_bytes(key, name);
        if !is_used(name.number) {
            name.callers.clear();
        }
        match name.callers.iter_mut().find(|(caller, _)| *caller == txn) {
            Some(caller) => caller.1 = owner,
            None => name.callers.push((txn, owner)),
        }
        self.heap = self.heap + heap_bytes(key, name) - before;
        name.number
    }

    /// Takes those out that have neither the lock nor wait for it.
    fn retain_callers(&mut self, key: &[u8], stays: impl Fn(TxnId) -> bool) {
        if let Some(name) = self.names.get_mut(key) {
            name.callers.retain(|(caller, _)| stays(*caller));
        }
    }

    fn sweep(&mut self, is_used: &impl Fn(u32) -> bool) {
        let (spare, heap) = (&mut self.spare, &mut self.heap);
        self.names.retain(|key, name| {
            let used = is_used(name.number);
            if !used {
                *heap -= heap_bytes(key, name);
                spare.push(name.number);
            }
            used
        });
        // In an order that does not depend on the map.
        self.spare.sort_unstable_by(|a, b| b.cmp(a));
        self.sweep_at = self.names.len() * 2;
    }

    pub fn validate(&self) {
        let heap: usize = self.names.iter().map(|(key, name)| heap_bytes(key, name)).sum();
        assert_eq!(heap, self.heap, "bytes of names");
    }
}

impl Partition {
    /// Locks a name for the transaction, which may have it already. `wait`: else [`Stop::WouldWait`] if another has it.
    pub fn take_name(&mut self, txn: &TxnRef, name: &[u8], owner: u64, wait: WaitPolicy) -> Result<(), Stop> {
        let locks = &self.locks;
        let number = self.names.enter(name, txn.id, owner, |number| locks.is_used(row(number)));
        let taken = locks::take(&mut self.locks, &mut self.txns, txn, row(number), Mode::Exclusive, wait, None);
        let locks = &self.locks;
        self.names.retain_callers(name, |caller| locks.is_involved(row(number), caller));
        self.settle();
        taken.map(drop)
    }

    /// Gives one name back. Tolerates that the transaction has not got it.
    pub fn give_name(&mut self, txn: TxnId, name: &[u8]) {
        let Some(key) = self.names.number(name).map(row) else { return };
        if self.locks.held(key, txn).is_some() {
            self.locks.restore(key, txn, None);
            self.txns.unlist(txn, key);
        }
        self.settle();
    }

    /// Who has the name.
    pub fn name_owner(&self, name: &[u8]) -> Option<u64> {
        let name = self.names.names.get(name)?;
        let holder = |(caller, _): &&(TxnId, u64)| self.locks.held(row(name.number), *caller).is_some();
        name.callers.iter().find(holder).map(|(_, owner)| *owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::MemoryBudget;
    use rauk_types::PartitionId;
    use std::sync::Arc;

    fn partition() -> Partition {
        Partition::new(PartitionId(0), Arc::new(MemoryBudget::new(1 << 20)))
    }

    #[test]
    fn a_name_has_one_owner_at_a_time() {
        let mut p = partition();
        let [a, b] = [1, 2].map(|id| TxnRef::new(TxnId(id)));
        assert_eq!(p.name_owner(b"x"), None);
        assert_eq!(p.take_name(&a, b"x", 10, WaitPolicy::Wait), Ok(()));
        assert_eq!(p.take_name(&a, b"x", 10, WaitPolicy::Wait), Ok(()));
        assert_eq!(p.take_name(&b, b"x", 20, WaitPolicy::NoWait), Err(Stop::WouldWait));
        assert_eq!(p.take_name(&b, b"y", 20, WaitPolicy::NoWait), Ok(()));
        assert_eq!(p.take_name(&b, b"x", 20, WaitPolicy::Wait), Err(Stop::Wait(vec![a.id])));
        assert_eq!((p.name_owner(b"x"), p.name_owner(b"y")), (Some(10), Some(20)));
        p.validate();
        p.give_name(b.id, b"x");
        p.give_name(a.id, b"x");
        assert_eq!(p.take_granted(), [b.id]);
        assert_eq!(p.name_owner(b"x"), Some(20));
        assert_eq!(p.take_name(&b, b"x", 20, WaitPolicy::Wait), Ok(()));
        p.validate();
        p.abort(b.id);
        assert_eq!((p.name_owner(b"x"), p.name_owner(b"y")), (None, None));
        p.validate();
    }

    #[test]
    fn one_that_gives_up_waiting_leaves_nothing() {
        let mut p = partition();
        let [a, b] = [1, 2].map(|id| TxnRef::new(TxnId(id)));
        assert_eq!(p.take_name(&a, b"x", 10, WaitPolicy::Wait), Ok(()));
        assert_eq!(p.take_name(&b, b"x", 20, WaitPolicy::Wait), Err(Stop::Wait(vec![a.id])));
        p.cancel_wait(b.id);
        p.give_name(a.id, b"x");
        assert_eq!(p.name_owner(b"x"), None);
        assert!(p.open_transactions().is_empty());
        p.validate();
    }

    #[test]
    fn names_that_have_gone_take_no_room() {
        let mut p = partition();
        let keep = TxnRef::new(TxnId(1));
        assert_eq!(p.take_name(&keep, b"kept", 1, WaitPolicy::Wait), Ok(()));
        for i in 0..10_000u64 {
            let txn = TxnRef::new(TxnId(2 + i));
            assert_eq!(p.take_name(&txn, format!("n{i}").as_bytes(), 2, WaitPolicy::Wait), Ok(()));
            p.abort(txn.id);
        }
        p.validate();
        assert!(p.names.names.len() <= LEAST_SWEEP + 1, "{}", p.names.names.len());
        assert_eq!(p.name_owner(b"kept"), Some(1));
    }
}
