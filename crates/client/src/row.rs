//! Rows by column name, and keys.
//!
//! A row is the bytes that the node has stored, read by the definition that the request was made with; a [`Row`] shares the answer that it came in, a [`RowRef`] borrows from it.
//! A row of chosen columns has their values one after the other instead.

use crate::definition::Opened;
use crate::{Error, ErrorKind};
use bytes::Bytes;
use rauk_types::error::codes;
use rauk_types::{RowView, ValueRef};
use rauk_wire::read::Reader;
use smallvec::SmallVec;
use std::sync::Arc;

pub use crate::convert::{FromColumn, IntoKey};

/// Positions of chosen columns.
#[derive(Clone)]
pub(crate) enum Columns {
    /// All that the user sees.
    All,
    Shared(Arc<[u16]>),
}

/// A row that was read; shares the answer's bytes.
#[derive(Clone)]
pub struct Row {
    opened: Arc<Opened>,
    columns: Columns,
    /// Version of the layout of a stored row.
    layout: u16,
    bytes: Bytes,
}

/// A row that borrows from the answer that it came in.
#[derive(Clone)]
pub struct RowRef<'a> {
    opened: &'a Opened,
    content: Content<'a>,
}

#[derive(Clone)]
enum Content<'a> {
    Stored(RowView<'a>),
    Values { columns: &'a [u16], values: SmallVec<[ValueRef<'a>; 4]> },
}

impl<'a> RowRef<'a> {
    #[inline]
    pub(crate) fn stored(opened: &'a Opened, layout: u16, bytes: &'a [u8]) -> Result<RowRef<'a>, Error> {
        if usize::from(layout) >= opened.schema.layouts.len() {
            return Err(Error::protocol(format_args!("a row of layout {layout} of table '{}'", opened.name)));
        }
        Ok(RowRef { opened, content: Content::Stored(RowView::new(&opened.schema, layout, bytes)) })
    }

    pub(crate) fn projected(opened: &'a Opened, columns: &'a [u16], bytes: &'a [u8]) -> Result<RowRef<'a>, Error> {
        let mut reader = Reader::new(bytes, "row");
        let values = columns.iter().map(|_| rauk_wire::value::get(&mut reader)).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(RowRef { opened, content: Content::Values { columns, values } })
    }

    pub fn value(&self, column: &str) -> Result<ValueRef<'a>, Error> {
        self.at(self.opened.column(column)?)
    }

    /// Converted to a Rust type: integers, floats, bool, String, `Vec<u8>`, Decimal, Date, Time, DateTime, Option of these.
    pub fn get<T: FromColumn>(&self, column: &str) -> Result<T, Error> {
        let value = self.value(column)?;
        T::from_value(value).ok_or_else(|| does_not_fit::<T>(self.opened, column, value))
    }

    /// Columns in the order of the definition (or of the projection).
    pub fn columns(&self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> + use<'a> {
        let opened = self.opened;
        let count = match &self.content {
            Content::Stored(_) => opened.schema.visible_columns().len(),
            Content::Values { columns, .. } => columns.len(),
        };
        let content = self.content.clone();
        (0..count).map(move |i| match &content {
            Content::Stored(row) => (opened.schema.columns[i].name.as_str(), stored(row, i)),
            Content::Values { columns, values } => {
                (opened.schema.columns[usize::from(columns[i])].name.as_str(), values[i])
            }
        })
    }

    /// The value of the column at this position of the definition.
    #[inline]
    pub(crate) fn at(&self, position: usize) -> Result<ValueRef<'a>, Error> {
        match &self.content {
            Content::Stored(row) => Ok(stored(row, position)),
            Content::Values { columns, values } => {
                match columns.iter().position(|column| usize::from(*column) == position) {
                    Some(i) => Ok(values[i]),
                    None => {
                        let column = &self.opened.schema.columns[position].name;
                        let message = format!("column '{column}' of '{}' was not asked for", self.opened.name);
                        Err(Error::new(ErrorKind::UnknownColumn, codes::BAD_FIELD, message))
                    }
                }
            }
        }
    }
}

/// A value of a row. JSON comes as text, and is a text to programs.
#[inline]
fn stored<'a>(row: &RowView<'a>, position: usize) -> ValueRef<'a> {
    match row.get(position) {
        ValueRef::Json(json) => json.text().map_or(ValueRef::Json(json), ValueRef::Str),
        value => value,
    }
}

#[cold]
fn does_not_fit<T>(opened: &Opened, column: &str, value: ValueRef<'_>) -> Error {
    let wanted = std::any::type_name::<T>();
    let message = format!("{value:?} in column '{column}' of '{}' is not read into a {wanted}", opened.name);
    Error::new(ErrorKind::WrongType, codes::TRUNCATED_WRONG_VALUE_FOR_FIELD, message)
}

impl Row {
    pub(crate) fn stored(opened: Arc<Opened>, layout: u16, bytes: Bytes) -> Result<Row, Error> {
        RowRef::stored(&opened, layout, &bytes)?;
        Ok(Row { opened, columns: Columns::All, layout, bytes })
    }

    /// Of encoded values; all are read once, so that later nothing can be wrong with them.
    pub(crate) fn projected(opened: Arc<Opened>, columns: Columns, bytes: Bytes) -> Result<Row, Error> {
        let row = Row { opened, columns, layout: 0, bytes };
        row.try_view()?;
        Ok(row)
    }

    fn try_view(&self) -> Result<RowRef<'_>, Error> {
        match &self.columns {
            Columns::All => RowRef::stored(&self.opened, self.layout, &self.bytes),
            Columns::Shared(columns) => RowRef::projected(&self.opened, columns, &self.bytes),
        }
    }

    /// The same row, borrowed: for reading many columns of a projection.
    pub fn view(&self) -> RowRef<'_> {
        self.try_view().expect("checked when the row was made")
    }

    pub(crate) fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    pub fn value(&self, column: &str) -> Result<ValueRef<'_>, Error> {
        self.view().value(column)
    }

    /// Converted to a Rust type: integers, floats, bool, String, `Vec<u8>`, Decimal, Date, Time, DateTime, Option of these.
    pub fn get<T: FromColumn>(&self, column: &str) -> Result<T, Error> {
        self.view().get(column)
    }

    /// Columns in the order of the definition (or of the projection).
    pub fn columns(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
        self.view().columns()
    }
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view().fmt(f)
    }
}

impl std::fmt::Debug for RowRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.columns()).finish()
    }
}
