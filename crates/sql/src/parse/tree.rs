//! A statement's tree with its height: what handles it needs stack in proportion ([`crate::stack`]).

use super::statement::Statement;
use crate::stack;
use std::ops::Deref;

/// A statement that is dropped with room enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// There until it is dropped or taken.
    statement: Option<Statement>,
    /// Levels of its highest expression, at least.
    pub height: usize,
}

impl Tree {
    pub(super) fn new(statement: Statement, height: usize) -> Tree {
        Tree { statement: Some(statement), height }
    }

    /// The statement, for whoever has made room for it.
    pub fn into_statement(mut self) -> Statement {
        self.statement.take().expect("it is taken once")
    }
}

impl Deref for Tree {
    type Target = Statement;

    fn deref(&self) -> &Statement {
        self.statement.as_ref().expect("it is there until it is taken")
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if self.height > stack::SHALLOW {
            stack::with_room(self.height, || drop(self.statement.take()));
        }
    }
}
