//! Dumps: files of SQL statements, one after the other over one connection.
//!
//! Statements are found by the shell's splitter, so that a dump may be of any size, have any delimiter, and bytes between
//! quotes. Commands of the shell that reach beyond the server (`source`, `system`, `tee`) are not run. A dump does not go on
//! after a failure, since its statements need not be repeatable: the line is told, and DROP DATABASE is the way back.

use crate::client::commands::Name;
use crate::client::literals::to_text;
use crate::client::split::{Piece, Statements};
use crate::import::literal::quoted;
use crate::import::options::Options;
use crate::import::report::{self, Report};
use crate::import::server::{self, Session};
use crate::out;
use mysql::prelude::Queryable;
use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

pub enum Statement<'a> {
    Text(&'a str),
    Use(&'a str),
    /// A command or bytes that are not run.
    Refused(&'a str),
}

/// Counts what is read through it.
struct Counted {
    file: File,
    bytes: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read(into)?;
        self.bytes.set(self.bytes.get() + n as u64);
        Ok(n)
    }
}

/// Calls `take` with the line and the statement, in order. A statement that is longer than the limit is an error.
pub fn each(
    path: &Path,
    limit: usize,
    take: impl FnMut(u64, Statement<'_>) -> Result<(), String>,
) -> Result<(), String> {
    each_counted(path, limit, &Rc::new(Cell::new(0)), take)
}

fn each_counted(
    path: &Path,
    limit: usize,
    bytes: &Rc<Cell<u64>>,
    mut take: impl FnMut(u64, Statement<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let shown = path.display();
    let file = File::open(path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    let mut statements = Statements::new(Counted { file, bytes: bytes.clone() }, limit);
    loop {
        match statements.take().map_err(|e| format!("{shown}:{}: {e}", e.line))? {
            None => return Ok(()),
            Some(Piece::Statement(statement)) => match to_text(statement.text) {
                Ok(text) => take(statement.line, Statement::Text(&text))?,
                Err(reason) => take(statement.line, Statement::Refused(&reason))?,
            },
            Some(Piece::Command(typed)) => match typed.name {
                Name::Use => take(typed.line, Statement::Use(typed.argument.trim().trim_matches('`')))?,
                Name::Source | Name::System | Name::Tee | Name::Connect | Name::Edit | Name::Pager => {
                    take(
                        typed.line,
                        Statement::Refused("a command of the shell that an import does not run; rauk sql does"),
                    )?;
                }
                // They change what a shell shows, or are the splitter's own.
                _ => {}
            },
        }
    }
}

pub fn run(options: &Options, path: &Path) -> Result<(), String> {
    let begun = Instant::now();
    let shown = path.display().to_string();
    // What a dump says of its session counts; where it says nothing, a value that does not fit is an error.
    let session = Session { zero_dates: true, ..options.session.clone() };
    let mut connection = options.place.session(&session)?;
    if let Some(database) = &options.database {
        connection.query_drop(format!("USE {}", quoted(database))).map_err(|e| server::told(&e))?;
    }
    let size = std::fs::metadata(path).map_err(|e| format!("cannot read {shown}: {e}"))?.len();
    let report = Report::new(&shown, size, 0, 0);
    let bytes = Rc::new(Cell::new(0));
    let (mut statements, mut rows, mut before) = (0u64, 0u64, 0u64);
    let ran = each_counted(path, server::packet(&mut connection)?, &bytes, |line, statement| {
        let at = |what: &str| format!("{shown}:{line}: {what}; what is before it was executed");
        let text = match statement {
            Statement::Use(name) => &format!("USE {}", quoted(name)),
            Statement::Text(text) => text,
            Statement::Refused(reason) => return Err(at(reason)),
        };
        connection.query_drop(text).map_err(|e| at(&server::told(&e)))?;
        statements += 1;
        let changed = connection.affected_rows();
        rows += changed;
        report.committed(bytes.get() - before, changed);
        before = bytes.get();
        Ok(())
    });
    report.end();
    ran?;
    let time = begun.elapsed().as_secs_f64();
    out::line(format_args!(
        "{shown}: {} statements, {}, {} in {time:.1} s",
        report::grouped(statements),
        report::rows(rows),
        report::size(size)
    ))
}
