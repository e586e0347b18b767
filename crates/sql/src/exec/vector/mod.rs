//! Batches: the rows of one table, grouped or summed up column by column.
//!
//! ```text
//! batch    rows as columns: vectors, or offsets into copies of stored rows
//! filter   conditions as kernels over a selection of a batch's rows
//! number   + − × of columns
//! fold     aggregates and groups
//! program  a block's expressions as kernels
//! run      the loop: gather under the guard, compute outside of it
//! ```
//! The push form of [`super::select`] takes each row through all operators while its partition is held. That costs nothing but the row where
//! few rows are read, and it stays the form of keys, joins and results that stream. Where the plan reads many rows of one table into groups
//! (`physical/vector`), this form runs instead: under the guard the columns that are read are copied out of the stored bytes into vectors, up to 1 024
//! rows at a time; filters, arithmetic and aggregates then run over vectors, without the guard and without a walk over an expression for each row.
//!
//! **Same answers, errors and warnings.** A kernel knows no error and no warning. It computes what the evaluator would compute, or *gives up* its
//! batch: an overflow, a constant of another type than planned. Expressions without a kernel are evaluated row by row on the batch; a warning or an error
//! there gives the batch up too. Until all values of a batch are there, no group has been touched. So a batch that was given up is taken back
//! (its warnings go) and run again row by row in the order of the push form, which raises the error, with its text, at the row where it belongs.
//! What has effects of its own (`@a := …`, RAND()) is not planned so.
//!
//! **Left to the push form:** joins, ROLLUP, results without groups, locking reads and SERIALIZABLE (whose rows must be decided under the guard), rows
//! that other nodes sum up (`exec/remote`: there each row has its fate at once).

mod batch;
mod filter;
mod fold;
mod number;
mod program;
mod run;
