//! Rows for programs and documents: csv, tsv, json, markdown. Each row is written when it comes.
//!
//! JSON has numbers for columns of numbers, digit by digit as the server sent them, so that a DECIMAL or a BIGINT loses
//! nothing here; documents of JSON columns stand in it as they are; all else is text.

use super::{Cell, Column, Kind, for_people};
use std::collections::HashSet;
use std::io::{self, Write};

pub fn csv_row(out: &mut dyn Write, cells: &[Cell]) -> io::Result<()> {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        match cell {
            None => {}
            Some(text) if text.is_empty() || text.contains([',', '"', '\n', '\r']) => {
                write!(out, "\"{}\"", text.replace('"', "\"\""))?;
            }
            Some(text) => out.write_all(text.as_bytes())?,
        }
    }
    out.write_all(b"\n")
}

pub fn tsv_row(out: &mut dyn Write, cells: &[Cell]) -> io::Result<()> {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            out.write_all(b"\t")?;
        }
        match cell {
            None => out.write_all(b"\\N")?,
            Some(text) if text.contains(['\t', '\n', '\r', '\\']) => {
                let text = text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r");
                out.write_all(text.as_bytes())?;
            }
            Some(text) => out.write_all(text.as_bytes())?,
        }
    }
    out.write_all(b"\n")
}

/// Names that an object can have: the second `id` is `id_2`.
pub fn different_names(columns: Vec<Column>) -> Vec<Column> {
    let mut taken = HashSet::new();
    let given: HashSet<String> = columns.iter().map(|c| c.name.clone()).collect();
    columns
        .into_iter()
        .map(|column| {
            let mut name = column.name.clone();
            let mut number = 2;
            while !taken.insert(name.clone()) {
                name = loop {
                    let next = format!("{}_{number}", column.name);
                    number += 1;
                    if !given.contains(&next) {
                        break next;
                    }
                };
            }
            Column { name, ..column }
        })
        .collect()
}

pub fn json_row(out: &mut dyn Write, columns: &[Column], first: bool, cells: &[Cell]) -> io::Result<()> {
    out.write_all(if first { b"\n{" } else { b",\n{" })?;
    for (at, (column, cell)) in columns.iter().zip(cells).enumerate() {
        if at > 0 {
            out.write_all(b", ")?;
        }
        serde_json::to_writer(&mut *out, &column.name)?;
        out.write_all(b": ")?;
        match cell {
            None => out.write_all(b"null")?,
            Some(text) if column.kind == Kind::Number && is_json_number(text) => out.write_all(text.as_bytes())?,
            Some(text) if column.kind == Kind::Json && is_json(text) => out.write_all(text.as_bytes())?,
            Some(text) => serde_json::to_writer(&mut *out, text)?,
        }
    }
    out.write_all(b"}")
}

/// Numbers of ZEROFILL columns are none in JSON.
fn is_json_number(text: &str) -> bool {
    is_json(text) && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

pub fn markdown_header(out: &mut dyn Write, columns: &[Column]) -> io::Result<()> {
    let names: Vec<String> = columns.iter().map(|c| in_markdown(&c.name)).collect();
    writeln!(out, "| {} |", names.join(" | "))?;
    for column in columns {
        out.write_all(if column.kind == Kind::Number { b"|---:" } else { b"|---" })?;
    }
    out.write_all(b"|\n")
}

pub fn markdown_row(out: &mut dyn Write, cells: &[Cell]) -> io::Result<()> {
    let texts: Vec<String> = cells.iter().map(|cell| in_markdown(&for_people(cell))).collect();
    writeln!(out, "| {} |", texts.join(" | "))
}

fn in_markdown(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>").replace(['\n', '\r'], "<br>")
}
