//! The syntax tree as text: MySQL's canonical form, which SHOW CREATE VIEW, information_schema.VIEWS and CHECK
//! clauses show.
//!
//! ```text
//! mod         the printer: names, texts, lists; text for a sql_mode; text that is cut
//! expression  operators, literals, calls, types of CAST
//! query       SELECT, set operations, WITH, FROM, windows
//! change      INSERT, REPLACE, UPDATE, DELETE
//! names       names in full, as the catalog keeps the queries of views
//! reads       which common tables are read
//! definition  columns, keys and constraints, as in SHOW CREATE TABLE
//! partition   PARTITION BY
//! foreign     all of these for another server
//! ```
//! The form: keywords in lower case, names in quotes, each operator in parentheses of its own, commas without blanks:
//! ``select `t`.`a` AS `a`,(`t`.`b` + 1) AS `b + 1` from (`t` join `u` on((`t`.`a` = `u`.`a`)))``.
//!
//! Parsing the text gives the same tree, but for these, where MySQL prints something else too:
//! * a select item without alias gets its name as alias;
//! * tables between commas become joins without condition;
//! * `DATE_ADD(d, INTERVAL …)` becomes ``(`d` + interval …)``, DATE_SUB likewise; `a || b` becomes `concat(a,b)`,
//!   which every sql_mode reads alike;
//! * chains of AND and of OR become flat, thus balanced when they are read; names of functions come in lower case;
//! * the type BOOLEAN is `tinyint(1)`;
//! * `?` carries no number. `INTERVAL ? DAY + ?` prints the date first, so its parameters change places.
//!
//! What a text depends on is in the [`Mode`] that will read it: [`for_mode`]. `Display` prints for the default
//! sql_mode. [`Bounded`] prints as much of an expression as an error message can use. Printing takes stack where it
//! needs more ([`crate::stack`]).

mod change;
mod definition;
mod expression;
mod foreign;
mod names;
mod partition;
mod query;
mod reads;

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

pub use foreign::{Construct, Foreign, Met, for_server};
pub use names::{FullColumn, FullNames, in_full, of_own_row, without_database};
pub use reads::{Reader, are_read};

use super::ast::{self, ColumnName, Expr, TableName};
use super::lexer::{Mode, is_word_byte};
use super::reserved::is_reserved;
use std::fmt::{self, Display, Write};

/// Characters that [`Bounded`] prints at most, about: MySQL cuts its messages at 512 bytes.
const BOUNDED_LENGTH: usize = 1024;

/// A node that can be printed.
pub trait Print {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result;
}

/// Prints nodes one behind the other.
pub struct Printer<'w> {
    out: &'w mut dyn Write,
    mode: Mode,
    /// How many more levels of expressions are printed; what lies deeper is `...`.
    levels: usize,
    /// What names are printed as.
    names: Option<&'w FullNames>,
    /// The database that is not printed in front of names, and whether one of them has another.
    home: Option<&'w str>,
    is_away: bool,
    /// Columns are those of one row: printed without their table. Texts say their character set.
    of_own_row: bool,
    /// What is printed is asked only for the names of tables in it, and these are the ones met.
    reads: Option<reads::Names>,
    /// What is printed is for another server.
    abroad: Option<foreign::Abroad<'w>>,
}

/// The text of `tree` that reads back as the same tree under `mode`.
pub fn for_mode<T: Print>(tree: &T, mode: Mode) -> ForMode<'_, T> {
    ForMode { tree, mode }
}

pub struct ForMode<'t, T> {
    tree: &'t T,
    mode: Mode,
}

impl<T: Print> Display for ForMode<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tree.print(&mut Printer::new(f, self.mode))
    }
}

/// An expression as error messages show it: what lies deeper than so many levels is printed as `...`, and what is too
/// long ends in it.
pub struct Bounded<'t>(pub &'t Expr, pub usize);

impl Display for Bounded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cut = Cut { out: f, room: BOUNDED_LENGTH, is_over: false };
        let result = Printer { levels: self.1, ..Printer::new(&mut cut, Mode::default()) }.expr(self.0);
        if cut.is_over { f.write_str("...") } else { result }
    }
}

/// Passes on a beginning of what it is given, and fails behind that.
struct Cut<'w, 'f> {
    out: &'w mut fmt::Formatter<'f>,
    room: usize,
    is_over: bool,
}

impl Write for Cut<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.floor_char_boundary(self.room);
        self.room -= end;
        self.out.write_str(&text[..end])?;
        self.is_over = end < text.len();
        if self.is_over { Err(fmt::Error) } else { Ok(()) }
    }
}

/// A list of identical implementations: each node prints for the default sql_mode.
macro_rules! display {
    ($($node:ty),* $(,)?) => {
        $(impl Display for $node {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                for_mode(self, Mode::default()).fmt(f)
            }
        })*
    };
}

display!(
    ast::Expr,
    ast::CastType,
    ast::Query,
    ast::Select,
    ast::SelectItem,
    ast::OrderItem,
    ast::TableReference,
    ast::TableName,
    ast::ColumnName,
    ast::Insert,
    ast::Update,
    ast::Delete,
    ast::ColumnType,
    ast::ColumnDefinition,
    ast::TableConstraint,
    ast::PartitionClause,
);

impl<'w> Printer<'w> {
    fn new(out: &'w mut dyn Write, mode: Mode) -> Printer<'w> {
        Printer {
            out,
            mode,
            levels: usize::MAX,
            names: None,
            home: None,
            is_away: false,
            of_own_row: false,
            reads: None,
            abroad: None,
        }
    }
}

impl Printer<'_> {
    fn text(&mut self, text: &str) -> fmt::Result {
        self.out.write_str(text)
    }

    /// Items with commas between them.
    fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T) -> fmt::Result) -> fmt::Result {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.text(",")?;
            }
            each(self, item)?;
        }
        Ok(())
    }

    fn exprs(&mut self, items: &[Expr]) -> fmt::Result {
        self.list(items, Self::expr)
    }

    // Names

    /// A name in quotes.
    fn name(&mut self, name: &str) -> fmt::Result {
        self.quoted(name, if self.mode.ansi_quotes { '"' } else { '`' })
    }

    fn quoted(&mut self, name: &str, quote: char) -> fmt::Result {
        self.out.write_char(quote)?;
        for (at, part) in name.split(quote).enumerate() {
            if at > 0 {
                self.out.write_char(quote)?;
                self.out.write_char(quote)?;
            }
            self.text(part)?;
        }
        self.out.write_char(quote)
    }

    /// Of a character set or a collation: quotes only where it needs them.
    fn charset(&mut self, name: &str) -> fmt::Result {
        let bare = is_plain_word(name) && (!is_reserved(name) || name.eq_ignore_ascii_case("binary"));
        if bare { self.text(name) } else { self.name(name) }
    }

    /// ``(`a`,`b`)``
    fn names(&mut self, names: &[String]) -> fmt::Result {
        self.text("(")?;
        self.list(names, |p, name| p.name(name))?;
        self.text(")")
    }

    /// The names behind a blank, when there are any.
    fn column_names(&mut self, names: &[String]) -> fmt::Result {
        if names.is_empty() {
            return Ok(());
        }
        self.text(" ")?;
        self.names(names)
    }

    // Texts

    /// A text literal. Its quotes are doubled, which holds in every sql_mode; what else MySQL escapes is escaped
    /// unless the backslash is a character like others.
    fn string(&mut self, text: &str) -> fmt::Result {
        self.text("'")?;
        let mut written = 0;
        for (at, byte) in text.bytes().enumerate() {
            let escaped = match byte {
                b'\'' => "''",
                _ if self.mode.no_backslash_escapes => continue,
                b'\\' => "\\\\",
                0 => "\\0",
                b'\n' => "\\n",
                b'\r' => "\\r",
                0x1a => "\\Z",
                _ => continue,
            };
            self.text(&text[written..at])?;
            self.text(escaped)?;
            written = at + 1;
        }
        self.text(&text[written..])?;
        self.text("'")
    }
}

/// A name that is one word to the lexer, whatever stands before it.
fn is_plain_word(name: &str) -> bool {
    name.bytes().next().is_some_and(|b| !b.is_ascii_digit()) && name.bytes().all(is_word_byte)
}

impl Print for TableName {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.table_name(self)
    }
}

impl Print for ColumnName {
    fn print(&self, printer: &mut Printer<'_>) -> fmt::Result {
        printer.column_name(self)
    }
}
