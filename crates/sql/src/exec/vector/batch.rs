//! Rows of one table as columns.
//!
//! A [`Column`] is a vector in Arrow's layout (an array of 64-bit or 128-bit values, or offsets and bytes; beside it a bitmap of the values that are not NULL),
//! or it is read from copies of the stored rows, where its type has no vector (DECIMAL of more than 38 digits). Operators use accessors. All of it is
//! room that the next batch uses again.
//!
//! Invariants: every vector has as many values as the batch has rows; the value beside a NULL is zero or empty.

use crate::expr::Columns;
use crate::physical::row::local;
use jiff::tz::TimeZone;
use rauk_node::{ScanBatch, TableHandle};
use rauk_types::{DataType, Date, DateTime, Decimal, Field, FieldKind, RowView, Time, TypeKind, ValueRef};

/// Most rows of a batch.
pub(super) const MOST_ROWS: usize = 1024;
/// A batch is full when its texts and copies take so many bytes.
const MOST_BYTES: usize = 1 << 20;
/// Rows of a first batch: they double.
pub(super) const FIRST_ROWS: usize = 16;

/// Which values are not NULL, as one bit each; bits behind the last value mean nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Validity {
    words: Vec<u64>,
    nulls: usize,
}

impl Validity {
    /// Of so many values, none NULL.
    fn all(&mut self, values: usize) {
        self.words.clear();
        self.words.resize(values.div_ceil(64), u64::MAX);
        self.nulls = 0;
    }

    #[inline]
    fn set_null(&mut self, row: usize) {
        self.words[row / 64] &= !(1 << (row % 64));
        self.nulls += 1;
    }

    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    pub fn has_nulls(&self) -> bool {
        self.nulls > 0
    }

    pub fn nulls(&self) -> usize {
        self.nulls
    }

    /// Where both have a value.
    pub fn and(&self, other: &Validity, values: usize) -> Validity {
        match (self.has_nulls(), other.has_nulls()) {
            (false, _) => other.clone(),
            (_, false) => self.clone(),
            (true, true) => {
                let words: Vec<u64> = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
                let mut both = Validity { words, nulls: 0 };
                both.nulls = (0..values).filter(|&row| !both.is_valid(row)).count();
                both
            }
        }
    }
}

/// The array of a vector.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// `i64`, `u64`, `f64` or packed times, by the vector's kind.
    Words(Vec<u64>),
    Wide(Vec<i128>),
    /// Where each value begins, and where the last one ends.
    Bytes {
        offsets: Vec<u32>,
        bytes: Vec<u8>,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Vector {
    pub kind: FieldKind,
    pub values: Values,
    pub validity: Validity,
}

impl Vector {
    fn new(kind: FieldKind) -> Vector {
        let values = match kind {
            FieldKind::WideDecimal(_) => Values::Wide(Vec::new()),
            FieldKind::Text | FieldKind::Bytes => Values::Bytes { offsets: vec![0], bytes: Vec::new() },
            _ => Values::Words(Vec::new()),
        };
        Vector { kind, values, validity: Validity::default() }
    }

    pub fn of_words(kind: FieldKind, words: Vec<u64>, validity: Validity) -> Vector {
        Vector { kind, values: Values::Words(words), validity }
    }

    /// So many times the same number.
    pub fn of_constant(kind: FieldKind, value: i128, rows: usize) -> Vector {
        let mut validity = Validity::default();
        validity.all(rows);
        let values = match kind {
            FieldKind::WideDecimal(_) => Values::Wide(vec![value; rows]),
            _ => Values::Words(vec![value as u64; rows]),
        };
        Vector { kind, values, validity }
    }

    pub fn len(&self) -> usize {
        match &self.values {
            Values::Words(words) => words.len(),
            Values::Wide(values) => values.len(),
            Values::Bytes { offsets, .. } => offsets.len() - 1,
        }
    }

    /// The 64-bit values; none of other vectors.
    #[inline]
    pub fn words(&self) -> &[u64] {
        match &self.values {
            Values::Words(words) => words,
            _ => &[],
        }
    }

    #[inline]
    pub fn bytes(&self, row: usize) -> &[u8] {
        match &self.values {
            Values::Bytes { offsets, bytes } => &bytes[offsets[row] as usize..offsets[row + 1] as usize],
            _ => &[],
        }
    }

    fn clear(&mut self, rows: usize) {
        match &mut self.values {
            Values::Words(words) => words.clear(),
            Values::Wide(values) => values.clear(),
            Values::Bytes { offsets, bytes } => {
                offsets.truncate(1);
                bytes.clear();
            }
        }
        self.validity.all(rows);
    }

    /// Appends the value of a row of the newest layout.
    #[inline]
    fn push_field(&mut self, number: usize, field: &Field, row: &RowView<'_>) {
        match &mut self.values {
            Values::Words(words) => words.push(field.word(row.image().head)),
            Values::Wide(values) => values.push(field.wide(row.image().head)),
            Values::Bytes { offsets, bytes } => {
                let layout = row.newest_layout().expect("fields are of the newest layout");
                bytes.extend_from_slice(field.bytes(layout, row.image()));
                offsets.push(bytes.len() as u32);
            }
        }
        if field.is_null(row.image().head) {
            self.validity.set_null(number);
        }
    }

    /// Appends a value of the column's type.
    fn push_value(&mut self, number: usize, value: ValueRef<'_>) {
        if value.is_null() {
            self.validity.set_null(number);
        }
        let unscaled = |value: ValueRef<'_>, scale: u8| match value {
            ValueRef::Decimal(value) if value.scale() == scale => value.unscaled_i128(),
            ValueRef::Decimal(value) => value.rescale(scale).ok().and_then(|value| value.unscaled_i128()),
            ValueRef::Null => Some(0),
            _ => None,
        };
        match &mut self.values {
            Values::Bytes { offsets, bytes } => {
                bytes.extend_from_slice(value.as_bytes().unwrap_or_default());
                offsets.push(bytes.len() as u32);
            }
            Values::Wide(values) => {
                let FieldKind::WideDecimal(scale) = self.kind else { unreachable!("only decimals are wide") };
                values.push(unscaled(value, scale).expect("a value is of its column's type"));
            }
            Values::Words(words) => words.push(match (self.kind, value) {
                (_, ValueRef::Null) => 0,
                (FieldKind::Decimal(scale), value) => {
                    unscaled(value, scale).expect("a value is of its column's type") as u64
                }
                (_, ValueRef::Int(value)) => value as u64,
                (_, ValueRef::UInt(value)) => value,
                (_, ValueRef::Double(value)) => value.to_bits(),
                (_, ValueRef::Date(value)) => value.packed().into(),
                (_, ValueRef::Time(value)) => value.micros() as u64,
                (_, ValueRef::DateTime(value)) => value.packed(),
                (_, ValueRef::Timestamp(value)) => value as u64,
                (kind, value) => unreachable!("{value:?} in a column of {kind:?}"),
            }),
        }
    }

    /// The value of a row, as it is stored.
    #[inline]
    pub fn value(&self, row: usize) -> ValueRef<'_> {
        if !self.validity.is_valid(row) {
            return ValueRef::Null;
        }
        match &self.values {
            Values::Words(words) => value_of_word(self.kind, words[row]),
            Values::Wide(values) => match self.kind {
                FieldKind::WideDecimal(scale) => ValueRef::Decimal(Decimal::new(values[row], scale)),
                kind => unreachable!("{kind:?} is not wide"),
            },
            Values::Bytes { .. } => match self.kind {
                FieldKind::Text => ValueRef::Str(std::str::from_utf8(self.bytes(row)).expect("a stored text is UTF-8")),
                _ => ValueRef::Bytes(self.bytes(row)),
            },
        }
    }

    /// The values of selected rows only.
    pub fn taken(&self, rows: &[u32]) -> Vector {
        let values = match &self.values {
            Values::Words(words) => Values::Words(rows.iter().map(|&row| words[row as usize]).collect()),
            Values::Wide(values) => Values::Wide(rows.iter().map(|&row| values[row as usize]).collect()),
            Values::Bytes { .. } => {
                let (mut offsets, mut bytes) = (Vec::with_capacity(rows.len() + 1), Vec::new());
                offsets.push(0);
                for &row in rows {
                    bytes.extend_from_slice(self.bytes(row as usize));
                    offsets.push(bytes.len() as u32);
                }
                Values::Bytes { offsets, bytes }
            }
        };
        let mut validity = Validity::default();
        validity.all(rows.len());
        if self.validity.has_nulls() {
            for (number, &row) in rows.iter().enumerate() {
                if !self.validity.is_valid(row as usize) {
                    validity.set_null(number);
                }
            }
        }
        Vector { kind: self.kind, values, validity }
    }

    /// Bytes of its room.
    fn room(&self) -> usize {
        let values = match &self.values {
            Values::Words(words) => words.capacity() * 8,
            Values::Wide(values) => values.capacity() * 16,
            Values::Bytes { offsets, bytes } => offsets.capacity() * 4 + bytes.capacity(),
        };
        values + self.validity.words.capacity() * 8
    }
}

/// What a word of this kind stands for.
#[inline]
fn value_of_word(kind: FieldKind, word: u64) -> ValueRef<'static> {
    match kind {
        FieldKind::Int => ValueRef::Int(word as i64),
        FieldKind::UInt => ValueRef::UInt(word),
        FieldKind::Double => ValueRef::Double(f64::from_bits(word)),
        FieldKind::Decimal(scale) => ValueRef::Decimal(Decimal::new((word as i64).into(), scale)),
        FieldKind::Date => ValueRef::Date(Date::from_packed(word as u32)),
        FieldKind::Time => ValueRef::Time(Time::clipped(word as i64)),
        FieldKind::DateTime => ValueRef::DateTime(DateTime::from_packed(word)),
        FieldKind::Timestamp => ValueRef::Timestamp(word as i64),
        FieldKind::WideDecimal(_) | FieldKind::Text | FieldKind::Bytes => unreachable!("{kind:?} is no word"),
    }
}

pub(super) enum Column {
    Vector(Field, Vector),
    /// Read from the copies of the rows.
    Stored,
}

pub(super) struct Batch<'t> {
    table: &'t TableHandle,
    /// The table's number in the block.
    number: usize,
    rows: usize,
    /// Positions in the table's schema, ascending.
    positions: &'t [usize],
    columns: Vec<Column>,
    /// Copies of the rows, where a column has no vector.
    copies: Option<ScanBatch>,
}

impl<'t> Batch<'t> {
    pub fn new(table: &'t TableHandle, number: usize, positions: &'t [usize]) -> Batch<'t> {
        let schema = table.schema();
        let layout = schema.layout();
        // What may be long is not copied twice.
        let is_long = |ty: &DataType| ty.is_lob() || ty.kind == TypeKind::Json;
        let columns: Vec<Column> = positions
            .iter()
            .map(|&position| match layout.field(position) {
                Some(field) if !is_long(&schema.columns[position].ty) => {
                    Column::Vector(field, Vector::new(field.kind()))
                }
                _ => Column::Stored,
            })
            .collect();
        let copies = columns.iter().any(|column| matches!(column, Column::Stored)).then(ScanBatch::default);
        Batch { table, number, rows: 0, positions, columns, copies }
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    /// Begins a batch of up to `rows` rows.
    pub fn clear(&mut self, rows: usize) {
        self.rows = 0;
        for column in &mut self.columns {
            if let Column::Vector(_, vector) = column {
                vector.clear(rows);
            }
        }
        if let Some(copies) = &mut self.copies {
            copies.clear();
        }
    }

    /// Takes a row; `true`: no more rows should be taken, because of what they take.
    #[inline]
    pub fn push(&mut self, row: &RowView<'_>) -> bool {
        let number = self.rows;
        let mut bytes = 0;
        if row.newest_layout().is_some() {
            for column in &mut self.columns {
                if let Column::Vector(field, vector) = column {
                    vector.push_field(number, field, row);
                    if let Values::Bytes { bytes: all, .. } = &vector.values {
                        bytes += all.len();
                    }
                }
            }
        } else {
            for (column, &position) in self.columns.iter_mut().zip(self.positions) {
                if let Column::Vector(_, vector) = column {
                    vector.push_value(number, row.get(position));
                    if let Values::Bytes { bytes: all, .. } = &vector.values {
                        bytes += all.len();
                    }
                }
            }
        }
        if let Some(copies) = &mut self.copies {
            copies.push(row.layout(), row);
            bytes += copies.bytes();
        }
        self.rows += 1;
        bytes >= MOST_BYTES
    }

    /// The vector of a column of the table; `None`: it has none.
    pub fn vector(&self, column: usize) -> Option<&Vector> {
        match &self.columns[column] {
            Column::Vector(_, vector) => Some(vector),
            Column::Stored => None,
        }
    }

    /// The number of a column here, by its place in the block; `None`: it is another table's, or has no vector.
    pub fn find(&self, table: usize, column: usize) -> Option<usize> {
        let at = self.positions.binary_search(&column).ok().filter(|_| table == self.number)?;
        self.vector(at).map(|_| at)
    }

    pub fn kind(&self, column: usize) -> FieldKind {
        self.vector(column).expect("only columns with vectors are found").kind
    }

    pub fn row<'b>(&'b self, row: usize, zone: &'b TimeZone) -> BatchRow<'b> {
        BatchRow { batch: self, row, zone }
    }

    /// Bytes of its room.
    pub fn room(&self) -> usize {
        let vectors = self.columns.iter().map(|column| match column {
            Column::Vector(_, vector) => vector.room(),
            Column::Stored => 0,
        });
        vectors.sum::<usize>() + self.copies.as_ref().map_or(0, |copies| copies.bytes() + copies.len() * 12)
    }
}

/// A row of a batch, as the evaluator sees it.
pub(super) struct BatchRow<'b> {
    batch: &'b Batch<'b>,
    row: usize,
    zone: &'b TimeZone,
}

impl Columns for BatchRow<'_> {
    fn column(&self, table: usize, column: usize) -> ValueRef<'_> {
        local(self.stored(table, column), self.zone)
    }

    fn stored(&self, table: usize, column: usize) -> ValueRef<'_> {
        let batch = self.batch;
        assert!(table == batch.number, "a batch is of one table");
        let at = batch.positions.binary_search(&column).expect("the plan lists every column that is read");
        match (&batch.columns[at], &batch.copies) {
            (Column::Vector(_, vector), _) => vector.value(self.row),
            (Column::Stored, Some(copies)) => copies.row(batch.table, self.row).get(column),
            (Column::Stored, None) => unreachable!("rows are copied where a column has no vector"),
        }
    }
}

/// Rows of a batch, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    pub rows: Vec<u32>,
}

impl Selection {
    /// All rows of a batch of this length.
    pub fn all(&mut self, rows: usize) {
        self.rows.clear();
        self.rows.extend(0..rows as u32);
    }

    /// Leaves the rows that pass.
    #[inline]
    pub fn retain(&mut self, test: impl Fn(usize) -> bool) {
        let mut kept = 0;
        for at in 0..self.rows.len() {
            let row = self.rows[at];
            self.rows[kept] = row;
            kept += usize::from(test(row as usize));
        }
        self.rows.truncate(kept);
    }

    /// Leaves the rows that `others` has not.
    pub fn remove(&mut self, others: &Selection) {
        let mut next = others.rows.iter().peekable();
        self.rows.retain(|row| next.next_if_eq(&row).is_none());
    }

    /// Adds rows that are not among these.
    pub fn add(&mut self, others: &Selection) {
        self.rows.extend_from_slice(&others.rows);
        self.rows.sort_unstable();
    }
}
