//! Promise: *no acknowledged write is lost, and none that was rolled back appears.*
//!
//! Every write of a band has a value of its own and the value that it found there under its lock, so the writes that took effect are a chain that ends with what is there now.
//! Whoever was told "committed" must be in it; whoever was told "rolled back" must not; each value is found by one successor at most, else one of two was lost.
use super::Verdict;
use crate::cluster::record::{Bands, Fate, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The values that a band has had, newest first, as its last value tells.
pub fn chain(record: &Bands, band: u32, last: Value) -> Result<Vec<Value>, String> {
    let mut chain = Vec::new();
    let mut value = last;
    while value != Value::NONE {
        let Some(write) = record.writes.get(&value).filter(|write| write.band == band) else {
            return Err(format!("band {band} has value {value:?}, which nobody wrote there"));
        };
        chain.push(value);
        if chain.len() > record.writes.len() {
            return Err(format!("band {band}: its writes found each other in a circle: {chain:?}"));
        }
        value = write.found;
    }
    Ok(chain)
}

/// `last`: what each band has at the end.
pub fn check(record: &Bands, last: &BTreeMap<u32, Value>) -> Verdict {
    for (band, value) in last {
        let chain: BTreeSet<Value> = chain(record, *band, *value)?.into_iter().collect();
        for (value, write) in record.writes.iter().filter(|(_, write)| write.band == *band) {
            match write.fate {
                Fate::Committed if !chain.contains(value) => {
                    return Err(format!(
                        "band {band}: {value:?} was acknowledged and is lost: {write:?}; there is {chain:?}"
                    ));
                }
                Fate::Aborted if chain.contains(value) => {
                    return Err(format!("band {band}: {value:?} was rolled back and took effect: {write:?}"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::record::tests::record;
    use Fate::{Aborted, Committed, Unknown};

    fn judge(writes: &[(u64, u64, Fate)], last: u64) -> String {
        check(&record(writes), &BTreeMap::from([(0, Value(last))])).err().unwrap_or_default()
    }

    #[test]
    fn sound_histories_pass() {
        assert_eq!(judge(&[], 0), "");
        assert_eq!(judge(&[(1, 0, Committed), (2, 1, Aborted), (3, 1, Unknown), (4, 1, Committed)], 4), "");
        assert_eq!(judge(&[(1, 0, Committed), (3, 1, Unknown), (4, 3, Committed)], 4), "");
    }

    #[test]
    fn losses_are_found() {
        assert!(judge(&[(1, 0, Committed)], 0).contains("acknowledged and is lost"));
        // 2 and 3 both built on 1: one of them went.
        assert!(judge(&[(1, 0, Committed), (2, 1, Committed), (3, 1, Committed)], 3).contains("lost"));
        assert!(judge(&[(1, 0, Aborted)], 1).contains("rolled back and took effect"));
        assert!(judge(&[(1, 0, Aborted), (2, 1, Committed)], 2).contains("rolled back"));
        assert!(judge(&[], 7).contains("nobody wrote"));
        assert!(judge(&[(1, 2, Committed), (2, 1, Committed)], 2).contains("circle"));
    }
}
