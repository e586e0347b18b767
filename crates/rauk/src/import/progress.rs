//! What of a file is in the table, stored beside the rows.
//!
//! Two tables of the target's database: `rauk_import` has a row for each file that is being imported (its identity, and
//! who imports it), `rauk_import_ranges` one for each committed range of a file. A batch of rows and its range are
//! one transaction, so that whatever is killed, and whenever, a range is there exactly when its rows are. Both rows go
//! when the import has ended, and the tables with the last file.
//!
//! Two processes never import the same file. Each start writes its own random number as the *owner* of the file, and
//! each batch reads the owner with a shared lock that it holds until it commits. So a new owner waits for batches of the
//! old one that are about to commit, even if its process was killed, and sees their ranges; a batch that comes later
//! finds another owner and stops.
//!
//! A process that has lost its connection makes another and sends the batch again. If the first COMMIT has come through, or
//! is about to, the range's key exists, and the batch is known to be stored.
//!
//! A file is the one that was begun when path, size and modification time are the same. A row of about 100 bytes for
//! each half MiB of a file is what progress costs.

use super::columns::Table;
use super::literal::quoted;
use super::records::Span;
use super::server;
use mysql::prelude::Queryable;
use mysql::{Conn, params};

const FILES: &str = "rauk_import";
const RANGES: &str = "rauk_import_ranges";
/// How often a start creates the tables again, since the end of another import drops them.
const STARTS: usize = 20;

/// What says that a file is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Absolute.
    pub path: String,
    pub size: u64,
    /// Nanoseconds, as the file system has them.
    pub modified: i64,
    /// How the file is read: other settings give other records.
    pub settings: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub rows: u64,
    pub rejected: u64,
    /// Rows that were there already (`--on-duplicate ignore`).
    pub skipped: u64,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.rows += other.rows;
        self.rejected += other.rejected;
        self.skipped += other.skipped;
    }
}

#[derive(Clone, Debug)]
pub struct Progress {
    database: String,
    id: u64,
    owner: u64,
}

/// What was committed before.
#[derive(Debug, Default)]
pub struct Done {
    pub spans: Vec<Span>,
    pub counts: Counts,
}

/// Why a batch did not begin.
pub enum NotBegun {
    Taken,
    /// It was committed before: the connection was lost when the answer to its COMMIT was on its way.
    Committed,
    Error(mysql::Error),
}

impl From<mysql::Error> for NotBegun {
    fn from(error: mysql::Error) -> NotBegun {
        NotBegun::Error(error)
    }
}

fn place(database: &str, table: &str) -> String {
    format!("{}.{table}", quoted(database))
}

impl Progress {
    /// Becomes the owner of the file.
    pub fn begin(
        connection: &mut Conn,
        table: &Table,
        identity: &Identity,
        restart: bool,
    ) -> Result<(Progress, Done), String> {
        let about = |e: mysql::Error| {
            format!("cannot keep the progress of the import in {}: {}", place(&table.database, FILES), server::told(&e))
        };
        for _ in 0..STARTS {
            create(connection, &table.database).map_err(about)?;
            match take(connection, table, identity, restart) {
                Ok(taken) => return taken,
                Err(error) => {
                    // Whatever it was, the transaction must not go on.
                    let _ = connection.query_drop("ROLLBACK");
                    let gone = server::code(&error) == Some(1146);
                    if !gone && server::kind(&error) != server::Kind::Conflict {
                        return Err(about(error));
                    }
                }
            }
        }
        Err("other imports into this database begin and end all the time; start again".into())
    }

    /// Opens the transaction of a batch: its range is there unless it is rolled back.
    pub fn open(&self, connection: &mut Conn, span: Span, counts: Counts) -> Result<(), NotBegun> {
        connection.query_drop("START TRANSACTION")?;
        let owner: Option<u64> = connection.query_first(format!(
            "SELECT owner FROM {} WHERE id = {} FOR SHARE",
            place(&self.database, FILES),
            self.id
        ))?;
        if owner != Some(self.owner) {
            return Err(NotBegun::Taken);
        }
        let inserted = connection.query_drop(format!(
            "INSERT INTO {} (import, begins, ends, line, next_line, row_count, rejected, skipped) VALUES ({}, {}, {}, {}, {}, {}, {}, {})",
            place(&self.database, RANGES),
            self.id,
            span.begin,
            span.end,
            span.line,
            span.next_line,
            counts.rows,
            counts.rejected,
            counts.skipped
        ));
        match inserted {
            Err(error) if server::code(&error) == Some(1062) => Err(NotBegun::Committed),
            other => other.map_err(NotBegun::Error),
        }
    }

    /// What was committed of a range.
    pub fn committed(&self, connection: &mut Conn, span: Span) -> Result<Counts, mysql::Error> {
        let counts: Option<(u64, u64, u64)> = connection.query_first(format!(
            "SELECT row_count, rejected, skipped FROM {} WHERE import = {} AND begins = {}",
            place(&self.database, RANGES),
            self.id,
            span.begin
        ))?;
        let (rows, rejected, skipped) = counts.unwrap_or_default();
        Ok(Counts { rows, rejected, skipped })
    }

    /// Other counts than those that the range was opened with.
    pub fn correct(&self, connection: &mut Conn, span: Span, counts: Counts) -> Result<(), mysql::Error> {
        connection.query_drop(format!(
            "UPDATE {} SET row_count = {}, rejected = {}, skipped = {} WHERE import = {} AND begins = {}",
            place(&self.database, RANGES),
            counts.rows,
            counts.rejected,
            counts.skipped,
            self.id,
            span.begin
        ))
    }

    /// Forgets the file. The tables go with the last one.
    pub fn end(&self, connection: &mut Conn) -> Result<(), String> {
        let (files, ranges) = (place(&self.database, FILES), place(&self.database, RANGES));
        let mut run = |sql: String| connection.query_drop(sql).map_err(|e| server::told(&e));
        run("START TRANSACTION".into())?;
        run(format!("DELETE FROM {ranges} WHERE import = {}", self.id))?;
        run(format!("DELETE FROM {files} WHERE id = {}", self.id))?;
        run("COMMIT".into())?;
        // Between looking and dropping nobody may begin.
        run(format!("LOCK TABLES {files} WRITE, {ranges} WRITE"))?;
        let left: Result<Option<u64>, _> = connection.query_first(format!("SELECT COUNT(*) FROM {files}"));
        let dropped = match left {
            Ok(Some(0)) => connection.query_drop(format!("DROP TABLE {files}, {ranges}")),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        let unlocked = connection.query_drop("UNLOCK TABLES");
        dropped.and(unlocked).map_err(|e| server::told(&e))
    }
}

fn create(connection: &mut Conn, database: &str) -> Result<(), mysql::Error> {
    connection.query_drop(format!(
        "CREATE TABLE IF NOT EXISTS {} (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, target VARCHAR(64) NOT NULL, \
         path_hash CHAR(64) CHARACTER SET ascii NOT NULL, path TEXT NOT NULL, size BIGINT UNSIGNED NOT NULL, \
         modified BIGINT NOT NULL, settings TEXT NOT NULL, owner BIGINT UNSIGNED NOT NULL, UNIQUE KEY (target, path_hash)) \
         DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT 'Files that rauk import is reading'",
        place(database, FILES)
    ))?;
    connection.query_drop(format!(
        "CREATE TABLE IF NOT EXISTS {} (import BIGINT UNSIGNED, begins BIGINT UNSIGNED, ends BIGINT UNSIGNED NOT NULL, \
         line BIGINT UNSIGNED NOT NULL, next_line BIGINT UNSIGNED NOT NULL, row_count BIGINT UNSIGNED NOT NULL, \
         rejected BIGINT UNSIGNED NOT NULL, skipped BIGINT UNSIGNED NOT NULL, PRIMARY KEY (import, begins)) \
         COMMENT 'Parts of files that rauk import has committed'",
        place(database, RANGES)
    ))
}

type Taken = Result<(Progress, Done), String>;

fn take(connection: &mut Conn, table: &Table, identity: &Identity, restart: bool) -> Result<Taken, mysql::Error> {
    let (files, ranges) = (place(&table.database, FILES), place(&table.database, RANGES));
    let owner = crate::client::unlikely_number();
    connection.query_drop("START TRANSACTION")?;
    let values = || {
        params! {
            "target" => &table.name,
            "path" => &identity.path,
            "size" => identity.size,
            "modified" => identity.modified,
            "settings" => &identity.settings,
            "owner" => owner,
        }
    };
    let inserted = connection.exec_drop(
        format!(
            "INSERT INTO {files} (target, path_hash, path, size, modified, settings, owner) \
             VALUES (:target, SHA2(:path, 256), :path, :size, :modified, :settings, :owner)"
        ),
        values(),
    );
    let fresh = match inserted {
        Ok(()) => true,
        Err(error) if server::code(&error) == Some(1062) => false,
        Err(error) => return Err(error),
    };
    let found: Option<(u64, u64, i64, String)> = connection.exec_first(
        format!(
            "SELECT id, size, modified, settings FROM {files} WHERE target = :target AND path_hash = SHA2(:path, 256) FOR UPDATE"
        ),
        params! { "target" => &table.name, "path" => &identity.path },
    )?;
    let Some((id, size, modified, settings)) = found else {
        connection.query_drop("ROLLBACK")?;
        return Ok(Err("the progress of the file was removed by another import; start again".into()));
    };
    let progress = Progress { database: table.database.clone(), id, owner };
    if !fresh && restart {
        connection.query_drop(format!("DELETE FROM {ranges} WHERE import = {id}"))?;
    }
    if !fresh && !restart {
        let changed = if (size, modified) != (identity.size, identity.modified) {
            Some(format!("{} has changed since its import into {table} was begun", identity.path))
        } else if settings != identity.settings {
            Some(format!(
                "the import of {} into {table} was begun with other options ({settings}; now {})",
                identity.path, identity.settings
            ))
        } else {
            None
        };
        if let Some(changed) = changed {
            connection.query_drop("ROLLBACK")?;
            return Ok(Err(format!(
                "{changed}; rows of it are in the table. Remove them and give --restart, which reads the file from its beginning"
            )));
        }
    }
    connection.exec_drop(
        format!("UPDATE {files} SET size = :size, modified = :modified, settings = :settings, owner = :owner WHERE id = {id}"),
        params! {
            "size" => identity.size,
            "modified" => identity.modified,
            "settings" => &identity.settings,
            "owner" => owner,
        },
    )?;
    connection.query_drop("COMMIT")?;
    let mut done = Done::default();
    let rows: Vec<(u64, u64, u64, u64, u64, u64, u64)> = connection.query(format!(
        "SELECT begins, ends, line, next_line, row_count, rejected, skipped FROM {ranges} WHERE import = {id} ORDER BY begins"
    ))?;
    for (begin, end, line, next_line, row_count, rejected, skipped) in rows {
        done.spans.push(Span { begin, end, line, next_line });
        done.counts.add(Counts { rows: row_count, rejected, skipped });
    }
    Ok(Ok((progress, done)))
}
