//! Scans: kept open in the session between pages, filtered in the partitions, projected on the way out.
//!
//! A scan reads through a transaction. Outside of transactions it has a reader of its own, on one snapshot. In a read-only transaction it gets a reader
//! beside the transaction, on the transaction's snapshot, so that scans of several partitions go on at the same time; such readers end with the transaction. In any
//! other it reads through the transaction itself, and sees what that has written. (At READ COMMITTED a page that follows another batch of the transaction sees a newer
//! state: the scan goes on behind the last key.)

use super::answer::size_of_columns;
use super::failure::{self, ends_transaction, malformed, refused};
use super::operation::{MAX_KEY, check_filter};
use super::session::{Answered, Call, Taken};
use super::shape::{check_wanted, lock_of, unknown_index};
use super::slot::{Held, Slot};
use crate::transaction::{Isolation, Transaction};
use crate::{FilterPushdown, NodeError, Page, ScanBatch, ScanCursor, ScanSpec, TableHandle};
use rauk_types::error::codes;
use rauk_wire::scan::{PageBuilder, Scan, decode_number};
use rauk_wire::{Failure, Filter, Kind, LockWish, MAX_PAYLOAD, Wanted};
use std::ops::Bound;
use std::sync::Arc;

/// Bounds of a page, whatever is asked for. A page ends with the row that reaches them, so it is at most one row longer.
const MAX_PAGE_ROWS: u32 = 1 << 20;
const MAX_PAGE_BYTES: u32 = 4 << 20;
const PAGE_BYTES: u32 = 64 << 10;

/// A scan between two pages.
pub struct OpenScan {
    cursor: ScanCursor,
    table: TableHandle,
    filter: Option<Filter>,
    wanted: Wanted,
    /// Rows that may still be answered.
    left: u64,
    page: Page,
}

pub async fn open(call: &mut Call<'_>, frame: &mut Vec<u8>) -> Answered {
    let scan = Scan::decode(&call.request.payload).map_err(malformed)?;
    let session = call.session;
    let number = call.request.transaction;
    let begun = scan.begin && number != 0 && session.transaction(number).is_none();
    // The order of arrival is settled before anything is awaited.
    let turn = match number {
        0 => None,
        number if begun => {
            let options = session.options(Isolation::RepeatableRead, true, false, 0, &call.interrupt);
            Some(session.begin(number, options)?.enter())
        }
        number => Some(session.transaction(number).ok_or_else(|| failure::not_open(number))?.enter()),
    };
    let result = async {
        let open = prepare(call, scan)?;
        match turn {
            None => alone(call, open, frame).await,
            Some(turn) => {
                let taken = call.take(turn).await?;
                within(call, taken, open, frame).await
            }
        }
    }
    .await;
    match result {
        Err(failure) if begun => {
            session.abandon(number);
            Err(Failure { ended: true, ..failure })
        }
        result => result,
    }
}

fn bound_is_long(bound: &Bound<Vec<u8>>) -> bool {
    matches!(bound, Bound::Included(key) | Bound::Excluded(key) if key.len() > MAX_KEY)
}

/// Checks a scan against its table.
fn prepare(call: &Call<'_>, scan: Scan) -> Result<OpenScan, Failure> {
    let database = &call.session.service.database;
    let table = call.session.tables.get(database, scan.table, scan.version)?;
    let schema = table.schema();
    if let Some(account) = call.session.tables.account() {
        account.check_scan(schema, scan.lock)?;
    }
    match scan.index {
        Some(index) if !schema.index(index).is_some_and(|i| i.is_ordered()) => {
            return Err(unknown_index(schema, index));
        }
        None if scan.low != Bound::Unbounded || scan.high != Bound::Unbounded || scan.ordered || scan.reverse => {
            let text = "Incorrect usage of bounds, order or direction and a scan without index";
            return Err(refused(codes::WRONG_USAGE, text));
        }
        _ => {}
    }
    if bound_is_long(&scan.low) || bound_is_long(&scan.high) {
        return Err(refused(codes::WRONG_ARGUMENTS, "Incorrect arguments to scan: a bound is longer than any key"));
    }
    if scan.partition.is_some_and(|partition| partition >= database.partition_count()) {
        let text = format!("Incorrect arguments to scan: there are {} partitions", database.partition_count());
        return Err(refused(codes::WRONG_ARGUMENTS, text));
    }
    if scan.lock != LockWish::None && call.request.transaction == 0 {
        let text = "Incorrect usage of row locks and a scan without transaction";
        return Err(refused(codes::WRONG_USAGE, text));
    }
    check_wanted(schema, &scan.wanted)?;
    if let Some(filter) = &scan.filter {
        check_filter(schema, filter)?;
    }
    let bytes = if scan.page_bytes == 0 { PAGE_BYTES } else { scan.page_bytes.min(MAX_PAGE_BYTES) };
    let rows = if scan.page_rows == 0 { MAX_PAGE_ROWS } else { scan.page_rows.min(MAX_PAGE_ROWS) };
    let hint = u64::from(rows).min(scan.limit);
    let spec = ScanSpec {
        index: scan.index,
        low: scan.low,
        high: scan.high,
        reverse: scan.reverse,
        ordered: scan.ordered,
        lock: lock_of(scan.lock),
        partition: scan.partition,
        limit_hint: (hint < 4096).then_some(hint),
        pushdown: scan.filter.as_ref().and_then(FilterPushdown::of),
        ..ScanSpec::default()
    };
    Ok(OpenScan {
        cursor: ScanCursor::new(&table, spec),
        table,
        filter: scan.filter,
        wanted: scan.wanted,
        left: scan.limit,
        page: Page { rows: rows as usize, bytes: bytes as usize },
    })
}

/// Outside of transactions.
async fn alone(call: &mut Call<'_>, open: OpenScan, frame: &mut Vec<u8>) -> Answered {
    let number = call.session.new_scan()?;
    let options = call.session.options(Isolation::RepeatableRead, true, false, 0, &call.interrupt);
    let mut txn = call.session.service.database.begin(options);
    txn.begin_statement();
    txn.use_table(&open.table).await.map_err(|e| call.failure(e))?;
    beside(call, number, open, txn, frame).await
}

/// The first page of a scan with a reader of its own, which is kept when more follows.
async fn beside(
    call: &mut Call<'_>,
    number: u64,
    mut open: OpenScan,
    mut txn: Transaction,
    frame: &mut Vec<u8>,
) -> Answered {
    let page = page(&mut open, &mut txn, frame).await;
    call.saw(txn.observed());
    let (builder, more) = page.map_err(|e| e.answer(call))?;
    if !more {
        return Ok((Kind::ScanPage, builder.finish(0)));
    }
    let mut held = Held::new(txn, true);
    held.scans.insert(number, open);
    let slot = Slot::new(0, held);
    slot.set_idle(call.session.service.database.node.runtime.now());
    call.session.keep_scan(number, &slot);
    Ok((Kind::ScanPage, builder.finish(number)))
}

/// In a transaction.
async fn within(call: &mut Call<'_>, mut taken: Taken<'_>, mut open: OpenScan, frame: &mut Vec<u8>) -> Answered {
    let number = match call.session.new_scan() {
        Ok(number) => number,
        Err(failure) => {
            taken.keep();
            return Err(failure);
        }
    };
    let held = taken.held();
    held.txn.begin_statement();
    if let Err(error) = held.txn.use_table(&open.table).await {
        taken.keep();
        return Err(call.failure(error));
    }
    let forks = held.read_only && held.txn.effective_lock(open.cursor.lock()).is_none();
    if forks {
        let mut txn = match held.txn.fork_reader().await {
            Ok(txn) => txn,
            Err(error) => {
                taken.keep();
                return Err(call.failure(error));
            }
        };
        held.readers.push(number);
        let parent = taken.slot().clone();
        taken.keep();
        txn.begin_step();
        let answered = beside(call, number, open, txn, frame).await;
        // The transaction may have ended meanwhile, and its readers with it.
        let ended = call.session.transaction(parent.transaction).is_none_or(|slot| !Arc::ptr_eq(&slot, &parent));
        if ended && let Some(slot) = call.session.forget_scan(number) {
            drop(slot.take());
        }
        return answered;
    }
    let page = page(&mut open, &mut held.txn, frame).await;
    call.saw(held.txn.observed());
    match page {
        Ok((builder, more)) => {
            if more {
                held.scans.insert(number, open);
                call.session.keep_scan(number, taken.slot());
            }
            taken.keep();
            Ok((Kind::ScanPage, builder.finish(if more { number } else { 0 })))
        }
        Err(error) => Err(failed_within(call, taken, error)),
    }
}

/// A scan's failure ends its transaction only when the error is of that kind; else its locks stay and it goes on.
fn failed_within(call: &Call<'_>, taken: Taken<'_>, error: PageError) -> Failure {
    let ended = matches!(&error, PageError::Node(error) if ends_transaction(error));
    if !ended {
        taken.keep();
    }
    error.answer(call)
}

pub async fn next(call: &mut Call<'_>, frame: &mut Vec<u8>) -> Answered {
    let number = decode_number(&call.request.payload).map_err(malformed)?;
    let slot = call.session.scan(number).ok_or_else(|| not_open(number))?;
    let turn = slot.enter();
    let mut taken = call.take(turn).await.map_err(|failure| match slot.transaction {
        0 if failure.code == codes::SP_DOES_NOT_EXIST => not_open(number),
        _ => failure,
    })?;
    let held = taken.held();
    let Some(mut open) = held.scans.remove(&number) else {
        taken.keep();
        return Err(not_open(number));
    };
    // What the transaction has written meanwhile is visible.
    held.txn.begin_step();
    let page = page(&mut open, &mut held.txn, frame).await;
    call.saw(held.txn.observed());
    match page {
        Ok((builder, true)) => {
            held.scans.insert(number, open);
            taken.keep();
            Ok((Kind::ScanPage, builder.finish(number)))
        }
        Ok((builder, false)) => {
            call.session.forget_scan(number);
            if slot.transaction != 0 {
                taken.keep();
            }
            Ok((Kind::ScanPage, builder.finish(0)))
        }
        Err(error) => {
            call.session.forget_scan(number);
            if slot.transaction == 0 {
                return Err(error.answer(call));
            }
            Err(failed_within(call, taken, error))
        }
    }
}

/// A scan that has ended already is closed.
pub async fn close(call: &mut Call<'_>, frame: &mut Vec<u8>) -> Answered {
    let number = decode_number(&call.request.payload).map_err(malformed)?;
    if let Some(slot) = call.session.forget_scan(number) {
        let turn = slot.enter();
        if let Ok(mut taken) = call.take(turn).await {
            taken.held().scans.remove(&number);
            if slot.transaction != 0 {
                taken.keep();
            }
        }
    }
    Ok((Kind::Done, std::mem::take(frame)))
}

fn not_open(scan: u64) -> Failure {
    let text = format!("scan {scan} is not open: it has ended, or its transaction has, or the server was restarted");
    refused(codes::STMT_HAS_NO_OPEN_CURSOR, text)
}

/// Why there is no page.
enum PageError {
    Node(NodeError),
    /// A row alone is longer than a frame.
    TooLarge,
}

impl PageError {
    fn answer(self, call: &Call<'_>) -> Failure {
        match self {
            PageError::Node(error) => call.failure(error),
            PageError::TooLarge => failure::too_large(),
        }
    }
}

/// The next page, and whether more may follow.
async fn page(
    open: &mut OpenScan,
    txn: &mut Transaction,
    frame: &mut Vec<u8>,
) -> Result<(PageBuilder, bool), PageError> {
    let limit = MAX_PAYLOAD - 1024;
    let rows = open.page.rows.min(usize::try_from(open.left).unwrap_or(usize::MAX));
    let mut batch = ScanBatch::default();
    let mut full = false;
    if rows > 0 {
        let page = Page { rows, ..open.page };
        let filter = open.filter.as_ref();
        let mut passes = |row: &rauk_types::RowView<'_>| filter.is_none_or(|filter| filter.passes(row));
        open.cursor.next_page(txn, page, &mut passes, &mut batch).await.map_err(PageError::Node)?;
        full = page.is_full(&batch);
    }
    open.left -= batch.len() as u64;
    let mut builder = PageBuilder::new(std::mem::take(frame));
    for i in 0..batch.len() {
        let (layout, bytes) = batch.raw(i);
        let columns = match &open.wanted {
            Wanted::Columns(columns) => Some(columns),
            Wanted::Row | Wanted::Nothing => None,
        };
        let row = batch.row(&open.table, i);
        let shown = if columns.is_none() { row.shown() } else { None };
        let (layout, bytes) = shown.as_ref().map_or((layout, bytes), |(layout, bytes)| (*layout, bytes));
        let size = columns.map_or(bytes.len(), |columns| size_of_columns(&row, columns));
        if builder.bytes() + size + 16 > limit {
            return Err(PageError::TooLarge);
        }
        match columns {
            Some(columns) => builder.columns(columns.iter().map(|&column| row.get(usize::from(column)))),
            None => builder.row(layout, bytes),
        }
    }
    Ok((builder, full && open.left > 0))
}
