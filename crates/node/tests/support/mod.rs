//! Tables, rows and databases for the tests.
#![allow(dead_code)] // every test file uses another part

use rauk_log::{Disk, MemoryDisk};
use rauk_node::*;
use rauk_types::schema::{Column, ColumnDefault, IndexPart, IndexSchema};
use rauk_types::{
    Collation, ColumnId, DataType, IndexId, IndexKind, MysqlError, RowView, TableId, TableSchema, TypeKind, Value,
    ValueRef,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

pub const WAIT: Duration = Duration::from_secs(5);

pub fn column(id: u16, name: &str, ty: DataType, nullable: bool) -> Column {
    Column {
        id: ColumnId(id),
        name: name.into(),
        ty,
        nullable,
        default: ColumnDefault::Value(Value::Null),
        on_update_now: false,
        comment: String::new(),
        initial: Value::Null,
        generated: None,
        invisible: false,
    }
}

pub fn index(id: u16, name: &str, kind: IndexKind, columns: &[usize]) -> IndexSchema {
    IndexSchema {
        id: IndexId(id),
        name: name.into(),
        kind,
        parts: columns.iter().map(|&column| IndexPart { column, prefix: None, descending: false }).collect(),
        hash_only: false,
        entry_table: None,
        comment: String::new(),
        invisible: false,
        global: false,
    }
}

pub fn schema(name: &str, columns: Vec<Column>, indexes: Vec<IndexSchema>) -> TableSchema {
    TableSchema {
        id: TableId(0),
        version: 0,
        database: "d".into(),
        name: name.into(),
        columns: columns.into(),
        distribution: indexes[0].parts.iter().map(|p| p.column).collect(),
        indexes: indexes.into(),
        hidden_key: false,
        auto_increment: None,
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

/// `CREATE TABLE name (id BIGINT PRIMARY KEY, value BIGINT, code VARCHAR(20) NULL, KEY by_value (value), UNIQUE by_code (code))`
pub fn accounts(name: &str) -> TableSchema {
    schema(
        name,
        vec![
            column(0, "id", DataType::BIGINT, false),
            column(1, "value", DataType::BIGINT, false),
            column(2, "code", DataType::varchar(20, Collation::Utf8mb40900AiCi), true),
        ],
        vec![
            index(0, "PRIMARY", IndexKind::Primary, &[0]),
            index(1, "by_value", IndexKind::Ordered, &[1]),
            index(2, "by_code", IndexKind::Unique, &[2]),
        ],
    )
}

/// `CREATE TABLE name (id BIGINT PRIMARY KEY, value BIGINT)`
pub fn pairs(name: &str) -> TableSchema {
    let columns = vec![column(0, "id", DataType::BIGINT, false), column(1, "value", DataType::BIGINT, false)];
    schema(name, columns, vec![index(0, "PRIMARY", IndexKind::Primary, &[0])])
}

/// `CREATE TABLE name (value BIGINT)`
pub fn hidden(name: &str) -> TableSchema {
    let key = DataType { unsigned: true, ..DataType::new(TypeKind::BigInt) };
    let columns =
        vec![column(0, "value", DataType::BIGINT, true), column(1, rauk_types::schema::HIDDEN_KEY_COLUMN, key, false)];
    let mut schema = schema(name, columns, vec![index(0, "PRIMARY", IndexKind::Primary, &[1])]);
    schema.hidden_key = true;
    schema
}

pub fn config() -> Config {
    Config { partitions: 4, segment_bytes: 1 << 20, checkpoint_redo_bytes: 1 << 40, ..Config::default() }
}

pub fn open_on(disk: Arc<dyn Disk>, config: Config) -> Database {
    let runtime = Threads::start().unwrap();
    Database::open(config, disk, runtime, &|_| {}).unwrap()
}

/// An empty database `d` in memory.
pub fn database() -> Database {
    let db = open_on(MemoryDisk::new(), config());
    block_on(db.create_database("d", Collation::DEFAULT)).unwrap();
    db
}

/// With one table.
pub fn database_with(schema: TableSchema) -> (Database, TableHandle) {
    let db = database();
    let name = schema.name.clone();
    block_on(db.create_table(schema)).unwrap();
    let table = db.table("d", &name).unwrap();
    (db, table)
}

pub fn int(v: i64) -> Value {
    Value::Int(v)
}

pub fn text(v: &str) -> Value {
    Value::Str(v.into())
}

pub fn account(id: i64, value: i64, code: Option<&str>) -> Vec<Value> {
    vec![int(id), int(value), code.map_or(Value::Null, text)]
}

pub fn key_of(table: &TableHandle, id: i64) -> Vec<u8> {
    let mut key = Vec::new();
    table.primary_key().encode_prefix(&[ValueRef::Int(id)], &mut key);
    key
}

pub fn code_key(table: &TableHandle, code: &str) -> Vec<u8> {
    let mut key = Vec::new();
    table.unique_key(IndexId(2)).unwrap().encode_prefix(&[ValueRef::Str(code)], &mut key);
    key
}

pub fn values(row: &RowView<'_>, columns: usize) -> Vec<Value> {
    (0..columns).map(|i| row.get(i).to_owned()).collect()
}

/// A transaction that has begun its first statement on the table.
pub async fn begin(db: &Database, table: &TableHandle, isolation: Isolation) -> Transaction {
    let options = TxnOptions { isolation, lock_wait_timeout: Duration::from_secs(10), ..TxnOptions::default() };
    let mut txn = db.begin(options);
    txn.use_table(table).await.unwrap();
    txn.begin_statement();
    txn
}

pub async fn begin_rr(db: &Database, table: &TableHandle) -> Transaction {
    begin(db, table, Isolation::RepeatableRead).await
}

pub fn autocommit() -> TxnOptions {
    TxnOptions { autocommit: true, ..TxnOptions::default() }
}

pub async fn get(txn: &mut Transaction, table: &TableHandle, id: i64) -> Option<Vec<Value>> {
    let columns = table.schema().columns.len();
    txn.get(table, &key_of(table, id), None, |row| row.map(|r| values(&r, columns))).await.unwrap()
}

/// What [`Transaction::get_many`] finds for each key: by the primary key, or by the unique index on the code.
pub async fn get_many(
    txn: &mut Transaction,
    table: &TableHandle,
    index: IndexId,
    keys: &[Vec<u8>],
) -> Result<Vec<Option<Vec<Value>>>, NodeError> {
    let mut all = rauk_node::bulk::Keys::default();
    keys.iter().for_each(|key| all.push(key));
    let (mut found, mut visits, mut done) = (vec![None; keys.len()], vec![0; keys.len()], vec![false; keys.len()]);
    let columns = table.schema().columns.len();
    let mut visit = |number: usize, row: Option<RowView<'_>>| {
        visits[number] += 1;
        found[number] = row.map(|row| values(&row, columns));
        true
    };
    txn.get_many(table, index, &all, &mut done, &mut visit).await?;
    assert!(visits.iter().all(|visits| *visits == 1) && done.iter().all(|done| *done));
    Ok(found)
}

pub async fn get_for_update(
    txn: &mut Transaction,
    table: &TableHandle,
    id: i64,
) -> Result<Option<Vec<Value>>, NodeError> {
    use rauk_kernel::{LockMode, WaitPolicy};
    let columns = table.schema().columns.len();
    let lock = Some((LockMode::Exclusive, WaitPolicy::Wait));
    txn.get(table, &key_of(table, id), lock, |row| row.map(|r| values(&r, columns))).await
}

/// What a fresh transaction reads.
pub async fn read(db: &Database, table: &TableHandle, id: i64) -> Option<Vec<Value>> {
    let mut txn = db.begin(autocommit());
    txn.use_table(table).await.unwrap();
    let row = get(&mut txn, table, id).await;
    txn.wait_observed().await.unwrap();
    txn.commit().await.unwrap();
    row
}

pub async fn insert_all(db: &Database, table: &TableHandle, rows: &[Vec<Value>]) {
    let mut txn = begin_rr(db, table).await;
    for row in rows {
        assert_eq!(txn.insert(table, row).await.unwrap(), InsertOutcome::Inserted);
    }
    txn.commit().await.unwrap();
}

pub fn all(index: Option<u16>) -> ScanSpec {
    ScanSpec { index: index.map(IndexId), ordered: index.is_some(), ..ScanSpec::default() }
}

pub async fn try_scan(
    txn: &mut Transaction,
    table: &TableHandle,
    spec: ScanSpec,
) -> Result<Vec<Vec<Value>>, NodeError> {
    let mut cursor = ScanCursor::new(table, spec);
    let mut batch = ScanBatch::default();
    let mut rows = Vec::new();
    loop {
        cursor.next_batch(txn, 7, &mut |_| true, &mut batch).await?;
        if batch.is_empty() {
            return Ok(rows);
        }
        let columns = table.schema().columns.len();
        rows.extend((0..batch.len()).map(|i| values(&batch.row(table, i), columns)));
    }
}

pub async fn scan(txn: &mut Transaction, table: &TableHandle, spec: ScanSpec) -> Vec<Vec<Value>> {
    try_scan(txn, table, spec).await.unwrap()
}

/// All rows as a fresh transaction sees them, sorted by their first column.
pub async fn contents(db: &Database, table: &TableHandle) -> Vec<Vec<Value>> {
    let mut txn = begin_rr(db, table).await;
    let mut rows = scan(&mut txn, table, all(None)).await;
    rows.sort_by_key(|r| match r[0] {
        Value::Int(v) => v,
        _ => i64::MIN,
    });
    txn.commit().await.unwrap();
    rows
}

pub fn first_column(rows: &[Vec<Value>]) -> Vec<i64> {
    let number = |r: &Vec<Value>| match r[0] {
        Value::Int(v) => v,
        ref other => panic!("{other:?}"),
    };
    rows.iter().map(number).collect()
}

/// A view `SELECT <query>` in database `d`.
#[allow(dead_code)]
pub fn view(name: &str, query: &str) -> rauk_types::ViewSchema {
    rauk_types::ViewSchema {
        database: "d".into(),
        name: name.into(),
        query: query.into(),
        columns: vec!["1".into()],
        algorithm: rauk_types::ViewAlgorithm::Undefined,
        definer: ("root".into(), "localhost".into()),
        security: rauk_types::ViewSecurity::Definer,
        check: rauk_types::ViewCheck::None,
        charset: "utf8mb4".into(),
        collation: rauk_types::Collation::DEFAULT,
    }
}

/// `accounts` whose second column is a text.
pub fn in_texts(t: &TableHandle) -> TableSchema {
    let mut new = (**t.schema()).clone();
    new.columns[1].ty = DataType::varchar(30, Default::default());
    new
}

/// A row of `accounts` for [`in_texts`].
pub fn as_text(row: &[Value]) -> Result<Vec<Value>, MysqlError> {
    let Value::Int(v) = row[1] else { panic!("{row:?}") };
    Ok(vec![row[0].clone(), text(&format!("v{v}")), row[2].clone()])
}

/// Conversions by [`as_text`] that wait at their first row until they are let go.
#[derive(Clone, Default)]
pub struct HeldConversions {
    begun: Arc<AtomicUsize>,
    let_go: Arc<AtomicBool>,
}

impl HeldConversions {
    /// For another thread of the statement.
    pub fn further(&self) -> OwnConvert {
        let Self { begun, let_go } = self.clone();
        let mut is_first = true;
        Box::new(move |row| {
            if std::mem::take(&mut is_first) {
                begun.fetch_add(1, Ordering::SeqCst);
                while !let_go.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            }
            as_text(row)
        })
    }

    /// Runs a statement until so many threads wait.
    pub fn run_until_begun<T>(&self, mut statement: Pin<&mut impl Future<Output = T>>, threads: usize) {
        let mut cx = Context::from_waker(Waker::noop());
        while self.begun.load(Ordering::SeqCst) < threads {
            assert!(statement.as_mut().poll(&mut cx).is_pending());
            std::thread::yield_now();
        }
    }

    pub fn let_go(&self) {
        self.let_go.store(true, Ordering::SeqCst);
    }
}
