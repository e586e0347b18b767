//! The prompt: a line editor, what was typed before, and what stands open.
//!
//! Lines go to the splitter as they come; a statement may have many. What was typed from the time when nothing was open
//! until nothing is open again is one entry of the history, with its line breaks. The history is a file in the home
//! directory that only its owner can read, and grows with each entry, so that a shell that is killed loses none. An entry
//! with the word IDENTIFIED or PASSWORD is not kept, neither in the file nor in memory: it may hold a password. MySQL's
//! client has the same rule.

use super::names::Names;
use super::script::{self, Flow, Origin};
use super::session::{Failure, Session};
use crate::client::commands::Name;
use crate::client::split::{Piece, Splitter};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const HISTORY_FILE: &str = ".rauk_history";
const MOST_ENTRIES: usize = 10_000;
/// A longer entry was pasted.
const LONGEST_ENTRY: usize = 64 * 1024;

pub fn run(mut session: Session, force: bool) -> Result<(), String> {
    let mut editor = editor(&session)?;
    let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(HISTORY_FILE));
    if let Some(file) = &history {
        // A first run has no history yet.
        let _ = std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600));
        let _ = editor.load_history(file);
    }
    let greeting = session.greeting();
    session.output.line(&greeting)?;
    session.watch.at_prompt();
    let origin = Origin::prompt(force);
    let mut splitter = Splitter::new(session.limit);
    let mut entry = String::new();
    // For `\e` without a statement in front.
    let mut last: Vec<u8> = Vec::new();
    loop {
        if let Some(names) = editor.helper_mut() {
            names.update(&session.options, session.changes, &entry);
        }
        match editor.readline(prompt(splitter.open())) {
            Ok(line) => {
                entry.push_str(&line);
                entry.push('\n');
                splitter.push(line.as_bytes());
                splitter.push(b"\n");
            }
            Err(ReadlineError::Interrupted) => {
                splitter.clear();
                entry.clear();
                continue;
            }
            Err(ReadlineError::Eof) => {
                session.output.line("")?;
                break;
            }
            Err(error) => return Err(error.to_string()),
        }
        let mut quit = false;
        while !quit {
            let piece = match splitter.take() {
                Ok(None) => break,
                Ok(Some(piece)) => piece,
                Err(error) => {
                    session.output.complain(&script::told(&origin, &error));
                    splitter.clear();
                    break;
                }
            };
            let piece = match piece {
                Piece::Statement(statement) => {
                    last.clone_from(&statement.text);
                    Piece::Statement(statement)
                }
                Piece::Command(mut typed) => {
                    if typed.name == Name::Edit && typed.before.is_empty() {
                        typed.before.clone_from(&last);
                    }
                    Piece::Command(typed)
                }
            };
            let delimiter = String::from_utf8_lossy(splitter.delimiter()).into_owned();
            match script::one(&mut session, piece, &delimiter, &origin) {
                Ok(Flow::Quit) => quit = true,
                Ok(Flow::Edited(text)) => {
                    // It is shown, since it may run at once.
                    session.output.line(text.trim_end())?;
                    entry.clone_from(&text);
                    splitter.push(text.as_bytes());
                }
                Ok(Flow::On | Flow::Failed) => {}
                Err(Failure::Statement(reason) | Failure::Lost(reason)) => session.output.complain(&reason),
                Err(Failure::Output(reason)) => return Err(reason),
                Err(Failure::Interrupted(said)) => {
                    if let Some(reason) = said {
                        session.output.complain(&reason);
                    }
                    // What was typed or pasted behind it was meant to follow it.
                    splitter.clear();
                }
            }
        }
        if splitter.open().is_none() || quit {
            remember(&mut editor, history.as_deref(), &std::mem::take(&mut entry));
        }
        if quit {
            break;
        }
    }
    Ok(())
}

fn editor(session: &Session) -> Result<Editor<Names, FileHistory>, String> {
    let config = Config::builder().max_history_size(MOST_ENTRIES).map_err(|e| e.to_string())?;
    let mut editor = Editor::with_config(config.auto_add_history(false).build()).map_err(|e| e.to_string())?;
    editor.set_helper(Some(Names::new(session.options.clone())));
    Ok(editor)
}

/// What stands in front of a line, of the same length wherever the statement is.
fn prompt(open: Option<&str>) -> &'static str {
    match open {
        None => "rauk> ",
        Some("'") => "   '> ",
        Some("\"") => "   \"> ",
        Some("`") => "   `> ",
        Some("/*") => "  /*> ",
        Some(_) => "   -> ",
    }
}

fn remember(editor: &mut Editor<Names, FileHistory>, file: Option<&Path>, entry: &str) {
    let entry = entry.trim();
    if entry.is_empty() || entry.len() > LONGEST_ENTRY || may_hold_a_password(entry) {
        return;
    }
    // A history that cannot be written is no reason to stop.
    if editor.add_history_entry(entry).is_ok_and(|added| added)
        && let Some(file) = file
    {
        let _ = editor.append_history(file);
    }
}

fn may_hold_a_password(entry: &str) -> bool {
    let entry = entry.to_ascii_uppercase();
    entry.contains("IDENTIFIED") || entry.contains("PASSWORD")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_remembered() {
        for secret in [
            "CREATE USER a IDENTIFIED BY 'x'",
            "create user a\nidentified\nby 'x'",
            "SET PASSWORD = 'x'",
            "SELECT PASSWORD('x')",
            "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = 'x'",
        ] {
            assert!(may_hold_a_password(secret), "{secret}");
        }
        assert!(!may_hold_a_password("SELECT pass FROM words"));
    }

    #[test]
    fn prompts_have_one_length() {
        for open in [None, Some("'"), Some("\""), Some("`"), Some("/*"), Some("-")] {
            assert_eq!(prompt(open).len(), 6);
        }
    }
}
