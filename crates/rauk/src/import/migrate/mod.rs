//! `rauk import mysql://…`: databases of a running MySQL or MariaDB, and `--check` of these and of dumps.
//!
//! - [`source`]: the connections to the other server, all on one snapshot where it lets them.
//! - [`schema`]: what it has (tables, views, routines, …), as the statements that it shows for it.
//! - [`rows`]: rows of tables, in ranges of their primary keys, over several connections.
//! - [`accounts`]: users and what they may do.
//! - [`findings`]: what is not taken, and what to do about it. Nothing is left out without being listed.
//! - [`scratch`], [`check`]: a server of this program for the time of a check, and what it says of a schema or a dump.
//!
//! Definitions come first, without foreign keys being checked, then rows, then views, since a view can read any table.
//! Whether something can be taken is never decided here: the statement is given to Rauk, and its answer counts.
//!
//! Left out: going on after a failure (the tables that were made are named, and go with DROP DATABASE), other names for
//! databases, and changes that the other server makes after the snapshot.

pub mod check;
pub mod dump;
pub mod scratch;

mod accounts;
mod findings;
mod rows;
mod schema;
mod source;

use super::options::Options;
use super::report;
use super::server::{self, Session};
use crate::out;
use findings::Findings;
use mysql::Conn;
use mysql::prelude::Queryable;
use schema::{Item, Schema};
use source::Source;
use std::time::Instant;

/// Whether a source is a server.
pub fn is_server(source: &str) -> bool {
    source.starts_with("mysql://") || source.starts_with("mariadb://")
}

/// Sessions in which what another server stores is taken as it is.
fn session() -> Session {
    Session { zero_dates: true, skip_foreign_keys: true, time_zone: Some("+00:00".into()) }
}

pub fn run(options: &Options, url: &str) -> Result<(), String> {
    let begun = Instant::now();
    let source = Source::connect(url, options.threads)?;
    let schema = source.schema.clone();
    let mut target = options.place.session(&session())?;
    refuse_existing(&mut target, &schema)?;
    let mut findings = Findings::new();
    let mut tables = Vec::new();
    for database in &schema.databases {
        run_item(&mut target, None, database, &mut findings)?;
    }
    for table in &schema.tables {
        if run_item(&mut target, Some(&table.database), &table.item, &mut findings)? {
            tables.push(table.clone());
        }
    }
    let copied = rows::copy(options, source, &tables).map_err(|e| {
        let made: Vec<&str> = schema.databases.iter().map(|d| d.name.as_str()).collect();
        format!("{e}; databases {} are there in part: drop them before you start again", made.join(", "))
    })?;
    create_views(&mut target, &schema.views, &mut findings)?;
    for other in &schema.others {
        run_item(&mut target, Some(&other.database), &other.item, &mut findings)?;
    }
    let mut accounts = 0;
    if options.users {
        accounts = accounts::copy(&schema.accounts, &mut target, &mut findings)?;
    }
    for line in findings.lines() {
        eprintln!("{line}");
    }
    let time = begun.elapsed().as_secs_f64();
    let users = if options.users { format!(", {accounts} users") } else { String::new() };
    out::line(format_args!(
        "{} of {} tables, {}{users} in {time:.1} s ({} rows/s)",
        tables.len(),
        schema.tables.len(),
        report::rows(copied),
        report::grouped((copied as f64 / time.max(1e-9)) as u64)
    ))?;
    findings.outcome()
}

/// Nothing that is there is written over.
fn refuse_existing(target: &mut Conn, schema: &Schema) -> Result<(), String> {
    let mut taken = Vec::new();
    for table in &schema.tables {
        let found: Option<u8> = target
            .exec_first(
                "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?",
                (&table.database, &table.item.name),
            )
            .map_err(|e| server::told(&e))?;
        if found.is_some() {
            taken.push(format!("{}.{}", table.database, table.item.name));
        }
    }
    match taken.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(format!(
            "{} of the tables exist here already, {first} for example; drop or rename them, nothing was changed",
            taken.len()
        )),
    }
}

/// Whether the target has taken it; what it has not is a finding.
fn run_item(target: &mut Conn, database: Option<&str>, item: &Item, findings: &mut Findings) -> Result<bool, String> {
    let create = match &item.create {
        Ok(create) => create,
        Err(reason) => {
            findings.add_text(&item.label(database), reason);
            return Ok(false);
        }
    };
    let used = match database {
        Some(database) => target.query_drop(format!("USE {}", super::literal::quoted(database))),
        None => Ok(()),
    };
    match used.and_then(|()| target.query_drop(create)) {
        Ok(()) => Ok(true),
        Err(error) if server::code(&error).is_some() => {
            findings.add(&item.label(database), &error);
            Ok(false)
        }
        Err(error) => Err(server::told(&error)),
    }
}

/// A view can read other views, in an order that only their texts know: each round takes those whose views are there.
fn create_views(target: &mut Conn, views: &[schema::Table], findings: &mut Findings) -> Result<(), String> {
    let mut left: Vec<&schema::Table> = views.iter().collect();
    loop {
        let mut round = Findings::new();
        let before = left.len();
        let mut missing = Vec::new();
        for view in left {
            if !run_item(target, Some(&view.database), &view.item, &mut round)? {
                missing.push(view);
            }
        }
        if missing.is_empty() || missing.len() == before {
            findings.append(round);
            return Ok(());
        }
        left = missing;
    }
}
