//! How much of the thread's stack a recursion has used.
//!
//! What nests without bound in a statement recurses here: the parser and the binder. Both measure, as MySQL does, and fail with its error 1436
//! long before the stack of a worker thread (2 MiB) ends. Builds without optimisation use several times as much
//! stack as others, which a count of levels would not notice.

use rauk_types::MysqlError;

/// Bytes that one recursion may use.
pub const LIMIT: usize = 1 << 20;

/// ER_STACK_OVERRUN_NEED_MORE.
const STACK_OVERRUN: u16 = 1436;

/// Where a recursion began.
#[derive(Clone, Copy, Debug)]
pub struct Stack {
    base: usize,
}

#[inline(never)]
fn here() -> usize {
    let marker = 0u8;
    std::hint::black_box(&raw const marker) as usize
}

impl Stack {
    /// The recursion begins in the caller.
    pub fn begin() -> Stack {
        Stack { base: here() }
    }

    /// Error 1436 when more than [`LIMIT`] bytes were used since.
    #[inline]
    pub fn check(&self) -> Result<(), MysqlError> {
        let used = self.base.abs_diff(here());
        if used <= LIMIT { Ok(()) } else { Err(overrun(used)) }
    }
}

#[cold]
fn overrun(used: usize) -> MysqlError {
    MysqlError::new(
        STACK_OVERRUN,
        format!(
            "Thread stack overrun:  {used} bytes used of a {LIMIT} byte stack, and 0 bytes needed.  The statement nests too deeply: split it"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recurse(stack: &Stack, level: usize) -> usize {
        let filler = std::hint::black_box([level as u8; 1000]);
        match stack.check() {
            Ok(()) => {
                let deepest = recurse(stack, level + 1);
                // Keeps the frame alive until the call is back.
                std::hint::black_box(filler);
                deepest
            }
            Err(error) => {
                assert_eq!(error.code, 1436);
                level
            }
        }
    }

    #[test]
    fn a_recursion_without_end_ends() {
        let levels = recurse(&Stack::begin(), 0);
        assert!((100..=LIMIT / 1000).contains(&levels), "{levels}");
    }
}
