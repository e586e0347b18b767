//! README.md and the pages of docs, checked against the program: what they say can be typed.
//!
//! A page that is kept by hand differs from the program after the first forgotten change. So these tests read the pages
//! ([`markdown`]) and check, without running anything:
//!
//! - every command `rauk …` in a block of shell is taken by the definition of the command line, and its settings by the
//!   list of settings; of commands in sentences, subcommands and flags exist;
//! - every link within the repository leads to a file, and to a heading in it;
//! - every page of docs is in `docs/SUMMARY.md`, from which mdBook makes a site;
//! - `docs/settings.md` is what the list of settings makes of it ([`settings_page`]);
//! - `docs/errors.md` names the codes of each class;
//! - every page with Rust is compiled: the doctests of `rauk-client` take the pages that it names.
//!
//! SQL in the pages is run by `tests/server/docs.rs`.

#[path = "../tests/common/markdown.rs"]
mod markdown;

use crate::client::arguments::with_password_forms;
use crate::config::{KEYS, Settings};
use clap::error::ErrorKind;
use markdown::{pages, root};
use rauk_types::{ErrorClass, MysqlError};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// The words of a shell's line, and its commands: quotes, comments, pipes, redirections and variables as the pages use them.
fn commands(text: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let (mut line, mut began) = (0, 0);
    let mut quote = None;
    // The next word is a file that is read or written.
    let mut redirected = false;
    let mut characters = text.chars().chain(['\n']).peekable();
    while let Some(c) = characters.next() {
        let ends = |word: &mut Option<String>, words: &mut Vec<String>, redirected: &mut bool| {
            if let Some(word) = word.take()
                && !std::mem::take(redirected)
            {
                words.push(word);
            }
        };
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => {
                line += usize::from(c == '\n');
                word.get_or_insert_default().push(c);
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => match characters.next() {
                Some('\n') => line += 1,
                Some(escaped) => word.get_or_insert_default().push(escaped),
                None => {}
            },
            (None, '#') if word.is_none() => while characters.next_if(|c| *c != '\n').is_some() {},
            (None, '\n' | ';' | '|' | '&') => {
                ends(&mut word, &mut words, &mut redirected);
                if !words.is_empty() {
                    found.push((began, std::mem::take(&mut words)));
                }
                line += usize::from(c == '\n');
            }
            (None, '<' | '>') => {
                // `2>file`
                word.take_if(|word| word == "2");
                ends(&mut word, &mut words, &mut redirected);
                redirected = true;
            }
            (None, c) if c.is_whitespace() => ends(&mut word, &mut words, &mut redirected),
            (None, c) => {
                if words.is_empty() && word.is_none() {
                    began = line;
                }
                word.get_or_insert_default().push(c);
            }
        }
    }
    found
}

/// From the word `rauk` on, where a command runs it: behind `sudo`, variables, `podman exec NAME`, `watch -n1`.
fn of_rauk(words: &[String]) -> Option<Vec<String>> {
    let is_rauk = |word: &str| word == "rauk" || word.ends_with("/rauk");
    let container = matches!(words.first()?.as_str(), "podman" | "docker" | "kubectl");
    if container && !words.iter().any(|word| matches!(word.as_str(), "exec" | "run")) {
        return None;
    }
    let at = match container {
        // The container may have the name, too: only what is executed in it is a command.
        true => words.windows(2).rposition(|pair| is_rauk(&pair[0]) && !pair[1].starts_with('-'))?,
        false => words.iter().position(|word| is_rauk(word))?,
    };
    let before = &words[..at];
    let runs = before.iter().all(|word| {
        word.contains('=') || word.starts_with('-') || matches!(word.as_str(), "sudo" | "watch" | "nohup" | "exec")
    });
    (runs || container).then(|| words[at..].to_vec())
}

/// Names that stand for something (`PORT1`, `VERSION`) in place of a number.
fn filled_in(word: &str) -> String {
    let is_name = word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    if is_name && word.starts_with(|c: char| c.is_ascii_uppercase()) { "1".into() } else { word.into() }
}

fn refusal(words: &[String]) -> Option<String> {
    let command = crate::command();
    let words: Vec<OsString> = words.iter().map(|word| filled_in(word).into()).collect();
    let given = with_password_forms(&command, words.into_iter());
    let arguments = match command.try_get_matches_from(given) {
        Ok(arguments) => arguments,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => return None,
        Err(error) => return Some(error.to_string()),
    };
    let (name, arguments) = arguments.subcommand()?;
    if !matches!(name, "start" | "demo") {
        return None;
    }
    let flags: Vec<(&str, String)> = KEYS
        .iter()
        .flat_map(|key| arguments.get_many::<String>(key.name).into_iter().flatten().map(|v| (key.name, v.clone())))
        .collect();
    let refused = Settings::load(None, std::iter::empty(), &flags).err()?.to_string();
    // This machine may be smaller than the reader's.
    (!refused.contains("is more than the")).then_some(refused)
}

#[test]
fn every_command_of_the_pages_is_taken() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for page in pages() {
        for block in page.blocks.iter().filter(|block| matches!(block.kind.as_str(), "sh" | "yaml")) {
            for (line, words) in commands(&block.text) {
                let Some(words) = of_rauk(&words) else { continue };
                checked += 1;
                if let Some(why) = refusal(&words) {
                    wrong.push(format!("{}:{}: {}: {why}", page.name, block.line + line, words.join(" ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 50, "only {checked} commands were found");
}

/// In sentences there are alternatives and names that stand for something, so only names are checked.
#[test]
fn subcommands_and_flags_in_sentences_exist() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for page in pages().into_iter().filter(|page| page.name != "CHANGELOG.md") {
        for (line, span) in page.spans.iter().filter(|(_, span)| span.starts_with("rauk ")) {
            let mut command = crate::command();
            checked += 1;
            for word in span.split_whitespace().skip(1) {
                let word = word.trim_matches(|c| "[]()".contains(c));
                if let Some(next) = command.find_subcommand(word) {
                    command = next.clone();
                } else if command.has_subcommands() && word.starts_with(|c: char| c.is_ascii_lowercase()) {
                    wrong.push(format!("{}:{line}: `{span}`: there is no subcommand {word}", page.name));
                } else if let Some(flag) = word.strip_prefix("--") {
                    let flag = flag.split('=').next().unwrap_or_default();
                    let known = |arg: &clap::Arg| {
                        arg.get_long() == Some(flag) || arg.get_all_aliases().is_some_and(|all| all.contains(&flag))
                    };
                    let is_global = matches!(flag, "help" | "version");
                    if !is_global && !command.get_arguments().any(known) {
                        wrong.push(format!("{}:{line}: `{span}`: there is no flag --{flag}", page.name));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 50, "only {checked} commands were found");
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let (root, pages) = (root(), pages());
    let mut wrong = Vec::new();
    for page in &pages {
        let directory = Path::new(&page.name).parent().expect("a file has a directory");
        for link in page.links.iter().filter(|link| !link.target.contains("://") && !link.target.starts_with("mailto:"))
        {
            let (file, heading) = link.target.split_once('#').unwrap_or((&link.target, ""));
            let path = if file.is_empty() { root.join(&page.name) } else { root.join(directory).join(file) };
            let place = format!("{}:{}: {}", page.name, link.line, link.target);
            let Ok(path) = path.canonicalize() else {
                wrong.push(format!("{place}: there is no such file"));
                continue;
            };
            let name = path.strip_prefix(&root).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let target = pages.iter().find(|page| page.name == name);
            if !heading.is_empty() && !target.is_some_and(|page| page.anchors.contains(heading)) {
                wrong.push(format!("{place}: there is no such heading"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_is_in_the_summary_once() {
    let pages = pages();
    let summary = pages.iter().find(|page| page.name == "docs/SUMMARY.md").expect("docs/SUMMARY.md is there");
    let mut listed: Vec<&str> = summary.links.iter().map(|link| link.target.as_str()).collect();
    listed.sort_unstable();
    let expected: Vec<&str> =
        pages.iter().filter_map(|page| page.name.strip_prefix("docs/")).filter(|name| *name != "SUMMARY.md").collect();
    assert_eq!(listed, expected);
}

#[test]
fn every_page_with_rust_is_compiled() {
    let library = fs::read_to_string(root().join("crates/client/src/lib.rs")).expect("readable");
    let with_rust: BTreeSet<String> = pages()
        .into_iter()
        .filter(|page| page.blocks.iter().any(|block| block.kind.split(',').next() == Some("rust")))
        .map(|page| page.name)
        .collect();
    assert!(with_rust.contains("README.md"), "{with_rust:?}");
    for name in with_rust {
        let included = format!("#[doc = include_str!(\"../../../{name}\")]");
        assert!(library.contains(&included), "{name} has Rust: crates/client/src/lib.rs lacks {included}");
    }
    for page in pages() {
        let kinds = page.blocks.iter().map(|block| block.kind.as_str());
        let unknown: Vec<&str> = kinds.filter(|kind| kind.is_empty() || kind.contains("ignore")).collect();
        assert!(unknown.is_empty(), "{}: blocks need a kind, and Rust is compiled: {unknown:?}", page.name);
    }
}

/// Who reads the page repeats what it calls temporary, and nothing else.
#[test]
fn errors_are_on_the_page_in_their_classes() {
    let text = fs::read_to_string(root().join("docs/errors.md")).expect("readable");
    let listed = |heading: &str| -> BTreeSet<u16> {
        let section = text.split(&format!("\n## {heading}\n")).nth(1).expect("the heading is there");
        let section = section.split("\n## ").next().expect("a first part");
        let codes = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
        codes.flat_map(|cell| cell.split(", ").filter_map(|code| code.parse().ok()).collect::<Vec<u16>>()).collect()
    };
    let of = |class: ErrorClass| -> BTreeSet<u16> {
        (1000..6000).filter(|code| MysqlError::new(*code, "").class() == class).collect()
    };
    assert_eq!(listed("Temporary errors"), of(ErrorClass::Temporary));
    assert_eq!(listed("Unknown outcome"), of(ErrorClass::UnknownOutcome));
    let permanent = listed("Permanent errors");
    assert!(permanent.len() > 20 && permanent.is_subset(&of(ErrorClass::Permanent)), "{permanent:?}");
}

/// The page of settings, made of the list.
fn settings_page() -> String {
    let mut page = String::from(
        "# Settings\n\n\
         Every setting of `rauk start` and `rauk demo`. One name works in three places:\n\n\
         | place | form | wins over |\n|---|---|---|\n\
         | command line | `--memory-limit 4GiB` | all others |\n\
         | environment | `RAUK_MEMORY_LIMIT=4GiB` | the file |\n\
         | TOML file (`--config FILE.toml`, `RAUK_CONFIG`) | `memory-limit = \"4GiB\"` | the default |\n\n\
         A name that does not exist and a value that does not fit are errors. The error names the place and the nearest right\n\
         name. Sizes take units: `512MiB`, `4GiB`, `100MB`. Settings that can be changed while the server runs are variables:\n\
         [SQL](sql.md#variables-with-an-effect). `RAUK_ROOT_PASSWORD` is the only variable of the environment beside these and\n\
         `RAUK_LOG`, a filter for the log (`info,rauk_node=debug`).\n\n\
         This page is made of the list of settings in the program. A test fails when they differ.\n\n\
         | setting | value | what it does | default |\n|---|---|---|---|\n",
    );
    for key in KEYS {
        let (help, default) = match key.help.rsplit_once(" [default: ") {
            Some((help, default)) => (help, default.trim_end_matches(']')),
            None => (key.help, "none"),
        };
        let cell = |text: &str| text.replace('|', "\\|");
        page += &format!("| `{}` | `{}` | {} | {} |\n", key.name, cell(key.value_name), cell(help), cell(default));
    }
    page
}

const WRITE: &str = "RAUK_DOCS_WRITE";

#[test]
fn the_page_of_settings_is_made_of_their_list() {
    let (path, made) = (root().join("docs/settings.md"), settings_page());
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, &made).expect("docs/settings.md can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == made,
        "docs/settings.md differs from the list of settings; write it again with\n  \
         {WRITE}=1 cargo test --workspace --bin rauk the_page_of_settings"
    );
}

#[test]
fn commands_of_a_shell_are_found() {
    let text = "FOO=1 rauk sql -e 'a; b' > x.txt   # rauk wrong\nsudo rauk \\\n  status | less; ls rauk\n";
    let found: Vec<(usize, String)> =
        commands(text).into_iter().filter_map(|(line, words)| Some((line, of_rauk(&words)?.join("|")))).collect();
    assert_eq!(found, [(0, "rauk|sql|-e|a; b".into()), (1, "rauk|status".into())]);
    let inside = |text: &str| commands(text).iter().find_map(|(_, words)| of_rauk(words)).map(|words| words.join(" "));
    assert_eq!(inside("podman exec rauk rauk sql -p").as_deref(), Some("rauk sql -p"));
    assert_eq!(inside("podman run -d --name rauk -v x:/y rauk start --host h").as_deref(), Some("rauk start --host h"));
    assert_eq!(inside("podman stop -t 60 rauk"), None);
    assert_eq!(inside("rauk sql --replicas 2 2>errors").as_deref(), Some("rauk sql --replicas 2"));
    assert!(refusal(&["rauk", "start", "--no-such"].map(String::from)).is_some());
    assert!(refusal(&["rauk", "start", "--durability", "x"].map(String::from)).is_some());
    assert!(refusal(&["rauk", "sql", "--port", "PORT1"].map(String::from)).is_none());
}
