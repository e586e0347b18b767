//! Statements and commands, wherever they come from.
//!
//! | origin | an error | commands that reach the system (`system`, `tee`, `edit`, `pager`) |
//! |---|---|---|
//! | the prompt | is shown; the next is read | run |
//! | `-e` | ends it, as of a file | `system` and `tee` run |
//! | a file or standard input | ends it, with its name and the line where the statement begins | are refused: who runs a dump has not read it |
//!
//! With `--force` a statement that fails is told on standard error and the next one runs; a text that cannot be divided
//! into statements, and a lost connection, end it all the same. A file of `source` is a text of its own, with its own
//! delimiter; it may have `source` in it, [`DEEPEST`] levels deep, unless a dump has forbidden that
//! ([`crate::client::split`]).

use super::format::{FORMATS, Format};
use super::session::{Failure, Session};
use super::watch::shell_command;
use crate::client::commands::{self, COMMANDS, Name};
use crate::client::split::{Piece, SplitError, Statements, Typed, Why};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;

const DEEPEST: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Prompt,
    Argument,
    File,
}

/// Where statements come from.
#[derive(Clone)]
pub struct Origin {
    source: Source,
    name: String,
    force: bool,
    depth: u32,
    sandboxed: bool,
}

impl Origin {
    fn new(source: Source, name: String, force: bool) -> Origin {
        Origin { source, name, force, depth: 0, sandboxed: false }
    }

    pub fn prompt(force: bool) -> Origin {
        Origin::new(Source::Prompt, String::new(), force)
    }

    pub fn argument(force: bool) -> Origin {
        Origin::new(Source::Argument, String::new(), force)
    }

    pub fn file(name: String, force: bool) -> Origin {
        Origin::new(Source::File, name, force)
    }

    /// The beginning of an error message.
    fn place(&self, line: u64) -> String {
        match self.source {
            Source::Prompt => String::new(),
            Source::Argument if line == 1 => String::new(),
            Source::Argument => format!("line {line}: "),
            Source::File => format!("{}:{line}: ", self.name),
        }
    }
}

/// How the shell goes on behind a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Flow {
    On,
    Quit,
    /// It has gone on behind errors.
    Failed,
    /// Text that was edited, to be read next.
    Edited(String),
}

/// Runs a text to its end.
pub fn run<R: Read>(session: &mut Session, statements: &mut Statements<R>, origin: &Origin) -> Result<Flow, Failure> {
    let mut failed = false;
    loop {
        let piece = statements.take().map_err(|error| Failure::Statement(told(origin, &error)))?;
        let Some(piece) = piece else { break };
        let line = match &piece {
            Piece::Statement(statement) => statement.line,
            Piece::Command(typed) => typed.line,
        };
        let origin = Origin { sandboxed: origin.sandboxed || statements.splitter.sandboxed(), ..origin.clone() };
        let delimiter = String::from_utf8_lossy(statements.splitter.delimiter()).into_owned();
        match one(session, piece, &delimiter, &origin) {
            Ok(Flow::Quit) => return Ok(if failed { Flow::Failed } else { Flow::Quit }),
            Ok(Flow::Failed) => failed = true,
            Ok(_) => {}
            Err(Failure::Statement(reason)) if origin.force => {
                session.output.complain(&format!("{}{reason}", origin.place(line)));
                failed = true;
            }
            Err(Failure::Statement(reason)) => return Err(Failure::Statement(origin.place(line) + &reason)),
            Err(Failure::Lost(reason)) => return Err(Failure::Lost(origin.place(line) + &reason)),
            Err(other) => return Err(other),
        }
    }
    Ok(if failed { Flow::Failed } else { Flow::On })
}

pub fn told(origin: &Origin, error: &SplitError) -> String {
    match &error.why {
        // A directory, for example: no line is to blame.
        Why::Read(_) if error.line == 1 && origin.source == Source::File => format!("{}: {error}", origin.name),
        _ => format!("{}{error}", origin.place(error.line)),
    }
}

/// Runs a piece.
pub fn one(session: &mut Session, piece: Piece, delimiter: &str, origin: &Origin) -> Result<Flow, Failure> {
    match piece {
        Piece::Statement(statement) => {
            let label = origin.place(statement.line);
            session.run(statement, &label).map(|()| Flow::On)
        }
        Piece::Command(typed) => command(session, typed, delimiter, origin),
    }
}

fn command(session: &mut Session, typed: Typed, delimiter: &str, origin: &Origin) -> Result<Flow, Failure> {
    let argument = typed.argument.as_str();
    let wrong = |text: &str| Err(Failure::Statement(text.into()));
    let by_hand = origin.source != Source::File;
    let say = |session: &mut Session, text: &str| match session.prompt {
        true => session.output.line(text).map_err(Failure::Output),
        false => Ok(()),
    };
    match typed.name {
        Name::Help => help(session, argument)?,
        Name::Quit => return Ok(Flow::Quit),
        // These are the splitter's.
        Name::Clear | Name::Delimiter | Name::Ego | Name::Go => {}
        Name::Connect => session.connect_again(Some(argument).filter(|a| !a.is_empty()))?,
        Name::Use if argument.is_empty() => return wrong("use needs the name of a database"),
        Name::Use => session.use_database(argument, &origin.place(typed.line))?,
        Name::Source => return source(session, argument, origin),
        Name::Format => match Format::by_name(argument) {
            Some(format) => session.format = format,
            None => {
                let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
                return wrong(&format!("there is no format '{argument}'; there are {}", names.join(", ")));
            }
        },
        Name::Warnings => {
            session.show_warnings = true;
            say(session, "warnings are shown")?;
        }
        Name::NoWarnings => {
            session.show_warnings = false;
            say(session, "warnings are not shown")?;
        }
        Name::Status => session.status(delimiter)?,
        Name::Rehash => session.changes += 1,
        Name::Print => {
            let text = String::from_utf8_lossy(&typed.before).into_owned();
            session.output.line(&text).map_err(Failure::Output)?;
        }
        Name::NoPager => session.output.pager = None,
        Name::NoTee => session.output.tee = None,
        Name::Pager if origin.source != Source::Prompt => return wrong("pager is a command of the prompt"),
        Name::Pager => {
            let command =
                if argument.is_empty() { std::env::var("PAGER").unwrap_or_default() } else { argument.into() };
            if command.is_empty() {
                return wrong("pager needs a command, here or in PAGER");
            }
            say(session, &format!("results go to '{command}'"))?;
            session.output.pager = Some(command);
        }
        Name::Edit if origin.source != Source::Prompt => return wrong("edit is a command of the prompt"),
        Name::Edit => return edit(&typed.before, session.limit).map(Flow::Edited).map_err(Failure::Statement),
        Name::Tee | Name::System if !by_hand || origin.sandboxed => {
            let word = if typed.name == Name::Tee { "tee" } else { "system" };
            return wrong(&format!("{word} is not run from a file or from standard input"));
        }
        Name::Tee if argument.is_empty() => return wrong("tee needs a file"),
        Name::Tee => session.output.tee_to(argument).map_err(Failure::Statement)?,
        Name::System if argument.is_empty() => return wrong("system needs a command"),
        Name::System => {
            let status = shell_command(argument).status();
            match status {
                Ok(status) if status.success() => {}
                Ok(status) => return wrong(&format!("{argument}: {status}")),
                Err(error) => return wrong(&format!("cannot run sh: {error}")),
            }
        }
    }
    Ok(Flow::On)
}

fn help(session: &mut Session, of: &str) -> Result<(), Failure> {
    let shown: Vec<&commands::Command> = match of.trim_start_matches('\\') {
        "" => COMMANDS.iter().collect(),
        name => {
            let by_letter = || match name.as_bytes() {
                [letter] => commands::by_letter(*letter),
                _ => None,
            };
            match commands::by_word(name.as_bytes()).or_else(by_letter) {
                Some(command) => vec![command],
                None => return Err(Failure::Statement(format!("there is no command '{of}'; help lists all"))),
            }
        }
    };
    let mut text = String::new();
    for command in shown {
        let letters: Vec<String> = command.letters.iter().map(|l| format!("\\{}", *l as char)).collect();
        let words = command.words.join(", ");
        text += &format!("{words:14}{:8}{:12}{}\n", letters.join(" "), command.shown, command.help);
    }
    if of.is_empty() {
        text += "Statements end with the delimiter (;), \\g or \\G. Ctrl-C cancels the statement that runs; Ctrl-D leaves.\n\
                 Tab completes words, databases, tables and columns. docs/shell.md says more.";
    }
    session.output.line(text.trim_end()).map_err(Failure::Output)
}

fn source(session: &mut Session, name: &str, origin: &Origin) -> Result<Flow, Failure> {
    if origin.sandboxed {
        return Err(Failure::Statement("source is not run: the dump has switched on the sandbox mode".into()));
    }
    if origin.depth >= DEEPEST {
        return Err(Failure::Statement(format!(
            "source inside of source, {DEEPEST} levels deep; is {name} one of them?"
        )));
    }
    let name = name.trim_matches(['\'', '"']);
    if name.is_empty() {
        return Err(Failure::Statement("source needs a file".into()));
    }
    let file = File::open(name).map_err(|e| Failure::Statement(format!("cannot open {name}: {e}")))?;
    let inside = Origin { source: Source::File, name: name.into(), depth: origin.depth + 1, ..origin.clone() };
    let mut statements = Statements::new(file, session.limit);
    match run(session, &mut statements, &inside)? {
        // Quitting in a file ends the file.
        Flow::Quit => Ok(Flow::On),
        other => Ok(other),
    }
}

/// A text as somebody has changed it in an editor, in a file that others cannot read.
fn edit(text: &[u8], longest: usize) -> Result<String, String> {
    let editor = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    let editor = editor.unwrap_or_else(|| "vi".into());
    let path =
        std::env::temp_dir().join(format!("rauk-{}-{:016x}.sql", std::process::id(), crate::client::unlikely_number()));
    let told = |e: std::io::Error| format!("cannot edit: {}: {e}", path.display());
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(told)?;
    let edited = file.write_all(text).and_then(|()| file.write_all(b"\n")).map_err(told).and_then(|()| {
        let status = shell_command(&format!("{editor} \"$1\"")).arg("sh").arg(&path).status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(format!("'{editor}' has failed ({status}); nothing is run")),
            Err(error) => return Err(format!("cannot run sh: {error}")),
        }
        let mut text = String::new();
        let read = File::open(&path).and_then(|f| f.take(longest as u64 + 1).read_to_string(&mut text));
        match read {
            Ok(n) if n > longest => Err(format!("the text is longer than {longest} bytes")),
            Ok(_) => Ok(text),
            Err(error) => Err(told(error)),
        }
    });
    let _ = std::fs::remove_file(&path);
    edited
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::commands::Argument;

    #[test]
    fn errors_name_their_place() {
        assert_eq!(Origin::prompt(false).place(3), "");
        assert_eq!(
            (Origin::argument(false).place(1), Origin::argument(false).place(2)),
            ("".into(), "line 2: ".into())
        );
        assert_eq!(Origin::file("a.sql".into(), false).place(7), "a.sql:7: ");
    }

    #[test]
    fn help_fits_its_columns() {
        for command in COMMANDS {
            assert!(command.words.join(", ").len() < 14 && command.shown.len() < 12, "{}", command.help);
            assert_eq!(command.argument == Argument::None, command.shown.is_empty(), "{}", command.help);
        }
    }
}
