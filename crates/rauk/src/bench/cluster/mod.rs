//! `rauk bench cluster`: what replicas, more nodes, a node that comes back, and nodes that fail cost.
//!
//! | file | what |
//! |---|---|
//! | [`arguments`] | the command line |
//! | [`nodes`] | clusters of Rauk as processes of the run |
//! | [`galera`] | MariaDB Galera, a peer of the run |
//! | [`replicas`] | sysbench on one node, one replica, two replicas, and peers |
//! | [`scale`], [`fleet`], [`warehouses`] | cost of a transaction of one warehouse at 2, 4, 8 data nodes |
//! | [`projection`] | from that cost to nodes on machines of their own |
//! | [`rejoin`] | failover gap, time and rate of coming back, nothing lost |
//! | [`failures`] | nodes that are killed, hang, are shut down or cut off: time without service, nothing lost; deadlocks over nodes |
//! | [`pauses`] | how long a client went without a success |
//! | [`relay`] | ways between nodes that can be cut |
//!
//! Each part starts what it needs and ends it before the next one begins. Tables are printed as Markdown, to be pasted.

pub mod arguments;
mod failures;
mod fleet;
mod galera;
mod nodes;
mod pauses;
mod projection;
mod rejoin;
mod relay;
mod replicas;
mod scale;

pub use arguments::{command, options};

use super::process::{end_with_this_process, temporary_directory};
use crate::out;
use arguments::{Options, Part};
use std::path::Path;

pub fn run(options: &Options) -> Result<(), String> {
    end_with_this_process();
    let root = temporary_directory()?;
    let result = parts(options, root.path());
    if result.is_err() {
        show_logs(root.path());
    }
    result
}

fn parts(options: &Options, root: &Path) -> Result<(), String> {
    let mut all = serde_json::Map::new();
    for part in &options.parts {
        match part {
            Part::Replicas => {
                let lines = replicas::run(options, root)?;
                out::line(format_args!(
                    "\n### What a second replica costs\n\n{} threads, {} × {} rows, {} × {} s, everything on this host.\n\n{}",
                    options.threads,
                    options.tables,
                    options.rows,
                    options.rounds,
                    options.seconds,
                    replicas::table(&lines)
                ))?;
                all.insert("replicas".into(), replicas::json(&lines));
            }
            Part::Scale => {
                let lines = scale::run(options, root)?;
                out::line(format_args!(
                    "\n### What a transaction costs as the cluster grows\n\n{} warehouses and {} threads{}, {} % of transactions touch a second warehouse, {} × {} s. All nodes share this host's {} cores: this shows cost, not speed.\n\n{}",
                    options.warehouses,
                    options.threads,
                    if options.grows { " at two data nodes, and in proportion at more" } else { "" },
                    options.remote,
                    options.rounds,
                    options.seconds,
                    cores(),
                    scale::table(&lines)
                ))?;
                match scale::projected(&lines, options.cores) {
                    Some(text) => out::line(format_args!("\n### Projection\n\n{text}"))?,
                    None => eprintln!("no projection: it takes a cluster of at least two data nodes"),
                }
                all.insert("scale".into(), scale::json(&lines));
            }
            Part::Rejoin => {
                let lines = rejoin::run(options, root)?;
                out::line(format_args!(
                    "\n### A node that is killed and comes back\n\nTwo data nodes and one that only decides, {} threads updating, {} s before and after the kill.\n\n{}",
                    options.threads,
                    options.seconds,
                    rejoin::table(&lines)
                ))?;
                all.insert("rejoin".into(), rejoin::json(&lines));
            }
            Part::Failures => {
                let measured = failures::run(options, root)?;
                out::line(format_args!(
                    "\n### Nodes that fail\n\nAll nodes with all roles, 2 replicas, a writer and a reader in each of {} partitions, {} rounds of {} s of failure.\n\n{}",
                    options.partitions,
                    options.rounds,
                    options.seconds,
                    failures::table(&measured)
                ))?;
                all.insert("failures".into(), failures::json(&measured));
            }
        }
    }
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&all).expect("numbers and texts are JSON");
        std::fs::write(file, text).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    }
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// What the servers have said goes away with their directories; the ends of it may say why the run failed.
fn show_logs(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() && !path.join("ready.json").exists() {
            show_logs(&path);
        } else if path.extension().is_some_and(|e| e == "log")
            && path.file_stem().is_some_and(|n| n.to_string_lossy().starts_with("node"))
        {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            eprintln!("{}:\n  {}", path.display(), lines[lines.len().saturating_sub(5)..].join("\n  "));
        }
    }
}
