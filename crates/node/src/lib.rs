//! A data node in one process: executors around partitions, transactions, group commit, checkpoints, recovery.
//!
//! The node is runtime-agnostic: its futures need only wakers, and time, background work and randomness come through [`Runtime`], disk access
//! through [`rauk_log::Disk`], so that the same code runs under threads in production and under the seeded single-thread simulator.
//!
//! | module | what |
//! |---|---|
//! | [`database`] | the door: open, begin, tables, counters, end |
//! | [`transaction`], [`scan`] | reads and writes |
//! | `executor` | one at a time on a partition, without threads that wait |
//! | `commit` | group commit; commits under way |
//! | `locks` | waits for rows, deadlocks; metadata locks |
//! | [`names`] | locks on names, for GET_LOCK |
//! | [`temporary`] | tables of a session's own |
//! | `table` | definitions with what is derived from them; counters; index tables |
//! | `ddl` | changing definitions |
//! | `checkpoint`, `recovery` | from memory to disk and back |
//! | [`pressure`] | memory that is nearly full |
//! | [`runtime`] | time, timers, threads |
//! | [`status`] | what the operator sees |

pub mod bulk;
mod checkpoint;
mod commit;
pub mod database;
mod ddl;
mod ends;
pub mod error;
pub mod executor;
mod locks;
pub mod member;
pub mod names;
pub mod native;
mod node;
pub mod ops;
pub mod pressure;
pub mod recovery;
pub mod runtime;
pub mod scan;
mod scrub;
pub mod status;
mod table;
pub mod temporary;
pub mod transaction;

pub use commit::group::FlushPolicy;
pub use database::{Config, Database, Durability, TableHandle};
pub use ddl::changes::Changing;
pub use ddl::locking::TableLocks;
pub use ddl::{
    Convert, Further, Look, OwnConvert, Progress, Purged, RowWork, Stage, TableName, is_copied_online, is_online,
};
pub use error::NodeError;
pub use locks::held::LockInfo;
pub use locks::metadata::{DdlWait, LockedTables, Meanwhile, Mode as TableLockMode};
pub use names::{NameLocks, OnLost};
pub use ops::change::{NewRow, RowChange};
pub use rauk_kernel::{HeldLock, HeldMode, HeldOn, RowId};
pub use rauk_manage::SettingChange;
pub use rauk_manage::histograms::TableHistograms;
pub use recovery::progress::{RecoveryProgress, RecoveryState, RecoveryStep};
pub use runtime::Runtime;
pub use runtime::threads::{Threads, block_on};
pub use scan::pushdown::{CountPushdown, Evaluator, Fate, FilterPushdown, MAX_PROGRAM, Pushdown, RowProgram};
pub use scan::{Page, SMALL_TABLE, ScanBatch, ScanCursor, ScanSpec};
pub use table::io::IoCounts;
pub use table::parts::{Parts, physical as physical_tables};
pub use temporary::TemporaryMemory;
pub use transaction::{
    ChangeOutcome, ChangedRow, InsertOutcome, Interrupt, Isolation, Lock, Savepoint, Spans, Standing, Transaction,
    TxnOptions, UpdateOutcome, VisitSpans,
};
