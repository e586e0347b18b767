//! The state of a shell: its connection, what it knows of the server's session, how it shows results.
//!
//! The server reports with each answer which database is current and whether a transaction is open (session tracking).
//! So the shell knows what a new connection must have, and what is lost with an old one:
//!
//! | the connection is found lost | at the prompt | in a script |
//! |---|---|---|
//! | before a statement is sent | connects again, with the database, and runs it; not if a transaction was open, which it says | ends |
//! | while a statement runs | says so, and connects again; the statement is not repeated, since it may have taken effect | ends |
//!
//! A script ends, `--force` or not: variables that it has set and the database that it has chosen would be missing for
//! what follows. Hosts are tried in their order, beginning with the one that was connected.

use super::format::Format;
use super::output::Output;
use super::results::{self, How, Trouble};
use super::watch::Watch;
use crate::client::literals;
use crate::client::split::{Ending, Statement};
use crate::client::{self, Connection, Options};
use mysql::prelude::Queryable;
use mysql::session_state_change::SessionStateChange;
use mysql::{LocalInfileHandler, Value};
use std::sync::{Arc, Mutex};

/// Why a file was not sent that the server has asked for.
type Refusal = Arc<Mutex<Option<String>>>;

/// Words that statements begin with which change definitions.
const DDL: &[&str] = &["create", "drop", "alter", "rename"];

/// As MySQL's client has it, for servers that do not say.
const LONGEST_STATEMENT: usize = 64 << 20;

/// Why something has failed.
#[derive(Debug)]
pub enum Failure {
    /// A statement or command; what follows can be run.
    Statement(String),
    /// The connection is gone.
    Lost(String),
    /// Nothing can be shown any more.
    Output(String),
    /// Ctrl-C while a statement ran, and what the server said to that.
    Interrupted(Option<String>),
}

pub struct Session {
    pub options: Options,
    connection: Option<Connection>,
    /// Somebody types.
    pub prompt: bool,
    pub format: Format,
    pub header: bool,
    pub show_warnings: bool,
    pub output: Output,
    pub watch: Watch,
    local_files: bool,
    refusal: Refusal,
    transaction: bool,
    /// Longest statement that the server takes.
    pub limit: usize,
    /// Counts what may change the names of tables and columns.
    pub changes: u64,
}

/// Settings of a new session.
pub struct Beginning {
    pub prompt: bool,
    pub format: Format,
    pub header: bool,
    pub show_warnings: bool,
    pub local_files: bool,
}

impl Session {
    pub fn begin(options: Options, watch: Watch, beginning: &Beginning) -> Result<Session, String> {
        let mut session = Session {
            options,
            connection: None,
            prompt: beginning.prompt,
            format: beginning.format,
            header: beginning.header,
            show_warnings: beginning.show_warnings,
            output: Output::default(),
            watch,
            local_files: beginning.local_files,
            refusal: Refusal::default(),
            transaction: false,
            limit: LONGEST_STATEMENT,
            changes: 0,
        };
        session.connect()?;
        if let Some(Ok(longest)) = session.value("SELECT @@max_allowed_packet").map(|v| v.parse::<usize>()) {
            session.limit = longest;
        }
        Ok(session)
    }

    fn connect(&mut self) -> Result<(), String> {
        let mut connection = client::connect(&self.options)?;
        connection.conn.set_local_infile_handler(Some(file_sender(self.local_files, self.refusal.clone())));
        if self.prompt {
            // A server without it reports less.
            let _ = connection.conn.query_drop("SET session_track_transaction_info = 'STATE'");
        }
        if let Some(host) = &connection.host {
            // The next time, this one is asked first.
            let hosts = &mut self.options.hosts;
            if let Some(at) = hosts.iter().position(|h| h == host) {
                hosts[..=at].rotate_right(1);
            }
        }
        self.transaction = false;
        self.connection = Some(connection);
        self.changes += 1;
        Ok(())
    }

    /// Leaves the connection and makes another.
    pub fn connect_again(&mut self, database: Option<&str>) -> Result<(), Failure> {
        self.connection = None;
        self.transaction = false;
        let before = self.options.database.clone();
        if let Some(database) = database {
            self.options.database = Some(database.into());
        }
        if let Err(reason) = self.connect() {
            self.options.database = before;
            return Err(Failure::Statement(reason));
        }
        if !self.prompt {
            return Ok(());
        }
        let text = format!("connected to {}{}", self.server(), self.in_database());
        self.output.line(&text).map_err(Failure::Output)
    }

    /// A connection in place of a lost one. Its database may have gone meanwhile.
    fn connect_in_place(&mut self) -> Result<(), String> {
        match self.connect() {
            Err(reason) if reason.starts_with("ERROR 1049") && self.options.database.is_some() => {
                self.options.database = None;
                self.connect()?;
                self.output.complain(&format!("{reason}; there is no current database"));
                Ok(())
            }
            other => other,
        }
    }

    fn server(&self) -> String {
        self.connection.as_ref().map_or_else(|| "no server".into(), |c| c.server(&self.options))
    }

    fn in_database(&self) -> String {
        self.options.database.as_ref().map_or_else(String::new, |database| format!(", database {database}"))
    }

    /// The server that is connected, and nothing else.
    fn this_server(&self) -> Options {
        let mut options = self.options.clone();
        options.database = None;
        if let Some(host) = self.connection.as_ref().and_then(|c| c.host.clone()) {
            options.hosts = vec![host];
        }
        options
    }

    /// A connection to send a statement by.
    fn ready(&mut self) -> Result<(), Failure> {
        if self.connection.as_ref().is_some_and(Connection::is_open) {
            return Ok(());
        }
        if !self.prompt {
            return Err(Failure::Lost("the server has closed the connection; what follows was not run".into()));
        }
        let transaction = std::mem::take(&mut self.transaction);
        self.connection = None;
        let with_it = if transaction { ", and with it the open transaction" } else { "" };
        self.connect_in_place()
            .map_err(|e| Failure::Lost(format!("the connection is lost{with_it}; the statement was not run\n{e}")))?;
        let text = format!(
            "the connection was lost; connected again to {}{}. Variables, temporary tables and locks of the session are gone.",
            self.server(),
            self.in_database()
        );
        self.output.complain(&text);
        match transaction {
            true => Err(Failure::Statement(
                "the open transaction was lost with the connection and is rolled back; the statement was not run"
                    .into(),
            )),
            false => Ok(()),
        }
    }

    /// Runs a statement and shows what it answers. `label` stands in front of the time that is shown while it runs.
    pub fn run(&mut self, statement: Statement, label: &str) -> Result<(), Failure> {
        let text = literals::to_text(statement.text).map_err(Failure::Statement)?;
        self.ready()?;
        let format = if statement.ending == Ending::Vertical { Format::Vertical } else { self.format };
        let how = How { format, header: self.header, counts: self.prompt || format.is_for_people() };
        let server = self.this_server();
        let Some(connection) = &mut self.connection else { return Err(Failure::Lost("there is no connection".into())) };
        let id = connection.conn.connection_id();
        self.watch.statement(id, server, label, DDL.contains(&first_word(&text).to_ascii_lowercase().as_str()));
        let shown = results::show(&mut connection.conn, &text, how, &mut self.output, Some(&self.watch));
        self.watch.end();
        self.note_changes(&text);
        let refusal = self.refusal.lock().expect("nobody panics with it").take();
        let interrupted = self.watch.take_interrupted();
        match shown {
            Err(Trouble::Output(reason)) => {
                self.connection = None;
                Err(Failure::Output(reason))
            }
            Err(Trouble::Server(error)) => Err(self.failed(error, &text)),
            _ if interrupted => Err(Failure::Interrupted(None)),
            Ok(_) if refusal.is_some() => Err(Failure::Statement(refusal.unwrap_or_default())),
            Ok(warnings) if warnings > 0 && self.show_warnings => self.show_the_warnings(),
            Ok(_) => Ok(()),
        }
        .map_err(|failure| match failure {
            Failure::Statement(reason) if interrupted => Failure::Interrupted(Some(reason)),
            other => other,
        })
    }

    fn failed(&mut self, error: mysql::Error, text: &str) -> Failure {
        match error {
            mysql::Error::MySqlError(e) => Failure::Statement(format!("ERROR {} ({}): {}", e.code, e.state, e.message)),
            mysql::Error::CodecError(error) => {
                // Bytes that the library has not read would be taken for the next answer.
                self.connection = None;
                self.transaction = false;
                Failure::Statement(format!("{error}; the connection was closed"))
            }
            other => self.lost(&other, text),
        }
    }

    /// The connection was lost while a statement ran.
    fn lost(&mut self, error: &mysql::Error, text: &str) -> Failure {
        let transaction = std::mem::take(&mut self.transaction);
        self.connection = None;
        let outcome = match transaction && !first_word(text).eq_ignore_ascii_case("commit") {
            true => "The open transaction is lost; its changes are rolled back unless this statement committed it.",
            false => "Whether the statement took effect is unknown; it is not repeated.",
        };
        let mut said = format!("the connection was lost while the statement ran: {error}. {outcome}");
        if self.prompt {
            match self.connect_in_place() {
                Ok(()) => said += &format!("\nconnected again to {}{}", self.server(), self.in_database()),
                Err(reason) => said += &format!("\n{reason}\nThe next statement connects again."),
            }
        }
        Failure::Lost(said)
    }

    /// Notes the changes of the session that the server has reported with its answer.
    fn note_changes(&mut self, text: &str) {
        let word = first_word(text).to_ascii_lowercase();
        if word == "use" || DDL.contains(&word.as_str()) {
            self.changes += 1;
        }
        let Some(connection) = &self.connection else { return };
        let Ok(changes) = connection.conn.session_state_changes() else { return };
        for change in &changes {
            match change.decode() {
                Ok(SessionStateChange::Schema(schema)) => {
                    self.options.database = Some(schema.as_str().into_owned()).filter(|name| !name.is_empty());
                    self.changes += 1;
                }
                Ok(SessionStateChange::TransactionState(state)) => {
                    // T: begun by a statement; I: by autocommit = 0.
                    self.transaction = state.as_str().starts_with(['T', 'I']);
                }
                _ => {}
            }
        }
    }

    fn show_the_warnings(&mut self) -> Result<(), Failure> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let found: Result<Vec<(String, u64, String)>, _> = connection.conn.query("SHOW WARNINGS");
        for (level, code, message) in found.unwrap_or_default() {
            self.output.line(&format!("{level} (Code {code}): {message}")).map_err(Failure::Output)?;
        }
        Ok(())
    }

    /// The first value of a statement, as text.
    fn value(&mut self, sql: &str) -> Option<String> {
        let value: Value = self.connection.as_mut()?.conn.query_first(sql).ok()??;
        mysql::from_value_opt(value).ok()
    }

    pub fn use_database(&mut self, name: &str, label: &str) -> Result<(), Failure> {
        let quoted = match name.starts_with('`') {
            true => name.to_string(),
            false => format!("`{}`", name.trim_matches('"').replace('`', "``")),
        };
        let text = format!("USE {quoted}").into_bytes();
        self.run(Statement { text, line: 1, ending: Ending::Delimiter }, label)
    }

    /// The first line at a prompt.
    pub fn greeting(&mut self) -> String {
        let version = self.value("SELECT @@version").unwrap_or_default();
        format!(
            "connected to {}{} (version {version}). Statements end with ';'. help lists the commands, \\q or Ctrl-D leaves.",
            self.server(),
            self.in_database()
        )
    }

    /// Shows the connection and the settings of the shell.
    pub fn status(&mut self, delimiter: &str) -> Result<(), Failure> {
        self.ready()?;
        let mut lines = vec![("program", format!("rauk sql {}", env!("CARGO_PKG_VERSION")))];
        let (server, tls, id) = match &self.connection {
            Some(c) => (c.server(&self.options), c.tls.clone(), c.conn.connection_id()),
            None => return Ok(()),
        };
        let mut ask = |name, sql: &str| (name, self.value(sql).unwrap_or_else(|| "NULL".into()));
        lines.extend([
            ("server", server),
            ("tls", tls.unwrap_or_else(|| "none".into())),
            ("connection", id.to_string()),
        ]);
        lines.extend([
            ask("version", "SELECT CONCAT(@@version, ' ', @@version_comment)"),
            ask("user", "SELECT CURRENT_USER()"),
            ask("database", "SELECT DATABASE()"),
            ask("character set", "SELECT @@character_set_client"),
            ask("uptime", "SELECT CONCAT(VARIABLE_VALUE, ' s') FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Uptime'"),
        ]);
        let yes = |b: bool| if b { "yes" } else { "no" }.to_string();
        lines.extend([
            ("transaction", yes(self.transaction)),
            ("delimiter", delimiter.to_string()),
            ("format", self.format.name().to_string()),
            ("warnings", yes(self.show_warnings)),
            ("pager", self.output.pager.clone().unwrap_or_else(|| "none".into())),
        ]);
        for (name, value) in lines {
            self.output.line(&format!("{:15}{value}", format!("{name}:"))).map_err(Failure::Output)?;
        }
        Ok(())
    }
}

/// The first word of a statement, behind comments that are SQL.
fn first_word(text: &str) -> &str {
    let text = text.trim_start_matches(|c: char| !c.is_alphabetic());
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
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
