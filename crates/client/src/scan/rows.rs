//! A scan under way.
//!
//! Outside of transactions the next page is requested as soon as one has come. A scan without an order is one for each partition, some of which are under way at a time;
//! they share a read-only transaction of their own, so that all show one state. In a program's transaction a scan goes on page by page, in turn with everything else there, and sees what it has written.
//!
//! Requests in flight belong to the [`Rows`], not to the future of [`Rows::next`]: dropping that loses nothing.

use super::Scan;
use crate::channel::{Ask, CallError, Line};
use crate::client::{Client, Pauses};
use crate::definition::Opened;
use crate::execute::worth_retrying;
use crate::row::{Columns, RowRef};
use crate::{Error, ErrorKind, Record, Records, Row, Transaction};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use rauk_types::error::codes;
use rauk_wire::scan::{PageReader, PageRow, encode_number};
use rauk_wire::{Kind, Wanted};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Partitions that are scanned at the same time.
const AT_A_TIME: usize = 4;

/// Rows of a scan, one after the other. Dropping it ends the scan.
pub struct Rows<'t> {
    scan: Scan,
    client: Client,
    transaction: Option<&'t mut Transaction>,
    running: Option<Running>,
    over: bool,
    given: u64,
}

/// A request in flight: the scan that it goes on with (0: begins), and what came of it.
type Flight = FuturesUnordered<BoxFuture<'static, (u64, Result<Bytes, CallError>)>>;

struct Running {
    line: Line,
    opened: Arc<Opened>,
    columns: Columns,
    /// Number of the transaction, and whether it is there for this scan only.
    transaction: u64,
    own: bool,
    /// Pages are requested before the one before is read.
    ahead: bool,
    /// Partitions that are still to be scanned, in reverse.
    waiting: Vec<rauk_wire::scan::Scan>,
    flight: Flight,
    /// Scans that have more pages.
    open: Vec<u64>,
    /// The scan whose next page is to be requested when this one has been read.
    next: Option<u64>,
    page: Page,
}

/// A page that has come, and how far it has been read.
#[derive(Default)]
struct Page {
    bytes: Bytes,
    rows: Vec<Place>,
    read: usize,
}

struct Place {
    /// Layout of a stored row; `None` for chosen columns.
    layout: Option<u16>,
    start: u32,
    length: u32,
}

impl Rows<'_> {
    pub(super) fn alone(scan: Scan) -> Rows<'static> {
        let client = scan.table().client().clone();
        Rows { scan, client, transaction: None, running: None, over: false, given: 0 }
    }

    pub(crate) fn within(transaction: &mut Transaction, scan: Scan) -> Rows<'_> {
        let client = transaction.client().clone();
        Rows { scan, client, transaction: Some(transaction), running: None, over: false, given: 0 }
    }

    /// `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Row>, Error> {
        if !self.advance().await? {
            return Ok(None);
        }
        let Some(running) = &mut self.running else { return Ok(None) };
        running.row().map(Some)
    }

    /// The next row as a record.
    pub async fn next_record<R: Record>(&mut self, records: &Records<R>) -> Result<Option<R>, Error> {
        if !self.advance().await? {
            return Ok(None);
        }
        let Some(running) = &mut self.running else { return Ok(None) };
        let opened = running.opened.clone();
        records.decode(&opened, &running.view()?).map(Some)
    }

    /// Sees to it that there is a row to be taken; `false` after the last.
    async fn advance(&mut self) -> Result<bool, Error> {
        // The rows of a page need no waiting.
        if let Some(running) = &self.running
            && running.page.read < running.page.rows.len()
            && self.given < self.scan.limit
        {
            self.given += 1;
            return Ok(true);
        }
        if self.over || self.given >= self.scan.limit {
            self.finish();
            return Ok(false);
        }
        match self.fetch().await {
            Ok(true) => {
                self.given += 1;
                Ok(true)
            }
            Ok(false) => {
                self.finish();
                Ok(false)
            }
            Err(error) => {
                self.fail(&error);
                Err(error.error.at(&self.scan.table().current().name))
            }
        }
    }

    /// The next page with rows in it.
    async fn fetch(&mut self) -> Result<bool, CallError> {
        let client = self.client.clone();
        let mut pauses = None;
        loop {
            let result = match &mut self.running {
                None => match Box::pin(self.start()).await {
                    Ok(true) => continue,
                    Ok(false) => return Ok(false),
                    Err(error) => Err(error),
                },
                Some(running) => running.next_page(&self.client).await,
            };
            let error = match result {
                Ok(more) => return Ok(more),
                Err(error) => error,
            };
            // As long as no row was given, nobody notices that it begins again.
            let pauses = pauses.get_or_insert_with(|| Pauses::new(client.retry()));
            let again = self.transaction.is_none() && self.given == 0 && worth_retrying(&error.error);
            if !again || !pauses.again() {
                return Err(error);
            }
            if let Some(running) = self.running.take() {
                let before = running.opened.clone();
                let line = running.line.clone();
                running.end();
                if error.error.kind == ErrorKind::SchemaChanged {
                    Box::pin(self.scan.table().refresh(&line, &before)).await?;
                }
            }
            pauses.pause().await;
        }
    }

    /// Begins; `false`: there cannot be a row.
    async fn start(&mut self) -> Result<bool, CallError> {
        let here = CallError::here;
        let table = self.scan.table().clone();
        if !table.client().is(&self.client) {
            let message = "the table was opened by another client than the transaction";
            return Err(here(Error::new(ErrorKind::Refused, 0, message)));
        }
        if self.scan.for_update && self.transaction.is_none() {
            let message = "rows are locked within a transaction only: use Transaction::scan";
            return Err(here(Error::new(ErrorKind::Refused, codes::WRONG_USAGE, message)));
        }
        let line = match &mut self.transaction {
            Some(transaction) => transaction.begun().await.map_err(here)?,
            None => self.client.line(None).await.map_err(here)?,
        };
        if table.current().epoch != line.epoch() {
            let before = table.current();
            table.refresh(&line, &before).await?;
        }
        let opened = table.current();
        let Some(scan) = self.scan.resolve(&opened).map_err(here)? else { return Ok(false) };
        let columns = match &scan.wanted {
            Wanted::Columns(columns) => Columns::Shared(Arc::from(columns.as_slice())),
            _ => Columns::All,
        };
        // A limit is reached in few partitions, so one after the other is enough.
        let parallel = self.transaction.is_none() && !scan.ordered && scan.limit == u64::MAX && opened.partitions > 1;
        let transaction = match &self.transaction {
            Some(transaction) => transaction.number(),
            None if parallel => self.client.next_transaction(),
            None => 0,
        };
        let waiting = match parallel {
            false => vec![scan],
            true => {
                let part =
                    |number| rauk_wire::scan::Scan { partition: Some(number), begin: number == 0, ..scan.clone() };
                (0..opened.partitions).rev().map(part).collect()
            }
        };
        self.running = Some(Running {
            ahead: self.transaction.is_none() && matches!(line, Line::Remote(_)),
            line,
            opened,
            columns,
            transaction,
            own: parallel,
            waiting,
            flight: FuturesUnordered::new(),
            open: Vec::new(),
            next: None,
            page: Page::default(),
        });
        Ok(true)
    }

    fn finish(&mut self) {
        self.over = true;
        let Some(running) = self.running.take() else { return };
        match &mut self.transaction {
            Some(transaction) if !running.flight.is_empty() => {
                let why = "the transaction was rolled back, since a scan was dropped that waited for an answer";
                let line = running.line.clone();
                drop(running);
                transaction.end(&line, Error::ended(why));
            }
            _ => running.end(),
        }
    }

    fn fail(&mut self, error: &CallError) {
        self.over = true;
        let Some(running) = self.running.take() else { return };
        match &mut self.transaction {
            Some(transaction) if error.ended => transaction.scan_failed(&running.line, error),
            _ => running.end(),
        }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Running {
    /// Reads on; `false`: that was all.
    async fn next_page(&mut self, client: &Client) -> Result<bool, CallError> {
        loop {
            if self.page.read < self.page.rows.len() {
                return Ok(true);
            }
            if let Some(number) = self.next.take() {
                self.go_on(client, number);
            }
            let at_a_time = if self.own { AT_A_TIME } else { 1 };
            while self.flight.len() < at_a_time
                && let Some(scan) = self.waiting.pop()
            {
                self.begin(client, scan);
            }
            let Some((before, result)) = self.flight.next().await else { return Ok(false) };
            self.open.retain(|number| *number != before);
            let payload = result?;
            let number = self.take_page(payload).map_err(|error| self.line.nonsense(Ask::new(Kind::Scan), error))?;
            if number != 0 {
                self.open.push(number);
                match self.ahead {
                    true => {
                        self.go_on(client, number);
                        // Sends what was just asked for, though nobody waits for it yet.
                        std::future::poll_fn(|cx| {
                            self.flight_starts(cx);
                            Poll::Ready(())
                        })
                        .await;
                    }
                    false => self.next = Some(number),
                }
            }
        }
    }

    /// Polls what was added to the requests in flight, so that it is sent. An answer that is there already is put aside as one that is ready.
    fn flight_starts(&mut self, cx: &mut Context<'_>) {
        if let Poll::Ready(Some(done)) = self.flight.poll_next_unpin(cx) {
            self.flight.push(Box::pin(std::future::ready(done)));
        }
    }

    fn begin(&mut self, client: &Client, scan: rauk_wire::scan::Scan) {
        let (line, timeout) = (self.line.clone(), client.timeout());
        let ask = Ask { transaction: self.transaction, ..Ask::new(Kind::Scan) };
        self.flight.push(Box::pin(async move {
            let build = |mut out: Vec<u8>| {
                scan.encode(&mut out);
                out
            };
            (0, line.call(ask, Kind::ScanPage, timeout, build).await)
        }));
    }

    fn go_on(&mut self, client: &Client, number: u64) {
        let (line, timeout) = (self.line.clone(), client.timeout());
        let ask = Ask { transaction: self.transaction, ..Ask::new(Kind::ScanNext) };
        self.flight.push(Box::pin(async move {
            let build = |mut out: Vec<u8>| {
                encode_number(number, &mut out);
                out
            };
            (number, line.call(ask, Kind::ScanPage, timeout, build).await)
        }));
    }

    /// Notes where the rows are; gives the number of the scan if it has more pages.
    fn take_page(&mut self, bytes: Bytes) -> Result<u64, Error> {
        let mut rows = std::mem::take(&mut self.page.rows);
        rows.clear();
        let mut reader = PageReader::parse(&bytes)?;
        let number = reader.scan;
        let base = bytes.as_ptr() as usize;
        while let Some(row) = reader.next_row()? {
            let (layout, content) = match row {
                PageRow::Row { layout, bytes } => (Some(layout), bytes),
                PageRow::Columns { bytes, .. } => (None, bytes),
            };
            if layout.is_none() == matches!(self.columns, Columns::All) {
                return Err(Error::protocol("rows in another form than was asked for"));
            }
            let start = (content.as_ptr() as usize - base) as u32;
            rows.push(Place { layout, start, length: content.len() as u32 });
        }
        self.page = Page { bytes, rows, read: 0 };
        Ok(number)
    }

    fn take_place(&mut self) -> (Option<u16>, std::ops::Range<usize>) {
        let place = &self.page.rows[self.page.read];
        self.page.read += 1;
        (place.layout, place.start as usize..(place.start + place.length) as usize)
    }

    fn row(&mut self) -> Result<Row, Error> {
        let (layout, range) = self.take_place();
        let bytes = self.page.bytes.slice(range);
        match layout {
            Some(layout) => Row::stored(self.opened.clone(), layout, bytes),
            None => Row::projected(self.opened.clone(), self.columns.clone(), bytes),
        }
    }

    fn view(&mut self) -> Result<RowRef<'_>, Error> {
        let (layout, range) = self.take_place();
        let bytes = &self.page.bytes[range];
        match (layout, &self.columns) {
            (Some(layout), _) => RowRef::stored(&self.opened, layout, bytes),
            (None, Columns::Shared(columns)) => RowRef::projected(&self.opened, columns, bytes),
            (None, Columns::All) => Err(Error::protocol("rows in another form than was asked for")),
        }
    }

    /// Tells the server that no more is wanted.
    fn end(mut self) {
        if self.own {
            // Its scans end with it.
            self.line.tell(Kind::Rollback, self.transaction, |out| out);
            return;
        }
        for number in std::mem::take(&mut self.open) {
            close(&self.line, self.transaction, number);
        }
        // A first page that is still on its way brings the number of a scan that must be closed.
        if !self.flight.is_empty() && matches!(self.line, Line::Remote(_)) {
            detach(async move {
                while let Some((before, result)) = self.flight.next().await {
                    let number = result.ok().and_then(|payload| Some(PageReader::parse(&payload).ok()?.scan));
                    if before == 0
                        && let Some(number) = number.filter(|number| *number != 0)
                    {
                        close(&self.line, self.transaction, number);
                    }
                }
            });
        }
    }
}

fn close(line: &Line, transaction: u64, scan: u64) {
    line.tell(Kind::ScanClose, transaction, |mut out| {
        encode_number(scan, &mut out);
        out
    });
}

/// A future that nobody waits for: whoever wakes it polls it. For what only waits for answers and sends frames.
struct Detached {
    future: Mutex<Option<BoxFuture<'static, ()>>>,
    /// Wakings that were not yet answered by a poll.
    woken: AtomicUsize,
}

fn detach(future: impl Future<Output = ()> + Send + 'static) {
    Arc::new(Detached { future: Mutex::new(Some(Box::pin(future))), woken: AtomicUsize::new(0) }).wake();
}

impl Wake for Detached {
    fn wake(self: Arc<Self>) {
        // Whoever wakes it first polls it, again for those who wake it meanwhile.
        if self.woken.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        let waker = Waker::from(self.clone());
        let mut seen = 1;
        loop {
            let mut polled = self.future.lock();
            let mut cx = Context::from_waker(&waker);
            if polled.as_mut().is_none_or(|future| future.as_mut().poll(&mut cx).is_ready()) {
                *polled = None;
            }
            drop(polled);
            let before = self.woken.fetch_sub(seen, Ordering::SeqCst);
            if before == seen {
                return;
            }
            seen = before - seen;
        }
    }
}
