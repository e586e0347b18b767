//! The SHOW family and DESCRIBE.

use super::ast::TableName;
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::{ProfileType, Scope, Show, ShowFilter, Statement};

impl Parser<'_> {
    fn filter(&mut self) -> Result<ShowFilter> {
        if self.accept_kw("LIKE") {
            return Ok(ShowFilter { like: Some(self.string()?), condition: None });
        }
        if self.accept_kw("WHERE") {
            return Ok(ShowFilter { like: None, condition: Some(self.expr()?) });
        }
        Ok(ShowFilter::default())
    }

    fn in_database(&mut self) -> Result<Option<String>> {
        if self.accept_any_kw(&["FROM", "IN"]).is_some() { self.name().map(Some) } else { Ok(None) }
    }

    /// `FROM table [FROM database]`
    fn of_table(&mut self) -> Result<TableName> {
        if self.accept_any_kw(&["FROM", "IN"]).is_none() {
            return self.fail();
        }
        let mut table = self.table_name()?;
        if let Some(database) = self.in_database()? {
            table.database = Some(database);
        }
        Ok(table)
    }

    fn empty(&mut self, kind: &str) -> Result<Show> {
        self.in_database()?;
        Ok(Show::Empty { kind: kind.to_string(), filter: self.filter()? })
    }

    pub fn show(&mut self) -> Result<Statement> {
        self.expect_kw("SHOW")?;
        if self.is_any_kw(&["BINLOG", "RELAYLOG"]) {
            return self.unsupported("SHOW BINLOG EVENTS");
        }
        let full = self.accept_kw("FULL");
        let extended = self.accept_kw("EXTENDED");
        let full = full || (extended && self.accept_kw("FULL"));
        let scope = match self.accept_any_kw(&["GLOBAL", "SESSION", "LOCAL"]) {
            Some("GLOBAL") => Scope::Global,
            Some(_) => Scope::Session,
            None => Scope::Default,
        };
        let start = self.peek();
        let Ok(word) = self.any_word() else { return self.fail() };
        let show = match word.to_ascii_uppercase().as_str() {
            "DATABASES" | "SCHEMAS" => Show::Databases(self.filter()?),
            "TABLES" => Show::Tables { full, database: self.in_database()?, filter: self.filter()? },
            "TABLE" => match self.accept_any_kw(&["STATUS", "TYPES"]) {
                Some("STATUS") => Show::TableStatus { database: self.in_database()?, filter: self.filter()? },
                Some(_) => Show::Engines,
                None => return self.fail(),
            },
            "COLUMNS" | "FIELDS" => Show::Columns { full, table: self.of_table()?, filter: self.filter()? },
            "INDEX" | "INDEXES" | "KEYS" => Show::Indexes { table: self.of_table()?, filter: self.filter()? },
            "CREATE" => return self.show_create(),
            "VARIABLES" => Show::Variables { scope, filter: self.filter()? },
            "STATUS" => Show::Status { scope, filter: self.filter()? },
            "WARNINGS" => Show::Warnings { count: false, limit: self.show_limit()? },
            "ERRORS" => {
                self.show_limit()?;
                Show::Errors { count: false }
            }
            "COUNT" => {
                self.expect(Kind::LParen)?;
                self.expect(Kind::Star)?;
                self.expect(Kind::RParen)?;
                match self.accept_any_kw(&["WARNINGS", "ERRORS"]) {
                    Some("WARNINGS") => Show::Warnings { count: true, limit: None },
                    Some(_) => Show::Errors { count: true },
                    None => return self.fail(),
                }
            }
            "COLLATION" => Show::Collation(self.filter()?),
            "CHARSET" => Show::CharacterSet(self.filter()?),
            "CHARACTER" | "CHAR" => {
                self.expect_kw("SET")?;
                Show::CharacterSet(self.filter()?)
            }
            "ENGINES" => Show::Engines,
            "STORAGE" => {
                self.expect_kw("ENGINES")?;
                Show::Engines
            }
            "PLUGINS" => Show::Plugins,
            "PRIVILEGES" => Show::Privileges,
            "PROCESSLIST" => Show::ProcessList { full },
            "GRANTS" => {
                let user = if self.accept_kw("FOR") { Some(self.user_name()?) } else { None };
                let using = match user.is_some() && self.accept_kw("USING") {
                    true => self.comma_separated(Self::user_name)?,
                    false => vec![],
                };
                Show::Grants { user: user.filter(|u| !u.user.is_empty() || !u.host.is_empty()), using }
            }
            "TRIGGERS" => self.empty("TRIGGERS")?,
            "EVENTS" => self.empty("EVENTS")?,
            "FUNCTION" | "PROCEDURE" => {
                if self.accept_kw("CODE") {
                    return self.unsupported("SHOW PROCEDURE CODE");
                }
                self.expect_kw("STATUS")?;
                self.empty(&format!("{} STATUS", word.to_ascii_uppercase()))?
            }
            "PACKAGE" => {
                self.accept_kw("BODY");
                self.expect_kw("STATUS")?;
                self.empty("PACKAGE STATUS")?
            }
            "OPEN" => {
                self.expect_kw("TABLES")?;
                self.empty("OPEN TABLES")?
            }
            "MASTER" | "BINARY" | "SLAVE" | "REPLICA" | "ALL" | "REPLICAS" => {
                // Replication: nothing to show.
                let mut kind = word.to_ascii_uppercase();
                while let Some(more) = self.accept_any_kw(&["STATUS", "LOGS", "LOG", "HOSTS", "SLAVES"]) {
                    kind = format!("{kind} {more}");
                }
                if kind.contains(' ') || kind == "REPLICAS" {
                    if self.accept_kws(&["FOR", "CHANNEL"]) {
                        self.string()?;
                    }
                    Show::Empty { kind, filter: ShowFilter::default() }
                } else {
                    return self.fail();
                }
            }
            "PROFILES" => Show::Profiles,
            "PROFILE" => self.show_profile()?,
            "ENGINE" => {
                let engine = self.any_word()?.to_ascii_uppercase();
                match self.accept_any_kw(&["STATUS", "MUTEX", "LOGS"]) {
                    Some("STATUS") if engine == "INNODB" => Show::EngineStatus,
                    Some(what) => return self.unsupported(&format!("SHOW ENGINE {engine} {what}")),
                    None => return self.fail(),
                }
            }
            _ => return self.fail_at(start),
        };
        Ok(Statement::Show(show))
    }

    /// Behind SHOW PROFILE.
    fn show_profile(&mut self) -> Result<Show> {
        const WORDS: &[&str] = &["ALL", "BLOCK", "CONTEXT", "CPU", "IPC", "MEMORY", "PAGE", "SOURCE", "SWAPS"];
        let mut types = Vec::new();
        if self.is_any_kw(WORDS) {
            types = self.comma_separated(|p| {
                let Some(word) = p.accept_any_kw(WORDS) else { return p.fail() };
                Ok(match word {
                    "ALL" => ProfileType::All,
                    "BLOCK" => p.expect_kw("IO").map(|()| ProfileType::BlockIo)?,
                    "CONTEXT" => p.expect_kw("SWITCHES").map(|()| ProfileType::ContextSwitches)?,
                    "CPU" => ProfileType::Cpu,
                    "IPC" => ProfileType::Ipc,
                    "MEMORY" => ProfileType::Memory,
                    "PAGE" => p.expect_kw("FAULTS").map(|()| ProfileType::PageFaults)?,
                    "SOURCE" => ProfileType::Source,
                    _ => ProfileType::Swaps,
                })
            })?;
        }
        let query = if self.accept_kws(&["FOR", "QUERY"]) { Some(self.integer()?) } else { None };
        Ok(Show::Profile { types, query, limit: self.show_limit()? })
    }

    fn show_limit(&mut self) -> Result<Option<(u64, u64)>> {
        if !self.accept_kw("LIMIT") {
            return Ok(None);
        }
        let first = self.integer()?;
        if self.accept(Kind::Comma) {
            return Ok(Some((first, self.integer()?)));
        }
        let offset = if self.accept_kw("OFFSET") { self.integer()? } else { 0 };
        Ok(Some((offset, first)))
    }

    fn show_create(&mut self) -> Result<Statement> {
        if self.accept_any_kw(&["DATABASE", "SCHEMA"]).is_some() {
            let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
            return Ok(Statement::Show(Show::CreateDatabase { name: self.name()?, if_not_exists }));
        }
        if self.accept_kw("TABLE") {
            return Ok(Statement::Show(Show::CreateTable(self.table_name()?)));
        }
        if self.accept_kw("VIEW") {
            return Ok(Statement::Show(Show::CreateView(self.table_name()?)));
        }
        if self.accept_kw("USER") {
            return Ok(Statement::Show(Show::CreateUser(self.user_name()?)));
        }
        match self.accept_any_kw(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE", "SEQUENCE"]) {
            Some(word) => self.unsupported(&format!("SHOW CREATE {word}")),
            None => self.fail(),
        }
    }

    /// DESCRIBE, DESC and EXPLAIN, of a table or of a statement.
    pub fn describe(&mut self) -> Result<Statement> {
        let _ = self.accept_any_kw(&["DESCRIBE", "DESC", "EXPLAIN"]);
        let analyze = self.accept_kw("ANALYZE");
        let _ = self.accept_any_kw(&["EXTENDED", "PARTITIONS"]);
        let mut format = None;
        if self.is_kw("FORMAT") && self.kind_at(1) == Kind::Eq {
            self.advance();
            self.advance();
            let name = if self.kind() == Kind::String { self.string()? } else { self.any_word()? };
            format = Some(name.to_ascii_uppercase());
        }
        if self.accept_kws(&["FOR", "CONNECTION"]) {
            return self.unsupported("EXPLAIN FOR CONNECTION");
        }
        if self.is_query_start() || self.is_any_kw(&["INSERT", "REPLACE", "UPDATE", "DELETE"]) {
            let statement = Box::new(self.data_statement()?);
            return Ok(Statement::Explain { analyze, format, statement });
        }
        if analyze || format.is_some() {
            return self.fail();
        }
        let table = self.table_name()?;
        let column = match self.kind() {
            Kind::String => Some(self.string()?),
            _ if self.is_name() => Some(self.name()?),
            _ => None,
        };
        Ok(Statement::Describe { table, column })
    }
}
