//! Promise: *who begins after an acknowledgement sees what was acknowledged*, on every node and whatever has failed over since; and who begins after an answered read sees no less than that.
//!
//! A read is held against all writes that were acknowledged, and all reads that were answered, before it began: each of these values must be in what the read's value grew out of.
use super::Verdict;
use super::acknowledged::chain;
use crate::cluster::record::{Bands, Value};
use std::collections::{BTreeMap, BTreeSet};

pub fn check(record: &Bands, last: &BTreeMap<u32, Value>) -> Verdict {
    for (band, value) in last {
        let mut ages = BTreeMap::new();
        for (age, value) in chain(record, *band, *value)?.into_iter().rev().enumerate() {
            ages.insert(value, age + 1);
        }
        // (event from which on it must be seen, age)
        let mut floors: BTreeSet<(u64, usize)> = BTreeSet::new();
        for (value, write) in record.writes.iter().filter(|(_, write)| write.band == *band) {
            if let (Some(at), Some(age)) = (write.acknowledged, ages.get(value)) {
                floors.insert((at, *age));
            }
        }
        for read in &record.reads {
            if let (Some(at), Some(seen)) = (read.answered, read.seen.get(band).and_then(|slots| slots.first()))
                && let Some(age) = ages.get(seen)
            {
                floors.insert((at, *age));
            }
        }
        for read in record.reads.iter().filter(|read| read.answered.is_some()) {
            let Some(seen) = read.seen.get(band).and_then(|slots| slots.first()) else { continue };
            // Others are judged by `answered`, or `cut`.
            let age = if *seen == Value::NONE { 0 } else { *ages.get(seen).unwrap_or(&usize::MAX) };
            let floor = floors.range(..(read.began, 0)).map(|(_, age)| *age).max().unwrap_or(0);
            if age < floor {
                return Err(format!(
                    "{}: band {band} shows {seen:?}, its write number {age}, though number {floor} was known before the read began",
                    read.how
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::record::Fate::Committed;
    use crate::cluster::record::tests::{read, record};

    #[test]
    fn stale_reads_are_found() {
        let mut record = record(&[(1, 0, Committed), (2, 1, Committed)]);
        let last = BTreeMap::from([(0, Value(2))]);
        // Both are acknowledged at events 10 and 20.
        record.writes.get_mut(&Value(1)).unwrap().acknowledged = Some(10);
        record.writes.get_mut(&Value(2)).unwrap().acknowledged = Some(20);
        let mut at = |began, answered, value| {
            let mut read = read(&[&[value, value, value]]);
            (read.began, read.answered) = (began, Some(answered));
            record.reads.push(read);
            let verdict = check(&record, &last);
            record.reads.pop();
            verdict
        };
        assert_eq!(at(5, 6, 0), Ok(()));
        assert_eq!(at(5, 30, 0), Ok(()));
        assert_eq!(at(15, 30, 1), Ok(()));
        assert_eq!(at(15, 16, 2), Ok(()));
        assert!(at(25, 30, 1).is_err());
        assert!(at(11, 12, 0).is_err());
        // A read that has seen 2 before its acknowledgement binds those after it.
        let mut early = read(&[&[2, 2, 2]]);
        (early.began, early.answered) = (12, Some(13));
        record.reads.push(early);
        let mut late = read(&[&[1, 1, 1]]);
        (late.began, late.answered) = (14, Some(15));
        record.reads.push(late);
        assert!(check(&record, &last).is_err());
    }
}
