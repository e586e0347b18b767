//! Bad lines, written aside.
//!
//! The file is CSV with a header: the file of the line, its number, the reason, and the line as it was. A batch writes
//! its bad lines before it commits. So no bad line of a committed batch can be missing; one of a batch that did not
//! commit can be there, and goes when the import goes on, since it will be read again then.

use super::fields::write_csv;
use super::records::Span;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const HEADER: &[u8] = b"file,line,reason,text\n";

pub struct Rejects {
    path: PathBuf,
    file: File,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    pub line: u64,
    pub reason: String,
    pub text: Vec<u8>,
}

impl Rejects {
    /// `done`: what is committed of each file. A file that exists is kept only where an import goes on.
    pub fn open(path: &Path, done: &HashMap<String, Vec<Span>>) -> Result<Rejects, String> {
        let shown = path.display();
        let about = |e: std::io::Error| format!("--rejects: cannot write {shown}: {e}");
        if path.exists() {
            if done.values().all(Vec::is_empty) {
                return Err(format!("--rejects: {shown} exists; remove it or name another file"));
            }
            keep_committed(path, done)?;
        } else {
            std::fs::write(path, HEADER).map_err(about)?;
        }
        let file = OpenOptions::new().append(true).open(path).map_err(about)?;
        Ok(Rejects { path: path.into(), file })
    }

    pub fn write(&mut self, of: &str, rejected: &[Rejected]) -> Result<(), String> {
        let mut out = Vec::new();
        for bad in rejected {
            for (at, field) in
                [of.as_bytes(), bad.line.to_string().as_bytes(), bad.reason.as_bytes(), &bad.text].iter().enumerate()
            {
                if at > 0 {
                    out.push(b',');
                }
                write_csv(&mut out, field, b',', b"");
            }
            out.push(b'\n');
        }
        self.file.write_all(&out).map_err(|e| format!("--rejects: cannot write {}: {e}", self.path.display()))
    }
}

/// Leaves the lines of committed ranges.
fn keep_committed(path: &Path, done: &HashMap<String, Vec<Span>>) -> Result<(), String> {
    let shown = path.display();
    let about = |e: &dyn std::fmt::Display| {
        format!("--rejects: cannot go on with {shown}: {e}; remove it or name another file")
    };
    let mut aside = path.as_os_str().to_owned();
    aside.push(".new");
    let aside = PathBuf::from(aside);
    // A kill can have cut the last record, which is then one of a batch that did not commit.
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(path).map_err(|e| about(&e))?;
    let mut out = BufWriter::new(File::create(&aside).map_err(|e| about(&e))?);
    out.write_all(HEADER).map_err(|e| about(&e))?;
    let mut record = csv::ByteRecord::new();
    let mut first = true;
    while reader.read_byte_record(&mut record).map_err(|e| about(&e))? {
        if std::mem::take(&mut first) {
            if record.len() != 4 || &record[0] != b"file" || &record[3] != b"text" {
                return Err(about(&"it is no file of rejected lines"));
            }
            continue;
        }
        let of = record.get(0).map(String::from_utf8_lossy).unwrap_or_default();
        let line = record.get(1).and_then(|f| std::str::from_utf8(f).ok()).and_then(|f| f.parse::<u64>().ok());
        let spans = done.get(of.as_ref());
        let committed = line.is_some_and(|line| {
            spans.is_some_and(|spans| spans.iter().any(|s| (s.line..s.next_line.max(s.line + 1)).contains(&line)))
        });
        if committed && record.len() == 4 {
            let mut text = Vec::new();
            for (at, field) in record.iter().enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                write_csv(&mut text, field, b',', b"");
            }
            text.push(b'\n');
            out.write_all(&text).map_err(|e| about(&e))?;
        }
    }
    out.flush().map_err(|e| about(&e))?;
    std::fs::rename(&aside, path).map_err(|e| about(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_committed_ranges_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("bad.csv");
        let none = HashMap::from([("a".to_string(), Vec::new())]);
        let bad = |line| Rejected { line, reason: "so, \"it is\"".into(), text: b"1,\xFF\n2".to_vec() };
        Rejects::open(&path, &none).expect("new").write("a", &[bad(2), bad(7)]).expect("written");
        assert!(Rejects::open(&path, &none).err().expect("it exists").contains("exists"));
        let span = Span { begin: 10, end: 20, line: 2, next_line: 5 };
        let done = HashMap::from([("a".to_string(), vec![span])]);
        Rejects::open(&path, &done).expect("goes on").write("a", &[bad(9)]).expect("written");
        let mut reader = csv::Reader::from_path(&path).expect("readable");
        let lines: Vec<(String, Vec<u8>)> = reader
            .byte_records()
            .map(|r| r.expect("readable"))
            .map(|r| (String::from_utf8_lossy(&r[1]).into_owned(), r[3].to_vec()))
            .collect();
        assert_eq!(lines, [("2".to_string(), b"1,\xFF\n2".to_vec()), ("9".to_string(), b"1,\xFF\n2".to_vec())]);
    }
}
