use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const LIMIT: usize = 1 << 20;

/// A piece as one line.
fn shown(piece: &Piece) -> String {
    match piece {
        Piece::Statement(statement) => {
            let ending = match statement.ending {
                Ending::Delimiter => ';',
                Ending::Vertical => 'G',
                Ending::Text => '$',
            };
            format!("{} {ending} {}", statement.line, String::from_utf8_lossy(&statement.text))
        }
        Piece::Command(typed) => {
            let before = String::from_utf8_lossy(&typed.before);
            format!("{} {:?} [{}] [{before}]", typed.line, typed.name, typed.argument)
        }
    }
}

/// The pieces of a text that comes in chunks of these lengths, in turn; the last may be an error.
fn pieces_in(text: &[u8], chunks: &[usize], limit: usize) -> Vec<String> {
    let mut splitter = Splitter::new(limit);
    let (mut found, mut at, mut turn) = (Vec::new(), 0, 0);
    loop {
        match splitter.take() {
            Ok(Some(piece)) => found.push(shown(&piece)),
            Ok(None) if splitter.has_ended() => return found,
            Ok(None) if at == text.len() => splitter.end(),
            Ok(None) => {
                let end = text.len().min(at + chunks[turn % chunks.len()].max(1));
                splitter.push(&text[at..end]);
                (at, turn) = (end, turn + 1);
            }
            Err(error) => {
                found.push(format!("{} error {error}", error.line));
                return found;
            }
        }
    }
}

fn pieces(text: &str) -> Vec<String> {
    let whole = pieces_in(text.as_bytes(), &[usize::MAX / 2], LIMIT);
    assert_eq!(whole, pieces_in(text.as_bytes(), &[1], LIMIT), "byte by byte: {text}");
    whole
}

#[test]
fn delimiters_in_quotes_and_comments_do_not_count() {
    assert_eq!(pieces(""), [""; 0]);
    assert_eq!(pieces(" ;; \n ; "), [""; 0]);
    assert_eq!(pieces("SELECT 1"), ["1 $ SELECT 1"]);
    assert_eq!(pieces("SELECT 1 ;\n\nSELECT 2;"), ["1 ; SELECT 1", "3 ; SELECT 2"]);
    assert_eq!(
        pieces("SELECT ';', \";\", `;`, 'it''s;', 'a\\';', `\\`; SELECT 2 # ;\n;"),
        ["1 ; SELECT ';', \";\", `;`, 'it''s;', 'a\\';', `\\`", "1 ; SELECT 2 # ;"]
    );
    assert_eq!(
        pieces("-- ;\n# ;\n/* ; \n */ SELECT 1 -- ';\n, 2 /* ' ; */; SELECT 4--1;"),
        ["4 ; SELECT 1 -- ';\n, 2 /* ' ; */", "5 ; SELECT 4--1"]
    );
    assert_eq!(pieces("--\nSELECT 1; --"), ["2 ; SELECT 1"]);
    assert_eq!(pieces("SELECT 3/2, 4*5, 6-7;"), ["1 ; SELECT 3/2, 4*5, 6-7"]);
}

#[test]
fn executable_comments_are_statements_without_delimiters() {
    assert_eq!(
        pieces("/*!40101 SET a = 1 */;\n/*!50003 CREATE TRIGGER t SET x = '*/;'; /* in ; */ END */;\n/*M!100 b */;"),
        [
            "1 ; /*!40101 SET a = 1 */",
            "2 ; /*!50003 CREATE TRIGGER t SET x = '*/;'; /* in ; */ END */",
            "3 ; /*M!100 b */"
        ]
    );
    assert_eq!(pieces("/*+ hint */ SELECT /*+ ; */ 1;"), ["1 ; SELECT /*+ ; */ 1"]);
}

#[test]
fn the_delimiter_changes() {
    assert_eq!(
        pieces("DELIMITER //\nCREATE PROCEDURE p() BEGIN SELECT 1; END//\ndelimiter ;\nSELECT 2;"),
        ["2 ; CREATE PROCEDURE p() BEGIN SELECT 1; END", "4 ; SELECT 2"]
    );
    assert_eq!(pieces("delimiter go\nSELECT 1 go SELECT 2\ngo"), ["2 ; SELECT 1", "2 ; SELECT 2"]);
    assert_eq!(pieces("\\d $$\nSELECT 1; $$"), ["2 ; SELECT 1;"]);
    for bad in ["delimiter", "DELIMITER \\", "delimiter '"] {
        let found = pieces(bad);
        assert!(found.len() == 1 && found[0].starts_with("1 error DELIMITER needs"), "{found:?}");
    }
    assert_eq!(pieces("SELECT delimiter FROM t;"), ["1 ; SELECT delimiter FROM t"]);
}

#[test]
fn commands_are_words_in_front_and_letters() {
    assert_eq!(
        pieces("use d\nUSE `a;b`; use;source a b.sql\nSource x.sql; SELECT 1\\G select 2\\g"),
        [
            "1 Use [d] []",
            "2 ; USE `a;b`",
            "2 ; use",
            "2 Source [a b.sql] []",
            "3 Source [x.sql] []",
            "3 G SELECT 1",
            "3 ; select 2"
        ]
    );
    assert_eq!(pieces("help\n?;\\h use\n\\?"), ["1 Help [] []", "2 Help [] []", "2 Help [use] []", "3 Help [] []"]);
    assert_eq!(
        pieces("\\! echo a; echo b\n\\P less -S\nquit;"),
        ["1 System [echo a; echo b] []", "2 Pager [less -S] []", "3 Quit [] []"]
    );
    assert_eq!(pieces("SELECT 1\\c SELECT \\N;"), ["1 ; SELECT \\N"]);
    assert_eq!(
        pieces("SELECT 1\\p + 2;\nSELECT 3\\e"),
        ["1 Print [] [SELECT 1]", "1 ; SELECT 1   + 2", "2 Edit [] [SELECT 3]"]
    );
    assert_eq!(pieces("\\c\\g\\G SELECT '\\q', helper FROM source;"), ["1 ; SELECT '\\q', helper FROM source"]);
    assert_eq!(pieces("helpless;"), ["1 ; helpless"]);
}

#[test]
fn wrong_texts_are_errors_with_their_line() {
    let last = |text: &str| pieces(text).pop().expect("an error");
    assert!(last("SELECT 1;\nSELECT 'a\n;").starts_with("2 error the text ends inside the quoted text"));
    assert!(last("SELECT `a").starts_with("1 error the text ends inside the quoted name"));
    assert!(last("SELECT 1;\n\n/* a ;").starts_with("3 error the text ends inside the comment"));
    assert!(last("/*!50001 a 'b' ;").starts_with("1 error the text ends inside the comment"));
    assert!(last("SELECT '\\").starts_with("1 error the text ends inside the quoted text"));
    assert!(last("SELECT 1;\n\\y").starts_with("2 error there is no command '\\y'"));
    assert!(last("SELECT\n1 \\q").starts_with("2 error '\\q' cannot stand inside"));
    assert!(last("SELECT 1\\").starts_with("1 error there is no command"));
    assert!(last("SELECT 1,\n\0").starts_with("2 error a zero byte"));
    assert_eq!(pieces("SELECT '\0' -- \0\n;"), ["1 ; SELECT '\0' -- \0"]);
    assert_eq!(pieces("\u{FEFF}SELECT 1;"), ["1 ; SELECT 1"]);
    let utf16: Vec<u8> = "\u{FEFF}SELECT".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(pieces_in(&utf16, &[1], LIMIT)[0].contains("UTF-16"));
}

#[test]
fn a_statement_longer_than_the_limit_is_an_error() {
    for text in [
        format!("SELECT 1;\nSELECT '{}';", "x".repeat(200)),
        format!("SELECT 1;\nSELECT {};", "x".repeat(200)),
        format!("SELECT 1;\nSELECT /* {} */ 1;", "x".repeat(200)),
        format!("SELECT 1;\nsource {}\n", "x".repeat(200)),
    ] {
        for chunks in [&[1][..], &[7], &[1000]] {
            let found = pieces_in(text.as_bytes(), chunks, 100);
            assert_eq!(found.len(), 2, "{found:?}");
            let what = if text.contains("source") { "command" } else { "statement" };
            assert!(found[1].starts_with(&format!("2 error the {what} that begins here is longer")), "{found:?}");
        }
    }
    // Comments between statements are not held.
    let text = format!("/* {} */ SELECT 1; # {}\n", "x".repeat(1000), "y".repeat(1000));
    assert_eq!(pieces_in(text.as_bytes(), &[13], 100), ["1 ; SELECT 1"]);
}

#[test]
fn the_mark_of_mariadbs_dumps_is_remembered() {
    let sandboxed = |text: &[u8]| {
        let mut statements = Statements::new(text, LIMIT);
        while statements.take().expect("right").is_some() {}
        statements.splitter.sandboxed()
    };
    assert!(sandboxed(b"/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump\nSELECT 1;"));
    assert!(sandboxed(b"/*!999999\\- enable the sandbox mode */\n"));
    assert!(!sandboxed(b"/*!99999 SELECT 1 */;"));
}

/// Random texts of what matters to the splitter: wherever chunks end, the pieces are the same, and they lose nothing.
#[test]
fn chunks_may_end_anywhere() {
    const PARTS: &[&str] = &[
        ";",
        ";",
        "'",
        "\"",
        "`",
        "\\",
        "-- ",
        "--",
        "#",
        "/*",
        "*/",
        "/*!",
        "/*M!",
        "\n",
        " ",
        "SELECT 1",
        "a",
        "use d",
        "source x",
        "delimiter //",
        "delimiter ;",
        "//",
        "/",
        "*",
        "-",
        "\\g",
        "\\G",
        "\\c",
        "\\e",
        "\\p",
        "\\N",
        "\\h",
        "help",
        "ä",
        "''",
        "\\'",
        "quit",
        "!",
        "M",
        "\t",
        "0",
        "/*!999999\\- x */",
        "\\. f",
    ];
    for seed in 0..20_000u64 {
        let mut random = StdRng::seed_from_u64(seed);
        let parts = random.random_range(1..40);
        let text: String = (0..parts).map(|_| PARTS[random.random_range(0..PARTS.len())]).collect();
        let limit = if seed % 4 == 0 { 64 } else { LIMIT };
        let whole = pieces_in(text.as_bytes(), &[usize::MAX / 2], limit);
        let chunks: Vec<usize> = (0..8).map(|_| random.random_range(1..12)).collect();
        for chunks in [&[1][..], &[2], &[3], &chunks] {
            assert_eq!(
                pieces_in(text.as_bytes(), chunks, limit),
                whole,
                "seed {seed}, chunks {chunks:?}, text {text:?}"
            );
        }
    }
}

/// Statements that were put together come back as they were, with their lines.
#[test]
fn statements_come_back() {
    const PARTS: &[&str] = &[
        "SELECT", " 1", "'a;b'", "'it''s'", "'\\\\'", "'\\';'", "\"x;\"", "`;\\`", "/* ; */", "/*! ; */", "\n",
        " -- ;\n", " # '\n", "x", "+", " ", "\\N", "é",
    ];
    for seed in 0..5_000u64 {
        let mut random = StdRng::seed_from_u64(seed);
        let (mut text, mut wanted) = (String::new(), Vec::new());
        for _ in 0..random.random_range(1..8) {
            let parts = random.random_range(0..10);
            let rest: String = (0..parts).map(|_| PARTS[random.random_range(0..PARTS.len())]).collect();
            let line = text.matches('\n').count() + 1;
            let statement = format!("DO {rest}");
            wanted.push(format!("{line} ; {}", statement.trim_end()));
            text.push_str(&statement);
            text.push_str(if random.random() { ";" } else { ";\n" });
        }
        let chunk = random.random_range(1..50);
        assert_eq!(pieces_in(text.as_bytes(), &[chunk], LIMIT), wanted, "seed {seed}: {text:?}");
    }
}
