//! What can go wrong in a node.
use rauk_log::LogError;
use rauk_manage::{CatalogError, StoreError};
use rauk_types::{ErrorClass, MysqlError, error::codes};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    #[error("Deadlock found when trying to get lock; try restarting transaction")]
    Deadlock,
    /// A cycle among locks on names; the transaction goes on with those that it has.
    #[error(
        "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and restarting lock acquisition."
    )]
    NameDeadlock,
    #[error("Lock wait timeout exceeded; try restarting transaction")]
    LockTimeout,
    /// What the transaction had locked and written in the partition died with a change of its primary: it is rolled back, like a deadlock's victim.
    #[error(
        "Deadlock found when trying to get lock; try restarting transaction (partition {partition} is led by another process now)"
    )]
    Moved { partition: u16 },
    /// Nobody has led the partition, or answered for it, for as long as the caller would wait.
    #[error("Lock wait timeout exceeded; try restarting transaction (nobody leads partition {partition})")]
    NoPrimary { partition: u16 },
    #[error("Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.")]
    NoWait,
    #[error("Record has changed since last read in table '{table}'")]
    Changed { table: String },
    #[error(
        "Record has changed since last read in table '{table}': the snapshot is too old: its versions were given up \
         at rauk_history_limit, or the unique key by which it reads is newer; start a new transaction"
    )]
    SnapshotTooOld { table: String },
    #[error(
        "The table '{table}' is full: the memory limit of {limit} bytes (rauk_memory_limit) is reached; delete rows or raise the limit"
    )]
    MemoryFull { table: String, limit: u64 },
    #[error(
        "The table '{table}' is full: the temporary tables of the session have reached the limit of {limit} bytes (rauk_temporary_tables_memory); drop some or raise the limit"
    )]
    TemporaryFull { table: String, limit: u64 },
    /// It does not fit into one entry of the log. The transaction is rolled back; as it is it can never be done.
    #[error(
        "The transaction or statement is too large: {bytes} bytes of changes in one log entry, and the limit is {limit} bytes; make it smaller, or commit it in parts"
    )]
    TooLarge { bytes: u64, limit: u64 },
    /// Replicas of a partition have different rows, and nobody knows which are right (rule 79).
    #[error(
        "Table '{table}' is read only: replicas of one of its partitions have different rows, and it is not known which are right; rauk.health names them"
    )]
    ReadOnly { table: String },
    #[error("Disk full: {0}; waiting for someone to free some space")]
    DiskFull(String),
    #[error("Query execution was interrupted")]
    Interrupted,
    /// The table's definition is not the one that the plan was made for: bind again.
    #[error("Table definition has changed, please retry transaction")]
    StaleSchema,
    /// The table, or a part of it, came to be after the transaction's snapshot was drawn.
    #[error("Table definition has changed, please retry transaction")]
    NewerThanSnapshot,
    #[error("Table '{database}.{table}' doesn't exist")]
    NoSuchTable { database: String, table: String },
    /// DDL that cannot be done, with its MySQL error.
    #[error("{0}")]
    Refused(MysqlError),
    /// Settings are not what they were changed from: look again. Nothing has happened.
    #[error("{}", CatalogError::SettingsChanged)]
    SettingsChanged,
    /// Nobody can do it at the moment: no manage leader, no primary. Nothing has happened.
    #[error("Got temporary error: {0}; try again")]
    Unavailable(String),
    #[error("Server shutdown in progress")]
    ShuttingDown,
    /// A commit whose fate is unknown.
    #[error("Got error during COMMIT: the outcome is unknown ({0})")]
    UnknownOutcome(String),
    /// A directory is not opened: its rows do not fit into memory.
    #[error("{0}")]
    TooSmall(String),
    #[error("{0}")]
    Fatal(String),
}

impl NodeError {
    pub fn class(&self) -> ErrorClass {
        match self {
            NodeError::UnknownOutcome(_) => ErrorClass::UnknownOutcome,
            NodeError::Fatal(_) => ErrorClass::Fatal,
            NodeError::TooSmall(_) => ErrorClass::Permanent,
            NodeError::NoSuchTable { .. }
            | NodeError::TooLarge { .. }
            | NodeError::ReadOnly { .. }
            | NodeError::Refused(_) => ErrorClass::Permanent,
            _ => ErrorClass::Temporary,
        }
    }
}

impl From<LogError> for NodeError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::DiskFull(what) => NodeError::DiskFull(what),
            LogError::RecordTooLarge { bytes, limit } => {
                NodeError::TooLarge { bytes: bytes as u64, limit: limit as u64 }
            }
            other => NodeError::Fatal(other.to_string()),
        }
    }
}

impl From<CatalogError> for NodeError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::SettingsChanged => NodeError::SettingsChanged,
            other => NodeError::Refused(other.into()),
        }
    }
}

impl From<StoreError> for NodeError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(error) => error.into(),
            StoreError::Log(error) => error.into(),
        }
    }
}

impl From<NodeError> for MysqlError {
    fn from(error: NodeError) -> Self {
        let code = match &error {
            NodeError::Deadlock | NodeError::Moved { .. } => codes::LOCK_DEADLOCK,
            NodeError::NameDeadlock => codes::USER_LOCK_DEADLOCK,
            NodeError::LockTimeout | NodeError::NoPrimary { .. } => codes::LOCK_WAIT_TIMEOUT,
            NodeError::NoWait => codes::LOCK_NOWAIT,
            NodeError::Changed { .. } | NodeError::SnapshotTooOld { .. } => codes::CHECKREAD,
            NodeError::MemoryFull { .. } | NodeError::TemporaryFull { .. } | NodeError::TooLarge { .. } => {
                codes::RECORD_FILE_FULL
            }
            NodeError::ReadOnly { .. } => codes::OPEN_AS_READONLY,
            NodeError::DiskFull(_) => codes::DISK_FULL,
            NodeError::Interrupted => codes::QUERY_INTERRUPTED,
            NodeError::StaleSchema | NodeError::NewerThanSnapshot => codes::TABLE_DEF_CHANGED,
            NodeError::NoSuchTable { .. } => codes::NO_SUCH_TABLE,
            NodeError::Refused(e) => return e.clone(),
            NodeError::Unavailable(_) | NodeError::SettingsChanged => codes::GET_TEMPORARY_ERRMSG,
            NodeError::ShuttingDown => codes::SERVER_SHUTDOWN,
            NodeError::UnknownOutcome(_) => codes::ERROR_DURING_COMMIT,
            NodeError::TooSmall(_) | NodeError::Fatal(_) => codes::UNKNOWN_ERROR,
        };
        MysqlError::new(code, error.to_string())
    }
}
