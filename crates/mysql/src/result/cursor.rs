//! The rows of an open cursor (COM_STMT_EXECUTE with a cursor type, COM_STMT_FETCH).
//!
//! The whole result is made at execution and kept in wire form, bounded by a limit: MySQL materialises cursors as well.
use crate::packet::writer::PacketWriter;

#[derive(Debug, Default)]
pub struct CursorRows {
    bytes: Vec<u8>,
    /// Where each row ends in `bytes`.
    ends: Vec<usize>,
    next: usize,
}

impl CursorRows {
    /// Appends a row, written by `write`. `false`: the limit is reached and the row is left out.
    #[must_use]
    pub fn push(&mut self, limit: usize, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.bytes.len();
        write(&mut self.bytes);
        if self.memory() > limit {
            self.bytes.truncate(before);
            return false;
        }
        self.ends.push(self.bytes.len());
        true
    }

    fn memory(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    /// Writes the next row as a packet; `false` when there is none.
    pub fn fetch(&mut self, writer: &mut PacketWriter) -> bool {
        let Some(end) = self.ends.get(self.next) else { return false };
        let start = self.next.checked_sub(1).map_or(0, |i| self.ends[i]);
        writer.packet(&self.bytes[start..*end]);
        self.next += 1;
        true
    }

    pub fn at_end(&self) -> bool {
        self.next == self.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_order_and_end() {
        let mut rows = CursorRows::default();
        for row in [&b"a"[..], b"", b"ccc"] {
            assert!(rows.push(1000, |out| out.extend_from_slice(row)));
        }
        assert!(!rows.push(40, |out| out.resize(out.len() + 100, 0)));
        let mut writer = PacketWriter::default();
        assert!(rows.fetch(&mut writer) && rows.fetch(&mut writer) && !rows.at_end());
        assert!(rows.fetch(&mut writer) && rows.at_end() && !rows.fetch(&mut writer));
        assert_eq!(writer.bytes(), b"\x01\0\0\0a\0\0\0\x01\x03\0\0\x02ccc");
    }
}
