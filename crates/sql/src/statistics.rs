//! What is known of a table's values, from a sample of its rows: how many different ones there are, and how they are spread.
//!
//! For each index and each number of its leading columns the sample counts the different values, and those that it saw
//! once. From them the number in the whole table is estimated (Haas and Stokes' Duj1): where most values of the sample
//! came once, the table has many more; where each came several times, it has these. Columns count whole, where an index
//! has a prefix of them. NULLs are one value. The same is counted for each single column, from fewer rows, for conditions that no
//! index serves.
//!
//! Of a column of numbers, dates or times there are the bounds of parts of equally many rows besides: they say which part of
//! the rows lies before a value.
//!
//! What is kept is relative to the rows at that time: a table that has grown since has as many rows more a value, or, if
//! nearly every row had a value of its own, as many values more.

use crate::histogram::{Histogram, Spot};
use rauk_types::{ColumnId, IndexId, TableSchema};
use std::sync::Arc;

/// Part of the rows with a value of their own, from which on the column is taken for one that goes on so.
const NEARLY_UNIQUE: f64 = 0.5;

/// What is known of a table's values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableStatistics {
    /// Rows when they were counted.
    pub rows: u64,
    /// Of each index: the different values of its first column, its first two, and so on.
    pub indexes: Vec<(IndexId, Vec<f64>)>,
    /// Of single columns, those of large values left out.
    pub columns: Vec<(ColumnId, ColumnStatistics)>,
    /// By request; they stay when the rest is counted again.
    pub histograms: Vec<Arc<Histogram>>,
}

/// A bound of a range, and whether it belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    pub spot: Spot,
    pub inclusive: bool,
}

/// What is known of a column's values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStatistics {
    /// Different values; NULL is one.
    pub distinct: f64,
    /// The part of the rows with NULL.
    pub nulls: f64,
    /// Bounds of parts of equally many rows, by [`position`]; empty: none are known.
    pub bounds: Vec<f64>,
}

/// Parts of a column's rows between whose bounds values are thought to be spread evenly.
const PARTS: usize = 32;

impl TableStatistics {
    /// Different values of the first `parts` columns of an index in a table of `rows` rows by now.
    pub fn distinct(&self, index: IndexId, parts: usize, rows: u64) -> Option<f64> {
        let (_, counts) = self.indexes.iter().find(|(id, _)| *id == index)?;
        Some(self.grown(*counts.get(parts.checked_sub(1)?)?, rows))
    }

    /// Of so many different values: how many there are in a table of `rows` rows by now.
    fn grown(&self, then: f64, rows: u64) -> f64 {
        let (before, now) = (self.rows.max(1) as f64, rows.max(1) as f64);
        let distinct = if then >= before * NEARLY_UNIQUE { then / before * now } else { then };
        distinct.clamp(1.0, now)
    }

    fn column(&self, column: ColumnId) -> Option<&ColumnStatistics> {
        self.columns.iter().find(|(id, _)| *id == column).map(|(_, of)| of)
    }

    /// The histogram of a column, if it was made for the column as it is.
    fn histogram(&self, schema: &TableSchema, column: usize) -> Option<&Histogram> {
        let column = schema.columns.get(column)?;
        self.histograms.iter().find(|histogram| histogram.is_of(column)).map(|found| &**found)
    }

    /// Whether the spread of a column's values is known.
    pub(crate) fn knows_spread(&self, schema: &TableSchema, column: usize) -> bool {
        let spread = || self.column(schema.columns.get(column)?.id).filter(|of| !of.bounds.is_empty());
        self.histogram(schema, column).is_some() || spread().is_some()
    }

    /// Whether a column has a histogram: rows of a single value are known then.
    pub(crate) fn has_histogram(&self, schema: &TableSchema, column: usize) -> bool {
        self.histogram(schema, column).is_some()
    }

    /// The part of the rows that has one value of a column, in a table of `rows` rows by now; of `value`, where it is known.
    pub(crate) fn part_of_value(
        &self,
        schema: &TableSchema,
        column: usize,
        value: Option<&Spot>,
        rows: u64,
    ) -> Option<f64> {
        // What a sample has not seen is rare: never nothing.
        let least = 1.0 / rows.max(1) as f64;
        if let Some(histogram) = self.histogram(schema, column) {
            return Some(match value {
                Some(value) => histogram.part_of(value).max(least),
                None => (1.0 - histogram.nulls) / histogram.distinct().max(1.0),
            });
        }
        Some(1.0 / self.grown(self.column(schema.columns.get(column)?.id)?.distinct, rows))
    }

    /// The part of the rows with NULL in a column.
    pub(crate) fn part_of_nulls(&self, schema: &TableSchema, column: usize) -> Option<f64> {
        match self.histogram(schema, column) {
            Some(histogram) => Some(histogram.nulls),
            None => Some(self.column(schema.columns.get(column)?.id)?.nulls),
        }
    }

    /// The part of the rows with a value between two bounds.
    pub(crate) fn part_between(
        &self,
        schema: &TableSchema,
        column: usize,
        low: Option<&Bound>,
        high: Option<&Bound>,
    ) -> Option<f64> {
        if let Some(histogram) = self.histogram(schema, column) {
            let from = low.map_or(0.0, |low| histogram.part_below(&low.spot, !low.inclusive));
            let to = high.map_or(1.0 - histogram.nulls, |high| histogram.part_below(&high.spot, high.inclusive));
            return Some((to - from).clamp(1.0 / self.rows.max(1) as f64, 1.0));
        }
        let of = self.column(schema.columns.get(column)?.id)?;
        if of.bounds.is_empty() {
            return None;
        }
        let below = |bound: Option<&Bound>, open: f64| match bound {
            None => Some(open),
            Some(Bound { spot: Spot::At(at), .. }) => Some(of.part_below(*at)),
            Some(_) => None,
        };
        let (from, to) = (below(low, 0.0)?, below(high, 1.0)?);
        // A sample says little of what is rare: never nothing.
        Some(((to - from) * (1.0 - of.nulls)).max(1.0 / of.distinct.max(1.0)).min(1.0))
    }

    /// Whether a table of `rows` rows has changed so much that it should be looked at again: by a tenth.
    pub fn is_old(&self, rows: u64) -> bool {
        rows.abs_diff(self.rows) > self.rows / 10 + 100
    }
}

impl ColumnStatistics {
    /// The part of the values that lies below one.
    fn part_below(&self, value: f64) -> f64 {
        let at = self.bounds.partition_point(|bound| *bound < value);
        let parts = (self.bounds.len() - 1).max(1) as f64;
        match (at.checked_sub(1).map(|at| self.bounds[at]), self.bounds.get(at)) {
            (None, _) => 0.0,
            (_, None) => 1.0,
            // `below` < `value` <= `above`.
            (Some(below), Some(above)) => {
                let within = (value - below) / (above - below);
                // Doubles may lie so far apart that their distance is infinite.
                ((at - 1) as f64 + if within.is_finite() { within } else { 0.5 }) / parts
            }
        }
    }
}

/// The bounds of parts of equally many values.
pub(crate) fn bounds(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => vec![],
        count => (0..=PARTS).map(|part| values[part * (count - 1) / PARTS]).collect(),
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
        let indexes = vec![(IndexId(1), vec![10.0, 900.0])];
        let of = TableStatistics { rows: 1000, indexes, columns: vec![], histograms: vec![] };
        assert_eq!(of.distinct(IndexId(1), 1, 4000), Some(10.0));
        assert_eq!(of.distinct(IndexId(1), 2, 4000), Some(3600.0));
        assert_eq!(of.distinct(IndexId(1), 3, 4000), None);
        assert_eq!(of.distinct(IndexId(2), 1, 4000), None);
        assert_eq!(of.distinct(IndexId(1), 2, 0), Some(1.0));
        assert!(!of.is_old(1100) && of.is_old(1300) && of.is_old(500));
    }

    #[test]
    fn parts_of_a_column_follow_its_values() {
        // Half of the values are 0, the others 1 to 1000.
        let values = (0..1000).flat_map(|n| [0.0, f64::from(n + 1)]).collect();
        let column = ColumnStatistics { distinct: 1001.0, nulls: 0.5, bounds: bounds(values) };
        let near = |got: f64, expected: f64| assert!((got - expected).abs() < 0.02, "{got} for {expected}");
        near(column.part_below(1.0), 0.5);
        near(column.part_below(501.0), 0.75);
        near(column.part_below(-1.0), 0.0);
        near(column.part_below(5000.0), 1.0);
        assert!(bounds(vec![]).is_empty() && bounds(vec![7.0]).iter().all(|bound| *bound == 7.0));
        // One value for all rows.
        let column = ColumnStatistics { distinct: 1.0, nulls: 0.0, bounds: bounds(vec![7.0; 9]) };
        assert_eq!((column.part_below(7.0), column.part_below(7.5), column.part_below(6.0)), (0.0, 1.0, 0.0));
    }
}
