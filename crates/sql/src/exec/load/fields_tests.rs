//! Fields and lines of small files, fed in pieces of all sizes.

use super::*;
use crate::parse::ast::FileFormat;
use proptest::prelude::*;

fn format(field_end: &str, enclosed: &str, escaped: &str, line_start: &str, line_end: &str) -> LineFormat {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let format = FileFormat {
        field_end: bytes(field_end),
        enclosed: bytes(enclosed),
        optionally: false,
        escaped: bytes(escaped),
        line_start: bytes(line_start),
        line_end: bytes(line_end),
    };
    LineFormat::new(&format).expect("single characters")
}

fn usual() -> LineFormat {
    format("\t", "", "\\", "", "\n")
}

fn csv() -> LineFormat {
    format(",", "\"", "\\", "", "\r\n")
}

/// Feeds a file in pieces. Lines with their fields, `NULL` for NULL, and `+` behind those that had more; an error's text.
fn read(format: &LineFormat, shape: Shape, skip: u64, file: &[u8], step: usize) -> Vec<String> {
    let mut reader = LineReader::new(format, rauk_types::Charset::UTF8MB4, shape, skip);
    let mut pieces = file.chunks(step);
    let mut feed = |reader: &mut LineReader<'_>| match pieces.next() {
        Some(piece) => reader.room().extend_from_slice(piece),
        None => reader.complete(),
    };
    let mut lines = Vec::new();
    loop {
        match reader.next() {
            Err(error) => {
                lines.push(format!("ERROR {}: {}", error.code, error.message));
                return lines;
            }
            Ok(Next::End) => return lines,
            Ok(Next::More) => feed(&mut reader),
            Ok(Next::Line) => {
                let mut line: Vec<String> = Vec::new();
                for at in 0..reader.fields() {
                    let field = reader.field(at);
                    let text = String::from_utf8_lossy(reader.bytes(field)).into_owned();
                    line.push(if reader.is_null(field) { "NULL".into() } else { format!("[{text}]") });
                }
                if let Shape::Fixed(_) = shape {
                    line.push(format!("[{}]", String::from_utf8_lossy(reader.fixed())));
                }
                while reader.finish_line() {
                    feed(&mut reader);
                }
                let more = if reader.take_cut() { "+" } else { "" };
                lines.push(format!("{}{more}", line.concat()));
            }
        }
    }
}

#[track_caller]
fn expect(format: &LineFormat, fields: usize, file: &[u8], lines: &[&str]) {
    for step in [1, 2, 3, 7, 1000] {
        assert_eq!(read(format, Shape::Fields(fields), 0, file, step), lines, "in pieces of {step}");
    }
}

#[test]
fn fields_and_lines() {
    expect(&usual(), 2, b"a\tb\nc\td\n", &["[a][b]", "[c][d]"]);
    expect(&usual(), 2, b"a\tb\nc\td", &["[a][b]", "[c][d]"]);
    expect(&usual(), 2, b"", &[]);
    expect(&usual(), 2, b"\n\t\n", &["[]", "[][]"]);
    expect(&usual(), 2, b"a\tb\tc\n1\n", &["[a][b]+", "[1]"]);
    // A field's end at the end of a line is no field; of a line that the file's end cuts off nothing is said.
    expect(&usual(), 2, b"a\tb\t\n1\t2\t3", &["[a][b]", "[1][2]"]);
    expect(&usual(), 3, b"a\tb\t", &["[a][b]"]);
}

#[test]
fn escapes() {
    expect(&usual(), 2, b"a\\\tb\\\nc\t\\\\\\n\\0\\Z\\x\n", &["[a\tb\nc][\\\n\0\x1ax]"]);
    expect(&usual(), 3, b"\\N\tx\\N\tN\n", &["NULL[xN][N]"]);
    expect(&usual(), 1, b"a\\", &["[a\\]"]);
    expect(&usual(), 1, "\\ä\\€x\n".as_bytes(), &["[ä€x]"]);
    let none = format(",", "", "", "", "\n");
    expect(&none, 2, b"a\\,b\\n\n", &["[a\\][b\\n]"]);
}

#[test]
fn enclosed_fields() {
    expect(&csv(), 3, b"\"a,b\",\"c\"\"d\",e\"f\r\n", &["[a,b][c\"d][e\"f]"]);
    expect(&csv(), 2, b"\"a\r\nb\",\"\"\r\n", &["[a\r\nb][]"]);
    // Closed by what is followed by a terminator only.
    expect(&csv(), 2, b"\"a\"b\",c\r\n", &["[a\"b][c]"]);
    expect(&csv(), 3, b"NULL,\"NULL\",\"\\N\"\r\n", &["NULL[NULL]NULL"]);
    expect(&csv(), 2, b"\"a,b\r\nc", &["[\"a,b\r\nc]"]);
    expect(&csv(), 1, b"\"a\"", &["[a]"]);
    expect(&csv(), 2, b"\"a\\\"b\",\"\\\\\"\r\n", &["[a\"b][\\]"]);
    let doubling = format(",", "\"", "\"", "", "\n");
    expect(&doubling, 2, b"\"fie\"\"ld1\",\"x\\n\"\n", &["[fie\"ld1][x\\n]"]);
}

#[test]
fn long_terminators() {
    let long = format("||", "", "\\", "", "END\n");
    expect(&long, 3, b"a|b||c||EEND\nx||y||ENEND\n", &["[a|b][c][E]", "[x][y][EN]"]);
    let starting = format(",", "", "\\", "xxx", "\n");
    expect(&starting, 2, b"xxx\"abc\",1\nsomething xxx\"def\",2\n\"ghi\",3\n", &["[\"abc\"][1]", "[\"def\"][2]"]);
    let starting = format(",", "", "\\", "aab", "\n");
    expect(&starting, 1, b"aaab1\n", &["[1]"]);
}

#[test]
fn lines_that_end_as_fields_do() {
    expect(&format(",", "", "\\", "", ","), 2, b"1,2,3,4,5", &["[1][2]", "[3][4]", "[5]"]);
    expect(&format(",", "", "\\", "", ""), 2, b"1,2,3,4\n", &["[1][2]", "[3][4\n]"]);
}

#[test]
fn skipped_lines() {
    let file = b"h1\nh2\na\nb\n";
    for step in [1, 4, 100] {
        assert_eq!(read(&usual(), Shape::Fields(1), 2, file, step), ["[a]", "[b]"]);
        assert!(read(&usual(), Shape::Fields(1), u64::MAX, file, step).is_empty());
    }
    let unended = format(",", "", "\\", "", "");
    assert_eq!(read(&unended, Shape::Fields(2), 1, b"a,b,c,d", 1), ["[c][d]"]);
    let same = format(",", "", "\\", "", ",");
    assert_eq!(read(&same, Shape::Fields(1), u64::MAX, b"a,b", 1), ["[a]", "[b]"]);
}

#[test]
fn fixed_lines() {
    let fixed = format("", "", "\\", "", "\n");
    for step in [1, 3, 100] {
        let lines = read(&fixed, Shape::Fixed(4), 0, b"abcd\nab\nabcdef\n\\nbcd", step);
        assert_eq!(lines, ["[abcd]", "[ab]", "[abcd]+", "[\nbcd]"]);
    }
    let unended = format("", "", "", "", "");
    assert_eq!(read(&unended, Shape::Fixed(3), 0, b"abcdefg", 2), ["[abc]", "[def]", "[g]"]);
}

#[test]
fn broken_characters() {
    let lines = ["ERROR 1300: Invalid utf8mb4 character string: 'ab'"];
    expect(&usual(), 2, b"ab\xFFc\td\n", &lines);
    expect(&usual(), 2, b"ab\x80c\td\n", &lines);
    // The lead of a broken character stays; so does the end that the file cuts off not.
    for step in [1, 100] {
        let lines = read(&usual(), Shape::Fields(2), 0, b"a\xC3b\tc\n", step);
        assert_eq!(lines, ["[a\u{FFFD}b][c]"]);
        assert_eq!(read(&usual(), Shape::Fields(1), 0, b"a\xE2\x82", step), ["[a]"]);
    }
}

proptest! {
    /// Whatever the pieces, the lines are the same; nothing ends in a loop.
    #[test]
    fn pieces_do_not_matter(
        file in proptest::collection::vec(prop_oneof![
            Just(b'\t'), Just(b'\n'), Just(b'\\'), Just(b'"'), Just(b','), Just(b'N'), Just(b'a'), Just(0xC3), Just(0xA4), Just(0xFF)
        ], 0..60),
        step in 1usize..9,
        fields in 1usize..4,
        which in 0usize..6,
    ) {
        let formats = [
            usual(), csv(), format(",", "\"", "\"", "", "\n"), format(",", "\"", "", "a", "\n"),
            format("", "", "\\", "", "\n"), format(",", "", "\\", "", ""),
        ];
        let format = &formats[which];
        let shape = if format.is_fixed() { Shape::Fixed(fields) } else { Shape::Fields(fields) };
        prop_assert_eq!(read(format, shape, 0, &file, step), read(format, shape, 0, &file, 1000));
    }
}
