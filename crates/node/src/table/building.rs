//! What a DDL builds on tables that are used meanwhile: every transaction that writes sees to it too.
//!
//! *Unique indexes* that are filled are kept by writers. Their index tables are known by their ids only, and no
//! definition has them. *Foreign keys* whose rows are validated are looked at by writers of the table, and of the tables
//! that they refer to. *Rows that are copied* into another form are noted by whoever writes them. Which these are is said here, for all versions of a table's definition at once; it changes while
//! a DDL has the table alone, so it is the same for the whole of a transaction that uses the table.
//!
//! A writer must not fail because of what nobody has yet. So it leaves a [`Note`], in a table of their own and in its
//! own transaction, and goes on; the DDL looks at what was noted, and fails if it stays so. What is rolled back has
//! noted nothing.

use super::relations::{ParentIndex, Reference};
use super::{TableInfo, UniqueIndex, entries};
use parking_lot::Mutex;
use rauk_types::foreign::ParentKey;
use rauk_types::schema::IndexSchema;
use rauk_types::{ForeignKey, IndexId, KeyDef, TableId, TableSchema};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is being built on a table, or concerns it.
pub struct Building {
    /// The definition that the altered table has meanwhile: what is new, over the columns that its rows have now.
    pub schema: Arc<TableSchema>,
    pub uniques: Vec<UniqueIndex>,
    /// New foreign keys of this table.
    pub references: Vec<NewReference>,
    /// New foreign keys that refer to this table.
    pub referenced: Vec<NewParent>,
    /// Rows are copied into another form: every row that is written is noted.
    pub copied: bool,
    /// What writers have noted: (the note, what is to be said).
    pub notes: Arc<TableInfo>,
    /// It is being undone: nobody needs to see to it any more.
    pub given_up: AtomicBool,
}

/// A foreign key that is being validated, as the table sees it that has it.
pub struct NewReference {
    /// In the definition's `foreign_keys`.
    pub number: usize,
    /// Positions in the table.
    pub columns: Vec<usize>,
}

/// The same, as the table sees it that is referred to.
pub struct NewParent {
    /// In the definition's `foreign_keys`.
    pub number: usize,
    /// Positions in this table.
    pub columns: Vec<usize>,
    /// Encodes their values as the index does by which parents are found.
    pub key: KeyDef,
    /// Encodes them as the index does by which child rows are found.
    pub children: KeyDef,
}

/// Foreign keys that the definition of a build has and the table has not: they come behind the table's own.
pub fn new_keys<'a>(definition: &'a TableSchema, old: &TableSchema) -> impl Iterator<Item = (usize, &'a ForeignKey)> {
    definition.foreign_keys.iter().enumerate().skip(old.foreign_keys.len())
}

impl Building {
    /// At the table that is altered: the unique indexes of `schema` that are in `fresh`, and its new foreign keys.
    /// `info_of` gives the info of an index table.
    pub fn new(
        schema: Arc<TableSchema>,
        old: &TableSchema,
        fresh: &[IndexId],
        notes: Arc<TableInfo>,
        mut info_of: impl FnMut(TableId) -> Arc<TableInfo>,
    ) -> Arc<Building> {
        let of = |index: &IndexSchema| UniqueIndex::new(&schema, index, &mut info_of);
        let uniques = schema.indexes.iter().filter(|i| fresh.contains(&i.id)).filter_map(of).collect();
        let reference = |(number, key): (usize, &ForeignKey)| NewReference { number, columns: key.positions(&schema) };
        let references = new_keys(&schema, old).map(reference).collect();
        let referenced = parents_in(&schema, old, old);
        Arc::new(Building {
            schema,
            uniques,
            references,
            referenced,
            copied: false,
            notes,
            given_up: AtomicBool::new(false),
        })
    }

    /// At a table that new foreign keys of the altered one, `old`, refer to.
    pub fn at_parent(
        schema: &Arc<TableSchema>,
        old: &TableSchema,
        parent: &TableSchema,
        notes: &Arc<TableInfo>,
    ) -> Arc<Building> {
        Arc::new(Building {
            schema: schema.clone(),
            uniques: Vec::new(),
            references: Vec::new(),
            referenced: parents_in(schema, old, parent),
            copied: false,
            notes: notes.clone(),
            given_up: AtomicBool::new(false),
        })
    }

    /// At a table that is copied into another form, or at its leaves. `schema`: the table as it is.
    pub fn of_copy(schema: &Arc<TableSchema>, notes: Arc<TableInfo>) -> Arc<Building> {
        Arc::new(Building {
            schema: schema.clone(),
            uniques: Vec::new(),
            references: Vec::new(),
            referenced: Vec::new(),
            copied: true,
            notes,
            given_up: AtomicBool::new(false),
        })
    }

    /// All tables that it writes to.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableInfo>> {
        self.uniques.iter().map(|u| &u.entries).chain([&self.notes])
    }
}

/// What new foreign keys of `definition` look for in a parent.
fn parents_in(definition: &TableSchema, old: &TableSchema, parent: &TableSchema) -> Vec<NewParent> {
    let of = |(number, foreign): (usize, &ForeignKey)| {
        let index = ParentIndex::of(foreign, definition, parent)?;
        let (ParentKey::Whole(id) | ParentKey::First(id)) = index.key;
        let key = parent.key_def(parent.index(id)?);
        let (_, children) = Reference::of(definition, foreign).index?;
        Some(NewParent { number, columns: index.columns, key, children })
    };
    new_keys(definition, old).filter(|(_, foreign)| foreign.is_parent(parent)).filter_map(of).collect()
}

/// The place of a [`Building`] at its table.
#[derive(Default)]
pub struct BuildingSlot {
    any: AtomicBool,
    what: Mutex<Option<Arc<Building>>>,
}

impl BuildingSlot {
    /// Asked under the metadata lock, the answer stays true while it is held.
    #[inline]
    pub fn is_some(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    pub fn get(&self) -> Option<Arc<Building>> {
        if self.is_some() { self.what.lock().clone() } else { None }
    }

    /// Under the exclusive metadata lock.
    pub fn set(&self, building: Option<Arc<Building>>) {
        let mut what = self.what.lock();
        self.any.store(building.is_some(), Ordering::Release);
        *what = building;
    }
}

/// What a writer tells the DDL: the key of a row in the table of notes.
///
/// ```text
/// kind: u8 | number: u16 | length of the first: u32 | first … | second …                 (big-endian)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note<'a> {
    /// A unique index did not take the row with this primary key, by this one of its keys.
    Refused { index: IndexId, key: &'a [u8], base: &'a [u8] },
    /// By a new foreign key, the row with this primary key had no parent when it was written.
    Orphan { reference: u16, base: &'a [u8] },
    /// Of a new foreign key, a row that may be a parent is gone, or has another key than this one. `children`: the key
    /// of its child rows in their index.
    Left { reference: u16, key: &'a [u8], children: &'a [u8] },
    /// The row with this primary key is, or was, another one than it was when this was noted.
    Changed { base: &'a [u8] },
}

const REFUSED_ROW: u8 = 1;
const ORPHAN: u8 = 2;
const LEFT: u8 = 3;
const CHANGED: u8 = 4;

impl<'a> Note<'a> {
    pub fn encode(&self) -> Vec<u8> {
        let (kind, number, first, second) = match *self {
            Note::Refused { index, key, base } => (REFUSED_ROW, index.0, key, base),
            Note::Orphan { reference, base } => (ORPHAN, reference, &[][..], base),
            Note::Left { reference, key, children } => (LEFT, reference, key, children),
            Note::Changed { base } => (CHANGED, 0, &[][..], base),
        };
        let length = first.len() as u32;
        [&[kind][..], &number.to_be_bytes(), &length.to_be_bytes(), first, second].concat()
    }

    /// # Panics
    /// If these bytes are not of [`Note::encode`]: only that writes them.
    pub fn decode(bytes: &'a [u8]) -> Note<'a> {
        let (head, rest) = bytes.split_at(7);
        let number = u16::from_be_bytes([head[1], head[2]]);
        let length = u32::from_be_bytes(head[3..].try_into().expect("four bytes"));
        let (first, second) = rest.split_at(length as usize);
        match head[0] {
            REFUSED_ROW => Note::Refused { index: IndexId(number), key: first, base: second },
            ORPHAN => Note::Orphan { reference: number, base: second },
            LEFT => Note::Left { reference: number, key: first, children: second },
            CHANGED => Note::Changed { base: second },
            kind => panic!("{kind} is no kind of note"),
        }
    }
}

/// The number that stands for a table of notes in the place of an index.
pub const NOTES: IndexId = IndexId(u16::MAX);

/// The schema of the table of notes of a base table: (note, what is to be said), both as bytes.
pub fn notes_schema(base: &TableSchema, id: TableId) -> TableSchema {
    let index = IndexSchema { id: NOTES, name: String::new(), ..base.primary().clone() };
    entries::schema(base, &index, id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for (key, base) in [(&b""[..], &b"b"[..]), (b"key", b""), (&[0xff; 300], b"base")] {
            for note in [
                Note::Refused { index: IndexId(7), key, base },
                Note::Orphan { reference: 258, base },
                Note::Left { reference: 0, key, children: base },
                Note::Changed { base },
            ] {
                assert_eq!(Note::decode(&note.encode()), note);
            }
        }
    }
}
