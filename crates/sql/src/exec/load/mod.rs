//! LOAD DATA: the rows of a file on their way to [`super::insert`].
//!
//! The file comes in pieces from the sink ([`ResultSink::read_file`]), whoever has it: the client, or a thread of the server. No more than the present line
//! and a piece are in memory, and what a line takes counts as the statement's memory. A field goes straight to its column's value; only user
//! variables and SET evaluate expressions. Then the row takes the way of all inserted rows: numbers, generated columns, checks, keys.
//!
//! A column whose field is missing (warning 1261, in strict mode an error) gets the zero of its type, NULL if that is its default, and not its default: so
//! MySQL does it, whatever its manual says. A NULL for a column that takes none is 1263 in the same way. What a line has too much is 1262, after its row
//! is written. All rows are one statement: an error that is no warning undoes them.

mod fields;

use super::insert::{Insert, assign, now_for};
use super::row::Rows;
use super::{answer::with_answers, scan};
use crate::expr::cast::{INVALID_CHARACTER_STRING, invalid_text};
use crate::expr::{convert_for_column, type_zero};
use crate::logical::{FileRows, FileTarget, fixed_width};
use crate::physical::model::Fill;
use fields::{LineReader, Next, Shape};
use rauk_node::NodeError;
use rauk_types::schema::ColumnDefault;
use rauk_types::{Charset, Collation, DataType, Decimal, MysqlError, TableSchema, TypeKind, Value};

/// ER_WARN_TOO_FEW_RECORDS.
const TOO_FEW: u16 = 1261;
/// ER_WARN_TOO_MANY_RECORDS.
const TOO_MANY: u16 = 1262;
/// ER_WARN_NULL_TO_NOTNULL.
const NULL_TO_NOT_NULL: u16 = 1263;
/// ER_BLOBS_AND_NO_TERMINATED.
const BLOBS_AND_NO_TERMINATED: u16 = 1084;
/// ER_LOAD_FROM_FIXED_SIZE_ROWS_TO_VAR.
const FIXED_TO_VARIABLE: u16 = 1409;

/// Bytes of a line from which on it counts as memory of the statement.
const LARGE_LINE: usize = 1 << 20;

/// Storing a row is as much work as going through so many bytes.
const ROW_WORK: usize = 1024;

/// What a LOAD DATA has done, for its information line.
pub(super) struct Loaded {
    pub records: u64,
}

/// Reads the file to its end and stores its rows.
pub(super) async fn load_rows(insert: &mut Insert<'_>, rows: &FileRows) -> Result<Loaded, MysqlError> {
    let shape = shape_of(rows, insert.schema)?;
    let mut load = Load {
        defaults: defaults(insert)?,
        text: text_type(rows.charset, insert.context.collation),
        reader: LineReader::new(&rows.format, rows.charset, shape, rows.skip),
        memory: 0,
        rows,
    };
    let mut records = 0;
    loop {
        match load.reader.next()? {
            Next::End => return Ok(Loaded { records }),
            Next::More => load.read_more(insert).await?,
            Next::Line => {
                insert.context.budget.work(load.reader.line_bytes() + ROW_WORK)?;
                insert.begin_row();
                let values = match shape {
                    Shape::Fields(_) => load.row(insert)?,
                    Shape::Fixed(_) => load.fixed_row(insert)?,
                };
                let values = load.assigned(insert, values).await?;
                let refused = insert.refused;
                insert.store(values, vec![]).await?;
                records += u64::from(insert.refused == refused);
                while load.reader.finish_line() {
                    load.read_more(insert).await?;
                }
                if load.reader.take_cut() {
                    too_many(insert)?;
                }
            }
        }
    }
}

struct Load<'f> {
    rows: &'f FileRows,
    reader: LineReader<'f>,
    /// The row before its fields are known.
    defaults: Vec<Value>,
    /// Of a field.
    text: DataType,
    /// What was taken for the reader.
    memory: usize,
}

impl Load<'_> {
    /// Waits for more of the file: at least as much as is there of a line. Errors: 1317, 1038, those of the connection.
    async fn read_more(&mut self, insert: &mut Insert<'_>) -> Result<(), MysqlError> {
        let interrupt = insert.txn.options().interrupt.clone();
        let wanted = 2 * self.reader.unread() + 1;
        loop {
            let sink = &mut *insert.sink;
            let data = self.reader.room();
            let read = async { sink.read_file(data).await.map_err(NodeError::Refused) };
            if !interrupt.unless_killed(read).await? {
                self.reader.complete();
                return Ok(());
            }
            let held = self.reader.memory();
            if held > LARGE_LINE.max(self.memory) {
                insert.context.budget.memory.take(held - self.memory)?;
                self.memory = held;
            }
            if self.reader.unread() >= wanted {
                return Ok(());
            }
        }
    }

    /// The row of a line of fields.
    fn row(&self, insert: &mut Insert<'_>) -> Result<Vec<Value>, MysqlError> {
        let mut values = self.defaults.clone();
        let schema = insert.schema;
        for (at, target) in self.rows.targets.iter().enumerate() {
            let field = (at < self.reader.fields()).then(|| self.reader.field(at));
            let Some(field) = field else {
                match target {
                    FileTarget::Column(column) => values[*column] = missing(*column, true, insert)?,
                    FileTarget::Variable(name) => self.set_variable(name, Value::Null, insert)?,
                }
                continue;
            };
            let bytes = self.reader.bytes(field);
            let null = self.reader.is_null(field);
            match target {
                FileTarget::Column(column) if null => values[*column] = null_of(*column, insert)?,
                FileTarget::Column(column) => {
                    values[*column] = match plain_number(bytes, &schema.columns[*column].ty) {
                        Some(value) => value,
                        None => self.converted(bytes, *column, insert)?,
                    }
                }
                FileTarget::Variable(name) if null => self.set_variable(name, Value::Null, insert)?,
                FileTarget::Variable(name) => {
                    let value = value_of(bytes, self.rows.charset)?;
                    self.set_variable(name, value, insert)?;
                }
            }
        }
        Ok(values)
    }

    /// The row of a line whose fields have the widths of their columns. It has no NULLs.
    fn fixed_row(&self, insert: &mut Insert<'_>) -> Result<Vec<Value>, MysqlError> {
        let mut values = self.defaults.clone();
        let mut rest = self.reader.fixed();
        for target in &self.rows.targets {
            let FileTarget::Column(column) = target else { unreachable!("a fixed line has no variables") };
            if rest.is_empty() {
                values[*column] = missing(*column, false, insert)?;
                continue;
            }
            let (bytes, behind) = rest.split_at(rest.len().min(fixed_width(&insert.schema.columns[*column].ty)));
            values[*column] = self.converted(bytes, *column, insert)?;
            rest = behind;
        }
        if !rest.is_empty() {
            too_many(insert)?;
        }
        Ok(values)
    }

    /// A field as its column stores it.
    fn converted(&self, bytes: &[u8], column: usize, insert: &mut Insert<'_>) -> Result<Value, MysqlError> {
        let definition = &insert.schema.columns[column];
        let is_json = definition.ty.kind == TypeKind::Json;
        let (value, text) = match self.rows.charset {
            _ if definition.ty.is_bytes() => (Value::Bytes(bytes.to_vec()), self.text),
            // Import tools name no character set, and a document is UTF-8 in whatever it was dumped.
            Charset::BINARY if is_json => (value_of(bytes, Charset::UTF8MB4)?, DataType::new(TypeKind::LongText)),
            charset => (value_of(bytes, charset)?, self.text),
        };
        let stored = convert_for_column(value, &text, definition, insert.number, insert.context)?;
        super::insert::check_length(&stored, definition, insert.number)?;
        Ok(stored)
    }

    fn sets_variables(&self) -> bool {
        self.rows.targets.iter().any(|target| matches!(target, FileTarget::Variable(_)))
    }

    fn set_variable(&self, name: &str, value: Value, insert: &mut Insert<'_>) -> Result<(), MysqlError> {
        insert.context.set_user_variable(name.to_string(), value, self.text.collation)
    }

    /// The row with the values of SET, each of which reads those before it.
    async fn assigned(&self, insert: &mut Insert<'_>, mut values: Vec<Value>) -> Result<Vec<Value>, MysqlError> {
        if self.rows.set.is_empty() {
            return Ok(values);
        }
        if insert.context.subqueries.is_active() && self.sets_variables() {
            let memory = insert.context.budget.memory.clone();
            insert.context.subqueries.forget_all(&memory);
        }
        let zone = insert.context.time_zone.clone();
        for set in &self.rows.set {
            values[set.column] = match &set.value {
                None => insert.filled(set.column, &Fill::Missing, true)?,
                Some(expr) => {
                    let row = Rows { rows: [&values, &[], &[]], zone: &zone };
                    let value = with_answers(insert.txn, insert.context, |context| expr.eval(&row, context)).await?;
                    let numbered = insert.schema.auto_increment == Some(set.column);
                    match value {
                        Value::Null if numbered => Value::Null,
                        value => {
                            let definition = &insert.schema.columns[set.column];
                            assign(value, &expr.ty, definition, insert.number, insert.plan.ignore, insert.context)?
                        }
                    }
                }
            };
        }
        scan::give_way(insert.txn, insert.context).await?;
        Ok(values)
    }
}

/// What lines consist of. Errors: 1084, 1409.
fn shape_of(rows: &FileRows, schema: &TableSchema) -> Result<Shape, MysqlError> {
    let columns = || {
        rows.targets.iter().filter_map(|target| match target {
            FileTarget::Column(column) => Some(&schema.columns[*column].ty),
            FileTarget::Variable(_) => None,
        })
    };
    if !rows.format.is_fixed() {
        return Ok(Shape::Fields(rows.targets.len()));
    }
    if columns().any(|ty| ty.is_lob()) && !rows.format.lines_end {
        let message = "You can't use fixed rowlength with BLOBs; please use 'fields terminated by'";
        return Err(MysqlError::new(BLOBS_AND_NO_TERMINATED, message));
    }
    if columns().count() < rows.targets.len() {
        let message = "Can't load value from file with fixed size rows to variable";
        return Err(MysqlError::new(FIXED_TO_VARIABLE, message));
    }
    Ok(Shape::Fixed(columns().map(fixed_width).sum()))
}

/// The values of a row before its fields are known. Error 1364: a column that gets no field and has no default.
fn defaults(insert: &mut Insert<'_>) -> Result<Vec<Value>, MysqlError> {
    let plan = insert.plan;
    let mut values = vec![Value::Null; insert.schema.columns.len()];
    for (column, fill) in plan.fill.iter().enumerate() {
        let counts = !plan.columns.contains(&column);
        values[column] = insert.filled(column, fill, counts)?;
    }
    // What reads the row is computed for each.
    insert.keep_computed();
    Ok(values)
}

/// The type that fields are converted from.
fn text_type(charset: Charset, collation: Collation) -> DataType {
    match charset {
        Charset::BINARY => DataType::new(TypeKind::LongBlob),
        _ => {
            let own = collation.charset() == charset;
            let collation = if own { collation } else { Collation::of_charset(charset) };
            DataType { collation, ..DataType::new(TypeKind::LongText) }
        }
    }
}

/// A number that its column takes as it is: what most files are full of.
fn plain_number(bytes: &[u8], ty: &DataType) -> Option<Value> {
    if ty.kind == TypeKind::Decimal {
        let parsed = Decimal::parse_prefix(bytes);
        let whole = parsed.consumed == bytes.len() && parsed.consumed > 0 && !parsed.overflow && !parsed.rounded;
        let fits = parsed.value.scale() <= ty.scale && !(ty.unsigned && parsed.value.is_negative());
        return if whole && fits {
            parsed.value.to_precision(ty.precision, ty.scale).ok().map(Value::Decimal)
        } else {
            None
        };
    }
    if !ty.is_integer() || bytes.is_empty() {
        return None;
    }
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut number = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    let number = if negative { -number } else { number };
    let (low, high) = ty.integer_range()?;
    if !(low..=high).contains(&i128::from(number)) {
        return None;
    }
    Some(if ty.unsigned { Value::UInt(number as u64) } else { Value::Int(number) })
}

/// A field as text. What is no UTF-8 stays bytes, which no text column takes (1366); of another set it is error 1300.
fn value_of(bytes: &[u8], set: Charset) -> Result<Value, MysqlError> {
    if set == Charset::BINARY {
        return Ok(Value::Bytes(bytes.to_vec()));
    }
    let decoded = set.decode(bytes);
    match decoded.malformed {
        None => Ok(Value::Str(decoded.text.into_owned())),
        Some(_) if set == Charset::UTF8MB4 || set == Charset::UTF8MB3 => Ok(Value::Bytes(bytes.to_vec())),
        Some(at) => Err(MysqlError::new(INVALID_CHARACTER_STRING, invalid_text(&bytes[at..], set))),
    }
}

/// The value of a column for which a line has no field: 1261. `nullable`: a line of this kind has NULLs.
fn missing(column: usize, nullable: bool, insert: &mut Insert<'_>) -> Result<Value, MysqlError> {
    let message = format!("Row {} doesn't contain data for all columns", insert.number);
    insert.context.warn_or_fail(TOO_FEW, message)?;
    let definition = &insert.schema.columns[column];
    let null = match &insert.plan.fill[column] {
        Fill::AutoIncrement => true,
        _ => definition.nullable && definition.default == ColumnDefault::Value(Value::Null),
    };
    Ok(match definition.ty.kind {
        _ if null && nullable => Value::Null,
        TypeKind::Timestamp if !definition.nullable => now_for(&definition.ty, insert.context),
        _ => zero_of(&definition.ty),
    })
}

/// The zero of a type; that of an ENUM is its error value, and not its first member, which is its default.
fn zero_of(ty: &DataType) -> Value {
    match ty.kind {
        TypeKind::Enum => Value::UInt(0),
        _ => type_zero(ty),
    }
}

/// NULL for a column; 1263 where it takes none.
fn null_of(column: usize, insert: &mut Insert<'_>) -> Result<Value, MysqlError> {
    let definition = &insert.schema.columns[column];
    if definition.nullable || insert.schema.auto_increment == Some(column) {
        return Ok(Value::Null);
    }
    if definition.ty.kind == TypeKind::Timestamp {
        return Ok(now_for(&definition.ty, insert.context));
    }
    let message = format!(
        "Column set to default value; NULL supplied to NOT NULL column '{}' at row {}",
        definition.name, insert.number
    );
    insert.context.warn_or_fail(NULL_TO_NOT_NULL, message)?;
    Ok(zero_of(&definition.ty))
}

fn too_many(insert: &mut Insert<'_>) -> Result<(), MysqlError> {
    let row = insert.number;
    let message = format!("Row {row} was truncated; it contained more data than there were input columns");
    insert.context.warn_or_fail(TOO_MANY, message)
}
