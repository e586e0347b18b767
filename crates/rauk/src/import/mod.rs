//! `rauk import`: files of rows into tables.
//!
//! A file goes into its table in batches over several connections, each batch one transaction together with its place in
//! the file, so that an import which ends early, for whatever reason, goes on when the same command is given again, and
//! every row is stored exactly once.
//!
//! - [`options`]: the flags.
//! - [`files`]: which files there are, whether they fit, the summary; [`create`]: a table for a file that has none.
//! - [`records`] cuts a file into records, [`fields`] and [`json`] take records apart, [`columns`] says where fields go,
//!   [`literal`] writes values, [`encode`] rows.
//! - [`load`]: the threads, a batch, bad rows; [`progress`]: what is stored beside the rows; [`rejects`]: bad lines;
//!   [`report`]: how far it is.
//! - [`server`]: connections, and what the server's errors mean.

pub mod columns;
mod create;
mod encode;
pub mod fields;
mod files;
mod json;
pub mod literal;
mod load;
pub mod options;
mod progress;
mod records;
mod rejects;
pub mod report;
pub mod server;

pub use options::command;

use clap::ArgMatches;
use std::path::PathBuf;

pub fn run(arguments: &ArgMatches) -> Result<(), String> {
    let options = options::options(arguments);
    let sources: Vec<PathBuf> = options.sources.iter().map(PathBuf::from).collect();
    files::run(&options, &sources)
}
