//! One real `rauk` process and its clients, one module per subject.
//!
//! One binary: each file by itself would be linked with the whole of what tests share again. A module's tests are run by its name: `cargo test -p rauk --test server crash`.

#[path = "../common/mod.rs"]
mod common;

mod bench_analytics;
mod bench_ddl;
mod charsets;
mod check_disk;
mod conformance;
mod crash;
mod differential;
mod directory;
mod docs;
mod dump;
mod files;
mod flex;
mod hostile;
mod import;
mod import_parquet;
mod isolation;
mod memory;
mod metadata;
mod migrate;
mod native;
mod native_accounts;
mod native_bad_input;
mod native_port;
mod online_ddl;
mod output;
mod partitioned;
mod process;
mod root_password;
mod shell;
mod size;
mod starting;
