//! The SQL in README.md and in the pages of docs, run as it stands there: the blocks of a page one after the other, in one
//! session of the shell, on a server of the page's own. What a page says can be typed can be typed.

use crate::common::Rauk;
use crate::common::markdown::{Page, pages};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn the_sql_of_the_pages_runs() {
    let mut ran = 0;
    for page in pages() {
        let blocks = page.blocks.iter().filter(|block| block.kind == "sql").count();
        if blocks == 0 {
            continue;
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let server = Rauk::start(directory.path());
        let mut shell = Command::new(env!("CARGO_BIN_EXE_rauk"))
            .args(["sql", "--port", &server.port.to_string()])
            .env_remove("MYSQL_PWD")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shell runs");
        shell.stdin.take().expect("piped").write_all(script(&page).as_bytes()).expect("it reads");
        let output = shell.wait_with_output().expect("it ends");
        // An error names the line, which is that of the page.
        assert!(output.status.success(), "{}: {}", page.name, String::from_utf8_lossy(&output.stderr));
        ran += blocks;
    }
    assert!(ran > 8, "only {ran} blocks were found");
}

/// Each statement on the line that it has in the page.
fn script(page: &Page) -> String {
    let mut text = String::new();
    for block in page.blocks.iter().filter(|block| block.kind == "sql") {
        let lines = text.lines().count();
        text.extend(std::iter::repeat_n('\n', block.line - 1 - lines));
        text += &block.text;
    }
    text
}
