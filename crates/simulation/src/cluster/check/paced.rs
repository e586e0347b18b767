//! Promise, with durability `replicated`: *what a loss of all memory takes is bounded* (rule 36 of
//! docs/cluster-protocols.md). However long cuts have failed, and however long ago that began: of what one process has
//! acknowledged and the cluster has lost, the first and the last are not further apart than a commit may be without a
//! cut.
//!
//! [`super::cut`] asks how long before a failure something was acknowledged. Here nobody has to know when cuts began to
//! fail: a process that goes on acknowledging without a cut shows it by itself. Each process knows of its own commits,
//! and ends when the cluster goes back; so its losses are those of one failure.
use super::Verdict;
use super::acknowledged::chain;
use crate::cluster::record::{Bands, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// From this age on commits wait for a cut.
const LIMIT: Duration = Duration::from_secs(1);
/// A process that is paused between its look at the age and its answer is paused for no longer than its lease, or does
/// not answer.
const PAUSED: Duration = Duration::from_millis(350);

/// `last`: what each band has at the end.
pub fn check(record: &Bands, last: &BTreeMap<u32, Value>) -> Verdict {
    let mut lost: BTreeMap<u32, Vec<(Duration, Value)>> = BTreeMap::new();
    for (band, value) in last {
        let chain: BTreeSet<Value> = chain(record, *band, *value)?.into_iter().collect();
        let writes = record.writes.iter().filter(|(value, write)| write.band == *band && !chain.contains(value));
        for (value, write) in writes {
            if let Some(event) = write.acknowledged {
                lost.entry(write.by).or_default().push((record.time(event), *value));
            }
        }
    }
    for (process, mut lost) in lost {
        lost.sort_unstable();
        let (Some((first, one)), Some((end, other))) = (lost.first(), lost.last()) else { continue };
        if *end - *first > LIMIT + PAUSED {
            return Err(format!(
                "process {process} acknowledged {one:?} at {first:?} and {other:?} at {end:?}, and both are lost"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SimClock;
    use crate::cluster::record::Fate;

    /// Three writes of band 0, acknowledged at 1, 2 and 4 s by these processes.
    fn bands(by: [u32; 3]) -> Bands {
        let clock = SimClock::default();
        let mut bands = Bands::new(&clock);
        let mut found = Value::NONE;
        for (at, by) in [1, 2, 4].into_iter().zip(by) {
            let value = bands.begin(0, found, by);
            clock.advance_to(Duration::from_secs(at));
            bands.ended(value, Fate::Committed);
            found = value;
        }
        bands
    }

    #[test]
    fn losses_of_one_process_lie_close_together() {
        let judge = |by, last| check(&bands(by), &BTreeMap::from([(0, Value(last))]));
        assert_eq!(judge([1, 1, 1], 3), Ok(()), "nothing is lost");
        assert_eq!(judge([1, 1, 1], 2), Ok(()), "one is lost");
        assert!(judge([1, 1, 1], 1).unwrap_err().contains("process 1 acknowledged Value(2) at 2s"));
        assert_eq!(judge([1, 1, 2], 0), Ok(()), "each process counts for itself");
        assert!(judge([1, 2, 1], 0).is_err());
    }
}
