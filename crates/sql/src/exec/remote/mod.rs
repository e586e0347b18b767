//! Work of scans where the rows are: what another node is asked to do with the rows of a partition that it leads.
//!
//! A scan of a table takes its conditions along, and where nothing else stands between the rows and the groups, the aggregates too, or between the rows and
//! ORDER BY with LIMIT, the order ([`Work`], the side of the statement). The node that leads a partition evaluates them beside the rows ([`Evaluator`], the side of the partition). What travels
//! ([`program`]):
//!
//! ```text
//! statement → partition    version, context of the evaluation, conditions, aggregates
//! partition → statement    rows that pass; warnings of the others; groups
//! ```
//!
//! The statement evaluates its conditions on every row that comes, as on a row of its own partitions. So the other side sends a row whenever it is not sure: its
//! evaluation fails, an input is longer than [`MAX_INPUT`], there are too many groups. The error is then raised here, with its own text, and only if
//! the row is wanted at all. Warnings of rows that do not come are given back with their place among the rows that do.
//!
//! Conditions that cannot travel ([`crate::expr::codec`]) are left to the statement, the others go. Then a row that gives a warning is sent, since the statement
//! may drop it before it comes to the condition that warns. What follows a condition with an effect (`@n := …`, RAND()) does not go.
//!
//! Aggregates that travel: COUNT, SUM and AVG of exact numbers, MIN, MAX, without DISTINCT. Sums of doubles depend on their order, so they stay.
//! A group's key is its encoded values: both sides have the same collations, whose version is sent.
//!
//! Of ORDER BY with LIMIT a row is not sent if as many rows of the same request that come before it are. So what is sent is more than LIMIT asks for, but not by
//! much where rows come in no order.
//!
//! A change of one row by its key takes its conditions along too, and its assignments ([`change`]).
//!
//! Left out: projections, joins; groups of ROLLUP.

mod best;
pub(crate) mod change;
mod evaluator;
mod partial;
mod program;
mod work;

#[cfg(test)]
mod tests;

pub use evaluator::SqlEvaluator;
pub(crate) use work::{Wants, Work};

/// Longest value of a column that is an input where the rows are, in bytes.
const MAX_INPUT: usize = 8 << 10;
