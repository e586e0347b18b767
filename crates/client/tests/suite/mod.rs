//! What the native API promises, tested once for every place where a database can be: in this process, and behind a port.
//!
//! A test file (`embedded.rs`, `remote_suite.rs`) says how to start a database ([`Place`]) and calls [`suite!`], which makes a `#[test]` of every function named here. Each test
//! has a database of its own. Everything random has a fixed seed.

use rauk_client::{Client, Decimal, Error, ErrorKind, Record, Value};
use std::sync::Arc;

pub mod batches;
pub mod concurrency;
pub mod misuse;
pub mod operations;
pub mod scans;
pub mod transactions;
pub mod types;

/// A running database. Fields are dropped in their order: clients before what they talk to.
pub struct Place {
    pub client: Client,
    /// Another client, with a connection of its own.
    pub another: Arc<dyn Fn() -> Client + Send + Sync>,
    /// What keeps it running.
    pub _running: Box<dyn std::any::Any>,
}

macro_rules! suite {
    ($start:path) => {
        suite! { @futures $start;
            operations: a_row_from_insert_to_delete, the_same_without_types, duplicates_are_refused, upserts, unique_keys,
                values_not_given, numbers_are_given, increments, increments_of_other_types, conditional_changes, names_in_any_case;
            types: smallest_and_largest, null_in_every_type, every_type_as_a_key, random_rows, large_values, text_keys_by_collation,
                fractions_of_seconds;
            batches: mixed_operations, the_same_key_in_order, projections, large_batches, random_batches_against_a_model,
                mistakes_name_the_operation, many_at_once, a_failure_leaves_the_others_alone;
            scans: against_a_model, bounds_of_a_composite_key, many_pages, in_a_transaction, locking, ended_early, of_records;
            transactions: commit_and_rollback, read_committed_sees_commits, a_snapshot_stays, a_lost_update_is_refused, write_skew,
                phantoms, read_only, savepoints, batches_are_statements, commit_with_the_last_batch, lock_timeout, deadlock,
                locked_reads, own_changes_are_seen, nothing_done_nothing_sent, batches_each_for_itself;
            misuse: names_that_are_not_there, values_that_do_not_fit, keys_that_do_not_fit, records_that_do_not_fit, an_ended_transaction,
                a_foreign_savepoint, a_dropped_table, a_table_of_the_system, conditions_that_do_not_fit;
        }
        suite! { @functions $start;
            concurrency: handed_between_threads, transfers_keep_the_sum, increments_add_up, inserts_of_one_key, numbers_are_unique,
                a_table_made_by_two,                tasks_on_one_thread, one_state_while_others_write;
        }
    };
    (@futures $start:path; $($module:ident: $($name:ident),* $(,)?;)*) => {$(
        mod $module {
            $(
                #[test]
                fn $name() {
                    let place = $start();
                    rauk_client::blocking::wait(crate::suite::$module::$name(&place));
                }
            )*
        }
    )*};
    (@functions $start:path; $($module:ident: $($name:ident),* $(,)?;)*) => {$(
        mod $module {
            $(
                #[test]
                fn $name() {
                    crate::suite::$module::$name(&$start());
                }
            )*
        }
    )*};
}

/// The table of most tests.
#[derive(Record, Clone, Debug, PartialEq)]
#[rauk(database = "suite", table = "accounts")]
pub struct Account {
    #[rauk(key)]
    pub id: u64,
    #[rauk(length = 50, index)]
    pub owner: String,
    pub balance: i64,
    #[rauk(length = 20, unique)]
    pub code: Option<String>,
}

pub fn account(id: u64, balance: i64) -> Account {
    Account { id, owner: format!("owner {id}"), balance, code: None }
}

pub fn coded(id: u64, code: &str) -> Account {
    Account { code: Some(code.into()), ..account(id, 0) }
}

/// The table, with accounts 1 to `n` that have 100 each.
pub async fn accounts(place: &Place, n: u64) -> rauk_client::Records<Account> {
    let accounts = place.client.open_or_create::<Account>().await.expect("the table can be made");
    let mut batch = place.client.batch();
    for id in 1..=n {
        batch.insert_record(&accounts, &account(id, 100));
    }
    let result = place.client.execute(batch).await.expect("inserted");
    assert_eq!(result.succeeded() as u64, n);
    accounts
}

pub async fn balance(accounts: &rauk_client::Records<Account>, id: u64) -> Option<i64> {
    accounts.get(id).await.expect("read").map(|account| account.balance)
}

/// The error that must have come, of this kind and with this code.
#[track_caller]
pub fn refused<T>(result: Result<T, Error>, kind: ErrorKind, code: u16) -> Error {
    match result {
        Ok(_) => panic!("not refused; expected {kind:?}"),
        Err(error) => {
            assert_eq!((error.kind, error.code), (kind, code), "{error}");
            assert!(!error.message.is_empty());
            error
        }
    }
}

pub fn decimal(text: &str) -> Decimal {
    text.parse().expect("a decimal")
}

pub fn text(value: &str) -> Value {
    Value::from(value)
}
