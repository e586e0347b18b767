use super::*;

fn column(name: &str, kind: Kind) -> Column {
    Column { name: name.into(), kind }
}

fn printed(format: Format, header: bool, columns: &[Column], rows: &[&[Option<&str>]]) -> String {
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out, format, header, columns.to_vec());
    for row in rows {
        printer.row(row.iter().map(|c| c.map(str::to_string)).collect()).expect("a Vec takes all");
    }
    printer.end().expect("a Vec takes all");
    String::from_utf8(out).expect("text")
}

fn sample(format: Format, header: bool) -> String {
    let columns = [column("id", Kind::Number), column("name|x", Kind::Text), column("doc", Kind::Json)];
    let rows: &[&[Option<&str>]] = &[
        &[Some("1"), Some("a\"b, c"), Some("{\"k\": [1]}")],
        &[Some("-20.50"), None, None],
        &[None, Some("NULL"), Some("null")],
        &[Some("007"), Some(""), Some("\"x\"")],
        &[Some("4"), Some("t\ta\\\nb|c"), None],
    ];
    printed(format, header, &columns, rows)
}

#[test]
fn tables_align_numbers_right_and_tell_null_from_its_text() {
    assert_eq!(
        sample(Format::Table, true),
        "\
|     id | name|x  | doc        |
|--------|---------|------------|
|      1 | a\"b, c  | {\"k\": [1]} |
| -20.50 | NULL    | NULL       |
|   NULL | 'NULL'  | null       |
|    007 |         | \"x\"        |
|      4 | t    a\\ | NULL       |
|        | b|c     |            |
"
    );
    let quoted =
        printed(Format::Table, false, &[column("a", Kind::Text)], &[&[Some("'NULL'")], &[Some("NULL")], &[None]]);
    assert_eq!(quoted, "| ''NULL'' |\n| 'NULL'   |\n| NULL     |\n");
    assert_eq!(printed(Format::Table, true, &[column("a", Kind::Text)], &[]), "");
}

#[test]
fn widths_are_those_of_a_terminal() {
    let found = printed(
        Format::Table,
        false,
        &[column("a", Kind::Text), column("b", Kind::Number)],
        &[&[Some("日本"), Some("1")], &[Some("e\u{301}x"), Some("22")], &[Some("abcd"), Some("3")]],
    );
    assert_eq!(found, "| 日本 |  1 |\n| e\u{301}x   | 22 |\n| abcd |  3 |\n");
}

/// The first rows decide; later ones are written at once, as they are.
#[test]
fn a_table_holds_no_more_than_its_first_rows() {
    let mut out = Vec::new();
    let mut printer = Printer::new(&mut out, Format::Table, true, vec![column("n", Kind::Text)]);
    for n in 0..999 {
        printer.row(vec![Some(n.to_string())]).expect("written");
    }
    drop(printer);
    assert!(out.is_empty());
    let mut printer =
        Printer::new(&mut out, Format::Table, true, vec![column("n", Kind::Text), column("m", Kind::Text)]);
    for _ in 0..1000 {
        printer.row(vec![Some("123".into()), Some("x".into())]).expect("written");
    }
    printer.row(vec![Some("12345".into()), Some("x".into())]).expect("written");
    let text = String::from_utf8(out).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[2], lines[1002]), (1003, "| 123 | x |", "| 12345 | x |"));
    // One long value holds others for its bytes, not for its width.
    let long = "x".repeat(5 << 20);
    let found = printed(Format::Table, true, &[column("n", Kind::Text)], &[&[Some("a")], &[Some(&long)]]);
    assert_eq!(found.lines().nth(2).map(str::len), Some(512 + 4));
}

#[test]
fn rows_as_lines() {
    let columns = [column("id", Kind::Number), column("name", Kind::Text)];
    assert_eq!(
        printed(Format::Vertical, true, &columns, &[&[Some("1"), Some("a\nb")], &[Some("2"), None]]),
        "\
*************************** 1. row ***************************
  id: 1
name: a
b
*************************** 2. row ***************************
  id: 2
name: NULL
"
    );
}

#[test]
fn formats_for_programs() {
    assert_eq!(
        sample(Format::Csv, true),
        "id,name|x,doc\n1,\"a\"\"b, c\",\"{\"\"k\"\": [1]}\"\n-20.50,,\n,NULL,null\n007,\"\",\"\"\"x\"\"\"\n4,\"t\ta\\\nb|c\",\n"
    );
    assert_eq!(
        sample(Format::Tsv, false),
        "1\ta\"b, c\t{\"k\": [1]}\n-20.50\t\\N\t\\N\n\\N\tNULL\tnull\n007\t\t\"x\"\n4\tt\\ta\\\\\\nb|c\t\\N\n"
    );
    let json = sample(Format::Json, true);
    assert!(json.contains("{\"id\": -20.50, \"name|x\": null, \"doc\": null},"), "{json}");
    assert!(json.contains("{\"id\": \"007\", \"name|x\": \"\", \"doc\": \"x\"}"), "{json}");
    let parsed: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(parsed[0]["doc"]["k"][0], 1);
    assert_eq!(parsed[2]["name|x"], "NULL");
    assert_eq!(parsed[4]["name|x"], "t\ta\\\nb|c");
    assert_eq!(
        sample(Format::Markdown, true).lines().take(4).collect::<Vec<_>>(),
        ["| id | name\\|x | doc |", "|---:|---|---|", "| 1 | a\"b, c | {\"k\": [1]} |", "| -20.50 | NULL | NULL |"]
    );
    assert!(sample(Format::Markdown, true).contains("b\\|c"));
    let none: &[&[Option<&str>]] = &[];
    let columns = [column("a", Kind::Text)];
    assert_eq!(printed(Format::Json, true, &columns, none), "[]\n");
    assert_eq!(printed(Format::Csv, true, &columns, none), "a\n");
    assert_eq!(printed(Format::Tsv, false, &columns, none), "");
}

#[test]
fn objects_have_no_name_twice() {
    let columns = ["id", "id", "id_2", "id"].map(|name| column(name, Kind::Number));
    let found = printed(Format::Json, true, &columns, &[&[Some("1"), Some("2"), Some("3"), Some("4")]]);
    assert_eq!(found, "[\n{\"id\": 1, \"id_3\": 2, \"id_2\": 3, \"id_4\": 4}\n]\n");
}

#[test]
fn cells_read_well() {
    let text = |bytes: &[u8]| cell(Value::Bytes(bytes.to_vec()), Kind::Text, true);
    assert_eq!(text(b"abc"), Some("abc".into()));
    assert_eq!(text(&[0, 255]), Some("0x00FF".into()));
    assert_eq!(text(b"a\x1B[2J"), Some("0x611B5B324A".into()));
    assert_eq!(cell(Value::Bytes(b"A".to_vec()), Kind::Bits, true), Some("0x41".into()));
    assert_eq!(cell(Value::NULL, Kind::Bits, false), None);
    assert_eq!(cell(Value::Bytes(b"a\x1Bb".to_vec()), Kind::Text, false), Some("a\x1Bb".into()));
    assert_eq!(Format::by_name("JSON").map(Format::name), Some("json"));
    assert_eq!(Format::by_name("xml"), None);
}
