//! The `rauk` binary: one program that is the database, its shell and its tools.

mod backend;
mod bench;
mod check_disk;
mod client;
mod cluster;
mod config;
mod demo;
mod dump;
mod export;
mod http;
mod import;
mod machine;
mod metrics;
mod native;
mod out;
mod packaging;
#[cfg(test)]
mod pages;
mod shell;
mod size;
mod start;
mod status;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use config::{KEYS, Settings};
use std::path::Path;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn command() -> Command {
    Command::new("rauk")
        .about("An always-on, in-memory, durable SQL database that MySQL clients talk to")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(with_settings(Command::new("start").about("Start the database and serve MySQL clients")))
        .subcommand(with_settings(
            Command::new("demo").about("Start, load a small sample, show a few statements, go on serving"),
        ))
        .subcommand(cluster::local::command())
        .subcommand(status::command())
        .subcommand(check_disk::command())
        .subcommand(size::command())
        .subcommand(shell::command())
        .subcommand(import::command())
        .subcommand(dump::command())
        .subcommand(export::command())
        .subcommand(packaging::completions_command())
        .subcommand(packaging::man_command())
        .subcommand(
            Command::new("bench")
                .about("Measure")
                .subcommand_required(true)
                .subcommand(bench::flex::command())
                .subcommand(bench::cluster::command())
                .subcommand(bench::analytics::command())
                .subcommand(bench::ddl::command())
                .subcommand(
                    Command::new("sql")
                        .about("sysbench and single inserts, on servers started for the run")
                        .arg(text("against", "SERVER", "Peer of the same run").value_parser(["mariadb"]))
                        .arg(
                            text("seconds", "N", "Seconds a round")
                                .value_parser(value_parser!(u64).range(1..3600))
                                .default_value("10"),
                        )
                        .arg(
                            text("rounds", "N", "Rounds on each server")
                                .value_parser(value_parser!(u64).range(1..100))
                                .default_value("3"),
                        )
                        .arg(
                            text("threads", "N", "Client threads")
                                .value_parser(value_parser!(u64).range(1..1024))
                                .default_value("8"),
                        )
                        .arg(
                            text("table-size", "N", "Rows of sysbench's table")
                                .value_parser(value_parser!(u64))
                                .default_value("100000"),
                        )
                        .arg(
                            text("inserts", "N", "Single inserts a run")
                                .value_parser(value_parser!(u64))
                                .default_value("100000"),
                        )
                        .arg(text("only", "TEXT", "Workloads whose name contains this"))
                        .arg(
                            text("durability", "WHICH", "fsync or relaxed")
                                .value_parser(["fsync", "relaxed"])
                                .default_value("fsync"),
                        )
                        .arg(text("json", "FILE", "Write the figures as JSON too")),
                ),
        )
}

/// The setting whose flag can be given more than once.
const REPEATED: &str = "peer-address";

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn with_settings(command: Command) -> Command {
    let config = text("config", "FILE.toml", "Settings in TOML, under the same names").env("RAUK_CONFIG");
    // The last of two equal flags counts, so that a script can add to a command line.
    let command = command.args_override_self(true);
    let arg = |key: &config::Key| {
        let arg = text(key.name, key.value_name, key.help);
        if key.name == REPEATED { arg.action(ArgAction::Append) } else { arg }
    };
    KEYS.iter().fold(command, |command, key| command.arg(arg(key))).arg(config)
}

fn settings(arguments: &ArgMatches) -> Result<Settings, String> {
    let file = match arguments.get_one::<String>("config") {
        None => None,
        Some(name) => {
            let text =
                std::fs::read_to_string(name).map_err(|e| format!("cannot read configuration file {name}: {e}"))?;
            Some((name.clone(), text))
        }
    };
    let given =
        |key: &'static str| arguments.get_many::<String>(key).into_iter().flatten().map(move |v| (key, v.clone()));
    let flags: Vec<(&str, String)> = KEYS.iter().flat_map(|k| given(k.name)).collect();
    let file = file.as_ref().map(|(name, text)| (Path::new(name), text.as_str()));
    Settings::load(file, std::env::vars(), &flags).map_err(|e| e.to_string())
}

fn run_start(arguments: &ArgMatches) -> Result<(), String> {
    let settings = settings(arguments)?;
    start::run(&settings, |running| {
        let invitation = running.invitation().map_or(String::new(), |text| format!("{text}\n"));
        // A server serves whether or not somebody reads this.
        let _ = out::line(format_args!("{invitation}{}", running.ready_line(&settings)));
        Ok(())
    })
}

fn run_bench(arguments: &ArgMatches) -> Result<(), String> {
    let arguments = match arguments.subcommand() {
        Some(("flex", arguments)) => return bench::flex::run(&bench::flex::options(arguments)?),
        Some(("cluster", arguments)) => return bench::cluster::run(&bench::cluster::options(arguments)?),
        Some(("analytics", arguments)) => return bench::analytics::run(&bench::analytics::options(arguments)?),
        Some(("ddl", arguments)) => return bench::ddl::run_all(&bench::ddl::options(arguments)),
        Some(("sql", arguments)) => arguments,
        _ => unreachable!("clap requires a subcommand"),
    };
    let number = |name: &str| *arguments.get_one::<u64>(name).expect("has a default");
    bench::sql(&bench::SqlOptions {
        against_mariadb: arguments.contains_id("against") && arguments.get_one::<String>("against").is_some(),
        seconds: number("seconds"),
        rounds: number("rounds") as usize,
        threads: number("threads") as usize,
        table_size: number("table-size"),
        inserts: number("inserts"),
        only: arguments.get_one::<String>("only").cloned(),
        json: arguments.get_one::<String>("json").cloned(),
        durability: arguments.get_one::<String>("durability").expect("has a default").clone(),
    })
}

fn main() -> ExitCode {
    let command = command();
    let given = client::arguments::with_password_forms(&command, std::env::args_os());
    let arguments = command.get_matches_from(given);
    let result = match arguments.subcommand() {
        Some(("start", arguments)) => run_start(arguments),
        Some(("cluster", arguments)) => cluster::local::run(arguments),
        Some(("status", arguments)) => status::run(arguments),
        Some(("check-disk", arguments)) => check_disk::run(arguments),
        Some(("size", arguments)) => size::run(arguments),
        Some(("demo", arguments)) => settings(arguments).and_then(|settings| demo::run(&settings)),
        Some(("sql", arguments)) => return ended(shell::run(arguments)),
        Some(("import", arguments)) => import::run(arguments),
        Some(("dump", arguments)) => dump::run(arguments),
        Some(("export", arguments)) => export::run(arguments),
        Some(("completions", arguments)) => packaging::completions(self::command(), arguments),
        Some(("man", arguments)) => packaging::man(self::command(), arguments),
        Some(("bench", arguments)) => run_bench(arguments),
        _ => unreachable!("clap requires a subcommand"),
    };
    ended(result.map(|()| ExitCode::SUCCESS))
}

fn ended(result: Result<ExitCode, String>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(message) if message == out::CLOSED => ExitCode::from(out::CLOSED_CODE),
        Err(message) => {
            eprintln!("rauk: {message}");
            ExitCode::FAILURE
        }
    }
}
