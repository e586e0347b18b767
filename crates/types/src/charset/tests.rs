use super::*;
use crate::Collation;

fn set(name: &str) -> Charset {
    Charset::named(name).unwrap_or_else(|| panic!("{name}"))
}

fn decoded(name: &str, bytes: &[u8]) -> (String, Option<usize>) {
    let decoded = set(name).decode(bytes);
    (decoded.text.into_owned(), decoded.malformed)
}

#[test]
fn sets_are_known_by_name() {
    let names: Vec<&str> = Charset::all().map(Charset::name).collect();
    assert!(names.is_sorted());
    for name in &names {
        assert_eq!(set(&name.to_uppercase()).name(), *name);
        assert_eq!(Collation::of_charset(set(name)).charset(), set(name));
        assert_eq!(Collation::binary_of(set(name)).charset(), set(name));
    }
    assert_eq!((set("UTF8"), set("utf8mb4")), (Charset::UTF8MB3, Charset::UTF8MB4));
    assert_eq!([Charset::named("big6"), Charset::named("klingon")], [None; 2]);
}

#[test]
fn bytes_of_texts() {
    for (name, text, bytes, all) in [
        ("utf8mb4", "ä😀", "ä😀".as_bytes(), true),
        ("utf8mb3", "ä😀", b"\xC3\xA4?", false),
        ("ascii", "aä", b"a?", false),
        ("latin1", "ä€Ā\u{81}", b"\xE4\x80?\x81", false),
        ("cp1251", "Юла", b"\xDE\xEB\xE0", true),
        ("gbk", "中€a", b"\xD6\xD0?a", false),
        ("big5", "中a€", b"\xA4\xA4a?", false),
        ("gb2312", "中", b"\xD6\xD0", true),
        ("sjis", "日ｱ\\", b"\x93\xFA\xB1\\", true),
        ("euckr", "한", b"\xC7\xD1", true),
        ("ujis", "日ｱ\\＼丂\u{E000}\u{E3AC}①", b"\xC6\xFC\x8E\xB1\\\xA1\xC0\x8F\xB0\xA1\xF5\xA1\x8F\xF5\xA1?", false),
        ("eucjpms", "日①～ⅰ", b"\xC6\xFC\xAD\xA1\xA1\xC1\x8F\xF3\xF3", true),
        ("ucs2", "a😀", b"\0a\0?", false),
        ("utf16", "a😀", b"\0a\xD8\x3D\xDE\0", true),
        ("utf16le", "a😀", b"a\0\x3D\xD8\0\xDE", true),
        ("utf32", "a", b"\0\0\0a", true),
    ] {
        let mut out = Vec::new();
        assert_eq!(set(name).append(text, &mut out), all, "{name}");
        assert_eq!(out, bytes, "{name}");
        assert_eq!(set(name).encode(text), bytes, "{name}");
        assert_eq!(set(name).length(text), bytes.len(), "{name}");
        assert_eq!(set(name).lacks(text).is_none(), all, "{name}");
        if all {
            assert_eq!(decoded(name, bytes), (text.to_string(), None), "{name}");
        }
    }
}

#[test]
fn malformed_bytes_are_told() {
    for (name, bytes, text, at) in [
        ("utf8mb4", &b"ab\xFFc\xC3"[..], "ab?c?", Some(2)),
        ("utf8mb3", "a😀".as_bytes(), "a????", Some(1)),
        ("ascii", b"a\x80", "a?", Some(1)),
        // No character, and no error.
        ("cp1251", b"a\x98", "a?", None),
        ("gbk", b"a\xD6", "a?", Some(1)),
        ("gbk", b"\xFE\xFE\xD6\x20", "?? ", Some(2)),
        ("ujis", b"\x8F\xB0\xA1\x8F\xB0a", "丂??a", Some(3)),
        ("ujis", b"\x8E\xE0", "??", Some(0)),
        ("utf16", b"\xD8\0\0a\0", "?a?", Some(0)),
        ("utf32", b"\0\x11\0\0\0\0\0a", "?a", Some(0)),
    ] {
        assert_eq!(decoded(name, bytes), (text.to_string(), at), "{name} {bytes:?}");
    }
    assert_eq!(set("gbk").well_formed(b"a\xD6\xD0b\xFF"), (4, 3));
}

#[test]
fn what_is_kept_comes_back() {
    for set in Charset::all().filter(|set| *set != Charset::BINARY) {
        for character in ('\0'..=char::MAX).step_by(if set.is_unicode() { 97 } else { 1 }) {
            if set.has(character) {
                let text = character.to_string();
                let bytes = set.encode(&text);
                let back = set.decode(&bytes);
                assert_eq!((&*back.text, back.malformed), (&*text, None), "{set:?} {bytes:?}");
                assert_eq!(set.length(&text), bytes.len());
                assert!(bytes.len() as u32 <= set.max_bytes());
            }
        }
    }
}

/// Frozen: what is stored was found to be in its set by these tables.
#[test]
fn tables_are_those_that_were() {
    let mut lines = String::new();
    for set in Charset::all().filter(|set| !set.is_unicode() && *set != Charset::BINARY) {
        let codes: Vec<u8> = set
            .codes()
            .iter()
            .flat_map(|(c, code)| [u32::from(*c).to_be_bytes(), code.to_be_bytes()])
            .flatten()
            .collect();
        lines += &format!("{} {} {:016x}\n", set.name(), codes.len() / 8, xxhash_rust::xxh3::xxh3_64(&codes));
    }
    if std::env::var_os("RAUK_WRITE_GOLDEN").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/charset/tables/golden.txt"), &lines).unwrap();
    } else {
        assert_eq!(lines, include_str!("tables/golden.txt"));
    }
}

/// Run by hand, with the directory that `tools/mariadb_charsets.sh` wrote: `RAUK_MARIADB_CHARSETS=… cargo test -p
/// rauk-types -- --ignored`. Each code of each set, and the weight of each of its characters in each collation, is what
/// that server says.
#[test]
#[ignore = "needs what a MariaDB server says"]
fn codes_are_those_of_mariadb() {
    let directory = std::env::var("RAUK_MARIADB_CHARSETS").expect("RAUK_MARIADB_CHARSETS names a directory");
    let read = |name: String| -> Vec<(u32, String)> {
        let text = std::fs::read_to_string(format!("{directory}/{name}.tsv")).unwrap_or_else(|_| panic!("{name}"));
        let fields = text.lines().map(|line| line.split_once('\t').unwrap());
        fields.map(|(number, hex)| (number.parse().unwrap(), hex.to_string())).collect()
    };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    let mut compared = 0;
    for set in Charset::all().filter(|set| !set.is_unicode() && *set != Charset::BINARY) {
        let name = set.name();
        // The two differences that the module's essay tells, and a mistake of the server.
        let backslash = |c: char| ["sjis", "ujis"].contains(&name) && "\\＼".contains(c);
        let different = |c: char| backslash(c) || name == "cp932" && c == '\u{6661}';
        let has: std::collections::BTreeMap<u32, String> = read(format!("enc_{name}")).into_iter().collect();
        for c in ('\0'..='\u{FFFF}').filter(|c| !different(*c)) {
            let own = set.has(c).then(|| hex(&set.encode(&c.to_string())));
            assert_eq!(own.as_ref(), has.get(&u32::from(c)), "{name} {c:?}");
            compared += 1;
        }
        let mut codes = read(format!("dec_{name}"));
        if set.max_bytes() > 1 {
            codes.extend(read(format!("dec2_{name}")));
        }
        if set.max_bytes() > 2 {
            codes.extend(read(format!("dec3_{name}")));
        }
        for (code, said) in codes {
            let bytes = code.to_be_bytes()[4 - code_length(code)..].to_vec();
            let Decoded { text, .. } = set.decode(&bytes);
            let own: String = text.chars().map(|c| format!("{:08X}", u32::from(c))).collect();
            if !text.chars().any(different) {
                assert_eq!(own, said, "{name} {code:X}");
                compared += 1;
            }
        }
        for collation in Collation::all().filter(|collation| collation.charset() == set) {
            for (number, said) in read(format!("w_{}", collation.name())) {
                let text = match set.max_bytes() {
                    1 => set.decode(&[number as u8]).text.into_owned(),
                    _ => char::from_u32(number).unwrap().to_string(),
                };
                // A code without a character cannot be stored.
                if text.chars().any(different) || text == "?" && number != 0x3F || text == "\u{FFFD}" {
                    continue;
                }
                // Of two codes of one character the first counts.
                if set.max_bytes() == 1 && *set.encode(&text) != [number as u8] {
                    continue;
                }
                let own = collation.weight_bytes(text.as_bytes()).unwrap();
                assert_eq!(hex(&own), said, "{collation:?} {text:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 1_900_000, "{compared}");
}
