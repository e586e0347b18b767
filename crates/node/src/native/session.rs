//! One client: its open transactions and scans, the requests that run, and how they are ended.

use super::batch;
use super::failure::{self, malformed};
use super::fast;
use super::rights::Rights;
use super::scan;
use super::shape::Tables;
use super::slot::{Held, Slot, Turn};
use super::{Reply, Request, Service, definition};
use crate::NodeError;
use crate::transaction::{Interrupt, Isolation, TxnOptions};
use parking_lot::Mutex;
use rauk_types::Timestamp;
use rauk_types::error::codes;
use rauk_wire::{Failure, Kind};
use rustc_hash::FxHashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

/// One client. Requests of different transactions run beside each other; those of one transaction in their order. Dropping it rolls everything back.
pub struct Session {
    pub(super) service: Arc<Service>,
    pub(super) tables: Tables,
    /// The same as in `state`, for those who only look.
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    transactions: FxHashMap<u64, Arc<Slot>>,
    /// Where each open scan finds its transaction.
    scans: FxHashMap<u64, Arc<Slot>>,
    last_scan: u64,
    /// Requests at work, and who can interrupt them.
    running: FxHashMap<u64, Arc<Interrupt>>,
}

/// A request at work.
pub(super) struct Call<'r> {
    pub session: &'r Session,
    pub request: &'r Request,
    pub interrupt: Arc<Interrupt>,
    /// Its deadline has passed: that is why it is interrupted.
    expired: &'r AtomicBool,
    /// The newest commit time that the answer tells of.
    pub observed: Timestamp,
}

/// What a request is answered with: the kind and the frame.
pub(super) type Answered = Result<(Kind, Vec<u8>), Failure>;

impl Session {
    pub(super) fn new(service: Arc<Service>, rights: Option<Arc<dyn Rights>>) -> Arc<Session> {
        Arc::new(Session {
            service,
            tables: Tables::new(rights),
            closed: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    /// Executes a request; the answer's payload is appended to `frame`. Every error becomes a reply. Dropping the future before its end interrupts it; a commit
    /// that has begun takes place all the same.
    pub async fn call(self: &Arc<Self>, request: Request, mut frame: Vec<u8>) -> Reply {
        let start = frame.len();
        let interrupt = Arc::new(Interrupt::default());
        let running = match self.enter(request.number, &interrupt) {
            Ok(running) => running,
            Err(failure) => return self.reply(Err(failure), Timestamp::ZERO, frame, start),
        };
        let expired = AtomicBool::new(false);
        let mut call = Call {
            session: self,
            request: &request,
            interrupt: interrupt.clone(),
            expired: &expired,
            observed: Timestamp::ZERO,
        };
        let result = {
            let mut work = pin!(call.run(&mut frame));
            let mut timer = None;
            poll_fn(|cx| {
                if let Poll::Ready(result) = work.as_mut().poll(cx) {
                    return Poll::Ready(result);
                }
                let Some(deadline) = request.deadline.filter(|_| !expired.load(Ordering::Relaxed)) else {
                    return Poll::Pending;
                };
                let timer = timer.get_or_insert_with(|| self.service.database.node.runtime.sleep(deadline));
                match timer.as_mut().poll(cx) {
                    Poll::Pending => Poll::Pending,
                    Poll::Ready(()) => {
                        expired.store(true, Ordering::Relaxed);
                        interrupt.kill();
                        work.as_mut().poll(cx)
                    }
                }
            })
            .await
        };
        // No answer shows what a crash could take back, errors included.
        let observed = call.observed;
        let result = match self.service.database.wait_durable(observed).await {
            Ok(()) => result,
            Err(error) => Err(failure::of_node(error)),
        };
        drop(running);
        self.reply(result, observed, frame, start)
    }

    /// The same without a wait, for what can be answered at once (plain reads and writes whose partitions are idle, and which need not wait for the disk); gives
    /// the buffer back when it must go through [`Session::call`]. Nothing has been done then.
    pub fn try_call(self: &Arc<Self>, request: &Request, frame: Vec<u8>) -> Result<Reply, Vec<u8>> {
        fast::try_call(self, request, frame)
    }

    /// Interrupts the request with this number, if it is at work.
    pub fn cancel(&self, request: u64) {
        let interrupt = self.state.lock().running.get(&request).cloned();
        if let Some(interrupt) = interrupt {
            interrupt.kill();
        }
    }

    /// Rolls everything back; further calls fail.
    pub fn close(&self) {
        let (slots, running) = {
            let mut state = self.state.lock();
            state.closed = true;
            self.closed.store(true, Ordering::SeqCst);
            let mut slots: Vec<Arc<Slot>> = state.transactions.drain().map(|(_, slot)| slot).collect();
            slots.extend(state.scans.drain().map(|(_, slot)| slot));
            (slots, std::mem::take(&mut state.running))
        };
        running.values().for_each(|interrupt| interrupt.kill());
        slots.iter().for_each(|slot| drop(slot.take()));
    }

    /// Transactions and scans that are open.
    pub fn open(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.transactions.len(), state.scans.len())
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(super) fn reply(&self, result: Answered, observed: Timestamp, mut frame: Vec<u8>, start: usize) -> Reply {
        let fatal = matches!(&result, Err(failure) if failure.code == codes::MALFORMED_PACKET);
        let (kind, frame) = match result {
            Ok(answered) => answered,
            Err(failure) => {
                self.service.counts.failures.fetch_add(1, Ordering::Relaxed);
                if frame.len() < start {
                    // The header's room went with the buffer that was given up.
                    frame = vec![0; start];
                }
                frame.truncate(start);
                failure.encode(&mut frame);
                (Kind::Failed, frame)
            }
        };
        Reply { kind, timestamp: observed.0, frame, fatal }
    }

    fn enter<'s>(&'s self, number: u64, interrupt: &Arc<Interrupt>) -> Result<Running<'s>, Failure> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(failure::of_node(NodeError::Interrupted));
        }
        state.running.insert(number, interrupt.clone());
        Ok(Running { session: self, number })
    }

    // Transactions

    /// Options of a transaction that this session begins.
    pub(super) fn options(
        &self,
        isolation: Isolation,
        read_only: bool,
        autocommit: bool,
        lock_wait_ms: u32,
        interrupt: &Arc<Interrupt>,
    ) -> TxnOptions {
        let lock_wait_timeout = match lock_wait_ms {
            0 => self.service.limits.lock_wait,
            ms => Duration::from_millis(ms.into()),
        };
        let interrupt = interrupt.clone();
        TxnOptions {
            isolation,
            read_only,
            autocommit,
            lock_wait_timeout,
            snapshot_isolation: true,
            foreign_key_checks: true,
            metadata_wait: None,
            locked: None,
            session: 0,
            interrupt,
        }
    }

    /// Opens a transaction under this number.
    pub(super) fn begin(&self, number: u64, options: TxnOptions) -> Result<Arc<Slot>, Failure> {
        let limit = self.service.limits.transactions;
        let read_only = options.read_only;
        let mut state = self.state.lock();
        if state.closed {
            return Err(failure::of_node(NodeError::Interrupted));
        }
        if state.transactions.contains_key(&number) {
            let text = format!("Transaction {number} is open already; it cannot begin again");
            return Err(failure::refused(codes::CANT_CHANGE_TX_CHARACTERISTICS, text));
        }
        if state.transactions.len() >= limit {
            return Err(Failure { ended: true, ..failure::too_many("transactions", limit) });
        }
        let slot = Slot::new(number, Held::new(self.service.database.begin(options), read_only));
        state.transactions.insert(number, slot.clone());
        drop(state);
        self.service.watch();
        Ok(slot)
    }

    pub(super) fn transaction(&self, number: u64) -> Option<Arc<Slot>> {
        self.state.lock().transactions.get(&number).cloned()
    }

    /// Rolls a transaction back whose first request was refused.
    pub(super) fn abandon(&self, number: u64) {
        let slot = self.state.lock().transactions.remove(&number);
        if let Some(slot) = slot {
            drop(slot.take());
        }
    }

    /// Forgets a transaction, and ends the scans that read beside it.
    fn end(&self, slot: &Arc<Slot>, scans: impl Iterator<Item = u64>) {
        let gone: Vec<Arc<Slot>> = {
            let mut state = self.state.lock();
            if state.transactions.get(&slot.transaction).is_some_and(|known| Arc::ptr_eq(known, slot)) {
                state.transactions.remove(&slot.transaction);
            }
            let mut gone: Vec<Arc<Slot>> = scans.filter_map(|scan| state.scans.remove(&scan)).collect();
            // Scans that were opened through it and whose list went with it.
            let through: Vec<u64> =
                state.scans.iter().filter(|(_, s)| Arc::ptr_eq(s, slot)).map(|(&scan, _)| scan).collect();
            gone.extend(through.iter().filter_map(|scan| state.scans.remove(scan)));
            gone
        };
        gone.iter().filter(|s| !Arc::ptr_eq(s, slot)).for_each(|s| drop(s.take()));
    }

    // Scans

    pub(super) fn new_scan(&self) -> Result<u64, Failure> {
        let limit = self.service.limits.scans;
        let mut state = self.state.lock();
        if state.scans.len() >= limit {
            return Err(failure::too_many("scans", limit));
        }
        state.last_scan += 1;
        Ok(state.last_scan)
    }

    pub(super) fn keep_scan(&self, scan: u64, slot: &Arc<Slot>) {
        {
            let mut state = self.state.lock();
            if !state.closed {
                state.scans.insert(scan, slot.clone());
            }
        }
        self.service.watch();
    }

    pub(super) fn scan(&self, scan: u64) -> Option<Arc<Slot>> {
        self.state.lock().scans.get(&scan).cloned()
    }

    pub(super) fn forget_scan(&self, scan: u64) -> Option<Arc<Slot>> {
        self.state.lock().scans.remove(&scan)
    }

    /// Rolls back what has been idle for too long.
    pub(super) fn sweep(&self, now: Duration, idle: Duration) {
        let is_old = |slot: &Arc<Slot>| slot.idle_since().is_some_and(|since| now.saturating_sub(since) >= idle);
        let old: Vec<Arc<Slot>> = {
            let state = self.state.lock();
            state.transactions.values().chain(state.scans.values()).filter(|s| is_old(s)).cloned().collect()
        };
        for slot in old {
            if let Some(held) = slot.take() {
                tracing::info!(
                    transaction = slot.transaction,
                    "a native transaction was idle for too long and is rolled back"
                );
                self.end(&slot, held.readers.iter().copied());
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

/// A request's entry in the list of those at work.
struct Running<'s> {
    session: &'s Session,
    number: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.session.state.lock().running.remove(&self.number);
    }
}

/// A transaction taken out of its slot, by whoever's turn it is. Dropping it ends the transaction unless it was [`Taken::keep`]ed.
pub(super) struct Taken<'r> {
    session: &'r Session,
    turn: Turn,
    held: Option<Held>,
}

impl Taken<'_> {
    pub fn held(&mut self) -> &mut Held {
        self.held.as_mut().expect("taken until it is kept or ended")
    }

    pub fn slot(&self) -> &Arc<Slot> {
        self.turn.slot()
    }

    /// Puts it back for the next request.
    pub fn keep(mut self) {
        let slot = self.turn.slot();
        slot.set_idle(self.session.service.database.node.runtime.now());
        if let Some(held) = self.held.take() {
            slot.put(held);
        }
        if self.session.is_closed() {
            drop(slot.take());
        }
    }

    /// The transaction itself, to be committed or rolled back; the slot is forgotten.
    pub fn end(mut self) -> Held {
        let held = self.held.take().expect("taken until it is kept or ended");
        self.session.end(self.turn.slot(), held.readers.iter().copied());
        held
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.session.end(self.turn.slot(), held.readers.iter().copied());
        }
    }
}

impl<'r> Call<'r> {
    async fn run(&mut self, frame: &mut Vec<u8>) -> Answered {
        let request = self.request;
        let counts = &self.session.service.counts;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        match request.kind {
            Kind::Batch => {
                count(&counts.batches);
                batch::run(self, frame).await
            }
            Kind::Scan => {
                count(&counts.scans);
                self.spend(false)?;
                scan::open(self, frame).await
            }
            Kind::ScanNext => {
                count(&counts.scan_pages);
                scan::next(self, frame).await
            }
            Kind::ScanClose => scan::close(self, frame).await,
            Kind::Rollback => self.rollback(frame).await,
            Kind::AskPlacement => self.placement(frame),
            Kind::OpenTable | Kind::CreateTable | Kind::DropTable | Kind::CreateDatabase => {
                count(&counts.definitions);
                self.spend(request.kind != Kind::OpenTable)?;
                definition::run(self, frame).await
            }
            Kind::Cancel => {
                let number = rauk_wire::scan::decode_number(&request.payload).map_err(malformed)?;
                self.session.cancel(number);
                Ok((Kind::Done, std::mem::take(frame)))
            }
            Kind::Ping => {
                frame.extend_from_slice(&request.payload);
                Ok((Kind::Pong, std::mem::take(frame)))
            }
            _ => Err(malformed(rauk_wire::WireError::Kind(request.kind as u16))),
        }
    }

    /// A request of an account counts. Error 1226.
    pub fn spend(&self, writes: bool) -> Result<(), Failure> {
        self.session.tables.account().map_or(Ok(()), |account| account.spend(writes))
    }

    /// Takes a transaction out of its slot when it is this request's turn. The place in the queue was taken before anything was awaited.
    pub async fn take(&self, turn: Turn) -> Result<Taken<'r>, Failure> {
        turn.come(&self.interrupt).await.map_err(|e| self.failure(e))?;
        let Some(mut held) = turn.slot().take() else { return Err(failure::not_open(turn.slot().transaction)) };
        held.txn.set_interrupt(self.interrupt.clone());
        Ok(Taken { session: self.session, turn, held: Some(held) })
    }

    /// An error as this request answers it.
    pub fn failure(&self, error: NodeError) -> Failure {
        match error {
            NodeError::Interrupted if self.expired.load(Ordering::Relaxed) => failure::timed_out(),
            error => failure::of_node(error),
        }
    }

    pub fn saw(&mut self, time: Timestamp) {
        self.observed = self.observed.max(time);
    }

    /// What it commits here is not below what the client has seen at other nodes: `Times::saw_elsewhere`.
    pub async fn follow_session(&self) -> Result<(), Failure> {
        let seen = Timestamp(self.request.timestamp);
        match self.session.service.database.node.cluster() {
            Some(cluster) => cluster.times.saw_elsewhere(cluster, seen).await.map_err(|e| self.failure(e)),
            None => Ok(()),
        }
    }

    /// Where partitions are led. A server that is no member of a cluster is not asked by clients of ours.
    fn placement(&self, frame: &mut Vec<u8>) -> Answered {
        rauk_wire::read::Reader::new(&self.request.payload, "placement").end().map_err(malformed)?;
        let cluster = self.session.service.database.node.cluster();
        let Some(placement) = cluster.and_then(|cluster| cluster.placement()) else {
            return Err(failure::refused(codes::NOT_SUPPORTED_YET, "this server is no member of a cluster"));
        };
        placement.encode(frame);
        Ok((Kind::Placement, std::mem::take(frame)))
    }

    /// Of a transaction that has ended already nothing is left to be rolled back: that is no error.
    async fn rollback(&mut self, frame: &mut Vec<u8>) -> Answered {
        if let Some(slot) = self.session.transaction(self.request.transaction) {
            let turn = slot.enter();
            if let Ok(taken) = self.take(turn).await {
                let held = taken.end();
                // What it has read may have shaped what the client does next.
                self.saw(held.txn.observed());
                held.txn.rollback();
            }
        }
        Ok((Kind::Done, std::mem::take(frame)))
    }
}
