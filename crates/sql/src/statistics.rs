//! How many different values the columns of a table's indexes have, from a sample of its rows.
//!
//! For each index and each number of its leading columns the sample counts the different values, and those that it saw
//! once. From them the number in the whole table is estimated (Haas and Stokes' Duj1): where most values of the sample
//! came once, the table has many more; where each came several times, it has these. Columns count whole, where an index
//! has a prefix of them. NULLs are one value.
//!
//! What is kept is relative to the rows at that time: a table that has grown since has as many rows more a value, or, if
//! nearly every row had a value of its own, as many values more.

use rauk_types::IndexId;

/// Part of the rows with a value of their own, from which on the column is taken for one that goes on so.
const NEARLY_UNIQUE: f64 = 0.5;

/// What is known of a table's values.
#[derive(Clone, Debug, PartialEq)]
pub struct TableStatistics {
    /// Rows when they were counted.
    pub rows: u64,
    /// Of each index: the different values of its first column, its first two, and so on.
    pub indexes: Vec<(IndexId, Vec<f64>)>,
}

impl TableStatistics {
    /// Different values of the first `parts` columns of an index in a table of `rows` rows by now.
    pub fn distinct(&self, index: IndexId, parts: usize, rows: u64) -> Option<f64> {
        let (_, counts) = self.indexes.iter().find(|(id, _)| *id == index)?;
        let then = *counts.get(parts.checked_sub(1)?)?;
        let (before, now) = (self.rows.max(1) as f64, rows.max(1) as f64);
        let distinct = if then >= before * NEARLY_UNIQUE { then / before * now } else { then };
        Some(distinct.clamp(1.0, now))
    }

    /// Whether a table of `rows` rows has changed so much that it should be looked at again: by a tenth.
    pub fn is_old(&self, rows: u64) -> bool {
        rows.abs_diff(self.rows) > self.rows / 10 + 100
    }
}

/// The different values in a whole table of `rows` rows, of which a sample of `sampled` has `distinct`, and `once` of these once.
pub(crate) fn estimate(distinct: u64, once: u64, sampled: u64, rows: u64) -> f64 {
    if sampled == 0 {
        return 0.0;
    }
    let (d, f1, n, all) = (distinct as f64, once as f64, sampled as f64, rows.max(sampled) as f64);
    (n * d / (n - f1 + f1 * n / all).max(1.0)).clamp(d, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_table_is_counted_and_a_sample_is_scaled() {
        assert_eq!(estimate(7, 2, 100, 100), 7.0);
        // Each value of the sample came once: each row has its own.
        assert_eq!(estimate(1000, 1000, 1000, 100_000), 100_000.0);
        // Each came often: there are no others.
        assert_eq!(estimate(10, 0, 1000, 100_000), 10.0);
        assert_eq!(estimate(0, 0, 0, 0), 0.0);
        // 1000 values in 100 000 rows: a sample of 1000 rows sees 632 of them, 368 once.
        let got = estimate(632, 368, 1000, 100_000);
        assert!((600.0..2000.0).contains(&got), "{got}");
    }

    #[test]
    fn a_table_that_grows_keeps_its_shape() {
        let of = TableStatistics { rows: 1000, indexes: vec![(IndexId(1), vec![10.0, 900.0])] };
        assert_eq!(of.distinct(IndexId(1), 1, 4000), Some(10.0));
        assert_eq!(of.distinct(IndexId(1), 2, 4000), Some(3600.0));
        assert_eq!(of.distinct(IndexId(1), 3, 4000), None);
        assert_eq!(of.distinct(IndexId(2), 1, 4000), None);
        assert_eq!(of.distinct(IndexId(1), 2, 0), Some(1.0));
        assert!(!of.is_old(1100) && of.is_old(1300) && of.is_old(500));
    }
}
