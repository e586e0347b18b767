//! Files of rows: LOAD DATA, and how SELECT … INTO OUTFILE writes them.

use super::{Assignment, ColumnName, TableName};

/// FIELDS and LINES: what stands between values, around them and between lines. Bytes, whatever the file's character set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFormat {
    /// FIELDS TERMINATED BY.
    pub field_end: Vec<u8>,
    pub enclosed: Vec<u8>,
    /// OPTIONALLY ENCLOSED BY: only texts are enclosed when a file is written.
    pub optionally: bool,
    pub escaped: Vec<u8>,
    /// LINES STARTING BY.
    pub line_start: Vec<u8>,
    /// LINES TERMINATED BY.
    pub line_end: Vec<u8>,
}

impl Default for FileFormat {
    fn default() -> Self {
        FileFormat {
            field_end: b"\t".to_vec(),
            enclosed: vec![],
            optionally: false,
            escaped: b"\\".to_vec(),
            line_start: vec![],
            line_end: b"\n".to_vec(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    /// The file is the client's.
    pub local: bool,
    pub file: String,
    pub duplicates: LoadDuplicates,
    pub table: TableName,
    /// PARTITION (…).
    pub partitions: Vec<String>,
    /// CHARACTER SET.
    pub charset: Option<String>,
    pub format: FileFormat,
    /// IGNORE n LINES.
    pub skip: u64,
    /// Empty: all columns of the table.
    pub targets: Vec<LoadTarget>,
    pub set: Vec<Assignment>,
}

/// What becomes of a row whose key is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadDuplicates {
    Error,
    Replace,
    Ignore,
}

/// Where a field of a line goes.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadTarget {
    Column(ColumnName),
    Variable(String),
}

impl LoadData {
    /// IGNORE. A client that has begun to send its file cannot be stopped, so errors of its rows are warnings unless it says REPLACE.
    pub fn ignores(&self) -> bool {
        match self.duplicates {
            LoadDuplicates::Ignore => true,
            LoadDuplicates::Error => self.local,
            LoadDuplicates::Replace => false,
        }
    }
}
