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

/// The prepared statements of a connection.
#[derive(Debug, Default)]
pub struct Statements {
    statements: BTreeMap<u32, Statement>,
    /// Long data of all of them in bytes.
    long_bytes: usize,
}

/// Long data of all statements of a connection, in multiples of what one parameter may have.
const LONG_DATA: usize = 4;

impl Statements {
    pub fn insert(&mut self, id: u32, parameters: u16) {
        self.remove(id);
        self.statements.insert(id, Statement { parameters, ..Statement::default() });
    }

    pub fn get_mut(&mut self, id: u32) -> Option<&mut Statement> {
        self.statements.get_mut(&id)
    }

    /// Whether there was such a statement.
    pub fn remove(&mut self, id: u32) -> bool {
        self.reset(id);
        self.statements.remove(&id).is_some()
    }

    pub fn clear(&mut self) {
        *self = Statements::default();
    }

    /// Forgets a statement's long data and cursor; gives the statement if there is one.
    pub fn reset(&mut self, id: u32) -> Option<&mut Statement> {
        let statement = self.statements.get_mut(&id)?;
        self.long_bytes -= statement.long_data.values().map(Vec::len).sum::<usize>();
        statement.long_data.clear();
        statement.long_data_exceeded = false;
        statement.cursor = None;
        Some(statement)
    }

    /// Takes a piece of long data, of which a parameter may have `limit` bytes. What is wrong shows at execution.
    pub fn append_long_data(&mut self, id: u32, parameter: u16, piece: &[u8], limit: usize) {
        let Some(statement) = self.statements.get_mut(&id) else { return };
        if parameter >= statement.parameters {
            return;
        }
        let data = statement.long_data.entry(parameter).or_default();
        if data.len() + piece.len() > limit || self.long_bytes + piece.len() > limit.saturating_mul(LONG_DATA) {
            statement.long_data_exceeded = true;
        } else {
            data.extend_from_slice(piece);
            self.long_bytes += piece.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_data_is_bounded() {
        let mut all = Statements::default();
        all.insert(1, 20);
        all.insert(2, 1);
        all.append_long_data(1, 0, &[0; 60], 100);
        assert!(!all.get_mut(1).unwrap().long_data_exceeded);
        all.append_long_data(1, 0, &[0; 60], 100);
        assert!(all.get_mut(1).unwrap().long_data_exceeded);
        for parameter in 1..20 {
            all.append_long_data(1, parameter, &[0; 100], 100);
        }
        assert!((300..=400).contains(&all.long_bytes));
        // Another statement of the connection has no room either, until the first lets go.
        all.append_long_data(2, 0, &[0; 90], 100);
        assert!(all.get_mut(2).unwrap().long_data_exceeded);
        all.reset(1);
        all.reset(2);
        assert_eq!(all.long_bytes, 0);
        all.append_long_data(2, 0, &[0; 90], 100);
        all.append_long_data(2, 1, &[0; 90], 100);
        all.append_long_data(3, 0, &[0; 90], 100);
        assert_eq!((all.long_bytes, all.get_mut(2).unwrap().long_data.len()), (90, 1));
        assert!(all.remove(2) && !all.remove(2));
        assert_eq!(all.long_bytes, 0);
    }
}
