//! Promise: *a transaction takes effect wholly or not at all, in every snapshot and over all partitions.*
//!
//! All slots of a band are always written together, with one value; they lie in different partitions. So in whatever is read in one snapshot, or under locks, they are equal.
//! Only what was answered counts: a transaction whose locks have died with a primary goes on reading until it is told, and cannot commit.
//! (That sums over accounts hold in every snapshot is checked by the bank itself, at each audit.)
use super::Verdict;
use crate::cluster::record::{Bands, Read, SLOTS, Value};

pub fn check(record: &Bands) -> Verdict {
    record.reads.iter().filter(|read| read.answered.is_some()).try_for_each(check_read)
}

pub fn check_read(read: &Read) -> Verdict {
    for (band, slots) in &read.seen {
        let torn = slots.iter().any(|value| *value != slots[0]);
        let missing = slots.len() != SLOTS && slots.iter().any(|value| *value != Value::NONE);
        if torn || missing {
            return Err(format!("{}: band {band} shows half of a transaction: {slots:?}", read.how));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::record::tests::read;

    #[test]
    fn halves_are_found() {
        assert_eq!(check_read(&read(&[&[1, 1, 1], &[0, 0, 0]])), Ok(()));
        assert!(check_read(&read(&[&[1, 1, 1], &[2, 2, 1]])).unwrap_err().contains("band 1 shows half"));
        assert!(check_read(&read(&[&[1, 1]])).is_err());
        let mut record = Bands::default();
        record.reads.push(read(&[&[3, 0, 0]]));
        assert!(check(&record).is_err());
    }
}
