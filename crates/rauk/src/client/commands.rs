//! The shell's own commands, as one table: their words, letters, arguments and help.
//!
//! The splitter must know them, since a command ends with its line and a statement with the delimiter; the shell executes
//! them; `help` prints them. One table serves all three, so they cannot differ. A command is written as a word at the
//! beginning of a statement (`source FILE`) or as a backslash with a letter (`\. FILE`). Words are taken in either case,
//! letters are not: `\g` and `\G` differ. No word begins a statement of SQL, with two exceptions: USE means the same in
//! both, and HELP of MySQL's servers gives way to the shell's own.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Clear,
    Connect,
    Delimiter,
    Edit,
    Ego,
    Format,
    Go,
    Help,
    NoPager,
    NoTee,
    NoWarnings,
    Pager,
    Print,
    Quit,
    Rehash,
    Source,
    Status,
    System,
    Tee,
    Use,
    Warnings,
}

/// How far a command reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    None,
    /// To the delimiter or the end of the line.
    Word,
    /// To the end of the line: a command of the system may have a delimiter in it.
    Line,
}

pub struct Command {
    pub name: Name,
    /// Empty: there is a letter only.
    pub words: &'static [&'static str],
    pub letters: &'static [u8],
    pub argument: Argument,
    /// What the argument is; empty: there is none.
    pub shown: &'static str,
    pub help: &'static str,
}

macro_rules! command {
    ($name:ident, $words:expr, $letters:expr, $argument:ident, $shown:literal, $help:literal) => {
        Command {
            name: Name::$name,
            words: $words,
            letters: $letters,
            argument: Argument::$argument,
            shown: $shown,
            help: $help,
        }
    };
}

pub const COMMANDS: &[Command] = &[
    command!(Help, &["help", "?"], b"h?", Word, "[COMMAND]", "Show the commands, or one of them"),
    command!(Clear, &["clear"], b"c", None, "", "Forget the statement that is being typed"),
    command!(Connect, &["connect"], b"r", Word, "[DATABASE]", "Connect again"),
    command!(Delimiter, &["delimiter"], b"d", Line, "TEXT", "Statements end with TEXT from here on"),
    command!(Edit, &["edit"], b"e", None, "", "Edit the statement, or the last one, in $VISUAL or $EDITOR"),
    command!(Ego, &[], b"G", None, "", "Run the statement, show each row as lines of its columns"),
    command!(Format, &["format"], b"F", Word, "NAME", "Show results as table, vertical, csv, tsv, json or markdown"),
    command!(Go, &[], b"g", None, "", "Run the statement"),
    command!(NoPager, &["nopager"], b"n", None, "", "Show results without a pager"),
    command!(NoTee, &["notee"], b"t", None, "", "Stop writing to the file of tee"),
    command!(NoWarnings, &["nowarning"], b"w", None, "", "Do not show warnings behind each statement"),
    command!(Pager, &["pager"], b"P", Line, "[COMMAND]", "Show results through COMMAND, by default $PAGER"),
    command!(Print, &[], b"p", None, "", "Show the statement that is being typed"),
    command!(Quit, &["quit", "exit"], b"q", None, "", "Leave"),
    command!(Rehash, &["rehash"], b"#", None, "", "Read the names for Tab completion again"),
    command!(Source, &["source"], b".", Word, "FILE", "Run the statements of a file"),
    command!(Status, &["status"], b"s", None, "", "Show the connection"),
    command!(System, &["system"], b"!", Line, "COMMAND", "Run a command of the system"),
    command!(Tee, &["tee"], b"T", Word, "FILE", "Append all that is shown to a file too"),
    command!(Use, &["use"], b"u", Word, "DATABASE", "Change the database"),
    command!(Warnings, &["warnings"], b"W", None, "", "Show warnings behind each statement"),
];

/// The longest word of a command.
pub const LONGEST_WORD: usize = 9;

pub fn by_word(word: &[u8]) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.words.iter().any(|w| w.as_bytes().eq_ignore_ascii_case(word)))
}

pub fn by_letter(letter: u8) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.letters.contains(&letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_letters_are_used_once() {
        let words: Vec<&str> = COMMANDS.iter().flat_map(|c| c.words).copied().collect();
        let letters: Vec<u8> = COMMANDS.iter().flat_map(|c| c.letters).copied().collect();
        for (at, word) in words.iter().enumerate() {
            assert!(word.len() <= LONGEST_WORD && !words[at + 1..].contains(word), "{word}");
            assert_eq!(by_word(word.to_uppercase().as_bytes()).map(|c| c.words.contains(word)), Some(true));
        }
        for (at, letter) in letters.iter().enumerate() {
            assert!(!letters[at + 1..].contains(letter), "{}", *letter as char);
        }
        // \N is NULL in SQL.
        assert!(by_letter(b'N').is_none());
    }
}
