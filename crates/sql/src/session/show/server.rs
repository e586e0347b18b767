//! SHOW VARIABLES, STATUS, WARNINGS, COLLATION, CHARACTER SET, ENGINES, PLUGINS, PRIVILEGES, PROCESSLIST, GRANTS, CREATE USER, and the empty ones.

use super::{Table, columns, integer_column, text_column, unsigned_column, unsupported};
use crate::expr::context::WarningLevel;
use crate::parse::statement::UserName;
use crate::session::charset;
use crate::session::run::Done;
use crate::session::session::Session;
use crate::session::system::{self, s, u};
use crate::session::users::record::quoted_name;
use crate::session::users::{AccountRecord, Privileges, Users, grants, privilege};
use rauk_types::error::codes;
use rauk_types::result::ResultSink;
use rauk_types::{Charset, Collation, MysqlError, Value};
use std::sync::Arc;

impl Session {
    pub(super) fn show_variables(&self, global: bool) -> Table {
        let rows = self.variables.list(global).into_iter().map(|(name, value)| vec![s(name), s(value)]);
        Table { columns: vec![text_column("Variable_name", 64), text_column("Value", 2048)], rows: rows.collect() }
    }

    pub(super) fn show_status(&self, global: bool) -> Table {
        let list = system::status_list(&self.viewer(), global);
        let rows = list.into_iter().map(|(name, value)| vec![s(name), s(value)]);
        Table { columns: vec![text_column("Variable_name", 64), text_column("Value", 2048)], rows: rows.collect() }
    }

    /// SHOW WARNINGS, SHOW ERRORS, and their COUNT(*). `limit` is (offset, rows).
    pub(super) fn show_warnings(&self, count: bool, limit: Option<(u64, u64)>, errors_only: bool) -> Table {
        if count {
            let (name, number) = match errors_only {
                true => ("@@session.error_count", self.errors),
                false => ("@@session.warning_count", self.context.warning_count),
            };
            return Table { columns: vec![unsigned_column(name)], rows: vec![vec![u(number)]] };
        }
        let (skip, take) = limit.unwrap_or((0, u64::MAX));
        let shown = self.context.warnings.iter().filter(|w| !errors_only || w.level == WarningLevel::Error);
        let rows = shown.skip(skip as usize).take(usize::try_from(take).unwrap_or(usize::MAX)).map(|warning| {
            let level = match warning.level {
                WarningLevel::Note => "Note",
                WarningLevel::Warning => "Warning",
                WarningLevel::Error => "Error",
            };
            vec![s(level), u(warning.code), s(&warning.message)]
        });
        Table {
            columns: vec![text_column("Level", 7), unsigned_column("Code"), text_column("Message", 512)],
            rows: rows.collect(),
        }
    }

    pub(super) fn show_collations(&self) -> Table {
        let row = |c: &Collation| {
            vec![
                s(c.name()),
                s(c.charset_name()),
                u(c.mysql_id()),
                s(if c.is_default() { "Yes" } else { "" }),
                s("Yes"),
                u(c.sort_length()),
                s(c.pad_attribute()),
            ]
        };
        Table {
            columns: columns(&["Collation", "Charset", "Id#", "Default", "Compiled", "Sortlen#", "Pad_attribute"]),
            rows: charset::collations().iter().map(row).collect(),
        }
    }

    pub(super) fn show_character_sets(&self) -> Table {
        let default = |set: Charset| s(Collation::of_charset(set).name());
        let row = |set: Charset| vec![s(set.name()), s(set.description()), default(set), u(set.max_bytes())];
        Table {
            columns: columns(&["Charset", "Description", "Default collation", "Maxlen#"]),
            rows: Charset::all().map(row).collect(),
        }
    }

    /// All rows of a virtual table, some of its columns.
    fn rows_of(&self, table: &str, positions: &[usize]) -> Result<Vec<Vec<Value>>, MysqlError> {
        let table = system::table(system::INFORMATION_SCHEMA, table, self.viewer())?;
        let rows = table.rows(None, None)?;
        Ok(rows.into_iter().map(|row| positions.iter().map(|&at| row[at].clone()).collect()).collect())
    }

    pub(super) fn show_engines(&self) -> Result<Table, MysqlError> {
        Ok(Table {
            columns: columns(&["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"]),
            rows: self.rows_of("ENGINES", &[0, 1, 2, 3, 4, 5])?,
        })
    }

    pub(super) fn show_plugins(&self) -> Result<Table, MysqlError> {
        Ok(Table {
            columns: columns(&["Name", "Status", "Type", "Library", "License"]),
            rows: self.rows_of("PLUGINS", &[0, 2, 3, 5, 9])?,
        })
    }

    pub(super) fn show_privileges(&self) -> Table {
        let rows = privilege::descriptions().into_iter();
        Table {
            columns: columns(&["Privilege", "Context", "Comment"]),
            rows: rows.map(|(name, context, comment)| vec![s(name), s(context), s(comment)]).collect(),
        }
    }

    /// SHOW PROCESSLIST of the whole cluster; a node that does not answer is a warning.
    pub(crate) async fn list_processes(&mut self, full: bool, sink: &mut dyn ResultSink) -> Done {
        let (rows, silent) = system::all_process_rows(&self.viewer()).await;
        for node in silent {
            let text = format!("Node {} has not answered: its sessions are not listed", node.0);
            self.push_warning(WarningLevel::Warning, codes::UNKNOWN_ERROR, text);
        }
        let Table { columns, rows } = Self::processes_table(full, rows);
        super::send(&columns, &rows, sink);
        Done::rows()
    }

    /// Without rows: for the columns of a prepared statement.
    pub(super) fn show_processes(&self, full: bool) -> Table {
        Self::processes_table(full, Vec::new())
    }

    fn processes_table(full: bool, mut rows: Vec<Vec<Value>>) -> Table {
        if !full {
            for row in &mut rows {
                if let Value::Str(info) = &mut row[7] {
                    *info = info.chars().take(100).collect();
                }
            }
        }
        Table {
            columns: vec![
                unsigned_column("Id"),
                text_column("User", 32),
                text_column("Host", 261),
                text_column("db", 64),
                text_column("Command", 16),
                integer_column("Time"),
                text_column("State", 64),
                super::long_text_column("Info"),
            ],
            rows,
        }
    }

    /// The account that a SHOW names: one's own, or any for who may read them all.
    fn shown_account(&self, user: Option<&UserName>) -> Result<Arc<AccountRecord>, MysqlError> {
        let own = |name: &UserName| {
            (name.user.is_empty() && name.host.is_empty())
                || (name.user == self.account.user && name.host.eq_ignore_ascii_case(&self.account.host))
        };
        match user {
            None => Ok(self.own.clone()),
            Some(name) if own(name) => Ok(self.own.clone()),
            Some(name) => {
                if !self.account.on_database("mysql").contains(Privileges::SELECT) {
                    let (own, host) = (&self.account.user, &self.account.host);
                    return Err(crate::session::errors::database_denied(own, host, "mysql"));
                }
                self.engine.users.find(&name.user, &name.host).ok_or_else(|| {
                    let message =
                        format!("There is no such grant defined for user '{}' on host '{}'", name.user, name.host);
                    MysqlError::new(rauk_types::error::codes::NONEXISTING_GRANT, message)
                })
            }
        }
    }

    /// Without names: the session's account with its active roles. `using`: as if these roles were active.
    pub(super) fn show_grants(&self, user: Option<&UserName>, using: &[UserName]) -> Result<Table, MysqlError> {
        let users = &self.engine.users;
        let account = self.shown_account(user)?;
        let granted = users.granted_roles(&account);
        if let Some(missing) = using.iter().find(|role| !granted.contains_key(role)) {
            let message = format!("{} is not granted to {}", quoted_name(missing), quoted_name(&account.name()));
            return Err(MysqlError::new(3530, message));
        }
        let active = if user.is_none() { self.active_roles.as_slice() } else { using };
        let mut shown = AccountRecord::clone(&*users.with_roles(&account, active));
        shown.roles = granted;
        let name = format!("Grants for {}@{}", account.user, account.host);
        let rows = grants::grants(&shown).into_iter().map(|line| vec![Value::Str(line)]).collect();
        Ok(Table { columns: vec![text_column(&name, 1024)], rows })
    }

    pub(super) fn show_create_user(&self, user: &UserName) -> Result<Table, MysqlError> {
        let account = self.shown_account(Some(user)).map_err(|error| match error.code {
            rauk_types::error::codes::NONEXISTING_GRANT => {
                Users::operation_failed("SHOW CREATE USER", &user.user, &user.host)
            }
            _ => error,
        })?;
        let name = format!("CREATE USER for {}@{}", account.user, account.host);
        let rows = vec![vec![Value::Str(grants::create_user(&account, self.settings.shows_hashes_in_hex))]];
        Ok(Table { columns: vec![text_column(&name, 1024)], rows })
    }
}

/// Kinds of objects that Rauk has none of.
pub(super) fn empty(kind: &str) -> Result<Table, MysqlError> {
    let names: &[&str] = match kind {
        "TRIGGERS" => &[
            "Trigger",
            "Event",
            "Table",
            "Statement",
            "Timing",
            "Created",
            "sql_mode",
            "Definer",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
        "EVENTS" => &[
            "Db",
            "Name",
            "Definer",
            "Time zone",
            "Type",
            "Execute at",
            "Interval value",
            "Interval field",
            "Starts",
            "Ends",
            "Status",
            "Originator#",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
        "FUNCTION STATUS" | "PROCEDURE STATUS" | "PACKAGE STATUS" => &[
            "Db",
            "Name",
            "Type",
            "Definer",
            "Modified",
            "Created",
            "Security_type",
            "Comment",
            "character_set_client",
            "collation_connection",
            "Database Collation",
        ],
        "OPEN TABLES" => &["Database", "Table", "In_use#", "Name_locked#"],
        "MASTER STATUS" | "BINARY LOG STATUS" => {
            &["File", "Position#", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set"]
        }
        "REPLICA STATUS" => REPLICA_STATUS,
        // The names of old.
        "SLAVE STATUS" | "ALL SLAVES STATUS" => {
            let old = |name: &&str| {
                let name = name.replace("Relay_Source", "Relay_Master").replace("Source", "Master");
                name.replace("Replica_", "Slave_").replace("Get_Master", "Get_master")
            };
            let names: Vec<String> = REPLICA_STATUS.iter().map(old).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Ok(Table { columns: columns(&names), rows: Vec::new() });
        }
        "REPLICAS" => &["Server_Id#", "Host", "Port#", "Source_Id#", "Replica_UUID"],
        "SLAVE HOSTS" => &["Server_id#", "Host", "Port#", "Master_id#", "Slave_UUID"],
        "MASTER LOGS" | "BINARY LOGS" => return Err(MysqlError::new(1381, "You are not using binary logging")),
        other => return Err(unsupported(other)),
    };
    Ok(Table { columns: columns(names), rows: Vec::new() })
}

const REPLICA_STATUS: &[&str] = &[
    "Replica_IO_State",
    "Source_Host",
    "Source_User",
    "Source_Port#",
    "Connect_Retry#",
    "Source_Log_File",
    "Read_Source_Log_Pos#",
    "Relay_Log_File",
    "Relay_Log_Pos#",
    "Relay_Source_Log_File",
    "Replica_IO_Running",
    "Replica_SQL_Running",
    "Replicate_Do_DB",
    "Replicate_Ignore_DB",
    "Replicate_Do_Table",
    "Replicate_Ignore_Table",
    "Replicate_Wild_Do_Table",
    "Replicate_Wild_Ignore_Table",
    "Last_Errno#",
    "Last_Error",
    "Skip_Counter#",
    "Exec_Source_Log_Pos#",
    "Relay_Log_Space#",
    "Until_Condition",
    "Until_Log_File",
    "Until_Log_Pos#",
    "Source_SSL_Allowed",
    "Source_SSL_CA_File",
    "Source_SSL_CA_Path",
    "Source_SSL_Cert",
    "Source_SSL_Cipher",
    "Source_SSL_Key",
    "Seconds_Behind_Source#",
    "Source_SSL_Verify_Server_Cert",
    "Last_IO_Errno#",
    "Last_IO_Error",
    "Last_SQL_Errno#",
    "Last_SQL_Error",
    "Replicate_Ignore_Server_Ids",
    "Source_Server_Id#",
    "Source_UUID",
    "Source_Info_File",
    "SQL_Delay#",
    "SQL_Remaining_Delay#",
    "Replica_SQL_Running_State",
    "Source_Retry_Count#",
    "Source_Bind",
    "Last_IO_Error_Timestamp",
    "Last_SQL_Error_Timestamp",
    "Source_SSL_Crl",
    "Source_SSL_Crlpath",
    "Retrieved_Gtid_Set",
    "Executed_Gtid_Set",
    "Auto_Position#",
    "Replicate_Rewrite_DB",
    "Channel_Name",
    "Source_TLS_Version",
    "Source_public_key_path",
    "Get_Source_public_key#",
    "Network_Namespace",
];
