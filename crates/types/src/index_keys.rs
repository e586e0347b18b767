//! How the keys of any index are made: one a row, or several.

use crate::elements::ElementKeys;
use crate::{IndexSchema, KeyDef, RowView, TableSchema, Value, WordKeys};

/// The keys of one row in one index that has several, in order, each once; used again for row after row.
#[derive(Default)]
pub struct RowKeys {
    bytes: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl RowKeys {
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|&(start, end)| &self.bytes[start..end])
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        self.spans.binary_search_by(|&(start, end)| self.bytes[start..end].cmp(key)).is_ok()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Adds the key that `encode` appends.
    pub(crate) fn push(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        encode(&mut self.bytes);
        self.spans.push((start, self.bytes.len()));
    }

    /// Puts what was added in order, each key once.
    pub(crate) fn sort(&mut self) {
        let RowKeys { bytes, spans } = self;
        spans.sort_unstable_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
        spans.dedup_by(|a, b| bytes[a.0..a.1] == bytes[b.0..b.1]);
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum IndexKeys {
    /// One a row.
    Row(KeyDef),
    /// One for each word of a row.
    Words(WordKeys),
    /// One for each element of an array of a row.
    Elements(ElementKeys),
}

impl IndexKeys {
    pub fn new(table: &TableSchema, index: &IndexSchema) -> IndexKeys {
        if let Some(words) = WordKeys::new(table, index) {
            return IndexKeys::Words(words);
        }
        match ElementKeys::new(table, index) {
            Some(elements) => IndexKeys::Elements(elements),
            None => IndexKeys::Row(table.key_def(index)),
        }
    }

    /// Whether a row has one key.
    pub fn is_single(&self) -> bool {
        matches!(self, IndexKeys::Row(_))
    }

    /// The keys of a row, for an index that has several.
    fn collect(&self, row: &RowView<'_>, keys: &mut RowKeys) {
        match self {
            IndexKeys::Row(def) => {
                keys.clear();
                keys.push(|out| def.encode_row(row, out));
            }
            IndexKeys::Words(def) => def.collect(row, keys),
            IndexKeys::Elements(def) => def.collect(row, keys),
        }
    }

    /// Calls `visit` with every key of a row. `key` is room for one.
    #[inline]
    pub fn for_each(&self, row: &RowView<'_>, key: &mut Vec<u8>, visit: impl FnMut(&[u8])) {
        match self {
            IndexKeys::Row(def) => {
                let mut visit = visit;
                key.clear();
                def.encode_row(row, key);
                visit(key);
            }
            IndexKeys::Words(_) | IndexKeys::Elements(_) => {
                let mut keys = RowKeys::default();
                self.collect(row, &mut keys);
                keys.iter().for_each(visit);
            }
        }
    }

    /// Calls `visit` with every key of a row that another one does not have.
    pub fn for_each_beyond(&self, row: &RowView<'_>, other: &RowView<'_>, visit: impl FnMut(&[u8])) {
        let (mut keys, mut others) = (RowKeys::default(), RowKeys::default());
        self.collect(row, &mut keys);
        self.collect(other, &mut others);
        keys.iter().filter(|key| !others.contains(key)).for_each(visit);
    }

    /// Whether a row has a key. `room`: for a key.
    #[inline]
    pub fn has(&self, row: &RowView<'_>, key: &[u8], room: &mut Vec<u8>) -> bool {
        match self {
            IndexKeys::Row(def) => {
                room.clear();
                def.encode_row(row, room);
                room == key
            }
            IndexKeys::Words(_) | IndexKeys::Elements(_) => self.matches(row, key),
        }
    }

    /// The same without room.
    #[inline]
    pub fn matches(&self, row: &RowView<'_>, key: &[u8]) -> bool {
        match self {
            IndexKeys::Row(def) => def.matches(row, key),
            IndexKeys::Words(_) | IndexKeys::Elements(_) => {
                let mut keys = RowKeys::default();
                self.collect(row, &mut keys);
                keys.contains(key)
            }
        }
    }

    /// Calls `visit` with every key by which a unique index knows a stored row: none where a part is NULL.
    pub fn for_each_unique(&self, row: &RowView<'_>, mut visit: impl FnMut(&[u8])) {
        let null = match self {
            IndexKeys::Row(def) => def.has_null(row),
            IndexKeys::Words(_) => false,
            IndexKeys::Elements(def) => def.has_null(row),
        };
        if !null {
            self.for_each(row, &mut Vec::new(), &mut visit);
        }
    }

    /// Calls `visit` with every key by which a unique index knows a row that is given as one value for each column of
    /// the table, in order.
    pub fn for_each_unique_value(&self, row: &[Value], mut visit: impl FnMut(Vec<u8>)) {
        match self {
            IndexKeys::Row(def) if def.parts.iter().any(|part| part.nullable && row[part.column].is_null()) => {}
            IndexKeys::Row(def) => {
                let mut key = Vec::with_capacity(32);
                def.encode_values(row, &mut key);
                visit(key);
            }
            IndexKeys::Elements(def) if !def.has_null_values(row) => {
                let mut keys = RowKeys::default();
                def.collect_values(row, &mut keys);
                keys.iter().for_each(|key| visit(key.to_vec()));
            }
            IndexKeys::Elements(_) | IndexKeys::Words(_) => {}
        }
    }

    /// Whether two rows have equal values in all columns of the index; `false` may still mean equal keys.
    pub fn same_columns(&self, a: &RowView<'_>, b: &RowView<'_>) -> bool {
        let same = |column: usize| a.get(column) == b.get(column);
        match self {
            IndexKeys::Row(def) => def.parts.iter().all(|part| same(part.column)),
            IndexKeys::Words(def) => def.columns().iter().all(|column| same(*column)),
            IndexKeys::Elements(def) => def.columns().all(same),
        }
    }
}
