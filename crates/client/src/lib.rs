//! The native API: rows by key and by range, in batches and transactions, in microseconds; over the network or in the same process.
//!
//! ```no_run
//! use rauk_client::{Client, Options, Record};
//!
//! #[derive(Record, Debug)]
//! #[rauk(database = "shop", table = "users")]
//! struct User {
//!     #[rauk(key)]
//!     id: u64,
//!     #[rauk(length = 100)]
//!     name: String,
//!     balance: i64,
//! }
//!
//! # async fn run() -> Result<(), rauk_client::Error> {
//! let client = Client::connect("127.0.0.1:4407", Options::secret_file("rauk-data/native.secret")).await?;
//! let users = client.open::<User>().await?;
//! users.insert(&User { id: 1, name: "Ada".into(), balance: 10 }).await?;
//! let mut transaction = client.begin();
//! let ada = transaction.get_for_update(&users, 1u64).await?;
//! transaction.increment(&users, 1u64, "balance", 5).await?;
//! transaction.commit().await?;
//! # Ok(()) }
//! ```
//!
//! Everything is asynchronous and needs no particular runtime; [`blocking`] is a thin layer for programs without one. A future that is not polled any more does
//! no harm: its request is cancelled.
//!
//! | module | what |
//! |---|---|
//! | [`client`], [`options`] | connect; tables; how often to try again |
//! | [`embedded`] | the database in this process |
//! | [`table`], [`records`] | a table as opened: rows by column name, rows as structs |
//! | [`record`] | rows as structs: the derive macro's traits |
//! | [`row`], [`convert`] | rows by column name; keys and columns as Rust types |
//! | [`batch`] | many operations in one round trip |
//! | [`transaction`] | transactions |
//! | [`scan`] | scans of tables and indexes |
//! | [`condition`] | filters and conditions |
//! | [`error`] | what can go wrong, and what may be done about it |
//! | [`blocking`] | the same for programs without an asynchronous runtime |

extern crate self as rauk_client;

mod address;
pub mod batch;
pub mod blocking;
mod channel;
pub mod client;
pub mod condition;
pub mod convert;
mod create;
mod definition;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod error;
mod execute;
pub mod options;
pub mod record;
pub mod records;
pub mod row;
pub mod scan;
pub mod table;
#[cfg(all(test, feature = "embedded"))]
mod testing;
mod timer;
pub mod transaction;

/// The Rust in README.md and in the pages of docs, compiled as it stands there: `cargo test --workspace --doc`.
/// `crates/rauk/tests/docs.rs` checks that no page with Rust is missing here.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/native-api.md")]
    mod native_api {}
}

pub use batch::{Batch, BatchResult, Done, OpId};
pub use client::Client;
pub use condition::{Condition, column};
pub use convert::{FromColumn, IntoKey};
#[cfg(feature = "embedded")]
pub use embedded::Rauk;
pub use error::{Error, ErrorKind};
pub use options::{Account, Options, RetryPolicy};
pub use rauk_derive::Record;
pub use rauk_types::{Date, DateTime, Decimal, Time, Value, ValueRef};
pub use record::Record;
pub use records::Records;
pub use row::{Row, RowRef};
pub use scan::{Direction, Rows, Scan};
pub use table::Table;
pub use transaction::{Isolation, Savepoint, Transaction, TransactionOptions};
