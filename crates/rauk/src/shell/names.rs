//! Tab completion: words of SQL, databases, tables and columns, as the server has them.
//!
//! Names are read when Tab is pressed, by a connection of their own: the session keeps its transaction, its warnings and
//! its last insert id, and a server that hangs delays a Tab by [`PATIENCE`] at most. They are kept until a statement may
//! have changed them (DDL, USE), or `rehash`. What is kept is bounded: of each kind the first few thousand, and tables and
//! columns of at most [`MOST_DATABASES`] databases.
//!
//! What is offered depends on what stands in front:
//!
//! - behind USE: databases; behind FROM, JOIN, INTO, UPDATE, TABLE, DESCRIBE, TRUNCATE: tables and databases;
//! - behind `x.`: columns of the table x, tables of the database x, else columns of the tables in the statement;
//! - elsewhere: words, tables, databases, and columns of the tables in the statement, or of all while it names none;
//! - in a quoted text: nothing.

use crate::client::commands::COMMANDS;
use crate::client::{self, Options};
use mysql::prelude::Queryable;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::cell::RefCell;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(3);
const MOST_DATABASES: usize = 8;
/// Most candidates that are offered.
const MOST_OFFERED: usize = 500;

const WORDS: &str =
    "SELECT WORD, RESERVED FROM information_schema.KEYWORDS WHERE WORD IS NOT NULL ORDER BY WORD LIMIT 2000";
const DATABASES: &str = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME LIMIT 2000";
const COLUMNS: &str = "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = ? \
     ORDER BY TABLE_NAME, ORDINAL_POSITION LIMIT 20000";

/// What the completer knows of the session, and what it has read.
pub struct Names {
    options: Options,
    changes: u64,
    /// The lines of the statement before the one that is being typed.
    before: String,
    known: RefCell<Known>,
}

#[derive(Default)]
struct Known {
    /// The session's count of changes when it was read.
    at: Option<u64>,
    /// With whether it is reserved.
    words: Vec<(String, bool)>,
    databases: Vec<String>,
    tables: Vec<Database>,
}

struct Database {
    name: String,
    tables: Vec<Table>,
}

struct Table {
    name: String,
    columns: Vec<String>,
}

impl Names {
    pub fn new(options: Options) -> Names {
        Names { options, changes: 0, before: String::new(), known: RefCell::default() }
    }

    /// Before each line.
    pub fn update(&mut self, options: &Options, changes: u64, before: &str) {
        self.options = options.clone();
        self.changes = changes;
        self.before = before.into();
    }

    /// Reads what is needed and not known, of the current database and of `database`.
    fn read(&self, database: Option<&str>) -> Result<(), String> {
        let mut known = self.known.borrow_mut();
        if known.at != Some(self.changes) {
            *known = Known { at: None, words: std::mem::take(&mut known.words), ..Known::default() };
        }
        let wanted: Vec<&str> = [self.options.database.as_deref(), database].into_iter().flatten().collect();
        let is_known = |known: &Known, name: &str| known.tables.iter().any(|d| d.name == name);
        if known.at.is_some() && wanted.iter().all(|name| is_known(&known, name)) {
            return Ok(());
        }
        let options = Options { answer: Some(PATIENCE), database: None, ..self.options.clone() };
        let mut conn = client::connect(&options)?.conn;
        let told = |e: mysql::Error| e.to_string();
        if known.words.is_empty() {
            let words: Vec<(String, u64)> = conn.query(WORDS).unwrap_or_default();
            known.words = words.into_iter().map(|(word, reserved)| (word, reserved != 0)).collect();
        }
        if known.at.is_none() {
            known.databases = conn.query(DATABASES).map_err(told)?;
        }
        for name in wanted {
            if is_known(&known, name) {
                continue;
            }
            let rows: Vec<(String, String)> = conn.exec(COLUMNS, (name,)).map_err(told)?;
            let mut tables: Vec<Table> = Vec::new();
            for (table, column) in rows {
                match tables.last_mut() {
                    Some(last) if last.name == table => last.columns.push(column),
                    _ => tables.push(Table { name: table, columns: vec![column] }),
                }
            }
            if known.tables.len() >= MOST_DATABASES {
                known.tables.remove(0);
            }
            known.tables.push(Database { name: name.into(), tables });
        }
        known.at = Some(self.changes);
        Ok(())
    }

    fn offer(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let typed = Typed::of(&line[..at]);
        if typed.in_text {
            return (at, Vec::new());
        }
        let database = match typed.qualifiers.as_slice() {
            [] => None,
            [first, ..] => Some(first.as_str()).filter(|name| self.known.borrow().databases.iter().any(|d| d == name)),
        };
        // Without a server there is nothing to offer.
        if self.read(database).is_err() {
            return (at, Vec::new());
        }
        if database.is_none()
            && let [first, ..] = typed.qualifiers.as_slice()
            && self.known.borrow().databases.contains(first)
            && self.read(Some(first)).is_err()
        {
            return (at, Vec::new());
        }
        let statement = format!("{}\n{line}", self.before);
        let first = self.before.trim().is_empty();
        let known = self.known.borrow();
        (typed.start, known.candidates(&typed, &statement, self.options.database.as_deref(), first))
    }
}

/// What stands in front of the cursor.
struct Typed {
    /// Where the word begins that is to be completed.
    start: usize,
    word: String,
    /// The word begins with a backtick.
    quoted: bool,
    /// `a.b.` in front of the word.
    qualifiers: Vec<String>,
    /// The word in front, in capitals.
    previous: String,
    in_text: bool,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

impl Typed {
    fn of(text: &str) -> Typed {
        let word_start = |text: &str| text.trim_end_matches(is_word).len();
        let mut start = word_start(text);
        let word = text[start..].to_string();
        let quoted = text[..start].ends_with('`');
        start -= usize::from(quoted);
        let mut front = &text[..start];
        let mut qualifiers = Vec::new();
        while let Some(before) = front.strip_suffix('.') {
            let inner = before.strip_suffix('`').unwrap_or(before);
            let at = word_start(inner);
            if at == inner.len() {
                break;
            }
            qualifiers.insert(0, inner[at..].to_string());
            front = inner[..at].strip_suffix('`').unwrap_or(&inner[..at]);
        }
        let front = front.trim_end();
        let previous = front[word_start(front)..].to_ascii_uppercase();
        let in_text = ['\'', '"'].into_iter().any(|quote| text.matches(quote).count() % 2 == 1);
        Typed { start, word, quoted, qualifiers, previous, in_text }
    }
}

impl Known {
    fn database(&self, name: Option<&str>) -> &[Table] {
        let found = self.tables.iter().find(|d| Some(d.name.as_str()) == name);
        found.map_or(&[], |d| d.tables.as_slice())
    }

    fn candidates(&self, typed: &Typed, statement: &str, current: Option<&str>, first_line: bool) -> Vec<String> {
        let tables = self.database(current);
        let named = |table: &Table| statement.split(|c| !is_word(c)).any(|word| word.eq_ignore_ascii_case(&table.name));
        let mut found: Vec<String> = Vec::new();
        let mut name = |text: &str| self.add(&mut found, typed, text);
        match (typed.qualifiers.as_slice(), typed.previous.as_str()) {
            ([table], _) if tables.iter().any(|t| t.name.eq_ignore_ascii_case(table)) => {
                tables
                    .iter()
                    .filter(|t| t.name.eq_ignore_ascii_case(table))
                    .flat_map(|t| &t.columns)
                    .for_each(|c| name(c));
            }
            ([database], _) if self.databases.contains(database) => {
                self.database(Some(database)).iter().for_each(|t| name(&t.name));
            }
            ([database, table], _) => {
                let tables = self.database(Some(database)).iter();
                tables.filter(|t| t.name.eq_ignore_ascii_case(table)).flat_map(|t| &t.columns).for_each(|c| name(c));
            }
            // An alias, probably.
            ([_, ..], _) => tables.iter().filter(|t| named(t)).flat_map(|t| &t.columns).for_each(|c| name(c)),
            ([], "USE" | "U") => self.databases.iter().for_each(|d| name(d)),
            ([], "FROM" | "JOIN" | "INTO" | "UPDATE" | "TABLE" | "DESCRIBE" | "DESC" | "TRUNCATE") => {
                tables.iter().for_each(|t| name(&t.name));
                self.databases.iter().for_each(|d| name(d));
            }
            ([], _) if typed.word.is_empty() => {}
            ([], previous) => {
                let some_named = tables.iter().any(named);
                let columns = tables.iter().filter(|t| !some_named || named(t)).flat_map(|t| &t.columns);
                columns.for_each(|c| name(c));
                tables.iter().for_each(|t| name(&t.name));
                self.databases.iter().for_each(|d| name(d));
                if !typed.quoted {
                    let lower = typed.word.starts_with(|c: char| c.is_lowercase());
                    let words = self.words.iter().map(|(word, _)| word.as_str());
                    // A command stands in front of everything.
                    let own = COMMANDS.iter().flat_map(|c| c.words).copied();
                    let own = own.filter(|_| first_line && previous.is_empty());
                    for word in words.chain(own).filter(|w| begins(w, &typed.word)) {
                        found.push(if lower { word.to_lowercase() } else { word.to_uppercase() });
                    }
                }
            }
        }
        found.sort_by_key(|text| text.to_lowercase());
        found.dedup();
        found.truncate(MOST_OFFERED);
        found
    }

    /// A name that begins as what was typed, in backticks where it needs them.
    fn add(&self, found: &mut Vec<String>, typed: &Typed, name: &str) {
        if !begins(name, &typed.word) {
            return;
        }
        let plain = name.chars().all(is_word)
            && !name.chars().all(|c| c.is_ascii_digit())
            && !self.words.iter().any(|(word, reserved)| *reserved && word.eq_ignore_ascii_case(name));
        found.push(if plain && !typed.quoted { name.into() } else { format!("`{}`", name.replace('`', "``")) });
    }
}

fn begins(name: &str, with: &str) -> bool {
    let mut name = name.chars().flat_map(char::to_lowercase);
    with.chars().flat_map(char::to_lowercase).all(|c| name.next() == Some(c))
}

impl Completer for Names {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.offer(line, at))
    }
}

impl Helper for Names {}
impl Highlighter for Names {}
impl Hinter for Names {
    type Hint = String;
}
impl Validator for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let table = |name: &str, columns: &[&str]| Table {
            name: name.into(),
            columns: columns.iter().map(|c| c.to_string()).collect(),
        };
        Known {
            at: Some(0),
            words: [("SELECT", true), ("SET", true), ("FROM", true), ("ORDER", true), ("SERIAL", false)]
                .map(|(word, reserved)| (word.to_string(), reserved))
                .to_vec(),
            databases: vec!["mysql".into(), "shop".into(), "stock".into()],
            tables: vec![
                Database {
                    name: "shop".into(),
                    tables: vec![
                        table("customers", &["id", "name"]),
                        table("order", &["id", "total sum"]),
                        table("Sellers", &["seller"]),
                    ],
                },
                Database { name: "stock".into(), tables: vec![table("items", &["item"])] },
            ],
        }
    }

    /// What is offered at the end of a text.
    fn offered(text: &str) -> Vec<String> {
        let typed = Typed::of(text);
        if typed.in_text { Vec::new() } else { known().candidates(&typed, text, Some("shop"), true) }
    }

    #[test]
    fn words_and_names_by_what_stands_in_front() {
        assert_eq!(offered("sel"), ["select", "seller", "Sellers"]);
        assert_eq!(offered("SE"), ["SELECT", "seller", "Sellers", "SERIAL", "SET"]);
        assert_eq!(offered("SELECT * FROM c"), ["customers"]);
        assert_eq!(offered("SELECT * FROM "), ["`order`", "customers", "mysql", "Sellers", "shop", "stock"]);
        assert_eq!(offered("use s"), ["shop", "stock"]);
        assert_eq!(offered("UPDATE customers SET n"), ["name"]);
        assert_eq!(offered("SELECT i FROM customers WHERE customers."), ["id", "name"]);
        assert_eq!(offered("SELECT * FROM stock."), ["items"]);
        assert_eq!(offered("SELECT stock.items.i"), ["item"]);
        assert_eq!(offered("SELECT * FROM customers c WHERE c.n"), ["name"]);
        assert_eq!(offered("SELECT * FROM `o"), ["`order`"]);
        assert_eq!(offered("SELECT * FROM `order` WHERE t"), ["`total sum`"]);
        assert_eq!(offered("so"), ["source"]);
        for text in ["", "SELECT ", "SELECT 's", "SELECT \"s", "SELECT x", "SELECT so"] {
            assert_eq!(offered(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn the_word_begins_where_it_should() {
        let typed = |text: &str| {
            let typed = Typed::of(text);
            (typed.start, typed.word, typed.qualifiers, typed.previous)
        };
        assert_eq!(typed("SELECT a.b"), (9, "b".into(), vec!["a".into()], "SELECT".into()));
        assert_eq!(typed("SELECT `a`.`b"), (11, "b".into(), vec!["a".into()], "SELECT".into()));
        assert_eq!(typed("x a.b."), (6, "".into(), vec!["a".into(), "b".into()], "X".into()));
        assert_eq!(typed("größe ä"), (8, "ä".into(), vec![], "GRößE".into()));
        assert_eq!(typed("."), (1, "".into(), vec![], "".into()));
        assert_eq!(typed(""), (0, "".into(), vec![], "".into()));
    }
}
