//! Where a dump goes: standard output, or a new file.
//!
//! A file is written beside its place, as `FILE.part`, and renamed when it is whole and on disk. Whatever ends the dump
//! before that takes the part away, and a process that is killed leaves it under that name. On standard output the last
//! line says whether the dump is whole.

use crate::out;
use std::fs::File;
use std::io::{BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

const BUFFER: usize = 256 * 1024;

pub struct Output {
    to: To,
    bytes: u64,
}

enum To {
    Stdout(BufWriter<Stdout>),
    File(Part),
}

/// A file that is being written.
struct Part {
    /// `None`: it has its name.
    file: Option<BufWriter<File>>,
    part: PathBuf,
    path: PathBuf,
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.file.is_some() {
            // What is not whole is of no use; the error that is told is the first one.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

pub fn refuse_existing(path: &Path) -> Result<(), String> {
    match path.symlink_metadata() {
        Ok(_) => Err(format!("{} exists; remove it or name another file", path.display())),
        Err(_) => Ok(()),
    }
}

fn about(path: &Path) -> impl Fn(std::io::Error) -> String + '_ {
    move |error| format!("cannot write {}: {error}", path.display())
}

impl Output {
    pub fn open(path: Option<&Path>) -> Result<Output, String> {
        let to = match path {
            None => To::Stdout(BufWriter::with_capacity(BUFFER, std::io::stdout())),
            Some(path) => {
                refuse_existing(path)?;
                let mut part = path.as_os_str().to_owned();
                part.push(".part");
                let part = PathBuf::from(part);
                let file = File::create(&part).map_err(about(path))?;
                To::File(Part { file: Some(BufWriter::with_capacity(BUFFER, file)), part, path: path.into() })
            }
        };
        Ok(Output { to, bytes: 0 })
    }

    pub fn put(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.bytes += bytes.len() as u64;
        match &mut self.to {
            To::Stdout(out) => out.write_all(bytes).map_err(out::told),
            To::File(part) => {
                let file = part.file.as_mut().expect("it is being written");
                file.write_all(bytes).map_err(about(&part.path))
            }
        }
    }

    /// The number of bytes. A file has its name from here on.
    pub fn finish(self) -> Result<u64, String> {
        match self.to {
            To::Stdout(mut out) => out.flush().map_err(out::told)?,
            To::File(mut part) => {
                let file = part.file.as_mut().expect("it is being written");
                file.flush().and_then(|()| file.get_ref().sync_all()).map_err(about(&part.path))?;
                std::fs::rename(&part.part, &part.path).map_err(about(&part.path))?;
                part.file = None;
            }
        }
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let place = tempfile::tempdir().expect("a directory");
        let (path, part) = (place.path().join("d.sql"), place.path().join("d.sql.part"));
        let mut output = Output::open(Some(&path)).expect("opened");
        output.put(b"half").expect("written");
        assert!(part.exists() && !path.exists());
        drop(output);
        assert!(!part.exists() && !path.exists());
        let mut output = Output::open(Some(&path)).expect("opened");
        output.put(b"whole").expect("written");
        assert_eq!(output.finish(), Ok(5));
        assert!(!part.exists() && std::fs::read(&path).expect("read") == b"whole");
        assert!(Output::open(Some(&path)).err().expect("refused").contains("exists; remove it"));
    }
}
