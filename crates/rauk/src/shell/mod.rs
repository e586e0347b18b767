//! `rauk sql`: the SQL shell, since a fresh machine may have no MySQL client.
//!
//! It is an ordinary client of MySQL's protocol, by the crate `mysql` and [`crate::client`], and works with other
//! servers of that protocol too. docs/shell.md lists its commands and flags.
//!
//! | part | does |
//! |---|---|
//! | [`session`] | the connection, and what is known of the server's session; reconnects |
//! | [`results`] | one statement: sent, shown, timed |
//! | [`format`] | how rows look |
//! | [`output`] | standard output, pager, tee |
//! | [`watch`] | Ctrl-C, and the time of a statement that runs |
//! | [`progress`] | how far such a statement is, as the server says |
//! | [`script`] | statements and commands of a prompt, a file, a pipe or `-e` |
//! | [`prompt`] | the line editor, its history |
//! | [`names`] | Tab completion |
//!
//! With `-e` or piped input there is no prompt, and the first error ends it with exit code 1. A server may ask for a
//! file of this machine only where `--local-infile` allows it (LOAD DATA LOCAL), as with MySQL's client.

mod format;
mod names;
mod output;
mod progress;
mod prompt;
mod results;
mod script;
mod session;
mod watch;

use crate::client::arguments::{self, with_connection};
use crate::client::literals;
use crate::client::split::{Piece, Statements};
use clap::{Arg, ArgAction, ArgMatches, Command};
use format::{FORMATS, Format};
use mysql::Conn;
use script::{Flow, Origin};
use session::{Beginning, Failure, Session};
use std::io::{IsTerminal, Read};
use std::process::ExitCode;
use watch::{INTERRUPTED, Watch};

pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    let formats: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
    with_connection(Command::new("sql"))
        .about("The SQL shell; reads statements from a prompt, from -e, or from standard input")
        .after_help("At the prompt, help lists the shell's commands. docs/shell.md says more.")
        .arg(Arg::new("database").value_name("DATABASE").help("Database to begin with"))
        .arg(text("use", "NAME", "The same as a flag").short('D').alias("database").conflicts_with("database"))
        .arg(text("execute", "STATEMENTS", "Run these and leave").short('e'))
        .arg(
            text("format", "NAME", "How results are shown [default: table]")
                .value_parser(clap::builder::PossibleValuesParser::new(formats))
                .ignore_case(true),
        )
        .arg(flag("no-header", "Results without the names of their columns"))
        .arg(flag("show-warnings", "Show warnings behind each statement"))
        .arg(flag("force", "Go on behind a statement that fails; the exit code is 1 all the same").short('f'))
        .arg(flag("local-infile", "Let the server ask for files of this machine (LOAD DATA LOCAL)"))
}

pub fn run(arguments: &ArgMatches) -> Result<ExitCode, String> {
    let get = |name: &str| arguments.get_one::<String>(name).cloned();
    let mut options = arguments::options(arguments)?;
    options.database = get("database").or(get("use"));
    let execute = get("execute");
    let prompt = execute.is_none() && std::io::stdin().is_terminal();
    let format = get("format").and_then(|name| Format::by_name(&name)).unwrap_or(Format::Table);
    let beginning = Beginning {
        prompt,
        format,
        header: !arguments.get_flag("no-header"),
        show_warnings: arguments.get_flag("show-warnings"),
        local_files: arguments.get_flag("local-infile"),
    };
    let mut session = Session::begin(options, Watch::begin()?, &beginning)?;
    let force = arguments.get_flag("force");
    if prompt {
        return prompt::run(session, force).map(|()| ExitCode::SUCCESS);
    }
    match execute {
        Some(text) => finish(&mut session, text.as_bytes(), &Origin::argument(force)),
        None => finish(&mut session, std::io::stdin().lock(), &Origin::file("standard input".into(), force)),
    }
}

/// Runs a whole text; how the process ends.
fn finish(session: &mut Session, text: impl Read, origin: &Origin) -> Result<ExitCode, String> {
    let mut statements = Statements::new(text, session.limit);
    match script::run(session, &mut statements, origin) {
        Ok(Flow::Failed) => Ok(ExitCode::FAILURE),
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(Failure::Interrupted(_)) => Ok(ExitCode::from(INTERRUPTED)),
        Err(Failure::Statement(reason) | Failure::Lost(reason) | Failure::Output(reason)) => Err(reason),
    }
}

/// Runs statements for a tool and shows what they answer; no commands.
pub fn show(conn: &mut Conn, text: &str) -> Result<(), String> {
    let mut statements = Statements::new(text.as_bytes(), text.len());
    let how = results::How { format: Format::Table, header: true, counts: true };
    let mut output = output::Output::default();
    while let Some(piece) = statements.take().map_err(|e| e.to_string())? {
        let Piece::Statement(statement) = piece else { return Err("a command of the shell among statements".into()) };
        let text = literals::to_text(statement.text)?;
        results::show(conn, &text, how, &mut output, None).map_err(|trouble| match trouble {
            results::Trouble::Server(error) => error.to_string(),
            results::Trouble::Output(reason) => reason,
        })?;
    }
    Ok(())
}
