//! `rauk cluster …`: a cluster of real processes on this host, with ports and directories of their own, to try and to break.
//!
//! `up` starts it and writes `cluster.json`; the other commands find their nodes there. Nothing runs beside the nodes themselves: `up` ends when they are healthy, and they go on.
//!
//! | file | what |
//! |---|---|
//! | [`file`] | `cluster.json`: nodes, their processes, ports and directories |
//! | [`lock`] | one command at a time |
//! | [`process`] | processes by number, checked to be those that are meant; signals; starting |
//! | [`up`] | laying out and starting a cluster |
//! | [`show`] | what is shown of it, and waiting for what it says |
//! | [`logs`] | what a node has logged |

pub mod file;
mod lock;
mod logs;
pub mod process;
pub mod show;
pub mod up;

use crate::out;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use file::{ClusterFile, NodeEntry};
use lock::Lock;
use process::Signal;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// After SIGTERM, before SIGKILL.
const GRACE: Duration = Duration::from_secs(20);

pub fn command() -> Command {
    let number = |name: &'static str, help| {
        Arg::new(name).long(name).value_name("N").help(help).value_parser(value_parser!(u16).range(0..=64))
    };
    let dir = || {
        Arg::new("dir")
            .long("dir")
            .value_name("DIR")
            .help("Where the cluster lies")
            .default_value("rauk-cluster")
            .value_parser(value_parser!(PathBuf))
    };
    let node =
        || Arg::new("node").value_name("N").required(true).value_parser(value_parser!(u16)).help("The node's number");
    let of_node = |name: &'static str, about: &'static str| Command::new(name).about(about).arg(node()).arg(dir());
    Command::new("cluster")
        .about("Run a cluster of real processes on this host, and break it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("up")
                .about("Start a cluster, or one that was stopped; wait until it is healthy; say what to try")
                .arg(
                    number("nodes", "Nodes with all roles (three, when no other is asked for)")
                        .value_parser(value_parser!(u16).range(1..=64)),
                )
                .arg(number("data", "Nodes with the role data"))
                .arg(number("sql", "Nodes with the role sql"))
                .arg(number("manage", "Nodes with the role manage only [default: the first data nodes have it too]"))
                .arg(
                    Arg::new("replicas")
                        .long("replicas")
                        .value_name("N")
                        .help("Replicas of each partition")
                        .value_parser(value_parser!(u8).range(1..=4))
                        .default_value("2"),
                )
                .arg(number("partitions", "Partitions [default: two a data node, at least 8]"))
                .arg(number("groups", "Replication groups of these [default: one a partition]"))
                .arg(
                    Arg::new("memory")
                        .long("memory-limit")
                        .value_name("SIZE")
                        .help("Memory of each node")
                        .default_value("512MiB"),
                )
                .arg(
                    Arg::new("set")
                        .long("set")
                        .value_name("NAME=VALUE")
                        .action(ArgAction::Append)
                        .help("A setting of rauk start for all nodes; can be repeated"),
                )
                .arg(dir()),
        )
        .subcommand(Command::new("status").about("Show its nodes and its health").arg(dir()))
        .subcommand(of_node("kill", "End a node as a crash does (SIGKILL)"))
        .subcommand(of_node("pause", "Stop a node as a hang does (SIGSTOP)"))
        .subcommand(of_node("resume", "Let a paused node go on (SIGCONT)"))
        .subcommand(
            of_node("restart", "Start a node again; one that runs is stopped first").arg(
                Arg::new("empty").long("empty").action(ArgAction::SetTrue).help("With an empty disk: as a new node"),
            ),
        )
        .subcommand(
            Command::new("add")
                .about("Add a node; wait until it has its replicas")
                .arg(
                    Arg::new("roles")
                        .long("roles")
                        .value_name("ROLE,…")
                        .help("What it does, of manage, data and sql")
                        .default_value("manage,data,sql"),
                )
                .arg(dir()),
        )
        .subcommand(
            of_node("logs", "Show the end of a node's log")
                .arg(
                    Arg::new("lines")
                        .long("lines")
                        .short('n')
                        .value_name("N")
                        .help("Lines from its end")
                        .value_parser(value_parser!(u32))
                        .default_value("50"),
                )
                .arg(
                    Arg::new("follow")
                        .long("follow")
                        .short('f')
                        .action(ArgAction::SetTrue)
                        .help("Go on with what comes"),
                ),
        )
        .subcommand(Command::new("down").about("Stop all nodes; the data stays").arg(dir()))
}

pub fn run(arguments: &ArgMatches) -> Result<(), String> {
    let (name, arguments) = arguments.subcommand().expect("clap requires a subcommand");
    let dir = arguments.get_one::<PathBuf>("dir").expect("has a default");
    let node = |cluster: &ClusterFile| -> Result<NodeEntry, String> {
        let number = *arguments.get_one::<u16>("node").expect("required");
        cluster.node(number).cloned()
    };
    match name {
        "up" => up::run(&up::Wish::of(arguments)?, dir),
        "status" => show::status(&ClusterFile::load(dir)?),
        "kill" => signal(dir, node, Signal::Kill, "killed"),
        "pause" => signal(dir, node, Signal::Stop, "paused"),
        "resume" => signal(dir, node, Signal::Continue, "goes on"),
        "restart" => {
            let _lock = locked(dir, "rauk cluster restart")?;
            let mut cluster = ClusterFile::load(dir)?;
            let number = node(&cluster)?.number;
            up::restart(&mut cluster, number, arguments.get_flag("empty"))
        }
        "add" => {
            let roles = arguments.get_one::<String>("roles").expect("has a default");
            let _lock = locked(dir, "rauk cluster add")?;
            up::add(&mut ClusterFile::load(dir)?, roles)
        }
        "logs" => {
            let lines = *arguments.get_one::<u32>("lines").expect("has a default");
            logs::show(&node(&ClusterFile::load(dir)?)?, lines as usize, arguments.get_flag("follow"))
        }
        "down" => {
            let _lock = locked(dir, "rauk cluster down")?;
            down(&ClusterFile::load(dir)?)
        }
        _ => unreachable!("clap knows the subcommands"),
    }
}

/// The lock of a directory that has a cluster.
fn locked(dir: &Path, command: &str) -> Result<Lock, String> {
    ClusterFile::load(dir)?;
    Lock::take(dir, command)
}

fn signal(
    dir: &Path,
    node: impl Fn(&ClusterFile) -> Result<NodeEntry, String>,
    signal: Signal,
    done: &str,
) -> Result<(), String> {
    let entry = node(&ClusterFile::load(dir)?)?;
    let process = entry.process.as_ref().ok_or_else(|| format!("node {} was never started", entry.number))?;
    process.send(signal).map_err(|e| format!("node {}: {e}", entry.number))?;
    if signal == Signal::Kill {
        process.wait_gone(Duration::from_secs(5));
    }
    out::line(format_args!("node {} (process {}) {done}", entry.number, process.pid))?;
    Ok(())
}

/// All at the same time: SIGTERM, then SIGKILL.
fn down(cluster: &ClusterFile) -> Result<(), String> {
    let running: Vec<&NodeEntry> = cluster.nodes.iter().filter(|n| n.is_running()).collect();
    for process in running.iter().filter_map(|n| n.process.as_ref()) {
        // One that has just ended needs no signal; a paused one hears of it when it goes on.
        let _ = process.send(Signal::Terminate);
        let _ = process.send(Signal::Continue);
    }
    let end = std::time::Instant::now() + GRACE;
    let mut killed = 0;
    for process in running.iter().filter_map(|n| n.process.as_ref()) {
        if !process.wait_gone(end.saturating_duration_since(std::time::Instant::now())) {
            let _ = process.send(Signal::Kill);
            process.wait_gone(Duration::from_secs(5));
            killed += 1;
        }
    }
    let left = cluster.nodes.iter().filter(|n| n.is_running()).count();
    if left > 0 {
        return Err(format!("{left} nodes do not end"));
    }
    out::line(format_args!(
        "{} nodes stopped{}",
        running.len(),
        if killed > 0 { format!(", {killed} of them killed") } else { String::new() }
    ))?;
    out::line(format_args!(
        "the data stays in {}; `rauk cluster up --dir {0}` starts it again",
        cluster.dir.display()
    ))?;
    Ok(())
}
