//! Parquet: rows of columns, read as if they were JSON lines.
//!
//! A file says in its schema what its columns are ([`fields`]), so names and types are checked before anything is read.
//! Then each row becomes an object of JSON ([`values`]), with the columns that go somewhere as its members, and from
//! there on it is a record like those of JSON lines: batches, literals, bad rows and what is committed are the same.
//! What is a place in the file for those is the number of a row here (from 0), and what is a line is a row (from 1).
//!
//! Columns are read one by one, some hundred rows of each at a time, each from its own pages: in memory are a page of
//! each column, these rows, and the batch. An import that goes on passes over whole row groups, then over pages.
//!
//! Left out: files of several parts with one summary (`_metadata`; the parts are read), encrypted files, files that are
//! compressed by brotli or LZO, and filters.

pub mod fields;
pub mod values;

use super::columns::{Column, Table};
use super::literal::{self, Binary};
use super::options::Options;
use super::records::{BATCH_BYTES, BATCH_RECORDS, Batch, Fault, Record, Span};
use fields::{Field, Found, Kind};
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field as Value;
use parquet::record::reader::{ReaderIter, TreeBuilder};
use parquet::schema::types::{SchemaDescriptor, Type};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek};
use std::sync::Arc;
use values::{Bytes, Cell};

/// Rows of a column that are read at once.
const CHUNK: u64 = 512;

/// A column of the file that goes to one of the table.
#[derive(Clone, Debug)]
pub struct Source {
    field: Field,
    /// Which of the table's columns.
    target: usize,
    /// `"name":`
    member: String,
    bytes: Bytes,
    /// The column has documents: values are texts that hold them, so that a document null is not NULL.
    is_document: bool,
}

pub struct Opened {
    reader: SerializedFileReader<File>,
    fields: Vec<Found>,
}

/// Options that say how texts are read are an error: nothing that is given has no effect.
pub fn refuse_options(options: &Options) -> Result<(), String> {
    let given = [
        (options.delimiter.is_some(), "--delimiter"),
        (options.no_header, "--no-header"),
        (options.null != b"\\N", "--null"),
        (options.binary != Binary::Hex, "--binary"),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        Some((_, name)) => Err(format!("{name} is for files of text; a Parquet file says itself how it is read")),
        None => Ok(()),
    }
}

fn told(error: &ParquetError) -> String {
    let text = error.to_string();
    text.trim_start_matches("Parquet error: ").to_string()
}

impl Opened {
    pub fn open(mut file: File) -> Result<Opened, String> {
        let mut magic = [0; 4];
        match file.read_exact(&mut magic).and_then(|()| file.rewind()) {
            Ok(()) if &magic == b"PAR1" => {}
            Ok(()) if &magic == b"PARE" => return Err("the file is encrypted; write it without encryption".into()),
            Ok(()) | Err(_) => return Err("it is no Parquet file: it does not begin with PAR1".into()),
        }
        let reader = SerializedFileReader::new(file)
            .map_err(|e| format!("the Parquet file is damaged or cut off: {}", told(&e)))?;
        let fields = fields::of_file(reader.metadata().file_metadata().schema_descr());
        for group in reader.metadata().row_groups() {
            for column in group.columns() {
                if matches!(column.compression(), Compression::BROTLI(_) | Compression::LZO) {
                    let (path, codec) = (column.column_path().string(), column.compression().to_string());
                    let codec = codec.split('(').next().unwrap_or_default();
                    return Err(format!(
                        "column '{path}' is compressed by {codec}; write the file with snappy, gzip, zstd or lz4"
                    ));
                }
            }
        }
        Ok(Opened { reader, fields })
    }

    pub fn rows(&self) -> u64 {
        self.reader.metadata().row_groups().iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).sum()
    }

    /// The names of the file's columns, or those that the caller has given for them.
    pub fn names(&self, given: Option<&[String]>) -> Result<Vec<String>, String> {
        let own = self.fields.iter().map(|field| match field {
            Ok(field) => field.name.clone(),
            Err((name, _)) => name.clone(),
        });
        let own: Vec<String> = own.collect();
        match given {
            None => Ok(own),
            Some(given) if given.len() == own.len() => Ok(given.to_vec()),
            Some(given) => Err(format!(
                "--columns names {} columns, and the file has {}: {} (- leaves one out)",
                given.len(),
                own.len(),
                own.join(", ")
            )),
        }
    }

    /// CREATE TABLE with a column for each of the file's that is not left out.
    pub fn create(&self, names: &[String], table: &Table) -> Result<String, String> {
        let mut list = Vec::new();
        for (found, name) in self.fields.iter().zip(names).filter(|(_, name)| *name != "-") {
            list.push(field(found)?.column(name)?);
        }
        match list.is_empty() {
            true => Err("there is nothing in the file that columns could be made of".into()),
            false => Ok(format!("CREATE TABLE {} ({}) DEFAULT CHARACTER SET utf8mb4", table.sql(), list.join(", "))),
        }
    }

    /// What goes where.
    pub fn sources(&self, targets: &[Option<usize>], columns: &[Column], table: &Table) -> Result<Vec<Source>, String> {
        let mut sources = Vec::new();
        for (found, target) in self.fields.iter().zip(targets) {
            let Some(target) = *target else { continue };
            let (field, column) = (field(found)?, &columns[target]);
            let bytes = field.fits(column, table)?;
            let mut member = String::new();
            values::push_text(&mut member, &column.name);
            member.push(':');
            let is_document = column.kind == literal::Kind::Json;
            sources.push(Source { field: field.clone(), target, member, bytes, is_document });
        }
        Ok(sources)
    }

    pub fn into_rows(self, sources: Vec<Source>, limit: usize, mut done: Vec<Span>) -> Rows {
        done.sort_by_key(|span| span.begin);
        let mut begin = 0;
        let groups = self.reader.metadata().row_groups().iter().map(|group| {
            let end = begin + u64::try_from(group.num_rows()).unwrap_or(0);
            let group = (begin, end);
            begin = end;
            group
        });
        let groups: Vec<(u64, u64)> = groups.collect();
        Rows { sources, limit, groups, end: begin, at: 0, group: None, done: done.into(), reader: self.reader }
    }
}

fn field(found: &Found) -> Result<&Field, String> {
    found.as_ref().map_err(|(name, why)| format!("column '{name}' of the file: {why}; leave it out with --columns"))
}

/// The time zone of the session that loads: UTC where the file has moments.
pub fn time_zone(sources: &[Source], given: Option<&String>) -> Result<Option<String>, String> {
    let moment = sources.iter().find(|source| source.field.is_utc());
    match (moment, given) {
        (None, given) => Ok(given.cloned()),
        (Some(_), None) => Ok(Some("+00:00".into())),
        (Some(source), Some(_)) => Err(format!(
            "--time-zone: column '{}' of the file has moments in UTC; leave --time-zone out",
            source.field.name
        )),
    }
}

/// The rows of a file, batch by batch.
pub struct Rows {
    reader: SerializedFileReader<File>,
    sources: Vec<Source>,
    /// Most bytes of a row.
    limit: usize,
    /// The rows of each row group: the first, and the one behind the last.
    groups: Vec<(u64, u64)>,
    end: u64,
    /// The next row.
    at: u64,
    group: Option<Group>,
    /// Committed before, in order.
    done: VecDeque<Span>,
}

/// A row group that is being read.
struct Group {
    end: u64,
    columns: Vec<Reading>,
    /// Rows that are read and not taken yet.
    left: u64,
}

enum Reading {
    Flat { reader: Box<ColumnReader>, has_nulls: bool, read: Chunk },
    Nested(Box<ReaderIter>),
}

/// Some rows of a column, of which so many levels and values are taken.
#[derive(Default)]
struct Chunk {
    levels: Vec<i16>,
    values: Values,
    level: usize,
    value: usize,
}

#[derive(Default)]
enum Values {
    #[default]
    None,
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl Rows {
    /// The next rows; `None` at the end of the file.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, String> {
        while let Some(span) = self.done.front().copied() {
            if span.begin > self.at {
                break;
            }
            if span.begin < self.at || span.end > self.end {
                return Err("what was imported before does not fit the rows of the file".into());
            }
            self.done.pop_front();
            self.at = span.end;
            self.group = None;
        }
        let span = Span { begin: self.at, end: self.at, line: self.at + 1, next_line: self.at + 1 };
        let mut batch = Batch { span, bytes: Vec::new(), records: Vec::new() };
        while batch.bytes.len() < BATCH_BYTES && batch.records.len() < BATCH_RECORDS && self.at < self.end {
            if self.done.front().is_some_and(|span| span.begin <= self.at) {
                break;
            }
            self.row(&mut batch).map_err(|e| format!("row {}: {e}", self.at + 1))?;
            self.at += 1;
        }
        batch.span.end = self.at;
        batch.span.next_line = self.at + 1;
        Ok((!batch.records.is_empty()).then_some(batch))
    }

    fn row(&mut self, batch: &mut Batch) -> Result<(), String> {
        if self.group.as_ref().is_none_or(|group| group.end <= self.at) {
            self.group = Some(self.open()?);
        }
        let group = self.group.as_mut().expect("it is open");
        if group.left == 0 {
            let count = CHUNK.min(group.end - self.at);
            for (column, source) in group.columns.iter_mut().zip(&self.sources) {
                column.read(count as usize).map_err(|e| format!("column '{}': {e}", source.field.name))?;
            }
            group.left = count;
        }
        group.left -= 1;
        let mut text = String::from("{");
        let mut fault = None;
        for (at, (column, source)) in group.columns.iter_mut().zip(&self.sources).enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&source.member);
            let before = text.len();
            match column.push(&mut text, source) {
                Ok(()) => {}
                Err(Trouble::File(e)) => return Err(format!("column '{}': {e}", source.field.name)),
                Err(Trouble::Value(reason, bytes)) => {
                    // The row is told with it as it can be written.
                    text.truncate(before);
                    values::push_text(&mut text, &String::from_utf8_lossy(&bytes));
                    fault.get_or_insert(Fault::Value { column: source.target, reason: reason.into() });
                }
            }
        }
        text.push('}');
        if text.len() > self.limit {
            fault = Some(Fault::TooLong);
        }
        let begin = batch.bytes.len();
        batch.bytes.extend_from_slice(text.as_bytes());
        let end = batch.bytes.len();
        batch.records.push(Record { begin, end, line: self.at + 1, fault, cut: false });
        Ok(())
    }

    /// The row group of the next row, up to that row.
    fn open(&self) -> Result<Group, String> {
        let number = self.groups.iter().position(|(_, end)| *end > self.at).expect("the row is in the file");
        let (begin, end) = self.groups[number];
        let group = self.reader.get_row_group(number).map_err(|e| told(&e))?;
        let skipped = usize::try_from(self.at - begin).map_err(|e| e.to_string())?;
        let mut columns = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let about = |e: ParquetError| format!("column '{}': {}", source.field.name, told(&e));
            let reading = match source.field.kind {
                Kind::Nested => {
                    let root = Type::group_type_builder("row").with_fields(vec![source.field.definition.clone()]);
                    let schema = Arc::new(SchemaDescriptor::new(Arc::new(root.build().map_err(about)?)));
                    let mut rows = TreeBuilder::new().as_iter(schema, &*group).map_err(about)?;
                    for _ in 0..skipped {
                        rows.next().transpose().map_err(about)?;
                    }
                    Reading::Nested(Box::new(rows))
                }
                _ => {
                    let mut reader = group.get_column_reader(source.field.leaf).map_err(about)?;
                    skip(&mut reader, skipped).map_err(about)?;
                    Reading::Flat {
                        reader: Box::new(reader),
                        has_nulls: !source.field.required,
                        read: Chunk::default(),
                    }
                }
            };
            columns.push(reading);
        }
        Ok(Group { end, columns, left: 0 })
    }
}

fn skip(reader: &mut ColumnReader, rows: usize) -> Result<(), ParquetError> {
    if rows == 0 {
        return Ok(());
    }
    let skipped = match reader {
        ColumnReader::BoolColumnReader(r) => r.skip_records(rows)?,
        ColumnReader::Int32ColumnReader(r) => r.skip_records(rows)?,
        ColumnReader::Int64ColumnReader(r) => r.skip_records(rows)?,
        ColumnReader::Int96ColumnReader(r) => r.skip_records(rows)?,
        ColumnReader::FloatColumnReader(r) => r.skip_records(rows)?,
        ColumnReader::DoubleColumnReader(r) => r.skip_records(rows)?,
        ColumnReader::ByteArrayColumnReader(r) => r.skip_records(rows)?,
        ColumnReader::FixedLenByteArrayColumnReader(r) => r.skip_records(rows)?,
    };
    match skipped == rows {
        true => Ok(()),
        false => Err(ParquetError::EOF(format!("it has {skipped} rows in a row group, and more are wanted"))),
    }
}

enum Trouble {
    /// The file cannot be read on.
    File(String),
    /// One value, and its bytes.
    Value(String, Vec<u8>),
}

/// Rows of a typed reader: levels where there can be NULL, and values.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: Option<&mut Vec<i16>>,
) -> Result<Vec<T::T>, ParquetError> {
    let mut values = Vec::with_capacity(rows);
    let (read, _, _) = reader.read_records(rows, levels, None, &mut values)?;
    match read == rows {
        true => Ok(values),
        false => Err(ParquetError::EOF("it has fewer rows than its row group".into())),
    }
}

impl Reading {
    fn read(&mut self, rows: usize) -> Result<(), String> {
        let Reading::Flat { reader, has_nulls, read: chunk } = self else { return Ok(()) };
        chunk.levels.clear();
        (chunk.level, chunk.value) = (0, 0);
        let levels = has_nulls.then_some(&mut chunk.levels);
        let values = match reader.as_mut() {
            ColumnReader::BoolColumnReader(r) => read(r, rows, levels).map(Values::Bool),
            ColumnReader::Int32ColumnReader(r) => read(r, rows, levels).map(Values::Int32),
            ColumnReader::Int64ColumnReader(r) => read(r, rows, levels).map(Values::Int64),
            ColumnReader::Int96ColumnReader(r) => read(r, rows, levels).map(Values::Int96),
            ColumnReader::FloatColumnReader(r) => read(r, rows, levels).map(Values::Float),
            ColumnReader::DoubleColumnReader(r) => read(r, rows, levels).map(Values::Double),
            ColumnReader::ByteArrayColumnReader(r) => read(r, rows, levels).map(Values::Bytes),
            ColumnReader::FixedLenByteArrayColumnReader(r) => read(r, rows, levels).map(Values::Fixed),
        };
        chunk.values = values.map_err(|e| told(&e))?;
        Ok(())
    }

    /// Appends the next value.
    fn push(&mut self, out: &mut String, source: &Source) -> Result<(), Trouble> {
        let chunk = match self {
            Reading::Nested(rows) => {
                let row = rows.next().ok_or_else(|| Trouble::File("it has fewer rows than its row group".into()))?;
                let row = row.map_err(|e| Trouble::File(told(&e)))?;
                let value = row.get_column_iter().next().map(|(_, value)| value);
                let value = value.ok_or_else(|| Trouble::File("a row of it has no value".into()))?;
                match value {
                    Value::Null => out.push_str("null"),
                    value => {
                        let mut document = String::new();
                        values::push_nested(&mut document, value);
                        values::push_text(out, &document);
                    }
                }
                return Ok(());
            }
            Reading::Flat { has_nulls, read, .. } => {
                if *has_nulls {
                    let level = read.levels.get(read.level).copied();
                    read.level += 1;
                    match level {
                        Some(0) => {
                            out.push_str("null");
                            return Ok(());
                        }
                        Some(_) => {}
                        None => return Err(Trouble::File("it has fewer values than its row group has rows".into())),
                    }
                }
                read
            }
        };
        let at = chunk.value;
        chunk.value += 1;
        let cell = chunk.values.cell(at).ok_or_else(|| Trouble::File("it has fewer values than it says".into()))?;
        let trouble = |reason| {
            let bytes = if let Cell::Bytes(bytes) = cell { bytes.to_vec() } else { Vec::new() };
            Trouble::Value(reason, bytes)
        };
        let kind = source.field.kind;
        if source.is_document && !matches!(kind, Kind::Text | Kind::Document) {
            let mut document = String::new();
            values::push(&mut document, &cell, kind, source.bytes).map_err(trouble)?;
            values::push_text(out, &document);
            return Ok(());
        }
        values::push(out, &cell, kind, source.bytes).map_err(trouble)
    }
}

impl Values {
    fn cell(&self, at: usize) -> Option<Cell<'_>> {
        Some(match self {
            Values::None => return None,
            Values::Bool(values) => Cell::Bool(*values.get(at)?),
            Values::Int32(values) => Cell::Integer(i64::from(*values.get(at)?)),
            Values::Int64(values) => Cell::Integer(*values.get(at)?),
            Values::Int96(values) => {
                // Nanoseconds of the day in eight bytes, the lower ones first, and a Julian day.
                let [low, high, day] = *values.get(at)?.data() else { return None };
                let nanoseconds = (u64::from(high) << 32 | u64::from(low)).cast_signed();
                Cell::Legacy(nanoseconds, i64::from(day.cast_signed()) - 2_440_588)
            }
            Values::Float(values) => Cell::Float(*values.get(at)?),
            Values::Double(values) => Cell::Double(*values.get(at)?),
            Values::Bytes(values) => Cell::Bytes(values.get(at)?.data()),
            Values::Fixed(values) => Cell::Bytes(values.get(at)?.data()),
        })
    }
}
