//! A client of the service in this process, as small as a test can do with.

use crate::support::*;
use rauk_node::native::{Limits, Reply, Request, Service, Session};
use rauk_node::*;
use rauk_types::{IndexId, RowView, Value, ValueRef};
use rauk_wire::batch::Isolation as WireIsolation;
use rauk_wire::frame::HEADER;
use rauk_wire::scan::{PageReader, PageRow, Scan, encode_number};
use rauk_wire::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub const GO_ON: BatchOptions = BatchOptions {
    begin: false,
    commit: false,
    stop_at_failure: false,
    isolation: WireIsolation::RepeatableRead,
    read_only: false,
    lock_wait_ms: 0,
};
pub const BEGIN: BatchOptions = BatchOptions { begin: true, ..GO_ON };
pub const COMMIT: BatchOptions = BatchOptions { commit: true, ..GO_ON };

#[derive(Clone, Debug, PartialEq)]
pub enum Out {
    Done(Option<u64>),
    Row(Vec<Value>),
    Columns(Vec<Value>),
    Missing,
    Duplicate(u16),
    ConditionFalse,
    Savepoint(u32),
    NotExecuted,
    Failed(Failure),
}

impl Out {
    pub fn failed_with(&self, code: u16) -> bool {
        matches!(self, Out::Failed(failure) if failure.code == code)
    }
}

pub fn compare(column: u16, op: CompareOp, value: Value) -> Filter {
    Filter::Compare { column, op, value }
}

pub fn failure_of(reply: &Reply) -> Failure {
    assert_eq!(reply.kind, Kind::Failed);
    Failure::decode(&reply.frame[HEADER..]).unwrap()
}

#[derive(Clone)]
pub struct Client {
    service: Arc<Service>,
    session: Arc<Session>,
    table: Option<TableHandle>,
    number: Arc<AtomicU64>,
}

impl Client {
    pub fn new(db: &Database, table: &str) -> Client {
        Self::with(Service::new(db.clone(), Limits::default()), db, table)
    }

    pub fn with(service: Arc<Service>, db: &Database, table: &str) -> Client {
        let session = service.session();
        Client { service, session, table: Some(db.table("d", table).unwrap()), number: Arc::default() }
    }

    pub fn on(session: Arc<Session>, db: &Database, table: &str) -> Client {
        let service = Service::new(db.clone(), Limits::default());
        // Numbers of its own.
        let number = Arc::new(AtomicU64::new(1 << 40));
        Client { service, session, table: Some(db.table("d", table).unwrap()), number }
    }

    pub fn bare(db: &Database) -> Client {
        let service = Service::new(db.clone(), Limits::default());
        let session = service.session();
        Client { service, session, table: None, number: Arc::default() }
    }

    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    fn table(&self) -> &TableHandle {
        self.table.as_ref().unwrap()
    }

    fn request(&self, kind: Kind, transaction: u64, payload: Vec<u8>, deadline: Option<Duration>) -> Request {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        Request { kind, number, transaction, timestamp: 0, deadline, payload: payload.into() }
    }

    /// As the server does: at once where that goes.
    pub fn send(&self, kind: Kind, transaction: u64, payload: Vec<u8>, deadline: Option<Duration>) -> Reply {
        let request = self.request(kind, transaction, payload, deadline);
        match self.session.try_call(&request, vec![0; HEADER]) {
            Ok(reply) => reply,
            Err(frame) => {
                assert_eq!(frame, [0; HEADER], "the buffer comes back as it was");
                block_on(self.session.call(request, frame))
            }
        }
    }

    pub fn try_send(&self, payload: Vec<u8>) -> Option<Reply> {
        self.session.try_call(&self.request(Kind::Batch, 0, payload, None), vec![0; HEADER]).ok()
    }

    pub fn send_slowly(&self, payload: Vec<u8>) -> Reply {
        block_on(self.session.call(self.request(Kind::Batch, 0, payload, None), vec![0; HEADER]))
    }

    pub fn batch(&self) -> Ops {
        Ops { client: self.clone(), wanted: None, lock: LockWish::None, deadline: None, list: Vec::new() }
    }

    pub fn read(&self, id: i64) -> Option<Vec<Value>> {
        self.read_key(&[ValueRef::Int(id)])
    }

    pub fn read_key(&self, key: &[ValueRef<'_>]) -> Option<Vec<Value>> {
        let mut encoded = Vec::new();
        self.table().primary_key().encode_prefix(key, &mut encoded);
        let mut b = self.batch();
        b.read_by(0, &encoded);
        match b.run().remove(0) {
            Out::Row(row) => Some(row),
            Out::Missing => None,
            other => panic!("{other:?}"),
        }
    }

    pub fn rollback(&self, transaction: u64) {
        assert_eq!(self.send(Kind::Rollback, transaction, Vec::new(), None).kind, Kind::Done);
    }

    // Answers

    /// Outcomes by operation: each has one.
    pub fn outcomes(&self, reply: &Reply) -> Result<(Vec<Out>, Answer), Failure> {
        if reply.kind == Kind::Failed {
            return Err(failure_of(reply));
        }
        assert_eq!(reply.kind, Kind::BatchAnswer);
        let mut reader = AnswerReader::parse(&reply.frame[HEADER..]).unwrap();
        let answer = reader.answer;
        let mut all: Vec<Option<Out>> = vec![None; usize::from(answer.entries)];
        while let Some((operation, outcome)) = reader.next_entry().unwrap() {
            let out = match outcome {
                Outcome::Done { generated } => Out::Done(generated),
                Outcome::Row { layout, bytes } => Out::Row(self.visible(layout, bytes)),
                Outcome::Columns { count, bytes } => Out::Columns(columns(count, bytes)),
                Outcome::Missing => Out::Missing,
                Outcome::Duplicate { index } => Out::Duplicate(index.0),
                Outcome::ConditionFalse => Out::ConditionFalse,
                Outcome::Savepoint(number) => Out::Savepoint(number),
                Outcome::NotExecuted => Out::NotExecuted,
                Outcome::Failed(failure) => Out::Failed(failure),
            };
            assert!(all[usize::from(operation)].replace(out).is_none(), "{operation} is answered twice");
        }
        Ok((all.into_iter().map(Option::unwrap).collect(), answer))
    }

    fn visible(&self, layout: u16, bytes: &[u8]) -> Vec<Value> {
        let mut row = RowView::new(self.table().schema(), layout, bytes).to_values();
        row.truncate(self.table().schema().visible_columns().len());
        row
    }

    // Scans

    pub fn scan_of(&self, index: Option<u16>) -> Scan {
        Scan {
            table: self.table().schema().id,
            version: self.table().schema().version,
            index: index.map(IndexId),
            low: Bound::Unbounded,
            high: Bound::Unbounded,
            reverse: false,
            ordered: false,
            lock: LockWish::None,
            partition: None,
            limit: u64::MAX,
            page_rows: 0,
            page_bytes: 0,
            filter: None,
            wanted: Wanted::Row,
            begin: false,
        }
    }

    pub fn first_page(&self, transaction: u64, scan: &Scan) -> Result<(Vec<Vec<Value>>, u64), Failure> {
        let mut payload = Vec::new();
        scan.encode(&mut payload);
        self.page_of(&self.send(Kind::Scan, transaction, payload, None), &scan.wanted)
    }

    pub fn next_page(&self, transaction: u64, number: u64) -> Result<(Vec<Vec<Value>>, u64), Failure> {
        let mut payload = Vec::new();
        encode_number(number, &mut payload);
        self.page_of(&self.send(Kind::ScanNext, transaction, payload, None), &Wanted::Row)
    }

    pub fn close_scan(&self, transaction: u64, number: u64) -> Reply {
        let mut payload = Vec::new();
        encode_number(number, &mut payload);
        self.send(Kind::ScanClose, transaction, payload, None)
    }

    pub fn page_of(&self, reply: &Reply, _wanted: &Wanted) -> Result<(Vec<Vec<Value>>, u64), Failure> {
        if reply.kind == Kind::Failed {
            return Err(failure_of(reply));
        }
        assert_eq!(reply.kind, Kind::ScanPage);
        let mut reader = PageReader::parse(&reply.frame[HEADER..]).unwrap();
        let mut rows = Vec::new();
        while let Some(row) = reader.next_row().unwrap() {
            rows.push(match row {
                PageRow::Row { layout, bytes } => self.visible(layout, bytes),
                PageRow::Columns { count, bytes } => columns(count, bytes),
            });
        }
        Ok((rows, reader.scan))
    }

    /// All pages.
    pub fn scan(&self, transaction: u64, scan: &Scan) -> Result<Vec<Vec<Value>>, Failure> {
        let (mut rows, mut number) = self.first_page(transaction, scan)?;
        while number != 0 {
            let (page, next) = self.next_page(transaction, number)?;
            rows.extend(page);
            number = next;
        }
        Ok(rows)
    }

    pub fn scan_all(&self) -> Vec<Vec<Value>> {
        self.scan(0, &self.scan_of(None)).unwrap()
    }

    // Definitions

    pub fn define<T: Serialize, R: DeserializeOwned>(&self, kind: Kind, wanted: &T) -> Result<R, Failure> {
        let reply = self.defined(kind, wanted)?;
        assert_eq!(reply.kind, Kind::Definition);
        Ok(rauk_wire::definition::decode(&reply.frame[HEADER..]).unwrap())
    }

    pub fn define_nothing<T: Serialize>(&self, kind: Kind, wanted: &T) -> Result<(), Failure> {
        let reply = self.defined(kind, wanted)?;
        assert_eq!((reply.kind, reply.frame.len()), (Kind::Done, HEADER));
        Ok(())
    }

    fn defined<T: Serialize>(&self, kind: Kind, wanted: &T) -> Result<Reply, Failure> {
        let mut payload = Vec::new();
        rauk_wire::definition::encode(wanted, &mut payload);
        let reply = self.send(kind, 0, payload, None);
        if reply.kind == Kind::Failed { Err(failure_of(&reply)) } else { Ok(reply) }
    }
}

fn columns(count: u16, bytes: &[u8]) -> Vec<Value> {
    let mut values = Vec::new();
    Values::new(count.into(), bytes).read(&mut values).unwrap();
    values.into_iter().map(Value::from).collect()
}

/// What an operation brings beside its shape.
#[derive(Clone)]
pub struct Op {
    shape: Option<Shape>,
    key: Vec<u8>,
    values: Vec<Value>,
    condition: Option<Filter>,
    savepoint: u32,
}

/// A batch.
#[derive(Clone)]
pub struct Ops {
    client: Client,
    wanted: Option<Wanted>,
    lock: LockWish,
    deadline: Option<Duration>,
    pub list: Vec<Op>,
}

impl Ops {
    /// Of the operations that follow.
    pub fn wanted(&mut self, wanted: Wanted) {
        self.wanted = Some(wanted);
    }

    pub fn lock(&mut self, lock: LockWish) {
        self.lock = lock;
    }

    pub fn with_deadline(mut self, deadline: Duration) -> Ops {
        self.deadline = Some(deadline);
        self
    }

    fn push(
        &mut self,
        kind: OpKind,
        index: u16,
        key: &[u8],
        columns: &[u16],
        values: &[Value],
        condition: Option<Filter>,
    ) {
        let schema = self.client.table().schema();
        let default = if kind == OpKind::Read { Wanted::Row } else { Wanted::Nothing };
        let shape = Shape {
            table: schema.id,
            version: schema.version,
            kind,
            index: IndexId(index),
            lock: self.lock,
            conditional: condition.is_some(),
            columns: columns.to_vec(),
            wanted: self.wanted.clone().unwrap_or(default),
        };
        let (key, values) = (key.to_vec(), values.to_vec());
        self.list.push(Op { shape: Some(shape), key, values, condition, savepoint: 0 });
    }

    fn key(&self, id: i64) -> Vec<u8> {
        key_of(self.client.table(), id)
    }

    pub fn read(&mut self, id: i64) {
        self.push(OpKind::Read, 0, &self.key(id), &[], &[], None);
    }

    pub fn read_by(&mut self, index: u16, key: &[u8]) {
        self.push(OpKind::Read, index, key, &[], &[], None);
    }

    pub fn raw_read(&mut self, key: &[u8]) {
        self.push(OpKind::Read, 0, key, &[], &[], None);
    }

    pub fn insert(&mut self, columns: &[u16], values: &[Value]) {
        self.push(OpKind::Insert, 0, &[], columns, values, None);
    }

    pub fn write(&mut self, columns: &[u16], values: &[Value]) {
        self.push(OpKind::Write, 0, &[], columns, values, None);
    }

    pub fn update(&mut self, id: i64, columns: &[u16], values: &[Value]) {
        self.push(OpKind::Update, 0, &self.key(id), columns, values, None);
    }

    pub fn update_key(&mut self, key: &[ValueRef<'_>], columns: &[u16], values: &[Value]) {
        let mut encoded = Vec::new();
        self.client.table().primary_key().encode_prefix(key, &mut encoded);
        self.push(OpKind::Update, 0, &encoded, columns, values, None);
    }

    pub fn update_if(&mut self, id: i64, columns: &[u16], values: &[Value], condition: Filter) {
        self.push(OpKind::Update, 0, &self.key(id), columns, values, Some(condition));
    }

    pub fn increment(&mut self, id: i64, columns: &[u16], values: &[Value]) {
        self.push(OpKind::Increment, 0, &self.key(id), columns, values, None);
    }

    pub fn delete(&mut self, id: i64) {
        self.push(OpKind::Delete, 0, &self.key(id), &[], &[], None);
    }

    pub fn delete_if(&mut self, id: i64, condition: Filter) {
        self.push(OpKind::Delete, 0, &self.key(id), &[], &[], Some(condition));
    }

    pub fn savepoint(&mut self) {
        self.list.push(Op { shape: None, key: Vec::new(), values: Vec::new(), condition: None, savepoint: 0 });
    }

    pub fn rollback_to(&mut self, number: u32) {
        self.list.push(Op { shape: None, key: vec![1], values: Vec::new(), condition: None, savepoint: number });
    }

    pub fn payload(&self, options: BatchOptions) -> Vec<u8> {
        let mut shapes: Vec<Shape> = Vec::new();
        for op in &self.list {
            if let Some(shape) = &op.shape
                && !shapes.contains(shape)
            {
                shapes.push(shape.clone());
            }
        }
        let mut builder = BatchBuilder::new(Vec::new(), &options, &shapes);
        for op in &self.list {
            let values = op.values.iter().map(Value::as_ref);
            let Some(shape) = &op.shape else {
                match op.key.is_empty() {
                    true => builder.savepoint(),
                    false => builder.rollback_to(op.savepoint),
                };
                continue;
            };
            let number = shapes.iter().position(|s| s == shape).unwrap() as u16;
            match shape.kind {
                OpKind::Read | OpKind::Delete => builder.key(number, &op.key, op.condition.as_ref()),
                OpKind::Insert | OpKind::Write => builder.values(number, values),
                _ => builder.key_and_values(number, &op.key, values, op.condition.as_ref()),
            };
        }
        builder.finish()
    }

    /// Outside of transactions.
    pub fn run(&self) -> Vec<Out> {
        self.run_whole().unwrap()
    }

    pub fn run_whole(&self) -> Result<Vec<Out>, Failure> {
        self.within(0, GO_ON).map(|(out, _)| out)
    }

    pub fn within(&self, transaction: u64, options: BatchOptions) -> Result<(Vec<Out>, Answer), Failure> {
        let reply = self.client.send(Kind::Batch, transaction, self.payload(options), self.deadline);
        self.client.outcomes(&reply)
    }

    /// Begins, and leaves it to the test when to go on.
    pub fn start(&self, transaction: u64, options: BatchOptions) -> Task {
        let request = self.client.request(Kind::Batch, transaction, self.payload(options), self.deadline);
        let number = request.number;
        let (session, client) = (self.client.session.clone(), self.client.clone());
        let future = Box::pin(async move { session.call(request, vec![0; HEADER]).await });
        let mut task = Task { client, number, future, result: None };
        task.poll();
        task
    }
}

type TaskResult = Result<(Vec<Out>, Answer), Failure>;

pub struct Task {
    client: Client,
    number: u64,
    future: Pin<Box<dyn Future<Output = Reply> + Send>>,
    result: Option<TaskResult>,
}

impl Task {
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn poll(&mut self) -> Option<&TaskResult> {
        if self.result.is_none()
            && let Poll::Ready(reply) = self.future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.result = Some(self.client.outcomes(&reply));
        }
        self.result.as_ref()
    }

    pub fn wait(&mut self) -> TaskResult {
        if self.result.is_none() {
            let reply = block_on(self.future.as_mut());
            self.result = Some(self.client.outcomes(&reply));
        }
        self.result.clone().unwrap()
    }
}
