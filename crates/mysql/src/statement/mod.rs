//! Prepared statements as the protocol sees them: parameter types, long data, cursors. What a statement means is the session's business.

pub mod parameters;

use crate::result::cursor::CursorRows;
use std::collections::BTreeMap;

/// A parameter's type as the client bound it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    pub wire_type: u8,
    pub unsigned: bool,
}

#[derive(Debug, Default)]
pub struct Statement {
    pub parameters: u16,
    /// As bound by the last execution that named types; empty before.
    pub types: Vec<Bound>,
    /// What COM_STMT_SEND_LONG_DATA brought, by parameter.
    pub long_data: BTreeMap<u16, Vec<u8>>,
    /// More long data came than is allowed; execution fails.
    pub long_data_exceeded: bool,
    pub cursor: Option<CursorRows>,
}

impl Statement {
    /// Forgets long data and cursor: after an execution, and for COM_STMT_RESET.
    pub fn reset(&mut self) {
        self.long_data.clear();
        self.long_data_exceeded = false;
        self.cursor = None;
    }

    /// Takes a piece of long data; `limit` bounds a parameter, and eight times that all of them.
    pub fn append_long_data(&mut self, parameter: u16, piece: &[u8], limit: usize) {
        let total: usize = self.long_data.values().map(Vec::len).sum();
        let data = self.long_data.entry(parameter).or_default();
        if data.len() + piece.len() > limit || total + piece.len() > limit.saturating_mul(8) {
            self.long_data_exceeded = true;
        } else {
            data.extend_from_slice(piece);
        }
    }
}
