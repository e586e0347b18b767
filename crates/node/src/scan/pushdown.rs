//! What a scan asks of another node besides the rows of a range: to drop rows there, or to sum them up.
//!
//! A scan may carry a [`Pushdown`]: a program for the node that leads the partition, as bytes. There an [`Evaluator`] makes a [`RowProgram`] of
//! it, which is shown each row while the partition is held and says whether the row is sent ([`Fate`]). A row that is not sent keeps no lock that
//! the scan took on it. The program may give back bytes of its own with each answer: warnings of the rows that it dropped, sums.
//!
//! The visitor of the scan still sees every row that is sent and decides again, with its own context. So a program may send more than it has
//! to: a row whose evaluation fails or is not certain is sent, and the visitor meets the same error. A node that does not know the program
//! sends all rows. Partitions that are led here are visited as ever; the program is not used there.
//!
//! Programs begin with a byte: [`FILTER`], a [`Filter`] as native clients send it, and [`COUNT`], which only counts,
//! are known to every node; or whatever else the registered evaluator (`sql`) knows. Nodes know no expressions but
//! filters.
//!
//! A node of an older build refuses a scan with a program as malformed ([`crate::ops::wire`]); the scan then goes on without.

use crate::error::NodeError;
use crate::node::Node;
use crate::ops::change::RowChange;
use rauk_types::error::codes;
use rauk_types::{MysqlError, RowView, TableSchema, Value};
use rauk_wire::Filter;
use rauk_wire::read::Reader;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// First byte of a program that is a [`Filter`].
pub const FILTER: u8 = 0;

/// First and only byte of a program that counts the rows and sends none.
pub const COUNT: u8 = 255;

/// Longest program that is sent or read.
pub const MAX_PROGRAM: usize = 64 << 10;

/// The side of the scan.
pub trait Pushdown: Send + Sync + Debug {
    /// At most [`MAX_PROGRAM`] bytes.
    fn program(&self) -> &[u8];

    /// Takes what the program has given back, before the rows of the same answer are shown. `false`: it cannot be read.
    fn take(&self, result: &[u8]) -> bool;

    /// Whether the program only drops rows that the visitor would skip. Else it takes rows over and gives sums back, which have no order.
    fn only_drops(&self) -> bool;

    /// No more can be given back: the scan goes on without the program.
    fn is_full(&self) -> bool {
        false
    }
}

/// Makes programs of bytes that other nodes have sent, and evaluates what tables say of their rows.
pub trait Evaluator: Send + Sync {
    /// Computes the generated columns of a row whose other columns have changed.
    fn compute_generated(&self, table: &Arc<TableSchema>, row: &mut [Value]) -> Result<(), MysqlError>;

    /// The value of a partitioned table's expression, or of its subpartitions' (`sub`), for a row; `None` is NULL. Columns that are
    /// not in the expression may have any value.
    fn partition_value(&self, table: &TableSchema, sub: bool, row: &[Value]) -> Result<Option<i128>, MysqlError>;

    /// `None`: it does not know the program, or not on rows of this table.
    fn prepare(&self, program: &[u8], table: &Arc<TableSchema>) -> Option<Box<dyn RowProgram>>;

    /// The same of a program that changes a row.
    fn prepare_change(&self, program: &[u8], table: &Arc<TableSchema>) -> Option<Box<dyn RowChange>>;
}

/// The side of the partition, for one request: it does not wait, and takes time in proportion to the row.
pub trait RowProgram: Send {
    fn visit(&mut self, row: &RowView<'_>) -> Fate;

    /// What goes back beside the rows, after the last row of the request.
    fn finish(self: Box<Self>) -> Vec<u8>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Send,
    /// It is not sent, and gives back a lock that the scan took on it.
    Drop,
}

/// A native filter on its way.
#[derive(Debug)]
pub struct FilterPushdown(Vec<u8>);

impl FilterPushdown {
    /// `None`: it is too long to travel.
    pub fn of(filter: &Filter) -> Option<Arc<dyn Pushdown>> {
        let mut program = vec![FILTER];
        filter.encode(&mut program);
        (program.len() <= MAX_PROGRAM).then(|| Arc::new(FilterPushdown(program)) as Arc<dyn Pushdown>)
    }
}

impl Pushdown for FilterPushdown {
    fn program(&self) -> &[u8] {
        &self.0
    }

    fn take(&self, result: &[u8]) -> bool {
        result.is_empty()
    }

    fn only_drops(&self) -> bool {
        true
    }
}

/// A filter where the rows are.
struct FilterProgram(Filter);

impl FilterProgram {
    fn read(bytes: &[u8], table: &TableSchema) -> Option<FilterProgram> {
        let mut reader = Reader::new(bytes, "filter");
        let filter = Filter::decode(&mut reader).ok()?;
        reader.end().ok()?;
        filter.check(table).ok()?;
        Some(FilterProgram(filter))
    }
}

/// How many rows of a scan other nodes have counted and not sent.
#[derive(Debug, Default)]
pub struct CountPushdown(AtomicU64);

impl CountPushdown {
    pub fn counted(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Pushdown for CountPushdown {
    fn program(&self) -> &[u8] {
        &[COUNT]
    }

    fn take(&self, result: &[u8]) -> bool {
        let Ok(count) = <[u8; 8]>::try_from(result) else { return false };
        self.0.fetch_add(u64::from_le_bytes(count), Ordering::Relaxed);
        true
    }

    fn only_drops(&self) -> bool {
        false
    }
}

struct CountProgram(u64);

impl RowProgram for CountProgram {
    fn visit(&mut self, _: &RowView<'_>) -> Fate {
        self.0 += 1;
        Fate::Drop
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }
}

impl RowProgram for FilterProgram {
    fn visit(&mut self, row: &RowView<'_>) -> Fate {
        if self.0.passes(row) { Fate::Send } else { Fate::Drop }
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        Vec::new()
    }
}

impl Node {
    /// The generated columns of a row that a cascade has changed. Without an evaluator a table that has any is not
    /// written.
    pub(crate) fn compute_generated(&self, table: &Arc<TableSchema>, row: &mut [Value]) -> Result<(), NodeError> {
        if table.columns.iter().all(|column| column.generated.is_none()) {
            return Ok(());
        }
        let unknown = || MysqlError::new(codes::NOT_SUPPORTED_YET, "Nobody here computes generated columns");
        let evaluator = self.evaluator.get().ok_or_else(|| NodeError::Refused(unknown()))?;
        evaluator.compute_generated(table, row).map_err(NodeError::Refused)
    }

    /// The program of another node's scan; `None`: it is not known here, and all rows are sent.
    pub fn program(&self, program: &[u8], table: &Arc<TableSchema>) -> Option<Box<dyn RowProgram>> {
        match program.split_first() {
            None => None,
            Some(_) if program.len() > MAX_PROGRAM => None,
            Some((&COUNT, [])) => Some(Box::new(CountProgram(0))),
            Some((&FILTER, filter)) => Some(Box::new(FilterProgram::read(filter, table)?)),
            Some(_) => self.evaluator.get()?.prepare(program, table),
        }
    }
}
