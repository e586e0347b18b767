//! Table definitions on the wire: JSON, since they are large, seldom sent, and grow with every release.

use crate::WireError;
use rauk_types::{Collation, TableSchema};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableName {
    pub database: String,
    pub table: String,
}

/// Answer to `OpenTable` and `CreateTable`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    pub schema: TableSchema,
    /// Partitions of the node, for scans in parallel.
    pub partitions: u16,
}

/// `schema` is completed by the node (id, version, layouts, index tables).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateTable {
    pub schema: TableSchema,
    /// An existing table with the same columns and keys is answered instead of error 1050.
    pub if_not_exists: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropTable {
    pub name: TableName,
    pub if_exists: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateDatabase {
    pub name: String,
    pub collation: Collation,
    pub if_not_exists: bool,
}

/// Appends the JSON of any of these.
pub fn encode<T: Serialize>(value: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("definitions have no maps with keys that are not strings");
}

pub fn decode<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, WireError> {
    serde_json::from_slice(payload).map_err(|_| WireError::Malformed("definition"))
}
