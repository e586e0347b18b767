//! Stack for what nests deeply: statements of thousands of levels, on threads whose stacks are made for a few.
//!
//! Three things recurse over what a client wrote, each in its own way:
//!
//! * The parser, the binder and the printer recurse once a level and ask for stack at each ([`grow`]); the parser bounds the levels.
//! * The syntax tree is dropped, cloned and compared by derived code, which cannot ask. Whoever owns a tall tree does these under
//!   [`with_room`] or [`Roomy`], which make room for all levels at once. The room is address space; memory is used as far as the stack gets.
//! * Bound expressions are evaluated, visited, dropped and cloned anywhere, also on the thread of whoever holds a partition. They have a mark
//!   every few levels ([`crate::expr::Deep`]), and the mark asks. Ordinary expressions have no mark and pay nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What a level of recursion between two calls of [`grow`] may use. Builds without optimisation use several times as much as others.
const RED_ZONE: usize = 384 << 10;
/// A new piece of stack.
const PIECE: usize = 4 << 20;
/// Trees up to this height need no care.
pub const SHALLOW: usize = 100;
/// For a level of the syntax tree: the largest of dropping, cloning and comparing it, in a build without optimisation.
const LEVEL: usize = 8 << 10;

/// Runs `work` on more stack when little is left.
#[inline]
pub fn grow<R>(work: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(RED_ZONE, PIECE, work)
}

/// Runs `work` where a tree of `height` levels can be dropped, cloned and compared.
pub fn with_room<R>(height: usize, work: impl FnOnce() -> R) -> R {
    if height <= SHALLOW {
        return work();
    }
    let room = RED_ZONE + height * LEVEL;
    stacker::maybe_grow(room, room + PIECE, work)
}

/// A future that is polled with room for a tree of so many levels.
pub struct Roomy<F> {
    pub height: usize,
    pub future: Pin<Box<F>>,
}

impl<F: Future> Future for Roomy<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        with_room(self.height, || self.future.as_mut().poll(context))
    }
}

#[cfg(test)]
mod tests {
    use super::{LEVEL, RED_ZONE};
    use crate::parse::{Mode, parse};

    /// What nests, whatever it is, fits where [`super::with_room`] has made room for its height and no more.
    #[test]
    fn a_level_of_the_tree_fits() {
        let shapes: [(&str, &str, &str, usize); 15] = [
            ("SELECT ", "-", "", 3_000),
            ("SELECT ", "f(1, ", ")", 3_000),
            ("SELECT ", "1 + (", ")", 3_000),
            ("SELECT ", "CASE WHEN 1 THEN ", " END", 3_000),
            ("SELECT ", "a IN (1, ", ")", 3_000),
            ("SELECT ", "a BETWEEN 1 AND (", ")", 3_000),
            ("SELECT ", "(1, ", ")", 3_000),
            ("SELECT ", "CAST(", " AS CHAR)", 3_000),
            ("SELECT ", "DATE_ADD(a, INTERVAL ", " DAY)", 3_000),
            ("SELECT ", "GROUP_CONCAT(1 ORDER BY ", ")", 3_000),
            ("SELECT ", "SUM(1) OVER (ORDER BY ", ")", 3_000),
            ("SELECT ", "(SELECT ", ")", 62),
            ("SELECT ", "EXISTS (SELECT 1 FROM t WHERE ", ")", 62),
            ("", "SELECT 1 FROM (", ") t", 61),
            ("", "WITH c AS (", ") SELECT 1", 61),
        ];
        for (start, open, close, levels) in shapes {
            let middle = if start.is_empty() { "SELECT 1" } else { "1" };
            let text = format!("{start}{}{middle}{}", open.repeat(levels), close.repeat(levels));
            let parsed = parse(&text, Mode::default()).unwrap_or_else(|error| panic!("{open}: {error}"));
            let height = parsed.statement.height;
            let statement = parsed.statement.into_statement();
            let work = move || {
                let copy = statement.clone();
                assert!(copy == statement);
            };
            let thread = std::thread::Builder::new().stack_size(RED_ZONE + height * LEVEL).spawn(work);
            thread.expect("a thread").join().unwrap_or_else(|_| panic!("{open}"));
        }
    }
}
