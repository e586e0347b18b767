//! Records of CSV and TSV to fields.
//!
//! CSV is RFC 4180's: a field in quotes may have delimiters, line ends and doubled quotes in it; a quote inside a field
//! that does not begin with one is a character like others. Text behind a closing quote is an error, which readers that
//! guess take for part of the field. TSV has the escapes of MySQL (`\t`, `\n`, `\\`, `\0`, `\b`, `\r`, `\Z`; `\N` alone
//! is NULL), as `mysql --batch` and SELECT … INTO OUTFILE write them.
//!
//! A field is NULL where it is written without quotes and is the text that stands for NULL (`\N` unless told otherwise).
//! So a text that happens to be the same can be written, in quotes.
//!
//! The library `csv` judges this in tests. It is not used here since it guesses, and reads a file whose quote is not
//! closed into memory whole.

use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv { delimiter: u8 },
    Tsv,
    Jsonl,
}

impl Format {
    pub const CSV: Format = Format::Csv { delimiter: b',' };

    pub fn name(self) -> &'static str {
        match self {
            Format::Csv { .. } => "csv",
            Format::Tsv => "tsv",
            Format::Jsonl => "jsonl",
        }
    }

    /// By its name, or by the ending of a file.
    pub fn by_name(name: &str) -> Option<Format> {
        match name.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::CSV),
            "tsv" | "tab" => Some(Format::Tsv),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            _ => None,
        }
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    Text(Format),
    Parquet,
}

impl FileFormat {
    /// By its name, or by the ending of a file.
    pub fn by_name(name: &str) -> Option<FileFormat> {
        match name.eq_ignore_ascii_case("parquet") {
            true => Some(FileFormat::Parquet),
            false => Format::by_name(name).map(FileFormat::Text),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    pub bytes: Cow<'a, [u8]>,
    pub null: bool,
    pub quoted: bool,
}

/// Text behind a closing quote, or an open one, in the field of this number (from 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadField {
    pub field: usize,
    pub what: &'static str,
}

/// Calls `take` for each field, in order; what it answers with an error ends this.
pub fn each<'a, E: From<BadField>>(
    record: &'a [u8],
    format: Format,
    null: &[u8],
    mut take: impl FnMut(usize, Field<'a>) -> Result<(), E>,
) -> Result<usize, E> {
    let mut rest = record;
    let mut number = 0;
    loop {
        let (field, length) = match format {
            Format::Csv { delimiter } => csv_field(rest, delimiter).map_err(|what| BadField { field: number, what })?,
            Format::Tsv | Format::Jsonl => tsv_field(rest),
        };
        let null = !field.quoted && rest[..length] == *null;
        take(number, Field { null, ..field })?;
        number += 1;
        match rest.get(length) {
            None => return Ok(number),
            Some(_) => rest = &rest[length + 1..],
        }
    }
}

/// The field here, and the bytes that it takes without the delimiter behind it.
fn csv_field(bytes: &[u8], delimiter: u8) -> Result<(Field<'_>, usize), &'static str> {
    if bytes.first() != Some(&b'"') {
        let length = bytes.iter().position(|b| *b == delimiter).unwrap_or(bytes.len());
        return Ok((Field { bytes: Cow::Borrowed(&bytes[..length]), null: false, quoted: false }, length));
    }
    let mut text: Cow<'_, [u8]> = Cow::Borrowed(&[]);
    let mut at = 1;
    loop {
        let Some(distance) = bytes[at..].iter().position(|b| *b == b'"') else {
            return Err("its quote is not closed");
        };
        let doubled = bytes.get(at + distance + 1) == Some(&b'"');
        let part = &bytes[at..at + distance + usize::from(doubled)];
        match doubled || !text.is_empty() {
            false => text = Cow::Borrowed(part),
            true => text.to_mut().extend_from_slice(part),
        }
        at += distance + 1 + usize::from(doubled);
        if !doubled {
            break;
        }
    }
    match bytes.get(at) {
        Some(byte) if *byte != delimiter => Err("there is text behind its closing quote"),
        _ => Ok((Field { bytes: text, null: false, quoted: true }, at)),
    }
}

fn tsv_field(bytes: &[u8]) -> (Field<'_>, usize) {
    let mut at = 0;
    let mut escaped = false;
    while at < bytes.len() && bytes[at] != b'\t' {
        escaped |= bytes[at] == b'\\';
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    let length = at.min(bytes.len());
    let raw = &bytes[..length];
    let text = if escaped { Cow::Owned(unescaped(raw)) } else { Cow::Borrowed(raw) };
    (Field { bytes: text, null: false, quoted: false }, length)
}

fn unescaped(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        text.push(match rest.next() {
            Some(b'0') => 0,
            Some(b'b') => 8,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'Z') => 26,
            Some(other) => other,
            None => b'\\',
        });
    }
    text
}

/// A field of CSV that is read as these bytes, and not as NULL.
pub fn write_csv(out: &mut Vec<u8>, bytes: &[u8], delimiter: u8, null: &[u8]) {
    let special = |b: &u8| *b == delimiter || matches!(*b, b'"' | b'\n' | b'\r');
    // An empty field is quoted, so that a line of one is no empty line.
    if !bytes.is_empty() && bytes != null && !bytes.iter().any(special) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    for part in bytes.split_inclusive(|b| *b == b'"') {
        out.extend_from_slice(part);
        if part.ends_with(b"\"") {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

/// A field of TSV that is read as these bytes, and not as NULL.
pub fn write_tsv(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0 => out.extend_from_slice(b"\\0"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            other => out.push(*other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::prelude::*;

    fn read(record: &[u8], format: Format) -> Result<Vec<Option<Vec<u8>>>, BadField> {
        let mut found = Vec::new();
        each::<BadField>(record, format, b"\\N", |_, field| {
            found.push((!field.null).then(|| field.bytes.into_owned()));
            Ok(())
        })?;
        Ok(found)
    }

    fn texts(record: &str, format: Format) -> Vec<String> {
        let fields = read(record.as_bytes(), format).expect("it can be read");
        fields.into_iter().map(|f| f.map_or("NULL".into(), |b| String::from_utf8(b).expect("UTF-8"))).collect()
    }

    #[test]
    fn fields_of_csv() {
        let csv = |record| texts(record, Format::CSV);
        assert_eq!(csv("a,b"), ["a", "b"]);
        assert_eq!(csv(""), [""]);
        assert_eq!(csv(",a,"), ["", "a", ""]);
        assert_eq!(csv("\"a,\n\"\"b\"\"\",\"\",5\" disk"), ["a,\n\"b\"", "", "5\" disk"]);
        assert_eq!(csv("\\N,\"\\N\""), ["NULL", "\\N"]);
        let bad = |record: &str| read(record.as_bytes(), Format::CSV).expect_err("bad");
        assert_eq!(bad("a,\"b\"c").field, 1);
        assert_eq!(bad("\"b").what, "its quote is not closed");
    }

    #[test]
    fn fields_of_tsv() {
        assert_eq!(texts("a\\tb\tc\\\\\t\\N\t\\\\N\t", Format::Tsv), ["a\tb", "c\\", "NULL", "\\N", ""]);
        assert_eq!(texts("a\\\tb\t\\", Format::Tsv), ["a\tb", "\\"]);
    }

    fn any_bytes(random: &mut StdRng) -> Vec<u8> {
        let alphabet = b"ab,\"\n\r\t\\N0\x00;\xC3\xA9";
        (0..random.random_range(0..8)).map(|_| *alphabet.choose(random).expect("not empty")).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut random = StdRng::seed_from_u64(16);
        for _ in 0..20_000 {
            let fields: Vec<Vec<u8>> = (0..random.random_range(1..5)).map(|_| any_bytes(&mut random)).collect();
            let wanted: Vec<Option<Vec<u8>>> = fields.iter().cloned().map(Some).collect();
            let (mut csv, mut tsv) = (Vec::new(), Vec::new());
            for (at, field) in fields.iter().enumerate() {
                if at > 0 {
                    csv.push(b';');
                    tsv.push(b'\t');
                }
                write_csv(&mut csv, field, b';', b"\\N");
                write_tsv(&mut tsv, field);
            }
            assert_eq!(read(&csv, Format::Csv { delimiter: b';' }), Ok(wanted.clone()));
            assert_eq!(read(&tsv, Format::Tsv), Ok(wanted));
        }
    }

    /// The library reads the same wherever a record is whole by RFC 4180.
    #[test]
    fn the_library_reads_the_same() {
        let mut random = StdRng::seed_from_u64(17);
        let mut same = 0;
        for _ in 0..20_000 {
            let alphabet = b"a,\"\"b ";
            let record: Vec<u8> =
                (0..random.random_range(1..10)).map(|_| *alphabet.choose(&mut random).expect("not empty")).collect();
            let Ok(ours) = read(&record, Format::CSV) else { continue };
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(record.as_slice());
            let theirs = reader.byte_records().next().expect("a record").expect("readable");
            let theirs: Vec<Option<Vec<u8>>> = theirs.iter().map(|f| Some(f.to_vec())).collect();
            assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(&record));
            same += 1;
        }
        assert!(same > 5_000, "{same}");
    }
}
