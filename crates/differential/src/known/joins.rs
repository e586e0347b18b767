//! Conditions of outer joins that read the blocks around, in words that read the joined table too.
//!
//! A condition that reads nothing else is the same for all rows of its block. MariaDB decides it before it reads them,
//! and takes it for true although it is false or unknown for this row of the block around: `(SELECT b.x FROM a LEFT JOIN
//! b ON o.c) … FROM o` gives a value of `b` where `o.c` is NULL. As both branches of a choice that asks for a column of
//! the joined table, MariaDB evaluates it for each pair of rows.

use super::names::Names;
use super::words::aliases;
use crate::tree::visit::{self, NodeMut, walk_mut};
use crate::tree::{Class, Expr, From, Statement};

pub(super) fn conditions_of_blocks_around(statement: &mut Statement, names: &Names<'_>) -> bool {
    let mut changed = false;
    walk_mut(statement, &mut |node| {
        let NodeMut::From(join @ From::Join { .. }) = node else { return };
        let own = aliases(join);
        let From::Join { kind, left, right, on: Some(on) } = join else { return };
        let joined = match *kind {
            kind if kind.starts_with("LEFT") => right,
            kind if kind.starts_with("RIGHT") => left,
            _ => return,
        };
        if !reads_around(on, &own) {
            return;
        }
        let Some(column) = names.first_column(joined) else { return };
        let condition = std::mem::replace(on, Expr::literal("NULL", Class::Boolean));
        let arguments = vec![column, condition];
        *on = Expr::form("IF(LENGTH({0}) >= 0, {1}, {1})", Class::Boolean, arguments);
        changed = true;
    });
    changed
}

/// It reads columns of the blocks around.
fn reads_around(condition: &Expr, own: &[String]) -> bool {
    let mut found = false;
    visit::expr(&mut condition.clone(), &mut |node| {
        if let NodeMut::Expr(Expr::Column { table, .. }) = node {
            found |= !own.contains(table);
        }
    });
    found
}
