//! Rows that a scan copied out.

use crate::database::TableHandle;
use rauk_types::RowView;

/// Rows that a scan copied out: read them with [`ScanBatch::row`].
#[derive(Debug, Default)]
pub struct ScanBatch {
    bytes: Vec<u8>,
    rows: Vec<(u32, u32, u16)>,
}

impl ScanBatch {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of the rows in it.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn row<'a>(&'a self, table: &'a TableHandle, i: usize) -> RowView<'a> {
        let (start, end, layout) = self.rows[i];
        RowView::new(table.schema(), layout, &self.bytes[start as usize..end as usize])
    }

    /// A row's layout version and bytes.
    pub fn raw(&self, i: usize) -> (u16, &[u8]) {
        let (start, end, layout) = self.rows[i];
        (layout, &self.bytes[start as usize..end as usize])
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
    }

    /// Copies a whole row.
    pub fn push_whole(&mut self, layout: u16, row: &[u8]) {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(row);
        self.rows.push((start, self.bytes.len() as u32, layout));
    }

    /// Copies a row.
    pub fn push(&mut self, layout: u16, row: &RowView<'_>) {
        self.push_without(layout, row, &[]);
    }

    /// Copies a row of which the columns at the positions `unread` are not read.
    pub fn push_without(&mut self, layout: u16, row: &RowView<'_>, unread: &[usize]) {
        let start = self.bytes.len() as u32;
        row.append_without(unread, &mut self.bytes);
        self.rows.push((start, self.bytes.len() as u32, layout));
    }
}
