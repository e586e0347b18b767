//! Stack for what nests deeply: statements of thousands of levels, on threads whose stacks are made for a few.
//!
//! Three things recurse over what a client wrote, each in its own way:
//!
//! * The parser and the binder recurse once a level and ask for stack at each ([`grow`]); the parser bounds the levels.
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
/// For a level of the syntax tree: the largest of dropping, cloning and printing it, in a build without optimisation.
const LEVEL: usize = 8 << 10;

/// Runs `work` on more stack when little is left.
#[inline]
pub fn grow<R>(work: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(RED_ZONE, PIECE, work)
}

/// Runs `work` where a tree of `height` levels can be dropped, cloned and printed.
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
