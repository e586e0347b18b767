//! Standard output of the tools, which may be a pipe that nobody reads any more (`rauk status | head -1`).
//!
//! Rust's programs ignore SIGPIPE, and the servers of this one must: a client that goes away ends no server. So a tool that writes to a closed pipe is told so, and `println!` would panic. Here it is an error
//! like others, which takes back whatever the tool has started on its way out of `main`; there, it ends the program without a word and with the code by which shells tell of SIGPIPE.

use std::fmt::Arguments;
use std::io::{Error, ErrorKind, Write};

/// Nobody reads what is written.
pub const CLOSED: &str = "standard output is closed";
/// 128 and the number of SIGPIPE.
pub const CLOSED_CODE: u8 = 141;

/// Writes a line.
pub fn line(text: Arguments<'_>) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(told)
}

/// The error of a tool that could not write.
pub fn told(error: Error) -> String {
    match error.kind() {
        ErrorKind::BrokenPipe => CLOSED.into(),
        _ => format!("cannot write: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closed_pipe_is_no_failure() {
        assert_eq!(told(Error::from(ErrorKind::BrokenPipe)), CLOSED);
        assert!(told(Error::from(ErrorKind::StorageFull)).starts_with("cannot write: "));
    }
}
