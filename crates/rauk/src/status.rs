//! `rauk status`: the cluster, or the lone node, as a node with the role sql tells of it in its system tables.

use crate::client::{self, arguments};
use crate::out;
use clap::{ArgMatches, Command};
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

/// What is shown: a heading, and the statement that gives it.
const PARTS: &[(&str, &str)] = &[
    (
        "Nodes",
        "SELECT node_id AS node, roles, status, process_id AS process, sql_address, ROUND(memory_used / 1048576) AS memory_mib, \
         CONCAT(ROUND(memory_used * 100 / memory_limit), ' %, ', memory_status) AS of_limit, \
         primaries, replicas, uptime_seconds AS up_s FROM rauk.nodes ORDER BY node_id",
    ),
    (
        "Partitions",
        "SELECT partition_id AS `partition`, group_id AS `group`, view_number AS view, primary_node AS `primary`, in_sync, \
         CONCAT(in_sync_count, ' of ', wanted) AS replicas, joining, lag_entries AS `lag`, health FROM rauk.partitions ORDER BY partition_id",
    ),
];

pub fn command() -> Command {
    arguments::with_connection(Command::new("status"))
        .about("Show nodes, partitions and health, as a node with the role sql knows them")
}

pub fn run(arguments: &ArgMatches) -> Result<(), String> {
    let mut connection = client::connect(&arguments::options(arguments)?)?.conn;
    let health: Vec<(String, String)> =
        connection.query("SELECT status, reason FROM rauk.health").map_err(|e| e.to_string())?;
    for (at, (status, reason)) in health.iter().enumerate() {
        match (at, reason.is_empty()) {
            (0, true) => out::line(format_args!("{status}: everything is as configured"))?,
            (0, false) => out::line(format_args!("{status}: {reason}"))?,
            (_, _) => out::line(format_args!("  {reason}"))?,
        }
    }
    for (heading, statement) in PARTS {
        out::line(format_args!("\n{heading}\n{}", table(&mut connection, statement)?))?;
    }
    Ok(())
}

fn table(connection: &mut Conn, statement: &str) -> Result<Table, String> {
    let mut result = connection.query_iter(statement).map_err(|e| e.to_string())?;
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(result.columns().as_ref().iter().map(|c| c.name_str().into_owned()));
    for row in result.by_ref() {
        let row: Row = row.map_err(|e| e.to_string())?;
        table.add_row(row.unwrap_raw().into_iter().map(|v| shown(&v.unwrap_or(Value::NULL))));
    }
    Ok(table)
}

fn shown(value: &Value) -> String {
    match value {
        Value::NULL => "-".into(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => other.as_sql(true).trim_matches('\'').into(),
    }
}
