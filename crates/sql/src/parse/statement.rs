//! The statements that Rauk knows, around the queries, changes and definitions of [`super::ast`].

use super::ast::{
    self, AccountOptions, Forgiving, PrivilegeItem, RoleStatement, SetPassword, TableName, UserDefinition,
};
use super::diagnostics::{GetDiagnostics, Signal};
use super::handler::Handler;
use rauk_types::{ViewAlgorithm, ViewCheck, ViewSecurity};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Neither SESSION nor GLOBAL was written.
    Default,
    Session,
    Global,
    /// PERSIST: like GLOBAL, and kept over restarts.
    Persist,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// `@@scope.name = value`; `None` is DEFAULT. A bare word (`utf8mb4`, `ON`) arrives as an identifier expression.
    Variable {
        scope: Scope,
        name: String,
        value: Option<ast::Expr>,
    },
    /// `@name := value`.
    UserVariable {
        name: String,
        value: ast::Expr,
    },
    /// SET NAMES; `None` is DEFAULT.
    Names {
        charset: Option<String>,
        collation: Option<String>,
    },
    /// SET CHARACTER SET; `None` is DEFAULT.
    CharacterSet(Option<String>),
    Transaction {
        scope: Scope,
        isolation: Option<IsolationLevel>,
        read_only: Option<bool>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserName {
    pub user: String,
    /// `%` when not written.
    pub host: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// IDENTIFIED BY 'text' (default plugin), or IDENTIFIED WITH plugin BY 'text'.
    Password { plugin: Option<String>, password: String },
    /// IDENTIFIED [WITH plugin] BY RANDOM PASSWORD.
    Random { plugin: Option<String> },
    /// IDENTIFIED WITH plugin: no password.
    Plugin(String),
    /// IDENTIFIED WITH plugin AS 'hash'.
    Hash { plugin: String, hash: String },
}

/// One of LOCK TABLES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLock {
    pub table: TableName,
    pub alias: Option<String>,
    pub write: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    pub if_not_exists: bool,
    pub temporary: bool,
    pub name: TableName,
    pub columns: Vec<ast::ColumnDefinition>,
    pub constraints: Vec<ast::TableConstraint>,
    /// For each constraint, how many columns stand before it: CHECKs without a name are numbered as they are written.
    pub behind: Vec<usize>,
    /// ENGINE, CHARSET, COLLATE, COMMENT, AUTO_INCREMENT, … as (upper-case name, value).
    pub options: Vec<(String, String)>,
    /// CREATE TABLE a LIKE b.
    pub like: Option<TableName>,
    pub partition_by: Option<Box<ast::PartitionClause>>,
    /// CREATE TABLE … AS SELECT.
    pub query: Option<Box<ast::Query>>,
    pub duplicates: DuplicateRows,
}

/// What CREATE TABLE … SELECT does with a row whose key is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DuplicateRows {
    Error,
    Ignore,
    Replace,
}

/// Of CREATE and ALTER DATABASE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseOptions {
    pub charset: Option<String>,
    pub collation: Option<String>,
    pub comment: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AlterOperation {
    AddColumn {
        column: ast::ColumnDefinition,
        position: ColumnPosition,
        if_not_exists: bool,
    },
    DropColumn {
        name: String,
        if_exists: bool,
    },
    ModifyColumn {
        column: ast::ColumnDefinition,
        position: ColumnPosition,
    },
    ChangeColumn {
        old: String,
        column: ast::ColumnDefinition,
        position: ColumnPosition,
    },
    RenameColumn {
        old: String,
        new: String,
    },
    SetDefault {
        column: String,
        value: Option<ast::DefaultValue>,
    },
    AddConstraint(ast::TableConstraint),
    DropIndex(String),
    DropForeignKey(String),
    /// DROP CONSTRAINT: whatever has the name.
    DropConstraint(String),
    DropPrimaryKey,
    DropCheck(String),
    /// ALTER COLUMN … SET VISIBLE, SET INVISIBLE.
    SetVisible {
        column: String,
        invisible: bool,
    },
    /// ALTER INDEX … VISIBLE, INVISIBLE.
    AlterIndex {
        name: String,
        invisible: bool,
    },
    /// ALTER CHECK and, as `constraint`, ALTER CONSTRAINT … [NOT] ENFORCED.
    AlterCheck {
        name: String,
        enforced: bool,
        constraint: bool,
    },
    RenameIndex {
        old: String,
        new: String,
    },
    RenameTable(TableName),
    /// `CONVERT TO CHARACTER SET charset [COLLATE collation]`: of the table and of all its text.
    ConvertTo {
        charset: String,
        collation: Option<String>,
    },
    /// ENGINE, CHARSET, COLLATE, COMMENT, AUTO_INCREMENT, …
    Option {
        name: String,
        value: String,
    },
    /// ALGORITHM= and LOCK=.
    Demand(Demands),
    /// DISABLE KEYS, ENABLE KEYS, ORDER BY, WITH VALIDATION: accepted, nothing to do.
    /// FORCE: rows are written again where they are not as those of a new table would be.
    Force,
    Nothing,
}

/// What FLUSH is told beside tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushOption {
    Status,
    Privileges,
    UserResources,
    /// Logs and caches that there are not.
    Nothing,
}

/// What a statement demands of the way in which a table is changed, in upper case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    pub algorithm: Option<&'static str>,
    pub lock: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnPosition {
    Last,
    First,
    After(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// An index, a unique or a full-text one.
    pub key: ast::TableConstraint,
    pub table: TableName,
    pub if_not_exists: bool,
    pub demands: Demands,
}

/// Which statement defines a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewChange {
    Create,
    CreateOrReplace,
    Alter,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub change: ViewChange,
    /// `None`, here and below: as the present view has it, in ALTER, or the default.
    pub algorithm: Option<ViewAlgorithm>,
    /// An empty name is CURRENT_USER.
    pub definer: Option<UserName>,
    pub security: Option<ViewSecurity>,
    pub name: TableName,
    /// Empty: the columns are called as the query calls them.
    pub columns: Vec<String>,
    pub query: ast::Query,
    pub check: ViewCheck,
}

/// `LIKE 'pattern'` or `WHERE expression` behind a SHOW.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShowFilter {
    pub like: Option<String>,
    pub condition: Option<ast::Expr>,
}

/// What SHOW PROFILE shows beside durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileType {
    All,
    BlockIo,
    ContextSwitches,
    Cpu,
    Ipc,
    Memory,
    PageFaults,
    Source,
    Swaps,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    Profiles,
    Profile {
        types: Vec<ProfileType>,
        query: Option<u64>,
        /// First row and number of rows.
        limit: Option<(u64, u64)>,
    },
    Databases(ShowFilter),
    Tables {
        full: bool,
        database: Option<String>,
        filter: ShowFilter,
    },
    TableStatus {
        database: Option<String>,
        filter: ShowFilter,
    },
    Columns {
        full: bool,
        table: TableName,
        filter: ShowFilter,
    },
    Indexes {
        table: TableName,
        filter: ShowFilter,
    },
    CreateTable(TableName),
    CreateView(TableName),
    CreateDatabase {
        name: String,
        if_not_exists: bool,
    },
    CreateUser(UserName),
    Variables {
        scope: Scope,
        filter: ShowFilter,
    },
    Status {
        scope: Scope,
        filter: ShowFilter,
    },
    Warnings {
        count: bool,
        limit: Option<(u64, u64)>,
    },
    Errors {
        count: bool,
    },
    Collation(ShowFilter),
    CharacterSet(ShowFilter),
    Engines,
    /// SHOW ENGINE INNODB STATUS.
    EngineStatus,
    Plugins,
    Privileges,
    ProcessList {
        full: bool,
    },
    /// `user` `None`: the session's own.
    Grants {
        user: Option<UserName>,
        using: Vec<UserName>,
    },
    /// Kinds of objects that Rauk has none of: an empty answer with MySQL's columns (TRIGGERS, EVENTS, FUNCTION STATUS, PROCEDURE STATUS, OPEN TABLES, MASTER STATUS …).
    Empty {
        kind: String,
        filter: ShowFilter,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    Query(Box<ast::Query>),
    /// INSERT and REPLACE, with IGNORE, ON DUPLICATE KEY UPDATE, SET form, SELECT source.
    Insert(Box<ast::Insert>),
    /// LOAD DATA.
    Load(Box<ast::LoadData>),
    Update(Box<ast::Update>),
    Delete(Box<ast::Delete>),
    /// `format`: TRADITIONAL, JSON, TREE.
    Explain {
        analyze: bool,
        format: Option<String>,
        statement: Box<Statement>,
    },

    Begin {
        read_only: Option<bool>,
        consistent_snapshot: bool,
    },
    /// `None`: as completion_type says.
    Commit {
        chain: Option<bool>,
        release: Option<bool>,
    },
    Rollback {
        chain: Option<bool>,
        release: Option<bool>,
    },
    Savepoint(String),
    RollbackToSavepoint(String),
    ReleaseSavepoint(String),
    Set(Vec<SetItem>),
    SetPassword(Box<SetPassword>),
    Use(String),

    CreateDatabase {
        name: String,
        if_not_exists: bool,
        options: DatabaseOptions,
    },
    AlterDatabase {
        name: Option<String>,
        options: DatabaseOptions,
    },
    DropDatabase {
        name: String,
        if_exists: bool,
    },
    CreateTable(Box<CreateTable>),
    AlterTable {
        table: TableName,
        operations: Vec<AlterOperation>,
        /// Behind all others. Beside PARTITION BY and REMOVE PARTITIONING they are demands only.
        partitions: Option<ast::PartitionOperation>,
    },
    DropTable {
        tables: Vec<TableName>,
        if_exists: bool,
        temporary: bool,
    },
    /// ALTER VIEW too.
    CreateView(Box<CreateView>),
    DropView {
        views: Vec<TableName>,
        if_exists: bool,
    },
    TruncateTable(TableName),
    RenameTable(Vec<(TableName, TableName)>),
    CreateIndex(Box<CreateIndex>),
    DropIndex {
        name: String,
        table: TableName,
        if_exists: bool,
        demands: Demands,
    },

    CreateUser {
        users: Vec<UserDefinition>,
        options: Box<AccountOptions>,
        if_not_exists: bool,
    },
    AlterUser {
        users: Vec<UserDefinition>,
        options: Box<AccountOptions>,
        if_exists: bool,
    },
    RenameUser(Vec<(UserName, UserName)>),
    Role(Box<RoleStatement>),
    DropUser {
        users: Vec<UserName>,
        if_exists: bool,
    },
    /// Privileges in upper case; `database`/`table` `None` is `*`.
    Grant {
        privileges: Vec<PrivilegeItem>,
        database: Option<String>,
        table: Option<String>,
        users: Vec<UserName>,
        grant_option: bool,
    },
    Revoke {
        privileges: Vec<PrivilegeItem>,
        database: Option<String>,
        table: Option<String>,
        users: Vec<UserName>,
        forgiving: Forgiving,
    },

    Show(Show),
    /// DESCRIBE table [column or pattern].
    Describe {
        table: TableName,
        column: Option<String>,
    },
    Kill {
        query_only: bool,
        id: ast::Expr,
    },
    Prepare {
        name: String,
        from: PrepareSource,
    },
    Execute {
        name: String,
        using: Vec<String>,
    },
    Deallocate(String),
    Do(Vec<ast::Expr>),
    LockTables(Vec<TableLock>),
    UnlockTables,
    /// LOCK INSTANCE FOR BACKUP.
    LockInstance,
    UnlockInstance,
    /// ANALYZE, CHECK, OPTIMIZE, REPAIR TABLE: the verb in lower case.
    TableMaintenance {
        verb: String,
        tables: Vec<TableName>,
        histograms: Option<HistogramChange>,
    },
    /// `quick`: only a sum that is kept with the table.
    ChecksumTable {
        tables: Vec<TableName>,
        quick: bool,
    },
    GetDiagnostics(Box<GetDiagnostics>),
    /// RESIGNAL too.
    Signal(Box<Signal>),
    /// Rauk's own: a node that is down does not come back.
    ForgetNode(u64),
    /// Rauk's own: partitions whose logs ended in damage go on with what is there.
    AcceptLoss,
    /// FLUSH of anything.
    Handler(Box<Handler>),
    /// `None`: all that is kept.
    ResetPersist {
        variable: Option<String>,
        if_exists: bool,
    },
    /// FLUSH of something else than tables, in upper case.
    Flush(Vec<FlushOption>),
    FlushTables {
        tables: Vec<TableName>,
        read_lock: bool,
    },
    /// What MySQL has and Rauk has not yet: error 1235 that names it.
    Unsupported(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum PrepareSource {
    Text(String),
    Variable(String),
}

/// ANALYZE TABLE … UPDATE HISTOGRAM and DROP HISTOGRAM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramChange {
    pub columns: Vec<String>,
    /// Of UPDATE; `None`: they are dropped.
    pub buckets: Option<u64>,
}
