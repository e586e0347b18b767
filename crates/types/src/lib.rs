//! The vocabulary that every other crate speaks: values and their types, table
//! schemas, the codecs of rows and keys, character sets, collations, ids, and error classes.
//!
//! Nothing here does I/O, reads a clock or starts a thread. Layouts that reach
//! a disk or a wire (rows, keys, hashes) are frozen: changing one needs a
//! format version.

pub mod charset;
pub mod check;
pub mod collation;
pub mod data_type;
pub mod datetime;
pub mod decimal;
pub mod elements;
pub mod error;
pub mod foreign;
pub mod format;
pub mod fulltext;
pub mod geometry;
pub mod ids;
pub mod index_keys;
pub mod json;
pub mod key;
pub mod layout;
pub mod members;
pub mod partitioning;
pub mod password;
pub mod result;
pub mod route;
pub mod row;
pub mod schema;
pub mod shared;
pub mod size;
pub mod value;
pub mod view;

pub use charset::Charset;
pub use collation::Collation;
pub use data_type::{DataType, TypeKind};
pub use datetime::{Date, DateTime, Time};
pub use decimal::Decimal;
pub use elements::{ElementKeys, Elements};
pub use error::{ErrorClass, MysqlError};
pub use foreign::{ForeignKey, ReferenceAction};
pub use fulltext::{TextParser, WordKeys};
pub use geometry::{Geometry, GeometryKind};
pub use ids::{
    ColumnId, GroupId, IndexId, Member, NodeId, PartitionId, Position, ProcessId, TableId, Timestamp, TxnId, View,
};
pub use index_keys::{IndexKeys, RowKeys};
pub use json::JsonRef;
pub use key::{KeyDef, KeyPart};
pub use layout::Layout;
pub use members::Members;
pub use partitioning::Partitioning;
pub use row::{Covering, Field, FieldKind, LargeValue, RowImage, RowLayout, RowView};
pub use schema::{
    CheckConstraint, Column, ColumnDefault, Generated, IndexKind, IndexPart, IndexSchema, StorageClauses, TableSchema,
};
pub use shared::{Memo, Shared};
pub use value::{Value, ValueRef};
pub use view::{ViewAlgorithm, ViewCheck, ViewSchema, ViewSecurity};
