//! What EXPLAIN ANALYZE counts while a query runs: rows, loops and times of each operator.
//!
//! [`Measures`] are part of the statement's context, and only EXPLAIN ANALYZE makes them: without them nothing is counted.
//! A block that runs has a [`Meter`] for its steps. One step works at a time; the meter charges the time since the last
//! change to the step that worked, so that the time of a step is its own, without the steps behind it. When the block
//! ends, its meter is added to the measures of the statement.
//!
//! A block is known by the address of its plan, which the plan keeps as long as it exists.

use rauk_node::Runtime;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// Counters of all blocks of a statement.
pub struct Measures {
    clock: Arc<dyn Runtime>,
    blocks: FxHashMap<usize, BlockMeasure>,
}

/// Counters of one operator. Times are sums over all loops.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepMeasure {
    /// How often it was opened.
    pub loops: u64,
    /// Rows that it looked at.
    pub examined: u64,
    /// Rows that it handed on.
    pub rows: u64,
    /// Until the first row of each loop.
    pub first: Duration,
    pub time: Duration,
    /// Rows that were kept in memory to be looped over or probed.
    pub kept: Option<u64>,
}

/// Counters of one block, or of one set operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockMeasure {
    pub runs: u64,
    /// One a step of the plan; the last one is what happens to joined rows.
    pub steps: Vec<StepMeasure>,
    pub groups: u64,
    /// Rows that HAVING and DISTINCT left.
    pub arrived: u64,
    /// Rows behind LIMIT.
    pub delivered: u64,
    /// What came after the last table was read: groups, sorting, delivery.
    pub finish: Duration,
    pub time: Duration,
}

impl Measures {
    pub fn new(clock: Arc<dyn Runtime>) -> Measures {
        Measures { clock, blocks: FxHashMap::default() }
    }

    /// A meter for one run of a block with so many steps.
    pub(crate) fn meter(&self, steps: usize) -> Meter {
        let now = self.clock.now();
        Meter {
            clock: self.clock.clone(),
            began: now,
            last: now,
            current: steps,
            steps: vec![StepMeasure::default(); steps + 1],
            opened: vec![None; steps + 1],
        }
    }

    /// The time now, to measure what has no meter.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// What was counted for the plan part at this address.
    pub(crate) fn of<P>(&self, plan: &P) -> Option<&BlockMeasure> {
        self.blocks.get(&address(plan))
    }

    /// Adds a run of the plan part at this address.
    pub(crate) fn add<P>(&mut self, plan: &P, run: BlockMeasure) {
        let block = self.blocks.entry(address(plan)).or_default();
        block.runs += 1;
        block.groups += run.groups;
        block.arrived += run.arrived;
        block.delivered += run.delivered;
        block.finish += run.finish;
        block.time += run.time;
        block.steps.resize(run.steps.len(), StepMeasure::default());
        for (sum, step) in block.steps.iter_mut().zip(run.steps) {
            sum.loops += step.loops;
            sum.examined += step.examined;
            sum.rows += step.rows;
            sum.first += step.first;
            sum.time += step.time;
            sum.kept = match (sum.kept, step.kept) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
        }
    }
}

fn address<P>(plan: &P) -> usize {
    std::ptr::from_ref(plan).addr()
}

/// Counts for one run of a block.
pub(crate) struct Meter {
    clock: Arc<dyn Runtime>,
    began: Duration,
    /// When `current` began to work.
    last: Duration,
    current: usize,
    steps: Vec<StepMeasure>,
    /// Of steps that have given no row since they were opened: the time that they had taken before.
    opened: Vec<Option<Duration>>,
}

impl Meter {
    /// Step `at` works from here on; gives the one that worked before.
    pub fn enter(&mut self, at: usize) -> usize {
        let now = self.clock.now();
        self.steps[self.current].time += now.saturating_sub(self.last);
        self.last = now;
        std::mem::replace(&mut self.current, at)
    }

    /// Step `at` is opened.
    pub fn open(&mut self, at: usize) {
        self.steps[at].loops += 1;
        self.opened[at] = Some(self.steps[at].time);
    }

    /// Step `at` hands a row on.
    pub fn passed(&mut self, at: usize) {
        let step = &mut self.steps[at];
        step.rows += 1;
        if let Some(before) = self.opened[at].take() {
            step.first += step.time.saturating_sub(before);
        }
    }

    pub fn examined(&mut self, at: usize, rows: u64) {
        self.steps[at].examined += rows;
    }

    /// Step `at` has found a match; what it looked at before is not counted.
    pub fn matched(&mut self, at: usize) {
        self.passed(at);
        let step = &mut self.steps[at];
        step.examined = step.examined.max(step.rows);
    }

    pub fn kept(&mut self, at: usize, rows: u64) {
        *self.steps[at].kept.get_or_insert(0) += rows;
    }

    /// All tables are read; gives when that was.
    pub fn joined(&mut self) -> Duration {
        let end = self.steps.len() - 1;
        self.enter(end);
        self.last
    }

    /// The end of the run.
    pub fn end(mut self, joined: Duration, groups: u64, arrived: u64, delivered: u64) -> BlockMeasure {
        let now = self.clock.now();
        self.last = now;
        BlockMeasure {
            runs: 1,
            groups,
            arrived,
            delivered,
            finish: now.saturating_sub(joined),
            time: now.saturating_sub(self.began),
            steps: self.steps,
        }
    }
}
