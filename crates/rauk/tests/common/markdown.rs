//! Just enough of Markdown to check the pages of this repository: fenced blocks, headings, links, code in sentences.
//!
//! The pages are written by us, so this knows what they use and no more: fences of three backticks at the beginning of a
//! line or of an item of a list, `#` headings, links in brackets on one line. Anchors are those that GitHub makes.
#![allow(dead_code)] // each user takes a part of it

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub struct Page {
    /// Below the root of the repository.
    pub name: String,
    pub blocks: Vec<Block>,
    pub anchors: BTreeSet<String>,
    pub links: Vec<Link>,
    /// Code in sentences and tables, with its line.
    pub spans: Vec<(usize, String)>,
}

pub struct Block {
    /// What is behind the fence: `sh`, `rust,no_run`.
    pub kind: String,
    /// Of its first line of text.
    pub line: usize,
    pub text: String,
}

pub struct Link {
    pub line: usize,
    pub target: String,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

/// The pages of the root and of docs, sorted.
pub fn pages() -> Vec<Page> {
    let root = root();
    let mut names = Vec::new();
    for directory in ["", "docs"] {
        for entry in fs::read_dir(root.join(directory)).expect("readable") {
            let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                names.push(if directory.is_empty() { name } else { format!("{directory}/{name}") });
            }
        }
    }
    names.sort();
    names.into_iter().map(|name| read(&fs::read_to_string(root.join(&name)).expect("readable"), name)).collect()
}

pub fn read(text: &str, name: String) -> Page {
    let mut page = Page { name, blocks: Vec::new(), anchors: BTreeSet::new(), links: Vec::new(), spans: Vec::new() };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut open: Option<Block> = None;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            match open.take() {
                Some(block) => page.blocks.push(block),
                None => open = Some(Block { kind: kind.trim().into(), line: number + 1, text: String::new() }),
            }
            continue;
        }
        if let Some(block) = &mut open {
            block.text += line;
            block.text.push('\n');
            continue;
        }
        let title = line.trim_start_matches('#');
        if title.len() < line.len() && title.starts_with(' ') {
            let anchor = anchor(title.trim());
            let count = counts.entry(anchor.clone()).or_default();
            page.anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
            *count += 1;
        }
        let mut prose = String::new();
        for (part, piece) in line.split('`').enumerate() {
            match part % 2 {
                0 => prose += piece,
                _ => page.spans.push((number, piece.into())),
            }
        }
        let targets = prose.match_indices("](").filter_map(|(at, found)| prose[at + found.len()..].split(')').next());
        page.links.extend(targets.map(|target| Link { line: number, target: target.into() }));
    }
    assert!(open.is_none(), "{}: a block does not end", page.name);
    page
}

/// The anchor that GitHub gives a heading.
fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}
