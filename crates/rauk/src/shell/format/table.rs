//! Tables and rows as lines, for people.
//!
//! A table must know how wide its columns are before it writes the first row. It waits for the first [`SAMPLE_ROWS`]
//! rows or [`SAMPLE_BYTES`] bytes, whichever is less, takes the widths of these, and writes each later row at once. A
//! later value that is wider moves the rest of its line to the right; nothing is cut. A column is at most [`WIDEST`]
//! wide, so that one long text does not fill every other row with spaces.
//!
//! Widths are those of the terminal's columns: CJK characters take two, combining ones none. A value of several lines
//! takes as many lines of its row.

use super::{Cell, Column, Kind, for_people};
use std::borrow::Cow;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

const SAMPLE_ROWS: usize = 1000;
const SAMPLE_BYTES: usize = 4 << 20;
const WIDEST: usize = 512;
/// As many spaces show a tab: where it would end depends on what stands before it.
const TAB: &str = "    ";

#[derive(Default)]
pub struct Table {
    held: Vec<Vec<Cell>>,
    held_bytes: usize,
    /// `None`: the rows are still held.
    widths: Option<Vec<usize>>,
}

impl Table {
    pub fn row(&mut self, out: &mut dyn Write, columns: &[Column], header: bool, cells: Vec<Cell>) -> io::Result<()> {
        if let Some(widths) = &self.widths {
            return write_row(out, columns, widths, &cells);
        }
        self.held_bytes += cells.iter().flatten().map(String::len).sum::<usize>();
        self.held.push(cells);
        if self.held.len() >= SAMPLE_ROWS || self.held_bytes >= SAMPLE_BYTES {
            self.flush(out, columns, header)
        } else {
            Ok(())
        }
    }

    pub fn end(&mut self, out: &mut dyn Write, columns: &[Column], header: bool) -> io::Result<()> {
        if self.widths.is_none() && !self.held.is_empty() { self.flush(out, columns, header) } else { Ok(()) }
    }

    fn flush(&mut self, out: &mut dyn Write, columns: &[Column], header: bool) -> io::Result<()> {
        let mut widths = vec![0; columns.len()];
        if header {
            for (width, column) in widths.iter_mut().zip(columns) {
                *width = shown_width(&column.name).min(WIDEST);
            }
        }
        for row in &self.held {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = shown_width(&for_people(cell)).min(WIDEST).max(*width);
            }
        }
        if header {
            let names: Vec<Cell> = columns.iter().map(|c| Some(c.name.clone())).collect();
            let texts: Vec<Column> = columns.iter().map(|c| Column { name: String::new(), kind: c.kind }).collect();
            // A name is a name, even NULL.
            write_lines(
                out,
                &texts,
                &widths,
                &names.iter().map(|n| visible(n.as_deref().unwrap_or(""))).collect::<Vec<_>>(),
            )?;
            for width in &widths {
                write!(out, "|{:-<1$}", "", width + 2)?;
            }
            out.write_all(b"|\n")?;
        }
        for row in self.held.drain(..) {
            write_row(out, columns, &widths, &row)?;
        }
        self.widths = Some(widths);
        Ok(())
    }
}

fn write_row(out: &mut dyn Write, columns: &[Column], widths: &[usize], cells: &[Cell]) -> io::Result<()> {
    let people: Vec<Cow<'_, str>> = cells.iter().map(for_people).collect();
    let texts: Vec<Cow<'_, str>> = people.iter().map(|text| visible(text)).collect();
    write_lines(out, columns, widths, &texts)
}

/// One row, in as many lines as its highest value has.
fn write_lines(out: &mut dyn Write, columns: &[Column], widths: &[usize], texts: &[Cow<'_, str>]) -> io::Result<()> {
    let mut parts: Vec<_> = texts.iter().map(|text| text.split('\n')).collect();
    let height = texts.iter().map(|text| text.matches('\n').count() + 1).max().unwrap_or(1);
    for _ in 0..height {
        for ((part, column), width) in parts.iter_mut().zip(columns).zip(widths) {
            let text = part.next().unwrap_or("");
            let space = width.saturating_sub(text.width());
            match column.kind {
                Kind::Number => write!(out, "| {:space$}{text} ", "")?,
                _ => write!(out, "| {text}{:space$} ", "")?,
            }
        }
        out.write_all(b"|\n")?;
    }
    Ok(())
}

/// Without what would move the cursor.
fn visible(text: &str) -> Cow<'_, str> {
    match text.contains(['\t', '\r']) {
        true => text.replace('\t', TAB).replace('\r', "").into(),
        false => text.into(),
    }
}

fn shown_width(text: &str) -> usize {
    visible(text).split('\n').map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// A row with each column on a line of its own.
pub fn vertical(out: &mut dyn Write, columns: &[Column], number: u64, cells: &[Cell]) -> io::Result<()> {
    writeln!(out, "*************************** {number}. row ***************************")?;
    let widest = columns.iter().map(|c| c.name.width()).max().unwrap_or(0);
    for (column, cell) in columns.iter().zip(cells) {
        let space = widest - column.name.width();
        writeln!(out, "{:space$}{}: {}", "", column.name, for_people(cell))?;
    }
    Ok(())
}
