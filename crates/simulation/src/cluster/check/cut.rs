//! Promise, with durability `replicated`: *when all memory of a partition is lost the cluster goes back to a cut*: what is there is a transaction wholly or not at all, with everything that it rests on, and
//! of what was acknowledged, or shown to a reader, only the last moment before the loss is missing. As long as every partition keeps a living replica nothing is lost; then the strict checkers judge, not this one.
//!
//! When something was lost shows in the values: each write of a band has found the one before, and each list shows the order of its writers. What the last value does not rest on was lost, and must have been
//! acknowledged in a time that may be lost: not more than a bound before the failure, nor after the cluster had gone back. (That snapshots show transactions wholly, [`super::atomic`], and sums, unique keys, indexes and replicas are judged as ever.)
use super::Verdict;
use super::acknowledged::chain;
use super::lists::Lists;
use crate::cluster::record::{Bands, Fate, Value};
use crate::node::history::{Element, History, Op, TxnLog};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What was acknowledged while the cluster went back: by a process that had not heard of it, until its lease ended.
const LEASE: Duration = Duration::from_millis(350);
/// Between the draw of a cut and the moment when it is seen to be complete, at most.
const CUTTING: Duration = Duration::from_millis(4100);

/// The cluster has gone back to a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Back {
    /// When the cut was seen to be complete.
    pub complete: Duration,
    /// When something failed for the first time after the cut before it was complete.
    pub failed: Duration,
    /// When the cluster went back.
    pub at: Duration,
}

/// What may be lost.
#[derive(Clone, Debug, Default)]
pub struct Loss {
    pub backs: Vec<Back>,
    /// So long before the first failure, if the scenario promises that.
    pub within: Option<Duration>,
}

impl Loss {
    pub fn may_lose(&self, acknowledged: Duration) -> bool {
        self.backs.iter().any(|back| {
            let recent = self.within.is_none_or(|within| acknowledged + within >= back.failed);
            recent && acknowledged + CUTTING >= back.complete && acknowledged <= back.at + LEASE
        })
    }
}

/// `last`: what each band has at the end.
pub fn check_bands(record: &Bands, last: &BTreeMap<u32, Value>, loss: &Loss) -> Verdict {
    for (band, value) in last {
        let chain: BTreeSet<Value> = chain(record, *band, *value)?.into_iter().collect();
        for (value, write) in record.writes.iter().filter(|(_, write)| write.band == *band) {
            let there = chain.contains(value);
            if there && write.fate == Fate::Aborted {
                return Err(format!("band {band}: {value:?} was rolled back and took effect: {write:?}"));
            }
            if let Some(event) = write.acknowledged.filter(|_| !there) {
                let at = record.time(event);
                if !loss.may_lose(at) {
                    return Err(format!("band {band}: {value:?} was acknowledged at {at:?} and is lost: {loss:?}"));
                }
            }
        }
        for read in &record.reads {
            let Some(event) = read.answered.filter(|event| *event != u64::MAX) else { continue };
            let lost = |value: &&Value| **value != Value::NONE && !chain.contains(value);
            if let Some(value) = read.seen.get(band).into_iter().flatten().find(lost) {
                let at = record.time(event);
                if !loss.may_lose(at) {
                    return Err(format!(
                        "{}: band {band} was seen to have {value:?} at {at:?}, which is lost: {loss:?}",
                        read.how
                    ));
                }
            }
        }
    }
    Ok(())
}

/// What is in the lists rests on what is in the lists.
pub fn check_lists(history: &History, lists: &Lists, loss: &Loss) -> Verdict {
    let there: BTreeSet<Element> = lists.values().flatten().copied().collect();
    for txn in &history.txns {
        let appends = txn.ops.iter().filter_map(|op| match op {
            Op::Append(_, element) => Some(there.contains(element)),
            Op::Read { .. } => None,
        });
        let (present, missing): (Vec<bool>, Vec<bool>) = appends.partition(|present| *present);
        if !present.is_empty() && !missing.is_empty() {
            return Err(format!("half of a transaction is there: {txn:?}"));
        }
        if !present.is_empty() {
            check_rests(txn, lists)?;
        } else if let Some(event) = txn.acknowledged.filter(|_| !missing.is_empty()) {
            let at = history.time(event);
            if !loss.may_lose(at) {
                return Err(format!("acknowledged at {at:?} and lost: {txn:?}, {loss:?}"));
            }
        }
    }
    Ok(())
}

/// What a transaction that is there has read, up to its own appends, is there and in this order.
fn check_rests(txn: &TxnLog, lists: &Lists) -> Verdict {
    let mut own: BTreeMap<i64, Vec<Element>> = BTreeMap::new();
    for op in &txn.ops {
        match op {
            Op::Append(key, element) => own.entry(*key).or_default().push(*element),
            Op::Read { key, list, .. } => {
                let own = own.get(key).map(Vec::as_slice).unwrap_or_default();
                let others = list.strip_suffix(own).unwrap_or(list);
                let now = lists.get(key).map(Vec::as_slice).unwrap_or_default();
                if !now.starts_with(others) {
                    return Err(format!(
                        "a transaction is there that rests on what is not: list {key} is {now:?}, and it read {list:?}: {txn:?}"
                    ));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SimClock;
    use rauk_node::Isolation;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn loss(within: Option<Duration>) -> Loss {
        Loss { backs: vec![Back { complete: ms(9_900), failed: ms(10_000), at: ms(12_000) }], within }
    }

    #[test]
    fn only_the_last_moment_may_be_lost() {
        let loss = loss(Some(ms(1_000)));
        assert!(!loss.may_lose(ms(8_900)) && loss.may_lose(ms(9_100)));
        assert!(loss.may_lose(ms(12_200)) && !loss.may_lose(ms(12_500)));
        assert!(!Loss::default().may_lose(ms(10_000)));
    }

    /// Two writes of band 0, acknowledged at 5 s and 9.5 s, and a read of the second.
    fn bands() -> Bands {
        let clock = SimClock::default();
        let mut bands = Bands::new(&clock);
        let mut found = Value::NONE;
        for at in [5_000, 9_500] {
            let value = bands.begin(0, found, 1);
            clock.advance_to(ms(at));
            bands.ended(value, Fate::Committed);
            found = value;
        }
        bands.answered(0, BTreeMap::from([(0, vec![found; 3])]), "a read".to_string());
        bands
    }

    #[test]
    fn losses_of_bands_are_judged_by_their_time() {
        let judge = |last: u64, loss: &Loss| check_bands(&bands(), &BTreeMap::from([(0, Value(last))]), loss);
        assert_eq!(judge(2, &Loss::default()), Ok(()));
        assert_eq!(judge(1, &loss(Some(ms(1_000)))), Ok(()));
        assert!(judge(1, &loss(Some(ms(300)))).unwrap_err().contains("is lost"));
        assert!(judge(1, &Loss::default()).is_err());
        assert!(judge(0, &loss(Some(ms(1_000)))).unwrap_err().contains("acknowledged at 5s"));
    }

    #[test]
    fn lists_rest_on_lists() {
        let history = |fates: [Fate; 2]| {
            let mut history = History::default();
            for (fate, ops) in fates.into_iter().zip([
                vec![Op::Append(1, 7), Op::Append(2, 8)],
                vec![Op::Read { key: 1, list: vec![7], answered: true }, Op::Append(3, 9)],
            ]) {
                let txn = history.begin(Isolation::ReadCommitted, true);
                history.txns[txn].ops = ops;
                history.txns[txn].fate = fate;
            }
            history
        };
        let both = history([Fate::Unknown, Fate::Unknown]);
        let lists = |has: &[(i64, u32)]| Lists::from_iter(has.iter().map(|(key, element)| (*key, vec![*element])));
        let none = Loss::default();
        assert_eq!(check_lists(&both, &lists(&[(1, 7), (2, 8), (3, 9)]), &none), Ok(()));
        assert_eq!(check_lists(&both, &lists(&[(1, 7), (2, 8)]), &none), Ok(()));
        assert!(check_lists(&both, &lists(&[(1, 7)]), &none).unwrap_err().contains("half"));
        assert!(check_lists(&both, &lists(&[(3, 9)]), &none).unwrap_err().contains("rests on what is not"));
        let mut told = history([Fate::Unknown, Fate::Unknown]);
        told.acknowledge(1);
        assert!(check_lists(&told, &lists(&[]), &none).unwrap_err().contains("acknowledged"));
    }
}
