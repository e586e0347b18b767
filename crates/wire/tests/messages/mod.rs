//! One message of each signal at least, with something in every field: what the golden bytes are made of, and what is damaged in tests of bad bytes.

use rauk_types::{
    Collation, Column, ColumnDefault, ColumnId, DataType, Date, DateTime, Decimal, ErrorClass, IndexId, IndexKind,
    IndexPart, IndexSchema, NodeId, TableId, TableSchema, Time, Value, ValueRef,
};
use rauk_wire::batch::{BatchOptions, Isolation};
use rauk_wire::definition::{self, CreateDatabase, CreateTable, Definition, DropTable, TableName};
use rauk_wire::hello::{Challenge, Hello, Proof, Refusal, Refused, Role, Welcome};
use rauk_wire::login::{Claim, Denied, Known, Login, Password, Salt, Salts};
use rauk_wire::placement::{PlacedNode, Placement};
use rauk_wire::scan::{self, PageBuilder, Scan};
use rauk_wire::{
    AnswerBuilder, BatchBuilder, CompareOp, Failure, Filter, Header, Kind, LockWish, OpKind, Shape, Wanted, frame,
};
use std::ops::Bound;

/// A payload, and the name of its golden file.
pub struct Message {
    pub name: &'static str,
    pub kind: Kind,
    pub payload: Vec<u8>,
}

impl Message {
    /// The whole frame, with something in every field of the header.
    pub fn frame(&self) -> Vec<u8> {
        let header = Header {
            format: rauk_wire::PROTOCOL,
            kind: self.kind,
            request: 0x0102_0304_0506_0708,
            cluster: *b"a cluster's name",
            view: 11,
            incarnation: 12,
            placement: 13,
            schema: 14,
            transaction: 15,
            timestamp: 0xFFFF_FFFF_FFFF_FFFE,
            deadline_us: 1_000_000,
        };
        let mut frame = frame::begin();
        frame.extend_from_slice(&self.payload);
        frame::finish(&mut frame, &header);
        frame
    }
}

fn bytes(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

pub fn all() -> Vec<Message> {
    let message = |name, kind, payload| Message { name, kind, payload };
    let failure = Failure {
        ended: true,
        ..Failure::new(
            1213,
            ErrorClass::Temporary,
            "Deadlock found when trying to get lock; try restarting transaction",
        )
    };
    let name = TableName { database: "shop".into(), table: "orders".into() };
    let mut messages = vec![
        message("hello", Kind::Hello, bytes(|out| hello().encode(out))),
        message("challenge", Kind::Challenge, bytes(|out| challenge().encode(out))),
        message("proof", Kind::Proof, bytes(|out| Proof { proof: Some([0xAB; 32]) }.encode(out))),
        message("proof_by_certificate", Kind::Proof, bytes(|out| Proof { proof: None }.encode(out))),
        message("welcome", Kind::Welcome, bytes(|out| welcome().encode(out))),
        message("refused", Kind::Refused, bytes(|out| refused().encode(out))),
        message("login", Kind::Login, bytes(|out| Login { user: "app".into(), key: [1; 32] }.encode(out))),
        message(
            "salts",
            Kind::Salts,
            bytes(|out| Salts { key: [2; 32], salts: vec![Salt::CachingSha2([b'.'; 20]), Salt::Native] }.encode(out)),
        ),
        message("claim", Kind::Claim, bytes(|out| Claim { proofs: vec![[3; 32], [4; 32]] }.encode(out))),
        message("known", Kind::Known, bytes(|out| Known { which: 1, proof: [5; 32] }.encode(out))),
        message("password", Kind::Password, bytes(|out| Password { sealed: b"sealed".to_vec() }.encode(out))),
        message(
            "denied",
            Kind::Denied,
            bytes(|out| Denied { code: 1045, message: "Access denied for user 'app'@'localhost'".into() }.encode(out)),
        ),
        message("ping", Kind::Ping, b"anything".to_vec()),
        message("pong", Kind::Pong, b"anything".to_vec()),
        message(
            "goodbye",
            Kind::Goodbye,
            bytes(|out| Failure::new(1053, ErrorClass::Temporary, "Server shutdown in progress").encode(out)),
        ),
        message("open_table", Kind::OpenTable, bytes(|out| definition::encode(&name, out))),
        message(
            "definition",
            Kind::Definition,
            bytes(|out| definition::encode(&Definition { schema: table(), partitions: 4 }, out)),
        ),
        message(
            "create_table",
            Kind::CreateTable,
            bytes(|out| definition::encode(&CreateTable { schema: table(), if_not_exists: true }, out)),
        ),
        message(
            "drop_table",
            Kind::DropTable,
            bytes(|out| definition::encode(&DropTable { name, if_exists: true }, out)),
        ),
        message(
            "create_database",
            Kind::CreateDatabase,
            bytes(|out| {
                definition::encode(
                    &CreateDatabase { name: "shop".into(), collation: Collation::DEFAULT, if_not_exists: false },
                    out,
                )
            }),
        ),
        message("done", Kind::Done, Vec::new()),
        message("rollback", Kind::Rollback, Vec::new()),
        message("ask_placement", Kind::AskPlacement, Vec::new()),
        message("placement", Kind::Placement, bytes(|out| placement().encode(out))),
        message("batch", Kind::Batch, batch()),
        message("batch_of_reads", Kind::Batch, reads()),
        message("batch_answer", Kind::BatchAnswer, answer(&failure)),
        message("scan", Kind::Scan, bytes(|out| full_scan().encode(out))),
        message("scan_of_everything", Kind::Scan, bytes(|out| plain_scan().encode(out))),
        message("scan_page", Kind::ScanPage, page()),
        message("member", Kind::Member, b"a signal of a node".to_vec()),
        message("raft", Kind::Raft, b"a request of the manage group".to_vec()),
        message("raft_answer", Kind::RaftAnswer, b"its answer".to_vec()),
        message("failed", Kind::Failed, bytes(|out| failure.encode(out))),
    ];
    for (name, kind) in [("scan_next", Kind::ScanNext), ("scan_close", Kind::ScanClose), ("cancel", Kind::Cancel)] {
        messages.push(message(name, kind, bytes(|out| scan::encode_number(0x1122_3344_5566_7788, out))));
    }
    messages
}

pub fn placement() -> Placement {
    let node = |node, address: &str| PlacedNode { node: NodeId(node), address: address.into() };
    Placement {
        version: 0x0102_0304,
        here: NodeId(3),
        spread: 8,
        groups: 4,
        nodes: vec![node(1, "db1.example:4407"), node(3, "[fe80::3]:4408")],
        leaders: vec![NodeId(1), NodeId(3), NodeId(2), NodeId(0), NodeId(1)],
    }
}

pub fn hello() -> Hello {
    Hello {
        oldest: 0,
        newest: 1,
        role: Role::Client,
        cluster: *b"a cluster's name",
        nonce: [7; 32],
        has_secret: true,
        name: "shop/1.0 rauk-client/0.1.0".into(),
    }
}

pub fn challenge() -> Challenge {
    Challenge { version: 1, cluster: *b"a cluster's name", incarnation: 9, nonce: [8; 32], wants_secret: true }
}

pub fn welcome() -> Welcome {
    Welcome { proof: Some([0xCD; 32]), connection: 77, max_payload: 64 << 20, max_requests: 4096 }
}

pub fn refused() -> Refused {
    Refused { reason: Refusal::Version, message: "this server speaks versions 0 to 1".into(), oldest: 0, newest: 1 }
}

/// A table with a column of many types, a unique index and one with a prefix.
pub fn table() -> TableSchema {
    let decimal = DataType::decimal(12, 2);
    let text = DataType::varchar(40, Collation::Utf8mb4GeneralCi);
    let columns = vec![
        Column::new(ColumnId(0), "id", DataType::BIGINT_UNSIGNED, false),
        Column::new(ColumnId(1), "customer", text, true),
        Column {
            default: ColumnDefault::Value(Value::Decimal(Decimal::new(0, 2))),
            comment: "with tax".into(),
            ..Column::new(ColumnId(2), "price", decimal, false)
        },
        Column {
            on_update_now: true,
            default: ColumnDefault::Now,
            ..Column::new(ColumnId(3), "changed", DataType::new(rauk_types::TypeKind::Timestamp), false)
        },
    ];
    let part = |column, prefix, descending| IndexPart { column, prefix, descending };
    let by_customer = IndexSchema {
        id: IndexId(1),
        name: "by_customer".into(),
        kind: IndexKind::Unique,
        parts: vec![part(1, Some(10), false), part(2, None, true)],
        hash_only: false,
        entry_table: Some(TableId(8)),
        comment: String::new(),
        invisible: false,
        global: false,
    };
    let mut table =
        TableSchema::new(TableId(7), "shop", "orders", columns, vec![IndexSchema::primary(&[0]), by_customer]);
    table.auto_increment = Some(0);
    table
}

/// A value of each type, small and large.
pub fn values() -> Vec<Value> {
    let wide: Decimal = "-12345678901234567890123456789012345678901234567890.123456789012345".parse().unwrap();
    vec![
        Value::Null,
        Value::Int(0),
        Value::Int(-1),
        Value::Int(127),
        Value::Int(128),
        Value::Int(i64::MIN),
        Value::UInt(0),
        Value::UInt(255),
        Value::UInt(256),
        Value::UInt(u64::MAX),
        Value::Double(-0.5),
        Value::Decimal(Decimal::new(0, 0)),
        Value::Decimal(Decimal::new(-12_345, 2)),
        Value::Decimal(Decimal::new(i128::MIN, 30)),
        Value::Decimal(wide),
        Value::Date(Date::from_parts(2024, 2, 29)),
        Value::Date(Date::ZERO),
        Value::Time(Time::MIN),
        Value::DateTime(DateTime::MAX),
        Value::Timestamp(0),
        Value::Timestamp(1_700_000_000_123_456),
        Value::from(""),
        Value::from("fourteen bytes"),
        Value::from("fifteen bytes é"),
        Value::Bytes(vec![0, 255]),
        Value::Bytes(vec![3; 200]),
    ]
}

pub fn filter() -> Filter {
    let compare = |column, op, value| Filter::Compare { column, op, value };
    let each = values().into_iter().map(|value| compare(1, CompareOp::NotEqual, value)).collect();
    Filter::And(vec![
        compare(0, CompareOp::Equal, Value::Int(5)),
        Filter::Or(vec![
            compare(300, CompareOp::Less, Value::from("b")),
            compare(2, CompareOp::LessOrEqual, Value::Null),
            compare(2, CompareOp::Greater, Value::Double(1.5)),
            compare(2, CompareOp::GreaterOrEqual, Value::UInt(9)),
        ]),
        Filter::Not(Box::new(Filter::IsNull { column: 1 })),
        Filter::StartsWith { column: 1, prefix: b"Mrs. ".to_vec() },
        Filter::Or(each),
        Filter::And(Vec::new()),
    ])
}

pub fn shape(kind: OpKind, columns: &[u16]) -> Shape {
    Shape {
        table: TableId(7),
        version: 3,
        kind,
        index: IndexId::PRIMARY,
        lock: LockWish::None,
        conditional: false,
        columns: columns.to_vec(),
        wanted: Wanted::Nothing,
    }
}

fn batch() -> Vec<u8> {
    let options = BatchOptions {
        begin: true,
        commit: true,
        stop_at_failure: true,
        isolation: Isolation::Serializable,
        read_only: false,
        lock_wait_ms: 1500,
    };
    let all: Vec<u16> = (0..values().len() as u16).collect();
    let shapes = [
        Shape {
            index: IndexId(1),
            lock: LockWish::ExclusiveSkipLocked,
            wanted: Wanted::Row,
            ..shape(OpKind::Read, &[])
        },
        Shape { wanted: Wanted::Columns(vec![3, 0, 300]), ..shape(OpKind::Insert, &all) },
        Shape { conditional: true, ..shape(OpKind::Update, &[1, 2]) },
        shape(OpKind::Write, &[0]),
        Shape { conditional: true, wanted: Wanted::Row, ..shape(OpKind::Delete, &[]) },
        shape(OpKind::Increment, &[2]),
    ];
    let (values, filter) = (values(), filter());
    let mut builder = BatchBuilder::new(Vec::new(), &options, &shapes);
    builder.key(0, b"\0\0\0\0\0\0\0\x05", None);
    builder.values(1, values.iter().map(Value::as_ref));
    builder.savepoint();
    builder.key_and_values(2, b"key", [ValueRef::Str("new"), ValueRef::Null], Some(&filter));
    builder.values(3, [ValueRef::UInt(1)]);
    builder.rollback_to(0x0A0B_0C0D);
    builder.key(4, &[0xEE; 150], Some(&filter));
    builder.key_and_values(5, b"", [ValueRef::Int(-1)], None);
    builder.finish()
}

fn reads() -> Vec<u8> {
    let shapes = [Shape { wanted: Wanted::Row, ..shape(OpKind::Read, &[]) }];
    let mut builder = BatchBuilder::new(Vec::new(), &BatchOptions::default(), &shapes);
    for key in 0..3u64 {
        builder.key(0, &key.to_be_bytes(), None);
    }
    builder.finish()
}

fn answer(failure: &Failure) -> Vec<u8> {
    let values = values();
    let mut builder = AnswerBuilder::new(Vec::new());
    builder.row(4, 2, b"the bytes of a row");
    builder.columns(0, values.iter().map(Value::as_ref));
    builder.done(1, None);
    builder.done(2, Some(u64::MAX));
    builder.missing(3);
    builder.duplicate(5, IndexId(9));
    builder.condition_false(6);
    builder.savepoint(7, 70);
    builder.failed(8, failure);
    builder.not_executed(0xFFFE);
    builder.finish(true, true)
}

pub fn plain_scan() -> Scan {
    Scan {
        table: TableId(7),
        version: 3,
        index: None,
        low: Bound::Unbounded,
        high: Bound::Unbounded,
        reverse: false,
        ordered: false,
        lock: LockWish::None,
        partition: None,
        limit: u64::MAX,
        page_rows: 1000,
        page_bytes: 1 << 20,
        filter: None,
        wanted: Wanted::Row,
        begin: false,
    }
}

pub fn full_scan() -> Scan {
    Scan {
        index: Some(IndexId(1)),
        low: Bound::Included(b"low".to_vec()),
        high: Bound::Excluded(vec![0xFF; 200]),
        reverse: true,
        ordered: true,
        lock: LockWish::Shared,
        partition: Some(2),
        limit: 10,
        filter: Some(filter()),
        wanted: Wanted::Columns(vec![0, 300]),
        begin: true,
        ..plain_scan()
    }
}

fn page() -> Vec<u8> {
    let values = values();
    let mut builder = PageBuilder::new(Vec::new());
    builder.row(1, b"a row");
    builder.columns(values.iter().map(Value::as_ref));
    builder.row(0, b"");
    builder.finish(0x0908_0706_0504_0302)
}
