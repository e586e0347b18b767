//! Where results go: standard output or a pager, and the file of `tee` beside.
//!
//! A result is written as it comes, through a buffer. A pager is started for each statement and waited for. One that ends
//! early (`q` in less) has seen enough: the rest of the result is not shown, and the statement is cancelled. Standard
//! output that nobody reads any more ends the shell ([`crate::out`]).

use crate::out;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::{Child, Command, Stdio};

const BUFFER: usize = 64 * 1024;

#[derive(Default)]
pub struct Output {
    pub pager: Option<String>,
    pub tee: Option<File>,
}

/// Where one result goes.
pub struct Sink<'a> {
    to: Target,
    tee: Option<&'a mut File>,
}

enum Target {
    Standard(io::Stdout),
    Pager(Child),
}

impl Output {
    /// Appends to a file from here on.
    pub fn tee_to(&mut self, name: &str) -> Result<(), String> {
        let file = OpenOptions::new().create(true).append(true).open(name);
        self.tee = Some(file.map_err(|e| format!("cannot write to {name}: {e}"))?);
        Ok(())
    }

    /// For one result; a pager that cannot be started is told and left aside.
    pub fn sink(&mut self) -> BufWriter<Sink<'_>> {
        let pager = self.pager.clone().and_then(|command| {
            let child = Command::new("sh").arg("-c").arg(&command).stdin(Stdio::piped()).spawn();
            child.inspect_err(|e| eprintln!("cannot start the pager '{command}': {e}")).ok()
        });
        let to = match pager {
            Some(child) => Target::Pager(child),
            None => Target::Standard(io::stdout()),
        };
        BufWriter::with_capacity(BUFFER, Sink { to, tee: self.tee.as_mut() })
    }

    /// A line beside results, on standard output.
    pub fn line(&mut self, text: &str) -> Result<(), String> {
        if let Some(file) = &mut self.tee {
            writeln!(file, "{text}").map_err(|e| format!("cannot write to the file of tee: {e}"))?;
        }
        out::line(format_args!("{text}"))
    }

    /// A line on standard error.
    pub fn complain(&mut self, text: &str) {
        if let Some(file) = &mut self.tee {
            let _ = writeln!(file, "{text}");
        }
        let _ = writeln!(io::stderr(), "{text}");
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.to {
            Target::Standard(out) => out.write(bytes)?,
            Target::Pager(child) => child.stdin.as_mut().expect("piped").write(bytes)?,
        };
        if let Some(file) = &mut self.tee {
            file.write_all(&bytes[..written])?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Target::Standard(out) => out.flush(),
            Target::Pager(_) => Ok(()),
        }
    }
}

/// How a result has been taken.
pub enum Taken {
    Whole,
    /// The pager has ended before.
    Enough,
}

/// Ends a result; `written` is how writing it went.
pub fn finish(sink: BufWriter<Sink<'_>>, written: io::Result<()>) -> Result<Taken, String> {
    let (mut sink, written) = match sink.into_inner() {
        Ok(mut sink) => {
            let flushed = sink.flush();
            (sink, written.and(flushed))
        }
        Err(error) => {
            let (error, buffer) = error.into_parts();
            // What could not be written is not tried again.
            let (sink, _) = buffer.into_parts();
            (sink, written.and(Err(error)))
        }
    };
    let Target::Pager(child) = &mut sink.to else { return written.map(|()| Taken::Whole).map_err(out::told) };
    drop(child.stdin.take());
    child.wait().map_err(|e| format!("cannot wait for the pager: {e}"))?;
    match written {
        Ok(()) => Ok(Taken::Whole),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Taken::Enough),
        Err(error) => Err(format!("cannot write: {error}")),
    }
}
