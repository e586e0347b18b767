//! `rauk sql`: a small SQL shell, since a fresh machine may have no MySQL client.
//!
//! It is an ordinary client over the MySQL protocol (the `mysql` crate). Statements end with `;`; results are shown as tables with the time they took.
//! A server may ask for a file of this machine only where `--local-infile` allows it (LOAD DATA LOCAL), as with MySQL's client.
//! With `-e` or piped input there is no prompt, and the first error ends it with exit code 1.

use crate::out;
use comfy_table::{Table, presets};
use mysql::prelude::Queryable;
use mysql::{Conn, LocalInfileHandler, OptsBuilder, Value};
use rustyline::error::ReadlineError;
use std::io::{IsTerminal, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub struct ShellOptions {
    pub host: String,
    pub port: u16,
    pub socket: Option<String>,
    pub user: String,
    pub password: Option<String>,
    pub database: Option<String>,
    pub execute: Option<String>,
    /// The server may ask for files.
    pub local_files: bool,
}

/// Why a file was not sent that the server has asked for.
type Refusal = Arc<Mutex<Option<String>>>;

/// A server of MySQL's protocol speaks first; who asks one of another protocol would wait for ever.
const GREETING: Duration = Duration::from_secs(5);

pub fn connect(options: &ShellOptions) -> Result<Conn, String> {
    if options.socket.is_none() {
        expect_greeting(options)?;
    }
    let builder = OptsBuilder::new()
        .ip_or_hostname(Some(&options.host))
        .tcp_port(options.port)
        .socket(options.socket.as_deref())
        .prefer_socket(options.socket.is_some())
        .user(Some(&options.user))
        .pass(options.password.as_deref())
        .db_name(options.database.as_deref())
        .tcp_connect_timeout(Some(Duration::from_secs(5)));
    Conn::new(builder).map_err(|e| match e {
        mysql::Error::MySqlError(e) => format!("ERROR {} ({}): {}", e.code, e.state, e.message),
        other => no_connection(options, &other),
    })
}

fn no_connection(options: &ShellOptions, why: &dyn std::fmt::Display) -> String {
    format!("cannot connect to {}:{}: {why}; is `rauk start` running there?", options.host, options.port)
}

fn expect_greeting(options: &ShellOptions) -> Result<(), String> {
    let addresses = (options.host.as_str(), options.port).to_socket_addrs().map_err(|e| no_connection(options, &e))?;
    let mut failed = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, GREETING) {
            Ok(stream) => {
                let greeted = stream.set_read_timeout(Some(GREETING)).and_then(|()| stream.peek(&mut [0]));
                return match greeted {
                    // Whatever it says, the client library has an answer to it.
                    Ok(_) => Ok(()),
                    Err(_) => Err(format!(
                        "{}:{} does not greet as a MySQL server does: is it the port of something else? `rauk start` prints its ports",
                        options.host, options.port
                    )),
                };
            }
            Err(error) => failed = Some(error),
        }
    }
    let why = failed.unwrap_or_else(|| std::io::ErrorKind::NotFound.into());
    Err(no_connection(options, &why))
}

pub fn run(options: &ShellOptions) -> Result<(), String> {
    let mut connection = connect(options)?;
    let refusal = Refusal::default();
    connection.set_local_infile_handler(Some(file_sender(options.local_files, refusal.clone())));
    if let Some(text) = &options.execute {
        return execute_telling(&mut connection, text, &refusal);
    }
    if !std::io::stdin().is_terminal() {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|e| format!("cannot read standard input: {e}"))?;
        return execute_telling(&mut connection, &text, &refusal);
    }
    interactive(&mut connection, &refusal)
}

/// Sends the files that the server asks for. One that cannot be sent is empty for the server, and the statement fails here.
fn file_sender(allowed: bool, refusal: Refusal) -> LocalInfileHandler {
    LocalInfileHandler::new(move |name, out| {
        let name = String::from_utf8_lossy(name);
        let sent = match allowed {
            true => std::fs::File::open(&*name).and_then(|mut file| std::io::copy(&mut file, out)),
            false => Err(std::io::Error::other("the shell was not started with --local-infile")),
        };
        if let Err(error) = sent {
            *refusal.lock().expect("nobody panics with it") = Some(format!("{name} was not sent: {error}"));
        }
        Ok(())
    })
}

/// Runs statements; fails too if a file could not be sent.
fn execute_telling(connection: &mut Conn, text: &str, refusal: &Refusal) -> Result<(), String> {
    let result = execute(connection, text, &mut std::io::stdout());
    match refusal.lock().expect("nobody panics with it").take() {
        Some(reason) => Err(reason),
        None => result,
    }
}

fn interactive(connection: &mut Conn, refusal: &Refusal) -> Result<(), String> {
    let mut editor = rustyline::DefaultEditor::new().map_err(|e| e.to_string())?;
    let history = std::env::var_os("HOME").map(|home| std::path::Path::new(&home).join(".rauk_history"));
    if let Some(file) = &history {
        // A first run has no history yet.
        let _ = editor.load_history(file);
    }
    out::line(format_args!("Statements end with ; — \\q or Ctrl-D leaves."))?;
    let mut text = String::new();
    loop {
        match editor.readline(if text.is_empty() { "rauk> " } else { "   -> " }) {
            Ok(line) if text.is_empty() && matches!(line.trim(), "\\q" | "quit" | "exit" | "quit;" | "exit;") => break,
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
            }
            Err(ReadlineError::Interrupted) => text.clear(),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(error.to_string()),
        }
        if text.trim().is_empty() {
            text.clear();
        } else if text.trim_end().ends_with(';') {
            let statement = std::mem::take(&mut text);
            let _ = editor.add_history_entry(statement.trim());
            if let Err(message) = execute_telling(connection, &statement, refusal) {
                out::line(format_args!("{message}"))?;
            }
        }
    }
    if let Some(file) = &history {
        let _ = editor.save_history(file);
    }
    Ok(())
}

/// Runs one or several statements and prints their results.
pub fn execute(connection: &mut Conn, text: &str, out: &mut impl Write) -> Result<(), String> {
    let shown = |e: mysql::Error| match e {
        mysql::Error::MySqlError(e) => format!("ERROR {} ({}): {}", e.code, e.state, e.message),
        other => format!("connection lost: {other}"),
    };
    let mut started = Instant::now();
    let mut results = connection.query_iter(text.trim()).map_err(shown)?;
    while let Some(mut set) = results.iter() {
        let names: Vec<String> = set.columns().as_ref().iter().map(|c| c.name_str().into_owned()).collect();
        let affected = set.affected_rows();
        let info = set.info_str().into_owned();
        let mut rows = Vec::new();
        for row in set.by_ref() {
            let row = row.map_err(shown)?;
            rows.push(row.unwrap_raw().into_iter().map(|v| cell(&v.unwrap_or(Value::NULL))).collect::<Vec<_>>());
        }
        let time = started.elapsed();
        started = Instant::now();
        let written = if names.is_empty() {
            let info = if info.is_empty() { String::new() } else { format!("  {info}") };
            writeln!(out, "OK, {} affected ({}){info}", plural(affected as usize, "row"), pretty(time))
        } else {
            let count = rows.len();
            let mut table = Table::new();
            table.load_preset(presets::ASCII_MARKDOWN).set_header(names).add_rows(rows);
            let table = if count > 0 { format!("{table}\n") } else { String::new() };
            writeln!(out, "{table}{} ({})", plural(count, "row"), pretty(time))
        };
        written.map_err(out::told)?;
    }
    Ok(())
}

fn plural(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

fn pretty(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1000.0 {
        format!("{micros:.0} µs")
    } else if micros < 1e6 {
        format!("{:.1} ms", micros / 1e3)
    } else {
        format!("{:.2} s", micros / 1e6)
    }
}

/// A value of the text protocol as a person reads it: bytes that are not text in hexadecimal.
fn cell(value: &Value) -> String {
    match value {
        Value::NULL => "NULL".into(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') => text.into(),
            _ => bytes.iter().fold("0x".to_string(), |text, byte| format!("{text}{byte:02X}")),
        },
        other => other.as_sql(true).trim_matches('\'').into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_times_read_well() {
        assert_eq!(cell(&Value::Bytes(b"abc".to_vec())), "abc");
        assert_eq!(cell(&Value::Bytes(vec![0, 255])), "0x00FF");
        assert_eq!(cell(&Value::NULL), "NULL");
        assert_eq!(pretty(Duration::from_micros(85)), "85 µs");
        assert_eq!(pretty(Duration::from_millis(12)), "12.0 ms");
        assert_eq!(pretty(Duration::from_millis(2500)), "2.50 s");
        assert_eq!((plural(1, "row"), plural(0, "row")), ("1 row".into(), "0 rows".into()));
    }
}
