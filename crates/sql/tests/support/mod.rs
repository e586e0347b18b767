//! A database in memory, tables from short descriptions, and statements run end to end through parser, planner and executor.
#![allow(dead_code)] // every test file uses another part

use rauk_log::MemoryDisk;
use rauk_node::{Config, Database, Isolation, TableHandle, Threads, Transaction, TxnOptions, block_on};
use rauk_sql::Memory;
use rauk_sql::exec::execute;
use rauk_sql::expr::context::SystemVariables;
use rauk_sql::expr::{BindContext, Context};
use rauk_sql::lookup::{Lookup, TableSource, VirtualTable};
use rauk_sql::parse::ast::{ColumnOption, ColumnType};
use rauk_sql::parse::statement::Scope;
use rauk_sql::parse::{Statement, parse};
use rauk_sql::physical::{Plan, plan};
use rauk_types::error::codes;
use rauk_types::format::append_text;
use rauk_types::result::{Completion, FlushFuture, ResultColumn, ResultSink};
use rauk_types::schema::{Column, ColumnDefault, HIDDEN_KEY_COLUMN, IndexPart, IndexSchema};
use rauk_types::{
    Collation, ColumnId, DataType, IndexId, IndexKind, MysqlError, TableId, TableSchema, TypeKind, Value, ValueRef,
    ViewSchema,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// System variables by name.
#[derive(Default)]
pub struct Variables(pub HashMap<String, Value>);

impl SystemVariables for Variables {
    fn get(&self, _: Scope, name: &str) -> Result<Value, MysqlError> {
        self.0
            .get(name)
            .cloned()
            .ok_or_else(|| MysqlError::new(codes::UNKNOWN_SYSTEM_VARIABLE, format!("Unknown system variable '{name}'")))
    }
}

/// One session on a database named `test`.
pub struct Session {
    pub database: Database,
    pub context: Context,
    pub transaction: Option<Transaction>,
    pub isolation: Isolation,
    pub virtual_tables: HashMap<String, Arc<dyn VirtualTable>>,
}

/// What a statement gave.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub columns: Vec<ResultColumn>,
    /// Text as the text protocol has it; `NULL` for NULL.
    pub rows: Vec<Vec<String>>,
    pub completion: Completion,
}

impl Answer {
    /// Rows as lines, columns separated by `|`.
    pub fn text(&self) -> String {
        self.rows.iter().map(|r| r.join("|")).collect::<Vec<_>>().join("\n")
    }
}

#[derive(Default)]
struct Sink {
    columns: Vec<ResultColumn>,
    rows: Vec<Vec<String>>,
}

impl ResultSink for Sink {
    fn columns(&mut self, columns: &[ResultColumn]) {
        self.columns = columns.to_vec();
    }
    fn row(&mut self, values: &[ValueRef<'_>]) {
        assert_eq!(values.len(), self.columns.len());
        let row = values.iter().zip(&self.columns).map(|(value, column)| {
            if value.is_null() {
                return "NULL".to_string();
            }
            let mut out = Vec::new();
            append_text(*value, &column.ty, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        });
        self.rows.push(row.collect());
    }
    fn withdraw(&mut self) -> bool {
        self.rows.clear();
        true
    }
    fn complete(&mut self, _: &Completion) {}
    fn buffered(&self) -> usize {
        0
    }
    fn flush(&mut self) -> FlushFuture<'_> {
        Box::pin(async { Ok(()) })
    }
}

impl Lookup for Session {
    fn table(&self, database: Option<&str>, name: &str, _: &str) -> Result<TableSource, MysqlError> {
        if let Some(table) = self.virtual_tables.get(name) {
            return Ok(TableSource::Virtual(table.clone()));
        }
        Ok(TableSource::Stored(self.database.table(database.unwrap_or("test"), name)?))
    }
    fn may_lock_rows(&self, _: &str, _: &str) -> Result<(), MysqlError> {
        Ok(())
    }

    fn within(&self, view: &ViewSchema) -> Result<Box<dyn Lookup>, MysqlError> {
        unreachable!("{} is a view, and this database has none", view.name)
    }

    fn database(&self) -> &Database {
        &self.database
    }

    fn column_type(
        &self,
        name: &str,
        _: &ColumnType,
        _: &[ColumnOption],
        _: &BindContext,
    ) -> Result<DataType, MysqlError> {
        unreachable!("{name} is a column of JSON_TABLE, which sessions have")
    }
}

pub fn database() -> Database {
    let config = Config { partitions: 4, segment_bytes: 1 << 20, checkpoint_redo_bytes: 1 << 40, ..Config::default() };
    let database = Database::open(config, MemoryDisk::new(), Threads::start().unwrap(), &|_| {}).unwrap();
    block_on(database.create_database("test", Collation::DEFAULT)).unwrap();
    database
}

impl Session {
    pub fn new() -> Session {
        Session::on(database())
    }

    pub fn on(database: Database) -> Session {
        let mut context = Context::new(Arc::new(Variables::default()));
        context.now_micros = 1_700_000_000_123_456;
        Session {
            database,
            context,
            transaction: None,
            isolation: Isolation::RepeatableRead,
            virtual_tables: HashMap::new(),
        }
    }

    /// Another session on the same database.
    pub fn other(&self) -> Session {
        Session::on(self.database.clone())
    }

    /// What the next statement may use.
    pub fn memory_limit(&mut self, bytes: usize) {
        self.context.budget.memory = Memory::limited(bytes);
    }

    /// Creates a table. Columns: `name type [unsigned] [null] [auto] [bin|general|unicode] [on_update] [default=value|now]`, separated by commas.
    /// Indexes: `primary a, b`, `index name a desc, b(3)`, `unique name a`, separated by semicolons; no primary: a hidden key.
    pub fn create(&mut self, name: &str, columns: &str, indexes: &str) {
        block_on(self.database.create_table(schema(name, columns, indexes))).unwrap();
    }

    pub fn handle(&self, name: &str) -> TableHandle {
        self.database.table("test", name).unwrap()
    }

    pub fn bind_context(&self) -> BindContext {
        BindContext {
            parameters: self.context.parameters.iter().map(type_of).collect(),
            collation: self.context.collation,
            sql_mode: self.context.sql_mode,
            ..BindContext::default()
        }
    }

    pub fn plan(&self, sql: &str) -> Result<Plan, MysqlError> {
        let parsed = parse(sql, self.context.sql_mode.parse_mode())?;
        plan(&parsed.statement, self, &self.bind_context())
    }

    /// EXPLAIN, as `column=value` of the columns that are not NULL.
    pub fn explain(&mut self, sql: &str) -> Vec<HashMap<&'static str, String>> {
        const NAMES: [&str; 12] = [
            "id",
            "select_type",
            "table",
            "partitions",
            "type",
            "possible_keys",
            "key",
            "key_len",
            "ref",
            "rows",
            "filtered",
            "Extra",
        ];
        let plan = self.plan(sql).unwrap();
        plan.explain(&mut self.context)
            .unwrap()
            .into_iter()
            .map(|row| {
                let text = |v: Value| match v {
                    Value::Null => "NULL".to_string(),
                    Value::Str(s) => s,
                    Value::Int(i) => i.to_string(),
                    Value::Double(d) => d.to_string(),
                    other => format!("{other:?}"),
                };
                NAMES.into_iter().zip(row.into_iter().map(text)).collect()
            })
            .collect()
    }

    /// The access of each table: `type key`.
    pub fn path(&mut self, sql: &str) -> String {
        self.explain(sql)
            .into_iter()
            .map(|row| format!("{} {}", row["type"], row["key"]))
            .collect::<Vec<_>>()
            .join("; ")
    }

    pub fn begin(&mut self) {
        self.transaction = Some(self.new_transaction(false));
    }

    pub fn commit(&mut self) {
        block_on(self.transaction.take().unwrap().commit()).unwrap();
    }

    pub fn rollback(&mut self) {
        self.transaction.take().unwrap().rollback();
    }

    fn new_transaction(&self, autocommit: bool) -> Transaction {
        self.database.begin(TxnOptions {
            isolation: self.isolation,
            autocommit,
            lock_wait_timeout: Duration::from_secs(2),
            ..TxnOptions::default()
        })
    }

    pub fn run(&mut self, sql: &str) -> Result<Answer, MysqlError> {
        let parsed = parse(sql, self.context.sql_mode.parse_mode())?;
        self.run_statement(&parsed.statement)
    }

    pub fn run_statement(&mut self, statement: &Statement) -> Result<Answer, MysqlError> {
        self.context.warnings.clear();
        self.context.warning_count = 0;
        self.context.new_last_insert_id = None;
        let plan = plan(statement, self, &self.bind_context())?;
        self.run_plan(&plan)
    }

    pub fn run_plan(&mut self, plan: &Plan) -> Result<Answer, MysqlError> {
        let own = self.transaction.is_none();
        let mut transaction = self.transaction.take().unwrap_or_else(|| self.new_transaction(true));
        let mut sink = Sink::default();
        transaction.begin_statement();
        let result = block_on(execute(plan, &mut transaction, &mut self.context, &mut sink));
        let completion = match result {
            Ok(completion) => {
                if own {
                    block_on(transaction.commit())?;
                } else {
                    self.transaction = Some(transaction);
                }
                completion
            }
            Err(error) => {
                if own || error.code == codes::LOCK_DEADLOCK {
                    transaction.rollback();
                } else {
                    transaction.rollback_statement();
                    self.transaction = Some(transaction);
                }
                return Err(error);
            }
        };
        Ok(Answer { columns: sink.columns, rows: sink.rows, completion })
    }

    /// Runs a statement that must succeed.
    pub fn ok(&mut self, sql: &str) -> Answer {
        match self.run(sql) {
            Ok(answer) => answer,
            Err(error) => panic!("{sql}: {error}"),
        }
    }

    /// The rows of a query that must succeed.
    pub fn rows(&mut self, sql: &str) -> String {
        self.ok(sql).text()
    }

    /// The error of a statement that must fail.
    pub fn error(&mut self, sql: &str) -> String {
        match self.run(sql) {
            Ok(answer) => panic!("{sql} succeeded: {}", answer.text()),
            Err(error) => format!("{} {}", error.code, error.message),
        }
    }

    pub fn affected(&mut self, sql: &str) -> u64 {
        self.ok(sql).completion.affected_rows
    }

    pub fn warnings(&self) -> Vec<String> {
        self.context.warnings.iter().map(|w| format!("{} {}", w.code, w.message)).collect()
    }
}

fn type_of(value: &Value) -> DataType {
    match value {
        Value::Null => DataType::new(TypeKind::Null),
        Value::Int(_) => DataType::BIGINT,
        Value::UInt(_) => DataType::BIGINT_UNSIGNED,
        Value::Double(_) => DataType::DOUBLE,
        Value::Str(s) => DataType::varchar(s.chars().count() as u32, Collation::DEFAULT),
        Value::Bytes(b) => DataType::varbinary(b.len() as u32),
        Value::Json(_) => DataType::new(TypeKind::Json),
        Value::Decimal(d) => DataType::decimal(d.precision(), d.scale()),
        Value::Date(_) => DataType::new(TypeKind::Date),
        Value::Time(_) => DataType { scale: 6, ..DataType::new(TypeKind::Time) },
        Value::DateTime(_) | Value::Timestamp(_) => DataType { scale: 6, ..DataType::new(TypeKind::DateTime) },
    }
}

/// `value` in the types of short descriptions.
fn data_type(text: &str) -> DataType {
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => {
            let numbers: Vec<u32> = rest.trim_end_matches(')').split('.').map(|n| n.parse().unwrap()).collect();
            (name, numbers)
        }
        None => (text, vec![]),
    };
    let first = arguments.first().copied();
    let kind = match name {
        "tinyint" => TypeKind::TinyInt,
        "smallint" => TypeKind::SmallInt,
        "int" => TypeKind::Int,
        "bigint" => TypeKind::BigInt,
        "double" => TypeKind::Double,
        "float" => TypeKind::Float,
        "decimal" => return DataType::decimal(first.unwrap_or(10) as u8, arguments.get(1).copied().unwrap_or(0) as u8),
        "char" => TypeKind::Char,
        "varchar" => TypeKind::VarChar,
        "text" => TypeKind::Text,
        "binary" => TypeKind::Binary,
        "varbinary" => TypeKind::VarBinary,
        "blob" => TypeKind::Blob,
        "date" => TypeKind::Date,
        "time" => TypeKind::Time,
        "datetime" => TypeKind::DateTime,
        "timestamp" => TypeKind::Timestamp,
        other => panic!("unknown type {other}"),
    };
    let mut ty = DataType::new(kind);
    if ty.is_temporal() {
        ty.scale = first.unwrap_or(0) as u8;
    } else if let Some(length) = first {
        ty.length = length;
    }
    ty
}

/// A table from a short description: see [`Session::create`].
pub fn schema(name: &str, columns: &str, indexes: &str) -> TableSchema {
    let mut auto_increment = None;
    let mut defined: Vec<Column> = Vec::new();
    for (position, text) in columns.split(',').enumerate() {
        let mut words = text.split_whitespace();
        let column_name = words.next().unwrap();
        let mut ty = data_type(words.next().unwrap());
        let mut nullable = false;
        let mut default = None;
        let mut on_update_now = false;
        for word in words {
            match word {
                "unsigned" => ty.unsigned = true,
                "null" => nullable = true,
                "auto" => auto_increment = Some(position),
                "bin" => ty.collation = Collation::Utf8mb4Bin,
                "general" => ty.collation = Collation::Utf8mb4GeneralCi,
                "unicode" => ty.collation = Collation::Utf8mb4UnicodeCi,
                "on_update" => on_update_now = true,
                "default=now" => default = Some(ColumnDefault::Now),
                word => {
                    let value = word.strip_prefix("default=").unwrap_or_else(|| panic!("unknown word {word}"));
                    default = Some(ColumnDefault::Value(if ty.is_integer() {
                        Value::Int(value.parse().unwrap())
                    } else {
                        Value::Str(value.to_string())
                    }));
                }
            }
        }
        let none = if nullable { ColumnDefault::Value(Value::Null) } else { ColumnDefault::None };
        defined.push(Column {
            id: ColumnId(position as u16),
            name: column_name.to_string(),
            ty,
            nullable,
            default: default.unwrap_or(none),
            on_update_now,
            comment: String::new(),
            initial: Value::Null,
            generated: None,
            invisible: false,
        });
    }
    let mut made: Vec<IndexSchema> = Vec::new();
    for text in indexes.split(';').map(str::trim).filter(|t| !t.is_empty()) {
        let (kind, rest) = text.split_once(' ').unwrap();
        let (index_name, kind, rest) = match kind {
            "primary" => ("PRIMARY", IndexKind::Primary, rest),
            _ => {
                let (index_name, rest) = rest.split_once(' ').unwrap();
                (index_name, if kind == "unique" { IndexKind::Unique } else { IndexKind::Ordered }, rest)
            }
        };
        let parts = rest.split(',').map(|part| {
            let mut words = part.split_whitespace();
            let column = words.next().unwrap();
            let (column, prefix) = match column.split_once('(') {
                Some((column, rest)) => (column, Some(rest.trim_end_matches(')').parse().unwrap())),
                None => (column, None),
            };
            let column = defined.iter().position(|c| c.name == column).unwrap();
            IndexPart { column, prefix, descending: words.next() == Some("desc") }
        });
        made.push(IndexSchema {
            id: IndexId::PRIMARY,
            name: index_name.to_string(),
            kind,
            parts: parts.collect(),
            hash_only: false,
            entry_table: None,
            comment: String::new(),
            invisible: false,
            global: false,
        });
    }
    let hidden_key = made.first().is_none_or(|i| i.kind != IndexKind::Primary);
    if hidden_key {
        defined.push(Column {
            id: ColumnId(defined.len() as u16),
            name: HIDDEN_KEY_COLUMN.to_string(),
            ty: DataType::BIGINT_UNSIGNED,
            nullable: false,
            default: ColumnDefault::None,
            on_update_now: false,
            comment: String::new(),
            initial: Value::Null,
            generated: None,
            invisible: false,
        });
        made.insert(
            0,
            IndexSchema {
                id: IndexId::PRIMARY,
                name: "PRIMARY".to_string(),
                kind: IndexKind::Primary,
                parts: vec![IndexPart { column: defined.len() - 1, prefix: None, descending: false }],
                hash_only: true,
                entry_table: None,
                comment: String::new(),
                invisible: false,
                global: false,
            },
        );
    }
    for (number, index) in made.iter_mut().enumerate() {
        index.id = IndexId(number as u16);
    }
    TableSchema {
        id: TableId(0),
        version: 0,
        database: "test".to_string(),
        name: name.to_string(),
        columns: defined.into(),
        distribution: made[0].parts.iter().map(|p| p.column).collect(),
        indexes: made.into(),
        hidden_key,
        auto_increment,
        collation: Collation::DEFAULT,
        comment: String::new(),
        explicit_partitioning: false,
        fully_replicated: false,
        checks: Vec::new(),
        entry_of: None,
        foreign_keys: Vec::new(),
        storage: Default::default(),
        partitioning: None,
        leaf_of: None,
        leaf_tables: Default::default(),
        layouts: vec![],
    }
}
