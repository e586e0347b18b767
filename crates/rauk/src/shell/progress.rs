//! How far a long statement is, as its server says.
//!
//! `rauk.jobs` has the DDL statements of a server that work through many rows. The thread that shows times asks it by a
//! connection of its own, which lives no longer than the statement. A server that does not answer, or has no such table
//! (another one than Rauk), is not asked again for this statement.

use crate::client::{self, Connection, Options};
use mysql::prelude::Queryable;
use std::time::Duration;

/// How long the server may take for the connection and for each answer.
const ANSWER: Duration = Duration::from_secs(2);

/// A statement of a server that may say how far it is.
#[derive(Clone)]
pub struct Asked {
    /// Another one for each statement.
    pub number: u64,
    /// Of the statement.
    pub connection: u32,
    pub server: Options,
}

/// What it takes to ask for one statement.
enum Way {
    Open(Connection),
    /// It was tried.
    None,
}

#[derive(Default)]
pub struct Asker {
    way: Option<(u64, Way)>,
}

impl Asker {
    /// `copying rows 51 %, 2 s left`, if the server says so.
    pub fn ask(&mut self, asked: &Asked) -> Option<String> {
        let way = self.way.take().filter(|(number, _)| *number == asked.number);
        let mut way = way.map_or_else(|| connect(&asked.server), |(_, way)| way);
        let answer = match &mut way {
            Way::None => None,
            Way::Open(connection) => match ask(connection, asked.connection) {
                Ok(answer) => answer,
                Err(_) => {
                    way = Way::None;
                    None
                }
            },
        };
        self.way = Some((asked.number, way));
        answer
    }

    /// The statement has ended.
    pub fn end(&mut self) {
        self.way = None;
    }
}

fn connect(server: &Options) -> Way {
    let server = Options { answer: Some(ANSWER), ..server.clone() };
    client::connect(&server).map_or(Way::None, Way::Open)
}

fn ask(connection: &mut Connection, of: u32) -> mysql::Result<Option<String>> {
    let sql = format!("SELECT work, per_cent, seconds_left FROM rauk.jobs WHERE id = {of}");
    let row: Option<(String, u64, Option<u64>)> = connection.conn.query_first(sql)?;
    Ok(row.map(|(work, percent, left)| {
        let left = left.map_or_else(String::new, |seconds| format!(", {seconds} s left"));
        format!("{work} {percent} %{left}")
    }))
}
