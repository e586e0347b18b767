//! Promise: *what an answered read has seen is not taken back*, whatever dies afterwards. (InnoDB's readers can see rows vanish; here no answer leaves before what it rests on is safe.)
//!
//! Every value in an answered read is in the chain of what the band has in the end.
use super::Verdict;
use super::acknowledged::chain;
use crate::cluster::record::{Bands, Value};
use std::collections::{BTreeMap, BTreeSet};

pub fn check(record: &Bands, last: &BTreeMap<u32, Value>) -> Verdict {
    for (band, value) in last {
        let chain: BTreeSet<Value> = chain(record, *band, *value)?.into_iter().collect();
        for read in record.reads.iter().filter(|read| read.answered.is_some()) {
            for seen in read.seen.get(band).into_iter().flatten() {
                if *seen != Value::NONE && !chain.contains(seen) {
                    return Err(format!(
                        "{}: band {band} was seen to have {seen:?}, which was taken back; it has had {chain:?}",
                        read.how
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
    use crate::cluster::record::Fate::{Committed, Unknown};
    use crate::cluster::record::tests::{read, record};

    #[test]
    fn answers_that_were_taken_back_are_found() {
        let mut record = record(&[(1, 0, Committed), (2, 1, Unknown), (3, 1, Committed)]);
        let last = BTreeMap::from([(0, Value(3))]);
        record.reads.push(read(&[&[1, 1, 1]]));
        assert_eq!(check(&record, &last), Ok(()));
        record.reads.push(read(&[&[2, 2, 2]]));
        assert!(check(&record, &last).unwrap_err().contains("taken back"));
        // Nobody was told.
        record.reads[1].answered = None;
        assert_eq!(check(&record, &last), Ok(()));
    }
}
