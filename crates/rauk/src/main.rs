//! The `rauk` binary: one program that is the database, its shell and its tools.

mod config;

use clap::{Arg, ArgMatches, Command};
use config::{KEYS, Settings};
use std::path::Path;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn command() -> Command {
    let settings = |command: Command| {
        KEYS.iter()
            .fold(command, |command, key| {
                command.arg(Arg::new(key.name).long(key.name).value_name(key.value_name).help(key.help))
            })
            .arg(
                Arg::new("config")
                    .long("config")
                    .value_name("FILE.toml")
                    .env("RAUK_CONFIG")
                    .help("Settings in TOML, under the same names"),
            )
    };
    Command::new("rauk")
        .about("An always-on, in-memory, durable SQL database that MySQL clients talk to")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(settings(Command::new("start").about("Start the database and serve MySQL clients")))
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
    let flags: Vec<(&str, String)> =
        KEYS.iter().filter_map(|k| arguments.get_one::<String>(k.name).map(|v| (k.name, v.clone()))).collect();
    let file = file.as_ref().map(|(name, text)| (Path::new(name), text.as_str()));
    Settings::load(file, std::env::vars(), &flags).map_err(|e| e.to_string())
}

fn main() -> ExitCode {
    let arguments = command().get_matches();
    let result = match arguments.subcommand() {
        Some(("start", arguments)) => settings(arguments).map(|_| ()),
        _ => unreachable!("clap requires a subcommand"),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("rauk: {message}");
            ExitCode::FAILURE
        }
    }
}
