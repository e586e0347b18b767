//! Definitions: open a table by name, create and drop tables, create databases.
//!
//! What a client may create goes through the same checks as SQL's CREATE TABLE ([`super::create`]); databases that SQL makes up cannot be changed.

use super::create;
use super::failure::{malformed, of_mysql, of_node, refused};
use super::rights::Allowed;
use super::session::{Answered, Call};
use crate::{Changing, NodeError, TableHandle};
use rauk_types::error::codes;
use rauk_types::schema::MAX_IDENTIFIER_CHARS;
use rauk_types::{MysqlError, TableSchema};
use rauk_wire::definition::{self as wire, CreateDatabase, CreateTable, Definition, DropTable, TableName};
use rauk_wire::{Failure, Kind};
use std::time::Duration;

/// Databases that hold no tables of anybody's.
const SYSTEM: [&str; 4] = ["information_schema", "mysql", "performance_schema", "rauk"];

fn is_system(name: &str) -> bool {
    // The two schemas have no case.
    SYSTEM.contains(&name) || SYSTEM.iter().any(|s| s.ends_with("_schema") && s.eq_ignore_ascii_case(name))
}

fn refuse_system(name: &str) -> Result<(), Failure> {
    if is_system(name) {
        let text = format!("Access denied to database '{name}': it is the system's own");
        return Err(refused(codes::DBACCESS_DENIED, text));
    }
    Ok(())
}

/// Of databases and tables.
pub fn check_name(name: &str, code: u16, what: &str) -> Result<(), Failure> {
    if name.chars().count() > MAX_IDENTIFIER_CHARS {
        return Err(refused(codes::TOO_LONG_IDENT, format!("Identifier name '{name}' is too long")));
    }
    if name.is_empty() || name.ends_with(' ') || name.contains(['\0', '\u{1}']) {
        return Err(refused(code, format!("Incorrect {what} name '{name}'")));
    }
    Ok(())
}

pub async fn run(call: &mut Call<'_>, frame: &mut Vec<u8>) -> Answered {
    let payload = &call.request.payload;
    match call.request.kind {
        Kind::OpenTable => {
            let name: TableName = wire::decode(payload).map_err(malformed)?;
            check(call, &name, Allowed::SEE)?;
            let table = find(call, &name)?;
            answer(call, &table, frame)
        }
        Kind::CreateTable => {
            let wanted: CreateTable = wire::decode(payload).map_err(malformed)?;
            let name = TableName { database: wanted.schema.database.clone(), table: wanted.schema.name.clone() };
            check(call, &name, Allowed::CREATE)?;
            let _changing = changing(call).await?;
            let table = create_table(call, wanted).await?;
            answer(call, &table, frame)
        }
        Kind::DropTable => {
            let wanted: DropTable = wire::decode(payload).map_err(malformed)?;
            check(call, &wanted.name, Allowed::DROP)?;
            let _changing = changing(call).await?;
            drop_table(call, wanted).await?;
            Ok((Kind::Done, std::mem::take(frame)))
        }
        _ => {
            let wanted: CreateDatabase = wire::decode(payload).map_err(malformed)?;
            if let Some(account) = call.session.tables.account() {
                account.check_database(&wanted.name, Allowed::CREATE)?;
            }
            let _changing = changing(call).await?;
            create_database(call, wanted).await?;
            Ok((Kind::Done, std::mem::take(frame)))
        }
    }
}

/// Whether the account may do so with a table of this name. Error 1142, whether or not there is such a table.
fn check(call: &Call<'_>, name: &TableName, needs: Allowed) -> Result<(), Failure> {
    match call.session.tables.account() {
        Some(account) => account.check_name(&name.database, &name.table, needs),
        None => Ok(()),
    }
}

/// Waits for FLUSH TABLES WITH READ LOCK.
async fn changing(call: &Call<'_>) -> Result<Changing, Failure> {
    call.session.service.database.changing(patience(call)).await.map_err(of_node)
}

fn answer(call: &Call<'_>, table: &TableHandle, frame: &mut Vec<u8>) -> Answered {
    let partitions = call.session.service.database.partition_count();
    // Where the rows of a partitioned table are is the node's to know: thousands of partitions say nothing to a program.
    let schema = TableSchema { partitioning: None, ..(**table.schema()).clone() };
    wire::encode(&Definition { schema, partitions }, frame);
    Ok((Kind::Definition, std::mem::take(frame)))
}

/// 1049 or 1146 when it is not there.
fn find(call: &Call<'_>, name: &TableName) -> Result<TableHandle, Failure> {
    let database = &call.session.service.database;
    database.table(&name.database, &name.table).map_err(|error| {
        match database.database_collation(&name.database).is_none() && !is_system(&name.database) {
            true => of_mysql(&MysqlError::new(codes::BAD_DB, format!("Unknown database '{}'", name.database))),
            false => of_node(error),
        }
    })
}

async fn create_table(call: &Call<'_>, wanted: CreateTable) -> Result<TableHandle, Failure> {
    let database = &call.session.service.database;
    let schema = wanted.schema;
    refuse_system(&schema.database)?;
    check_name(&schema.name, codes::WRONG_TABLE_NAME, "table")?;
    if database.database_collation(&schema.database).is_none() {
        return Err(refused(codes::BAD_DB, format!("Unknown database '{}'", schema.database)));
    }
    let schema = create::check(schema)?;
    let name = TableName { database: schema.database.clone(), table: schema.name.clone() };
    let exists = |code: u16| code == codes::TABLE_EXISTS;
    let mut looks = 0;
    while database.table(&name.database, &name.table).is_err() {
        match database.create_table(schema.clone()).await {
            Ok(()) => return find(call, &name),
            // Somebody was faster, and has it in the catalog but not in use yet.
            Err(NodeError::Refused(error)) if exists(error.code) && looks < MAX_LOOKS => {
                looks += 1;
                database.node.runtime.sleep(LOOK_AGAIN).await;
            }
            Err(error) => return Err(of_node(error)),
        }
    }
    let found = find(call, &name)?;
    if wanted.if_not_exists && same_table(found.schema(), &schema) {
        return Ok(found);
    }
    let difference = if wanted.if_not_exists { ", with other columns or keys" } else { "" };
    Err(refused(codes::TABLE_EXISTS, format!("Table '{}' already exists{difference}", name.table)))
}

/// A table that somebody else is making is there a moment later: how often, and after how long, it is looked for.
const MAX_LOOKS: u32 = 1000;
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The same columns in their order, and the same keys, whatever these are called.
fn same_table(a: &TableSchema, b: &TableSchema) -> bool {
    let columns = |t: &TableSchema| {
        let one = |c: &rauk_types::Column| (c.name.to_lowercase(), c.ty, c.nullable);
        t.visible_columns().iter().map(one).collect::<Vec<_>>()
    };
    let keys = |t: &TableSchema| {
        let mut keys: Vec<_> = t.indexes.iter().map(|i| format!("{:?} {:?}", i.kind, i.parts)).collect();
        keys.sort_unstable();
        keys
    };
    columns(a) == columns(b) && keys(a) == keys(b) && a.auto_increment == b.auto_increment
}

/// How long a DDL waits for transactions that use the table.
fn patience(call: &Call<'_>) -> Duration {
    let limit = call.session.service.limits.lock_wait;
    call.request.deadline.map_or(limit, |deadline| deadline.min(limit))
}

async fn drop_table(call: &Call<'_>, wanted: DropTable) -> Result<(), Failure> {
    refuse_system(&wanted.name.database)?;
    let database = &call.session.service.database;
    let TableName { database: in_database, table } = &wanted.name;
    match database.drop_table(in_database, table, patience(call)).await {
        Err(NodeError::Refused(error)) if wanted.if_exists && error.code == codes::BAD_TABLE => Ok(()),
        result => result.map_err(of_node),
    }
}

async fn create_database(call: &Call<'_>, wanted: CreateDatabase) -> Result<(), Failure> {
    check_name(&wanted.name, codes::WRONG_DB_NAME, "database")?;
    let exists = || {
        let text = format!("Can't create database '{}'; database exists", wanted.name);
        refused(codes::DB_CREATE_EXISTS, text)
    };
    if is_system(&wanted.name) {
        return Err(exists());
    }
    let database = &call.session.service.database;
    match database.create_database(&wanted.name, wanted.collation).await {
        Err(NodeError::Refused(error)) if error.code == codes::DB_CREATE_EXISTS => {
            if wanted.if_not_exists {
                Ok(())
            } else {
                Err(exists())
            }
        }
        result => result.map_err(of_node),
    }
}
