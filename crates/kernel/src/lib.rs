//! The partition core: rows, indexes, versions and locks of one slice of the data.
//!
//! Everything here is a plain struct with plain methods: no I/O, no clock, no thread, no random source, so that
//! the simulator runs the very code that production runs. Whoever calls a [`Partition`] holds it exclusively (`&mut`);
//! the node crate puts guards around it. Iteration orders are deterministic.
//!
//! A call that cannot go on returns a [`Stop`]: try again at once, wait for a lock, or fail. A waiting transaction is
//! queued; when the lock is granted its id appears in [`Partition::take_granted`] and the caller makes the same call again.

pub mod budget;
pub mod hash_index;
pub mod ordered_index;
pub mod partition;
mod prefetch;
pub mod row_store;
pub mod status;
pub mod times;

pub use budget::MemoryBudget;
pub use partition::{
    Access, CopyCursor, END_SLICE, Found, HeldLock, HeldMode, HeldOn, Horizon, LockMode, Lookup, LookupPosition, MANY,
    ManyRead, NAMES, Partition, Prepared, Probe, ReadAt, Refusal, ScanEnd, ScanPosition, ScanRequest, ScanRow,
    Scrubbed, SliceError, SliceRow, Span, Stop, TableDigest, Verb, Verdict, WaitPolicy, Write, slice_partition,
    slice_rows,
};
pub use prefetch::prefetch;
pub use row_store::RowId;
pub use status::{TxnRef, TxnState, TxnStatus};
pub use times::TimeBounds;
