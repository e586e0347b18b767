//! Columns, keys and constraints of CREATE TABLE and ALTER TABLE.

use super::{Expr, TableName};
use rauk_types::GeometryKind;

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    pub name: String,
    pub column_type: ColumnType,
    /// In the order written; SERIAL brings its own.
    pub options: Vec<ColumnOption>,
}

/// A type as it was declared. Lengths and digits are checked later, where the column's name is known.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnType {
    Integer {
        size: IntegerSize,
        /// The display width.
        width: Option<u64>,
        unsigned: bool,
    },
    /// BOOL, BOOLEAN.
    Boolean,
    Decimal {
        digits: Digits,
        unsigned: bool,
    },
    Float {
        digits: Digits,
        unsigned: bool,
    },
    Double {
        digits: Digits,
        unsigned: bool,
    },
    Char(Option<u64>),
    VarChar(Option<u64>),
    TinyText,
    Text,
    MediumText,
    LongText,
    Binary(Option<u64>),
    VarBinary(Option<u64>),
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    Date,
    Time(Option<u64>),
    DateTime(Option<u64>),
    Timestamp(Option<u64>),
    Year(Option<u64>),
    Json,
    Bit(Option<u64>),
    Enum(Vec<String>),
    Set(Vec<String>),
    Geometry(GeometryKind),
    /// A type that Rauk does not have: its name in upper case.
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerSize {
    Tiny,
    Small,
    Medium,
    Int,
    Big,
}

/// `(precision, scale)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digits {
    pub precision: Option<u64>,
    pub scale: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ColumnOption {
    Null,
    NotNull,
    Default(DefaultValue),
    OnUpdate(Expr),
    AutoIncrement,
    Unique,
    PrimaryKey,
    Comment(String),
    Charset(String),
    Collation(String),
    /// BINARY behind a character type: the collation `…_bin` of whatever set the column has.
    BinaryCollation,
    References(References),
    Check(Check),
    Generated {
        expr: Expr,
        stored: bool,
    },
    Invisible,
    /// STORAGE and COLUMN_FORMAT with their word, in upper case.
    Storage(&'static str),
    Format(&'static str),
    Srid(Expr),
    /// Part of a numeric type.
    Zerofill,
}

/// Behind DEFAULT.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    /// A literal with its sign, or the time of now.
    Plain(Expr),
    /// `(expression)`: columns of TEXT and BLOB have no other.
    Expr(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub name: Option<String>,
    pub expr: Expr,
    /// NOT ENFORCED is `false`.
    pub enforced: bool,
}

/// What follows REFERENCES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct References {
    pub table: TableName,
    pub columns: Vec<String>,
    pub match_kind: Option<MatchKind>,
    pub on_delete: Option<ReferentialAction>,
    pub on_update: Option<ReferentialAction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    Full,
    Partial,
    Simple,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferentialAction {
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
    NoAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TableConstraint {
    PrimaryKey(KeyDefinition),
    Unique(KeyDefinition),
    Index(KeyDefinition),
    FullText(KeyDefinition),
    Spatial(KeyDefinition),
    ForeignKey {
        /// CONSTRAINT name.
        symbol: Option<String>,
        /// FOREIGN KEY name.
        index: Option<String>,
        columns: Vec<String>,
        references: References,
    },
    Check(Check),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyDefinition {
    /// CONSTRAINT name.
    pub symbol: Option<String>,
    /// The name of the index itself.
    pub name: Option<String>,
    pub algorithm: Option<IndexAlgorithm>,
    pub parts: Vec<KeyPart>,
    pub comment: Option<String>,
    pub invisible: bool,
    /// Unique among the rows of all partitions.
    pub global: bool,
    pub block_size: u64,
    /// WITH PARSER.
    pub parser: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexAlgorithm {
    BTree,
    Hash,
    RTree,
}

#[derive(Clone, Debug, PartialEq)]
pub enum KeyPart {
    Column {
        name: String,
        /// How many characters or bytes of the beginning.
        prefix: Option<u64>,
        descending: bool,
    },
    /// `(expression)`.
    Expr { expr: Expr, descending: bool },
}
