//! A batch after one of its tables has changed.
//!
//! Keys and values are bytes that mean the same as long as the columns that they are for have kept name, type and nullability; shapes, which name table, version and
//! positions, are made anew. A column added, moved or dropped, or a table emptied by TRUNCATE, so costs a batch nothing but a round trip. What does mean something else now
//! is for the program to build again.

use super::Batch;
use crate::definition::Opened;
use crate::{Error, ErrorKind};
use rauk_types::error::codes;
use rauk_wire::{Shape, Wanted};
use std::sync::Arc;

impl Batch {
    /// Tables whose definitions are those of another life of the server.
    pub(crate) fn is_of(&self, epoch: u64) -> bool {
        self.known.iter().all(|known| known.opened.epoch == epoch)
    }

    pub(crate) fn known(&self) -> &[super::Known] {
        &self.known
    }

    /// The first mistake that was made when it was built, with the table and the generation of its definition then.
    pub(crate) fn mistake(&self) -> Option<(&Error, &crate::Table, u32)> {
        self.mistake.as_ref().map(|mistake| (&mistake.error, &mistake.table, mistake.generation))
    }

    /// Makes it a batch for the newest definitions of its tables.
    pub(crate) fn renew(&mut self) -> Result<(), Error> {
        for (shape, known) in self.shapes.iter_mut().zip(&mut self.known) {
            let generation = known.table.generation();
            let newest = known.table.current();
            if Arc::ptr_eq(&newest, &known.opened) {
                continue;
            }
            *shape = renewed(shape, &known.opened, &newest).ok_or_else(|| changed(&newest))?;
            known.opened = newest;
            known.generation = generation;
        }
        Ok(())
    }
}

fn changed(opened: &Opened) -> Error {
    let message = format!("{}: Table definition has changed, please retry transaction", opened.name);
    Error::new(ErrorKind::SchemaChanged, codes::TABLE_DEF_CHANGED, message)
}

/// The shape in the new definition, if the operations' bytes mean the same there.
fn renewed(shape: &Shape, old: &Opened, new: &Opened) -> Option<Shape> {
    let index = if shape.kind.has_key() {
        let position = old.schema.indexes.iter().position(|index| index.id == shape.index)?;
        new.index_schema(old.same_keys(position, new)?).id
    } else {
        shape.index
    };
    let same = |columns: &[u16]| -> Option<Vec<u16>> {
        columns.iter().map(|column| Some(old.same_column(usize::from(*column), new)? as u16)).collect()
    };
    // Conditions name columns by position within the operations.
    if shape.conditional {
        let all = 0..old.schema.columns.len();
        all.map(|column| old.same_column(column, new).filter(|position| *position == column))
            .collect::<Option<Vec<_>>>()?;
    }
    Some(Shape {
        table: new.schema.id,
        version: new.schema.version,
        index,
        columns: same(&shape.columns)?,
        wanted: match &shape.wanted {
            Wanted::Columns(columns) => Wanted::Columns(same(columns)?),
            other => other.clone(),
        },
        ..shape.clone()
    })
}
