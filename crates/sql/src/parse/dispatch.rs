//! Which statement begins here.
//!
//! Statements that MySQL has and Rauk has not yet become [`Statement::Unsupported`] with a name for error 1235; their text is not read
//! further. What MySQL has not either is error 1064 at its first word.

use super::ast::{TableConstraint, TableName};
use super::cursor::{Parser, Result};
use super::lexer::Kind;
use super::statement::{
    DatabaseOptions, FlushOption, HistogramChange, PrepareSource, Statement, TableLock, ViewChange,
};
use crate::histogram::USUAL_BUCKETS;
use rauk_types::MysqlError;
use rauk_types::error::codes;

/// Error 1235 where the rest of the statement would be understood.
pub(super) fn not_supported(what: &str) -> MysqlError {
    MysqlError::new(codes::NOT_SUPPORTED_YET, format!("This version of MySQL doesn't yet support '{what}'"))
}

impl Parser<'_> {
    pub fn statement(&mut self) -> Result<Statement> {
        if self.is_query_start() {
            return self.data_statement();
        }
        let token = self.peek();
        if token.kind != Kind::Word {
            return self.fail();
        }
        let word = self.text(token).to_ascii_uppercase();
        match word.as_str() {
            "INSERT" | "REPLACE" | "UPDATE" | "DELETE" => self.data_statement(),
            "SET" => self.set(),
            "SHOW" => self.show(),
            "EXPLAIN" | "DESCRIBE" | "DESC" => self.describe(),
            "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "XA" => self.transaction(&word),
            "USE" => {
                self.advance();
                Ok(Statement::Use(self.name()?))
            }
            "CREATE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop_statement(),
            "TRUNCATE" => {
                self.advance();
                self.accept_kw("TABLE");
                Ok(Statement::TruncateTable(self.table_name()?))
            }
            "RENAME" => self.rename(),
            "GRANT" => self.grant(),
            "REVOKE" => self.revoke(),
            "KILL" => {
                self.advance();
                let query_only = matches!(self.accept_any_kw(&["CONNECTION", "QUERY"]), Some("QUERY"));
                Ok(Statement::Kill { query_only, id: self.expr()? })
            }
            "PREPARE" | "EXECUTE" | "DEALLOCATE" => self.prepared(&word),
            "DO" => {
                self.advance();
                Ok(Statement::Do(self.comma_separated(Self::expr)?))
            }
            "LOCK" | "UNLOCK" => self.lock(),
            "ANALYZE" | "CHECK" | "OPTIMIZE" | "REPAIR" | "CHECKSUM" => self.maintenance(&word),
            "FLUSH" => {
                self.advance();
                let _ = self.accept_any_kw(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
                if self.at_end() {
                    return self.fail();
                }
                if self.accept_any_kw(&["TABLES", "TABLE"]).is_some() {
                    return self.flush_tables();
                }
                self.comma_separated(Self::flush_option).map(Statement::Flush)
            }
            "LOAD" if self.is_kw_at(1, "INDEX") => self.unsupported("LOAD INDEX INTO CACHE"),
            "LOAD" if self.is_kw_at(1, "XML") => self.unsupported("LOAD XML"),
            "LOAD" => {
                self.advance();
                self.expect_kw("DATA")?;
                self.load_data()
            }
            "CALL" => self.unsupported("CALL"),
            "HANDLER" => {
                self.advance();
                self.handler()
            }
            "GET" => self.get_diagnostics(),
            "SIGNAL" | "RESIGNAL" => self.signal(word == "RESIGNAL"),
            "INSTALL" | "UNINSTALL" => self.unsupported(&format!("{word} PLUGIN")),
            "RESET" if self.is_kw_at(1, "PERSIST") => self.reset_persist(),
            "CHANGE" | "RESET" | "PURGE" | "STOP" | "BINLOG" | "CLONE" | "SHUTDOWN" | "RESTART" | "HELP" | "IMPORT"
            | "CACHE" => self.unsupported(&word),
            _ => self.fail(),
        }
    }

    fn reset_persist(&mut self) -> Result<Statement> {
        self.advance();
        self.advance();
        let if_exists = self.accept_kws(&["IF", "EXISTS"]);
        let named = if_exists || !self.at_end();
        let variable = if named { Some(self.name()?) } else { None };
        Ok(Statement::ResetPersist { variable, if_exists })
    }

    /// What FLUSH is told beside tables.
    fn flush_option(&mut self) -> Result<FlushOption> {
        const OF_LOGS: &[&str] = &["BINARY", "ENGINE", "ERROR", "GENERAL", "RELAY", "SLOW"];
        if let Some(of) = self.accept_any_kw(OF_LOGS) {
            self.expect_kw("LOGS")?;
            if of == "RELAY" && self.accept_kws(&["FOR", "CHANNEL"]) {
                self.string()?;
            }
            return Ok(FlushOption::Nothing);
        }
        if self.accept_kws(&["QUERY", "CACHE"]) {
            return Ok(FlushOption::Nothing);
        }
        match self.accept_any_kw(&["STATUS", "PRIVILEGES", "USER_RESOURCES", "LOGS", "HOSTS", "OPTIMIZER_COSTS"]) {
            Some("STATUS") => Ok(FlushOption::Status),
            Some("PRIVILEGES") => Ok(FlushOption::Privileges),
            Some("USER_RESOURCES") => Ok(FlushOption::UserResources),
            Some(_) => Ok(FlushOption::Nothing),
            None => self.fail(),
        }
    }

    /// SELECT, INSERT, REPLACE, UPDATE, DELETE.
    pub fn data_statement(&mut self) -> Result<Statement> {
        if self.is_any_kw(&["INSERT", "REPLACE"]) {
            return self.insert();
        }
        let with = self.with_clause()?;
        if self.is_kw("UPDATE") {
            return self.update(with);
        }
        if self.is_kw("DELETE") {
            return self.delete(with);
        }
        self.query_with(with).map(|query| Statement::Query(Box::new(query)))
    }

    // Transactions

    fn transaction(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        match word {
            "BEGIN" => {
                self.accept_kw("WORK");
                Ok(Statement::Begin { read_only: None, consistent_snapshot: false })
            }
            "START" => {
                if self.is_any_kw(&["SLAVE", "REPLICA", "GROUP_REPLICATION"]) {
                    return self.unsupported("Replication");
                }
                self.expect_kw("TRANSACTION")?;
                let (mut read_only, mut consistent_snapshot) = (None, false);
                while !self.at_end() {
                    // One of both, as in MySQL.
                    if read_only.is_none() && self.accept_kws(&["READ", "ONLY"]) {
                        read_only = Some(true);
                    } else if read_only.is_none() && self.accept_kws(&["READ", "WRITE"]) {
                        read_only = Some(false);
                    } else if self.accept_kws(&["WITH", "CONSISTENT", "SNAPSHOT"]) {
                        consistent_snapshot = true;
                    } else {
                        return self.fail();
                    }
                    if !self.accept(Kind::Comma) {
                        break;
                    }
                }
                Ok(Statement::Begin { read_only, consistent_snapshot })
            }
            "COMMIT" => {
                self.accept_kw("WORK");
                let (chain, release) = self.completion()?;
                Ok(Statement::Commit { chain, release })
            }
            "ROLLBACK" => {
                self.accept_kw("WORK");
                if self.accept_kw("TO") {
                    self.accept_kw("SAVEPOINT");
                    return Ok(Statement::RollbackToSavepoint(self.name()?));
                }
                let (chain, release) = self.completion()?;
                Ok(Statement::Rollback { chain, release })
            }
            "SAVEPOINT" => Ok(Statement::Savepoint(self.name()?)),
            "RELEASE" => {
                self.expect_kw("SAVEPOINT")?;
                Ok(Statement::ReleaseSavepoint(self.name()?))
            }
            _ => self.unsupported("XA transactions"),
        }
    }

    /// `[AND [NO] CHAIN] [[NO] RELEASE]`: what is written of them. `AND CHAIN RELEASE` is an error.
    fn completion(&mut self) -> Result<(Option<bool>, Option<bool>)> {
        let mut chain = None;
        if self.accept_kw("AND") {
            chain = Some(!self.accept_kw("NO"));
            self.expect_kw("CHAIN")?;
        }
        let mut release = None;
        if self.accept_kw("NO") {
            self.expect_kw("RELEASE")?;
            release = Some(false);
        } else if chain != Some(true) && self.accept_kw("RELEASE") {
            release = Some(true);
        }
        Ok((chain, release))
    }

    // Definitions

    fn create(&mut self) -> Result<Statement> {
        self.expect_kw("CREATE")?;
        let replace = self.accept_kws(&["OR", "REPLACE"]);
        if self.is_view() {
            return self.view(if replace { ViewChange::CreateOrReplace } else { ViewChange::Create });
        }
        if self.is_kw("DEFINER") || self.is_kw("ALGORITHM") || self.is_kw("SQL") {
            let kind = self.find_kw(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"]).unwrap_or("DEFINER");
            return self.unsupported(&format!("CREATE {kind}"));
        }
        let temporary = self.accept_kw("TEMPORARY");
        if replace && self.is_kw("TABLE") {
            return self.fail();
        }
        if self.accept_kw("TABLE") {
            return self.create_table(temporary);
        }
        if temporary || replace {
            return match self.accept_any_kw(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"]) {
                Some(kind) if replace => self.unsupported(&format!("CREATE {kind}")),
                _ => self.fail(),
            };
        }
        if self.accept_any_kw(&["DATABASE", "SCHEMA"]).is_some() {
            let if_not_exists = self.accept_kws(&["IF", "NOT", "EXISTS"]);
            let name = self.name()?;
            let options = self.database_options()?;
            return Ok(Statement::CreateDatabase { name, if_not_exists, options });
        }
        if self.accept_kw("INDEX") {
            return self.create_index(TableConstraint::Index);
        }
        if self.accept_kw("UNIQUE") {
            self.expect_kw("INDEX")?;
            return self.create_index(TableConstraint::Unique);
        }
        if self.accept_kw("USER") {
            return self.create_user();
        }
        if self.accept_kw("ROLE") {
            return self.create_role();
        }
        if self.accept_kw("FULLTEXT") {
            self.expect_kw("INDEX")?;
            return self.create_index(TableConstraint::FullText);
        }
        if self.accept_kw("SPATIAL") {
            return self.unsupported("CREATE SPATIAL INDEX");
        }
        if let Some(word) = self.accept_any_kw(&[
            "PROCEDURE",
            "FUNCTION",
            "AGGREGATE",
            "TRIGGER",
            "EVENT",
            "SERVER",
            "TABLESPACE",
            "RESOURCE",
            "SEQUENCE",
        ]) {
            return self.unsupported(&format!("CREATE {word}"));
        }
        if self.accept_kw("UNDO") {
            return self.unsupported("CREATE UNDO TABLESPACE");
        }
        if self.accept_kws(&["LOGFILE", "GROUP"]) {
            return self.unsupported("CREATE LOGFILE GROUP");
        }
        self.fail()
    }

    /// The first of `keywords` that stands anywhere in the rest of the statement.
    pub fn find_kw(&self, keywords: &[&'static str]) -> Option<&'static str> {
        for ahead in 0.. {
            if self.kind_at(ahead) == Kind::End {
                return None;
            }
            if let Some(found) = keywords.iter().find(|k| self.is_kw_at(ahead, k)) {
                return Some(found);
            }
        }
        None
    }

    /// Charset and collation of CREATE and ALTER DATABASE.
    fn database_options(&mut self) -> Result<DatabaseOptions> {
        let mut options = DatabaseOptions::default();
        loop {
            self.accept_kw("DEFAULT");
            if self.accept_kws(&["CHARACTER", "SET"]) || self.accept_kw("CHARSET") || self.accept_kws(&["CHAR", "SET"])
            {
                self.accept(Kind::Eq);
                options.charset = Some(self.charset_name()?);
            } else if self.accept_kw("COLLATE") {
                self.accept(Kind::Eq);
                options.collation = Some(self.charset_name()?);
            } else if self.accept_kw("ENCRYPTION") {
                self.accept(Kind::Eq);
                let value = self.string()?;
                if !value.eq_ignore_ascii_case("N") {
                    return Err(not_supported(&format!("ENCRYPTION = {value}")));
                }
            } else if self.accept_kw("COMMENT") {
                self.accept(Kind::Eq);
                options.comment = Some(self.string()?);
            } else if self.accept_kws(&["READ", "ONLY"]) {
                self.accept(Kind::Eq);
                if !self.accept_kw("DEFAULT") && self.integer()? != 0 {
                    return Err(not_supported("READ ONLY = 1 of a database"));
                }
            } else {
                return Ok(options);
            }
        }
    }

    fn alter(&mut self) -> Result<Statement> {
        self.expect_kw("ALTER")?;
        if self.accept_kw("TABLE") {
            return self.alter_table();
        }
        if self.accept_any_kw(&["DATABASE", "SCHEMA"]).is_some() {
            const OPTIONS: &[&str] = &["DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "COMMENT", "ENCRYPTION", "READ"];
            let name = if self.is_any_kw(OPTIONS) { None } else { Some(self.name()?) };
            let options = self.database_options()?;
            return Ok(Statement::AlterDatabase { name, options });
        }
        if self.accept_kw("USER") {
            return self.alter_user();
        }
        if self.accept_kws(&["CLUSTER", "FORGET", "NODE"]) {
            return Ok(Statement::ForgetNode(self.integer()?));
        }
        if self.accept_kws(&["CLUSTER", "ACCEPT", "LOSS"]) {
            return Ok(Statement::AcceptLoss);
        }
        if self.accept_kws(&["LOGFILE", "GROUP"]) {
            return self.unsupported("ALTER LOGFILE GROUP");
        }
        if self.is_view() {
            return self.view(ViewChange::Alter);
        }
        match self.accept_any_kw(&[
            "PROCEDURE",
            "FUNCTION",
            "EVENT",
            "SERVER",
            "TABLESPACE",
            "INSTANCE",
            "RESOURCE",
            "DEFINER",
            "UNDO",
            "SEQUENCE",
        ]) {
            Some("DEFINER") => self.unsupported("ALTER EVENT"),
            Some(word) => self.unsupported(&format!("ALTER {word}")),
            None => self.fail(),
        }
    }

    fn drop_statement(&mut self) -> Result<Statement> {
        self.expect_kw("DROP")?;
        let temporary = self.accept_kw("TEMPORARY");
        if self.accept_any_kw(&["TABLE", "TABLES"]).is_some() {
            let if_exists = self.accept_kws(&["IF", "EXISTS"]);
            let tables = self.table_names()?;
            let _ = self.accept_any_kw(&["RESTRICT", "CASCADE"]);
            return Ok(Statement::DropTable { tables, if_exists, temporary });
        }
        if temporary {
            return self.fail();
        }
        if self.accept_any_kw(&["DATABASE", "SCHEMA"]).is_some() {
            let if_exists = self.accept_kws(&["IF", "EXISTS"]);
            return Ok(Statement::DropDatabase { name: self.name()?, if_exists });
        }
        if self.accept_kw("INDEX") {
            return self.drop_index();
        }
        if self.accept_kw("USER") {
            return self.drop_user();
        }
        if self.accept_kw("ROLE") {
            return self.drop_role();
        }
        if self.accept_kw("PREPARE") {
            return Ok(Statement::Deallocate(self.name()?));
        }
        if self.accept_kws(&["LOGFILE", "GROUP"]) {
            return self.unsupported("DROP LOGFILE GROUP");
        }
        if self.accept_kw("VIEW") {
            return self.drop_views();
        }
        match self.accept_any_kw(&[
            "PROCEDURE",
            "FUNCTION",
            "TRIGGER",
            "EVENT",
            "SERVER",
            "TABLESPACE",
            "RESOURCE",
            "SPATIAL",
            "UNDO",
            "SEQUENCE",
        ]) {
            Some(word) => self.unsupported(&format!("DROP {word}")),
            None => self.fail(),
        }
    }

    fn rename(&mut self) -> Result<Statement> {
        self.expect_kw("RENAME")?;
        if self.accept_kw("USER") {
            return self.rename_user();
        }
        if self.accept_any_kw(&["TABLE", "TABLES"]).is_none() {
            return self.fail();
        }
        let pairs = self.comma_separated(|p| {
            let old = p.table_name()?;
            p.expect_kw("TO")?;
            Ok((old, p.table_name()?))
        })?;
        Ok(Statement::RenameTable(pairs))
    }

    // The rest

    fn prepared(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        match word {
            "PREPARE" => {
                let name = self.name()?;
                self.expect_kw("FROM")?;
                let from = if self.kind() == Kind::UserVariable {
                    PrepareSource::Variable(self.user_variable()?)
                } else {
                    PrepareSource::Text(self.string()?)
                };
                Ok(Statement::Prepare { name, from })
            }
            "EXECUTE" => {
                if self.is_kw("IMMEDIATE") {
                    return self.fail();
                }
                let name = self.name()?;
                let using = if self.accept_kw("USING") { self.comma_separated(Self::user_variable)? } else { vec![] };
                Ok(Statement::Execute { name, using })
            }
            _ => {
                self.expect_kw("PREPARE")?;
                Ok(Statement::Deallocate(self.name()?))
            }
        }
    }

    /// Behind `FLUSH TABLES`.
    fn flush_tables(&mut self) -> Result<Statement> {
        let named = !self.at_end() && !self.is_any_kw(&["WITH", "FOR"]);
        let tables = if named { self.comma_separated(Self::table_name)? } else { vec![] };
        if !tables.is_empty() && self.accept_kws(&["FOR", "EXPORT"]) {
            return self.unsupported("FLUSH TABLES … FOR EXPORT");
        }
        Ok(Statement::FlushTables { tables, read_lock: self.accept_kws(&["WITH", "READ", "LOCK"]) })
    }

    fn lock(&mut self) -> Result<Statement> {
        let lock = self.accept_kw("LOCK");
        if !lock {
            self.expect_kw("UNLOCK")?;
        }
        if self.accept_kw("INSTANCE") {
            if lock {
                self.expect_kws(&["FOR", "BACKUP"])?;
            }
            return Ok(if lock { Statement::LockInstance } else { Statement::UnlockInstance });
        }
        if self.accept_any_kw(&["TABLES", "TABLE"]).is_none() {
            return self.fail();
        }
        if !lock {
            return Ok(Statement::UnlockTables);
        }
        let tables = self.comma_separated(|p| {
            let table = p.table_name()?;
            let explicit = p.accept_kw("AS");
            let named = explicit || (p.is_name() && !p.is_any_kw(&["READ", "WRITE", "LOW_PRIORITY"]));
            let alias = if named { Some(p.name()?) } else { None };
            p.accept_kw("LOW_PRIORITY");
            match p.accept_any_kw(&["READ", "WRITE"]) {
                Some("READ") => {
                    p.accept_kw("LOCAL");
                    Ok(TableLock { table, alias, write: false })
                }
                Some(_) => Ok(TableLock { table, alias, write: true }),
                None => p.fail(),
            }
        })?;
        Ok(Statement::LockTables(tables))
    }

    fn maintenance(&mut self, word: &str) -> Result<Statement> {
        self.advance();
        let _ = self.accept_any_kw(&["NO_WRITE_TO_BINLOG", "LOCAL"]);
        if self.accept_any_kw(&["TABLE", "TABLES"]).is_none() {
            return self.fail();
        }
        let tables = self.table_names()?;
        if word == "CHECKSUM" {
            let quick = matches!(self.accept_any_kw(&["QUICK", "EXTENDED"]), Some("QUICK"));
            return Ok(Statement::ChecksumTable { tables, quick });
        }
        if word == "ANALYZE"
            && let Some(word) = self.accept_any_kw(&["UPDATE", "DROP"])
        {
            return self.histograms(word == "UPDATE", tables);
        }
        while self
            .accept_any_kw(&[
                "FOR",
                "UPGRADE",
                "QUICK",
                "FAST",
                "MEDIUM",
                "EXTENDED",
                "CHANGED",
                "USE_FRM",
                "PERSISTENT",
                "ALL",
            ])
            .is_some()
        {}
        Ok(Statement::TableMaintenance { verb: word.to_ascii_lowercase(), tables, histograms: None })
    }

    /// `HISTOGRAM ON column, … [WITH n BUCKETS]`.
    fn histograms(&mut self, update: bool, tables: Vec<TableName>) -> Result<Statement> {
        self.expect_kw("HISTOGRAM")?;
        self.expect_kw("ON")?;
        let columns = self.comma_separated(Self::name)?;
        let verb = "histogram".to_string();
        if !update {
            let histograms = Some(HistogramChange { columns, buckets: None });
            return Ok(Statement::TableMaintenance { verb, tables, histograms });
        }
        if self.is_kw("USING") {
            return self.unsupported("USING DATA of a histogram");
        }
        let mut buckets = USUAL_BUCKETS;
        if self.accept_kw("WITH") {
            buckets = self.integer()?;
            self.expect_kw("BUCKETS")?;
        }
        let histograms = Some(HistogramChange { columns, buckets: Some(buckets) });
        Ok(Statement::TableMaintenance { verb, tables, histograms })
    }
}
