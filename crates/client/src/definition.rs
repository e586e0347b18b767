//! A table's definition as this client knows it, with what is derived from it: how keys are encoded and values are checked.
//!
//! Immutable. A table that has changed gets a new one ([`crate::Table`] keeps the newest); whatever was made with an older one (a batch, a row) keeps that.

use crate::channel::places::map::NOWHERE;
use crate::convert::IntoKey;
use crate::{Error, ErrorKind};
use rauk_types::check;
use rauk_types::error::codes;
use rauk_types::key;
use rauk_types::route::Route;
use rauk_types::{Column, DateTime, IndexSchema, KeyDef, KeyPart, TableSchema, TypeKind, ValueRef};
use rauk_wire::definition::Definition;
use smallvec::SmallVec;
use std::sync::Arc;

/// The values of one operation, borrowed.
pub(crate) type Values<'a> = SmallVec<[ValueRef<'a>; 4]>;

#[derive(Debug)]
pub(crate) struct Opened {
    pub schema: Arc<TableSchema>,
    /// Partitions of the node.
    pub partitions: u16,
    /// Incarnation of the server, as the client counts them, that it came from.
    pub epoch: u64,
    /// `database.table`, for errors.
    pub name: String,
    /// One for each of the schema's indexes.
    keys: Vec<KeyDef>,
    placed: Placed,
}

/// Whether the buckets of keys are of interest, and how they are found.
#[derive(Debug)]
enum Placed {
    /// To nobody: the client does not choose between nodes.
    No,
    /// They are not known here.
    Nowhere,
    By(Box<Route>),
}

impl Opened {
    /// Refuses what no node answers: later code relies on it.
    pub fn new(definition: Definition, epoch: u64) -> Result<Opened, Error> {
        let schema = definition.schema;
        let columns = schema.columns.len();
        let whole = !schema.indexes.is_empty()
            && !schema.layouts.is_empty()
            && schema.indexes.iter().all(|index| index.parts.iter().all(|part| part.column < columns))
            && schema.layouts.iter().all(|layout| layout.columns.len() <= rauk_types::schema::MAX_COLUMNS)
            && schema.layout().columns.iter().map(|column| column.0).eq(schema.columns.iter().map(|column| column.id));
        if !whole {
            return Err(Error::protocol("a definition without what every table has"));
        }
        Ok(Opened {
            name: format!("{}.{}", schema.database, schema.name),
            keys: schema.indexes.iter().map(|index| schema.key_def(index)).collect(),
            schema: Arc::new(schema),
            partitions: definition.partitions.max(1),
            epoch,
            placed: Placed::No,
        })
    }

    /// The same for a client that sends operations to the nodes that lead them.
    pub fn placed(mut self) -> Opened {
        self.placed = Route::checked(&self.schema).map_or(Placed::Nowhere, |route| Placed::By(Box::new(route)));
        self
    }

    #[inline]
    pub fn is_placed(&self) -> bool {
        !matches!(self.placed, Placed::No)
    }

    /// The bucket of a row with this primary key, as [`Opened::encode_key`] makes it; [`NOWHERE`] where it does not
    /// matter or is not known.
    #[inline]
    pub fn bucket(&self, key: &[u8]) -> u16 {
        match &self.placed {
            Placed::By(route) => route.bucket_of_key(key, key::hash(key)),
            Placed::No | Placed::Nowhere => NOWHERE,
        }
    }

    /// The bucket of a new row that gets these values in these columns. A row that is given a number, or that brings
    /// one, is nowhere: the node that it goes to counts on from there. `key` is overwritten.
    pub fn bucket_of_values(&self, columns: &[u16], values: &[ValueRef<'_>], key: &mut Vec<u8>) -> u16 {
        if !matches!(self.placed, Placed::By(_)) || self.schema.auto_increment.is_some() {
            return NOWHERE;
        }
        key.clear();
        for part in &self.keys[0].parts {
            match columns.iter().position(|column| usize::from(*column) == part.column) {
                Some(at) => part.encode(values[at], key),
                // The default of its column.
                None => return NOWHERE,
            }
        }
        self.bucket(key)
    }

    /// Whether the AUTO_INCREMENT column is among these.
    pub fn is_counted(&self, columns: &[u16]) -> bool {
        self.schema.auto_increment.is_some_and(|counted| columns.iter().any(|column| usize::from(*column) == counted))
    }

    /// Position of a column that the user sees. Exact spelling is tried first, since it is what programs write.
    #[inline]
    pub fn column(&self, name: &str) -> Result<usize, Error> {
        let columns = self.schema.visible_columns();
        columns
            .iter()
            .position(|column| column.name == name)
            .or_else(|| columns.iter().position(|column| column.name.eq_ignore_ascii_case(name)))
            .ok_or_else(|| Error::unknown_column(&self.name, name))
    }

    /// Position of an index by its name.
    pub fn index(&self, name: &str) -> Result<usize, Error> {
        let indexes = &self.schema.indexes;
        let hidden = usize::from(self.schema.hidden_key);
        indexes
            .iter()
            .skip(hidden)
            .position(|index| index.name.eq_ignore_ascii_case(name))
            .map(|position| position + hidden)
            .ok_or_else(|| Error::unknown_index(&self.name, name))
    }

    /// Position of the primary key's index; an error for tables that have none.
    #[inline]
    pub fn primary(&self) -> Result<usize, Error> {
        if self.schema.hidden_key {
            let message =
                format!("Table '{}' has no primary key: its rows cannot be asked for by key, only scanned", self.name);
            return Err(Error::new(ErrorKind::UnknownIndex, codes::REQUIRES_PRIMARY_KEY, message));
        }
        Ok(0)
    }

    /// Position of an index by whose key one row can be asked for.
    pub fn unique(&self, name: &str) -> Result<usize, Error> {
        let position = self.index(name)?;
        if !self.schema.indexes[position].is_unique() {
            let message = format!("Key '{name}' of table '{}' is not unique: scan it instead", self.name);
            return Err(Error::new(ErrorKind::UnknownIndex, codes::KEY_DOES_NOT_EXITS, message));
        }
        Ok(position)
    }

    pub fn index_schema(&self, position: usize) -> &IndexSchema {
        &self.schema.indexes[position]
    }

    pub fn key_def(&self, position: usize) -> &KeyDef {
        &self.keys[position]
    }

    /// Appends a whole key of an index.
    #[inline]
    pub fn encode_key(&self, index: usize, key: &impl IntoKey, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut values = Values::new();
        key.values(&mut values);
        let parts = &self.keys[index].parts;
        if values.len() != parts.len() {
            return Err(self.wrong_count(index, values.len()));
        }
        for (part, value) in parts.iter().zip(values) {
            part.encode(self.key_value(part, value)?, out);
        }
        Ok(())
    }

    /// Appends the first parts of a key, as many as there are values; gives their number.
    pub fn encode_key_prefix(&self, index: usize, key: &impl IntoKey, out: &mut Vec<u8>) -> Result<usize, Error> {
        let mut values = Values::new();
        key.values(&mut values);
        let parts = &self.keys[index].parts;
        if values.len() > parts.len() {
            return Err(self.wrong_count(index, values.len()));
        }
        for (part, value) in parts.iter().zip(&values) {
            part.encode(self.key_value(part, *value)?, out);
        }
        Ok(values.len())
    }

    #[inline]
    fn key_value<'a>(&self, part: &KeyPart, value: ValueRef<'a>) -> Result<ValueRef<'a>, Error> {
        let value = fit(&self.schema.columns[part.column], value)?;
        match part.prefix {
            Some(prefix) if is_longer(value, prefix as usize) => Err(self.beyond_prefix(part, prefix)),
            _ => Ok(value),
        }
    }

    /// The index cannot tell this value from others that begin like it.
    #[cold]
    fn beyond_prefix(&self, part: &KeyPart, prefix: u32) -> Error {
        let column = &self.schema.columns[part.column].name;
        let message = format!(
            "the index has only the first {prefix} of column '{column}' of table '{}': give no more of it, or scan with a filter",
            self.name
        );
        Error::new(ErrorKind::InvalidValue, codes::WRONG_SUB_KEY, message)
    }

    #[cold]
    fn wrong_count(&self, index: usize, given: usize) -> Error {
        let index = &self.schema.indexes[index];
        let columns: Vec<&str> =
            index.parts.iter().map(|part| self.schema.columns[part.column].name.as_str()).collect();
        let message = format!(
            "key '{}' of table '{}' is ({}), {given} values were given",
            index.name,
            self.name,
            columns.join(", ")
        );
        Error::new(ErrorKind::WrongType, codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, message)
    }

    /// The value as the column's rows have it.
    #[inline]
    pub fn fit<'a>(&self, column: usize, value: ValueRef<'a>) -> Result<ValueRef<'a>, Error> {
        fit(&self.schema.columns[column], value)
    }

    /// Whether it is the AUTO_INCREMENT column.
    pub fn is_numbered(&self, column: usize) -> bool {
        self.schema.auto_increment == Some(column)
    }

    /// Whether the value is a number and the column one of numbers.
    #[inline]
    pub fn adds(&self, column: usize, value: ValueRef<'_>) -> bool {
        let number = matches!(value, ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Double(_) | ValueRef::Decimal(_));
        number && self.schema.columns[column].ty.is_numeric()
    }

    /// Whether keys of an index encoded by this definition are keys of the other's index with the same name; gives that index's position.
    pub fn same_keys(&self, index: usize, other: &Opened) -> Option<usize> {
        let name = &self.schema.indexes[index].name;
        let position = other.schema.indexes.iter().position(|index| index.name == *name)?;
        let same_column = |a: &KeyPart, b: &KeyPart| {
            self.schema.columns[a.column].name == other.schema.columns[b.column].name
                && KeyPart { column: b.column, ..a.clone() } == *b
        };
        let (ours, theirs) = (&self.keys[index].parts, &other.keys[position].parts);
        (self.schema.indexes[index].kind == other.schema.indexes[position].kind
            && ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(a, b)| same_column(a, b)))
        .then_some(position)
    }

    /// The position in the other definition of a column that has there the same name, type and nullability, and is no other column that took over the name.
    pub fn same_column(&self, column: usize, other: &Opened) -> Option<usize> {
        let ours = self.schema.columns.get(column)?;
        let position = other.schema.columns.iter().position(|theirs| theirs.name == ours.name)?;
        let theirs = &other.schema.columns[position];
        let same_table = self.schema.id == other.schema.id && self.epoch == other.epoch;
        (theirs.ty == ours.ty && theirs.nullable == ours.nullable && (!same_table || theirs.id == ours.id))
            .then_some(position)
    }
}

/// Whether a value has more characters (text) or bytes than these.
fn is_longer(value: ValueRef<'_>, prefix: usize) -> bool {
    match value {
        ValueRef::Str(text) => text.len() > prefix && text.chars().nth(prefix).is_some(),
        ValueRef::Bytes(bytes) => bytes.len() > prefix,
        _ => false,
    }
}

/// The value in the variant that the column's rows have. A [`DateTime`] in a TIMESTAMP column is UTC.
#[inline]
fn fit<'a>(column: &Column, value: ValueRef<'a>) -> Result<ValueRef<'a>, Error> {
    let value = match value {
        ValueRef::DateTime(moment) if column.ty.kind == TypeKind::Timestamp => timestamp(column, moment)?,
        other => other,
    };
    check::column_value(column, value).map_err(Error::from)
}

fn timestamp<'a>(column: &Column, moment: DateTime) -> Result<ValueRef<'a>, Error> {
    if moment.is_zero() {
        return Ok(ValueRef::Timestamp(0));
    }
    moment.to_unix_micros_utc().map(ValueRef::Timestamp).ok_or_else(|| {
        let message = format!("Incorrect datetime value: '{moment}' for column '{}' at row 1", column.name);
        Error::new(ErrorKind::InvalidValue, codes::TRUNCATED_WRONG_VALUE, message)
    })
}
