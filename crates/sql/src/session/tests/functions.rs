//! Every name in the index of MySQL 8.4's manual works as `docs/functions.md` shows it, or stands there with the reason
//! why it is refused.
//!
//! `RAUK_RECORD=1` writes the answers into the page: read what it has changed.

use super::{Test, server};
use std::collections::BTreeSet;

const INDEX: &str = include_str!("function_index.txt");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/functions.md");
/// What differs from run to run.
const CHANGES: &str = "…";

/// Names of the manual's index.
fn index() -> BTreeSet<String> {
    INDEX.lines().filter(|line| !line.starts_with("# ")).map(str::to_string).collect()
}

/// The cells of a table's row; a bar in a cell has a backslash before it.
fn cells(line: &str) -> Vec<String> {
    let line = line.replace("\\|", "\u{1}");
    let cells = line.trim().trim_matches('|').split('|');
    cells.map(|cell| cell.trim().trim_matches('`').replace('\u{1}', "|")).collect()
}

/// The rows of the table below a heading.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let below = page.split_once(heading).expect("the page has the heading").1;
    let rows = below.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// An example that is no statement is an expression.
fn statement(example: &str) -> String {
    let whole = ["SELECT ", "SET ", "INSERT INTO "].iter().any(|start| example.starts_with(start));
    if whole { example.to_string() } else { format!("SELECT {example}") }
}

fn session() -> Test {
    let mut test = server().session();
    test.ok("CREATE TABLE functions (id INT PRIMARY KEY, n INT DEFAULT 3, body TEXT, FULLTEXT (body))");
    test.ok("INSERT INTO functions VALUES (1, 2, 'a database'), (2, 3, 'b'), (3, 4, 'c')");
    test
}

#[test]
fn the_page_has_every_name_of_the_index_once() {
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let mut found = BTreeSet::new();
    for row in table(&page, "## What works").iter().chain(&table(&page, "## What is refused")) {
        assert!(found.insert(row[0].clone()), "{} stands twice", row[0]);
    }
    let index = index();
    let missing: Vec<_> = index.difference(&found).collect();
    let unknown: Vec<_> = found.iter().filter(|name| !index.contains(*name)).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "not on the page: {missing:?}; not in the index: {unknown:?}");
}

#[test]
fn examples_give_the_answers_of_the_page() {
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let (mut test, mut recorded, mut wrong) = (session(), page.clone(), Vec::new());
    for row in table(&page, "## What works") {
        let [name, example, answer] = &row[..] else { panic!("{row:?}") };
        let got = test.run(&statement(example));
        if got.starts_with("ERROR") {
            wrong.push(format!("{name}: {example} gives {got}"));
        } else if answer != CHANGES && *answer != got {
            let cell = |text: &str| format!("`{}`", text.replace('|', "\\|"));
            let line = |answer: &str| format!("| {} | {} | {} |\n", cell(name), cell(example), cell(answer));
            recorded = recorded.replace(&line(answer), &line(&got));
            wrong.push(format!("{name}: {example} gives {got}, not {answer}"));
        }
    }
    if std::env::var_os("RAUK_RECORD").is_some() {
        std::fs::write(PAGE, recorded).expect("the page is written");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_refused_is_refused_as_the_page_says() {
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let mut test = session();
    for row in table(&page, "## What is refused") {
        let [name, call, error, reason] = &row[..] else { panic!("{row:?}") };
        assert!(!reason.is_empty(), "{name} has no reason");
        let got = test.run(&statement(call));
        assert!(got.starts_with(&format!("ERROR {error}: ")), "{name}: {call} gives {got}");
    }
}
