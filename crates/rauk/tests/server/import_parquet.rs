//! `rauk import FILE.parquet` on a real server: types and compressions, tables made for files, nested columns, wrong
//! files, bad rows, kills in the middle, and memory.

use crate::common::{Rauk, number, run};
use crate::import::{Place, execute, imported, refused, tool};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Values of a column of one row group; `None` is NULL.
enum Values {
    Bool(Vec<Option<bool>>),
    I32(Vec<Option<i32>>),
    I64(Vec<Option<i64>>),
    I96(Vec<Option<[u32; 3]>>),
    F32(Vec<Option<f32>>),
    F64(Vec<Option<f64>>),
    Bytes(Vec<Option<Vec<u8>>>),
    Fixed(Vec<Option<Vec<u8>>>),
    /// Values with their levels: of a leaf inside of a list or a struct.
    Nested(Vec<i64>, Vec<i16>, Vec<i16>),
    Texts(Vec<&'static str>, Vec<i16>, Vec<i16>),
}

fn texts(values: &[Option<&str>]) -> Values {
    Values::Bytes(values.iter().map(|value| value.map(|text| text.as_bytes().to_vec())).collect())
}

fn put<T: DataType>(column: &mut SerializedColumnWriter<'_>, values: Vec<Option<T::T>>) {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&values, Some(&levels), None).expect("written");
}

fn write(path: &Path, schema: &str, compression: Compression, groups: Vec<Vec<Values>>) {
    let schema = Arc::new(parse_message_type(schema).expect("a schema"));
    let properties = WriterProperties::builder().set_compression(compression).set_data_page_row_count_limit(700);
    let properties = Arc::new(properties.set_write_batch_size(100).build());
    let mut writer =
        SerializedFileWriter::new(File::create(path).expect("a file"), schema, properties).expect("a writer");
    for group in groups {
        let mut rows = writer.next_row_group().expect("a row group");
        for values in group {
            let mut column = rows.next_column().expect("no error").expect("a column");
            match values {
                Values::Bool(values) => put::<BoolType>(&mut column, values),
                Values::I32(values) => put::<Int32Type>(&mut column, values),
                Values::I64(values) => put::<Int64Type>(&mut column, values),
                Values::I96(values) => {
                    let made = |data: [u32; 3]| {
                        let mut value = Int96::new();
                        value.set_data(data[0], data[1], data[2]);
                        value
                    };
                    put::<Int96Type>(&mut column, values.into_iter().map(|value| value.map(made)).collect());
                }
                Values::F32(values) => put::<FloatType>(&mut column, values),
                Values::F64(values) => put::<DoubleType>(&mut column, values),
                Values::Bytes(values) => {
                    put::<ByteArrayType>(&mut column, values.into_iter().map(|v| v.map(ByteArray::from)).collect());
                }
                Values::Fixed(values) => {
                    let made = |value: Vec<u8>| FixedLenByteArray::from(ByteArray::from(value));
                    put::<FixedLenByteArrayType>(&mut column, values.into_iter().map(|v| v.map(made)).collect());
                }
                Values::Nested(values, definitions, repetitions) => {
                    let typed = column.typed::<Int64Type>();
                    typed.write_batch(&values, Some(&definitions), Some(&repetitions)).expect("written");
                }
                Values::Texts(values, definitions, repetitions) => {
                    let values: Vec<ByteArray> = values.into_iter().map(ByteArray::from).collect();
                    let typed = column.typed::<ByteArrayType>();
                    typed.write_batch(&values, Some(&definitions), Some(&repetitions)).expect("written");
                }
            }
            column.close().expect("closed");
        }
        rows.close().expect("closed");
    }
    writer.close().expect("closed");
}

const KINDS: &str = "message kinds {
    optional boolean yes; optional int32 ti (INTEGER(8,true)); optional int32 u32 (INTEGER(32,false));
    optional int64 i64; optional int64 u64 (INTEGER(64,false)); optional float f; optional double d;
    optional int32 d9 (DECIMAL(9,2)); optional int64 d18 (DECIMAL(18,6)); optional fixed_len_byte_array(16) d38 (DECIMAL(38,10));
    optional binary dv (DECIMAL(30,3)); optional binary t (STRING); optional binary old (UTF8); optional binary j (JSON);
    optional binary b; optional fixed_len_byte_array(4) fb; optional fixed_len_byte_array(16) u (UUID);
    optional int32 day (DATE); optional int32 tm (TIME(MILLIS,false)); optional int64 tu (TIME(MICROS,true));
    optional int64 tn (TIME(NANOS,false)); optional int64 sm (TIMESTAMP(MILLIS,true)); optional int64 su (TIMESTAMP(MICROS,false));
    optional int64 sn (TIMESTAMP(NANOS,true)); optional int96 legacy; optional int32 year (INTEGER(16,true)); optional int64 bits;
}";

fn kinds() -> Vec<Values> {
    // 2026-11-29 is day 20786.
    let moment = 20_786 * 86_400_000_000_i64 + 3_723_000_004;
    vec![
        Values::Bool(vec![Some(true), None, Some(false)]),
        Values::I32(vec![Some(-128), None, Some(127)]),
        Values::I32(vec![Some(-1), None, Some(0)]),
        Values::I64(vec![Some(i64::MIN), None, Some(i64::MAX)]),
        Values::I64(vec![Some(-1), None, Some(1)]),
        Values::F32(vec![Some(0.1), None, Some(f32::MAX)]),
        Values::F64(vec![Some(-1e300), None, Some(0.1)]),
        Values::I32(vec![Some(-1234), None, Some(5)]),
        Values::I64(vec![Some(123_456_789_012), None, Some(-1)]),
        Values::Fixed(vec![Some((-12_345_678_901_234_567_890_i128).to_be_bytes().to_vec()), None, Some(vec![0; 16])]),
        Values::Bytes(vec![Some(vec![0x04, 0xD2]), None, Some(vec![0xFF])]),
        texts(&[Some("it's \"ä\" \\ 😀\n"), None, Some("")]),
        texts(&[Some("NULL"), None, Some("\\N")]),
        texts(&[Some("{\"a\": [1, null]}"), None, Some("null")]),
        Values::Bytes(vec![Some(vec![0, 255, 39]), None, Some(vec![])]),
        Values::Fixed(vec![Some(vec![1, 2, 3, 0]), None, Some(vec![0; 4])]),
        Values::Fixed(vec![Some((0..16).collect()), None, Some(vec![0; 16])]),
        Values::I32(vec![Some(20_786), None, Some(-719_162)]),
        Values::I32(vec![Some(86_399_999), None, Some(0)]),
        Values::I64(vec![Some(3_723_000_004), None, Some(0)]),
        Values::I64(vec![Some(3_723_000_004_000), None, Some(0)]),
        Values::I64(vec![Some(moment / 1000), None, Some(1_000)]),
        Values::I64(vec![Some(moment), None, Some(-1)]),
        Values::I64(vec![Some(moment * 1000), None, Some(1_000_000_000)]),
        Values::I96(vec![Some([1_000_000_000, 0, 2_440_588 + 20_786]), None, Some([0, 0, 2_440_589])]),
        Values::I32(vec![Some(2026), None, Some(1999)]),
        Values::I64(vec![Some(257), None, Some(0)]),
    ]
}

const TABLE: &str = "CREATE TABLE kinds (yes BOOLEAN, ti TINYINT, u32 INT UNSIGNED, i64 BIGINT, u64 BIGINT UNSIGNED, f FLOAT, d DOUBLE, \
    d9 DECIMAL(9,2), d18 DECIMAL(18,6), d38 DECIMAL(38,10), dv DECIMAL(30,3), t TEXT, old VARCHAR(20), j JSON, b BLOB, fb BINARY(4), \
    u CHAR(36), day DATE, tm TIME(3), tu TIME(6), tn TIME(6), sm TIMESTAMP(3) NULL, su DATETIME(6), sn DATETIME(6), legacy DATETIME(6), \
    year YEAR, bits BIT(9))";

const SHOWN: &str = "SELECT yes, ti, u32, i64, u64, f * 1e0, d, d9, d18, d38, dv, t, old, j, HEX(b), HEX(fb), u, day, tm, tu, tn, sm, su, sn, \
    legacy, year, bits + 0 FROM kinds ORDER BY yes DESC";

const ROWS: [&str; 3] = [
    "1 | -128 | 4294967295 | -9223372036854775808 | 18446744073709551615 | 0.10000000149011612 | -1e300 | -12.34 | 123456.789012 | \
     -1234567890.1234567890 | 1.234 | it's \"ä\" \\ 😀\n | NULL | {\"a\": [1, null]} | 00FF27 | 01020300 | \
     00010203-0405-0607-0809-0a0b0c0d0e0f | 2026-11-29 | 23:59:59.999 | 01:02:03.000004 | 01:02:03.000004 | 2026-11-29 01:02:03.000 | \
     2026-11-29 01:02:03.000004 | 2026-11-29 01:02:03.000004 | 2026-11-29 00:00:01.000000 | 2026 | 257",
    "0 | 127 | 0 | 9223372036854775807 | 1 | 3.4028234663852886e38 | 0.1 | 0.05 | -0.000001 | 0.0000000000 | -0.001 |  | \\N | null |  | \
     00000000 | 00000000-0000-0000-0000-000000000000 | 0001-01-01 | 00:00:00.000 | 00:00:00.000000 | 00:00:00.000000 | \
     1970-01-01 00:00:01.000 | 1969-12-31 23:59:59.999999 | 1970-01-01 00:00:01.000000 | 1970-01-02 00:00:00.000000 | 1999 | 0",
    "NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL | \
     NULL | NULL | NULL | NULL | NULL | NULL | NULL | NULL",
];

#[test]
fn all_types_come_by_all_compressions() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    let mut client = rauk.connect();
    // The session of the import is in UTC, whatever the server's zone is.
    execute(&mut client, &["SET GLOBAL time_zone = '+05:00'", "SET time_zone = '+00:00'"]);
    execute(&mut client, &["CREATE DATABASE d", "USE d", TABLE]);
    for (number, compression) in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
    ]
    .into_iter()
    .enumerate()
    {
        execute(&mut client, &["TRUNCATE kinds"]);
        let path = place.path(&format!("kinds{number}.parquet"));
        write(&path, KINDS, compression, vec![kinds()]);
        let said = imported(rauk.port, &path, &["--table", "d.kinds"]);
        assert!(said.contains("3 rows into d.kinds"), "{said}");
        let rows = run(&mut client, SHOWN);
        for (row, wanted) in rows.iter().zip(ROWS) {
            assert_eq!(row, wanted, "{compression}");
        }
        assert_eq!(rows.len(), 3);
    }
    // A table that the file's schema makes takes the same.
    let path = place.path("d.made.parquet");
    write(&path, KINDS, Compression::SNAPPY, vec![kinds()]);
    let said = imported(rauk.port, &path, &["--create"]);
    assert!(said.contains("`u64` BIGINT UNSIGNED, `f` FLOAT") && said.contains("`d38` DECIMAL(38,10)"), "{said}");
    for part in
        ["`fb` BINARY(4)", "`j` JSON", "`tm` TIME(3)", "`sm` DATETIME(3)", "`sn` DATETIME(6)", "`year` SMALLINT"]
    {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let rows = run(&mut client, &SHOWN.replace("FROM kinds", "FROM made"));
    assert_eq!(rows, ROWS);
    assert_eq!(
        run(&mut client, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd'"),
        ["2"],
        "progress is gone"
    );
}

#[test]
fn names_find_their_columns_and_lists_are_documents() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    let mut client = rauk.connect();
    execute(&mut client, &["CREATE DATABASE d", "USE d"]);
    let schema =
        "message m { required int64 Id; optional group list (LIST) { repeated group list { optional int64 element; } }
        optional group who { optional binary name (UTF8); } optional group map (MAP) { repeated group key_value {
        required binary key (UTF8); optional int64 value; } } }";
    let group = || {
        vec![
            Values::Nested(vec![1, 2, 3], vec![0, 0, 0], vec![0, 0, 0]),
            // [10, NULL], [], NULL
            Values::Nested(vec![10], vec![3, 2, 1, 0], vec![0, 1, 0, 0]),
            Values::Texts(vec!["A \"da\""], vec![2, 1, 0], vec![0, 0, 0]),
            Values::Texts(vec!["k", "l"], vec![2, 2, 1, 0], vec![0, 1, 0, 0]),
            Values::Nested(vec![7], vec![3, 2, 1, 0], vec![0, 1, 0, 0]),
        ]
    };
    let path = place.path("d.m.parquet");
    write(&path, schema, Compression::SNAPPY, vec![group()]);
    execute(
        &mut client,
        &["CREATE TABLE m (map JSON, ID BIGINT PRIMARY KEY, list JSON, who JSON, more INT DEFAULT 5)"],
    );
    imported(rauk.port, &path, &[]);
    let rows = "SELECT id, list, who, map, more FROM m ORDER BY id";
    let wanted = [
        "1 | [10, null] | {\"name\": \"A \\\"da\\\"\"} | {\"k\": 7, \"l\": null} | 5",
        "2 | [] | {\"name\": null} | {} | 5",
        "3 | NULL | NULL | NULL | 5",
    ];
    assert_eq!(run(&mut client, rows), wanted);
    // Into a text it does not go; left out or under another name it does.
    execute(&mut client, &["CREATE TABLE n (a BIGINT, b TEXT, c JSON)"]);
    let line = refused(rauk.port, &path, &["--table", "d.n", "--columns", "a,b,-,-"]);
    assert!(line.contains("column 'list' of the file is a list, a struct or a map, which column 'b' of d.n"), "{line}");
    imported(rauk.port, &path, &["--table", "d.n", "--columns", "A,-,c,-"]);
    assert_eq!(run(&mut client, "SELECT a, b, c FROM n ORDER BY a")[0], "1 | NULL | {\"name\": \"A \\\"da\\\"\"}");
    let line = refused(rauk.port, &path, &["--table", "d.n", "--columns", "a,b"]);
    assert!(line.contains("--columns names 2 columns, and the file has 4: Id, list, who, map"), "{line}");
    // A directory has a file for each table, of any format.
    let files = tempfile::tempdir().expect("a directory");
    std::fs::copy(&path, files.path().join("d.m2.parquet")).expect("copied");
    std::fs::write(files.path().join("d.n2.csv"), "a\n1\n2\n").expect("written");
    let said = imported(rauk.port, files.path(), &["--create"]);
    assert!(said.contains("3 rows into d.m2") && said.contains("2 rows into d.n2"), "{said}");
    assert_eq!(run(&mut client, "SELECT Id, list FROM m2 ORDER BY Id")[0], "1 | [10, null]");
}

#[test]
fn what_is_wrong_is_said_before_anything_is_stored() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    let mut client = rauk.connect();
    execute(
        &mut client,
        &["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT, name VARCHAR(5), b BLOB, at TIMESTAMP NULL)"],
    );
    let schema = "message t { optional int64 id; optional binary name (UTF8); }";
    let good = || vec![vec![Values::I64(vec![Some(1)]), texts(&[Some("a")])]];
    let path = place.path("t.parquet");
    let refusal = |path: &Path, arguments: &[&str]| refused(rauk.port, path, &[&["-D", "d"], arguments].concat());
    std::fs::write(&path, "id,name\n1,a\n").expect("written");
    assert!(refusal(&path, &[]).contains("t.parquet: it is no Parquet file: it does not begin with PAR1"));
    std::fs::write(&path, "").expect("written");
    assert!(refusal(&path, &[]).contains("it is no Parquet file"));
    write(&path, schema, Compression::SNAPPY, good());
    let whole = std::fs::read(&path).expect("read");
    for length in [4, 11, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).expect("written");
        let line = refusal(&path, &[]);
        assert!(line.contains("the Parquet file is damaged or cut off"), "{line}");
    }
    // Damage between a beginning and an end that are right.
    let mut damaged = whole.clone();
    damaged[4..30].fill(0xFF);
    std::fs::write(&path, &damaged).expect("written");
    let line = refusal(&path, &[]);
    assert!(line.contains("cannot read: row 1: column 'id'"), "{line}");
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM t"), 0);

    write(&path, "message t { optional int64 id; optional binary nmae (UTF8); }", Compression::SNAPPY, good());
    assert!(refusal(&path, &["--restart"]).contains("table d.t has no column 'nmae'; did you mean 'name'?"));
    write(&path, "message t { optional int64 b; optional binary name (UTF8); }", Compression::SNAPPY, good());
    assert!(
        refusal(&path, &["--restart"])
            .contains("column 'b' of the file is no text and no bytes, which column 'b' of d.t")
    );
    let schema_with = |what: &str| format!("message t {{ {what}; optional binary name (UTF8); }}");
    let interval = schema_with("optional fixed_len_byte_array(12) id (INTERVAL)");
    let values = || vec![vec![Values::Fixed(vec![Some(vec![0; 12])]), texts(&[Some("a")])]];
    write(&path, &interval, Compression::SNAPPY, values());
    let line = refusal(&path, &["--restart"]);
    assert!(line.contains("column 'id' of the file: it has the type INTERVAL"), "{line}");
    write(&path, &schema_with("optional int64 at (TIMESTAMP(MICROS,true))"), Compression::SNAPPY, good());
    let line = refusal(&path, &["--restart", "--time-zone", "+01:00"]);
    assert!(line.contains("--time-zone: column 'at' of the file has moments in UTC"), "{line}");
    write(&path, schema, Compression::SNAPPY, good());
    for (option, value) in [("--null", "x"), ("--binary", "base64"), ("--delimiter", ";")] {
        assert!(refusal(&path, &["--restart", option, value]).contains(&format!("{option} is for files of text")));
    }
    assert!(refusal(&path, &["--restart", "--no-header"]).contains("--no-header is for files of text"));
    assert!(refusal(&path, &["--restart", "--table", "d.tt"]).contains("there is no table d.tt; did you mean 't'?"));
    let too_wide = schema_with("optional fixed_len_byte_array(30) id (DECIMAL(70,2))");
    let values = vec![vec![Values::Fixed(vec![Some(vec![0; 30])]), texts(&[Some("a")])]];
    write(&path, &too_wide, Compression::SNAPPY, values);
    let line = refusal(&path, &["--restart", "--create", "--table", "d.wide"]);
    assert!(line.contains("DECIMAL(70,2)") && line.contains("without --create"), "{line}");
    let export = Command::new(env!("CARGO_BIN_EXE_rauk"))
        .args(["export", "-P", &rauk.port.to_string(), "--table", "d.t", "-o"])
        .arg(place.path("out.parquet"))
        .output()
        .expect("rauk runs");
    assert!(String::from_utf8_lossy(&export.stderr).contains("rauk export writes no Parquet"), "{export:?}");

    // Values that do not fit: the row and the column are named.
    let rows = vec![
        Values::I64(vec![Some(1), Some(3_000_000_000), Some(3), Some(4), Some(5)]),
        Values::Bytes(vec![
            Some(b"a".to_vec()),
            None,
            Some(b"too long".to_vec()),
            Some(vec![0xFF]),
            Some(b"e".to_vec()),
        ]),
    ];
    write(&path, schema, Compression::SNAPPY, vec![rows]);
    let line = refusal(&path, &["--restart"]);
    assert!(line.contains("t.parquet:2: ") && line.contains("'id'"), "{line}");
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM t"), 0);
    let rejects = place.path("bad.csv").display().to_string();
    imported(rauk.port, &path, &["-D", "d", "--restart", "--rejects", &rejects]);
    assert_eq!(run(&mut client, "SELECT id, name FROM t ORDER BY id"), ["1 | a", "5 | e"]);
    let mut reader = csv::Reader::from_path(&rejects).expect("readable");
    let bad: Vec<csv::StringRecord> = reader.records().map(|record| record.expect("whole")).collect();
    let numbers: Vec<&str> = bad.iter().map(|record| &record[1]).collect();
    assert_eq!(numbers, ["2", "3", "4"]);
    assert_eq!(&bad[0][3], "{\"id\":3000000000,\"name\":null}");
    assert!(bad[2][2].contains("column 'name': byte 0xFF is not UTF-8"), "{:?}", &bad[2]);
}

const MANY: &str = "message t { required int64 id; optional binary name (UTF8); }";

/// Row groups of so many rows. Every thousandth row has an id that no INT takes.
fn many(path: &Path, groups: i64, rows: i64, name: &str) {
    let group = |number: i64| {
        let ids = (number * rows..(number + 1) * rows).map(|id| if id % 1000 == 500 { id << 32 } else { id });
        let names = (0..rows).map(|row| (row % 10 != 0).then(|| format!("{name}{row}").into_bytes()));
        vec![Values::Nested(ids.collect(), Vec::new(), Vec::new()), Values::Bytes(names.collect())]
    };
    let schema = Arc::new(parse_message_type(MANY).expect("a schema"));
    // Pages of a size, so that an import that goes on finds some to pass over.
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).set_dictionary_enabled(false);
    let properties = Arc::new(properties.set_data_page_size_limit(64 * 1024).set_write_batch_size(128).build());
    let mut writer =
        SerializedFileWriter::new(File::create(path).expect("a file"), schema, properties).expect("a writer");
    for number in 0..groups {
        let mut rows = writer.next_row_group().expect("a row group");
        for values in group(number) {
            let mut column = rows.next_column().expect("no error").expect("a column");
            match values {
                Values::Nested(ids, ..) => {
                    column.typed::<Int64Type>().write_batch(&ids, None, None).expect("written");
                }
                Values::Bytes(values) => {
                    put::<ByteArrayType>(&mut column, values.into_iter().map(|v| v.map(ByteArray::from)).collect());
                }
                _ => unreachable!("these two are made above"),
            }
            column.close().expect("closed");
        }
        rows.close().expect("closed");
    }
    writer.close().expect("closed");
}

#[test]
fn an_import_that_is_killed_goes_on() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    let mut client = rauk.connect();
    execute(&mut client, &["CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT, name VARCHAR(40))"]);
    let (groups, each) = (5, 30_000);
    let rows = (groups * each) as u64;
    let path = place.path("t.parquet");
    many(&path, groups, each, "name ");
    let file = path.display().to_string();
    let rejects = place.path("bad.csv").display().to_string();
    let arguments = ["--table", "d.t", "--threads", "3", "--rejects", &rejects, &file];
    let mut committed = 0;
    for round in 1..=3u64 {
        let mut command = tool(rauk.port, "import", &arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        let least = (rows / 5 * round).min(committed + 4096);
        let deadline = Instant::now() + Duration::from_secs(60);
        while number(&mut client, "SELECT COUNT(*) FROM d.t") < least {
            assert!(Instant::now() < deadline, "rows do not come");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        committed = number(&mut client, "SELECT COUNT(*) FROM d.t");
    }
    let output = tool(rauk.port, "import", &arguments).output().expect("rauk runs");
    assert!(output.status.success(), "{output:?}");
    let bad = rows / 1000;
    let sum = rows * (rows - 1) / 2 - (0..bad).map(|n| n * 1000 + 500).sum::<u64>();
    let counted = run(&mut client, "SELECT COUNT(*), COUNT(DISTINCT id), SUM(id), COUNT(name) FROM d.t");
    let stored = rows - bad;
    // A tenth of the names is NULL, and these rows are among them.
    let named = rows - rows / 10;
    assert_eq!(counted, [format!("{stored} | {stored} | {sum} | {named}")]);
    assert_eq!(run(&mut client, "SELECT name FROM d.t WHERE id = 149999"), ["name 29999"]);
    let mut reader = csv::Reader::from_path(&rejects).expect("readable");
    let mut lines: Vec<u64> = reader.records().map(|r| r.expect("whole")[1].parse().expect("a number")).collect();
    lines.sort();
    assert_eq!(lines, (0..bad).map(|n| n * 1000 + 501).collect::<Vec<u64>>(), "each bad row once");
    assert_eq!(number(&mut client, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd'"), 1);
}

/// The most memory of an import, in KiB.
fn peak(port: u16, file: &Path) -> u64 {
    let mut child = tool(port, "import", &["--table", "d.t", "--threads", "2", &file.display().to_string()])
        .stdout(Stdio::null())
        .spawn()
        .expect("started");
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        peak = found.unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            assert!(status.success(), "{status}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn memory_is_that_of_pages_and_batches() {
    let place = Place::new();
    let rauk = Rauk::start(place.data.path());
    execute(&mut rauk.connect(), &["CREATE DATABASE d", "CREATE TABLE d.t (id BIGINT, name TEXT)"]);
    let (small, large) = (place.path("small.parquet"), place.path("large.parquet"));
    // One row group each: of 12 MB and of more than 120 MB.
    many(&small, 1, 4_000, &"long ".repeat(650));
    many(&large, 1, 40_000, &"long ".repeat(650));
    let (small, large) = (peak(rauk.port, &small), peak(rauk.port, &large));
    assert!(small > 1024 && large < small + (24 << 10), "{small} KiB and {large} KiB");
    assert_eq!(number(&mut rauk.connect(), "SELECT COUNT(*) FROM d.t"), 44_000);
}
