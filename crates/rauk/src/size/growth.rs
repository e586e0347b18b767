//! What a table of many rows takes, by what one of few rows takes.
//!
//! Memory does not grow evenly with rows. Three parts are told apart:
//!
//! - **Steps.** The hash index and the row directory of each partition grow by a half and by a quarter when they are
//!   full, in all partitions at nearly the same number of rows. Between two steps the hash index has 6.7 to 10 bytes
//!   a row: 5 % of a small row. So [`fixed`] computes them, by the rules of the kernel's `hash_index` and
//!   `row_store`.
//! - **Waves.** Nodes of an ordered index that is filled at random split at nearly the same time, too, so their bytes
//!   a row go up and down with each doubling of the rows. The mean over one doubling is what the waves tend to.
//! - **Lines.** Pages of rows: each partition has one page of each size of rows that is not full yet, and beyond
//!   these memory grows with the rows. In many partitions the steps from page to page hide the slope, so it is
//!   measured in one.
//!
//! A table that is measured with as many rows as it will have is not predicted at all. Left out: how rows that are
//! deleted and updated leave holes, and old versions; the margin is for those.

/// Sub-tables of a hash index, and the entries at which one becomes so many.
const SUB_TABLES: f64 = 256.0;
const SPLIT_AT: f64 = 4096.0;
/// Of a sub-table that is empty.
const SUB_TABLE_BYTES: f64 = 24.0;
const BUCKET_BYTES: f64 = 64.0;
/// Entries of a bucket at which its sub-table grows: four fifths of 12.
const FULL: f64 = 9.6;

/// Points at which the spread of rows over partitions is looked at, in standard deviations: a sixteenth of them each.
const SPREAD: [f64; 16] =
    [-1.86, -1.32, -1.01, -0.78, -0.58, -0.40, -0.24, -0.08, 0.08, 0.24, 0.40, 0.58, 0.78, 1.01, 1.32, 1.86];

/// The mean of a size over parts that have so many rows each, give or take what chance does.
fn spread(rows: f64, size: impl Fn(f64) -> f64) -> f64 {
    let sum: f64 = SPREAD.iter().map(|deviation| size((rows + deviation * rows.sqrt()).max(0.0))).sum();
    sum / SPREAD.len() as f64
}

fn buckets(entries: f64) -> f64 {
    let mut buckets = 0u64;
    while (buckets as f64) * FULL < entries.round() {
        buckets += (buckets / 2).max(1);
    }
    buckets as f64
}

/// Bytes of one partition's hash index of a table.
fn hash_index(rows: f64) -> f64 {
    match rows <= SPLIT_AT {
        true => buckets(rows) * BUCKET_BYTES,
        false => SUB_TABLES * (SUB_TABLE_BYTES + spread(rows / SUB_TABLES, buckets) * BUCKET_BYTES),
    }
}

/// Bytes of one partition's row directory: 4 a row, and 24 for each 64 rows in vectors that double.
fn directory(rows: f64) -> f64 {
    let rows = rows.ceil() as u64;
    let mut capacity = 0u64;
    while capacity < rows {
        capacity += (capacity / 4).max(capacity.clamp(8, 64));
    }
    let words = rows.div_ceil(64);
    let doubling = if words == 0 { 0 } else { words.next_power_of_two().max(4) };
    (capacity * 4 + doubling * 24) as f64
}

/// Where rows are stored: partitions, times the leaves of a partitioned table.
#[derive(Clone, Copy, Debug)]
pub struct Fragments(pub f64);

/// Hash index and directory of all fragments.
pub fn fixed(rows: u64, fragments: Fragments) -> Fixed {
    let each = rows as f64 / fragments.0;
    Fixed { hash: spread(each, hash_index) * fragments.0, directory: spread(each, directory) * fragments.0 }
}

#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    pub hash: f64,
    pub directory: f64,
}

/// What a server said of a table with so many rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub rows: u64,
    pub row_bytes: f64,
    /// Hash index and ordered indexes.
    pub index_bytes: f64,
    /// What the server's memory grew by besides: mostly the tables of unique indexes.
    pub other_bytes: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    pub rows: f64,
    pub indexes: f64,
}

impl Size {
    pub fn total(self) -> f64 {
        self.rows + self.indexes
    }
}

/// What a table was measured as.
pub struct Measured {
    /// With the partitions that there will be, over one doubling.
    pub points: Vec<Point>,
    /// With one partition, where the few pages that are not full hide little of how much each row adds.
    pub single: Vec<Point>,
    pub partitions: f64,
    pub leaves: f64,
    /// Unique indexes that are tables of their own.
    pub index_tables: f64,
}

impl Measured {
    /// The size with so many rows.
    pub fn predict(&self, rows: u64) -> Size {
        if let Some(exact) = self.points.iter().find(|point| point.rows == rows) {
            return Size { rows: exact.row_bytes, indexes: exact.index_bytes + exact.other_bytes };
        }
        let own = |rows: u64| fixed(rows, Fragments(self.partitions * self.leaves));
        let alone = |rows: u64| fixed(rows, Fragments(self.leaves));
        let besides = |fixed: Fixed| self.index_tables * (fixed.hash + fixed.directory);
        let beyond = |slope: f64, at: &dyn Fn(&Point) -> f64| {
            let count = self.points.len().max(1) as f64;
            let mean = |of: &dyn Fn(&Point) -> f64| self.points.iter().map(of).sum::<f64>() / count;
            mean(at) + slope * (rows as f64 - mean(&|p| p.rows as f64))
        };
        let pages = slope(&self.single, |p| p.row_bytes - alone(p.rows).directory);
        let pages = beyond(pages, &|p| p.row_bytes - own(p.rows).directory);
        let others = slope(&self.single, |p| p.other_bytes - besides(alone(p.rows)));
        let others = beyond(others, &|p| p.other_bytes - besides(own(p.rows))).max(0.0);
        let ordered = |p: &Point| (p.index_bytes - own(p.rows).hash).max(0.0) / p.rows as f64;
        let ordered = self.points.iter().map(ordered).sum::<f64>() / self.points.len().max(1) as f64 * rows as f64;
        let own = own(rows);
        Size { rows: pages + own.directory, indexes: own.hash + ordered + others + besides(own) }
    }
}

/// What each row adds: the slope of the line that is nearest to the points.
fn slope(points: &[Point], of: impl Fn(&Point) -> f64) -> f64 {
    let count = points.len().max(1) as f64;
    let mean_x = points.iter().map(|p| p.rows as f64).sum::<f64>() / count;
    let mean_y = points.iter().map(&of).sum::<f64>() / count;
    let covariance: f64 = points.iter().map(|p| (p.rows as f64 - mean_x) * (of(p) - mean_y)).sum();
    let variance: f64 = points.iter().map(|p| (p.rows as f64 - mean_x).powi(2)).sum();
    if variance > 0.0 { covariance / variance } else { 0.0 }
}

/// Numbers of rows at which a sample is measured: over one doubling, evenly in the logarithm.
pub fn steps(sample: u64) -> Vec<u64> {
    let mut steps: Vec<u64> = (1..=8).map(|k| (sample as f64 * (f64::from(k - 8) / 8.0).exp2()) as u64).collect();
    steps.retain(|rows| *rows > 0);
    steps.dedup();
    steps
}

/// The same for one partition: evenly over most of the sample, so that steps of a page weigh little.
pub fn even_steps(sample: u64) -> Vec<u64> {
    let mut steps: Vec<u64> = (2..=16).map(|k| sample * k / 16).filter(|rows| *rows > 0).collect();
    steps.dedup();
    steps
}

/// Of the memory limit, the part that is planned for: a node is yellow from here on, and copies of partitions are
/// begun below.
pub const PLANNED: f64 = 0.8;

/// Nodes that carry so many bytes with so many replicas, each at [`PLANNED`] of its limit at most. The replicas of a
/// partition are whole, so one node may have one more than another.
pub fn nodes(bytes: f64, partitions: u64, replicas: u64, limit: u64) -> Option<u64> {
    let (each, room) = (bytes / partitions as f64, limit as f64 * PLANNED);
    let fit = (room / each).floor();
    // A partition that is larger than a node.
    if fit < 1.0 {
        return None;
    }
    let needed = ((partitions * replicas) as f64 / fit).ceil() as u64;
    Some(needed.max(replicas))
}

/// What the fullest of these nodes has.
pub fn fullest(bytes: f64, partitions: u64, replicas: u64, nodes: u64) -> f64 {
    (partitions * replicas).div_ceil(nodes) as f64 * bytes / partitions as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_steps_are_the_kernels() {
        assert_eq!([1.0, 9.0, 10.0, 20.0, 29.0, 39.0, 58.0].map(buckets), [1.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0]);
        assert_eq!(hash_index(0.0), 0.0);
        // 40 000 rows in 8 partitions, as a server reported them.
        let reported = 378_368.0;
        let found = fixed(40_000, Fragments(8.0)).hash;
        assert!((found / reported - 1.0).abs() < 0.03, "{found} for {reported}");
        for rows in [1e5, 1e6, 1e7, 1e8] {
            let each = fixed(rows as u64, Fragments(8.0)).hash / rows;
            assert!((6.6..10.8).contains(&each), "{each} bytes a row with {rows} rows");
        }
        let each = fixed(10_000_000, Fragments(8.0)).directory / 1e7;
        assert!((4.3..6.0).contains(&each), "{each}");
    }

    /// A table whose parts grow as described.
    fn real(rows: u64, partitions: f64) -> Point {
        let (fixed, n) = (fixed(rows, Fragments(partitions)), rows as f64);
        let wave = 1.0 + 0.1 * (n.log2() * std::f64::consts::TAU).sin();
        Point {
            rows,
            row_bytes: 80_000.0 * partitions + 64.0 * n + fixed.directory,
            index_bytes: fixed.hash + 20.0 * n * wave,
            other_bytes: 16_000.0 * partitions + 40.0 * n + fixed.hash + fixed.directory,
        }
    }

    fn measured(points: Vec<u64>, single: Vec<u64>) -> Measured {
        Measured {
            points: points.into_iter().map(|rows| real(rows, 8.0)).collect(),
            single: single.into_iter().map(|rows| real(rows, 1.0)).collect(),
            partitions: 8.0,
            leaves: 1.0,
            index_tables: 1.0,
        }
    }

    #[test]
    fn a_hundred_times_the_sample_is_predicted() {
        let measured = measured(steps(100_000), even_steps(100_000));
        for rows in [150_000u64, 1_000_000, 12_345_678, 1_000_000_000] {
            let (size, fixed) = (measured.predict(rows), fixed(rows, Fragments(8.0)));
            let mean = 124.0 * rows as f64 + 96_000.0 * 8.0 + 2.0 * (fixed.hash + fixed.directory);
            assert!((size.total() / mean - 1.0).abs() < 0.01, "{rows}: {} for {mean}", size.total());
        }
    }

    #[test]
    fn what_was_measured_is_told_as_it_is() {
        let measured = measured(vec![500, 1000], Vec::new());
        let (size, point) = (measured.predict(1000), measured.points[1]);
        assert_eq!((size.rows, size.indexes), (point.row_bytes, point.index_bytes + point.other_bytes));
    }

    #[test]
    fn samples_are_measured_over_one_doubling() {
        let steps = steps(100_000);
        assert_eq!((steps.len(), steps[7]), (8, 100_000));
        assert!((54_000..55_000).contains(&steps[0]) && steps.is_sorted(), "{steps:?}");
        assert_eq!((super::steps(1), even_steps(1)), (vec![1], vec![1]));
        assert_eq!((even_steps(1600)[0], even_steps(1600)[14]), (200, 1600));
    }

    #[test]
    fn nodes_of_a_cluster() {
        let gib = f64::from(1 << 30);
        // 10 GiB in 16 partitions of 0.625; 3.2 GiB of 4 are planned for, so 5 of them fit.
        assert_eq!(nodes(10.0 * gib, 16, 1, 4 << 30), Some(4));
        assert_eq!(nodes(10.0 * gib, 16, 2, 4 << 30), Some(7));
        assert_eq!(fullest(10.0 * gib, 16, 2, 7), 5.0 * 0.625 * gib);
        assert_eq!(nodes(1.0, 16, 3, 4 << 30), Some(3), "each replica on a node of its own");
        assert_eq!(nodes(1000.0 * gib, 8, 1, 4 << 30), None);
    }
}
