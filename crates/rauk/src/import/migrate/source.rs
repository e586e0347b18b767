//! Connections to the other server.
//!
//! All read one snapshot: the tables are locked for the moment in which each connection begins a transaction WITH
//! CONSISTENT SNAPSHOT and the definitions are read, and unlocked at once. Where the account may not lock
//! (FLUSH TABLES WITH READ LOCK needs RELOAD), one connection alone reads, whose transaction is a snapshot by itself.
//! Tables of engines without transactions (MyISAM) have no snapshots: their rows are as they are when they are read.

use super::super::server;
use super::schema::{self, Schema};
use crate::client::{self, connect::Host};
use mysql::prelude::Queryable;
use mysql::{Conn, Opts};

pub struct Source {
    /// Each in its transaction.
    pub connections: Vec<Conn>,
    pub schema: Schema,
}

/// Sessions of the other server: texts in UTF-8, moments in UTC, names quoted as the import reads them.
const SET: &[&str] = &[
    "SET NAMES utf8mb4",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION sql_mode = ''",
    "SET SESSION transaction_isolation = 'REPEATABLE-READ'",
    "SET SESSION tx_isolation = 'REPEATABLE-READ'",
    // Idle while others read; a table can take long.
    "SET SESSION wait_timeout = 86400",
    "SET SESSION net_write_timeout = 3600",
    "SET SESSION sql_quote_show_create = 1",
    // MySQL's password hashes as digits, which need not be UTF-8 otherwise.
    "SET SESSION print_identified_with_as_hex = 1",
];

impl Source {
    pub fn connect(url: &str, threads: usize) -> Result<Source, String> {
        let (options, database) = options(url)?;
        let about = |e: String| format!("{}: {e}", options.hosts[0]);
        let mut first = open(&options).map_err(about)?;
        let locked = first.query_drop("FLUSH TABLES WITH READ LOCK");
        if let Err(error) = &locked {
            eprintln!(
                "{}: tables cannot be locked for a common snapshot ({}); one connection reads them all",
                options.hosts[0],
                server::told(error)
            );
        }
        let count = if locked.is_ok() { threads } else { 1 };
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            let mut connection = open(&options).map_err(about)?;
            connection.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT").map_err(|e| about(server::told(&e)))?;
            connections.push(connection);
        }
        let schema = schema::read(&mut first, database.as_deref()).map_err(about)?;
        if locked.is_ok() {
            first.query_drop("UNLOCK TABLES").map_err(|e| about(server::told(&e)))?;
        }
        Ok(Source { connections, schema })
    }
}

fn open(options: &client::Options) -> Result<Conn, String> {
    let mut connection = client::connect(options)?.conn;
    for set in SET {
        // Of the two names of a variable a server knows one.
        let _ = connection.query_drop(set);
    }
    Ok(connection)
}

/// Where the server is, and the one database that is wanted.
fn options(url: &str) -> Result<(client::Options, Option<String>), String> {
    let wanted = "wanted: mysql://USER:PASSWORD@HOST:PORT/DATABASE";
    let form = url.replacen("mariadb://", "mysql://", 1);
    // The password stays unsaid.
    let opts = Opts::from_url(&form).map_err(|e| format!("the address of the server is wrong ({e}); {wanted}"))?;
    let host = Host { name: opts.get_ip_or_hostname().into_owned(), port: opts.get_tcp_port() };
    let mut options = client::Options::root_at(&host.name, host.port);
    options.user = opts.get_user().unwrap_or("root").into();
    options.password = opts.get_pass().map(str::to_string).or_else(|| std::env::var("MYSQL_SOURCE_PWD").ok());
    Ok((options, opts.get_db_name().filter(|name| !name.is_empty()).map(str::to_string)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let (found, database) = options("mysql://me:se%40cret@db.example:3307/shop").expect("right");
        assert_eq!((found.hosts[0].to_string(), found.user.as_str()), ("db.example:3307".into(), "me"));
        assert_eq!((found.password.as_deref(), database.as_deref()), (Some("se@cret"), Some("shop")));
        let (found, database) = options("mariadb://h").expect("right");
        assert_eq!((found.hosts[0].to_string(), database), ("h:3306".into(), None));
        assert!(options("mysql://a:b:c:d").expect_err("wrong").contains("wanted: mysql://"));
    }
}
