//! Connections of `rauk import` and `rauk export`, and the kinds of errors that a server answers with.
//!
//! What an error means decides what becomes of a batch: a *row* that the server refuses can be put aside, a *conflict* is
//! tried again, and everything else ends the import. So each code has its kind here and nowhere else.

use crate::client;
use mysql::Conn;
use mysql::prelude::Queryable;

/// Where the server is and who connects.
#[derive(Clone, Debug)]
pub struct Place(pub client::Options);

/// Strict, as MySQL's default is; a 0 in a file is no question for the next number of an AUTO_INCREMENT column.
const MODES: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,\
                     NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO";

/// How the sessions of an import are set.
#[derive(Clone, Debug, Default)]
pub struct Session {
    pub zero_dates: bool,
    pub skip_foreign_keys: bool,
    pub time_zone: Option<String>,
}

impl Place {
    pub fn connect(&self) -> Result<Conn, String> {
        client::connect(&self.0).map(|connection| connection.conn)
    }

    /// A connection whose session is set for an import.
    pub fn session(&self, session: &Session) -> Result<Conn, String> {
        let mut connection = self.connect()?;
        let zero_dates = if session.zero_dates { "" } else { ",NO_ZERO_DATE,NO_ZERO_IN_DATE" };
        let keys = u8::from(!session.skip_foreign_keys);
        let set =
            format!("SET NAMES utf8mb4, sql_mode = '{MODES}{zero_dates}', foreign_key_checks = {keys}, autocommit = 1");
        connection.query_drop(set).map_err(|e| told(&e))?;
        if let Some(zone) = &session.time_zone {
            connection.exec_drop("SET time_zone = ?", (zone,)).map_err(|e| format!("--time-zone: {}", told(&e)))?;
        }
        Ok(connection)
    }
}

/// The longest packet that the server takes.
pub fn packet(connection: &mut Conn) -> Result<usize, String> {
    let packet: Option<usize> = connection.query_first("SELECT @@max_allowed_packet").map_err(|e| told(&e))?;
    packet.ok_or_else(|| "the server does not say its max_allowed_packet".into())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value or a row that cannot be stored.
    Row,
    /// Other transactions, or a cluster that moves a primary, were in the way.
    Conflict,
    /// The memory limit.
    Full,
    /// There is no connection any more.
    Lost,
    Other,
}

pub fn kind(error: &mysql::Error) -> Kind {
    let mysql::Error::MySqlError(error) = error else { return Kind::Lost };
    match error.code {
        1114 => Kind::Full,
        1020 | 1205 | 1213 => Kind::Conflict,
        1053 | 1927 => Kind::Lost,
        // Of SQLSTATE HY000 and 01000, those about values: no default, a wrong or truncated value, a broken character,
        // a value that no partition takes, a CHECK that does not hold.
        1265 | 1300 | 1364 | 1366 | 1411 | 1526 | 1748 | 3643 | 3819 | 4025 => Kind::Row,
        // A row that is too large for its table, an invalid JSON document or geometry.
        1118 | 1416 | 3140 | 3141 | 3156 | 3157 | 3617 => Kind::Row,
        _ if error.state.starts_with("22") || error.state.starts_with("23") => Kind::Row,
        _ => Kind::Other,
    }
}

pub fn told(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(e) => format!("ERROR {} ({}): {}", e.code, e.state, e.message),
        other => format!("the connection to the server is lost ({other})"),
    }
}

pub fn code(error: &mysql::Error) -> Option<u16> {
    match error {
        mysql::Error::MySqlError(e) => Some(e.code),
        _ => None,
    }
}
