//! Rauk as a target, through `rauk-client`: over the network or in this process.
//!
//! A client thread is one future that keeps as many groups in flight as wanted, each in a slot that is used again, and goes on with those that were woken: in this process a group may
//! hold a lock that another of the same thread waits for, so each must be gone on with. The thread drives it by [`blocking::wait`], so that it receives for itself. Records are read without a copy: [`Item`] looks at the bytes while they are in the answer's buffer.

use super::measure::Tally;
use super::payload;
use super::workload::{Op, Source, Step};
use rauk_client::record::FieldInfo;
use rauk_client::transaction::TransactionOptions;
use rauk_client::{
    Batch, BatchResult, Client, Done, Error, ErrorKind, OpId, Record, Records, Scan, ValueRef, blocking,
};
use rauk_types::{DataType, TypeKind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// A row of the benchmark's table. Written by hand and not derived: the length of its column is chosen when the program runs, and what is read is checked, not kept.
pub struct Item {
    key: u64,
    /// Only of items that are written.
    payload: Vec<u8>,
    /// Of items that were read: it is as long as wanted and belongs to the key.
    right: bool,
}

static FIELDS: OnceLock<(usize, Vec<FieldInfo>)> = OnceLock::new();

/// Sets the length of the records, once a process.
fn set_size(size: usize) {
    let payload = DataType { length: size as u32, ..DataType::new(TypeKind::VarBinary) };
    let field = |column, rust, ty, key| FieldInfo {
        column,
        rust,
        ty,
        nullable: false,
        key,
        unique: false,
        index: false,
        auto_increment: false,
    };
    let fields = vec![field("id", "u64", DataType::BIGINT_UNSIGNED, true), field("payload", "Vec<u8>", payload, false)];
    let set = FIELDS.get_or_init(|| (size, fields));
    assert_eq!(set.0, size, "one run has one size of records");
}

impl Record for Item {
    const DATABASE: &'static str = "flex";
    const TABLE: &'static str = "items";

    fn fields() -> &'static [FieldInfo] {
        &FIELDS.get().expect("the size is set before a table is opened").1
    }

    fn values<'a>(&'a self, into: &mut Vec<ValueRef<'a>>) {
        into.extend([ValueRef::UInt(self.key), ValueRef::Bytes(&self.payload)]);
    }

    #[inline]
    fn from_values<'a>(value: &mut dyn FnMut(usize) -> ValueRef<'a>) -> Result<Item, usize> {
        let ValueRef::UInt(key) = value(0) else { return Err(0) };
        let ValueRef::Bytes(bytes) = value(1) else { return Err(1) };
        let size = FIELDS.get().map_or(0, |f| f.0);
        Ok(Item { key, payload: Vec::new(), right: bytes.len() == size && payload::belongs_to(bytes, key) })
    }

    fn accepts(field: usize, ty: &DataType, nullable: bool) -> bool {
        !nullable && if field == 0 { *ty == DataType::BIGINT_UNSIGNED } else { ty.kind == TypeKind::VarBinary }
    }
}

/// An open table.
#[derive(Clone)]
pub struct Native {
    client: Client,
    records: Records<Item>,
}

/// What a client thread does.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub parallel: usize,
    pub operations: usize,
    pub size: usize,
    pub transactional: bool,
}

impl Native {
    /// Makes the table anew.
    pub fn create(client: Client, size: usize) -> Result<Native, String> {
        set_size(size);
        let made = async {
            match client.drop_table(Item::DATABASE, Item::TABLE).await {
                Err(error) if error.kind != ErrorKind::UnknownTable => Err(error),
                _ => client.open_or_create::<Item>().await,
            }
        };
        let records = blocking::wait(made).map_err(|e| format!("cannot make the table: {e}"))?;
        Ok(Native { client, records })
    }

    /// The same table through another client.
    pub fn open(client: Client, size: usize) -> Result<Native, String> {
        set_size(size);
        let records = blocking::wait(client.open::<Item>()).map_err(|e| format!("cannot open the table: {e}"))?;
        Ok(Native { client, records })
    }

    /// Works until the tally says that it is over or the source is empty.
    pub fn run(&self, shape: Shape, source: &mut Source, tally: &mut Tally<'_>) -> Result<(), String> {
        let item = Item { key: 0, payload: payload::blank(shape.size), right: true };
        let mut worker = Worker { native: self, shape, source, tally, item, version: 0 };
        blocking::wait(drive(&mut worker, |request| call(&self.client, &self.records, request)))
    }
}

enum Request {
    Batch(Batch),
    Transaction(Batch, TransactionOptions),
    Scan(Scan),
}

#[expect(
    clippy::large_enum_variant,
    reason = "the large one is nearly every answer: a box would cost it an allocation"
)]
enum Answer {
    Batch(BatchResult),
    Items(Vec<Item>),
}

async fn call(client: &Client, records: &Records<Item>, request: Request) -> Result<Answer, Error> {
    match request {
        Request::Batch(batch) => client.execute(batch).await.map(Answer::Batch),
        Request::Transaction(batch, options) => {
            client.begin_with(options).execute_and_commit(batch).await.map(Answer::Batch)
        }
        Request::Scan(scan) => scan.collect_records(records).await.map(Answer::Items),
    }
}

struct Worker<'w, 's> {
    native: &'w Native,
    shape: Shape,
    source: &'w mut Source,
    tally: &'w mut Tally<'s>,
    item: Item,
    version: u16,
}

impl Worker<'_, '_> {
    /// The next group as a request; `None`: nothing is left.
    fn begin(&mut self, steps: &mut Vec<Step>) -> Result<Option<Request>, String> {
        if self.tally.is_over() || !self.source.group(self.shape.operations, steps) {
            return Ok(None);
        }
        let Native { client, records } = self.native;
        if steps[0].op == Op::Scan {
            let scan = records.table().scan_index("PRIMARY").map_err(|e| e.to_string())?;
            return Ok(Some(Request::Scan(scan.range(steps[0].key..).limit(steps.len() as u64))));
        }
        let reads_only = steps.iter().all(|s| s.op == Op::Read);
        if self.shape.transactional && !reads_only {
            // All transactions lock in the same order.
            steps.sort_by_key(|step| step.key);
        }
        let mut batch = client.batch();
        for step in &*steps {
            match step.op {
                Op::Read | Op::Scan => batch.get(records.table(), step.key),
                Op::Delete => batch.delete(records.table(), step.key),
                Op::Insert | Op::Update | Op::Write => {
                    self.version = self.version.wrapping_add(1);
                    self.item.key = step.key;
                    payload::stamp(&mut self.item.payload, step.key, self.version);
                    match step.op {
                        Op::Insert => batch.insert_record(records, &self.item),
                        Op::Update => batch.update_record(records, &self.item),
                        _ => batch.write_record(records, &self.item),
                    }
                }
            };
        }
        Ok(Some(if self.shape.transactional {
            let options = TransactionOptions { read_only: reads_only, ..TransactionOptions::default() };
            Request::Transaction(batch, options)
        } else {
            Request::Batch(batch)
        }))
    }

    /// Checks a group's answer and counts it. `Err`: there is no going on.
    fn end(&mut self, steps: &[Step], took: Duration, answer: Result<Answer, Error>) -> Result<(), String> {
        let right = match answer {
            Ok(Answer::Batch(result)) => self.check(steps, &result),
            Ok(Answer::Items(items)) => {
                let right = items.len() == steps.len()
                    && items.iter().zip(steps).all(|(item, step)| item.right && item.key == step.key);
                if !right {
                    let first = steps[0].key;
                    self.tally
                        .on_error(|| format!("the scan from key {first} gave {} rows, not all right", items.len()));
                }
                right
            }
            Err(error) if matches!(error.kind, ErrorKind::Deadlock | ErrorKind::LockTimeout | ErrorKind::Conflict) => {
                self.tally.on_aborted();
                false
            }
            Err(error) => return Err(error.to_string()),
        };
        if right {
            self.source.on_done(steps);
            self.tally.on_done(steps, self.shape.size, took);
        }
        Ok(())
    }

    fn check(&mut self, steps: &[Step], result: &BatchResult) -> bool {
        if result.len() != steps.len() {
            self.tally.on_error(|| format!("{} outcomes for {} operations", result.len(), steps.len()));
            return false;
        }
        let all = result.succeeded() == steps.len();
        let mut right = true;
        for (i, step) in steps.iter().enumerate() {
            let op = OpId(i as u32);
            let wrong = if step.op == Op::Read {
                match result.record(&self.native.records, op) {
                    Ok(Some(Item { key, right: true, .. })) if key == step.key => continue,
                    Ok(Some(_)) => "the row is not what was written".to_string(),
                    Ok(None) => "there is no such row".to_string(),
                    Err(error) => error.to_string(),
                }
            } else if all {
                continue;
            } else {
                match result.outcome(op) {
                    Ok(Done::Done(_)) => continue,
                    Ok(done) => format!("{done:?}"),
                    Err(error) => error.to_string(),
                }
            };
            right = false;
            self.tally.on_error(|| format!("{} of key {}: {wrong}", step.op.name(), step.key));
        }
        right
    }
}

/// A group in flight, or room for one.
struct Slot<F> {
    future: Pin<Box<Option<F>>>,
    steps: Vec<Step>,
    started: Instant,
    turn: Arc<Turn>,
    waker: Waker,
}

/// Whether a slot is to be gone on with, and whom to tell.
struct Turn {
    woken: AtomicBool,
    thread: Arc<Mutex<Waker>>,
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release: whoever sees the mark sees what it was woken for.
        self.woken.store(true, Ordering::Release);
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
    }
}

/// Keeps the slots full until there is nothing left.
async fn drive<F>(worker: &mut Worker<'_, '_>, call: impl Fn(Request) -> F) -> Result<(), String>
where
    F: Future<Output = Result<Answer, Error>>,
{
    let thread = Arc::new(Mutex::new(Waker::noop().clone()));
    let slot = || {
        let turn = Arc::new(Turn { woken: AtomicBool::new(false), thread: thread.clone() });
        let waker = Waker::from(turn.clone());
        Slot { future: Box::pin(None), steps: Vec::new(), started: Instant::now(), turn, waker }
    };
    let mut slots: Vec<Slot<F>> = (0..worker.shape.parallel).map(|_| slot()).collect();
    let mut over = false;
    std::future::poll_fn(move |context| {
        {
            let mut thread = thread.lock().unwrap_or_else(PoisonError::into_inner);
            if !thread.will_wake(context.waker()) {
                thread.clone_from(context.waker());
            }
        }
        let mut busy = false;
        for slot in &mut slots {
            loop {
                if slot.future.is_none() {
                    if over {
                        break;
                    }
                    slot.started = Instant::now();
                    match worker.begin(&mut slot.steps) {
                        Ok(Some(request)) => slot.future.as_mut().set(Some(call(request))),
                        Ok(None) => {
                            over = true;
                            break;
                        }
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                } else if !slot.turn.woken.swap(false, Ordering::Acquire) {
                    busy = true;
                    break;
                }
                // The first time this sends it. In this process the answer is often there at once.
                let future = slot.future.as_mut().as_pin_mut().expect("it was looked at above");
                let Poll::Ready(answer) = future.poll(&mut Context::from_waker(&slot.waker)) else { continue };
                slot.future.as_mut().set(None);
                if let Err(error) = worker.end(&slot.steps, slot.started.elapsed(), answer) {
                    return Poll::Ready(Err(error));
                }
            }
        }
        if busy { Poll::Pending } else { Poll::Ready(Ok(())) }
    })
    .await
}
