//! `rauk import`: files of rows, dumps, and databases of other servers.
//!
//! A file goes into its table in batches over several connections, each batch one transaction together with its place in
//! the file, so that an import which ends early, for whatever reason, goes on when the same command is given again, and
//! every row is stored exactly once.
//!
//! - [`options`]: the flags.
//! - [`files`]: which files there are, whether they fit, the summary; [`create`]: a table for a file that has none.
//! - [`parquet`]: rows of a Parquet file, as records of JSON lines.
//! - [`records`] cuts a file into records, [`fields`] and [`json`] take records apart, [`columns`] says where fields go,
//!   [`literal`] writes values, [`encode`] rows.
//! - [`load`]: the threads, a batch, bad rows; [`progress`]: what is stored beside the rows; [`rejects`]: bad lines;
//!   [`report`]: how far it is.
//! - [`migrate`]: dumps, servers, and what Rauk does not take of them.
//! - [`server`]: connections, and what the server's errors mean.

pub mod columns;
mod create;
mod encode;
pub mod fields;
mod files;
mod json;
pub mod literal;
mod load;
pub mod migrate;
pub mod options;
mod parquet;
mod progress;
mod records;
mod rejects;
pub mod report;
pub mod server;

pub use options::command;

use clap::ArgMatches;
use std::path::PathBuf;

pub fn run(arguments: &ArgMatches) -> Result<(), String> {
    let options = options::options(arguments)?;
    let is_dump = |source: &str| source.to_ascii_lowercase().ends_with(".sql");
    let mut files: Vec<PathBuf> = Vec::new();
    for source in &options.sources {
        match (migrate::is_server(source), is_dump(source), options.check) {
            (true, _, true) => migrate::check::server(&options, source)?,
            (true, _, false) => migrate::run(&options, source)?,
            (false, true, true) => migrate::check::dump(&options, source.as_ref())?,
            (false, true, false) => migrate::dump::run(&options, source.as_ref())?,
            (false, false, true) => {
                return Err(format!("--check is for dumps (.sql) and mysql:// servers; '{source}' is neither"));
            }
            (false, false, false) => files.push(source.into()),
        }
    }
    match files.is_empty() {
        true => Ok(()),
        false => files::run(&options, &files),
    }
}
