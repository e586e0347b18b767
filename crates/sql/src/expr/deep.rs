//! Marks in high expressions: below one, evaluation and everything else that recurses asks for stack ([`crate::stack::grow`]).
//!
//! The binder puts one on top of every [`Deep::LEVELS`] levels. A mark is its expression in every respect but that it is no comparison, literal
//! or what else the planner looks for, which so high a thing never is.

use super::{Expr, ExprKind};
use crate::stack::grow;
use std::fmt;

/// An expression whose tree is high.
pub struct Deep(Box<Expr>);

impl Deep {
    /// Levels below a mark, up to the next.
    pub const LEVELS: usize = 16;

    /// The same expression under a mark.
    pub fn mark(expr: Expr) -> Expr {
        let Expr { ty, nullable, coercibility, .. } = expr;
        Expr { kind: ExprKind::Deep(Deep(Box::new(expr))), ty, nullable, coercibility }
    }

    /// Runs `work` on the expression, with stack for its levels.
    pub fn with<'a, R>(&'a self, work: impl FnOnce(&'a Expr) -> R) -> R {
        grow(|| work(&self.0))
    }

    pub fn with_mut<R>(&mut self, work: impl FnOnce(&mut Expr) -> R) -> R {
        grow(|| work(&mut self.0))
    }
}

impl Drop for Deep {
    fn drop(&mut self) {
        let expr = std::mem::replace(&mut *self.0, Expr::null());
        grow(|| drop(expr));
    }
}

impl Clone for Deep {
    fn clone(&self) -> Self {
        self.with(|expr| Deep(Box::new(expr.clone())))
    }
}

impl PartialEq for Deep {
    fn eq(&self, other: &Self) -> bool {
        self.with(|expr| *expr == *other.0)
    }
}

impl fmt::Debug for Deep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|expr| expr.fmt(f))
    }
}
