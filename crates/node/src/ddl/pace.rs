//! How fast a DDL statement goes through rows: `rauk_ddl_rows_per_second`, on each node that works for it.
//!
//! The threads of a statement share one [`Pace`]. Each thread tells it after a batch how many rows that had, and rests until
//! these are due. So the statement leaves processor and log to others, and takes longer. A rest is cut into pieces, so that
//! a thread that is to end does so soon.

use crate::node::Node;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// The longest piece of a rest.
const PIECE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// 0: no limit.
    rows_per_second: u64,
    /// When all rows that were seen to were due.
    due: Mutex<Duration>,
}

impl Pace {
    pub fn new(rows_per_second: u64) -> Arc<Pace> {
        Arc::new(Pace { rows_per_second, due: Mutex::default() })
    }

    /// Until when to rest after so many rows.
    fn due_after(&self, now: Duration, rows: u64) -> Duration {
        let nanos = u128::from(rows) * 1_000_000_000 / u128::from(self.rows_per_second);
        let mut due = self.due.lock();
        *due = now.max(*due) + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        *due
    }

    /// So many more rows were seen to. `is_to_end`: there is no need to rest.
    pub async fn rest(&self, node: &Node, rows: u64, is_to_end: &(dyn Fn() -> bool + Sync)) {
        if self.rows_per_second == 0 || rows == 0 {
            return;
        }
        let due = self.due_after(node.runtime.now(), rows);
        loop {
            let left = due.saturating_sub(node.runtime.now());
            if left.is_zero() || is_to_end() || node.check_running().is_err() {
                return;
            }
            node.runtime.sleep(left.min(PIECE)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_due_one_after_the_other_whoever_sees_to_them() {
        let pace = Pace::new(1000);
        let second = Duration::from_secs(1);
        assert_eq!(pace.due_after(second, 500), Duration::from_millis(1500));
        assert_eq!(pace.due_after(second, 500), Duration::from_millis(2000));
        // What was not used before is not made up for.
        assert_eq!(pace.due_after(second * 60, 100), Duration::from_millis(60_100));
    }
}
